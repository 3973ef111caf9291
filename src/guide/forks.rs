//! Another way from some point.
//!
//! A fork shares the first events of its parent and goes on by itself. No event is copied: it costs one append, whatever
//! the parent's length, and takes no space for what it shares. It is a session like any other, with its own id and
//! metadata (the parent's are copied), and can be forked again, thousands deep.
//!
//! ```
//! # fn main() -> sessionlog::Result<()> {
//! use sessionlog::{NewEvent, NewSession, Seq, Store};
//! let store = Store::in_memory()?;
//! let chat = store.create(NewSession::new())?;
//! chat.append_batch([NewEvent::user_message("2 + 2?"), NewEvent::assistant_message("5.")])?;
//!
//! let again = chat.fork(Seq::new(1))?; // behind the question
//! again.append(NewEvent::assistant_message("4."))?;
//!
//! assert_eq!(again.read_from(Seq::ZERO)?.next().unwrap()?, chat.read_from(Seq::ZERO)?.next().unwrap()?);
//! assert_eq!((chat.len(), again.len()), (2, 2));
//! let parent = again.header()?.parent.expect("it has one");
//! assert_eq!((parent.session.as_ref(), parent.prefix_len), (Some(chat.id()), 1));
//! # Ok(()) }
//! ```
//!
//! What the parent appends later is invisible to the fork, and the other way round. A fork in the middle of a turn is
//! fine; [`resume`](crate::Session::resume) closes the turn in the fork alone.
//!
//! # Deleting
//!
//! [`Store::delete`](crate::Store::delete) of a parent leaves its forks whole: events that a living fork needs stay until
//! the last such fork goes. The fork's header then has no parent id any more, only the prefix length.
//!
//! # Comparing
//!
//! [`running_hash`](crate::Session::running_hash) at some seq covers all events before it, and no id: two sessions with
//! the same hash there have the same history up to there, in this store or in another.
//!
//! ```
//! # fn main() -> sessionlog::Result<()> {
//! # use sessionlog::{NewEvent, NewSession, Seq, Store};
//! # let store = Store::in_memory()?;
//! # let chat = store.create(NewSession::new())?;
//! # chat.append(NewEvent::user_message("2 + 2?"))?;
//! let branch = chat.fork(Seq::new(1))?;
//! assert_eq!(chat.running_hash(Seq::new(1))?, branch.running_hash(Seq::new(1))?);
//! # Ok(()) }
//! ```
