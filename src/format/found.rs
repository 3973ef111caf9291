//! Values found without their keys, in the raw bytes of a damaged file: what they are and where they belong.

use super::block::{BlockHeader, read_block};
use super::bytes::find;
use super::envelope::{ENVELOPE_LEN, Envelope, Kind, MAGIC, WriteNumber};
use super::key::{DRAINED_KEY, OPENED_KEY, edge_key, header_key, order_key, parse_time_bytes, summary_key};
use super::{FormatError, MAX_VALUE_BYTES};
use crate::error::Corruption;
use crate::id::StorageKey;

/// The greatest length of a value that is believed: a little more than any has.
pub(crate) const MAX_FOUND_BYTES: usize = 2 * MAX_VALUE_BYTES;

const PAYLOAD_LEN_AT: usize = 44;

/// A sound value.
#[derive(Clone, Copy, Debug)]
pub(crate) struct FoundValue<'a> {
    pub(crate) envelope: Envelope<'a>,
    /// All of it: envelope and payload.
    pub(crate) value: &'a [u8],
}

/// Where a value belongs, as it says itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Home {
    /// A block, or the head of a large event.
    Block(BlockHeader),
    /// A part of the large event `seq`.
    Part { key: StorageKey, seq: u64, part: u32 },
    /// A record of `sessions`, with its key.
    Record(Vec<u8>),
    /// A record of `care`, with its key.
    Care(Vec<u8>),
}

impl Home {
    /// The key in the map that the value belongs into.
    #[cfg(test)]
    pub(crate) fn engine_key(&self) -> Vec<u8> {
        match self {
            Self::Block(header) => super::block_key(header.key, header.first_seq).to_vec(),
            Self::Part { key, seq, part } => super::part_key(*key, *seq, *part).to_vec(),
            Self::Record(key) | Self::Care(key) => key.clone(),
        }
    }
}

/// Why there is no value at a place that starts like one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum NotFound {
    /// Damaged, or only looks like one.
    Damaged,
    /// Sound, of a newer format, and so long.
    Newer { found: u32, len: usize },
}

/// Finds the first place at or behind `from` that starts as a value does.
pub(crate) fn find_value(bytes: &[u8], from: usize) -> Option<usize> {
    find(bytes, &MAGIC, from)
}

/// Reads the value at the start of `bytes`, which go on to the file's end or for [`MAX_FOUND_BYTES`] at least.
pub(crate) fn read_found(bytes: &[u8]) -> Result<FoundValue<'_>, NotFound> {
    let len = bytes.get(PAYLOAD_LEN_AT..).and_then(|rest| rest.first_chunk());
    let len = len.and_then(|len| usize::try_from(u32::from_be_bytes(*len)).ok()).ok_or(NotFound::Damaged)?;
    let len = len.saturating_add(ENVELOPE_LEN);
    let value = bytes.get(..len).filter(|_| len <= MAX_FOUND_BYTES).ok_or(NotFound::Damaged)?;
    match Envelope::read(value) {
        Ok(envelope) => Ok(FoundValue { envelope, value }),
        Err(FormatError::Unsupported { found }) => Err(NotFound::Newer { found, len }),
        Err(FormatError::Corrupt(_)) => Err(NotFound::Damaged),
    }
}

impl FoundValue<'_> {
    pub(crate) fn write_number(&self) -> WriteNumber {
        self.envelope.write_number
    }

    /// The value's checksum: tells whether two copies are the same.
    pub(crate) fn checksum(&self) -> u32 {
        let bytes = self.value.get(ENVELOPE_LEN - 4..).and_then(|rest| rest.first_chunk());
        bytes.map_or(0, |bytes| u32::from_be_bytes(*bytes))
    }

    /// Where it belongs.
    pub(crate) fn home(&self) -> Result<Home, FormatError> {
        let Envelope { kind, key, seq, count, payload, .. } = self.envelope;
        let undecodable = || FormatError::undecodable("a value found without its key");
        let record = |key: &[u8]| Ok(Home::Record(key.to_vec()));
        match kind {
            Kind::Block | Kind::LargeHead => Ok(Home::Block(*read_block(self.envelope)?.header())),
            Kind::LargePart if count > 0 => Ok(Home::Part { key, seq, part: count }),
            Kind::LargePart => Err(Corruption::NotRecognised.into()),
            Kind::Header => record(&header_key(key)),
            Kind::Id => record(&[super::ID_PREFIX, payload].concat()),
            Kind::Summary => record(&summary_key(key)),
            Kind::Edge => {
                let child = payload.try_into().map_err(|_| undecodable())?;
                record(&edge_key(key, seq, StorageKey(child)))
            }
            Kind::Order => {
                let updated = payload.try_into().ok().and_then(parse_time_bytes).ok_or_else(undecodable)?;
                record(&order_key(updated, key))
            }
            Kind::Drained => record(DRAINED_KEY),
            Kind::Opened => record(OPENED_KEY),
            Kind::Tombstone => record(&super::tombstone_key(key)),
            Kind::Labels => record(&super::labels_key(key)),
            Kind::Hidden => record(&super::hidden_key(key)),
            Kind::EndMark => Ok(Home::Care(super::end_mark_key(key))),
            // The key of one holds a digest of all its values; the other is made again when it is wanted.
            Kind::Quarantine | Kind::Checkpoint => Err(undecodable()),
        }
    }
}
