//! Sessions: made, found, listed; headers, lengths and times.

use std::collections::BTreeMap;

use sessionlog::{Error, NewSession, Seq, SessionId, Store};

use crate::support::events::{self, chunk, read, user};
use crate::support::medium::{Crash, Medium};
use crate::support::run::{id, quiet};

fn listed(store: &Store) -> Vec<String> {
    store.list().unwrap().map(|info| info.unwrap().header.id.to_string()).collect()
}

/// A given id is kept, a minted one is a UUIDv7 of its own; neither is ever overwritten.
#[test]
fn ids_are_given_or_minted_and_never_overwritten() {
    let store = Store::in_memory().unwrap();
    let session = store.create(NewSession::with_id(id("release notes"))).unwrap();
    assert_eq!(session.id(), &id("release notes"));
    session.append(user("kept").to_new()).unwrap();
    let minted: Vec<_> = (0..100).map(|_| store.create(NewSession::new()).unwrap().id().clone()).collect();
    for id in &minted {
        let text = id.as_str();
        assert_eq!((text.len(), &text[14..15]), (36, "7"), "{text}");
    }
    for taken in minted.iter().chain([session.id()]) {
        let refused = store.create(NewSession::with_id(taken.clone())).unwrap_err();
        assert!(matches!(refused, Error::SessionExists { .. }), "{refused:?}");
        let refused = store.fork(session.id(), Seq::ZERO, NewSession::with_id(taken.clone())).unwrap_err();
        assert!(matches!(refused, Error::SessionExists { .. }), "{refused:?}");
    }
    // Also when the store has forgotten it and finds it in its blocks.
    store.drain().unwrap();
    drop(session);
    let refused = store.create(NewSession::with_id(id("release notes"))).unwrap_err();
    assert!(matches!(refused, Error::SessionExists { .. }), "{refused:?}");
    assert_eq!(
        read(store.session(&id("release notes")).unwrap().read_from(Seq::ZERO)),
        [user("kept").line(0)]
    );
    let unknown = store.session(&id("unknown")).unwrap_err();
    assert!(matches!(unknown, Error::SessionNotFound { .. }), "{unknown:?}");
    assert_eq!(listed(&store).len(), 101);
}

/// Of threads that create the same id one wins.
#[test]
fn racing_creations_have_one_winner() {
    let store = Medium::new(1).open(quiet()).unwrap();
    for round in 0..50 {
        let name = id(&format!("s{round}"));
        let wins = std::thread::scope(|scope| {
            let create = |_| scope.spawn(|| store.create(NewSession::with_id(name.clone())).is_ok());
            let threads: Vec<_> = (0..4).map(create).collect();
            threads.into_iter().map(|thread| thread.join().unwrap()).filter(|won| *won).count()
        });
        assert_eq!(wins, 1);
    }
    assert_eq!(listed(&store).len(), 50);
}

/// H35: ids that look like paths are ids: they touch no file outside the folder, and are told apart.
#[test]
fn h35_ids_are_no_paths() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("below").join("store");
    let store = Store::open(&path).unwrap();
    let longest = "x".repeat(SessionId::MAX_BYTES);
    let names =
        ["../../x", "a/b", "/abs", "C:\\x", ".", "..", "%2e%2e", "a", "A", "é", "e\u{301}", " ", &longest];
    for name in names {
        let session = store.create(NewSession::with_id(id(name))).unwrap();
        session.append(user("x").to_new()).unwrap();
    }
    let mut found = listed(&store);
    found.sort();
    let mut expected: Vec<String> = names.iter().map(ToString::to_string).collect();
    expected.sort();
    assert_eq!(found, expected);
    store.close().unwrap();
    drop(store);
    let store = Store::open(&path).unwrap();
    for name in names {
        assert_eq!(store.session(&id(name)).unwrap().len(), 1, "{name}");
    }
    let outside: Vec<_> = std::fs::read_dir(folder.path()).unwrap().map(|e| e.unwrap().file_name()).collect();
    assert_eq!(outside, ["below"]);
    for bad in ["", "a\0b", "a\nb", "\u{7f}", &"x".repeat(256), &"é".repeat(128)] {
        assert!(bad.parse::<SessionId>().is_err(), "{bad:?}");
    }
}

