//! Every default in one place, with its unit, and the options that change them.

use std::collections::BTreeMap;
use std::fmt;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use crate::error::{Error, Result};
use crate::event::{Event, EventKind, JsonString, JsonText};
use crate::id::{Seq, SessionId, Timestamp};
use crate::storage::{JournalFiles, Storage};
use crate::store::Store;

/// The engine's cache.
pub(crate) const CACHE_BYTES: u64 = 64 << 20;
/// The longest line of an event, in bytes: 16 MiB.
pub const MAX_EVENT_BYTES: u64 = 16 << 20;
/// The most bytes of lines in one batch: 64 MiB.
pub const MAX_BATCH_BYTES: u64 = 64 << 20;
/// The most events in one batch.
pub const MAX_BATCH_EVENTS: usize = 65_536;
/// The most bytes of names and values in a session's metadata, and 8 more for each: a header is one small value of the
/// engine.
pub(crate) const MAX_META_BYTES: usize = 4 << 10;
/// What each piece counts beside its name and value.
const EACH_META_BYTES: usize = 8;
/// The most bytes of unknown fields of an imported header.
const MAX_FIELD_BYTES: usize = 640;
/// The most bytes of what such a header says about a parent: an id in JSON, and a number.
const MAX_NOTE_BYTES: usize = 640;
/// How long a Buffered event may wait for its sync.
pub(crate) const SYNC_WINDOW: Duration = Duration::from_millis(200);
/// How long an event may stay in the tail.
pub(crate) const DRAIN_AGE: Duration = Duration::from_secs(5);
/// The size of the tail that starts a drain.
pub(crate) const DRAIN_BYTES: u64 = 4 << 20;
/// The size of the tail at which appends wait for a drain.
pub(crate) const TAIL_BYTES: u64 = 16 << 20;
/// How many events come between two checkpoints of a session's surface: to fold so many takes about a millisecond.
pub(crate) const CHECKPOINT_EVENTS: u64 = 10_000;
/// How long a sync or a drain may take before the store counts as failed.
pub(crate) const WATCHDOG: Duration = Duration::from_secs(30);

/// Space that a full disk leaves to open, delete, prune and close.
pub(crate) const RESERVE_BYTES: u64 = 4 << 20;

/// When an append returns.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Durability {
    /// When its events are synced: they survive `kill -9` and a power cut.
    Sync,
    /// When its events are written: they survive `kill -9`, and a power cut once the sync window (200 ms by default)
    /// has passed or a later Sync append, `flush` or `close` has returned.
    Buffered,
}

/// Which durability an append has that does not name one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum DurabilityRule {
    /// `assistant/chunk` is Buffered, all else Sync; a batch with any Sync event is Sync.
    ByType,
    /// The same for all.
    Always(Durability),
}

impl DurabilityRule {
    pub(crate) fn of(self, kind: &EventKind) -> Durability {
        match (self, kind) {
            (Self::Always(durability), _) => durability,
            (Self::ByType, EventKind::AssistantChunk { .. }) => Durability::Buffered,
            (Self::ByType, _) => Durability::Sync,
        }
    }
}

/// What hears every event; see [`StoreOptions::observer`].
pub(crate) type Observer = Box<dyn FnMut(&SessionId, &Event) + Send>;

/// How a store is opened.
///
/// ```no_run
/// # fn main() -> sessionlog::Result<()> {
/// let store = sessionlog::StoreOptions::new().create(false).open("sessions")?;
/// # Ok(()) }
/// ```
pub struct StoreOptions {
    pub(crate) create: bool,
    pub(crate) cache_bytes: u64,
    pub(crate) max_event_bytes: u64,
    pub(crate) tail_bytes: u64,
    pub(crate) sync_window: Duration,
    pub(crate) drain_age: Duration,
    pub(crate) checkpoint_events: u64,
    pub(crate) watchdog: Duration,
    pub(crate) durability: DurabilityRule,
    pub(crate) observer: Option<Observer>,
}

impl Default for StoreOptions {
    fn default() -> Self {
        Self::new()
    }
}

impl fmt::Debug for StoreOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("StoreOptions")
            .field("create", &self.create)
            .field("cache_bytes", &self.cache_bytes)
            .field("max_event_bytes", &self.max_event_bytes)
            .field("tail_bytes", &self.tail_bytes)
            .field("sync_window", &self.sync_window)
            .field("drain_age", &self.drain_age)
            .field("watchdog", &self.watchdog)
            .field("durability", &self.durability)
            .finish_non_exhaustive()
    }
}

