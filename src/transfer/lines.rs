//! Lines of a file, with what stands around them: one at a time, and never more of one than may be an event.

use std::io::{self, BufRead, Read, Write};

use crate::MAX_EVENT_BYTES;

const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";

/// Reads line by line. Only LF ends a line.
pub(super) struct Lines<R> {
    input: R,
    line: Vec<u8>,
    number: u64,
    max_bytes: usize,
    /// Bytes read so far.
    pub(super) bytes: u64,
}

/// A line.
#[derive(Clone, Copy, Debug)]
pub(super) struct Line<'a> {
    /// From 1.
    pub(super) number: u64,
    /// All of it, with its end; only its beginning when it is too long.
    pub(super) raw: &'a [u8],
    /// Without its end and without a byte order mark.
    pub(super) text: &'a [u8],
    /// Bytes before `text`.
    pub(super) offset: usize,
    pub(super) too_long: bool,
}

impl Line<'_> {
    pub(super) fn is_blank(&self) -> bool {
        self.text.iter().all(|byte| matches!(byte, b' ' | b'\t' | b'\r'))
    }
}

impl<R: BufRead> Lines<R> {
    pub(super) fn new(input: R) -> Self {
        let max_bytes = usize::try_from(MAX_EVENT_BYTES).unwrap_or(usize::MAX);
        Self { input, line: Vec::new(), number: 0, max_bytes, bytes: 0 }
    }

    /// The next line; `None` at the end.
    pub(super) fn next(&mut self) -> io::Result<Option<Line<'_>>> {
        self.line.clear();
        // One giant line must not keep its room for the rest of the file.
        self.line.shrink_to(1 << 20);
        let enough = self.max_bytes + BYTE_ORDER_MARK.len() + b"\r\n".len();
        let read = (&mut self.input).take(enough as u64).read_until(b'\n', &mut self.line)?;
        if read == 0 {
            return Ok(None);
        }
        self.number += 1;
        self.bytes += read as u64;
        let raw = self.line.as_slice();
        let text = match raw.strip_prefix(BYTE_ORDER_MARK) {
            Some(text) if self.number == 1 => text,
            _ => raw,
        };
        let offset = raw.len() - text.len();
        let text = text.strip_suffix(b"\n").unwrap_or(text);
        let text = text.strip_suffix(b"\r").unwrap_or(text);
        let too_long = text.len() > self.max_bytes;
        Ok(Some(Line { number: self.number, raw, text, offset, too_long }))
    }

    /// Goes to the end of a line that is too long, and hands the rest of it to `sink`.
    pub(super) fn pass_over(&mut self, sink: &mut dyn Write) -> io::Result<()> {
        if self.line.ends_with(b"\n") {
            return Ok(());
        }
        loop {
            let buffered = self.input.fill_buf()?;
            let end = buffered.iter().position(|byte| *byte == b'\n').map(|at| at + 1);
            let taken = end.unwrap_or(buffered.len());
            sink.write_all(buffered.get(..taken).unwrap_or_default())?;
            self.input.consume(taken);
            self.bytes += taken as u64;
            if end.is_some() || taken == 0 {
                return Ok(());
            }
        }
    }
}
