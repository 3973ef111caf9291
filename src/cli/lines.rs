//! Lines of an input that may be endless, slow and wrong: one at a time, never more than one in memory.

use std::io::{self, BufRead, Read};

/// The longest line that can be an event: the greatest limit that the library allows. Longer ones are refused before
/// they are in memory.
pub(crate) const MAX_LINE_BYTES: usize = 16 << 20;
const _: () = assert!(MAX_LINE_BYTES as u64 == sessionlog::MAX_EVENT_BYTES);

const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";

/// Reads line by line. Only LF ends a line (a CR before it belongs to the end): U+2028 and its like are data. Blank
/// lines, a byte order mark at the start and a missing last newline are fine.
pub(crate) struct Lines<R> {
    input: R,
    line: Vec<u8>,
    number: u64,
    max_bytes: usize,
}

/// Why there is no next line.
#[derive(Debug)]
pub(crate) enum LineFault {
    TooLong { number: u64, max_bytes: usize },
    Io(io::Error),
}

impl<R: BufRead> Lines<R> {
    pub(crate) fn new(input: R) -> Self {
        Self::with_limit(input, MAX_LINE_BYTES)
    }

    fn with_limit(input: R, max_bytes: usize) -> Self {
        Self { input, line: Vec::new(), number: 0, max_bytes }
    }

    /// Returns the next line that is not blank, without its end, and its number from 1; `None` at the end.
    pub(crate) fn next(&mut self) -> Result<Option<(u64, &[u8])>, LineFault> {
        loop {
            if !self.fill().map_err(LineFault::Io)? {
                return Ok(None);
            }
            self.number += 1;
            let content = content(&self.line, self.number == 1);
            if content.len() > self.max_bytes {
                return Err(LineFault::TooLong { number: self.number, max_bytes: self.max_bytes });
            }
            if !is_blank(content) {
                break;
            }
        }
        Ok(Some((self.number, content(&self.line, self.number == 1))))
    }

    /// Reads up to the end of the line, or as much of it as shows that it is too long.
    fn fill(&mut self) -> io::Result<bool> {
        self.line.clear();
        // One giant line must not keep its room for the rest of a long-lived pipe.
        self.line.shrink_to(1 << 20);
        let enough = self.max_bytes + BYTE_ORDER_MARK.len() + b"\r\n".len();
        let mut limited = (&mut self.input).take(enough as u64);
        Ok(limited.read_until(b'\n', &mut self.line)? > 0)
    }
}

fn content(line: &[u8], is_first: bool) -> &[u8] {
    let line = if is_first { line.strip_prefix(BYTE_ORDER_MARK).unwrap_or(line) } else { line };
    match line.strip_suffix(b"\n") {
        Some(line) => line.strip_suffix(b"\r").unwrap_or(line),
        None => line,
    }
}

fn is_blank(line: &[u8]) -> bool {
    line.iter().all(|byte| matches!(byte, b' ' | b'\t' | b'\r'))
}

#[cfg(test)]
mod tests {
    use super::{LineFault, Lines};

    fn all(input: &[u8], limit: usize) -> (Vec<(u64, String)>, Option<u64>) {
        let mut lines = Lines::with_limit(input, limit);
        let mut found = Vec::new();
        loop {
            match lines.next() {
                Ok(Some((number, line))) => found.push((number, String::from_utf8_lossy(line).into_owned())),
                Ok(None) => return (found, None),
                Err(LineFault::TooLong { number, .. }) => return (found, Some(number)),
                Err(LineFault::Io(error)) => panic!("{error}"),
            }
        }
    }

    fn texts(input: &str) -> Vec<(u64, String)> {
        all(input.as_bytes(), 100).0
    }

    /// Goal: H41: a byte order mark, CRLF and blank lines are no content, and lines keep their numbers.
    #[test]
    fn h41_bom_crlf_and_blank_lines() {
        let found = texts("\u{feff}a\r\n\r\n \t\r\nb\r\n\n");
        assert_eq!(found, [(1, "a".into()), (4, "b".into())]);
    }

    /// Goal: H12: Unicode's line ends and a CR inside a line are data. H05: a missing last newline is fine.
    #[test]
    fn h12_only_lf_ends_a_line() {
        let line = "a\u{2028}b\u{2029}c\u{85}d\re\u{b}";
        assert_eq!(texts(&format!("{line}\nz")), [(1, line.into()), (2, "z".into())]);
    }

    /// Goal: a byte order mark is skipped at the start only.
    #[test]
    fn a_later_byte_order_mark_is_data() {
        assert_eq!(texts("a\n\u{feff}b"), [(1, "a".into()), (2, "\u{feff}b".into())]);
    }

    /// Goal: the limit counts content, not the line's end or the byte order mark; one byte more is refused.
    #[test]
    fn limit_is_exact() {
        for fits in ["\u{feff}12345\r\n", "12345\n", "12345"] {
            assert_eq!(all(fits.as_bytes(), 5), (vec![(1, "12345".into())], None), "{fits:?}");
        }
        for too_long in ["123456\n", "123456", "\u{feff}123456\r\n", "1234567890123"] {
            assert_eq!(all(format!("a\n{too_long}").as_bytes(), 5).1, Some(2), "{too_long:?}");
        }
    }

    /// Goal: a line too long is refused without being read to its end: this one has none.
    #[test]
    fn an_endless_line_is_refused() {
        let mut lines = Lines::with_limit(std::io::BufReader::new(std::io::repeat(b'x')), 1 << 16);
        assert!(matches!(lines.next(), Err(LineFault::TooLong { number: 1, .. })));
        assert!(lines.line.capacity() < 1 << 18, "{}", lines.line.capacity());
    }
}
