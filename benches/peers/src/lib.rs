//! The same work on sessionlog and on other stores, and the means to compare them.
//!
//! All of them begin with the same plain events. [`peer`] names the work that every store does; for the bars of the
//! engine there is less, and no trait.

pub mod machine;
pub mod measure;
pub mod ours;
pub mod peer;
pub mod plain_file;
pub mod process;
pub mod sqlite;
pub mod typed;

#[path = "../../support/events.rs"]
pub mod events;
#[path = "../../support/trace.rs"]
pub mod trace;

/// What a measurement can fail with.
pub type Outcome<T> = Result<T, Box<dyn std::error::Error + Send + Sync>>;
