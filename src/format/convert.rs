//! Between events and the shapes they are stored in.

use super::stored_v1::{Fields, StoredEvent, StoredKind, StoredRest};
use crate::event::{Content, Event, EventKind, EventParts, JsonString, JsonText};
use crate::id::{Seq, Timestamp};

impl<'a> StoredEvent<'a> {
    pub(super) fn from_parts(parts: &EventParts<'a>) -> Self {
        let has_rest =
            !parts.extra.is_empty() || parts.surface_op.is_some() || parts.source_event_seqs.is_some();
        let rest = has_rest.then(|| StoredRest {
            extra: Fields(
                parts.extra.iter().map(|(name, value)| (name.spelling(), value.as_str())).collect(),
            ),
            surface_op: parts.surface_op.map(JsonText::as_str),
            source_event_seqs: parts.source_event_seqs.map(JsonText::as_str),
        });
        Self { kind: StoredKind::from_kind(parts.kind), rest }
    }

    pub(super) fn is_chunk(&self) -> bool {
        matches!(self.kind, StoredKind::AssistantChunk { .. })
    }

    /// What the surface looks at; `None` when it does not look at all.
    pub(super) fn for_surface(mut self) -> Option<Self> {
        match &mut self.kind {
            StoredKind::AssistantChunk { .. } | StoredKind::Custom { .. } => return None,
            StoredKind::TurnStart { turn_id } => *turn_id = "",
            StoredKind::TurnEnd { turn_id, reason } => (*turn_id, *reason) = ("", None),
            StoredKind::StepStart { step_id, turn_id } => (*step_id, *turn_id) = ("", ""),
            StoredKind::StepEnd { step_id, turn_id } => (*step_id, *turn_id) = ("", None),
            StoredKind::AssistantMessage { usage, .. } => *usage = None,
            StoredKind::UserMessage { .. } | StoredKind::ToolCall { .. } | StoredKind::ToolResult { .. } => {}
        }
        if let Some(rest) = &mut self.rest {
            rest.extra = Fields::default();
        }
        Some(self)
    }

    pub(super) fn into_event(self, seq: Seq, timestamp: Timestamp) -> Event {
        let kind = self.kind.into_kind();
        let Some(rest) = self.rest else {
            return Event {
                seq,
                timestamp,
                kind,
                extra: Vec::new(),
                surface_op: None,
                source_event_seqs: None,
            };
        };
        let field = |(name, value)| (JsonString::from_checked(name), JsonText::from_checked(value));
        Event {
            seq,
            timestamp,
            kind,
            extra: rest.extra.0.into_iter().map(field).collect(),
            surface_op: rest.surface_op.map(JsonText::from_checked),
            source_event_seqs: rest.source_event_seqs.map(JsonText::from_checked),
        }
    }
}

impl<'a> StoredKind<'a> {
    fn from_kind(kind: &'a EventKind) -> Self {
        fn any(json: Option<&JsonText>) -> Option<&str> {
            json.map(JsonText::as_str)
        }
        match kind {
            EventKind::TurnStart { turn_id } => Self::TurnStart { turn_id: turn_id.spelling() },
            EventKind::TurnEnd { turn_id, reason } => {
                Self::TurnEnd { turn_id: turn_id.spelling(), reason: any(reason.as_ref()) }
            }
            EventKind::StepStart { step_id, turn_id } => {
                Self::StepStart { step_id: step_id.spelling(), turn_id: turn_id.spelling() }
            }
            EventKind::StepEnd { step_id, turn_id } => {
                Self::StepEnd { step_id: step_id.spelling(), turn_id: any(turn_id.as_ref()) }
            }
            EventKind::UserMessage { content } => Self::UserMessage { content: content.json().as_str() },
            EventKind::AssistantMessage { content, usage } => {
                Self::AssistantMessage { content: content.json().as_str(), usage: any(usage.as_ref()) }
            }
            EventKind::AssistantChunk { delta } => Self::AssistantChunk { delta: delta.spelling() },
            EventKind::ToolCall { id, name, args } => {
                Self::ToolCall { id: id.spelling(), name: name.spelling(), args: args.as_str() }
            }
            EventKind::ToolResult { id, result, error } => Self::ToolResult {
                id: id.spelling(),
                result: any(result.as_ref()),
                error: any(error.as_ref()),
            },
            EventKind::Custom { event_type } => Self::Custom { event_type: event_type.spelling() },
        }
    }

    fn into_kind(self) -> EventKind {
        let string = JsonString::from_checked;
        let json = JsonText::from_checked;
        let content = |text| Content::from_checked(json(text));
        match self {
            Self::TurnStart { turn_id } => EventKind::TurnStart { turn_id: string(turn_id) },
            Self::TurnEnd { turn_id, reason } => {
                EventKind::TurnEnd { turn_id: string(turn_id), reason: reason.map(json) }
            }
            Self::StepStart { step_id, turn_id } => {
                EventKind::StepStart { step_id: string(step_id), turn_id: string(turn_id) }
            }
            Self::StepEnd { step_id, turn_id } => {
                EventKind::StepEnd { step_id: string(step_id), turn_id: turn_id.map(json) }
            }
            Self::UserMessage { content: text } => EventKind::UserMessage { content: content(text) },
            Self::AssistantMessage { content: text, usage } => {
                EventKind::AssistantMessage { content: content(text), usage: usage.map(json) }
            }
            Self::AssistantChunk { delta } => EventKind::AssistantChunk { delta: string(delta) },
            Self::ToolCall { id, name, args } => {
                EventKind::ToolCall { id: string(id), name: string(name), args: json(args) }
            }
            Self::ToolResult { id, result, error } => {
                EventKind::ToolResult { id: string(id), result: result.map(json), error: error.map(json) }
            }
            Self::Custom { event_type } => EventKind::Custom { event_type: string(event_type) },
        }
    }
}
