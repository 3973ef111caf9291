//! Deletion: gone at once and for all, while forks keep what they share; then everything that nobody needs is removed.

use std::ops::Bound;
use std::sync::Arc;

use sessionlog::storage::{Map, MemoryJournalFiles, Storage};
use sessionlog::{Append, Error, NewSession, Seq, Session, Store};

use crate::fault::{ALL, at_every_operation};
use crate::support::dice::Dice;
use crate::support::events::{self, Said, chunk, noise, read, user};
use crate::support::medium::{Crash, Fault, Medium, Step};
use crate::support::run::{Run, id, quiet};
use crate::support::watched::{Call, Once, Watched};

fn at(seq: u64) -> Seq {
    Seq::new(seq)
}

fn create(store: &Store, name: &str) -> Session {
    store.create(NewSession::with_id(id(name))).unwrap()
}

fn fork(store: &Store, parent: &str, prefix_len: u64, name: &str) -> Session {
    store.fork(&id(parent), at(prefix_len), NewSession::with_id(id(name))).unwrap()
}

fn append(session: &Session, said: &[Said]) {
    session.append_batch(said.iter().map(Said::to_new)).unwrap();
}

fn users(count: usize) -> Vec<Said> {
    (0..count).map(|n| user(&format!("message {n}")).at(events::NOON + n as i64)).collect()
}

fn all(store: &Store, name: &str) -> Vec<String> {
    read(store.session(&id(name)).unwrap().read_from(Seq::ZERO))
}

fn listed(store: &Store) -> Vec<String> {
    let mut names: Vec<_> = store.list().unwrap().map(|info| info.unwrap().header.id.to_string()).collect();
    names.sort();
    names
}

fn keys(medium: &Medium, map: Map) -> usize {
    medium.storage().range(map, Bound::Unbounded, Bound::Unbounded).count()
}

/// What is left of all sessions: nothing but the drained mark and the open count.
fn is_empty(medium: &Medium) -> bool {
    keys(medium, Map::Events) == 0
        && keys(medium, Map::Sessions) == 2
        && keys(medium, Map::Care) == 0
        && keys(medium, Map::Derived) == 0
}

fn is_gone<T>(result: sessionlog::Result<T>, name: &str) -> bool {
    matches!(result, Err(Error::SessionNotFound { session }) if session.as_str() == name)
}

/// Gone from every call, also through handles that are there already, before a drain, after it and after a reopen.
#[test]
fn a_deleted_session_is_gone_for_every_call() {
    for (drained, drain_after) in [(false, false), (false, true), (true, false), (true, true)] {
        let medium = Medium::new(1);
        let store = medium.open(quiet()).unwrap();
        let session = create(&store, "a");
        append(&session, &users(2_000));
        create(&store, "b");
        if drained {
            store.drain().unwrap();
        }
        let mut reader = session.read_from(Seq::ZERO).unwrap();
        let mut reverse = session.read_reverse(at(0)..at(2_000)).unwrap();
        let mut follower = session.follow(at(1_999)).unwrap();
        assert_eq!(reader.next().unwrap().unwrap().to_string(), users(1)[0].line(0));
        assert!(reverse.next().unwrap().is_ok());
        assert!(follower.next().unwrap().is_ok());

        store.delete(&id("a")).unwrap();
        if drain_after {
            store.drain().unwrap();
        }
        let gone = [
            ("session", store.session(&id("a")).map(drop)),
            ("delete", store.delete(&id("a"))),
            ("fork by id", store.fork(&id("a"), at(1), NewSession::new()).map(drop)),
            ("fork by handle", session.fork(at(1)).map(drop)),
            ("fork of nothing by handle", session.fork(at(0)).map(drop)),
            ("append", session.append(user("x").to_new()).map(drop)),
            ("append nothing", session.append_batch([]).map(drop)),
            ("read_from", session.read_from(at(5_000)).map(drop)),
            ("read_range", session.read_range(at(1)..at(2)).map(drop)),
            ("read_reverse", session.read_reverse(at(1)..at(2)).map(drop)),
            ("last", session.last(3).map(drop)),
            ("follow", session.follow(at(0)).map(drop)),
            ("messages", session.messages().map(drop)),
            ("surface_at", session.surface_at(at(1)).map(drop)),
            ("statistics", session.statistics().map(drop)),
            ("inspect", session.inspect().map(drop)),
            ("resume", session.resume().map(drop)),
            ("header", session.header().map(drop)),
            ("info", session.info().map(drop)),
            ("follower", follower.next().unwrap().map(drop)),
        ];
        for (what, result) in gone {
            assert!(is_gone(result, "a"), "{what}");
        }
        assert!(follower.next().is_none());
        for (name, reader) in [("reader", reader), ("reverse", reverse)] {
            let (lines, error) = events::read_some(reader);
            assert!(lines.len() < 1_999, "{name}");
            assert!(matches!(error, Some(Error::SessionNotFound { .. })), "{name}: {error:?}");
        }
        assert_eq!(listed(&store), ["b"]);
        assert!(store.scan().unwrap().is_clean(), "{:?}", store.scan());
        assert_eq!(store.scan().unwrap().sessions, 1);
        drop((store, session, follower));
        let store = medium.open(quiet()).unwrap();
        assert!(is_gone(store.session(&id("a")), "a"));
        assert_eq!(listed(&store), ["b"]);
        store.delete(&id("b")).unwrap();
        store.drain().unwrap();
        assert!(is_empty(&medium), "{:?}", medium.image().maps);
    }
}

