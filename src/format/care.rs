//! Values of `care`: marks of sessions that were ended, and what was taken out of use with its bytes.

use super::bytes::{Reader, put_len};
use super::envelope::{Envelope, Kind, WriteNumber};
use super::stored_v1::{self, StoredEndMark, StoredQuarantine};
use super::{FormatError, MAX_NUMBER, MAX_VALUE_BYTES};
use crate::error::Corruption;
use crate::id::StorageKey;

const END_MARK: u8 = b'e';
const QUARANTINE: u8 = b'q';

/// Prefixes of the name spaces in `care`, for range scans.
pub(crate) const END_MARK_PREFIX: &[u8] = &[END_MARK];
pub(crate) const QUARANTINE_PREFIX: &[u8] = &[QUARANTINE];

/// Bytes of something in quarantine that one value holds: room for the envelope and the description in the first.
const PIECE_BYTES: usize = MAX_VALUE_BYTES - 1_280;
/// The greatest length of a reason and of a place, so that the description always fits.
const MAX_TEXT_BYTES: usize = 512;
/// Journal frames are the largest things that get here.
const MAX_QUARANTINED_BYTES: u64 = 1 << 31;

/// Where a value in quarantine stood.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum Origin {
    Sessions = 0,
    Events = 1,
    Care = 2,
    Derived = 3,
    Journal = 4,
}

impl Origin {
    const ALL: [Self; 5] = [Self::Sessions, Self::Events, Self::Care, Self::Derived, Self::Journal];
}

/// Something that was taken out of use: its first value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Quarantined {
    pub(crate) origin: Origin,
    /// Its key there; of a frame the file's name and the offset.
    pub(crate) place: Vec<u8>,
    pub(crate) reason: String,
    /// The length of all its bytes.
    pub(crate) len: u64,
    /// The bytes in this value.
    pub(crate) bytes: Vec<u8>,
}

/// A key of something in quarantine, taken apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct QuarantineKey {
    pub(crate) key: StorageKey,
    pub(crate) seq: u64,
    /// Tells things with the same seq apart: the start of the BLAKE3 of what it is.
    pub(crate) digest: [u8; 8],
    pub(crate) part: u32,
}

impl QuarantineKey {
    pub(crate) fn to_bytes(self) -> Vec<u8> {
        [QUARANTINE_PREFIX, &self.key.0, &self.seq.to_be_bytes(), &self.digest, &self.part.to_be_bytes()]
            .concat()
    }
}

pub(crate) fn parse_quarantine_key(bytes: &[u8]) -> Option<QuarantineKey> {
    let mut reader = Reader::new(bytes.strip_prefix(QUARANTINE_PREFIX)?);
    let key = QuarantineKey {
        key: StorageKey(reader.array()?),
        seq: reader.u64()?,
        digest: reader.array()?,
        part: reader.u32()?,
    };
    reader.is_empty().then_some(key)
}

pub(crate) fn end_mark_key(key: StorageKey) -> Vec<u8> {
    [END_MARK_PREFIX, &key.0].concat()
}

/// The value under [`end_mark_key`]: the session has `at` events, and gets no more.
pub(crate) fn encode_end_mark(key: StorageKey, at: u64, write_number: WriteNumber) -> Vec<u8> {
    let mut payload = Vec::new();
    stored_v1::encode(&StoredEndMark { at }, &mut payload);
    Envelope::record(Kind::EndMark, key, write_number, &payload).to_value()
}

pub(crate) fn decode_end_mark(key: StorageKey, value: &[u8]) -> Result<u64, FormatError> {
    let what = "an end mark";
    let envelope = Envelope::read(value)?.expect(Kind::EndMark)?.under(key, 0)?;
    let stored: StoredEndMark = stored_v1::decode(envelope.payload, what)?;
    if stored.at > MAX_NUMBER { Err(FormatError::undecodable(what)) } else { Ok(stored.at) }
}

/// The keys and values that keep `bytes`, which stood at `place` and belong to `seq` of `key`. The same thing always
/// has the same keys: to keep it twice is to keep it once.
pub(crate) fn encode_quarantine(
    (key, seq): (StorageKey, u64),
    (origin, place): (Origin, &[u8]),
    reason: &str,
    bytes: &[u8],
    mut number: impl FnMut() -> WriteNumber,
) -> Vec<(Vec<u8>, Vec<u8>)> {
    let mut hasher = blake3::Hasher::new();
    hasher.update(&[origin as u8]).update(&(place.len() as u64).to_be_bytes()).update(place).update(bytes);
    let mut digest = [0; 8];
    hasher.finalize_xof().fill(&mut digest);
    let cut = (0..=reason.len().min(MAX_TEXT_BYTES)).rev().find(|at| reason.is_char_boundary(*at));
    let described = StoredQuarantine {
        origin: origin as u8,
        place: place.get(..MAX_TEXT_BYTES).unwrap_or(place),
        reason: reason.get(..cut.unwrap_or(0)).unwrap_or_default(),
        len: bytes.len() as u64,
    };
    let mut values = Vec::new();
    let mut rest = bytes;
    for part in 0.. {
        let (piece, behind) = rest.split_at(rest.len().min(PIECE_BYTES));
        rest = behind;
        let mut payload = Vec::new();
        if part == 0 {
            let mut description = Vec::new();
            stored_v1::encode(&described, &mut description);
            put_len(description.len(), &mut payload);
            payload.extend_from_slice(&description);
        }
        payload.extend_from_slice(piece);
        let envelope = Envelope {
            kind: Kind::Quarantine,
            codec: 0,
            key,
            seq,
            count: part,
            write_number: number(),
            payload: &payload,
        };
        values.push((QuarantineKey { key, seq, digest, part }.to_bytes(), envelope.to_value()));
        if rest.is_empty() {
            break;
        }
    }
    values
}

/// The first value of something in quarantine.
pub(crate) fn decode_quarantine(at: &QuarantineKey, value: &[u8]) -> Result<Quarantined, FormatError> {
    let what = "what is in quarantine";
    let mut reader = Reader::new(quarantine_payload(at, value)?);
    let description = reader.len().and_then(|len| reader.take(len));
    let stored: StoredQuarantine<'_> =
        stored_v1::decode(description.ok_or_else(|| FormatError::undecodable(what))?, what)?;
    let origin = Origin::ALL.into_iter().find(|origin| *origin as u8 == stored.origin);
    let (Some(origin), true) = (origin, stored.len <= MAX_QUARANTINED_BYTES) else {
        return Err(FormatError::undecodable(what));
    };
    Ok(Quarantined {
        origin,
        place: stored.place.to_vec(),
        reason: stored.reason.to_owned(),
        len: stored.len,
        bytes: reader.rest().to_vec(),
    })
}

/// The bytes in a later value of something in quarantine.
pub(crate) fn quarantine_part<'a>(at: &QuarantineKey, value: &'a [u8]) -> Result<&'a [u8], FormatError> {
    quarantine_payload(at, value)
}

fn quarantine_payload<'a>(at: &QuarantineKey, value: &'a [u8]) -> Result<&'a [u8], FormatError> {
    let envelope = Envelope::read(value)?.expect(Kind::Quarantine)?.under(at.key, at.seq)?;
    if envelope.count == at.part {
        Ok(envelope.payload)
    } else {
        Err(Corruption::WrongKey {
            says: super::hex(&QuarantineKey { part: envelope.count, ..*at }.to_bytes()),
        }
        .into())
    }
}
