//! What an interrupted turn left open, and the events that close it. Pure: events in, closers out; it knows no storage
//! and no clock.
//!
//! A session is looked at from its end backwards, and no further than to its last `turn/start`: what it costs does not
//! depend on how long the session is.

use std::collections::HashMap;
use std::ops::Range;

use crate::event::{Event, EventKind, JsonString, JsonText};
use crate::id::{Seq, Timestamp};

/// The code that the error of a closing `tool/result` begins with: nobody knows whether the tool ran.
pub const TOOL_OUTCOME_UNKNOWN: &str = "TOOL_OUTCOME_UNKNOWN";

/// What the model is told behind the code.
const ADVICE: &str = "the session was interrupted before a result was recorded. The tool may have run to its end, in \
part or not at all. Do not call it again blindly: first find out what it did, unless it only reads or can be repeated \
without harm (it is read-only or idempotent).";

/// What the last turn of a session left open, and the events that close it; see [`Session::inspect`].
///
/// All of it is empty when the last turn has ended, or when there was none.
///
/// [`Session::inspect`]: crate::Session::inspect
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Inspection {
    /// The turn that has not ended.
    pub turn: Option<OpenTurn>,
    /// The last step of the turn, when it has not ended.
    pub step: Option<OpenStep>,
    /// Calls of the turn without a result, in their order.
    pub calls: Vec<OpenCall>,
    /// The text of an assistant message that was still streamed; see [`unfinished_text`].
    pub text: Option<String>,
    /// The events that close what is open, with the seqs and timestamps that they would be given.
    pub closers: Vec<Event>,
}

/// A turn that has not ended.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct OpenTurn {
    /// The seq of its `turn/start`.
    pub seq: Seq,
    /// Its name.
    pub turn_id: JsonString,
}

/// A step that has not ended.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct OpenStep {
    /// The seq of its `step/start`.
    pub seq: Seq,
    /// Its name.
    pub step_id: JsonString,
    /// The turn that it says it belongs to.
    pub turn_id: JsonString,
}

/// A call without a result.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct OpenCall {
    /// The seq of the `tool/call`.
    pub seq: Seq,
    /// The call's id.
    pub id: JsonString,
    /// The tool.
    pub name: JsonString,
    /// What it was called with.
    pub args: JsonText,
}

/// What [`Session::resume`](crate::Session::resume) found and did.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Resumed {
    /// What was open, and the closers as they were appended. Its text is `None`: that is left to
    /// [`Session::inspect`](crate::Session::inspect), before.
    pub inspection: Inspection,
    /// The seqs of the closers; empty when nothing was open.
    pub seqs: Range<Seq>,
}

impl Inspection {
    /// Looks at events that follow each other, the last one of the session at the end.
    ///
    /// A result answers the nearest call of its id that is still open, so an id may be used again. Ids are compared by
    /// their text, however it is spelled.
    ///
    /// # Cost
    /// Events before the last `turn/start` are not looked at.
    /// # Examples
    /// ```
    /// # fn main() -> sessionlog::Result<()> {
    /// use sessionlog::{Inspection, NewEvent, NewSession, Seq, Store};
    /// let session = Store::in_memory()?.create(NewSession::new())?;
    /// session.append(NewEvent::turn_start("t1"))?;
    /// session.append(NewEvent::tool_call("c1", "read_file", serde_json::json!({"path": "notes"})))?;
    /// let events = session.read_from(Seq::ZERO)?.collect::<sessionlog::Result<Vec<_>>>()?;
    /// let found = Inspection::of(&events);
    /// assert_eq!(found.calls[0].id.to_str(), "c1");
    /// assert_eq!(found.closers.len(), 2); // the call's result, the turn's end
    /// assert!(Inspection::of(&events[..0]).is_empty());
    /// # Ok(()) }
    /// ```
    pub fn of<'a>(events: impl IntoIterator<Item = &'a Event, IntoIter: DoubleEndedIterator>) -> Self {
        let mut lookback = Lookback::new(true);
        for event in events.into_iter().rev() {
            if !lookback.goes_on_behind(event) {
                break;
            }
        }
        lookback.finish()
    }

    /// Whether nothing is open.
    pub fn is_empty(&self) -> bool {
        self.turn.is_none()
    }
}

/// Puts together the text of an assistant message that was never finished: the deltas of the chunks behind the last
/// message, step or turn event. `None` when there are none.
///
/// # Examples
/// ```
/// # fn main() -> sessionlog::Result<()> {
/// use sessionlog::{NewEvent, NewSession, Seq, Store, unfinished_text};
/// let session = Store::in_memory()?.create(NewSession::new())?;
/// session.append(NewEvent::user_message("Who are you?"))?;
/// session.append(NewEvent::assistant_chunk("I am "))?;
/// session.append(NewEvent::assistant_chunk("a"))?;
/// let events = session.read_from(Seq::ZERO)?.collect::<sessionlog::Result<Vec<_>>>()?;
/// assert_eq!(unfinished_text(&events).as_deref(), Some("I am a"));
/// # Ok(()) }
/// ```
pub fn unfinished_text<'a>(
    events: impl IntoIterator<Item = &'a Event, IntoIter: DoubleEndedIterator>,
) -> Option<String> {
    let mut text = TextBehind::new(true);
    for event in events.into_iter().rev() {
        text.look(&event.kind);
        if text.is_done {
            break;
        }
    }
    text.finish()
}