/// The id is free at once, and the new session is another one: not a byte of the old shows in it.
#[test]
fn an_id_is_free_at_once() {
    for drained in [false, true] {
        let medium = Medium::new(1);
        let store = medium.open(quiet()).unwrap();
        let old = create(&store, "a");
        append(&old, &users(300));
        if drained {
            store.drain().unwrap();
        }
        let mut expected = Vec::new();
        for round in 0..3_usize {
            store.delete(&id("a")).unwrap();
            let new = create(&store, "a");
            assert_eq!(new.len(), 0);
            assert!(is_gone(old.append(user("x").to_new()), "a"), "a stale handle meets the new session");
            expected = vec![user(&format!("round {round}"))];
            append(&new, &expected);
            if round == 1 {
                store.drain().unwrap();
            }
        }
        assert_eq!(all(&store, "a"), events::lines(&expected, 0));
        assert_eq!(listed(&store), ["a"]);
        drop((store, old));
        for crash in [Crash::Kill, Crash::Power] {
            medium.restart(crash);
            let store = medium.open(quiet()).unwrap();
            assert_eq!(all(&store, "a"), events::lines(&expected, 0));
            assert_eq!(listed(&store), ["a"]);
            store.drain().unwrap();
            assert_eq!(keys(&medium, Map::Events), 1, "drained: {drained}");
            assert!(store.scan().unwrap().is_clean(), "{:?}", store.scan());
        }
    }
}

/// H23: P, a fork C, a fork G of C. Whatever is deleted, in whatever order, drained in between or not: what is listed
/// reads in full, and when all are gone nothing is left.
#[test]
fn h23_delete_a_parent() {
    let orders = [
        ["p", "c", "g"],
        ["p", "g", "c"],
        ["c", "p", "g"],
        ["c", "g", "p"],
        ["g", "c", "p"],
        ["g", "p", "c"],
    ];
    for order in orders {
        for drains in 0..16_u8 {
            let drain = |store: &Store, when: u8| {
                if drains >> when & 1 == 1 {
                    store.drain().unwrap();
                }
            };
            let medium = Medium::new(u64::from(drains));
            let store = medium.open(quiet()).unwrap();
            let said: Vec<Said> = (0..40).map(events::any).collect();
            append(&create(&store, "p"), &said);
            drain(&store, 0);
            append(&fork(&store, "p", 25, "c"), &said[..20]);
            append(&fork(&store, "c", 35, "g"), &said[..5]);
            let shared = events::lines(&said, 0)[..25].to_vec();
            let own_c = events::lines(&said[..20], 25);
            let mut expected = vec![
                ("p", events::lines(&said, 0)),
                ("c", [&shared[..], &own_c].concat()),
                ("g", [&shared[..], &own_c[..10], &events::lines(&said[..5], 35)].concat()),
            ];
            drain(&store, 1);
            let context = format!("{order:?}, drains {drains:b}");
            for (when, name) in (2..).zip(order) {
                store.delete(&id(name)).unwrap();
                expected.retain(|(kept, _)| *kept != name);
                drain(&store, when);
                for (name, lines) in &expected {
                    assert!(all(&store, name) == *lines, "{context}: {name}");
                    let parent = store.session(&id(name)).unwrap().header().unwrap().parent;
                    let is_there = |name: &str| expected.iter().any(|(kept, _)| *kept == name);
                    let wanted = match *name {
                        "c" => Some(Some(id("p")).filter(|_| is_there("p"))),
                        "g" => Some(Some(id("c")).filter(|_| is_there("c"))),
                        _ => None,
                    };
                    assert_eq!(parent.map(|parent| parent.session), wanted, "{context}");
                }
                assert_eq!(listed(&store).len(), expected.len(), "{context}");
                assert!(store.scan().unwrap().is_clean(), "{context}: {:?}", store.scan());
            }
            store.drain().unwrap();
            assert!(is_empty(&medium), "{context}: {:?}", medium.image().maps);
        }
    }
}

