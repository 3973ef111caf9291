//! Forks: at any place, of anything, as deep as one likes, with the parent growing meanwhile.

use sessionlog::{Append, Error, NewSession, Seq, Session, Store};

use crate::support::events::{self, Said, chunk, noise, read, user};
use crate::support::medium::{Crash, Medium, Step};
use crate::support::run::{id, quiet};

fn at(seq: u64) -> Seq {
    Seq::new(seq)
}

fn all(session: &Session) -> Vec<String> {
    read(session.read_from(Seq::ZERO))
}

fn append(session: &Session, said: &[Said]) {
    session.append_batch(said.iter().map(Said::to_new)).unwrap();
}

/// H40: the child holds the events before the chosen place, with their seqs, times and bytes, and nothing that the
/// parent appends later.
#[test]
fn h40_a_fork_takes_what_was_chosen() {
    let store = Store::in_memory().unwrap();
    let parent = store.create(NewSession::new().meta("model", "small")).unwrap();
    let said: Vec<Said> = (0..20).map(|n| user(&format!("{n}")).at(1_000 * n)).collect();
    append(&parent, &said[..10]);
    for drain in [false, true] {
        let child = parent.fork(at(4)).unwrap();
        assert_eq!((child.len(), child.durable_len()), (4, 4));
        append(&parent, &said[10..]);
        if drain {
            store.drain().unwrap();
        }
        assert_eq!(all(&child), events::lines(&said[..4], 0));
        assert_eq!(child.append(user("own").to_new()).unwrap(), at(4));
        assert_eq!(all(&child)[4], user("own").line(4));
        assert_eq!(read(child.last(2)), [said[3].line(3), user("own").line(4)]);
        assert_eq!(read(child.read_range(at(3)..at(9))).len(), 2);
        let header = child.header().unwrap();
        let from = header.parent.unwrap();
        assert_eq!((from.session.as_ref(), from.prefix_len), (Some(parent.id()), 4));
        assert_eq!(header.meta["model"], "small");
        assert!(header.created_at >= parent.header().unwrap().created_at);
    }
    assert_eq!(all(&parent)[..20], events::lines(&said, 0));
}

/// At every place of a parent that is half in blocks, half in the tail, with large events and chunks.
#[test]
fn forks_at_every_place() {
    let medium = Medium::new(1);
    let store = medium.open(quiet()).unwrap();
    let parent = store.create(NewSession::with_id(id("p"))).unwrap();
    let said: Vec<Said> =
        (0..60).map(events::any).chain([noise(1, 20_000)]).chain((60..80).map(events::any)).collect();
    append(&parent, &said[..50]);
    store.drain().unwrap();
    append(&parent, &said[50..]);
    let lines = events::lines(&said, 0);
    let name = |place: usize| id(&format!("f{place}"));
    for place in 0..=said.len() {
        let child = store.fork(&id("p"), at(place as u64), NewSession::with_id(name(place))).unwrap();
        append(&child, &[user("own"), chunk("own")]);
    }
    let check = |store: &Store| {
        for place in 0..=said.len() {
            let expected = [&lines[..place], &events::lines(&[user("own"), chunk("own")], place)].concat();
            let child = store.session(&name(place)).unwrap();
            assert_eq!(events::difference(&all(&child), &expected), None, "fork at {place}");
            let from = place.saturating_sub(2);
            assert_eq!(read(child.read_from(at(from as u64))), expected[from..]);
            let mut reverse = read(child.read_reverse(at(0)..at(u64::MAX)));
            reverse.reverse();
            assert_eq!(reverse, expected);
        }
        assert!(store.scan().unwrap().is_clean(), "{:?}", store.scan());
    };
    check(&store);
    store.drain().unwrap();
    check(&store);
    drop((parent, store));
    medium.restart(Crash::Power);
    check(&medium.open(quiet()).unwrap());
}

