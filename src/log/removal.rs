//! Removes what deleted sessions left and no living fork needs: in batches, between passes, resumed after a crash.
//!
//! The tombstone is durable before anything goes, and says *pending* until all of it is gone; so each step can be
//! repeated, and stopped anywhere. What forks read (the header, and blocks before `kept`) stands throughout.

use std::collections::VecDeque;
use std::ops::Bound;
use std::sync::Arc;

use super::core::Core;
use super::history::{last_block, stored_hash};
use super::kept::tombstone;
use super::pass::Writer;
use super::tail::SessionState;
use crate::error::{Error, Result};
use crate::format::{self, Hash, Packer, Summary, Tombstone};
use crate::id::StorageKey;
use crate::storage::{Map, Storage, remove_some};

/// Sessions with something that is to be removed.
#[derive(Debug, Default)]
pub(crate) struct Removals {
    pending: VecDeque<StorageKey>,
}

impl Removals {
    /// What an opening store finds: removals that were interrupted.
    pub(crate) fn found(storage: &dyn Storage) -> Result<Self> {
        let mut removals = Self::default();
        let behind = format::behind(format::TOMBSTONE_PREFIX);
        let all =
            storage.range(Map::Sessions, Bound::Included(format::TOMBSTONE_PREFIX), Bound::Excluded(&behind));
        for entry in all {
            let (key, value) = entry?;
            let session = format::parse_tagged_key(format::TOMBSTONE_PREFIX, &key);
            // A damaged one is a finding of a scan; what it stands for stays.
            let Some(session) = session else { continue };
            if format::decode_tombstone(session, &value).is_ok_and(|found| found.pending) {
                removals.pending.push_back(session);
            }
        }
        Ok(removals)
    }

    pub(crate) fn add(&mut self, sessions: Vec<StorageKey>) {
        self.pending.extend(sessions);
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.pending.is_empty()
    }
}

/// Removes one batch of the first session that waits: so a pass never waits for more than that.
pub(crate) fn step(core: &Core, writer: &mut Writer) -> Result<()> {
    let Some(key) = writer.removals.pending.front().copied() else { return Ok(()) };
    let done = match remove(core, writer, key) {
        // Damage of what was deleted is nobody's any more but a scan's; it stays, and so does the tombstone.
        Err(Error::Corrupt { .. } | Error::UnsupportedFormat { .. }) => true,
        done => done?,
    };
    if done {
        writer.removals.pending.pop_front();
    }
    Ok(())
}

/// Does one batch for a session. Returns whether it was the last.
fn remove(core: &Core, writer: &mut Writer, key: StorageKey) -> Result<bool> {
    let storage = core.storage.as_ref();
    let Some(tombstone) = tombstone(storage, key)?.filter(|tombstone| tombstone.pending) else {
        return Ok(true);
    };
    let Some(session) = core.catalog.by_key(key, storage)? else { return Ok(true) };
    for tag in format::CARE_TAGS {
        let first = [&[tag], &key.0[..]].concat();
        if remove_some(storage, Map::Care, &first, &format::behind(&first))? {
            return Ok(false);
        }
    }
    if remove_some(storage, Map::Derived, &key.0, &format::behind(&key.0))? {
        return Ok(false);
    }
    let end = tombstone.kept.max(session.header.prefix_len());
    let first = format::block_key(key, end);
    if remove_some(storage, Map::Events, &first, &format::behind(&key.0))? {
        return Ok(false);
    }
    if tombstone.kept == 0 {
        forget(storage, &session)?;
    } else {
        keep(storage, writer, &session, tombstone.kept, end)?;
    }
    Ok(true)
}

/// Removes the last records of a session that nobody needs.
fn forget(storage: &dyn Storage, session: &SessionState) -> Result<()> {
    let key = session.key();
    let mut keys = vec![
        format::header_key(key).to_vec(),
        format::summary_key(key).to_vec(),
        format::labels_key(key).to_vec(),
        format::tombstone_key(key).to_vec(),
    ];
    if let Some((parent, prefix_len)) = session.header.parent {
        keys.push(format::edge_key(parent, prefix_len, key).to_vec());
    }
    let changes: Vec<_> = keys.into_iter().map(|key| (key, None)).collect();
    storage.apply(Map::Sessions, &changes)?;
    storage.flush()
}

/// Cuts what is left of a session to its first `kept` events; its own ones end at `end`.
fn keep(
    storage: &dyn Storage,
    writer: &mut Writer,
    session: &Arc<SessionState>,
    kept: u64,
    end: u64,
) -> Result<()> {
    let key = session.key();
    let hash = match stored_hash(storage, session, end) {
        // Reads of that block say so, and a scan.
        Err(Error::Corrupt { .. } | Error::UnsupportedFormat { .. }) => Hash::UNKNOWN,
        hash => hash?,
    };
    if hash != Hash::UNKNOWN {
        cut(storage, writer, session, end, hash)?;
    }
    let before = session.lock().stored;
    let summary = Summary { len: end, updated: before.updated, hash };
    let tombstone = Tombstone { kept, pending: false };
    let mut number = || writer.context.next_write_number();
    let changes = [
        (format::summary_key(key).to_vec(), Some(format::encode_summary(key, &summary, number()))),
        (format::tombstone_key(key).to_vec(), Some(format::encode_tombstone(key, tombstone, number()))),
    ];
    storage.apply(Map::Sessions, &changes)?;
    storage.flush()?;
    session.lock().stored = super::tail::Stored { len: end, hash: Some(hash), ..before };
    Ok(())
}

/// Writes the block that goes on behind `end` anew, without what stands there. Nothing else ever shortens a block.
fn cut(
    storage: &dyn Storage,
    writer: &mut Writer,
    session: &SessionState,
    end: u64,
    hash: Hash,
) -> Result<()> {
    let key = session.key();
    if end == session.header.prefix_len() {
        return Ok(());
    }
    let Some((found, value)) = last_block(storage, key, end).transpose()? else { return Ok(()) };
    // A part without its head is damage: it is left as it is.
    let Some(at) = format::parse_event_key(&found).filter(|at| at.part.is_none()) else { return Ok(()) };
    let block = format::open_block(key, at.seq, &value).map_err(|error| error.at(session.place(at.seq)))?;
    if block.header().end() <= end {
        return Ok(());
    }
    let keep = u32::try_from(end - at.seq).unwrap_or(u32::MAX);
    let resumed = Packer::resume(&block, keep, hash, &mut writer.scratch);
    let Some(packer) = resumed.map_err(|error| error.at(session.place(at.seq)))? else { return Ok(()) };
    packer.finish(&mut writer.context, &mut |key, value| storage.insert(Map::Events, &key, &value))?;
    storage.flush()
}