/// A fork that shares nothing holds nothing, and outlives its parent.
#[test]
fn a_fork_of_nothing_holds_nothing() {
    for drained in [false, true] {
        let medium = Medium::new(1);
        let store = medium.open(quiet()).unwrap();
        append(&create(&store, "p"), &users(100));
        let own = [user("own"), chunk("own")];
        append(&fork(&store, "p", 0, "c"), &own);
        if drained {
            store.drain().unwrap();
        }
        store.delete(&id("p")).unwrap();
        store.drain().unwrap();
        assert_eq!(all(&store, "c"), events::lines(&own, 0));
        assert_eq!(keys(&medium, Map::Events), 1);
        append(&fork(&store, "c", 1, "g"), &own);
        drop(store);
        let store = medium.open(quiet()).unwrap();
        assert_eq!(all(&store, "g"), [own[0].line(0), own[0].line(1), own[1].line(2)]);
        assert_eq!(store.session(&id("c")).unwrap().header().unwrap().parent.unwrap().session, None);
        store.delete(&id("c")).unwrap();
        store.delete(&id("g")).unwrap();
        store.drain().unwrap();
        assert!(is_empty(&medium));
    }
}

/// H36: empty sessions and forks of them go as others do, from either end.
#[test]
fn h36_empty_sessions_and_forks_of_them() {
    for reversed in [false, true] {
        let medium = Medium::new(1);
        let store = medium.open(quiet()).unwrap();
        create(&store, "s0");
        let mut names = vec!["s0".to_string()];
        for depth in 1..=6 {
            let name = format!("s{depth}");
            fork(&store, &names[depth - 1], 0, &name);
            names.push(name);
        }
        append(&store.session(&id("s6")).unwrap(), &users(1));
        store.drain().unwrap();
        if reversed {
            names.reverse();
        }
        for name in &names {
            store.delete(&id(name)).unwrap();
        }
        store.drain().unwrap();
        assert!(is_empty(&medium));
    }
}

/// A block that straddles the longest living prefix is cut: what lies behind is gone from storage, what lies before is
/// read, and its running hash is right for whoever computes on.
#[test]
fn a_straddling_block_is_cut() {
    for prefix_len in [1, 2, 7, 12, 13, 14, 30, 39, 40] {
        let medium = Medium::new(1);
        let store = medium.open(quiet()).unwrap();
        let said: Vec<Said> = (0..40)
            .map(|n| match n {
                12 => noise(1, 20_000),
                n if n % 3 == 0 => chunk(&format!("piece {n}")),
                n => user(&format!("message {n}")),
            })
            .collect();
        append(&create(&store, "p"), &said);
        store.drain().unwrap();
        fork(&store, "p", prefix_len, "c");
        fork(&store, "p", prefix_len / 2, "d");
        store.delete(&id("p")).unwrap();
        store.drain().unwrap();
        let lines = events::lines(&said, 0);
        let check = |store: &Store, round: usize| {
            assert_eq!(all(store, "c"), lines[..prefix_len as usize]);
            assert_eq!(all(store, "d"), lines[..prefix_len as usize / 2]);
            // Two forks more, made after the cut: the hash at their prefix comes from what is left.
            append(&fork(store, "c", prefix_len, &format!("e{round}")), &users(2));
            append(&fork(store, "c", prefix_len / 2, &format!("f{round}")), &users(2));
            store.drain().unwrap();
            assert!(store.scan().unwrap().is_clean(), "{prefix_len}: {:?}", store.scan());
        };
        check(&store, 1);
        // The first value is the oldest session's; the number of its events stands in the envelope.
        let image = medium.image();
        let owner = image.maps[1][0].0[..16].to_vec();
        let events: u32 = image.maps[1]
            .iter()
            .filter(|(key, value)| key[..16] == owner[..] && value[4] != 3)
            .map(|(_, value)| u32::from_be_bytes(value[32..36].try_into().unwrap()))
            .sum();
        assert_eq!(u64::from(events), prefix_len, "what lies behind the prefix is gone");
        drop(store);
        check(&medium.open(quiet()).unwrap(), 2);
        let store = medium.open(quiet()).unwrap();
        for name in listed(&store) {
            store.delete(&id(&name)).unwrap();
        }
        store.drain().unwrap();
        assert!(is_empty(&medium), "{prefix_len}");
    }
}

