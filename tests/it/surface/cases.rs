//! Handed transcripts and the walk-through, by the numbers of the trouble they stand for.

use sessionlog::{Event, MISSING_RESULT, NewEvent, NewSession, Seq, Session, Store, SurfaceFault};

use super::{brief, event, folded, session, values};
use crate::support::chat;

/// The events of a handed file.
fn file(name: &str) -> Vec<Event> {
    let path = format!("{}/tests/data/cases/{name}.jsonl", env!("CARGO_MANIFEST_DIR"));
    let text = std::fs::read_to_string(path).unwrap();
    text.lines().skip(1).map(event).collect()
}

fn append(session: &Session, events: &[Event]) {
    for event in events {
        session.append(NewEvent::from(event.clone())).unwrap();
    }
}

/// The messages of a file's events: folded as they are, and appended to a session.
#[track_caller]
fn messages(name: &str) -> Vec<String> {
    let events = file(name);
    let session = session();
    append(&session, &events);
    let found = session.messages().unwrap();
    assert_eq!(folded(&events).messages(), found);
    assert_eq!(chat::refusal(&values(&found)), None);
    brief(&found)
}

#[test]
fn h01_a_call_without_result_gets_a_stand_in() {
    let events = file("orphan_call_tail");
    let stand_in = format!("tool c1: {MISSING_RESULT}");
    assert_eq!(messages("orphan_call_tail"), ["user: count the files", "assistant c1: null", &stand_in]);
    let mut surface = folded(&events);
    let mend = &surface.report().mends[0];
    assert_eq!((mend.seq, mend.fault), (Seq::new(4), SurfaceFault::NoResult));
    assert_eq!(surface.strict_messages().unwrap_err(), surface.report());
    // Asked again, nothing is different.
    assert_eq!(surface.messages().to_vec(), surface.messages());
}

/// Goal: a compacted session, its fork and a fork of that show the same; before the replace the originals show.
#[test]
fn h10_a_fork_of_a_compacted_session() {
    let session = session();
    append(&session, &file("compacted_parent"));
    let expected = ["user: SUMMARY of q0..a1", "user: q2", "assistant: a2", "user: q3", "assistant: a3"];
    assert_eq!(brief(&session.messages().unwrap()), expected);
    let fork = session.fork(Seq::new(9)).unwrap();
    let fork_of_fork = fork.fork(Seq::new(9)).unwrap();
    for fork in [&fork, &fork_of_fork] {
        assert_eq!(fork.messages().unwrap(), session.messages().unwrap());
    }
    let before = session.fork(Seq::new(6)).unwrap();
    let originals = ["user: q0", "assistant: a0", "user: q1", "assistant: a1", "user: q2", "assistant: a2"];
    assert_eq!(brief(&before.messages().unwrap()), originals);
    // A replace in a fork is the fork's.
    fork.append(NewEvent::user_message("all of it").replace(Seq::new(6), Seq::new(8))).unwrap();
    assert_eq!(brief(&fork.messages().unwrap()), ["user: all of it"]);
    assert_eq!(brief(&session.messages().unwrap()), expected);
    assert_eq!(brief(&fork_of_fork.messages().unwrap()), expected);
}

#[test]
fn h13_the_clock_has_no_say() {
    let expected = ["user: one", "assistant: two", "user: three", "assistant: four"];
    assert_eq!(messages("clock_backwards"), expected);
}

#[test]
fn h14_unknown_types_are_skipped() {
    assert_eq!(messages("unknown_event_type"), ["user: hi", "assistant: hello"]);
}

#[test]
fn h16_parallel_calls_are_one_message() {
    let expected =
        ["user: two things", "assistant c1 c2: null", "tool c1: r1", "tool c2: r2", "assistant: done"];
    assert_eq!(messages("parallel_calls"), expected);
}

#[test]
fn h17_ids_may_come_again() {
    let expected = [
        "user: go 1",
        "assistant call_0: null",
        "tool call_0: out 1",
        "user: go 2",
        "assistant call_0: null",
        "tool call_0: out 2",
    ];
    assert_eq!(messages("reused_call_id"), expected);
    assert!(folded(&file("reused_call_id")).report().is_empty());
}

