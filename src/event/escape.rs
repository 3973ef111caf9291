//! The text of a JSON string, to and from its spelling between the quotes.

use std::borrow::Cow;

/// Spells `text`: quote, backslash and control characters are escaped, as short as JSON allows, nothing else.
pub(super) fn escape(text: &str) -> Cow<'_, str> {
    let needs_escape = |byte: u8| matches!(byte, b'"' | b'\\' | 0..0x20);
    if !text.bytes().any(needs_escape) {
        return Cow::Borrowed(text);
    }
    let mut spelling = String::with_capacity(text.len() + text.len() / 8 + 8);
    let mut rest = text;
    while let Some(plain) = rest.bytes().position(needs_escape) {
        let (before, from) = rest.split_at(plain);
        spelling.push_str(before);
        let mut chars = from.chars();
        match chars.next() {
            Some('"') => spelling.push_str("\\\""),
            Some('\\') => spelling.push_str("\\\\"),
            Some('\u{8}') => spelling.push_str("\\b"),
            Some('\u{c}') => spelling.push_str("\\f"),
            Some('\n') => spelling.push_str("\\n"),
            Some('\r') => spelling.push_str("\\r"),
            Some('\t') => spelling.push_str("\\t"),
            Some(control) => {
                spelling.push_str("\\u00");
                for shift in [4, 0] {
                    spelling.push(char::from_digit(u32::from(control) >> shift & 0xF, 16).unwrap_or('0'));
                }
            }
            None => {}
        }
        rest = chars.as_str();
    }
    spelling.push_str(rest);
    Cow::Owned(spelling)
}

/// The text behind a spelling. A spelling that no check would let through gives some text, never a panic: an unknown
/// escape stays as it is, half of a surrogate pair becomes U+FFFD.
pub(super) fn unescape(spelling: &str) -> Cow<'_, str> {
    let Some(mut escape) = spelling.find('\\') else { return Cow::Borrowed(spelling) };
    let mut text = String::with_capacity(spelling.len());
    let mut rest = spelling;
    loop {
        let (before, from) = rest.split_at(escape);
        text.push_str(before);
        let (character, length) = one_escape(from);
        text.push(character);
        rest = from.get(length..).unwrap_or_default();
        match rest.find('\\') {
            Some(next) => escape = next,
            None => break,
        }
    }
    text.push_str(rest);
    Cow::Owned(text)
}

/// The character that the escape at the start of `from` stands for, and the escape's length.
fn one_escape(from: &str) -> (char, usize) {
    let character = match from.as_bytes().get(1) {
        Some(b'"') => '"',
        Some(b'\\') => '\\',
        Some(b'/') => '/',
        Some(b'b') => '\u{8}',
        Some(b'f') => '\u{c}',
        Some(b'n') => '\n',
        Some(b'r') => '\r',
        Some(b't') => '\t',
        Some(b'u') => return unicode_escape(from),
        _ => return ('\\', 1),
    };
    (character, 2)
}

fn unicode_escape(from: &str) -> (char, usize) {
    let Some(unit) = unit_at(from, 0) else { return ('\\', 1) };
    if let (0xD800..=0xDBFF, Some(low @ 0xDC00..=0xDFFF)) = (unit, unit_at(from, 6)) {
        let pair = 0x1_0000 + ((unit - 0xD800) << 10) + (low - 0xDC00);
        return (char::from_u32(pair).unwrap_or(char::REPLACEMENT_CHARACTER), 12);
    }
    (char::from_u32(unit).unwrap_or(char::REPLACEMENT_CHARACTER), 6)
}

/// The number of the `\uXXXX` at `at`.
fn unit_at(text: &str, at: usize) -> Option<u32> {
    let digits = text.get(at..at + 6)?.strip_prefix("\\u")?;
    // `from_str_radix` would also take a sign.
    digits.bytes().try_fold(0, |unit, digit| Some(unit * 16 + char::from(digit).to_digit(16)?))
}
