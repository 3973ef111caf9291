//! What constructors and public fields let through and a line could not say, or would say differently when read back.

use super::content::check_content;
use super::names::{self, Field, SeenNames};
use super::scan::Fault;
use super::surface_op::{read_op, read_sources};
use super::wire::{object_or_null, string_or_null};
use super::{EventKind, JsonText, NewEvent};
use crate::error::{EventError, EventFault};

impl NewEvent {
    /// Checks the event: whether its line, read again, would give it. An append does this too.
    ///
    /// ```
    /// use sessionlog::NewEvent;
    /// assert!(NewEvent::custom("x-vendor/note").field("content", "any").validate().is_ok());
    /// assert!(NewEvent::custom("session").validate().is_err());
    /// assert!(NewEvent::user_message("hi").field("content", "twice").validate().is_err());
    /// ```
    ///
    /// # Errors
    /// The first fault, with its field; it has no column.
    pub fn validate(&self) -> Result<(), EventError> {
        check_kind(&self.kind)?;
        if self.kind.is_on_surface() {
            check(Field::SurfaceOp, self.surface_op.as_ref(), read_op)?;
            check(Field::SourceEventSeqs, self.source_event_seqs.as_ref(), read_sources)?;
        } else {
            no_surface(Field::SurfaceOp, self.surface_op.as_ref())?;
            no_surface(Field::SourceEventSeqs, self.source_event_seqs.as_ref())?;
        }
        if self.extra.is_empty() {
            return Ok(());
        }
        let mut seen = SeenNames::default();
        for (name, _) in &self.extra {
            let name = name.to_str();
            if Field::find(&name).is_some_and(|known| known.is_known_to(&self.kind)) {
                return Err(
                    invalid("the type has this field: set it there, not among the others").field(&name)
                );
            }
            if !seen.add(name.clone()) {
                return Err(EventError::new(EventFault::DuplicateField).field(&name));
            }
        }
        Ok(())
    }
}

fn check_kind(kind: &EventKind) -> Result<(), EventError> {
    match kind {
        EventKind::TurnStart { .. }
        | EventKind::TurnEnd { .. }
        | EventKind::StepStart { .. }
        | EventKind::AssistantChunk { .. }
        | EventKind::ToolCall { .. } => Ok(()),
        EventKind::StepEnd { turn_id, .. } => check(Field::TurnId, turn_id.as_ref(), string_or_null),
        EventKind::UserMessage { content } if content.is_null() => {
            check(Field::Content, Some(content.json()), |json| check_content(json, false))
        }
        // Other content was checked when it was made.
        EventKind::UserMessage { .. } => Ok(()),
        EventKind::AssistantMessage { usage, .. } => check(Field::Usage, usage.as_ref(), object_or_null),
        EventKind::ToolResult { result: None, error, .. } if error.as_ref().is_none_or(JsonText::is_null) => {
            Err(EventError::new(EventFault::MissingField).field(Field::Result.text()))
        }
        EventKind::ToolResult { error, .. } => check(Field::Error, error.as_ref(), string_or_null),
        EventKind::Custom { event_type } if names::is_taken_type(&event_type.to_str()) => {
            Err(invalid("a custom event cannot have this type").field(Field::Type.text()))
        }
        EventKind::Custom { .. } => Ok(()),
    }
}

fn check<T>(
    name: Field,
    value: Option<&JsonText>,
    read: impl FnOnce(&str) -> Result<T, Fault>,
) -> Result<(), EventError> {
    match value.map(|value| read(value.as_str())) {
        Some(Err(fault)) => Err(EventError::new(fault.fault).field(name.text())),
        _ => Ok(()),
    }
}

fn no_surface(name: Field, value: Option<&JsonText>) -> Result<(), EventError> {
    match value {
        Some(_) => Err(invalid("only messages and tool results can carry it").field(name.text())),
        None => Ok(()),
    }
}

fn invalid(reason: &'static str) -> EventError {
    EventError::new(EventFault::Invalid { reason })
}
