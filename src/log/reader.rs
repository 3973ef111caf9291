//! The iterator behind every read: seek, check, decode, across a session's ancestors and from blocks into the tail.
//!
//! Where an event stands is asked anew for each block or run, for the drain moves the border between blocks and tail
//! while a reader is under way. A seq that is in neither is looked for once more before it counts as a hole.

use std::collections::VecDeque;
use std::fmt;
use std::ops::{Bound, Range};
use std::sync::Arc;

use super::core::Core;
use super::lineage::Segment;
use super::tail::SessionState;
use super::unpack::{Piece, Unpacker};
use crate::error::{Corruption, Error, Place, Result};
use crate::event::{Event, line_len};
use crate::format::{self, BlockView, Scratch, Sections};
use crate::id::{Seq, StorageKey};
use crate::storage::{Entries, Map};
use crate::store::Handle;

/// The most events decoded ahead of the caller.
const DECODED_AHEAD: u64 = 1_024;

/// Events of a session, read as they are asked for.
///
/// The range is fixed when it is made: what is appended meanwhile is not seen. The first error is the last item;
/// nothing is skipped; when the session is deleted meanwhile that is [`Error::SessionNotFound`]. It keeps the store
/// open.
///
/// # Cost
/// A seek, then a share of one block for each event. Memory: the events of one block; a forward read that turns out to be
/// long (some thousand events) reads up to a hundred blocks ahead, which a thread of its own unpacks meanwhile.
pub struct Events {
    core: Arc<Core>,
    session: Arc<SessionState>,
    /// Where the events stand; the next one in front.
    segments: VecDeque<Segment>,
    /// What is still to be read, cut at the side that is read from.
    rest: Range<u64>,
    reverse: bool,
    sections: Sections,
    /// Decoded events, the next one last.
    decoded: Vec<Event>,
    blocks: Option<Entries>,
    unpacker: Unpacker,
    scratch: Scratch,
    /// The seq that was looked for once without success.
    missed: Option<u64>,
    /// What a page found behind its events.
    failure: Option<Error>,
    finished: bool,
    _open: Handle,
}

impl fmt::Debug for Events {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Events")
            .field("session", &self.session.header.id)
            .field("rest", &self.rest)
            .field("reverse", &self.reverse)
            .finish_non_exhaustive()
    }
}

impl Events {
    /// Reads `range`, which lies within what readers may see.
    pub(crate) fn new(
        handle: Handle,
        session: Arc<SessionState>,
        range: Range<u64>,
        reverse: bool,
    ) -> Result<Self> {
        let core = Arc::clone(handle.core());
        session.check_exists()?;
        let segments = core.segments(&session, &range).map_err(|error| or_deleted(&session, error))?;
        let mut segments = VecDeque::from(segments);
        if reverse {
            segments.make_contiguous().reverse();
        }
        Ok(Self {
            core,
            session,
            segments,
            rest: range,
            reverse,
            sections: Sections::All,
            decoded: Vec::new(),
            blocks: None,
            unpacker: Unpacker::new(Sections::All),
            scratch: Scratch::default(),
            missed: None,
            failure: None,
            finished: false,
            _open: handle,
        })
    }

    /// Leaves out `assistant/chunk` events (but for those with fields of their own that are not known): their deltas
    /// are then neither read nor decoded.
    #[must_use]
    pub fn without_chunks(mut self) -> Self {
        // What was decoded is given back to be read again, without chunks.
        if let Some(next) = self.decoded.last() {
            let next = next.seq.get();
            if self.reverse {
                self.rest.end = next + 1;
            } else {
                self.rest.start = next;
            }
            self.decoded.clear();
        }
        self.want(Sections::WithoutChunks);
        self
    }

    fn want(&mut self, sections: Sections) {
        self.forget_scan();
        self.sections = sections;
        self.unpacker = Unpacker::new(sections);
    }

