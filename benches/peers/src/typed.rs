//! What the peers give their readers: events and messages with types, from JSON text, as a user with serde writes it.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use crate::Outcome;

/// An event as it is read.
#[derive(Debug)]
pub struct Event {
    pub seq: u64,
    pub timestamp: i64,
    pub kind: Kind,
}

/// What happened.
#[derive(Debug)]
pub enum Kind {
    TurnStart { turn: String },
    TurnEnd { turn: String, reason: Option<String> },
    StepStart { step: String, turn: String },
    StepEnd { step: String, turn: Option<String> },
    UserMessage { content: String },
    AssistantMessage { content: String },
    Chunk { delta: String },
    ToolCall { id: String, name: String, args: Box<RawValue> },
    ToolResult { id: String, result: Option<Box<RawValue>>, error: Option<String> },
}

/// All fields of all types. An internally tagged enum would be shorter to write, but serde then buffers each event
/// before it looks at the tag: this is the faster way.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Line<'a> {
    #[serde(borrow, rename = "type")]
    event_type: Cow<'a, str>,
    seq: u64,
    timestamp: i64,
    turn_id: Option<String>,
    step_id: Option<String>,
    content: Option<String>,
    delta: Option<String>,
    id: Option<String>,
    name: Option<String>,
    args: Option<Box<RawValue>>,
    result: Option<Box<RawValue>>,
    error: Option<String>,
    reason: Option<String>,
}

/// Decodes an event.
pub fn parse(json: &[u8]) -> Outcome<Event> {
    let line: Line<'_> = serde_json::from_slice(json)?;
    let kind = match line.event_type.as_ref() {
        "turn/start" => Kind::TurnStart { turn: there(line.turn_id)? },
        "turn/end" => Kind::TurnEnd { turn: there(line.turn_id)?, reason: line.reason },
        "step/start" => Kind::StepStart { step: there(line.step_id)?, turn: there(line.turn_id)? },
        "step/end" => Kind::StepEnd { step: there(line.step_id)?, turn: line.turn_id },
        "user/message" => Kind::UserMessage { content: there(line.content)? },
        "assistant/message" => Kind::AssistantMessage { content: there(line.content)? },
        "assistant/chunk" => Kind::Chunk { delta: there(line.delta)? },
        "tool/call" => {
            Kind::ToolCall { id: there(line.id)?, name: there(line.name)?, args: there(line.args)? }
        }
        "tool/result" => Kind::ToolResult { id: there(line.id)?, result: line.result, error: line.error },
        other => return Err(format!("unknown type {other}").into()),
    };
    Ok(Event { seq: line.seq, timestamp: line.timestamp, kind })
}

fn there<T>(field: Option<T>) -> Outcome<T> {
    field.ok_or_else(|| "a field is missing".into())
}

/// A message of the chat API.
#[derive(Debug)]
pub struct Message {
    pub role: &'static str,
    pub content: String,
    pub tool_call_id: Option<String>,
    /// Name and arguments.
    pub call: Option<(String, Box<RawValue>)>,
}

impl Message {
    /// What the model sees of an event: one message each. (Pairing of calls and results, compaction, and what a
    /// provider refuses would come on top.)
    pub fn of(event: Event) -> Option<Self> {
        let plain = |role, content| Self { role, content, tool_call_id: None, call: None };
        Some(match event.kind {
            Kind::UserMessage { content } => plain("user", content),
            Kind::AssistantMessage { content } => plain("assistant", content),
            Kind::ToolCall { id, name, args } => Self {
                role: "assistant",
                content: String::new(),
                tool_call_id: Some(id),
                call: Some((name, args)),
            },
            Kind::ToolResult { id, result, error } => Self {
                role: "tool",
                content: error.or(result.map(|result| result.get().to_owned())).unwrap_or_default(),
                tool_call_id: Some(id),
                call: None,
            },
            _ => return None,
        })
    }
}

/// What a list of sessions shows.
#[derive(Debug, Deserialize, Serialize)]
pub struct Listed {
    pub id: String,
    pub updated: i64,
    pub length: u64,
}
