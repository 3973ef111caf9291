//! What is said: events as they are given, stored and read. Knows no storage.

mod content;
mod escape;
mod json_text;
mod line;
mod members;
mod names;
mod new;
mod scan;
mod surface_op;
#[cfg(test)]
pub(crate) mod tests;
mod validate;
mod wire;

pub use content::Content;
pub(crate) use content::{PartKind, parts_of};
pub use json_text::{JsonString, JsonText};
pub(crate) use line::{line_len, write_line};
pub use members::JsonMember;
pub use surface_op::SurfaceOp;

use std::borrow::Cow;

use crate::id::{Seq, Timestamp};

/// An event of a session, with the seq and timestamp it was given.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Event {
    /// Its position in the session.
    pub seq: Seq,
    /// When it was appended, or when its author says that it happened.
    pub timestamp: Timestamp,
    /// What happened.
    pub kind: EventKind,
    /// Fields that the type does not know, as they came: name (as spelled, without quotes) and value.
    pub extra: Vec<(JsonString, JsonText)>,
    /// `surfaceOp` of messages and results: `"append"` or a replace; a JSON `null` counts as absent.
    pub surface_op: Option<JsonText>,
    /// `sourceEventSeqs` of messages and results; a JSON `null` counts as absent.
    pub source_event_seqs: Option<JsonText>,
}

/// An event to be appended: without a seq, which the log gives.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct NewEvent {
    /// The seq that the caller expects it to be given; refused when it is another.
    pub expected_seq: Option<Seq>,
    /// When it happened; the clock's time when `None`.
    pub timestamp: Option<Timestamp>,
    /// What happened.
    pub kind: EventKind,
    /// Fields that the type does not know.
    pub extra: Vec<(JsonString, JsonText)>,
    /// `surfaceOp` of messages and results.
    pub surface_op: Option<JsonText>,
    /// `sourceEventSeqs` of messages and results.
    pub source_event_seqs: Option<JsonText>,
}

/// What happened. Optional fields hold a JSON `null` where one was given: it counts as absent and comes back.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum EventKind {
    /// `turn/start`: the agent begins to answer.
    TurnStart {
        /// Names the turn.
        turn_id: JsonString,
    },
    /// `turn/end`.
    TurnEnd {
        /// The turn that ended.
        turn_id: JsonString,
        /// `"completed"`, `"aborted"`, … or any other JSON.
        reason: Option<JsonText>,
    },
    /// `step/start`: one request to the model, and what comes of it.
    StepStart {
        /// Names the step.
        step_id: JsonString,
        /// The turn it belongs to.
        turn_id: JsonString,
    },
    /// `step/end`.
    StepEnd {
        /// The step that ended.
        step_id: JsonString,
        /// The turn it belongs to: a string.
        turn_id: Option<JsonText>,
    },
    /// `user/message`.
    UserMessage {
        /// What the user said.
        content: Content,
    },
    /// `assistant/message`.
    AssistantMessage {
        /// What the model said; may be null.
        content: Content,
        /// What it cost: an object.
        usage: Option<JsonText>,
    },
    /// `assistant/chunk`: a piece of a message while it is streamed.
    AssistantChunk {
        /// The piece.
        delta: JsonString,
    },
    /// `tool/call`.
    ToolCall {
        /// Joins the call and its result.
        id: JsonString,
        /// The tool.
        name: JsonString,
        /// What it is called with.
        args: JsonText,
    },
    /// `tool/result`: has a result, an error, or both.
    ToolResult {
        /// The call it answers.
        id: JsonString,
        /// What the tool returned. A JSON `null` here is a result.
        result: Option<JsonText>,
        /// Why it failed: a string.
        error: Option<JsonText>,
    },
    /// Any other type; its fields are in `extra`.
    Custom {
        /// The type.
        event_type: JsonString,
    },
}

/// The parts of an event that are stored, borrowed from an [`Event`] or a [`NewEvent`] that was given its timestamp.
#[derive(Clone, Copy, Debug)]
pub(crate) struct EventParts<'a> {
    pub(crate) timestamp: Timestamp,
    pub(crate) kind: &'a EventKind,
    pub(crate) extra: &'a [(JsonString, JsonText)],
    pub(crate) surface_op: Option<&'a JsonText>,
    pub(crate) source_event_seqs: Option<&'a JsonText>,
}

