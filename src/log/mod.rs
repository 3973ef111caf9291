//! How events become durable and come back.
//!
//! One direction: `commit` writes frames into the `journal` and runs into the `tail`; the `drain` moves them into
//! blocks; the `reader` reads blocks, then the tail.

pub(crate) mod busy;
pub(crate) mod catalog;
pub(crate) mod checkpoint;
pub(crate) mod commit;
pub(crate) mod compact;
pub(crate) mod core;
pub(crate) mod delete;
pub(crate) mod drain;
pub(crate) mod follow;
pub(crate) mod health;
pub(crate) mod hidden;
pub(crate) mod history;
pub(crate) mod journal;
pub(crate) mod keeper;
pub(crate) mod kept;
#[cfg(feature = "async")]
pub(crate) mod later;
pub(crate) mod lineage;
pub(crate) mod meter;
pub(crate) mod observe;
pub(crate) mod pass;
pub(crate) mod reader;
pub(crate) mod removal;
pub(crate) mod replay;
pub(crate) mod room;
pub(crate) mod tail;
pub(crate) mod unpack;

use std::thread::{Builder, JoinHandle};

use crate::error::{Error, Result};

/// Starts a named thread.
pub(crate) fn spawn(name: &str, work: impl FnOnce() + Send + 'static) -> Result<JoinHandle<()>> {
    Builder::new().name(name.to_owned()).spawn(work).map_err(|source| Error::Io {
        action: "start the thread",
        path: name.into(),
        source,
    })
}
