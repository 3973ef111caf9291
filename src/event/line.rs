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
    pieces(seq, parts, out);
}

/// The length of what [`write_line`] appends.
pub(crate) fn line_len(seq: Seq, parts: &EventParts<'_>) -> u64 {
    let mut length = Length(0);
    pieces(seq, parts, &mut length);
    length.0
}

/// What takes a line piece by piece.
trait Pieces {
    fn put(&mut self, piece: &[u8]);
    fn put_decimal(&mut self, number: u64);
}

impl Pieces for Vec<u8> {
    #[inline]
    fn put(&mut self, piece: &[u8]) {
        self.extend_from_slice(piece);
    }

    #[inline]
    fn put_decimal(&mut self, number: u64) {
        decimal(number, &mut |digits| self.extend_from_slice(digits));
    }
}

/// Only counts. Digits are not made for it: that takes longer than all the rest of a line.
struct Length(u64);

impl Pieces for Length {
    #[inline]
    fn put(&mut self, piece: &[u8]) {
        self.0 += piece.len() as u64;
    }

    #[inline]
    fn put_decimal(&mut self, number: u64) {
        self.0 += 1 + u64::from(number.checked_ilog10().unwrap_or(0));
    }
}

/// Gives the line piece by piece.
#[inline]
fn pieces(seq: Seq, parts: &EventParts<'_>, out: &mut impl Pieces) {
    match parts.kind {
        EventKind::TurnStart { .. } => out.put(br#"{"type":"turn/start","seq":"#),
        EventKind::TurnEnd { .. } => out.put(br#"{"type":"turn/end","seq":"#),
        EventKind::StepStart { .. } => out.put(br#"{"type":"step/start","seq":"#),
        EventKind::StepEnd { .. } => out.put(br#"{"type":"step/end","seq":"#),
        EventKind::UserMessage { .. } => out.put(br#"{"type":"user/message","seq":"#),
        EventKind::AssistantMessage { .. } => out.put(br#"{"type":"assistant/message","seq":"#),
        EventKind::AssistantChunk { .. } => out.put(br#"{"type":"assistant/chunk","seq":"#),
        EventKind::ToolCall { .. } => out.put(br#"{"type":"tool/call","seq":"#),
        EventKind::ToolResult { .. } => out.put(br#"{"type":"tool/result","seq":"#),
        EventKind::Custom { event_type } => {
            out.put(br#"{"type":""#);
            out.put(event_type.spelling().as_bytes());
            out.put(br#"","seq":"#);
        }
    }
    out.put_decimal(seq.get());
    own_fields(parts.kind, out);
    for (name, value) in parts.extra {
        out.put(br#",""#);
        out.put(name.spelling().as_bytes());
        out.put(br#"":"#);
        out.put(value.as_str().as_bytes());
    }
    json(br#","surfaceOp":"#, parts.surface_op, out);
    json(br#","sourceEventSeqs":"#, parts.source_event_seqs, out);
    out.put(br#","timestamp":"#);
    let millis = parts.timestamp.as_millis();
    if millis < 0 {
        out.put(b"-");
    }
    out.put_decimal(millis.unsigned_abs());
    out.put(b"}");
}

#[inline]
fn own_fields(kind: &EventKind, out: &mut impl Pieces) {
    match kind {
        EventKind::TurnStart { turn_id } => string(br#","turnId":""#, turn_id.spelling(), out),
        EventKind::TurnEnd { turn_id, reason } => {
            string(br#","turnId":""#, turn_id.spelling(), out);
            json(br#","reason":"#, reason.as_ref(), out);
        }
        EventKind::StepStart { step_id, turn_id } => {
            string(br#","stepId":""#, step_id.spelling(), out);
            string(br#","turnId":""#, turn_id.spelling(), out);
        }
        EventKind::StepEnd { step_id, turn_id } => {
            string(br#","stepId":""#, step_id.spelling(), out);
            json(br#","turnId":"#, turn_id.as_ref(), out);
        }
        EventKind::UserMessage { content } => json(br#","content":"#, Some(content.json()), out),
        EventKind::AssistantMessage { content, usage } => {
            json(br#","content":"#, Some(content.json()), out);
            json(br#","usage":"#, usage.as_ref(), out);
        }
        EventKind::AssistantChunk { delta } => string(br#","delta":""#, delta.spelling(), out),
        EventKind::ToolCall { id, name, args } => {
            string(br#","id":""#, id.spelling(), out);
            string(br#","name":""#, name.spelling(), out);
            json(br#","args":"#, Some(args), out);
        }
        EventKind::ToolResult { id, result, error } => {
            string(br#","id":""#, id.spelling(), out);
            json(br#","result":"#, result.as_ref(), out);
            json(br#","error":"#, error.as_ref(), out);
        }
        EventKind::Custom { .. } => {}
    }
}

#[inline]
fn string(name: &[u8], spelling: &str, out: &mut impl Pieces) {
    out.put(name);
    out.put(spelling.as_bytes());
    out.put(br#"""#);
}

#[inline]
fn json(name: &[u8], value: Option<&JsonText>, out: &mut impl Pieces) {
    if let Some(value) = value {
        out.put(name);
        out.put(value.as_str().as_bytes());
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
