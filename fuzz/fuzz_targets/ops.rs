//! Sequences of operations on a store and on the plain model of the integration tests, with kills, power cuts and
//! failing writes in between: the store holds what the model allows.

#![no_main]

use arbitrary::Arbitrary;
use libfuzzer_sys::fuzz_target;
use sessionlog::Durability;

use self::support::events::{self, Said};
use self::support::medium::{Crash, Fault, Medium};
use self::support::run::{Run, quiet};

#[allow(dead_code, reason = "the tests use more of it")]
#[allow(clippy::cast_possible_truncation, reason = "as in the tests")]
#[path = "../../tests/it/support/mod.rs"]
mod support;

sessionlog_fuzz::limit_memory!();

/// Longer scripts find nothing that short ones do not.
const MAX_OPS: usize = 60;

#[derive(Arbitrary, Debug)]
struct Script {
    /// What of unsynced writes a power cut keeps.
    seed: u16,
    small_tail: bool,
    ops: Vec<Op>,
}

#[derive(Arbitrary, Debug)]
enum Op {
    Create,
    Append {
        session: u8,
        seed: u16,
        count: u8,
        how: Option<How>,
    },
    WrongSeq {
        session: u8,
        expected: u8,
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
    Drain,
    Flush,
    Check,
    Reopen {
        close: bool,
    },
    Crash(End),
    /// At one of the next operations of the medium.
    FaultAhead {
        operations: u8,
        fault: Failing,
    },
    /// The same while the store is opened.
    FaultInOpen {
        operations: u8,
        fault: Failing,
        end: End,
    },
}

#[derive(Arbitrary, Clone, Copy, Debug)]
enum How {
    Sync,
    Buffered,
}

#[derive(Arbitrary, Clone, Copy, Debug)]
enum End {
    Kill,
    PowerCut,
}

#[derive(Arbitrary, Clone, Copy, Debug)]
enum Failing {
    Stop,
    Once,
    Tear,
    FromNowOn,
}

impl From<How> for Durability {
    fn from(how: How) -> Self {
        match how {
            How::Sync => Self::Sync,
            How::Buffered => Self::Buffered,
        }
    }
}

impl From<End> for Crash {
    fn from(end: End) -> Self {
        match end {
            End::Kill => Self::Kill,
            End::PowerCut => Self::Power,
        }
    }
}

impl From<Failing> for Fault {
    fn from(failing: Failing) -> Self {
        match failing {
            Failing::Stop => Self::Stop,
            Failing::Once => Self::Fail,
            Failing::Tear => Self::Tear,
            Failing::FromNowOn => Self::StayFailing,
        }
    }
}

fuzz_target!(|script: Script| {
    let options = if script.small_tail { || quiet().tail_bytes(64 << 10) } else { quiet };
    let mut play = Play { run: Run::new(Medium::new(u64::from(script.seed)), options), made: 0 };
    play.play(&Op::Create);
    for op in script.ops.iter().take(MAX_OPS) {
        play.play(op);
    }
    if play.run.medium.fired() {
        play.run.recover(Crash::Power);
    }
    play.run.medium.forget_plan();
    play.run.check();
    play.run.check_goes_on();
    play.run.check_leaves_nothing();
});

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

    fn play(&mut self, op: &Op) {
        match *op {
            Op::Create => {
                let name = self.new_name();
                self.run.create(&name);
            }
            Op::Append { session, seed, count, how } => {
                if let Some(name) = self.name(session) {
                    // Some batches are long, most have an event or two.
                    let count = if count > 250 { 200 } else { u64::from(count % 4 + 1) };
                    let seeds = (0..count).map(|n| u64::from(seed) + n);
                    let said: Vec<Said> = seeds.map(events::any).collect();
                    self.run.append(&name, &said, how.map(Durability::from));
                }
            }
            Op::WrongSeq { session, expected } => {
                if let Some(name) = self.name(session) {
                    let said = [events::user("never")];
                    self.run.append_expecting_wrong(&name, &said, u64::from(expected));
                }
            }
            Op::Fork { session, at } => {
                if let Some(parent) = self.name(session) {
                    let name = self.new_name();
                    let at = usize::from(at) % (self.run.model.len(&parent) + 1);
                    self.run.fork(&parent, at, &name);
                }
            }
            Op::Delete { session, again } => {
                if let Some(name) = self.name(session) {
                    self.run.delete(&name);
                    if again && !self.run.model.seen().contains_key(&name) {
                        self.run.create(&name);
                    }
                }
            }
            Op::Drain => self.run.drain(),
            Op::Flush => self.run.flush(),
            Op::Check => {
                if self.run.goes_on() && !self.run.medium.fired() {
                    self.run.check();
                    // A planned fault may happen to the drain's thread at any moment.
                    match self.run.store().scan() {
                        Ok(report) => assert!(report.is_clean(), "{:?}", report.findings),
                        Err(error) => assert!(self.run.medium.fired(), "the store is open: {error:?}"),
                    }
                }
            }
            Op::Reopen { close } => self.reopen(close),
            Op::Crash(end) => self.run.recover(end.into()),
            Op::FaultAhead { operations, fault } => self.run.plan(u64::from(operations) + 1, fault.into()),
            Op::FaultInOpen { operations, fault, end } => {
                self.run.crash(end.into());
                self.run.plan(u64::from(operations) + 1, fault.into());
                if !self.run.open() {
                    self.run.recover(end.into());
                }
            }
        }
        self.mend();
    }

    fn reopen(&mut self, close: bool) {
        if close {
            self.run.close();
        }
        self.run.drop_store();
        if !self.run.medium.fired() {
            self.run.medium.forget_plan();
            assert!(self.run.open(), "open after an orderly close");
        }
    }

    /// A fault fired: begin the next life, by a kill or a cut, so that the script goes on.
    fn mend(&mut self) {
        if !self.run.goes_on() {
            let crash = if self.made.is_multiple_of(2) { Crash::Power } else { Crash::Kill };
            self.run.recover(crash);
        }
    }
}
