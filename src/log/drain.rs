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

use super::compact::{self, CompactReport, Compactions};
use super::core::Core;
use super::hidden::remove_abandoned;
use super::history::check_end;
use super::journal::Promise;
use super::meter::Timer;
use super::pass::{Pass, Writer};
use super::removal;
use super::room::Full;
use super::tail::SessionState;
use crate::error::{Error, Result};
use crate::format::WriteNumber;
use crate::options::DRAIN_BYTES;
use crate::spans::span;

/// What a pass may need beside the bytes it moves: the engine writes whole segments of its own, and old pages are free
/// only when the new ones are there.
const MARGIN_BYTES: u64 = 2 << 20;

#[derive(Debug, Default)]
pub(crate) struct Drain {
    control: Mutex<Control>,
    changed: Condvar,
    asked: AtomicBool,
    /// Set while the thread sleeps with nothing to do.
    idle: AtomicBool,
    /// What the engine knows to be drained.
    through: AtomicU64,
    /// The write number of the engine's record of that.
    mark: AtomicU64,
    writer: Mutex<Option<Writer>>,
    compactions: Compactions,
    pub(crate) passes: Timer,
    moved_events: AtomicU64,
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

    /// What an opening store found: the drained commit and the write number of its record, and the source of more.
    pub(crate) fn prepare(&self, through: u64, mark: WriteNumber, writer: Writer) {
        self.through.store(through, Ordering::Release);
        self.mark.store(mark.0, Ordering::Release);
        *self.writer.lock().unwrap_or_else(PoisonError::into_inner) = Some(writer);
    }

    /// Keeps passes from beginning until what it gives is dropped: the records then are of one commit.
    pub(crate) fn pause(&self) -> impl Drop + '_ {
        self.writer.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The commit that the engine holds everything up to.
    pub(crate) fn through(&self) -> u64 {
        self.through.load(Ordering::Acquire)
    }

    /// Events that were moved since the store was opened.
    pub(crate) fn moved_events(&self) -> u64 {
        self.moved_events.load(Ordering::Relaxed)
    }

    /// Called before the thread starts: lets it go on with what was interrupted.
    pub(crate) fn resume_removals(&self) {
        let writer = self.writer.lock().unwrap_or_else(PoisonError::into_inner);
        self.asked
            .store(writer.as_ref().is_some_and(|writer| !writer.removals.is_empty()), Ordering::Release);
    }

