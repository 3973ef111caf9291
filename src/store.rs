//! The store: opening it, its sessions, and closing it in order.

mod compact;
mod parts;
mod statistics;

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

pub(crate) use self::parts::{Parts, drained};
use crate::error::{Error, Result};
use crate::format::{self, NewHeader};
use crate::id::{Seq, SessionId, StorageKey, Timestamp};
use crate::integrity::{BackupReport, Quarantine, Scan, ScanReport};
use crate::list::{List, Sessions};
use crate::log;
use crate::log::commit::{Request, Work};
use crate::log::core::Core;
use crate::log::tail::{SessionState, Tail};
use crate::metrics::Metrics;
use crate::options::{NewSession, RESERVE_BYTES, StoreOptions};
use crate::session::Session;
use crate::spans::span;
use crate::storage::{
    Create, Description, Folder, FolderJournalFiles, JournalFiles, MemoryJournalFiles, MemoryStorage,
    Reserve, SledStorage, Storage, Witness,
};

/// An open store: a folder of sessions.
///
/// A handle is cheap to clone and can be used from any thread. One process at a time has a store open; when its last
/// handle (of the store, a session or a reader) is dropped, it is closed in order. [`close`](Self::close) does the
/// same and tells whether it went well.
#[derive(Clone, Debug)]
pub struct Store {
    handle: Handle,
}

/// What keeps a store open.
#[derive(Clone, Debug)]
pub(crate) struct Handle(Arc<Opened>);

/// An opened store. Dropping it closes it.
struct Opened {
    core: Arc<Core>,
    threads: Mutex<Vec<JoinHandle<()>>>,
    /// Holds the store's lock: given back last.
    folder: Mutex<Option<Folder>>,
    info: Fixed,
    report: OpenReport,
}

/// What does not change while a store is open.
#[derive(Clone, Debug)]
struct Fixed {
    path: Option<PathBuf>,
    store_id: [u8; 16],
    durability: &'static str,
    engine: String,
}

/// What a store is and takes; see [`Store::info`].
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct StoreInfo {
    /// Its folder; `None` when it is in memory.
    pub path: Option<PathBuf>,
    /// Tells its journal from that of any other store.
    pub store_id: String,
    /// The version of its format.
    pub format: u32,
    /// How the engine's writes become durable: `synchronous-attribute`; `sync-after-flush`, the weaker mode of file
    /// systems without that attribute; `other` on storage that was passed in.
    pub durability: String,
    /// The name of the engine's folder.
    pub engine: String,
    /// What the engine takes, in bytes.
    pub engine_bytes: u64,
    /// What the journal takes, in bytes.
    pub journal_bytes: u64,
    /// Accepted events that are not in blocks yet, in bytes of memory.
    pub tail_bytes: u64,
}

/// What opening found and did.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct OpenReport {
    /// Commits that were read from the journal: 0 after an orderly close.
    pub replayed_commits: u64,
    /// Events in them.
    pub replayed_events: u64,
    /// Files in the journal's folder that keep the bytes of commits that were not finished when the power went.
    /// Nothing in them was acknowledged.
    pub torn: Vec<String>,
}

impl Store {
    /// Opens the store in the folder `path`, with the defaults; creates it where the folder is missing or empty.
    ///
    /// # Errors
    /// See [`StoreOptions::open`].
    /// # Examples
    /// ```
    /// # fn main() -> sessionlog::Result<()> {
    /// # let folder = tempfile::tempdir().unwrap();
    /// # let path = folder.path().join("sessions");
    /// use sessionlog::{NewEvent, NewSession, Seq, Store};
    /// let store = Store::open(&path)?;
    /// let session = store.create(NewSession::with_id("first".parse()?))?;
    /// session.append(NewEvent::user_message("hello"))?;
    /// for event in session.read_from(Seq::ZERO)? {
    ///     println!("{}", event?);
    /// }
    /// store.close()?;
    /// # Ok(()) }
    /// ```
    pub fn open(path: impl AsRef<Path>) -> Result<Self> {
        StoreOptions::new().open(path)
    }

    /// Opens a store that lives in memory and is gone with its last handle: for tests and examples.
    ///
    /// # Errors
    /// None that a caller can cause.
    pub fn in_memory() -> Result<Self> {
        StoreOptions::new().open_on(Arc::new(MemoryStorage::new()), Arc::new(MemoryJournalFiles::new()))
    }

