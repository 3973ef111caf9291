//! A session in memory: what is fixed about it, and its tail: accepted events that are not in blocks yet.
//!
//! Nothing here is stored. What readers may see follows from which runs were published, and from which commits are
//! durable once the store has failed.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, OnceLock, PoisonError};
use std::task::Waker;
use std::time::Duration;

use super::hidden::Hidden;
use crate::error::{Corruption, Error, Place, Result};
use crate::format::{self, Hash, NewHeader, Run};
use crate::id::{StorageKey, Timestamp};
use crate::labels::Labels;

/// A session that something in this process uses.
#[derive(Debug)]
pub(crate) struct SessionState {
    pub(crate) header: NewHeader,
    /// Where a repair has ended it: it gets no more events.
    pub(crate) ended: OnceLock<u64>,
    /// Its parent, once a read has followed it.
    pub(crate) parent: OnceLock<Arc<SessionState>>,
    /// How many handles callers have on it.
    pub(crate) handles: AtomicUsize,
    tail: Mutex<Tail>,
    checkpointed: AtomicU64,
    grown: Condvar,
}

/// Everything of a session that changes.
#[derive(Debug)]
pub(crate) struct Tail {
    /// The commit that created it, when the frame is published; 0 for one that was read from storage.
    pub(crate) created: Option<u64>,
    /// The ticket of its deletion, while that is in the commit queue. Nothing of the session is queued behind it.
    pub(crate) deleting: Option<u64>,
    /// The commit that deleted it, when the frame is published; 0 for one that storage says is deleted.
    pub(crate) deleted: Option<u64>,
    /// Whether its header is in storage.
    pub(crate) header_stored: bool,
    /// Set while storage does not have it as one that everybody sees.
    pub(crate) hidden: Option<Hidden>,
    pub(crate) labels: TailLabels,
    /// What blocks hold.
    pub(crate) stored: Stored,
    /// Published runs: readers may see them. Ascending and contiguous from `stored.len`.
    pub(crate) runs: VecDeque<TailRun>,
    /// Runs in the commit queue or in a frame that is being written. Contiguous from the last published one.
    pub(crate) in_flight: VecDeque<TailRun>,
    /// Whether the drain's list holds it.
    pub(crate) listed: bool,
    followers: usize,
    /// Of followers that do not block.
    wakers: Vec<Waker>,
}

/// Title and labels of a session.
#[derive(Debug, Default)]
pub(crate) struct TailLabels {
    /// What readers see: durable.
    pub(crate) now: Arc<Labels>,
    /// The last change in the commit queue or in a frame that is being written.
    pub(crate) queued: Option<Arc<Labels>>,
    /// The commit of a change that is not in storage yet.
    pub(crate) changed: Option<u64>,
}

/// A session as its blocks and summary have it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Stored {
    pub(crate) len: u64,
    pub(crate) updated: Timestamp,
    /// The running hash there; `None` for a fork whose header is not stored yet.
    pub(crate) hash: Option<Hash>,
}

#[derive(Clone, Debug)]
pub(crate) struct TailRun {
    pub(crate) run: Arc<Run>,
    /// The frame it stands in; 0 while in flight.
    pub(crate) commit: u64,
    pub(crate) last_timestamp: Timestamp,
    /// The room that it takes.
    pub(crate) cost: u64,
}

/// Which commits count: all published ones, or only the durable ones once the store has failed.
#[derive(Clone, Copy, Debug)]
pub(crate) struct UpTo(pub(crate) u64);

impl SessionState {
    /// A session whose create or fork frame is on its way.
    pub(crate) fn new(header: NewHeader) -> Arc<Self> {
        let len = header.prefix_len();
        let hash = header.parent.is_none().then_some(Hash::START);
        let stored = Stored { len, updated: header.created, hash };
        Self::with(header, stored, None, None)
    }

    /// A session that is on its way, and that nobody sees until it is published.
    pub(crate) fn new_hidden(header: NewHeader) -> Arc<Self> {
        let state = Self::new(header);
        state.lock().hidden = Some(Hidden::default());
        state
    }

    /// A session that storage knows; deleted, when something of it is still there for its forks.
    pub(crate) fn stored(header: NewHeader, stored: Stored, is_deleted: bool) -> Arc<Self> {
        Self::with(header, stored, Some(0), is_deleted.then_some(0))
    }

