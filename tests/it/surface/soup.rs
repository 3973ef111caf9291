//! Any events in any order, against the rules of a request and a slow fold; neither knows the library's.

use std::collections::BTreeSet;

use proptest::prelude::*;
use proptest::test_runner::FileFailurePersistence;
use serde_json::Value;
use sessionlog::{
    Error, Event, NewSession, Seq, Store, Surface, SurfaceFault, SurfaceOptions, SurfaceSnapshot,
};

use super::{event, folded, new_event, values};
use crate::support::chat;

const IDS: [&str; 4] = ["c", "d", "c#2", r"\u0063"];
const CONTENTS: [&str; 8] = [
    r#""""#,
    r#""text""#,
    r#""more""#,
    "[]",
    r#"[{"text":"","type":"text"}]"#,
    r#"[{"text":"","type":"text"},{"text":"a","type":"text"}]"#,
    r#"[{"image_url":{"url":"x"},"type":"image_url"},{"text":"b","type":"text"}]"#,
    r#""\u0041\n""#,
];
const RESULTS: [&str; 10] = [
    r#""result":"""#,
    r#""result":"ok""#,
    r#""result":4"#,
    r#""result":null"#,
    r#""result":[]"#,
    r#""result":{"a":[1,"b"]}"#,
    r#""result":[{"text":"","type":"text"}]"#,
    r#""result":[{"text":"a","type":"text"},{"text":"","type":"text"}]"#,
    r#""result":[{"image_url":1,"type":"image_url"}]"#,
    r#""result":1,"error":"failed""#,
];
const ARGS: [&str; 5] = [r#"{"a":1}"#, r#""{\"a\":""#, r#""""#, "null", "[]"];

/// An event, without its seq; what it replaces is given by two numbers, to be cut to the length so far.
#[derive(Clone, Debug)]
pub(super) struct Drop {
    fields: String,
    replaces: Option<(u8, u8)>,
}

fn pick<T: Clone + std::fmt::Debug + 'static>(from: &'static [T]) -> impl Strategy<Value = T> {
    proptest::sample::select(from)
}

