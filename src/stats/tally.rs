//! Counting and measuring, event by event, in bounded memory and without an allocation but for calls and new names.

use std::collections::{BTreeMap, VecDeque};

use super::{
    Distribution, KNOWN_TYPES, MAX_NAME_BYTES, MAX_NAMES, Statistics, ToolStatistics, TypeCount, known_type,
    named,
};
use crate::event::{Event, EventKind, JsonString, JsonText, line_len};
use crate::id::Timestamp;
use crate::recovery::TOOL_OUTCOME_UNKNOWN;

/// The most calls that are kept until their results come; the oldest is forgotten first.
const MAX_OPEN_CALLS: usize = 1_024;

/// Counts and measures events of one session as they come: from a reader, or while an agent runs.
///
/// Memory is bounded (some megabytes at most, some kilobytes as a rule), whatever the events are.
///
/// ```
/// # fn main() -> sessionlog::Result<()> {
/// use sessionlog::{NewEvent, NewSession, Seq, Store, Tally};
/// let session = Store::in_memory()?.create(NewSession::new())?;
/// session.append(NewEvent::turn_start("t1"))?;
/// let mut tally = Tally::new();
/// for event in session.read_from(Seq::ZERO)? {
///     tally.add(&event?);
/// }
/// assert_eq!(tally.statistics().open_turns, 1);
/// # Ok(()) }
/// ```
#[derive(Clone, Debug)]
pub struct Tally {
    /// What needs nothing else to be known: as it comes out, but for the types, the tools and what is still open.
    found: Statistics,
    known_types: [TypeCount; KNOWN_TYPES.len()],
    /// The timestamps of the event before, the earliest and the latest.
    last: Timestamp,
    first_at: Timestamp,
    last_at: Timestamp,
    tools: Tools,
    turn: Span,
    step: Span,
    /// Whether the open step has had a chunk.
    has_chunk: bool,
    stream: Stream,
    calls: VecDeque<Call>,
}

impl Default for Tally {
    fn default() -> Self {
        Self::new()
    }
}

impl Tally {
    /// Has seen no event.
    pub fn new() -> Self {
        Self {
            found: Statistics { sessions: 1, ..Statistics::default() },
            known_types: [TypeCount::default(); KNOWN_TYPES.len()],
            last: Timestamp::MIN,
            first_at: Timestamp::MAX,
            last_at: Timestamp::MIN,
            tools: Tools::default(),
            turn: Span::default(),
            step: Span::default(),
            has_chunk: false,
            stream: Stream::default(),
            calls: VecDeque::new(),
        }
    }

    /// Adds the next event of the session.
    #[inline]
    pub fn add(&mut self, event: &Event) {
        let bytes = line_len(event.seq, &event.parts());
        let at = event.timestamp;
        self.found.events += 1;
        self.found.bytes += bytes;
        self.found.clock_set_back += u64::from(at < self.last);
        self.last = at;
        self.first_at = self.first_at.min(at);
        self.last_at = self.last_at.max(at);
        match known_type(&event.kind).and_then(|place| self.known_types.get_mut(place)) {
            Some(count) => count.add(bytes),
            None => {
                let name = event.event_type();
                named(&mut self.found.by_type, &mut self.found.other_types, &name).add(bytes);
            }
        }
        match &event.kind {
            EventKind::AssistantChunk { .. } => self.chunk(at),
            // Others' events may come while a message is streamed.
            EventKind::Custom { .. } => {}
            kind => {
                self.stream.end(&mut self.found);
                self.end_or_begin(kind, at);
            }
        }
    }

    /// Everything but chunks and custom events.
    fn end_or_begin(&mut self, kind: &EventKind, at: Timestamp) {
        match kind {
            EventKind::TurnStart { turn_id } => {
                self.found.turns += 1;
                self.turn.start(turn_id, at);
                // A step lies within its turn.
                self.step.is_open = false;
            }
            EventKind::TurnEnd { turn_id, .. } => self.turn.end(turn_id, at, &mut self.found.turn_ms),
            EventKind::StepStart { step_id, .. } => {
                self.found.steps += 1;
                self.step.start(step_id, at);
                self.has_chunk = false;
            }
            EventKind::StepEnd { step_id, .. } => self.step.end(step_id, at, &mut self.found.step_ms),
            EventKind::UserMessage { .. } => self.found.messages += 1,
            EventKind::AssistantMessage { usage, .. } => {
                self.found.messages += 1;
                if let Some(usage) = usage {
                    self.found.usage.add(usage);
                }
            }
            EventKind::ToolCall { id, name, .. } => self.call(id, name, at),
            EventKind::ToolResult { id, error, .. } => self.result(id, error.as_ref(), at),
            EventKind::AssistantChunk { .. } | EventKind::Custom { .. } => {}
        }
    }

    #[inline]
    fn chunk(&mut self, at: Timestamp) {
        if self.step.is_open && !self.has_chunk {
            self.has_chunk = true;
            self.found.first_chunk_ms.record(millis_between(self.step.started, at));
        }
        if self.stream.chunks == 0 {
            self.stream.first = at;
        }
        self.stream.chunks += 1;
        self.stream.last = at;
    }