    /// A session that storage knows as hidden.
    pub(crate) fn stored_hidden(header: NewHeader, stored: Stored) -> Arc<Self> {
        let state = Self::with(header, stored, Some(0), None);
        {
            let mut tail = state.lock();
            tail.header_stored = false;
            tail.hidden = Some(Hidden::default());
        }
        state
    }

    fn with(header: NewHeader, stored: Stored, created: Option<u64>, deleted: Option<u64>) -> Arc<Self> {
        Arc::new(Self {
            header,
            ended: OnceLock::new(),
            parent: OnceLock::new(),
            handles: AtomicUsize::new(0),
            checkpointed: AtomicU64::new(0),
            tail: Mutex::new(Tail {
                created,
                deleting: None,
                deleted,
                header_stored: created.is_some(),
                hidden: None,
                labels: TailLabels::default(),
                stored,
                runs: VecDeque::new(),
                in_flight: VecDeque::new(),
                listed: false,
                followers: 0,
                wakers: Vec::new(),
            }),
            grown: Condvar::new(),
        })
    }

    pub(crate) fn key(&self) -> StorageKey {
        self.header.key
    }

    /// Whether it was deleted, and what is left of it is there for its forks only.
    pub(crate) fn is_deleted(&self) -> bool {
        self.lock().deleted.is_some()
    }

    /// Whether a caller has a handle on it.
    pub(crate) fn is_held(&self) -> bool {
        self.handles.load(Ordering::Acquire) > 0
    }

    /// The error of those who use it all the same.
    pub(crate) fn not_found(&self) -> Error {
        Error::SessionNotFound { session: self.header.id.clone() }
    }

    /// Checks that it was not deleted.
    pub(crate) fn check_exists(&self) -> Result<()> {
        if self.is_deleted() { Err(self.not_found()) } else { Ok(()) }
    }

    /// Where a block of it stands.
    pub(crate) fn place(&self, seq: u64) -> Place {
        let at = format::hex(&format::block_key(self.key(), seq));
        Place::new("block").session(&self.header.id).seqs(seq..seq + 1).at(at)
    }

    pub(crate) fn corrupt(&self, seq: u64, corruption: Corruption) -> Error {
        Error::Corrupt { place: self.place(seq), corruption }
    }

    pub(crate) fn lock(&self) -> MutexGuard<'_, Tail> {
        self.tail.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// How many events the last checkpoint covers that was loaded or left; 0: none is known.
    pub(crate) fn checkpointed(&self) -> u64 {
        self.checkpointed.load(Ordering::Relaxed)
    }

    pub(crate) fn set_checkpointed(&self, len: u64) {
        self.checkpointed.fetch_max(len, Ordering::Relaxed);
    }

    /// Wakes followers, after the lock was given back.
    pub(crate) fn wake(&self) {
        self.grown.notify_all();
        let wakers = std::mem::take(&mut self.lock().wakers);
        wakers.into_iter().for_each(Waker::wake);
    }

    /// Keeps `waker` until something may have changed for one who has seen everything before `seen`. Returns whether it
    /// does: something may have changed already.
    #[cfg(feature = "async")]
    pub(crate) fn wake_beyond(
        &self,
        seen: u64,
        up_to: UpTo,
        waker: &Waker,
        still: impl Fn() -> bool,
    ) -> bool {
        let mut tail = self.lock();
        if tail.visible(up_to) > seen || tail.deleted.is_some() || !still() {
            return false;
        }
        if !tail.wakers.iter().any(|kept| kept.will_wake(waker)) {
            tail.wakers.push(waker.clone());
        }
        true
    }

    /// Waits until something may have changed for one who has seen everything before `seen`.
    pub(crate) fn wait_beyond(&self, seen: u64, up_to: UpTo, limit: Duration, still: impl Fn() -> bool) {
        let mut tail = self.lock();
        if tail.visible(up_to) > seen || tail.deleted.is_some() || !still() {
            return;
        }
        tail.followers += 1;
        let mut tail = self.grown.wait_timeout(tail, limit).unwrap_or_else(PoisonError::into_inner).0;
        tail.followers -= 1;
    }
}

impl Drop for SessionState {
    /// Lets go of a chain of 10,000 parents without 10,000 calls in each other.
    fn drop(&mut self) {
        let mut next = self.parent.take();
        while let Some(parent) = next {
            next = Arc::into_inner(parent).and_then(|mut parent| parent.parent.take());
        }
    }
}

