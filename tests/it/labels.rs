//! Titles and labels, and sessions that are hidden until they are published, through crashes too.

use sessionlog::{Error, LabelChange, Labels, NewEvent, NewSession, Seq, Store};

use crate::support::events::{noise, read, user};
use crate::support::medium::{Crash, Fault, Medium};
use crate::support::run::{id, quiet};

fn labels(store: &Store, name: &str) -> Labels {
    store.session(&id(name)).unwrap().labels()
}

/// Goal: labels are there after a reopen, from the journal and from the engine, are shown in lists, and are no part of
/// a fork.
#[test]
fn labels_stay_and_are_not_inherited() {
    let medium = Medium::new(1);
    let store = medium.open(quiet()).unwrap();
    let session = store.create(NewSession::with_id(id("a"))).unwrap();
    session.append(NewEvent::user_message("hi")).unwrap();
    session.label(LabelChange::new().title("One").set("k", "v").set("gone", "x")).unwrap();
    let changed = session.label(LabelChange::new().remove("gone")).unwrap();
    assert_eq!(changed.labels.len(), 1);
    store.fork(&id("a"), Seq::new(1), NewSession::with_id(id("b"))).unwrap();
    let check = |store: &Store| {
        assert_eq!(labels(store, "a"), changed);
        assert!(labels(store, "b").is_empty());
        let listed: Vec<_> = store.list().unwrap().map(|info| info.unwrap().labels).collect();
        assert!(listed.contains(&changed) && listed.contains(&Labels::default()));
        assert!(store.scan().unwrap().is_clean());
    };
    check(&store);
    drop((session, store));
    for crash in [Crash::Kill, Crash::Power] {
        medium.restart(crash);
        let store = medium.open(quiet()).unwrap();
        check(&store);
        store.drain().unwrap();
        check(&store);
    }
}

/// Goal: a change that was acknowledged is there after any crash, and no other than the last ones can be; with a fault
/// at every operation.
#[test]
fn changes_are_whole_or_absent() {
    for fault in [Fault::Fail, Fault::Tear, Fault::Stop] {
        for crash in [Crash::Kill, Crash::Power] {
            let mut operation = 0;
            loop {
                operation += 1;
                let medium = Medium::new(operation);
                medium.plan(operation, fault);
                // The title that was acknowledged, and the one that was tried.
                let (mut done, mut tried) = (0, 0);
                let script = |done: &mut u32, tried: &mut u32| -> sessionlog::Result<()> {
                    let store = medium.open(quiet())?;
                    let session = store.create(NewSession::with_id(id("a")))?;
                    for n in 1..=4 {
                        *tried = n;
                        session.label(LabelChange::new().title(n.to_string()).set("n", n.to_string()))?;
                        *done = n;
                        if n == 2 {
                            store.drain()?;
                        }
                    }
                    store.close()
                };
                let outcome = script(&mut done, &mut tried);
                let fired = medium.fired();
                medium.restart(crash);
                let store = medium.open(quiet()).unwrap();
                match store.session(&id("a")) {
                    Ok(session) => {
                        let found = session.labels();
                        let title = found.title.as_deref().map_or(0, |title| title.parse().unwrap());
                        assert!((done..=tried).contains(&title), "{title} of {done} to {tried}: {outcome:?}");
                        let n = (title > 0).then(|| title.to_string());
                        assert_eq!(found.labels.get("n"), n.as_ref());
                    }
                    Err(_) => assert_eq!((done, tried), (0, 0)),
                }
                assert!(store.scan().unwrap().is_clean());
                if !fired {
                    break;
                }
            }
            assert!(operation > 10);
        }
    }
}

/// Goal: changes of one session by many threads are made one behind the other.
#[test]
fn no_change_is_lost() {
    let store = Store::in_memory().unwrap();
    let session = store.create(NewSession::new()).unwrap();
    std::thread::scope(|scope| {
        for n in 0..8 {
            let session = session.clone();
            scope.spawn(move || {
                for m in 0..10 {
                    session.label(LabelChange::new().set(format!("{n}-{m}"), "x")).unwrap();
                }
            });
        }
    });
    assert_eq!(session.labels().labels.len(), 80);
}

