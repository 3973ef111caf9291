//! A fault at every single operation of fixed scripts: fail, tear and stop at operation 1, 2, 3, …, then a kill or a
//! power cut, then the model. No dice choose the place; they only choose which volatile bytes a power cut keeps.
//! The medium's file, name and engine operations are counted together.

use sessionlog::{Durability, Error, NewSession, StoreOptions};

use crate::support::events::{self, Said, chunk, noise, read, user};
use crate::support::medium::{Crash, Fault, Medium, Step};
use crate::support::run::{Run, id, quiet, whole};

const BUFFERED: Option<Durability> = Some(Durability::Buffered);
const SYNC: Option<Durability> = Some(Durability::Sync);

fn users(count: usize) -> Vec<Said> {
    (0..count).map(|n| user(&format!("message {n}")).at(events::NOON + n as i64)).collect()
}

fn small_tail() -> StoreOptions {
    quiet().tail_bytes(300 << 10)
}

/// Plays `script` with `fault` at every operation, then every sort of crash.
pub(crate) fn at_every_operation(options: fn() -> StoreOptions, faults: &[Fault], script: impl Fn(&mut Run)) {
    for &fault in faults {
        for crash in [Crash::Kill, Crash::Power] {
            let mut operation = 0;
            loop {
                operation += 1;
                let medium = Medium::new(operation);
                medium.plan(operation, fault);
                let mut run = Run::new(medium, options);
                script(&mut run);
                if !run.medium.fired() {
                    break;
                }
                run.recover(crash);
                run.check_goes_on();
                run.check_leaves_nothing();
            }
            assert!(operation > 10, "the script did {operation} operations");
        }
    }
}

pub(crate) const ALL: &[Fault] = &[Fault::Fail, Fault::StayFailing, Fault::Tear, Fault::Stop];

#[test]
fn appends() {
    at_every_operation(quiet, ALL, |run| {
        run.create("a");
        run.append("a", &users(1), None);
        run.append("a", &[chunk("one")], None);
        run.append("a", &[chunk("two")], None);
        run.append("a", &users(1), BUFFERED);
        run.append("a", &users(1), SYNC);
        run.append("a", &[chunk("three")], None);
        run.flush();
        run.append("a", &[chunk("lost in a power cut")], None);
    });
}

#[test]
fn batches_in_several_sessions() {
    at_every_operation(quiet, ALL, |run| {
        for name in ["a", "b"] {
            run.create(name);
            run.append(name, &users(40), None);
            run.append(name, &users(3), BUFFERED);
        }
        run.append("a", &[noise(1, 40_000), user("behind a large one"), noise(2, 9_000)], None);
        run.append("b", &users(700), BUFFERED);
        run.append("a", &users(2), None);
    });
}

#[test]
fn forks_with_the_parent_growing() {
    at_every_operation(quiet, ALL, |run| {
        run.create("a");
        run.append("a", &users(5), None);
        run.append("a", &[chunk("shared, not synced by itself")], None);
        run.fork("a", 6, "b");
        run.append("a", &users(2), BUFFERED);
        run.fork("b", 3, "c");
        run.append("c", &users(2), None);
        run.drain();
        run.fork("c", 4, "d");
        run.fork("d", 0, "e");
        run.append("e", &users(1), None);
        run.append("b", &users(1), None);
    });
}

#[test]
fn drains_that_continue_a_block() {
    at_every_operation(quiet, ALL, |run| {
        run.create("a");
        run.create("b");
        for _ in 0..3 {
            run.append("a", &users(3), None);
            run.append("b", &[noise(3, 15_000), chunk("c")], None);
            run.append("a", &[chunk("not synced")], None);
            run.drain();
        }
        run.append("a", &users(1), None);
        run.drain();
    });
}

#[test]
fn segments_that_fill_and_are_recycled() {
    at_every_operation(small_tail, &[Fault::Fail, Fault::Tear, Fault::Stop], |run| {
        run.create("a");
        for round in 0..5 {
            for n in 0..4 {
                run.append("a", &[noise(10 * round + n, 40_000)], if n == 1 { BUFFERED } else { None });
            }
            if round % 2 == 0 {
                run.drain();
            }
        }
    });
}

