//! `messages`: the chat array.

use serde_json::Value;

use super::Bench;

/// A session `s`: two questions, one call that was answered and one that was not, a replace of the first question.
fn bench() -> Bench {
    let bench = Bench::new();
    bench.run(["create", "s"]).fine();
    let lines = [
        r#"{"type":"user/message","content":"one\n?"}"#,
        r#"{"type":"assistant/message","content":""}"#,
        r#"{"type":"tool/call","id":"c1","name":"look","args":{"n":9007199254740993}}"#,
        r#"{"type":"tool/result","id":"c1","result":"found"}"#,
        r#"{"type":"tool/call","id":"c2","name":"look","args":{}}"#,
        r#"{"type":"user/message","content":"1","surfaceOp":{"op":"replace","start":0,"end":0}}"#,
    ];
    bench.feed(["append", "s"], lines.join("\n")).fine();
    bench
}

fn roles(json: &str) -> Vec<String> {
    let messages: Vec<Value> = serde_json::from_str(json).unwrap();
    messages.iter().map(|message| message["role"].as_str().unwrap().to_owned()).collect()
}

/// Goal: the array is on standard output, what was mended on standard error; every digit survives.
#[test]
fn messages_are_an_array() {
    let bench = bench();
    let done = bench.run(["messages", "s"]);
    assert_eq!(done.code, Some(0), "{done:?}");
    assert_eq!(roles(&done.out), ["user", "assistant", "tool", "assistant", "tool"]);
    assert!(done.out.starts_with("[{\"role\":\"user\",\"content\":\"1\"},\n"), "{done:?}");
    assert!(done.out.contains(r#"{\"n\":9007199254740993}"#) && done.out.ends_with("}]\n"), "{done:?}");
    assert!(done.err.contains("event 4: the call has no result"), "{done:?}");
    // Nothing to mend, nothing said.
    assert_eq!(
        roles(&bench.run(["messages", "s", "--at", "4", "--strict"]).fine()),
        ["user", "assistant", "tool"]
    );
    assert_eq!(bench.run(["messages", "s", "--at", "0"]).fine(), "[]\n");
    let plain = bench.run(["messages", "s", "--plain"]).fine();
    assert_eq!(roles(&plain), ["user", "assistant", "assistant", "tool", "assistant"]);
}

/// Goal: what cannot be given is an error with its reason, and prints nothing.
#[test]
fn messages_that_are_not_given() {
    let bench = bench();
    bench.run(["messages", "s", "--strict"]).fails(1, &["session s", "event 4", "no result", "--strict"]);
    bench.run(["messages", "s", "--at", "7"]).fails(1, &["from seq 7", "6 events"]);
    bench.run(["messages", "t"]).fails(1, &["t not found"]);
    bench.run(["messages", "s", "--strict", "--plain"]).fails(2, &["--plain"]);
    let bad = r#"{"type":"user/message","content":"x","surfaceOp":{"op":"replace","start":0,"end":1}}"#;
    bench.feed(["append", "s"], bad).fails(1, &["line 1", "session s", "event 0 is not on the surface"]);
    assert_eq!(bench.run(["read", "s"]).fine().lines().count(), 6);
}
