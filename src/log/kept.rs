//! How many of a deleted session's first events living forks need.
//!
//! No fork comes to a deleted session any more, so this only shrinks: when one of its forks is deleted, or needs less.

use std::collections::{HashMap, HashSet};
use std::ops::Bound;

use crate::error::{Error, Place, Result};
use crate::format::{self, Tombstone};
use crate::id::StorageKey;
use crate::storage::{Map, Storage};

/// What storage, and a pass that is under way, know of forks.
#[derive(Debug)]
pub(crate) struct Forks<'a> {
    storage: &'a dyn Storage,
    /// Forks that storage does not know yet: prefix length and key, by parent.
    new: HashMap<StorageKey, Vec<(u64, StorageKey)>>,
    /// What is needed of sessions whose deletion storage does not know yet.
    deleted: HashMap<StorageKey, u64>,
}

impl<'a> Forks<'a> {
    pub(crate) fn new(storage: &'a dyn Storage) -> Self {
        Self { storage, new: HashMap::new(), deleted: HashMap::new() }
    }

    /// Takes note of a fork that storage does not know yet.
    pub(crate) fn add(&mut self, parent: StorageKey, prefix_len: u64, fork: StorageKey) {
        self.new.entry(parent).or_default().push((prefix_len, fork));
    }

    /// Takes note of deletions that storage does not know yet: sessions and their parents, the youngest last.
    ///
    /// Finds what is needed of them, and of ancestors that were deleted before and of which less is needed now.
    /// `parent_of` gives the parent of such a one.
    pub(crate) fn delete(
        &mut self,
        sessions: &[(StorageKey, Option<StorageKey>)],
        parent_of: impl Fn(StorageKey) -> Result<Option<StorageKey>>,
    ) -> Result<()> {
        for (session, _) in sessions.iter().rev() {
            let need = self.need_of(*session)?;
            self.deleted.insert(*session, need);
        }
        // A fork that came late in that order lessens what its parent lends, and so on: a chain is gone through once.
        let mut waiting = HashSet::new();
        let mut work: Vec<_> = sessions.iter().filter_map(|(_, parent)| *parent).collect();
        work.retain(|parent| waiting.insert(*parent));
        while let Some(session) = work.pop() {
            waiting.remove(&session);
            let Some(before) = self.kept(session)? else { continue };
            let need = self.need_of(session)?;
            if need < before {
                self.deleted.insert(session, need);
                work.extend(readable(parent_of(session))?.flatten().filter(|parent| waiting.insert(*parent)));
            }
        }
        Ok(())
    }

    /// What is kept of the sessions that [`delete`](Self::delete) named, and of ancestors that keep less.
    pub(crate) fn into_deleted(self) -> HashMap<StorageKey, u64> {
        self.deleted
    }

    /// How many of the first events of `session`, which was deleted, its forks need.
    ///
    /// # Cost
    /// A read for each fork that was deleted and shared more than that.
    pub(crate) fn need_of(&self, session: StorageKey) -> Result<u64> {
        let mut need = 0;
        for (prefix_len, fork) in self.new.get(&session).into_iter().flatten() {
            need = need.max(self.share(*prefix_len, *fork)?);
        }
        let lowest = format::edge_key(session, 0, StorageKey([0; 16]));
        let highest = format::edge_key(session, u64::MAX, StorageKey([u8::MAX; 16]));
        let edges =
            self.storage.range_reverse(Map::Sessions, Bound::Included(&lowest), Bound::Included(&highest));
        for edge in edges {
            // The longest prefix comes first.
            let Some(edge) = format::parse_edge_key(&edge?.0) else { continue };
            if edge.prefix_len <= need {
                break;
            }
            need = need.max(self.share(edge.prefix_len, edge.child)?);
        }
        Ok(need)
    }

    /// What a fork that shares `prefix_len` events needs of them: all, or what its own forks do when it was deleted.
    fn share(&self, prefix_len: u64, fork: StorageKey) -> Result<u64> {
        Ok(self.kept(fork)?.map_or(prefix_len, |kept| kept.min(prefix_len)))
    }

    /// What is kept of a session; `None` of one that was not deleted, as far as can be read: that may need everything.
    fn kept(&self, session: StorageKey) -> Result<Option<u64>> {
        if let Some(kept) = self.deleted.get(&session) {
            return Ok(Some(*kept));
        }
        Ok(readable(tombstone(self.storage, session))?.flatten().map(|found| found.kept))
    }
}

/// What was read; `None` where it is damaged: that keeps more than need be, and never stops the drain.
fn readable<T>(read: Result<T>) -> Result<Option<T>> {
    match read {
        Ok(read) => Ok(Some(read)),
        Err(Error::Corrupt { .. } | Error::UnsupportedFormat { .. }) => Ok(None),
        Err(error) => Err(error),
    }
}

/// The tombstone of a session, if it was deleted.
pub(crate) fn tombstone(storage: &dyn Storage, session: StorageKey) -> Result<Option<Tombstone>> {
    let key = format::tombstone_key(session);
    let Some(value) = storage.get(Map::Sessions, &key)? else { return Ok(None) };
    let place = || Place::new("tombstone").session(session).at(format::hex(&key));
    format::decode_tombstone(session, &value).map(Some).map_err(|error| error.at(place()))
}
