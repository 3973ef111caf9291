//! The two seams below the log, what implements them, and the folder of a store.
//!
//! [`Storage`] stands below the drain: what an engine must do. [`JournalFiles`] stands below the journal. Keys, values
//! and files are bytes here; sessions and events are unknown. Only `sled.rs` names sled.

mod description;
mod disk;
mod engine_files;
mod files;
mod folder;
mod guard;
mod journal_files;
mod lock;
mod memory;
mod range;
mod raw_folder;
mod reserve;
mod sled;
mod sled_keys;
mod synchronous;
mod witness;

use std::fmt;
use std::ops::Bound;

pub(crate) use self::description::Description;
pub use self::disk::FolderJournalFiles;
pub(crate) use self::folder::{Create, Folder};
pub use self::journal_files::{JournalFile, JournalFiles};
pub(crate) use self::lock::Lock;
pub use self::memory::{MemoryJournalFiles, MemoryStorage};
pub(crate) use self::raw_folder::{RawFolder, bytes_in, copy_engine, free_bytes, open_raw, plain_files};
pub(crate) use self::reserve::Reserve;
pub use self::sled::SledStorage;
pub(crate) use self::witness::Witness;
use crate::error::Result;

/// The greatest length of a value, its header included.
///
/// A leaf of sled holds up to 16 entries, and a page of more than 131,052 bytes goes to a file of its own, which is
/// not safe in the weaker durability mode. What is larger is split over several keys.
pub const MAX_VALUE_BYTES: usize = 6 * 1024;
const _: () = assert!(MAX_VALUE_BYTES == crate::format::MAX_VALUE_BYTES);

/// A map of the engine. There are four, whatever the number of sessions.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Map {
    /// Headers, ids, labels, fork edges, summaries, the order by last update, tombstones, the drained mark.
    Sessions,
    /// Blocks of events.
    Events,
    /// End marks, quarantine.
    Care,
    /// What can be computed again: checkpoints of projections.
    Derived,
}

impl Map {
    /// All maps.
    pub const ALL: [Self; 4] = [Self::Sessions, Self::Events, Self::Care, Self::Derived];
}

/// A key and its value.
pub type Entry = (Vec<u8>, Vec<u8>);

/// Entries in key order (or the reverse), fetched as they are asked for. The first error ends it.
///
/// It holds no lock and keeps nothing open: a store can be closed, and opened again, while readers stand still. They
/// get [`Error::Closed`](crate::Error::Closed) behind what they had fetched.
pub type Entries = Box<dyn Iterator<Item = Result<Entry>> + Send>;

/// Keys removed in one batch.
const REMOVED_AT_ONCE: usize = 500;

/// Removes at most one batch of the keys from `first` to before `behind`, durably. Returns whether there were any.
pub(crate) fn remove_some(storage: &dyn Storage, map: Map, first: &[u8], behind: &[u8]) -> Result<bool> {
    let found = storage.range(map, Bound::Included(first), Bound::Excluded(behind)).take(REMOVED_AT_ONCE);
    let batch: Vec<_> = found.map(|entry| entry.map(|(key, _)| (key, None))).collect::<Result<_>>()?;
    if batch.is_empty() {
        return Ok(false);
    }
    storage.apply(map, &batch)?;
    storage.flush()?;
    Ok(true)
}

/// A storage engine: ordered maps from bytes to bytes.
///
/// One thread at a time writes; any number read meanwhile. A read sees every write that returned before it began.
/// An iterator is no snapshot: of what is written while it runs it may see some and not the rest, but an entry that
/// stands throughout is seen exactly once.
///
/// After a crash: all that was written before the last `flush` that returned is there. Of later writes any may be
/// there or not, but `apply` is whole or absent.
///
/// After a write or flush that failed every later one fails with [`Error::Failed`](crate::Error::Failed), whose cause
/// is the first error. Reads go on, but those that need what the engine had moved and not yet written fail, too; it is
/// there again after reopening. After `close` every call gives [`Error::Closed`](crate::Error::Closed).
///
/// Keys have at most 512 bytes and values [`MAX_VALUE_BYTES`].
pub trait Storage: fmt::Debug + Send + Sync {
    /// Returns the value under `key`.
    fn get(&self, map: Map, key: &[u8]) -> Result<Option<Vec<u8>>>;
    /// Returns the entries between the bounds, ascending. Reversed bounds hold nothing.
    fn range(&self, map: Map, from: Bound<&[u8]>, to: Bound<&[u8]>) -> Entries;
    /// Returns the entries between the bounds, descending. `from` is the lower bound here, too.
    fn range_reverse(&self, map: Map, from: Bound<&[u8]>, to: Bound<&[u8]>) -> Entries;
    /// Writes a value; replaces the one that is there.
    fn insert(&self, map: Map, key: &[u8], value: &[u8]) -> Result<()>;
    /// Writes (`Some`) and removes (`None`) in the order given, as one step: after a crash all of it is there or
    /// nothing.
    fn apply(&self, map: Map, changes: &[(Vec<u8>, Option<Vec<u8>>)]) -> Result<()>;
    /// Makes all earlier writes durable.
    fn flush(&self) -> Result<()>;
    /// Returns what the engine takes on the medium, in bytes.
    fn size_on_disk(&self) -> Result<u64>;
    /// Releases all that the engine holds, whoever still has a handle or an iterator. When it returns `Ok` the same
    /// bytes can be opened again. A second call does nothing. Dropping the last handle does the same.
    ///
    /// # Errors
    /// [`Error::TimedOut`](crate::Error::TimedOut): a call into the engine hangs; its files stay in use until it
    /// returns.
    fn close(&self) -> Result<()>;
}

/// How an engine's writes become durable: what the file system allows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum EngineDurability {
    /// The engine's files have the synchronous attribute (`chattr +S`): each of its writes is on the medium, in
    /// order, when it returns.
    SynchronousAttribute,
    /// The weaker mode, where that attribute cannot be had (tmpfs, btrfs, another owner): the files are synced after
    /// each flush. A power cut in between can leave files that do not open.
    SyncAfterFlush,
}

impl EngineDurability {
    /// Returns the word that the store's description uses.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::SynchronousAttribute => "synchronous-attribute",
            Self::SyncAfterFlush => "sync-after-flush",
        }
    }

    /// Returns the mode that `word` names.
    pub(crate) fn from_word(word: &str) -> Option<Self> {
        [Self::SynchronousAttribute, Self::SyncAfterFlush].into_iter().find(|mode| mode.as_str() == word)
    }
}

impl fmt::Display for EngineDurability {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}
