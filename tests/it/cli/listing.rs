//! `ls` with filters and pages, `tree`, `prune`.

use serde_json::Value;

use super::{Bench, numbered};

fn ids(json: &str) -> Vec<String> {
    let records = json.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    records.filter_map(|record| record["id"].as_str().map(String::from)).collect()
}

/// Sessions `s0` to `s4`, updated a day apart, the last one in 2255; a fork `f` of `s3`.
fn bench() -> Bench {
    let bench = Bench::new();
    for n in 0..5_i64 {
        let name = format!("s{n}");
        bench.run(["create", &name]).fine();
        let time = if n == 4 { 9_000_000_000_000 } else { 1_700_000_000_000 + n * 86_400_000 };
        bench.feed(["append", &name], format!("{{\"type\":\"n\",\"timestamp\":{time}}}")).fine();
    }
    bench.run(["fork", "s3", "--id", "f"]).fine();
    bench.feed(["append", "f"], "{\"type\":\"n\",\"timestamp\":1}").fine();
    bench
}

/// Goal: pages by --limit and --after are together the list, in both forms; how to go on is told, and only then.
#[test]
fn ls_in_pages() {
    let bench = bench();
    let whole = ids(&bench.run(["ls", "--json"]).fine());
    assert_eq!(whole, ["s4", "s3", "s2", "s1", "s0", "f"]);
    let mut found = Vec::new();
    let mut args: Vec<String> = ["ls", "--json", "--limit", "4"].map(String::from).into();
    for page in 0..2 {
        let out = bench.run(&args).fine();
        found.extend(ids(&out));
        let last: Value = serde_json::from_str(out.lines().last().unwrap()).unwrap();
        assert_eq!(last["after"].is_string(), page == 0, "{out}");
        args.extend(["--after".to_string(), last["after"].as_str().unwrap_or_default().to_string()]);
    }
    assert_eq!(found, whole);
    let done = bench.run(["ls", "--limit", "5"]);
    assert_eq!(done.out.lines().count(), 6, "{done:?}");
    let after = done.err.trim_end().rsplit(' ').next().unwrap();
    let rest = bench.run(["ls", "--after", after]).fine();
    assert!(rest.lines().count() == 2 && rest.contains("\nf "), "{rest}");
    bench.run(["ls", "--limit", "6"]).fine();
    bench.run(["ls", "--after", "nowhere"]).fails(2, &["place in a list"]);
    bench.run(["ls", "--limit", "0"]).fails(2, &["0"]);
}

/// Goal: each filter; what is no time is usage; a list that is empty for its filters says so.
#[test]
fn ls_with_filters() {
    let bench = bench();
    let listed = |args: &[&str]| ids(&bench.run([&["ls", "--json"], args].concat()).fine());
    assert_eq!(listed(&["--since", "2023-11-16", "--until", "2023-11-18T22:13:20Z"]), ["s3", "s2"]);
    assert_eq!(listed(&["--until", "30d"]), ["s3", "s2", "s1", "s0", "f"]);
    assert_eq!(listed(&["--since", "1700172800000"]), ["s4", "s3", "s2"]);
    assert_eq!(listed(&["--parent", "s3"]), ["f"]);
    assert!(listed(&["--parent", "s1"]).is_empty());
    bench.run(["ls", "--parent", "nobody"]).fails(1, &["nobody", "not found"]);
    bench.run(["ls", "--since", "yesterday"]).fails(2, &["not a time"]);
    let done = bench.run(["ls", "--since", "2300-01-01"]);
    assert!(done.code == Some(0) && done.out.is_empty() && done.err.contains("no session is like that"));
    let sized = bench.run(["ls", "--size"]).fine();
    assert!(sized.lines().next().unwrap().contains("SIZE") && sized.contains(" B "), "{sized}");
    assert!(bench.run(["ls", "--size", "--json"]).fine().contains("\"storedBytes\":"));
}

/// Goal: forks stand below their parents, with lines; the JSON form has depths.
#[test]
fn tree_draws_forks() {
    let bench = bench();
    bench.run(["fork", "s3", "--at", "0", "--id", "g"]).fine();
    bench.run(["fork", "g", "--id", "h"]).fine();
    let drawn = bench.run(["tree", "s3"]).fine();
    let names: Vec<String> = drawn.lines().map(|line| line.split("  ").next().unwrap().to_string()).collect();
    let starts: Vec<&str> = drawn
        .lines()
        .map(|line| {
            line.split(" events").next().unwrap().trim_end_matches(|c: char| c.is_ascii_digit()).trim_end()
        })
        .collect();
    assert_eq!(starts, ["s3", "├── g @0", "│   └── h @0", "└── f @1"], "{drawn} {names:?}");
    let json = bench.run(["tree", "--json"]).fine();
    let records: Vec<Value> = json.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(records.len(), 8);
    let h = records.iter().find(|record| record["id"] == "h").unwrap();
    assert_eq!((&h["depth"], &h["prefixLength"]), (&2.into(), &0.into()));
    bench.run(["rm", "g"]).fine();
    bench.run(["tree", "nobody"]).fails(1, &["not found"]);
    let empty = Bench::new();
    drop(sessionlog::Store::open(empty.store()).unwrap());
    let done = empty.run(["tree"]);
    assert!(done.code == Some(0) && done.out.is_empty() && done.err.contains("no sessions"), "{done:?}");
}

/// Goal: a dry run tells and deletes nothing; the same without it deletes what was told; without a limit it is usage.
#[test]
fn prune_tells_first() {
    let bench = bench();
    bench.run(["prune"]).fails(2, &["--older-than"]);
    bench.run(["prune", "--dry-run"]).fails(2, &["--keep"]);
    let told = bench.run(["prune", "--keep", "4", "--dry-run"]).fine();
    assert!(told.contains("delete  s0  (count)") && told.contains("delete  f  (count)"), "{told}");
    assert!(told.contains("2 sessions would be deleted") && told.ends_with("4 stay\n"), "{told}");
    assert_eq!(ids(&bench.run(["ls", "--json"]).fine()).len(), 6);
    let done = bench.run(["prune", "--keep", "4"]).fine();
    assert!(done.contains("deleted s0  (count)") && done.contains("2 sessions deleted"), "{done}");
    assert_eq!(ids(&bench.run(["ls", "--json"]).fine()), ["s4", "s3", "s2", "s1"]);

    bench.feed(["append", "s2"], "{\"type\":\"turn/start\",\"turnId\":\"t\",\"timestamp\":2}").fine();
    let json = bench.run(["prune", "--older-than", "30d", "--json"]).fine();
    let records: Vec<Value> = json.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(ids(&json), ["s3", "s1", "s2"]);
    assert_eq!((&records[0]["deleted"], &records[0]["reason"]), (&true.into(), &"age".into()));
    assert_eq!((&records[2]["deleted"], &records[2]["protected"]), (&false.into(), &"open turn".into()));
    bench.run(["prune", "--max-size", "1K", "--older-than", "1d", "--open-turns"]).fine();
    assert_eq!(ids(&bench.run(["ls", "--json"]).fine()), ["s4"]);
    bench.run(["prune", "--max-size", "a lot"]).fails(2, &["not a size"]);
    assert_eq!(bench.feed(["append", "s4"], numbered(1)).code, Some(0));
    assert!(bench.run(["prune", "--max-size", "0"]).fine().contains("deleted s4  (size)"));
}
