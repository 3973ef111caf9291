//! A walk over the values of one session: every block checked and decoded, seqs compared, the running hash followed.
//! Both scan and repair stand on it. It goes to the end whatever it meets.

use std::ops::{Bound, Range};

use super::finding::{Finding, FindingKind, fault};
use crate::event::{Event, write_line};
use crate::format::{self, BlockView, Hash, LargeReader, RunView, Scratch, Sections, WriteNumber};
use crate::id::{StorageKey, Timestamp};
use crate::storage::{Map, Storage};

/// Buffers that walks share.
#[derive(Default)]
pub(super) struct Buffers {
    scratch: Scratch,
    events: Vec<Event>,
    line: Vec<u8>,
}

/// What is walked over.
#[derive(Clone, Copy, Debug)]
pub(super) struct Extent {
    pub(super) key: StorageKey,
    /// The first seq of its own, and the running hash before it where that is known.
    pub(super) from: u64,
    pub(super) hash: Option<Hash>,
    /// Its end, as its summary has it; `u64::MAX` where that is not known: then the blocks say it.
    pub(super) to: u64,
    /// Only what lies before `to` is wanted: a fork's view of its parent.
    pub(super) part: bool,
    /// What was written before this was counted by some summary.
    pub(super) mark: WriteNumber,
}

/// How far a session's events are sound without a hole.
#[derive(Clone, Copy, Debug)]
pub(super) struct Sound {
    pub(super) len: u64,
    pub(super) hash: Option<Hash>,
    /// The timestamp of the last own event before `len`.
    pub(super) updated: Option<Timestamp>,
}

/// What the engine's part of a session came to.
#[derive(Clone, Copy, Debug)]
pub(super) struct StoredEnd {
    /// The last event is there.
    pub(super) whole: bool,
    pub(super) hash: Option<Hash>,
    pub(super) updated: Option<Timestamp>,
}

/// What a walk found beside what it told.
#[derive(Debug)]
pub(super) struct Walked {
    /// Events that were decoded.
    pub(super) events: u64,
    pub(super) sound: Sound,
    /// The hash behind `to`, also where there is a hole before: the last block has it.
    pub(super) hash_at_end: Option<Hash>,
    pub(super) updated: Option<Timestamp>,
    /// The first seq that no block holds, as far as they can be read.
    pub(super) end: u64,
    /// Keys of values that stand in the way of readers before `sound.len`, or of nobody: stray parts, overlaps.
    pub(super) stray: Vec<Vec<u8>>,
    /// Whether events, or values that cannot be read, stand behind `to`.
    pub(super) leftovers: bool,
    /// The greatest write number.
    pub(super) newest: WriteNumber,
    /// The hash at the seq that was asked for.
    pub(super) probed: Option<Hash>,
}

/// A walk under way.
pub(super) struct Walk<'a> {
    what: Extent,
    buffers: &'a mut Buffers,
    tell: &'a mut dyn FnMut(Finding),
    probe: Option<u64>,
    walked: Walked,
    /// The seq that comes next, and the hash before it where that is known.
    next: u64,
    hash: Option<Hash>,
    /// Nothing was wrong so far.
    whole: bool,
    /// The last event before `to` was met.
    reached: bool,
    stored_end: StoredEnd,
    /// A broken value: where its events end shows when the next sound one is met.
    broken: Option<Finding>,
    large: Option<LargeReader>,
    /// The head or block that was met last: its seq, and whether it is a large event that is complete.
    last: Option<(u64, bool)>,
}

/// Walks over the blocks of a session, and tells what is wrong.
pub(super) fn walk(
    storage: &dyn Storage,
    what: Extent,
    buffers: &mut Buffers,
    tell: &mut dyn FnMut(Finding),
) -> Walked {
    let mut walk = Walk::new(what, None, buffers, tell);
    walk.stored(storage, None);
    walk.done()
}

impl<'a> Walk<'a> {
    pub(super) fn new(
        what: Extent,
        probe: Option<u64>,
        buffers: &'a mut Buffers,
        tell: &'a mut dyn FnMut(Finding),
    ) -> Self {
        let sound = Sound { len: what.from, hash: what.hash, updated: None };
        let walked = Walked {
            events: 0,
            sound,
            hash_at_end: what.hash.filter(|_| what.to == what.from),
            updated: None,
            end: what.from,
            stray: Vec::new(),
            leftovers: false,
            newest: WriteNumber::default(),
            probed: what.hash.filter(|_| probe == Some(what.from)),
        };
        Self {
            what,
            buffers,
            tell,
            probe,
            walked,
            next: what.from,
            hash: what.hash,
            whole: true,
            reached: what.to == what.from,
            stored_end: StoredEnd { whole: false, hash: None, updated: None },
            broken: None,
            large: None,
            last: None,
        }
    }

