//! Both seams in memory: for stores that need no disk, and for tests.

use std::collections::BTreeMap;
use std::fmt;
use std::io;
use std::ops::Bound;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

use super::range::{self, Source, Span};
use super::{Entries, Entry, JournalFile, JournalFiles, Map, Storage};
use crate::error::{Error, Result};

type Maps = [BTreeMap<Vec<u8>, Vec<u8>>; Map::ALL.len()];

/// A [`Storage`] in memory. Nothing survives the last handle.
///
/// A clone is another handle on the same bytes that is closed on its own: close one and clone it to open the "same
/// store" again.
pub struct MemoryStorage {
    handle: Arc<Handle>,
}

struct Handle {
    maps: Arc<RwLock<Maps>>,
    closed: AtomicBool,
}

impl MemoryStorage {
    /// Makes an empty one.
    pub fn new() -> Self {
        Self::over(Arc::default())
    }

    fn over(maps: Arc<RwLock<Maps>>) -> Self {
        Self { handle: Arc::new(Handle { maps, closed: AtomicBool::new(false) }) }
    }
}

impl Default for MemoryStorage {
    fn default() -> Self {
        Self::new()
    }
}

impl Clone for MemoryStorage {
    fn clone(&self) -> Self {
        Self::over(Arc::clone(&self.handle.maps))
    }
}

impl Drop for MemoryStorage {
    fn drop(&mut self) {
        self.handle.closed.store(true, Ordering::Release);
    }
}

impl fmt::Debug for MemoryStorage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.handle.fmt(f)
    }
}

impl fmt::Debug for Handle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MemoryStorage").field("closed", &self.closed).finish_non_exhaustive()
    }
}

impl Handle {
    fn check(&self) -> Result<()> {
        if self.closed.load(Ordering::Acquire) { Err(Error::Closed) } else { Ok(()) }
    }

    // No code runs under these locks that could leave the maps half changed, so a poisoned lock is still sound.
    fn read(&self) -> Result<RwLockReadGuard<'_, Maps>> {
        self.check()?;
        Ok(self.maps.read().unwrap_or_else(PoisonError::into_inner))
    }

    fn write(&self) -> Result<RwLockWriteGuard<'_, Maps>> {
        self.check()?;
        Ok(self.maps.write().unwrap_or_else(PoisonError::into_inner))
    }
}

fn of(maps: &Maps, map: Map) -> &BTreeMap<Vec<u8>, Vec<u8>> {
    let [sessions, events, care, derived] = maps;
    match map {
        Map::Sessions => sessions,
        Map::Events => events,
        Map::Care => care,
        Map::Derived => derived,
    }
}

fn of_mut(maps: &mut Maps, map: Map) -> &mut BTreeMap<Vec<u8>, Vec<u8>> {
    let [sessions, events, care, derived] = maps;
    match map {
        Map::Sessions => sessions,
        Map::Events => events,
        Map::Care => care,
        Map::Derived => derived,
    }
}

impl Source for Handle {
    fn batch(&self, span: &Span, limit: usize, batch: &mut Vec<Entry>) -> Result<()> {
        let maps = self.read()?;
        let found = of(&maps, span.map).range::<[u8], _>(span.bounds());
        let copy = |(key, value): (&Vec<u8>, &Vec<u8>)| (key.clone(), value.clone());
        if span.reverse {
            batch.extend(found.rev().take(limit).map(copy));
        } else {
            batch.extend(found.take(limit).map(copy));
        }
        Ok(())
    }
}

impl Storage for MemoryStorage {
    fn get(&self, map: Map, key: &[u8]) -> Result<Option<Vec<u8>>> {
        Ok(of(&*self.handle.read()?, map).get(key).cloned())
    }

    fn range(&self, map: Map, from: Bound<&[u8]>, to: Bound<&[u8]>) -> Entries {
        range::entries(&self.handle, map, from, to, false)
    }

    fn range_reverse(&self, map: Map, from: Bound<&[u8]>, to: Bound<&[u8]>) -> Entries {
        range::entries(&self.handle, map, from, to, true)
    }

    fn insert(&self, map: Map, key: &[u8], value: &[u8]) -> Result<()> {
        of_mut(&mut *self.handle.write()?, map).insert(key.to_vec(), value.to_vec());
        Ok(())
    }

    fn apply(&self, map: Map, changes: &[(Vec<u8>, Option<Vec<u8>>)]) -> Result<()> {
        let mut maps = self.handle.write()?;
        let entries = of_mut(&mut maps, map);
        for (key, value) in changes {
            match value {
                Some(value) => drop(entries.insert(key.clone(), value.clone())),
                None => drop(entries.remove(key)),
            }
        }
        Ok(())
    }

    fn flush(&self) -> Result<()> {
        self.handle.check()
    }

