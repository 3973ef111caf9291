//! The header that every value of every map starts with: it says where the value belongs, how new it is and how long,
//! so that a value found in a damaged file, without its key, still tells what it is.

use super::bytes::Reader;
use super::{FORMAT_VERSION, FormatError};
use crate::error::Corruption;
use crate::id::StorageKey;

/// `FF` never stands in UTF-8 text, so no text of a user starts a value.
pub(super) const MAGIC: [u8; 4] = [0xff, b'S', b'L', b'v'];

/// Bytes before the payload.
pub(super) const ENVELOPE_LEN: usize = 52;

const CRC_AT: usize = 48;

/// What a value is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum Kind {
    Block = 1,
    LargeHead = 2,
    LargePart = 3,
    Header = 16,
    Id = 17,
    Summary = 18,
    Edge = 19,
    Order = 20,
    Drained = 21,
    Opened = 22,
    Tombstone = 23,
    EndMark = 32,
    Quarantine = 33,
    Checkpoint = 48,
}

impl Kind {
    const ALL: [Self; 14] = [
        Self::Block,
        Self::LargeHead,
        Self::LargePart,
        Self::Header,
        Self::Id,
        Self::Summary,
        Self::Edge,
        Self::Order,
        Self::Drained,
        Self::Opened,
        Self::Tombstone,
        Self::EndMark,
        Self::Quarantine,
        Self::Checkpoint,
    ];
}

/// Tells which of two copies of a value is newer: the store's open count, then a counter.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct WriteNumber(pub(crate) u64);

/// Gives write numbers, each greater than the one before.
#[derive(Debug)]
pub(crate) struct WriteNumbers(u64);

impl WriteNumbers {
    /// `open_count`: how often the store was opened, this time included.
    pub(crate) fn new(open_count: u32) -> Self {
        Self(u64::from(open_count) << 32)
    }

    pub(crate) fn next(&mut self) -> WriteNumber {
        self.0 += 1;
        WriteNumber(self.0)
    }
}

/// The fields of the header, and the payload.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Envelope<'a> {
    pub(crate) kind: Kind,
    pub(super) codec: u8,
    pub(crate) key: StorageKey,
    pub(crate) seq: u64,
    pub(crate) count: u32,
    pub(crate) write_number: WriteNumber,
    pub(super) payload: &'a [u8],
}

impl<'a> Envelope<'a> {
    /// A record of `sessions`: no codec, no events.
    pub(super) fn record(kind: Kind, key: StorageKey, write_number: WriteNumber, payload: &'a [u8]) -> Self {
        Self { kind, codec: 0, key, seq: 0, count: 0, write_number, payload }
    }

    /// The whole value.
    pub(super) fn to_value(self) -> Vec<u8> {
        let mut out = Vec::with_capacity(ENVELOPE_LEN + self.payload.len());
        out.extend_from_slice(&MAGIC);
        out.extend_from_slice(&[self.kind as u8, FORMAT_VERSION, self.codec, 0]);
        out.extend_from_slice(&self.key.0);
        out.extend_from_slice(&self.seq.to_be_bytes());
        out.extend_from_slice(&self.count.to_be_bytes());
        out.extend_from_slice(&self.write_number.0.to_be_bytes());
        let len = u32::try_from(self.payload.len()).unwrap_or(u32::MAX);
        assert!(len < u32::MAX, "payloads are cut into values of some KiB");
        out.extend_from_slice(&len.to_be_bytes());
        let crc = checksum(&out, self.payload);
        out.extend_from_slice(&crc.to_be_bytes());
        out.extend_from_slice(self.payload);
        out
    }

    /// Reads a value that ends with its payload.
    pub(crate) fn read(value: &'a [u8]) -> Result<Self, FormatError> {
        let (envelope, behind) = Self::read_front(value)?;
        if behind.is_empty() {
            Ok(envelope)
        } else {
            Err(FormatError::length(value.len() - behind.len(), value.len()))
        }
    }

    /// Reads a value at the front of `bytes`, and gives what stands behind it: what carving a damaged file needs.
    ///
    /// The checksum is judged before the version: this layout holds for all versions, so a flipped version byte is
    /// damage, and a newer version is sound.
    pub(crate) fn read_front(bytes: &'a [u8]) -> Result<(Self, &'a [u8]), FormatError> {
        if !bytes.starts_with(&MAGIC) {
            return Err(Corruption::NotRecognised.into());
        }
        let short = |expected| FormatError::length(expected, bytes.len());
        let mut reader = Reader::new(bytes);
        let fields = reader.take(CRC_AT).ok_or_else(|| short(ENVELOPE_LEN))?;
        let stored = reader.u32().ok_or_else(|| short(ENVELOPE_LEN))?;
        let mut fields_reader = Reader::new(fields);
        let parsed = parse_fields(&mut fields_reader).ok_or_else(|| short(ENVELOPE_LEN))?;
        let payload = reader
            .take(parsed.payload_len)
            .ok_or_else(|| short(ENVELOPE_LEN.saturating_add(parsed.payload_len)))?;
        let computed = checksum(fields, payload);
        if stored != computed {
            return Err(Corruption::Checksum { stored, computed }.into());
        }
        if parsed.version > FORMAT_VERSION {
            return Err(FormatError::Unsupported { found: u32::from(parsed.version) });
        }
        let kind = Kind::ALL.into_iter().find(|kind| *kind as u8 == parsed.kind);
        let (Some(kind), FORMAT_VERSION, 0) = (kind, parsed.version, parsed.reserved) else {
            return Err(FormatError::undecodable("the value's header"));
        };
        let Fields { codec, key, seq, count, write_number, .. } = parsed;
        Ok((Self { kind, codec, key, seq, count, write_number, payload }, reader.rest()))
    }

    /// The same envelope, when it is of this kind; it has no codec then.
    pub(super) fn expect(self, kind: Kind) -> Result<Self, FormatError> {
        if self.kind == kind && self.codec == 0 { Ok(self) } else { Err(Corruption::NotRecognised.into()) }
    }

    /// The same envelope, when it belongs to `key` and `seq`.
    pub(super) fn under(self, key: StorageKey, seq: u64) -> Result<Self, FormatError> {
        if self.key == key && self.seq == seq {
            Ok(self)
        } else {
            Err(Corruption::WrongKey { says: super::hex(&super::block_key(self.key, self.seq)) }.into())
        }
    }
}

struct Fields {
    kind: u8,
    version: u8,
    codec: u8,
    reserved: u8,
    key: StorageKey,
    seq: u64,
    count: u32,
    write_number: WriteNumber,
    payload_len: usize,
}

fn parse_fields(reader: &mut Reader<'_>) -> Option<Fields> {
    let _magic: [u8; 4] = reader.array()?;
    let [kind, version, codec, reserved] = reader.array()?;
    Some(Fields {
        kind,
        version,
        codec,
        reserved,
        key: StorageKey(reader.array()?),
        seq: reader.u64()?,
        count: reader.u32()?,
        write_number: WriteNumber(reader.u64()?),
        payload_len: reader.len32()?,
    })
}

fn checksum(fields: &[u8], payload: &[u8]) -> u32 {
    let mut hasher = crc32fast::Hasher::new();
    hasher.update(fields);
    hasher.update(payload);
    hasher.finalize()
}
