//! The scanner and the two kinds of kept text, with serde_json as the judge of grammar.

use proptest::prelude::*;
use serde_json::value::RawValue;

use super::arbitrary::{json_string, json_text, spacing};
use crate::error::{EventError, EventFault};
use crate::event::{JsonString, JsonText};

/// We accept what serde_json accepts, but for lone surrogates.
fn agree(bytes: &[u8]) -> Result<(), TestCaseError> {
    let judge = serde_json::from_slice::<Box<RawValue>>(bytes);
    match (JsonText::parse(bytes), judge) {
        (Ok(ours), Ok(_)) => prop_assert_eq!(JsonText::parse(ours.as_str()), Ok(ours)),
        (Err(_), Err(_)) => {}
        (Err(error), Ok(_)) => prop_assert_eq!(error.fault, EventFault::LoneSurrogate),
        (Ok(ours), Err(error)) => prop_assert!(false, "{:?} accepted, but {}", ours, error),
    }
    Ok(())
}

fn soup() -> impl Strategy<Value = Vec<u8>> {
    let pieces: Vec<&[u8]> = vec![
        b"{",
        b"}",
        b"[",
        b"]",
        b",",
        b":",
        b"\"",
        b"\\",
        b"\\u",
        b"\\ud83d",
        b"\\ude00",
        b"00e9",
        b"\\n",
        b"\\x",
        b"a",
        b"\"a\"",
        b"\"a\":",
        b"0",
        b"1",
        b"-",
        b"-0",
        b".",
        b".5",
        b"e",
        b"E+",
        b"e9",
        b"true",
        b"false",
        b"null",
        b"nul",
        b" ",
        b"\n",
        b"\t",
        b"\r",
        b"\x0b",
        b"\x00",
        b"\x1f",
        b"\x7f",
        b"\xff",
        b"\xc3\xa9",
        b"\xc3",
        b"\xe2\x80\xa8",
        b"\xed\xa0\x80",
        b"\xef\xbb\xbf",
        b"plain text that is longer",
    ];
    proptest::collection::vec(proptest::sample::select(pieces), 0..12).prop_map(|pieces| pieces.concat())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn grammar_is_that_of_serde_json_on_soup(bytes in soup()) {
        agree(&bytes)?;
        agree(&[b"[", &bytes[..], b"]"].concat())?;
        agree(&[b"\"", &bytes[..], b"\""].concat())?;
        agree(&[b"{\"\":[", &bytes[..], b"]}"].concat())?;
    }

    #[test]
    fn grammar_is_that_of_serde_json_on_any_bytes(bytes: Vec<u8>) {
        agree(&bytes)?;
        agree(&[b"\"", &bytes[..], b"\""].concat())?;
    }
}

proptest! {
    #[test]
    fn grammar_is_that_of_serde_json_around_values(value in json_text(), at: prop::sample::Index, byte: u8) {
        agree(value.as_str().as_bytes())?;
        let mut bytes = value.as_str().as_bytes().to_vec();
        let at = at.index(bytes.len());
        bytes.insert(at, byte);
        agree(&bytes)?;
        bytes.remove(at);
        bytes[at] = byte;
        agree(&bytes)?;
        bytes.remove(at);
        agree(&bytes)?;
    }

    /// Only white space between tokens goes.
    #[test]
    fn values_stay_as_spelled(value in json_text(), spaces in spacing()) {
        prop_assert_eq!(JsonText::parse(spaces.inject(value.as_str())), Ok(value));
    }

    /// The text behind a spelling is what serde_json reads, and what it would write is what we do.
    #[test]
    fn escapes_are_those_of_serde_json(string in json_string(), text: String) {
        let quoted = format!("{string:?}");
        prop_assert_eq!(string.to_str(), serde_json::from_str::<String>(&quoted).unwrap());
        let value = JsonText::parse(&quoted).unwrap();
        prop_assert_eq!(value.to_str(), Some(string.to_str()));
        let written = serde_json::to_string(&text).unwrap();
        prop_assert_eq!(format!("{:?}", JsonString::new(&text)), &*written);
        prop_assert_eq!(JsonText::from(text).to_string(), written);
    }

    /// No spelling makes reading panic, whatever storage hands us.
    #[test]
    fn broken_spellings_give_some_text(pieces in proptest::collection::vec(
        proptest::sample::select(vec!["\\", "u", "\\u", "d83d", "\\ude00", "é", "\"", "+123", "0"]), 0..8)) {
        let _ = JsonString::from_checked(&pieces.concat()).to_str();
        let _ = JsonText::from_checked(&pieces.concat()).to_str();
    }
}

