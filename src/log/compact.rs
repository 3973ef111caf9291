//! Merges small blocks that stand side by side: what restarts, cuts and large events between small ones left.
//!
//! Done by the drain's thread, a few blocks at a time and only when nothing waits to be removed. The events of
//! neighbouring blocks are packed anew, and one batch writes the new blocks and removes the old ones: after a crash
//! there are those or these. A batch is made only when the running hash over its events leads from the block before
//! them to the end of the last one, and when it makes blocks fewer. So damage is left to a scan, and a second
//! compaction finds nothing to do.

use std::collections::HashSet;
use std::ops::Bound;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

use serde::Serialize;

use super::core::Core;
use super::history::stored_hash;
use super::kept::tombstone;
use super::pass::Writer;
use super::room::Full;
use super::tail::SessionState;
use crate::error::{Error, Result};
use crate::event::write_line;
use crate::format::{self, BlockHeader, Drained, Hash, Packer, Sections, WriteNumber};
use crate::id::StorageKey;
use crate::storage::{Entry, Map, Storage};

/// Values looked at in one step.
const LOOKED_AT: usize = 512;
/// Blocks packed anew in one batch, and their decoded bytes.
const MERGED_BLOCKS: usize = 64;
const MERGED_BYTES: usize = 4 * format::MAX_BLOCK_LEN;
const _: () = assert!(MERGED_BLOCKS < LOOKED_AT, "every step gets on");

/// What a compaction met and did; see [`Store::compact`](crate::Store::compact).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct CompactReport {
    /// Sessions that have blocks.
    pub sessions: u64,
    /// Those of which blocks were merged.
    pub merged_sessions: u64,
    /// Blocks there were; an event that is too large for one counts as one.
    pub blocks_before: u64,
    /// Blocks there are now.
    pub blocks_after: u64,
    /// What blocks took, in bytes of keys and values; the engine's files take more.
    pub bytes_before: u64,
    /// What blocks take now.
    pub bytes_after: u64,
}

/// A compaction under way: where it goes on, and what it met so far.
#[derive(Debug, Default)]
pub(super) struct Compaction {
    /// The key of the map of blocks from which it goes on.
    from: Vec<u8>,
    /// The last value that was counted, and the last session of which something was merged.
    counted: Option<Vec<u8>>,
    merged: Option<StorageKey>,
    report: CompactReport,
}

/// What a step of a compaction came to.
#[derive(Debug)]
pub(super) enum Step {
    /// Nothing was written.
    Looked,
    /// Blocks were merged, and it is durable.
    Merged,
    /// All has been looked at.
    Done(CompactReport),
}

/// Compactions that callers ask for, one at a time.
#[derive(Debug, Default)]
pub(super) struct Compactions {
    one: Mutex<()>,
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct State {
    asked: Option<Compaction>,
    done: Option<Result<CompactReport, Full>>,
}

impl Compactions {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The one that goes on, if one was asked for.
    pub(super) fn take(&self) -> Option<Compaction> {
        self.lock().asked.take()
    }

    pub(super) fn go_on(&self, compaction: Compaction) {
        self.lock().asked = Some(compaction);
    }

    pub(super) fn done(&self, outcome: Result<CompactReport, Full>) {
        self.lock().done = Some(outcome);
        self.wake();
    }

    /// Lets those who wait look at the store's health.
    pub(super) fn wake(&self) {
        drop(self.lock());
        self.changed.notify_all();
    }

