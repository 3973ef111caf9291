//! A session's messages, and the check of what replaces others before it is appended.

use std::ops::Range;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::{Batch, Queued, Session};
use crate::error::{Error, EventError, EventFault, Result};
use crate::format::Sections;
use crate::id::Seq;
use crate::log::spawn;
use crate::log::tail::Tail;
use crate::options::Append;
use crate::surface::{Message, Surface, SurfaceOptions};

/// The largest surface that a handle keeps, in bytes: beyond what any model reads.
const KEPT_BYTES: usize = 4 << 20;

/// After how many events messages are made ahead.
const RENDERED_EVENTS: usize = 256;

/// A surface that a handle keeps for its next use. It has seen published events only.
///
/// It is taken out while it is used, so nobody waits for it: who comes meanwhile folds anew.
#[derive(Clone, Debug, Default)]
pub(super) struct Kept(Arc<Mutex<Option<Surface>>>);

impl Kept {
    fn lock(&self) -> MutexGuard<'_, Option<Surface>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes the surface, unless it has seen more than readers may see: the store has failed since.
    fn take(&self, visible: u64) -> Surface {
        let kept = self.lock().take();
        kept.filter(|surface| surface.next_seq().get() <= visible).unwrap_or_default()
    }

    /// Puts back what has seen more than what is there.
    pub(super) fn put(&self, surface: Surface) {
        let mut kept = self.lock();
        let is_ahead = kept.as_ref().is_none_or(|other| other.next_seq() < surface.next_seq());
        if is_ahead && surface.bytes() <= KEPT_BYTES {
            *kept = Some(surface);
        }
    }
}

impl Session {
    /// Returns the messages of the next request: the chat API's array. It can be sent whatever was logged; see
    /// [`Surface::messages`].
    ///
    /// # Cost
    /// The first call reads the events behind the session's checkpoint, or all, without chunks; this handle and its
    /// clones keep what they made of them (up to 4 MiB), so the next call reads only what is new. A harness that
    /// wants no copy of the messages, to know what was mended, or larger ones, keeps a [`surface`](Self::surface).
    /// # Errors
    /// As reading: see [`Events`](crate::Events).
    /// # Examples
    /// ```
    /// # fn main() -> sessionlog::Result<()> {
    /// use sessionlog::{NewEvent, NewSession, Store};
    /// let store = Store::in_memory()?;
    /// let session = store.create(NewSession::new())?;
    /// session.append(NewEvent::user_message("What is 2 + 2?"))?;
    /// session.append(NewEvent::tool_call("c1", "calculator", serde_json::json!({"expression": "2 + 2"})))?;
    /// session.append(NewEvent::tool_result("c1", serde_json::json!(4)))?;
    /// let roles: Vec<_> = session.messages()?.iter().map(|message| message.role()).collect();
    /// assert_eq!(roles, ["user", "assistant", "tool"]);
    /// # Ok(()) }
    /// ```
    pub fn messages(&self) -> Result<Vec<Message>> {
        let mut surface = self.kept.take(self.len());
        let len = self.up_to(surface.next_seq().get())?;
        self.fold_rendering(&mut surface, len)?;
        self.leave_checkpoint(&surface);
        if surface.bytes() > KEPT_BYTES {
            return Ok(last_messages(surface));
        }
        let messages = surface.messages().to_vec();
        self.kept.put(surface);
        Ok(messages)
    }

    /// Returns the messages as they were when the session had `at` events.
    ///
    /// # Cost
    /// The events before `at` are read, without chunks; where the session's checkpoint lies before `at`, those behind it.
    /// # Errors
    /// [`Error::SeqBeyondEnd`] beyond the end; as reading.
    /// # Examples
    /// ```
    /// # fn main() -> sessionlog::Result<()> {
    /// use sessionlog::{NewEvent, NewSession, Seq, Store};
    /// let store = Store::in_memory()?;
    /// let session = store.create(NewSession::new())?;
    /// session.append_batch(["one", "two", "three"].map(NewEvent::user_message))?;
    /// assert_eq!(session.messages_at(Seq::new(2))?.len(), 2);
    /// # Ok(()) }
    /// ```
    pub fn messages_at(&self, at: Seq) -> Result<Vec<Message>> {
        self.up_to(at.get())?;
        let mut surface = Surface::default();
        self.fold_rendering(&mut surface, at.get())?;
        Ok(last_messages(surface))
    }

