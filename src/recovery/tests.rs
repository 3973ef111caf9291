use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::{Index, select};

use super::{Inspection, TOOL_OUTCOME_UNKNOWN, unfinished_text};
use crate::event::tests::arbitrary;
use crate::event::{Event, EventKind, JsonString, JsonText, NewEvent};
use crate::id::{Seq, Timestamp};

/// Any order of any events, with few ids in several spellings, so that they meet.
pub(crate) fn soup() -> impl Strategy<Value = Vec<Event>> {
    vec(prop_oneof![9 => structured(), 1 => arbitrary::event()], 0..60).prop_map(numbered)
}

/// The events with the seqs that they have one after the other.
pub(crate) fn numbered(events: Vec<Event>) -> Vec<Event> {
    events.into_iter().zip(0..).map(|(event, seq)| Event { seq: Seq::new(seq), ..event }).collect()
}

fn structured() -> impl Strategy<Value = Event> {
    let kind = prop_oneof![
        1 => id().prop_map(NewEvent::turn_start),
        1 => id().prop_map(NewEvent::turn_end),
        2 => (id(), id()).prop_map(|(step, turn)| NewEvent::step_start(step, turn)),
        2 => id().prop_map(NewEvent::step_end),
        1 => Just(NewEvent::user_message("hello")),
        2 => select(usages()).prop_map(|usage| match usage {
            Some(usage) => NewEvent::assistant_message("hello").usage(json(usage)),
            None => NewEvent::assistant_message("hello"),
        }),
        4 => arbitrary::json_string().prop_map(NewEvent::assistant_chunk),
        4 => (id(), id(), arbitrary::json_text())
            .prop_map(|(id, name, args)| NewEvent::tool_call(id, name, args)),
        2 => id().prop_map(|id| NewEvent::tool_result(id, "fine")),
        1 => (id(), select(vec!["no", TOOL_OUTCOME_UNKNOWN, "TOOL_OUTCOME_UNKNOWN: who knows"]))
            .prop_map(|(id, error)| NewEvent::tool_error(id, error)),
        1 => select(vec!["x", "y"]).prop_map(NewEvent::custom),
    ];
    (kind, -50..50_i64).prop_map(|(event, millis)| event.into_event(Seq::ZERO, at(millis)))
}

