//! Appends and followers for callers that must not be blocked.

use std::fmt;
use std::future::Future;
use std::ops::Range;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, Waker};

use futures_core::Stream;

use super::{Batch, Queued, Session};
use crate::error::{Error, Result};
use crate::event::{Event, NewEvent};
use crate::id::Seq;
use crate::log::follow::Follow;
use crate::options::Append;

impl Session {
    /// Appends `events` as one atomic batch, as [`append_with`](Self::append_with) does, without blocking the caller.
    ///
    /// The future is ready, with the seqs, when the batch is as durable as it was asked for. The batch is on its way
    /// when this function returns, whether the future is polled or not; dropping it takes nothing back. The future needs
    /// no particular runtime.
    ///
    /// # Order
    /// As that of the calls, also with those that are not async: whoever appends to this session when this has returned
    /// comes behind it. One exception: events that replace others are checked first, on a thread of the store, and those
    /// who call meanwhile may come before them.
    /// # Cost
    /// The caller encodes the batch and takes two short locks. Batches that are on their way together share a sync. While
    /// there is no room in the tail, or the batch replaces something, it waits in memory: who does not await bounds by
    /// himself how much that is.
    /// # Errors
    /// As [`append_batch`](Self::append_batch), by the future. [`Error::Closed`] when the store is closed meanwhile.
    /// # Examples
    /// ```
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// use sessionlog::{Append, NewEvent, NewSession, Seq, Store};
    /// let store = Store::in_memory()?;
    /// let session = store.create(NewSession::new())?;
    /// # let runtime = tokio::runtime::Builder::new_current_thread().build()?;
    /// # runtime.block_on(async {
    /// let first = session.append_async(Append::new(), [NewEvent::user_message("first")]);
    /// let second = session.append_async(Append::new(), [NewEvent::user_message("second")]);
    /// assert_eq!(second.await?, Seq::new(1)..Seq::new(2));
    /// assert_eq!(first.await?, Seq::ZERO..Seq::new(1));
    /// # Ok::<(), sessionlog::Error>(()) })?;
    /// # Ok(()) }
    /// ```
    pub fn append_async(&self, how: Append, events: impl IntoIterator<Item = NewEvent>) -> AppendFuture {
        let (promise, future) = promise();
        let batch = match self.check(how, events) {
            Ok(batch) => batch,
            Err(error) => {
                promise.keep(Err(error));
                return future;
            }
        };
        let claimed = batch.claim();
        let place = self.core().room.enter(claimed);
        if place.is_none() && !batch.replaces {
            match self.queue(how, &batch, claimed, &mut None) {
                Ok(Queued::At(ticket, seqs)) => {
                    let session = self.clone();
                    self.core().later.add(move || {
                        let core = session.core();
                        promise.keep(core.committer.wait(ticket, core).map(|()| seqs));
                    });
                    return future;
                }
                // What has to wait, or finds nothing to do, is told by the same code as everywhere.
                Ok(Queued::Deleting(_) | Queued::Behind | Queued::Nothing) => {}
                Err(error) => {
                    self.core().room.give(claimed);
                    promise.keep(Err(error));
                    return future;
                }
            }
        }
        let session = self.clone();
        self.core().later.add(move || promise.keep(session.append_at(place, how, batch, claimed)));
        future
    }

    fn append_at(&self, place: Option<u64>, how: Append, batch: Batch, claimed: u64) -> Result<Range<Seq>> {
        let core = self.core();
        let leave = || place.into_iter().for_each(|place| core.room.leave(place));
        if let Some(place) = place
            && let Err(error) = core.room.wait(place, claimed, &core.health, || core.make_room())
        {
            leave();
            return Err(error);
        }
        // Left only now: who came later would else be queued first.
        self.append_claimed(how, batch, claimed, leave)
    }

    /// Follows the session as [`follow`](Self::follow) does, as a stream.
    ///
    /// The stream is woken by each commit to the session. What it reads from blocks it reads when it is polled: for a long
    /// history that is work of milliseconds, which a runtime wants on a thread for such things.
    ///
    /// # Errors
    /// As [`follow`](Self::follow).
    /// # Examples
    /// ```
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// use std::future::poll_fn;
    /// use std::pin::Pin;
    /// use sessionlog::{NewEvent, NewSession, Seq, Store, Stream};
    /// let store = Store::in_memory()?;
    /// let session = store.create(NewSession::new())?;
    /// session.append(NewEvent::user_message("hello"))?;
    /// # let runtime = tokio::runtime::Builder::new_current_thread().build()?;
    /// # runtime.block_on(async {
    /// let mut events = session.follow_async(Seq::ZERO)?;
    /// let first = poll_fn(|context| Pin::new(&mut events).poll_next(context)).await;
    /// assert_eq!(first.unwrap()?.seq, Seq::ZERO);
    /// # Ok::<(), sessionlog::Error>(()) })?;
    /// # Ok(()) }
    /// ```
    pub fn follow_async(&self, from: Seq) -> Result<FollowStream> {
        Ok(FollowStream(self.follow(from)?))
    }
}

/// The seqs of a batch, once it is durable. Made by [`Session::append_async`].
#[must_use = "without it nobody knows whether the events were stored"]
pub struct AppendFuture(Arc<Mutex<Promised>>);

impl fmt::Debug for AppendFuture {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("AppendFuture")
    }
}

impl Future for AppendFuture {
    type Output = Result<Range<Seq>>;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let mut promised = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        match promised.result.take() {
            Some(result) => Poll::Ready(result),
            None => {
                promised.waker = Some(context.waker().clone());
                Poll::Pending
            }
        }
    }
}

#[derive(Default)]
struct Promised {
    result: Option<Result<Range<Seq>>>,
    told: bool,
    waker: Option<Waker>,
}

/// The other end of a future: kept, or broken when it is dropped.
struct Promise(Arc<Mutex<Promised>>);

fn promise() -> (Promise, AppendFuture) {
    let promised = Arc::default();
    (Promise(Arc::clone(&promised)), AppendFuture(promised))
}

impl Promise {
    fn keep(self, result: Result<Range<Seq>>) {
        self.tell(result);
    }

    fn tell(&self, result: Result<Range<Seq>>) {
        let mut promised = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        promised.result = Some(result);
        promised.told = true;
        let waker = promised.waker.take();
        drop(promised);
        waker.into_iter().for_each(Waker::wake);
    }
}

impl Drop for Promise {
    fn drop(&mut self) {
        let told = self.0.lock().unwrap_or_else(PoisonError::into_inner).told;
        if !told {
            self.tell(Err(Error::Closed));
        }
    }
}

/// Events of a session from some seq on, and those to come. Made by [`Session::follow_async`].
///
/// It says what [`Follow`] says, in the same order, and ends with it.
#[derive(Debug)]
pub struct FollowStream(Follow);

impl FollowStream {
    /// Returns the seq of the event that comes next.
    pub fn next_seq(&self) -> Seq {
        self.0.next_seq()
    }
}

impl Stream for FollowStream {
    type Item = Result<Event>;

    fn poll_next(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        self.get_mut().0.poll(context.waker())
    }
}
