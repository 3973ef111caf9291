//! Which replaces are sound: those that leave every call with its result.

use serde::{Deserialize, Serialize};

use super::Surface;
use super::entry::{Entry, What};
use crate::event::{
    EventKind, EventParts, JsonString, JsonText, NewEvent, SurfaceOp, sources_of, surface_op_of,
};
use crate::id::{Seq, Timestamp};

/// Why an event cannot replace what it names. Nothing is stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, thiserror::Error)]
#[non_exhaustive]
pub enum ReplaceFault {
    /// An end of the range is the event itself.
    #[error("event {seq} cannot replace itself")]
    Itself {
        /// The event.
        seq: Seq,
    },
    /// An end of the range is not on the surface: a chunk, a step, replaced, left out, or still to come.
    #[error("event {seq} is not on the surface")]
    NotOnSurface {
        /// The end.
        seq: Seq,
    },
    /// The range's start stands behind its end: by position, which need not be the order of seqs.
    #[error("event {start} stands behind event {end} on the surface")]
    Reversed {
        /// The start, as given.
        start: Seq,
        /// The end, as given.
        end: Seq,
    },
    /// The range holds a call, and not its result.
    #[error("the range holds the call {call} and not its result {result}")]
    CallWithoutResult {
        /// The call.
        call: Seq,
        /// The result that would be left alone.
        result: Seq,
    },
    /// The range holds a result, and not its call.
    #[error("the range holds the result {result} and not its call {call}")]
    ResultWithoutCall {
        /// The result.
        result: Seq,
        /// The call that would be left alone.
        call: Seq,
    },
    /// A tool's result can only replace the result of its own call.
    #[error("a tool's result cannot replace event {seq}, which is no result of its call")]
    NotItsResult {
        /// What it would replace.
        seq: Seq,
    },
    /// A source is not an earlier event.
    #[error("source {seq} is not an earlier event")]
    LaterSource {
        /// The source.
        seq: Seq,
    },
    /// `sourceEventSeqs` is given and does not name a message or result that is replaced.
    #[error("event {seq} is replaced and not among the sources")]
    MissingSource {
        /// What is replaced.
        seq: Seq,
    },
}

/// The slots that a replace takes, both included.
#[derive(Clone, Copy, Debug)]
pub(super) struct Target {
    pub(super) first: usize,
    pub(super) last: usize,
}

impl Surface {
    /// Checks what `event` would replace, were it the next one ([`next_seq`](Self::next_seq)). One that replaces nothing
    /// is fine.
    ///
    /// An append does this before anything is stored; a surface on which a replace was checked takes it when it comes.
    ///
    /// # Cost
    /// A look at what is to be replaced.
    /// # Errors
    /// The first fault found.
    /// # Examples
    /// ```
    /// use sessionlog::{Event, NewEvent, ReplaceFault, Seq, Surface};
    /// let first = r#"{"type":"user/message","seq":0,"content":"hello","timestamp":0}"#;
    /// let mut surface = Surface::default();
    /// surface.push(&Event::from_json(first.as_bytes())?);
    /// let summary = |end| NewEvent::user_message("…").replace(Seq::ZERO, Seq::new(end));
    /// assert_eq!(surface.check(&summary(0)), Ok(()));
    /// assert_eq!(surface.check(&summary(1)), Err(ReplaceFault::Itself { seq: Seq::new(1) }));
    /// # Ok::<(), sessionlog::EventError>(())
    /// ```
    pub fn check(&self, event: &NewEvent) -> Result<(), ReplaceFault> {
        self.check_parts(&event.parts(Timestamp::default()))
    }

    fn check_parts(&self, event: &EventParts<'_>) -> Result<(), ReplaceFault> {
        let SurfaceOp::Replace { start, end } = surface_op_of(event.surface_op) else {
            return Ok(());
        };
        let target = self.target(self.next, event.kind, start, end)?;
        match event.source_event_seqs.filter(|sources| !sources.is_null()) {
            Some(sources) => self.check_sources(target, sources),
            // What it was made from then is what it replaces.
            None => Ok(()),
        }
    }

    fn check_sources(&self, target: Target, sources: &JsonText) -> Result<(), ReplaceFault> {
        let mut sources = sources_of(Some(sources));
        sources.sort_unstable();
        if let Some(seq) = sources.last().copied().filter(|seq| seq.get() >= self.next) {
            return Err(ReplaceFault::LaterSource { seq });
        }
        for entry in self.entries.within(target.first, target.last) {
            let seq = Seq::new(entry.seq);
            let is_named = matches!(entry.what, What::Call(_)) || sources.binary_search(&seq).is_ok();
            if entry.stands() && !is_named {
                return Err(ReplaceFault::MissingSource { seq });
            }
        }
        Ok(())
    }

    /// The slots of a range that the event `seq` may replace.
    pub(super) fn target(
        &self,
        seq: u64,
        kind: &EventKind,
        start: Seq,
        end: Seq,
    ) -> Result<Target, ReplaceFault> {
        let (first, last) = (self.end_of_range(seq, start)?, self.end_of_range(seq, end)?);
        if first > last {
            return Err(ReplaceFault::Reversed { start, end });
        }
        let orders = match (self.entries.get(first), self.entries.get(last)) {
            (Some(first), Some(last)) => first.order..=last.order,
            _ => return Err(ReplaceFault::NotOnSurface { seq: start }),
        };
        let mut within = self.entries.within(first, last);
        if let EventKind::ToolResult { id, .. } = kind {
            return match within.find(|entry| !is_result_of(entry, id)) {
                None if first == last => Ok(Target { first, last }),
                None => Err(ReplaceFault::NotItsResult { seq: end }),
                Some(other) => Err(ReplaceFault::NotItsResult { seq: Seq::new(other.seq) }),
            };
        }
        for entry in within {
            match &entry.what {
                What::Call(call) => {
                    if let Some(result) = call.answer.filter(|answer| !orders.contains(answer)) {
                        let (call, result) = (Seq::new(entry.seq), self.seq_at(result));
                        return Err(ReplaceFault::CallWithoutResult { call, result });
                    }
                }
                What::Result(answer) => {
                    if let Some(call) = answer.call.filter(|call| !orders.contains(call)) {
                        let (result, call) = (Seq::new(entry.seq), self.seq_at(call));
                        return Err(ReplaceFault::ResultWithoutCall { result, call });
                    }
                }
                _ => {}
            }
        }
        Ok(Target { first, last })
    }

    /// The slot of an event that stands.
    fn end_of_range(&self, seq: u64, end: Seq) -> Result<usize, ReplaceFault> {
        if end.get() == seq {
            return Err(ReplaceFault::Itself { seq: end });
        }
        self.index_of(end)
            .filter(|index| self.entries.get(*index).is_some_and(Entry::stands))
            .ok_or(ReplaceFault::NotOnSurface { seq: end })
    }

    /// The slot of an event that has a position.
    pub(super) fn index_of(&self, seq: Seq) -> Option<usize> {
        let index = self.entries.index_of(self.order_of(seq.get()))?;
        self.entries.get(index).filter(|entry| entry.seq == seq.get())?;
        Some(index)
    }

    fn seq_at(&self, order: u64) -> Seq {
        Seq::new(self.entries.of_order(order).map_or(order, |entry| entry.seq))
    }
}

fn is_result_of(entry: &Entry, id: &JsonString) -> bool {
    matches!(&entry.what, What::Result(answer) if answer.id.to_str() == id.to_str())
}
