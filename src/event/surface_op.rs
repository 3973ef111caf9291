//! What a message or result does to the surface: `surfaceOp` and `sourceEventSeqs`.

use std::borrow::Cow;

use super::escape::unescape;
use super::scan::{Fault, Scanner};
use crate::error::EventFault;
use crate::id::{Seq, Timestamp};

/// What an event does to the surface, the messages that the model sees.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum SurfaceOp {
    /// It comes behind what is there.
    #[default]
    Append,
    /// It takes the place of what stands from the event `start` to the event `end`, both included.
    Replace {
        /// The first event that goes.
        start: Seq,
        /// The last one; behind `start` by its position on the surface, which need not be the order of seqs.
        end: Seq,
    },
}

/// Reads a `surfaceOp`; `null` counts as absent. Faults give their place in `json`.
pub(super) fn read_op(json: &str) -> Result<SurfaceOp, Fault> {
    let mut scanner = Scanner::new(json);
    match scanner.peek() {
        Some(b'"') => {
            let op = scanner.value()?;
            if text_of(op.raw) == "append" { Ok(SurfaceOp::Append) } else { Err(unknown_op(0)) }
        }
        Some(b'n') => Ok(SurfaceOp::Append),
        _ => read_replace(scanner),
    }
}

fn read_replace(mut scanner: Scanner<'_>) -> Result<SurfaceOp, Fault> {
    scanner.open(b'{', "\"append\" or an object")?;
    let (mut op, mut start, mut end) = (None, None, None);
    let mut first = true;
    while let Some((name_at, name)) = scanner.next_member(first)? {
        first = false;
        let value = scanner.value()?;
        let slot = match &*unescape(name) {
            "op" => {
                if text_of(value.raw) != "replace" {
                    return Err(unknown_op(value.at));
                }
                if op.replace(()).is_some() {
                    return Err(Fault::new(name_at, EventFault::Invalid { reason: "`op` stands twice" }));
                }
                continue;
            }
            "start" => &mut start,
            "end" => &mut end,
            _ => continue,
        };
        let seq = read_seq(value.raw).map_err(|fault| Fault::new(value.at, fault))?;
        if slot.replace(seq).is_some() {
            return Err(Fault::new(name_at, EventFault::Invalid { reason: "`start` or `end` stands twice" }));
        }
    }
    match (op, start, end) {
        (Some(()), Some(start), Some(end)) => Ok(SurfaceOp::Replace { start, end }),
        (None, ..) => Err(Fault::new(0, EventFault::Invalid { reason: "an object with `op` expected" })),
        _ => Err(Fault::new(0, EventFault::Invalid { reason: "a replace needs `start` and `end`" })),
    }
}

fn unknown_op(at: usize) -> Fault {
    Fault::new(
        at,
        EventFault::Invalid { reason: "unknown surface operation: `append` or `replace` expected" },
    )
}

/// The text of a JSON string, or nothing.
fn text_of(json: &str) -> Cow<'_, str> {
    json.strip_prefix('"').and_then(|json| json.strip_suffix('"')).map(unescape).unwrap_or_default()
}

/// Reads `sourceEventSeqs`; `null` counts as absent. Faults give their place in `json`.
pub(super) fn read_sources(json: &str) -> Result<Vec<Seq>, Fault> {
    if json == "null" {
        return Ok(Vec::new());
    }
    let mut scanner = Scanner::new(json);
    scanner.open(b'[', "an array of seqs")?;
    let mut found = Vec::new();
    let mut first = true;
    while scanner.next_item(first)? {
        first = false;
        let value = scanner.value()?;
        found.push((read_seq(value.raw).map_err(|fault| Fault::new(value.at, fault))?, value.at));
    }
    if !found.is_sorted_by(|a, b| a.0 < b.0) {
        let mut sorted = found.clone();
        sorted.sort_unstable();
        // Of all that stand a second time, the one that comes first.
        let again = sorted.windows(2).filter_map(|pair| match pair {
            [(a, _), (b, at)] if a == b => Some(*at),
            _ => None,
        });
        if let Some(at) = again.min() {
            return Err(Fault::new(at, EventFault::Invalid { reason: "a seq stands twice" }));
        }
    }
    Ok(found.into_iter().map(|(seq, _)| seq).collect())
}

/// Reads a JSON value that must be a seq.
pub(super) fn read_seq(json: &str) -> Result<Seq, EventFault> {
    let digits = integer(json)?;
    digits.parse().map_err(|_| EventFault::OutOfRange { range: "0 to 18446744073709551615" })
}

/// Reads a JSON value that must be a timestamp.
pub(super) fn read_timestamp(json: &str) -> Result<Timestamp, EventFault> {
    let millis = integer(json)?.parse().ok().and_then(Timestamp::from_millis);
    millis.ok_or(EventFault::OutOfRange { range: "at most 2^53 - 1 milliseconds before or after 1970" })
}

/// Lets only integers through that come out as they came in: no fraction, no exponent, no `-0`.
fn integer(json: &str) -> Result<&str, EventFault> {
    if !json.starts_with(|first: char| first == '-' || first.is_ascii_digit()) {
        return Err(EventFault::WrongType { expected: "an integer" });
    }
    if json == "-0" || json.bytes().any(|byte| matches!(byte, b'.' | b'e' | b'E')) {
        return Err(EventFault::WrongType { expected: "an integer in plain digits" });
    }
    Ok(json)
}

/// Spells a `surfaceOp` that replaces.
pub(super) fn replace_text(start: Seq, end: Seq) -> String {
    format!(r#"{{"op":"replace","start":{start},"end":{end}}}"#)
}

/// Spells `sourceEventSeqs`.
pub(super) fn sources_text(seqs: impl IntoIterator<Item = Seq>) -> String {
    let mut text = String::from("[");
    for seq in seqs {
        if text.len() > 1 {
            text.push(',');
        }
        text.push_str(&seq.to_string());
    }
    text.push(']');
    text
}
