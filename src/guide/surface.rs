//! From events to the messages of the next request, and compaction.
//!
//! The *surface* is what the model sees of a session: the messages array of the chat API.
//! [`Session::messages`](crate::Session::messages) gives it, and it can be sent, whatever was logged:
//!
//! - `user/message` → user, `assistant/message` → assistant, `tool/call` → an assistant's `tool_calls`, `tool/result` →
//!   tool. All else is skipped.
//! - Calls join the assistant message before them; results stand right behind their calls.
//! - A call without a result gets a stand-in that says so; a result without a call is left out.
//!   [`Surface::report`](crate::Surface::report) lists what was mended.
//!
//! ```
//! # fn main() -> sessionlog::Result<()> {
//! use sessionlog::{NewEvent, NewSession, Store};
//! let store = Store::in_memory()?;
//! let session = store.create(NewSession::new())?;
//! session.append_batch([
//!     NewEvent::turn_start("t1"),
//!     NewEvent::user_message("2 + 2?"),
//!     NewEvent::tool_call("c1", "calculator", r#"{"expression":"2 + 2"}"#),
//!     NewEvent::tool_result("c1", "4"),
//!     NewEvent::assistant_message("4."),
//! ])?;
//! let roles: Vec<&str> = session.messages()?.iter().map(|message| message.role()).collect();
//! assert_eq!(roles, ["user", "assistant", "tool", "assistant"]);
//! # Ok(()) }
//! ```
//!
//! # Turn after turn
//!
//! A [`Surface`](crate::Surface) is kept up to date event by event. [`Session::surface`](crate::Session::surface) makes
//! one, [`Session::advance`](crate::Session::advance) folds in what came since: each event once. The first call after an
//! open begins at a checkpoint, so that a session of millions of events costs what its messages cost.
//!
//! # Compaction
//!
//! An event that *replaces* stands on the surface in the place of a range of others. They stay in the log: a surface of
//! an earlier seq ([`messages_at`](crate::Session::messages_at)) still shows them.
//!
//! ```
//! # fn main() -> sessionlog::Result<()> {
//! use sessionlog::{NewEvent, NewSession, Seq, Store};
//! let store = Store::in_memory()?;
//! let session = store.create(NewSession::new())?;
//! session.append_batch([
//!     NewEvent::user_message("a long question"),
//!     NewEvent::assistant_message("a long answer"),
//!     NewEvent::user_message("and now?"),
//! ])?;
//! let summary = NewEvent::user_message("what was said so far").replace(Seq::ZERO, Seq::new(1));
//! session.append(summary)?;
//! assert_eq!(session.messages()?.len(), 2);
//! assert_eq!(session.messages_at(Seq::new(3))?.len(), 3);
//! # Ok(()) }
//! ```
//!
//! A replace that would not be sound (a range that tears a call from its result, an end that is not on the surface) is
//! refused when it is appended, with [`InvalidReplace`](crate::Error::InvalidReplace), and nothing is stored.