impl EventKind {
    /// Returns the type's name, as the JSON form has it.
    pub fn event_type(&self) -> Cow<'_, str> {
        match self {
            Self::Custom { event_type } => event_type.to_str(),
            _ => Cow::Borrowed(self.type_spelling()),
        }
    }

    /// Returns the type's name as it was spelled, between its quotes.
    pub fn type_spelling(&self) -> &str {
        match self {
            Self::TurnStart { .. } => names::TURN_START,
            Self::TurnEnd { .. } => names::TURN_END,
            Self::StepStart { .. } => names::STEP_START,
            Self::StepEnd { .. } => names::STEP_END,
            Self::UserMessage { .. } => names::USER_MESSAGE,
            Self::AssistantMessage { .. } => names::ASSISTANT_MESSAGE,
            Self::AssistantChunk { .. } => names::ASSISTANT_CHUNK,
            Self::ToolCall { .. } => names::TOOL_CALL,
            Self::ToolResult { .. } => names::TOOL_RESULT,
            Self::Custom { event_type } => event_type.spelling(),
        }
    }

    /// Whether it can carry `surfaceOp` and `sourceEventSeqs`: a message or a tool's result.
    pub(crate) fn is_on_surface(&self) -> bool {
        matches!(self, Self::UserMessage { .. } | Self::AssistantMessage { .. } | Self::ToolResult { .. })
    }
}

impl Event {
    /// Returns the type's name, as the JSON form has it.
    pub fn event_type(&self) -> Cow<'_, str> {
        self.kind.event_type()
    }

    /// Reads the field of this name: what the event does to the surface.
    pub fn surface_op(&self) -> SurfaceOp {
        surface_op_of(self.surface_op.as_ref())
    }

    /// Reads the field of this name: the earlier events that this one was made from.
    pub fn source_event_seqs(&self) -> Vec<Seq> {
        sources_of(self.source_event_seqs.as_ref())
    }

    pub(crate) fn parts(&self) -> EventParts<'_> {
        EventParts {
            timestamp: self.timestamp,
            kind: &self.kind,
            extra: &self.extra,
            surface_op: self.surface_op.as_ref(),
            source_event_seqs: self.source_event_seqs.as_ref(),
        }
    }
}

impl NewEvent {
    /// Returns the type's name, as the JSON form has it.
    pub fn event_type(&self) -> Cow<'_, str> {
        self.kind.event_type()
    }

    /// Reads the field of this name: what the event does to the surface. One that [`Self::validate`] refuses counts as
    /// absent.
    pub fn surface_op(&self) -> SurfaceOp {
        surface_op_of(self.surface_op.as_ref())
    }

    /// Reads the field of this name: the earlier events that this one was made from. One that [`Self::validate`]
    /// refuses counts as absent.
    pub fn source_event_seqs(&self) -> Vec<Seq> {
        sources_of(self.source_event_seqs.as_ref())
    }

    /// The parts with the timestamp it was given, or `now`.
    pub(crate) fn parts(&self, now: Timestamp) -> EventParts<'_> {
        EventParts {
            timestamp: self.timestamp.unwrap_or(now),
            kind: &self.kind,
            extra: &self.extra,
            surface_op: self.surface_op.as_ref(),
            source_event_seqs: self.source_event_seqs.as_ref(),
        }
    }

    /// The event that it becomes when it is given `seq`.
    #[cfg(test)]
    pub(crate) fn into_event(self, seq: Seq, now: Timestamp) -> Event {
        let Self { expected_seq: _, timestamp, kind, extra, surface_op, source_event_seqs } = self;
        Event { seq, timestamp: timestamp.unwrap_or(now), kind, extra, surface_op, source_event_seqs }
    }
}

pub(crate) fn surface_op_of(json: Option<&JsonText>) -> SurfaceOp {
    json.and_then(|json| surface_op::read_op(json.as_str()).ok()).unwrap_or_default()
}

pub(crate) fn sources_of(json: Option<&JsonText>) -> Vec<Seq> {
    json.and_then(|json| surface_op::read_sources(json.as_str()).ok()).unwrap_or_default()
}
