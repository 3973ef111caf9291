//! Audit figures of a session, a part of one, or several. Pure: it sees events and knows no storage and no clock.
//!
//! [`tally`] folds events, one pass in bounded memory; [`Statistics`] is what it found, and can be merged.

mod distribution;
mod tally;
mod usage;

use std::collections::BTreeMap;

use serde::{Serialize, Serializer};

pub use distribution::Distribution;
pub use tally::Tally;
pub use usage::TokenUsage;

use crate::event::EventKind;
use crate::id::Timestamp;

/// The most names of tools, and of custom types, that are counted apart, and the longest such name in bytes. The
/// others are counted together: memory stays bounded whatever the names.
const MAX_NAMES: usize = 256;
const MAX_NAME_BYTES: usize = 256;
/// The types that are counted without looking their names up.
const KNOWN_TYPES: [&str; 9] = [
    "turn/start",
    "turn/end",
    "step/start",
    "step/end",
    "user/message",
    "assistant/message",
    "assistant/chunk",
    "tool/call",
    "tool/result",
];

/// What a session, a part of one, or several sessions hold, counted and measured.
///
/// Times are differences of recorded timestamps; where a clock was set back they count as 0, never less.
///
/// As JSON (serde) it has the fields' names in camel case, times in milliseconds and a [`Distribution`] as its count,
/// total, min, max, mean and percentiles.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct Statistics {
    /// Sessions, or parts of sessions, that were looked at.
    pub sessions: u64,
    /// Events.
    pub events: u64,
    /// Bytes of their lines in the JSON form, without line feeds.
    pub bytes: u64,
    /// Both by type. At most 256 custom types, with names of at most 256 bytes, are counted apart.
    pub by_type: BTreeMap<String, TypeCount>,
    /// Events of all other custom types.
    pub other_types: TypeCount,
    /// The earliest timestamp.
    #[serde(serialize_with = "millis")]
    pub first_at: Option<Timestamp>,
    /// The latest timestamp.
    #[serde(serialize_with = "millis")]
    pub last_at: Option<Timestamp>,
    /// Events whose timestamp lies before that of the event before them.
    pub clock_set_back: u64,
    /// Turns that were started.
    pub turns: u64,
    /// Sessions whose last turn has not ended: see [`Session::inspect`](crate::Session::inspect).
    pub open_turns: u64,
    /// Steps that were started.
    pub steps: u64,
    /// Messages of users and assistants.
    pub messages: u64,
    /// Tool calls.
    pub tool_calls: u64,
    /// Results of tools.
    pub tool_results: u64,
    /// Results with an error, those of unknown outcome included.
    pub tool_errors: u64,
    /// Results that closed an interrupted turn: nobody knows what the tool did.
    pub tool_outcomes_unknown: u64,
    /// Calls that have no result (yet).
    pub open_calls: u64,
    /// Calls that were forgotten before a result came: more than 1,024 were open, or the id has more than 256 bytes.
    /// Their results count as without a call.
    pub forgotten_calls: u64,
    /// Results without an open call of their id.
    pub results_without_call: u64,
    /// Calls by the tool's name. At most 256 tools, with names of at most 256 bytes, are counted apart.
    pub tools: BTreeMap<String, ToolStatistics>,
    /// Calls of all other tools.
    pub other_tools: ToolStatistics,
    /// From a turn's start to its end; of one that was interrupted, to its last event.
    pub turn_ms: Distribution,
    /// From a step's start to its end, likewise.
    pub step_ms: Distribution,
    /// From a call to its result; not where the outcome is unknown.
    pub call_ms: Distribution,
    /// From a step's start to its first chunk.
    pub first_chunk_ms: Distribution,
    /// The rate at which a message was streamed: chunks behind its first one, by the time that they took. In whole
    /// chunks; for a mean there are the next two figures.
    pub chunks_per_second: Distribution,
    /// Chunks in the rates above.
    pub streamed_chunks: u64,
    /// The time in the rates above.
    pub streaming_ms: u64,
    /// Tokens, as assistant messages tell them.
    pub usage: TokenUsage,
}

/// Events of a type.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct TypeCount {
    /// How many.
    pub events: u64,
    /// Bytes of their lines.
    pub bytes: u64,
}

/// What became of a tool's calls.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct ToolStatistics {
    /// Calls.
    pub calls: u64,
    /// Calls answered with an error, those of unknown outcome included.
    pub errors: u64,
    /// Calls that were interrupted: nobody knows what the tool did.
    pub outcomes_unknown: u64,
    /// From a call to its result; not where the outcome is unknown.
    pub call_ms: Distribution,
}

