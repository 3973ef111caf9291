//! Deletion as callers see it: checked and queued under the catalog's lock, durable on return.
//!
//! What is left of the session goes later: see `kept` and `removal`.

use std::sync::Arc;

use super::catalog::Used;
use super::commit::{Request, Work};
use super::core::Core;
use super::tail::SessionState;
use crate::error::Result;
use crate::id::{SessionId, StorageKey};

/// Deletes the session with this id. Returns whether there was one.
pub(crate) fn by_id(core: &Core, id: &SessionId) -> Result<bool> {
    delete(core, |used| used.by_id(id, core.storage.as_ref()))
}

/// Deletes the session with this storage key. Returns whether there was one.
#[allow(dead_code, reason = "for imports that were interrupted: nobody knows their ids")]
pub(crate) fn by_key(core: &Core, key: StorageKey) -> Result<bool> {
    delete(core, |used| used.by_key(key, core.storage.as_ref()))
}

fn delete(core: &Core, find: impl Fn(&mut Used) -> Result<Option<Arc<SessionState>>>) -> Result<bool> {
    loop {
        core.health.check()?;
        core.observers.refuse_own_thread()?;
        // Under one lock with forks and creations: which of them was first is decided here.
        let mut used = core.catalog.lock();
        let Some(session) = find(&mut used)? else { return Ok(false) };
        let mut tail = session.lock();
        if tail.created.is_none() || tail.deleted.is_some() {
            return Ok(false);
        }
        if let Some(ticket) = tail.deleting {
            drop(tail);
            drop(used);
            core.committer.wait_for_other(ticket, core)?;
            continue;
        }
        let work = Work::Delete { session: Arc::clone(&session) };
        let ticket = core.committer.enqueue(Request { work, sync: true })?;
        tail.deleting = Some(ticket);
        drop(tail);
        drop(used);
        return core.committer.wait(ticket, core).map(|()| true);
    }
}
