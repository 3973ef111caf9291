//! Our own scanner over the text of JSON: checks grammar and surrogate escapes, and drops white space between tokens.
//!
//! One pass, no recursion: nesting costs a bit a level. It knows JSON, not events.

mod nesting;
mod token;

use std::sync::Arc;

use nesting::Nesting;

use crate::error::{EventError, EventFault};

/// What is wrong, and where: an offset in the scanned text, from 0.
#[derive(Debug)]
pub(super) struct Fault {
    pub(super) at: usize,
    pub(super) fault: EventFault,
}

impl Fault {
    pub(super) fn new(at: usize, fault: EventFault) -> Self {
        Self { at, fault }
    }

    /// The fault as seen from a text in which the scanned one begins at `offset`.
    pub(super) fn behind(mut self, offset: usize) -> Self {
        self.at = self.at.saturating_add(offset);
        self
    }
}

impl From<Fault> for EventError {
    fn from(fault: Fault) -> Self {
        Self::new(fault.fault).at(fault.at)
    }
}

/// Runs `read` on `bytes` as text. When they are not UTF-8 the first fault counts: one that `read` finds before the bad
/// byte, else that byte.
pub(super) fn with_text<T>(
    bytes: &[u8],
    read: impl FnOnce(&str) -> Result<T, EventError>,
) -> Result<T, EventError> {
    let bad_at = match std::str::from_utf8(bytes) {
        Ok(text) => return read(text),
        Err(error) => error.valid_up_to(),
    };
    let before = bytes.get(..bad_at).and_then(|bytes| std::str::from_utf8(bytes).ok()).unwrap_or_default();
    match read(before) {
        // Columns count from 1: this one stands before the bad byte, so it is no mere "ends too early".
        Err(error) if error.column.is_some_and(|column| column <= bad_at) => Err(error),
        _ => Err(EventError::new(EventFault::NotUtf8).at(bad_at)),
    }
}

/// A value that was scanned: where it stands, and its text.
#[derive(Debug)]
pub(super) struct Scanned<'a> {
    pub(super) at: usize,
    /// As it stands in the text, with white space.
    pub(super) raw: &'a str,
    /// Without white space; `None` when there is none in `raw`.
    compact: Option<String>,
}

impl Scanned<'_> {
    pub(super) fn into_text(self) -> Arc<str> {
        match self.compact {
            Some(compact) => compact.into(),
            None => self.raw.into(),
        }
    }

    pub(super) fn is_null(&self) -> bool {
        self.raw == "null"
    }
}

/// A position in a text, moving forward token by token.
#[derive(Debug)]
pub(super) struct Scanner<'a> {
    text: &'a str,
    at: usize,
    /// The value under way, up to `kept`, without its white space; empty as long as there was none.
    compact: String,
    kept: usize,
}

impl<'a> Scanner<'a> {
    pub(super) fn new(text: &'a str) -> Self {
        Self { text, at: 0, compact: String::new(), kept: 0 }
    }

    pub(super) fn at(&self) -> usize {
        self.at
    }

    pub(super) fn peek(&self) -> Option<u8> {
        self.text.as_bytes().get(self.at).copied()
    }

    pub(super) fn skip_space(&mut self) {
        while let Some(b' ' | b'\n' | b'\t' | b'\r') = self.peek() {
            self.at += 1;
        }
    }

    /// Checks that only white space follows.
    pub(super) fn end(&mut self) -> Result<(), Fault> {
        self.skip_space();
        match self.peek() {
            None => Ok(()),
            Some(_) => Err(self.not_json("text behind the end of the value")),
        }
    }

    /// Takes `{`, or `[` for an array.
    pub(super) fn open(&mut self, open: u8, expected: &'static str) -> Result<(), Fault> {
        match self.peek() {
            Some(byte) if byte == open => {
                self.at += 1;
                Ok(())
            }
            None => Err(self.not_json("")),
            Some(_) => Err(Fault::new(self.at, EventFault::WrongType { expected })),
        }
    }

    /// Moves to an object's next member and takes its name and colon; `None` when the object ends.
    /// Gives the name's place and its spelling without quotes.
    pub(super) fn next_member(&mut self, first: bool) -> Result<Option<(usize, &'a str)>, Fault> {
        self.skip_space();
        match self.peek() {
            Some(b'}') => {
                self.at += 1;
                return Ok(None);
            }
            Some(b',') if !first => {
                self.at += 1;
                self.skip_space();
            }
            Some(_) if first => {}
            _ => return Err(self.not_json("`,` or `}` expected")),
        }
        let at = self.at;
        let name = self.name()?;
        self.skip_space();
        Ok(Some((at, name)))
    }