#[test]
fn a_batch_larger_than_a_segment() {
    at_every_operation(quiet, ALL, |run| {
        run.create("a");
        run.append("a", &users(2), None);
        let batch: Vec<Said> = (0..14).map(|n| noise(n, 100_000)).collect();
        run.append("a", &batch, None);
        run.append("a", &users(2), None);
    });
}

#[test]
fn orderly_closes() {
    at_every_operation(quiet, ALL, |run| {
        run.create("a");
        run.append("a", &users(3), None);
        run.append("a", &[chunk("buffered")], None);
        for _ in 0..2 {
            run.close();
            if run.medium.fired() {
                return;
            }
            run.drop_store();
            run.open();
            run.append("a", &[chunk("buffered"), chunk("again")], None);
        }
        run.drop_store();
    });
}

/// States in which a crash left a store, each with its model.
fn crashed_stores() -> Vec<Run> {
    let mut runs = Vec::new();
    let mut leave = |crash: Crash, script: &dyn Fn(&mut Run)| {
        let mut run = Run::new(Medium::new(runs.len() as u64), quiet);
        script(&mut run);
        run.crash(crash);
        runs.push(run);
    };
    // Never drained; synced and not.
    let undrained = |run: &mut Run| {
        run.create("a");
        run.append("a", &users(4), None);
        run.fork("a", 2, "b");
        run.append("b", &[chunk("one"), chunk("two")], None);
        run.append("a", &[chunk("three")], None);
    };
    leave(Crash::Kill, &undrained);
    leave(Crash::Power, &undrained);
    // Drained in part, and stopped in the midst of a later drain.
    for operation in [1, 2, 3, 4, 5, 6] {
        leave(Crash::Kill, &|run| {
            undrained(run);
            run.drain();
            run.append("a", &[noise(1, 20_000), user("x")], None);
            run.append("b", &users(3), None);
            run.plan(operation, Fault::Stop);
            run.drain();
        });
    }
    // Deleted, not drained; stopped in the pass and in the removal behind it.
    let deleted = |run: &mut Run| {
        undrained(run);
        run.drain();
        run.append("a", &[noise(1, 20_000), user("x")], None);
        run.delete("a");
        run.create("a");
        run.append("a", &users(2), None);
    };
    leave(Crash::Power, &deleted);
    for operation in 4..=9 {
        leave(Crash::Kill, &|run| {
            deleted(run);
            run.plan(operation, Fault::Stop);
            run.drain();
        });
    }
    runs
}

/// Opening is interrupted at every operation, and so is opening after that, and what was there is there.
#[test]
fn opening_after_a_crash_interrupted_twice() {
    for crashed in crashed_stores() {
        for (fault, crash) in [
            (Fault::Stop, Crash::Kill),
            (Fault::Stop, Crash::Power),
            (Fault::Fail, Crash::Kill),
            (Fault::Tear, Crash::Power),
        ] {
            let mut first = 0;
            loop {
                first += 1;
                let mut once = crashed.copy(first);
                once.plan(first, fault);
                if once.open() && !once.medium.fired() {
                    break;
                }
                once.crash(crash);
                let mut second = 0;
                loop {
                    // Each place once, and every third pair of places.
                    second += 1 + first % 3;
                    let mut twice = once.copy(second);
                    twice.plan(second, fault);
                    let whole = twice.open() && !twice.medium.fired();
                    twice.recover(crash);
                    if whole {
                        twice.check_goes_on();
                        break;
                    }
                }
            }
            assert!(first > 3, "opening did {first} operations");
        }
    }
}