/// Deletes of parents and forks, drained and not, an id that is used again: a fault at every operation, of the deletes,
/// of the passes and of the removals behind them.
#[test]
fn faults_at_every_operation() {
    at_every_operation(quiet, ALL, |run| {
        run.create("a");
        run.append("a", &users(30), None);
        run.append("a", &[noise(1, 20_000), chunk("one")], None);
        run.fork("a", 12, "b");
        run.append("b", &users(2), None);
        run.fork("b", 13, "c");
        run.drain();
        run.append("a", &users(2), None);
        run.delete("a");
        run.create("a");
        run.append("a", &users(1), None);
        run.delete("b");
        run.drain();
        run.append("c", &users(1), None);
        run.fork("a", 1, "d");
        run.delete("a");
        run.delete("c");
        run.append("d", &users(1), None);
        run.drain();
    });
}

/// A removal of several batches, stopped at every operation: the rest goes after the next open, and forks never notice.
#[test]
fn removals_are_resumed() {
    let mut base = Run::new(Medium::new(1), quiet);
    base.create("p");
    base.append("p", &users(20), None);
    for n in 0..24 {
        let said: Vec<Said> = (0..6).map(|part| noise(100 * n + part, 60_000)).collect();
        base.append("p", &said, None);
    }
    base.fork("p", 15, "c");
    base.fork("p", 30, "d");
    base.append("c", &users(2), None);
    base.drain();
    base.crash(Crash::Kill);
    for (fault, crash) in
        [(Fault::Stop, Crash::Kill), (Fault::Stop, Crash::Power), (Fault::Fail, Crash::Power)]
    {
        let mut operation = 0;
        loop {
            operation += 1;
            let mut run = base.copy(operation);
            assert!(run.open());
            run.plan(operation, fault);
            run.delete("p");
            run.drain();
            run.delete("d");
            run.drain();
            let whole = !run.medium.fired();
            if whole {
                let removed = |step: &Step| matches!(step, Step::Apply(Map::Events, 100..));
                let batches = run.medium.take_log().iter().filter(|step| removed(step)).count();
                assert!(batches >= 2, "{batches} batches removed it");
            } else {
                run.recover(crash);
            }
            run.check_goes_on();
            run.check_leaves_nothing();
            if whole {
                break;
            }
        }
        assert!(operation > 15, "{operation} operations");
    }
}

/// While a removal goes on, a pass for other sessions never waits for more than a batch of it.
#[test]
fn passes_go_on_between_batches() {
    let medium = Medium::new(1);
    let store = medium.open(quiet()).unwrap();
    let big = create(&store, "big");
    for n in 0..12 {
        append(&big, &(0..10).map(|part| noise(100 * n + part, 60_000)).collect::<Vec<_>>());
        store.drain().unwrap();
    }
    let other = create(&store, "other");
    store.delete(&id("big")).unwrap();
    medium.take_log();
    medium.hold(|step| matches!(step, Step::Apply(Map::Events, 500)));
    std::thread::scope(|scope| {
        let drained = scope.spawn(|| store.drain());
        medium.wait_held();
        append(&other, &users(3));
        medium.release();
        drained.join().unwrap().unwrap();
    });
    let log = medium.take_log();
    let is_batch = |step: &Step| matches!(step, Step::Apply(Map::Events, _));
    let first = log.iter().position(is_batch).unwrap();
    let last = log.iter().rposition(is_batch).unwrap();
    let pass = log[first..last].iter().any(|step| matches!(step, Step::Insert(Map::Events)));
    assert!(pass, "the events of `other` waited for the end of the removal");
}

