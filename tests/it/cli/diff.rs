//! `diff`.

use serde_json::Value;

use super::{Bench, Done, numbered};

/// A session with these inputs.
fn with(bench: &Bench, id: &str, inputs: &[&str]) {
    bench.run(["create", id]).fine();
    bench.feed(["append", id], inputs.join("\n")).fine();
}

fn differ(done: Done) -> String {
    let out = done.out.clone();
    done.fails(1, &["differ behind event"]);
    out
}

/// Goal: a fork and its parent: what they share is counted and not shown, then both sides, in one exact picture.
#[test]
fn a_fork_and_its_parent() {
    let bench = Bench::with_events(6);
    bench.run(["fork", "s", "--at", "4", "--id", "branch"]).fine();
    let said =
        |text: &str, at: u64| format!(r#"{{"type":"user/message","content":"{text}","timestamp":{at}}}"#);
    bench
        .feed(
            ["append", "branch"],
            [said("same", 1), said("two\\nlines", 2), said("only here", 3)].join("\n"),
        )
        .fine();
    bench.run(["fork", "s", "--at", "4", "--id", "other"]).fine();
    bench.feed(["append", "other"], [said("same", 9), said("more", 2)].join("\n")).fine();
    let out = differ(bench.run(["diff", "branch", "other", "--width", "75"]));
    let expected = "\
common  4 events
a       3 more  branch
b       2 more  other
        4  user/message same              = user/message same
        5  user/message two\\nlines        | user/message more
        6  user/message only here         <
";
    assert_eq!(out, expected);
    let out = differ(bench.run(["diff", "other", "branch", "--width", "1"]));
    assert_eq!(out.lines().last(), Some("        6                       > user/message only h…"));
    // One that is the beginning of the other, and one with itself.
    let out = differ(bench.run(["diff", "s", "branch"]));
    assert!(out.starts_with("common  4 events\n"), "{out}");
    bench.run(["fork", "s", "--at", "2", "--id", "short"]).fine();
    let out = differ(bench.run(["diff", "short", "s"]));
    assert!(out.starts_with("common  2 events\na       0 more  short\nb       4 more  s\n"), "{out}");
    let same = bench.run(["diff", "s", "s"]).fine();
    assert_eq!(same, "common  6 events\na       0 more  s\nb       0 more  s\n");
}

/// Goal: the JSON form has the events as they are, one pair a line.
#[test]
fn as_json() {
    let bench = Bench::with_events(3);
    bench.run(["fork", "s", "--at", "1", "--id", "b"]).fine();
    bench.feed(["append", "b"], numbered(1)).fine();
    bench.feed(["append", "b"], r#"{"type":"x","n":1e400,"timestamp":1}"#).fine();
    let out = differ(bench.run(["diff", "s", "b", "--json"]));
    let lines: Vec<&str> = out.lines().collect();
    let head: Value = serde_json::from_str(lines[0]).unwrap();
    assert_eq!(head, serde_json::json!({"common":2,"a":{"id":"s","length":3},"b":{"id":"b","length":3}}));
    let theirs = r#"{"type":"x","seq":2,"n":1e400,"timestamp":1}"#;
    assert_eq!(lines[1..], [format!(r#"{{"a":{},"b":{theirs}}}"#, numbered(2).trim_end())]);
    bench.feed(["append", "s"], numbered(3)).fine();
    let out = differ(bench.run(["diff", "s", "b", "--json"]));
    assert_eq!(out.lines().nth(2), Some(format!(r#"{{"a":{},"b":null}}"#, numbered(3).trim_end()).as_str()));
}

/// Goal: two sessions with nothing in common, of which one is empty; chunks are left out on demand.
#[test]
fn nothing_in_common() {
    let bench = Bench::new();
    bench.run(["create", "empty"]).fine();
    let chunk = r#"{"type":"assistant/chunk","delta":"d","timestamp":1}"#;
    let message = r#"{"type":"assistant/message","content":"d","timestamp":1}"#;
    with(&bench, "a", &[chunk, chunk, message]);
    let out = differ(bench.run(["diff", "a", "empty", "--no-chunks"]));
    let expected = "\
common  0 events
a       3 more  a
b       0 more  empty
        2  assistant/message d                                  <
";
    assert_eq!(out, expected);
    assert_eq!(differ(bench.run(["diff", "a", "empty"])).lines().count(), 6);
    bench.run(["diff", "a", "nobody"]).fails(1, &["nobody"]);
    bench.run(["diff", "a"]).fails(2, &[]);
}

/// Goal: the common part of long sessions is found exactly, wherever it ends, in blocks and across borders of forks.
#[test]
fn where_they_part() {
    let bench = Bench::with_events(3_000);
    for at in [0_u64, 1, 1_023, 1_500, 2_999, 3_000] {
        let id = format!("at-{at}");
        bench.run(["fork", "s", "--at", &at.to_string(), "--id", &id]).fine();
        bench.feed(["append", &id], r#"{"type":"x"}"#).fine();
        let out = differ(bench.run(["diff", &id, "s", "--json"]));
        let head: Value = serde_json::from_str(out.lines().next().unwrap()).unwrap();
        assert_eq!(head["common"], at);
    }
}
