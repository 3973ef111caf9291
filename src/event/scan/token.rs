//! The tokens that are more than a byte: strings, numbers and the three words.

use super::{Fault, Scanner};
use crate::error::EventFault;

impl<'a> Scanner<'a> {
    /// Takes a string, from its opening quote on; gives its spelling without quotes.
    pub(super) fn string(&mut self) -> Result<&'a str, Fault> {
        self.at += 1;
        let start = self.at;
        loop {
            self.at = plain_end(self.text.as_bytes(), self.at);
            match self.peek() {
                Some(b'"') => break,
                Some(b'\\') => self.escape()?,
                _ => return Err(self.not_json("a control character in a string")),
            }
        }
        let spelling = self.slice(start, self.at);
        self.at += 1;
        Ok(spelling)
    }

    fn escape(&mut self) -> Result<(), Fault> {
        let start = self.at;
        self.at += 1;
        match self.peek() {
            Some(b'"' | b'\\' | b'/' | b'b' | b'f' | b'n' | b'r' | b't') => {
                self.at += 1;
                Ok(())
            }
            Some(b'u') => {
                self.at += 1;
                self.unit(start)
            }
            _ => Err(self.not_json("no such escape")),
        }
    }

    /// Takes the digits of the `\u` at `start`, and the escape that is its other half where it needs one.
    fn unit(&mut self, start: usize) -> Result<(), Fault> {
        let lone = || Fault::new(start, EventFault::LoneSurrogate);
        match self.hex()? {
            0xD800..=0xDBFF => {
                for expected in *b"\\u" {
                    match self.peek() {
                        Some(found) if found == expected => self.at += 1,
                        Some(_) => return Err(lone()),
                        None => return Err(self.not_json("")),
                    }
                }
                let low = self.hex()?;
                if (0xDC00..=0xDFFF).contains(&low) { Ok(()) } else { Err(lone()) }
            }
            0xDC00..=0xDFFF => Err(lone()),
            _ => Ok(()),
        }
    }

    /// Takes four hexadecimal digits.
    fn hex(&mut self) -> Result<u32, Fault> {
        let mut unit = 0;
        for _ in 0..4 {
            let Some(digit) = self.peek().and_then(|byte| char::from(byte).to_digit(16)) else {
                return Err(self.not_json("four hexadecimal digits expected"));
            };
            unit = unit * 16 + digit;
            self.at += 1;
        }
        Ok(unit)
    }

    pub(super) fn number(&mut self) -> Result<(), Fault> {
        if self.peek() == Some(b'-') {
            self.at += 1;
        }
        if self.peek() == Some(b'0') {
            self.at += 1;
            if let Some(b'0'..=b'9') = self.peek() {
                return Err(self.not_json("a number with a leading zero"));
            }
        } else {
            self.digits()?;
        }
        if self.peek() == Some(b'.') {
            self.at += 1;
            self.digits()?;
        }
        if let Some(b'e' | b'E') = self.peek() {
            self.at += 1;
            if let Some(b'+' | b'-') = self.peek() {
                self.at += 1;
            }
            self.digits()?;
        }
        Ok(())
    }

    fn digits(&mut self) -> Result<(), Fault> {
        let start = self.at;
        while let Some(b'0'..=b'9') = self.peek() {
            self.at += 1;
        }
        if self.at == start { Err(self.not_json("a digit expected")) } else { Ok(()) }
    }

    pub(super) fn literal(&mut self, literal: &str) -> Result<(), Fault> {
        for byte in literal.bytes() {
            if self.peek() != Some(byte) {
                return Err(self.not_json("a value expected"));
            }
            self.at += 1;
        }
        Ok(())
    }
}

/// The first byte from `at` on that a string cannot hold as it is: a quote, a backslash, a control character, or the end.
fn plain_end(bytes: &[u8], mut at: usize) -> usize {
    const ONES: u64 = 0x0101_0101_0101_0101;
    const TOPS: u64 = 0x8080_8080_8080_8080;
    // Eight bytes at a time. A borrow can mark a byte wrongly only above one that is marked rightly, so the lowest mark
    // is right.
    while let Some(word) = bytes.get(at..).and_then(|rest| rest.first_chunk::<8>()) {
        let word = u64::from_le_bytes(*word);
        let quote = word ^ (ONES * u64::from(b'"'));
        let backslash = word ^ (ONES * u64::from(b'\\'));
        let marks = (quote.wrapping_sub(ONES) & !quote)
            | (backslash.wrapping_sub(ONES) & !backslash)
            | (word.wrapping_sub(ONES * 0x20) & !word);
        let marks = marks & TOPS;
        if marks != 0 {
            return at + marks.trailing_zeros() as usize / 8;
        }
        at += 8;
    }
    while let Some(byte) = bytes.get(at) {
        if matches!(byte, b'"' | b'\\' | 0..0x20) {
            break;
        }
        at += 1;
    }
    at
}
