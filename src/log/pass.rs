//! One pass of the drain: what goes into blocks and records, and in which order it is computed.

use std::ops::Bound;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};

use super::core::Core;
use super::history::{History, last_block};
use super::kept::Forks;
use super::removal::Removals;
use super::tail::{SessionState, Stored, TailRun};
use crate::error::{Error, Result};
use crate::event::{Event, write_line};
use crate::format::{
    self, Drained, Hash, PackContext, Packer, Scratch, Sections, SessionHeader, Summary, Tombstone,
    WriteNumber, WriteNumbers,
};
use crate::id::StorageKey;
use crate::labels::Labels;
use crate::storage::{Map, Storage};

/// Values inserted between two flushes: the engine then writes its pages about once.
const FLUSH_VALUES: usize = 64;
/// Values that may wait to be written: about two flushes.
const QUEUED_WRITES: usize = 2 * FLUSH_VALUES;
/// Events decoded at a time.
const DECODED_AHEAD: u32 = 1_024;
/// A larger buffer is not kept: what one large event needs stands in memory often enough.
const MAX_KEPT_BYTES: usize = 1 << 20;
/// Removals in one batch.
const REMOVED_AT_ONCE: usize = 500;

/// What the drain keeps from pass to pass.
#[derive(Debug)]
pub(crate) struct Writer {
    pub(super) context: PackContext,
    pub(super) scratch: Scratch,
    /// What is still to be removed.
    pub(super) removals: Removals,
    pub(super) line: Vec<u8>,
    pub(super) events: Vec<Event>,
}

impl Writer {
    /// The next write number.
    pub(crate) fn number(&mut self) -> WriteNumber {
        self.context.next_write_number()
    }

    pub(crate) fn new(open_count: u32, removals: Removals) -> Self {
        let mut numbers = WriteNumbers::new(open_count);
        // The first one is that of the open count itself.
        numbers.next();
        Self {
            context: PackContext::new(numbers),
            scratch: Scratch::default(),
            removals,
            line: Vec::new(),
            events: Vec::new(),
        }
    }
}

/// A pass under way.
pub(crate) struct Pass<'a> {
    core: &'a Core,
    writer: &'a mut Writer,
    through: u64,
    jobs: Vec<Job<'a>>,
    history: History<'a>,
    /// What is kept of sessions that were deleted, and leave something.
    deleted: Vec<(StorageKey, u64)>,
}

/// What a pass has stored.
pub(crate) struct Done {
    pub(crate) sessions: Vec<(Arc<SessionState>, Stored)>,
    /// How many events were moved into blocks.
    pub(crate) events: u64,
    /// The write number of the record that says so.
    pub(crate) mark: WriteNumber,
}

/// What a pass does with one session.
struct Job<'a> {
    session: &'a Arc<SessionState>,
    runs: Vec<TailRun>,
    before: Stored,
    /// The commit of its creation, when its header is not stored yet.
    created: Option<u64>,
    /// Whether it was hidden, and whether the pass shows it.
    hidden: Option<Visible>,
    /// Its labels, when storage has others.
    labels: Option<Arc<Labels>>,
    /// Of a session that was deleted: how many of its first events living forks need.
    kept: Option<u64>,
    after: Option<Summary>,
    prefix_hash: Hash,
}

impl<'a> Pass<'a> {
    /// Takes from `sessions` what happened up to the commit `through`.
    pub(crate) fn new(
        core: &'a Core,
        writer: &'a mut Writer,
        through: u64,
        sessions: &'a [Arc<SessionState>],
    ) -> Result<Self> {
        let mut jobs: Vec<_> = sessions.iter().map(|session| Job::new(session, through)).collect();
        // A parent was created before its forks, so its hashes are known when they are wanted.
        jobs.sort_by_key(|job| job.created.unwrap_or(0));
        let deleted = deleted(core, &mut jobs)?;
        let mut history = History::new(core);
        for job in jobs.iter().filter(|job| job.created.is_some() && !job.leaves_nothing()) {
            history.expect(job.session)?;
        }
        Ok(Self { core, writer, through, jobs, history, deleted })
    }

