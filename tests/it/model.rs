//! Random operations on a store and on a plain model, with kills, power cuts and failing writes in between: whatever
//! happens, the store holds what the model allows, and every way of reading gives the same events.
//!
//! `PROPTEST_CASES=n` runs more cases. A failure prints its operations and keeps its seed in `model.regressions`.

use std::time::Duration;

use proptest::prelude::*;
use proptest::test_runner::FileFailurePersistence;
use sessionlog::{Durability, Error, Events, NewEvent, Seq, StoreOptions};

use crate::support::events::{self, Said};
use crate::support::medium::{Crash, Fault, Medium};
use crate::support::run::{Run, quiet};

#[derive(Clone, Debug)]
enum Op {
    Create,
    Append {
        session: u8,
        seeds: Vec<u32>,
        how: Option<Durability>,
    },
    WrongSeq {
        session: u8,
        expected: u8,
    },
    BadBatch {
        session: u8,
    },
    Fork {
        session: u8,
        at: u16,
    },
    /// And, perhaps, makes another session of that id.
    Delete {
        session: u8,
        again: bool,
    },
    /// Events in a small block of their own.
    Scatter {
        session: u8,
        seeds: Vec<u32>,
    },
    Compact,
    Drain,
    Flush,
    Read {
        session: u8,
        from: u16,
        to: u16,
    },
    Close,
    Drop,
    Kill,
    CutPower,
    FaultAhead {
        operations: u8,
        fault: Fault,
    },
    FaultInOpen {
        operations: u8,
        fault: Fault,
        crash: Crash,
    },
}

fn crash() -> impl Strategy<Value = Crash> {
    prop_oneof![Just(Crash::Kill), Just(Crash::Power)]
}

fn fault() -> impl Strategy<Value = Fault> {
    prop_oneof![
        4 => Just(Fault::Stop),
        2 => Just(Fault::Fail),
        1 => Just(Fault::Tear),
        1 => Just(Fault::StayFailing),
    ]
}

fn how() -> impl Strategy<Value = Option<Durability>> {
    prop_oneof![
        2 => Just(None),
        1 => Just(Some(Durability::Sync)),
        2 => Just(Some(Durability::Buffered)),
    ]
}

fn op() -> impl Strategy<Value = Op> {
    let append = |events: std::ops::Range<usize>| {
        (any::<u8>(), prop::collection::vec(any::<u32>(), events), how())
            .prop_map(|(session, seeds, how)| Op::Append { session, seeds, how })
    };
    prop_oneof![
        4 => Just(Op::Create),
        20 => append(1..2),
        6 => append(2..8),
        1 => append(100..300),
        2 => (any::<u8>(), any::<u8>()).prop_map(|(session, expected)| Op::WrongSeq { session, expected }),
        1 => any::<u8>().prop_map(|session| Op::BadBatch { session }),
        5 => (any::<u8>(), any::<u16>()).prop_map(|(session, at)| Op::Fork { session, at }),
        4 => (any::<u8>(), any::<bool>()).prop_map(|(session, again)| Op::Delete { session, again }),
        6 => (any::<u8>(), prop::collection::vec(any::<u32>(), 1..4))
            .prop_map(|(session, seeds)| Op::Scatter { session, seeds }),
        3 => Just(Op::Compact),
        6 => Just(Op::Drain),
        2 => Just(Op::Flush),
        8 => (any::<u8>(), any::<u16>(), any::<u16>())
            .prop_map(|(session, from, to)| Op::Read { session, from, to }),
        1 => Just(Op::Close),
        1 => Just(Op::Drop),
        2 => Just(Op::Kill),
        3 => Just(Op::CutPower),
        4 => (0..12_u8, fault()).prop_map(|(operations, fault)| Op::FaultAhead { operations, fault }),
        2 => (0..30_u8, fault(), crash())
            .prop_map(|(operations, fault, crash)| Op::FaultInOpen { operations, fault, crash }),
    ]
}

/// A small tail drains often; a short window syncs and seals in the background.
fn busy() -> StoreOptions {
    StoreOptions::new()
        .sync_window(Duration::from_millis(1))
        .drain_age(Duration::from_millis(3))
        .tail_bytes(64 << 10)
}

fn small_tail() -> StoreOptions {
    quiet().tail_bytes(64 << 10)
}

struct Play {
    run: Run,
    made: usize,
}

impl Play {
    fn name(&self, session: u8) -> Option<String> {
        let names = self.run.model.seen().keys();
        names.clone().nth(usize::from(session) % names.len().max(1)).cloned()
    }

    fn new_name(&mut self) -> String {
        self.made += 1;
        format!("s{}", self.made)
    }

    /// A fault fired: begin the next life, by a kill or a cut, so that the script goes on.
    fn mend(&mut self) {
        if !self.run.goes_on() {
            let crash = if self.made.is_multiple_of(2) { Crash::Power } else { Crash::Kill };
            self.run.recover(crash);
        }
    }