    /// Returns the session's surface: for the messages, what was mended in them, and where they come from.
    ///
    /// # Cost
    /// The events behind the session's checkpoint, or all, are read, without chunks; afterwards
    /// [`advance`](Self::advance) reads only what is new.
    /// # Errors
    /// As reading: see [`Events`](crate::Events).
    pub fn surface(&self) -> Result<Surface> {
        let mut surface = Surface::default();
        self.advance(&mut surface)?;
        Ok(surface)
    }

    /// Returns the surface as it was when the session had `at` events.
    ///
    /// # Cost
    /// As [`messages_at`](Self::messages_at).
    /// # Errors
    /// [`Error::SeqBeyondEnd`] beyond the end; as reading.
    pub fn surface_at(&self, at: Seq) -> Result<Surface> {
        self.up_to(at.get())?;
        let mut surface = self.begin_surface(at.get(), SurfaceOptions::new());
        self.fold(&mut surface, at.get())?;
        Ok(surface)
    }

    /// Brings a surface of this session up to its present end, or starts one that is new.
    ///
    /// # Cost
    /// The events that it has not seen are read, without chunks; a new one begins at the session's checkpoint.
    /// # Errors
    /// [`Error::SeqBeyondEnd`] when it has seen more than there is: the store has failed since, or it is another
    /// session's. As reading: what was read before the error is folded, and a later call goes on from there.
    /// # Examples
    /// ```
    /// # fn main() -> sessionlog::Result<()> {
    /// use sessionlog::{NewEvent, NewSession, Store, Surface, SurfaceOptions};
    /// let store = Store::in_memory()?;
    /// let session = store.create(NewSession::new())?;
    /// let mut surface = Surface::new(SurfaceOptions::new().results_as_json(true));
    /// session.append(NewEvent::user_message("hello"))?;
    /// session.advance(&mut surface)?;
    /// assert_eq!(surface.messages().len(), 1);
    /// # Ok(()) }
    /// ```
    pub fn advance(&self, surface: &mut Surface) -> Result<()> {
        let len = self.up_to(surface.next_seq().get())?;
        if surface.next_seq() > Seq::ZERO {
            return self.fold(surface, len);
        }
        *surface = self.begin_surface(len, surface.options());
        self.fold(surface, len)?;
        // Only one that saw all of this session here: what a caller folded by itself may be anything.
        self.leave_checkpoint(surface);
        Ok(())
    }

    /// Returns the present end, which must not lie before `at`.
    fn up_to(&self, at: u64) -> Result<u64> {
        self.state.check_exists()?;
        let len = self.len();
        if at > len {
            return Err(Error::SeqBeyondEnd { session: self.id().clone(), from: Seq::new(at), len });
        }
        Ok(len)
    }

    /// Folds for who wants the messages and nothing else: they are made while blocks are unpacked.
    fn fold_rendering(&self, surface: &mut Surface, to: u64) -> Result<()> {
        if surface.next_seq() == Seq::ZERO {
            *surface = self.begin_surface(to, surface.options());
        }
        let events = self.events(surface.next_seq().get()..to, false)?;
        let mut unmade = 0;
        events.for_surface(|event| {
            surface.take(event);
            unmade += 1;
            if unmade == RENDERED_EVENTS {
                surface.render_ahead();
                unmade = 0;
            }
        })?;
        surface.pass_to(to);
        Ok(())
    }

    fn fold(&self, surface: &mut Surface, to: u64) -> Result<()> {
        let events = self.events(surface.next_seq().get()..to, false)?;
        events.for_surface(|event| surface.take(event))?;
        surface.pass_to(to);
        Ok(())
    }

