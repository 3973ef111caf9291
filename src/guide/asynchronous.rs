//! Callers that must not block: the feature `async`.
//!
//! An append waits for a sync: some hundred microseconds on a good disk, far longer on a bad one. Where the caller's
//! thread runs other tasks, too, `Session::append_async` gives a future instead. The batch is queued when the method is
//! called, in order with the appends of other threads and with the blocking ones; the future completes when it is
//! durable. Dropping it cancels nothing. `Session::follow_async` is [`follow`](crate::Session::follow) as a `Stream`.
//! Neither needs a certain runtime.
//!
#![cfg_attr(feature = "async", doc = "```")]
#![cfg_attr(not(feature = "async"), doc = "```ignore")]
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! use sessionlog::{Append, NewEvent, NewSession, Store};
//!
//! # let runtime = tokio::runtime::Builder::new_current_thread().build()?;
//! # runtime.block_on(async {
//! let store = Store::in_memory()?;
//! let session = store.create(NewSession::new())?;
//! let question = session.append_async(Append::new(), [NewEvent::user_message("2 + 2?")]);
//! let answer = session.append_async(Append::new(), [NewEvent::assistant_message("4.")]);
//! let (question, answer) = (question.await?, answer.await?);
//! assert!(question.end <= answer.start);
//! # Ok::<(), sessionlog::Error>(()) })?;
//! # Ok(()) }
//! ```
//!
//! Other calls (reads, `messages`, `scan`) block while they read; give them to a thread for blocking work.
//! `examples/async_agent.rs` is an agent on tokio.