/// Goal: too much is refused, and nothing of it stays.
#[test]
fn too_much_is_refused() {
    let store = Store::in_memory().unwrap();
    let session = store.create(NewSession::new()).unwrap();
    session.label(LabelChange::new().title("before")).unwrap();
    let refused = session.label(LabelChange::new().title("x".repeat(5_000)));
    assert!(matches!(refused, Err(Error::LabelsTooLarge { bytes: 5_000, .. })), "{refused:?}");
    assert_eq!(session.title().as_deref(), Some("before"));
    let many = (0..400).fold(LabelChange::new(), |change, n| change.set(n.to_string(), "x"));
    assert!(matches!(session.label(many), Err(Error::LabelsTooLarge { .. })));
    // The many smallest that fit, in one value of the engine.
    let many = (0..340).fold(LabelChange::new(), |change, n| change.set(n.to_string(), "x"));
    session.label(many).unwrap();
    store.drain().unwrap();
    assert!(store.scan().unwrap().is_clean());
}

/// Goal: nobody sees a hidden session; dropped, it leaves nothing, and its id can be taken.
#[test]
fn a_dropped_hidden_session_leaves_nothing() {
    let medium = Medium::new(1);
    let store = medium.open(quiet()).unwrap();
    let empty = medium.image().maps;
    let hidden = store.create_hidden(NewSession::with_id(id("a"))).unwrap();
    hidden.append_batch((0..9).map(|n| noise(n, 9_000).to_new())).unwrap();
    store.drain().unwrap();
    assert_ne!(medium.image().maps[1], empty[1]);
    hidden.append_batch([user("more").to_new()]).unwrap();
    let seen = store.session(&id("a"));
    assert!(matches!(seen, Err(Error::SessionNotFound { .. })), "{seen:?}");
    assert_eq!(store.list().unwrap().count(), 0);
    assert!(store.scan().unwrap().is_clean());
    drop(hidden);
    store.create(NewSession::with_id(id("a"))).unwrap();
    store.drain().unwrap();
    store.drain().unwrap();
    let maps = medium.image().maps;
    assert_eq!(maps[1], empty[1], "no block is left");
    assert!(maps[0].iter().all(|(key, _)| key[0] != b'm'), "no header is left");
    assert_eq!(store.list().unwrap().count(), 1);
    assert!(store.scan().unwrap().is_clean());
    store.close().unwrap();
}

/// Goal: the id is looked at again when a hidden session is published.
#[test]
fn an_id_that_was_taken_meanwhile_is_not_overwritten() {
    let store = Store::in_memory().unwrap();
    let hidden = store.create_hidden(NewSession::with_id(id("a"))).unwrap();
    hidden.append_batch([user("hidden").to_new()]).unwrap();
    let session = store.create(NewSession::with_id(id("a"))).unwrap();
    session.append(user("here").to_new()).unwrap();
    let refused = hidden.publish(LabelChange::new());
    assert!(matches!(refused, Err(Error::SessionExists { .. })), "{refused:?}");
    assert_eq!(read(store.session(&id("a")).unwrap().read_from(Seq::ZERO)), [user("here").line(0)]);
}

/// Goal: the hash of a history is that of its lines, drained or not, in forks and published sessions.
#[test]
fn running_hashes_follow_the_lines() {
    let store = Store::in_memory().unwrap();
    let session = store.create(NewSession::with_id(id("a"))).unwrap();
    let mut forks = Vec::new();
    for n in 0..6 {
        let events: Vec<_> = (0..40).map(|m| noise(n * 100 + m, 300).to_new()).collect();
        session.append_batch(events).unwrap();
        if n % 2 == 1 {
            store.drain().unwrap();
        }
        let fork = session.fork(Seq::new(session.len() - n)).unwrap();
        fork.append_batch((0..n).map(|m| user(&m.to_string()).to_new())).unwrap();
        forks.push(fork);
    }
    let hidden = store.fork_hidden(&id("a"), Seq::new(13), NewSession::new()).unwrap();
    hidden.append_batch((0..20).map(|n| user(&n.to_string()).to_new())).unwrap();
    store.drain().unwrap();
    forks.push(hidden.publish(LabelChange::new()).unwrap());
    forks.push(forks.last().unwrap().fork(Seq::new(20)).unwrap());
    for drained in [false, true] {
        for session in forks.iter().chain([&session]) {
            let mut hash = sessionlog::RunningHash::START;
            assert_eq!(session.running_hash(Seq::ZERO).unwrap(), hash);
            for (at, line) in read(session.read_from(Seq::ZERO)).iter().enumerate() {
                hash = hash.next_line(line.as_bytes());
                assert_eq!(session.running_hash(Seq::new(at as u64 + 1)).unwrap(), hash, "{drained} {at}");
            }
        }
        store.drain().unwrap();
    }
    assert!(store.scan().unwrap().is_clean());
    assert!(matches!(session.running_hash(Seq::new(241)), Err(Error::SeqBeyondEnd { .. })));
}

