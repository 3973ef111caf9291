use proptest::prelude::*;
use proptest::sample::Index;

use super::{KNOWN_TYPES, MAX_NAMES, Statistics, Tally, known_type};
use crate::event::{Event, EventKind, JsonText, NewEvent};
use crate::id::{Seq, Timestamp};
use crate::recovery::tests::{events, numbered, soup};

fn of(events: &[Event]) -> Statistics {
    let mut tally = Tally::new();
    events.iter().for_each(|event| tally.add(event));
    tally.statistics()
}

fn json(text: &str) -> JsonText {
    JsonText::parse(text).unwrap()
}

fn at(event: NewEvent, millis: i64) -> NewEvent {
    event.timestamp(Timestamp::from_millis(1_700_000_000_000 + millis).unwrap())
}

fn count(events: &[Event], is: impl Fn(&EventKind) -> bool) -> u64 {
    events.iter().filter(|event| is(&event.kind)).count() as u64
}

/// What is added up, and so is the same for any cut of a session into parts.
fn sums(figures: &Statistics) -> impl PartialEq + std::fmt::Debug + use<> {
    let Statistics { events, bytes, turns, steps, messages, tool_calls, tool_results, .. } = *figures;
    let Statistics { tool_errors, tool_outcomes_unknown, first_at, last_at, usage, .. } = *figures;
    (
        (figures.by_type.clone(), figures.other_types),
        (events, bytes, turns, steps, messages, tool_calls, tool_results),
        (tool_errors, tool_outcomes_unknown, first_at, last_at, usage),
    )
}

