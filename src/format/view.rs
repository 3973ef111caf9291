//! Runs as readers see them: from the bytes of two sections to events, any window of them.

use super::FormatError;
use super::bytes::{Reader, unzigzag};
use super::run::Run;
use super::stored_v1::{self, StoredEvent};
use crate::error::Corruption;
use crate::event::{Event, EventKind, JsonString};
use crate::id::{Seq, Timestamp};

/// What a reader wants of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Sections {
    All,
    /// All events but `assistant/chunk`; the chunks section is not looked at.
    WithoutChunks,
    /// Only what the surface sees, and of that only what it looks at: the ids of turns and steps, usage and unknown
    /// fields are left out, and custom events with them.
    ForSurface,
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
        if self.first_seq.checked_add(u64::from(self.count)).is_none() {
            return Err(FormatError::undecodable("the count of events"));
        }
        if which == Sections::All {
            // Each event takes two bytes at least, so a count that is no truth reserves little.
            if self.count as usize > self.main.len() + self.chunks.len() {
                return Err(FormatError::undecodable("the count of events"));
            }
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
                        let wanted = match which {
                            Sections::All => Some(stored),
                            Sections::WithoutChunks => Some(stored).filter(|stored| !stored.is_chunk()),
                            Sections::ForSurface => stored.for_surface(),
                        };
                        let seq = Seq::new(self.first_seq + u64::from(at));
                        out.extend(wanted.map(|stored| stored.into_event(seq, time)));
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
            Sections::WithoutChunks | Sections::ForSurface => None,
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
