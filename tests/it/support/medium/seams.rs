//! The two seams on the medium. Every call takes the medium's lock, so operations have one order.

use std::io;
use std::ops::Bound;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, MutexGuard, OnceLock};

use sessionlog::storage::{Entries, Entry, JournalFile, JournalFiles, MAX_VALUE_BYTES, Map, Storage};
use sessionlog::{Error, Result};

use super::disk::Change;
use super::{Fate, Fault, Medium, State, Step, broken};

impl Medium {
    /// Begins a writing operation of a life: waits while it is held, counts it and says what becomes of it.
    fn begin(&self, life: u64, step: Step) -> io::Result<(MutexGuard<'_, State>, Fate)> {
        let mut state = self.alive(life)?;
        if state.held.is_some_and(|held| held(&step)) {
            state.waiting += 1;
            self.shared.changed.notify_all();
            while !state.stopped && state.life == life && state.held.is_some_and(|held| held(&step)) {
                state = self.shared.changed.wait(state).unwrap();
            }
            state.waiting -= 1;
            drop(state);
            state = self.alive(life)?;
        }
        if state.staying {
            return Err(broken("the medium goes on failing"));
        }
        state.operations += 1;
        let now = state.operations;
        let Some((_, fault)) = state.plan.filter(|(at, _)| *at == now) else {
            state.log.push(step);
            self.shared.changed.notify_all();
            return Ok((state, Fate::Whole));
        };
        state.fired = true;
        self.shared.changed.notify_all();
        match fault {
            Fault::Fail => {
                state.spoil(&step);
                Err(broken("failed"))
            }
            Fault::StayFailing => {
                state.staying = true;
                Err(broken("failed"))
            }
            Fault::Tear => Ok((state, Fate::Torn(broken("torn")))),
            Fault::Stop => {
                state.stopped = true;
                Ok((state, Fate::Torn(broken("the process has ended"))))
            }
        }
    }

    fn alive(&self, life: u64) -> io::Result<MutexGuard<'_, State>> {
        let state = self.lock();
        if state.stopped || state.life != life {
            return Err(broken("the process has ended"));
        }
        Ok(state)
    }

    fn begin_read(&self, life: u64) -> io::Result<MutexGuard<'_, State>> {
        let state = self.alive(life)?;
        if state.reads_fail { Err(broken("a read failed")) } else { Ok(state) }
    }
}

impl State {
    /// What a sync or flush that failed did. (Of changes in the engine a power cut keeps any, as before.)
    fn spoil(&mut self, step: &Step) {
        let Self { disk, dice, .. } = self;
        if let Step::Sync(name) = step
            && let Some(file) = disk.number_of(name)
        {
            disk.sync_in_part(file, dice);
        }
    }
}

fn engine_error(error: io::Error) -> Error {
    Error::Storage(Box::new(error))
}

/// The engine. After a write or flush that failed it refuses writes until the next life; after `close` everything.
#[derive(Debug)]
pub(super) struct FaultStorage {
    engine: Arc<Engine>,
}

#[derive(Debug)]
struct Engine {
    medium: Medium,
    life: u64,
    closed: AtomicBool,
    failed: OnceLock<Arc<Error>>,
}

impl FaultStorage {
    pub(super) fn new(medium: Medium, life: u64) -> Self {
        let closed = AtomicBool::new(false);
        Self { engine: Arc::new(Engine { medium, life, closed, failed: OnceLock::new() }) }
    }

    fn entries(&self, map: Map, from: Bound<&[u8]>, to: Bound<&[u8]>, reverse: bool) -> Entries {
        let own = |bound: Bound<&[u8]>| bound.map(<[u8]>::to_vec);
        let engine = Arc::clone(&self.engine);
        Box::new(Cursor { engine, map, from: own(from), to: own(to), reverse, over: false })
    }
}