    /// Step 1: blocks and parts, durable when it returns. One thread hashes and packs while this one writes: each has
    /// about half of the work.
    pub(crate) fn blocks(&mut self) -> Result<()> {
        let storage = Arc::clone(&self.core.storage);
        let (sender, writes) = sync_channel(QUEUED_WRITES);
        std::thread::scope(|scope| {
            let packing = std::thread::Builder::new()
                .name("sessionlog-pack".to_owned())
                .spawn_scoped(scope, || self.pack(&Writes(sender)))
                .map_err(|source| Error::Io {
                    action: "start a thread for",
                    path: "packing".into(),
                    source,
                })?;
            let written = write(storage.as_ref(), writes);
            let packed = packing.join().unwrap_or_else(|_| Err(Error::Storage("packing panicked".into())));
            // When writing fails, packing stops: for want of a reader.
            written.and(packed)
        })?;
        storage.flush()
    }

    fn pack(&mut self, writes: &Writes) -> Result<()> {
        let mut jobs = std::mem::take(&mut self.jobs);
        for job in &mut jobs {
            self.session(job, writes)?;
        }
        self.jobs = jobs;
        Ok(())
    }

    fn session(&mut self, job: &mut Job<'_>, writes: &Writes) -> Result<()> {
        let key = job.session.key();
        if job.leaves_nothing() {
            return self.remove_leftovers(key, job.before.len, writes);
        }
        if job.created.is_some() {
            job.prefix_hash = self.history.prefix_hash(job.session)?;
            let prefix_len = job.session.header.prefix_len();
            self.history.note(job.session, prefix_len, job.prefix_hash);
        }
        let mut hash = job.before.hash.unwrap_or(job.prefix_hash);
        let mut after = Summary { len: job.before.len, updated: job.before.updated, hash };
        let awaited = self.history.awaited(job.session);
        // Of a deleted session what its forks need goes into blocks; hashes are wanted at their prefixes.
        let end = job.kept.unwrap_or(u64::MAX);
        let hashed_end = awaited.last().map_or(end, |last| end.max(*last));
        if !job.runs.is_empty() && hashed_end > after.len {
            self.remove_leftovers(key, after.len, writes)?;
            let mut packer = self.packer(job, hash);
            for run in job.runs.iter().take_while(|run| run.run.first_seq < hashed_end) {
                let view = run.run.view();
                let mut skip = 0;
                while skip < view.count {
                    let take = DECODED_AHEAD.min(view.count - skip);
                    let Writer { context, line, events, .. } = &mut *self.writer;
                    events.clear();
                    view.decode(skip, take, Sections::All, events).map_err(|error| run_error(job, error))?;
                    for event in events.iter().take_while(|event| event.seq.get() < hashed_end) {
                        hash.begin(line);
                        write_line(event.seq, &event.parts(), line);
                        hash = Hash::after(line);
                        if line.capacity() > MAX_KEPT_BYTES {
                            *line = Vec::new();
                        }
                        let len = event.seq.get() + 1;
                        if len <= end {
                            packer.push(&event.parts(), hash, context, &mut |key, value| {
                                writes.send(Write::Insert(key, value))
                            })?;
                            after = Summary { len, updated: event.timestamp, hash };
                        }
                        if awaited.contains(&len) {
                            self.history.note(job.session, len, hash);
                        }
                    }
                    skip += take;
                }
            }
            self.writer.events.clear();
            packer
                .finish(&mut self.writer.context, &mut |key, value| writes.send(Write::Insert(key, value)))?;
        }
        job.after = Some(after);
        Ok(())
    }

    /// Removes what a pass that did not finish left behind the session's end.
    fn remove_leftovers(&self, key: StorageKey, len: u64, writes: &Writes) -> Result<()> {
        let from = format::block_key(key, len);
        let to = format::part_key(key, u64::MAX, u32::MAX);
        let mut found =
            self.core.storage.range(Map::Events, Bound::Included(&from), Bound::Included(&to)).peekable();
        while found.peek().is_some() {
            let batch: Result<Vec<_>> =
                found.by_ref().take(REMOVED_AT_ONCE).map(|entry| entry.map(|(key, _)| (key, None))).collect();
            writes.send(Write::Remove(batch?))?;
        }
        Ok(())
    }