    pub(crate) fn open_folder(path: &Path, options: StoreOptions) -> Result<Self> {
        let create = if options.create { Create::IfMissing } else { Create::Never };
        let _span = span!("open");
        let mut folder = Folder::open(path, create)?;
        folder.remove_leftovers()?;
        if folder.description().is_some() {
            parts::check_parts(&folder)?;
        }
        // An engine needs room to open: the reserve is for that, and comes back when there is some.
        let files = FolderJournalFiles::open(&folder.journal_dir())?;
        make_room(&folder, &files, options.tail_bytes)?;
        let storage = SledStorage::open(&folder.engine_dir(), options.cache_bytes)?;
        let durability = storage.durability();
        let storage: Arc<dyn Storage> = Arc::new(storage);
        let opened = (|| {
            // Before anything is written.
            parts::check_witness(&folder, &files, parts::drained(storage.as_ref())?.unwrap_or(0))?;
            let open_count = log::replay::count_open(storage.as_ref(), folder.description().is_some())?;
            let store_id =
                folder.description().map_or_else(|| *uuid::Uuid::now_v7().as_bytes(), |d| d.store_id);
            let wanted = Description {
                format: Description::FORMAT,
                store_id,
                durability,
                engine: folder.engine().to_owned(),
            };
            // Behind the engine's "ready" record, before the journal's first file: this makes it a store.
            if folder.description() != Some(&wanted) {
                folder.describe(wanted)?;
            }
            let info = Fixed {
                path: Some(folder.path().to_owned()),
                store_id,
                durability: durability.as_str(),
                engine: folder.engine().to_owned(),
            };
            Ok((open_count, info))
        })();
        let (open_count, info) = match opened {
            Ok(opened) => opened,
            Err(error) => return Err(close_after(storage.as_ref(), error)),
        };
        let path = folder.path().to_owned();
        let store = Self::start(storage, Arc::new(files), options, open_count, info, Some(folder))?;
        // Being without a reserve is a state, not a failure: appends then leave the room for it alone.
        if !Reserve::ensure(&path, RESERVE_BYTES).unwrap_or(false) {
            store.core().journal.withhold(RESERVE_BYTES);
        }
        Ok(store)
    }

    pub(crate) fn open_seams(
        storage: Arc<dyn Storage>,
        files: Arc<dyn JournalFiles>,
        options: StoreOptions,
    ) -> Result<Self> {
        let _span = span!("open");
        let open_count = match log::replay::count_open(storage.as_ref(), false) {
            Ok(count) => count,
            Err(error) => return Err(close_after(storage.as_ref(), error)),
        };
        let info = Fixed { path: None, store_id: [0; 16], durability: "other", engine: String::new() };
        Self::start(storage, files, options, open_count, info, None)
    }

    fn start(
        storage: Arc<dyn Storage>,
        files: Arc<dyn JournalFiles>,
        mut options: StoreOptions,
        open_count: u32,
        info: Fixed,
        folder: Option<Folder>,
    ) -> Result<Self> {
        let engine = Arc::clone(&storage);
        let observer = options.observer.take();
        let started = (|| {
            let path = folder.as_ref().map(Folder::journal_dir).unwrap_or_default();
            let (core, report) =
                log::replay::open(storage, files, &options, open_count, info.store_id, path)?;
            core.observers.start(observer)?;
            let (keeper, drain) = (Arc::clone(&core), Arc::clone(&core));
            let opened_at = core.journal.written();
            let threads = vec![
                log::spawn("sessionlog-journal", move || keeper.keeper.run(&keeper, opened_at))?,
                log::spawn("sessionlog-drain", move || drain.drain.run(&drain))?,
                #[cfg(feature = "async")]
                core.later.start()?,
            ];
            Ok((core, report, threads))
        })();
        let (core, report, threads) = match started {
            Ok(started) => started,
            Err(error) => return Err(close_after(engine.as_ref(), error)),
        };
        if let Some(folder) = &folder {
            let _ = core.reserve.set(folder.path().to_owned());
        }
        let opened = Opened { core, threads: Mutex::new(threads), folder: Mutex::new(folder), info, report };
        Ok(Self { handle: Handle(Arc::new(opened)) })
    }

    fn core(&self) -> &Core {
        self.handle.core()
    }

