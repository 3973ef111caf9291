//! Pruning by age, count and size: planned, then done; what is protected; what forks keep; interrupted anywhere.

use sessionlog::storage::{JournalFiles, MemoryJournalFiles, MemoryStorage};
use sessionlog::{
    Error, NewSession, Protection, Prune, PrunePlan, PruneReason, Seq, Session, Store, Timestamp,
};
use std::sync::Arc;

use crate::support::events::{self, NOON, Said, noise, read, turn_start, user};
use crate::support::medium::{Crash, Fault, Medium};
use crate::support::run::{id, quiet};

fn time(millis: i64) -> Timestamp {
    Timestamp::from_millis(millis).unwrap()
}

fn create(store: &Store, name: &str, said: &[Said]) {
    let session = store.create(NewSession::with_id(id(name))).unwrap();
    session.append_batch(said.iter().map(Said::to_new)).unwrap();
}

/// Sessions `s0`, `s1`, …, the last one updated last.
fn filled(store: &Store, count: i64) {
    for n in 0..count {
        create(store, &format!("s{n}"), &[user("x").at(NOON + n)]);
    }
}

fn listed(store: &Store) -> Vec<String> {
    store.list().unwrap().map(|info| info.unwrap().header.id.to_string()).collect()
}

fn going(plan: &PrunePlan) -> Vec<(&str, PruneReason)> {
    plan.going().map(|session| (session.session.as_str(), session.reason)).collect()
}

fn protected(plan: &PrunePlan) -> Vec<(&str, Option<Protection>)> {
    plan.protected().map(|session| (session.session.as_str(), session.protection)).collect()
}

/// Each limit names what is beyond it, the first that applies; a plan changes nothing; what is done is what was planned.
#[test]
fn each_limit_and_all_of_them() {
    let medium = Medium::new(1);
    for drained in [false, true] {
        let store = Store::in_memory().unwrap();
        filled(&store, 6);
        if drained {
            store.drain().unwrap();
        }
        let bytes = store.session(&id("s5")).unwrap().stored_bytes().unwrap();
        let (age, count, size) = (PruneReason::Age, PruneReason::Count, PruneReason::Bytes);
        let before = Prune::new().updated_before(time(NOON + 2));
        for (policy, expected) in [
            (Prune::new(), vec![]),
            (before.clone(), vec![("s1", age), ("s0", age)]),
            (Prune::new().keep_newest(6), vec![]),
            (Prune::new().keep_newest(4), vec![("s1", count), ("s0", count)]),
            (Prune::new().keep_bytes(bytes * 6), vec![]),
            (Prune::new().keep_bytes(bytes * 4 + 1), vec![("s1", size), ("s0", size)]),
            (
                before.keep_newest(3).keep_bytes(bytes),
                vec![("s4", size), ("s3", size), ("s2", count), ("s1", age), ("s0", age)],
            ),
        ] {
            assert_eq!(going(&store.plan_prune(&policy).unwrap()), expected, "{policy:?}");
        }
        assert_eq!(store.plan_prune(&Prune::new().keep_bytes(0)).unwrap().going().count(), 6);
        assert_eq!(listed(&store).len(), 6, "a plan changes nothing");
        let plan = store.plan_prune(&Prune::new().keep_newest(4)).unwrap();
        assert!(plan.sessions.iter().all(|session| session.bytes == bytes && session.len == 1));
        let done = store.prune(&plan).unwrap();
        assert_eq!(done, plan);
        assert_eq!(done.within, 4);
        assert_eq!(listed(&store), ["s5", "s4", "s3", "s2"]);
        assert_eq!(store.prune(&plan).unwrap(), plan, "what is gone already is gone as planned");
    }
    drop(medium);
}

/// What somebody may be at work with stays: an open turn (unless that is asked for), a handle in this process, one that
/// was appended to since the plan, another one that has got the id, and one whose end cannot be read.
#[test]
fn what_may_be_in_use_stays() {
    let medium = Medium::new(1);
    let store = medium.open(quiet()).unwrap();
    create(&store, "damaged", &[user("x").at(NOON)]);
    store.drain().unwrap();
    medium.damage_value(1, 0, |value| *value.last_mut().unwrap() ^= 1);
    filled(&store, 3);
    create(&store, "open", &[turn_start("t"), user("x").at(NOON)]);
    let held = store.session(&id("s1")).unwrap();
    let everything = Prune::new().keep_newest(0);
    let plan = store.plan_prune(&everything).unwrap();
    assert_eq!(
        protected(&plan),
        [
            ("s1", Some(Protection::InUse)),
            ("open", Some(Protection::OpenTurn)),
            ("damaged", Some(Protection::Unreadable)),
        ]
    );
    let with_open = store.plan_prune(&everything.clone().with_open_turns()).unwrap();
    assert!(going(&with_open).iter().any(|(name, _)| *name == "open"));
    assert_eq!(going(&plan), [("s2", PruneReason::Count), ("s0", PruneReason::Count)]);

    store.session(&id("s2")).unwrap().append(user("y").to_new()).unwrap();
    store.delete(&id("s0")).unwrap();
    create(&store, "s0", &[user("another").at(NOON)]);
    let done = store.prune(&plan).unwrap();
    assert_eq!(going(&done), []);
    assert_eq!(protected(&done)[0], ("s2", Some(Protection::Changed)));
    assert!(protected(&done).contains(&("s0", Some(Protection::Changed))));
    assert_eq!(listed(&store).len(), 5);

    // A handle that came since the plan.
    let plan = store.plan_prune(&everything).unwrap();
    let late = store.session(&id("s2")).unwrap();
    let done = store.prune(&plan).unwrap();
    assert!(protected(&done).contains(&("s2", Some(Protection::InUse))), "{done:?}");
    drop((held, late));
    let done = store.prune(&store.plan_prune(&everything.with_open_turns()).unwrap()).unwrap();
    assert_eq!(protected(&done), []);
    assert_eq!(listed(&store).len(), 0);
}

