//! Large events: one that does not fit a value goes on in parts, under the keys behind its head's.

use super::block::{BLOCK_HEADER_LEN, BlockHeader, BlockView, put_sections_header};
use super::bytes::Reader;
use super::envelope::{ENVELOPE_LEN, Envelope, Kind, WriteNumber};
use super::hash::Hash;
use super::key::{block_key, part_key};
use super::section::{Packed, Scratch};
use super::view::Sections;
use super::{FormatError, MAX_VALUE_BYTES};
use crate::error::Corruption;
use crate::event::Event;
use crate::id::StorageKey;

/// Stored bytes in a head.
const HEAD_BYTES: usize = MAX_VALUE_BYTES - BLOCK_HEADER_LEN;
/// Bytes of a part's payload before its stored bytes: the number of parts.
const PART_HEADER_LEN: usize = 4;
/// Stored bytes in each part but the last.
const PART_BYTES: usize = MAX_VALUE_BYTES - ENVELOPE_LEN - PART_HEADER_LEN;

/// The number of values for so many stored bytes, the head included.
pub(super) fn parts(stored_len: usize) -> u32 {
    let behind = stored_len.saturating_sub(HEAD_BYTES).div_ceil(PART_BYTES);
    u32::try_from(behind).unwrap_or(u32::MAX).saturating_add(1)
}

/// Stored bytes in the head of so many.
pub(super) fn head_len(stored_len: usize) -> usize {
    stored_len.min(HEAD_BYTES)
}

/// Gives the keys and values of the large event `seq` to `sink`, head first.
pub(super) fn write<E>(
    key: StorageKey,
    seq: u64,
    packed: &Packed<'_>,
    hash_after: Hash,
    write_number: WriteNumber,
    sink: &mut dyn FnMut(Vec<u8>, Vec<u8>) -> Result<(), E>,
) -> Result<(), E> {
    let both;
    let stored = if packed.chunks.stored.is_empty() {
        packed.main.stored
    } else {
        both = [packed.main.stored, packed.chunks.stored].concat();
        &both
    };
    let parts = parts(stored.len());
    let envelope =
        Envelope { kind: Kind::LargeHead, codec: 0, key, seq, count: 1, write_number, payload: &[] };

    let (head, rest) = stored.split_at(head_len(stored.len()));
    let mut payload = Vec::with_capacity(MAX_VALUE_BYTES);
    put_sections_header(packed, hash_after, parts, &mut payload);
    payload.extend_from_slice(head);
    let value = Envelope { codec: packed.codecs.to_byte(), payload: &payload, ..envelope }.to_value();
    sink(block_key(key, seq).to_vec(), value)?;

    for (part, piece) in (1..).zip(rest.chunks(PART_BYTES)) {
        payload.clear();
        payload.extend_from_slice(&parts.to_be_bytes());
        payload.extend_from_slice(piece);
        let value = Envelope { kind: Kind::LargePart, count: part, payload: &payload, ..envelope }.to_value();
        sink(part_key(key, seq, part).to_vec(), value)?;
    }
    Ok(())
}

/// Puts the parts of a large event together again.
#[derive(Debug)]
pub(crate) struct LargeReader {
    header: BlockHeader,
    next_part: u32,
    stored: Vec<u8>,
}

impl LargeReader {
    /// Begins with the head.
    pub(crate) fn new(head: &BlockView<'_>) -> Self {
        Self { header: *head.header(), next_part: 1, stored: head.stored().to_vec() }
    }

    /// The running hash after the event, as its head has it.
    pub(crate) fn hash_after(&self) -> Hash {
        self.header.hash_after
    }

    /// The number of the part that comes next; `None` when all are there.
    pub(crate) fn next_part(&self) -> Option<u32> {
        Some(self.next_part).filter(|part| *part < self.header.parts)
    }

    /// Takes the next part: the value under `(key, seq, part)`. What was allocated is what was read.
    pub(crate) fn push(&mut self, part: u32, value: &[u8]) -> Result<(), FormatError> {
        let envelope =
            Envelope::read(value)?.expect(Kind::LargePart)?.under(self.header.key, self.header.first_seq)?;
        let mut reader = Reader::new(envelope.payload);
        let parts = reader.u32();
        let awaited = self.header.stored_len().saturating_sub(self.stored.len()).min(PART_BYTES);
        // A part that an earlier write left behind is not the one that is missing.
        let belongs = envelope.write_number == self.header.write_number
            && parts == Some(self.header.parts)
            && envelope.count == part
            && self.next_part() == Some(part);
        if !belongs {
            return Err(self.missing());
        }
        if reader.rest().len() != awaited {
            return Err(FormatError::length(awaited, reader.rest().len()));
        }
        self.stored.extend_from_slice(reader.rest());
        self.next_part += 1;
        Ok(())
    }

    /// Appends the event to `out`; an error while parts are missing.
    pub(crate) fn finish(
        self,
        scratch: &mut Scratch,
        which: Sections,
        out: &mut Vec<Event>,
    ) -> Result<(), FormatError> {
        if self.next_part().is_some() {
            return Err(self.missing());
        }
        let done = self.header.decode(&self.stored, scratch, (0, 1), which, out);
        scratch.trim();
        done
    }

    fn missing(&self) -> FormatError {
        Corruption::MissingPart { part: self.next_part, parts: self.header.parts }.into()
    }
}