    fn size_on_disk(&self) -> Result<u64> {
        let maps = self.handle.read()?;
        let bytes = maps.iter().flatten().map(|(key, value)| key.len() + value.len()).sum::<usize>();
        Ok(u64::try_from(bytes).unwrap_or(u64::MAX))
    }

    fn close(&self) -> Result<()> {
        self.handle.closed.store(true, Ordering::Release);
        Ok(())
    }
}

/// [`JournalFiles`] in memory. A clone is another handle on the same files.
#[derive(Clone, Debug)]
pub struct MemoryJournalFiles {
    shared: Arc<Mutex<Files>>,
}

#[derive(Debug)]
struct Files {
    files: BTreeMap<String, Arc<MemoryFile>>,
    /// `u64::MAX`: without end, and not counted.
    free_bytes: u64,
}

impl MemoryJournalFiles {
    /// Makes an empty folder without a limit.
    pub fn new() -> Self {
        Self { shared: Arc::new(Mutex::new(Files { files: BTreeMap::new(), free_bytes: u64::MAX })) }
    }

    /// Sets how many bytes can still be created. Creating takes from it, removing gives back. `u64::MAX` is no limit.
    pub fn set_free_bytes(&self, bytes: u64) {
        self.lock().free_bytes = bytes;
    }

    fn lock(&self) -> MutexGuard<'_, Files> {
        self.shared.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Default for MemoryJournalFiles {
    fn default() -> Self {
        Self::new()
    }
}

impl JournalFiles for MemoryJournalFiles {
    fn list(&self) -> io::Result<Vec<String>> {
        Ok(self.lock().files.keys().cloned().collect())
    }

    fn create(&self, name: &str, len: u64) -> io::Result<Arc<dyn JournalFile>> {
        super::journal_files::check_name(name)?;
        let mut shared = self.lock();
        if shared.files.contains_key(name) {
            return Err(io::ErrorKind::AlreadyExists.into());
        }
        if len > shared.free_bytes {
            return Err(io::ErrorKind::StorageFull.into());
        }
        if shared.free_bytes != u64::MAX {
            shared.free_bytes -= len;
        }
        let len = usize::try_from(len).map_err(|_| io::Error::from(io::ErrorKind::StorageFull))?;
        let file = Arc::new(MemoryFile { bytes: RwLock::new(vec![0; len]) });
        shared.files.insert(name.to_owned(), Arc::clone(&file));
        Ok(file)
    }

    fn open(&self, name: &str) -> io::Result<Arc<dyn JournalFile>> {
        match self.lock().files.get(name) {
            Some(file) => Ok(Arc::clone(file) as Arc<dyn JournalFile>),
            None => Err(io::ErrorKind::NotFound.into()),
        }
    }

    fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        super::journal_files::check_name(to)?;
        let mut shared = self.lock();
        if shared.files.contains_key(to) {
            return Err(io::ErrorKind::AlreadyExists.into());
        }
        let file = shared.files.remove(from).ok_or(io::ErrorKind::NotFound)?;
        shared.files.insert(to.to_owned(), file);
        Ok(())
    }

    fn remove(&self, name: &str) -> io::Result<()> {
        let mut shared = self.lock();
        let file = shared.files.remove(name).ok_or(io::ErrorKind::NotFound)?;
        if shared.free_bytes != u64::MAX {
            shared.free_bytes = shared.free_bytes.saturating_add(file.len()?);
        }
        Ok(())
    }

    fn sync_folder(&self) -> io::Result<()> {
        Ok(())
    }

    fn free_bytes(&self) -> io::Result<u64> {
        Ok(self.lock().free_bytes)
    }
}

struct MemoryFile {
    bytes: RwLock<Vec<u8>>,
}

impl fmt::Debug for MemoryFile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MemoryFile").finish_non_exhaustive()
    }
}

impl JournalFile for MemoryFile {
    fn len(&self) -> io::Result<u64> {
        let bytes = self.bytes.read().unwrap_or_else(PoisonError::into_inner);
        Ok(u64::try_from(bytes.len()).unwrap_or(u64::MAX))
    }

    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<()> {
        let bytes = self.bytes.read().unwrap_or_else(PoisonError::into_inner);
        let start = usize::try_from(offset).unwrap_or(usize::MAX);
        let found = bytes.get(start..).and_then(|rest| rest.get(..buffer.len()));
        buffer.copy_from_slice(found.ok_or(io::ErrorKind::UnexpectedEof)?);
        Ok(())
    }

    fn write_at(&self, bytes: &[u8], offset: u64) -> io::Result<()> {
        let mut held = self.bytes.write().unwrap_or_else(PoisonError::into_inner);
        let start = usize::try_from(offset).unwrap_or(usize::MAX);
        let place = held.get_mut(start..).and_then(|rest| rest.get_mut(..bytes.len()));
        place.ok_or_else(super::journal_files::beyond_end)?.copy_from_slice(bytes);
        Ok(())
    }

    fn sync(&self) -> io::Result<()> {
        Ok(())
    }
}
