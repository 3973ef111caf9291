//! What stands at each seq of each session, so that anybody can tell whether it is what was written.
//!
//! The session's name and the seq give the event, and whether it is part of a batch. A fork's first events are its
//! parent's.

use sessionlog::SessionId;

use crate::dice::Dice;
use crate::events::{self, Said};

fn mixed(name: &str, seq: u64) -> u64 {
    let hash = name.bytes().fold(0xcbf2_9ce4_8422_2325, |hash: u64, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3)
    });
    Dice::new(hash ^ seq.wrapping_mul(0x9E37_79B9)).next()
}

/// The event at `seq` of a session, at position `place` of a batch of `of`.
fn event(name: &str, seq: u64, place: u64, of: u64) -> Said {
    let word = mixed(name, seq);
    let n = word % 1_000_003;
    let body = match word >> 32 & 127 {
        0 => events::letters(word, 9_000 + n as usize % 30_000),
        1..=3 => events::letters(word, 2_000),
        _ => format!("{name} {seq} {n}"),
    };
    let text = format!("{place}/{of} {body}");
    let said = if word >> 40 & 1 == 0 { events::chunk(&text) } else { events::user(&text) };
    said.at(events::NOON + n as i64)
}

/// How many events are appended together when the next one gets `seq`. A function of both, so that a writer that goes
/// on after a crash makes the same batches.
pub(crate) fn batch_len(name: &str, seq: u64) -> u64 {
    match mixed(name, seq ^ 0xBA7C) % 10 {
        0..=5 => 1,
        6..=8 => 2 + mixed(name, seq) % 6,
        _ => 40 + mixed(name, seq) % 60,
    }
}

/// The events of the batch that starts at `seq`.
pub(crate) fn batch(name: &str, seq: u64) -> Vec<Said> {
    let of = batch_len(name, seq);
    (0..of).map(|place| event(name, seq + place, place, of)).collect()
}

/// The name of a fork: its parent's, and where its own events begin.
pub(crate) fn fork_name(parent: &str, at: u64, unique: &str) -> String {
    format!("{parent}/{at}.{unique}")
}

/// The parent of a session, and the number of events that it shares.
fn origin(name: &str) -> (Option<&str>, u64) {
    match name.rsplit_once('/') {
        Some((parent, own)) => (Some(parent), own.split('.').next().unwrap().parse().unwrap()),
        None => (None, 0),
    }
}

/// Follows the batches of a session while it is read.
#[derive(Debug, Default)]
pub(crate) struct Batch {
    left: u64,
}

impl Batch {
    pub(crate) fn see(&mut self, line: &str) {
        let (place, of) = place(line);
        self.left = of - place - 1;
    }

    pub(crate) fn is_whole(&self) -> bool {
        self.left == 0
    }
}

/// The batch position that a line tells.
fn place(line: &str) -> (u64, u64) {
    let rest = line.split_once(r#""content":""#).or_else(|| line.split_once(r#""delta":""#)).unwrap().1;
    let (place, rest) = rest.split_once('/').unwrap();
    (place.parse().unwrap(), rest.split_once(' ').unwrap().0.parse().unwrap())
}

/// The lines of one session, its ancestors' included.
#[derive(Debug)]
pub(crate) struct Own {
    /// Names, and the seq from which on each is the author, oldest first.
    authors: Vec<(u64, String)>,
    batches: std::cell::RefCell<std::collections::HashMap<usize, Vec<u64>>>,
}

impl Own {
    /// As the name tells it.
    pub(crate) fn of(id: &SessionId) -> Self {
        let mut authors = Vec::new();
        let (mut name, mut end) = (id.as_str(), u64::MAX);
        loop {
            let (parent, from) = origin(name);
            // An ancestor forked above a fork's prefix is no author of what the fork shares.
            if from < end || from == 0 {
                authors.push((from, name.to_string()));
            }
            end = end.min(from);
            match parent.filter(|_| end > 0) {
                Some(parent) => name = parent,
                None => break,
            }
        }
        authors.reverse();
        Self { authors, batches: std::cell::RefCell::default() }
    }

    /// The line that must stand at `seq`.
    pub(crate) fn line(&self, seq: u64) -> String {
        let index = self.authors.iter().rposition(|(from, _)| *from <= seq).unwrap();
        let (from, name) = &self.authors[index];
        let mut batches = self.batches.borrow_mut();
        // Where the author's batches start: each one follows from the one before.
        let starts = batches.entry(index).or_insert_with(|| vec![*from]);
        let mut last = *starts.last().unwrap();
        while last + batch_len(name, last) <= seq {
            last += batch_len(name, last);
            starts.push(last);
        }
        let start = starts[starts.partition_point(|start| *start <= seq) - 1];
        event(name, seq, seq - start, batch_len(name, start)).line(seq)
    }
}
