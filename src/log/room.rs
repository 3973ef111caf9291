//! Room in the tail: appends wait here, first come first served, before they take any other lock.

use std::collections::VecDeque;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use super::health::Health;
use crate::error::{Error, Result};

/// What an encoded run costs in memory beside its bytes: allocations, queue entries, its frame's header in the journal.
pub(crate) const RUN_OVERHEAD: u64 = 200;

/// How often a waiting append looks at the store's health. It is woken when room is made; this bounds what a missed
/// failure could cost.
const LOOK: Duration = Duration::from_millis(500);

#[derive(Debug)]
pub(crate) struct Room {
    limit: u64,
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct State {
    used: u64,
    /// Tickets of those who wait, oldest first.
    waiting: VecDeque<u64>,
    next_ticket: u64,
    /// Set by a drain that found the disk full: those who wait get it.
    full: Option<(u64, Full)>,
}

/// Why no room can be made now.
#[derive(Clone, Debug)]
pub(crate) struct Full {
    pub(crate) path: std::path::PathBuf,
    pub(crate) needed_bytes: u64,
    pub(crate) free_bytes: u64,
}

impl Full {
    pub(crate) fn to_error(&self) -> Error {
        Error::DiskFull {
            path: self.path.clone(),
            needed_bytes: self.needed_bytes,
            free_bytes: self.free_bytes,
        }
    }
}

impl Room {
    pub(crate) fn new(limit: u64) -> Self {
        Self { limit, state: Mutex::default(), changed: Condvar::new() }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes room for `cost`, waiting for it when need be; `wanted` is called before each wait. What alone
    /// is larger than all room waits until the tail is empty.
    pub(crate) fn take(&self, cost: u64, health: &Health, wanted: impl Fn()) -> Result<()> {
        let mut state = self.lock();
        if state.waiting.is_empty() && self.fits(&state, cost) {
            state.used = state.used.saturating_add(cost);
            return Ok(());
        }
        let ticket = state.next_ticket;
        state.next_ticket += 1;
        state.waiting.push_back(ticket);
        drop(state);
        loop {
            wanted();
            let mut state = self.lock();
            let outcome = if let Err(error) = health.check() {
                Some(Err(error))
            } else if let Some((_, full)) = state.full.as_ref().filter(|(before, _)| ticket < *before) {
                Some(Err(full.to_error()))
            } else if state.waiting.front() == Some(&ticket) && self.fits(&state, cost) {
                state.used = state.used.saturating_add(cost);
                Some(Ok(()))
            } else {
                None
            };
            if let Some(outcome) = outcome {
                state.waiting.retain(|waiting| *waiting != ticket);
                self.changed.notify_all();
                return outcome;
            }
            let _ = self.changed.wait_timeout(state, LOOK).unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// Takes room without waiting: for what replay found.
    pub(crate) fn claim(&self, cost: u64) {
        self.lock().used += cost;
    }

    fn fits(&self, state: &State, cost: u64) -> bool {
        state.used == 0 || state.used.saturating_add(cost) <= self.limit
    }

    /// Gives room back.
    pub(crate) fn give(&self, cost: u64) {
        if cost > 0 {
            let mut state = self.lock();
            state.used = state.used.saturating_sub(cost);
            if !state.waiting.is_empty() {
                self.changed.notify_all();
            }
        }
    }

    /// Tells those who wait that there will be no room, for the disk is full.
    pub(crate) fn refuse_waiting(&self, full: Full) {
        let mut state = self.lock();
        state.full = Some((state.next_ticket, full));
        self.changed.notify_all();
    }

    /// Wakes those who wait, to look at the store's health.
    pub(crate) fn wake(&self) {
        drop(self.lock());
        self.changed.notify_all();
    }

    /// What is used of how much, and how many wait.
    pub(crate) fn snapshot(&self) -> (u64, u64, u64) {
        let state = self.lock();
        (state.used, self.limit, state.waiting.len() as u64)
    }

    pub(crate) fn used(&self) -> u64 {
        self.lock().used
    }
}