/// Undrained events that forks need are drained with the deletion, the others are dropped, and their room is given back.
#[test]
fn undrained_events_go_with_their_session() {
    let medium = Medium::new(1);
    let store = medium.open(quiet()).unwrap();
    let said = [noise(1, 40_000), noise(2, 40_000), noise(3, 40_000), noise(4, 40_000)];
    append(&create(&store, "a"), &said);
    append(&create(&store, "b"), &said);
    append(&create(&store, "c"), &users(3));
    append(&fork(&store, "b", 1, "d"), &users(1));
    store.delete(&id("a")).unwrap();
    store.delete(&id("b")).unwrap();
    assert!(store.info().unwrap().tail_bytes > 200_000);
    store.drain().unwrap();
    assert_eq!(store.info().unwrap().tail_bytes, 0);
    let inserts = medium.take_log().iter().filter(|step| matches!(step, Step::Insert(Map::Events))).count();
    assert!(inserts <= 10, "{inserts} values were written for one large event and two small blocks");
    assert_eq!(all(&store, "d"), [said[0].line(0), users(1)[0].line(1)]);
    assert_eq!(listed(&store), ["c", "d"]);
    for name in ["c", "d"] {
        store.delete(&id(name)).unwrap();
    }
    store.drain().unwrap();
    assert!(is_empty(&medium));
}

/// Only a pass that covers the deletion drops events: a deletion that is not durable may not take them along.
#[test]
fn a_deletion_that_was_not_durable_took_nothing() {
    for drain_before in [false, true] {
        let mut run = Run::new(Medium::new(3), quiet);
        run.create("a");
        run.append("a", &users(50), None);
        if drain_before {
            run.drain();
        }
        run.append("a", &users(3), None);
        // The frame is written, its sync fails: after a power cut it may be there or not.
        run.plan(2, Fault::Fail);
        run.delete("a");
        assert!(run.medium.fired());
        run.recover(Crash::Power);
        run.check_goes_on();
    }
}

/// With little room on the disk a pass moves a part of the journal. One that ends before the deletion's frame takes the
/// session for a living one: the deletion alone could be what a power cut loses.
#[test]
fn a_pass_before_the_deletion_keeps_everything() {
    let medium = Medium::new(1);
    let store = medium.open(quiet()).unwrap();
    append(&create(&store, "a"), &users(20));
    // Of the journal up to here a pass can be made; what comes then does not fit.
    let other = create(&store, "other");
    append(&other, &(0..20).map(|n| noise(n, 60_000)).collect::<Vec<_>>());
    store.delete(&id("a")).unwrap();
    medium.set_free_bytes((2 << 20) + 40_000);
    let drained = store.drain();
    assert!(matches!(drained, Err(Error::DiskFull { .. })), "{drained:?}");
    assert!(keys(&medium, Map::Events) > 0, "the pass took the first commits");
    assert!(is_gone(store.session(&id("a")), "a"));
    assert_eq!(listed(&store), ["other"]);
    medium.set_free_bytes(1 << 40);
    store.delete(&id("other")).unwrap();
    store.drain().unwrap();
    assert!(is_empty(&medium));
}

/// What was deleted need not be moved: a disk that is too full for that lets it go.
#[test]
fn a_full_disk_lets_go_of_what_was_deleted() {
    let medium = Medium::new(1);
    let store = medium.open(quiet()).unwrap();
    let said: Vec<Said> = (0..30).map(|n| noise(n, 60_000)).collect();
    append(&create(&store, "a"), &said);
    append(&create(&store, "b"), &users(3));
    medium.set_free_bytes((2 << 20) + 50_000);
    let drained = store.drain();
    assert!(matches!(drained, Err(Error::DiskFull { .. })), "{drained:?}");
    store.delete(&id("a")).unwrap();
    store.drain().unwrap();
    assert_eq!(store.info().unwrap().tail_bytes, 0);
    assert_eq!(all(&store, "b"), events::lines(&users(3), 0));
}

/// A segment of the size that segments have grown to needs not fit: a deletion takes a small one.
#[test]
fn a_deletion_needs_a_small_segment_only() {
    let medium = Medium::new(1);
    let store = medium.open(quiet()).unwrap();
    let filler = create(&store, "filler");
    create(&store, "a");
    // Segments grow while nothing is drained.
    for n in 0..60 {
        filler.append(noise(n, 60_000).to_new()).unwrap();
    }
    let made = |step: &Step| if let Step::Create(_, bytes) = step { Some(*bytes) } else { None };
    let largest = medium.take_log().iter().filter_map(made).max().unwrap();
    assert!(largest > 1 << 20, "segments of {largest} bytes");
    medium.set_free_bytes((1 << 20) + (300 << 10));
    let mut n = 100;
    while n < 1_000 && filler.append(noise(n, 200_000).to_new()).is_ok() {
        n += 1;
    }
    medium.take_log();
    medium.set_free_bytes((1 << 20) + (300 << 10));
    while n < 1_000 && store.delete(&id("a")).is_ok() {
        create(&store, "a");
        filler.append(noise(n, 100_000).to_new()).ok();
        n += 1;
        if medium.take_log().iter().filter_map(made).any(|bytes| bytes == 256 << 10) {
            return;
        }
    }
    panic!("no small segment was made");
}

