//! Running hashes at the places where forks begin: in undrained events of the same pass, at the ends of blocks, and
//! inside them.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::ops::Bound;
use std::sync::Arc;

use super::core::Core;
use super::tail::SessionState;
use crate::error::{Corruption, Error, Result};
use crate::event::write_line;
use crate::format::{self, BlockView, Hash, Scratch, Sections, WriteNumber};
use crate::id::StorageKey;
use crate::storage::{Entry, Map, Storage};

/// The hashes that one pass of the drain needs and finds.
pub(crate) struct History<'a> {
    core: &'a Core,
    /// Prefix lengths inside undrained events, by the session that has those.
    awaited: HashMap<StorageKey, BTreeSet<u64>>,
    known: HashMap<(StorageKey, u64), Hash>,
}

impl<'a> History<'a> {
    pub(crate) fn new(core: &'a Core) -> Self {
        Self { core, awaited: HashMap::new(), known: HashMap::new() }
    }

    /// Says that the hash at the prefix of `fork` will be asked for.
    pub(crate) fn expect(&mut self, fork: &SessionState) -> Result<()> {
        match self.owner(fork) {
            Ok(Some((owner, at))) if at > owner.header.prefix_len() => {
                self.awaited.entry(owner.key()).or_default().insert(at);
                Ok(())
            }
            // A damaged parent is met again, and dealt with, where the hash is asked for.
            Ok(_) | Err(Error::Corrupt { .. } | Error::UnsupportedFormat { .. }) => Ok(()),
            Err(error) => Err(error),
        }
    }

    /// The prefix lengths of `session` at which the hash is to be noted.
    pub(crate) fn awaited(&mut self, session: &SessionState) -> BTreeSet<u64> {
        self.awaited.remove(&session.key()).unwrap_or_default()
    }

    /// Notes the hash behind the first `at` events of `session`.
    pub(crate) fn note(&mut self, session: &SessionState, at: u64, hash: Hash) {
        self.known.insert((session.key(), at), hash);
    }

    /// The hash that a session begins with.
    pub(crate) fn prefix_hash(&self, session: &SessionState) -> Result<Hash> {
        let hash = self.owner(session).and_then(|owner| match owner {
            None => Ok(Hash::START),
            Some((owner, at)) => match self.known.get(&(owner.key(), at)) {
                Some(hash) => Ok(*hash),
                None => stored_hash(self.core.storage.as_ref(), &owner, at),
            },
        });
        match hash {
            // The parent is damaged: its reads say so, and a hash that is nobody's lets a check say it, too.
            Err(Error::Corrupt { .. } | Error::UnsupportedFormat { .. }) => Ok(Hash::UNKNOWN),
            hash => hash,
        }
    }

    /// The ancestor in whose own events, or at whose own beginning, a fork's prefix ends; and the prefix length. `None`
    /// where no event is shared.
    fn owner(&self, fork: &SessionState) -> Result<Option<(Arc<SessionState>, u64)>> {
        let Some((mut key, at)) = fork.header.parent.filter(|(_, at)| *at > 0) else { return Ok(None) };
        // Parents that lead in a circle are damage, too.
        let mut seen = HashSet::from([fork.key()]);
        loop {
            if !seen.insert(key) {
                let what = "a chain of parents that leads back to itself";
                return Err(fork.corrupt(at - 1, Corruption::Undecodable { what }));
            }
            let Some(session) = self.core.catalog.by_key(key, self.core.storage.as_ref())? else {
                return Err(fork.corrupt(at - 1, Corruption::MissingParent { parent: key.to_string() }));
            };
            match session.header.parent {
                Some((parent, prefix_len)) if at < prefix_len => key = parent,
                _ => return Ok(Some((session, at))),
            }
        }
    }
}

/// The hash at the latest place at or before `at` where it is known without reading events that are not drained, and
/// that place.
pub(crate) fn hash_before(core: &Core, session: &Arc<SessionState>, mut at: u64) -> Result<(u64, Hash)> {
    let storage = core.storage.as_ref();
    loop {
        let Some(last) = at.checked_sub(1) else { return Ok((0, Hash::START)) };
        let segments = core.segments(session, &(last..at))?;
        let Some(owner) = segments.last().map(|segment| &segment.session) else {
            return Err(session.corrupt(last, Corruption::Gap { expected: last, found: None }));
        };
        let stored = owner.lock().stored;
        let own = owner.header.prefix_len();
        if at <= stored.len {
            return Ok((at, stored_hash(storage, owner, at)?));
        }
        if let Some(hash) = stored.hash.filter(|_| stored.len > own) {
            return Ok((stored.len, hash));
        }
        // Nothing of it is drained: its parents may be.
        at = own;
    }
}

/// The last block of a session that starts before `end`; a part where a large event's head is missing.
pub(crate) fn last_block(storage: &dyn Storage, key: StorageKey, end: u64) -> Option<Result<Entry>> {
    let lowest = format::block_key(key, 0);
    let highest = format::block_key(key, end.saturating_sub(1));
    storage.range_reverse(Map::Events, Bound::Included(&lowest), Bound::Included(&highest)).next()
}

