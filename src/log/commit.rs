//! Group commit: whoever comes first writes one frame with everything that is queued, syncs it and wakes the rest.
//!
//! A lone writer is its own leader: no thread hop, no wait. Only after a group of two or more does the next leader
//! wait a moment for the others, who are on their way back.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use super::core::Core;
use super::journal::{Refusal, WriteError};
use super::tail::SessionState;
use crate::error::{Error, Result};
use crate::format::{FrameBuilder, Run};

/// How long a leader waits for the writers of the last group.
const GATHER: Duration = Duration::from_micros(120);
/// The most bytes in a frame of more than one request.
const FRAME_BYTES: usize = 1 << 20;

/// What is to be done in one commit.
#[derive(Debug)]
pub(crate) enum Work {
    /// Append a run; it is the oldest one in flight of its session.
    Run { session: Arc<SessionState>, run: Arc<Run> },
    /// Create a session, or a fork.
    Create { session: Arc<SessionState> },
    /// Delete a session.
    Delete { session: Arc<SessionState> },
    /// Only carry the durable mark.
    Seal,
}

#[derive(Debug)]
pub(crate) struct Request {
    pub(crate) work: Work,
    pub(crate) sync: bool,
}

impl Request {
    /// At most the bytes that it takes in a frame.
    pub(crate) fn frame_bytes(&self) -> usize {
        match &self.work {
            Work::Run { run, .. } => FrameBuilder::run_cost(run),
            Work::Create { session } => FrameBuilder::creation_cost(&session.header),
            Work::Delete { .. } => FrameBuilder::DELETION_COST,
            Work::Seal => 1,
        }
    }
}

/// The commit queue. A ticket is the number of a request; requests are done in the order of their tickets.
#[derive(Debug, Default)]
pub(crate) struct Committer {
    state: Mutex<State>,
    changed: Condvar,
    arrived: Condvar,
}

#[derive(Debug, Default)]
struct State {
    queue: VecDeque<Request>,
    queued: u64,
    done: u64,
    leading: bool,
    last_group: usize,
    /// The length of the queue that a waiting leader hopes for; 0 when none waits.
    gathering: usize,
    /// Set when the store is being closed: what is queued is done, nothing more is taken.
    closed: bool,
    /// Set while a leader takes back what it had to refuse.
    refusing: Option<Refusal>,
    /// What was refused, until its owner asks.
    refused: HashMap<u64, Refusal>,
}

impl Committer {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Queues a request. The caller holds the lock that gives its place: the session's, or the catalog's.
    pub(crate) fn enqueue(&self, request: Request) -> Result<u64> {
        let mut state = self.lock();
        if state.closed {
            return Err(Error::Closed);
        }
        if let Some(refusal) = &state.refusing {
            return Err(refusal.to_error());
        }
        state.queue.push_back(request);
        state.queued += 1;
        if state.gathering > 0 && state.queue.len() >= state.gathering {
            self.arrived.notify_one();
        }
        Ok(state.queued)
    }

    /// Returns when the request of `ticket` is published, leading when nobody else does. Holds no other lock.
    pub(crate) fn wait(&self, ticket: u64, core: &Core) -> Result<()> {
        match self.reach(ticket, core)?.refused.remove(&ticket) {
            Some(refusal) => Err(refusal.to_error()),
            None => Ok(()),
        }
    }

    /// Returns when another caller's request is published or refused: that one is told which.
    pub(crate) fn wait_for_other(&self, ticket: u64, core: &Core) -> Result<()> {
        self.reach(ticket, core).map(drop)
    }

