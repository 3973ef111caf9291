//! [`Storage`] on sled 0.34.7: the only file that names sled.
//!
//! As shipped sled is not durable on Linux and not safe to open again after a crash. What makes it so is in
//! `engine_files.rs` (around the open) and here: errors and panics are final, all hands are off the files when `close`
//! returns, and nothing of sled lives in an iterator.

use std::borrow::Cow;
use std::fmt;
use std::ops::Bound;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError, RwLock, RwLockReadGuard, TryLockError};
use std::time::{Duration, Instant};

use super::engine_files::{EngineFiles, FolderLock};
use super::guard::{NotDone, guarded, on_thread, shorten};
use super::range::{self, Source, Span};
use super::{
    EngineDurability, Entries, Entry, MAX_VALUE_BYTES, Map, Storage, engine_files, files, sled_keys,
};
use crate::error::{Corruption, Error, Place, Result};

/// How long sled may take to open its files, before a bonus for large ones: damaged files can keep it busy for ever.
const OPEN_LIMIT: Duration = Duration::from_secs(60);
/// Reading speed at which the size of the files is added to that limit: a slow disk, read from end to end.
const SLOWEST_BYTES_PER_MS: u64 = 16 * 1024;
/// How long calls under way, and sled's own last writes, may take at `close`.
const CLOSE_LIMIT: Duration = Duration::from_secs(30);
/// Times that a scan looks at an entry's page again. sled's cache evicts only where a shard of it has been accessed 64
/// times, and a scan accesses each page once or twice: reading a long session whole would keep some 0.7 GB before
/// anything goes. (Measured: 12,000,000 events read, 255 MB without and 70 MB with it; it costs under 10 ns an event.)
const SCAN_ACCESSES: usize = 8;
/// How long a lock on sled's file is waited for: the system may still be busy with a dead process's last writes.
const LOCK_PATIENCE: Duration = Duration::from_secs(5);
/// sled panics below 256 bytes, and a page or two should fit.
const LEAST_CACHE_BYTES: u64 = 256 * 1024;
const PAUSE: Duration = Duration::from_millis(1);
/// Writes of one small value until its page is written anew, which is when sled moves a page out of a segment that is
/// half empty: it does that at no other time, since its own flusher is off.
const WRITES_A_MOVE: usize = 11;
/// Such writes in one round of [`SledStorage::shrink`], and the length of the value: both the moves and what the log goes
/// on by matter. (Measured: with 4,000 bytes nothing moves fast enough, with 20 segments end too seldom.)
const SHRINKING_WRITES: usize = 20_000;
const SHRINKING_BYTES: usize = 100;
/// Rounds after which it is what it is.
const SHRINKING_ROUNDS: usize = 12;
/// Items of a page that keys were written to in order.
const PAGE_ITEMS: usize = 8;
/// Writes between two flushes while pages are moved.
const FLUSH_WRITES: usize = 64;
/// More than any key has.
const MAX_KEY_BYTES: usize = 512;
/// What a value may have above its limit without harm.
const SPARE_VALUE_BYTES: usize = 1024;
// 16 of the largest entries, their lengths and the page's own fields fit into a page without a file of its own.
const _: () = assert!(16 * (MAX_KEY_BYTES * 4 / 3 + MAX_VALUE_BYTES + SPARE_VALUE_BYTES + 16) < 131_052);

/// A [`Storage`] on the embedded database sled, in a folder of its own.
///
/// The folder's owner keeps other processes away from it (the store's lock does); sled's own lock is a second line.
pub struct SledStorage {
    shared: Arc<Shared>,
}

impl SledStorage {
    /// Opens the engine in `dir`, or makes it there, with a cache of `cache_bytes` (256 KiB at least).
    ///
    /// Takes what sled's recovery takes: it reads what was written since the last open, and each page once it is
    /// asked for. Leftovers of a crash are removed; nothing else ever is. Damaged files can make sled panic; that is
    /// caught, but the panic hook has printed it on standard error by then.
    ///
    /// # Errors
    /// [`Error::Corrupt`]: sled cannot open its files. [`Error::Io`]: the system's reason. [`Error::InUse`]: somebody
    /// has them open. [`Error::TimedOut`]: after a minute (more for large files) sled had not opened them; the thread
    /// that tries goes on, and keeps them in use until it is done, if ever.
    pub fn open(dir: &Path, cache_bytes: u64) -> Result<Self> {
        Self::open_within(dir, cache_bytes, OPEN_LIMIT)
    }