/// Checks that no event stands at or behind the end of a session that was there when the engine was last marked as
/// drained: `mark` is the write number of that. Blocks with greater numbers are the leftovers of a drain that was
/// interrupted; a smaller one proves that the engine has lost a newer summary.
pub(crate) fn check_end(storage: &dyn Storage, session: &SessionState, mark: WriteNumber) -> Result<()> {
    let len = session.lock().stored.len;
    let key = session.key();
    let from = format::block_key(key, len);
    let to = format::part_key(key, u64::MAX, u32::MAX);
    let behind = storage.range(Map::Events, Bound::Included(&from), Bound::Included(&to)).next();
    let across = last_block(storage, key, len).filter(|_| len > session.header.prefix_len());
    // What cannot be read is no proof of anything.
    let older = |value: &[u8]| format::write_number(value).is_some_and(|number| number < mark);
    let fell_back = match (behind.transpose()?, across.transpose()?) {
        (Some((_, value)), _) if older(&value) => true,
        (_, Some((found, value))) if older(&value) => {
            let first = format::parse_event_key(&found).filter(|at| at.part.is_none()).map(|at| at.seq);
            let block = first.and_then(|first| format::open_block(key, first, &value).ok());
            block.is_some_and(|block| block.header().end() > len)
        }
        _ => false,
    };
    if fell_back { Err(session.corrupt(len, Corruption::SummaryBehind { len })) } else { Ok(()) }
}

/// Times that a hash inside a block is looked for anew, because blocks were merged between two looks.
const LOOKS: usize = 8;

/// The hash behind the first `at` events, the last of which `owner` holds in its blocks, if any.
pub(crate) fn stored_hash(storage: &dyn Storage, owner: &SessionState, at: u64) -> Result<Hash> {
    for _ in 1..LOOKS {
        if let Some(hash) = try_stored_hash(storage, owner, at)? {
            return Ok(hash);
        }
    }
    try_stored_hash(storage, owner, at)?
        .ok_or_else(|| owner.corrupt(at - 1, Corruption::Gap { expected: at - 1, found: None }))
}

/// `None` where the block before the one that holds the event does not end where that begins.
fn try_stored_hash(storage: &dyn Storage, owner: &SessionState, at: u64) -> Result<Option<Hash>> {
    let stored = owner.lock().stored;
    if let Some(hash) = stored.hash.filter(|_| stored.len == at) {
        return Ok(Some(hash));
    }
    if at == owner.header.prefix_len() {
        return stored_prefix_hash(storage, owner).map(Some);
    }
    let (entry, first) = block_before(storage, owner, at)?;
    let view = open(owner, first, &entry)?;
    if view.header().end() == at {
        return Ok(Some(view.header().hash_after));
    }
    // Inside a block: from the hash before it on.
    let mut hash = if first == owner.header.prefix_len() {
        stored_prefix_hash(storage, owner)?
    } else {
        let (entry, before) = block_before(storage, owner, first)?;
        let view = open(owner, before, &entry)?;
        if view.header().end() != first {
            return Ok(None);
        }
        view.header().hash_after
    };
    let take = u32::try_from(at - first).unwrap_or(u32::MAX);
    let mut events = Vec::new();
    let decoded = view.decode(&mut Scratch::default(), 0, take, Sections::All, &mut events);
    decoded.map_err(|error| error.at(owner.place(first)))?;
    let mut line = Vec::new();
    for event in &events {
        line.clear();
        write_line(event.seq, &event.parts(), &mut line);
        hash = hash.next(&line);
    }
    Ok(Some(hash))
}

fn block_before(storage: &dyn Storage, owner: &SessionState, end: u64) -> Result<(Entry, u64)> {
    let missing = || owner.corrupt(end - 1, Corruption::Gap { expected: end - 1, found: None });
    let entry = last_block(storage, owner.key(), end).ok_or_else(missing)??;
    let first = format::parse_event_key(&entry.0).map(|at| at.seq).ok_or_else(missing)?;
    Ok((entry, first))
}

fn open<'v>(owner: &SessionState, first: u64, entry: &'v Entry) -> Result<BlockView<'v>> {
    format::open_block(owner.key(), first, &entry.1).map_err(|error| error.at(owner.place(first)))
}

/// The hash that a session begins with, as its stored header has it.
fn stored_prefix_hash(storage: &dyn Storage, session: &SessionState) -> Result<Hash> {
    let key = session.key();
    let seq = session.header.prefix_len();
    if session.header.parent.is_none() {
        return Ok(Hash::START);
    }
    let header = match storage.get(Map::Sessions, &format::header_key(key))? {
        Some(value) => format::decode_header(key, &value),
        // It has blocks, and is published by a frame that is not drained yet.
        None => match storage.get(Map::Sessions, &format::hidden_key(key))? {
            Some(value) => format::decode_hidden(key, &value),
            None => return Err(session.corrupt(seq, Corruption::Missing { what: "the header" })),
        },
    };
    Ok(header.map_err(|error| error.at(session.place(seq)))?.prefix_hash)
}
