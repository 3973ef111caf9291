//! The names that types and fields have in the JSON form.

use std::borrow::Cow;
use std::collections::HashSet;

use super::EventKind;

pub(super) const TURN_START: &str = "turn/start";
pub(super) const TURN_END: &str = "turn/end";
pub(super) const STEP_START: &str = "step/start";
pub(super) const STEP_END: &str = "step/end";
pub(super) const USER_MESSAGE: &str = "user/message";
pub(super) const ASSISTANT_MESSAGE: &str = "assistant/message";
pub(super) const ASSISTANT_CHUNK: &str = "assistant/chunk";
pub(super) const TOOL_CALL: &str = "tool/call";
pub(super) const TOOL_RESULT: &str = "tool/result";
/// The type of an export's header line: never an event's.
pub(super) const SESSION: &str = "session";

/// Whether a custom event cannot have this type.
pub(super) fn is_taken_type(event_type: &str) -> bool {
    matches!(
        event_type,
        "" | SESSION
            | TURN_START
            | TURN_END
            | STEP_START
            | STEP_END
            | USER_MESSAGE
            | ASSISTANT_MESSAGE
            | ASSISTANT_CHUNK
            | TOOL_CALL
            | TOOL_RESULT
    )
}

/// A field's name that some type knows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Field {
    Type,
    Seq,
    Timestamp,
    TurnId,
    StepId,
    Reason,
    Content,
    Usage,
    Delta,
    Id,
    Name,
    Args,
    Result,
    Error,
    SurfaceOp,
    SourceEventSeqs,
}

impl Field {
    pub(super) fn find(text: &str) -> Option<Self> {
        Some(match text {
            "type" => Self::Type,
            "seq" => Self::Seq,
            "timestamp" => Self::Timestamp,
            "turnId" => Self::TurnId,
            "stepId" => Self::StepId,
            "reason" => Self::Reason,
            "content" => Self::Content,
            "usage" => Self::Usage,
            "delta" => Self::Delta,
            "id" => Self::Id,
            "name" => Self::Name,
            "args" => Self::Args,
            "result" => Self::Result,
            "error" => Self::Error,
            "surfaceOp" => Self::SurfaceOp,
            "sourceEventSeqs" => Self::SourceEventSeqs,
            _ => return None,
        })
    }

    pub(super) fn text(self) -> &'static str {
        match self {
            Self::Type => "type",
            Self::Seq => "seq",
            Self::Timestamp => "timestamp",
            Self::TurnId => "turnId",
            Self::StepId => "stepId",
            Self::Reason => "reason",
            Self::Content => "content",
            Self::Usage => "usage",
            Self::Delta => "delta",
            Self::Id => "id",
            Self::Name => "name",
            Self::Args => "args",
            Self::Result => "result",
            Self::Error => "error",
            Self::SurfaceOp => "surfaceOp",
            Self::SourceEventSeqs => "sourceEventSeqs",
        }
    }

    /// Whether events of this kind know the field; if not it is a field like any other there.
    pub(super) fn is_known_to(self, kind: &EventKind) -> bool {
        match self {
            Self::Type | Self::Seq | Self::Timestamp => true,
            Self::SurfaceOp | Self::SourceEventSeqs => kind.is_on_surface(),
            _ => match kind {
                EventKind::TurnStart { .. } => self == Self::TurnId,
                EventKind::TurnEnd { .. } => matches!(self, Self::TurnId | Self::Reason),
                EventKind::StepStart { .. } | EventKind::StepEnd { .. } => {
                    matches!(self, Self::StepId | Self::TurnId)
                }
                EventKind::UserMessage { .. } => self == Self::Content,
                EventKind::AssistantMessage { .. } => matches!(self, Self::Content | Self::Usage),
                EventKind::AssistantChunk { .. } => self == Self::Delta,
                EventKind::ToolCall { .. } => matches!(self, Self::Id | Self::Name | Self::Args),
                EventKind::ToolResult { .. } => matches!(self, Self::Id | Self::Result | Self::Error),
                EventKind::Custom { .. } => false,
            },
        }
    }
}

/// Names that were seen, to find one that stands twice. A line can have a million: beyond a few they are hashed.
#[derive(Debug, Default)]
pub(super) struct SeenNames<'a> {
    few: Vec<Cow<'a, str>>,
    many: HashSet<Cow<'a, str>>,
}

impl<'a> SeenNames<'a> {
    const FEW: usize = 16;

    /// Adds a name, as its text; `false` when it was there.
    pub(super) fn add(&mut self, name: Cow<'a, str>) -> bool {
        if self.few.len() < Self::FEW {
            let new = !self.few.contains(&name);
            self.few.push(name);
            return new;
        }
        if self.many.is_empty() {
            self.many.extend(self.few.iter().cloned());
        }
        self.many.insert(name)
    }
}