    /// Goes over what the engine holds. `summary_hash`: what to go on with in the journal where
    /// the blocks do not give it.
    pub(super) fn stored(&mut self, storage: &dyn Storage, summary_hash: Option<Hash>) {
        let what = self.what;
        let from = format::block_key(what.key, 0);
        let last = format::part_key(what.key, u64::MAX, u32::MAX);
        let behind = format::block_key(what.key, what.to);
        let to =
            if what.part { Bound::Excluded(behind.as_slice()) } else { Bound::Included(last.as_slice()) };
        for entry in storage.range(Map::Events, Bound::Included(&from), to) {
            match entry {
                Ok((key, value)) => self.value(&key, &value),
                Err(error) => {
                    self.lose(Finding::engine(Map::Events, &error), self.next);
                    break;
                }
            }
        }
        self.end_of_stored();
        let Walked { hash_at_end, updated, .. } = self.walked;
        self.stored_end = StoredEnd { whole: self.reached, hash: hash_at_end, updated };
        if what.to != u64::MAX && self.next != what.to {
            self.next = what.to;
            self.hash = summary_hash;
        }
    }

    pub(super) fn stored_end(&self) -> StoredEnd {
        self.stored_end
    }

    /// What was found.
    pub(super) fn done(self) -> Walked {
        self.walked
    }

    fn value(&mut self, key: &[u8], value: &[u8]) {
        if let Some(number) = format::write_number(value) {
            self.walked.newest = self.walked.newest.max(number);
        }
        let Some(at) = format::parse_event_key(key) else {
            let finding =
                Finding::error(FindingKind::NotRecognised, "a key of a block or part", "another key");
            (self.tell)(finding.at(Map::Events, key));
            self.walked.stray.push(key.to_vec());
            self.whole = false;
            return;
        };
        match at.part {
            Some(part) => self.part(key, at.seq, part, value),
            None => self.block(key, at.seq, value),
        }
    }

    /// A block, or the head of a large event.
    fn block(&mut self, key: &[u8], seq: u64, value: &[u8]) {
        self.miss_parts();
        self.last = Some((seq, false));
        let number = format::write_number(value);
        let view = match format::open_block(self.what.key, seq, value) {
            Ok(view) => view,
            Err(_) if seq >= self.what.to => return self.leftover(key, seq, number),
            Err(error) => {
                let finding = Finding::error(FindingKind::of_block(&error), "a sound block", fault(&error));
                return self.lose(finding.at(Map::Events, key), seq);
            }
        };
        let (start, end) = (seq, view.header().end());
        if start >= self.what.to {
            return self.leftover(key, start, number);
        }
        if end <= self.what.from {
            let finding = Finding::notice(
                FindingKind::Orphan,
                format!("own events from seq {} on", self.what.from),
                "a block before them",
            );
            (self.tell)(finding.at(Map::Events, key).seqs(start..end));
            self.walked.stray.push(key.to_vec());
            return;
        }
        if end > self.what.to && !self.what.part {
            if number.is_some_and(|number| number < self.what.mark) {
                self.behind(key, self.what.to..end);
            } else {
                self.walked.leftovers = true;
            }
        }
        if !self.reach(key, start, end) {
            return;
        }
        match view.is_large() {
            Some(parts) if parts > 1 => self.large = Some(LargeReader::new(&view)),
            _ => self.decode(key, &view, value),
        }
    }

    /// Compares where a value starts with where it should. Returns whether it is to be decoded.
    fn reach(&mut self, key: &[u8], start: u64, end: u64) -> bool {
        if start < self.next || (start < self.what.from) {
            let seqs = start..end.min(self.next.max(start + 1));
            let found = format!("a block that starts at seq {start}");
            let finding = Finding::error(FindingKind::Overlap, format!("seq {}", self.next), found);
            (self.tell)(finding.at(Map::Events, key).seqs(seqs));
            self.walked.stray.push(key.to_vec());
            self.whole = false;
            return end > self.next;
        }
        if start > self.next {
            match self.broken.take() {
                Some(finding) => self.tell_broken(finding, start),
                None => {
                    let finding = Finding::error(
                        FindingKind::Gap,
                        format!("seq {}", self.next),
                        format!("seq {start}"),
                    );
                    (self.tell)(finding.at(Map::Events, key).seqs(self.next..start));
                }
            }
            self.whole = false;
            self.hash = None;
            self.next = start;
        } else if let Some(finding) = self.broken.take() {
            self.tell_broken(finding, start);
        }
        true
    }