    /// Continues the session's last block. Where that cannot be read it is left as it is (reads of it say so) and a new
    /// one begins: damage in one session never stops the drain.
    fn packer(&mut self, job: &Job<'_>, hash: Hash) -> Packer {
        let key = job.session.key();
        let len = job.before.len;
        let fresh = Packer::new(key, len);
        if len == job.session.header.prefix_len() {
            return fresh;
        }
        let Some(Ok((found, value))) = last_block(self.core.storage.as_ref(), key, len) else { return fresh };
        let Some(at) = format::parse_event_key(&found).filter(|at| at.part.is_none()) else { return fresh };
        let Ok(view) = format::open_block(key, at.seq, &value) else { return fresh };
        if view.header().end() < len || at.seq < job.session.header.prefix_len() {
            return fresh;
        }
        let keep = u32::try_from(len - at.seq).unwrap_or(u32::MAX);
        match Packer::resume(&view, keep, hash, &mut self.writer.scratch) {
            Ok(Some(packer)) => packer,
            Ok(None) | Err(_) => fresh,
        }
    }

    /// Step 2: everything else, in one batch with the mark; durable when it returns. Returns what is stored now.
    pub(crate) fn records(mut self) -> Result<Done> {
        let mut changes = Vec::new();
        let mut done = Vec::new();
        let mut events = 0;
        for job in std::mem::take(&mut self.jobs) {
            let stored = match job.after {
                Some(after) => {
                    events += after.len - job.before.len;
                    self.job_records(&job, after, &mut changes);
                    Stored { len: after.len, updated: after.updated, hash: Some(after.hash) }
                }
                None => job.before,
            };
            done.push((Arc::clone(job.session), stored));
        }
        let removals = self.tombstones(&mut changes);
        let mark = self.number();
        let drained = format::encode_drained(Drained { through: self.through }, mark);
        changes.push((format::DRAINED_KEY.to_vec(), Some(drained)));
        self.core.storage.apply(Map::Sessions, &changes)?;
        self.core.storage.flush()?;
        self.writer.removals.add(removals);
        Ok(Done { sessions: done, events, mark })
    }

    /// An id can be another session's by the end of the same pass: jobs come in the order of creation, so that its
    /// removal comes first.
    fn job_records(&mut self, job: &Job<'_>, after: Summary, changes: &mut Vec<(Vec<u8>, Option<Vec<u8>>)>) {
        let new = &job.session.header;
        let key = new.key;
        let is_new = job.created.is_some();
        if job.hidden == Some(Visible(false)) {
            let header = SessionHeader::new(new.clone(), job.prefix_hash);
            let value = format::encode_hidden(&header, self.number());
            changes.push((format::hidden_key(key).to_vec(), Some(value)));
            let summary = format::encode_summary(key, &after, self.number());
            changes.push((format::summary_key(key).to_vec(), Some(summary)));
            return;
        }
        if job.hidden.is_some() {
            changes.push((format::hidden_key(key).to_vec(), None));
        }
        if is_new {
            let header = SessionHeader::new(new.clone(), job.prefix_hash);
            changes.push((
                format::header_key(key).to_vec(),
                Some(format::encode_header(&header, self.number())),
            ));
            if let Some((parent, prefix_len)) = new.parent {
                let edge = format::encode_edge(parent, prefix_len, key, self.number());
                changes.push((format::edge_key(parent, prefix_len, key).to_vec(), Some(edge)));
            }
        }
        let summary = format::encode_summary(key, &after, self.number());
        changes.push((format::summary_key(key).to_vec(), Some(summary)));
        let is_listed = job.kept.is_none();
        if is_new && is_listed {
            changes.push((format::id_key(&new.id), Some(format::encode_id(&new.id, key, self.number()))));
        } else if !is_new && !is_listed {
            changes.push((format::id_key(&new.id), None));
            changes.push((format::labels_key(key).to_vec(), None));
        }
        if let Some(labels) = job.labels.as_ref().filter(|_| is_listed) {
            let value = (!labels.is_empty()).then(|| format::encode_labels(key, labels, self.number()));
            changes.push((format::labels_key(key).to_vec(), value));
        }
        let moved = job.before.updated != after.updated;
        if !is_new && (moved || !is_listed) {
            changes.push((format::order_key(job.before.updated, key).to_vec(), None));
        }
        if is_listed && (moved || is_new) {
            let order = format::encode_order(after.updated, key, self.number());
            changes.push((format::order_key(after.updated, key).to_vec(), Some(order)));
        }
    }

