//! `demo`, `create` and `fork`.

use std::fs;

use sessionlog::{SessionId, Store};

use super::{Bench, acks, bare, finish, numbered};

/// Goal: the walk-through shows what it promises, in order, and leaves nothing behind.
#[test]
fn demo_walks_through_two_turns() {
    let bench = Bench::new();
    let out = finish(bare(["demo"]).env("TMPDIR", bench.root()), "").fine();
    let events: Vec<&str> = out.lines().filter(|line| line.starts_with("  {\"type\"")).collect();
    assert_eq!(events.len(), 16 + 6, "{out}");
    for (at, event) in events.iter().enumerate() {
        assert!(event.contains(&format!("\"seq\":{},", at % 16)), "{event}");
    }
    // The fork replays the first turn, byte for byte.
    assert_eq!(events[..6], events[16..]);
    // What the model sees of them.
    let messages: Vec<&str> = out.lines().filter(|line| line.starts_with("  {\"role\"")).collect();
    let roles = ["user", "assistant", "user", "assistant", "tool", "assistant"];
    assert_eq!(messages.len(), roles.len(), "{out}");
    for (message, role) in messages.iter().zip(roles) {
        assert!(message.contains(&format!("\"role\":\"{role}\"")), "{message}");
    }
    for (event_type, count) in [
        ("turn/start", 2),
        ("step/start", 3),
        ("user/message", 2),
        ("assistant/message", 2),
        ("tool/call", 1),
        ("tool/result", 1),
        ("step/end", 3),
        ("turn/end", 2),
        ("all", 16),
    ] {
        let row = out.lines().find(|line| line.split_whitespace().next() == Some(event_type));
        assert_eq!(
            row.and_then(|row| row.split_whitespace().nth(1)),
            Some(count.to_string().as_str()),
            "{out}"
        );
    }
    for part in [
        "Hello!",
        "What is 2 + 2?",
        "The answer is 4.",
        "created 20",
        "updated 20",
        "10 events, equal",
        "turns       2",
        "no problems",
    ] {
        assert!(out.contains(part), "`{part}` is missing in {out}");
    }
    assert_eq!(fs::read_dir(bench.root()).unwrap().count(), 0, "the temporary folder is still there");
}

/// Goal: the id that is printed is the session's: the given one, or a new UUID.
#[test]
fn create_prints_the_id() {
    let bench = Bench::new();
    assert_eq!(
        bench.run(["create", "nightly-7", "--meta", "model=small", "--meta", "q=a=b"]).fine(),
        "nightly-7\n"
    );
    let minted = bench.run(["create"]).fine();
    assert!(uuid::Uuid::parse_str(minted.trim_end()).is_ok(), "{minted}");
    let store = Store::open(bench.store()).unwrap();
    let header = store.session(&SessionId::new("nightly-7").unwrap()).unwrap().header().unwrap();
    assert_eq!((header.meta["model"].as_str(), header.meta["q"].as_str()), ("small", "a=b"));
    assert!(store.session(&SessionId::new(minted.trim_end()).unwrap()).unwrap().is_empty());
}

/// Goal: metadata that is no pair, or says two things, is usage, and makes no store.
#[test]
fn create_refuses_bad_metadata() {
    let bench = Bench::new();
    for meta in [&["--meta", "x"][..], &["--meta", "=x"], &["--meta", "x=1", "--meta", "x=2"]] {
        bench.run([&["create", "s"], meta].concat()).fails(2, &["meta"]);
    }
    assert!(!bench.store().exists());
}

/// Goal: a fork shares the first events, at the end by default, and goes on by itself.
#[test]
fn fork_at_the_end_and_before() {
    let bench = Bench::with_events(10);
    assert_eq!(bench.run(["fork", "s", "--at", "4", "--id", "early"]).fine(), "early\n");
    let late = bench.run(["fork", "s"]).fine();
    bench.feed(["append", "s"], numbered(10)).fine();
    assert_eq!(bench.feed(["append", "early"], numbered(4)).fine(), acks(4, 5));

    let events = |end| (0..end).map(numbered).collect::<String>();
    assert_eq!(bench.run(["read", "early"]).fine(), events(5));
    assert_eq!(bench.run(["read", late.trim_end()]).fine(), events(10));
    assert_eq!(bench.run(["read", "s"]).fine(), events(11));
}

/// Goal: H36: empty sessions are listed as such, can be forked six deep, and the last one can be written.
#[test]
fn h36_empty_sessions() {
    let bench = Bench::new();
    bench.run(["create", "0"]).fine();
    for depth in 1..=6 {
        bench.run(["fork", &(depth - 1).to_string(), "--at", "0", "--id", &depth.to_string()]).fine();
    }
    bench.feed(["append", "6"], numbered(0)).fine();
    assert_eq!(bench.run(["read", "6"]).fine(), numbered(0));
    assert_eq!(bench.run(["read", "5"]).fine(), "");
    let listed = bench.run(["ls", "--json"]).fine();
    assert_eq!(listed.matches("\"length\":0,").count(), 6, "{listed}");
}

/// Goal: H35: an id is an opaque key: whatever it looks like, it touches no file of that name.
#[test]
fn h35_ids_are_opaque() {
    let ids = ["../../x", "a/b", "/abs", "C:\\x", ".", "..", "%2e%2e", "a b", "-", "ä\u{1f600}", "*"];
    let bench = Bench::new();
    for id in ids {
        assert_eq!(bench.run(["create", "--", id]).fine(), format!("{id}\n"));
        assert_eq!(bench.feed(["append", "--", id], numbered(0)).fine(), acks(0, 1));
        assert_eq!(bench.run(["read", "--", id]).fine(), numbered(0));
    }
    let longest = "x".repeat(255);
    bench.run(["create", &longest]).fine();
    assert_eq!(bench.run(["ls", "--json"]).fine().lines().count(), ids.len() + 1);
    assert_eq!(fs::read_dir(bench.root()).unwrap().count(), 1, "something stands beside the store");
    for entry in fs::read_dir(bench.store()).unwrap() {
        let name = entry.unwrap().file_name().into_string().unwrap();
        assert!(!ids.contains(&name.as_str()) && name != longest, "{name}");
    }
}
