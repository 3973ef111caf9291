//! Bytes: the only module that knows how keys, values and journal frames are spelled. Knows no storage and no files.
//!
//! Format version 1. Integers of fixed width are big endian. `varint` is LEB128: seven bits a byte, lowest first, the
//! eighth set on all but the last; only the shortest spelling is accepted. `zigzag` puts signed values into one.
//! `bincode` is bincode 2's standard configuration (variable-length integers, little endian), frozen in
//! [`stored_v1`]; nothing may stand behind such a value, and its integers are the shortest.
//!
//! # Keys
//! | map | key |
//! | --- | --- |
//! | `events` | storage key (16) ++ seq (8) \[++ part (4), from 1\] |
//! | `sessions` | `h` ++ storage key: header |
//! | | `i` ++ id: id to storage key |
//! | | `s` ++ storage key: summary |
//! | | `f` ++ parent (16) ++ prefix length (8) ++ child (16): fork edge |
//! | | `o` ++ updated (8, sign bit flipped) ++ storage key: order by last update |
//! | | `t` ++ storage key: tombstone |
//! | | `l` ++ storage key: title and labels |
//! | | `m` ++ storage key: header of a hidden session, which is not published yet |
//! | | `D`: drained through · `O`: open count |
//! | `care` | `e` ++ storage key: end mark |
//! | | `q` ++ storage key ++ seq (8) ++ digest (8) ++ part (4), from 0: quarantine |
//! | `derived` | storage key (16) ++ part (4), from 0: checkpoint of the session's surface |
//!
//! # Envelope: every value of every map
//! | offset | bytes | |
//! | --- | --- | --- |
//! | 0 | 4 | magic `FF 53 4C 76` |
//! | 4 | 1 | kind: 1 block, 2 head of a large event, 3 part; 16 header, 17 id, 18 summary, 19 edge, 20 order, 21 drained through, 22 open count, 23 tombstone, 24 labels; 32 end mark, 33 quarantine, 34 hidden session; 48 checkpoint |
//! | 5 | 1 | format version: 1 |
//! | 6 | 1 | codec: low half the main section, high half the chunks section: 0 as it is, 1 zstd, 2 zstd with the main section as dictionary; 0 for all but blocks and heads |
//! | 7 | 1 | 0 |
//! | 8 | 16 | storage key (0 where none) |
//! | 24 | 8 | first seq; of an edge the prefix length; of a checkpoint the number of events that it covers; 0 where none |
//! | 32 | 4 | count of events; of a part its number, also of a checkpoint's |
//! | 36 | 8 | write number: open count (4) ++ counter (4); of two copies the greater is newer |
//! | 44 | 4 | length of the payload |
//! | 48 | 4 | CRC-32 (IEEE) of bytes 0 to 47 and the payload |
//! | 52 | | payload |
//!
//! This layout and its checksum stay the same in every later version, so a value that is sound and too new is told
//! apart from one that is damaged.
//!
//! # Payloads
//! | kind | payload |
//! | --- | --- |
//! | block | sections header (below), main section, chunks section; whole value at most 6 KiB |
//! | head | sections header, first bytes of the two stored sections; the rest is in parts |
//! | part | parts in all, the head included (4), then bytes |
//! | header | bincode: id, created, optional (parent, prefix length), hash at the prefix, metadata (sorted), unknown fields (names and values as spelled, in their order) |
//! | hidden session | as a header |
//! | labels | bincode: optional title, labels (sorted) |
//! | id | the id |
//! | summary | bincode: length, updated, hash |
//! | edge | child (16) · order: updated (8, sign bit flipped) |
//! | drained through | bincode: commit number · open count: bincode: count |
//! | end mark | bincode: the number of events that are left |
//! | quarantine, part 0 | length (varint); bincode: origin (map 0 to 3 in the order sessions, events, care, derived; 4 journal), key or place there, reason, length; then the first bytes |
//! | quarantine, later parts | the next bytes; the envelope's count is the part's number |
//! | tombstone | bincode: how many first events living forks need, whether more may still be there |
//! | checkpoint | running hash behind the events that it covers (32), values in all (4), the next bytes of the surface as JSON |
//!
//! Sections header: running hash after the last event (32), main section decoded (4), main section stored (4), chunks
//! section decoded (4), chunks section stored (4), parts in all (4; 1 for a block).
//!
//! # Sections of a run
//! Main: length of the time column (varint), time column, entries. The time column holds a zigzag varint for each
//! event that is not a plain chunk: milliseconds since the one before it in the column (the first: since 1970).
//! An entry is the length of an event's bincode body (varint, not 0) and the body, or a 0 and the number (varint, not
//! 0) of plain chunks that follow each other.
//!
//! Chunks: length of the time column, length of the length column (varints), time column, length column (a varint
//! for each delta: bytes of its spelling), the spellings. Empty when there is no plain chunk. An `assistant/chunk`
//! with other fields than `delta` is an ordinary entry.
//!
//! # Journal frames
//! A frame starts at a multiple of 8 bytes and is padded with zeros to one.
//!
//! | offset | bytes | |
//! | --- | --- | --- |
//! | 0 | 8 | magic `FF 53 4C 66 72 61 6D 65` |
//! | 8 | 4 | length of the frame, without padding |
//! | 12 | 4 | CRC-32 of all other bytes of the frame |
//! | 16 | 1 | format version: 1 |
//! | 17 | 3 | 0 |
//! | 20 | 4 | number of actions |
//! | 24 | 16 | store id |
//! | 40 | 8 | commit number |
//! | 48 | 8 | highest commit number known durable when the frame was written |
//! | 56 | | actions |
//!
//! | action | |
//! | --- | --- |
//! | 1 run | storage key (16), first seq, count, length of main, length of chunks (varints), main, chunks: not compressed |
//! | 2 create | length (varint), bincode: storage key, id, created, no parent, metadata, unknown fields |
//! | 3 fork | length (varint), bincode: storage key, id, created, (parent, prefix length), metadata, unknown fields |
//! | 4 seal | nothing: the frame carries its durable mark |
//! | 5 delete | storage key (16) |
//! | 6 label | storage key (16), length (varint), bincode: as the value of labels |
//! | 7 import begin | length (varint), bincode: as a creation or fork, of a hidden session |
//! | 8 publish | storage key (16), length (varint), bincode: as the value of labels |