impl StoreOptions {
    /// The defaults.
    pub fn new() -> Self {
        Self {
            create: true,
            cache_bytes: CACHE_BYTES,
            max_event_bytes: MAX_EVENT_BYTES,
            tail_bytes: TAIL_BYTES,
            sync_window: SYNC_WINDOW,
            drain_age: DRAIN_AGE,
            checkpoint_events: CHECKPOINT_EVENTS,
            watchdog: WATCHDOG,
            durability: DurabilityRule::ByType,
            observer: None,
        }
    }

    /// Whether a store is created where the folder is missing or empty. Default: yes.
    #[must_use]
    pub fn create(mut self, create: bool) -> Self {
        self.create = create;
        self
    }

    /// The engine's cache, in bytes. Default: 64 MiB.
    #[must_use]
    pub fn cache_bytes(mut self, bytes: u64) -> Self {
        self.cache_bytes = bytes;
        self
    }

    /// The longest line of an event, in bytes. Default, and the most: 16 MiB.
    #[must_use]
    pub fn max_event_bytes(mut self, bytes: u64) -> Self {
        self.max_event_bytes = bytes.min(MAX_EVENT_BYTES);
        self
    }

    /// The memory of accepted events that are not in blocks yet, in bytes, at which appends wait. Default: 16 MiB.
    #[must_use]
    pub fn tail_bytes(mut self, bytes: u64) -> Self {
        self.tail_bytes = bytes;
        self
    }

    /// How long a Buffered event may wait for its sync. Default: 200 ms.
    #[must_use]
    pub fn sync_window(mut self, window: Duration) -> Self {
        self.sync_window = window;
        self
    }

    /// How long an event may stay out of the blocks. Default: 5 s.
    #[must_use]
    pub fn drain_age(mut self, age: Duration) -> Self {
        self.drain_age = age;
        self
    }

    /// After how many further events a session's surface is saved again, as a checkpoint that spares later ones the fold
    /// of these events. Default: 10,000.
    ///
    /// It is saved in the background, and only where somebody asked for messages or appended a replace; surfaces of more
    /// than 1 MiB never are. At least 1.
    #[must_use]
    pub fn checkpoint_events(mut self, events: u64) -> Self {
        self.checkpoint_events = events.max(1);
        self
    }

    /// How long a sync or a drain may take before the store counts as failed. Default: 30 s.
    #[must_use]
    pub fn watchdog(mut self, limit: Duration) -> Self {
        self.watchdog = limit;
        self
    }

    /// Which durability an append has that does not name one. Default: [`DurabilityRule::ByType`].
    #[must_use]
    pub fn durability(mut self, rule: DurabilityRule) -> Self {
        self.durability = rule;
        self
    }

    /// Lets `observer` hear every event appended to any session, as soon as readers may see it (so it may hear events
    /// that a power cut still loses).
    ///
    /// It is called in seq order for each session, on one thread of its own, outside all locks. A slow observer holds
    /// appends up: the queue before it is bounded, waits, and drops nothing. A panic in it is caught; it hears the
    /// next event. It may read; what it appends to the same store is refused with
    /// [`CalledFromObserver`](crate::Error::CalledFromObserver). A store or session that it owns keeps the store open
    /// until [`Store::close`](crate::Store::close).
    #[must_use]
    pub fn observer(mut self, observer: impl FnMut(&SessionId, &Event) + Send + 'static) -> Self {
        self.observer = Some(Box::new(observer));
        self
    }

    /// Opens the store in the folder `path`; creates it where the folder is missing or empty and
    /// [`create`](Self::create) allows.
    ///
    /// Needs no manual step after a crash: what was acknowledged is read from the journal and drained before this
    /// returns.
    ///
    /// # Cost
    /// Depends on the number of blocks and, after a crash, on the size of the tail; not on the number of sessions.
    /// # Errors
    /// [`NoStore`](crate::Error::NoStore), [`NotAStore`](crate::Error::NotAStore),
    /// [`UnsupportedFormat`](crate::Error::UnsupportedFormat): the folder is as it was.
    /// [`InUse`](crate::Error::InUse): at once when the holder lives, after 5 s when it died a moment ago.
    /// [`Corrupt`](crate::Error::Corrupt): nothing was deleted.
    pub fn open(self, path: impl AsRef<Path>) -> Result<Store> {
        Store::open_folder(path.as_ref(), self)
    }