/// H36: an empty session forked at 0, six deep; the last one appends; the chain reads, over a restart too.
#[test]
fn h36_forks_of_nothing() {
    let medium = Medium::new(1);
    let store = medium.open(quiet()).unwrap();
    let mut session = store.create(NewSession::new()).unwrap();
    let mut chain = vec![session.id().clone()];
    for _ in 0..6 {
        session = session.fork(at(0)).unwrap();
        chain.push(session.id().clone());
        assert_eq!(all(&session), [""; 0]);
    }
    session.append(user("last").to_new()).unwrap();
    let check = |store: &Store| {
        for (depth, name) in chain.iter().enumerate() {
            let session = store.session(name).unwrap();
            assert_eq!(all(&session).len(), usize::from(depth == 6));
            assert_eq!(session.is_empty(), depth != 6);
        }
        assert_eq!(store.list().unwrap().count(), 7);
    };
    check(&store);
    store.close().unwrap();
    drop((session, store));
    check(&medium.open(quiet()).unwrap());
}

/// H42: two forks in one millisecond are two sessions.
#[test]
fn h42_forks_made_at_once_have_their_own_ids() {
    let store = Store::in_memory().unwrap();
    let parent = store.create(NewSession::new()).unwrap();
    parent.append(user("shared").to_new()).unwrap();
    let mut ids: Vec<_> = std::thread::scope(|scope| {
        let forks = |_| {
            scope.spawn(|| (0..200).map(|_| parent.fork(at(1)).unwrap().id().clone()).collect::<Vec<_>>())
        };
        let threads: Vec<_> = (0..4).map(forks).collect();
        threads.into_iter().flat_map(|thread| thread.join().unwrap()).collect()
    });
    ids.sort();
    ids.dedup();
    assert_eq!(ids.len(), 800);
}

/// 10,000 deep, with and without events of their own in between: resolved without recursion, read in both
/// directions, and after a restart. A fork costs the same however deep it is: one frame of the same size.
#[test]
fn ten_thousand_forks_deep() {
    let medium = Medium::new(1);
    let store = medium.open(quiet()).unwrap();
    let mut session = store.create(NewSession::new()).unwrap();
    append(&session, &[user("root")]);
    let mut expected = vec![user("root").line(0)];
    medium.take_log();
    let mut sizes = Vec::new();
    for depth in 1..=10_000_u64 {
        session = session.fork(at(expected.len() as u64)).unwrap();
        if depth == 5 || depth == 9_000 {
            sizes.extend(
                medium
                    .take_log()
                    .into_iter()
                    .filter_map(|step| match step {
                        Step::Write(_, _, len) => Some(len),
                        _ => None,
                    })
                    .next_back(),
            );
        }
        if depth % 4 == 0 {
            let said = user(&format!("at depth {depth}"));
            session.append_with(Append::new().buffered(), [said.to_new()]).unwrap();
            expected.push(said.line(expected.len() as u64));
        }
        if depth == 5_000 {
            store.drain().unwrap();
        }
    }
    assert!(sizes[1] <= sizes[0] + 16, "a fork's frame grows with the depth: {sizes:?}");
    let check = |session: &Session| {
        assert_eq!(events::difference(&all(session), &expected), None);
        assert_eq!(read(session.last(2)), expected[expected.len() - 2..]);
        assert_eq!(read(session.read_range(at(100)..at(103))), expected[100..103]);
        let reverse = read(session.read_reverse(at(0)..at(3)));
        assert!(reverse.iter().rev().eq(&expected[..3]));
    };
    check(&session);
    let deepest = session.id().clone();
    store.close().unwrap();
    drop((session, store));
    let store = medium.open(quiet()).unwrap();
    check(&store.session(&deepest).unwrap());
    assert_eq!(store.list().unwrap().count(), 10_001);
}