    fn decode(&mut self, key: &[u8], view: &BlockView<'_>, _value: &[u8]) {
        let header = *view.header();
        let skip = u32::try_from(self.next.saturating_sub(header.first_seq)).unwrap_or(u32::MAX);
        let take =
            u32::try_from(self.what.to.min(header.end()).saturating_sub(self.next)).unwrap_or(u32::MAX);
        self.buffers.events.clear();
        let Buffers { scratch, events, .. } = &mut *self.buffers;
        match view.decode(scratch, skip, take, Sections::All, events) {
            Ok(()) => self.follow(key, header.end(), header.hash_after),
            Err(error) => {
                let finding = Finding::error(FindingKind::of_block(&error), "events", fault(&error));
                self.lose(finding.at(Map::Events, key), header.first_seq);
            }
        }
    }

    /// A part of a large event.
    fn part(&mut self, key: &[u8], seq: u64, part: u32, value: &[u8]) {
        let Some(reader) = self.large.as_mut().filter(|_| self.last == Some((seq, false))) else {
            return self.stray_part(key, seq);
        };
        if reader.next_part() != Some(part) {
            return self.miss_parts();
        }
        if let Err(error) = reader.push(part, value) {
            self.large = None;
            let finding = Finding::error(
                FindingKind::of_block(&error),
                format!("part {part} of a large event"),
                fault(&error),
            );
            return self.lose(finding.at(Map::Events, key), seq);
        }
        if reader.next_part().is_some() {
            return;
        }
        let Some(reader) = self.large.take() else { return };
        self.last = Some((seq, true));
        let hash_after = reader.hash_after();
        self.buffers.events.clear();
        let Buffers { scratch, events, .. } = &mut *self.buffers;
        match reader.finish(scratch, Sections::All, events) {
            Ok(()) => self.follow(key, seq + 1, hash_after),
            Err(error) => {
                let finding = Finding::error(FindingKind::of_block(&error), "a large event", fault(&error));
                self.lose(finding.at(Map::Events, key), seq);
            }
        }
    }

    /// A part that no large event waits for. Behind a complete one no reader meets it.
    fn stray_part(&mut self, key: &[u8], seq: u64) {
        if seq >= self.what.to {
            return self.leftover(key, seq, None);
        }
        let behind_broken = self
            .broken
            .as_ref()
            .is_some_and(|broken| broken.seqs.as_ref().is_some_and(|seqs| seqs.start == seq));
        if !behind_broken {
            let expected = "a block or the head of a large event before it";
            let found = "a part that belongs to none";
            let finding = if self.last == Some((seq, true)) {
                Finding::notice(FindingKind::Orphan, expected, found)
            } else {
                self.whole = self.whole && seq + 1 < self.what.from;
                Finding::error(FindingKind::Orphan, expected, found)
            };
            (self.tell)(finding.at(Map::Events, key).seqs(seq..seq + 1));
        }
        self.walked.stray.push(key.to_vec());
    }

    /// Ends a large event of which parts are missing.
    fn miss_parts(&mut self) {
        let Some(reader) = self.large.take() else { return };
        let Some((seq, _)) = self.last else { return };
        let part = reader.next_part().unwrap_or_default();
        let key = format::block_key(self.what.key, seq);
        let finding =
            Finding::error(FindingKind::MissingPart, format!("part {part} of a large event"), "none");
        self.lose(finding.at(Map::Events, &key), seq);
    }

    /// Follows the running hash over the events that were decoded, which end at or before `end`.
    fn follow(&mut self, key: &[u8], end: u64, hash_after: Hash) {
        let Buffers { events, line, .. } = &mut *self.buffers;
        self.walked.events += events.len() as u64;
        let first = self.next;
        if let Some(mut hash) = self.hash {
            for event in events.iter() {
                hash.begin(line);
                write_line(event.seq, &event.parts(), line);
                hash = Hash::after(line);
                if self.probe == Some(event.seq.get() + 1) {
                    self.walked.probed = Some(hash);
                }
            }
            self.hash = Some(hash);
        }
        self.walked.updated = events.last().map(|event| event.timestamp).or(self.walked.updated);
        self.next += events.len() as u64;
        if end <= self.what.to && self.hash != Some(hash_after) {
            if self.hash.is_some() {
                self.whole = false;
                let finding = Finding::error(
                    FindingKind::RunningHash,
                    format!("hash {hash_after}"),
                    self.hash.map_or_else(String::new, |hash| format!("hash {hash}")),
                );
                (self.tell)(finding.at(Map::Events, key).seqs(first..self.next));
            }
            self.hash = Some(hash_after);
        }
        self.walked.end = self.next;
        if self.whole {
            self.walked.sound = Sound { len: self.next, hash: self.hash, updated: self.walked.updated };
        }
        self.reached = self.next == self.what.to;
        if self.reached || self.what.to == u64::MAX {
            self.walked.hash_at_end = self.hash;
        }
    }

