//! `salvage`, and what is said where it is the way out.

use serde_json::Value;

use super::Bench;

/// Random bytes where the engine's own pages are.
fn damage(bench: &Bench) {
    let path = bench.store().join("engine-1/db");
    let mut bytes = std::fs::read(&path).unwrap();
    let used = bytes.iter().rposition(|byte| *byte != 0).unwrap();
    (0..64).for_each(|n| bytes[n * used / 64] ^= 0xff);
    std::fs::write(path, bytes).unwrap();
}

/// Goal: a store that does not open says what to do, without the engine's own words; that gets everything out.
#[test]
fn a_store_that_does_not_open_is_salvaged() {
    let bench = Bench::with_events(300);
    let before = bench.run(["read", "s"]).fine();
    // Settings that the engine refuses.
    let conf = bench.store().join("engine-1/conf");
    let mut settings = std::fs::read(&conf).unwrap();
    settings[10] ^= 0xff;
    std::fs::write(conf, settings).unwrap();
    bench.run(["read", "s"]).fails(3, &["salvage OLD NEW"]);

    let (old, new) = (bench.store(), bench.root().join("new"));
    let (old, new) = (old.to_str().unwrap(), new.to_str().unwrap());
    let said = bench.run(["salvage", old, new]).fine();
    assert!(said.starts_with("s  300 events\n"), "{said}");
    assert_eq!(bench.run(["--store", new, "read", "s"]).fine(), before);
    bench.run(["salvage", old, new]).fails(2, &["exists already"]);
    let third = bench.root().join("third");
    let report = bench.run(["salvage", old, third.to_str().unwrap(), "--json"]).fine();
    let report: Value = serde_json::from_str(&report).unwrap();
    assert_eq!(report["sessions"][0]["len"], 300);
    assert_eq!(report["sessions"][0]["missing"], Value::Array(Vec::new()));
}

/// Goal: of an engine whose every value is damaged the journal is left; no panic of the engine is shown.
#[test]
fn what_the_journal_holds_comes_out_alone() {
    let bench = Bench::with_events(0);
    let noise = |n: u64| {
        let text: String =
            (0..3_000).map(|at: u64| char::from(b'a' + ((at * at * (n + 7) + n) % 26) as u8)).collect();
        format!(r#"{{"type":"user/message","content":"{text}"}}"#) + "\n"
    };
    bench.feed(["append", "s"], (0..40).map(noise).collect::<String>()).fine();
    let before = bench.run(["read", "s"]).fine();
    damage(&bench);
    let (old, new) = (bench.store(), bench.root().join("new"));
    let done = bench.run(["salvage", old.to_str().unwrap(), new.to_str().unwrap()]);
    assert!(!done.err.contains("panicked"), "{done:?}");
    // What the engine had is gone, with the session's name; its events are in the journal.
    let id = done.out.split_whitespace().next().unwrap();
    assert_eq!(bench.run(["--store", new.to_str().unwrap(), "read", id]).fine(), before);
    let scanned = bench.run(["--store", new.to_str().unwrap(), "scan"]);
    assert_eq!(scanned.code, Some(0), "{scanned:?}");
}

/// Goal: a folder that is no store, and one in use, are refused with exit code 3 and left alone.
#[test]
fn refusals() {
    let bench = Bench::with_events(1);
    let new = bench.root().join("new");
    let nothing = bench.root().join("nothing");
    bench.run(["salvage", nothing.to_str().unwrap(), new.to_str().unwrap()]).fails(3, &["no store at"]);
    std::fs::create_dir(&nothing).unwrap();
    std::fs::write(nothing.join("precious"), "kept").unwrap();
    bench
        .run(["salvage", nothing.to_str().unwrap(), new.to_str().unwrap()])
        .fails(3, &["is not a sessionlog store"]);
    assert_eq!(std::fs::read(nothing.join("precious")).unwrap(), b"kept");
    assert!(!new.exists());
}
