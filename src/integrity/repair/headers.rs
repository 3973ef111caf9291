//! Headers that were lost, made anew from what is known.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Bound;

use super::Mending;
use crate::error::Result;
use crate::format::{self, FormatError, Hash, NewHeader, SessionHeader, Summary};
use crate::id::{SessionId, StorageKey, Timestamp};
use crate::integrity::view::entries;
use crate::integrity::work::RemedyKind;
use crate::storage::Map;

/// What is known of a session without a header.
#[derive(Debug, Default)]
struct Lost {
    id: Option<SessionId>,
    parent: Option<(StorageKey, u64)>,
    /// Whether it had a header, events, a summary or an id: something of its own.
    counts: bool,
}

impl Mending<'_> {
    /// Makes headers for sessions that have none.
    pub(super) fn headers(&mut self) -> Result<()> {
        let mut lost: BTreeMap<StorageKey, Lost> = BTreeMap::new();
        self.broken_headers(&mut lost)?;
        self.records_without(&mut lost)?;
        self.blocks_without(&mut lost)?;
        for (key, lost) in lost.into_iter().filter(|(_, lost)| lost.counts) {
            let id = lost.id.clone().unwrap_or_else(|| key.to_id());
            let prefix_hash = match lost.parent {
                None => Hash::START,
                Some((parent, prefix_len)) => {
                    self.view().hash_at(parent, prefix_len)?.unwrap_or(Hash::UNKNOWN)
                }
            };
            let header = SessionHeader {
                id,
                key,
                created: created(key),
                parent: lost.parent,
                prefix_hash,
                meta: BTreeMap::new(),
            };
            let parent = match lost.parent {
                Some((parent, at)) => format!("a fork of {parent} at {at}"),
                None => "no parent known".to_owned(),
            };
            let named = if lost.id.is_some() { "its id was known" } else { "its id was not known" };
            self.put_header(&header, &format!("it was lost: {named}, {parent}"))?;
        }
        Ok(())
    }

    /// Writes a header and what leads to it.
    pub(super) fn put_header(&mut self, header: &SessionHeader, why: &str) -> Result<()> {
        let key = header.key;
        self.work.say(RemedyKind::HeaderMade, Some(header.id.as_str()), None, why);
        let number = self.work.number();
        let mut changes =
            vec![(format::header_key(key).to_vec(), Some(format::encode_header(header, number)))];
        let id = format::id_key(&header.id);
        let number = self.work.number();
        changes.push((id, Some(format::encode_id(&header.id, key, number))));
        if let Some((parent, prefix_len)) = header.parent {
            let number = self.work.number();
            let edge = format::encode_edge(parent, prefix_len, key, number);
            changes.push((format::edge_key(parent, prefix_len, key).to_vec(), Some(edge)));
        }
        self.work.change(Map::Sessions, &changes)
    }

    /// Makes an empty session that was ended before its first event, in the place of a parent that is missing.
    pub(super) fn stand_in(&mut self, key: StorageKey) -> Result<()> {
        let new =
            NewHeader { id: key.to_id(), key, created: created(key), parent: None, meta: BTreeMap::new() };
        let id = new.id.to_string();
        self.put_end(key, &id, 0, u64::MAX, "it is a parent that is missing")?;
        self.put_header(&SessionHeader::new(new.clone(), Hash::START), "for a parent that is missing")?;
        let summary = Summary { len: 0, updated: new.created, hash: Hash::START };
        self.summarise(&new, None, summary)
    }

    fn is_lost(&self, key: StorageKey) -> Result<bool> {
        let created = self.pending.get(&key).is_some_and(|pending| pending.created.is_some());
        Ok(!created
            && !self.view().is_hidden(key)?
            && self.work.storage.get(Map::Sessions, &format::header_key(key))?.is_none())
    }

    fn broken_headers(&mut self, lost: &mut BTreeMap<StorageKey, Lost>) -> Result<()> {
        let mut broken = Vec::new();
        for entry in entries(self.work.storage, Map::Sessions, format::HEADER_PREFIX) {
            let (at, value) = entry?;
            let Some(key) = format::parse_tagged_key(format::HEADER_PREFIX, &at) else { continue };
            match format::decode_header(key, &value) {
                Ok(_) => {}
                Err(FormatError::Unsupported { found }) => {
                    return Err(super::newer(crate::error::Place::new("header").session(key), found));
                }
                Err(FormatError::Corrupt(corruption)) => {
                    broken.push((key, at, value, corruption.to_string()))
                }
            }
        }
        for (key, at, value, why) in broken {
            self.work.move_record(Map::Sessions, key, &at, &value, &why)?;
            self.work.say(RemedyKind::Quarantined, Some(&key.to_string()), None, format!("a header: {why}"));
            if self.is_lost(key)? {
                lost.entry(key).or_default().counts = true;
            }
        }
        Ok(())
    }

    fn records_without(&mut self, lost: &mut BTreeMap<StorageKey, Lost>) -> Result<()> {
        for entry in entries(self.work.storage, Map::Sessions, format::ID_PREFIX) {
            let (at, value) = entry?;
            let Some(id) = format::parse_id_key(&at) else { continue };
            let Ok(key) = format::decode_id(&id, &value) else { continue };
            if self.is_lost(key)? {
                let lost = lost.entry(key).or_default();
                lost.id.get_or_insert(id);
                lost.counts = true;
            }
        }
        for entry in entries(self.work.storage, Map::Sessions, format::SUMMARY_PREFIX) {
            let Some(key) = format::parse_tagged_key(format::SUMMARY_PREFIX, &entry?.0) else { continue };
            if self.is_lost(key)? {
                lost.entry(key).or_default().counts = true;
            }
        }
        for entry in entries(self.work.storage, Map::Sessions, format::EDGE_PREFIX) {
            let (at, value) = entry?;
            let Some(edge) = format::parse_edge_key(&at) else { continue };
            if format::check_edge(&edge, &value).is_ok() && self.is_lost(edge.child)? {
                lost.entry(edge.child).or_default().parent.get_or_insert((edge.parent, edge.prefix_len));
            }
        }
        Ok(())
    }

    /// Storage keys of blocks that no header has: a seek for each session.
    fn blocks_without(&mut self, lost: &mut BTreeMap<StorageKey, Lost>) -> Result<()> {
        let mut from: Option<Vec<u8>> = None;
        let mut strange = BTreeSet::new();
        loop {
            let lower = from.as_deref().map_or(Bound::Unbounded, Bound::Excluded);
            let Some(entry) = self.work.storage.range(Map::Events, lower, Bound::Unbounded).next() else {
                break;
            };
            let (at, value) = entry?;
            let Some(parsed) = format::parse_event_key(&at) else {
                strange.insert((at.clone(), value));
                from = Some(at);
                continue;
            };
            if self.is_lost(parsed.key)? {
                lost.entry(parsed.key).or_default().counts = true;
            }
            from = Some(format::part_key(parsed.key, u64::MAX, u32::MAX).to_vec());
        }
        for (at, value) in strange {
            self.work.move_record(Map::Events, StorageKey([0; 16]), &at, &value, "not a key of a block")?;
            self.work.say(
                RemedyKind::Quarantined,
                None,
                None,
                "a value of `events` under a key that is none",
            );
        }
        Ok(())
    }
}

/// When a session was created, as its storage key has it: a UUIDv7 says when it was minted.
fn created(key: StorageKey) -> Timestamp {
    let minted = uuid::Uuid::from_bytes(key.0).get_timestamp().map(|minted| {
        let (seconds, nanos) = minted.to_unix();
        i64::try_from(seconds)
            .unwrap_or(i64::MAX)
            .saturating_mul(1_000)
            .saturating_add(i64::from(nanos / 1_000_000))
    });
    minted.and_then(Timestamp::from_millis).unwrap_or_default()
}
