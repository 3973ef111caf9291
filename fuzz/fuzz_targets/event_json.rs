//! The JSON form of events: what is accepted is JSON, keeps every value as it was spelled, and comes back the same from
//! its line and from a store.

#![no_main]

use std::borrow::Cow;
use std::sync::Arc;

use libfuzzer_sys::fuzz_target;
use serde_json::value::RawValue;
use sessionlog::storage::{MemoryJournalFiles, MemoryStorage};
use sessionlog::{Error, Event, EventError, JsonText, NewEvent, NewSession, Result, SurfaceOp};
use sessionlog_fuzz::base::{id, quiet};

sessionlog_fuzz::limit_memory!();

fuzz_target!(|line: &[u8]| {
    match Event::from_json(line) {
        Ok(event) => check_event(line, &event),
        Err(error) => check_error(line, &error),
    }
    match NewEvent::from_json(line) {
        Ok(event) => check_new(line, event),
        Err(error) => check_error(line, &error),
    }
    match JsonText::parse(line) {
        Ok(value) => check_value(line, &value),
        Err(error) => check_error(line, &error),
    }
});

fn check_error(line: &[u8], error: &EventError) {
    let _ = error.to_string();
    assert!(error.column.is_some_and(|column| (1..=line.len() + 1).contains(&column)), "{error:?}");
}

fn check_value(text: &[u8], value: &JsonText) {
    assert_eq!(JsonText::parse(value.as_str()).as_ref(), Ok(value), "it is one spelling");
    assert_eq!(squeeze(text), value.as_str().as_bytes(), "nothing but white space goes");
    let raw: &RawValue = value.deserialize().expect("it is JSON");
    assert_eq!(raw.get(), value.as_str());
    if let Some(text) = value.to_str() {
        assert_eq!(Ok(text), serde_json::from_str::<Cow<'_, str>>(value.as_str()).map_err(drop));
    }
}

/// The JSON without white space between its tokens.
fn squeeze(json: &[u8]) -> Vec<u8> {
    let (mut within, mut escaped) = (false, false);
    let mut out = Vec::with_capacity(json.len());
    for byte in json {
        if within || !matches!(byte, b' ' | b'\t' | b'\n' | b'\r') {
            out.push(*byte);
        }
        if *byte == b'"' && !escaped {
            within = !within;
        }
        escaped = within && !escaped && *byte == b'\\';
    }
    out
}

/// Members in order, names as the text that they stand for, values as they are spelled.
fn members(line: &[u8]) -> Vec<(String, String)> {
    struct Members(Vec<(String, String)>);
    impl<'de> serde::Deserialize<'de> for Members {
        fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> std::result::Result<Self, D::Error> {
            struct Visitor;
            impl<'de> serde::de::Visitor<'de> for Visitor {
                type Value = Members;
                fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                    f.write_str("an object")
                }
                fn visit_map<A: serde::de::MapAccess<'de>>(
                    self,
                    mut map: A,
                ) -> std::result::Result<Members, A::Error> {
                    let mut members = Vec::new();
                    while let Some((name, value)) = map.next_entry::<String, &RawValue>()? {
                        let value = String::from_utf8(squeeze(value.get().as_bytes()));
                        members.push((name, value.expect("it was a text")));
                    }
                    Ok(Members(members))
                }
            }
            deserializer.deserialize_map(Visitor)
        }
    }
    let members: Members = serde_json::from_slice(line).expect("what is accepted is JSON");
    members.0
}

/// The line of an accepted event holds every member that was given, and nothing else but `seq` and `timestamp` where
/// the store gave them.
fn check_lossless(line: &[u8], out: &str) {
    let known = |mut members: Vec<(String, String)>| {
        for (name, value) in &mut members {
            match name.as_str() {
                // An escaped spelling of a known type becomes the type.
                "type" => *value = serde_json::from_str(value).expect("a string"),
                // There are other spellings of an integer.
                "seq" | "timestamp" => value.clear(),
                _ => {}
            }
        }
        for given in ["seq", "timestamp"] {
            if members.iter().all(|(name, _)| name != given) {
                members.push((given.into(), String::new()));
            }
        }
        members.sort();
        members
    };
    assert_eq!(known(members(line)), known(members(out.as_bytes())), "nothing is lost, nothing is changed");
}

fn check_event(line: &[u8], event: &Event) {
    let out = event.to_json();
    assert!(!out.contains(['\n', '\r']), "one event, one line");
    let again = Event::from_json(out.as_bytes());
    assert_eq!(again.as_ref(), Ok(event), "a line says what the event says");
    assert_eq!(event.to_string(), out);
    check_lossless(line, &out);
    let _ = (event.surface_op(), event.source_event_seqs(), event.event_type());
    let new = NewEvent::from(event.clone());
    assert_eq!(new.validate(), Ok(()), "what was read can be appended");
}

fn check_new(line: &[u8], mut event: NewEvent) {
    assert_eq!(event.validate(), Ok(()), "what was read can be appended");
    event.expected_seq = None;
    let names_others = event.surface_op() != SurfaceOp::Append || !event.source_event_seqs().is_empty();
    let stored = match store_and_read(event.clone()) {
        Ok(stored) => stored,
        // In a new session there is nothing that an event could replace or come from.
        Err(Error::InvalidReplace { .. } | Error::InvalidEvent { .. }) if names_others => return,
        Err(error) => panic!("{error:?}"),
    };
    assert!(!names_others, "it names what is not there");
    let out = stored.to_json();
    assert_eq!(Event::from_json(out.as_bytes()).as_ref(), Ok(&stored));
    check_lossless(line, &out);
    event.timestamp = Some(stored.timestamp);
    assert_eq!(NewEvent::from(stored), event, "a store gives back what it was given");
}

/// Appends the event to a new store; reads it from the tail and, drained, from its block.
fn store_and_read(event: NewEvent) -> Result<Event> {
    let store = quiet().open_on(Arc::new(MemoryStorage::new()), Arc::new(MemoryJournalFiles::new()))?;
    let session = store.create(NewSession::with_id(id("s")))?;
    session.append(event)?;
    let from_tail = session.last(1)?.next().expect("there is one")?;
    store.drain()?;
    let from_block = session.last(1)?.next().expect("there is one")?;
    assert_eq!(from_tail, from_block);
    let report = store.scan()?;
    assert!(report.is_clean(), "{:?}", report.findings);
    store.close()?;
    Ok(from_block)
}