/// A fork whose prefix ends before its parent's own events belongs to the grandparent there; siblings do not mix.
#[test]
fn a_prefix_that_ends_in_an_older_ancestor() {
    for drained in [false, true] {
        let store = Medium::new(1).open(quiet()).unwrap();
        let drain = || {
            if drained {
                store.drain().unwrap()
            }
        };
        let root = store.create(NewSession::new()).unwrap();
        let said: Vec<Said> = (0..10).map(|n| user(&format!("root {n}"))).collect();
        append(&root, &said);
        drain();
        let middle = root.fork(at(6)).unwrap();
        append(&middle, &[user("middle 6"), user("middle 7")]);
        drain();
        let expected = |prefix: usize, own: &[Said]| {
            [&events::lines(&said[..prefix], 0)[..], &events::lines(own, prefix)].concat()
        };
        for place in [0, 1, 5, 6] {
            let leaf = middle.fork(at(place as u64)).unwrap();
            append(&leaf, &[user("leaf")]);
            drain();
            assert_eq!(all(&leaf), expected(place, &[user("leaf")]));
            let deeper = leaf.fork(at(place as u64)).unwrap();
            append(&deeper, &[user("deeper")]);
            assert_eq!(all(&deeper), expected(place, &[user("deeper")]));
        }
        let leaf = middle.fork(at(7)).unwrap();
        assert_eq!(all(&leaf), expected(6, &[user("middle 6")]));
        assert!(store.scan().unwrap().is_clean());
    }
}

/// What the fork shares is durable with it, also Buffered events that nobody had synced.
#[test]
fn a_fork_makes_its_prefix_durable() {
    let medium = Medium::new(1);
    let store = medium.open(quiet()).unwrap();
    let parent = store.create(NewSession::with_id(id("p"))).unwrap();
    append(&parent, &[chunk("one"), chunk("two")]);
    assert_eq!((parent.len(), parent.durable_len()), (2, 0));
    store.fork(&id("p"), at(2), NewSession::with_id(id("f"))).unwrap();
    assert_eq!(parent.durable_len(), 2);
    medium.stop();
    drop((parent, store));
    medium.restart(Crash::Power);
    let store = medium.open(quiet()).unwrap();
    assert_eq!(all(&store.session(&id("f")).unwrap()), events::lines(&[chunk("one"), chunk("two")], 0));
}

/// The parent grows, is drained and forked by threads; each fork is the parent's prefix at its place, for good.
#[test]
fn forks_of_a_growing_parent() {
    let store = Medium::new(1).open(quiet().tail_bytes(64 << 10)).unwrap();
    let parent = store.create(NewSession::new()).unwrap();
    let said = |n: u64| user(&format!("event {n} {}", events::letters(n, 60)));
    append(&parent, &[said(0)]);
    let forks: Vec<(u64, Session)> = std::thread::scope(|scope| {
        let forkers: Vec<_> = (0..3)
            .map(|_| {
                let parent = parent.clone();
                scope.spawn(move || {
                    let mut forks = Vec::new();
                    while parent.len() < 1_000 {
                        let place = parent.len();
                        let fork = parent.fork(at(place)).unwrap();
                        assert_eq!(fork.append(user("own").to_new()).unwrap(), at(place));
                        forks.push((place, fork));
                    }
                    forks
                })
            })
            .collect();
        for n in 1..1_000 {
            parent.append(said(n).to_new()).unwrap();
            if n % 50 == 0 {
                store.drain().unwrap();
            }
        }
        forkers.into_iter().flat_map(|forker| forker.join().unwrap()).collect()
    });
    let lines: Vec<String> = (0..1_000).map(|n| said(n).line(n)).collect();
    for (place, fork) in forks {
        let place = place as usize;
        let expected = [&lines[..place], &[user("own").line(place as u64)]].concat();
        assert_eq!(events::difference(&all(&fork), &expected), None, "fork at {place}");
    }
    assert!(store.scan().unwrap().is_clean());
}

/// Beyond the end there is nothing to fork: the error says how long the parent is, and no session was made.
#[test]
fn beyond_the_end() {
    let store = Store::in_memory().unwrap();
    let parent = store.create(NewSession::with_id(id("p"))).unwrap();
    append(&parent, &[user("one")]);
    let refused = parent.fork(at(2)).unwrap_err();
    let Error::ForkBeyondEnd { parent: named, prefix_len: 2, len: 1 } = refused else {
        panic!("{refused:?}")
    };
    assert_eq!(named, id("p"));
    assert_eq!(store.list().unwrap().count(), 1);
}
