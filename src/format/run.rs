//! Runs: consecutive events in stored form, not compressed. What the tail keeps, the journal writes and blocks hold.
//!
//! Nine in ten events are streamed chunks that nobody but a replay wants, so they stand in a section of their own, in
//! columns: most of their bytes are then one text, which compresses and decodes well.

use super::FormatError;
use super::bytes::{Reader, put_len, put_varint, unzigzag, varint_len, zigzag};
use super::stored_v1::{self, StoredEvent};
use crate::error::Corruption;
use crate::event::{Event, EventKind, EventParts, JsonString};
use crate::id::{Seq, Timestamp};

/// Consecutive events in stored form.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Run {
    pub(crate) first_seq: u64,
    pub(crate) count: u32,
    /// All but plain chunks.
    pub(crate) main: Vec<u8>,
    /// Plain chunks: `assistant/chunk` with nothing but a delta.
    pub(crate) chunks: Vec<u8>,
}

impl Run {
    /// The bytes of both sections.
    pub(crate) fn stored_len(&self) -> usize {
        self.main.len() + self.chunks.len()
    }

    /// The seq behind the last event.
    pub(crate) fn end(&self) -> u64 {
        self.first_seq + u64::from(self.count)
    }

    pub(crate) fn view(&self) -> RunView<'_> {
        RunView { first_seq: self.first_seq, count: self.count, main: &self.main, chunks: &self.chunks }
    }
}

/// What a reader wants of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Sections {
    All,
    /// All events but `assistant/chunk`; the chunks section is not looked at.
    WithoutChunks,
}

/// Makes runs; kept and reused, it allocates only what a run takes with it.
#[derive(Debug)]
pub(crate) struct RunEncoder {
    first_seq: u64,
    pending: Pending,
}

impl RunEncoder {
    pub(crate) fn new(first_seq: u64) -> Self {
        Self { first_seq, pending: Pending::default() }
    }

    /// Appends an event: it gets the next seq.
    pub(crate) fn push(&mut self, parts: &EventParts<'_>) {
        self.pending.push(parts);
    }

    /// The number of events so far.
    pub(crate) fn len(&self) -> usize {
        self.pending.items.len()
    }

    /// About the bytes that the run will have.
    pub(crate) fn bytes(&self) -> usize {
        self.pending.bytes()
    }

    /// Takes the run; the encoder goes on at its end.
    pub(crate) fn finish(&mut self) -> Run {
        let (mut main, mut chunks) = (Vec::new(), Vec::new());
        let events = self.len();
        let count = u32::try_from(events).unwrap_or(u32::MAX);
        assert!(count < u32::MAX, "a batch has at most 65,536 events");
        self.pending.write_sections(events, &mut main, &mut chunks);
        self.pending.clear();
        let run = Run { first_seq: self.first_seq, count, main, chunks };
        self.first_seq = run.end();
        run
    }
}

/// Events on their way into sections, of which any first ones can be written.
#[derive(Debug, Default)]
pub(super) struct Pending {
    items: Vec<Item>,
    bodies: Vec<u8>,
    texts: Vec<u8>,
}

#[derive(Clone, Copy, Debug)]
struct Item {
    millis: i64,
    /// Of its body in `bodies`; of a plain chunk's delta in `texts`.
    len: usize,
    plain_chunk: bool,
}

impl Item {
    /// About the bytes of the event in its section.
    fn cost(self) -> usize {
        self.len + 3
    }
}

impl Pending {
    pub(super) fn push(&mut self, parts: &EventParts<'_>) {
        let plain = parts.extra.is_empty() && parts.surface_op.is_none() && parts.source_event_seqs.is_none();
        let (len, plain_chunk) = match parts.kind {
            EventKind::AssistantChunk { delta } if plain => {
                self.texts.extend_from_slice(delta.spelling().as_bytes());
                (delta.spelling().len(), true)
            }
            _ => {
                let before = self.bodies.len();
                stored_v1::encode(&StoredEvent::from_parts(parts), &mut self.bodies);
                (self.bodies.len() - before, false)
            }
        };
        self.items.push(Item { millis: parts.timestamp.as_millis(), len, plain_chunk });
    }

    pub(super) fn len(&self) -> usize {
        self.items.len()
    }

    pub(super) fn bytes(&self) -> usize {
        self.bodies.len() + self.texts.len() + 3 * self.items.len()
    }

    /// The number of first events that take at most `bytes`, and the bytes that they take.
    pub(super) fn fitting(&self, bytes: usize) -> (usize, usize) {
        let mut taken = 0;
        for (at, item) in self.items.iter().enumerate() {
            if taken + item.cost() > bytes {
                return (at, taken);
            }
            taken += item.cost();
        }
        (self.items.len(), taken)
    }

