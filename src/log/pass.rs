//! One pass of the drain: what goes into blocks and records, and in which order it is computed.

use std::collections::{BTreeSet, HashMap};
use std::ops::Bound;
use std::sync::Arc;

use super::core::Core;
use super::tail::{SessionState, Stored, TailRun};
use crate::error::{Corruption, Error, Result};
use crate::event::{Event, write_line};
use crate::format::{
    self, Drained, Hash, PackContext, Packer, Scratch, Sections, SessionHeader, Summary, WriteNumbers,
};
use crate::id::StorageKey;
use crate::storage::{Map, Storage};

/// Values inserted between two flushes: the engine then writes its pages about once.
const FLUSH_VALUES: usize = 64;
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
        Self {
            context: PackContext::new(WriteNumbers::new(open_count)),
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
    /// Running hashes inside sessions of this pass that their forks in this pass begin with.
    points: HashMap<StorageKey, BTreeSet<u64>>,
    hashes: HashMap<(StorageKey, u64), Hash>,
    unflushed: usize,
}

/// What a pass does with one session.
struct Job<'a> {
    session: &'a Arc<SessionState>,
    runs: Vec<TailRun>,
    before: Stored,
    /// The commit of its creation, when its header is not stored yet.
    created: Option<u64>,
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
        let mut pass = Self {
            core,
            writer,
            through,
            jobs,
            points: HashMap::new(),
            hashes: HashMap::new(),
            unflushed: 0,
        };
        pass.find_points()?;
        Ok(pass)
    }

    /// Notes which hashes inside undrained events forks will want.
    fn find_points(&mut self) -> Result<()> {
        for job in self.jobs.iter().filter(|job| job.created.is_some()) {
            match self.owner(job.session) {
                Ok(Some((owner, at))) if at > owner.header.prefix_len() => {
                    self.points.entry(owner.key()).or_default().insert(at);
                }
                // A damaged parent is met again, and dealt with, where the hash is wanted.
                Ok(_) | Err(Error::Corrupt { .. } | Error::UnsupportedFormat { .. }) => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    /// The ancestor in whose own events, or at whose own beginning, a fork's prefix ends; and the prefix length. `None`
    /// where no event is shared.
    fn owner(&self, fork: &SessionState) -> Result<Option<(Arc<SessionState>, u64)>> {
        let Some((mut key, at)) = fork.header.parent.filter(|(_, at)| *at > 0) else { return Ok(None) };
        loop {
            let Some(session) = self.core.catalog.by_key(key, self.core.storage.as_ref())? else {
                return Err(fork.corrupt(at - 1, Corruption::MissingParent { parent: key.to_string() }));
            };
            match session.header.parent {
                Some((parent, prefix_len)) if at < prefix_len => key = parent,
                _ => return Ok(Some((session, at))),
            }
        }
    }

    /// Step 1: blocks and parts, durable when it returns.
    pub(crate) fn blocks(&mut self) -> Result<()> {
        let mut jobs = std::mem::take(&mut self.jobs);
        for job in &mut jobs {
            self.session(job)?;
        }
        self.jobs = jobs;
        self.core.storage.flush()
    }

    fn session(&mut self, job: &mut Job<'_>) -> Result<()> {
        let key = job.session.key();
        if job.created.is_some() {
            job.prefix_hash = self.prefix_hash(job.session)?;
            self.hashes.insert((key, job.before.len), job.prefix_hash);
        }
        let mut hash = job.before.hash.unwrap_or(job.prefix_hash);
        let mut updated = job.before.updated;
        let mut next = job.before.len;
        if !job.runs.is_empty() {
            self.remove_leftovers(key, next)?;
            let mut packer = self.packer(job, hash);
            let points = self.points.remove(&key).unwrap_or_default();
            let mut values = Vec::new();
            for run in &job.runs {
                let view = run.run.view();
                let mut skip = 0;
                while skip < view.count {
                    let take = DECODED_AHEAD.min(view.count - skip);
                    let Writer { context, line, events, .. } = &mut *self.writer;
                    events.clear();
                    view.decode(skip, take, Sections::All, events).map_err(|error| run_error(job, error))?;
                    for event in events.iter() {
                        line.clear();
                        write_line(event.seq, &event.parts(), line);
                        hash = hash.next(line);
                        packer.push(&event.parts(), hash, context, &mut |key, value| {
                            values.push((key, value));
                            Ok::<_, Error>(())
                        })?;
                        next = event.seq.get() + 1;
                        updated = event.timestamp;
                        if points.contains(&next) {
                            self.hashes.insert((key, next), hash);
                        }
                    }
                    skip += take;
                    self.insert(&mut values)?;
                }
            }
            packer.finish(&mut self.writer.context, &mut |key, value| {
                values.push((key, value));
                Ok::<_, Error>(())
            })?;
            self.insert(&mut values)?;
        }
        job.after = Some(Summary { len: next, updated, hash });
        Ok(())
    }

    fn insert(&mut self, values: &mut Vec<(Vec<u8>, Vec<u8>)>) -> Result<()> {
        for (key, value) in values.drain(..) {
            self.core.storage.insert(Map::Events, &key, &value)?;
            self.unflushed += 1;
            if self.unflushed >= FLUSH_VALUES {
                self.core.storage.flush()?;
                self.unflushed = 0;
            }
        }
        Ok(())
    }

    /// Removes what a pass that did not finish left behind the session's end.
    fn remove_leftovers(&self, key: StorageKey, len: u64) -> Result<()> {
        let from = format::block_key(key, len);
        let to = format::part_key(key, u64::MAX, u32::MAX);
        let mut found =
            self.core.storage.range(Map::Events, Bound::Included(&from), Bound::Included(&to)).peekable();
        while found.peek().is_some() {
            let batch: Result<Vec<_>> =
                found.by_ref().take(REMOVED_AT_ONCE).map(|entry| entry.map(|(key, _)| (key, None))).collect();
            self.core.storage.apply(Map::Events, &batch?)?;
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

    /// The running hash that a session begins with.
    fn prefix_hash(&mut self, session: &SessionState) -> Result<Hash> {
        let hash = match self.owner(session) {
            Ok(None) => Ok(Hash::START),
            Ok(Some((owner, at))) => match self.hashes.get(&(owner.key(), at)) {
                Some(hash) => Ok(*hash),
                None => self.stored_hash(&owner, at),
            },
            Err(error) => Err(error),
        };
        match hash {
            Ok(hash) => Ok(hash),
            // The parent is damaged: its reads say so, and a hash that is nobody's lets a check say it, too.
            Err(Error::Corrupt { .. } | Error::UnsupportedFormat { .. }) => Ok(Hash::UNKNOWN),
            Err(error) => Err(error),
        }
    }

    /// The running hash behind the first `at` events, which `owner` holds the last of in its blocks.
    fn stored_hash(&mut self, owner: &SessionState, at: u64) -> Result<Hash> {
        let stored = owner.lock().stored;
        if let Some(hash) = stored.hash.filter(|_| stored.len == at) {
            return Ok(hash);
        }
        let storage = self.core.storage.as_ref();
        let key = owner.key();
        if at == owner.header.prefix_len() {
            return stored_prefix_hash(storage, owner);
        }
        let missing = || owner.corrupt(at - 1, Corruption::Gap { expected: at - 1, found: None });
        let (found, value) = last_block(storage, key, at).ok_or_else(missing)??;
        let first = format::parse_event_key(&found).map(|at| at.seq).ok_or_else(missing)?;
        let view = format::open_block(key, first, &value).map_err(|e| e.at(owner.place(first)))?;
        if view.header().end() == at {
            return Ok(view.header().hash_after);
        }
        // Inside a block: from the hash before it on.
        let mut hash = if first == owner.header.prefix_len() {
            stored_prefix_hash(storage, owner)?
        } else {
            let (found, value) = last_block(storage, key, first).ok_or_else(missing)??;
            let first = format::parse_event_key(&found).map(|at| at.seq).ok_or_else(missing)?;
            let before = format::open_block(key, first, &value).map_err(|e| e.at(owner.place(first)))?;
            before.header().hash_after
        };
        let Writer { scratch, line, events, .. } = &mut *self.writer;
        let take = u32::try_from(at - first).unwrap_or(u32::MAX);
        events.clear();
        view.decode(scratch, 0, take, Sections::All, events).map_err(|e| e.at(owner.place(first)))?;
        for event in events.iter() {
            line.clear();
            write_line(event.seq, &event.parts(), line);
            hash = hash.next(line);
        }
        Ok(hash)
    }

    /// Step 2: everything else, in one batch with the mark; durable when it returns. Returns what is stored now.
    pub(crate) fn records(mut self) -> Result<Vec<(&'a Arc<SessionState>, Stored)>> {
        let mut changes = Vec::new();
        let mut done = Vec::new();
        for job in std::mem::take(&mut self.jobs) {
            let Some(after) = job.after else { continue };
            self.job_records(&job, after, &mut changes);
            done.push((
                job.session,
                Stored { len: after.len, updated: after.updated, hash: Some(after.hash) },
            ));
        }
        let mark = format::encode_drained(Drained { through: self.through }, self.number());
        changes.push((format::DRAINED_KEY.to_vec(), Some(mark)));
        self.core.storage.apply(Map::Sessions, &changes)?;
        self.core.storage.flush()?;
        Ok(done)
    }

    fn job_records(&mut self, job: &Job<'_>, after: Summary, changes: &mut Vec<(Vec<u8>, Option<Vec<u8>>)>) {
        let new = &job.session.header;
        let key = new.key;
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
        let summary = format::encode_summary(key, &after, self.number());
        changes.push((format::summary_key(key).to_vec(), Some(summary)));
    }

    fn number(&mut self) -> format::WriteNumber {
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
            after: None,
            prefix_hash: Hash::START,
        }
    }
}

/// The running hash that a session begins with, as its stored header has it.
fn stored_prefix_hash(storage: &dyn Storage, session: &SessionState) -> Result<Hash> {
    let key = session.key();
    let seq = session.header.prefix_len();
    let value = storage.get(Map::Sessions, &format::header_key(key))?;
    let value = value.ok_or_else(|| session.corrupt(seq, Corruption::Missing { what: "the header" }))?;
    Ok(format::decode_header(key, &value).map_err(|error| error.at(session.place(seq)))?.prefix_hash)
}

/// The last block that starts before `end`; a part when a large event's head is missing.
fn last_block(storage: &dyn Storage, key: StorageKey, end: u64) -> Option<Result<crate::storage::Entry>> {
    let lowest = format::block_key(key, 0);
    let highest = format::block_key(key, end.saturating_sub(1));
    storage.range_reverse(Map::Events, Bound::Included(&lowest), Bound::Included(&highest)).next()
}

fn run_error(job: &Job<'_>, error: format::FormatError) -> Error {
    error.at(job.session.place(job.before.len))
}