proptest! {
    /// Goal: counts, bytes and times are those that a naive look gives.
    #[test]
    fn counts_equal_a_naive_oracle(events in soup()) {
        let found = of(&events);
        prop_assert_eq!(found.events, events.len() as u64);
        prop_assert_eq!(found.bytes, events.iter().map(|event| event.to_json().len() as u64).sum::<u64>());
        for (name, figures) in &found.by_type {
            let of_type = || events.iter().filter(|event| event.event_type() == *name);
            prop_assert_eq!(figures.events, of_type().count() as u64);
            prop_assert_eq!(figures.bytes, of_type().map(|event| event.to_json().len() as u64).sum::<u64>());
        }
        prop_assert_eq!(found.by_type.values().map(|figures| figures.events).sum::<u64>(), found.events);
        prop_assert_eq!(found.first_at, events.iter().map(|event| event.timestamp).min());
        prop_assert_eq!(found.last_at, events.iter().map(|event| event.timestamp).max());
        let back = events.windows(2).filter(|pair| pair[1].timestamp < pair[0].timestamp).count();
        prop_assert_eq!(found.clock_set_back, back as u64);
        prop_assert_eq!(found.turns, count(&events, |kind| matches!(kind, EventKind::TurnStart { .. })));
        prop_assert_eq!(found.steps, count(&events, |kind| matches!(kind, EventKind::StepStart { .. })));
        prop_assert_eq!(found.tool_errors, count(&events, |kind| matches!(kind,
            EventKind::ToolResult { error: Some(error), .. } if !error.is_null())));
    }

    /// Goal: every call and every result is accounted for; pairs are those of a naive look, and take no negative time.
    #[test]
    fn calls_and_results_add_up(events in soup()) {
        let found = of(&events);
        let (mut open, mut pairs, mut lone) = (Vec::new(), Vec::new(), 0);
        for event in &events {
            match &event.kind {
                EventKind::ToolCall { id, .. } => open.push((id.to_string(), event.timestamp)),
                EventKind::ToolResult { id, error, .. } => {
                    match open.iter().rposition(|call| call.0 == id.to_str()) {
                        Some(place) => {
                            let started = open.remove(place).1;
                            let code = error.as_ref().and_then(|error| error.to_str());
                            let millis = event.timestamp.as_millis() - started.as_millis();
                            if !code.is_some_and(|code| code.starts_with("TOOL_OUTCOME_UNKNOWN")) {
                                pairs.push(millis.max(0) as u64);
                            }
                        }
                        None => lone += 1,
                    }
                }
                _ => {}
            }
        }
        prop_assert_eq!((found.open_calls, found.results_without_call), (open.len() as u64, lone));
        prop_assert_eq!((found.call_ms.count(), found.call_ms.total()), (pairs.len() as u64, pairs.iter().sum()));
        prop_assert_eq!(found.call_ms.max(), pairs.iter().max().copied());
        prop_assert_eq!(found.tools.values().map(|tool| tool.calls).sum::<u64>(), found.tool_calls);
        prop_assert_eq!(found.tools.values().map(|tool| tool.call_ms.count()).sum::<u64>(), found.call_ms.count());
    }

    /// Goal: parts that were cut anywhere and merged have the sums of the whole.
    #[test]
    fn merged_parts_have_the_sums_of_the_whole(events in soup(), cut in any::<Index>()) {
        let (before, behind) = events.split_at(cut.index(events.len() + 1));
        let mut merged = of(before);
        merged.merge(&of(behind));
        prop_assert_eq!(sums(&merged), sums(&of(&events)));
    }

    /// Goal: parts that were cut where nothing was under way are, merged, the whole in every figure.
    #[test]
    fn merged_sessions_are_the_whole(parts in proptest::collection::vec(soup(), 0..4)) {
        let mut merged = Statistics::default();
        let mut tally = Tally::new();
        let mut seq = 0;
        let mut open = 0;
        for part in &parts {
            // Something that ends all that a later part could mistake for its own.
            let mut part: Vec<Event> = part.iter().filter(|event| matches!(event.kind,
                EventKind::TurnStart { .. } | EventKind::TurnEnd { .. } | EventKind::UserMessage { .. }
                | EventKind::AssistantMessage { .. } | EventKind::AssistantChunk { .. })).cloned().collect();
            part.insert(0, events([NewEvent::turn_start("only here")]).remove(0));
            let last = part[part.len() - 1].timestamp;
            part.extend(events([NewEvent::turn_start("end").timestamp(last), NewEvent::turn_end("end").timestamp(last)]));
            for event in &mut part {
                event.seq = Seq::new(seq);
                seq += 1;
                tally.add(event);
            }
            merged.merge(&of(&part));
            open += 1;
        }
        let mut whole = tally.statistics();
        whole.sessions = open;
        // The step of the clock from part to part is in no part.
        whole.clock_set_back = merged.clock_set_back;
        prop_assert_eq!(merged, whole);
    }

    /// Goal: a look in between changes nothing.
    #[test]
    fn figures_can_be_taken_at_any_time(events in soup()) {
        let mut tally = Tally::new();
        for (event, end) in events.iter().zip(1..) {
            tally.add(event);
            prop_assert_eq!(tally.statistics(), of(&events[..end]));
        }
    }
}

/// Goal: the places of the known types are those of their names.
#[test]
fn known_types_have_their_places() {
    let all = events([
        NewEvent::turn_start("t"),
        NewEvent::turn_end("t"),
        NewEvent::step_start("s", "t"),
        NewEvent::step_end("s"),
        NewEvent::user_message("x"),
        NewEvent::assistant_message("x"),
        NewEvent::assistant_chunk("x"),
        NewEvent::tool_call("c", "x", json("1")),
        NewEvent::tool_result("c", "x"),
    ]);
    assert_eq!(all.len(), KNOWN_TYPES.len());
    for event in &all {
        let place = known_type(&event.kind).unwrap();
        assert_eq!(KNOWN_TYPES[place], event.event_type());
    }
}

