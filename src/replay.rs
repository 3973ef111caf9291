//! A session played again: its events at the pace of their timestamps, to whoever takes them, or into another session.

use std::fmt;
use std::ops::Range;
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::{Duration, Instant};

use crate::error::{Error, EventError, EventFault, Result};
use crate::event::{Event, NewEvent, SurfaceOp};
use crate::id::{Seq, Timestamp};
use crate::log::reader::Events;
use crate::options::Append;
use crate::session::Session;

/// How fast a session is replayed.
///
/// ```
/// use std::time::Duration;
/// use sessionlog::Pace;
/// let twice_as_fast = Pace::scaled(2.0).unwrap().longest_pause(Duration::from_secs(3));
/// assert!(Pace::scaled(0.0).is_none());
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Pace {
    /// `None`: without pauses.
    speed: Option<f64>,
    longest: Option<Duration>,
}

impl Pace {
    /// As fast as the events can be read and taken.
    pub const fn fastest() -> Self {
        Self { speed: None, longest: None }
    }

    /// With the recorded pauses.
    pub const fn recorded() -> Self {
        Self { speed: Some(1.0), longest: None }
    }

    /// `speed` times as fast as recorded. `None` unless it is a number above 0.
    pub fn scaled(speed: f64) -> Option<Self> {
        (speed.is_finite() && speed > 0.0).then_some(Self { speed: Some(speed), longest: None })
    }

    /// Cuts pauses, as they are waited for, to `limit`: nobody wants to see again how a session lay idle overnight.
    #[must_use]
    pub const fn longest_pause(mut self, limit: Duration) -> Self {
        self.longest = Some(limit);
        self
    }

    /// How long to wait between events of these timestamps. A clock that was set back gives no pause.
    fn pause(self, before: Timestamp, now: Timestamp) -> Duration {
        let Some(speed) = self.speed else { return Duration::ZERO };
        let millis = now.as_millis().saturating_sub(before.as_millis());
        let recorded = Duration::from_millis(u64::try_from(millis).unwrap_or(0));
        let scaled = Duration::try_from_secs_f64(recorded.as_secs_f64() / speed).unwrap_or(Duration::MAX);
        scaled.min(self.longest.unwrap_or(Duration::MAX))
    }
}

/// Events of a session, given as they happened; see [`Session::replay`].
///
/// Its range is fixed when it is made. Order is that of seqs, whatever the timestamps say. Pauses are counted from the
/// first event on: who takes events slower than they were recorded is not held up further, and the replay catches up.
/// The first error is the last item. It keeps the store open.
pub struct Replay {
    events: Events,
    /// The event that comes next.
    next: Seq,
    pace: Pace,
    /// The timestamp of the last event, and when it was due.
    last: Option<(Timestamp, Duration)>,
    clock: Box<dyn Clock>,
    stop: StopReplay,
    finished: bool,
}

impl fmt::Debug for Replay {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Replay")
            .field("next", &self.next)
            .field("pace", &self.pace)
            .field("finished", &self.finished)
            .finish_non_exhaustive()
    }
}

impl Replay {
    pub(crate) fn new(from: Seq, events: Events, pace: Pace) -> Self {
        Self::with_clock(from, events, pace, Box::new(Wall(None)))
    }

    fn with_clock(from: Seq, events: Events, pace: Pace, clock: Box<dyn Clock>) -> Self {
        let stop = StopReplay::default();
        Self { events, next: from, pace, last: None, clock, stop, finished: false }
    }

    /// Returns what stops this replay, from any thread.
    ///
    /// ```
    /// # fn main() -> sessionlog::Result<()> {
    /// use sessionlog::{NewEvent, NewSession, Pace, Seq, Store, Timestamp};
    /// # let session = Store::in_memory()?.create(NewSession::new())?;
    /// let noon = |millis: i64| Timestamp::from_millis(1_700_000_000_000 + millis).unwrap();
    /// session.append(NewEvent::user_message("now").timestamp(noon(0)))?;
    /// session.append(NewEvent::user_message("a day later").timestamp(noon(86_400_000)))?;
    /// let mut replay = session.replay(Seq::ZERO..Seq::new(2), Pace::recorded())?;
    /// let stop = replay.stopper();
    /// assert!(replay.next().is_some());
    /// std::thread::spawn(move || stop.stop());
    /// assert!(replay.next().is_none()); // does not wait for the day to pass
    /// assert_eq!(replay.next_seq(), Seq::new(1));
    /// # Ok(()) }
    /// ```
    pub fn stopper(&self) -> StopReplay {
        self.stop.clone()
    }

    /// Returns the seq of the event that was not given yet: where a later replay goes on.
    pub fn next_seq(&self) -> Seq {
        self.next
    }

