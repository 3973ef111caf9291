//! Checkpoints in the engine: written by the drain behind the events they cover, believed when their hash is right.
//!
//! What they hold is none of the log's business: bytes that somebody computed from a session's first events.

use std::collections::HashMap;
use std::ops::Bound;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::core::Core;
use super::history::stored_hash;
use super::tail::SessionState;
use crate::error::Result;
use crate::format::{self, Checkpoint, CheckpointReader, Hash, WriteNumber};
use crate::id::StorageKey;
use crate::storage::Map;

/// The most bytes that wait for the drain. More are refused: their owners ask again.
const WAITING_BYTES: usize = 8 << 20;
/// What the engine may need beside the bytes of a checkpoint.
const MARGIN_BYTES: u64 = 2 << 20;

/// What waits to be written: one for each session.
#[derive(Debug, Default)]
pub(crate) struct Checkpoints {
    waiting: Mutex<HashMap<StorageKey, Waiting>>,
}

#[derive(Debug)]
struct Waiting {
    session: Arc<SessionState>,
    len: u64,
    bytes: Vec<u8>,
}

impl Checkpoints {
    fn lock(&self) -> MutexGuard<'_, HashMap<StorageKey, Waiting>> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether anything waits.
    pub(crate) fn is_waiting(&self) -> bool {
        !self.lock().is_empty()
    }

    /// Whether one of this session waits. Another would not be taken: one that is always replaced by a newer one before
    /// its events are drained would never be written.
    pub(crate) fn waits_for(&self, session: &SessionState) -> bool {
        self.lock().contains_key(&session.key())
    }

    /// Leaves a projection of the first `len` events of a session, to be written when these are in blocks.
    pub(crate) fn leave(&self, core: &Core, session: &Arc<SessionState>, len: u64, bytes: Vec<u8>) {
        let mut waiting = self.lock();
        let all: usize = waiting.values().map(|waiting| waiting.bytes.len()).sum();
        if bytes.is_empty()
            || bytes.len() > format::MAX_CHECKPOINT_BYTES
            || all + bytes.len() > WAITING_BYTES
            || waiting.contains_key(&session.key())
        {
            return;
        }
        waiting.insert(session.key(), Waiting { session: Arc::clone(session), len, bytes });
        drop(waiting);
        core.drain.poke(core);
    }

    /// Takes what covers drained events only; what is of deleted sessions is let go.
    fn take_drained(&self) -> Vec<Waiting> {
        let mut waiting = self.lock();
        waiting.retain(|_, waiting| !waiting.session.is_deleted());
        // Nothing for a session that storage does not know: should that be deleted first, nobody would remove it.
        let is_drained = |_: &StorageKey, waiting: &mut Waiting| {
            let tail = waiting.session.lock();
            tail.header_stored && waiting.len <= tail.stored.len
        };
        waiting.extract_if(is_drained).map(|(_, waiting)| waiting).collect()
    }

    /// Writes what covers drained events only, each in the place of the session's last one. Called by the drain when
    /// these events, and the summary that counts them, are durable.
    pub(crate) fn write(&self, core: &Core, mut number: impl FnMut() -> WriteNumber) -> Result<()> {
        let mut written = false;
        for Waiting { session, len, bytes } in self.take_drained() {
            // Where history is damaged, or the disk is full, there is none: nobody needs it.
            let hash = stored_hash(core.storage.as_ref(), &session, len).ok();
            let Some(hash) = hash.filter(|hash| *hash != Hash::UNKNOWN) else { continue };
            let Ok(_room) = core.journal.promise(bytes.len() as u64 + MARGIN_BYTES) else { continue };
            let values = Checkpoint { len, hash, bytes }.to_values(session.key(), number());
            let mut changes: Vec<_> = values.into_iter().map(|(key, value)| (key, Some(value))).collect();
            let behind = u32::try_from(changes.len()).unwrap_or(u32::MAX);
            changes.extend(keys(core, session.key(), behind)?.into_iter().map(|key| (key, None)));
            core.storage.apply(Map::Derived, &changes)?;
            written = true;
        }
        if written { core.storage.flush() } else { Ok(()) }
    }
}

/// The keys of a session's checkpoint, from a part on.
fn keys(core: &Core, key: StorageKey, part: u32) -> Result<Vec<Vec<u8>>> {
    let (from, to) = (format::checkpoint_key(key, part), format::checkpoint_key(key, u32::MAX));
    let found = core.storage.range(Map::Derived, Bound::Included(&from), Bound::Included(&to));
    found.map(|entry| entry.map(|(key, _)| key)).collect()
}

/// The checkpoint of a session, when it covers at most `at_most` events and is that of its history.
///
/// `None` whatever is wrong with it: it is a shortcut, and the events are there.
pub(crate) fn load(core: &Core, session: &SessionState, at_most: u64) -> Option<(u64, Vec<u8>)> {
    let storage = core.storage.as_ref();
    let key = session.key();
    let first = storage.get(Map::Derived, &format::checkpoint_key(key, 0)).ok()??;
    let mut reader = CheckpointReader::new(key, &first).ok()?;
    let (len, hash) = reader.covers();
    if len > at_most || len < session.header.prefix_len() || len > session.lock().stored.len {
        return None;
    }
    // One block at most is read for it.
    if hash == Hash::UNKNOWN || stored_hash(storage, session, len).ok()? != hash {
        return None;
    }
    for part in 1..reader.parts() {
        let value = storage.get(Map::Derived, &format::checkpoint_key(key, part)).ok()??;
        reader.push(&value).ok()?;
    }
    Some((len, reader.finish().ok()?.bytes))
}
