//! The JSON form of an event, one line. It is what hashes are computed over: its bytes never change.

use std::fmt;

use super::{Event, EventKind, EventParts, JsonText};
use crate::id::Seq;

impl Event {
    /// Returns the JSON form, one line without its end, in the one order that events are written in.
    pub fn to_json(&self) -> String {
        let mut line = Vec::new();
        self.write_json(&mut line);
        String::from_utf8(line).unwrap_or_default() // pieces of text, one after the other, are text
    }

    /// Appends the JSON form to `out`, as [`Self::to_json`], without an allocation of its own.
    pub fn write_json(&self, out: &mut Vec<u8>) {
        write_line(self.seq, &self.parts(), out);
    }
}

/// The JSON form.
impl fmt::Display for Event {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.to_json())
    }
}

/// Appends an event's line, without its end, to `out`.
pub(crate) fn write_line(seq: Seq, parts: &EventParts<'_>, out: &mut Vec<u8>) {
    pieces(seq, parts, &mut |piece| out.extend_from_slice(piece));
}

/// The length of what [`write_line`] appends.
pub(crate) fn line_len(seq: Seq, parts: &EventParts<'_>) -> u64 {
    let mut length = 0;
    pieces(seq, parts, &mut |piece| length += piece.len() as u64);
    length
}

/// Gives the line piece by piece.
#[inline]
fn pieces(seq: Seq, parts: &EventParts<'_>, put: &mut impl FnMut(&[u8])) {
    match parts.kind {
        EventKind::TurnStart { .. } => put(br#"{"type":"turn/start","seq":"#),
        EventKind::TurnEnd { .. } => put(br#"{"type":"turn/end","seq":"#),
        EventKind::StepStart { .. } => put(br#"{"type":"step/start","seq":"#),
        EventKind::StepEnd { .. } => put(br#"{"type":"step/end","seq":"#),
        EventKind::UserMessage { .. } => put(br#"{"type":"user/message","seq":"#),
        EventKind::AssistantMessage { .. } => put(br#"{"type":"assistant/message","seq":"#),
        EventKind::AssistantChunk { .. } => put(br#"{"type":"assistant/chunk","seq":"#),
        EventKind::ToolCall { .. } => put(br#"{"type":"tool/call","seq":"#),
        EventKind::ToolResult { .. } => put(br#"{"type":"tool/result","seq":"#),
        EventKind::Custom { event_type } => {
            put(br#"{"type":""#);
            put(event_type.spelling().as_bytes());
            put(br#"","seq":"#);
        }
    }
    decimal(seq.get(), put);
    own_fields(parts.kind, put);
    for (name, value) in parts.extra {
        put(br#",""#);
        put(name.spelling().as_bytes());
        put(br#"":"#);
        put(value.as_str().as_bytes());
    }
    json(br#","surfaceOp":"#, parts.surface_op, put);
    json(br#","sourceEventSeqs":"#, parts.source_event_seqs, put);
    put(br#","timestamp":"#);
    let millis = parts.timestamp.as_millis();
    if millis < 0 {
        put(b"-");
    }
    decimal(millis.unsigned_abs(), put);
    put(b"}");
}

#[inline]
fn own_fields(kind: &EventKind, put: &mut impl FnMut(&[u8])) {
    match kind {
        EventKind::TurnStart { turn_id } => string(br#","turnId":""#, turn_id.spelling(), put),
        EventKind::TurnEnd { turn_id, reason } => {
            string(br#","turnId":""#, turn_id.spelling(), put);
            json(br#","reason":"#, reason.as_ref(), put);
        }
        EventKind::StepStart { step_id, turn_id } => {
            string(br#","stepId":""#, step_id.spelling(), put);
            string(br#","turnId":""#, turn_id.spelling(), put);
        }
        EventKind::StepEnd { step_id, turn_id } => {
            string(br#","stepId":""#, step_id.spelling(), put);
            json(br#","turnId":"#, turn_id.as_ref(), put);
        }
        EventKind::UserMessage { content } => json(br#","content":"#, Some(content.json()), put),
        EventKind::AssistantMessage { content, usage } => {
            json(br#","content":"#, Some(content.json()), put);
            json(br#","usage":"#, usage.as_ref(), put);
        }
        EventKind::AssistantChunk { delta } => string(br#","delta":""#, delta.spelling(), put),
        EventKind::ToolCall { id, name, args } => {
            string(br#","id":""#, id.spelling(), put);
            string(br#","name":""#, name.spelling(), put);
            json(br#","args":"#, Some(args), put);
        }
        EventKind::ToolResult { id, result, error } => {
            string(br#","id":""#, id.spelling(), put);
            json(br#","result":"#, result.as_ref(), put);
            json(br#","error":"#, error.as_ref(), put);
        }
        EventKind::Custom { .. } => {}
    }
}

#[inline]
fn string(name: &[u8], spelling: &str, put: &mut impl FnMut(&[u8])) {
    put(name);
    put(spelling.as_bytes());
    put(br#"""#);
}

#[inline]
fn json(name: &[u8], value: Option<&JsonText>, put: &mut impl FnMut(&[u8])) {
    if let Some(value) = value {
        put(name);
        put(value.as_str().as_bytes());
    }
}

#[inline]
fn decimal(mut number: u64, put: &mut impl FnMut(&[u8])) {
    const MOST_DIGITS: usize = 20; // of a u64
    let mut digits = [b'0'; MOST_DIGITS];
    let mut used = 0;
    for digit in digits.iter_mut().rev() {
        *digit += u8::try_from(number % 10).unwrap_or_default();
        used += 1;
        number /= 10;
        if number == 0 {
            break;
        }
    }
    put(digits.get(MOST_DIGITS - used..).unwrap_or_default());
}
