//! An agent that died in the middle of a turn.
//!
//! Opening a store after a crash needs no step of yours, and takes the time of what was not drained yet: at most some
//! megabytes. [`open_report`](crate::Store::open_report) says what was found. What an agent has to look at is its last
//! turn: a tool call may stand there without a result, and whether the tool ran nobody knows.
//!
//! ```
//! # fn main() -> sessionlog::Result<()> {
//! use sessionlog::{NewEvent, NewSession, Store};
//! let store = Store::in_memory()?;
//! let session = store.create(NewSession::new())?;
//! session.append_batch([
//!     NewEvent::turn_start("t1"),
//!     NewEvent::user_message("delete the old logs"),
//!     NewEvent::tool_call("c1", "bash", r#"{"command":"rm old.log"}"#),
//! ])?;
//! // The process dies here, and starts again.
//!
//! let open = session.inspect()?; // writes nothing
//! assert_eq!(open.calls.len(), 1);
//! // Here an agent can find out whether the file is still there, and append the true result itself. Or:
//! let resumed = session.resume()?;
//! assert_eq!(resumed.seqs.end.get(), 5); // a result that says that the outcome is unknown, and the turn's end
//! assert!(session.resume()?.inspection.is_empty()); // a second time there is nothing to do
//! # Ok(()) }
//! ```
//!
//! The closers are ordinary events: a `tool/result` with the error
//! [`TOOL_OUTCOME_UNKNOWN`](crate::TOOL_OUTCOME_UNKNOWN) for each open call, then the ends of step and turn, with the
//! reason `interrupted`. Nothing is truncated. They are appended only if nobody else appended meanwhile.
//!
//! The text of a message that was still streamed is in [`Inspection::text`](crate::Inspection::text).
