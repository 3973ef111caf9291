//! Events from their JSON form. The way back is in `line.rs`.

use super::content::check_content;
use super::escape::unescape;
use super::names::{self, Field, SeenNames};
use super::scan::{Fault, Scanned, Scanner, with_text};
use super::surface_op::{read_op, read_seq, read_sources, read_timestamp};
use super::{Content, Event, EventKind, JsonString, JsonText, NewEvent};
use crate::error::{EventError, EventFault};
use crate::id::{Seq, Timestamp};

impl Event {
    /// Reads an event from its JSON form: an object with `type`, `seq`, `timestamp` and the fields of its type, in any
    /// order. White space around it, also a line's end, is fine.
    ///
    /// ```
    /// use sessionlog::Event;
    /// let line = r#"{"type":"turn/start","seq":0,"turnId":"turn-1","timestamp":1700000001000}"#;
    /// let event = Event::from_json(line.as_bytes()).unwrap();
    /// assert_eq!(event.seq.get(), 0);
    /// assert_eq!(event.to_json(), line);
    /// ```
    ///
    /// # Errors
    /// The first fault, with its column.
    pub fn from_json(line: &[u8]) -> Result<Self, EventError> {
        with_text(line, |line| {
            let mut fields = Fields::scan(line)?;
            let seq = fields.need(Field::Seq).and_then(|value| typed(Field::Seq, value, read_seq))?;
            let timestamp = fields
                .need(Field::Timestamp)
                .and_then(|value| typed(Field::Timestamp, value, read_timestamp))?;
            let NewEvent { kind, extra, surface_op, source_event_seqs, .. } = fields.into_event()?;
            Ok(Self { seq, timestamp, kind, extra, surface_op, source_event_seqs })
        })
    }
}

impl NewEvent {
    /// Reads an event to be appended from its JSON form: as [`Event::from_json`], but `timestamp` may be absent, and
    /// `seq` is an expectation that may be absent.
    ///
    /// ```
    /// use sessionlog::{EventFault, NewEvent};
    /// let event = NewEvent::from_json(br#"{"type":"user/message","content":"hi"}"#).unwrap();
    /// assert_eq!(event, NewEvent::user_message("hi"));
    /// let error = NewEvent::from_json(br#"{"type":"user/message","content":3}"#).unwrap_err();
    /// assert_eq!((error.column, error.field.as_deref()), (Some(34), Some("content")));
    /// ```
    ///
    /// # Errors
    /// The first fault, with its column.
    pub fn from_json(line: &[u8]) -> Result<Self, EventError> {
        with_text(line, |line| {
            let mut fields = Fields::scan(line)?;
            let seq = fields.take_given(Field::Seq);
            let expected_seq: Option<Seq> =
                seq.map(|value| typed(Field::Seq, value, read_seq)).transpose()?;
            let timestamp = fields.take_given(Field::Timestamp);
            let timestamp: Option<Timestamp> =
                timestamp.map(|value| typed(Field::Timestamp, value, read_timestamp)).transpose()?;
            Ok(Self { expected_seq, timestamp, ..fields.into_event()? })
        })
    }
}

/// Reads a field; what is wrong stands at its value.
fn typed<T>(
    name: Field,
    value: Scanned<'_>,
    read: impl FnOnce(&str) -> Result<T, EventFault>,
) -> Result<T, EventError> {
    read(value.raw).map_err(|fault| EventError::new(fault).at(value.at).field(name.text()))
}

/// The members of an event's object, before its type is known.
struct Fields<'a> {
    members: Vec<Member<'a>>,
    /// Where the object's closing brace stands: where a missing field would.
    end: usize,
}

struct Member<'a> {
    /// `None` for a name that no type knows.
    known: Option<Field>,
    name: &'a str,
    /// `None` once it was taken.
    value: Option<Scanned<'a>>,
}

impl<'a> Fields<'a> {
    /// Goes through the whole line, so that faults of JSON come before faults of the event.
    fn scan(line: &'a str) -> Result<Self, EventError> {
        let mut scanner = Scanner::new(line);
        scanner.skip_space();
        scanner.open(b'{', "an object")?;
        let mut members = Vec::with_capacity(8);
        let mut known_seen = 0_u32;
        let mut others_seen = SeenNames::default();
        while let Some((name_at, name)) = scanner.next_member(members.is_empty())? {
            let text = unescape(name);
            let known = Field::find(&text);
            let new = match known {
                Some(known) => {
                    let bit = 1 << known as u32;
                    let new = known_seen & bit == 0;
                    known_seen |= bit;
                    new
                }
                None => others_seen.add(text),
            };
            if !new {
                let error = EventError::new(EventFault::DuplicateField);
                return Err(error.at(name_at).field(&unescape(name)));
            }
            members.push(Member { known, name, value: Some(scanner.value()?) });
        }
        let end = scanner.at().saturating_sub(1);
        scanner.end()?;
        Ok(Self { members, end })
    }