fn usages() -> Vec<Option<&'static str>> {
    vec![
        None,
        Some("null"),
        Some("{}"),
        Some(r#"{"prompt_tokens":3,"completion_tokens":4,"total_tokens":7}"#),
        Some(r#"{"input_tokens":5,"cache_read_input_tokens":1}"#),
    ]
}

/// `a` in two spellings, and others.
fn id() -> impl Strategy<Value = JsonString> {
    select(vec!["a", "\\u0061", "b", "", "c\\/d", "c/d"]).prop_map(JsonString::from_checked)
}

fn json(text: &str) -> JsonText {
    JsonText::parse(text).unwrap()
}

fn at(millis: i64) -> Timestamp {
    Timestamp::from_millis(1_700_000_000_000 + millis).unwrap()
}

/// Events at one millisecond each.
pub(crate) fn events(new: impl IntoIterator<Item = NewEvent>) -> Vec<Event> {
    new.into_iter()
        .zip(0..)
        .map(|(event, n)| event.into_event(Seq::new(n), at(n.try_into().unwrap())))
        .collect()
}

/// What is open, found forwards and by hand: the turn, the step, the calls, as seqs.
fn open(events: &[Event]) -> (Option<u64>, Option<u64>, Vec<u64>) {
    let (mut turn, mut step, mut calls) = (None, None, Vec::new());
    for event in events {
        let seq = event.seq.get();
        match &event.kind {
            EventKind::TurnStart { turn_id } => {
                turn = Some((seq, turn_id.to_string()));
                step = None;
                calls.clear();
            }
            EventKind::TurnEnd { turn_id, .. } if turn.as_ref().is_some_and(|t| t.1 == turn_id.to_str()) => {
                turn = None;
            }
            EventKind::StepStart { step_id, .. } => step = Some((seq, step_id.to_string())),
            EventKind::StepEnd { step_id, .. } if step.as_ref().is_some_and(|s| s.1 == step_id.to_str()) => {
                step = None;
            }
            EventKind::ToolCall { id, .. } => calls.push((seq, id.to_string())),
            EventKind::ToolResult { id, .. } => {
                if let Some(place) = calls.iter().rposition(|call| call.1 == id.to_str()) {
                    calls.remove(place);
                }
            }
            _ => {}
        }
    }
    match turn {
        Some((seq, _)) => {
            (Some(seq), step.map(|step| step.0), calls.into_iter().map(|call| call.0).collect())
        }
        None => (None, None, Vec::new()),
    }
}

fn text_by_hand(events: &[Event]) -> Option<String> {
    let mut text: Option<String> = None;
    for event in events {
        match &event.kind {
            EventKind::AssistantChunk { delta } => text.get_or_insert_default().push_str(&delta.to_str()),
            EventKind::ToolCall { .. } | EventKind::ToolResult { .. } | EventKind::Custom { .. } => {}
            _ => text = None,
        }
    }
    text
}

/// What closers close, in no order: of two open calls with one id, the first closer answers the later one.
fn closed(closers: &[Event]) -> Vec<(String, Option<String>)> {
    let id = |event: &Event| match &event.kind {
        EventKind::ToolResult { id, .. } => Some(id.to_string()),
        _ => None,
    };
    let mut closed: Vec<_> =
        closers.iter().map(|event| (event.event_type().into_owned(), id(event))).collect();
    closed.sort();
    closed
}

proptest! {
    /// Goal: whatever was logged, what is open is found, and the closers close exactly that.
    #[test]
    fn closers_close_exactly_what_is_open(events in soup()) {
        let found = Inspection::of(&events);
        let (turn, step, calls) = open(&events);
        prop_assert_eq!(found.turn.as_ref().map(|turn| turn.seq.get()), turn);
        prop_assert_eq!(found.step.as_ref().map(|step| step.seq.get()), step);
        prop_assert_eq!(found.calls.iter().map(|call| call.seq.get()).collect::<Vec<_>>(), calls.clone());
        let text = turn.and_then(|_| text_by_hand(&events));
        prop_assert_eq!(&found.text, &text);

        let expected = turn.map_or(0, |_| calls.len() + usize::from(step.is_some()) + 1);
        prop_assert_eq!(found.closers.len(), expected);
        let mut after = events.clone();
        for closer in &found.closers {
            prop_assert!(NewEvent::from(closer.clone()).validate().is_ok(), "{}", closer);
            prop_assert_eq!(closer.seq.get(), after.len() as u64);
            prop_assert_eq!(Some(closer.timestamp), events.last().map(|event| event.timestamp));
            after.push(closer.clone());
        }
        prop_assert!(Inspection::of(&after).is_empty(), "a second resume finds something");
        prop_assert_eq!(open(&after), (None, None, Vec::new()));
        let types: Vec<_> = found.closers.iter().map(|closer| closer.event_type()).collect();
        let mut expected = vec!["tool/result"; calls.len()];
        expected.extend(step.map(|_| "step/end"));
        expected.extend(turn.map(|_| "turn/end"));
        prop_assert_eq!(types, expected);
    }

    /// Goal: a crash, or a fork, between any two closers: what is left is closed, and all of it is what would have been.
    #[test]
    fn closing_goes_on_from_any_closer(events in soup(), cut in any::<Index>()) {
        let closers = Inspection::of(&events).closers;
        let done = cut.index(closers.len() + 1);
        let mut part = events;
        part.extend_from_slice(&closers[..done]);
        prop_assert_eq!(closed(&Inspection::of(&part).closers), closed(&closers[done..]));
    }

    /// Goal: events before the last turn's start change nothing.
    #[test]
    fn only_the_last_turn_counts(events in soup()) {
        let last = events.iter().rposition(|event| matches!(event.kind, EventKind::TurnStart { .. }));
        let turn = &events[last.unwrap_or(events.len())..];
        prop_assert_eq!(Inspection::of(turn), Inspection::of(&events));
    }

    /// Goal: the unfinished text, with or without a turn around it.
    #[test]
    fn unfinished_text_is_that_of_the_last_chunks(events in soup()) {
        prop_assert_eq!(unfinished_text(&events), text_by_hand(&events));
    }
}

/// Goal: the closers, byte for byte.
#[test]
fn h01_closers_to_the_letter() {
    let events = events([
        NewEvent::turn_start("turn-1"),
        NewEvent::step_start("step-1", "turn-1"),
        NewEvent::tool_call("c\u{1}1", "run", json(r#"{"cmd":"ls"}"#)),
    ]);
    let lines: Vec<String> = Inspection::of(&events).closers.iter().map(Event::to_json).collect();
    assert_eq!(lines.len(), 3);
    let start = r#"{"type":"tool/result","seq":3,"id":"c\u00011","error":"TOOL_OUTCOME_UNKNOWN: "#;
    assert!(lines[0].starts_with(start), "{}", lines[0]);
    assert!(lines[0].contains("read-only or idempotent"));
    assert!(lines[0].ends_with(r#"","closer":true,"timestamp":1700000000002}"#), "{}", lines[0]);
    assert_eq!(
        lines[1..],
        [
            r#"{"type":"step/end","seq":4,"stepId":"step-1","turnId":"turn-1","timestamp":1700000000002}"#,
            r#"{"type":"turn/end","seq":5,"turnId":"turn-1","reason":"interrupted","timestamp":1700000000002}"#,
        ]
    );
}

/// Goal: ids are the same when their texts are, and the closers keep the spelling of what they close.
#[test]
fn ids_are_compared_by_text() {
    let spelled = |spelling| JsonString::from_checked(spelling);
    let mut log = events([
        NewEvent::turn_start(spelled("\\u0074")),
        NewEvent::step_start(spelled("\\u0073"), "t"),
        NewEvent::tool_call(spelled("\\u0063"), "x", json("1")),
    ]);
    let closers = Inspection::of(&log).closers;
    let lines: String = closers.iter().map(Event::to_json).collect();
    for part in [r#""id":"\u0063""#, r#""stepId":"\u0073","turnId":"t""#, r#""turnId":"\u0074""#] {
        assert!(lines.contains(part), "{part}: {lines}");
    }
    log.extend(events([NewEvent::tool_result("c", "1"), NewEvent::step_end("s")]));
    let found = Inspection::of(&numbered(log.clone()));
    assert_eq!((found.calls.len(), found.step, found.closers.len()), (0, None, 1));
    log.extend(events([NewEvent::turn_end("t")]));
    assert!(Inspection::of(&numbered(log)).is_empty());
}

/// Goal: H17: a result answers the nearest open call, so of two calls with one id the first is left.
#[test]
fn h17_the_nearest_open_call_is_answered() {
    let found = Inspection::of(&events([
        NewEvent::turn_start("t"),
        NewEvent::tool_call("call_0", "first", json("1")),
        NewEvent::tool_call("call_0", "second", json("2")),
        NewEvent::tool_result("call_0", "2"),
    ]));
    assert_eq!(found.calls.iter().map(|call| call.name.to_string()).collect::<Vec<_>>(), ["first"]);
}

/// Goal: an event of the last seq there is, as only a caller can make it, is no overflow.
#[test]
fn the_last_seq_there_is() {
    let line = format!(r#"{{"type":"turn/start","seq":{},"turnId":"t","timestamp":1}}"#, u64::MAX);
    let last = Event::from_json(line.as_bytes()).unwrap();
    let call = NewEvent::tool_call("c", "x", json("1")).into_event(Seq::new(u64::MAX), at(0));
    assert_eq!(Inspection::of([&last, &call]).closers.len(), 2);
}