/// H07: the second of three appends fails. The third gives `Failed`, never a false success; what was durable is still
/// read, nothing in flight is; after reopening the second event is whole or absent and the next takes the seq behind.
#[test]
fn h07_a_failed_write_is_told_and_not_forgotten() {
    for fault in [Fault::Fail, Fault::StayFailing, Fault::Tear] {
        for operation in 1..=2 {
            let medium = Medium::new(7);
            let store = medium.open(quiet()).unwrap();
            let session = store.create(NewSession::with_id(id("a"))).unwrap();
            session.append(user("one").to_new()).unwrap();
            medium.plan(operation, fault);
            let second = session.append(user("two").to_new());
            assert!(matches!(second, Err(Error::Failed { .. })), "{second:?}");
            assert!(medium.fired());
            let third = session.append(user("three").to_new());
            assert!(matches!(third, Err(Error::Failed { .. })), "{third:?}");
            assert_eq!((session.len(), session.durable_len()), (1, 1));
            assert_eq!(read(session.read_from(sessionlog::Seq::ZERO)), [user("one").line(0)]);
            for (what, result) in [
                ("create", store.create(NewSession::new()).map(drop)),
                ("fork", session.fork(sessionlog::Seq::new(1)).map(drop)),
                ("flush", store.flush()),
                ("drain", store.drain()),
            ] {
                assert!(matches!(result, Err(Error::Failed { .. })), "{what}: {result:?}");
            }
            drop((store, session));

            medium.restart(Crash::Kill);
            let store = medium.open(quiet()).unwrap();
            let session = store.session(&id("a")).unwrap();
            let mut expected = vec![user("one").line(0)];
            if session.len() == 2 {
                expected.push(user("two").line(1));
            }
            let seq = session.append(user("four").to_new()).unwrap();
            assert_eq!(seq.get(), expected.len() as u64);
            expected.push(user("four").line(seq.get()));
            assert_eq!(read(session.read_from(sessionlog::Seq::ZERO)), expected);
        }
    }
}

/// Buffered events whose background sync fails are taken out of sight, and the next call says so.
#[test]
fn a_failed_background_sync_is_returned_by_the_next_call() {
    let medium = Medium::new(1);
    let store = medium.open(quiet().sync_window(std::time::Duration::from_millis(1))).unwrap();
    let session = store.create(NewSession::new()).unwrap();
    session.append(user("durable").to_new()).unwrap();
    medium.hold(|step| matches!(step, Step::Sync(_)));
    session.append(chunk("provisional").to_new()).unwrap();
    medium.wait_held();
    assert_eq!((session.len(), session.durable_len()), (2, 1));
    let mut reader = session.read_from(sessionlog::Seq::ZERO).unwrap();
    let mut follower = session.follow(sessionlog::Seq::new(2)).unwrap();
    medium.plan(1, Fault::StayFailing);
    medium.release();
    // A follower that waits behind the end is woken by the failure.
    assert!(matches!(follower.next(), Some(Err(Error::Failed { .. }))));
    let next = session.append(user("next").to_new());
    assert!(matches!(next, Err(Error::Failed { .. })), "{next:?}");
    assert_eq!((session.len(), session.durable_len()), (1, 1));
    // A reader that was to read it gets the failure in its place, not an end.
    assert_eq!(reader.next().unwrap().unwrap().to_string(), user("durable").line(0));
    assert!(matches!(reader.next(), Some(Err(Error::Failed { .. }))));
    assert!(reader.next().is_none());
}

/// A sync that never returns fails the store after the watchdog's time, and those who wait are woken.
#[test]
fn a_hanging_sync_fails_the_store() {
    let medium = Medium::new(1);
    let store = medium.open(quiet().watchdog(std::time::Duration::from_millis(20))).unwrap();
    let session = store.create(NewSession::with_id(id("a"))).unwrap();
    session.append(user("durable").to_new()).unwrap();
    medium.hold(|step| matches!(step, Step::Sync(_)));
    let result = std::thread::scope(|scope| {
        let waiting = scope.spawn(|| session.append(user("hangs").to_new()));
        medium.wait_held();
        let other = session.append(user("waits").to_new());
        let Err(Error::Failed { cause }) = other else { panic!("{other:?}") };
        assert!(matches!(*cause, Error::TimedOut { .. }), "{cause:?}");
        assert_eq!(read(session.read_from(sessionlog::Seq::ZERO)), [user("durable").line(0)]);
        medium.release();
        waiting.join().unwrap()
    });
    // The call that hung may say either; what it says is true.
    drop((store, session));
    medium.restart(Crash::Power);
    let store = medium.open(quiet()).unwrap();
    let found = read(store.session(&id("a")).unwrap().read_from(sessionlog::Seq::ZERO));
    match result {
        Ok(seq) => assert_eq!(found[1..], [user("hangs").line(seq.get())]),
        Err(error) => assert!(matches!(error, Error::Failed { .. }), "{error:?}"),
    }
}

