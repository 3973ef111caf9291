//! The stored shapes of format version 1, as bincode sees them: the only file that names it.
//!
//! Frozen with release 0.1.0. Nothing here may be added to, reordered, renamed or removed: order of fields and
//! variants **is** the format. Another shape is another version, in another file.
//!
//! bincode does not describe itself: no tagged, untagged or flattened enums, no skipped fields, no JSON values here.
//! JSON is a `&str`, exactly as it was spelled, and borrowed: what decodes allocates nothing but lists of fields.

use bincode::config::{self, Configuration, Limit, LittleEndian, Varint};
use bincode::de::{BorrowDecode, BorrowDecoder};
use bincode::enc::write::{SizeWriter, Writer};
use bincode::enc::{Encode, Encoder, EncoderImpl};
use bincode::error::{DecodeError, EncodeError};
use bincode::{BorrowDecode as DeriveBorrowDecode, Encode as DeriveEncode};

use super::{FormatError, MAX_LARGE_LEN};

/// The greatest claim that decoding may make. bincode counts an integer of one byte as eight, so a sound value can
/// claim eight times its length. What is really allocated is bounded by the input: strings are borrowed from it, and
/// [`Fields`] grows by what it has read.
const LIMIT: usize = 16 * MAX_LARGE_LEN;

/// The configuration of all stored bytes.
const CONFIG: Configuration<LittleEndian, Varint, Limit<LIMIT>> = config::standard().with_limit::<LIMIT>();

/// An event without its seq and timestamp.
#[derive(Debug, PartialEq, Eq, DeriveEncode, DeriveBorrowDecode)]
pub(super) struct StoredEvent<'a> {
    pub(super) kind: StoredKind<'a>,
    /// Absent when all of it is, as for nearly every event.
    pub(super) rest: Option<StoredRest<'a>>,
}

#[derive(Debug, PartialEq, Eq, DeriveEncode, DeriveBorrowDecode)]
pub(super) struct StoredRest<'a> {
    pub(super) extra: Fields<'a>,
    pub(super) surface_op: Option<&'a str>,
    pub(super) source_event_seqs: Option<&'a str>,
}

