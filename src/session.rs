//! The handle on one session.

mod checkpoint;
mod held;
mod hidden;
mod labels;
#[cfg(feature = "async")]
mod later;
mod looking;
mod size;
mod surface;

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;

use crate::error::{Error, Result};
use crate::event::{JsonString, JsonText, NewEvent, SurfaceOp};
use crate::format::RunEncoder;
use crate::id::{Seq, SessionId, Timestamp};
use crate::labels::Labels;
use crate::log::commit::{Request, Work};
use crate::log::core::Core;
use crate::log::follow::Follow;
use crate::log::reader::Events;
use crate::log::room::RUN_OVERHEAD;
use crate::log::tail::{SessionState, TailRun};
use crate::options::{Append, Durability, MAX_BATCH_BYTES, MAX_BATCH_EVENTS, NewSession};
use crate::store::{Handle, fork};
use crate::surface::Surface;
use held::Held;
pub use hidden::HiddenSession;
#[cfg(feature = "async")]
pub use later::{AppendFuture, FollowStream};
pub(crate) use size::stored_bytes;
use surface::Kept;

/// A session of an open store: its events are appended and read here.
///
/// A handle is cheap to clone and can be used from any thread. It keeps the store open.
#[derive(Clone, Debug)]
pub struct Session {
    handle: Handle,
    state: Arc<SessionState>,
    kept: Kept,
    _held: Held,
}

/// What is fixed about a session since it was created.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct SessionHeader {
    /// Its id.
    pub id: SessionId,
    /// When it was created; of a fork: when it was forked.
    pub created_at: Timestamp,
    /// The session that it was forked from.
    pub parent: Option<Parent>,
    /// Free metadata, given when it was created.
    pub meta: BTreeMap<String, String>,
    /// Fields of the header that it was imported with and that nothing here has a place for, as they came.
    pub extra: Vec<(JsonString, JsonText)>,
}

/// Where a fork comes from.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Parent {
    /// The id of the parent; `None` when it was deleted.
    pub session: Option<SessionId>,
    /// The number of events that the fork shares with it.
    pub prefix_len: u64,
}

/// A session as a list shows it.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct SessionInfo {
    /// What is fixed about it.
    pub header: SessionHeader,
    /// The number of events that readers may see.
    pub len: u64,
    /// The timestamp of its last event; when it was created, if it has none of its own.
    pub updated_at: Timestamp,
    /// Its title and labels.
    pub labels: Labels,
}

impl Session {
    pub(crate) fn new(handle: Handle, state: Arc<SessionState>) -> Self {
        let held = Held::new(&state);
        Self { handle, state, kept: Kept::default(), _held: held }
    }

    pub(crate) fn state(&self) -> &Arc<SessionState> {
        &self.state
    }

    fn core(&self) -> &Core {
        self.handle.core()
    }

    /// Returns the session's id.
    pub fn id(&self) -> &SessionId {
        &self.state.header.id
    }

    /// Returns what is fixed about the session.
    ///
    /// # Errors
    /// [`Error::SessionNotFound`] when it was deleted. Reading the parent's header can fail: [`Error::Corrupt`],
    /// [`Error::Storage`], [`Error::Closed`].
    pub fn header(&self) -> Result<SessionHeader> {
        header(self.core(), &self.state)
    }

    /// Returns the session as a list shows it.
    ///
    /// # Errors
    /// As [`header`](Self::header).
    pub fn info(&self) -> Result<SessionInfo> {
        info(self.core(), &self.state)
    }

    /// Returns the number of events that readers may see. (Of a deleted session it says nothing.) The last ones may
    /// be Buffered: see [`durable_len`](Self::durable_len).
    ///
    /// # Cost
    /// Constant.
    pub fn len(&self) -> u64 {
        self.core().visible(&self.state)
    }

    /// Whether the session has no events.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the number of events that a power cut would leave now.
    pub fn durable_len(&self) -> u64 {
        self.state.lock().end_at(crate::log::tail::UpTo(self.core().journal.durable()))
    }

    /// Appends one event and returns the seq it was given.
    ///
    /// # Durability
    /// By the event's type, unless the store's options say otherwise: `assistant/chunk` is
    /// [`Durability::Buffered`], all else [`Durability::Sync`].
    /// # Cost
    /// One journal frame and a share of one sync, whatever the session's length or fork depth.
    /// # Errors
    /// As [`append_batch`](Self::append_batch).
    /// # Examples
    /// ```
    /// # fn main() -> sessionlog::Result<()> {
    /// use sessionlog::{NewEvent, NewSession, Seq, Store};
    /// let store = Store::in_memory()?;
    /// let session = store.create(NewSession::new())?;
    /// assert_eq!(session.append(NewEvent::user_message("hello"))?, Seq::ZERO);
    /// # Ok(()) }
    /// ```
    pub fn append(&self, event: NewEvent) -> Result<Seq> {
        self.append_with(Append::new(), [event]).map(|seqs| seqs.start)
    }