/// Goal: a hidden fork is not published when its parent was deleted meanwhile; then nothing of either is left.
#[test]
fn a_hidden_fork_goes_with_its_parent() {
    for drain in [false, true] {
        let medium = Medium::new(1);
        let store = medium.open(quiet()).unwrap();
        let parent = store.create(NewSession::with_id(id("parent"))).unwrap();
        parent.append_batch((0..4).map(|n| noise(n, 9_000).to_new())).unwrap();
        let hidden = store.fork_hidden(parent.id(), Seq::new(3), NewSession::with_id(id("s"))).unwrap();
        hidden.append_batch([noise(9, 9_000).to_new()]).unwrap();
        if drain {
            store.drain().unwrap();
        }
        store.delete(parent.id()).unwrap();
        if drain {
            store.drain().unwrap();
        }
        let refused = hidden.publish(LabelChange::new());
        assert!(matches!(refused, Err(Error::SessionNotFound { .. })), "{refused:?}");
        drop((refused, parent));
        store.close().unwrap();
        medium.restart(Crash::Kill);
        let store = medium.open(quiet()).unwrap();
        assert_eq!(store.list().unwrap().count(), 0);
        store.drain().unwrap();
        store.close().unwrap();
        assert!(medium.image().maps[1].is_empty(), "blocks are left");
    }
}

/// Goal: a session that was hidden, published and deleted within one pass leaves nothing, though parts of it were
/// stored before; its id is free, and a label for it is refused.
#[test]
fn published_and_deleted_at_once() {
    let medium = Medium::new(1);
    let store = medium.open(quiet()).unwrap();
    let hidden = store.create_hidden(NewSession::with_id(id("s"))).unwrap();
    hidden.append_batch([noise(1, 20_000).to_new()]).unwrap();
    store.drain().unwrap();
    hidden.append_batch([noise(2, 20_000).to_new()]).unwrap();
    let session = hidden.publish(LabelChange::new().title("T")).unwrap();
    store.delete(session.id()).unwrap();
    let refused = session.label(LabelChange::new().title("x"));
    assert!(matches!(refused, Err(Error::SessionNotFound { .. })), "{refused:?}");
    store.create(NewSession::with_id(id("s"))).unwrap();
    assert!(labels(&store, "s").is_empty());
    store.drain().unwrap();
    assert!(store.scan().unwrap().is_clean());
    drop(session);
    store.close().unwrap();
    let maps = medium.image().maps;
    assert!(maps[1].is_empty(), "blocks are left");
    assert!(maps[0].iter().all(|(key, _)| !b"lmt".contains(&key[0])), "records are left");
}

/// Goal: a deleted session's labels are deleted with it, also those that were not drained.
#[test]
fn labels_go_with_their_session() {
    for drain in [false, true] {
        let medium = Medium::new(1);
        let store = medium.open(quiet()).unwrap();
        let session = store.create(NewSession::with_id(id("s"))).unwrap();
        session.label(LabelChange::new().title("one")).unwrap();
        store.drain().unwrap();
        session.label(LabelChange::new().title("two")).unwrap();
        if drain {
            store.drain().unwrap();
        }
        store.delete(session.id()).unwrap();
        drop((session, store));
        medium.restart(Crash::Power);
        let store = medium.open(quiet()).unwrap();
        assert_eq!(store.list().unwrap().count(), 0);
        store.drain().unwrap();
        store.close().unwrap();
        assert!(medium.image().maps[0].iter().all(|(key, _)| key[0] != b'l'), "labels are left");
    }
}
