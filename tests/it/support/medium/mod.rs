//! A medium in memory that keeps apart what is durable and what is not, for both seams at once, and that can fail,
//! tear, stop and lose power at any operation.
//!
//! - A write is volatile until its flush or sync returns, a name until `sync_folder` does.
//! - A **kill** keeps all volatile state, as the page cache does; a later power cut can still lose it.
//! - A **power cut** keeps what is durable and any part of the rest: for files any choice of 512-byte sectors, for the
//!   engine any choice of changes (a batch whole or not), for names any choice of name changes.
//! - After a failed sync of a file the page cache shows what the disk does not have, and no later sync brings it there.
//!
//! Every writing operation of both seams has a number. A store of an earlier life (before a kill or cut) gets errors.

mod disk;
mod seams;

use std::io;
use std::sync::{Arc, Condvar, Mutex, MutexGuard};
use std::time::{Duration, Instant};

use sessionlog::storage::{JournalFiles, Map, Storage};
use sessionlog::{Store, StoreOptions};

use super::dice::Dice;
use disk::Disk;

/// What happens at the operation that a plan names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fault {
    /// It fails and nothing of it is done. Later ones work.
    Fail,
    /// It fails and nothing of it is done, and so do all later writing operations.
    StayFailing,
    /// It fails and part of it is done. Later ones work.
    Tear,
    /// The process ends in the midst of it: part of it is done, and every later operation fails.
    Stop,
}

/// How the next life begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Crash {
    /// `kill -9`: the page cache survives.
    Kill,
    /// The power is cut.
    Power,
}

/// A writing operation, as the log keeps it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Step {
    Insert(Map),
    /// With the number of changes.
    Apply(Map, usize),
    Flush,
    Create(String, u64),
    Rename(String, String),
    Remove(String),
    SyncFolder,
    Write(String, u64, usize),
    Sync(String),
}

type Held = fn(&Step) -> bool;

#[derive(Debug)]
struct State {
    disk: Disk,
    dice: Dice,
    /// Counts kills and cuts; handles of an earlier life are dead.
    life: u64,
    /// Writing operations begun in all lives.
    operations: u64,
    plan: Option<(u64, Fault)>,
    fired: bool,
    stopped: bool,
    staying: bool,
    reads_fail: bool,
    scattering: bool,
    free: u64,
    held: Option<Held>,
    waiting: usize,
    log: Vec<Step>,
}

/// The medium. Clones share it.
#[derive(Clone, Debug)]
pub(crate) struct Medium {
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    state: Mutex<State>,
    changed: Condvar,
}

/// How much of an operation is done, and whether it fails.
enum Fate {
    Whole,
    Torn(io::Error),
}

fn broken(what: &str) -> io::Error {
    io::Error::other(format!("injected: {what}"))
}

impl Medium {
    pub(crate) fn new(seed: u64) -> Self {
        Self::with(Disk::default(), seed)
    }

    fn with(disk: Disk, seed: u64) -> Self {
        let state = State {
            disk,
            dice: Dice::new(seed),
            life: 0,
            operations: 0,
            plan: None,
            fired: false,
            stopped: false,
            staying: false,
            reads_fail: false,
            scattering: false,
            free: 1 << 40,
            held: None,
            waiting: 0,
            log: Vec::new(),
        };
        Self { shared: Arc::new(Shared { state: Mutex::new(state), changed: Condvar::new() }) }
    }

    /// Another medium with the same content, durable and volatile.
    pub(crate) fn copy(&self, seed: u64) -> Self {
        Self::with(self.lock().disk.clone(), seed)
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.shared.state.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
    }

    /// Opens a store on it.
    pub(crate) fn open(&self, options: StoreOptions) -> sessionlog::Result<Store> {
        options.open_on(self.storage(), self.files())
    }

    pub(crate) fn storage(&self) -> Arc<dyn Storage> {
        Arc::new(seams::FaultStorage::new(self.clone(), self.lock().life))
    }

    pub(crate) fn files(&self) -> Arc<dyn JournalFiles> {
        Arc::new(seams::FaultFiles { medium: self.clone(), life: self.lock().life })
    }

    /// Lets `fault` happen at the `after`-th writing operation from now on, 1 being the next.
    pub(crate) fn plan(&self, after: u64, fault: Fault) {
        let mut state = self.lock();
        state.plan = Some((state.operations + after, fault));
        state.fired = false;
    }

    /// Forgets a plan that did not happen, and lets operations work again that `StayFailing` stopped.
    pub(crate) fn forget_plan(&self) {
        let mut state = self.lock();
        state.plan = None;
        state.staying = false;
    }