    fn open_within(dir: &Path, cache_bytes: u64, limit: Duration) -> Result<Self> {
        let dir = std::path::absolute(dir).map_err(files::at("find", dir))?;
        // Before anything is touched: an open that was given up can still be under way.
        let lock = FolderLock::acquire(&dir, LOCK_PATIENCE)?.map(Arc::new).ok_or_else(|| in_use(&dir))?;
        let around = EngineFiles::prepare(&dir)?;
        let limit = limit + Duration::from_millis(around.size()? / SLOWEST_BYTES_PER_MS);
        let engine = open_engine(&dir, cache_bytes, limit, &lock)?;
        let files = match around.opened() {
            Ok(files) => files,
            Err(error) => {
                release(engine, &dir)?;
                return Err(error);
            }
        };
        Ok(Self {
            shared: Arc::new(Shared {
                dir,
                files,
                engine: RwLock::new(Some(engine)),
                closed: AtomicBool::new(false),
                failed: Mutex::new(None),
            }),
        })
    }

    /// How long opening the engine in `dir` may take.
    pub(crate) fn open_limit(dir: &Path) -> Duration {
        let bytes = super::bytes_in(dir).unwrap_or_default();
        OPEN_LIMIT + Duration::from_millis(bytes / SLOWEST_BYTES_PER_MS)
    }

    /// Whether `dir` holds no engine yet, or one that has lost its data. Opening makes a new one there.
    pub(crate) fn is_unborn(dir: &Path) -> Result<bool> {
        super::engine_files::is_unborn(dir)
    }

    /// Lets go of segments that hold little, until the files take at most `target_bytes`, if they come to that: for an
    /// engine that was just filled and that nobody else uses. It is whole again when this returns.
    ///
    /// sled frees a segment when all its pages are written elsewhere, and cuts its file when the last ones are free. It
    /// moves a page out of a segment that is half empty each time it writes another page anew. So one small page is written
    /// anew again and again; and when that comes to nothing, for a full segment is the last one, all pages are.
    pub(crate) fn shrink(&self, target_bytes: u64) -> Result<()> {
        let mut least = self.size_on_disk()?;
        let mut without = 0;
        for _ in 0..SHRINKING_ROUNDS {
            if least <= target_bytes {
                break;
            }
            if without == 2 {
                without = 0;
                self.shared.write("write", Engine::rewrite_pages)?;
            }
            self.shared.write("write", |engine| engine.move_pages(SHRINKING_WRITES, SHRINKING_BYTES))?;
            self.flush()?;
            let now = self.size_on_disk()?;
            without = if now < least { 0 } else { without + 1 };
            least = least.min(now);
        }
        self.shared.write("write", |engine| engine.scratch.clear())?;
        self.flush()
    }

    /// Returns how this engine's writes become durable, as found out when it was opened.
    pub fn durability(&self) -> EngineDurability {
        self.shared.files.durability()
    }
}

impl fmt::Debug for SledStorage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.shared.fmt(f)
    }
}

impl Drop for SledStorage {
    fn drop(&mut self) {
        // Who wants to know calls `close`. Iterators share the rest, never the engine.
        let _ = self.shared.close();
    }
}

/// What handles and iterators share.
struct Shared {
    dir: PathBuf,
    files: EngineFiles,
    /// Taken out by `close`. Calls into sled hold the read side, each for its own duration only.
    engine: RwLock<Option<Engine>>,
    /// Set before the engine is taken out, so that no new call delays that.
    closed: AtomicBool,
    failed: Mutex<Option<Arc<Error>>>,
}

impl fmt::Debug for Shared {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Never sled's own output: it prints every entry.
        f.debug_struct("SledStorage")
            .field("dir", &self.dir)
            .field("closed", &self.closed)
            .finish_non_exhaustive()
    }
}

