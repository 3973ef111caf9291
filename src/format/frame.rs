//! Journal frames: one commit each, whole or not there.

use super::bytes::{Reader, find, put_len, put_varint};
use super::record::{NewHeader, parse_creation, parse_labels, put_creation, put_labels};
use super::run::Run;
use super::view::RunView;
use super::{FORMAT_VERSION, FormatError, MAX_NUMBER};
use crate::id::StorageKey;
use crate::labels::{Labels, MAX_LABEL_BYTES};

/// `FF` never stands in UTF-8 text, so no text of a user starts a frame.
const MAGIC: [u8; 8] = [0xff, b'S', b'L', b'f', b'r', b'a', b'm', b'e'];

/// Frames start at multiples of this.
pub(crate) const FRAME_ALIGN: usize = 8;

/// Bytes of a frame before its actions.
pub(crate) const FRAME_HEADER_LEN: usize = 56;

/// The greatest bytes of a run in a frame beyond its sections: tag, key, four varints.
const RUN_OVERHEAD: usize = 1 + 16 + 4 * 10;

const LENGTH_AT: usize = 8;
const CRC_AT: usize = 12;
const COUNT_AT: usize = 20;

const RUN: u8 = 1;
const CREATE: u8 = 2;
const FORK: u8 = 3;
const SEAL: u8 = 4;
const DELETE: u8 = 5;
const LABEL: u8 = 6;
const BEGIN: u8 = 7;
const PUBLISH: u8 = 8;

/// What happened in a commit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Action<'a> {
    /// A session got events.
    Run { key: StorageKey, run: RunView<'a> },
    /// A session without a parent came to be.
    Create(NewHeader),
    /// A session with a parent, as it was asked for, came to be.
    Fork(NewHeader),
    /// Nothing: the frame carries its durable mark.
    Seal,
    /// A session was deleted.
    Delete { key: StorageKey },
    /// A session has this title and these labels from now on, and no others.
    Label { key: StorageKey, labels: Labels },
    /// A session came to be that nobody sees until it is published.
    Begin(NewHeader),
    /// That session is one like any other from now on, with these labels.
    Publish { key: StorageKey, labels: Labels },
}

/// Writes frames into a buffer that is used again and again.
#[derive(Debug)]
pub(crate) struct FrameBuilder {
    buffer: Vec<u8>,
    actions: u32,
}

impl FrameBuilder {
    pub(crate) fn new(buffer: Vec<u8>) -> Self {
        Self { buffer, actions: 0 }
    }

    /// Starts a frame; what was in the buffer is gone. `durable`: the highest commit known durable.
    pub(crate) fn begin(&mut self, store_id: [u8; 16], commit: u64, durable: u64) {
        self.actions = 0;
        let out = &mut self.buffer;
        out.clear();
        out.extend_from_slice(&MAGIC);
        out.extend_from_slice(&[0; 8]); // length and checksum
        out.extend_from_slice(&[FORMAT_VERSION, 0, 0, 0]);
        out.extend_from_slice(&[0; 4]); // number of actions
        out.extend_from_slice(&store_id);
        out.extend_from_slice(&commit.to_be_bytes());
        out.extend_from_slice(&durable.to_be_bytes());
    }

    pub(crate) fn add_run(&mut self, key: StorageKey, run: &Run) {
        self.add(&Action::Run { key, run: run.view() });
    }

    pub(crate) fn add(&mut self, action: &Action<'_>) {
        self.actions += 1;
        let out = &mut self.buffer;
        match action {
            Action::Run { key, run } => {
                out.push(RUN);
                out.extend_from_slice(&key.0);
                put_varint(run.first_seq, out);
                put_varint(u64::from(run.count), out);
                put_len(run.main.len(), out);
                put_len(run.chunks.len(), out);
                out.extend_from_slice(run.main);
                out.extend_from_slice(run.chunks);
            }
            Action::Create(new) => {
                debug_assert!(new.parent.is_none(), "a creation has no parent");
                add_creation(CREATE, new, out);
            }
            Action::Fork(new) => {
                debug_assert!(new.parent.is_some(), "a fork has a parent");
                add_creation(FORK, new, out);
            }
            Action::Seal => out.push(SEAL),
            Action::Delete { key } => {
                out.push(DELETE);
                out.extend_from_slice(&key.0);
            }
            Action::Label { key, labels } => add_labels(LABEL, *key, labels, out),
            Action::Begin(new) => add_creation(BEGIN, new, out),
            Action::Publish { key, labels } => add_labels(PUBLISH, *key, labels, out),
        }
    }

    /// The length of the frame so far, padding included.
    pub(crate) fn len(&self) -> usize {
        self.buffer.len().next_multiple_of(FRAME_ALIGN)
    }

    /// At most the bytes that [`add_run`](Self::add_run) adds.
    pub(crate) fn run_cost(run: &Run) -> usize {
        RUN_OVERHEAD + run.stored_len()
    }

