//! What happens to the journal when nobody asks: the sync window of Buffered events, the seal behind the last commit,
//! spare segments. One thread, asleep while there is nothing to do.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Condvar, Mutex, PoisonError};
use std::time::Duration;

use super::commit::{Request, Work};
use super::core::Core;

#[derive(Debug, Default)]
pub(crate) struct Keeper {
    stopped: Mutex<bool>,
    woken: Condvar,
    /// Set while the thread sleeps without a time limit.
    idle: AtomicBool,
    /// The number of the last commit if that was a seal.
    sealed: AtomicU64,
}

impl Keeper {
    /// Called after each commit: ends an idle sleep, and asks for a segment when one will be needed.
    pub(crate) fn poke(&self, core: &Core) {
        if self.idle.swap(false, Ordering::AcqRel) || core.journal.wants_spare() {
            self.wake();
        }
    }

    pub(crate) fn wake(&self) {
        drop(self.stopped.lock().unwrap_or_else(PoisonError::into_inner));
        self.woken.notify_all();
    }

    pub(crate) fn stop(&self) {
        *self.stopped.lock().unwrap_or_else(PoisonError::into_inner) = true;
        self.woken.notify_all();
    }

    /// The thread. What was there at open, up to the commit `opened_at`, is drained: it needs no seal. (Not asked here: a
    /// thread can start after the first appends have returned, and they do need one.)
    pub(crate) fn run(&self, core: &Core, opened_at: u64) {
        let mut seen = opened_at;
        self.sealed.store(opened_at, Ordering::Relaxed);
        loop {
            if !self.sleep(core, core.sync_window) {
                return;
            }
            core.journal.prepare();
            // A failure here is kept and told by the next call.
            if core.health.is_failed() || core.journal.sync(&core.health).is_err() {
                core.wake_all();
                self.idle.store(true, Ordering::Release);
                continue;
            }
            let written = core.journal.written();
            let quiet = written == std::mem::replace(&mut seen, written);
            if quiet && written != self.sealed.load(Ordering::Relaxed) {
                self.seal(core);
                seen = core.journal.written();
            } else if quiet {
                self.idle.store(true, Ordering::Release);
                // A commit between the look and the flag would not have woken us.
                if core.journal.written() != written {
                    self.idle.store(false, Ordering::Release);
                }
            }
        }
    }

    /// Writes a frame that says that everything before it is durable, so that damage to the last acknowledged frame
    /// cannot be taken for a torn end.
    fn seal(&self, core: &Core) {
        let sealed = core.committer.enqueue(Request { work: Work::Seal, sync: true });
        if sealed.and_then(|ticket| core.committer.wait(ticket, core)).is_ok() {
            self.sealed.store(core.journal.written(), Ordering::Relaxed);
        }
    }

    /// Sleeps for the window, or until woken when there is nothing to do. Returns whether to go on.
    fn sleep(&self, core: &Core, window: Duration) -> bool {
        let stopped = self.stopped.lock().unwrap_or_else(PoisonError::into_inner);
        if *stopped {
            return false;
        }
        let idle = self.idle.load(Ordering::Acquire);
        let limit = if idle { core.watchdog.max(window) } else { window };
        !*self.woken.wait_timeout(stopped, limit).unwrap_or_else(PoisonError::into_inner).0
    }
}