struct Engine {
    db: ::sled::Db,
    sessions: ::sled::Tree,
    events: ::sled::Tree,
    care: ::sled::Tree,
    derived: ::sled::Tree,
    /// Holds nothing that counts: it is written to so that sled moves pages.
    scratch: ::sled::Tree,
    /// Behind sled's, so that it is given up last.
    _lock: Arc<FolderLock>,
}

impl Engine {
    fn open(dir: &Path, cache_bytes: u64, lock: Arc<FolderLock>) -> ::sled::Result<Self> {
        // Nothing else: `mode` does nothing, compression and segment size are fixed at creation, `temporary` skips
        // syncs, and a periodic flush would only write what the drain flushes anyway.
        let config = ::sled::Config::new()
            .path(dir)
            .cache_capacity(cache_bytes.max(LEAST_CACHE_BYTES))
            .flush_every_ms(None);
        let db = config.open()?;
        Ok(Self {
            sessions: db.open_tree("sessions")?,
            events: db.open_tree("events")?,
            care: db.open_tree("care")?,
            derived: db.open_tree("derived")?,
            scratch: db.open_tree("scratch")?,
            db,
            _lock: lock,
        })
    }

    /// Writes a small page anew again and again.
    fn move_pages(&self, writes: usize, bytes: usize) -> ::sled::Result<()> {
        let mut value = vec![0; bytes];
        for n in 0..writes {
            // Writing what is there already does nothing.
            value.fill(u8::from(n % 2 == 0));
            self.scratch.insert([], value.as_slice())?;
            if n % FLUSH_WRITES == FLUSH_WRITES - 1 {
                self.db.flush()?;
            }
        }
        Ok(())
    }

    /// Writes every page anew, by a key in it that comes and goes.
    fn rewrite_pages(&self) -> ::sled::Result<()> {
        for map in Map::ALL {
            let tree = self.tree(map);
            for (n, key) in tree.iter().keys().step_by(PAGE_ITEMS).enumerate() {
                let mut key = key?.to_vec();
                key.push(0);
                for write in 0..WRITES_A_MOVE {
                    tree.insert(&key, &[u8::from(write % 2 == 0)])?;
                }
                tree.remove(&key)?;
                if n % PAGE_ITEMS == 0 {
                    self.db.flush()?;
                }
            }
        }
        self.db.flush()?;
        Ok(())
    }

    fn tree(&self, map: Map) -> &::sled::Tree {
        match map {
            Map::Sessions => &self.sessions,
            Map::Events => &self.events,
            Map::Care => &self.care,
            Map::Derived => &self.derived,
        }
    }
}