    /// Creates a session.
    ///
    /// # Durability
    /// Survives `kill -9` and a power cut when it returns.
    /// # Cost
    /// One journal frame and a share of one sync.
    /// # Errors
    /// [`Error::SessionExists`]: an id is never overwritten. [`Error::MetaTooLarge`]. As
    /// [`Session::append_batch`], where they apply.
    pub fn create(&self, new: NewSession) -> Result<Session> {
        create(&self.handle, new, None)
    }

    /// Returns the session with this id.
    ///
    /// # Errors
    /// [`Error::SessionNotFound`]; nothing is created.
    pub fn session(&self, id: &SessionId) -> Result<Session> {
        let core = self.core();
        if core.health.is_closed() {
            return Err(Error::Closed);
        }
        let state = core.session(id)?;
        core.drain.check_end(core, &state)?;
        Ok(Session::new(self.handle.clone(), state))
    }

    /// Forks the session `parent`: the new one shares its first `at` events and goes on by itself.
    ///
    /// # Errors
    /// As [`Session::fork`] and [`create`](Self::create).
    pub fn fork(&self, parent: &SessionId, at: Seq, new: NewSession) -> Result<Session> {
        let parent = self.session(parent)?;
        fork(&self.handle, parent.state(), at, new)
    }

    /// Deletes the session `id`: it is gone at once from lists and for every call, also through handles and readers that
    /// are there already, which get [`Error::SessionNotFound`]. The id is free at once.
    ///
    /// Forks of the session keep all their events, and go on as if it were there; what no fork needs is removed in the
    /// background, and what they need with the last of them.
    ///
    /// The text is not erased from the disk by this: it stays in freed space of the engine and in the journal until they
    /// are written over. [`rewrite`](Self::rewrite) takes it off the disk.
    ///
    /// # Durability
    /// Survives `kill -9` and a power cut when it returns. The removal goes on at the next open where a crash, or a
    /// close, interrupts it; [`drain`](Self::drain) waits for its end.
    /// # Cost
    /// One journal frame and a share of one sync, whatever the session's length. The removal costs about as much as the
    /// session's blocks cost to write.
    /// # Errors
    /// [`Error::SessionNotFound`]. As [`Session::append_batch`], where they apply; it works on a full disk, with the
    /// store's reserve.
    /// # Examples
    /// ```
    /// # fn main() -> sessionlog::Result<()> {
    /// use sessionlog::{Error, NewEvent, NewSession, Seq, Store};
    /// let store = Store::in_memory()?;
    /// let session = store.create(NewSession::with_id("draft".parse()?))?;
    /// session.append(NewEvent::user_message("hello"))?;
    /// let branch = session.fork(Seq::new(1))?;
    /// store.delete(session.id())?;
    /// assert!(matches!(session.read_from(Seq::ZERO), Err(Error::SessionNotFound { .. })));
    /// assert_eq!(branch.read_from(Seq::ZERO)?.count(), 1);
    /// store.create(NewSession::with_id("draft".parse()?))?;
    /// # Ok(()) }
    /// ```
    pub fn delete(&self, id: &SessionId) -> Result<()> {
        let core = self.core();
        let deleted = match log::delete::by_id(core, id) {
            Err(Error::DiskFull { .. }) if core.release_reserve() => log::delete::by_id(core, id),
            deleted => deleted,
        };
        if deleted? { Ok(()) } else { Err(Error::SessionNotFound { session: id.clone() }) }
    }

    /// Returns all sessions, the one with the latest last event first. A session that is there from beginning to end is
    /// given once, also when it changes meanwhile; what is created or deleted meanwhile may show or not.
    ///
    /// # Cost
    /// No event is decoded. The first sessions cost the same in a store of a hundred thousand: see [`Sessions`].
    /// # Errors
    /// [`Error::Closed`]. Errors of reading are items.
    pub fn list(&self) -> Result<Sessions> {
        self.list_with(List::new())
    }

