//! `rm`.

use std::fs;

use super::{Bench, numbered};

/// Goal (H23): a parent goes, its fork and the fork's fork read in full and go on; deleted in turn, nothing is listed.
#[test]
fn h23_a_parent_goes_and_its_forks_stay() {
    let bench = Bench::with_events(10);
    bench.run(["fork", "s", "--at", "6", "--id", "branch"]).fine();
    bench.run(["fork", "branch", "--at", "4", "--id", "twig"]).fine();
    assert_eq!(bench.run(["rm", "s"]).fine(), "");
    bench.run(["read", "s"]).fails(1, &["session s not found"]);
    bench.run(["rm", "s"]).fails(1, &["session s not found", "sessionlog ls"]);
    let events = |end| (0..end).map(numbered).collect::<String>();
    assert_eq!(bench.run(["read", "branch"]).fine(), events(6));
    assert_eq!(bench.run(["read", "twig"]).fine(), events(4));
    assert_eq!(bench.run(["ls", "--json"]).fine().lines().count(), 2);
    bench.run(["show", "branch"]).fine();

    // The id is free, and the new session is empty.
    bench.run(["create", "s"]).fine();
    assert_eq!(bench.run(["read", "s"]).fine(), "");
    for id in ["branch", "s", "twig"] {
        bench.run(["rm", id]).fine();
    }
    assert_eq!(bench.run(["ls", "--json"]).fine(), "");
}

/// Goal: half an id is not enough to delete a session.
#[test]
fn rm_takes_a_full_id() {
    let bench = Bench::new();
    bench.run(["create", "nightly-7"]).fine();
    bench.run(["rm", "nightly"]).fails(1, &["session nightly not found"]);
    bench.run(["rm", ""]).fails(2, &["empty"]);
    bench.run(["rm"]).fails(2, &["ID"]);
    bench.run(["show", "nightly-7"]).fine();
}

/// Goal: a store that is not there is not made by a deletion.
#[test]
fn rm_makes_no_store() {
    let bench = Bench::new();
    bench.run(["rm", "s"]).fails(3, &["no store"]);
    assert_eq!(fs::read_dir(bench.root()).unwrap().count(), 0);
}

/// Goal (H24): the help says plainly that deletion is no erasure, and what will be.
#[test]
fn h24_rm_says_that_it_is_no_erasure() {
    let help = Bench::new().run(["rm", "--help"]).fine();
    let words = help.split_whitespace().collect::<Vec<_>>().join(" ");
    for part in ["no erasure", "compact --rewrite", "the journal's too"] {
        assert!(words.contains(part), "{help}");
    }
}