    /// Queues a batch; one that replaces something is checked against the surface at exactly its place.
    ///
    /// What is published is folded before the session's lock is taken, the little that came since under it, also what
    /// is still in flight: so the surface that is left in `surface` is true only once the batch is published.
    pub(super) fn queue_checked(
        &self,
        how: Append,
        batch: &Batch,
        claimed: u64,
        surface: &mut Option<Surface>,
    ) -> Result<Option<(u64, Range<Seq>)>> {
        if batch.replaces {
            *surface = Some(self.kept.take(self.len()));
        }
        loop {
            if let Some(surface) = surface {
                self.advance(surface)?;
            }
            match self.queue(how, batch, claimed, surface) {
                Ok(Queued::At(ticket, seqs)) => return Ok(Some((ticket, seqs))),
                Ok(Queued::Nothing) => return Ok(None),
                Ok(Queued::Deleting(ticket)) => self.core().committer.wait_for_other(ticket, self.core())?,
                // A drain has moved events into blocks that this has not read yet. Drains are rare.
                Ok(Queued::Behind) => {}
                Err(error) => {
                    // Refused before it was queued: unless `queue` let go of it, the surface has not seen it.
                    let refused = matches!(
                        error,
                        Error::InvalidReplace { .. } | Error::InvalidEvent { .. } | Error::SeqConflict { .. }
                    );
                    if let Some(surface) = surface.take().filter(|_| refused) {
                        self.kept.put(surface);
                    }
                    return Err(error);
                }
            }
        }
    }

    /// Folds what is not in blocks, published or not.
    pub(super) fn fold_runs(&self, surface: &mut Surface, tail: &Tail) -> Result<()> {
        let seen = surface.next_seq().get();
        let first = tail.runs.partition_point(|run| run.run.end() <= seen);
        for run in tail.runs.iter().skip(first).chain(&tail.in_flight).map(|run| &run.run) {
            let skip = u32::try_from(surface.next_seq().get().saturating_sub(run.first_seq));
            let mut events = Vec::new();
            let decoded =
                run.view().decode(skip.unwrap_or(u32::MAX), u32::MAX, Sections::ForSurface, &mut events);
            decoded.map_err(|error| error.at(self.state.place(run.first_seq)))?;
            for event in events {
                surface.take(event);
            }
            surface.pass_to(run.end());
        }
        Ok(())
    }

    /// Checks what a batch replaces, each event as if those before it were there, and folds it.
    pub(super) fn check_replaces(&self, surface: &mut Surface, batch: &Batch) -> Result<()> {
        for (index, event) in batch.events.iter().enumerate() {
            surface.check(event).map_err(|fault| Error::InvalidReplace {
                session: self.id().clone(),
                index,
                fault,
            })?;
            surface.push_parts(surface.next_seq().get(), &event.kind, event.surface_op.as_ref());
        }
        Ok(())
    }
}

/// The messages of a surface that nobody needs any more. To free a large one takes a fifth of the time that it took to
/// make: nobody waits for that.
fn last_messages(mut surface: Surface) -> Vec<Message> {
    let messages = surface.take_messages();
    if surface.bytes() > KEPT_BYTES {
        // Without a thread it is freed here.
        let _ = spawn("sessionlog-free", move || drop(surface));
    }
    messages
}

/// Checks that sources are earlier events than those that name them, in a batch that begins at `next`. Those of a replace
/// are checked with it.
pub(super) fn check_sources(next: u64, last_sources: &[(usize, Seq)]) -> Result<()> {
    let later = last_sources.iter().find(|(index, last)| last.get() >= next.saturating_add(*index as u64));
    match later {
        Some((index, _)) => {
            let fault = EventFault::Invalid { reason: "a source must be an earlier event" };
            let source = EventError::new(fault).field("sourceEventSeqs");
            Err(Error::InvalidEvent { index: *index, source })
        }
        None => Ok(()),
    }
}
