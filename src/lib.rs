//! An embedded, durable, append-only event log for AI-agent sessions.

mod error;
mod event;
mod format;
mod id;

pub use error::{Corruption, Error, EventError, EventFault, IdFault, Place, Result};
pub use event::{Content, Event, EventKind, JsonString, JsonText, NewEvent};
pub use id::{Seq, SessionId, Timestamp};
