//! One pass of the drain: what goes into blocks and records, and in which order it is computed.

use std::ops::Bound;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};

use super::core::Core;
use super::history::{History, last_block};
use super::tail::{SessionState, Stored, TailRun};
use crate::error::{Error, Result};
use crate::event::{Event, write_line};
use crate::format::{
    self, Drained, Hash, PackContext, Packer, Scratch, Sections, SessionHeader, Summary, WriteNumber,
    WriteNumbers,
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
/// Removals in one batch.
const REMOVED_AT_ONCE: usize = 500;

/// What the drain keeps from pass to pass.
#[derive(Debug)]
pub(crate) struct Writer {
    context: PackContext,
    scratch: Scratch,
    line: Vec<u8>,
    events: Vec<Event>,
}

impl Writer {
    pub(crate) fn new(open_count: u32) -> Self {
        let mut numbers = WriteNumbers::new(open_count);
        // The first one is that of the open count itself.
        numbers.next();
        Self {
            context: PackContext::new(numbers),
            scratch: Scratch::default(),
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
}

/// What a pass has stored.
pub(crate) struct Done {
    pub(crate) sessions: Vec<(Arc<SessionState>, Stored)>,
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
        let mut history = History::new(core);
        for job in jobs.iter().filter(|job| job.created.is_some()) {
            history.expect(job.session)?;
        }
        Ok(Self { core, writer, through, jobs, history })
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
        if job.created.is_some() {
            job.prefix_hash = self.history.prefix_hash(job.session)?;
            let prefix_len = job.session.header.prefix_len();
            self.history.note(job.session, prefix_len, job.prefix_hash);
        }
        let mut hash = job.before.hash.unwrap_or(job.prefix_hash);
        let mut updated = job.before.updated;
        let mut next = job.before.len;
        if !job.runs.is_empty() {
            self.remove_leftovers(key, next, writes)?;
            let mut packer = self.packer(job, hash);
            let awaited = self.history.awaited(job.session);
            for run in &job.runs {
                let view = run.run.view();
                let mut skip = 0;
                while skip < view.count {
                    let take = DECODED_AHEAD.min(view.count - skip);
                    let Writer { context, line, events, .. } = &mut *self.writer;
                    events.clear();
                    view.decode(skip, take, Sections::All, events).map_err(|error| run_error(job, error))?;
                    for event in events.iter() {
                        hash.begin(line);
                        write_line(event.seq, &event.parts(), line);
                        hash = Hash::after(line);
                        packer.push(&event.parts(), hash, context, &mut |key, value| {
                            writes.send(Write::Insert(key, value))
                        })?;
                        next = event.seq.get() + 1;
                        updated = event.timestamp;
                        if awaited.contains(&next) {
                            self.history.note(job.session, next, hash);
                        }
                    }
                    skip += take;
                }
            }
            packer
                .finish(&mut self.writer.context, &mut |key, value| writes.send(Write::Insert(key, value)))?;
        }
        job.after = Some(Summary { len: next, updated, hash });
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
        for job in std::mem::take(&mut self.jobs) {
            let Some(after) = job.after else { continue };
            self.job_records(&job, after, &mut changes);
            done.push((
                Arc::clone(job.session),
                Stored { len: after.len, updated: after.updated, hash: Some(after.hash) },
            ));
        }
        let mark = self.number();
        let drained = format::encode_drained(Drained { through: self.through }, mark);
        changes.push((format::DRAINED_KEY.to_vec(), Some(drained)));
        self.core.storage.apply(Map::Sessions, &changes)?;
        self.core.storage.flush()?;
        Ok(Done { sessions: done, mark })
    }

    fn job_records(&mut self, job: &Job<'_>, after: Summary, changes: &mut Vec<(Vec<u8>, Option<Vec<u8>>)>) {
        let new = &job.session.header;
        let key = new.key;
        let summary = format::encode_summary(key, &after, self.number());
        changes.push((format::summary_key(key).to_vec(), Some(summary)));
        if job.hidden == Some(Visible(false)) {
            let header = SessionHeader::new(new.clone(), job.prefix_hash);
            let value = format::encode_hidden(&header, self.number());
            changes.push((format::hidden_key(key).to_vec(), Some(value)));
            return;
        }
        if job.hidden.is_some() {
            changes.push((format::hidden_key(key).to_vec(), None));
        }
        if let Some(labels) = &job.labels {
            let value = (!labels.is_empty()).then(|| format::encode_labels(key, labels, self.number()));
            changes.push((format::labels_key(key).to_vec(), value));
        }
        if job.created.is_some() {
            let header = SessionHeader::new(new.clone(), job.prefix_hash);
            changes.push((
                format::header_key(key).to_vec(),
                Some(format::encode_header(&header, self.number())),
            ));
            changes.push((format::id_key(&new.id), Some(format::encode_id(&new.id, key, self.number()))));
            if let Some((parent, prefix_len)) = new.parent {
                let edge = format::encode_edge(parent, prefix_len, key, self.number());
                changes.push((format::edge_key(parent, prefix_len, key).to_vec(), Some(edge)));
            }
        } else if job.before.updated != after.updated {
            changes.push((format::order_key(job.before.updated, key).to_vec(), None));
        }
        if job.created.is_some() || job.before.updated != after.updated {
            let order = format::encode_order(after.updated, key, self.number());
            changes.push((format::order_key(after.updated, key).to_vec(), Some(order)));
        }
    }

    fn number(&mut self) -> WriteNumber {
        self.writer.context.next_write_number()
    }
}

impl<'a> Job<'a> {
    fn new(session: &'a Arc<SessionState>, through: u64) -> Self {
        let tail = session.lock();
        let count = tail.runs.partition_point(|run| run.commit <= through);
        let created = tail.created.filter(|_| !tail.header_stored);
        Self {
            session,
            runs: tail.runs.iter().take(count).cloned().collect(),
            before: tail.stored,
            created,
            hidden: tail.hidden.map(|_| Visible(tail.visible_since().is_some_and(|since| since <= through))),
            labels: tail.labels.changed.map(|_| Arc::clone(&tail.labels.now)),
            after: None,
            prefix_hash: Hash::START,
        }
    }
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
