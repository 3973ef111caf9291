//! Blocks: stored runs of consecutive events, and the heads of large events, as readers see them.

use super::bytes::Reader;
use super::envelope::{ENVELOPE_LEN, Envelope, Kind};
pub(crate) use super::envelope::{WriteNumber, WriteNumbers};
use super::hash::Hash;
use super::large;
use super::section::{Codecs, Packed, Scratch, Section, Unpacked};
use super::view::{RunView, Sections};
use super::{FormatError, MAX_BLOCK_EVENTS, MAX_BLOCK_LEN, MAX_LARGE_LEN, MAX_NUMBER};
use crate::error::Corruption;
use crate::event::Event;
use crate::id::StorageKey;

/// Bytes of the sections header, which a block's payload starts with.
pub(super) const SECTIONS_HEADER_LEN: usize = 52;

/// Bytes of a block before its sections.
pub(super) const BLOCK_HEADER_LEN: usize = ENVELOPE_LEN + SECTIONS_HEADER_LEN;

/// What a block, or the head of a large event, says of itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct BlockHeader {
    pub(crate) key: StorageKey,
    pub(crate) first_seq: u64,
    pub(crate) count: u32,
    pub(crate) write_number: WriteNumber,
    /// The running hash after the last event.
    pub(crate) hash_after: Hash,
    /// Length of the sections, decoded and as they are stored.
    pub(crate) main_len: usize,
    pub(crate) main_stored: usize,
    pub(crate) chunks_len: usize,
    pub(crate) chunks_stored: usize,
    /// Values that the events are stored in: 1 for a block.
    pub(crate) parts: u32,
    pub(super) codecs: Codecs,
    pub(super) large: bool,
}

impl BlockHeader {
    /// The seq behind the last event.
    pub(crate) fn end(&self) -> u64 {
        self.first_seq + u64::from(self.count)
    }

    /// Bytes of both sections as they are stored.
    pub(super) fn stored_len(&self) -> usize {
        self.main_stored + self.chunks_stored
    }

    fn parse(envelope: &Envelope<'_>, reader: &mut Reader<'_>) -> Option<Self> {
        let header = Self {
            key: envelope.key,
            first_seq: envelope.seq,
            count: envelope.count,
            write_number: envelope.write_number,
            hash_after: Hash(reader.array()?),
            main_len: reader.len32()?,
            main_stored: reader.len32()?,
            chunks_len: reader.len32()?,
            chunks_stored: reader.len32()?,
            parts: reader.u32()?,
            codecs: Codecs::from_byte(envelope.codec)?,
            large: envelope.kind == Kind::LargeHead,
        };
        header.is_consistent().then_some(header)
    }

    /// Whether the lengths are within their limits: nothing is allocated before that.
    fn is_consistent(&self) -> bool {
        let (max_count, max_len) =
            if self.large { (1, MAX_LARGE_LEN) } else { (MAX_BLOCK_EVENTS, MAX_BLOCK_LEN) };
        (1..=max_count).contains(&self.count)
            && self.first_seq.checked_add(u64::from(self.count)).is_some_and(|end| end <= MAX_NUMBER)
            && self.main_len.checked_add(self.chunks_len).is_some_and(|len| len <= max_len)
            && self.main_stored <= self.main_len
            && self.chunks_stored <= self.chunks_len
            && self.parts == if self.large { large::parts(self.stored_len()) } else { 1 }
    }

    /// The run with these sections.
    pub(crate) fn run<'a>(&self, sections: &'a Unpacked) -> RunView<'a> {
        let Unpacked { main, chunks } = sections;
        RunView { first_seq: self.first_seq, count: self.count, main, chunks }
    }

    /// The sections in `stored` that a reader wants.
    fn sections<'a>(&self, stored: &'a [u8], which: Sections) -> Option<(Section<'a>, Option<Section<'a>>)> {
        let (main, chunks) = stored.split_at_checked(self.main_stored)?;
        let main = Section { stored: main, len: self.main_len };
        let chunks = Section { stored: chunks, len: self.chunks_len };
        Some((main, Some(chunks).filter(|_| which == Sections::All)))
    }

    pub(super) fn decode(
        &self,
        stored: &[u8],
        scratch: &mut Scratch,
        window: (u32, u32),
        which: Sections,
        out: &mut Vec<Event>,
    ) -> Result<(), FormatError> {
        let undecodable = || FormatError::undecodable("a compressed section");
        let (main, chunks) = self.sections(stored, which).ok_or_else(undecodable)?;
        let (main, chunks) = scratch.decompress(self.codecs, main, chunks).ok_or_else(undecodable)?;
        let run = RunView { first_seq: self.first_seq, count: self.count, main, chunks };
        run.decode(window.0, window.1, which, out)
    }
}