/// A pass has written the blocks of a new session when that is deleted, and ends before its records: the next open meets
/// creation and deletion together, and removes the blocks, which nothing names.
#[test]
fn blocks_of_a_pass_that_was_interrupted_go() {
    for crash in [Crash::Kill, Crash::Power] {
        let medium = Medium::new(1);
        let store = medium.open(quiet()).unwrap();
        append(&create(&store, "a"), &users(100));
        medium.hold(|step| matches!(step, Step::Apply(Map::Sessions, _)));
        std::thread::scope(|scope| {
            let drained = scope.spawn(|| store.drain());
            medium.wait_held();
            store.delete(&id("a")).unwrap();
            medium.stop();
            assert!(drained.join().unwrap().is_err());
        });
        drop(store);
        medium.restart(crash);
        assert!(keys(&medium, Map::Events) > 0, "the pass wrote blocks");
        let store = medium.open(quiet()).unwrap();
        assert_eq!(listed(&store), [""; 0]);
        assert!(is_empty(&medium), "{crash:?}");
    }
}

/// A deleted session's checkpoint goes, a fork's stays.
#[test]
fn checkpoints_go_with_their_session() {
    let medium = Medium::new(1);
    let store = medium.open(quiet().checkpoint_events(10)).unwrap();
    let session = create(&store, "a");
    append(&session, &users(100));
    let child = fork(&store, "a", 50, "b");
    append(&child, &users(100));
    for name in ["a", "b"] {
        store.session(&id(name)).unwrap().messages().unwrap();
    }
    store.drain().unwrap();
    let before = keys(&medium, Map::Derived);
    store.delete(&id("a")).unwrap();
    store.drain().unwrap();
    let after = keys(&medium, Map::Derived);
    assert!(0 < after && after < before, "{before} values of checkpoints, then {after}");
    drop((session, child, store));
    let store = medium.open(quiet().checkpoint_events(10)).unwrap();
    assert_eq!(store.session(&id("b")).unwrap().messages().unwrap().len(), 150);
    store.delete(&id("b")).unwrap();
    store.drain().unwrap();
    assert!(is_empty(&medium));
}

/// 10,000 forks deep, deleted from either end or all at once: no recursion, and nothing left.
#[test]
fn ten_thousand_deep() {
    for (from_the_root, drains) in [(true, 1), (false, 1), (true, 4), (false, 4)] {
        let medium = Medium::new(1);
        let store = medium.open(quiet()).unwrap();
        let mut session = store.create(NewSession::new()).unwrap();
        append(&session, &[user("root")]);
        let mut names = vec![session.id().clone()];
        for depth in 1..10_000_u64 {
            session = session.fork(at(session.len())).unwrap();
            if depth % 100 == 0 {
                append(&session, &[user("own")]);
            }
            names.push(session.id().clone());
        }
        let last = names.pop().unwrap();
        let expected = read(session.read_from(Seq::ZERO));
        store.drain().unwrap();
        if !from_the_root {
            names.reverse();
        }
        for part in names.chunks(names.len().div_ceil(drains)) {
            for name in part {
                store.delete(name).unwrap();
            }
            store.drain().unwrap();
            assert_eq!(read(session.read_from(Seq::ZERO)), expected);
        }
        drop((session, store));
        let store = medium.open(quiet()).unwrap();
        assert_eq!(read(store.session(&last).unwrap().read_from(Seq::ZERO)), expected);
        assert_eq!(store.list().unwrap().count(), 1);
        store.delete(&last).unwrap();
        store.drain().unwrap();
        assert!(is_empty(&medium));
    }
}

