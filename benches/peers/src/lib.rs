//! The same work on sessionlog and on other stores, and the means to compare them.
//!
//! A module for each store, with the few functions that its work needs; there is no trait over them, since each
//! store should do the work as its own users would write it. All of them begin with the same plain events.

pub mod measure;
pub mod ours;
pub mod plain_file;
pub mod process;
pub mod sqlite;

#[path = "../../support/events.rs"]
pub mod events;
#[path = "../../support/trace.rs"]
pub mod trace;

/// What a measurement can fail with.
pub type Outcome<T> = Result<T, Box<dyn std::error::Error + Send + Sync>>;
