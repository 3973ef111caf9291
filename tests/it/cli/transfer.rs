//! `export` and `import`.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use super::{Bench, numbered};

fn case(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/cases").join(name)
}

fn text(path: &Path) -> &str {
    path.to_str().unwrap()
}

/// Goal: a session goes out and in through pipes and files, and is the same; H45: the file is its owner's.
#[test]
fn out_and_in() {
    let bench = Bench::with_events(5);
    bench.run(["label", "s", "--title", "Five"]).fine();
    let file = bench.run(["export", "s"]).fine();
    assert_eq!(
        file.lines().skip(1).map(|line| format!("{line}\n")).collect::<String>(),
        bench.run(["read", "s"]).fine()
    );

    let there = Bench::new();
    let done = there.feed(["import", "-"], file.as_bytes());
    assert_eq!((done.code, done.out.as_str()), (Some(0), "s\n"), "{done:?}");
    assert!(done.err.contains("5 events"), "{done:?}");
    assert_eq!(there.run(["export", "s"]).fine(), file);

    let path = there.root().join("s.jsonl");
    let done = there.run(["export", "Five", "--output", text(&path)]);
    assert_eq!((done.code, done.out.as_str()), (Some(0), ""), "{done:?}");
    assert_eq!(fs::read_to_string(&path).unwrap(), file);
    assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
    there.run(["export", "s", "-o", text(&path)]).fails(2, &["there already"]);
    there.run(["import", text(&path)]).fails(1, &["already exists"]);
    assert_eq!(there.run(["import", "--as", "copy", text(&path)]).code, Some(0));
    assert_eq!(there.run(["read", "copy"]).fine(), bench.run(["read", "s"]).fine());
}

/// Goal: a whole store goes out into a folder and in again; what is there is not touched.
#[test]
fn a_whole_store() {
    let bench = Bench::with_events(5);
    bench.run(["fork", "s", "--at", "2", "--id", "child"]).fine();
    let folder = bench.root().join("backup");
    assert_eq!(bench.run(["export", "--all", text(&folder)]).code, Some(0));
    bench.run(["export", "--all", text(&folder)]).fails(2, &["there already"]);
    let there = Bench::new();
    let done = there.run(["import", text(&folder)]);
    assert_eq!((done.code, done.out.as_str()), (Some(0), "s\nchild\n"), "{done:?}");
    assert!(done.err.contains("2 shared"), "{done:?}");
    for id in ["s", "child"] {
        assert_eq!(there.run(["export", id]).fine(), bench.run(["export", id]).fine());
    }
}

/// Goal: a bad file is refused with every fault, its line and column; good ones beside it are taken, and the code says
/// that something was not. A salvage keeps what it can, and says that, too.
#[test]
fn bad_files() {
    let bench = Bench::new();
    let bad = bench.root().join("bad.jsonl");
    fs::copy(case("bad_middle_line.jsonl"), &bad).unwrap();
    let done = bench.run(["import", text(&bad), text(&case("header_only.jsonl"))]);
    assert_eq!((done.code, done.out.lines().count()), (Some(1), 1), "{done:?}");
    assert!(done.err.contains("line 8, column") && done.err.contains("nothing was stored"), "{done:?}");
    for args in [&["import"][..], &["import", "--dry-run"]] {
        let done = bench.run([args, &[text(&bad)]].concat());
        assert_eq!((done.code, done.out.as_str()), (Some(1), ""), "{done:?}");
        assert!(done.err.contains("line 8, column") && done.err.contains("--salvage"), "{done:?}");
    }
    let done = bench.run(["import", "--salvage", text(&bad)]);
    assert_eq!((done.code, done.out.lines().count()), (Some(1), 1), "{done:?}");
    assert_eq!(bench.run(["read", done.out.trim_end()]).fine().lines().count(), 6);
    assert!(bench.root().join("bad.jsonl.rest").exists());
    bench.run(["import", "--salvage", "--as", "again", text(&bad)]).fails(2, &["there already"]);
    bench.run(["import", text(&bench.root().join("none.jsonl"))]).fails(1, &["none.jsonl"]);
}

/// Goal: an update appends what is new, and says so; wrong command lines are usage.
#[test]
fn updates_and_usage() {
    let bench = Bench::with_events(3);
    let path = bench.root().join("s.jsonl");
    bench.run(["export", "s", "-o", text(&path)]);
    let there = Bench::new();
    assert_eq!(there.run(["import", text(&path)]).code, Some(0));
    bench.feed(["append", "s"], numbered(3)).fine();
    fs::write(&path, bench.run(["export", "s"]).fine()).unwrap();
    let done = there.run(["import", "--update", text(&path)]);
    assert_eq!((done.code, done.out.as_str()), (Some(0), "s\n"), "{done:?}");
    assert!(done.err.contains("continued by 1 events"), "{done:?}");
    assert_eq!(there.run(["read", "s"]).fine(), bench.run(["read", "s"]).fine());
    for args in [&["-", text(&path)][..], &["--update", "-"], &["--salvage", "-"], &["--as", "x", "a", "b"]] {
        assert_eq!(there.run([&["import"], args].concat()).code, Some(2), "{args:?}");
    }
    for args in [&["export"][..], &["export", "s", "--all", "x"], &["import"]] {
        assert_eq!(there.run(args).code, Some(2), "{args:?}");
    }
}

/// Goal: H48: an unknown id is not found, and nothing is made of it.
#[test]
fn h48_an_unknown_id_makes_nothing() {
    let bench = Bench::with_events(1);
    let path = bench.root().join("x.jsonl");
    bench.run(["export", "other"]).fails(1, &["other", "not found"]);
    bench.run(["export", "other", "-o", text(&path)]).fails(1, &["not found"]);
    assert!(!path.exists());
    bench.run(["label", "other", "a=b"]).fails(1, &["not found"]);
    assert_eq!(bench.run(["ls", "--json"]).fine().lines().count(), 1);
}
