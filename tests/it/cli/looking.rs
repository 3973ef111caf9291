//! `ls` and `show`.

use super::{Bench, numbered};

/// Goal: the session updated last stands first; the table is aligned; the JSON form has what the table has.
#[test]
fn ls_newest_update_first() {
    let bench = Bench::with_events(2);
    bench.run(["create", "quiet", "--meta", "note=two\nlines"]).fine();
    bench.run(["fork", "s", "--at", "1", "--id", "branch"]).fine();
    bench.feed(["append", "branch"], r#"{"type":"x","timestamp":9000000000000}"#).fine();

    let table = bench.run(["ls"]).fine();
    // Cells are parted by two spaces at least.
    let rows: Vec<Vec<&str>> = table
        .lines()
        .map(|line| line.split("  ").map(str::trim).filter(|cell| !cell.is_empty()).collect())
        .collect();
    assert_eq!(rows[0], ["ID", "EVENTS", "UPDATED", "CREATED", "PARENT@PREFIX", "META", "TITLE", "LABELS"]);
    let ids: Vec<&str> = rows[1..].iter().map(|row| row[0]).collect();
    assert_eq!(ids, ["branch", "quiet", "s"], "{table}");
    assert_eq!((rows[1][1], rows[1][2], rows[1][4]), ("2", "2255-03-14", "s@1"));
    assert!(rows[1][3].ends_with(" ago"), "{table}");
    assert_eq!((rows[2][4], rows[2][5]), ("-", "note=two\\nlines"));
    assert_eq!(rows[3][2], "2023-11-14");

    let json = bench.run(["ls", "--json"]).fine();
    let records: Vec<serde_json::Value> =
        json.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(records[0]["id"], "branch");
    assert_eq!(records[0]["length"], 2);
    assert_eq!(records[0]["updatedAt"], 9_000_000_000_000_u64);
    assert_eq!((&records[0]["parent"], &records[0]["prefixLength"]), (&"s".into(), &1.into()));
    assert!(records[0]["createdAt"].is_u64());
    assert_eq!(records[1]["meta"]["note"], "two\nlines");
    assert!(records[1].get("parent").is_none());
}

/// Goal: an empty store lists nothing, and tells a person so apart from the data.
#[test]
fn ls_of_an_empty_store() {
    let bench = Bench::new();
    drop(sessionlog::Store::open(bench.store()).unwrap());
    let done = bench.run(["ls"]);
    assert_eq!((done.code, done.out.as_str()), (Some(0), ""), "{done:?}");
    assert!(done.err.contains("no sessions"), "{done:?}");
    assert_eq!(bench.run(["ls", "--json"]).fine(), "");
}

/// Goal: `show ID` has the session's figures in both forms.
#[test]
fn show_a_session() {
    let bench = Bench::with_events(3);
    bench.run(["create", "p", "--meta", "a=b"]).fine();
    bench.run(["fork", "s", "--at", "2", "--id", "child"]).fine();
    let text = bench.run(["show", "s"]).fine();
    let has = |text: &str, wanted: &str| {
        let found = text.lines().any(|line| line.split_whitespace().eq(wanted.split_whitespace()));
        assert!(found, "`{wanted}` is missing in {text}");
    };
    for line in ["session s", "events 3", "durable 3", "updated 2023-11-14T22:13:20.002Z", "parent -"] {
        has(&text, line);
    }
    has(&bench.run(["show", "p"]).fine(), "meta a=b");
    has(&bench.run(["show", "child"]).fine(), "parent s, its first 2 events");
    let json = bench.run(["show", "child", "--json"]).fine();
    let record: serde_json::Value = serde_json::from_str(&json).unwrap();
    assert_eq!((&record["length"], &record["durableLength"]), (&2.into(), &2.into()));
    assert_eq!((&record["parent"], &record["prefixLength"]), (&"s".into(), &2.into()));
}

/// Goal: `show` tells how the store makes data durable, and where it is.
#[test]
fn show_the_store() {
    let bench = Bench::with_events(3);
    let text = bench.run(["show"]).fine();
    for part in ["durability", "format", "engine-", bench.store().to_str().unwrap(), "closed in order"] {
        assert!(text.contains(part), "`{part}` is missing in {text}");
    }
    let record: serde_json::Value = serde_json::from_str(&bench.run(["show", "--json"]).fine()).unwrap();
    assert_eq!((&record["format"], &record["replayedEvents"]), (&1.into(), &0.into()));
    assert!(record["durability"].as_str().is_some_and(|mode| !mode.is_empty()));
    assert!(record["engineBytes"].as_u64().unwrap() > 0);
    assert_eq!(record["torn"], serde_json::json!([]));
}

/// Goal: looking changes no event.
#[test]
fn looking_changes_nothing() {
    let bench = Bench::with_events(3);
    let before = bench.run(["ls", "--json"]).fine();
    for command in [&["show"][..], &["show", "s"], &["read", "s"], &["ls"]] {
        bench.run(command).fine();
    }
    assert_eq!(bench.run(["ls", "--json"]).fine(), before);
    assert_eq!(bench.run(["read", "s"]).fine(), (0..3).map(numbered).collect::<String>());
}