/// Parents go by the same rule on every path: their forks keep all their events, and nothing is left with the last fork.
#[test]
fn parents_of_living_forks() {
    type Policy = fn() -> Prune;
    let policies: [Policy; 3] = [
        || Prune::new().updated_before(time(NOON + 100)),
        || Prune::new().keep_newest(1),
        || Prune::new().keep_bytes(100_000),
    ];
    for policy in policies {
        let medium = Medium::new(1);
        let store = medium.open(quiet()).unwrap();
        let said: Vec<Said> = (0..40).map(|n| noise(n, 10_000).at(NOON)).collect();
        create(&store, "parent", &said);
        store.fork(&id("parent"), Seq::new(30), NewSession::with_id(id("fork"))).unwrap();
        let fork = |store: &Store| -> Session { store.session(&id("fork")).unwrap() };
        fork(&store).append(user("last").at(NOON + 100).to_new()).unwrap();
        let mut expected = events::lines(&said[..30], 0);
        expected.push(user("last").at(NOON + 100).line(30));
        let done = store.prune(&store.plan_prune(&policy()).unwrap()).unwrap();
        assert_eq!(done.going().map(|one| one.session.to_string()).collect::<Vec<_>>(), ["parent"]);
        for _ in 0..2 {
            assert_eq!(read(fork(&store).read_from(Seq::ZERO)), expected);
            store.drain().unwrap();
        }
        assert!(store.scan().unwrap().is_clean());
        store.prune(&store.plan_prune(&Prune::new().keep_newest(0)).unwrap()).unwrap();
        store.drain().unwrap();
        let left: Vec<usize> = medium.image().maps.iter().map(Vec::len).collect();
        assert_eq!(left, [2, 0, 0, 0]);
    }
}

/// A fault or the end of the process at any operation of a prune: each session is there as a whole or gone, those that
/// were to stay stay, and a new plan does the rest.
#[test]
fn interrupted_anywhere() {
    for fault in [Fault::Stop, Fault::StayFailing] {
        for after in 1.. {
            let medium = Medium::new(after);
            let store = medium.open(quiet()).unwrap();
            filled(&store, 5);
            store.fork(&id("s0"), Seq::new(1), NewSession::with_id(id("fork"))).unwrap();
            store.session(&id("fork")).unwrap().append(user("y").at(NOON + 9).to_new()).unwrap();
            if after % 2 == 0 {
                store.drain().unwrap();
            }
            let plan = store.plan_prune(&Prune::new().keep_newest(2)).unwrap();
            assert_eq!(plan.going().count(), 4);
            medium.plan(after, fault);
            let pruned = store.prune(&plan);
            let drained = store.drain();
            if !medium.fired() {
                pruned.unwrap();
                drained.unwrap();
                break;
            }
            medium.stop();
            drop(store);
            medium.restart(if after % 3 == 0 { Crash::Kill } else { Crash::Power });
            let store = medium.open(quiet()).unwrap();
            let found = listed(&store);
            assert!(found.starts_with(&["fork".into(), "s4".into()]), "{found:?}");
            for name in &found {
                let lines = read(store.session(&id(name)).unwrap().read_from(Seq::ZERO));
                assert_eq!(lines.len(), if name == "fork" { 2 } else { 1 });
            }
            store.prune(&store.plan_prune(&Prune::new().keep_newest(2)).unwrap()).unwrap();
            store.drain().unwrap();
            assert_eq!(listed(&store), ["fork", "s4"]);
            assert!(store.scan().unwrap().is_clean());
        }
    }
}

/// Some hundred deletions share a frame.
#[test]
fn deletions_share_frames() {
    let files = MemoryJournalFiles::new();
    let store = quiet().open_on(Arc::new(MemoryStorage::new()), Arc::new(files.clone())).unwrap();
    filled(&store, 600);
    let plan = store.plan_prune(&Prune::new().keep_newest(0)).unwrap();
    store.drain().unwrap();
    let names = files.list().unwrap();
    store.prune(&plan).unwrap();
    assert_eq!(listed(&store).len(), 0);
    assert_eq!(files.list().unwrap(), names);
}

/// On a full disk a prune deletes, what it cannot remove yet goes when there is room, and the store has not failed.
#[test]
fn a_full_disk() {
    let medium = Medium::new(1);
    let store = medium.open(quiet()).unwrap();
    filled(&store, 5);
    store.drain().unwrap();
    medium.set_free_bytes(0);
    let done = store.prune(&store.plan_prune(&Prune::new().keep_newest(1)).unwrap()).unwrap();
    assert_eq!(done.going().count(), 4);
    assert_eq!(listed(&store), ["s4"]);
    let drained = store.drain();
    assert!(matches!(drained, Err(Error::DiskFull { .. })), "{drained:?}");
    medium.set_free_bytes(1 << 40);
    store.session(&id("s4")).unwrap().append(user("goes on").to_new()).unwrap();
    store.drain().unwrap();
    assert_eq!(medium.image().maps[1].len(), 1);
}
