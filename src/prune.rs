//! Deleting old sessions by a policy: planned first, then done as planned.

use std::collections::VecDeque;

use crate::error::{Error, Result};
use crate::id::{SessionId, StorageKey, Timestamp};
use crate::log::core::Core;
use crate::log::delete::{self, Queued};
use crate::log::tail::{SessionState, Tail};
use crate::session::stored_bytes;
use crate::store::Store;

/// Deletions that are queued before the first of them is waited for: they share frames and syncs.
const QUEUED: usize = 256;

/// What a store is to keep; see [`Store::plan_prune`]. What is beyond any of the limits goes. Without a limit nothing
/// does.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Prune {
    updated_before: Option<Timestamp>,
    keep_newest: Option<u64>,
    keep_bytes: Option<u64>,
    open_turns: bool,
}

impl Prune {
    /// No limit.
    pub fn new() -> Self {
        Self::default()
    }

    /// Sessions go whose last event is older than this. (Of one without events its creation counts. An imported session
    /// is as old as its last event says.)
    #[must_use]
    pub fn updated_before(mut self, time: Timestamp) -> Self {
        self.updated_before = Some(time);
        self
    }

    /// Sessions go that stand behind this many in [`Store::list`].
    #[must_use]
    pub fn keep_newest(mut self, sessions: u64) -> Self {
        self.keep_newest = Some(sessions);
        self
    }

    /// Sessions go from the first one on with which those that were updated later take more than this, by
    /// [`Session::stored_bytes`](crate::Session::stored_bytes): also the last one updated, when it alone takes more.
    #[must_use]
    pub fn keep_bytes(mut self, bytes: u64) -> Self {
        self.keep_bytes = Some(bytes);
        self
    }

    /// Sessions whose last turn is open go, too: see [`Protection::OpenTurn`].
    #[must_use]
    pub fn with_open_turns(mut self) -> Self {
        self.open_turns = true;
        self
    }

    /// Whether there is any limit.
    pub fn has_limit(&self) -> bool {
        self.updated_before.is_some() || self.keep_newest.is_some() || self.keep_bytes.is_some()
    }
}

/// Which limit a session is beyond; the first of those that it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum PruneReason {
    /// It was updated before the time.
    Age,
    /// Enough others were updated later.
    Count,
    /// With those that were updated later it takes too much.
    Bytes,
}

/// Why a session stays that is beyond a limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Protection {
    /// Its last turn has not ended: an agent is at work, or one was interrupted and can be resumed.
    OpenTurn,
    /// This process has a [`Session`](crate::Session) handle on it.
    InUse,
    /// It was appended to since the plan was made.
    Changed,
    /// Its end cannot be read. It may be sound: a scan tells.
    Unreadable,
}

/// A session that a plan names.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct PrunedSession {
    /// Its id.
    pub session: SessionId,
    /// The timestamp of its last event.
    pub updated_at: Timestamp,
    /// The number of its events, shared ones included.
    pub len: u64,
    /// What its own events take: see [`Session::stored_bytes`](crate::Session::stored_bytes). What living forks need of
    /// it stays, and goes with the last of them.
    pub bytes: u64,
    /// Why it is named.
    pub reason: PruneReason,
    /// Why it stays all the same.
    pub protection: Option<Protection>,
    key: StorageKey,
}

/// What a prune would do, or has done; the session updated last first.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct PrunePlan {
    /// Sessions beyond a limit: those that go, and those that are protected.
    pub sessions: Vec<PrunedSession>,
    /// How many are within all limits.
    pub within: u64,
}

impl PrunePlan {
    /// The sessions that go, or are gone.
    pub fn going(&self) -> impl Iterator<Item = &PrunedSession> {
        self.sessions.iter().filter(|session| session.protection.is_none())
    }

    /// The sessions that stay although they are beyond a limit.
    pub fn protected(&self) -> impl Iterator<Item = &PrunedSession> {
        self.sessions.iter().filter(|session| session.protection.is_some())
    }
}

impl Store {
    /// Tells which sessions are beyond the limits of `policy`. Nothing is changed, and nothing ever is by itself: a plan is
    /// carried out by [`prune`](Self::prune).
    ///
    /// A session that somebody may be at work with is protected, and stays: see [`Protection`]. It counts as one that is
    /// kept. A parent is no exception: its forks keep all their events, by the rule of [`delete`](Self::delete).
    ///
    /// # Cost
    /// Lists all sessions. Of those that are named, or of all up to there with
    /// [`keep_bytes`](Prune::keep_bytes), the blocks are gone over, and of those that are named the last turn is read.
    /// Memory: the plan.
    /// # Errors
    /// As [`list`](Self::list), and errors of reading.
    /// # Examples
    /// ```
    /// # fn main() -> sessionlog::Result<()> {
    /// use sessionlog::{NewSession, Prune, Store};
    /// let store = Store::in_memory()?;
    /// for _ in 0..5 {
    ///     store.create(NewSession::new())?;
    /// }
    /// let plan = store.plan_prune(&Prune::new().keep_newest(3))?;
    /// assert_eq!((plan.going().count(), store.list()?.count()), (2, 5));
    /// let done = store.prune(&plan)?;
    /// assert_eq!((done.going().count(), store.list()?.count()), (2, 3));
    /// # Ok(()) }
    /// ```
    pub fn plan_prune(&self, policy: &Prune) -> Result<PrunePlan> {
        let core = self.handle().core();
        let mut plan = PrunePlan::default();
        let mut bytes_so_far: u64 = 0;
        let mut sessions = self.list()?;
        while let Some((key, info)) = sessions.next_with_key().transpose()? {
            let before = plan.within + plan.sessions.len() as u64;
            let mut reason = if policy.updated_before.is_some_and(|time| info.updated_at < time) {
                Some(PruneReason::Age)
            } else if policy.keep_newest.is_some_and(|count| before >= count) {
                Some(PruneReason::Count)
            } else {
                None
            };
            let mut bytes = 0;
            if reason.is_some() || policy.keep_bytes.is_some() {
                let Some(state) = core.catalog.by_key(key, core.storage.as_ref())? else { continue };
                bytes = stored_bytes(core, &state)?;
                bytes_so_far = bytes_so_far.saturating_add(bytes);
            }
            let is_too_much = policy.keep_bytes.is_some_and(|limit| bytes_so_far > limit);
            reason = reason.or(is_too_much.then_some(PruneReason::Bytes));
            let Some(reason) = reason else {
                plan.within += 1;
                continue;
            };
            let protection = match self.protection(&info.header.id, key, policy) {
                Err(Error::SessionNotFound { .. }) => continue,
                protection => protection?,
            };
            plan.sessions.push(PrunedSession {
                session: info.header.id,
                updated_at: info.updated_at,
                len: info.len,
                bytes,
                reason,
                protection,
                key,
            });
        }
        Ok(plan)
    }

