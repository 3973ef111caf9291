//! The drain: moves synced events from the tails into full blocks. One thread; the engine's only writer.
//!
//! A pass takes every frame up to a commit C that is synced and published, and does three steps, each begun when the
//! one before is durable: (1) blocks, (2) one batch of headers, summaries and *drained through C*, (3) tails and
//! segments let go. A crash between them leaves the frames in the journal, and blocks that the summary does not cover:
//! the next pass removes those and writes them again.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use super::core::Core;
use super::pass::{Pass, Writer};
use super::room::Full;
use crate::error::{Error, Result};
use crate::options::DRAIN_BYTES;

/// What a pass may need beside the bytes it moves: the engine writes whole segments of its own, and old pages are free
/// only when the new ones are there.
const MARGIN_BYTES: u64 = 4 << 20;

#[derive(Debug, Default)]
pub(crate) struct Drain {
    control: Mutex<Control>,
    changed: Condvar,
    asked: AtomicBool,
    /// Set while the thread sleeps with nothing to do.
    idle: AtomicBool,
    /// What the engine knows to be drained.
    through: AtomicU64,
    writer: Mutex<Option<Writer>>,
}

#[derive(Debug, Default)]
struct Control {
    stopped: bool,
    /// When the oldest event that is not drained was first noticed.
    since: Option<Instant>,
    running_since: Option<Instant>,
    /// Passes that callers wait for, and those that are done.
    requested: u64,
    finished: u64,
    full: Option<Full>,
}

impl Drain {
    fn lock(&self) -> MutexGuard<'_, Control> {
        self.control.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What an opening store found: the drained commit, and the source of write numbers.
    pub(crate) fn prepare(&self, through: u64, writer: Writer) {
        self.through.store(through, Ordering::Release);
        *self.writer.lock().unwrap_or_else(PoisonError::into_inner) = Some(writer);
    }

    /// The commit that the engine holds everything up to.
    pub(crate) fn through(&self) -> u64 {
        self.through.load(Ordering::Acquire)
    }

    /// Called after each commit: starts the clock of an idle drain, and a pass when the tail is large.
    pub(crate) fn poke(&self, core: &Core) {
        if core.room.used() >= DRAIN_BYTES {
            self.ask();
        } else if self.idle.swap(false, Ordering::AcqRel) {
            self.wake();
        }
    }

    /// Asks for a pass as soon as possible.
    pub(crate) fn ask(&self) {
        if !self.asked.swap(true, Ordering::AcqRel) {
            self.wake();
        }
    }

    pub(crate) fn wake(&self) {
        drop(self.lock());
        self.changed.notify_all();
    }

    pub(crate) fn stop(&self) {
        self.lock().stopped = true;
        self.changed.notify_all();
    }

    /// Fails the store when a pass takes longer than the watchdog allows. Called by those who wait for it.
    pub(crate) fn watch(&self, core: &Core) {
        let stuck = self.lock().running_since.is_some_and(|since| since.elapsed() >= core.watchdog);
        if stuck {
            let limit_ms = u64::try_from(core.watchdog.as_millis()).unwrap_or(u64::MAX);
            core.fail(Error::TimedOut { action: "a drain", limit_ms });
        }
    }

    /// Asks for a pass that begins now or later, and waits for its end.
    pub(crate) fn wait(&self, core: &Core) -> Result<()> {
        let mut control = self.lock();
        control.requested += 1;
        let wanted = control.requested;
        self.asked.store(true, Ordering::Release);
        self.changed.notify_all();
        while control.finished < wanted {
            core.health.check()?;
            control =
                self.changed.wait_timeout(control, core.watchdog).unwrap_or_else(PoisonError::into_inner).0;
            if control.finished < wanted {
                drop(control);
                self.watch(core);
                control = self.lock();
            }
        }
        match &control.full {
            Some(full) => Err(full.to_error()),
            None => core.health.check(),
        }
    }

    /// The thread.
    pub(crate) fn run(&self, core: &Core) {
        while let Some(requested) = self.next_pass(core) {
            let outcome = catch_unwind(AssertUnwindSafe(|| self.pass(core, false)))
                .unwrap_or_else(|_| Err(Fault::Error(Error::Storage("a drain panicked".into()))));
            let mut control = self.lock();
            control.running_since = None;
            control.finished = requested;
            control.full = None;
            match outcome {
                Ok(()) => {}
                Err(Fault::Full(full)) => {
                    control.full = Some(full.clone());
                    core.room.refuse_waiting(full);
                }
                Err(Fault::Error(error)) => {
                    drop(control);
                    core.fail(error);
                }
            }
            self.changed.notify_all();
        }
    }

    /// Sleeps until a pass is due. `None` at the end.
    fn next_pass(&self, core: &Core) -> Option<u64> {
        let mut control = self.lock();
        loop {
            if control.stopped {
                return None;
            }
            if core.health.is_failed() {
                // Nothing is written any more; those who wait look at the store's health.
                control = self.changed.wait(control).unwrap_or_else(PoisonError::into_inner);
                continue;
            }
            let now = Instant::now();
            let due = control.since.map(|since| since + core.drain_age);
            if self.asked.swap(false, Ordering::AcqRel) || due.is_some_and(|due| due <= now) {
                control.since = None;
                control.running_since = Some(now);
                return Some(control.requested);
            }
            if due.is_none() {
                self.idle.store(true, Ordering::Release);
                if core.has_undrained() {
                    self.idle.store(false, Ordering::Release);
                    control.since = Some(now);
                    continue;
                }
            }
            let limit = due.map_or(core.watchdog, |due| due.saturating_duration_since(now));
            control = self.changed.wait_timeout(control, limit).unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    /// The last pass of a store that is being closed, on the caller's thread: nothing is left to replay.
    pub(crate) fn finish(&self, core: &Core) -> Result<()> {
        if core.health.is_failed() {
            return Err(core.health.failure());
        }
        match self.pass(core, true) {
            Ok(()) => core.journal.trim().map_err(|error| core.fail(error)),
            Err(Fault::Full(full)) => Err(full.to_error()),
            Err(Fault::Error(error)) => Err(core.fail(error)),
        }
    }

    /// One pass. `all`: also when only frames without events are left.
    pub(crate) fn pass(&self, core: &Core, all: bool) -> Result<(), Fault> {
        let mut writer = self.writer.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(writer) = writer.as_mut() else { return Ok(()) };
        core.journal.sync(&core.health)?;
        let through = core.journal.drainable();
        if through == self.through() || (!all && !core.has_undrained()) {
            return Ok(());
        }
        let moved = core.room.used();
        let needed_bytes = moved + moved / 2 + MARGIN_BYTES;
        // Segments that are made meanwhile leave this much to the engine.
        let _promise = core.journal.promise(needed_bytes)?;
        let sessions = core.drainable(through);
        let mut pass = Pass::new(core, writer, through, &sessions)?;
        pass.blocks()?; // (1)
        let done = pass.records()?; // (2)
        core.drained(&done, through);
        self.through.store(through, Ordering::Release);
        core.journal.recycle(through)?; // (3)
        Ok(())
    }
}

/// Why a pass did not happen.
#[derive(Debug)]
pub(crate) enum Fault {
    /// Nothing was written.
    Full(Full),
    /// What was written is unknown.
    Error(Error),
}

impl From<Error> for Fault {
    fn from(error: Error) -> Self {
        Self::Error(error)
    }
}