impl Engine {
    fn read(&self) -> Result<MutexGuard<'_, State>> {
        if self.closed.load(Ordering::SeqCst) {
            return Err(Error::Closed);
        }
        self.medium.begin_read(self.life).map_err(engine_error)
    }

    fn begin(&self, step: Step) -> Result<(MutexGuard<'_, State>, Fate)> {
        if self.closed.load(Ordering::SeqCst) {
            return Err(Error::Closed);
        }
        if let Some(cause) = self.failed.get() {
            return Err(Error::Failed { cause: Arc::clone(cause) });
        }
        self.medium.begin(self.life, step).map_err(|error| self.fail(error))
    }

    fn fail(&self, error: io::Error) -> Error {
        self.failed.get_or_init(|| Arc::new(engine_error(io::Error::other(error.to_string()))));
        engine_error(error)
    }

    fn write(&self, step: Step, map: Map, changes: Vec<Change>) -> Result<()> {
        for (key, value) in &changes {
            assert!(key.len() <= 512, "a key of {} bytes", key.len());
            let bytes = value.as_ref().map_or(0, Vec::len);
            assert!(bytes <= MAX_VALUE_BYTES, "a value of {bytes} bytes");
        }
        let (mut state, fate) = self.begin(step)?;
        let State { disk, dice, .. } = &mut *state;
        match fate {
            Fate::Whole => {
                disk.change(map, changes);
                Ok(())
            }
            Fate::Torn(error) => {
                if dice.chance(1, 2) {
                    disk.change(map, changes);
                }
                Err(self.fail(error))
            }
        }
    }
}

/// Looks its next entry up when it is asked for: what is written meanwhile shows.
struct Cursor {
    engine: Arc<Engine>,
    map: Map,
    from: Bound<Vec<u8>>,
    to: Bound<Vec<u8>>,
    reverse: bool,
    over: bool,
}

fn empty(from: &Bound<Vec<u8>>, to: &Bound<Vec<u8>>) -> bool {
    match (from, to) {
        (Bound::Unbounded, _) | (_, Bound::Unbounded) => false,
        (Bound::Included(from), Bound::Included(to)) => from > to,
        (Bound::Included(from) | Bound::Excluded(from), Bound::Excluded(to) | Bound::Included(to)) => {
            from >= to
        }
    }
}

impl Cursor {
    fn step(&mut self) -> Result<Option<Entry>> {
        let state = self.engine.read()?;
        let (from, to) = (self.from.as_ref().map(Vec::as_slice), self.to.as_ref().map(Vec::as_slice));
        Ok(if self.reverse {
            let mut entry = state.disk.last(self.map, from, to);
            let packing = std::thread::current().name() == Some("sessionlog-pack");
            if let (Some((_, value)), true) =
                (&mut entry, state.scattering && packing && self.map == Map::Events)
            {
                value[0] ^= 1;
            }
            entry
        } else {
            state.disk.first(self.map, from, to)
        })
    }
}

impl Iterator for Cursor {
    type Item = Result<Entry>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.over || empty(&self.from, &self.to) {
            return None;
        }
        let entry = self.step().transpose();
        match &entry {
            Some(Ok((key, _))) if self.reverse => self.to = Bound::Excluded(key.clone()),
            Some(Ok((key, _))) => self.from = Bound::Excluded(key.clone()),
            _ => self.over = true,
        }
        entry
    }
}

impl Storage for FaultStorage {
    fn get(&self, map: Map, key: &[u8]) -> Result<Option<Vec<u8>>> {
        Ok(self.engine.read()?.disk.get(map, key))
    }

    fn range(&self, map: Map, from: Bound<&[u8]>, to: Bound<&[u8]>) -> Entries {
        self.entries(map, from, to, false)
    }

    fn range_reverse(&self, map: Map, from: Bound<&[u8]>, to: Bound<&[u8]>) -> Entries {
        self.entries(map, from, to, true)
    }

    fn insert(&self, map: Map, key: &[u8], value: &[u8]) -> Result<()> {
        let change = (key.to_vec(), Some(value.to_vec()));
        self.engine.write(Step::Insert(map), map, vec![change])
    }

    fn apply(&self, map: Map, changes: &[(Vec<u8>, Option<Vec<u8>>)]) -> Result<()> {
        self.engine.write(Step::Apply(map, changes.len()), map, changes.to_vec())
    }

    fn flush(&self) -> Result<()> {
        let (mut state, fate) = self.engine.begin(Step::Flush)?;
        match fate {
            Fate::Whole => {
                state.disk.flush();
                Ok(())
            }
            Fate::Torn(error) => Err(self.engine.fail(error)),
        }
    }

    fn size_on_disk(&self) -> Result<u64> {
        Ok(self.engine.read()?.disk.map_bytes())
    }

    fn close(&self) -> Result<()> {
        self.engine.closed.store(true, Ordering::SeqCst);
        Ok(())
    }
}

#[derive(Debug)]
pub(super) struct FaultFiles {
    pub(super) medium: Medium,
    pub(super) life: u64,
}

impl FaultFiles {
    fn file(&self, number: u64) -> Arc<dyn JournalFile> {
        Arc::new(FaultFile { medium: self.medium.clone(), life: self.life, number })
    }

