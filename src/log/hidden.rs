//! Hidden sessions: written by an import, seen by nobody until one frame publishes them. What was not published goes:
//! with the next pass when its writer gave up, at the next open when the process ended.

use std::ops::Bound;
use std::sync::Arc;

use super::core::Core;
use super::tail::SessionState;
use crate::error::{Corruption, Error, Place, Result};
use crate::format;
use crate::id::StorageKey;
use crate::storage::{Map, Storage, remove_some};

/// Where a hidden session stands on its way to be one like any other.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Hidden {
    /// The commit that published it.
    pub(crate) published: Option<u64>,
    /// Its writer gave up, when this was the last commit: what is stored of it can go once that is drained.
    pub(crate) abandoned: Option<u64>,
}

/// Gives up a session that will not be published. Its tail goes now, its blocks with the next pass. No frame says so:
/// after a crash it is one that was not published.
pub(crate) fn abandon(core: &Core, state: &Arc<SessionState>) {
    let (freed, list) = {
        let mut tail = state.lock();
        let Some(hidden) = tail.hidden.as_mut().filter(|hidden| hidden.published.is_none()) else { return };
        hidden.abandoned = Some(core.journal.written());
        (tail.forget_runs(), tail.list())
    };
    core.room.give(freed);
    if list {
        core.add_undrained(Arc::clone(state));
    }
    core.drain.ask();
}

/// Lets go of the tails of sessions that the journal begins and does not publish.
pub(crate) fn forget_unpublished(core: &Core) {
    for state in core.undrained() {
        let mut tail = state.lock();
        if tail.hidden.is_some_and(|hidden| hidden.published.is_none()) {
            core.room.give(tail.forget_runs());
        }
    }
}

/// Removes every session that is hidden in storage: at open, when all frames are drained, nobody will publish them.
pub(crate) fn remove_all(core: &Core) -> Result<()> {
    let storage = core.storage.as_ref();
    let prefix = format::HIDDEN_PREFIX;
    let behind = format::behind(prefix);
    loop {
        // One at a time: a scan is no snapshot.
        let mut found = storage.range(Map::Sessions, Bound::Included(prefix), Bound::Excluded(&behind));
        let Some((key, _)) = found.next().transpose()? else { return Ok(()) };
        drop(found);
        let Some(key) = format::parse_tagged_key(prefix, &key) else {
            let place = Place::new("hidden session").at(format::hex(&key));
            return Err(Error::Corrupt { place, corruption: Corruption::NotRecognised });
        };
        if storage.get(Map::Sessions, &format::header_key(key))?.is_some() {
            // It was published: no pass leaves both, but damage can bring an old record back.
            storage.apply(Map::Sessions, &[(format::hidden_key(key).to_vec(), None)])?;
            storage.flush()?;
            continue;
        }
        remove(storage, key)?;
    }
}

/// Removes the sessions whose writers gave up, when the drain has passed all their frames: a frame that is read again
/// must find its session.
pub(crate) fn remove_abandoned(core: &Core) -> Result<()> {
    for state in core.undrained() {
        let abandoned = state.lock().hidden.and_then(|hidden| hidden.abandoned);
        if abandoned.is_some_and(|last| last <= core.drain.through()) {
            remove(core.storage.as_ref(), state.key())?;
            core.forget(&state);
        }
    }
    Ok(())
}

/// Blocks first: as long as one of them is there, the record that says what they are is there, too.
fn remove(storage: &dyn Storage, key: StorageKey) -> Result<()> {
    while remove_some(storage, Map::Events, &key.0, &format::behind(&key.0))? {}
    let records = [(format::hidden_key(key).to_vec(), None), (format::summary_key(key).to_vec(), None)];
    storage.apply(Map::Sessions, &records)?;
    storage.flush()
}
