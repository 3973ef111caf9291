//! Events, one after the other, onto the surface.

use super::Surface;
use super::entry::{Answer, Call, Entry, Outcome, What};
use super::replace::Target;
use crate::event::{Content, Event, EventKind, JsonString, JsonText, SurfaceOp, surface_op_of};

impl Surface {
    /// Folds the next event. One that was folded already (its seq lies before [`next_seq`](Self::next_seq)) does
    /// nothing; seqs may be left out where chunks or custom events stand.
    ///
    /// A replace that an append would refuse (it came by import) replaces nothing and is [reported](Self::report).
    ///
    /// # Cost
    /// A few look-ups, and for a replace what it replaces. Content is shared with the event, not copied.
    pub fn push(&mut self, event: &Event) {
        self.push_parts(event.seq.get(), &event.kind, event.surface_op.as_ref());
    }

    pub(crate) fn push_parts(&mut self, seq: u64, kind: &EventKind, op: Option<&JsonText>) {
        if self.advance_to(seq, kind) {
            self.place(seq, kind.clone(), op);
        }
    }

    /// As [`push`](Self::push), and keeps what the event holds.
    pub(crate) fn take(&mut self, event: Event) {
        let seq = event.seq.get();
        if self.advance_to(seq, &event.kind) {
            self.place(seq, event.kind, event.surface_op.as_ref());
        }
    }

    /// Goes on to the event at `seq`. Returns whether it has a position.
    fn advance_to(&mut self, seq: u64, kind: &EventKind) -> bool {
        if seq < self.next {
            return false;
        }
        self.next = seq.saturating_add(1);
        match kind {
            EventKind::AssistantChunk { .. } | EventKind::Custom { .. } => false,
            EventKind::TurnStart { .. }
            | EventKind::TurnEnd { .. }
            | EventKind::StepStart { .. }
            | EventKind::StepEnd { .. } => {
                self.breaks = true;
                false
            }
            _ => true,
        }
    }

    fn place(&mut self, seq: u64, kind: EventKind, op: Option<&JsonText>) {
        let target = match surface_op_of(op) {
            SurfaceOp::Append => None,
            SurfaceOp::Replace { start, end } => {
                let target = self.target(seq, &kind, start, end);
                target.map_err(|fault| self.bad_replaces.insert(seq, fault)).ok()
            }
        };
        let what = match kind {
            EventKind::ToolCall { id, name, args } => return self.call(seq, id, name, args),
            EventKind::UserMessage { content } => What::User(content),
            EventKind::AssistantMessage { content, .. } => What::Assistant(content),
            EventKind::ToolResult { id, result, error } => What::Result(Box::new(answer(id, result, error))),
            _ => return,
        };
        match (target, what) {
            (Some(target), what) => self.replace(seq, target, what),
            (None, What::Result(answer)) => self.result(seq, answer),
            (None, what) => self.append(seq, what),
        }
    }

    fn append(&mut self, seq: u64, what: What) {
        let breaks = std::mem::take(&mut self.breaks);
        let entry = Entry { seq, order: seq, breaks, what };
        self.bytes += entry.bytes();
        self.rendered.touch(seq);
        self.entries.push(entry);
    }

    fn call(&mut self, seq: u64, id: JsonString, name: JsonString, args: JsonText) {
        let nth = self.open.nth_of(&id);
        let call = Call { id, nth, name, args, answer: None };
        self.open.add(&call, seq);
        self.append(seq, What::Call(Box::new(call)));
    }

    fn result(&mut self, seq: u64, mut answer: Box<Answer>) {
        answer.call = self.open.nearest(&answer.id);
        match answer.call.and_then(|order| Some((order, self.entries.of_order_mut(order)?))) {
            Some((order, Entry { what: What::Call(call), .. })) => {
                call.answer = Some(seq);
                self.open.remove(call, order);
                self.rendered.touch(order);
            }
            _ => {
                answer.call = None;
                self.left_out += 1;
            }
        }
        self.append(seq, What::Result(answer));
    }

    /// Puts a message, or a result of the same call, in the place of what `target` names.
    fn replace(&mut self, seq: u64, target: Target, mut what: What) {
        let Target { first, last } = target;
        let (Some(at), Some(end)) = (self.entries.get(first), self.entries.get(last)) else { return };
        let (order, breaks, end) = (at.order, at.breaks, end.order);
        if let (What::Result(new), What::Result(old)) = (&mut what, &at.what) {
            // The call goes on pointing here, for the order stays.
            new.call = old.call;
            self.rendered.touch(old.call.unwrap_or(order));
        }
        // The message before may lose calls that were part of it.
        let before = self.entries.before(first).map(|(_, entry)| entry.order);
        self.rendered.touch(before.unwrap_or(order).min(order));
        self.note_replaced(seq, order, first, last);
        // From behind, where the open calls of an id are looked for.
        for index in (first..=last).rev() {
            let Some(entry) = self.entries.get(index) else { continue };
            match &entry.what {
                What::Gone => continue,
                What::Call(call) if call.answer.is_none() => self.open.remove(call, entry.order),
                What::Result(answer) if answer.call.is_none() => self.left_out -= 1,
                _ => {}
            }
            self.bytes -= entry.bytes();
            self.bad_replaces.remove(&entry.seq);
        }
        let entry = Entry { seq, order, breaks, what };
        self.bytes += entry.bytes();
        debug_assert!(order <= end, "a range is not reversed");
        if self.entries.replace(first, last, entry) {
            self.breaks = false;
        }
    }
}

fn answer(id: JsonString, result: Option<JsonText>, error: Option<JsonText>) -> Answer {
    let outcome = match (error.filter(|error| !error.is_null()), result) {
        (Some(error), _) => Outcome::Error(error),
        (None, Some(result)) => Outcome::Result(result),
        // No event has neither; text that was checked gives no other way to say so.
        (None, None) => Outcome::Result(Content::null().json().clone()),
    };
    Answer { id, outcome, call: None }
}
