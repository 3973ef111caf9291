//! `compact`.

use std::fs;

use super::Bench;

/// Goal: both forms, for people and as JSON, leave what is read as it is.
#[test]
fn both_forms_in_words_and_as_json() {
    let bench = Bench::with_events(50);
    let before = bench.run(["read", "s"]).fine();
    assert_eq!(bench.run(["compact"]).fine(), "1 sessions, 1 blocks: nothing to merge\n");
    let merged: serde_json::Value = serde_json::from_str(&bench.run(["compact", "--json"]).fine()).unwrap();
    assert_eq!((&merged["blocksBefore"], &merged["mergedSessions"]), (&1.into(), &0.into()));
    let text = bench.run(["compact", "--rewrite"]).fine();
    assert!(text.starts_with("1 sessions, 50 events: "), "{text}");
    let done: serde_json::Value =
        serde_json::from_str(&bench.run(["compact", "--rewrite", "--json"]).fine()).unwrap();
    assert_eq!((&done["sessions"], &done["events"]), (&1.into(), &50.into()));
    assert!(bench.store().join("engine-3").is_dir() && !bench.store().join("engine-2").exists());
    assert_eq!(bench.run(["read", "s"]).fine(), before);
    bench.run(["scan"]).fine();
}

/// Goal (H24): what was deleted is in no file of the store behind a rewrite, and it was before.
#[test]
fn h24_a_rewrite_takes_deleted_text_off_the_disk() {
    let bench = Bench::with_events(3);
    let holds = |canary: &str| {
        let files = super::tree(&bench.store()).into_iter().filter_map(|(_, _, bytes)| bytes);
        files.into_iter().any(|bytes| bytes.windows(canary.len()).any(|window| window == canary.as_bytes()))
    };
    // Too short to be compressed in a block.
    let canary = "q7Zk";
    bench.run(["create", "draft"]).fine();
    bench.feed(["append", "draft"], format!("{{\"type\":\"{canary}\"}}\n")).fine();
    bench.run(["rm", "draft"]).fine();
    assert!(holds(canary));
    bench.run(["compact", "--rewrite"]).fine();
    assert!(!holds(canary));
    assert_eq!(bench.run(["read", "s"]).fine().lines().count(), 3);
}

/// Goal: no store, one in use, and one that is damaged are told; nothing is made, and the damaged one says what to do.
#[test]
fn what_cannot_be_compacted() {
    let bench = Bench::new();
    for args in [&["compact"][..], &["compact", "--rewrite"]] {
        bench.run(args).fails(3, &["no store at"]);
    }
    assert_eq!(fs::read_dir(bench.root()).unwrap().count(), 0);
    let bench = Bench::with_events(3);
    let held = sessionlog::Store::open(bench.store()).unwrap();
    for args in [&["compact"][..], &["compact", "--rewrite"]] {
        bench.run(args).fails(3, &["in use"]);
    }
    held.close().unwrap();
    drop(held);
    super::care::harm(&bench, |engine| {
        use sessionlog::storage::{Map, Storage};
        engine.apply(Map::Sessions, &[(b"is".to_vec(), None)]).unwrap();
    });
    bench.run(["compact", "--rewrite"]).fails(1, &["1 problems", "sessionlog scan", "sessionlog repair"]);
    assert!(bench.store().join("engine-1").is_dir());
    bench.run(["repair"]).fine();
    bench.run(["compact", "--rewrite"]).fine();
}