    fn call(&mut self, id: &JsonString, name: &JsonString, at: Timestamp) {
        self.found.tool_calls += 1;
        let tool = self.tools.find(&name.to_str());
        self.tools.at(tool).calls += 1;
        let id = id.to_str();
        if id.len() > MAX_NAME_BYTES {
            self.found.forgotten_calls += 1;
            return;
        }
        if self.calls.len() == MAX_OPEN_CALLS {
            self.calls.pop_front();
            self.found.forgotten_calls += 1;
        }
        self.calls.push_back(Call { id: id.into(), tool, started: at });
    }

    fn result(&mut self, id: &JsonString, error: Option<&JsonText>, at: Timestamp) {
        let error = error.filter(|error| !error.is_null());
        let is_unknown = error.is_some_and(is_outcome_unknown);
        self.found.tool_results += 1;
        self.found.tool_errors += u64::from(error.is_some());
        self.found.tool_outcomes_unknown += u64::from(is_unknown);
        let id = id.to_str();
        // The nearest open call of this id.
        let call = self.calls.iter().rposition(|call| *call.id == *id);
        let Some(call) = call.and_then(|place| self.calls.remove(place)) else {
            self.found.results_without_call += 1;
            return;
        };
        let tool = self.tools.at(call.tool);
        tool.errors += u64::from(error.is_some());
        if is_unknown {
            tool.outcomes_unknown += 1;
        } else {
            let millis = millis_between(call.started, at);
            tool.call_ms.record(millis);
            self.found.call_ms.record(millis);
        }
    }

    /// Returns what was found up to here; more events can be added.
    pub fn statistics(&self) -> Statistics {
        let mut found = self.found.clone();
        for (name, count) in KNOWN_TYPES.into_iter().zip(self.known_types) {
            if count.events > 0 {
                found.by_type.insert(name.to_owned(), count);
            }
        }
        if found.events > 0 {
            found.first_at = Some(self.first_at);
            found.last_at = Some(self.last_at);
        }
        found.open_turns = u64::from(self.turn.is_open);
        found.open_calls = self.calls.len() as u64;
        self.stream.clone().end(&mut found);
        found.tools = self.tools.named();
        found.other_tools = self.tools.others.clone();
        found
    }
}

/// A turn or a step: the one that started last.
#[derive(Clone, Debug, Default)]
struct Span {
    /// Kept when it ends, to be used again.
    id: String,
    started: Timestamp,
    is_open: bool,
}

impl Span {
    fn start(&mut self, id: &JsonString, at: Timestamp) {
        self.id.clear();
        self.id.push_str(&id.to_str());
        self.started = at;
        self.is_open = true;
    }

    fn end(&mut self, id: &JsonString, at: Timestamp, durations: &mut Distribution) {
        if self.is_open && *id.to_str() == *self.id {
            self.is_open = false;
            durations.record(millis_between(self.started, at));
        }
    }
}

/// Chunks that follow each other.
#[derive(Clone, Debug, Default)]
struct Stream {
    chunks: u64,
    first: Timestamp,
    last: Timestamp,
}

impl Stream {
    /// Measures the rate: of nothing where all came at once, or a clock was set back.
    #[inline]
    fn end(&mut self, found: &mut Statistics) {
        let behind_first = std::mem::take(&mut self.chunks).saturating_sub(1);
        if behind_first == 0 {
            return;
        }
        let millis = millis_between(self.first, self.last);
        if millis > 0 {
            let rate = (u128::from(behind_first) * 1_000 + u128::from(millis / 2)) / u128::from(millis);
            found.chunks_per_second.record(u64::try_from(rate).unwrap_or(u64::MAX));
            found.streamed_chunks += behind_first;
            found.streaming_ms = found.streaming_ms.saturating_add(millis);
        }
    }
}

/// A call that waits for its result.
#[derive(Clone, Debug)]
struct Call {
    id: Box<str>,
    tool: Option<usize>,
    started: Timestamp,
}

/// Tools by their name, each with a number for the calls that are open.
#[derive(Clone, Debug, Default)]
struct Tools {
    numbers: BTreeMap<String, usize>,
    figures: Vec<ToolStatistics>,
    /// All those without a number.
    others: ToolStatistics,
}

impl Tools {
    fn find(&mut self, name: &str) -> Option<usize> {
        if let Some(number) = self.numbers.get(name) {
            return Some(*number);
        }
        if self.numbers.len() >= MAX_NAMES || name.len() > MAX_NAME_BYTES {
            return None;
        }
        let number = self.figures.len();
        self.figures.push(ToolStatistics::default());
        self.numbers.insert(name.to_owned(), number);
        Some(number)
    }

    fn at(&mut self, number: Option<usize>) -> &mut ToolStatistics {
        number.and_then(|number| self.figures.get_mut(number)).unwrap_or(&mut self.others)
    }

    fn named(&self) -> BTreeMap<String, ToolStatistics> {
        let figures = |number: usize| self.figures.get(number).cloned().unwrap_or_default();
        self.numbers.iter().map(|(name, number)| (name.clone(), figures(*number))).collect()
    }
}

/// The time between two timestamps; 0 where the clock was set back.
fn millis_between(from: Timestamp, to: Timestamp) -> u64 {
    u64::try_from(to.as_millis().saturating_sub(from.as_millis())).unwrap_or(0)
}

/// Whether a result's error is that of a closer. Only the start of the spelling is looked at.
fn is_outcome_unknown(error: &JsonText) -> bool {
    let code = error.as_str().strip_prefix('"').and_then(|text| text.strip_prefix(TOOL_OUTCOME_UNKNOWN));
    code.is_some_and(|rest| rest.starts_with([':', '"']))
}