    /// Moves to an array's next item; `false` when the array ends.
    pub(super) fn next_item(&mut self, first: bool) -> Result<bool, Fault> {
        self.skip_space();
        match self.peek() {
            Some(b']') => {
                self.at += 1;
                return Ok(false);
            }
            Some(b',') if !first => {
                self.at += 1;
                self.skip_space();
            }
            Some(_) if first => {}
            _ => return Err(self.not_json("`,` or `]` expected")),
        }
        Ok(true)
    }

    /// Takes one value, whatever its nesting. White space before it must be gone.
    pub(super) fn value(&mut self) -> Result<Scanned<'a>, Fault> {
        let start = self.at;
        self.kept = start;
        let mut nesting = Nesting::default();
        loop {
            // Here begins a value.
            match self.peek() {
                Some(b'"') => {
                    self.string()?;
                }
                Some(b'-' | b'0'..=b'9') => self.number()?,
                Some(b'{') => {
                    self.at += 1;
                    self.drop_space();
                    if self.peek() != Some(b'}') {
                        nesting.push(true);
                        self.inner_name()?;
                        continue;
                    }
                    self.at += 1;
                }
                Some(b'[') => {
                    self.at += 1;
                    self.drop_space();
                    if self.peek() != Some(b']') {
                        nesting.push(false);
                        continue;
                    }
                    self.at += 1;
                }
                Some(b't') => self.literal("true")?,
                Some(b'f') => self.literal("false")?,
                Some(b'n') => self.literal("null")?,
                _ => return Err(self.not_json("a value expected")),
            }
            // Here ended one: so may what holds it.
            loop {
                let Some(in_object) = nesting.top() else { return Ok(self.scanned(start)) };
                self.drop_space();
                match (self.peek(), in_object) {
                    (Some(b','), _) => {
                        self.at += 1;
                        self.drop_space();
                        if in_object {
                            self.inner_name()?;
                        }
                        break;
                    }
                    (Some(b'}'), true) | (Some(b']'), false) => {
                        self.at += 1;
                        nesting.pop();
                    }
                    (_, true) => return Err(self.not_json("`,` or `}` expected")),
                    (_, false) => return Err(self.not_json("`,` or `]` expected")),
                }
            }
        }
    }

    fn scanned(&mut self, start: usize) -> Scanned<'a> {
        let raw = self.slice(start, self.at);
        let compact = (self.kept > start).then(|| {
            let mut compact = std::mem::take(&mut self.compact);
            compact.push_str(self.slice(self.kept, self.at));
            compact
        });
        Scanned { at: start, raw, compact }
    }

    /// Skips white space inside a value: what stands before it is kept, it is not.
    fn drop_space(&mut self) {
        let start = self.at;
        self.skip_space();
        if self.at > start {
            let piece = self.slice(self.kept, start);
            self.compact.push_str(piece);
            self.kept = self.at;
        }
    }

    /// The name of a member inside a value, its colon, and the white space before the member's value.
    fn inner_name(&mut self) -> Result<(), Fault> {
        if self.peek() != Some(b'"') {
            return Err(self.not_json("a name in quotes expected"));
        }
        self.string()?;
        self.drop_space();
        self.colon()?;
        self.drop_space();
        Ok(())
    }

    fn name(&mut self) -> Result<&'a str, Fault> {
        if self.peek() != Some(b'"') {
            return Err(self.not_json("a name in quotes expected"));
        }
        let name = self.string()?;
        self.skip_space();
        self.colon()?;
        Ok(name)
    }

    fn colon(&mut self) -> Result<(), Fault> {
        if self.peek() != Some(b':') {
            return Err(self.not_json("`:` expected"));
        }
        self.at += 1;
        Ok(())
    }

    /// Offsets always stand at the ASCII bytes of tokens, so the slice is there.
    fn slice(&self, start: usize, end: usize) -> &'a str {
        self.text.get(start..end).unwrap_or_default()
    }

    /// A fault of grammar at this byte; at the end of the text it is that, whatever was expected.
    #[cold]
    pub(super) fn not_json(&self, reason: &'static str) -> Fault {
        let reason = if self.peek().is_none() { "the text ends too early" } else { reason };
        Fault::new(self.at, EventFault::NotJson { reason: reason.to_owned() })
    }
}