/// A fork and an append that come while the deletion is being written wait for it and are refused; one that was before
/// it stands; a creation of the id that is queued behind it becomes another session.
#[test]
fn one_lock_decides_the_order() {
    let medium = Medium::new(1);
    let store = medium.open(quiet()).unwrap();
    let session = create(&store, "a");
    append(&session, &users(5));
    medium.hold(|step| matches!(step, Step::Sync(_)));
    std::thread::scope(|scope| {
        let forked = scope.spawn(|| session.fork(at(3)));
        medium.wait_held();
        // The fork is being written: all that follows is queued behind it.
        let deleted = scope.spawn(|| store.delete(&id("a")));
        let others: Vec<_> = (0..4)
            .map(|n| {
                let (store, session) = (&store, &session);
                scope.spawn(move || match n {
                    0 => session.fork(at(1)).map(drop),
                    1 => session.append(user("late").to_new()).map(drop),
                    2 => store.delete(&id("a")),
                    _ => store.create(NewSession::with_id(id("a"))).map(drop),
                })
            })
            .collect();
        medium.release();
        let fork = forked.join().unwrap().unwrap();
        assert_eq!(fork.len(), 3);
        let results: Vec<_> = others.into_iter().map(|other| other.join().unwrap()).collect();
        let first = deleted.join().unwrap();
        // Each came before the deletion or behind it, and is told which.
        for result in results.iter().chain([&first]) {
            let told =
                matches!(result, Ok(()) | Err(Error::SessionNotFound { .. } | Error::SessionExists { .. }));
            assert!(told, "{result:?}");
        }
        assert!(first.is_ok() || results[2].is_ok(), "one of two deletions did it");
        store.drain().unwrap();
        assert_eq!(read(fork.read_from(Seq::ZERO)), events::lines(&users(3), 0));
        assert!(store.scan().unwrap().is_clean());
    });
}

/// While a deletion is being written nobody knows whether it will be done: a fork of the session waits for that.
#[test]
fn a_fork_waits_for_a_deletion_that_is_under_way() {
    let medium = Medium::new(1);
    let store = medium.open(quiet()).unwrap();
    let session = create(&store, "a");
    append(&session, &users(5));
    medium.hold(|step| matches!(step, Step::Sync(_)));
    std::thread::scope(|scope| {
        let deleted = scope.spawn(|| store.delete(&id("a")));
        medium.wait_held();
        let forked = scope.spawn(|| session.fork(at(3)));
        // It has time to do the wrong thing; the right one takes as long as the deletion.
        std::thread::sleep(std::time::Duration::from_millis(100));
        medium.release();
        deleted.join().unwrap().unwrap();
        let forked = forked.join().unwrap();
        assert!(matches!(forked, Err(Error::SessionNotFound { .. })), "{forked:?}");
    });
    store.drain().unwrap();
    assert_eq!(store.list().unwrap().count(), 0);
}

/// Appends, forks, reads and deletions of the same sessions in several threads: right events or the typed error, never
/// anything else, while passes and removals go on.
#[test]
fn racing_calls_get_right_events_or_the_typed_error() {
    let options = || quiet().drain_age(std::time::Duration::from_millis(1)).tail_bytes(100 << 10);
    let medium = Medium::new(1);
    let store = medium.open(options()).unwrap();
    let said: Vec<Said> = (0..30).map(|n| user(&format!("message {n}"))).collect();
    // Whatever the session, the event at each seq is the same.
    let line = |seq: u64| said[seq as usize % said.len()].line(seq);
    let names: Vec<String> = (0..3).map(|n| format!("s{n}")).collect();
    let settled = |error: &Error| {
        matches!(
            error,
            Error::SessionNotFound { .. } | Error::SessionExists { .. } | Error::SeqConflict { .. }
        )
    };
    std::thread::scope(|scope| {
        for thread in 0..4_u64 {
            let (store, names, said, line) = (&store, &names, &said, &line);
            scope.spawn(move || {
                let mut dice = Dice::new(thread);
                for round in 0..400_u64 {
                    let name = id(&names[dice.below(3) as usize]);
                    let done = match dice.below(8) {
                        0 => store.create(NewSession::with_id(name)).map(drop),
                        1 => store.delete(&name),
                        2 => store.session(&name).and_then(|session| {
                            let fork = session.fork(at(dice.below(session.len() + 1)));
                            // It may have shrunk: another session by that handle's id there is not.
                            let fork = fork?;
                            let len = fork.len();
                            fork.append_with(
                                Append::new().expect(at(len)),
                                [said[len as usize % said.len()].to_new()],
                            )?;
                            for (seq, event) in (0..).zip(fork.read_from(Seq::ZERO)?) {
                                assert_eq!(event?.to_string(), line(seq));
                            }
                            store.delete(fork.id())
                        }),
                        3..=4 => store.session(&name).and_then(|session| {
                            for (seq, event) in (0..).zip(session.read_from(Seq::ZERO)?) {
                                assert_eq!(event?.to_string(), line(seq));
                            }
                            Ok(())
                        }),
                        5 => store.list().and_then(|infos| {
                            let mut seen = std::collections::HashSet::new();
                            for info in infos {
                                assert!(seen.insert(info?.header.id), "listed twice");
                            }
                            Ok(())
                        }),
                        _ => store.session(&name).and_then(|session| {
                            let len = session.len();
                            let batch = (len..len + 1 + round % 40)
                                .map(|seq| said[seq as usize % said.len()].to_new());
                            session.append_with(Append::new().expect(at(len)), batch).map(drop)
                        }),
                    };
                    if let Err(error) = done {
                        assert!(settled(&error), "{error:?}");
                    }
                }
            });
        }
    });
    assert!(store.scan().unwrap().is_clean(), "{:?}", store.scan());
    for name in listed(&store) {
        store.delete(&id(&name)).unwrap();
    }
    store.drain().unwrap();
    assert!(is_empty(&medium), "{:?}", medium.image().maps);
}

