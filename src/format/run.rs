//! Runs: consecutive events in stored form, not compressed. What the tail keeps, the journal writes and blocks hold.
//!
//! Nine in ten events are streamed chunks that nobody but a replay wants, so they stand in a section of their own, in
//! columns: most of their bytes are then one text, which compresses and decodes well.

use super::bytes::{put_len, put_varint, varint_len, zigzag};
use super::stored_v1::{self, StoredEvent};
use super::view::RunView;
use crate::event::{EventKind, EventParts};

/// What is kept of a buffer that was larger.
const MAX_KEPT_BYTES: usize = 1 << 20;

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
        // A large event's room is given back.
        self.bodies.shrink_to(MAX_KEPT_BYTES);
        self.texts.shrink_to(MAX_KEPT_BYTES);
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
