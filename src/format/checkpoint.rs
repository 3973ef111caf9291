//! Checkpoints: something that was computed from a session's first events, kept to save the time of doing so again.
//!
//! The bytes are the projection's own. They are cut into values that all say the same of the whole: which events it
//! covers, the running hash behind them, how many values there are. A piece of another checkpoint is told from them.

use super::bytes::Reader;
use super::envelope::{ENVELOPE_LEN, Envelope, Kind, WriteNumber};
use super::hash::Hash;
use super::{FormatError, MAX_NUMBER, MAX_VALUE_BYTES, checkpoint_key};
use crate::error::Corruption;
use crate::id::StorageKey;

/// Bytes of a payload before the projection's.
const HEADER_LEN: usize = 36;
/// What a value holds of the projection's bytes.
const PIECE_BYTES: usize = MAX_VALUE_BYTES - ENVELOPE_LEN - HEADER_LEN;

/// The greatest length of a checkpoint's bytes: a surface of 1 MiB whose every byte is escaped.
pub(crate) const MAX_CHECKPOINT_BYTES: usize = 2 << 20;
const MAX_PARTS: usize = MAX_CHECKPOINT_BYTES.div_ceil(PIECE_BYTES);

/// A projection of the first `len` events of a session.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Checkpoint {
    pub(crate) len: u64,
    /// The running hash behind these events.
    pub(crate) hash: Hash,
    pub(crate) bytes: Vec<u8>,
}

impl Checkpoint {
    /// Its keys and values, all with one write number.
    pub(crate) fn to_values(&self, key: StorageKey, number: WriteNumber) -> Vec<(Vec<u8>, Vec<u8>)> {
        let pieces = || self.bytes.chunks(PIECE_BYTES);
        let parts = u32::try_from(pieces().len()).unwrap_or(u32::MAX);
        let value = |(part, piece): (u32, &[u8])| {
            let payload = [&self.hash.0[..], &parts.to_be_bytes(), piece].concat();
            let envelope = Envelope::record(Kind::Checkpoint, key, number, &payload);
            let value = Envelope { seq: self.len, count: part, ..envelope }.to_value();
            (checkpoint_key(key, part).to_vec(), value)
        };
        (0..).zip(pieces()).map(value).collect()
    }
}

/// Puts a checkpoint together from its values.
#[derive(Debug)]
pub(crate) struct CheckpointReader {
    key: StorageKey,
    found: Checkpoint,
    number: WriteNumber,
    parts: u32,
    next: u32,
}

impl CheckpointReader {
    /// Begins with the first value.
    pub(crate) fn new(key: StorageKey, value: &[u8]) -> Result<Self, FormatError> {
        let (envelope, hash, parts, piece) = open(key, value)?;
        if envelope.count != 0 || parts == 0 || parts as usize > MAX_PARTS || envelope.seq > MAX_NUMBER {
            return Err(FormatError::undecodable("a checkpoint's header"));
        }
        let found = Checkpoint { len: envelope.seq, hash, bytes: piece.to_vec() };
        Ok(Self { key, found, number: envelope.write_number, parts, next: 1 })
    }

    /// The number of events that it covers, and the hash that they must have.
    pub(crate) fn covers(&self) -> (u64, Hash) {
        (self.found.len, self.found.hash)
    }

    /// How many values there are.
    pub(crate) fn parts(&self) -> u32 {
        self.parts
    }

    /// Takes the next value.
    pub(crate) fn push(&mut self, value: &[u8]) -> Result<(), FormatError> {
        let (envelope, hash, parts, piece) = open(self.key, value)?;
        let said = (envelope.seq, envelope.count, envelope.write_number, hash, parts);
        if said != (self.found.len, self.next, self.number, self.found.hash, self.parts) {
            return Err(FormatError::undecodable("a piece of a checkpoint"));
        }
        self.found.bytes.extend_from_slice(piece);
        self.next += 1;
        Ok(())
    }

    pub(crate) fn finish(self) -> Result<Checkpoint, FormatError> {
        if self.next != self.parts {
            return Err(Corruption::MissingPart { part: self.next, parts: self.parts }.into());
        }
        Ok(self.found)
    }
}

fn open(key: StorageKey, value: &[u8]) -> Result<(Envelope<'_>, Hash, u32, &[u8]), FormatError> {
    let envelope = Envelope::read(value)?.expect(Kind::Checkpoint)?;
    let envelope = envelope.under(key, envelope.seq)?;
    let mut reader = Reader::new(envelope.payload);
    let (hash, parts) = reader.array().map(Hash).zip(reader.u32()).ok_or_else(|| {
        FormatError::length(ENVELOPE_LEN + HEADER_LEN, ENVELOPE_LEN + envelope.payload.len())
    })?;
    Ok((envelope, hash, parts, reader.rest()))
}