    /// Appends `events`, in order, as one atomic batch.
    ///
    /// Returns the seqs they were given. An empty batch writes nothing.
    ///
    /// # Durability
    /// Sync when any of the events is: they survive `kill -9` and a power cut once this returns `Ok`. After a crash
    /// the batch is there as a whole or not at all.
    /// # Cost
    /// One journal frame and a share of one sync, whatever the session's length or fork depth. An event that replaces
    /// others is checked against the surface, for which the session is read (without its chunks) as far as this
    /// handle has not done so before.
    /// # Errors
    /// Nothing was written: [`Error::InvalidEvent`], [`Error::InvalidReplace`], [`Error::EventTooLarge`],
    /// [`Error::BatchTooLarge`] (more than 65,536 events or 64 MiB), [`Error::SeqConflict`], [`Error::DiskFull`],
    /// [`Error::Io`] (no journal segment could be made), [`Error::SessionNotFound`] (it was deleted),
    /// [`Error::Closed`], [`Error::CalledFromObserver`]. [`Error::Failed`]: if this call's own write failed the
    /// outcome is unknown; reopen the store and compare [`durable_len`](Self::durable_len).
    pub fn append_batch(&self, events: impl IntoIterator<Item = NewEvent>) -> Result<Range<Seq>> {
        self.append_with(Append::new(), events)
    }

    /// Appends `events` as one atomic batch, with a durability or an expected seq of its own.
    ///
    /// # Errors
    /// As [`append_batch`](Self::append_batch); [`Error::SeqConflict`] when the first event would not be given the
    /// expected seq: another writer was first, and its events are what to read before trying again.
    /// # Examples
    /// ```
    /// # fn main() -> sessionlog::Result<()> {
    /// use sessionlog::{Append, Error, NewEvent, NewSession, Seq, Store};
    /// let store = Store::in_memory()?;
    /// let session = store.create(NewSession::new())?;
    /// session.append_with(Append::new().expect(Seq::ZERO), [NewEvent::user_message("first")])?;
    /// let late = session.append_with(Append::new().expect(Seq::ZERO), [NewEvent::user_message("late")]);
    /// assert!(matches!(late, Err(Error::SeqConflict { actual, .. }) if actual == Seq::new(1)));
    /// # Ok(()) }
    /// ```
    pub fn append_with(&self, how: Append, events: impl IntoIterator<Item = NewEvent>) -> Result<Range<Seq>> {
        let core = self.core();
        let batch = self.check(how, events)?;
        let claimed = batch.claim();
        core.room.take(claimed, &core.health, || core.make_room())?;
        self.append_claimed(how, batch, claimed, || ())
    }

    /// What can be said of a batch before it is known where it goes.
    fn check(&self, how: Append, events: impl IntoIterator<Item = NewEvent>) -> Result<Batch> {
        let core = self.core();
        core.health.check()?;
        core.observers.refuse_own_thread()?;
        Batch::check(core, how, self.state.lock().next(), events)
    }

    /// Appends a batch for which room was taken. `placed` is called when its place in the session is fixed.
    fn append_claimed(
        &self,
        how: Append,
        batch: Batch,
        claimed: u64,
        placed: impl FnOnce(),
    ) -> Result<Range<Seq>> {
        let core = self.core();
        let mut surface = None;
        let queued = self.queue_checked(how, &batch, claimed, &mut surface);
        placed();
        let (ticket, seqs) = match queued {
            Ok(Some(queued)) => queued,
            Ok(None) => {
                core.room.give(claimed);
                let next = Seq::new(self.state.lock().next());
                return Ok(next..next);
            }
            Err(error) => {
                core.room.give(claimed);
                return Err(error);
            }
        };
        // It is in the run by now; what waits need not hold it twice.
        drop(batch);
        core.committer.wait(ticket, core)?;
        if let Some(surface) = surface {
            // All that it has seen is published now.
            self.leave_checkpoint(&surface);
            self.kept.put(surface);
        }
        Ok(seqs)
    }

