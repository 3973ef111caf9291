//! Sessions that were deleted, and of which something is still there.
//!
//! A deleted session is known by its tombstone; where that is gone, too, because a whole engine does not know it, or
//! because its id leads to a later session. Old copies of its values stand in the raw files until they are written
//! over.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Bound;

use super::sieve::Sieve;
use crate::error::Result;
use crate::format::{self, SessionHeader, Tombstone, WriteNumbers};
use crate::id::{SessionId, StorageKey};
use crate::storage::{Map, Storage, remove_some};

/// What stands before the id of a session that had been deleted.
const RECOVERED: &str = "recovered ";

/// Buries the deleted sessions, or gives them other ids where they were asked for. Returns the latter.
pub(super) fn settle(
    storage: &dyn Storage,
    sieve: &mut Sieve<'_>,
    numbers: &mut WriteNumbers,
) -> Result<BTreeSet<StorageKey>> {
    show_published(storage, numbers)?;
    let headers = Headers::read(storage)?;
    for entry in prefixed(storage, format::TOMBSTONE_PREFIX) {
        sieve.deleted.extend(format::parse_tagged_key(format::TOMBSTONE_PREFIX, &entry?.0));
    }
    sieve.deleted.extend(headers.superseded(storage)?);
    let mut recovered = BTreeSet::new();
    for key in &sieve.deleted {
        let known = headers.all.get(key);
        if let Some(known) = known {
            forget_id(storage, *key, &known.id)?;
        }
        if !sieve.deleted_too {
            let kept = headers.kept(*key, &sieve.deleted);
            bury(storage, *key, known.and_then(|known| known.parent), kept, numbers)?;
        } else if known.is_some() {
            recover(storage, *key, numbers)?;
            recovered.insert(*key);
        }
    }
    Ok(recovered)
}

/// Tells imports that were published from those that were not. Of the former old copies of their hidden headers are
/// found, too; where the id leads to one that has no other header, that one was lost.
fn show_published(storage: &dyn Storage, numbers: &mut WriteNumbers) -> Result<()> {
    let hidden: Result<Vec<_>> = prefixed(storage, format::HIDDEN_PREFIX).collect();
    for (at, value) in hidden? {
        let Some(key) = format::parse_tagged_key(format::HIDDEN_PREFIX, &at) else { continue };
        let mut changes = vec![(at, None)];
        if storage.get(Map::Sessions, &format::header_key(key))?.is_none() {
            let Ok(header) = format::decode_hidden(key, &value) else { continue };
            if leads_to(storage, &header.id)? != Some(key) {
                continue;
            }
            let header = format::encode_header(&header, numbers.next());
            changes.push((format::header_key(key).to_vec(), Some(header)));
        }
        storage.apply(Map::Sessions, &changes)?;
    }
    Ok(())
}

/// What sound headers say that is needed here.
#[derive(Default)]
struct Headers {
    all: BTreeMap<StorageKey, Known>,
    forks: BTreeMap<StorageKey, Vec<(StorageKey, u64)>>,
}

struct Known {
    id: SessionId,
    parent: Option<(StorageKey, u64)>,
}

impl Headers {
    fn read(storage: &dyn Storage) -> Result<Self> {
        let mut headers = Self::default();
        for entry in prefixed(storage, format::HEADER_PREFIX) {
            let (at, value) = entry?;
            let Some(key) = format::parse_tagged_key(format::HEADER_PREFIX, &at) else { continue };
            let Ok(header) = format::decode_header(key, &value) else { continue };
            if let Some((parent, prefix_len)) = header.parent {
                headers.forks.entry(parent).or_default().push((key, prefix_len));
            }
            headers.all.insert(key, Known { id: header.id, parent: header.parent });
        }
        Ok(headers)
    }

    /// The sessions whose ids lead to later ones.
    fn superseded(&self, storage: &dyn Storage) -> Result<Vec<StorageKey>> {
        let mut superseded = Vec::new();
        for (key, known) in &self.all {
            let leads_to = leads_to(storage, &known.id)?;
            let later = leads_to.filter(|to| to > key).and_then(|to| self.all.get(&to));
            if later.is_some_and(|later| later.id == known.id) {
                superseded.push(*key);
            }
        }
        Ok(superseded)
    }

