//! Backup, scan, repair, salvage, space, moving in and out.
//!
//! # Backup
//!
//! Do not copy the folder of an open store: what is copied first and what last would not belong together.
//! [`Store::backup`](crate::Store::backup) makes a copy while the store is in use, and scans it. The copy gets its name
//! when it is whole, so an interrupted backup is never taken for one. A store that is closed may be copied like any folder.
//!
//! ```
//! # fn main() -> sessionlog::Result<()> {
//! use sessionlog::{NewEvent, NewSession, Scan, Store};
//! # let folder = tempfile::tempdir().unwrap();
//! # let (path, copy) = (folder.path().join("sessions"), folder.path().join("copy"));
//! let store = Store::open(&path)?;
//! store.create(NewSession::new())?.append(NewEvent::user_message("hello"))?;
//! let report = store.backup(&copy)?;
//! assert!(report.scan.is_clean());
//! store.close()?;
//! # drop(store);
//! assert_eq!(Scan::new().folder(&copy)?.events, 1);
//! # Ok(()) }
//! ```
//!
//! # Scan
//!
//! [`Scan`](crate::Scan) reads everything that is stored and checks it: checksums, seqs, running hashes, and that all
//! records agree. It goes to the end whatever it meets, writes nothing, and is clean if and only if every read works.
//! Note a session's [`running_hash`](crate::Session::running_hash) elsewhere, and
//! [`Scan::expect`](crate::Scan::expect) proves later that its history is still the same.
//!
//! # Repair
//!
//! [`Repair`](crate::Repair) first makes a plan, and does what the plan says when it is applied. What follows from other
//! records is made anew; a block that cannot be read is set aside, and kept. A session of which events are missing *ends*
//! at the hole: it reads up to there, appends give [`Ended`](crate::Error::Ended), a fork at its end goes on, and what
//! lay behind is in its [`quarantine`](crate::Session::quarantine), with its seqs.
//!
//! ```no_run
//! # fn main() -> sessionlog::Result<()> {
//! use sessionlog::Repair;
//! let repair = Repair::folder("sessions")?; // nobody may have it open
//! for remedy in &repair.plan().remedies {
//!     println!("{}", remedy.detail);
//! }
//! repair.apply()?;
//! # Ok(()) }
//! ```
//!
//! # Salvage
//!
//! When the engine itself does not open, [`Salvage`](crate::Salvage) makes a fresh store of what can still be read: what
//! the engine gives, what stands in its raw files, what the journal holds. The old folder is only read. The report lists
//! each session and the seqs that are missing in it.
//!
//! Which one when: an error names a place → scan; the scan finds something → repair, with a look at its plan first; the
//! store does not open and the error says so → salvage. Keep the old folder until you have looked at the new one.
//!
//! # Space
//!
//! An event of an agent's trace takes some 40 bytes in the engine. The journal takes 256 KiB to 32 MiB and is emptied at
//! close; 4 MiB are kept in reserve, so that a store on a full disk still opens and closes. Space of deleted sessions is
//! used again; the engine's file as such does not shrink by itself. [`Store::info`](crate::Store::info) says what is taken,
//! [`Store::metrics`](crate::Store::metrics) what an open store does.
//!
//! Nothing is deleted by itself. [`Prune`](crate::Prune) deletes the sessions beyond a limit of age, count or size; its plan
//! can be looked at first. [`Store::compact`](crate::Store::compact) merges small blocks of an open store, and seldom finds
//! much. [`Store::rewrite`](crate::Store::rewrite) writes the engine anew with only what is live: that gives space back, and
//! is what takes deleted texts off the disk. Before it, [`Store::delete`](crate::Store::delete) is no erasure: until they are
//! written over, deleted texts are still in the files. `SECURITY.md` says more.
//!
//! # Moving in and out
//!
//! [`transfer`](crate::transfer) writes a session as JSON Lines and reads it again: a file as a whole or not at all, in
//! one pass and in bounded memory, with every fault listed by line and column. An export of an import is the same file,
//! byte for byte.
//!
//! ```
//! # fn main() -> sessionlog::Result<()> {
//! use sessionlog::transfer::{ExportOptions, ImportOptions, export, import};
//! use sessionlog::{NewEvent, NewSession, Store};
//! let here = Store::in_memory()?;
//! let session = here.create(NewSession::new())?;
//! session.append(NewEvent::user_message("hello"))?;
//! let mut file = Vec::new();
//! export(&session, ExportOptions::new(), &mut file)?;
//!
//! let there = Store::in_memory()?;
//! let checked = import(&there, &file[..], &ImportOptions::new().dry_run())?;
//! assert_eq!((checked.appended, there.list()?.count()), (1, 0));
//! import(&there, &file[..], &ImportOptions::new())?;
//! assert_eq!(there.session(session.id())?.len(), 1);
//! # Ok(()) }
//! ```