    /// Gives seqs and timestamps, and puts the run into tail and commit queue. Returns its ticket.
    ///
    /// A batch that replaces something is checked against `surface`, brought up to the batch, and put onto it.
    fn queue(
        &self,
        how: Append,
        batch: &Batch,
        claimed: u64,
        surface: &mut Option<Surface>,
    ) -> Result<Queued> {
        let core = self.core();
        if let Some(at) = self.state.ended.get() {
            return Err(Error::Ended { session: self.state.header.id.clone(), at: Seq::new(*at) });
        }
        let mut tail = self.state.lock();
        if tail.deleted.is_some() {
            drop(tail);
            return Err(self.state.not_found());
        }
        if let Some(ticket) = tail.deleting {
            return Ok(Queued::Deleting(ticket));
        }
        let next = tail.next();
        let conflict = |expected, actual| Error::SeqConflict {
            session: self.state.header.id.clone(),
            expected,
            actual: Seq::new(actual),
        };
        if let Some(expected) = how.expected.filter(|expected| expected.get() != next) {
            return Err(conflict(expected, next));
        }
        if batch.events.is_empty() {
            return Ok(Queued::Nothing);
        }
        for (at, event) in (next..).zip(&batch.events) {
            if let Some(expected) = event.expected_seq.filter(|expected| expected.get() != at) {
                return Err(conflict(expected, at));
            }
        }
        surface::check_sources(next, &batch.last_sources)?;
        if let Some(mut folded) = surface.take() {
            if folded.next_seq().get() < tail.stored.len {
                *surface = Some(folded);
                return Ok(Queued::Behind);
            }
            self.fold_runs(&mut folded, &tail)?;
            let checked = self.check_replaces(&mut folded, batch);
            // A refused batch, and what is in flight, may never come to be: a surface that has seen it is let go.
            if checked.is_ok() || tail.in_flight.is_empty() && batch.events.len() == 1 {
                *surface = Some(folded);
            }
            checked?;
        }
        let now = Timestamp::now();
        let mut encoder = RunEncoder::new(next);
        for event in &batch.events {
            encoder.push(&event.parts(now));
        }
        let run = Arc::new(encoder.finish());
        let end = run.end();
        let last_timestamp = batch.events.last().and_then(|event| event.timestamp).unwrap_or(now);
        let cost = (run.stored_len() as u64 + RUN_OVERHEAD).min(claimed);
        let work = Work::Run { session: Arc::clone(&self.state), run: Arc::clone(&run) };
        let ticket = core.committer.enqueue(Request { work, sync: batch.durability == Durability::Sync })?;
        tail.in_flight.push_back(TailRun { run, commit: 0, last_timestamp, cost });
        drop(tail);
        core.room.give(claimed - cost);
        Ok(Queued::At(ticket, Seq::new(next)..Seq::new(end)))
    }

    /// Reads from `from`, inclusive, to the present end.
    ///
    /// At the end this gives no event; to wait for some there is [`follow`](Self::follow).
    ///
    /// # Cost
    /// A seek, then a share of one block for each event; nothing for events before `from`.
    /// # Errors
    /// [`Error::SeqBeyondEnd`] beyond the end; [`Error::SessionNotFound`] when the session was deleted.
    pub fn read_from(&self, from: Seq) -> Result<Events> {
        self.state.check_exists()?;
        let len = self.len();
        if from.get() > len {
            return Err(Error::SeqBeyondEnd { session: self.id().clone(), from, len });
        }
        self.events(from.get()..len, false)
    }

    /// Reads the events of `range`, half open; what of it lies beyond the present end is cut.
    ///
    /// # Errors
    /// [`Error::SeqBeyondEnd`] when it starts beyond the end; [`Error::SessionNotFound`] when the session was deleted.
    pub fn read_range(&self, range: Range<Seq>) -> Result<Events> {
        self.events(self.within(range)?, false)
    }

    /// Reads the events of `range` in descending order.
    ///
    /// # Errors
    /// As [`read_range`](Self::read_range).
    pub fn read_reverse(&self, range: Range<Seq>) -> Result<Events> {
        self.events(self.within(range)?, true)
    }

    /// Reads the last `count` events, ascending; all of them when there are fewer.
    ///
    /// # Errors
    /// As reading: see [`Events`].
    pub fn last(&self, count: u64) -> Result<Events> {
        let len = self.len();
        self.events(len.saturating_sub(count)..len, false)
    }

    fn within(&self, range: Range<Seq>) -> Result<Range<u64>> {
        self.state.check_exists()?;
        let len = self.len();
        let (from, to) = (range.start.get(), range.end.get().min(len));
        if from > len {
            return Err(Error::SeqBeyondEnd { session: self.id().clone(), from: range.start, len });
        }
        Ok(from..to.max(from))
    }

    fn events(&self, range: Range<u64>, reverse: bool) -> Result<Events> {
        if self.core().health.is_closed() {
            return Err(Error::Closed);
        }
        Events::new(self.handle.clone(), Arc::clone(&self.state), range, reverse)
    }