    fn reach<'a>(&'a self, ticket: u64, core: &Core) -> Result<MutexGuard<'a, State>> {
        let mut state = self.lock();
        loop {
            if state.done >= ticket {
                return Ok(state);
            }
            if core.health.is_failed() {
                core.health.check()?;
            }
            match state.leading {
                false => state = self.lead(state, core)?,
                // Who waits is the watchdog: a leader stuck in the kernel cannot be one.
                true if core.journal.is_stuck() => {
                    drop(state);
                    return Err(core.fail(core.journal.timed_out("a write to the journal")));
                }
                true => {
                    let woken = self.changed.wait_timeout(state, core.watchdog / 4);
                    state = woken.unwrap_or_else(PoisonError::into_inner).0;
                }
            }
        }
    }

    /// Wakes all who wait, to look at the store's health.
    pub(crate) fn wake(&self) {
        drop(self.lock());
        self.changed.notify_all();
    }

    /// Takes nothing more, and waits until what was queued is done or the store has failed.
    pub(crate) fn close(&self, core: &Core) {
        let mut state = self.lock();
        state.closed = true;
        while !core.health.is_failed() && (state.leading || state.done < state.queued) {
            if core.journal.is_stuck() {
                drop(state);
                core.fail(core.journal.timed_out("a write to the journal"));
                return;
            }
            state = self.changed.wait_timeout(state, GATHER * 100).unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    /// Does one group.
    fn lead<'a>(&'a self, mut state: MutexGuard<'a, State>, core: &Core) -> Result<MutexGuard<'a, State>> {
        state.leading = true;
        if state.last_group > 1 && state.queue.len() < state.last_group {
            state.gathering = state.last_group;
            state = self.arrived.wait_timeout(state, GATHER).unwrap_or_else(PoisonError::into_inner).0;
            state.gathering = 0;
        }
        let group = take_group(&mut state.queue);
        state.last_group = group.len();
        drop(state);
        let unfinished = Unfinished { committer: self, core, armed: true };
        let outcome = core.commit_group(&group);
        unfinished.finish();
        match outcome {
            Ok(()) => {
                let mut state = self.lock();
                state.done += group.len() as u64;
                state.leading = false;
                // Others wait for a deletion, too: see `wait_for_other`.
                let deletion = |request: &Request| matches!(request.work, Work::Delete { .. });
                if state.queued > state.done || group.len() > 1 || group.iter().any(deletion) {
                    self.changed.notify_all();
                }
                Ok(state)
            }
            Err(WriteError::Refused(refusal)) => Ok(self.refuse(group, refusal, core)),
            Err(WriteError::Failed(error)) => {
                let error = core.fail(error);
                self.lock().leading = false;
                self.changed.notify_all();
                Err(error)
            }
        }
    }

    /// Takes back everything queued: nothing of it was written, and later seqs hang on earlier ones.
    fn refuse(&self, mut victims: Vec<Request>, refusal: Refusal, core: &Core) -> MutexGuard<'_, State> {
        let mut state = self.lock();
        state.refusing = Some(refusal.clone());
        victims.extend(state.queue.drain(..));
        drop(state);
        // The last first: a creation may have taken the id of a deletion before it.
        for request in victims.iter().rev() {
            match &request.work {
                Work::Run { session, .. } => {
                    let taken_back: u64 = session.lock().in_flight.drain(..).map(|run| run.cost).sum();
                    core.room.give(taken_back);
                }
                Work::Create { session } => core.catalog.lock().remove(session),
                Work::Delete { session } => {
                    let mut used = core.catalog.lock();
                    session.lock().deleting = None;
                    used.add(session);
                }
                Work::Seal => {}
            }
        }
        let mut state = self.lock();
        for ticket in state.done + 1..=state.queued {
            state.refused.insert(ticket, refusal.clone());
        }
        state.done = state.queued;
        state.refusing = None;
        state.leading = false;
        self.changed.notify_all();
        state
    }
}

fn take_group(queue: &mut VecDeque<Request>) -> Vec<Request> {
    let mut bytes = 0;
    let count = queue
        .iter()
        .take_while(|request| {
            let first = bytes == 0;
            bytes += request.frame_bytes();
            first || bytes <= FRAME_BYTES
        })
        .count();
    queue.drain(..count).collect()
}

/// Fails the store when a leader panics, so that nobody waits for it.
struct Unfinished<'a> {
    committer: &'a Committer,
    core: &'a Core,
    armed: bool,
}

impl Unfinished<'_> {
    fn finish(mut self) {
        self.armed = false;
    }
}

impl Drop for Unfinished<'_> {
    fn drop(&mut self) {
        if self.armed {
            self.core.fail(Error::Storage("a commit was interrupted by a panic".into()));
            self.committer.wake();
        }
    }
}