    /// The tombstones of sessions that were deleted, and of ancestors that were before and of which less is needed now.
    /// Returns which sessions they are: with the tombstone durable their removal can begin.
    fn tombstones(&mut self, changes: &mut Vec<(Vec<u8>, Option<Vec<u8>>)>) -> Vec<StorageKey> {
        let deleted = std::mem::take(&mut self.deleted);
        for (key, kept) in &deleted {
            let tombstone = Tombstone { kept: *kept, pending: true };
            let value = format::encode_tombstone(*key, tombstone, self.number());
            changes.push((format::tombstone_key(*key).to_vec(), Some(value)));
        }
        deleted.into_iter().map(|(key, _)| key).collect()
    }

    fn number(&mut self) -> WriteNumber {
        self.writer.number()
    }
}

impl<'a> Job<'a> {
    fn new(session: &'a Arc<SessionState>, through: u64) -> Self {
        let tail = session.lock();
        let count = tail.runs.partition_point(|run| run.commit <= through);
        let created = tail.created.filter(|_| !tail.header_stored);
        let deleted = tail.deleted.is_some_and(|deleted| deleted <= through);
        Self {
            session,
            runs: tail.runs.iter().take(count).cloned().collect(),
            before: tail.stored,
            created,
            hidden: tail.hidden.map(|_| Visible(tail.visible_since().is_some_and(|since| since <= through))),
            labels: tail.labels.changed.map(|_| Arc::clone(&tail.labels.now)),
            kept: deleted.then_some(0),
            after: None,
            prefix_hash: Hash::START,
        }
    }

    fn parent(&self) -> Option<(StorageKey, u64)> {
        self.session.header.parent
    }

    /// Whether it came and went since the last pass, and no fork needs anything of it.
    fn leaves_nothing(&self) -> bool {
        // What a pass stored while it was hidden goes as that of any other.
        self.created.is_some() && self.kept == Some(0) && self.hidden.is_none()
    }
}

/// Finds what living forks need of the sessions that a pass deletes. Returns what is kept of these and of ancestors that
/// were deleted before and keep less now, but for those of which storage knows nothing.
fn deleted(core: &Core, jobs: &mut [Job<'_>]) -> Result<Vec<(StorageKey, u64)>> {
    let deleted: Vec<_> = jobs
        .iter()
        .filter(|job| job.kept.is_some())
        .map(|job| (job.session.key(), job.parent().map(|(parent, _)| parent)))
        .collect();
    if deleted.is_empty() {
        return Ok(Vec::new());
    }
    let mut forks = Forks::new(core.storage.as_ref());
    // One that is hidden now will not be published when its parent goes.
    let stays = |job: &&Job<'_>| job.created.is_some() && job.hidden != Some(Visible(false));
    for job in jobs.iter().filter(stays) {
        if let Some((parent, prefix_len)) = job.parent() {
            forks.add(parent, prefix_len, job.session.key());
        }
    }
    forks.delete(&deleted, |key| {
        let session = core.catalog.by_key(key, core.storage.as_ref())?;
        Ok(session.and_then(|session| session.header.parent).map(|(parent, _)| parent))
    })?;
    let mut kept = forks.into_deleted();
    for job in jobs.iter_mut().filter(|job| job.kept.is_some()) {
        let key = job.session.key();
        job.kept = Some(kept.get(&key).copied().unwrap_or(0));
        if job.leaves_nothing() {
            kept.remove(&key);
        }
    }
    Ok(kept.into_iter().collect())
}

/// Whether a session that was hidden is one like any other after a pass.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Visible(bool);

/// A change of the map of blocks.
enum Write {
    Insert(Vec<u8>, Vec<u8>),
    Remove(Vec<(Vec<u8>, Option<Vec<u8>>)>),
}

/// The way from packing to writing.
struct Writes(SyncSender<Write>);

impl Writes {
    fn send(&self, write: Write) -> Result<()> {
        // Whoever writes has stopped with an error of its own, and that one counts.
        self.0.send(write).map_err(|_| Error::Closed)
    }
}

fn write(storage: &dyn Storage, writes: Receiver<Write>) -> Result<()> {
    let mut unflushed = 0;
    for write in writes {
        match write {
            Write::Insert(key, value) => storage.insert(Map::Events, &key, &value)?,
            Write::Remove(changes) => storage.apply(Map::Events, &changes)?,
        }
        unflushed += 1;
        if unflushed >= FLUSH_VALUES {
            storage.flush()?;
            unflushed = 0;
        }
    }
    Ok(())
}

fn run_error(job: &Job<'_>, error: format::FormatError) -> Error {
    error.at(job.session.place(job.before.len))
}
