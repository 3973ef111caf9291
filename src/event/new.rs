//! Events to be appended, made in a line of code.

use super::surface_op::{replace_text, sources_text};
use super::{Content, Event, EventKind, JsonString, JsonText, NewEvent};
use crate::id::{Seq, Timestamp};

/// Constructors, one a type.
///
/// ```
/// use serde_json::json;
/// use sessionlog::{JsonText, NewEvent};
/// let call = NewEvent::tool_call("c1", "read_file", json!({"path": "README.md"}));
/// let typed = NewEvent::tool_call("c2", "sum", JsonText::from_serialize(&[1, 2])?);
/// let raw = NewEvent::tool_call("c3", "read_file", r#"{"path":"#); // text as the model produced it
/// let result = NewEvent::tool_result("c1", "# sessionlog");
/// let error = NewEvent::tool_error("c2", "no such tool");
/// # for event in [call, typed, raw, result, error] { event.validate()?; }
/// # Ok::<(), sessionlog::EventError>(())
/// ```
impl NewEvent {
    /// Makes an event of any kind.
    pub fn new(kind: EventKind) -> Self {
        Self {
            expected_seq: None,
            timestamp: None,
            kind,
            extra: Vec::new(),
            surface_op: None,
            source_event_seqs: None,
        }
    }

    /// `turn/start`: the agent begins to answer.
    pub fn turn_start(turn_id: impl Into<JsonString>) -> Self {
        Self::new(EventKind::TurnStart { turn_id: turn_id.into() })
    }

    /// `turn/end`; say why with [`Self::reason`].
    pub fn turn_end(turn_id: impl Into<JsonString>) -> Self {
        Self::new(EventKind::TurnEnd { turn_id: turn_id.into(), reason: None })
    }

    /// `step/start`: a request to the model, in a turn.
    pub fn step_start(step_id: impl Into<JsonString>, turn_id: impl Into<JsonString>) -> Self {
        Self::new(EventKind::StepStart { step_id: step_id.into(), turn_id: turn_id.into() })
    }

    /// `step/end`; name the turn with [`Self::turn`].
    pub fn step_end(step_id: impl Into<JsonString>) -> Self {
        Self::new(EventKind::StepEnd { step_id: step_id.into(), turn_id: None })
    }

    /// `user/message`: a text, or [`Content::parts`].
    pub fn user_message(content: impl Into<Content>) -> Self {
        Self::new(EventKind::UserMessage { content: content.into() })
    }

    /// `assistant/message`: a text, [`Content::parts`] or [`Content::null`].
    pub fn assistant_message(content: impl Into<Content>) -> Self {
        Self::new(EventKind::AssistantMessage { content: content.into(), usage: None })
    }

    /// `assistant/chunk`: a piece of a message that is streamed.
    pub fn assistant_chunk(delta: impl Into<JsonString>) -> Self {
        Self::new(EventKind::AssistantChunk { delta: delta.into() })
    }

    /// `tool/call`. A text as `args` is the raw text that the model produced, whether it is JSON or not.
    pub fn tool_call(
        id: impl Into<JsonString>,
        name: impl Into<JsonString>,
        args: impl Into<JsonText>,
    ) -> Self {
        Self::new(EventKind::ToolCall { id: id.into(), name: name.into(), args: args.into() })
    }

    /// `tool/result` of a call that worked.
    pub fn tool_result(id: impl Into<JsonString>, result: impl Into<JsonText>) -> Self {
        Self::new(EventKind::ToolResult { id: id.into(), result: Some(result.into()), error: None })
    }

    /// `tool/result` of a call that failed.
    pub fn tool_error(id: impl Into<JsonString>, error: impl Into<JsonString>) -> Self {
        let error = JsonText::from(&error.into());
        Self::new(EventKind::ToolResult { id: id.into(), result: None, error: Some(error) })
    }

    /// An event of a type of your own, its fields given with [`Self::field`].
    pub fn custom(event_type: impl Into<JsonString>) -> Self {
        Self::new(EventKind::Custom { event_type: event_type.into() })
    }
}

/// What else an event can say.
impl NewEvent {
    /// Says when it happened, instead of the clock's time.
    pub fn timestamp(mut self, timestamp: Timestamp) -> Self {
        self.timestamp = Some(timestamp);
        self
    }

    /// Says which seq it must be given: the append is refused when that is another.
    pub fn expect_seq(mut self, seq: Seq) -> Self {
        self.expected_seq = Some(seq);
        self
    }

    /// Adds a field that the event's type does not know.
    pub fn field(mut self, name: impl Into<JsonString>, value: impl Into<JsonText>) -> Self {
        self.extra.push((name.into(), value.into()));
        self
    }

    /// Says what an assistant message cost: an object. On another type it is a field like any other.
    pub fn usage(mut self, value: impl Into<JsonText>) -> Self {
        match &mut self.kind {
            EventKind::AssistantMessage { usage, .. } => {
                *usage = Some(value.into());
                self
            }
            _ => self.field("usage", value),
        }
    }

    /// Says why a turn ended: `"completed"`, `"aborted"`, … On another type it is a field like any other.
    pub fn reason(mut self, value: impl Into<JsonText>) -> Self {
        match &mut self.kind {
            EventKind::TurnEnd { reason, .. } => {
                *reason = Some(value.into());
                self
            }
            _ => self.field("reason", value),
        }
    }

    /// Names the turn of a step that ends. On another type it is the field `turnId`.
    pub fn turn(mut self, id: impl Into<JsonString>) -> Self {
        let id = id.into();
        match &mut self.kind {
            EventKind::TurnStart { turn_id }
            | EventKind::TurnEnd { turn_id, .. }
            | EventKind::StepStart { turn_id, .. } => *turn_id = id,
            EventKind::StepEnd { turn_id, .. } => *turn_id = Some(JsonText::from(&id)),
            _ => return self.field("turnId", JsonText::from(&id)),
        }
        self
    }

    /// Puts a message or result in the place of what the model sees from the event `start` to the event `end`, both
    /// included, as a compaction does.
    pub fn replace(mut self, start: Seq, end: Seq) -> Self {
        self.surface_op = Some(JsonText::from_checked(&replace_text(start, end)));
        self
    }

    /// Names the earlier events that a message or result was made from (`sourceEventSeqs`).
    pub fn sources(mut self, seqs: impl IntoIterator<Item = Seq>) -> Self {
        self.source_event_seqs = Some(JsonText::from_checked(&sources_text(seqs)));
        self
    }
}

/// The event to be appended again, elsewhere: without its seq, with its timestamp.
impl From<Event> for NewEvent {
    fn from(event: Event) -> Self {
        let Event { seq: _, timestamp, kind, extra, surface_op, source_event_seqs } = event;
        Self { expected_seq: None, timestamp: Some(timestamp), kind, extra, surface_op, source_event_seqs }
    }
}