/// The list is by last update, newest first, whatever is drained; ties have one order; lengths and times are right.
#[test]
fn the_list_is_by_last_update() {
    let medium = Medium::new(1);
    let mut store = medium.open(quiet()).unwrap();
    let mut updated: BTreeMap<String, (i64, u64)> = BTreeMap::new();
    for n in 0..40_u64 {
        let name = format!("s{n}");
        let session = store.create(NewSession::with_id(id(&name))).unwrap();
        for k in 0..=n % 3 {
            // Times of a session go up and down; the last event's counts.
            let time = events::NOON + ((n * 7919 + k * 104_729) % 50) as i64;
            session.append(user("x").at(time).to_new()).unwrap();
            updated.insert(name.clone(), (time, k + 1));
        }
        if n % 7 == 0 {
            store.drain().unwrap();
        }
    }
    for round in 0..3 {
        let found: Vec<_> = store.list().unwrap().map(|info| info.unwrap()).collect();
        assert_eq!(found.len(), 40);
        assert!(found.is_sorted_by(|a, b| a.updated_at >= b.updated_at), "round {round}");
        for info in &found {
            let expected = updated[info.header.id.as_str()];
            assert_eq!((info.updated_at.as_millis(), info.len), expected, "{}", info.header.id);
        }
        let again: Vec<_> = store.list().unwrap().map(|info| info.unwrap().header.id).collect();
        assert!(found.iter().map(|info| &info.header.id).eq(&again), "ties have one order");
        match round {
            0 => store.drain().unwrap(),
            1 => {
                store.close().unwrap();
                drop(store);
                store = medium.open(quiet()).unwrap();
                // An event with an older time moves its session down the list.
                store.session(&id("s1")).unwrap().append(user("old").at(5).to_new()).unwrap();
                updated.insert("s1".into(), (5, 3));
            }
            _ => {}
        }
    }
    assert_eq!(listed(&store).last().unwrap(), "s1");
}

/// While drains run, a list of sessions that nobody touches has each of them exactly once.
#[test]
fn a_list_during_drains_is_whole() {
    let store = Medium::new(1).open(quiet()).unwrap();
    let still: Vec<String> = (0..30).map(|n| format!("still {n}")).collect();
    for (n, name) in still.iter().enumerate() {
        let session = store.create(NewSession::with_id(id(name))).unwrap();
        session.append(user("x").at(events::NOON - n as i64).to_new()).unwrap();
    }
    let moving = store.create(NewSession::with_id(id("moving"))).unwrap();
    let done = std::sync::atomic::AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            for n in 0..300_i64 {
                moving.append(user("y").at(events::NOON - (n * 37) % 40).to_new()).unwrap();
                store.drain().unwrap();
            }
            done.store(true, std::sync::atomic::Ordering::SeqCst);
        });
        while !done.load(std::sync::atomic::Ordering::SeqCst) {
            let mut found = listed(&store);
            found.sort();
            let before = found.len();
            found.dedup();
            assert_eq!(found.len(), before, "a session is listed twice");
            found.retain(|name| name != "moving");
            let mut expected = still.clone();
            expected.sort();
            assert_eq!(found, expected);
        }
    });
}

/// H36: empty sessions are listed with length 0; opening and closing makes none.
#[test]
fn h36_empty_sessions_are_marked_and_not_multiplied() {
    let medium = Medium::new(1);
    for _ in 0..5 {
        let store = medium.open(quiet()).unwrap();
        let _ = store.create(NewSession::with_id(id("empty")));
        store.close().unwrap();
    }
    let store = medium.open(quiet()).unwrap();
    let found: Vec<_> = store.list().unwrap().map(|info| info.unwrap()).collect();
    assert_eq!(found.len(), 1);
    assert_eq!((found[0].len, found[0].updated_at), (0, found[0].header.created_at));
}

/// The header is fixed at creation and survives: metadata up to its limit, the created time.
#[test]
fn headers_survive() {
    let medium = Medium::new(1);
    let store = medium.open(quiet()).unwrap();
    let new =
        NewSession::with_id(id("a")).meta("model", "small").meta("", "é\n\0").meta("k", "v".repeat(4_000));
    let session = store.create(new).unwrap();
    session.append(chunk("x").to_new()).unwrap();
    let header = session.header().unwrap();
    assert_eq!((&header.id, header.parent.as_ref()), (&id("a"), None));
    let fork = store.fork(&id("a"), Seq::new(1), NewSession::with_id(id("f"))).unwrap().header().unwrap();
    assert_eq!(fork.meta, header.meta);
    drop((session, store));
    medium.restart(Crash::Power);
    for _ in 0..2 {
        let store = medium.open(quiet()).unwrap();
        assert_eq!(store.session(&id("a")).unwrap().header().unwrap(), header);
        assert_eq!(store.session(&id("f")).unwrap().header().unwrap(), fork);
        store.close().unwrap();
    }
}

/// A list names an id once, also when it became another session's while the list was read.
#[test]
fn an_id_is_listed_once() {
    let store = Store::in_memory().unwrap();
    let old = store.create(NewSession::with_id(id("a"))).unwrap();
    old.append(user("one").to_new()).unwrap();
    let mut list = store.list().unwrap();
    assert_eq!(list.next().unwrap().unwrap().header.id, id("a"));
    store.delete(&id("a")).unwrap();
    let new = store.create(NewSession::with_id(id("a"))).unwrap();
    new.append(user("two").to_new()).unwrap();
    store.drain().unwrap();
    assert!(list.next().is_none());
}