/// The start of the payload of a block or head.
pub(super) fn put_sections_header(packed: &Packed<'_>, hash_after: Hash, parts: u32, out: &mut Vec<u8>) {
    out.extend_from_slice(&hash_after.0);
    for len in [packed.main.len, packed.main.stored.len(), packed.chunks.len, packed.chunks.stored.len()] {
        let len = u32::try_from(len).unwrap_or(u32::MAX);
        assert!(len < u32::MAX, "an event is at most some MiB");
        out.extend_from_slice(&len.to_be_bytes());
    }
    out.extend_from_slice(&parts.to_be_bytes());
}

/// A block, or the head of a large event, whose checksum and header were found right.
#[derive(Clone, Copy, Debug)]
pub(crate) struct BlockView<'a> {
    header: BlockHeader,
    /// The stored sections; of a head, their first bytes.
    stored: &'a [u8],
}

/// Checks the value under `(key, seq)`: checksum, version, that it belongs there, that its lengths agree.
pub(crate) fn open_block(key: StorageKey, seq: u64, value: &[u8]) -> Result<BlockView<'_>, FormatError> {
    read_block(Envelope::read(value)?.under(key, seq)?)
}

/// Reads a block wherever it was found.
pub(super) fn read_block(envelope: Envelope<'_>) -> Result<BlockView<'_>, FormatError> {
    if !matches!(envelope.kind, Kind::Block | Kind::LargeHead) {
        return Err(Corruption::NotRecognised.into());
    }
    let mut reader = Reader::new(envelope.payload);
    let header = BlockHeader::parse(&envelope, &mut reader)
        .ok_or_else(|| FormatError::undecodable("the block's header"))?;
    let stored = reader.rest();
    let expected = if header.large { large::head_len(header.stored_len()) } else { header.stored_len() };
    if stored.len() != expected {
        return Err(FormatError::length(BLOCK_HEADER_LEN + expected, ENVELOPE_LEN + envelope.payload.len()));
    }
    Ok(BlockView { header, stored })
}

impl<'a> BlockView<'a> {
    pub(crate) fn header(&self) -> &BlockHeader {
        &self.header
    }

    /// The number of values that a large event is stored in, this one included; `None` for a block.
    pub(crate) fn is_large(&self) -> Option<u32> {
        self.header.large.then_some(self.header.parts)
    }

    pub(super) fn stored(&self) -> &'a [u8] {
        self.stored
    }

    /// The length of the value.
    pub(crate) fn value_len(&self) -> usize {
        BLOCK_HEADER_LEN + self.stored.len()
    }

    /// Unpacks the sections that a reader wants: with these the header is a run. `None` for a large event, and for a
    /// section that is not what it says.
    pub(crate) fn unpack(
        &self,
        scratch: &mut Scratch,
        which: Sections,
        out: &mut Unpacked,
    ) -> Option<BlockHeader> {
        if self.header.large {
            return None;
        }
        let (main, chunks) = self.header.sections(self.stored, which)?;
        scratch.unpack(self.header.codecs, main, chunks, out)?;
        Some(self.header)
    }

    /// Appends the events at the positions `skip .. skip + take` to `out`; see [`RunView::decode`]. A large event of
    /// several parts needs a [`LargeReader`](super::LargeReader).
    pub(crate) fn decode(
        &self,
        scratch: &mut Scratch,
        skip: u32,
        take: u32,
        which: Sections,
        out: &mut Vec<Event>,
    ) -> Result<(), FormatError> {
        if self.header.parts > 1 {
            return Err(Corruption::MissingPart { part: 1, parts: self.header.parts }.into());
        }
        self.header.decode(self.stored, scratch, (skip, take), which, out)
    }
}