    /// Asks for one and waits for its end. A second caller waits for the first.
    pub(super) fn run(&self, core: &Core) -> Result<CompactReport> {
        let _one = self.one.lock().unwrap_or_else(PoisonError::into_inner);
        *self.lock() = State { asked: Some(Compaction::default()), done: None };
        core.drain.ask();
        let mut state = self.lock();
        loop {
            if let Some(outcome) = state.done.take() {
                return outcome.map_err(|full| full.to_error());
            }
            if let Err(error) = core.health.check() {
                state.asked = None;
                return Err(error);
            }
            state = self.changed.wait_timeout(state, core.watchdog).unwrap_or_else(PoisonError::into_inner).0;
            if state.done.is_none() {
                drop(state);
                core.drain.watch(core);
                state = self.lock();
            }
        }
    }
}

/// Goes on with a compaction: to the next batch, or some hundred values on.
pub(super) fn step(core: &Core, writer: &mut Writer, compaction: &mut Compaction) -> Result<Step> {
    let storage = core.storage.as_ref();
    let mut group = Group::default();
    let values = storage.range(Map::Events, Bound::Included(&compaction.from), Bound::Unbounded);
    for (looked, entry) in values.enumerate() {
        let entry = entry?;
        let small = Small::of(&entry);
        if !small.as_ref().is_some_and(|small| group.takes(small)) {
            if group.is_worth_it() && merge(core, writer, compaction, &group)? {
                return Ok(Step::Merged);
            }
            group = Group::default();
        }
        if looked >= LOOKED_AT && group.blocks.is_empty() {
            compaction.from = entry.0;
            return Ok(Step::Looked);
        }
        compaction.count(&entry);
        if let Some(small) = small {
            group.add(small, entry);
        }
    }
    if group.is_worth_it() && merge(core, writer, compaction, &group)? {
        return Ok(Step::Merged);
    }
    Ok(Step::Done(compaction.report))
}

/// Says anew what is drained: blocks that were merged are then older than that record, as those of a pass are. By this
/// an engine that has lost a newer summary is known.
pub(super) fn mark(core: &Core, writer: &mut Writer) -> Result<WriteNumber> {
    let mark = writer.number();
    let drained = format::encode_drained(Drained { through: core.drain.through() }, mark);
    core.storage.insert(Map::Sessions, format::DRAINED_KEY, &drained)?;
    core.storage.flush()?;
    Ok(mark)
}

impl Compaction {
    /// Counts a value that was not met before.
    fn count(&mut self, (key, value): &Entry) {
        if self.counted.as_ref().is_some_and(|counted| counted >= key) {
            return;
        }
        let session = |key: &[u8]| format::parse_event_key(key).map(|at| at.key);
        let Some(at) = format::parse_event_key(key) else { return };
        if self.counted.as_deref().and_then(session) != Some(at.key) {
            self.report.sessions += 1;
        }
        let blocks = u64::from(at.part.is_none());
        let bytes = len_of(key, value);
        self.report.blocks_before += blocks;
        self.report.blocks_after += blocks;
        self.report.bytes_before += bytes;
        self.report.bytes_after += bytes;
        self.counted = Some(key.clone());
    }

    fn note(&mut self, session: StorageKey, old: &[(Small, Entry)], new: &[Entry]) {
        let report = &mut self.report;
        report.blocks_after -= (old.len() - new.len()) as u64;
        report.bytes_after += new.iter().map(|(key, value)| len_of(key, value)).sum::<u64>();
        report.bytes_after -= old.iter().map(|(_, (key, value))| len_of(key, value)).sum::<u64>();
        if self.merged.replace(session) != Some(session) {
            report.merged_sessions += 1;
        }
    }
}

fn len_of(key: &[u8], value: &[u8]) -> u64 {
    (key.len() + value.len()) as u64
}

/// A block that could hold more.
#[derive(Debug)]
struct Small {
    header: BlockHeader,
    value_len: usize,
}

impl Small {
    fn of((key, value): &Entry) -> Option<Self> {
        let at = format::parse_event_key(key).filter(|at| at.part.is_none())?;
        let view = format::open_block(at.key, at.seq, value).ok()?;
        (!format::is_full(&view)).then(|| Self { header: *view.header(), value_len: value.len() })
    }

    fn decoded(&self) -> usize {
        self.header.main_len + self.header.chunks_len
    }
}

/// Small blocks of one session, side by side.
#[derive(Debug, Default)]
struct Group {
    blocks: Vec<(Small, Entry)>,
    decoded: usize,
}

impl Group {
    fn takes(&self, next: &Small) -> bool {
        let Some((last, _)) = self.blocks.last() else { return true };
        last.header.key == next.header.key
            && last.header.end() == next.header.first_seq
            && self.blocks.len() < MERGED_BLOCKS
            && self.decoded + next.decoded() <= MERGED_BYTES
    }

    fn add(&mut self, small: Small, entry: Entry) {
        self.decoded += small.decoded();
        self.blocks.push((small, entry));
    }