    fn play(&mut self, op: &Op) {
        match op {
            Op::Create => {
                let name = self.new_name();
                self.run.create(&name);
            }
            Op::Append { session, seeds, how } => {
                if let Some(name) = self.name(*session) {
                    let said: Vec<Said> = seeds.iter().map(|seed| events::any(u64::from(*seed))).collect();
                    self.run.append(&name, &said, *how);
                }
            }
            Op::WrongSeq { session, expected } => {
                if let Some(name) = self.name(*session) {
                    let said = [events::user("never")];
                    self.run.append_expecting_wrong(&name, &said, u64::from(*expected));
                }
            }
            Op::BadBatch { session } => {
                if let (Some(name), true) = (self.name(*session), self.run.goes_on()) {
                    self.bad_batch(&name);
                }
            }
            Op::Fork { session, at } => {
                if let Some(parent) = self.name(*session) {
                    let name = self.new_name();
                    let at = usize::from(*at) % (self.run.model.len(&parent) + 1);
                    self.run.fork(&parent, at, &name);
                }
            }
            Op::Delete { session, again } => {
                if let Some(name) = self.name(*session) {
                    self.run.delete(&name);
                    if *again && !self.run.model.seen().contains_key(&name) {
                        self.run.create(&name);
                    }
                }
            }
            Op::Scatter { session, seeds } => {
                if let Some(name) = self.name(*session) {
                    let said: Vec<Said> = seeds.iter().map(|seed| events::any(u64::from(*seed))).collect();
                    self.run.scatter(&name, &said);
                }
            }
            Op::Compact => self.run.compact(),
            Op::Drain => self.run.drain(),
            Op::Flush => self.run.flush(),
            Op::Read { session, from, to } => {
                if let (Some(name), true) = (self.name(*session), self.run.goes_on()) {
                    self.read(&name, *from, *to);
                }
            }
            Op::Close | Op::Drop => {
                if let Op::Close = op {
                    self.run.close();
                }
                self.run.drop_store();
                if self.run.medium.fired() {
                    self.mend();
                } else {
                    self.run.medium.forget_plan();
                    assert!(self.run.open());
                }
            }
            Op::Kill => self.run.recover(Crash::Kill),
            Op::CutPower => self.run.recover(Crash::Power),
            Op::FaultAhead { operations, fault } => {
                self.run.plan(u64::from(*operations) + 1, *fault);
            }
            Op::FaultInOpen { operations, fault, crash } => {
                self.run.crash(*crash);
                self.run.plan(u64::from(*operations) + 1, *fault);
                if !self.run.open() {
                    self.run.recover(*crash);
                }
            }
        }
        self.mend();
    }

    /// The third event names a seq that it will not be given: none is stored.
    fn bad_batch(&mut self, name: &str) {
        let mut batch: Vec<NewEvent> = (0..3).map(|_| events::user("never").to_new()).collect();
        batch[2].expected_seq = Some(Seq::new(self.run.model.len(name) as u64));
        let Some(session) = self.run.session(name) else { return };
        match session.append_batch(batch) {
            Err(Error::Failed { .. }) => assert!(self.run.medium.fired()),
            Err(Error::SeqConflict { actual, .. }) => {
                assert_eq!(actual.get(), self.run.model.len(name) as u64 + 2);
            }
            other => panic!("{other:?}"),
        }
    }

    /// Ranges, the last events and the reverse are what they are of a list of lines.
    fn read(&self, name: &str, from: u16, to: u16) {
        let all: Vec<String> = self.run.model.seen()[name].iter().map(ToString::to_string).collect();
        let Some(session) = self.run.session(name) else { return };
        let from = usize::from(from) % (all.len() + 1);
        let to = from.max(usize::from(to) % (all.len() + 3));
        let seqs = Seq::new(from as u64)..Seq::new(to as u64);
        let within = &all[from..to.min(all.len())];
        let check = |found: sessionlog::Result<Events>, expected: Vec<&String>, what: &str| {
            let lines: sessionlog::Result<Vec<String>> =
                found.and_then(|events| events.map(|event| Ok(event?.to_string())).collect());
            // A failure in the background takes what is not durable out of sight.
            let right = lines.as_ref().is_ok_and(|lines| lines.iter().eq(expected));
            assert!(right || self.run.medium.fired(), "{what} of {name}, {from}..{to}: {lines:?}");
        };
        let words = |line: &&String| !line.contains(r#""type":"assistant/chunk""#);
        let count = to - from;
        check(session.read_from(seqs.start), all[from..].iter().collect(), "read_from");
        check(session.read_range(seqs.clone()), within.iter().collect(), "read_range");
        check(session.read_reverse(seqs.clone()), within.iter().rev().collect(), "read_reverse");
        check(session.last(count as u64), all[all.len().saturating_sub(count)..].iter().collect(), "last");
        let without_chunks = session.read_range(seqs).map(Events::without_chunks);
        check(without_chunks, within.iter().filter(words).collect(), "read_range without chunks");
    }
}

fn play(seed: u64, options: fn() -> StoreOptions, ops: &[Op]) {
    let mut play = Play { run: Run::new(Medium::new(seed), options), made: 0 };
    play.run.create("s0");
    for op in ops {
        play.play(op);
    }
    play.run.medium.forget_plan();
    if play.run.medium.fired() {
        play.run.recover(Crash::Power);
    }
    play.run.check();
    play.run.check_goes_on();
    play.run.check_leaves_nothing();
}

fn config(cases: u32) -> ProptestConfig {
    ProptestConfig {
        cases,
        failure_persistence: Some(Box::new(FileFailurePersistence::Direct("tests/it/model.regressions"))),
        max_shrink_iters: 300,
        ..ProptestConfig::default()
    }
}

proptest! {
    #![proptest_config(config(200))]

    #[test]
    fn holds_what_the_model_allows(seed in any::<u64>(), ops in prop::collection::vec(op(), 1..60)) {
        play(seed, quiet, &ops);
    }
}

proptest! {
    #![proptest_config(config(80))]

    #[test]
    fn holds_what_the_model_allows_with_a_small_tail(
        seed in any::<u64>(),
        ops in prop::collection::vec(op(), 1..60),
    ) {
        play(seed, small_tail, &ops);
    }
}

proptest! {
    #![proptest_config(config(80))]

    #[test]
    fn holds_what_the_model_allows_while_the_background_works(
        seed in any::<u64>(),
        ops in prop::collection::vec(op(), 1..60),
    ) {
        play(seed, busy, &ops);
    }
}