/// Goal: nesting costs no stack, whatever is nested in what.
#[test]
fn five_million_levels_are_fine() {
    const LEVELS: usize = 5_000_000;
    let arrays = "[".repeat(LEVELS) + &"]".repeat(LEVELS);
    assert_eq!(JsonText::parse(&arrays).unwrap().as_str(), arrays);
    let cut = JsonText::parse(&arrays[..LEVELS]).unwrap_err();
    assert_eq!(cut.column, Some(LEVELS + 1));
}

/// Goal: objects and arrays are told apart at every level, also around the borders of words.
#[test]
fn brackets_close_what_they_opened() {
    for depth in [1, 2, 63, 64, 65, 127, 128, 129, 300] {
        let kinds: Vec<bool> = (0..depth).map(|level| (level * 7 + level / 5) % 3 == 0).collect();
        let open: String = kinds.iter().map(|object| if *object { "{\"\":" } else { "[" }).collect();
        let close: String = kinds.iter().rev().map(|object| if *object { "}" } else { "]" }).collect();
        let text = format!("{open}0{close}");
        assert_eq!(JsonText::parse(&text).unwrap().as_str(), text);
        for wrong in 0..close.len() {
            let mut bytes = text.clone().into_bytes();
            let at = open.len() + 1 + wrong;
            bytes[at] = if bytes[at] == b'}' { b']' } else { b'}' };
            assert_eq!(JsonText::parse(&bytes).unwrap_err().column, Some(at + 1));
        }
    }
}

/// Goal: control characters are found at every offset to the words of eight bytes that are looked at.
#[test]
fn every_byte_of_a_string_is_looked_at() {
    for length in 0..40 {
        for at in 0..length {
            for byte in (0..=0x7F_u8).filter(|byte| !matches!(byte, b'"' | b'\\')) {
                let mut text = format!("\"{}\"", "é".repeat(length / 2) + &"x".repeat(length)).into_bytes();
                let place = text.len() - 1 - length + at;
                text[place] = byte;
                let column = JsonText::parse(&text).err().and_then(|error| error.column);
                assert_eq!(column, (byte < 0x20).then_some(place + 1));
            }
        }
    }
}

/// Goal: what was given is what is kept, and reads as what it is.
#[test]
fn json_text_keeps_and_gives_back() {
    let text = JsonText::parse("{\"b\":1e400,\"a\": -0 ,\"a\":\"\\/\\u00e9\u{2028}\"}").unwrap();
    assert_eq!(text.to_string(), "{\"b\":1e400,\"a\":-0,\"a\":\"\\/\\u00e9\u{2028}\"}");
    assert_eq!(serde_json::to_string(&[&text]).unwrap(), format!("[{text}]"));
    assert_eq!(JsonText::from_serialize(&[&text]).unwrap().as_str(), format!("[{text}]"));
    assert_eq!(JsonText::parse("[1, 2]").unwrap().deserialize::<Vec<u8>>().unwrap(), [1, 2]);
    assert_eq!(JsonText::from(serde_json::json!({"a": [null]})).as_str(), r#"{"a":[null]}"#);
    assert!(JsonText::parse("null").unwrap().is_null());
    assert_eq!(text.to_str(), None);
}

/// Goal: serde's raw values do not get past our rules.
#[test]
fn from_serialize_checks_raw_values() {
    let raw: Box<RawValue> = serde_json::from_str(r#"["\ud800"]"#).unwrap();
    let error: EventError = JsonText::from_serialize(&raw).unwrap_err();
    assert_eq!(error.fault, EventFault::LoneSurrogate);
    let spaced: Box<RawValue> = serde_json::from_str("[ 1 ]").unwrap();
    assert_eq!(JsonText::from_serialize(&spaced).unwrap().as_str(), "[1]");
    let not_json = std::collections::BTreeMap::from([(vec![1], 2)]);
    assert!(matches!(JsonText::from_serialize(&not_json).unwrap_err().fault, EventFault::NotJson { .. }));
}