    fn take(&mut self, name: Field) -> Option<Scanned<'a>> {
        self.members.iter_mut().find(|member| member.known == Some(name))?.value.take()
    }

    /// Takes a field in which `null` means that it is absent, and need not come back.
    fn take_given(&mut self, name: Field) -> Option<Scanned<'a>> {
        self.take(name).filter(|value| !value.is_null())
    }

    fn need(&mut self, name: Field) -> Result<Scanned<'a>, EventError> {
        match self.take(name) {
            Some(value) => Ok(value),
            None => Err(self.missing(name)),
        }
    }

    fn missing(&self, name: Field) -> EventError {
        EventError::new(EventFault::MissingField).at(self.end).field(name.text())
    }

    /// Takes a string that must be there.
    fn string(&mut self, name: Field) -> Result<JsonString, EventError> {
        let value = self.need(name)?;
        typed(name, value, |json| {
            let spelling = json.strip_prefix('"').and_then(|json| json.strip_suffix('"'));
            spelling.map(JsonString::from_checked).ok_or(EventFault::WrongType { expected: "a string" })
        })
    }

    /// Takes a field that may be absent, and whose value `check` judges.
    fn optional<T>(
        &mut self,
        name: Field,
        check: impl FnOnce(&str) -> Result<T, Fault>,
    ) -> Result<Option<JsonText>, EventError> {
        self.take(name).map(|value| checked(name, value, check)).transpose()
    }

    fn content(&mut self, may_be_null: bool) -> Result<Content, EventError> {
        let value = self.need(Field::Content)?;
        let json = checked(Field::Content, value, |json| check_content(json, may_be_null))?;
        Ok(Content::from_checked(json))
    }

    /// What is left once seq and timestamp are taken.
    fn into_event(mut self) -> Result<NewEvent, EventError> {
        let kind = self.kind()?;
        let mut event = NewEvent::new(kind);
        if event.kind.is_on_surface() {
            event.surface_op = self.optional(Field::SurfaceOp, read_op)?;
            event.source_event_seqs = self.optional(Field::SourceEventSeqs, read_sources)?;
        }
        event.extra = Vec::with_capacity(self.members.iter().filter(|member| member.value.is_some()).count());
        for Member { name, value, .. } in self.members {
            if let Some(value) = value {
                event.extra.push((JsonString::from_checked(name), JsonText::from_scanned(value.into_text())));
            }
        }
        Ok(event)
    }

    fn kind(&mut self) -> Result<EventKind, EventError> {
        let value = self.need(Field::Type)?;
        let type_at = value.at;
        let fault = |fault| Err(EventError::new(fault).at(type_at).field(Field::Type.text()));
        let Some(spelling) = value.raw.strip_prefix('"').and_then(|raw| raw.strip_suffix('"')) else {
            return fault(EventFault::WrongType { expected: "a string" });
        };
        Ok(match &*unescape(spelling) {
            names::TURN_START => EventKind::TurnStart { turn_id: self.string(Field::TurnId)? },
            names::TURN_END => EventKind::TurnEnd {
                turn_id: self.string(Field::TurnId)?,
                reason: self.optional(Field::Reason, |_| Ok(()))?,
            },
            names::STEP_START => EventKind::StepStart {
                step_id: self.string(Field::StepId)?,
                turn_id: self.string(Field::TurnId)?,
            },
            names::STEP_END => EventKind::StepEnd {
                step_id: self.string(Field::StepId)?,
                turn_id: self.optional(Field::TurnId, string_or_null)?,
            },
            names::USER_MESSAGE => EventKind::UserMessage { content: self.content(false)? },
            names::ASSISTANT_MESSAGE => EventKind::AssistantMessage {
                content: self.content(true)?,
                usage: self.optional(Field::Usage, object_or_null)?,
            },
            names::ASSISTANT_CHUNK => EventKind::AssistantChunk { delta: self.string(Field::Delta)? },
            names::TOOL_CALL => EventKind::ToolCall {
                id: self.string(Field::Id)?,
                name: self.string(Field::Name)?,
                args: JsonText::from_scanned(self.need(Field::Args)?.into_text()),
            },
            names::TOOL_RESULT => self.tool_result()?,
            names::SESSION => return fault(EventFault::Invalid { reason: "an event cannot be a header" }),
            "" => return fault(EventFault::Invalid { reason: "a type cannot be empty" }),
            _ => EventKind::Custom { event_type: JsonString::from_checked(spelling) },
        })
    }

    fn tool_result(&mut self) -> Result<EventKind, EventError> {
        let id = self.string(Field::Id)?;
        let result = self.optional(Field::Result, |_| Ok(()))?;
        let error = self.optional(Field::Error, string_or_null)?;
        if result.is_none() && error.as_ref().is_none_or(JsonText::is_null) {
            return Err(self.missing(Field::Result));
        }
        Ok(EventKind::ToolResult { id, result, error })
    }
}

/// Judges a value as it stands in the line, so that faults inside it have their place there.
fn checked<T>(
    name: Field,
    value: Scanned<'_>,
    check: impl FnOnce(&str) -> Result<T, Fault>,
) -> Result<JsonText, EventError> {
    match check(value.raw) {
        Ok(_) => Ok(JsonText::from_scanned(value.into_text())),
        Err(fault) => Err(EventError::from(fault.behind(value.at)).field(name.text())),
    }
}

pub(super) fn string_or_null(json: &str) -> Result<(), Fault> {
    expect(json.starts_with('"') || json == "null", "a string")
}

pub(super) fn object_or_null(json: &str) -> Result<(), Fault> {
    expect(json.starts_with('{') || json == "null", "an object")
}

fn expect(is_so: bool, expected: &'static str) -> Result<(), Fault> {
    if is_so { Ok(()) } else { Err(Fault::new(0, EventFault::WrongType { expected })) }
}