    /// Returns the sessions that `list` asks for, the one with the latest last event first: filters by label, title, time
    /// and parent, and pages, for which [`Sessions::next_cursor`] has an example.
    ///
    /// # Cost
    /// As [`list`](Self::list). Times cost nothing for what they leave out; labels, titles and parents a read of one
    /// small value for each session gone over.
    /// # Errors
    /// [`Error::Closed`]; [`Error::SessionNotFound`] for a parent that is not there. Errors of reading are items.
    /// # Examples
    /// ```
    /// # fn main() -> sessionlog::Result<()> {
    /// use sessionlog::{LabelChange, List, NewSession, Store};
    /// let store = Store::in_memory()?;
    /// let session = store.create(NewSession::new())?;
    /// session.label(LabelChange::new().title("Release notes").set("branch", "main"))?;
    /// store.create(NewSession::new())?;
    /// let main = store.list_with(List::new().label("branch", "main").title("Release"))?;
    /// assert_eq!(main.count(), 1);
    /// # Ok(()) }
    /// ```
    pub fn list_with(&self, list: List) -> Result<Sessions> {
        if self.core().health.is_closed() {
            return Err(Error::Closed);
        }
        Sessions::new(self.handle.clone(), list)
    }

    /// Makes everything durable that was appended.
    ///
    /// # Errors
    /// [`Error::Failed`]: also when an earlier sync in the background failed.
    pub fn flush(&self) -> Result<()> {
        let core = self.core();
        core.health.check()?;
        core.journal.sync(&core.health).map_err(|error| core.fail(error))
    }

    /// Moves everything that was appended into blocks, and removes what deleted sessions left, now instead of in the
    /// background.
    ///
    /// # Errors
    /// [`Error::DiskFull`]: nothing was moved, nothing is lost. [`Error::Failed`].
    pub fn drain(&self) -> Result<()> {
        self.flush()?;
        self.core().drain.wait(self.core())
    }

    /// Closes the store: what was appended is durable and drained, so that the next open has nothing to replay.
    ///
    /// Appends that are under way are finished; later calls through any handle give [`Error::Closed`]. A second call
    /// does nothing.
    ///
    /// # Errors
    /// [`Error::Failed`] or [`Error::DiskFull`]: what was acknowledged is in the journal and the next open replays it.
    /// The store is closed all the same.
    pub fn close(&self) -> Result<()> {
        self.core().observers.refuse_own_thread()?;
        self.handle.0.close()
    }

    /// Checks everything that is stored, while the store is in use: see [`Scan`], which also looks at one session, at a
    /// folder that nobody has open, or at a hash that was noted earlier.
    ///
    /// # Cost
    /// Reads and hashes all events.
    /// # Errors
    /// [`Error::Closed`]. What is found is in the report, not an error.
    pub fn scan(&self) -> Result<ScanReport> {
        Scan::new().store(self)
    }

    /// Copies the store into the new folder `path` while it is in use, and scans the copy: all sessions as they are when
    /// this is called, with what repairs have set aside.
    ///
    /// The copy is made under the name `path` with `.unfinished` behind it, and gets its own when it is whole: one that a
    /// kill interrupted is taken for no store. Where an error is returned nothing is left of it.
    ///
    /// # Cost
    /// Reads and writes all blocks, and reads the copy. Appends go on; deletions wait.
    /// # Errors
    /// [`Error::OutputExists`]: nothing was touched. As [`drain`](Self::drain), and those of files.
    /// # Examples
    /// ```
    /// # fn main() -> sessionlog::Result<()> {
    /// # let folder = tempfile::tempdir().unwrap();
    /// # let store = sessionlog::Store::open(folder.path().join("sessions"))?;
    /// let report = store.backup(folder.path().join("copy"))?;
    /// assert!(report.scan.is_clean());
    /// # Ok(()) }
    /// ```
    pub fn backup(&self, path: impl AsRef<Path>) -> Result<BackupReport> {
        crate::integrity::backup(self, path.as_ref())
    }

    /// Returns what repairs have set aside in this store, with its bytes, by session and seq.
    ///
    /// # Errors
    /// [`Error::Closed`]. Errors of reading are items.
    pub fn quarantine(&self) -> Result<Quarantine> {
        if self.core().health.is_closed() {
            return Err(Error::Closed);
        }
        Ok(Quarantine::new(self.handle.clone(), None))
    }

    /// Returns what the store is and takes.
    ///
    /// # Errors
    /// [`Error::Closed`], [`Error::Io`].
    pub fn info(&self) -> Result<StoreInfo> {
        let core = self.core();
        let fixed = &self.handle.0.info;
        Ok(StoreInfo {
            path: fixed.path.clone(),
            store_id: uuid::Uuid::from_bytes(fixed.store_id).to_string(),
            format: u32::from(format::FORMAT_VERSION),
            durability: fixed.durability.to_owned(),
            engine: fixed.engine.clone(),
            engine_bytes: core.storage.size_on_disk()?,
            journal_bytes: core.journal.bytes(),
            tail_bytes: core.room.used(),
        })
    }