fn plain() -> impl Strategy<Value = String> {
    prop_oneof![
        2 => pick(&[r#""turn/start","turnId":"t""#, r#""turn/end","turnId":"t""#]).prop_map(str::to_owned),
        2 => pick(&[r#""step/start","stepId":"s","turnId":"t""#, r#""step/end","stepId":"s""#])
            .prop_map(str::to_owned),
        2 => pick(&[r#""assistant/chunk","delta":"x""#, r#""assistant/chunk","delta":"x","more":1"#, r#""x/y""#])
            .prop_map(str::to_owned),
        6 => (pick(&IDS), pick(&ARGS))
            .prop_map(|(id, args)| format!(r#""tool/call","id":"{id}","name":"n","args":{args}"#)),
    ]
}

fn placeable() -> impl Strategy<Value = String> {
    prop_oneof![
        3 => pick(&CONTENTS).prop_map(|content| format!(r#""user/message","content":{content}"#)),
        3 => prop_oneof![4 => pick(&CONTENTS), 1 => Just("null")]
            .prop_map(|content| format!(r#""assistant/message","content":{content}"#)),
        6 => (pick(&IDS), pick(&RESULTS)).prop_map(|(id, result)| format!(r#""tool/result","id":"{id}",{result}"#)),
    ]
}

pub(super) fn soup() -> impl Strategy<Value = Vec<Drop>> {
    let drop = prop_oneof![
        4 => plain().prop_map(|fields| Drop { fields, replaces: None }),
        5 => placeable().prop_map(|fields| Drop { fields, replaces: None }),
        // Mostly short ranges near the end, where they often are sound.
        3 => (placeable(), any::<u8>(), 0..6_u8)
            .prop_map(|(fields, start, len)| Drop { fields, replaces: Some((start, start.wrapping_add(len))) }),
        1 => (placeable(), any::<u8>(), any::<u8>())
            .prop_map(|(fields, start, end)| Drop { fields, replaces: Some((start, end)) }),
    ];
    prop::collection::vec(drop, 0..60)
}

impl Drop {
    /// The event's line, as the one at `seq`.
    pub(super) fn line(&self, seq: usize, with_seq: bool) -> String {
        let op = self.replaces.map(|(start, end)| {
            let within = |at: u8| usize::from(at) % (seq + 2);
            format!(r#","surfaceOp":{{"op":"replace","start":{},"end":{}}}"#, within(start), within(end))
        });
        let given = if with_seq { format!(r#","seq":{seq}"#) } else { String::new() };
        format!(r#"{{"type":{}{given}{},"timestamp":0}}"#, self.fields, op.unwrap_or_default())
    }
}

fn events(soup: &[Drop]) -> Vec<Event> {
    soup.iter().enumerate().map(|(seq, drop)| event(&drop.line(seq, true))).collect()
}

fn json(events: &[Event]) -> Vec<Value> {
    events.iter().map(|event| serde_json::from_str(&event.to_json()).unwrap()).collect()
}

proptest! {
    #![proptest_config(ProptestConfig {
        failure_persistence: Some(Box::new(FileFailurePersistence::Direct("tests/it/surface.regressions"))),
        ..ProptestConfig::default()
    })]

    /// Goal: whatever is in the log, its messages can be sent, are those of the slow fold, and the report names what
    /// is not as it was logged; strict messages are refused exactly then.
    #[test]
    fn any_soup_can_be_sent(soup in soup()) {
        let events = events(&soup);
        let mut surface = folded(&events);
        let expected = chat::fold(&json(&events));
        let found = values(surface.messages());
        prop_assert_eq!(chat::refusal(&found), None, "{:#?}", found);
        prop_assert_eq!(&found, &expected.messages);
        let mended: Vec<u64> = surface.report().mends.iter().map(|mend| mend.seq.get()).collect();
        prop_assert_eq!(&mended, &expected.mended);
        let strict = surface.strict_messages().map(values);
        prop_assert_eq!(strict.is_err(), !mended.is_empty());
        let by_serde = serde_json::to_value(surface.messages()).unwrap();
        prop_assert_eq!(by_serde, Value::Array(found));
        prop_assert_eq!(surface.plain_messages().len(), expected.placed.len());
    }

    /// Goal: asked for at any time in between, messages are the whole fold's; the generation changes exactly when
    /// messages that were given before are not what they were.
    #[test]
    fn a_surface_fed_event_by_event_is_the_whole_one(soup in soup(), asked in any::<u64>()) {
        let events = events(&soup);
        let mut surface = Surface::default();
        let mut given: (u64, Vec<Value>) = (surface.generation(), Vec::new());
        for (at, event) in events.iter().enumerate() {
            surface.push(event);
            if asked >> (at % 64) & 1 == 0 && at + 1 < events.len() {
                continue;
            }
            let found = values(surface.messages());
            prop_assert_eq!(&found, &chat::fold(&json(&events[..=at])).messages);
            prop_assert_eq!(surface.generation() == given.0, found.starts_with(&given.1));
            given = (surface.generation(), found);
        }
        prop_assert_eq!(&surface, &folded(&events));
        prop_assert_eq!(values(&surface.into_messages()), given.1);
    }

    /// Goal: chunks and custom events never matter; an event that comes twice counts once.
    #[test]
    fn chunks_never_matter(soup in soup()) {
        let events = events(&soup);
        let silent = |event: &Event| matches!(&*event.event_type(), "assistant/chunk" | "x/y");
        let mut without = folded(events.iter().filter(|event| !silent(event)));
        let mut whole = Surface::default();
        for (at, event) in events.iter().enumerate() {
            whole.push(event);
            whole.push(&events[at / 2]);
        }
        prop_assert_eq!(without.messages(), whole.messages());
        prop_assert_eq!(without.report(), whole.report());
    }

    /// Goal: a surface that goes on from a snapshot, made anywhere and read back from JSON, is the whole one.
    #[test]
    fn a_surface_goes_on_from_a_snapshot(soup in soup(), split in any::<prop::sample::Index>()) {
        let events = events(&soup);
        let (before, after) = events.split_at(split.index(events.len() + 1));
        let snapshot = folded(before).to_snapshot();
        let saved = serde_json::to_string(&snapshot).unwrap();
        let read: SurfaceSnapshot = serde_json::from_str(&saved).unwrap();
        prop_assert_eq!(&read, &snapshot);
        let mut surface = Surface::from_snapshot(read, SurfaceOptions::new()).unwrap();
        for event in after {
            surface.push(event);
        }
        let mut whole = folded(&events);
        prop_assert_eq!(&surface, &whole);
        prop_assert_eq!(surface.to_snapshot(), whole.to_snapshot());
        prop_assert_eq!(surface.messages(), whole.messages());
        prop_assert_eq!(surface.report(), whole.report());
    }

    /// Goal: messages name the events they were made of, which stand; what was replaced names what replaced it.
    #[test]
    fn messages_and_replaces_name_their_events(soup in soup()) {
        let events = events(&soup);
        let mut surface = folded(&events);
        let expected = chat::fold(&json(&events));
        for seq in (0..events.len() as u64).map(Seq::new) {
            match expected.replaced.get(&seq.get()) {
                Some(by) => prop_assert_eq!(surface.replaced_by(seq), Some(Seq::new(*by))),
                None if expected.placed.contains(&seq.get()) => prop_assert_eq!(surface.replaced_by(seq), None),
                None => {}
            }
            if let Some(last) = surface.replacements(seq).last() {
                prop_assert!(expected.placed.contains(&last.get()));
            }
        }
        let messages = values(surface.messages());
        let mut named = BTreeSet::new();
        for (index, message) in messages.iter().enumerate() {
            let seqs = surface.events_of(index).unwrap();
            let types: Vec<_> = seqs.iter().map(|seq| events[seq.get() as usize].event_type()).collect();
            let calls = message["tool_calls"].as_array().map_or(0, Vec::len);
            prop_assert_eq!(types.iter().filter(|found| **found == "tool/call").count(), match types.as_slice() {
                // What stands in for a result names the call.
                [only] if message["role"] == "tool" && only == "tool/call" => 1,
                _ => calls,
            });
            if message["role"] != "tool" {
                for seq in seqs {
                    prop_assert!(named.insert(seq), "{} is named twice", seq);
                }
            }
        }
        prop_assert_eq!(surface.events_of(messages.len()), None);
    }

    /// Goal: an append takes a replace exactly when it is sound there, and stores nothing else; sessions and forks at
    /// any point give what a fold of their events gives.
    #[test]
    fn sessions_and_forks_give_the_messages_of_their_events(
        soup in soup(), cut in any::<prop::sample::Index>(), batches in any::<u64>()
    ) {
        let store = Store::in_memory().unwrap();
        let session = store.create(NewSession::new()).unwrap();
        let mut surface = session.surface().unwrap();
        for (at, drop) in soup.iter().enumerate() {
            let len = session.len();
            let new = new_event(&drop.line(len as usize, false));
            let checked = surface.check(&new);
            match session.append(new) {
                Ok(seq) => prop_assert!(checked.is_ok() && seq.get() == len),
                Err(Error::InvalidReplace { fault, .. }) => {
                    prop_assert_eq!(checked, Err(fault));
                    prop_assert_eq!(session.len(), len);
                }
                Err(error) => panic!("{error}"),
            }
            if batches >> (at % 64) & 3 == 3 {
                store.drain().unwrap();
                prop_assert_eq!(session.messages().unwrap(), session.surface().unwrap().into_messages());
            }
            session.advance(&mut surface).unwrap();
        }
        let is_replace = |fault| matches!(fault, SurfaceFault::Replace(_));
        prop_assert!(!surface.report().mends.iter().any(|mend| is_replace(mend.fault)));
        let events: Vec<Event> = session.read_from(Seq::ZERO).unwrap().map(Result::unwrap).collect();
        let at = cut.index(events.len() + 1);
        let mut before = folded(&events[..at]);
        let fork = session.fork(Seq::new(at as u64)).unwrap();
        let fork_of_fork = fork.fork(Seq::new(at as u64)).unwrap();
        for found in [
            session.messages_at(Seq::new(at as u64)).unwrap(),
            fork.messages().unwrap(),
            fork_of_fork.messages().unwrap(),
        ] {
            prop_assert_eq!(found.as_slice(), before.messages());
        }
        fork.append(new_event(r#"{"type":"user/message","content":"only here"}"#)).unwrap();
        prop_assert_eq!(session.messages().unwrap(), surface.messages());
    }
}