mod block;
mod bytes;
mod care;
mod checkpoint;
mod convert;
mod envelope;
mod found;
mod frame;
mod hash;
mod key;
mod large;
mod pack;
mod record;
mod run;
mod section;
mod stored_v1;
mod view;

#[cfg(test)]
mod tests;

pub(crate) use self::{
    block::{BlockHeader, BlockView, WriteNumber, WriteNumbers, open_block},
    care::*,
    checkpoint::{Checkpoint, CheckpointReader, MAX_CHECKPOINT_BYTES},
    found::{FoundValue, Home, MAX_FOUND_BYTES, NotFound, find_value, read_found},
    frame::{
        Action, FRAME_ALIGN, FRAME_HEADER_LEN, FrameBuilder, FrameFault, FrameView, find_frame, find_magic,
        headless_frame, read_frame,
    },
    hash::Hash,
    key::*,
    large::LargeReader,
    pack::{PackContext, Packer, is_full, least_blocks},
    record::*,
    run::{Run, RunEncoder},
    section::{Scratch, Unpacked},
    view::{RunView, Sections},
};

use crate::error::{Corruption, Error, Place};

/// The format that this program writes, and the newest that it reads.
pub(crate) const FORMAT_VERSION: u8 = 1;

/// The greatest length of a value: sled puts pages over 128 KiB into files of their own, and 16 values share a page.
pub(crate) const MAX_VALUE_BYTES: usize = 6 * 1024;

/// The greatest number of events in a block.
pub(crate) const MAX_BLOCK_EVENTS: u32 = 1024;

/// The greatest decoded length of a block: 6 KiB of repetitive text can stand for megabytes, and a reader that wants
/// one event of a block pays for all of it.
pub(crate) const MAX_BLOCK_LEN: usize = 256 * 1024;

/// The greatest decoded length of a large event: a batch's 64 MiB of lines, with room for stored form.
pub(crate) const MAX_LARGE_LEN: usize = 80 * 1024 * 1024;

/// The greatest seq, length and commit number that is believed. No log gets there, so sums with them never overflow.
pub(crate) const MAX_NUMBER: u64 = u64::MAX >> 1;

/// How keys are shown.
pub(crate) fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// What bytes can be found to be. The caller knows the place and adds it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum FormatError {
    /// They are damaged.
    Corrupt(Corruption),
    /// They are sound, and of a format that this program does not know.
    Unsupported { found: u32 },
}

impl FormatError {
    /// Says where it was found.
    pub(crate) fn at(self, place: Place) -> Error {
        match self {
            Self::Corrupt(corruption) => Error::Corrupt { place, corruption },
            Self::Unsupported { found } => {
                Error::UnsupportedFormat { place, found, known: u32::from(FORMAT_VERSION) }
            }
        }
    }

    fn undecodable(what: &'static str) -> Self {
        Self::Corrupt(Corruption::Undecodable { what })
    }

    fn length(expected: usize, found: usize) -> Self {
        Self::Corrupt(Corruption::Length { expected: expected as u64, found: found as u64 })
    }
}

impl From<Corruption> for FormatError {
    fn from(corruption: Corruption) -> Self {
        Self::Corrupt(corruption)
    }
}