    /// Checks that the engine has not fallen back to an older end of `session`: its later events would be written over.
    pub(crate) fn check_end(&self, core: &Core, session: &SessionState) -> Result<()> {
        // Before the session's end is looked at: a pass that ends in between raises both, this one last.
        let mark = WriteNumber(self.mark.load(Ordering::Acquire));
        check_end(core.storage.as_ref(), session, mark)
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
        self.compactions.wake();
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

    /// Merges small blocks between passes, and waits for the end of that.
    pub(crate) fn compact(&self, core: &Core) -> Result<CompactReport> {
        self.compactions.run(core)
    }

    /// The thread.
    pub(crate) fn run(&self, core: &Core) {
        while let Some(requested) = self.next_pass(core) {
            let outcome = catch_unwind(AssertUnwindSafe(|| self.round(core)))
                .unwrap_or_else(|_| Err(Fault::Error(Error::Storage("a drain panicked".into()))));
            let mut control = self.lock();
            control.running_since = None;
            control.full = None;
            match outcome {
                // Who asked for a pass waits for the end of removals, too.
                Ok(Removal::GoesOn) => self.asked.store(true, Ordering::Release),
                Ok(Removal::Done) => control.finished = requested,
                Ok(Removal::Full(full)) => {
                    control.finished = requested;
                    control.full = Some(full);
                }
                Err(Fault::Full(full)) => {
                    control.finished = requested;
                    control.full = Some(full.clone());
                    core.room.refuse_waiting(full);
                }
                Err(Fault::Error(error)) => {
                    control.finished = requested;
                    drop(control);
                    core.fail(error);
                }
            }
            self.changed.notify_all();
        }
    }

    /// What the thread does at a time: a pass, and one batch of removals, or of a compaction when none is left.
    fn round(&self, core: &Core) -> Result<Removal, Fault> {
        self.pass(core, false)?;
        let removal = self.remove(core)?;
        if !matches!(removal, Removal::GoesOn) {
            self.merge(core)?;
        }
        Ok(removal)
    }

    fn remove(&self, core: &Core) -> Result<Removal, Fault> {
        let mut writer = self.writer.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(writer) = writer.as_mut().filter(|writer| !writer.removals.is_empty()) else {
            return Ok(Removal::Done);
        };
        // A backup that copies blocks lets removals go on when it is done.
        let Ok(_held) = core.removals.try_lock() else { return Ok(Removal::Done) };
        // Removals make room: they may have the reserve.
        match self.with_room(core, true, || core.journal.promise(MARGIN_BYTES)) {
            Ok(_promise) => removal::step(core, writer)?,
            Err(Fault::Full(full)) => return Ok(Removal::Full(full)),
            Err(error) => return Err(error),
        }
        Ok(if writer.removals.is_empty() { Removal::Done } else { Removal::GoesOn })
    }

    /// Goes on with a compaction that was asked for.
    fn merge(&self, core: &Core) -> Result<(), Fault> {
        let Some(mut compaction) = self.compactions.take() else { return Ok(()) };
        let mut writer = self.writer.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(writer) = writer.as_mut() else { return Ok(()) };
        // A backup that copies blocks asks for a pass when it is done.
        let Ok(_held) = core.removals.try_lock() else {
            self.compactions.go_on(compaction);
            return Ok(());
        };
        let promise = match core.journal.promise(MARGIN_BYTES) {
            Err(Fault::Full(full)) => {
                self.compactions.done(Err(full));
                return Ok(());
            }
            promise => promise?,
        };
        match compact::step(core, writer, &mut compaction)? {
            compact::Step::Done(report) => {
                self.compactions.done(Ok(report));
                return Ok(());
            }
            compact::Step::Merged => self.mark.store(compact::mark(core, writer)?.0, Ordering::Release),
            compact::Step::Looked => {}
        }
        drop(promise);
        self.compactions.go_on(compaction);
        self.ask();
        Ok(())
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
                if core.has_undrained() || core.checkpoints.is_waiting() {
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

    /// Moves everything that is synced now; in several passes where the disk has little room, for each gives some
    /// back. `all`: also when only frames without events are left.
    pub(crate) fn pass(&self, core: &Core, all: bool) -> Result<(), Fault> {
        let mut writer = self.writer.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(writer) = writer.as_mut() else { return Ok(()) };
        core.journal.sync(&core.health)?;
        let end = core.journal.drainable();
        while self.through() < end && (all || core.has_undrained()) {
            let _span = span!("drain");
            self.passes.time(|| self.step(core, writer, end))?;
        }
        remove_abandoned(core)?;
        // Behind (2): what they cover is durable.
        Ok(core.checkpoints.write(core, || writer.number())?)
    }

    /// Tries again with what a full disk can be given back: segments that hold nothing, then, for a deletion, the reserve.
    fn with_room<T>(
        &self,
        core: &Core,
        reserve: bool,
        room: impl Fn() -> Result<T, Fault>,
    ) -> Result<T, Fault> {
        let full = match room() {
            Err(Fault::Full(full)) => full,
            found => return found,
        };
        let mut found = Err(Fault::Full(full));
        if core.journal.shed(self.through())? {
            found = room();
        }
        match found {
            Err(Fault::Full(_)) if reserve && core.release_reserve() => room(),
            found => found,
        }
    }

    /// Moves what is synced up to the commit `end`, or as much of it as there is room for.
    fn step(&self, core: &Core, writer: &mut Writer, end: u64) -> Result<(), Fault> {
        let (through, promise) = self.with_room(core, core.has_deletions(), || self.affordable(core, end))?;
        let sessions = core.drainable(through);
        let mut pass = Pass::new(core, writer, through, &sessions)?;
        pass.blocks()?; // (1)
        let done = pass.records()?; // (2)
        core.drained(&done.sessions, through);
        self.mark.store(done.mark.0, Ordering::Release);
        self.through.store(through, Ordering::Release);
        self.moved_events.fetch_add(done.events, Ordering::Relaxed);
        drop(promise);
        core.journal.recycle(through)?; // (3)
        Ok(())
    }

    /// The last commit, up to `end`, that there is room for; and that room, kept.
    fn affordable<'a>(&self, core: &'a Core, end: u64) -> Result<(u64, Promise<'a>), Fault> {
        let needed = |moved: u64| moved + moved / 2 + MARGIN_BYTES;
        let all = match core.journal.promise(needed(core.room.used())) {
            Err(Fault::Full(full)) => full,
            promise => return promise.map(|promise| (end, promise)),
        };
        // With all of them, what was deleted need not be moved.
        if let Ok(promise) = core.journal.promise(needed(core.needed_room(end))) {
            return Ok((end, promise));
        }
        let mut costs = core.costs(end);
        costs.sort_unstable();
        let mut moved = 0;
        let mut through = None;
        let mut costs = costs.into_iter().peekable();
        while let Some((commit, cost)) = costs.next() {
            moved += cost;
            // A commit can have several runs; all of them go, or none.
            if costs.peek().is_some_and(|(next, _)| *next == commit) {
                continue;
            }
            if needed(moved) > all.free_bytes {
                break;
            }
            through = Some((commit, moved));
        }
        let (through, moved) = through.ok_or(Fault::Full(all))?;
        core.journal.promise(needed(moved)).map(|promise| (through, promise))
    }
}

/// How far removals are.
#[derive(Debug)]
enum Removal {
    Done,
    GoesOn,
    /// There is no room for them now; the passes are done.
    Full(Full),
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