    /// About the bytes of the first `events`.
    pub(super) fn cost(&self, events: usize) -> usize {
        self.items.iter().take(events).map(|item| item.cost()).sum()
    }

    /// Writes both sections of the first `events`.
    pub(super) fn write_sections(&self, events: usize, main: &mut Vec<u8>, chunks: &mut Vec<u8>) {
        let (items, _) = self.items.split_at(events.min(self.items.len()));
        self.write_main(items, main);
        self.write_chunks(items, chunks);
    }

    fn write_main(&self, items: &[Item], main: &mut Vec<u8>) {
        let times = || deltas(items.iter().filter(|item| !item.plain_chunk));
        let times_len = times().map(varint_len).sum();
        let bodies_len: usize = items.iter().filter(|item| !item.plain_chunk).map(|item| item.len + 3).sum();
        main.reserve(times_len + bodies_len + 16);
        put_len(times_len, main);
        times().for_each(|delta| put_varint(delta, main));
        let mut bodies = self.bodies.as_slice();
        let mut open_chunks = 0u64;
        for item in items {
            if item.plain_chunk {
                open_chunks += 1;
                continue;
            }
            close_chunks(&mut open_chunks, main);
            let (body, rest) = bodies.split_at(item.len);
            bodies = rest;
            put_len(body.len(), main);
            main.extend_from_slice(body);
        }
        close_chunks(&mut open_chunks, main);
    }

    fn write_chunks(&self, items: &[Item], chunks: &mut Vec<u8>) {
        let plain = || items.iter().filter(|item| item.plain_chunk);
        if plain().next().is_none() {
            return;
        }
        let times_len = deltas(plain()).map(varint_len).sum();
        let lens_len = plain().map(|item| varint_len(item.len as u64)).sum::<usize>();
        let texts_len = plain().map(|item| item.len).sum::<usize>();
        chunks.reserve(times_len + lens_len + texts_len + 8);
        put_len(times_len, chunks);
        put_len(lens_len, chunks);
        deltas(plain()).for_each(|delta| put_varint(delta, chunks));
        plain().for_each(|item| put_len(item.len, chunks));
        chunks.extend_from_slice(self.texts.split_at(texts_len).0);
    }

    /// Drops the first `events`.
    pub(super) fn drop_first(&mut self, events: usize) {
        let (mut bodies, mut texts) = (0, 0);
        for item in self.items.drain(..events) {
            *(if item.plain_chunk { &mut texts } else { &mut bodies }) += item.len;
        }
        self.bodies.drain(..bodies);
        self.texts.drain(..texts);
    }

    pub(super) fn clear(&mut self) {
        self.items.clear();
        self.bodies.clear();
        self.texts.clear();
    }
}

/// A time column: what each time is beyond the one before it.
fn deltas<'a>(items: impl Iterator<Item = &'a Item>) -> impl Iterator<Item = u64> {
    items.scan(0, |before, item| {
        let delta = item.millis - *before; // within ±2^54: timestamps are
        *before = item.millis;
        Some(zigzag(delta))
    })
}

/// Writes the entry that stands for the plain chunks before another event.
fn close_chunks(open: &mut u64, main: &mut Vec<u8>) {
    if *open > 0 {
        main.push(0);
        put_varint(*open, main);
        *open = 0;
    }
}

/// A run's sections, borrowed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct RunView<'a> {
    pub(crate) first_seq: u64,
    pub(crate) count: u32,
    pub(crate) main: &'a [u8],
    pub(crate) chunks: &'a [u8],
}