    /// Returns what the store has done since it was opened, and what it holds now: how long syncs and drains take, how
    /// well appends share them, how full blocks are.
    ///
    /// Each figure is right for some moment of the call; what happens meanwhile may be in some of them.
    ///
    /// # Cost
    /// A few locks that are held for moments, and a copy of the distributions. That figures are kept does not show in the
    /// time of an append.
    /// # Examples
    /// ```
    /// # fn main() -> sessionlog::Result<()> {
    /// use sessionlog::{NewEvent, NewSession, Store};
    /// let store = Store::in_memory()?;
    /// let session = store.create(NewSession::new())?;
    /// session.append(NewEvent::turn_start("t1"))?;
    /// session.append_batch(["one", "two"].map(NewEvent::user_message))?;
    /// let metrics = store.metrics();
    /// assert_eq!((metrics.appends, metrics.events), (2, 3));
    /// assert_eq!(metrics.commit_events.mean(), Some(1)); // rounded down
    /// println!("a sync takes {:?} µs at the median", metrics.sync_us.percentile(50));
    /// # Ok(()) }
    /// ```
    pub fn metrics(&self) -> Metrics {
        self.core().metrics()
    }

    /// Returns what opening found and did.
    pub fn open_report(&self) -> &OpenReport {
        &self.handle.0.report
    }

    pub(crate) fn handle(&self) -> &Handle {
        &self.handle
    }
}

impl Handle {
    pub(crate) fn store_id(&self) -> [u8; 16] {
        self.0.info.store_id
    }

    pub(crate) fn core(&self) -> &Arc<Core> {
        &self.0.core
    }
}

impl Opened {
    fn close(&self) -> Result<()> {
        // Held to the end: a second call waits for the first.
        let mut threads = self.threads.lock().unwrap_or_else(PoisonError::into_inner);
        if threads.is_empty() {
            return Ok(());
        }
        let core = &self.core;
        core.health.close();
        core.wake_all();
        core.committer.close(core);
        #[cfg(feature = "async")]
        core.later.stop();
        core.keeper.stop();
        core.drain.stop();
        // The last handle may be one that a thread of the store's had: it ends by itself.
        threads.retain(|thread| thread.thread().id() != std::thread::current().id());
        let stuck = !join_within(std::mem::take(&mut *threads), core.watchdog);
        core.observers.stop();
        let mut folder = self.folder.lock().unwrap_or_else(PoisonError::into_inner);
        if stuck {
            // Something is still under way in the kernel and may write yet: nobody else may open the store before this
            // process ends.
            std::mem::forget(folder.take());
            return Err(core.fail(core.journal.timed_out("closing the store")));
        }
        let mut outcome = core.drain.finish(core);
        if matches!(outcome, Err(Error::DiskFull { .. })) && core.release_reserve() {
            outcome = core.drain.finish(core);
        }
        let closed = core.storage.close();
        if let (Ok(()), Ok(()), Some(path)) = (&outcome, &closed, self.info.path.as_deref()) {
            // What an earlier close noted is true, too.
            let _ = Witness { drained: core.drain.through() }.write(path);
        }
        // The lock goes last: the next open finds everything let go.
        folder.take();
        core.wake_all();
        outcome.and(closed)
    }
}

/// Waits for the end of all threads. Returns whether they ended in time. (One that panicked has failed the store.)
fn join_within(threads: Vec<JoinHandle<()>>, limit: Duration) -> bool {
    let started = Instant::now();
    for thread in threads {
        while !thread.is_finished() {
            if started.elapsed() >= limit {
                return false;
            }
            std::thread::sleep(Duration::from_micros(100));
        }
        let _ = thread.join();
    }
    true
}

impl Drop for Opened {
    fn drop(&mut self) {
        // Who wants to know calls `close`.
        let _ = self.close();
    }
}

impl fmt::Debug for Opened {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Opened")
            .field("info", &self.info)
            .field("health", &self.core.health)
            .finish_non_exhaustive()
    }
}

/// Lets go of the engine when opening goes no further, so that the folder can be opened again at once.
fn close_after(storage: &dyn Storage, error: Error) -> Error {
    // The first error is what the caller has to know.
    let _ = storage.close();
    error
}

