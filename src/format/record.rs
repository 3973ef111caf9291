//! Values of `sessions`: small records, each in the envelope, so that all are checked on every read.

use std::collections::BTreeMap;

use super::envelope::{Envelope, Kind, WriteNumber};
use super::hash::Hash;
use super::key::{parse_time_bytes, time_bytes};
use super::stored_v1::{
    self, Fields, StoredCreation, StoredDrained, StoredHeader, StoredOpened, StoredParent, StoredSummary,
    StoredTombstone,
};
use super::{FormatError, MAX_NUMBER};
use crate::error::Corruption;
use crate::id::{SessionId, StorageKey, Timestamp};

/// What stands in records that belong to no session.
const NO_KEY: StorageKey = StorageKey([0; 16]);

/// What a session is created with: its header, but for the hash that the drain computes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct NewHeader {
    pub(crate) id: SessionId,
    pub(crate) key: StorageKey,
    pub(crate) created: Timestamp,
    /// The parent as it was asked for, and the number of events shared.
    pub(crate) parent: Option<(StorageKey, u64)>,
    pub(crate) meta: BTreeMap<String, String>,
}

impl NewHeader {
    /// The seq of the session's first own event.
    pub(crate) fn prefix_len(&self) -> u64 {
        self.parent.map_or(0, |(_, prefix_len)| prefix_len)
    }
}

/// What a session is. Never changes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct SessionHeader {
    pub(crate) id: SessionId,
    pub(crate) key: StorageKey,
    pub(crate) created: Timestamp,
    pub(crate) parent: Option<(StorageKey, u64)>,
    /// The running hash at the prefix; [`Hash::START`] without a parent.
    pub(crate) prefix_hash: Hash,
    pub(crate) meta: BTreeMap<String, String>,
}

impl SessionHeader {
    pub(crate) fn new(new: NewHeader, prefix_hash: Hash) -> Self {
        let NewHeader { id, key, created, parent, meta } = new;
        Self { id, key, created, parent, prefix_hash, meta }
    }

    /// What the session was created with.
    pub(crate) fn into_new(self) -> NewHeader {
        let Self { id, key, created, parent, prefix_hash: _, meta } = self;
        NewHeader { id, key, created, parent, meta }
    }
}

/// How long a session is, as far as its blocks are flushed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Summary {
    pub(crate) len: u64,
    /// The timestamp of the last event; of a session without one, when it was created.
    pub(crate) updated: Timestamp,
    /// The running hash after the last event.
    pub(crate) hash: Hash,
}

/// The journal is drained through this commit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Drained {
    pub(crate) through: u64,
}

/// How often the store was opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Opened {
    pub(crate) count: u32,
}

/// That a session was deleted, and how far its removal has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Tombstone {
    /// How many of its first events living forks need.
    pub(crate) kept: u64,
    /// Whether something that nobody needs may still be there.
    pub(crate) pending: bool,
}

/// The value under [`header_key`](super::header_key).
pub(crate) fn encode_header(header: &SessionHeader, write_number: WriteNumber) -> Vec<u8> {
    let stored = StoredHeader {
        id: header.id.as_str(),
        created: header.created.as_millis(),
        parent: stored_parent(header.parent),
        prefix_hash: header.prefix_hash.0,
        meta: stored_meta(&header.meta),
    };
    record(Kind::Header, header.key, &stored, write_number)
}

pub(crate) fn decode_header(key: StorageKey, value: &[u8]) -> Result<SessionHeader, FormatError> {
    let what = "a session's header";
    let stored: StoredHeader<'_> = stored_v1::decode(open(Kind::Header, key, value)?, what)?;
    let decoded = || {
        Some(SessionHeader {
            id: SessionId::new(stored.id).ok()?,
            key,
            created: Timestamp::from_millis(stored.created)?,
            parent: parent(stored.parent.as_ref())?,
            prefix_hash: Hash(stored.prefix_hash),
            meta: meta(&stored.meta)?,
        })
    };
    decoded().ok_or_else(|| FormatError::undecodable(what))
}