impl Shared {
    fn engine(&self) -> Result<RwLockReadGuard<'_, Option<Engine>>> {
        if self.closed.load(Ordering::Acquire) {
            return Err(Error::Closed);
        }
        // Panics are caught below the lock, so it is never poisoned.
        Ok(self.engine.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// Runs a read. Damage that sled reports is this read's alone; a panic leaves sled in a state that nobody knows,
    /// so writes end there.
    fn read<T>(&self, work: impl FnOnce(&Engine) -> ::sled::Result<T>) -> Result<T> {
        let guard = self.engine()?;
        let engine = guard.as_ref().ok_or(Error::Closed)?;
        // sled's locks do not poison, and what it has in memory is used for reads only from then on.
        match guarded(|| work(engine)) {
            Ok(Ok(value)) => Ok(value),
            Ok(Err(error)) => Err(translate("read", &self.dir, &error)),
            Err(message) => {
                self.fail(|| fault(message.clone()));
                Err(fault(message))
            }
        }
    }

    /// Runs a write or flush. The first error is kept and ends all writes.
    fn write<T>(&self, action: &'static str, work: impl FnOnce(&Engine) -> ::sled::Result<T>) -> Result<T> {
        let guard = self.engine()?;
        let engine = guard.as_ref().ok_or(Error::Closed)?;
        if let Some(cause) = &*self.failed.lock().unwrap_or_else(PoisonError::into_inner) {
            return Err(Error::Failed { cause: Arc::clone(cause) });
        }
        match guarded(|| work(engine)) {
            Ok(Ok(value)) => Ok(value),
            Ok(Err(error)) => {
                self.fail(|| translate(action, &self.dir, &error));
                Err(translate(action, &self.dir, &error))
            }
            Err(message) => {
                self.fail(|| fault(message.clone()));
                Err(fault(message))
            }
        }
    }

    fn fail(&self, error: impl FnOnce() -> Error) {
        self.failed.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert_with(|| Arc::new(error()));
    }

    fn close(&self) -> Result<()> {
        self.closed.store(true, Ordering::Release);
        let start = Instant::now();
        // Not `write()`: a call that hangs in sled would hang this one, and every reader behind it.
        let mut engine = loop {
            match self.engine.try_write() {
                Ok(engine) => break engine,
                Err(TryLockError::Poisoned(engine)) => break engine.into_inner(),
                Err(TryLockError::WouldBlock) if start.elapsed() < CLOSE_LIMIT => std::thread::sleep(PAUSE),
                Err(TryLockError::WouldBlock) => {
                    return Err(timed_out("ending calls into the engine", CLOSE_LIMIT));
                }
            }
        };
        // Under the lock: whoever closes second returns when the files are free, too.
        engine.take().map_or(Ok(()), |engine| release(engine, &self.dir))
    }
}

impl Source for Shared {
    fn batch(&self, span: &Span, limit: usize, batch: &mut Vec<Entry>) -> Result<()> {
        self.read(|engine| {
            let (from, to) = span.bounds();
            let bounds = (from.map(sled_keys::to_engine), to.map(sled_keys::to_engine));
            let tree = engine.tree(span.map);
            let mut found = tree.range::<Cow<'_, [u8]>, _>(bounds);
            while batch.len() < limit
                && let Some(entry) = if span.reverse { found.next_back() } else { found.next() }
            {
                let (key, value) = entry?;
                if limit > 1 {
                    for _ in 0..SCAN_ACCESSES {
                        tree.contains_key(&key)?;
                    }
                }
                batch.push((sled_keys::from_engine(&key), value.to_vec()));
            }
            Ok(())
        })
    }
}

impl Storage for SledStorage {
    fn get(&self, map: Map, key: &[u8]) -> Result<Option<Vec<u8>>> {
        self.shared
            .read(|engine| Ok(engine.tree(map).get(sled_keys::to_engine(key))?.map(|value| value.to_vec())))
    }

    fn range(&self, map: Map, from: Bound<&[u8]>, to: Bound<&[u8]>) -> Entries {
        range::entries(&self.shared, map, from, to, false)
    }

    fn range_reverse(&self, map: Map, from: Bound<&[u8]>, to: Bound<&[u8]>) -> Entries {
        range::entries(&self.shared, map, from, to, true)
    }

    fn insert(&self, map: Map, key: &[u8], value: &[u8]) -> Result<()> {
        check_size(key, value);
        self.shared
            .write("write", |engine| engine.tree(map).insert(sled_keys::to_engine(key), value).map(drop))
    }

    fn apply(&self, map: Map, changes: &[(Vec<u8>, Option<Vec<u8>>)]) -> Result<()> {
        let mut batch = ::sled::Batch::default();
        for (key, value) in changes {
            check_size(key, value.as_deref().unwrap_or_default());
            let key = sled_keys::to_engine(key);
            match value {
                Some(value) => batch.insert(&*key, value.as_slice()),
                None => batch.remove(&*key),
            }
        }
        self.shared.write("write", |engine| engine.tree(map).apply_batch(batch))
    }

    fn flush(&self) -> Result<()> {
        let shared = &self.shared;
        shared.write("flush", |engine| {
            engine.db.flush()?;
            // Inside, so that a sync that fails is as final as any other write.
            shared.files.flushed().map_err(::sled::Error::Io)
        })
    }

    fn size_on_disk(&self) -> Result<u64> {
        self.shared.engine()?.as_ref().ok_or(Error::Closed)?;
        self.shared.files.size()
    }

