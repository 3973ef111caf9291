//! A session looked at as a whole: what its last turn left open, its run again, its figures.

use std::ops::Range;

use super::Session;
use crate::error::{Error, Result};
use crate::event::NewEvent;
use crate::id::Seq;
use crate::integrity::Quarantine;
use crate::log::history::hash_before;
use crate::options::{Append, MAX_BATCH_EVENTS};
use crate::recovery::{Inspection, Lookback, Resumed};
use crate::replay::{Pace, Replay};
use crate::running_hash::RunningHash;
use crate::stats::{Statistics, Tally};

impl Session {
    /// Returns the running hash behind the first `at` events: equal for two sessions when those events are equal,
    /// wherever they are stored.
    ///
    /// # Cost
    /// For drained events the decoding of one block at most; what is not drained yet is read.
    /// # Errors
    /// [`Error::SeqBeyondEnd`](crate::Error::SeqBeyondEnd). As reading: see [`Events`](crate::Events).
    /// # Examples
    /// See [`RunningHash`].
    pub fn running_hash(&self, at: Seq) -> Result<RunningHash> {
        let len = self.len();
        if at.get() > len {
            return Err(Error::SeqBeyondEnd { session: self.id().clone(), from: at, len });
        }
        let (from, hash) = hash_before(self.core(), self.state(), at.get())?;
        let mut hash = RunningHash::from(hash);
        for event in self.read_range(Seq::new(from)..at)? {
            hash = hash.next(&event?);
        }
        Ok(hash)
    }

    /// Returns the name under which the session's values are stored: a UUID of its own for each session that was ever
    /// created. Exports of whole stores name their files by it.
    pub fn storage_key(&self) -> String {
        self.state().key().to_string()
    }

    /// Returns what a repair has set aside of this session: blocks that could not be read, and the events behind a hole
    /// with their seqs.
    ///
    /// # Errors
    /// [`Error::Closed`](crate::Error::Closed). Errors of reading are items.
    pub fn quarantine(&self) -> Result<Quarantine> {
        if self.core().health.is_closed() {
            return Err(Error::Closed);
        }
        Ok(Quarantine::new(self.handle.clone(), Some(self.state.key())))
    }

    /// Tells what the last turn left open, and which events [`resume`](Self::resume) would append. Writes nothing.
    ///
    /// # Cost
    /// Reads backwards to the last `turn/start`, whatever comes before it. Chunks are read only as far as an unfinished
    /// message reaches. (In a session without any turn that is all of it, without chunks.)
    /// # Errors
    /// As reading: see [`Events`](crate::Events).
    /// # Examples
    /// ```
    /// # fn main() -> sessionlog::Result<()> {
    /// use sessionlog::{NewEvent, NewSession, Store};
    /// let session = Store::in_memory()?.create(NewSession::new())?;
    /// session.append(NewEvent::turn_start("t1"))?;
    /// session.append(NewEvent::assistant_chunk("Let me"))?;
    /// let found = session.inspect()?;
    /// assert_eq!(found.turn.map(|turn| turn.turn_id.to_string()).as_deref(), Some("t1"));
    /// assert_eq!(found.text.as_deref(), Some("Let me"));
    /// assert_eq!(session.len(), 2);
    /// # Ok(()) }
    /// ```
    pub fn inspect(&self) -> Result<Inspection> {
        self.look_back(self.len(), true)
    }

    /// Closes what the last turn left open, so that the model can go on: for each call without a result one with the
    /// error [`TOOL_OUTCOME_UNKNOWN`](crate::TOOL_OUTCOME_UNKNOWN) and the field `"closer":true`, then the step's end,
    /// then the turn's end with the reason `interrupted`. Their timestamps repeat the last one.
    ///
    /// Nothing is cut off or changed, and a second call finds nothing open. In a fork made in the midst of a turn the
    /// closers are the fork's own.
    ///
    /// # Durability
    /// One Sync batch: after a crash all closers are there, or none. (More than 65,536 of them are several batches; the
    /// next call goes on.)
    /// # Cost
    /// As [`inspect`](Self::inspect), and one append; no append when nothing is open.
    /// # Errors
    /// [`Error::SeqConflict`](crate::Error::SeqConflict) when another writer was faster: the turn is not interrupted,
    /// or somebody resumes it already. Nothing was appended then. As reading and
    /// [`append_batch`](Self::append_batch).
    /// # Examples
    /// ```
    /// # fn main() -> sessionlog::Result<()> {
    /// use sessionlog::{NewEvent, NewSession, Store};
    /// let session = Store::in_memory()?.create(NewSession::new())?;
    /// session.append(NewEvent::turn_start("t1"))?;
    /// session.append(NewEvent::tool_call("c1", "send_mail", serde_json::json!({"to": "Ada"})))?;
    /// // ... a crash, and the store is opened again ...
    /// let resumed = session.resume()?;
    /// assert_eq!(resumed.inspection.calls.len(), 1);
    /// assert_eq!(session.len(), 4);
    /// assert!(session.resume()?.inspection.is_empty());
    /// # Ok(()) }
    /// ```
    pub fn resume(&self) -> Result<Resumed> {
        let len = self.len();
        let inspection = self.look_back(len, false)?;
        let mut seqs = Seq::new(len)..Seq::new(len);
        for closers in inspection.closers.chunks(MAX_BATCH_EVENTS) {
            let how = Append::new().sync().expect(seqs.end);
            seqs.end = self.append_with(how, closers.iter().cloned().map(NewEvent::from))?.end;
        }
        Ok(Resumed { inspection, seqs })
    }