/// A drain that fails fails the store; what is in the journal is there after reopening.
#[test]
fn a_failed_drain_fails_the_store() {
    for operation in 1..=4 {
        let mut run = Run::new(Medium::new(operation), quiet);
        run.create("a");
        run.append("a", &users(20), None);
        run.plan(operation, Fault::Fail);
        run.drain();
        assert!(!run.goes_on(), "the drain went on after its operation {operation} had failed");
        run.recover(Crash::Power);
        run.check_goes_on();
    }
}

/// Errors of reads are told as what they are, and do no lasting harm.
#[test]
fn a_failed_read_is_an_error_and_no_end() {
    let medium = Medium::new(1);
    let store = medium.open(quiet()).unwrap();
    let session = store.create(NewSession::new()).unwrap();
    session.append_batch(users(3_000).iter().map(Said::to_new)).unwrap();
    store.drain().unwrap();
    let before = whole(&store).unwrap();
    medium.fail_reads(true);
    let (lines, error) = events::read_some(session.read_from(sessionlog::Seq::ZERO).unwrap());
    let error = error.expect("reads fail, so the events cannot end without an error");
    assert!(lines.len() < 3_000);
    assert!(!matches!(error, Error::Corrupt { .. }), "{error:?}");
    medium.fail_reads(false);
    assert!(whole(&store).unwrap() == before);
    session.append(user("goes on").to_new()).unwrap();
}

/// H19: too little room is told before anything is written; with room again the store goes on by itself.
#[test]
fn h19_a_full_disk_refuses_and_is_not_a_failure() {
    let medium = Medium::new(1);
    let store = medium.open(quiet()).unwrap();
    let session = store.create(NewSession::with_id(id("a"))).unwrap();
    session.append(user("before").to_new()).unwrap();
    medium.set_free_bytes(1_000);
    // Fills what room there is in the segments that exist; then there is no more.
    let mut stored = vec![user("before").line(0)];
    let refused = loop {
        let said = noise(stored.len() as u64, 60_000);
        match session.append(said.to_new()) {
            Ok(seq) => stored.push(said.line(seq.get())),
            Err(error) => break error,
        }
        assert!(stored.len() < 2_000, "120 MB went to a medium with 1,000 bytes free");
    };
    assert!(matches!(refused, Error::DiskFull { .. }), "{refused:?}");
    assert_eq!(session.len(), stored.len() as u64);
    assert!(events::difference(&read(session.read_from(sessionlog::Seq::ZERO)), &stored).is_none());
    medium.set_free_bytes(1 << 40);
    let seq = session.append(user("after").to_new()).unwrap();
    stored.push(user("after").line(seq.get()));
    store.close().unwrap();
    drop((session, store));
    let store = medium.open(quiet()).unwrap();
    let found = read(store.session(&id("a")).unwrap().read_from(sessionlog::Seq::ZERO));
    assert_eq!(events::difference(&found, &stored), None);
}

/// H19, the worse case: the medium is full in the midst of a batch. Freed, the store opens with what was whole.
#[test]
fn h19_a_disk_that_fills_in_a_batch_opens_when_freed() {
    for operation in 1..=3 {
        let mut run = Run::new(Medium::new(operation), quiet);
        run.create("a");
        run.append("a", &users(2), None);
        run.plan(operation, Fault::StayFailing);
        run.append("a", &[noise(1, 50_000), noise(2, 50_000)], None);
        run.recover(Crash::Kill);
        run.check_goes_on();
    }
}