/// Goal: each duration, by hand.
#[test]
fn durations_by_hand() {
    let figures = of(&events([
        at(NewEvent::turn_start("t"), 0),
        at(NewEvent::user_message("x"), 5),
        at(NewEvent::step_start("s", "t"), 10),
        at(NewEvent::assistant_chunk("a"), 30),
        at(NewEvent::assistant_chunk("b"), 130),
        at(NewEvent::custom("x-note"), 131),
        at(NewEvent::assistant_chunk("c"), 230),
        at(NewEvent::assistant_message("abc"), 240),
        at(NewEvent::tool_call("c1", "slow", json("1")), 250),
        at(NewEvent::tool_call("c2", "quick", json("1")), 251),
        at(NewEvent::tool_error("c2", "no"), 254),
        at(NewEvent::tool_result("c1", "fine"), 300),
        at(NewEvent::step_end("s"), 310),
        at(NewEvent::turn_end("t"), 320),
    ]));
    for (durations, millis) in [
        (&figures.turn_ms, 320),
        (&figures.step_ms, 300),
        (&figures.first_chunk_ms, 20),
        (&figures.tools["slow"].call_ms, 50),
        (&figures.tools["quick"].call_ms, 3),
        (&figures.chunks_per_second, 10),
    ] {
        assert_eq!((durations.count(), durations.max()), (1, Some(millis)), "{figures:?}");
    }
    assert_eq!((figures.streamed_chunks, figures.streaming_ms), (2, 200));
    assert_eq!((figures.tools["quick"].errors, figures.tools["slow"].errors), (1, 0));
    assert_eq!((figures.open_turns, figures.open_calls, figures.call_ms.count()), (0, 0, 2));
}

/// Goal: H13: clocks that go backwards give no negative time, and no rate.
#[test]
fn h13_clocks_set_back_give_no_negative_time() {
    let figures = of(&events([
        at(NewEvent::turn_start("t"), 9_000),
        at(NewEvent::step_start("s", "t"), 8_000),
        at(NewEvent::assistant_chunk("a"), 7_000),
        at(NewEvent::assistant_chunk("b"), -86_400_000),
        at(NewEvent::step_end("s"), 5_000),
        at(NewEvent::turn_end("t"), 4_000),
    ]));
    for durations in [&figures.turn_ms, &figures.step_ms, &figures.first_chunk_ms] {
        assert_eq!((durations.count(), durations.max()), (1, Some(0)));
    }
    assert_eq!((figures.chunks_per_second.count(), figures.clock_set_back), (0, 4));
    assert!(figures.first_at < figures.last_at);
}

