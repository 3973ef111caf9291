//! Sessions in and out of a store as files. Built on the public API alone: a foreign format is one more file here.
//!
//! # Native JSON Lines
//! One session a file. The first line is the header:
//!
//! ```json
//! {"type":"session","version":1,"id":"release-notes","createdAt":1700000000000,"length":2,"hash":"5d41…"}
//! ```
//!
//! | field | |
//! | --- | --- |
//! | `type`, `version` | `"session"`, `1` |
//! | `id` | the session's id |
//! | `createdAt` | milliseconds since 1970 |
//! | `parent`, `prefixLength` | of a fork: its parent's id, and how many events it shares |
//! | `firstSeq` | the seq of the first event in the file; 0 when absent |
//! | `length` | the number of the session's events: the seq behind the last one |
//! | `hash` | the [running hash](crate::RunningHash) there |
//! | `title`, `labels` | what people call it |
//! | `meta` | free metadata, names sorted |
//! | any other | kept as it is |
//!
//! Then one event a line, as [`Event::to_json`](crate::Event::to_json) gives it, in the order of seqs.
//!
//! ```
//! # fn main() -> sessionlog::Result<()> {
//! use sessionlog::transfer::{ExportOptions, ImportOptions, export, import};
//! use sessionlog::{NewEvent, NewSession, Store};
//!
//! let here = Store::in_memory()?;
//! let session = here.create(NewSession::with_id("release-notes".parse()?))?;
//! session.append(NewEvent::user_message("hi"))?;
//! let mut file = Vec::new();
//! export(&session, ExportOptions::new(), &mut file)?;
//!
//! let there = Store::in_memory()?;
//! let report = import(&there, &file[..], &ImportOptions::new())?;
//! assert_eq!((report.session.as_str(), report.appended), ("release-notes", 1));
//! let mut again = Vec::new();
//! export(&there.session(&report.session)?, ExportOptions::new(), &mut again)?;
//! assert_eq!(again, file);
//! # Ok(()) }
//! ```

mod export;
mod fault;
mod files;
mod header;
mod import;
mod lines;
mod options;
mod target;
mod update;

pub use export::{ExportOptions, Exported, create_file, export, export_all};
pub use fault::{Fault, FaultKind};
pub use files::{Watched, import_file, import_files};
pub use import::import;
pub use options::{ImportOptions, ImportReport};
