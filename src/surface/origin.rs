//! Where messages come from: which events made one, and what replaced an event.

use std::ops::Range;

use super::Surface;
use super::entry::{Entry, What};
use super::render::Origin;
use crate::id::Seq;

/// A replace that took place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Replaced {
    /// The event that replaced.
    pub(super) by: u64,
    /// Its place.
    pub(super) order: u64,
    /// The seqs of what it replaced, in ranges: in between there may be events that never stood, none that stands.
    pub(super) ranges: Vec<Range<u64>>,
}

impl Surface {
    /// The order of the event `seq`, if it stands at all.
    pub(super) fn order_of(&self, seq: u64) -> u64 {
        let replaced = self.replaced.binary_search_by_key(&seq, |replaced| replaced.by).ok();
        replaced.and_then(|index| self.replaced.get(index)).map_or(seq, |replaced| replaced.order)
    }

    /// Notes what the event `by` takes the place of: before it does.
    pub(super) fn note_replaced(&mut self, by: u64, order: u64, first: usize, last: usize) {
        let mut ranges: Vec<Range<u64>> = Vec::new();
        let mut before_was_appended = false;
        for entry in self.entries.within(first, last) {
            let is_appended = entry.order == entry.seq;
            // Appended events ascend; a replacing one that lies between two of them may stand elsewhere.
            let joined = ranges.last_mut().filter(|range| {
                let next = self.replaced.partition_point(|replaced| replaced.by < range.end);
                let is_between = self.replaced.get(next).is_some_and(|replaced| replaced.by < entry.seq);
                is_appended && before_was_appended && !is_between
            });
            match joined {
                Some(range) => range.end = entry.seq.saturating_add(1),
                None => ranges.push(entry.seq..entry.seq.saturating_add(1)),
            }
            before_was_appended = is_appended;
        }
        self.replaced.push(Replaced { by, order, ranges });
    }

    /// Returns the events that the message at `index` of the last [`messages`](Self::messages) was made of: a message and
    /// its calls; a result; for what stands in for a result, the call. `None` when there is no such message.
    ///
    /// ```
    /// # fn main() -> sessionlog::Result<()> {
    /// # use sessionlog::{NewEvent, NewSession, Seq, Store};
    /// # let session = Store::in_memory()?.create(NewSession::new())?;
    /// session.append(NewEvent::assistant_message("I look."))?;
    /// session.append(NewEvent::tool_call("c1", "ls", serde_json::json!({})))?;
    /// let mut surface = session.surface()?;
    /// assert_eq!(surface.messages().len(), 2);
    /// assert_eq!(surface.events_of(0), Some(vec![Seq::new(0), Seq::new(1)]));
    /// # Ok(()) }
    /// ```
    pub fn events_of(&self, index: usize) -> Option<Vec<Seq>> {
        let Origin { head, own } = *self.rendered.origins.get(index)?;
        // What was folded since may have replaced it.
        let at = self.entries.index_of(own)?;
        let mut entries = self.entries.from(at);
        let first = entries.next()?;
        let mut seqs = vec![Seq::new(first.seq)];
        if own == head && first.can_be_joined() && !self.rendered.is_tool(index) {
            let joined = entries.take_while(|entry| joins(entry));
            seqs.extend(joined.map(|entry| Seq::new(entry.seq)));
        }
        Some(seqs)
    }

    /// Returns the event that took the place of the event `seq`; `None` when that stands, or never stood.
    ///
    /// Of an event that never stood itself, a chunk or a step, it names what replaced the messages around it, if
    /// anything did.
    ///
    /// # Cost
    /// A look at each replace.
    pub fn replaced_by(&self, seq: Seq) -> Option<Seq> {
        let holds = |replaced: &&Replaced| {
            replaced.by > seq.get() && replaced.ranges.iter().any(|range| range.contains(&seq.get()))
        };
        // What is replaced stays so: the first one is the one.
        self.replaced.iter().find(holds).map(|replaced| Seq::new(replaced.by))
    }

    /// Returns what replaced the event `seq`, what replaced that, and so on: the last one stands.
    ///
    /// ```
    /// # fn main() -> sessionlog::Result<()> {
    /// # use sessionlog::{NewEvent, NewSession, Seq, Store};
    /// # let session = Store::in_memory()?.create(NewSession::new())?;
    /// session.append(NewEvent::user_message("a long story"))?;
    /// session.append(NewEvent::user_message("a story").replace(Seq::new(0), Seq::new(0)))?;
    /// session.append(NewEvent::user_message("…").replace(Seq::new(1), Seq::new(1)))?;
    /// let surface = session.surface()?;
    /// assert_eq!(surface.replacements(Seq::new(0)), [Seq::new(1), Seq::new(2)]);
    /// assert_eq!(surface.replaced_ranges(Seq::new(2)), [Seq::new(1)..Seq::new(2)]);
    /// # Ok(()) }
    /// ```
    pub fn replacements(&self, seq: Seq) -> Vec<Seq> {
        std::iter::successors(self.replaced_by(seq), |by| self.replaced_by(*by)).collect()
    }

    /// Returns the seqs of what the event `by` replaced, as ranges in order of position; none when it replaced nothing.
    ///
    /// In between there may be events that never stood, such as chunks and steps.
    pub fn replaced_ranges(&self, by: Seq) -> Vec<Range<Seq>> {
        let found = self.replaced.binary_search_by_key(&by.get(), |replaced| replaced.by).ok();
        let ranges = found.and_then(|index| self.replaced.get(index)).map(|replaced| &replaced.ranges);
        let to_seqs = |range: &Range<u64>| Seq::new(range.start)..Seq::new(range.end);
        ranges.map(|ranges| ranges.iter().map(to_seqs).collect()).unwrap_or_default()
    }
}

/// Whether an entry joins the message or call right before it.
pub(super) fn joins(entry: &Entry) -> bool {
    !entry.breaks && matches!(entry.what, What::Call(_))
}