impl RunView<'_> {
    /// A copy that owns its bytes.
    pub(crate) fn to_run(self) -> Run {
        Run {
            first_seq: self.first_seq,
            count: self.count,
            main: self.main.to_vec(),
            chunks: self.chunks.to_vec(),
        }
    }

    /// Appends the events at the positions `skip .. skip + take` (cut at the run's end) to `out`.
    ///
    /// Events before them are stepped over and not decoded. Chunks that are not wanted leave their positions empty.
    pub(crate) fn decode(
        &self,
        skip: u32,
        take: u32,
        which: Sections,
        out: &mut Vec<Event>,
    ) -> Result<(), FormatError> {
        let end = skip.saturating_add(take).min(self.count);
        let start = skip.min(end);
        // Each event takes two bytes at least, so a count that is no truth reserves little.
        if (self.count as usize) > self.main.len() + self.chunks.len()
            || self.first_seq.checked_add(u64::from(self.count)).is_none()
        {
            return Err(Corruption::Undecodable { what: "the count of events" }.into());
        }
        if which == Sections::All {
            out.reserve((end - start) as usize);
        }
        let mut cursor = Cursor::new(self, which).ok_or_else(undecodable)?;
        let mut at = 0;
        while at < end {
            match cursor.entry().ok_or_else(undecodable)? {
                Entry::Body(body) => {
                    let time = cursor.times.next().ok_or_else(undecodable)?;
                    if at >= start {
                        let stored: StoredEvent<'_> = stored_v1::decode(body, "an event")?;
                        if which == Sections::All || !stored.is_chunk() {
                            out.push(stored.into_event(Seq::new(self.first_seq + u64::from(at)), time));
                        }
                    }
                    at += 1;
                }
                Entry::Chunks(chunks) => {
                    let behind = at.checked_add(chunks).filter(|behind| *behind <= self.count);
                    let behind = behind.ok_or_else(undecodable)?;
                    if let Some(columns) = &mut cursor.chunks {
                        let from = start.clamp(at, behind);
                        columns.skip(from - at).ok_or_else(undecodable)?;
                        let seqs =
                            self.first_seq + u64::from(from)..self.first_seq + u64::from(end.min(behind));
                        columns.decode(seqs, out).ok_or_else(undecodable)?;
                    }
                    at = behind;
                }
            }
        }
        if end == self.count && !cursor.is_at_end() {
            return Err(Corruption::Undecodable { what: "the end of the events" }.into());
        }
        Ok(())
    }
}

fn undecodable() -> FormatError {
    FormatError::undecodable("the list of events")
}

/// Where a decoder stands in the columns of both sections.
struct Cursor<'a> {
    times: Times<'a>,
    entries: Reader<'a>,
    chunks: Option<ChunkColumns<'a>>,
}

enum Entry<'a> {
    Body(&'a [u8]),
    Chunks(u32),
}

impl<'a> Cursor<'a> {
    fn new(run: &RunView<'a>, which: Sections) -> Option<Self> {
        let mut entries = Reader::new(run.main);
        let times_len = entries.len()?;
        let times = Times::new(entries.take(times_len)?);
        let chunks = match which {
            Sections::All => Some(ChunkColumns::new(run.chunks)?),
            Sections::WithoutChunks => None,
        };
        Some(Self { times, entries, chunks })
    }

    fn entry(&mut self) -> Option<Entry<'a>> {
        match self.entries.len()? {
            0 => Some(Entry::Chunks(self.entries.varint_u32().filter(|chunks| *chunks > 0)?)),
            len => Some(Entry::Body(self.entries.take(len)?)),
        }
    }

    fn is_at_end(&self) -> bool {
        self.entries.is_empty()
            && self.times.column.is_empty()
            && self.chunks.as_ref().is_none_or(|chunks| {
                chunks.times.column.is_empty() && chunks.lens.is_empty() && chunks.texts.is_empty()
            })
    }
}

struct Times<'a> {
    column: Reader<'a>,
    millis: i64,
}

impl<'a> Times<'a> {
    fn new(column: &'a [u8]) -> Self {
        Self { column: Reader::new(column), millis: 0 }
    }

    #[inline]
    fn next(&mut self) -> Option<Timestamp> {
        self.millis = self.millis.checked_add(unzigzag(self.column.varint()?))?;
        Timestamp::from_millis(self.millis)
    }
}

struct ChunkColumns<'a> {
    times: Times<'a>,
    lens: Reader<'a>,
    texts: &'a str,
}

impl<'a> ChunkColumns<'a> {
    fn new(section: &'a [u8]) -> Option<Self> {
        let mut reader = Reader::new(section);
        let (times_len, lens_len) = if section.is_empty() { (0, 0) } else { (reader.len()?, reader.len()?) };
        let times = Times::new(reader.take(times_len)?);
        let lens = Reader::new(reader.take(lens_len)?);
        // Once for all deltas: a border within a character is found where the text is cut.
        let texts = std::str::from_utf8(reader.rest()).ok()?;
        Some(Self { times, lens, texts })
    }

    fn text(&mut self) -> Option<&'a str> {
        let (text, rest) = self.texts.split_at_checked(self.lens.len()?)?;
        self.texts = rest;
        Some(text)
    }

    fn skip(&mut self, chunks: u32) -> Option<()> {
        for _ in 0..chunks {
            self.times.next()?;
            self.text()?;
        }
        Some(())
    }

    /// Appends the next events; they have these seqs.
    fn decode(&mut self, seqs: std::ops::Range<u64>, out: &mut Vec<Event>) -> Option<()> {
        for seq in seqs {
            let timestamp = self.times.next()?;
            let delta = JsonString::from_checked(self.text()?);
            out.push(Event {
                seq: Seq::new(seq),
                timestamp,
                kind: EventKind::AssistantChunk { delta },
                extra: Vec::new(),
                surface_op: None,
                source_event_seqs: None,
            });
        }
        Some(())
    }
}