/// A deletion that the full disk refuses took nothing: the session is there, and its id is taken.
#[test]
fn a_refused_deletion_took_nothing() {
    let medium = Medium::new(1);
    let store = medium.open(quiet()).unwrap();
    let filler = create(&store, "filler");
    let mut names: Vec<String> = (0..9).map(|n| format!("s{n}")).collect();
    for name in &names {
        append(&create(&store, name), &users(5));
    }
    medium.set_free_bytes(1_000);
    for bytes in [6_000, 100, 1] {
        while filler.append(noise(1, bytes).to_new()).is_ok() {}
    }
    // A deletion takes less than the shortest event: some still fit.
    let (name, refused) = loop {
        let name = names.pop().expect("nine deletions do not fit where no event does");
        if let Err(error) = store.delete(&id(&name)) {
            break (name, error);
        }
    };
    assert!(matches!(refused, Error::DiskFull { .. }), "{refused:?}");
    let lines = events::lines(&users(5), 0);
    assert_eq!(all(&store, &name), lines);
    let again = store.create(NewSession::with_id(id(&name)));
    assert!(matches!(again, Err(Error::SessionExists { .. })), "{again:?}");
    medium.set_free_bytes(1 << 40);
    append(&store.session(&id(&name)).unwrap(), &users(1));
    assert_eq!(all(&store, &name).len(), 6);
    store.delete(&id(&name)).unwrap();
    assert!(is_gone(store.session(&id(&name)), &name));
}

/// What a deletion takes away under a reader's eyes is told as that, never as damage; a reader of a fork, whose block
/// is cut under its eyes, reads on.
#[test]
fn a_removal_under_a_readers_eyes() {
    let hook = Once::default();
    let storage = Watched::with_deed(|call| call == Call::RangeReverse(Map::Events), &hook);
    let inner = storage.inner.clone();
    let store = quiet().open_on(Arc::new(storage), Arc::new(MemoryJournalFiles::new())).unwrap();
    let session = create(&store, "a");
    append(&session, &users(3_000));
    let child = fork(&store, "a", 20, "b");
    store.drain().unwrap();
    let delete = |name: &'static str| {
        let store = store.clone();
        move || {
            store.delete(&id(name)).unwrap();
            store.drain().unwrap();
        }
    };
    hook.set(delete("a"));
    let (lines, error) = events::read_some(session.read_from(at(2_000)).unwrap());
    assert!(lines.is_empty());
    assert!(matches!(error, Some(Error::SessionNotFound { .. })), "{error:?}");
    assert!(hook.is_done(), "the deletion came while the reader looked");

    // The fork's reader stands in a block that is cut when a longer fork goes.
    let long = create(&store, "p");
    append(&long, &users(60));
    let child_of_p = fork(&store, "p", 10, "c");
    fork(&store, "p", 50, "d");
    store.delete(&id("p")).unwrap();
    store.drain().unwrap();
    hook.set(delete("d"));
    assert_eq!(read(child_of_p.read_from(Seq::ZERO)), events::lines(&users(10), 0));
    assert!(hook.is_done());
    assert_eq!(read(child.read_from(Seq::ZERO)), events::lines(&users(20), 0));
    assert!(store.scan().unwrap().is_clean());
    for name in ["b", "c"] {
        store.delete(&id(name)).unwrap();
    }
    store.drain().unwrap();
    assert_eq!(inner.range(Map::Events, Bound::Unbounded, Bound::Unbounded).count(), 0);
}
