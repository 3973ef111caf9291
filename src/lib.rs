//! An embedded, durable, append-only event log for AI-agent sessions.
//!
//! An agent writes down what happens in its loop: turns, steps, messages, streamed chunks, tool calls and results.
//! This crate keeps it, in order and for good, and gives it back from any point. There is no server: a [`Store`] is
//! a folder.
//!
//! ```
//! use sessionlog::{Append, Error, NewEvent, NewSession, Seq, Store};
//!
//! # fn main() -> sessionlog::Result<()> {
//! let store = Store::in_memory()?; // or Store::open("sessions")?
//! let session = store.create(NewSession::new().meta("model", "small"))?;
//!
//! // Durable when it returns.
//! let first = session.append(NewEvent::user_message("What is 2 + 2?"))?;
//! assert_eq!(first, Seq::ZERO);
//!
//! // All or nothing.
//! let seqs = session.append_batch([
//!     NewEvent::tool_call("c1", "calculator", r#"{"expression":"2 + 2"}"#),
//!     NewEvent::tool_result("c1", "4"),
//!     NewEvent::assistant_message("4."),
//! ])?;
//! assert_eq!(seqs, Seq::new(1)..Seq::new(4));
//!
//! // Only if nobody was faster.
//! let late = session.append_with(Append::new().expect(Seq::new(1)), [NewEvent::user_message("late")]);
//! assert!(matches!(late, Err(Error::SeqConflict { actual, .. }) if actual == Seq::new(4)));
//!
//! // From any seq on; errors are items.
//! for event in session.read_from(Seq::new(2))? {
//!     println!("{}", event?);
//! }
//!
//! // Another way from the same question. No event is copied.
//! let branch = session.fork(Seq::new(1))?;
//! branch.append(NewEvent::assistant_message("Let me think."))?;
//! assert_eq!((session.len(), branch.len()), (4, 2));
//! store.close()?;
//! # Ok(()) }
//! ```
//!
//! The [`guide`] explains all of it, page by page.
//!
//! # Concepts
//!
//! - A **store** holds sessions. One process at a time has it open, with any number of threads; [`StoreOptions`] says
//!   how. Handles are cheap to clone, and the last one that goes closes the store.
//! - A **session** has an id, metadata that never changes, and events. See [`Session`].
//! - An **event** has a type, fields, a timestamp and a **seq**: its position, 0 for the first, without a hole. Order
//!   is the seq and nothing else. [`NewEvent`] is one to be appended, [`Event`] one that was read. Types and fields
//!   that this crate does not know are kept, and all JSON comes back as it was spelled.
//! - A **fork** shares the first events of another session, its parent, and goes on by itself. It is a session like any
//!   other, and can be forked again.
//!
//! Events are only ever appended. A durable event does not change and does not move.
//!
//! # Durability
//!
//! | what returned | `kill -9` | power cut |
//! | --- | --- | --- |
//! | an append with [`Durability::Sync`] | survives | survives |
//! | an append with [`Durability::Buffered`] | survives | survives once the sync window has passed |
//! | [`Session::label`], [`HiddenSession::publish`] | survive | survive |
//! | [`Store::create`], [`Session::fork`] | survive | survive |
//! | [`Store::flush`], [`Store::close`] | | all that was appended before survives |
//!
//! An append that names no durability has that of its event's type: `assistant/chunk` is Buffered, all else is Sync;
//! [`StoreOptions::durability`] changes that. A batch is Sync when one of its events is, and it is there as a whole or
//! not at all.
//!
//! Readers see Sync events when they are synced, and Buffered ones when they are written. The latter are *provisional*
//! until the next sync: [`Session::len`] counts them, [`Session::durable_len`] does not.
//!
//! # Reading
//!
//! [`read_from`](Session::read_from), [`read_range`](Session::read_range), [`read_reverse`](Session::read_reverse) and
//! [`last`](Session::last) give [`Events`]: an iterator over a range that is fixed when it is made, read as it is asked
//! for; [`Events::page`] gives them in pages by count and bytes. [`follow`](Session::follow) goes on with what is appended
//! later. An [observer](StoreOptions::observer) hears the events of all sessions.
//!
//! # Looking back
//!
//! After a crash nothing need be done to open a store. [`Session::inspect`] tells what the last turn left open, and
//! [`Session::resume`] closes it, so that an agent can go on. [`Session::replay`] gives a run again at its own pace, or
//! plays it into a fork. [`Session::statistics`] and [`Store::statistics`] count and measure what is stored,
//! [`Store::metrics`] what the store does.
//!
//! # Names, and moving in and out
//!
//! [`Session::label`] gives a session a title and labels, which may change. [`transfer`] writes sessions as JSON Lines
//! and reads them again: a file as a whole or not at all. What it builds on is public: [`Store::create_hidden`] makes a
//! session that nobody sees until it is published, and [`Session::running_hash`] says whether two histories are equal.
//!
//! # Many sessions
//!
//! [`Store::list`] gives sessions by their last update, [`Store::list_with`] those that a [`List`] asks for, in pages where
//! that is wanted; [`Store::tree`] gives forks below their parents. [`Store::delete`] deletes one session,
//! [`Store::plan_prune`] names those beyond a limit and [`Store::prune`] deletes what was named; forks keep what they share.
//!
//! # Damage
//!
//! What cannot be vouched for is an error and stays as it is. [`Scan`] tells all that is wrong in a store whose engine
//! opens, [`Repair`] mends it, and [`Salvage`] makes a fresh store of what still reads where the engine does not open, or
//! has fallen back behind what it once had. [`Store::backup`] copies a store that is in use.
//!
//! # Space
//!
//! Blocks are filled as sessions grow; [`Store::compact`] merges those that stayed small. The engine's files do not shrink:
//! [`Store::rewrite`] writes them anew with only what is live, and so takes deleted text off the disk.
//!
//! # Errors
//!
//! Every call that can fail gives an [`Error`], whose variants differ where a caller acts differently:
//!
//! - refused, and nothing was written: [`Error::InvalidEvent`], [`Error::SeqConflict`], [`Error::SessionExists`],
//!   [`Error::EventTooLarge`] and the like. The store goes on.
//! - [`Error::DiskFull`]: there was too little room to begin; nothing was written. Make room and try again.
//! - [`Error::Failed`]: a write or sync failed. What was in flight is whole or absent, which is known after reopening:
//!   compare [`Session::durable_len`]. Until then the store refuses writes, and readers see what is durable.
//! - [`Error::Corrupt`]: stored bytes are damaged, with the place and what is wrong there. Other places read on.
//! - [`Error::UnsupportedFormat`]: a newer version wrote it. It may be sound.
//!
//! The library never prints, never exits, and reads no environment variable and no home folder.
//!
//! # Seams
//!
//! [`storage::Storage`] and [`storage::JournalFiles`] are all that stands between the log and its medium. Memory stands
//! behind them in [`Store::in_memory`], and anything else with [`StoreOptions::open_on`].
//!
//! # Features
//!
//! `cli` (on by default) is for the program `sessionlog` only. A library user sets `default-features = false`.
//!
//! `async` adds `Session::append_async` and `Session::follow_async`, a future and a stream for any runtime.
//!
//! `tracing` opens spans of the crate of that name, with the target `sessionlog`: `open` and `scan`, `commit` (with the
//! number of requests in it), `sync` and `drain`. All are of the level debug. [`Store::metrics`] needs no feature.
#![warn(missing_docs)]

