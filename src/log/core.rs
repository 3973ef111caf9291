//! What the handles of one open store share, and how its parts work together.
//!
//! Locks are taken in this order, and none is held while waiting for another thread's work: catalog, session tail,
//! commit queue; journal writer, sync, position.

use std::collections::HashSet;
use std::ops::Range;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Duration;

use super::catalog::Catalog;
use super::checkpoint::Checkpoints;
use super::commit::{Committer, Request, Work};
use super::drain::Drain;
use super::health::Health;
use super::journal::{Journal, WriteError};
use super::keeper::Keeper;
use super::lineage::{Segment, segments};
use super::meter::{MeteredStorage, Published};
use super::observe::Observers;
use super::room::Room;
use super::tail::{SessionState, Stored, UpTo};
use crate::error::{Error, Result};
use crate::id::SessionId;
use crate::options::{DurabilityRule, RESERVE_BYTES, StoreOptions};
use crate::spans::span;
use crate::storage::{Reserve, Storage};

#[derive(Debug)]
pub(crate) struct Core {
    pub(crate) health: Health,
    pub(crate) storage: Arc<dyn Storage>,
    /// The same, for what was written to it.
    pub(crate) metered: Arc<MeteredStorage>,
    pub(crate) published: Published,
    pub(crate) catalog: Catalog,
    pub(crate) journal: Journal,
    pub(crate) committer: Committer,
    pub(crate) room: Room,
    pub(crate) drain: Drain,
    pub(crate) checkpoints: Checkpoints,
    pub(crate) keeper: Keeper,
    pub(crate) observers: Observers,
    #[cfg(feature = "async")]
    pub(crate) later: super::later::Later,
    /// Held while a backup copies blocks: nothing of them is removed meanwhile.
    pub(crate) removals: Mutex<()>,
    /// Sessions with something that is not in storage; this is what keeps them in memory.
    pub(crate) undrained: Mutex<Vec<Arc<SessionState>>>,
    /// The folder with the reserve, where there is one.
    pub(crate) reserve: OnceLock<PathBuf>,
    pub(crate) durability: DurabilityRule,
    pub(crate) max_event_bytes: u64,
    pub(crate) watchdog: Duration,
    pub(crate) sync_window: Duration,
    pub(crate) drain_age: Duration,
    pub(crate) checkpoint_events: u64,
    pub(crate) cache_bytes: u64,
}

impl Core {
    pub(crate) fn new(options: &StoreOptions, storage: Arc<dyn Storage>, journal: Journal) -> Arc<Self> {
        let metered = Arc::new(MeteredStorage::new(storage));
        Arc::new(Self {
            health: Health::default(),
            storage: Arc::<MeteredStorage>::clone(&metered),
            metered,
            published: Published::default(),
            catalog: Catalog::default(),
            journal,
            committer: Committer::default(),
            room: Room::new(options.tail_bytes),
            drain: Drain::default(),
            checkpoints: Checkpoints::default(),
            keeper: Keeper::default(),
            observers: Observers::default(),
            #[cfg(feature = "async")]
            later: super::later::Later::default(),
            removals: Mutex::default(),
            undrained: Mutex::default(),
            reserve: OnceLock::new(),
            durability: options.durability,
            max_event_bytes: options.max_event_bytes,
            watchdog: options.watchdog,
            sync_window: options.sync_window,
            drain_age: options.drain_age,
            checkpoint_events: options.checkpoint_events,
            cache_bytes: options.cache_bytes,
        })
    }

    /// Which commits readers may see.
    pub(crate) fn up_to(&self) -> UpTo {
        UpTo(if self.health.is_failed() { self.journal.durable() } else { u64::MAX })
    }

    /// The session with this id that everybody sees.
    pub(crate) fn session(&self, id: &SessionId) -> Result<Arc<SessionState>> {
        let state = self.catalog.by_id(id, self.storage.as_ref())?;
        state
            .filter(|state| state.lock().visible_since().is_some())
            .ok_or_else(|| Error::SessionNotFound { session: id.clone() })
    }

    /// The end of what readers of `session` may see.
    pub(crate) fn visible(&self, session: &SessionState) -> u64 {
        session.lock().visible(self.up_to())
    }

    /// Makes the store refuse writes, and wakes everyone who waits for one.
    pub(crate) fn fail(&self, error: Error) -> Error {
        let error = self.health.fail(error);
        self.wake_all();
        error
    }

    /// Wakes everyone who waits, to look at the store's health.
    pub(crate) fn wake_all(&self) {
        self.committer.wake();
        self.room.wake();
        self.drain.wake();
        self.keeper.wake();
        for session in self.catalog.in_use() {
            drop(session.lock());
            session.wake();
        }
    }

    /// Does what ends a wait for room in the tail: a sync and a drain, unless that is stuck.
    pub(crate) fn make_room(&self) {
        self.drain.ask();
        self.drain.watch(self);
    }

    /// Gives the reserve's space to the disk, for a call that makes room. Returns whether there was one.
    pub(crate) fn release_reserve(&self) -> bool {
        let released = self.reserve.get().is_some_and(|folder| Reserve::release(folder).unwrap_or(false));
        if released {
            self.journal.withhold(RESERVE_BYTES);
        }
        released
    }

