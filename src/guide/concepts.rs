//! Stores, sessions, events, seqs, batches.
//!
//! # A store is a folder
//!
//! [`Store::open`](crate::Store::open) makes it or opens it. One process at a time has it open, with any number of
//! threads; a second process gets [`Error::InUse`](crate::Error::InUse), which names the holder. A [`Store`](crate::Store)
//! and a [`Session`](crate::Session) are handles: cheap to clone, and to be sent to other threads. The last one that goes
//! closes the store; [`close`](crate::Store::close) does so at once and says whether it worked.
//!
//! [`Store::in_memory`](crate::Store::in_memory) is the same log without a folder, for tests.
//!
//! # A session is a list
//!
//! It has an **id** (yours, or a minted UUID), metadata that never changes, and events. Of each event the **seq** is its
//! position: 0, 1, 2, … without a hole. Order is the seq and nothing else; timestamps are information.
//!
//! ```
//! # fn main() -> sessionlog::Result<()> {
//! use sessionlog::{NewEvent, NewSession, Seq, Store};
//! let store = Store::in_memory()?;
//! let session = store.create(NewSession::with_id("chat-1".parse()?).meta("model", "small"))?;
//! assert_eq!(session.append(NewEvent::user_message("hello"))?, Seq::ZERO);
//! assert_eq!(session.append(NewEvent::assistant_message("hi"))?, Seq::new(1));
//! let texts: Vec<String> = session.read_from(Seq::ZERO)?.map(|event| Ok(event?.to_json())).collect::<sessionlog::Result<_>>()?;
//! assert!(texts[0].starts_with(r#"{"type":"user/message","seq":0,"content":"hello","timestamp":"#));
//! # Ok(()) }
//! ```
//!
//! # Events
//!
//! Nine types have a meaning here: `turn/start`, `turn/end`, `step/start`, `step/end`, `user/message`,
//! `assistant/message`, `assistant/chunk`, `tool/call`, `tool/result`. Any other name is a custom event. Fields that
//! nobody knows are kept, on known types too. JSON comes back as it was spelled: numbers, key order, escapes.
//!
//! ```
//! # fn main() -> sessionlog::Result<()> {
//! use sessionlog::{NewEvent, NewSession, Seq, Store};
//! let store = Store::in_memory()?;
//! let session = store.create(NewSession::new())?;
//! let line = br#"{"type":"my/metric","value":1e400,"timestamp":0}"#;
//! session.append(NewEvent::from_json(line).expect("it is an event"))?;
//! let event = session.last(1)?.next().expect("one event")?;
//! assert_eq!(event.to_json(), r#"{"type":"my/metric","seq":0,"value":1e400,"timestamp":0}"#);
//! # Ok(()) }
//! ```
//!
//! # Batches, and who was first
//!
//! A batch is stored as a whole or not at all. [`Append::expect`](crate::Append::expect) makes an append conditional: it
//! is refused, with nothing written, when somebody else appended first.
//!
//! ```
//! # fn main() -> sessionlog::Result<()> {
//! use sessionlog::{Append, Error, NewEvent, NewSession, Seq, Store};
//! let store = Store::in_memory()?;
//! let session = store.create(NewSession::new())?;
//! session.append_batch([NewEvent::turn_start("t1"), NewEvent::user_message("hello")])?;
//! let stale = session.append_with(Append::new().expect(Seq::new(1)), [NewEvent::turn_end("t1")]);
//! assert!(matches!(stale, Err(Error::SeqConflict { actual, .. }) if actual == Seq::new(2)));
//! # Ok(()) }
//! ```
//!
//! # Reading
//!
//! From any seq ([`read_from`](crate::Session::read_from)), a half-open range
//! ([`read_range`](crate::Session::read_range)), backwards ([`read_reverse`](crate::Session::read_reverse)), the last few
//! ([`last`](crate::Session::last)), without streamed chunks ([`without_chunks`](crate::Events::without_chunks)). Errors
//! are items, and the first one ends the iterator: nothing is ever skipped. [`follow`](crate::Session::follow) waits for
//! what comes later, and an [observer](crate::StoreOptions::observer) hears the events of all sessions.
