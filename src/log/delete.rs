//! Deletion as callers see it: checked and queued under the catalog's lock, durable on return.
//!
//! What is left of the session goes later: see `kept` and `removal`.

use std::sync::Arc;

use super::commit::{Request, Work};
use super::core::Core;
use super::tail::{SessionState, Tail};
use crate::error::Result;
use crate::id::SessionId;

/// Deletes the session with this id. Returns whether there was one.
pub(crate) fn by_id(core: &Core, id: &SessionId) -> Result<bool> {
    loop {
        core.health.check()?;
        core.observers.refuse_own_thread()?;
        match queue(core, id, |_, _| true)? {
            Queued::At(ticket) => return core.committer.wait(ticket, core).map(|()| true),
            Queued::Deleting(ticket) => core.committer.wait_for_other(ticket, core)?,
            Queued::NotThere | Queued::Refused => return Ok(false),
        }
    }
}

/// What became of a deletion.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Queued {
    /// It is in the commit queue with this ticket.
    At(u64),
    /// Another one of it is, with this ticket: whether the session stays is not known yet.
    Deleting(u64),
    /// There is no such session.
    NotThere,
    /// The caller does not want it.
    Refused,
}

/// Queues the deletion of the session with this id, if `wanted` says so, which sees it as it is then.
pub(crate) fn queue(
    core: &Core,
    id: &SessionId,
    wanted: impl FnOnce(&SessionState, &Tail) -> bool,
) -> Result<Queued> {
    // Under one lock with forks and creations: which of them was first is decided here.
    let mut used = core.catalog.lock();
    let Some(session) = used.by_id(id, core.storage.as_ref())? else { return Ok(Queued::NotThere) };
    let mut tail = session.lock();
    if tail.visible_since().is_none() || tail.deleted.is_some() {
        return Ok(Queued::NotThere);
    }
    if let Some(ticket) = tail.deleting {
        return Ok(Queued::Deleting(ticket));
    }
    if !wanted(&session, &tail) {
        return Ok(Queued::Refused);
    }
    let work = Work::Delete { session: Arc::clone(&session) };
    let ticket = core.committer.enqueue(Request { work, sync: true })?;
    tail.deleting = Some(ticket);
    Ok(Queued::At(ticket))
}