/// Takes a session's events from the last one backwards.
#[derive(Debug)]
pub(crate) struct Lookback {
    found: Inspection,
    /// The seq behind the last event, and its timestamp.
    end: Option<(Seq, Timestamp)>,
    /// Ends of turns and steps, and results, for which the start or the call was not met yet.
    turn_ends: Pending,
    step_ends: Pending,
    results: Pending,
    /// Whether the turn's last step was met.
    has_step: bool,
    text: TextBehind,
}

impl Lookback {
    pub(crate) fn new(with_text: bool) -> Self {
        Self {
            found: Inspection::default(),
            end: None,
            turn_ends: Pending::default(),
            step_ends: Pending::default(),
            results: Pending::default(),
            has_step: false,
            text: TextBehind::new(with_text),
        }
    }

    /// Whether chunks still tell something.
    pub(crate) fn wants_chunks(&self) -> bool {
        self.end.is_none() || !self.text.is_done
    }

    /// Looks at the event before those that it has seen. Returns whether the one before that matters.
    pub(crate) fn goes_on_behind(&mut self, event: &Event) -> bool {
        if self.end.is_none() {
            self.end = Some((Seq::new(event.seq.get().saturating_add(1)), event.timestamp));
        }
        self.text.look(&event.kind);
        match &event.kind {
            EventKind::TurnEnd { turn_id, .. } => self.turn_ends.add(turn_id),
            EventKind::StepEnd { step_id, .. } => self.step_ends.add(step_id),
            EventKind::ToolResult { id, .. } => self.results.add(id),
            EventKind::TurnStart { turn_id } => {
                if !self.turn_ends.take(turn_id) {
                    self.found.turn = Some(OpenTurn { seq: event.seq, turn_id: turn_id.clone() });
                }
                return false;
            }
            EventKind::StepStart { step_id, turn_id } => {
                // Steps do not nest: where one begins, the one before is over.
                if !self.has_step && !self.step_ends.take(step_id) {
                    let (step_id, turn_id) = (step_id.clone(), turn_id.clone());
                    self.found.step = Some(OpenStep { seq: event.seq, step_id, turn_id });
                }
                self.has_step = true;
            }
            // Backwards, the nearest result that waits is the one for which this was the nearest open call.
            EventKind::ToolCall { id, name, args } if !self.results.take(id) => {
                let (id, name, args) = (id.clone(), name.clone(), args.clone());
                self.found.calls.push(OpenCall { seq: event.seq, id, name, args });
            }
            _ => {}
        }
        true
    }

    pub(crate) fn finish(self) -> Inspection {
        let Self { mut found, end, text, .. } = self;
        let (Some(turn), Some((next, timestamp))) = (&found.turn, end) else { return Inspection::default() };
        found.calls.reverse();
        found.text = text.finish();
        let results = found.calls.iter().map(|call| (outcome_unknown(&call.id), true));
        let step_end = found.step.iter().map(|step| {
            let turn_id = Some(JsonText::from(&step.turn_id));
            (EventKind::StepEnd { step_id: step.step_id.clone(), turn_id }, false)
        });
        let reason = Some(JsonText::from("interrupted"));
        let turn_end = EventKind::TurnEnd { turn_id: turn.turn_id.clone(), reason };
        let kinds = results.chain(step_end).chain([(turn_end, false)]);
        found.closers = kinds
            .zip(0..)
            .map(|((kind, marked), n)| {
                closer(Seq::new(next.get().saturating_add(n)), timestamp, kind, marked)
            })
            .collect();
        found
    }
}

fn outcome_unknown(id: &JsonString) -> EventKind {
    let error = Some(JsonText::from(format!("{TOOL_OUTCOME_UNKNOWN}: {ADVICE}")));
    EventKind::ToolResult { id: id.clone(), result: None, error }
}

/// A result that no tool gave is `marked` as such; ends of steps and turns say it by the turn's reason.
fn closer(seq: Seq, timestamp: Timestamp, kind: EventKind, marked: bool) -> Event {
    let mark = (JsonString::new("closer"), JsonText::from_checked("true"));
    let extra = if marked { vec![mark] } else { Vec::new() };
    Event { seq, timestamp, kind, extra, surface_op: None, source_event_seqs: None }
}

/// How many of each name wait for what they belong to.
#[derive(Debug, Default)]
struct Pending(HashMap<String, u64>);

impl Pending {
    fn add(&mut self, name: &JsonString) {
        *self.0.entry(name.to_str().into_owned()).or_default() += 1;
    }

    /// Takes one away; false when there is none.
    fn take(&mut self, name: &JsonString) -> bool {
        let name = name.to_str();
        let Some(count) = self.0.get_mut(&*name) else { return false };
        *count -= 1;
        if *count == 0 {
            self.0.remove(&*name);
        }
        true
    }
}

/// The text of the chunks at the end, the last one first.
#[derive(Debug)]
struct TextBehind {
    deltas: Vec<JsonString>,
    is_done: bool,
}

impl TextBehind {
    fn new(is_wanted: bool) -> Self {
        Self { deltas: Vec::new(), is_done: !is_wanted }
    }

    fn look(&mut self, kind: &EventKind) {
        match kind {
            _ if self.is_done => {}
            EventKind::AssistantChunk { delta } => self.deltas.push(delta.clone()),
            // A call may come while the text is streamed; events of other people's types may come at any time.
            EventKind::ToolCall { .. } | EventKind::ToolResult { .. } | EventKind::Custom { .. } => {}
            _ => self.is_done = true,
        }
    }

    fn finish(self) -> Option<String> {
        if self.deltas.is_empty() {
            return None;
        }
        Some(self.deltas.iter().rev().map(JsonString::to_str).collect())
    }
}

#[cfg(test)]
pub(crate) mod tests;
