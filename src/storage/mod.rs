//! The seam below the drain: what an engine must do. Keys and values are bytes here; sessions are unknown.

mod memory;
mod sled;

use std::fmt;
use std::ops::Bound;

use crate::error::Result;

/// A map of the engine. There are four, whatever the number of sessions.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Map {
    /// Headers, ids, labels, fork edges, summaries, the order by last update, tombstones, the drained mark.
    Sessions,
    /// Blocks of events.
    Events,
    /// End marks, quarantine, hidden imports.
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
pub type Entries = Box<dyn Iterator<Item = Result<Entry>> + Send>;

/// A storage engine: ordered maps from bytes to bytes.
///
/// One thread at a time writes; any number read meanwhile. A read sees every write that returned before it began.
/// An iterator is no snapshot: of what is written while it runs it may see some and not the rest, but an entry that
/// stands throughout is seen once.
///
/// After a crash: all that was written before the last `flush` that returned is there. Of later writes any may be
/// there or not, but `apply` is whole or absent.
///
/// After an error every later write may fail; reads go on.
pub trait Storage: fmt::Debug + Send + Sync {
    /// Returns the value under `key`.
    fn get(&self, map: Map, key: &[u8]) -> Result<Option<Vec<u8>>>;
    /// Returns the entries between the bounds, ascending.
    fn range(&self, map: Map, from: Bound<&[u8]>, to: Bound<&[u8]>) -> Entries;
    /// Returns the entries between the bounds, descending.
    fn range_reverse(&self, map: Map, from: Bound<&[u8]>, to: Bound<&[u8]>) -> Entries;
    /// Writes a value; replaces the one that is there.
    fn insert(&self, map: Map, key: &[u8], value: &[u8]) -> Result<()>;
    /// Writes (`Some`) and removes (`None`) as one step: after a crash all of it is there or nothing.
    fn apply(&self, map: Map, changes: &[(Vec<u8>, Option<Vec<u8>>)]) -> Result<()>;
    /// Makes all earlier writes durable.
    fn flush(&self) -> Result<()>;
    /// Returns what the engine takes on the medium, in bytes.
    fn size_on_disk(&self) -> Result<u64>;
}