    /// Deletes the sessions that `plan` names and does not protect, but for those that were appended to since, or that
    /// somebody holds now. Returns the plan as it was carried out.
    ///
    /// # Durability
    /// As [`delete`](Self::delete). When it fails in between, some are deleted: a new plan names the others.
    /// # Cost
    /// One journal frame for some hundred sessions; the removal behind it as for [`delete`](Self::delete).
    /// # Errors
    /// As [`delete`](Self::delete); it works on a full disk, with the store's reserve.
    /// # Examples
    /// See [`plan_prune`](Self::plan_prune).
    pub fn prune(&self, plan: &PrunePlan) -> Result<PrunePlan> {
        let core = self.handle().core();
        core.health.check()?;
        core.observers.refuse_own_thread()?;
        let mut done = PrunePlan { sessions: Vec::new(), within: plan.within };
        let mut waiting = VecDeque::new();
        for session in &plan.sessions {
            let mut session = session.clone();
            if session.protection.is_none() {
                let mut ticket = None;
                match queue(core, &mut session) {
                    Ok(Some(queued)) => ticket = Some(queued),
                    Ok(None) => {}
                    // Those before it make room when they are done.
                    Err(Error::DiskFull { .. }) => delete_one(core, &mut session)?,
                    Err(error) => return Err(error),
                }
                waiting.extend(ticket.map(|ticket| (done.sessions.len(), ticket)));
            }
            done.sessions.push(session);
            if waiting.len() >= QUEUED {
                wait(core, &mut waiting, &mut done.sessions)?;
            }
        }
        wait(core, &mut waiting, &mut done.sessions)?;
        Ok(done)
    }

    /// Why a session stays that is beyond a limit, if it does.
    fn protection(&self, id: &SessionId, key: StorageKey, policy: &Prune) -> Result<Option<Protection>> {
        let core = self.handle().core();
        let Some(state) = core.catalog.by_key(key, core.storage.as_ref())? else {
            return Err(Error::SessionNotFound { session: id.clone() });
        };
        if state.is_held() {
            return Ok(Some(Protection::InUse));
        }
        if policy.open_turns {
            return Ok(None);
        }
        match self.session(id).and_then(|session| session.inspect()) {
            Ok(found) => Ok(found.turn.map(|_| Protection::OpenTurn)),
            Err(Error::Corrupt { .. } | Error::UnsupportedFormat { .. }) => Ok(Some(Protection::Unreadable)),
            Err(error) => Err(error),
        }
    }
}

/// Queues the deletion of a session that is as it was planned; else notes why it stays. Returns the ticket.
fn queue(core: &Core, session: &mut PrunedSession) -> Result<Option<u64>> {
    loop {
        let mut protection = None;
        let queued = delete::queue(core, &session.session, |state, tail| {
            protection = why_not(state, tail, session);
            protection.is_none()
        })?;
        match queued {
            Queued::At(ticket) => return Ok(Some(ticket)),
            Queued::Deleting(ticket) => core.committer.wait_for_other(ticket, core)?,
            Queued::Refused => session.protection = protection,
            // Somebody else has deleted it: it is gone, as planned.
            Queued::NotThere => {}
        }
        if !matches!(queued, Queued::Deleting(_)) {
            return Ok(None);
        }
    }
}

fn why_not(state: &SessionState, tail: &Tail, planned: &PrunedSession) -> Option<Protection> {
    let is_same = state.key() == planned.key && tail.next() == planned.len;
    match (is_same, state.is_held()) {
        (false, _) => Some(Protection::Changed),
        (true, true) => Some(Protection::InUse),
        (true, false) => None,
    }
}

/// Waits for deletions. One that the full disk refuses is tried again, with the reserve.
fn wait(core: &Core, waiting: &mut VecDeque<(usize, u64)>, sessions: &mut [PrunedSession]) -> Result<()> {
    while let Some((index, ticket)) = waiting.pop_front() {
        match core.committer.wait(ticket, core) {
            Err(Error::DiskFull { .. }) => {
                if let Some(session) = sessions.get_mut(index) {
                    delete_one(core, session)?;
                }
            }
            waited => waited?,
        }
    }
    Ok(())
}

/// Deletes one session, with the reserve where the disk is full.
fn delete_one(core: &Core, session: &mut PrunedSession) -> Result<()> {
    let mut once = || match queue(core, session)? {
        Some(ticket) => core.committer.wait(ticket, core),
        None => Ok(()),
    };
    match once() {
        Err(Error::DiskFull { .. }) if core.release_reserve() => once(),
        done => done,
    }
}