    /// Appends the events, one by one and with their timestamps, to `sink`, and returns the seqs they were given there.
    /// Ends early when the replay is stopped.
    ///
    /// A replay from `n` into a fork at `n` gives each event the seq that it had. Elsewhere, what `surfaceOp` and
    /// `sourceEventSeqs` name is moved with the events.
    ///
    /// # Durability
    /// By type, as [`Session::append`].
    /// # Cost
    /// An append an event.
    /// # Errors
    /// What was appended before the error stays, and [`next_seq`](Self::next_seq) names the event that was not.
    /// [`Error::SeqConflict`] when somebody else appends to the sink meanwhile. [`Error::InvalidEvent`] (its index is
    /// the event's seq here) when the event names one that is not replayed and would have another seq in the sink. As
    /// reading and appending.
    pub fn append_to(&mut self, sink: &Session) -> Result<Range<Seq>> {
        let start = Seq::new(sink.len());
        let mut end = start;
        let from = self.next;
        while let Some(event) = self.next() {
            let event = event?;
            let seq = event.seq;
            let appended = carry(event, from, start)
                .and_then(|event| sink.append_with(Append::new().expect(end), [event]));
            match appended {
                Ok(seqs) => end = seqs.end,
                Err(error) => {
                    self.next = seq;
                    self.finished = true;
                    return Err(error);
                }
            }
        }
        Ok(start..end)
    }
}

impl Iterator for Replay {
    type Item = Result<Event>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.finished || self.stop.is_stopped() {
            return None;
        }
        let event = match self.events.next() {
            Some(Ok(event)) => event,
            end => {
                self.finished = true;
                return end;
            }
        };
        let due = match self.last {
            Some((before, due)) => due.saturating_add(self.pace.pause(before, event.timestamp)),
            None => self.clock.elapsed(),
        };
        let early = due.saturating_sub(self.clock.elapsed());
        if !early.is_zero() && !self.clock.wait(early, &self.stop) {
            self.finished = true;
            return None;
        }
        self.last = Some((event.timestamp, due));
        self.next = Seq::new(event.seq.get().saturating_add(1));
        Some(Ok(event))
    }
}

impl std::iter::FusedIterator for Replay {}

/// Stops a [`Replay`]; it wakes one that waits.
#[derive(Clone, Debug, Default)]
pub struct StopReplay(Arc<(Mutex<bool>, Condvar)>);

impl StopReplay {
    /// Stops the replay: it gives no more events.
    pub fn stop(&self) {
        let (stopped, changed) = &*self.0;
        *stopped.lock().unwrap_or_else(PoisonError::into_inner) = true;
        changed.notify_all();
    }

    /// Whether it was stopped.
    pub fn is_stopped(&self) -> bool {
        *self.0.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The time that a replay keeps to.
trait Clock: Send {
    /// The time since the first call.
    fn elapsed(&mut self) -> Duration;
    /// Waits so long; returns false at once when the replay is stopped.
    fn wait(&mut self, pause: Duration, stop: &StopReplay) -> bool;
}

/// The real time.
struct Wall(Option<Instant>);

impl Clock for Wall {
    fn elapsed(&mut self) -> Duration {
        self.0.get_or_insert_with(Instant::now).elapsed()
    }

    fn wait(&mut self, pause: Duration, stop: &StopReplay) -> bool {
        let (stopped, changed) = &*stop.0;
        let stopped = stopped.lock().unwrap_or_else(PoisonError::into_inner);
        let waited = changed.wait_timeout_while(stopped, pause, |stopped| !*stopped);
        let (stopped, _) = waited.unwrap_or_else(PoisonError::into_inner);
        !*stopped
    }
}

/// The event as it is appended where the one that had the seq `from` is given the seq `start`.
fn carry(event: Event, from: Seq, start: Seq) -> Result<NewEvent> {
    if from == start || (event.surface_op.is_none() && event.source_event_seqs.is_none()) {
        return Ok(NewEvent::from(event));
    }
    let at = event.seq;
    let moved = |field: &str, seq: Seq| match seq.get().checked_sub(from.get()) {
        Some(behind) if seq < at => Ok(Seq::new(start.get().saturating_add(behind))),
        _ => Err(Error::InvalidEvent {
            index: usize::try_from(at.get()).unwrap_or(usize::MAX),
            source: EventError::new(EventFault::Invalid { reason: "it names an event that is not replayed" })
                .field(field),
        }),
    };
    let (op, sources) = (event.surface_op(), event.source_event_seqs());
    let mut new = NewEvent::from(event);
    if let SurfaceOp::Replace { start, end } = op {
        new = new.replace(moved("surfaceOp", start)?, moved("surfaceOp", end)?);
    }
    if !sources.is_empty() {
        let sources: Result<Vec<Seq>> =
            sources.into_iter().map(|seq| moved("sourceEventSeqs", seq)).collect();
        new = new.sources(sources?);
    }
    Ok(new)
}

#[cfg(test)]
mod tests;