/// Frees the reserve when the disk may be too full to open the engine and to drain what the journal holds.
fn make_room(folder: &Folder, files: &FolderJournalFiles, tail_bytes: u64) -> Result<()> {
    let free = files.free_bytes().map_err(|source| Error::Io {
        action: "read the free space of",
        path: folder.path().to_owned(),
        source,
    })?;
    if free < tail_bytes.saturating_add(RESERVE_BYTES) {
        Reserve::release(folder.path())?;
    }
    Ok(())
}

/// Creates a fork of `parent`.
pub(crate) fn fork(handle: &Handle, parent: &Arc<SessionState>, at: Seq, new: NewSession) -> Result<Session> {
    create(handle, new, Some((parent, at.get())))
}

fn create(
    handle: &Handle,
    mut new: NewSession,
    parent: Option<(&Arc<SessionState>, u64)>,
) -> Result<Session> {
    if let Some((parent, _)) = parent {
        let own = std::mem::replace(&mut new.meta, parent.header.meta.clone());
        new.meta.extend(own);
    }
    add(handle, new, parent, false)
}

/// Creates a session, or a fork, that nobody sees until it is published.
pub(crate) fn create_hidden(
    handle: &Handle,
    new: NewSession,
    parent: Option<(&Arc<SessionState>, u64)>,
) -> Result<Session> {
    add(handle, new, parent, true)
}

fn add(
    handle: &Handle,
    new: NewSession,
    parent: Option<(&Arc<SessionState>, u64)>,
    hidden: bool,
) -> Result<Session> {
    let core = handle.core();
    core.health.check()?;
    core.observers.refuse_own_thread()?;
    let key = StorageKey::mint();
    new.check()?;
    let header = NewHeader {
        id: new.id.unwrap_or_else(|| key.to_id()),
        key,
        created: new.created_at.unwrap_or_else(Timestamp::now),
        parent: parent.map(|(parent, prefix_len)| (parent.key(), prefix_len)),
        meta: new.meta,
        extra: new.extra,
    };
    let (state, ticket) = loop {
        match queue_creation(core, &header, parent, hidden)? {
            Queued::At(state, ticket) => break (state, ticket),
            Queued::Deleting(ticket) => core.committer.wait_for_other(ticket, core)?,
        }
    };
    core.committer.wait(ticket, core)?;
    Ok(Session::new(handle.clone(), state))
}

/// What became of a creation.
enum Queued {
    /// It is in the commit queue with this ticket.
    At(Arc<SessionState>, u64),
    /// The parent's deletion, with this ticket, is under way: whether it stays is not known yet.
    Deleting(u64),
}

/// Checks and queues under one lock: nobody takes the id, or deletes the parent, in between.
fn queue_creation(
    core: &Core,
    header: &NewHeader,
    parent: Option<(&Arc<SessionState>, u64)>,
    hidden: bool,
) -> Result<Queued> {
    let mut used = core.catalog.lock();
    // Behind a deletion that is queued the id is free: one is not taken back without the other.
    let before = used.by_id(&header.id, core.storage.as_ref())?;
    let stays = |tail: &Tail| tail.deleting.is_none() && tail.deleted.is_none();
    if before.is_some_and(|before| stays(&before.lock())) {
        return Err(Error::SessionExists { session: header.id.clone() });
    }
    if let Some((parent, prefix_len)) = parent {
        let tail = parent.lock();
        if let Some(ticket) = tail.deleting {
            return Ok(Queued::Deleting(ticket));
        }
        if tail.deleted.is_some() {
            return Err(Error::SessionNotFound { session: parent.header.id.clone() });
        }
        let len = tail.visible(core.up_to());
        if prefix_len > len {
            return Err(Error::ForkBeyondEnd { parent: parent.header.id.clone(), prefix_len, len });
        }
    }
    if hidden {
        let state = SessionState::new_hidden(header.clone());
        let work = Work::Begin { session: Arc::clone(&state) };
        let ticket = core.committer.enqueue(Request { work, sync: false })?;
        used.add_key(&state);
        return Ok(Queued::At(state, ticket));
    }
    let state = SessionState::new(header.clone());
    let work = Work::Create { session: Arc::clone(&state) };
    let ticket = core.committer.enqueue(Request { work, sync: true })?;
    used.add(&state);
    Ok(Queued::At(state, ticket))
}
