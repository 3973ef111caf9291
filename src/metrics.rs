//! What an open store has done so far, as one snapshot.

use serde::Serialize;

use crate::stats::Distribution;

/// What a store has done since it was opened, and holds now; see [`Store::metrics`](crate::Store::metrics).
///
/// Counters begin at 0 with each open and only grow. Times are in microseconds, sizes in bytes.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct Metrics {
    /// Appends that are visible: a batch is one.
    pub appends: u64,
    /// Events in them.
    pub events: u64,
    /// Frames in the journal, those of creations, labels, deletions and seals among them.
    pub commits: u64,
    /// How many events a commit has that has any: above those of one append when writers share a sync.
    pub commit_events: Distribution,
    /// The bytes of these frames. (The zeros that new segments are made of are not counted.)
    pub journal_bytes: u64,
    /// How long syncs of the journal took.
    pub sync_us: Distribution,
    /// How long passes of the drain took that moved anything.
    pub drain_us: Distribution,
    /// Events that passes have moved into blocks.
    pub drained_events: u64,
    /// Keys and values that were given to the engine. What it writes itself for them is its own affair; what it takes
    /// on disk is in [`StoreInfo::engine_bytes`](crate::StoreInfo::engine_bytes).
    pub engine_bytes: u64,
    /// Blocks and parts of large events that were written, by their bytes. A full one has close to
    /// [`MAX_VALUE_BYTES`](crate::storage::MAX_VALUE_BYTES). A block that is continued counts each time.
    pub block_bytes: Distribution,
    /// The bound of the engine's cache: as in the options. (sled does not say how much of it is in use.)
    pub cache_bytes: u64,
    /// Sessions in memory: those with handles, readers, or events that are not drained.
    pub sessions_in_use: u64,
    /// Accepted events that are not in blocks yet, in bytes of memory.
    pub tail_bytes: u64,
    /// The size of the tail at which appends wait: as in the options.
    pub tail_max_bytes: u64,
    /// Appends that wait for room in the tail now.
    pub waiting_appends: u64,
}
