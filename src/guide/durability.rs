//! What survives what, and what to do after a failure.
//!
//! # Two ways to append
//!
//! | | returns when | `kill -9` | power cut |
//! | --- | --- | --- | --- |
//! | [`Sync`](crate::Durability::Sync) | it is synced | survives | survives |
//! | [`Buffered`](crate::Durability::Buffered) | it is written | survives | survives once the sync window (200 ms) has passed |
//!
//! Streamed chunks are Buffered unless somebody says otherwise, all else is Sync. A batch with one Sync event is Sync.
//! A Sync append also makes durable what was Buffered before it.
//!
//! ```
//! # fn main() -> sessionlog::Result<()> {
//! use std::time::Duration;
//! use sessionlog::{Append, NewEvent, NewSession, StoreOptions};
//! # let folder = tempfile::tempdir().unwrap();
//! # let path = folder.path().join("sessions");
//! let store = StoreOptions::new().sync_window(Duration::from_millis(50)).open(path)?;
//! let session = store.create(NewSession::new())?;
//! session.append(NewEvent::assistant_chunk("Hel"))?; // Buffered: visible, and provisional
//! assert_eq!(session.len(), 1);
//! session.append_with(Append::new().sync(), [NewEvent::assistant_chunk("lo")])?;
//! assert_eq!(session.durable_len(), 2);
//! store.close()?;
//! # Ok(()) }
//! ```
//!
//! # What readers see
//!
//! Sync events when they are synced, Buffered ones when they are written. What is not synced is *provisional*: a power cut
//! can take it, and its seqs are given again. [`len`](crate::Session::len) counts provisional events,
//! [`durable_len`](crate::Session::durable_len) does not. Who copies events elsewhere should stop at the latter.
//!
//! # When a call fails
//!
//! Most errors are refusals: nothing was written, and the store goes on. Two are not:
//!
//! - [`DiskFull`](crate::Error::DiskFull): there was too little room to begin. Nothing was written. Make room, try again.
//! - [`Failed`](crate::Error::Failed): a write or a sync failed. What was in flight is there as a whole or not at all, and
//!   only the next open finds out which. Reads of durable events go on; appends are refused until then.
//!
//! After `Failed`, open the store again and compare [`durable_len`](crate::Session::durable_len) with the last seq that was
//! acknowledged: what lies behind it came through as well. An append with [`expect`](crate::Append::expect) makes a
//! repeat safe: where the event did get through, it is a conflict and no second copy.
//!
//! # What is beyond this
//!
//! A medium that says that it has synced and has not; file systems without a journal; network file systems; copies of
//! the folder that are made while it is open. `sessionlog show` names the mode in which the engine makes data durable on
//! the file system at hand.
