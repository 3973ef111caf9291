//! What scan and repair stand on: the records of storage, read through `format` and never kept.

use std::collections::{BTreeMap, HashSet};
use std::ops::Bound;

use super::journal::Pending;
use crate::error::Result;
use crate::event::write_line;
use crate::format::{
    self, Hash, NewHeader, Scratch, Sections, SessionHeader, Summary, Tombstone, WriteNumber,
};
use crate::id::{SessionId, StorageKey};
use crate::storage::{Entries, Map, Storage};

/// All entries of a map whose keys begin with `prefix`, behind `after` if that is given.
pub(super) fn entries(storage: &dyn Storage, map: Map, prefix: &[u8]) -> Entries {
    let behind: Vec<u8> = prefix.iter().map(|byte| byte.saturating_add(1)).collect();
    storage.range(map, Bound::Included(prefix), Bound::Excluded(&behind))
}

/// The records of one storage, and what the journal adds to them.
#[derive(Clone, Copy)]
pub(super) struct View<'a> {
    pub(super) storage: &'a dyn Storage,
    pub(super) pending: &'a BTreeMap<StorageKey, Pending<'a>>,
}

impl View<'_> {
    /// The drained mark: the commit, and the number with which it was written. `None` where it is missing or broken.
    pub(super) fn drained(&self) -> Result<Option<(u64, WriteNumber)>> {
        let value = self.storage.get(Map::Sessions, format::DRAINED_KEY)?;
        Ok(value.and_then(|value| {
            let drained = format::decode_drained(&value).ok()?;
            Some((drained.through, format::write_number(&value).unwrap_or_default()))
        }))
    }

    /// The commit that the journal is drained through; `None` where that is not known. A store that was never drained has
    /// no mark, and needs none.
    pub(super) fn through(&self) -> Result<Option<u64>> {
        if let Some((through, _)) = self.drained()? {
            return Ok(Some(through));
        }
        let has_mark = self.storage.get(Map::Sessions, format::DRAINED_KEY)?.is_some();
        let has_sessions = entries(self.storage, Map::Sessions, format::HEADER_PREFIX).next().is_some();
        Ok(if has_mark || has_sessions { None } else { Some(0) })
    }

    /// A session's stored header, if it is sound.
    pub(super) fn header(&self, key: StorageKey) -> Result<Option<SessionHeader>> {
        let value = self.storage.get(Map::Sessions, &format::header_key(key))?;
        if value.is_none() && self.pending.get(&key).is_some_and(|pending| pending.published.is_some()) {
            return self.hidden_header(key);
        }
        Ok(value.and_then(|value| format::decode_header(key, &value).ok()))
    }

    /// What a session was created with: from its header, or from the journal.
    pub(super) fn new_header(&self, key: StorageKey) -> Result<Option<NewHeader>> {
        let stored = self.header(key)?.map(SessionHeader::into_new);
        Ok(stored.or_else(|| self.pending.get(&key)?.created.as_ref().map(|(_, new)| new.clone())))
    }

    pub(super) fn summary(&self, key: StorageKey) -> Result<Option<Summary>> {
        let value = self.storage.get(Map::Sessions, &format::summary_key(key))?;
        Ok(value.and_then(|value| format::decode_summary(key, &value).ok()))
    }

    /// How many of a deleted session's first events its forks need; of a session that was not deleted `None`. Where the
    /// record is broken all of them, for all that is known.
    pub(super) fn deleted(&self, key: StorageKey) -> Result<Option<Tombstone>> {
        let value = self.storage.get(Map::Sessions, &format::tombstone_key(key))?;
        let broken = Tombstone { kept: format::MAX_NUMBER, pending: true };
        Ok(value.map(|value| format::decode_tombstone(key, &value).unwrap_or(broken)))
    }

    /// Whether an import of this session has begun and was not published: it has no header yet.
    pub(super) fn is_hidden(&self, key: StorageKey) -> Result<bool> {
        let has = |at: &[u8]| Ok(self.storage.get(Map::Sessions, at)?.is_some());
        Ok(has(&format::hidden_key(key))? && !has(&format::header_key(key))?)
    }

    /// The header of a session that storage has as a hidden one, if it is sound.
    pub(super) fn hidden_header(&self, key: StorageKey) -> Result<Option<SessionHeader>> {
        let value = self.storage.get(Map::Sessions, &format::hidden_key(key))?;
        Ok(value.and_then(|value| format::decode_hidden(key, &value).ok()))
    }

    /// The session that an id leads to.
    pub(super) fn leads_to(&self, id: &SessionId) -> Result<Option<StorageKey>> {
        let value = self.storage.get(Map::Sessions, &format::id_key(id))?;
        Ok(value.and_then(|value| format::decode_id(id, &value).ok()))
    }

    /// Where a session was ended.
    pub(super) fn ended(&self, key: StorageKey) -> Result<Option<u64>> {
        let value = self.storage.get(Map::Care, &format::end_mark_key(key))?;
        Ok(value.and_then(|value| format::decode_end_mark(key, &value).ok()))
    }

    /// A session's length: as its summary has it, and what of the journal follows that, up to where it was ended.
    pub(super) fn len(&self, new: &NewHeader) -> Result<Option<u64>> {
        let pending = self.pending.get(&new.key);
        let stored = match (self.header(new.key)?, self.summary(new.key)?) {
            (Some(_), Some(summary)) => summary.len,
            (Some(_), None) => return Ok(None),
            // A summary without a header is one of an earlier time.
            (None, _) => new.prefix_len(),
        };
        let len = pending.map_or(stored, |pending| pending.covers_from(stored));
        Ok(Some(self.ended(new.key)?.map_or(len, |ended| len.min(ended.max(stored)))))
    }

    /// Whether the parents of `new` lead in a circle. Storage keys are UUIDs that ascend in time, so a parent's is
    /// lower than its fork's, but for a clock that was set back: only then is the chain walked, for a circle has such a
    /// step in it.
    pub(super) fn is_circle(&self, new: &NewHeader) -> Result<bool> {
        let Some((mut key, _)) = new.parent.filter(|(parent, _)| *parent >= new.key) else {
            return Ok(false);
        };
        let mut seen = HashSet::from([new.key]);
        loop {
            if !seen.insert(key) {
                return Ok(key == new.key);
            }
            match self.new_header(key)?.and_then(|new| new.parent) {
                Some((parent, _)) => key = parent,
                None => return Ok(false),
            }
        }
    }

    /// The running hash behind the first `at` events of `key`, as blocks, records and the journal have it; `None` where
    /// they do not give it.
    pub(super) fn hash_at(&self, key: StorageKey, at: u64) -> Result<Option<Hash>> {
        if at == 0 {
            return Ok(Some(Hash::START));
        }
        // Pieces of the journal that lie between what storage gives and `at`, the last one first.
        let mut pieces = Vec::new();
        let (mut key, mut at) = (key, at);
        let mut seen = HashSet::new();
        let base = loop {
            let Some(new) = self.new_header(key)? else { return Ok(None) };
            if let Some((parent, prefix_len)) = new.parent.filter(|(_, prefix_len)| at < *prefix_len) {
                if !seen.insert(key) {
                    return Ok(None);
                }
                debug_assert!(at < prefix_len, "the parent has it");
                key = parent;
                continue;
            }
            let from = new.prefix_len();
            let header = self.header(key)?;
            let stored = match &header {
                Some(_) => self.summary(key)?.map_or(from, |summary| summary.len),
                None => from,
            };
            let pending = self.pending.get(&key);
            if at > stored && pending.is_some() {
                pieces.push((key, stored, at));
                at = stored;
            }
            match (header, new.parent) {
                (Some(header), _) => break self.stored_hash(&header, at)?,
                (None, None) => break Some(Hash::START),
                (None, Some((parent, prefix_len))) => {
                    if let Some(hash) = pending.and_then(|pending| pending.prefix_hash.get()) {
                        break Some(*hash);
                    }
                    if !seen.insert(key) {
                        return Ok(None);
                    }
                    (key, at) = (parent, prefix_len);
                }
            }
        };
        let mut hash = base;
        let mut line = Vec::new();
        let mut events = Vec::new();
        for (key, from, to) in pieces.into_iter().rev() {
            let mut next = from;
            for (_, run) in self.pending.get(&key).into_iter().flat_map(|pending| &pending.runs) {
                let skip = u32::try_from(next.saturating_sub(run.first_seq)).unwrap_or(u32::MAX);
                let take = u32::try_from(to.saturating_sub(next)).unwrap_or(u32::MAX);
                if run.first_seq > next || next >= to || skip >= run.count {
                    continue;
                }
                events.clear();
                if run.decode(skip, take, Sections::All, &mut events).is_err() {
                    return Ok(None);
                }
                for event in &events {
                    line.clear();
                    write_line(event.seq, &event.parts(), &mut line);
                    hash = hash.map(|hash| hash.next(&line));
                }
                next += events.len() as u64;
            }
            if next != to {
                return Ok(None);
            }
        }
        Ok(hash)
    }

    /// The hash behind the first `at` events of a session with a header, at least its prefix.
    fn stored_hash(&self, header: &SessionHeader, at: u64) -> Result<Option<Hash>> {
        let key = header.key;
        let from = header.parent.map_or(0, |(_, prefix_len)| prefix_len);
        let known = |hash: Hash| Some(hash).filter(|hash| *hash != Hash::UNKNOWN);
        if at == from {
            return Ok(if from == 0 { Some(Hash::START) } else { known(header.prefix_hash) });
        }
        let Some((first, value)) = self.block_before(key, at)? else { return Ok(None) };
        let Ok(view) = format::open_block(key, first, &value) else { return Ok(None) };
        if view.header().end() < at {
            return Ok(None);
        }
        if view.header().end() == at {
            return Ok(known(view.header().hash_after));
        }
        let before = if first == from {
            if from == 0 { Some(Hash::START) } else { known(header.prefix_hash) }
        } else {
            match self.block_before(key, first)? {
                Some((seq, value)) => format::open_block(key, seq, &value)
                    .ok()
                    .filter(|view| view.header().end() == first)
                    .and_then(|view| known(view.header().hash_after)),
                None => None,
            }
        };
        let Some(mut hash) = before else { return Ok(None) };
        let mut events = Vec::new();
        let take = u32::try_from(at - first).unwrap_or(u32::MAX);
        if view.decode(&mut Scratch::default(), 0, take, Sections::All, &mut events).is_err() {
            return Ok(None);
        }
        let mut line = Vec::new();
        for event in &events {
            line.clear();
            write_line(event.seq, &event.parts(), &mut line);
            hash = hash.next(&line);
        }
        Ok(Some(hash))
    }

    /// The last block, or head, that starts before `end`.
    fn block_before(&self, key: StorageKey, end: u64) -> Result<Option<(u64, Vec<u8>)>> {
        let lowest = format::block_key(key, 0);
        let highest = format::block_key(key, end.saturating_sub(1));
        let found = self
            .storage
            .range_reverse(Map::Events, Bound::Included(&lowest), Bound::Included(&highest))
            .next()
            .transpose()?;
        let Some((found, value)) = found else { return Ok(None) };
        let Some(at) = format::parse_event_key(&found) else { return Ok(None) };
        if at.part.is_none() {
            return Ok(Some((at.seq, value)));
        }
        let head = self.storage.get(Map::Events, &format::block_key(key, at.seq))?;
        Ok(head.map(|value| (at.seq, value)))
    }
}