    /// Gives what is left to `take`, as far as the surface sees it: see [`Sections::ForSurface`].
    pub(crate) fn for_surface(self, mut take: impl FnMut(Event)) -> Result<()> {
        let mut events = self.without_chunks();
        events.want(Sections::ForSurface);
        while events.refill()? {
            events.decoded.drain(..).rev().for_each(&mut take);
        }
        Ok(())
    }

    /// Returns the seq that the next event will have, or where a forward read that is finished would go on.
    ///
    /// A later [`Session::read_from`](crate::Session::read_from) here continues this read.
    pub fn next_seq(&self) -> Seq {
        let next = match self.decoded.last() {
            Some(event) => event.seq.get(),
            None if self.reverse => self.rest.end.saturating_sub(1),
            None => self.rest.start,
        };
        Seq::new(next)
    }

    /// Returns the next events: at most `count`, and no more than have `bytes` bytes of lines together, but at least one if
    /// there is one. Nothing behind the last event.
    ///
    /// With [`next_seq`](Self::next_seq) a reader goes on where a page ended, also after the store was closed in between.
    ///
    /// # Cost
    /// As reading; each event is measured. Memory: the page, and the events of one block.
    /// # Errors
    /// As the iterator's items: events before the damage come first, then the error, as the last page.
    /// # Examples
    /// ```
    /// # fn main() -> sessionlog::Result<()> {
    /// use sessionlog::{NewEvent, NewSession, Seq, Store};
    /// let store = Store::in_memory()?;
    /// let session = store.create(NewSession::new())?;
    /// session.append_batch((0..10).map(|n| NewEvent::user_message(format!("{n}"))))?;
    /// let page = session.read_from(Seq::ZERO)?.page(4, 1 << 20)?;
    /// let mut rest = session.read_from(Seq::new(page.len() as u64))?;
    /// assert_eq!((rest.page(100, 200)?.len(), rest.next_seq()), (2, Seq::new(6)));
    /// # Ok(()) }
    /// ```
    pub fn page(&mut self, count: usize, bytes: u64) -> Result<Vec<Event>> {
        let mut page = Vec::new();
        let mut taken: u64 = 0;
        while page.len() < count {
            if self.decoded.is_empty() && !self.finished {
                match self.refill() {
                    Ok(_) => {}
                    Err(error) => {
                        self.decoded.clear();
                        self.finished = true;
                        if page.is_empty() {
                            return Err(error);
                        }
                        self.failure = Some(error);
                    }
                }
            }
            let Some(next) = self.decoded.last() else { break };
            let line = line_len(next.seq, &next.parts());
            if !page.is_empty() && taken.saturating_add(line) > bytes {
                break;
            }
            taken = taken.saturating_add(line);
            page.extend(self.decoded.pop());
        }
        match self.failure.take_if(|_| page.is_empty()) {
            Some(error) => Err(error),
            None => Ok(page),
        }
    }

    /// Decodes the next events. Returns whether there are more.
    ///
    /// What a deletion takes away under the reader's eyes is no damage.
    fn refill(&mut self) -> Result<bool> {
        if !self.rest.is_empty() {
            self.session.check_exists()?;
        }
        self.decode_next().map_err(|error| or_deleted(&self.session, error))
    }