/// Strings are JSON spellings without their quotes, but for `Option`s and `content`, `args`: those are any JSON.
#[derive(Debug, PartialEq, Eq, DeriveEncode, DeriveBorrowDecode)]
pub(super) enum StoredKind<'a> {
    TurnStart { turn_id: &'a str },
    TurnEnd { turn_id: &'a str, reason: Option<&'a str> },
    StepStart { step_id: &'a str, turn_id: &'a str },
    StepEnd { step_id: &'a str, turn_id: Option<&'a str> },
    UserMessage { content: &'a str },
    AssistantMessage { content: &'a str, usage: Option<&'a str> },
    AssistantChunk { delta: &'a str },
    ToolCall { id: &'a str, name: &'a str, args: &'a str },
    ToolResult { id: &'a str, result: Option<&'a str>, error: Option<&'a str> },
    Custom { event_type: &'a str },
}

/// A session's header in `sessions`.
#[derive(Debug, PartialEq, Eq, DeriveEncode, DeriveBorrowDecode)]
pub(super) struct StoredHeader<'a> {
    pub(super) id: &'a str,
    pub(super) created: i64,
    pub(super) parent: Option<StoredParent>,
    pub(super) prefix_hash: [u8; 32],
    pub(super) meta: Fields<'a>,
}

/// A session's creation in the journal: the header before its hash is known.
#[derive(Debug, PartialEq, Eq, DeriveEncode, DeriveBorrowDecode)]
pub(super) struct StoredCreation<'a> {
    pub(super) key: [u8; 16],
    pub(super) id: &'a str,
    pub(super) created: i64,
    pub(super) parent: Option<StoredParent>,
    pub(super) meta: Fields<'a>,
}

#[derive(Debug, PartialEq, Eq, DeriveEncode, DeriveBorrowDecode)]
pub(super) struct StoredParent {
    pub(super) key: [u8; 16],
    pub(super) prefix_len: u64,
}

#[derive(Debug, PartialEq, Eq, DeriveEncode, DeriveBorrowDecode)]
pub(super) struct StoredSummary {
    pub(super) len: u64,
    pub(super) updated: i64,
    pub(super) hash: [u8; 32],
}

#[derive(Debug, PartialEq, Eq, DeriveEncode, DeriveBorrowDecode)]
pub(super) struct StoredDrained {
    pub(super) through: u64,
}

#[derive(Debug, PartialEq, Eq, DeriveEncode, DeriveBorrowDecode)]
pub(super) struct StoredOpened {
    pub(super) count: u32,
}

/// Where a session was ended, in `care`.
#[derive(Debug, PartialEq, Eq, DeriveEncode, DeriveBorrowDecode)]
pub(super) struct StoredEndMark {
    pub(super) at: u64,
}

/// What stands before the bytes of something in quarantine, in `care`.
#[derive(Debug, PartialEq, Eq, DeriveEncode, DeriveBorrowDecode)]
pub(super) struct StoredQuarantine<'a> {
    pub(super) origin: u8,
    pub(super) place: &'a [u8],
    pub(super) reason: &'a str,
    pub(super) len: u64,
}

#[derive(Debug, PartialEq, Eq, DeriveEncode, DeriveBorrowDecode)]
pub(super) struct StoredTombstone {
    pub(super) kept: u64,
    pub(super) pending: bool,
}

/// Names and values, in order. Decoding reserves nothing for the length that is claimed.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Fields<'a>(pub(super) Vec<(&'a str, &'a str)>);

impl Encode for Fields<'_> {
    fn encode<E: Encoder>(&self, encoder: &mut E) -> Result<(), EncodeError> {
        (self.0.len() as u64).encode(encoder)?;
        self.0.iter().try_for_each(|field| field.encode(encoder))
    }
}

impl<'de, Context> BorrowDecode<'de, Context> for Fields<'de> {
    fn borrow_decode<D: BorrowDecoder<'de, Context = Context>>(decoder: &mut D) -> Result<Self, DecodeError> {
        let len = u64::borrow_decode(decoder)?;
        let mut fields = Vec::new();
        for _ in 0..len {
            fields.push(BorrowDecode::borrow_decode(decoder)?);
        }
        Ok(Self(fields))
    }
}

/// What can be stored: so that bincode's own names stay in this file.
pub(super) trait Shape: Encode {}

impl<T: Encode> Shape for T {}

/// Appends `value` to `out`.
pub(super) fn encode(value: &impl Shape, out: &mut Vec<u8>) {
    // Writing to memory cannot fail, and none of the shapes refuses a value.
    let written = bincode::encode_into_writer(value, Appender(out), CONFIG);
    debug_assert!(written.is_ok(), "{written:?}");
}

/// Reads a value that fills `bytes`, spelled as [`encode`] spells it.
pub(super) fn decode<'a, T>(bytes: &'a [u8], what: &'static str) -> Result<T, FormatError>
where
    T: BorrowDecode<'a, ()> + Encode,
{
    let undecodable = || FormatError::undecodable(what);
    let (value, used) =
        bincode::borrow_decode_from_slice::<T, _>(bytes, CONFIG).map_err(|_| undecodable())?;
    // bincode ignores what stands behind a value and takes integers that are longer than need be; a value of the
    // same length when it is written again has neither.
    if used == bytes.len() && encoded_len(&value) == used { Ok(value) } else { Err(undecodable()) }
}

fn encoded_len(value: &impl Encode) -> usize {
    let mut encoder = EncoderImpl::new(SizeWriter::default(), CONFIG);
    match value.encode(&mut encoder) {
        Ok(()) => encoder.into_writer().bytes_written,
        Err(_) => usize::MAX,
    }
}

struct Appender<'a>(&'a mut Vec<u8>);

impl Writer for Appender<'_> {
    #[inline]
    fn write(&mut self, bytes: &[u8]) -> Result<(), EncodeError> {
        self.0.extend_from_slice(bytes);
        Ok(())
    }
}