    fn look_back(&self, len: u64, with_text: bool) -> Result<Inspection> {
        let mut lookback = Lookback::new(with_text);
        let mut events = self.read_reverse(Seq::ZERO..Seq::new(len))?;
        let mut has_chunks = true;
        while let Some(event) = events.next().transpose()? {
            if !lookback.goes_on_behind(&event) {
                break;
            }
            if has_chunks && !lookback.wants_chunks() {
                events = events.without_chunks();
                has_chunks = false;
            }
        }
        Ok(lookback.finish())
    }

    /// Replays the events of `range`, half open, as they happened: at the pace of their timestamps, or as fast as they
    /// can be read. What of the range lies beyond the present end is cut.
    ///
    /// # Cost
    /// As [`read_range`](Self::read_range), and the pauses.
    /// # Errors
    /// [`Error::SeqBeyondEnd`](crate::Error::SeqBeyondEnd) when the range starts beyond the end.
    /// # Examples
    /// ```
    /// # fn main() -> sessionlog::Result<()> {
    /// use sessionlog::{NewEvent, NewSession, Pace, Seq, Store};
    /// # let store = Store::in_memory()?;
    /// let session = store.create(NewSession::new())?;
    /// session.append_batch(["one", "two", "three"].map(NewEvent::user_message))?;
    /// for event in session.replay(Seq::ZERO..Seq::new(3), Pace::recorded())? {
    ///     println!("{}", event?);
    /// }
    /// // The same run again, event by event, in a branch.
    /// let branch = session.fork(Seq::new(1))?;
    /// session.replay(Seq::new(1)..Seq::new(3), Pace::fastest())?.append_to(&branch)?;
    /// assert_eq!(branch.len(), 3);
    /// # Ok(()) }
    /// ```
    pub fn replay(&self, range: Range<Seq>, pace: Pace) -> Result<Replay> {
        Ok(Replay::new(range.start, self.read_range(range)?, pace))
    }

    /// Counts and measures the session, from its first event to its present end; of a fork, what it shares with its
    /// parent too.
    ///
    /// # Cost
    /// Reads the session once. Memory does not depend on its length.
    /// # Errors
    /// As reading: see [`Events`](crate::Events).
    /// # Examples
    /// ```
    /// # fn main() -> sessionlog::Result<()> {
    /// use sessionlog::{NewEvent, NewSession, Store};
    /// let session = Store::in_memory()?.create(NewSession::new())?;
    /// let usage = serde_json::json!({"prompt_tokens": 12, "completion_tokens": 3, "total_tokens": 15});
    /// session.append(NewEvent::user_message("hello"))?;
    /// session.append(NewEvent::assistant_message("hello!").usage(usage))?;
    /// let figures = session.statistics()?;
    /// assert_eq!((figures.events, figures.messages, figures.usage.total_tokens), (2, 2, 15));
    /// # Ok(()) }
    /// ```
    pub fn statistics(&self) -> Result<Statistics> {
        self.statistics_of(Seq::ZERO..Seq::new(u64::MAX))
    }

    /// Counts and measures the events of `range`, half open; what of it lies beyond the present end is cut.
    ///
    /// What began before the range (a turn, a call) is not measured in it.
    ///
    /// # Cost
    /// Reads the range once.
    /// # Errors
    /// [`Error::SeqBeyondEnd`](crate::Error::SeqBeyondEnd) when it starts beyond the end; as reading.
    pub fn statistics_of(&self, range: Range<Seq>) -> Result<Statistics> {
        let mut tally = Tally::new();
        for event in self.read_range(range)? {
            tally.add(&event?);
        }
        Ok(tally.statistics())
    }
}