    /// Reads from `from` on and then waits for what is appended: no gap, no repeat. `from` may lie beyond the end.
    ///
    /// # Errors
    /// [`Error::Closed`], [`Error::SessionNotFound`].
    pub fn follow(&self, from: Seq) -> Result<Follow> {
        if self.core().health.is_closed() {
            return Err(Error::Closed);
        }
        self.state.check_exists()?;
        Ok(Follow::new(self.handle.clone(), Arc::clone(&self.state), from))
    }

    /// Forks the session: the new one, with a minted id, shares the first `at` events and goes on by itself.
    ///
    /// No event is copied, and what is appended to this session later does not show in the fork.
    ///
    /// # Durability
    /// Survives `kill -9` and a power cut when it returns.
    /// # Cost
    /// One journal frame and a share of one sync, whatever the length or depth.
    /// # Errors
    /// [`Error::ForkBeyondEnd`]; [`Error::SessionNotFound`] when this session was deleted; as
    /// [`Store::create`](crate::Store::create).
    pub fn fork(&self, at: Seq) -> Result<Session> {
        fork(&self.handle, &self.state, at, NewSession::new())
    }
}

/// What became of a batch in the commit queue.
enum Queued {
    /// It has this ticket, and its events have these seqs.
    At(u64, Range<Seq>),
    /// It is empty.
    Nothing,
    /// The surface has not seen what blocks hold.
    Behind,
    /// A deletion with this ticket is under way: whether the session stays is not known yet.
    Deleting(u64),
}

/// Events that were checked, before the session's lock is taken.
struct Batch {
    events: Vec<NewEvent>,
    line_bytes: u64,
    durability: Durability,
    /// Whether one of them replaces something.
    replaces: bool,
    /// Of events that replace nothing and name sources: the index, and the last source.
    last_sources: Vec<(usize, Seq)>,
}

impl Batch {
    /// How much room it takes at most: stored form is shorter than the lines.
    fn claim(&self) -> u64 {
        self.line_bytes + RUN_OVERHEAD
    }

    fn check(
        core: &Core,
        how: Append,
        next: u64,
        events: impl IntoIterator<Item = NewEvent>,
    ) -> Result<Self> {
        let mut batch = Self {
            events: Vec::new(),
            line_bytes: 0,
            durability: how.durability.unwrap_or(Durability::Buffered),
            replaces: false,
            last_sources: Vec::new(),
        };
        let now = Timestamp::now();
        let events = events.into_iter();
        batch.events.reserve(events.size_hint().0.min(MAX_BATCH_EVENTS));
        for (index, event) in events.enumerate() {
            event.validate().map_err(|source| Error::InvalidEvent { index, source })?;
            // The seq is given later: should other appends come between, it may have a digit more.
            let seq = Seq::new(next.saturating_add(index as u64));
            let bytes = crate::event::line_len(seq, &event.parts(now));
            if bytes > core.max_event_bytes {
                return Err(Error::EventTooLarge { index, bytes, max_bytes: core.max_event_bytes });
            }
            batch.line_bytes += bytes;
            if index >= MAX_BATCH_EVENTS || batch.line_bytes > MAX_BATCH_BYTES {
                return Err(Error::BatchTooLarge {
                    events: index + 1,
                    bytes: batch.line_bytes,
                    max_events: MAX_BATCH_EVENTS,
                    max_bytes: MAX_BATCH_BYTES,
                });
            }
            if how.durability.is_none() && core.durability.of(&event.kind) == Durability::Sync {
                batch.durability = Durability::Sync;
            }
            if how.recorded {
                // What it does to the surface is told where the surface is made.
            } else if event.surface_op() != SurfaceOp::Append {
                batch.replaces = true;
            } else if let Some(last) = event.source_event_seqs().into_iter().max() {
                batch.last_sources.push((index, last));
            }
            batch.events.push(event);
        }
        Ok(batch)
    }
}

pub(crate) fn header(core: &Core, state: &SessionState) -> Result<SessionHeader> {
    state.check_exists()?;
    let parent = match state.header.parent {
        Some((key, prefix_len)) => {
            let parent = core.catalog.by_key(key, core.storage.as_ref())?;
            let parent = parent.filter(|parent| !parent.is_deleted());
            Some(Parent { session: parent.map(|parent| parent.header.id.clone()), prefix_len })
        }
        None => None,
    };
    Ok(SessionHeader {
        id: state.header.id.clone(),
        created_at: state.header.created,
        parent,
        meta: state.header.meta.clone(),
        extra: state.header.extra.clone(),
    })
}

pub(crate) fn info(core: &Core, state: &SessionState) -> Result<SessionInfo> {
    let up_to = core.up_to();
    let (len, updated_at, labels) = {
        let tail = state.lock();
        (tail.visible(up_to), tail.updated(up_to), tail.labels.now.as_ref().clone())
    };
    Ok(SessionInfo { header: header(core, state)?, len, updated_at, labels })
}
