//! `scan`, `repair`, `backup`, and `read --quarantine`.

use std::fs;

use sessionlog::storage::{Map, SledStorage, Storage};

use super::{Bench, tree};
use crate::support::bytes::noise;

/// Changes the values of a closed store.
pub(super) fn harm(bench: &Bench, change: impl FnOnce(&SledStorage)) {
    let engine = SledStorage::open(&bench.store().join("engine-1"), 1 << 20).unwrap();
    change(&engine);
    engine.flush().unwrap();
    engine.close().unwrap();
}

/// Goal: a sound store is clean, with its hashes, in both forms; a noted hash is compared.
#[test]
fn scan_of_a_sound_store() {
    let bench = Bench::with_events(5);
    let text = bench.run(["scan"]).fine();
    assert!(text.ends_with("1 sessions, 5 events: no problems found\n"), "{text}");
    let report: serde_json::Value = serde_json::from_str(&bench.run(["scan", "--json"]).fine()).unwrap();
    assert_eq!((&report["errors"], &report["heads"][0]["length"]), (&0.into(), &5.into()));
    let hash = report["heads"][0]["hash"].as_str().unwrap().to_owned();
    assert!(bench.run(["show", "s"]).fine().contains(&hash));
    let shown: serde_json::Value = serde_json::from_str(&bench.run(["show", "s", "--json"]).fine()).unwrap();
    assert_eq!(shown["hash"], hash.as_str());
    bench.run(["scan", "s", "--expect", &format!("5:{hash}")]).fine();
    bench.run(["scan", "s", "--expect", &format!("4:{hash}")]).fails(1, &["1 problems found"]);
    bench.run(["scan", "s", "--expect", "5"]).fails(2, &["SEQ:HASH"]);
    bench.run(["scan", "other"]).fails(1, &["not found"]);
}

/// Goal: what is wrong is told and exits with 1; a dry run changes nothing; a repair does what it said; then all is well.
#[test]
fn damage_found_and_repaired() {
    let bench = Bench::with_events(5);
    bench.run(["repair"]).fine();
    assert!(!bench.store().join("repair-1").exists(), "there was nothing to do");
    harm(&bench, |engine| engine.apply(Map::Sessions, &[(b"is".to_vec(), None)]).unwrap());
    let found = bench.run(["scan"]).fails(1, &["1 problems found", "repair --dry-run"]);
    assert!(found.out.contains("error: unreachable, session s"), "{found:?}");
    let plan = bench.run(["repair", "--dry-run"]).fine();
    assert!(plan.contains("the record of its id") && plan.contains("dry run"), "{plan}");
    assert!(!bench.store().join("repair-1").exists());
    let done = bench.run(["repair"]).fine();
    assert!(done.contains("the record of its id") && done.contains("repair-1"), "{done}");
    bench.run(["scan"]).fine();
    assert_eq!(bench.run(["read", "s"]).fine().lines().count(), 5);
}

/// Goal: a session with a hole reads to there, says what to do at an append, and gives out what lay behind.
#[test]
fn an_ended_session() {
    let bench = Bench::with_events(0);
    let event = |n: u32| {
        let noise = noise(u64::from(n), 1_000);
        format!("{{\"type\":\"n\",\"at\":{n},\"noise\":\"{noise}\"}}\n")
    };
    bench.feed(["append", "s"], (0..40).map(event).collect::<String>()).fine();
    harm(&bench, |engine| {
        let blocks: Vec<_> = engine
            .range(Map::Events, std::ops::Bound::Unbounded, std::ops::Bound::Unbounded)
            .map(|entry| entry.unwrap().0)
            .collect();
        assert!(blocks.len() > 2, "{} blocks", blocks.len());
        engine.apply(Map::Events, &[(blocks[1].clone(), None)]).unwrap();
    });
    bench.run(["scan"]).fails(1, &["problems found"]);
    bench.run(["repair"]).fine();
    let report = bench.run(["scan"]).fine();
    assert!(report.contains("notice: ended, session s"), "{report}");
    let left = bench.run(["read", "s"]).fine().lines().count();
    let kept = bench.run(["read", "s", "--quarantine"]).fine();
    let first: serde_json::Value = serde_json::from_str(kept.lines().next().unwrap()).unwrap();
    assert_eq!(first["seq"], first["at"]);
    assert!(first["seq"].as_u64().unwrap() > left as u64);
    let at = left.to_string();
    bench
        .feed(["append", "s"], "{\"type\":\"n\"}\n")
        .fails(1, &["was ended at", &format!("sessionlog fork s --at {at}")]);
    bench.run(["fork", "s", "--at", &at, "--id", "on"]).fine();
    bench.feed(["append", "on"], "{\"type\":\"n\"}\n").fine();
}

/// Goal: a copy is a store; what is there already is not touched; no store, a store in use, and bad folders are told.
#[test]
fn backup_and_bad_folders() {
    let bench = Bench::with_events(3);
    let copy = bench.root().join("copy");
    let copy_text = copy.to_str().unwrap();
    let text = bench.run(["backup", copy_text]).fine();
    assert!(text.contains("1 sessions, 3 events"), "{text}");
    let before = tree(&copy);
    bench.run(["backup", copy_text]).fails(2, &["exists already"]);
    assert!(tree(&copy) == before);
    assert_eq!(bench.run(["--store", copy_text, "read", "s"]).fine(), bench.run(["read", "s"]).fine());

    let none = bench.root().join("none");
    for command in ["scan", "repair"] {
        bench.run(["--store", none.to_str().unwrap(), command]).fails(3, &["no store at"]);
    }
    assert!(!none.exists());
    let held = sessionlog::Store::open(bench.store()).unwrap();
    for command in ["scan", "repair"] {
        bench.run([command]).fails(3, &["in use"]);
    }
    held.close().unwrap();
}

/// Goal: a store that does not open says so with exit code 3, and what to do next, and stays as it is.
#[test]
fn a_store_that_does_not_open_names_the_way_out() {
    for (part, hint) in [("engine-1/db", "salvage"), ("journal", "salvage"), ("sessionlog", "salvage")] {
        let bench = Bench::with_events(2);
        let lost = bench.store().join(part);
        if lost.is_dir() { fs::remove_dir_all(&lost) } else { fs::remove_file(&lost) }.unwrap();
        for command in ["ls", "scan", "repair"] {
            let told = bench.run([command]).fails(3, &[hint]);
            assert!(!told.err.contains("delete"), "{part}: {told:?}");
            assert!(!lost.exists(), "{part}: nothing is made in its place");
        }
    }
}