    /// A change of names: done, or done or not and reported as failed.
    fn change(&self, step: Step, change: impl FnOnce(&mut State)) -> io::Result<()> {
        let (mut state, fate) = self.medium.begin(self.life, step)?;
        let torn = match fate {
            Fate::Whole => None,
            Fate::Torn(error) => Some(error),
        };
        if torn.is_none() || state.dice.chance(1, 2) {
            change(&mut state);
        }
        torn.map_or(Ok(()), Err)
    }

    fn must_exist(&self, name: &str) -> io::Result<u64> {
        let number = self.medium.begin_read(self.life)?.disk.number_of(name);
        number.ok_or_else(|| io::Error::new(io::ErrorKind::NotFound, name.to_string()))
    }

    fn must_not_exist(&self, name: &str) -> io::Result<()> {
        match self.medium.begin_read(self.life)?.disk.number_of(name) {
            Some(_) => Err(io::Error::new(io::ErrorKind::AlreadyExists, name.to_string())),
            None => Ok(()),
        }
    }
}

impl JournalFiles for FaultFiles {
    fn list(&self) -> io::Result<Vec<String>> {
        Ok(self.medium.begin_read(self.life)?.disk.names())
    }

    fn create(&self, name: &str, len: u64) -> io::Result<Arc<dyn JournalFile>> {
        self.must_not_exist(name)?;
        let (mut state, fate) = self.medium.begin(self.life, Step::Create(name.into(), len))?;
        match fate {
            Fate::Whole => {
                let number = state.disk.create(name, len as usize);
                drop(state);
                Ok(self.file(number))
            }
            Fate::Torn(error) => {
                // The process ended in it: a name with fewer bytes, or none.
                if state.stopped && state.dice.chance(2, 3) {
                    let part = state.dice.below(len + 1) / 512 * 512;
                    state.disk.create(name, part as usize);
                }
                Err(error)
            }
        }
    }

    fn open(&self, name: &str) -> io::Result<Arc<dyn JournalFile>> {
        Ok(self.file(self.must_exist(name)?))
    }

    fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        self.must_exist(from)?;
        self.must_not_exist(to)?;
        self.change(Step::Rename(from.into(), to.into()), |state| state.disk.rename(from, to))
    }

    fn remove(&self, name: &str) -> io::Result<()> {
        self.must_exist(name)?;
        self.change(Step::Remove(name.into()), |state| state.disk.remove(name))
    }

    fn sync_folder(&self) -> io::Result<()> {
        let (mut state, fate) = self.medium.begin(self.life, Step::SyncFolder)?;
        match fate {
            Fate::Whole => {
                state.disk.sync_folder();
                Ok(())
            }
            Fate::Torn(error) => Err(error),
        }
    }

    fn free_bytes(&self) -> io::Result<u64> {
        Ok(self.medium.begin_read(self.life)?.free)
    }
}

#[derive(Debug)]
struct FaultFile {
    medium: Medium,
    life: u64,
    number: u64,
}

impl FaultFile {
    fn name(&self) -> String {
        self.medium.lock().disk.name_of(self.number)
    }
}

impl JournalFile for FaultFile {
    fn len(&self) -> io::Result<u64> {
        Ok(self.medium.begin_read(self.life)?.disk.len(self.number) as u64)
    }

    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<()> {
        let state = self.medium.begin_read(self.life)?;
        let within = state.disk.read(self.number, buffer, offset as usize);
        if within { Ok(()) } else { Err(io::ErrorKind::UnexpectedEof.into()) }
    }

    fn write_at(&self, bytes: &[u8], offset: u64) -> io::Result<()> {
        let end = offset + bytes.len() as u64;
        assert!(end <= self.len()?, "a write beyond the end of {}", self.name());
        let step = Step::Write(self.name(), offset, bytes.len());
        let (mut state, fate) = self.medium.begin(self.life, step)?;
        let State { disk, dice, .. } = &mut *state;
        match fate {
            Fate::Whole => {
                disk.write(self.number, bytes, offset as usize);
                Ok(())
            }
            Fate::Torn(error) => {
                disk.write_in_part(self.number, bytes, offset as usize, dice);
                Err(error)
            }
        }
    }

    fn sync(&self) -> io::Result<()> {
        let name = self.name();
        let (mut state, fate) = self.medium.begin(self.life, Step::Sync(name.clone()))?;
        match fate {
            Fate::Whole => {
                state.disk.sync(self.number);
                Ok(())
            }
            Fate::Torn(error) => {
                if !state.stopped {
                    state.spoil(&Step::Sync(name));
                }
                Err(error)
            }
        }
    }
}