    /// How many of the first events of a deleted session its living forks need.
    fn kept(&self, session: StorageKey, deleted: &BTreeSet<StorageKey>) -> u64 {
        let mut kept = 0;
        // What a deleted fork shared, its own forks may still need.
        let mut waiting = vec![(session, u64::MAX)];
        let mut seen = BTreeSet::new();
        while let Some((parent, at_most)) = waiting.pop() {
            for (fork, prefix_len) in self.forks.get(&parent).into_iter().flatten() {
                let shared = (*prefix_len).min(at_most);
                if !deleted.contains(fork) {
                    kept = kept.max(shared);
                } else if seen.insert(*fork) {
                    waiting.push((*fork, shared));
                }
            }
        }
        kept
    }
}

/// Removes what nobody needs, or leaves that to the store's own removal: a tombstone that waits.
fn bury(
    storage: &dyn Storage,
    key: StorageKey,
    parent: Option<(StorageKey, u64)>,
    kept: u64,
    numbers: &mut WriteNumbers,
) -> Result<()> {
    if kept > 0 {
        let tombstone = format::encode_tombstone(key, Tombstone { kept, pending: true }, numbers.next());
        return storage.insert(Map::Sessions, &format::tombstone_key(key), &tombstone);
    }
    while remove_some(storage, Map::Events, &key.0, &format::behind(&key.0))? {}
    let mut records = vec![
        format::header_key(key).to_vec(),
        format::summary_key(key).to_vec(),
        format::labels_key(key).to_vec(),
        format::tombstone_key(key).to_vec(),
        format::hidden_key(key).to_vec(),
    ];
    if let Some((parent, prefix_len)) = parent {
        records.push(format::edge_key(parent, prefix_len, key).to_vec());
    }
    let removals: Vec<_> = records.into_iter().map(|key| (key, None)).collect();
    storage.apply(Map::Sessions, &removals)?;
    storage.apply(Map::Care, &[(format::end_mark_key(key), None)])
}

/// Makes a deleted session one of its own, under an id that says so.
fn recover(storage: &dyn Storage, key: StorageKey, numbers: &mut WriteNumbers) -> Result<()> {
    let value = storage.get(Map::Sessions, &format::header_key(key))?;
    let Some(header) = value.and_then(|value| format::decode_header(key, &value).ok()) else { return Ok(()) };
    let header = SessionHeader { id: new_id(storage, &header.id, key)?, ..header };
    let changes = [
        (format::tombstone_key(key).to_vec(), None),
        (format::header_key(key).to_vec(), Some(format::encode_header(&header, numbers.next()))),
        (format::id_key(&header.id), Some(format::encode_id(&header.id, key, numbers.next()))),
    ];
    storage.apply(Map::Sessions, &changes)
}

/// An id that says what happened. Where that is too long or taken, it names the storage key.
fn new_id(storage: &dyn Storage, id: &SessionId, key: StorageKey) -> Result<SessionId> {
    if let Ok(new) = SessionId::new(&format!("{RECOVERED}{id}"))
        && leads_to(storage, &new)?.is_none()
    {
        return Ok(new);
    }
    Ok(SessionId::new(&format!("{RECOVERED}{key}")).unwrap_or_else(|_| key.to_id()))
}

/// Takes the record away that leads from an id to this session.
fn forget_id(storage: &dyn Storage, key: StorageKey, id: &SessionId) -> Result<()> {
    if leads_to(storage, id)? == Some(key) {
        storage.apply(Map::Sessions, &[(format::id_key(id), None)])?;
    }
    Ok(())
}

fn leads_to(storage: &dyn Storage, id: &SessionId) -> Result<Option<StorageKey>> {
    let value = storage.get(Map::Sessions, &format::id_key(id))?;
    Ok(value.and_then(|value| format::decode_id(id, &value).ok()))
}

fn prefixed(storage: &dyn Storage, prefix: &[u8]) -> crate::storage::Entries {
    let behind = format::behind(prefix);
    storage.range(Map::Sessions, Bound::Included(prefix), Bound::Excluded(&behind))
}