    fn close(&self) -> Result<()> {
        self.shared.close()
    }
}

/// Sizes are the log's duty; this finds its mistakes in tests. A little more than a full value is harmless.
fn check_size(key: &[u8], value: &[u8]) {
    debug_assert!(key.len() <= MAX_KEY_BYTES, "a key of {} bytes", key.len());
    debug_assert!(value.len() <= MAX_VALUE_BYTES + SPARE_VALUE_BYTES, "a value of {} bytes", value.len());
}

/// Opens sled on a thread of its own, because on damaged files it can hang.
fn open_engine(dir: &Path, cache_bytes: u64, limit: Duration, lock: &Arc<FolderLock>) -> Result<Engine> {
    loop {
        let (folder, lock) = (dir.to_owned(), Arc::clone(lock));
        return match on_thread("sessionlog-open", limit, move || Engine::open(&folder, cache_bytes, lock)) {
            Ok(Ok(Ok(engine))) => Ok(engine),
            // A child that another thread is just starting has a copy of the file that was looked at before.
            Ok(Ok(Err(::sled::Error::Io(error)))) if is_locked(&error) => {
                if engine_files::wait_until_free(dir, LOCK_PATIENCE) {
                    continue;
                }
                Err(in_use(dir))
            }
            Ok(Ok(Err(::sled::Error::Io(error)))) => Err(files::at("open", dir)(error)),
            Ok(Ok(Err(error))) => Err(unreadable(dir, shorten(&error.to_string()))),
            Ok(Err(panic)) => Err(unreadable(dir, panic)),
            Err(NotDone::Late) => Err(timed_out("opening the engine", limit)),
            Err(NotDone::NoThread(error)) => Err(files::at("start a thread for", dir)(error)),
        };
    }
}

/// sled has no variant for it.
fn is_locked(error: &std::io::Error) -> bool {
    error.to_string().starts_with("could not acquire lock")
}

fn in_use(dir: &Path) -> Error {
    Error::InUse { path: dir.to_owned(), holder: None }
}

/// The files are not such as sled can open. Also what damaged settings look like.
fn unreadable(dir: &Path, message: String) -> Error {
    let place = Place::new("engine").at(dir.display().to_string());
    Error::Corrupt { place, corruption: Corruption::Engine { message } }
}

/// Drops the engine, and returns when its files are free.
///
/// sled hands its last writes to threads of a pool that outlives it, and each of them keeps the file, and so its lock,
/// a moment longer than the database lives (sled's issue 1289).
fn release(engine: Engine, dir: &Path) -> Result<()> {
    match on_thread("sessionlog-close", CLOSE_LIMIT, move || drop(engine)) {
        // A failing last sync panics in sled. What was flushed is durable, and no more was promised.
        Ok(Ok(()) | Err(_)) => {}
        Err(NotDone::Late) => return Err(timed_out("closing the engine", CLOSE_LIMIT)),
        // The engine was dropped together with the thread that could not be.
        Err(NotDone::NoThread(_)) => {}
    }
    if engine_files::wait_until_free(dir, LOCK_PATIENCE) {
        Ok(())
    } else {
        Err(timed_out("releasing the engine's files", LOCK_PATIENCE))
    }
}

fn timed_out(action: &'static str, limit: Duration) -> Error {
    Error::TimedOut { action, limit_ms: u64::try_from(limit.as_millis()).unwrap_or(u64::MAX) }
}

/// What sled says in other words than ours: a bug of it or of ours, or a panic.
#[derive(Debug, thiserror::Error)]
#[error("{message}")]
struct Fault {
    message: String,
}

fn fault(message: String) -> Error {
    Error::Storage(Box::new(Fault { message }))
}

/// Says in our words what sled says.
fn translate(action: &'static str, dir: &Path, error: &::sled::Error) -> Error {
    match error {
        ::sled::Error::Io(error) => {
            // A copy: the error is given to the caller, and kept.
            let source = error.raw_os_error().map_or_else(
                || std::io::Error::new(error.kind(), error.to_string()),
                std::io::Error::from_raw_os_error,
            );
            files::at(action, dir)(source)
        }
        ::sled::Error::Corruption { at, .. } => {
            let at = at.map_or_else(String::new, |at| format!(", {at}"));
            let place = Place::new("engine page").at(format!("{}{at}", dir.display()));
            Error::Corrupt { place, corruption: Corruption::Undecodable { what: "the page" } }
        }
        other => fault(shorten(&other.to_string())),
    }
}

#[cfg(test)]
mod tests;