/// The example of the README compiles and runs.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;

mod error;
mod event;
mod format;
pub mod guide;
mod id;
mod integrity;
mod labels;
mod list;
mod log;
mod metrics;
mod options;
mod prune;
mod recovery;
mod replay;
mod running_hash;
mod session;
mod spans;
mod stats;
pub mod storage;
mod store;
mod surface;
pub mod transfer;
mod tree;

pub use error::{Corruption, Error, EventError, EventFault, IdFault, Place, Result};
pub use event::{Content, Event, EventKind, JsonMember, JsonString, JsonText, NewEvent, SurfaceOp};
#[cfg(feature = "async")]
pub use futures_core::Stream;
pub use id::{Seq, SessionId, Timestamp};
pub use integrity::{
    BackupReport, EngineOutcome, Finding, FindingKind, Head, Quarantine, QuarantinedItem, Remedy, RemedyKind,
    Repair, RepairReport, RewriteReport, Salvage, SalvageProgress, SalvageReport, SalvageStep,
    SalvagedSession, Scan, ScanProgress, ScanReport, Severity,
};
pub use labels::{LabelChange, Labels, MAX_LABEL_BYTES};
pub use list::{BadListCursor, List, ListCursor, Sessions};
pub use log::compact::CompactReport;
pub use log::follow::Follow;
pub use log::reader::Events;
pub use metrics::Metrics;
pub use options::{
    Append, Durability, DurabilityRule, MAX_BATCH_BYTES, MAX_BATCH_EVENTS, MAX_EVENT_BYTES, NewSession,
    StoreOptions,
};
pub use prune::{Protection, Prune, PrunePlan, PruneReason, PrunedSession};
pub use recovery::{
    Inspection, OpenCall, OpenStep, OpenTurn, Resumed, TOOL_OUTCOME_UNKNOWN, unfinished_text,
};
pub use replay::{Pace, Replay, StopReplay};
pub use running_hash::{BadRunningHash, RunningHash};
#[cfg(feature = "async")]
pub use session::{AppendFuture, FollowStream};
pub use session::{HiddenSession, Parent, Session, SessionHeader, SessionInfo};
pub use stats::{Distribution, Statistics, Tally, TokenUsage, ToolStatistics, TypeCount};
pub use store::{OpenReport, Store, StoreInfo};
pub use surface::{
    FunctionCall, MISSING_RESULT, Mend, Message, ReplaceFault, Report, SnapshotFault, Surface, SurfaceFault,
    SurfaceOptions, SurfaceSnapshot, ToolCall,
};
pub use tree::{Tree, TreeNode};
