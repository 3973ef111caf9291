//! Sessionlog, as its users have it.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use sessionlog::storage::{JournalFile, JournalFiles, MemoryJournalFiles, MemoryStorage};
use sessionlog::{Append, NewEvent, NewSession, Session, Store, StoreOptions};

use crate::Outcome;
use crate::events::new_event;
use crate::measure::folder_bytes;
use crate::trace::TraceEvent;

/// Longer than any measurement: what happens in the background at this time does not.
const NEVER: Duration = Duration::from_secs(3600);

/// Creates a session with this id.
pub fn session(store: &Store, id: &str) -> Outcome<Session> {
    Ok(store.create(NewSession::with_id(id.parse()?))?)
}

/// Appends all events or none, synced; makes them from the plain ones first.
pub fn append_batch(session: &Session, events: &[TraceEvent]) -> Outcome<()> {
    session.append_with(Append::new().sync(), events.iter().map(new_event))?;
    Ok(())
}

/// The options of a store whose events stay in the tail as long as they fit.
pub fn undrained() -> StoreOptions {
    StoreOptions::new().drain_age(NEVER)
}

/// What the files of a store take.
#[derive(Clone, Copy, Debug)]
pub struct Sizes {
    pub engine: u64,
    pub journal: u64,
}

impl Sizes {
    /// Of the store in this folder.
    pub fn of(store: &Path) -> Outcome<Self> {
        let mut sizes = Self { engine: 0, journal: 0 };
        for entry in std::fs::read_dir(store)? {
            let entry = entry?;
            let name = entry.file_name();
            if name == "journal" {
                sizes.journal += folder_bytes(&entry.path())?;
            } else if name.to_string_lossy().starts_with("engine") {
                sizes.engine += folder_bytes(&entry.path())?;
            }
        }
        Ok(sizes)
    }
}

/// Returns the bytes that the journal writes for one append of these events: what R has to write.
pub fn journal_bytes_of(events: &[TraceEvent]) -> Outcome<Vec<u8>> {
    let written = Arc::default();
    let files = Recorder { files: MemoryJournalFiles::new(), written: Arc::clone(&written) };
    let store = undrained().sync_window(NEVER).open_on(Arc::new(MemoryStorage::new()), Arc::new(files))?;
    let session = store.create(NewSession::new())?;
    session.append(NewEvent::turn_start("the first frame may be another kind"))?;
    lock(&written).clear();
    append_batch(&session, events)?;
    let bytes = lock(&written).clone();
    Ok(bytes)
}

fn lock(written: &Mutex<Vec<u8>>) -> std::sync::MutexGuard<'_, Vec<u8>> {
    written.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Keeps what is written to the files.
#[derive(Debug)]
struct Recorder {
    files: MemoryJournalFiles,
    written: Arc<Mutex<Vec<u8>>>,
}

impl Recorder {
    fn record(&self, file: Arc<dyn JournalFile>) -> Arc<dyn JournalFile> {
        Arc::new(RecordedFile { file, written: Arc::clone(&self.written) })
    }
}

impl JournalFiles for Recorder {
    fn list(&self) -> io::Result<Vec<String>> {
        self.files.list()
    }

    fn create(&self, name: &str, len: u64) -> io::Result<Arc<dyn JournalFile>> {
        Ok(self.record(self.files.create(name, len)?))
    }

    fn open(&self, name: &str) -> io::Result<Arc<dyn JournalFile>> {
        Ok(self.record(self.files.open(name)?))
    }

    fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        self.files.rename(from, to)
    }

    fn remove(&self, name: &str) -> io::Result<()> {
        self.files.remove(name)
    }

    fn sync_folder(&self) -> io::Result<()> {
        self.files.sync_folder()
    }

    fn free_bytes(&self) -> io::Result<u64> {
        self.files.free_bytes()
    }
}

#[derive(Debug)]
struct RecordedFile {
    file: Arc<dyn JournalFile>,
    written: Arc<Mutex<Vec<u8>>>,
}

impl JournalFile for RecordedFile {
    fn len(&self) -> io::Result<u64> {
        self.file.len()
    }

    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<()> {
        self.file.read_at(buffer, offset)
    }

    fn write_at(&self, bytes: &[u8], offset: u64) -> io::Result<()> {
        lock(&self.written).extend_from_slice(bytes);
        self.file.write_at(bytes, offset)
    }

    fn sync(&self) -> io::Result<()> {
        self.file.sync()
    }
}

/// Where a store goes in the folder of the measurements.
pub fn store_path(folder: &Path) -> PathBuf {
    folder.join("store")
}
