//! An embedded, durable, append-only event log for AI-agent sessions.
#![warn(missing_docs)]

mod error;
mod event;
mod id;

pub use error::*;
pub use event::*;
pub use id::{Seq, SessionId, Timestamp};