    /// Writes a group as one frame, syncs it when one of its requests says so, and publishes it. Called by the leader.
    pub(crate) fn commit_group(&self, group: &[Request]) -> Result<(), WriteError> {
        let _span = span!("commit", requests = group.len());
        let commit = self.journal.write(group, &self.health)?;
        if group.iter().any(|request| request.sync) {
            self.journal.sync(&self.health).map_err(WriteError::Failed)?;
        }
        // Too late: the watchdog has told everyone that this did not happen, and readers see the durable end.
        if self.health.is_failed() {
            return Err(WriteError::Failed(self.health.failure()));
        }
        for request in group {
            self.publish(request, commit);
        }
        self.published.record(group);
        self.journal.set_published(commit);
        self.keeper.poke(self);
        self.drain.poke(self);
        for request in group {
            if let Work::Run { session, run } = &request.work
                && session.lock().visible_since().is_some()
            {
                self.observers.tell(session, run);
            }
        }
        Ok(())
    }

    fn publish(&self, request: &Request, commit: u64) {
        let session = match &request.work {
            Work::Run { session, .. }
            | Work::Create { session }
            | Work::Begin { session }
            | Work::Publish { session, .. }
            | Work::Label { session, .. }
            | Work::Delete { session } => session,
            Work::Seal => return,
        };
        let (list, wake) = {
            let mut tail = session.lock();
            let wake = match &request.work {
                Work::Run { .. } => tail.publish(commit),
                Work::Publish { labels, .. } => {
                    tail.set_published(commit, Arc::clone(labels));
                    false
                }
                Work::Label { labels, .. } => {
                    tail.set_labels(commit, Arc::clone(labels));
                    false
                }
                Work::Delete { .. } => {
                    tail.deleting = None;
                    tail.deleted = Some(commit);
                    true
                }
                Work::Create { .. } | Work::Begin { .. } | Work::Seal => {
                    tail.created = Some(commit);
                    false
                }
            };
            (tail.list(), wake)
        };
        if list {
            self.add_undrained(Arc::clone(session));
        }
        if wake {
            session.wake();
        }
    }

    pub(crate) fn add_undrained(&self, session: Arc<SessionState>) {
        self.undrained.lock().unwrap_or_else(PoisonError::into_inner).push(session);
    }

    /// Forgets a session that is gone.
    pub(crate) fn forget(&self, session: &SessionState) {
        let mut undrained = self.undrained.lock().unwrap_or_else(PoisonError::into_inner);
        undrained.retain(|other| other.key() != session.key());
        drop(undrained);
        self.catalog.lock().remove(session);
    }

    /// Sessions with something that is not in storage.
    pub(crate) fn undrained(&self) -> Vec<Arc<SessionState>> {
        self.undrained.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// The sessions that a pass through the commit `through` may move: not one that was created later.
    pub(crate) fn drainable(&self, through: u64) -> Vec<Arc<SessionState>> {
        let created =
            |session: &Arc<SessionState>| session.lock().created.is_some_and(|created| created <= through);
        self.undrained().into_iter().filter(created).collect()
    }

    /// The commits up to `end` that hold events, with the room that each run takes.
    pub(crate) fn costs(&self, end: u64) -> Vec<(u64, u64)> {
        let mut costs = Vec::new();
        for session in self.drainable(end) {
            let tail = session.lock();
            costs.extend(tail.runs.iter().filter(|run| run.commit <= end).map(|run| (run.commit, run.cost)));
        }
        costs
    }

    /// Whether a deletion waits for a pass.
    pub(crate) fn has_deletions(&self) -> bool {
        self.undrained().iter().any(|session| session.is_deleted())
    }

    /// The room of what a pass through `end` has to move: nothing of a deleted session, unless that has new forks.
    pub(crate) fn needed_room(&self, end: u64) -> u64 {
        let sessions = self.drainable(end);
        let is_new = |session: &&Arc<SessionState>| !session.lock().header_stored;
        let parent = |session: &Arc<SessionState>| session.header.parent.map(|(parent, _)| parent);
        let parents: HashSet<_> = sessions.iter().filter(is_new).filter_map(parent).collect();
        let mut room = 0;
        for session in sessions {
            let tail = session.lock();
            if tail.deleted.is_none_or(|deleted| deleted > end) || parents.contains(&session.key()) {
                room += tail.runs.iter().filter(|run| run.commit <= end).map(|run| run.cost).sum::<u64>();
            }
        }
        room
    }

    /// Lets go of what a pass through `through` has stored. Until then readers and lists find it in the tails.
    pub(crate) fn drained(&self, done: &[(Arc<SessionState>, Stored)], through: u64) {
        let mut freed = 0;
        let mut gone = HashSet::new();
        let mut undrained = self.undrained.lock().unwrap_or_else(PoisonError::into_inner);
        for (session, stored) in done {
            let mut tail = session.lock();
            freed += tail.let_go(*stored, through);
            if !tail.listed {
                gone.insert(session.key());
            }
        }
        // Decided above, under each session's lock: one that an append lists again from now on adds itself, once.
        undrained.retain(|session| !gone.contains(&session.key()));
        drop(undrained);
        self.room.give(freed);
    }

    pub(crate) fn has_undrained(&self) -> bool {
        !self.undrained.lock().unwrap_or_else(PoisonError::into_inner).is_empty()
    }

    /// Where the events of `session` in `range` stand, oldest first.
    pub(crate) fn segments(&self, session: &Arc<SessionState>, range: &Range<u64>) -> Result<Vec<Segment>> {
        segments(session, range, |key| self.catalog.by_key(key, self.storage.as_ref()))
    }
}
