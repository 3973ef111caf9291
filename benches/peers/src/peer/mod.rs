//! The same work for all stores, by the same names.
//!
//! Each store does it as its own users would write it, with the options that fit: see the module of each. What is
//! the same is what they promise: an append that returned survives a power cut, and a read gives typed events.

mod fjall;
mod jsonl;
mod redb;
mod sessionlog;
mod sqlite;

use std::ops::Range;
use std::path::Path;

pub use self::fjall::Fjall;
pub use self::jsonl::Jsonl;
pub use self::redb::Redb;
pub use self::sessionlog::Sessionlog;
pub use self::sqlite::SqlitePeer;
use crate::Outcome;
use crate::trace::TraceEvent;

/// The cache that each store gets that has one: sessionlog's default.
const CACHE_BYTES: u32 = 64 << 20;

/// A store of sessions.
pub trait Peer: Sized + Sync {
    /// Opens the store in a folder; makes it where nothing is.
    fn open(folder: &Path) -> Outcome<Self>;

    /// What one thread writes a new session with.
    fn writer(&self, session: &str) -> Outcome<impl Writer>;

    /// How many events a session has, read from the disk.
    fn length(&self, session: &str) -> Outcome<u64>;

    /// Reads the events in a range one by one, and gives their number.
    fn read(&self, session: &str, range: Range<u64>) -> Outcome<u64>;

    /// Reads the last `count` events, in order, and gives their number.
    fn last(&self, session: &str, count: usize) -> Outcome<u64>;

    /// Makes the session `new` that begins with all events of `parent`, and appends one. Both are durable.
    fn fork(&self, parent: &str, new: &str, event: &TraceEvent) -> Outcome<()>;

    /// Builds what the model sees, and gives the number of messages.
    fn messages(&self, session: &str) -> Outcome<usize>;

    /// Makes that many sessions with one event each; how durably does not matter, but for what `close` promises.
    fn fill(&self, sessions: usize, event: &TraceEvent) -> Outcome<()>;

    /// Lists sessions with id, last update and length, the latest update first, `most` at most; gives their number.
    fn list(&self, most: usize) -> Outcome<usize>;

    /// Closes the store; all is durable.
    fn close(self) -> Outcome<()>;
}

/// Appends to one session.
pub trait Writer: Send {
    /// Appends one event. Durable when it returns.
    fn append(&mut self, event: &TraceEvent) -> Outcome<()>;

    /// Appends all or none. Durable when it returns.
    fn append_batch(&mut self, events: &[TraceEvent]) -> Outcome<()>;
}

/// The id of one of many sessions.
fn nth(n: usize) -> String {
    format!("session-{n:08}")
}