    /// Opens a store on other storage than a folder: for tests, fuzzing and other engines.
    ///
    /// # Errors
    /// As [`open`](Self::open), where they apply.
    pub fn open_on(self, storage: Arc<dyn Storage>, files: Arc<dyn JournalFiles>) -> Result<Store> {
        Store::open_seams(storage, files, self)
    }
}

/// A session to be created.
///
/// ```
/// # fn main() -> sessionlog::Result<()> {
/// use sessionlog::{NewSession, Store};
/// let store = Store::in_memory()?;
/// let session = store.create(NewSession::with_id("nightly".parse()?).meta("model", "small"))?;
/// assert_eq!(session.header()?.meta["model"], "small");
/// # Ok(()) }
/// ```
#[derive(Clone, Debug, Default)]
pub struct NewSession {
    pub(crate) id: Option<SessionId>,
    pub(crate) meta: BTreeMap<String, String>,
    pub(crate) created_at: Option<Timestamp>,
    pub(crate) extra: Vec<(JsonString, JsonText)>,
}

impl NewSession {
    /// A session whose id is minted: a UUIDv7.
    pub fn new() -> Self {
        Self::default()
    }

    /// A session with this id.
    pub fn with_id(id: SessionId) -> Self {
        Self { id: Some(id), ..Self::default() }
    }

    /// Adds a piece of free metadata; it never changes later. All of it may have 4 KiB, where
    /// each piece counts 8 bytes more.
    #[must_use]
    pub fn meta(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        self.meta.insert(name.into(), value.into());
        self
    }

    /// Says when it was created, for one that is brought in from elsewhere. Default: now.
    #[must_use]
    pub fn created_at(mut self, time: Timestamp) -> Self {
        self.created_at = Some(time);
        self
    }
}

impl NewSession {
    /// Keeps a field of a header that this one has no place for, as it is; see
    /// [`SessionHeader::extra`](crate::SessionHeader::extra). All of them may have 640 bytes, beside those named
    /// `parent` and `prefixLength`, which tell where an imported session was forked from elsewhere.
    #[must_use]
    pub fn field(mut self, name: impl Into<JsonString>, value: JsonText) -> Self {
        self.extra.push((name.into(), value));
        self
    }

    /// Checks that its header fits in one value of the engine. Creating it does this too.
    ///
    /// # Errors
    /// [`Error::MetaTooLarge`].
    pub fn check(&self) -> Result<()> {
        let bytes = self.meta.iter().map(|(name, value)| name.len() + value.len() + EACH_META_BYTES).sum();
        if bytes > MAX_META_BYTES {
            return Err(Error::MetaTooLarge { bytes, max_bytes: MAX_META_BYTES });
        }
        let mut notes = 0;
        let mut bytes = 0;
        for (name, value) in &self.extra {
            let len = name.spelling().len() + value.as_str().len() + EACH_META_BYTES;
            match name.spelling() {
                "parent" | "prefixLength" => notes += len,
                _ => bytes += len,
            }
        }
        match bytes > MAX_FIELD_BYTES || notes > MAX_NOTE_BYTES {
            true => Err(Error::MetaTooLarge { bytes: bytes + notes, max_bytes: MAX_FIELD_BYTES }),
            false => Ok(()),
        }
    }
}

/// How events are appended; see [`Session::append_with`](crate::Session::append_with).
#[derive(Clone, Copy, Debug, Default)]
pub struct Append {
    pub(crate) expected: Option<Seq>,
    pub(crate) durability: Option<Durability>,
    pub(crate) recorded: bool,
}

impl Append {
    /// At the end of the session, with the store's durability.
    pub fn new() -> Self {
        Self::default()
    }

    /// Only if the first event is given this seq.
    #[must_use]
    pub fn expect(mut self, seq: Seq) -> Self {
        self.expected = Some(seq);
        self
    }

    /// Returns when synced.
    #[must_use]
    pub fn sync(mut self) -> Self {
        self.durability = Some(Durability::Sync);
        self
    }

    /// Returns when written; see [`Durability::Buffered`].
    #[must_use]
    pub fn buffered(mut self) -> Self {
        self.durability = Some(Durability::Buffered);
        self
    }

    /// As a record from elsewhere: `surfaceOp` and `sourceEventSeqs` are kept as they are, and not checked against the
    /// surface. One that does not fit replaces nothing there, and is [reported](crate::Report).
    #[must_use]
    pub fn recorded(mut self) -> Self {
        self.recorded = true;
        self
    }
}
