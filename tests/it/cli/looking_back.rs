//! `inspect`, `resume`, `replay` and `stats`, and the audit lines of `show`.

use std::io::{BufRead, BufReader, Read};

use serde_json::Value;

use super::{Bench, acks, case, numbered};

/// A store with a session `s` of a handed case.
fn with_case(name: &str) -> Bench {
    let bench = Bench::with_events(0);
    bench.feed(["append", "s"], case(name)).fine();
    bench
}

/// Asserts that each of `wanted` is a line, whatever its white space.
#[track_caller]
fn has_lines(text: &str, wanted: &[&str]) {
    let lines: Vec<String> =
        text.lines().map(|line| line.split_whitespace().collect::<Vec<_>>().join(" ")).collect();
    for line in wanted {
        assert!(lines.iter().any(|found| found == line), "`{line}` is missing in {text}");
    }
}

/// Goal: H01: inspect shows what is open and what resume then appends, to the byte; a second resume changes nothing.
#[test]
fn h01_inspect_then_resume() {
    let bench = with_case("orphan_call_tail.jsonl");
    let before = bench.run(["read", "s"]).fine();
    let shown = bench.run(["inspect", "s"]).fine();
    has_lines(
        &shown,
        &[
            "session s",
            "events 5",
            "turn turn-1, open since seq 0",
            "step step-1, open since seq 2",
            "call c1 of run, no result since seq 4",
        ],
    );
    let record: Value = serde_json::from_str(&bench.run(["inspect", "s", "--json"]).fine()).unwrap();
    assert_eq!((&record["turn"]["turnId"], &record["step"]["stepId"]), (&"turn-1".into(), &"step-1".into()));
    assert_eq!(record["calls"][0]["args"]["cmd"], "ls");
    assert_eq!((&record["text"], &record["closers"][2]["reason"]), (&Value::Null, &"interrupted".into()));
    assert_eq!(bench.run(["read", "s"]).fine(), before);

    let closers = bench.run(["resume", "s"]).fine();
    assert_eq!(closers.lines().count(), 3);
    assert!(shown.ends_with(&closers), "{shown}");
    assert!(closers.contains(r#""closer":true"#) && closers.contains("TOOL_OUTCOME_UNKNOWN: "));
    let after = bench.run(["read", "s"]).fine();
    assert_eq!(after, before + &closers);
    let again = bench.run(["resume", "s"]);
    assert_eq!((again.code, again.out.as_str()), (Some(0), ""), "{again:?}");
    assert!(again.err.contains("no turn is open"), "{again:?}");
    assert_eq!(bench.run(["read", "s"]).fine(), after);
    has_lines(&bench.run(["inspect", "s"]).fine(), &["turn none is open"]);
}

/// Goal: H09: killed in the midst of a turn, `show` and `inspect` tell that, and what was streamed.
#[test]
fn h09_a_turn_cut_off() {
    let bench = Bench::with_events(0);
    let events = "{\"type\":\"turn/start\",\"turnId\":\"t\"}\n{\"type\":\"assistant/chunk\",\"delta\":\"Let \\u001b me\"}\n";
    bench.feed(["append", "s", "--buffered"], events).fine();
    has_lines(&bench.run(["show", "s"]).fine(), &["events 2", "turns 1, 1 open"]);
    has_lines(&bench.run(["inspect", "s"]).fine(), &["text \"Let \\u{1b} me\""]);
    let record: Value = serde_json::from_str(&bench.run(["inspect", "s", "--json"]).fine()).unwrap();
    assert_eq!(record["text"], "Let \u{1b} me");
}

/// Goal: H48: on an unknown id every one of them fails and makes nothing; `resume` does not take half an id.
#[test]
fn h48_unknown_sessions() {
    let bench = Bench::with_events(1);
    bench.run(["create", "long-name"]).fine();
    let before = bench.run(["ls", "--json"]).fine();
    for command in ["inspect", "resume", "replay", "stats"] {
        let done = bench.run([command, "nobody"]).fails(1, &["session nobody not found"]);
        assert_eq!(done.out, "");
    }
    bench.run(["resume", "long"]).fails(1, &["not found"]);
    assert_eq!(bench.run(["inspect", "long"]).code, Some(0));
    assert_eq!(bench.run(["ls", "--json"]).fine(), before);
    let nowhere = Bench::new();
    for command in [&["stats"][..], &["inspect", "s"], &["resume", "s"], &["replay", "s"]] {
        nowhere.run(command).fails(3, &["no store"]);
    }
    assert!(!nowhere.store().exists());
}

/// Goal: replay prints what read prints, or a part; into a fork, its pipe gives the same session again.
#[test]
fn replay_prints_events() {
    let bench = Bench::with_events(10);
    let events = |from: u64, to: u64| (from..to).map(numbered).collect::<String>();
    assert_eq!(bench.run(["replay", "s"]).fine(), events(0, 10));
    assert_eq!(bench.run(["replay", "s", "--from", "3", "--to", "5"]).fine(), events(3, 5));
    // The pauses, of a millisecond each, are waited for.
    assert_eq!(bench.run(["replay", "s", "--speed", "0.5"]).fine(), events(0, 10));
    bench.run(["fork", "s", "--at", "6", "--id", "again"]).fine();
    let part = bench.run(["replay", "s", "--from", "6"]).fine();
    assert_eq!(bench.feed(["append", "again"], part).fine(), acks(6, 10));
    assert_eq!(bench.run(["read", "again"]).fine(), events(0, 10));
    bench.run(["replay", "s", "--from", "11"]).fails(1, &["10 events"]);
    for wrong in [&["--speed", "0"][..], &["--speed", "-1"], &["--speed", "x"], &["--longest-pause", "5"]] {
        bench.run([&["replay", "s"], wrong].concat()).fails(2, &[]);
    }
    bench.run(["replay", "s", "--from", "2", "--to", "1"]).fails(2, &["before"]);
}

/// Goal: an event is seen when it happens, not when the next one does; long pauses can be cut.
#[test]
fn replay_shows_events_in_time() {
    let bench = Bench::with_events(0);
    let year = 31_536_000_000_u64;
    let events: String = (0..3).map(|n| format!("{{\"type\":\"x\",\"timestamp\":{}}}\n", n * year)).collect();
    bench.feed(["append", "s"], events).fine();
    let mut child = bench.start(["replay", "s", "--speed", "1"]);
    let mut first = String::new();
    let mut out = BufReader::new(child.stdout.take().unwrap());
    out.read_line(&mut first).unwrap();
    assert_eq!(first, "{\"type\":\"x\",\"seq\":0,\"timestamp\":0}\n");
    child.kill().unwrap();
    let mut rest = String::new();
    out.read_to_string(&mut rest).unwrap();
    child.wait().unwrap();
    assert_eq!(rest, "");
    let quick = bench.run(["replay", "s", "--speed", "1", "--longest-pause", "1"]).fine();
    assert_eq!(quick.lines().count(), 3);
}

/// Goal: the figures of a session and of the store, in both forms.
#[test]
fn stats_of_a_session_and_the_store() {
    let bench = with_case("reused_call_id.jsonl");
    let usage = r#"{"type":"assistant/message","content":"x","usage":{"total_tokens":17},"timestamp":1}"#;
    bench.feed(["append", "s"], usage).fine();
    bench.run(["fork", "s", "--id", "branch"]).fine();
    let text = bench.run(["stats", "s"]).fine();
    has_lines(
        &text,
        &[
            "session s",
            "events 13",
            "first 1970-01-01T00:00:00.001Z",
            "turns 2",
            "tool calls 2",
            "clock set back 1 times",
            "run 2 0 0 1000 1000 1000",
            "total_tokens 17",
        ],
    );
    let record: Value = serde_json::from_str(&bench.run(["stats", "s", "--json"]).fine()).unwrap();
    assert_eq!((&record["events"], &record["toolCalls"]), (&13.into(), &2.into()));
    assert_eq!(
        (&record["tools"]["run"]["callMs"]["max"], &record["usage"]["total_tokens"]),
        (&1000.into(), &17.into())
    );
    let all: Value = serde_json::from_str(&bench.run(["stats", "--json"]).fine()).unwrap();
    assert_eq!((&all["sessions"], &all["events"]), (&2.into(), &13.into()));
    has_lines(&bench.run(["stats"]).fine(), &["sessions 2", "events 13"]);
    let branch: Value = serde_json::from_str(&bench.run(["stats", "branch", "--json"]).fine()).unwrap();
    assert_eq!(branch, record);
}

/// Goal: `show` has the audit lines in both forms.
#[test]
fn show_has_the_audit() {
    let bench = with_case("bad_args.jsonl");
    let text = bench.run(["show", "s"]).fine();
    has_lines(&text, &["events 8", "messages 2", "tool calls 3, 3 failed"]);
    let record: Value = serde_json::from_str(&bench.run(["show", "s", "--json"]).fine()).unwrap();
    assert_eq!((&record["length"], &record["statistics"]["toolErrors"]), (&8.into(), &3.into()));
}
