//! An embedded, durable, append-only event log for AI-agent sessions.
#![warn(missing_docs)]

mod error;
mod event;
mod format;
mod id;
mod integrity;
mod list;
mod log;
mod options;
mod recovery;
mod replay;
mod session;
mod stats;
pub mod storage;
mod store;

pub use error::{Corruption, Error, EventError, EventFault, IdFault, Place, Result};
pub use event::{Content, Event, EventKind, JsonString, JsonText, NewEvent, SurfaceOp};
pub use id::{Seq, SessionId, Timestamp};
pub use integrity::{CheckReport, Problem};
pub use list::Sessions;
pub use log::follow::Follow;
pub use log::reader::Events;
pub use options::{Append, Durability, DurabilityRule, NewSession, StoreOptions};
pub use recovery::{
    Inspection, OpenCall, OpenStep, OpenTurn, Resumed, TOOL_OUTCOME_UNKNOWN, unfinished_text,
};
pub use replay::{Pace, Replay, StopReplay};
pub use session::{Parent, Session, SessionHeader, SessionInfo};
pub use stats::{Distribution, Statistics, Tally, TokenUsage, ToolStatistics, TypeCount};
pub use store::{OpenReport, Store, StoreInfo};