    /// At most the bytes that [`add`](Self::add) adds for a creation or fork.
    pub(crate) fn creation_cost(new: &NewHeader) -> usize {
        let meta: usize = new.meta.iter().map(|(name, value)| name.len() + value.len() + 20).sum();
        let extra = new.extra.iter().map(|(name, value)| name.spelling().len() + value.as_str().len() + 20);
        128 + new.id.as_str().len() + meta + extra.sum::<usize>()
    }

    /// The bytes that [`add`](Self::add) adds for a deletion.
    pub(crate) const DELETION_COST: usize = 1 + 16;
    /// At most the bytes that [`add`](Self::add) adds for labels.
    pub(crate) const LABELS_COST: usize = 64 + MAX_LABEL_BYTES;

    /// The whole frame, padded.
    pub(crate) fn finish(&mut self) -> &[u8] {
        let len = u32::try_from(self.buffer.len()).unwrap_or(u32::MAX);
        assert!(len < u32::MAX, "a frame is bounded by the greatest batch");
        self.put(LENGTH_AT, len);
        self.put(COUNT_AT, self.actions);
        let crc = checksum(&self.buffer);
        self.put(CRC_AT, crc);
        self.buffer.resize(self.len(), 0);
        &self.buffer
    }

    /// The same frame, as one of another store.
    pub(crate) fn copy(&mut self, frame: &FrameView<'_>, store_id: [u8; 16]) -> &[u8] {
        self.begin(store_id, frame.commit, frame.durable);
        self.buffer.extend_from_slice(frame.actions);
        self.actions = frame.action_count;
        self.finish()
    }

    /// Gives the buffer back.
    pub(crate) fn into_buffer(self) -> Vec<u8> {
        self.buffer
    }

    fn put(&mut self, at: usize, value: u32) {
        if let Some(place) = self.buffer.get_mut(at..at + 4) {
            place.copy_from_slice(&value.to_be_bytes());
        }
    }
}

fn add_creation(tag: u8, new: &NewHeader, out: &mut Vec<u8>) {
    let mut body = Vec::new();
    put_creation(new, &mut body);
    out.push(tag);
    put_len(body.len(), out);
    out.extend_from_slice(&body);
}

fn add_labels(tag: u8, key: StorageKey, labels: &Labels, out: &mut Vec<u8>) {
    let mut body = Vec::new();
    put_labels(labels, &mut body);
    out.push(tag);
    out.extend_from_slice(&key.0);
    put_len(body.len(), out);
    out.extend_from_slice(&body);
}

/// Why there is no frame of this store at some place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FrameFault {
    /// Nothing there starts as a frame does.
    Absent,
    /// Something starts as a frame does and is not whole. What it claims may be as wrong as the rest.
    Torn { commit: u64, len: usize },
    /// A whole frame of another store.
    Foreign { store_id: [u8; 16] },
    /// A whole frame of a newer format.
    Unsupported { found: u32 },
}

/// A whole frame of this store.
#[derive(Clone, Copy, Debug)]
pub(crate) struct FrameView<'a> {
    pub(crate) commit: u64,
    /// The highest commit known durable when the frame was written.
    pub(crate) durable: u64,
    /// Its length with padding: where the next one can start.
    pub(crate) len: usize,
    pub(crate) action_count: u32,
    actions: &'a [u8],
}

/// Reads the frame at the start of `bytes`, which go on to the segment's end.
pub(crate) fn read_frame(bytes: &[u8], store_id: [u8; 16]) -> Result<FrameView<'_>, FrameFault> {
    if !bytes.starts_with(&MAGIC) {
        return Err(FrameFault::Absent);
    }
    let header = parse_header(bytes).ok_or(FrameFault::Torn { commit: 0, len: bytes.len() })?;
    let torn = FrameFault::Torn { commit: header.commit, len: header.len };
    let frame = bytes.get(..header.len).ok_or(torn)?;
    let actions = frame.get(FRAME_HEADER_LEN..).ok_or(torn)?;
    // The checksum comes first: this header holds for all versions.
    if checksum(frame) != header.crc {
        return Err(torn);
    }
    if header.version > FORMAT_VERSION {
        return Err(FrameFault::Unsupported { found: u32::from(header.version) });
    }
    let believed = header.commit <= MAX_NUMBER && header.durable < header.commit;
    if header.version != FORMAT_VERSION || header.reserved != [0; 3] || !believed {
        return Err(torn);
    }
    if header.store_id != store_id {
        return Err(FrameFault::Foreign { store_id: header.store_id });
    }
    Ok(FrameView {
        commit: header.commit,
        durable: header.durable,
        len: header.len.next_multiple_of(FRAME_ALIGN),
        action_count: header.actions,
        actions,
    })
}

/// What stands where a frame of this store is awaited and has all of its header but the magic: the number that it claims,
/// and its length.
pub(crate) fn headless_frame(bytes: &[u8], store_id: [u8; 16]) -> Option<(u64, usize)> {
    let header = parse_header(bytes).filter(|_| !bytes.starts_with(&MAGIC))?;
    let ours = header.store_id == store_id && header.version == FORMAT_VERSION && header.reserved == [0; 3];
    Some((header.commit, header.len.min(bytes.len()))).filter(|_| ours && header.commit <= MAX_NUMBER)
}

