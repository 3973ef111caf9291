//! A session in the making: written like any other, and seen by nobody until it is published as a whole.

use std::ops::Range;
use std::sync::Arc;

use super::Session;
use crate::error::{Error, Result};
use crate::event::NewEvent;
use crate::id::{Seq, SessionId};
use crate::labels::{LabelChange, Labels};
use crate::log::commit::{Request, Work};
use crate::log::core::Core;
use crate::log::hidden::abandon;
use crate::log::tail::{SessionState, Tail};
use crate::options::{Append, NewSession};
use crate::store::Store;

/// A session that is written and that nobody sees until [`publish`](Self::publish): what an import makes.
///
/// It is in no list and found by no id, and its id stays free until then. Dropped without being published, or left
/// behind by a crash, it is as if it had never been: what was stored of it goes in the background, or at the next open.
/// The observer is not told of its events.
///
/// ```
/// # fn main() -> sessionlog::Result<()> {
/// use sessionlog::{LabelChange, NewEvent, NewSession, Store};
/// let store = Store::in_memory()?;
/// let hidden = store.create_hidden(NewSession::with_id("from-afar".parse()?))?;
/// hidden.append_batch([NewEvent::user_message("hi")])?;
/// assert_eq!(store.list()?.count(), 0);
/// let session = hidden.publish(LabelChange::new().title("From afar"))?;
/// assert_eq!(session.len(), 1);
/// # Ok(()) }
/// ```
#[derive(Debug)]
pub struct HiddenSession {
    session: Session,
    published: bool,
}

impl Store {
    /// Creates a session that nobody sees until it is published.
    ///
    /// # Errors
    /// As [`create`](Self::create).
    pub fn create_hidden(&self, new: NewSession) -> Result<HiddenSession> {
        let session = crate::store::create_hidden(self.handle(), new, None)?;
        Ok(HiddenSession { session, published: false })
    }

    /// Creates a fork of `parent` at `at` that nobody sees until it is published. It gets none of the parent's
    /// metadata.
    ///
    /// # Errors
    /// As [`fork`](Self::fork).
    pub fn fork_hidden(&self, parent: &SessionId, at: Seq, new: NewSession) -> Result<HiddenSession> {
        let parent = self.session(parent)?;
        let session = crate::store::create_hidden(self.handle(), new, Some((parent.state(), at.get())))?;
        Ok(HiddenSession { session, published: false })
    }
}

impl HiddenSession {
    /// Returns the id that it will have.
    pub fn id(&self) -> &SessionId {
        self.session.id()
    }

    /// Returns the number of its events, those that it shares included.
    pub fn len(&self) -> u64 {
        self.session.len()
    }

    /// Whether it has no events.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Appends `events` as one batch: see [`Append::recorded`]. They are durable when the session is published.
    ///
    /// # Cost
    /// One journal frame, without a sync of its own; waits for the drain when that is behind.
    /// # Errors
    /// As [`Session::append_batch`].
    pub fn append_batch(&self, events: impl IntoIterator<Item = NewEvent>) -> Result<Range<Seq>> {
        self.session.append_with(Append::new().recorded().buffered(), events)
    }

    /// Shows the session to everybody, as a whole, with the title and labels that `labels` sets.
    ///
    /// # Durability
    /// All of it survives `kill -9` and a power cut when this returns.
    /// # Errors
    /// [`Error::SessionExists`]: the id was taken meanwhile. [`Error::SessionNotFound`]: the session that it was forked
    /// from was deleted meanwhile. As [`Session::label`]. Unless it is [`Error::Failed`], after which the outcome is
    /// known when the store was opened again, nothing is left of it.
    pub fn publish(mut self, labels: LabelChange) -> Result<Session> {
        let labels = Arc::new(Labels::default().changed(&labels)?);
        let core = self.session.core();
        core.health.check()?;
        core.observers.refuse_own_thread()?;
        let state = &self.session.state;
        let ticket = loop {
            match queue(core, state, &labels)? {
                Queued::At(ticket) => break ticket,
                Queued::Deleting(ticket) => core.committer.wait_for_other(ticket, core)?,
            }
        };
        core.committer.wait(ticket, core)?;
        self.published = true;
        Ok(self.session.clone())
    }
}

impl Drop for HiddenSession {
    fn drop(&mut self) {
        if !self.published {
            abandon(self.session.core(), self.session.state());
        }
    }
}

/// What became of a publication.
enum Queued {
    /// It is in the commit queue with this ticket.
    At(u64),
    /// The parent's deletion, with this ticket, is under way: whether it stays is not known yet.
    Deleting(u64),
}

/// Checks and queues under one lock: nobody takes the id, or deletes the parent, in between.
fn queue(core: &Core, state: &Arc<SessionState>, labels: &Arc<Labels>) -> Result<Queued> {
    let mut used = core.catalog.lock();
    let storage = core.storage.as_ref();
    let before = used.by_id(&state.header.id, storage)?;
    let stays = |tail: &Tail| tail.deleting.is_none() && tail.deleted.is_none();
    if before.is_some_and(|before| stays(&before.lock())) {
        return Err(Error::SessionExists { session: state.header.id.clone() });
    }
    if let Some((key, _)) = state.header.parent {
        let Some(parent) = used.by_key(key, storage)? else {
            return Err(Error::SessionNotFound { session: key.to_id() });
        };
        let tail = parent.lock();
        if let Some(ticket) = tail.deleting {
            return Ok(Queued::Deleting(ticket));
        }
        if tail.deleted.is_some() {
            return Err(Error::SessionNotFound { session: parent.header.id.clone() });
        }
    }
    let work = Work::Publish { session: Arc::clone(state), labels: Arc::clone(labels) };
    let ticket = core.committer.enqueue(Request { work, sync: true })?;
    used.add(state);
    Ok(Queued::At(ticket))
}