#[test]
fn h28_broken_arguments_are_text() {
    messages("bad_args");
    let mut surface = folded(&file("bad_args"));
    let arguments: Vec<String> =
        surface.messages()[1].tool_calls().iter().map(|call| call.function.arguments.to_string()).collect();
    assert_eq!(arguments, ["null", "", r#"{"a":"#]);
    assert_eq!(
        brief(surface.messages())[2..],
        ["tool c1: bad arguments", "tool c2: bad arguments", "tool c3: bad arguments"]
    );
}

#[test]
fn h29_arguments_that_are_no_object_are_kept() {
    messages("non_object_args");
    let mut surface = folded(&file("non_object_args"));
    let calls = surface.messages()[1].tool_calls();
    let arguments: Vec<String> = calls.iter().map(|call| call.function.arguments.to_string()).collect();
    assert_eq!(arguments, ["[]", "3", "t", "null"]);
}

#[test]
fn h30_empty_content_is_null_beside_a_call() {
    assert_eq!(messages("empty_content"), ["user: x", "assistant c1: null", "tool c1: "]);
}

/// H11: half an emoji never gets into a log; a pair that was spelled as escapes is valid JSON in a request.
#[test]
fn h11_messages_are_valid_json() {
    let text = r#"{"type":"tool/result","seq":0,"timestamp":0,"id":"c1","result":"cut here: \ud83d"}"#;
    assert!(Event::from_json(text.as_bytes()).is_err());
    let pair = event(r#"{"type":"user/message","seq":0,"timestamp":0,"content":"\ud83d\ude00"}"#);
    let mut surface = folded([&pair]);
    assert_eq!(values(surface.messages())[0]["content"], "😀");
}

/// Goal: a fork in the middle shows what came before, never what the parent says later.
#[test]
fn h40_a_fork_takes_its_prefix_only() {
    let session = session();
    session.append_batch((0..10).map(|n| NewEvent::user_message(format!("m{n}")))).unwrap();
    let fork = session.fork(Seq::new(4)).unwrap();
    session.append_batch((10..20).map(|n| NewEvent::user_message(format!("m{n}")))).unwrap();
    fork.append(NewEvent::user_message("own")).unwrap();
    let expected = ["user: m0", "user: m1", "user: m2", "user: m3", "user: own"];
    assert_eq!(brief(&fork.messages().unwrap()), expected);
    let shared: Vec<String> =
        fork.read_from(Seq::ZERO).unwrap().take(4).map(|e| e.unwrap().to_json()).collect();
    let parents: Vec<String> =
        session.read_from(Seq::ZERO).unwrap().take(4).map(|e| e.unwrap().to_json()).collect();
    assert_eq!(shared, parents);
}

/// Goal: raw reads give exactly the last events; a window that begins behind a call can be sent all the same.
#[test]
fn h47_a_window_never_begins_with_a_lone_result() {
    let session = session();
    session
        .append_batch([
            NewEvent::user_message("u"),
            NewEvent::assistant_message(""),
            NewEvent::tool_call("c1", "n", serde_json::json!({})),
            NewEvent::tool_result("c1", "r"),
            NewEvent::assistant_message("a"),
        ])
        .unwrap();
    let window: Vec<Event> = session.last(2).unwrap().map(Result::unwrap).collect();
    assert_eq!(window.iter().map(|event| event.seq.get()).collect::<Vec<_>>(), [3, 4]);
    let mut surface = folded(&window);
    assert_eq!(brief(surface.messages()), ["assistant: a"]);
    assert_eq!(surface.report().mends[0].fault, SurfaceFault::NoCall);
}

/// Goal: the walk-through's 16 events are 6 messages.
#[test]
fn sixteen_events_are_six_messages() {
    let session = session();
    let events = [
        NewEvent::turn_start("turn-1"),
        NewEvent::user_message("Hello!"),
        NewEvent::step_start("step-1", "turn-1"),
        NewEvent::assistant_message("Hello! How can I help you?"),
        NewEvent::step_end("step-1"),
        NewEvent::turn_end("turn-1").reason("completed"),
        NewEvent::turn_start("turn-2"),
        NewEvent::user_message("What is 2 + 2?"),
        NewEvent::step_start("step-2", "turn-2"),
        NewEvent::tool_call("call-1", "calculator", serde_json::json!({"expression": "2 + 2"})),
        NewEvent::tool_result("call-1", serde_json::json!(4)),
        NewEvent::step_end("step-2"),
        NewEvent::step_start("step-3", "turn-2"),
        NewEvent::assistant_message("The answer is 4."),
        NewEvent::step_end("step-3"),
        NewEvent::turn_end("turn-2").reason("completed"),
    ];
    session.append_batch(events).unwrap();
    let expected = [
        "user: Hello!",
        "assistant: Hello! How can I help you?",
        "user: What is 2 + 2?",
        "assistant call-1: null",
        "tool call-1: 4",
        "assistant: The answer is 4.",
    ];
    assert_eq!(brief(&session.messages().unwrap()), expected);
    assert!(session.surface().unwrap().report().is_empty());
}

/// Goal: what was logged between a call and its result comes behind the result; a second open call of an id is told
/// apart, and a result answers the nearest.
#[test]
fn calls_that_are_open_at_once_are_told_apart() {
    let session = session();
    session
        .append_batch([
            NewEvent::tool_call("c", "n", "first"),
            NewEvent::user_message("are you there?"),
            NewEvent::tool_call("c", "n", "second"),
            NewEvent::tool_result("c", "of the second"),
            NewEvent::tool_result("c", "of the first"),
            NewEvent::tool_result("c", "of none"),
        ])
        .unwrap();
    let mut surface = session.surface().unwrap();
    let expected = [
        "assistant c: null",
        "tool c: of the first",
        "user: are you there?",
        "assistant c#2: null",
        "tool c#2: of the second",
    ];
    assert_eq!(brief(surface.messages()), expected);
    let mend = &surface.report().mends[0];
    assert_eq!((mend.seq, mend.fault), (Seq::new(5), SurfaceFault::SecondResult));
    assert_eq!(surface.report().to_string(), "event 5: the call was answered before: left out");
}

/// Goal: numbers and escapes come as they were logged (H27).
#[test]
fn h27_every_digit_survives() {
    let line = r#"{"type":"tool/call","seq":0,"id":"c","name":"n","args":{"id":9007199254740993,"x":1e400},"timestamp":0}"#;
    let result =
        r#"{"type":"tool/result","seq":1,"id":"c","result":{"n":-9223372036854775808,"z":-0},"timestamp":0}"#;
    let mut surface = folded(&[event(line), event(result)]);
    let json: Vec<String> = surface.messages().iter().map(|message| message.to_json()).collect();
    assert!(json[0].contains(r#""arguments":"{\"id\":9007199254740993,\"x\":1e400}""#), "{}", json[0]);
    assert!(json[1].contains(r#""content":"{\"n\":-9223372036854775808,\"z\":-0}""#), "{}", json[1]);
}

/// Goal: asking for what is not there is an error, and creates nothing.
#[test]
fn beyond_the_end_is_an_error() {
    let store = Store::in_memory().unwrap();
    let session = store.create(NewSession::new()).unwrap();
    session.append(NewEvent::user_message("u")).unwrap();
    assert!(session.messages_at(Seq::new(1)).is_ok());
    for fault in [
        session.messages_at(Seq::new(2)).unwrap_err(),
        session.surface_at(Seq::new(u64::MAX)).unwrap_err(),
        session.fork(Seq::ZERO).unwrap().advance(&mut session.surface().unwrap()).unwrap_err(),
    ] {
        assert!(matches!(fault, sessionlog::Error::SeqBeyondEnd { len: 0..=1, .. }), "{fault}");
    }
}

/// Goal: a long session gives what a fold of all its events gives, from blocks and from the tail.
#[test]
fn a_long_session_from_blocks_and_tail() {
    let store = Store::in_memory().unwrap();
    let session = store.create(NewSession::new()).unwrap();
    for batch in 0..12_u64 {
        let events = (0..1000_u64).map(|n| match (batch + n) % 7 {
            0 => NewEvent::user_message(format!("{batch} {n}")),
            1 => NewEvent::tool_call(format!("c{n}"), "n", serde_json::json!({"n": n})),
            4 => NewEvent::tool_result(format!("c{}", n - n.min(3)), serde_json::json!(n)),
            5 => NewEvent::assistant_message(format!("{n}")).sources([]),
            _ => NewEvent::assistant_chunk("x"),
        });
        session.append_batch(events).unwrap();
        if batch == 7 {
            store.drain().unwrap();
        }
    }
    let events: Vec<Event> = session.read_from(Seq::ZERO).unwrap().map(Result::unwrap).collect();
    let mut whole = folded(&events);
    let mut surface = session.surface().unwrap();
    assert_eq!(surface.next_seq(), Seq::new(12_000));
    assert_eq!(surface.messages(), whole.messages());
    assert_eq!(surface.report(), whole.report());
    let at = Seq::new(9_001);
    assert_eq!(session.messages_at(at).unwrap(), folded(&events[..9_001]).messages());
}
