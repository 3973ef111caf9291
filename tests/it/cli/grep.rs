//! `grep`.

use serde_json::Value;

use super::Bench;

const EVENTS: &str = r#"
{"type":"turn/start","turnId":"needle"}
{"type":"user/message","content":"first line\nthe needle is here\nlast"}
{"type":"assistant/chunk","delta":"needle"}
{"type":"assistant/message","content":"I look for the Needle."}
{"type":"tool/call","id":"1","name":"bash","args":{"command":"find \"needle\" ü"}}
{"type":"tool/result","id":"1","result":"no such file"}
{"type":"note","by":"me","what":"a need\u001b[31mle"}
{"type":"tool/result","id":"2","error":"needle broke"}
"#;

fn bench() -> Bench {
    let bench = Bench::new();
    bench.run(["create", "s"]).fine();
    bench.feed(["append", "s"], EVENTS).fine();
    bench
}

/// Goal: messages, arguments, results and errors are searched, one line for each event; chunks and ids are not.
#[test]
fn what_is_searched() {
    let bench = bench();
    let expected = "\
s:1:user/message: the needle is here
s:4:tool/call: {\"command\":\"find \\\"needle\\\" ü\"}
s:7:tool/result: needle broke
";
    assert_eq!(bench.run(["grep", "needle", "s"]).fine(), expected);
    assert_eq!(bench.run(["grep", "needle"]).fine(), expected);
    assert_eq!(
        bench.run(["grep", "-i", "NEEDLE\\.", "s"]).fine(),
        "s:3:assistant/message: I look for the Needle.\n"
    );
    assert_eq!(bench.run(["grep", "^the.*here$", "s"]).code, Some(1), "^ is the text's beginning");
    assert_eq!(bench.run(["grep", "(?m)^the.*here$", "s"]).fine().lines().count(), 1);
    assert_eq!(
        bench.run(["grep", "needle", "s", "--type", "assistant/chunk"]).fine(),
        "s:2:assistant/chunk: needle\n"
    );
    assert_eq!(
        bench.run(["grep", "needle", "s", "--type", "tool/result"]).fine(),
        "s:7:tool/result: needle broke\n"
    );
    // Control characters of others do not reach a terminal.
    assert_eq!(bench.run(["grep", "need.*le", "--type", "note"]).fine(), "s:6:note: a need\\u{1b}[31mle\n");
}

/// Goal: events around a match, each once, with a mark where some were left out.
#[test]
fn context() {
    let bench = bench();
    let out = bench.run(["grep", "-C", "1", "needle", "s"]).fine();
    let expected = "\
s-0-turn/start
s:1:user/message: the needle is here
s-3-assistant/message I look for the Needle.
s:4:tool/call: {\"command\":\"find \\\"needle\\\" ü\"}
s-5-tool/result no such file
s-6-note me a need\\u{1b}[31mle
s:7:tool/result: needle broke
";
    assert_eq!(out, expected);
    let bench = Bench::with_events(20);
    let out = bench.run(["grep", "-C", "1", "^(5|6|12)$"]).fine();
    let firsts: Vec<&str> =
        out.lines().map(|line| line.split_once("n").map_or(line, |(first, _)| first)).collect();
    assert_eq!(firsts, ["s-4-", "s:5:", "s:6:", "s-7-", "--", "s-11-", "s:12:", "s-13-"]);
}

/// Goal: the JSON form: the event as it is, what matched and where.
#[test]
fn as_json() {
    let bench = bench();
    let out = bench.run(["grep", "--json", "ne+dle", "s"]).fine();
    let found: Vec<Value> = out.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(found.len(), 3);
    assert_eq!(
        (&found[1]["session"], &found[1]["field"], &found[1]["match"]),
        (&"s".into(), &"args".into(), &"needle".into())
    );
    let line = bench.run(["read", "s", "--from", "4", "--to", "5"]).fine();
    assert!(out.lines().nth(1).unwrap().contains(line.trim_end()), "{out}");
}

/// Goal: all sessions, shared events once; nothing found is 1, a wrong pattern is 2, and says why.
#[test]
fn whole_store_and_failures() {
    let bench = bench();
    bench.run(["fork", "s", "--id", "fork"]).fine();
    bench.feed(["append", "fork"], r#"{"type":"user/message","content":"needle again"}"#).fine();
    let out = bench.run(["grep", "needle"]).fine();
    assert_eq!(out.lines().filter(|line| line.starts_with("fork:")).count(), 1, "{out}");
    assert_eq!(out.lines().count(), 4, "{out}");
    assert_eq!(bench.run(["grep", "needle", "fork"]).fine().lines().count(), 4);
    let nothing = bench.run(["grep", "haystack"]).fails(1, &["nothing matches"]);
    assert_eq!(nothing.out, "");
    bench.run(["grep", "(", "s"]).fails(2, &["the pattern", "unclosed group"]);
    bench.run(["grep", "x", "nobody"]).fails(1, &["nobody"]);
    assert_eq!(bench.run(["grep", "-e"]).fails(1, &[]).out, "", "a pattern may begin with a hyphen");
}

/// Goal: long lines are cut around the match, on borders of characters.
#[test]
fn long_lines() {
    let bench = Bench::new();
    bench.run(["create", "s"]).fine();
    let text = format!("{}needle{}", "ü".repeat(500), "ß".repeat(500));
    bench.feed(["append", "s"], format!(r#"{{"type":"user/message","content":"{text}"}}"#)).fine();
    let out = bench.run(["grep", "needle"]).fine();
    assert_eq!(out, format!("s:0:user/message: …{}needle{}…\n", "ü".repeat(60), "ß".repeat(60)));
}