    /// Whether the planned fault happened.
    pub(crate) fn fired(&self) -> bool {
        self.lock().fired
    }

    /// Whether the process of this life has ended.
    pub(crate) fn stopped(&self) -> bool {
        self.lock().stopped
    }

    /// Ends the process of this life here: every later operation of it fails.
    pub(crate) fn stop(&self) {
        self.lock().stopped = true;
        self.shared.changed.notify_all();
    }

    /// Begins the next life.
    pub(crate) fn restart(&self, crash: Crash) {
        let mut state = self.lock();
        let State { disk, dice, .. } = &mut *state;
        if crash == Crash::Power {
            disk.cut_power(dice);
        }
        state.life += 1;
        state.plan = None;
        state.fired = false;
        state.stopped = false;
        state.staying = false;
        state.reads_fail = false;
        state.scattering = false;
        state.held = None;
        drop(state);
        self.shared.changed.notify_all();
    }

    /// Lets reads of both seams fail, or work again.
    pub(crate) fn fail_reads(&self, fail: bool) {
        self.lock().reads_fail = fail;
    }

    /// Keeps passes of the drain from continuing last blocks, which they then take for damaged: each begins a new one.
    pub(crate) fn scatter(&self, scatter: bool) {
        self.lock().scattering = scatter;
    }

    /// Sets the free space that the medium tells of.
    pub(crate) fn set_free_bytes(&self, free: u64) {
        self.lock().free = free;
    }

    /// Holds operations that `which` names until [`Self::release`].
    pub(crate) fn hold(&self, which: Held) {
        self.lock().held = Some(which);
    }

    pub(crate) fn release(&self) {
        self.lock().held = None;
        self.shared.changed.notify_all();
    }

    /// Waits until an operation is being held.
    pub(crate) fn wait_held(&self) {
        self.wait(|state| state.waiting > 0);
    }

    /// Waits until the log of writing operations satisfies `enough`.
    pub(crate) fn wait_log(&self, enough: impl Fn(&[Step]) -> bool) {
        self.wait(|state| enough(&state.log));
    }

    /// A minute passes only where the test has failed already.
    fn wait(&self, enough: impl Fn(&State) -> bool) {
        let end = Instant::now() + Duration::from_secs(60);
        let mut state = self.lock();
        while !enough(&state) {
            let left = end.saturating_duration_since(Instant::now());
            assert!(!left.is_zero(), "the awaited operation never came; log: {:?}", tail(&state.log));
            state = self.shared.changed.wait_timeout(state, left).unwrap().0;
        }
    }

    /// The writing operations that were done since the last call of this.
    pub(crate) fn take_log(&self) -> Vec<Step> {
        std::mem::take(&mut self.lock().log)
    }

    /// The names in the folder.
    pub(crate) fn names(&self) -> Vec<String> {
        self.lock().disk.names()
    }

    /// A file as the page cache shows it.
    pub(crate) fn file(&self, name: &str) -> Vec<u8> {
        self.lock().disk.file(name).unwrap_or_else(|| panic!("no file {name}"))
    }

    /// Changes a file on the disk, as decay or a stranger would.
    pub(crate) fn damage(&self, name: &str, change: impl FnOnce(&mut Vec<u8>)) {
        self.lock().disk.damage(name, change);
    }

    /// Changes the `n`-th value of the engine's `map`-th map.
    pub(crate) fn damage_value(&self, map: usize, n: usize, change: impl FnOnce(&mut Vec<u8>)) {
        self.lock().disk.damage_value(map, n, Some(change));
    }

    /// Loses the `n`-th value of the engine's `map`-th map.
    pub(crate) fn lose_value(&self, map: usize, n: usize) {
        self.lock().disk.damage_value(map, n, None::<fn(&mut Vec<u8>)>);
    }

    /// Loses a file.
    pub(crate) fn lose_file(&self, name: &str) {
        let mut state = self.lock();
        state.disk.remove(name);
        state.disk.sync_folder();
    }

    /// Everything durable and visible, to compare before and after.
    pub(crate) fn image(&self) -> Image {
        self.lock().disk.image()
    }

    /// Cuts the power so that of the unsynced writes to files the first `lost` are lost and the rest are kept.
    pub(crate) fn cut_power_losing_first(&self, lost: usize) {
        self.lock().disk.lose_first(lost);
        self.restart(Crash::Kill);
    }
}

/// Maps and files with their content, as readers see it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Image {
    pub(crate) maps: Vec<Vec<(Vec<u8>, Vec<u8>)>>,
    pub(crate) files: Vec<(String, Vec<u8>)>,
}

fn tail(log: &[Step]) -> &[Step] {
    &log[log.len().saturating_sub(20)..]
}