    fn decode_next(&mut self) -> Result<bool> {
        while !self.rest.is_empty() {
            let wanted = if self.reverse { self.rest.end - 1 } else { self.rest.start };
            let Some(segment) = self.segments.front() else {
                return Err(self.gap(wanted, None));
            };
            if wanted < segment.from || wanted >= segment.to {
                self.segments.pop_front();
                self.forget_scan();
                continue;
            }
            let segment = segment.clone();
            let before = self.rest.clone();
            let found = self.take_from_tail(&segment, wanted)? || self.take_from_block(&segment, wanted)?;
            if found {
                self.missed = None;
                debug_assert_ne!(before, self.rest, "every round reads something");
            } else if self.missed.replace(wanted) == Some(wanted) {
                return Err(self.gap(wanted, None));
            } else {
                self.forget_scan();
            }
            if !self.decoded.is_empty() {
                if !self.reverse {
                    self.decoded.reverse();
                }
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Takes events from the run of the tail that holds `wanted`. Returns false when none does.
    fn take_from_tail(&mut self, segment: &Segment, wanted: u64) -> Result<bool> {
        let up_to = self.core.up_to();
        let run = {
            let tail = segment.session.lock();
            if wanted < tail.stored.len {
                return Ok(false);
            }
            match tail.run_at(wanted, up_to) {
                Some(run) => run,
                // Beyond the durable end of a store that has failed since this read began.
                None if self.core.health.is_failed() => {
                    drop(tail);
                    self.core.health.check()?;
                    return Ok(false);
                }
                None => return Ok(false),
            }
        };
        let seqs = self.cut(wanted, run.first_seq, run.end(), segment);
        let (skip, take) = within(run.first_seq, &seqs);
        run.view()
            .decode(skip, take, self.sections, &mut self.decoded)
            .map_err(|error| error.at(self.place("run of the tail", &seqs)))?;
        self.forget_scan();
        self.advance(&seqs);
        Ok(true)
    }

    /// Takes events from the block that holds `wanted`. Returns false when none does.
    fn take_from_block(&mut self, segment: &Segment, wanted: u64) -> Result<bool> {
        let key = segment.session.key();
        let stored_len = segment.session.lock().stored.len;
        if wanted >= stored_len {
            return Ok(false);
        }
        let Some(piece) = self.next_block(key, wanted, segment.to.min(stored_len))? else {
            return Ok(false);
        };
        let Piece { entry: (found, value), header: unpacked, sections } = piece;
        let Some(at) = format::parse_event_key(&found) else {
            return Err(Error::Corrupt {
                place: Place::new("key").session(&segment.session.header.id).at(format::hex(&found)),
                corruption: Corruption::NotRecognised,
            });
        };
        if at.seq > wanted {
            return Ok(false);
        }
        let place = |seqs: Range<u64>| {
            Place::new("block").session(&segment.session.header.id).seqs(seqs).at(format::hex(&found))
        };
        // Checked and unpacked ahead, or still to be.
        let (header, view) = match unpacked {
            Some(header) => (header, None),
            None => {
                let view = format::open_block(key, at.seq, &value);
                let view = view.map_err(|error| error.at(place(wanted..wanted + 1)))?;
                (*view.header(), Some(view))
            }
        };
        let end = header.end().min(stored_len);
        if wanted >= end {
            return Ok(false);
        }
        let seqs = self.cut(wanted, at.seq, end, segment);
        let (skip, take) = within(at.seq, &seqs);
        let decoded = match &view {
            Some(view) if view.is_large().is_some() => self.large(key, view),
            Some(view) => view
                .decode(&mut self.scratch, skip, take, self.sections, &mut self.decoded)
                .map_err(Large::Format),
            None => header
                .run(&sections)
                .decode(skip, take, self.sections, &mut self.decoded)
                .map_err(Large::Format),
        };
        decoded.map_err(|error| match error {
            Large::Format(error) => error.at(place(seqs.clone())),
            Large::Error(error) => error,
        })?;
        self.unpacker.give_back(sections);
        self.advance(&seqs);
        Ok(true)
    }

    /// The entry that should hold `wanted`: the next of the scan, or the last one at or below it when a scan begins.
    fn next_block(&mut self, key: StorageKey, wanted: u64, to: u64) -> Result<Option<Piece>> {
        if let Some(blocks) = &mut self.blocks {
            return self.unpacker.next(blocks);
        }
        let lowest = format::block_key(key, 0);
        let highest = format::block_key(key, wanted);
        let storage = &self.core.storage;
        let mut at_or_below =
            storage.range_reverse(Map::Events, Bound::Included(&lowest), Bound::Included(&highest));
        let Some(mut entry) = at_or_below.next().transpose()? else { return Ok(None) };
        // A part belongs to the large event whose block stands before it.
        if let Some(part) = format::parse_event_key(&entry.0).filter(|at| at.part.is_some()) {
            let head = format::block_key(key, part.seq);
            let Some(value) = storage.get(Map::Events, &head)? else { return Ok(None) };
            entry = (head.to_vec(), value);
        }
        if !self.reverse {
            let behind = format::block_key(key, to);
            self.blocks =
                Some(storage.range(Map::Events, Bound::Excluded(&entry.0), Bound::Excluded(&behind)));
        }
        Ok(Some(Piece::packed(entry)))
    }

    /// Puts a large event together from its parts.
    fn large(&mut self, key: StorageKey, view: &BlockView<'_>) -> Result<(), Large> {
        let parts = view.is_large().unwrap_or_default();
        let seq = view.header().first_seq;
        let mut reader = format::LargeReader::new(view);
        for part in 1..parts {
            let value = self
                .core
                .storage
                .get(Map::Events, &format::part_key(key, seq, part))
                .map_err(Large::Error)?;
            let missing = Corruption::MissingPart { part, parts };
            let value = value.ok_or(Large::Format(format::FormatError::Corrupt(missing)))?;
            reader.push(part, &value).map_err(Large::Format)?;
        }
        // The scan stands before the parts: the next block is sought.
        self.forget_scan();
        reader.finish(&mut self.scratch, self.sections, &mut self.decoded).map_err(Large::Format)
    }

    /// What to take of the events `from..to` that were found: what is wanted of them, and not too many at once.
    fn cut(&self, wanted: u64, from: u64, to: u64, segment: &Segment) -> Range<u64> {
        if self.reverse {
            let from = from.max(segment.from).max(self.rest.start);
            from.max((wanted + 1).saturating_sub(DECODED_AHEAD))..wanted + 1
        } else {
            let to = to.min(segment.to).min(self.rest.end);
            wanted..to.min(wanted.saturating_add(DECODED_AHEAD))
        }
    }

    /// Lets go of the scan: what is wanted next is sought.
    fn forget_scan(&mut self) {
        self.blocks = None;
        self.unpacker.reset();
    }

    fn advance(&mut self, seqs: &Range<u64>) {
        if self.reverse {
            self.rest.end = seqs.start;
        } else {
            self.rest.start = seqs.end;
        }
    }

    fn place(&self, what: &'static str, seqs: &Range<u64>) -> Place {
        Place::new(what).session(&self.session.header.id).seqs(seqs.clone())
    }

    fn gap(&self, expected: u64, found: Option<u64>) -> Error {
        Error::Corrupt {
            place: self.place("events", &(expected..expected + 1)),
            corruption: Corruption::Gap { expected, found },
        }
    }
}

impl Iterator for Events {
    type Item = Result<Event>;

    fn next(&mut self) -> Option<Self::Item> {
        if let Some(event) = self.decoded.pop() {
            return Some(Ok(event));
        }
        if self.finished {
            return self.failure.take().map(Err);
        }
        match self.refill() {
            Ok(true) => self.decoded.pop().map(Ok),
            Ok(false) => {
                self.finished = true;
                None
            }
            Err(error) => {
                // A block that turns out to be damaged halfway gives nothing.
                self.decoded.clear();
                self.finished = true;
                Some(Err(error))
            }
        }
    }
}

impl std::iter::FusedIterator for Events {}

/// What a reader of `session` is told: that it was deleted, if it was.
fn or_deleted(session: &SessionState, error: Error) -> Error {
    if session.is_deleted() { session.not_found() } else { error }
}

enum Large {
    Format(format::FormatError),
    Error(Error),
}

/// How many events of a run that starts at `first` to step over, and how many to take.
fn within(first: u64, seqs: &Range<u64>) -> (u32, u32) {
    let skip = u32::try_from(seqs.start.saturating_sub(first)).unwrap_or(u32::MAX);
    let take = u32::try_from(seqs.end - seqs.start).unwrap_or(u32::MAX);
    (skip, take)
}
