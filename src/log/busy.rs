//! Turns at operations that can hang in the kernel, and how long the present one has lasted.

use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// A turn that one thread at a time has, and since when: for the watchdog.
#[derive(Debug, Default)]
pub(crate) struct Busy {
    since: Mutex<Option<Instant>>,
    free: Condvar,
}

impl Busy {
    fn lock(&self) -> MutexGuard<'_, Option<Instant>> {
        self.since.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Does `work` when it is this thread's turn. `None` when another's has lasted for `limit`.
    pub(crate) fn during<T>(&self, limit: Duration, work: impl FnOnce() -> T) -> Option<T> {
        let mut since = self.lock();
        while let Some(started) = *since {
            if started.elapsed() >= limit {
                return None;
            }
            since = self.free.wait_timeout(since, limit / 4).unwrap_or_else(PoisonError::into_inner).0;
        }
        *since = Some(Instant::now());
        drop(since);
        let done = work();
        *self.lock() = None;
        self.free.notify_one();
        Some(done)
    }

    pub(crate) fn longer_than(&self, limit: Duration) -> bool {
        self.lock().is_some_and(|since| since.elapsed() >= limit)
    }
}
