//! `label`, and names by title.

use super::Bench;

/// Goal: a title and labels are set, changed and removed, shown in both forms, and lists are narrowed by them.
#[test]
fn set_shown_and_filtered() {
    let bench = Bench::with_events(1);
    bench.run(["create", "other"]).fine();
    let out = bench.run(["label", "s", "--title", "Release notes", "branch=main", "x=a=b"]).fine();
    assert_eq!(out, "title: Release notes\nbranch=main\nx=a=b\n");
    assert_eq!(bench.run(["label", "s", "x=", "branch=dev"]).fine(), "title: Release notes\nbranch=dev\n");
    assert_eq!(bench.run(["label", "s"]).fine(), "title: Release notes\nbranch=dev\n");

    let shown = bench.run(["show", "s"]).fine();
    assert!(shown.contains("Release notes") && shown.contains("branch=dev"), "{shown}");
    let record: serde_json::Value = serde_json::from_str(&bench.run(["show", "s", "--json"]).fine()).unwrap();
    assert_eq!((&record["title"], &record["labels"]["branch"]), (&"Release notes".into(), &"dev".into()));
    for wanted in [&["--label", "branch=dev"][..], &["--title", "notes"]] {
        let listed = bench.run([&["ls", "--json"], wanted].concat()).fine();
        assert!(listed.lines().count() == 1 && listed.contains("\"id\":\"s\""), "{listed}");
    }
    let args = ["ls", "--json", "--label", "branch=dev", "--title", "other"];
    assert_eq!(bench.run(args).fine(), "");
    assert_eq!(bench.run(["label", "s", "--title", ""]).fine(), "branch=dev\n");
    bench.run(["fork", "s", "--id", "child"]).fine();
    assert_eq!(bench.run(["label", "child"]).fine(), "");
}

/// Goal: commands that only read take a title that one session has; an exact id goes before it; those that change take
/// none.
#[test]
fn a_title_names_a_session() {
    let bench = Bench::with_events(2);
    bench.run(["create", "other"]).fine();
    bench.run(["label", "s", "--title", "Nightly"]).fine();
    let done = bench.run(["read", "Nightly"]);
    assert_eq!((done.code, done.out.lines().count()), (Some(0), 2), "{done:?}");
    assert!(done.err.contains("session s"), "{done:?}");
    bench.run(["label", "Nightly", "a=b"]).fails(1, &["Nightly", "not found"]);
    bench.run(["label", "other", "--title", "s"]).fine();
    assert_eq!(bench.run(["read", "s"]).fine().lines().count(), 2);
    bench.run(["label", "other", "--title", "Nightly"]).fine();
    bench.run(["read", "Nightly"]).fails(1, &["2 sessions", "other", "s"]);
    bench.run(["label", "s", "=x"]).fails(2, &["empty"]);
    bench.run(["label", "s", &format!("k={}", "x".repeat(5_000))]).fails(1, &["exceed"]);
}