    /// Notes a value whose events, from `seq` on, cannot be read.
    fn lose(&mut self, finding: Finding, seq: u64) {
        let finding = finding.seqs(seq..seq + 1);
        if seq < self.next {
            // Readers that seek here meet it; what it held is held by the block before it.
            self.walked.stray.push(format::block_key(self.what.key, seq).to_vec());
            self.whole = false;
            return (self.tell)(finding);
        }
        if let Some(before) = self.broken.take() {
            let starts = seq.max(self.next);
            self.tell_broken(before, starts);
        }
        if seq > self.next {
            let gap = Finding::error(
                FindingKind::Gap,
                format!("seq {}", self.next),
                format!("a value for seq {seq} that cannot be read"),
            );
            (self.tell)(
                gap.seqs(self.next..seq).at(Map::Events, &format::block_key(self.what.key, self.next)),
            );
        }
        self.whole = false;
        self.hash = None;
        self.next = self.next.max(seq);
        self.broken = Some(finding);
    }

    /// Tells a broken value whose events end at `end`.
    fn tell_broken(&mut self, mut finding: Finding, end: u64) {
        if let Some(seqs) = &mut finding.seqs {
            seqs.end = end.max(seqs.start + 1);
            self.next = self.next.max(end);
        }
        (self.tell)(finding);
    }

    /// A value at or behind the session's end: one that an interrupted drain left, or one that an older summary lost.
    fn leftover(&mut self, key: &[u8], seq: u64, number: Option<WriteNumber>) {
        if self.what.part {
            return;
        }
        if number.is_some_and(|number| number < self.what.mark) {
            return self.behind(key, seq..seq + 1);
        }
        self.walked.leftovers = true;
    }

    fn behind(&mut self, key: &[u8], seqs: Range<u64>) {
        let found = format!("a summary of {} events", self.what.to);
        let finding = Finding::error(FindingKind::SummaryBehind, "a summary that counts these events", found);
        (self.tell)(finding.at(Map::Events, key).seqs(seqs));
    }

    /// Goes on with a run of the journal. Returns whether it fits.
    pub(super) fn run(&mut self, place: &str, run: &RunView<'_>) -> bool {
        let end = run.first_seq + u64::from(run.count);
        if run.first_seq != self.next {
            let finding = Finding::error(
                FindingKind::JournalOrder,
                format!("seq {}", self.next),
                format!("seq {}", run.first_seq),
            );
            (self.tell)(finding.in_journal(place.to_owned()).seqs(run.first_seq..end));
            self.whole = false;
            return false;
        }
        let Buffers { events, .. } = &mut *self.buffers;
        events.clear();
        if let Err(error) = run.decode(0, run.count, Sections::All, events) {
            let finding = Finding::error(FindingKind::JournalFrame, "events", fault(&error));
            (self.tell)(finding.in_journal(place.to_owned()).seqs(run.first_seq..end));
            self.whole = false;
            return false;
        }
        self.what.to = self.what.to.max(end);
        let Buffers { events, line, .. } = &mut *self.buffers;
        self.walked.events += events.len() as u64;
        for event in events.iter() {
            let Some(hash) = self.hash else { break };
            hash.begin(line);
            write_line(event.seq, &event.parts(), line);
            let hash = Hash::after(line);
            if self.probe == Some(event.seq.get() + 1) {
                self.walked.probed = Some(hash);
            }
            self.hash = Some(hash);
        }
        self.next = end;
        self.walked.end = end;
        self.walked.updated = events.last().map(|event| event.timestamp);
        self.walked.hash_at_end = self.hash;
        if self.whole {
            self.walked.sound = Sound { len: end, hash: self.hash, updated: self.walked.updated };
        }
        true
    }

    fn end_of_stored(&mut self) {
        self.miss_parts();
        let to = if self.what.to == u64::MAX { self.next } else { self.what.to };
        if let Some(finding) = self.broken.take() {
            self.tell_broken(finding, to);
        } else if self.next < to {
            let found = format!("blocks that end at seq {}", self.next);
            let (kind, expected) = if self.what.part {
                (FindingKind::Gap, format!("seq {}", self.next))
            } else {
                (FindingKind::SummaryLeads, format!("{to} events, as the summary counts"))
            };
            let key = format::block_key(self.what.key, self.next);
            let finding = Finding::error(kind, expected, found).at(Map::Events, &key);
            (self.tell)(finding.seqs(self.next..to));
            self.whole = false;
        }
    }
}