impl Tail {
    /// The commit from which on it is a session for everybody.
    pub(crate) fn visible_since(&self) -> Option<u64> {
        match self.hidden {
            Some(hidden) => hidden.published,
            None => self.created,
        }
    }

    /// Shows it to everybody from `commit` on.
    pub(crate) fn set_published(&mut self, commit: u64, labels: Arc<Labels>) {
        if let Some(hidden) = &mut self.hidden {
            hidden.published = Some(commit);
        }
        if !labels.is_empty() {
            self.set_labels(commit, labels);
        }
    }

    /// Gives it other labels with `commit`.
    pub(crate) fn set_labels(&mut self, commit: u64, labels: Arc<Labels>) {
        if self.labels.queued.as_ref().is_some_and(|queued| Arc::ptr_eq(queued, &labels)) {
            self.labels.queued = None;
        }
        self.labels.now = labels;
        self.labels.changed = Some(commit);
    }

    /// Lets go of published runs that nobody will read. Returns the room that they took.
    pub(crate) fn forget_runs(&mut self) -> u64 {
        self.runs.drain(..).map(|run| run.cost).sum()
    }

    /// The seq that the next event is given.
    pub(crate) fn next(&self) -> u64 {
        self.in_flight.back().or(self.runs.back()).map_or(self.stored.len, |last| last.run.end())
    }

    /// The end of what readers may see.
    pub(crate) fn visible(&self, up_to: UpTo) -> u64 {
        match self.runs.back() {
            Some(last) if last.commit <= up_to.0 => last.run.end(),
            Some(_) => self.end_at(up_to),
            None => self.stored.len,
        }
    }

    /// The end of what a power cut leaves, when all commits up to the given one are durable.
    pub(crate) fn end_at(&self, up_to: UpTo) -> u64 {
        let count = self.runs.partition_point(|run| run.commit <= up_to.0);
        match count.checked_sub(1).and_then(|last| self.runs.get(last)) {
            Some(run) => run.run.end(),
            None => self.stored.len,
        }
    }

    /// The timestamp of the last event that readers may see; of the creation when there is none.
    pub(crate) fn updated(&self, up_to: UpTo) -> Timestamp {
        let count = self.runs.partition_point(|run| run.commit <= up_to.0);
        count
            .checked_sub(1)
            .and_then(|last| self.runs.get(last))
            .map_or(self.stored.updated, |run| run.last_timestamp)
    }

    /// The published run that holds `seq`.
    pub(crate) fn run_at(&self, seq: u64, up_to: UpTo) -> Option<Arc<Run>> {
        let index = self.runs.partition_point(|run| run.run.end() <= seq);
        let found = self.runs.get(index)?;
        (found.run.first_seq <= seq && found.commit <= up_to.0).then(|| Arc::clone(&found.run))
    }

    /// Marks the oldest run in flight as part of `commit`. Returns whether followers wait.
    pub(crate) fn publish(&mut self, commit: u64) -> bool {
        if let Some(mut run) = self.in_flight.pop_front() {
            run.commit = commit;
            self.runs.push_back(run);
        }
        self.followers > 0 || !self.wakers.is_empty()
    }

    /// Takes off what is stored up to the commit `through`. Returns the room that it took.
    pub(crate) fn let_go(&mut self, stored: Stored, through: u64) -> u64 {
        let mut freed = 0;
        while self.runs.front().is_some_and(|run| run.commit <= through) {
            freed += self.runs.pop_front().map_or(0, |run| run.cost);
        }
        self.stored = stored;
        if self.visible_since().is_some_and(|since| since <= through) {
            self.header_stored = true;
            self.hidden = None;
        }
        self.labels.changed = self.labels.changed.filter(|commit| *commit > through);
        let hidden_work = |hidden: Hidden| hidden.published.is_some() || hidden.abandoned.is_some();
        self.listed = !self.runs.is_empty()
            || self.labels.changed.is_some()
            || self.hidden.is_some_and(hidden_work)
            || self.deleted.is_some_and(|deleted| deleted > through);
        freed
    }

    /// Puts it on the drain's list, if it is not there. Returns whether the caller has to add it.
    pub(crate) fn list(&mut self) -> bool {
        !std::mem::replace(&mut self.listed, true)
    }
}