/// The value under [`id_key`](super::id_key): which storage key the id has.
pub(crate) fn encode_id(id: &SessionId, key: StorageKey, write_number: WriteNumber) -> Vec<u8> {
    Envelope::record(Kind::Id, key, write_number, id.as_str().as_bytes()).to_value()
}

pub(crate) fn decode_id(id: &SessionId, value: &[u8]) -> Result<StorageKey, FormatError> {
    let envelope = Envelope::read(value)?.expect(Kind::Id)?;
    if envelope.payload != id.as_str().as_bytes() {
        return Err(wrong_key(&[super::ID_PREFIX, envelope.payload].concat()));
    }
    Ok(envelope.key)
}

/// The value under [`summary_key`](super::summary_key).
pub(crate) fn encode_summary(key: StorageKey, summary: &Summary, write_number: WriteNumber) -> Vec<u8> {
    let Summary { len, updated, hash } = *summary;
    let stored = StoredSummary { len, updated: updated.as_millis(), hash: hash.0 };
    record(Kind::Summary, key, &stored, write_number)
}

pub(crate) fn decode_summary(key: StorageKey, value: &[u8]) -> Result<Summary, FormatError> {
    let what = "a session's summary";
    let stored: StoredSummary = stored_v1::decode(open(Kind::Summary, key, value)?, what)?;
    let updated = Timestamp::from_millis(stored.updated).filter(|_| stored.len <= MAX_NUMBER);
    let updated = updated.ok_or_else(|| FormatError::undecodable(what))?;
    Ok(Summary { len: stored.len, updated, hash: Hash(stored.hash) })
}

/// The value under [`edge_key`](super::edge_key): nothing but proof that it belongs there.
pub(crate) fn encode_edge(
    parent: StorageKey,
    prefix_len: u64,
    child: StorageKey,
    write_number: WriteNumber,
) -> Vec<u8> {
    let envelope = Envelope::record(Kind::Edge, parent, write_number, &child.0);
    Envelope { seq: prefix_len, ..envelope }.to_value()
}

pub(crate) fn check_edge(edge: &super::EdgeKey, value: &[u8]) -> Result<(), FormatError> {
    let envelope = Envelope::read(value)?.expect(Kind::Edge)?.under(edge.parent, edge.prefix_len)?;
    match <[u8; 16]>::try_from(envelope.payload) {
        Ok(child) if child == edge.child.0 => Ok(()),
        Ok(child) => Err(wrong_key(&super::edge_key(envelope.key, envelope.seq, StorageKey(child)))),
        Err(_) => Err(FormatError::undecodable("a fork's edge")),
    }
}

/// The value under [`order_key`](super::order_key): nothing but proof that it belongs there.
pub(crate) fn encode_order(updated: Timestamp, key: StorageKey, write_number: WriteNumber) -> Vec<u8> {
    Envelope::record(Kind::Order, key, write_number, &time_bytes(updated)).to_value()
}

pub(crate) fn check_order(order: &super::OrderKey, value: &[u8]) -> Result<(), FormatError> {
    let payload = open(Kind::Order, order.key, value)?;
    match payload.try_into().ok().and_then(parse_time_bytes) {
        Some(updated) if updated == order.updated => Ok(()),
        Some(updated) => Err(wrong_key(&super::order_key(updated, order.key))),
        None => Err(FormatError::undecodable("a place in the order by last update")),
    }
}

/// The value under [`DRAINED_KEY`](super::DRAINED_KEY).
pub(crate) fn encode_drained(drained: Drained, write_number: WriteNumber) -> Vec<u8> {
    record(Kind::Drained, NO_KEY, &StoredDrained { through: drained.through }, write_number)
}

pub(crate) fn decode_drained(value: &[u8]) -> Result<Drained, FormatError> {
    let payload = open(Kind::Drained, NO_KEY, value)?;
    let what = "the record of what is drained";
    let stored: StoredDrained = stored_v1::decode(payload, what)?;
    if stored.through > MAX_NUMBER {
        return Err(FormatError::undecodable(what));
    }
    Ok(Drained { through: stored.through })
}

/// The write number of a sound value.
pub(crate) fn write_number(value: &[u8]) -> Option<WriteNumber> {
    Envelope::read(value).ok().map(|envelope| envelope.write_number)
}