/// Goal: usage of both providers; what is no number of tokens counts nothing and spoils nothing.
#[test]
fn usage_of_both_providers() {
    let message = |usage: &str| NewEvent::assistant_message("x").usage(json(usage));
    let usage = of(&events([
        message(
            r#"{"prompt_tokens":10,"completion_tokens":5,"total_tokens":15,
                "prompt_tokens_details":{"cached_tokens":4,"audio_tokens":0},
                "completion_tokens_details":{"reasoning_tokens":2}}"#,
        ),
        message(
            r#"{"input_tokens":100,"output_tokens":50,"cache_creation_input_tokens":7,
                "cache_read_input_tokens":9,"service_tier":"standard","x":{"input_tokens":1e400}}"#,
        ),
        message(
            r#"{"prompt_tokens":"10","completion_tokens":1.5,"total_tokens":1e400,"input_tokens":-1,
                "output_tokens":null,"prompt_tokens_details":7,"cached_tokens":1,"prompt\u005ftokens":1}"#,
        ),
        message(r#"{"prompt_tokens":1,"prompt_tokens":2,"input_tokens_details":{"cached_tokens":1}}"#),
        message("null"),
        NewEvent::assistant_message("x"),
    ]))
    .usage;
    assert_eq!(usage.messages, 4);
    assert_eq!((usage.prompt_tokens, usage.completion_tokens, usage.total_tokens), (10 + 1 + 2, 5, 15));
    assert_eq!((usage.cached_tokens, usage.reasoning_tokens), (4 + 1, 2));
    assert_eq!((usage.input_tokens, usage.output_tokens), (100, 50));
    assert_eq!((usage.cache_creation_input_tokens, usage.cache_read_input_tokens), (7, 9));
    let most =
        of(&events([message(r#"{"total_tokens":18446744073709551615}"#), message(r#"{"total_tokens":1}"#)]));
    assert_eq!(most.usage.total_tokens, u64::MAX);
}

/// Goal: usage nested a million deep is read without a word.
#[test]
fn usage_of_any_depth() {
    let deep = format!(r#"{{"x":{}{},"total_tokens":3}}"#, "[".repeat(1_000_000), "]".repeat(1_000_000));
    let figures = of(&events([NewEvent::assistant_message("x").usage(json(&deep))]));
    assert_eq!(figures.usage.total_tokens, 3);
}

/// Goal: memory is bounded: too many tools, types and open calls are counted together or forgotten, and told.
#[test]
fn too_many_names_and_open_calls() {
    let mut log = Vec::new();
    for n in 0..2_000 {
        log.push(NewEvent::tool_call(format!("c{n}"), format!("tool {n}"), json("1")));
        log.push(NewEvent::custom(format!("type {n}")));
    }
    log.push(NewEvent::tool_call("c".repeat(300), "tool 1", json("1")));
    log.push(NewEvent::tool_call("long", "t".repeat(300), json("1")));
    // The oldest were forgotten, the latest not.
    log.extend([NewEvent::tool_result("c0", "1"), NewEvent::tool_result("c1999", "1")]);
    let figures = of(&events(log));
    assert_eq!((figures.tools.len(), figures.other_tools.calls), (MAX_NAMES, 2_001 - MAX_NAMES as u64));
    assert_eq!(
        (figures.by_type.len(), figures.other_types.events),
        (MAX_NAMES + 2, 2_000 - MAX_NAMES as u64)
    );
    assert_eq!((figures.open_calls, figures.forgotten_calls), (1_024 - 1, 2_000 - 1_024 + 1 + 1));
    assert_eq!((figures.results_without_call, figures.other_tools.call_ms.count()), (1, 1));

    let mut merged = of(&events([NewEvent::custom("another")]));
    merged.merge(&figures);
    assert_eq!((merged.by_type.len(), merged.events), (MAX_NAMES + 2, figures.events + 1));
    assert_eq!(merged.other_types.events, figures.other_types.events + 1);
}

/// Goal: H17: of calls with one id the nearest open one is answered, so each has its own time.
#[test]
fn h17_reused_ids_have_their_own_times() {
    let call = |tool: &str, millis| at(NewEvent::tool_call("call_0", tool, json("1")), millis);
    let result = |millis| at(NewEvent::tool_result("call_0", "x"), millis);
    let log = events([call("a", 0), result(10), call("b", 100), call("c", 200), result(203), result(150)]);
    let figures = of(&numbered(log));
    let times = ["a", "b", "c"].map(|tool| figures.tools[tool].call_ms.max());
    assert_eq!(times, [Some(10), Some(50), Some(3)]);
}

/// Goal: a call that a closer answers is failed, unknown and of no known time.
#[test]
fn h01_closers_are_no_measurements() {
    let mut log = events([NewEvent::turn_start("t"), NewEvent::tool_call("c", "mail", json("1"))]);
    log.extend(crate::recovery::Inspection::of(&log).closers);
    let figures = of(&log);
    let mail = &figures.tools["mail"];
    assert_eq!((mail.errors, mail.outcomes_unknown, mail.call_ms.count()), (1, 1, 0));
    assert_eq!((figures.tool_outcomes_unknown, figures.open_calls, figures.open_turns), (1, 0, 0));
}

/// Goal: the JSON has the names and units that the documentation tells.
#[test]
fn json_form() {
    let value = serde_json::to_value(of(&events([
        at(NewEvent::turn_start("t"), 0),
        at(NewEvent::turn_end("t"), 70),
    ])))
    .unwrap();
    assert_eq!(value["firstAt"], 1_700_000_000_000_u64);
    assert_eq!(value["turnMs"]["p50"], 70);
    assert_eq!(value["byType"]["turn/start"]["events"], 1);
    assert_eq!(value["callMs"]["p50"], serde_json::Value::Null);
    assert_eq!(value["usage"]["prompt_tokens"], 0);
}
