//! History, then what comes: without a gap, without a repeat.

use std::fmt;
use std::sync::Arc;
use std::time::{Duration, Instant};

use super::reader::Events;
use super::tail::SessionState;
use crate::error::{Error, Result};
use crate::event::Event;
use crate::id::Seq;
use crate::store::Handle;

/// How long one wait lasts at most before the store's health is looked at.
const LOOK: Duration = Duration::from_secs(1);

/// Events of a session from some seq on, waiting for those to come.
///
/// It takes nothing from appends: a slow one reads later what it missed. It hears events as soon as readers may see
/// them, so it may hear Buffered ones that a power cut still loses; when the store fails, it ends with
/// [`Failed`](crate::Error::Failed) behind the last durable one it had not passed. After the store was closed it
/// ends. When the session is deleted, it ends with [`SessionNotFound`](crate::Error::SessionNotFound).
pub struct Follow {
    handle: Handle,
    session: Arc<SessionState>,
    next: u64,
    events: Option<Events>,
    finished: bool,
}

impl fmt::Debug for Follow {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Follow")
            .field("session", &self.session.header.id)
            .field("next", &self.next)
            .finish_non_exhaustive()
    }
}

impl Follow {
    pub(crate) fn new(handle: Handle, session: Arc<SessionState>, from: Seq) -> Self {
        Self { handle, session, next: from.get(), events: None, finished: false }
    }

    /// Returns the next event, waiting for it at most `limit`; `None` when there was none in that time, or when the
    /// store was closed.
    ///
    /// # Errors
    /// As reading; [`Failed`](crate::Error::Failed) when the store failed. It then is at its end.
    pub fn next_timeout(&mut self, limit: Duration) -> Result<Option<Event>> {
        self.wait_until(Instant::now().checked_add(limit))
    }

    /// Returns the seq of the event that comes next.
    pub fn next_seq(&self) -> Seq {
        Seq::new(self.next)
    }

    fn wait_until(&mut self, deadline: Option<Instant>) -> Result<Option<Event>> {
        let outcome = self.try_until(deadline);
        self.finished |= outcome.is_err();
        outcome
    }

    /// Gives the next event if it is there; else `waker` is woken when there may be one.
    #[cfg(feature = "async")]
    pub(crate) fn poll(&mut self, waker: &std::task::Waker) -> std::task::Poll<Option<Result<Event>>> {
        use std::task::Poll;
        let no_wait = Some(Instant::now());
        loop {
            if self.finished {
                return Poll::Ready(None);
            }
            match self.wait_until(no_wait).transpose() {
                Some(event) => return Poll::Ready(Some(event)),
                None if self.finished => return Poll::Ready(None),
                None => {}
            }
            let core = self.handle.core();
            let still = || !core.health.is_failed() && !core.health.is_closed();
            if self.session.wake_beyond(self.next, core.up_to(), waker, still) {
                return Poll::Pending;
            }
        }
    }

    fn try_until(&mut self, deadline: Option<Instant>) -> Result<Option<Event>> {
        let core = Arc::clone(self.handle.core());
        while !self.finished {
            if let Some(event) = self.events.as_mut().and_then(Iterator::next) {
                let event = event?;
                self.next = event.seq.get() + 1;
                return Ok(Some(event));
            }
            self.events = None;
            self.session.check_exists()?;
            let visible = core.visible(&self.session);
            if core.health.is_closed() {
                // What was not heard is an error, not an end.
                self.finished = true;
                return if self.next < visible { Err(Error::Closed) } else { Ok(None) };
            }
            if self.next < visible {
                let range = self.next..visible;
                self.events =
                    Some(Events::new(self.handle.clone(), Arc::clone(&self.session), range, false)?);
                continue;
            }
            core.health.check()?;
            let now = Instant::now();
            let left = deadline.map_or(LOOK, |deadline| deadline.saturating_duration_since(now));
            if left.is_zero() {
                break;
            }
            let still = || !core.health.is_failed() && !core.health.is_closed();
            self.session.wait_beyond(self.next, core.up_to(), left.min(LOOK), still);
        }
        Ok(None)
    }
}

impl Iterator for Follow {
    type Item = Result<Event>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.finished {
            return None;
        }
        self.wait_until(None).transpose()
    }
}