/// The value under [`OPENED_KEY`](super::OPENED_KEY).
pub(crate) fn encode_opened(opened: Opened, write_number: WriteNumber) -> Vec<u8> {
    record(Kind::Opened, NO_KEY, &StoredOpened { count: opened.count }, write_number)
}

pub(crate) fn decode_opened(value: &[u8]) -> Result<Opened, FormatError> {
    let payload = open(Kind::Opened, NO_KEY, value)?;
    let stored: StoredOpened = stored_v1::decode(payload, "the open count")?;
    Ok(Opened { count: stored.count })
}

/// The value under [`tombstone_key`](super::tombstone_key).
pub(crate) fn encode_tombstone(key: StorageKey, tombstone: Tombstone, write_number: WriteNumber) -> Vec<u8> {
    let Tombstone { kept, pending } = tombstone;
    record(Kind::Tombstone, key, &StoredTombstone { kept, pending }, write_number)
}

pub(crate) fn decode_tombstone(key: StorageKey, value: &[u8]) -> Result<Tombstone, FormatError> {
    let what = "a tombstone";
    let stored: StoredTombstone = stored_v1::decode(open(Kind::Tombstone, key, value)?, what)?;
    if stored.kept > MAX_NUMBER {
        return Err(FormatError::undecodable(what));
    }
    Ok(Tombstone { kept: stored.kept, pending: stored.pending })
}

/// A creation as a frame holds it.
pub(super) fn put_creation(new: &NewHeader, out: &mut Vec<u8>) {
    let stored = StoredCreation {
        key: new.key.0,
        id: new.id.as_str(),
        created: new.created.as_millis(),
        parent: stored_parent(new.parent),
        meta: stored_meta(&new.meta),
    };
    stored_v1::encode(&stored, out);
}

pub(super) fn parse_creation(bytes: &[u8]) -> Result<NewHeader, FormatError> {
    let what = "a session's creation";
    let stored: StoredCreation<'_> = stored_v1::decode(bytes, what)?;
    let decoded = || {
        Some(NewHeader {
            id: SessionId::new(stored.id).ok()?,
            key: StorageKey(stored.key),
            created: Timestamp::from_millis(stored.created)?,
            parent: parent(stored.parent.as_ref())?,
            meta: meta(&stored.meta)?,
        })
    };
    decoded().ok_or_else(|| FormatError::undecodable(what))
}

fn record(kind: Kind, key: StorageKey, stored: &impl stored_v1::Shape, write_number: WriteNumber) -> Vec<u8> {
    let mut payload = Vec::new();
    stored_v1::encode(stored, &mut payload);
    Envelope::record(kind, key, write_number, &payload).to_value()
}

fn open(kind: Kind, key: StorageKey, value: &[u8]) -> Result<&[u8], FormatError> {
    Ok(Envelope::read(value)?.expect(kind)?.under(key, 0)?.payload)
}

fn wrong_key(says: &[u8]) -> FormatError {
    Corruption::WrongKey { says: super::hex(says) }.into()
}

fn stored_parent(parent: Option<(StorageKey, u64)>) -> Option<StoredParent> {
    parent.map(|(key, prefix_len)| StoredParent { key: key.0, prefix_len })
}

/// `None` for a prefix length that cannot be.
fn parent(stored: Option<&StoredParent>) -> Option<Option<(StorageKey, u64)>> {
    match stored {
        Some(parent) if parent.prefix_len > MAX_NUMBER => None,
        Some(parent) => Some(Some((StorageKey(parent.key), parent.prefix_len))),
        None => Some(None),
    }
}

fn stored_meta(meta: &BTreeMap<String, String>) -> Fields<'_> {
    Fields(meta.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect())
}

/// `None` unless the names ascend: there is one spelling.
fn meta(stored: &Fields<'_>) -> Option<BTreeMap<String, String>> {
    let ascending = stored.0.is_sorted_by(|(before, _), (after, _)| before < after);
    ascending.then(|| stored.0.iter().map(|(name, value)| ((*name).into(), (*value).into())).collect())
}
