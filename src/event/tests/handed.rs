//! Lines of transcripts that gave trouble in other session stores. Files: `tests/data/cases`.

use crate::error::{EventError, EventFault};
use crate::event::Event;

macro_rules! case {
    ($name:literal) => {
        include_bytes!(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/data/cases/", $name)).as_slice()
    };
}

/// The lines of a file, without its header: only LF ends one.
fn lines(file: &'static [u8]) -> Vec<&'static [u8]> {
    file.split(|byte| *byte == b'\n').skip(1).filter(|line| !line.is_empty()).collect()
}

/// Reads every event of a file whose lines are written in our order, and finds them unchanged.
#[track_caller]
fn come_back(file: &'static [u8], count: usize) -> Vec<Event> {
    let lines = lines(file);
    let events: Vec<_> = lines.iter().map(|line| Event::from_json(line).unwrap()).collect();
    for (line, event) in lines.iter().zip(&events) {
        assert_eq!(event.to_json().as_bytes(), *line);
    }
    assert_eq!(events.len(), count);
    events
}

/// Reads a file up to its first bad line: its number (the header is 1) and error.
fn first_fault(file: &'static [u8]) -> (usize, EventError) {
    let faults = lines(file).into_iter().enumerate();
    faults.filter_map(|(n, line)| Some((n + 2, Event::from_json(line).err()?))).next().unwrap()
}

#[test]
fn h11_half_an_emoji_is_refused_where_it_stands() {
    let file = case!("lone_high_surrogate.jsonl");
    let (line, error) = first_fault(file);
    let half_at = std::str::from_utf8(lines(file)[1]).unwrap().find(r"\ud83d").unwrap();
    assert_eq!((line, error.column, error.fault), (3, Some(half_at + 1), EventFault::LoneSurrogate));
}

#[test]
fn h12_unicode_line_separators_are_text() {
    let events = come_back(case!("unicode_line_separators.jsonl"), 2);
    assert!(events[0].to_json().contains("a\u{2028}b\u{2029}c\u{85}d\\u000be\\f"));
}

#[test]
fn h13_a_clock_that_goes_backwards_is_kept() {
    let events = come_back(case!("clock_backwards.jsonl"), 4);
    let times: Vec<_> = events.iter().map(|event| event.timestamp.as_millis()).collect();
    assert_eq!(times, [1_700_000_009_000, 1_700_000_001_000, 1_700_000_005_000, 1_699_913_600_000]);
}

#[test]
fn h14_unknown_types_and_fields_are_kept() {
    let lines = lines(case!("unknown_event_type.jsonl"));
    let event = Event::from_json(lines[1]).unwrap();
    assert_eq!(event.event_type(), "x-vendor/note");
    let written = r#"{"type":"x-vendor/note","seq":1,"k":[1,{"deep":true}],"future_field":{"a":1},"timestamp":1700000002000}"#;
    assert_eq!(event.to_json(), written);
}

#[test]
fn h15_numbers_as_strings_are_refused_by_name() {
    let (line, error) = first_fault(case!("stringly_numbers.jsonl"));
    assert_eq!((line, error.column, error.field.as_deref()), (3, Some(35), Some("seq")));
    assert_eq!(error.fault, EventFault::WrongType { expected: "an integer" });
}

#[test]
fn h27_every_digit_survives() {
    let lines = lines(case!("big_ints.jsonl"));
    let digits = concat!(
        r#"{"id":9007199254740993,"snow":2512292042121000001,"#,
        r#""i64":-9223372036854775808,"u64":18446744073709551615,"dec":0.1}"#
    );
    for (line, prefix) in [(lines[2], r#""args":"#), (lines[3], r#""result":"#)] {
        assert!(Event::from_json(line).unwrap().to_json().contains(&format!("{prefix}{digits}")));
    }
}

#[test]
fn h28_broken_arguments_are_kept() {
    come_back(case!("bad_args.jsonl"), 8);
}

#[test]
fn h29_arguments_that_are_no_object_are_kept() {
    come_back(case!("non_object_args.jsonl"), 10);
}

#[test]
fn h30_empty_text_is_kept() {
    come_back(case!("empty_content.jsonl"), 4);
}

#[test]
fn h43_one_bad_byte_is_refused_where_it_stands() {
    let file = case!("invalid_utf8_middle.jsonl");
    let (line, error) = first_fault(file);
    let bad_at = lines(file)[3].iter().position(|byte| *byte == 0xFF).unwrap();
    assert_eq!((line, error.column, error.fault), (5, Some(bad_at + 1), EventFault::NotUtf8));
}