struct Header {
    len: usize,
    crc: u32,
    version: u8,
    reserved: [u8; 3],
    actions: u32,
    store_id: [u8; 16],
    commit: u64,
    durable: u64,
}

fn parse_header(bytes: &[u8]) -> Option<Header> {
    let mut reader = Reader::new(bytes);
    let _magic: [u8; 8] = reader.array()?;
    Some(Header {
        len: reader.len32()?,
        crc: reader.u32()?,
        version: reader.u8()?,
        reserved: reader.array()?,
        actions: reader.u32()?,
        store_id: reader.array()?,
        commit: reader.u64()?,
        durable: reader.u64()?,
    })
}

/// Over all of the frame but the checksum itself.
fn checksum(frame: &[u8]) -> u32 {
    let mut hasher = crc32fast::Hasher::new();
    if let Some((before, rest)) = frame.split_at_checked(CRC_AT) {
        hasher.update(before);
        hasher.update(rest.get(4..).unwrap_or_default());
    }
    hasher.finalize()
}

impl<'a> FrameView<'a> {
    /// What happened, in order. The first error ends it.
    pub(crate) fn actions(&self) -> Actions<'a> {
        Actions { reader: Reader::new(self.actions), left: self.action_count, failed: false }
    }
}

/// The actions of a frame.
#[derive(Clone, Debug)]
pub(crate) struct Actions<'a> {
    reader: Reader<'a>,
    left: u32,
    failed: bool,
}

impl<'a> Iterator for Actions<'a> {
    type Item = Result<Action<'a>, FormatError>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.failed {
            return None;
        }
        let item = match self.left.checked_sub(1) {
            None if self.reader.is_empty() => return None,
            None => Err(FormatError::undecodable("the end of a frame")),
            Some(left) => {
                self.left = left;
                self.read()
            }
        };
        self.failed = item.is_err();
        Some(item)
    }
}

impl<'a> Actions<'a> {
    fn read(&mut self) -> Result<Action<'a>, FormatError> {
        let undecodable = || FormatError::undecodable("an action of a frame");
        match self.reader.u8().ok_or_else(undecodable)? {
            RUN => self.read_run().ok_or_else(undecodable),
            CREATE => Some(self.read_creation()?)
                .filter(|new| new.parent.is_none())
                .map(Action::Create)
                .ok_or_else(undecodable),
            FORK => Some(self.read_creation()?)
                .filter(|new| new.parent.is_some())
                .map(Action::Fork)
                .ok_or_else(undecodable),
            SEAL => Ok(Action::Seal),
            DELETE => {
                let key = self.reader.array().ok_or_else(undecodable)?;
                Ok(Action::Delete { key: StorageKey(key) })
            }
            LABEL => self.read_labels().map(|(key, labels)| Action::Label { key, labels }),
            BEGIN => self.read_creation().map(Action::Begin),
            PUBLISH => self.read_labels().map(|(key, labels)| Action::Publish { key, labels }),
            _ => Err(undecodable()),
        }
    }

    fn read_run(&mut self) -> Option<Action<'a>> {
        let reader = &mut self.reader;
        let key = StorageKey(reader.array()?);
        let (first_seq, count) = (reader.varint()?, reader.varint_u32().filter(|count| *count > 0)?);
        let (main_len, chunks_len) = (reader.len()?, reader.len()?);
        let (main, chunks) = (reader.take(main_len)?, reader.take(chunks_len)?);
        first_seq.checked_add(u64::from(count)).filter(|end| *end <= MAX_NUMBER)?;
        Some(Action::Run { key, run: RunView { first_seq, count, main, chunks } })
    }

    fn read_creation(&mut self) -> Result<NewHeader, FormatError> {
        let body = self.reader.len().and_then(|len| self.reader.take(len));
        parse_creation(body.ok_or_else(|| FormatError::undecodable("an action of a frame"))?)
    }

    fn read_labels(&mut self) -> Result<(StorageKey, Labels), FormatError> {
        let undecodable = || FormatError::undecodable("an action of a frame");
        let key = StorageKey(self.reader.array().ok_or_else(undecodable)?);
        let body = self.reader.len().and_then(|len| self.reader.take(len)).ok_or_else(undecodable)?;
        Ok((key, parse_labels(body)?))
    }
}

/// Finds the first place at or behind `from`, wherever it is, that starts as a frame does: in damaged files.
pub(crate) fn find_frame(bytes: &[u8], from: usize) -> Option<usize> {
    find(bytes, &MAGIC, from)
}

/// Finds the first place at or behind `from`, at a multiple of 8, that starts as a frame does.
pub(crate) fn find_magic(bytes: &[u8], from: usize) -> Option<usize> {
    let start = from.checked_next_multiple_of(FRAME_ALIGN)?;
    let (places, _) = bytes.get(start..)?.as_chunks::<FRAME_ALIGN>();
    places.iter().position(|place| *place == MAGIC).map(|place| start + place * FRAME_ALIGN)
}