    /// Whether its events should take fewer blocks.
    fn is_worth_it(&self) -> bool {
        let stored = self.blocks.iter().map(|(small, _)| small.value_len).sum();
        let events = self.blocks.iter().map(|(small, _)| small.header.count as usize).sum();
        self.blocks.len() > format::least_blocks(stored, self.decoded, events)
    }
}

/// Packs a group anew, and goes on behind it, or at its last block when that has room. Returns whether it was written:
/// not where something is wrong, and not where blocks do not get fewer.
fn merge(core: &Core, writer: &mut Writer, compaction: &mut Compaction, group: &Group) -> Result<bool> {
    let Some((first, last)) = group.blocks.first().zip(group.blocks.last()) else { return Ok(false) };
    let (key, seqs) = (first.0.header.key, first.0.header.first_seq..last.0.header.end());
    let new = match session(core, key, seqs.end) {
        Ok(Some(session)) => pack(core.storage.as_ref(), writer, &session, group),
        Ok(None) => Ok(None),
        Err(error) => Err(error),
    };
    let new = match new {
        // Reads of what is damaged say so, and a scan.
        Err(Error::Corrupt { .. } | Error::UnsupportedFormat { .. }) | Ok(None) => return Ok(false),
        Ok(Some(new)) => new,
        Err(error) => return Err(error),
    };
    let kept: HashSet<&[u8]> = new.iter().map(|(key, _)| key.as_slice()).collect();
    let gone = group.blocks.iter().map(|(_, (key, _))| key).filter(|key| !kept.contains(key.as_slice()));
    let mut changes: Vec<_> = gone.map(|key| (key.clone(), None)).collect();
    changes.extend(new.iter().map(|(key, value)| (key.clone(), Some(value.clone()))));
    core.storage.apply(Map::Events, &changes)?;
    core.storage.flush()?;
    compaction.note(key, &group.blocks, &new);
    if let Some((last, _)) = new.last() {
        compaction.from.clone_from(last);
    }
    Ok(true)
}

/// The session that blocks up to `end` are merged of; `None` where that has to wait, or is not worth it.
fn session(core: &Core, key: StorageKey, end: u64) -> Result<Option<Arc<SessionState>>> {
    let storage = core.storage.as_ref();
    let Some(session) = core.catalog.by_key(key, storage)? else { return Ok(None) };
    // What a removal is about to take needs no merging; what it leaves is like any other.
    if session.is_deleted() && tombstone(storage, key)?.is_none_or(|tombstone| tombstone.pending) {
        return Ok(None);
    }
    let tail = session.lock();
    // What the summary does not count is a leftover, and hidden sessions come and go as a whole.
    let whole = tail.hidden.is_none() && end <= tail.stored.len;
    drop(tail);
    Ok(Some(session).filter(|_| whole))
}

/// The blocks that a group becomes; `None` when they are not what they should be.
fn pack(
    storage: &dyn Storage,
    writer: &mut Writer,
    session: &SessionState,
    group: &Group,
) -> Result<Option<Vec<Entry>>> {
    let Some((first, _)) = group.blocks.first() else { return Ok(None) };
    let (key, from) = (first.header.key, first.header.first_seq);
    if from < session.header.prefix_len() {
        return Ok(None);
    }
    let mut hash = stored_hash(storage, session, from)?;
    if hash == Hash::UNKNOWN {
        return Ok(None);
    }
    let mut new: Vec<Entry> = Vec::new();
    let mut packer = Packer::new(key, from);
    let Writer { context, scratch, line, events, .. } = writer;
    for (small, (_, value)) in &group.blocks {
        let seq = small.header.first_seq;
        let view = format::open_block(key, seq, value).map_err(|error| error.at(session.place(seq)))?;
        events.clear();
        let decoded = view.decode(scratch, 0, small.header.count, Sections::All, events);
        decoded.map_err(|error| error.at(session.place(seq)))?;
        for event in events.iter() {
            hash.begin(line);
            write_line(event.seq, &event.parts(), line);
            hash = Hash::after(line);
            packer.push(&event.parts(), hash, context, &mut |key, value| {
                new.push((key, value));
                Ok::<_, Error>(())
            })?;
        }
        if hash != small.header.hash_after {
            return Ok(None);
        }
    }
    packer.finish(context, &mut |key, value| {
        new.push((key, value));
        Ok::<_, Error>(())
    })?;
    // A value that replaces another holds at least its events, whatever zstd makes of them.
    let replaces = new.first().and_then(|(_, value)| format::open_block(key, from, value).ok());
    let holds = replaces.is_some_and(|block| block.header().end() >= first.header.end());
    Ok(Some(new).filter(|new| holds && new.len() < group.blocks.len()))
}