/// Where a type stands among [`KNOWN_TYPES`]; `None` for a custom one.
#[inline]
fn known_type(kind: &EventKind) -> Option<usize> {
    Some(match kind {
        EventKind::TurnStart { .. } => 0,
        EventKind::TurnEnd { .. } => 1,
        EventKind::StepStart { .. } => 2,
        EventKind::StepEnd { .. } => 3,
        EventKind::UserMessage { .. } => 4,
        EventKind::AssistantMessage { .. } => 5,
        EventKind::AssistantChunk { .. } => 6,
        EventKind::ToolCall { .. } => 7,
        EventKind::ToolResult { .. } => 8,
        EventKind::Custom { .. } => return None,
    })
}

impl Statistics {
    /// Adds what was found elsewhere: in another session, or in another part of the same one.
    ///
    /// Counts, bytes, tokens and the first and last time then are those of the whole. Of parts of one session, what
    /// began in one and ended in another (a turn, a call, a streamed message) is measured in neither.
    ///
    /// # Examples
    /// ```
    /// # fn main() -> sessionlog::Result<()> {
    /// use sessionlog::{NewEvent, NewSession, Store};
    /// let store = Store::in_memory()?;
    /// let mut all = sessionlog::Statistics::default();
    /// for text in ["hello", "good day"] {
    ///     let session = store.create(NewSession::new())?;
    ///     session.append(NewEvent::user_message(text))?;
    ///     all.merge(&session.statistics()?);
    /// }
    /// assert_eq!((all.sessions, all.messages), (2, 2));
    /// # Ok(()) }
    /// ```
    pub fn merge(&mut self, other: &Self) {
        for (mine, theirs) in self.counts().into_iter().zip(other.clone().counts()) {
            *mine = mine.saturating_add(*theirs);
        }
        for (name, count) in &other.by_type {
            let mine = match KNOWN_TYPES.contains(&name.as_str()) {
                true => self.by_type.entry(name.clone()).or_default(),
                false => named(&mut self.by_type, &mut self.other_types, name),
            };
            mine.merge(*count);
        }
        self.other_types.merge(other.other_types);
        for (name, tool) in &other.tools {
            named(&mut self.tools, &mut self.other_tools, name).merge(tool);
        }
        self.other_tools.merge(&other.other_tools);
        self.first_at = [self.first_at, other.first_at].into_iter().flatten().min();
        self.last_at = self.last_at.max(other.last_at);
        for (mine, theirs) in [
            (&mut self.turn_ms, &other.turn_ms),
            (&mut self.step_ms, &other.step_ms),
            (&mut self.call_ms, &other.call_ms),
            (&mut self.first_chunk_ms, &other.first_chunk_ms),
            (&mut self.chunks_per_second, &other.chunks_per_second),
        ] {
            mine.merge(theirs);
        }
        self.usage.merge(&other.usage);
    }

    /// The figures that are added up and nothing else.
    fn counts(&mut self) -> [&mut u64; 17] {
        [
            &mut self.sessions,
            &mut self.events,
            &mut self.bytes,
            &mut self.clock_set_back,
            &mut self.turns,
            &mut self.open_turns,
            &mut self.steps,
            &mut self.messages,
            &mut self.tool_calls,
            &mut self.tool_results,
            &mut self.tool_errors,
            &mut self.tool_outcomes_unknown,
            &mut self.open_calls,
            &mut self.forgotten_calls,
            &mut self.results_without_call,
            &mut self.streamed_chunks,
            &mut self.streaming_ms,
        ]
    }
}

impl TypeCount {
    fn add(&mut self, bytes: u64) {
        self.events += 1;
        self.bytes = self.bytes.saturating_add(bytes);
    }

    fn merge(&mut self, other: Self) {
        self.events = self.events.saturating_add(other.events);
        self.bytes = self.bytes.saturating_add(other.bytes);
    }
}

impl ToolStatistics {
    fn merge(&mut self, other: &Self) {
        self.calls = self.calls.saturating_add(other.calls);
        self.errors = self.errors.saturating_add(other.errors);
        self.outcomes_unknown = self.outcomes_unknown.saturating_add(other.outcomes_unknown);
        self.call_ms.merge(&other.call_ms);
    }
}

/// The entry of this name; the one for all others when it has none and cannot have one.
fn named<'a, T: Default>(names: &'a mut BTreeMap<String, T>, others: &'a mut T, name: &str) -> &'a mut T {
    if !names.contains_key(name) && (name.len() > MAX_NAME_BYTES || unknown(names) >= MAX_NAMES) {
        return others;
    }
    names.entry(name.to_owned()).or_default()
}

/// How many names there are, but for those of known types, which always have their entry.
fn unknown<T>(names: &BTreeMap<String, T>) -> usize {
    names.keys().filter(|name| !KNOWN_TYPES.contains(&name.as_str())).count()
}

fn millis<S: Serializer>(timestamp: &Option<Timestamp>, serializer: S) -> Result<S::Ok, S::Error> {
    timestamp.map(Timestamp::as_millis).serialize(serializer)
}

#[cfg(test)]
mod tests;
