//! What is refused: exit code, a message that names the place, and a store that is as it was.

use std::fs;
use std::path::PathBuf;

use super::{Bench, acks, case, numbered, tree};

const MIB: usize = 1 << 20;

fn message(content_bytes: usize) -> Vec<u8> {
    format!("{{\"type\":\"user/message\",\"content\":\"{}\"}}\n", "x".repeat(content_bytes)).into_bytes()
}

/// Goal: H48: an unknown session is an error everywhere, and nothing is created by asking.
#[test]
fn h48_unknown_session() {
    let bench = Bench::with_events(2);
    let before = bench.run(["ls", "--json"]).fine();
    for command in
        [&["read", "x"][..], &["show", "x"], &["append", "x"], &["fork", "x"], &["fork", "x", "--at", "0"]]
    {
        let done = bench.feed(command, numbered(0)).fails(1, &["session x not found", "sessionlog ls"]);
        assert_eq!(done.out, "");
    }
    assert_eq!(bench.run(["ls", "--json"]).fine(), before);
}

/// Goal: H48: only `create` makes a store.
#[test]
fn h48_no_store() {
    let bench = Bench::new();
    for command in [&["ls"][..], &["show"], &["show", "x"], &["read", "x"], &["append", "x"], &["fork", "x"]]
    {
        bench.feed(command, numbered(0)).fails(3, &["no store", bench.store().to_str().unwrap(), "--store"]);
        assert!(!bench.store().exists());
    }
    fs::create_dir(bench.store()).unwrap();
    bench.run(["ls"]).fails(3, &["no store"]);
    assert_eq!(fs::read_dir(bench.store()).unwrap().count(), 0);
    bench.run(["create", "s"]).fine();
}

/// Goal: a session that exists is never overwritten, neither by `create` nor by `fork`.
#[test]
fn existing_id() {
    let bench = Bench::with_events(2);
    bench.run(["create", "s"]).fails(1, &["session s already exists"]);
    bench.run(["fork", "s", "--id", "s"]).fails(1, &["session s already exists"]);
    assert_eq!(bench.run(["read", "s"]).fine(), numbered(0) + &numbered(1));
}

/// Goal: H35: what can be no id is usage, in every place that takes one.
#[test]
fn h35_bad_ids() {
    let bench = Bench::with_events(1);
    let too_long = "x".repeat(256);
    for (id, part) in
        [("", "empty"), (too_long.as_str(), "256 bytes"), ("a\tb", "control"), ("a\u{7f}", "control")]
    {
        for command in [&["create"][..], &["append"], &["read"], &["fork"], &["show"], &["fork", "s", "--id"]]
        {
            bench.run([command, &[id]].concat()).fails(2, &["bad session id", part]);
        }
    }
    assert_eq!(bench.run(["ls", "--json"]).fine().lines().count(), 1);
}

/// Goal: a fork past the end names both numbers and makes nothing.
#[test]
fn fork_past_the_end() {
    let bench = Bench::with_events(3);
    for at in ["4", "18446744073709551615"] {
        bench.run(["fork", "s", "--at", at, "--id", "new"]).fails(1, &["s", at, "3 events"]);
    }
    bench.run(["fork", "s", "--at", "-1"]).fails(2, &[]);
    assert_eq!(bench.run(["ls", "--json"]).fine().lines().count(), 1);
}

/// Goal: lines that are no event are refused with line, column and field, and nothing of them is stored.
#[test]
fn bad_lines() {
    let bench = Bench::new();
    bench.run(["create", "s"]).fine();
    for (line, parts) in [
        (&b"{\"type\":"[..], &["column"][..]),
        (b"hello", &["column 1"]),
        (b"[]", &["column 1"]),
        (b"{\"type\":\"x\"}{\"type\":\"x\"}", &["column 13"]),
        (b"{\"type\":\"x\",\"a\":\"\xff\"}", &["column 18", "UTF-8"]),
        (b"{\"type\":\"x\",\"a\":\"\\ud83d\"}", &["column 18", "surrogate"]),
        (b"{\"type\":\"x\",\"a\":1,\"a\":2}", &["`a`", "twice"]),
        (b"{\"type\":\"user/message\",\"content\":3}", &["column 34", "`content`"]),
        (b"{\"type\":\"user/message\"}", &["`content`", "missing"]),
        (b"{\"type\":\"x\",\"seq\":0.5}", &["column 19", "`seq`"]),
        (b"{\"type\":\"x\",\"seq\":\"0\"}", &["column 19", "`seq`"]),
        (b"{\"type\":\"x\",\"timestamp\":1.5}", &["column 25", "`timestamp`"]),
        (b"{\"type\":\"\"}", &["`type`"]),
        (b"{\"type\":\"session\"}", &["`type`"]),
        (b"{\"content\":\"x\"}", &["`type`", "missing"]),
        (b"\x00\x00\x00", &["column 1"]),
    ] {
        let done = bench.feed(["append", "s"], line).fails(1, &[&["line 1: "][..], parts].concat());
        assert_eq!(done.out, "");
    }
    assert_eq!(bench.run(["read", "s"]).fine(), "");
}

/// Goal: H11: half a surrogate pair is refused with line and column; what came before stays.
#[test]
fn h11_lone_surrogate() {
    refused_case("lone_high_surrogate.jsonl", 1, &["line 2: column 87", "surrogate"]);
}

/// Goal: H15: a number that became a string is refused with line and field.
#[test]
fn h15_number_as_string() {
    refused_case("stringly_numbers.jsonl", 1, &["line 2: column 35: field `seq`"]);
}

/// Goal: H43: one byte that is not UTF-8 is refused with line and column; what came before stays.
#[test]
fn h43_one_bad_byte() {
    refused_case("invalid_utf8_middle.jsonl", 3, &["line 4: column 51", "UTF-8"]);
}

fn refused_case(name: &str, stored: u64, parts: &[&str]) {
    let bench = Bench::new();
    bench.run(["create", "s"]).fine();
    let done = bench.feed(["append", "s"], case(name)).fails(1, parts);
    assert_eq!(done.out, acks(0, stored));
    assert_eq!(bench.run(["read", "s"]).fine().lines().count() as u64, stored);
}

/// Goal: H39: an event over 16 MiB is refused, whether its line is too long or only its stored form; one below is not.
#[test]
fn h39_event_too_large() {
    let bench = Bench::with_events(1);
    for content_bytes in [17 * MIB, 16 * MIB - 50] {
        let done = bench.feed(["append", "s"], message(content_bytes)).fails(1, &["line 1: ", "16777216"]);
        assert_eq!(done.out, "");
    }
    assert_eq!(bench.feed(["append", "s"], message(16 * MIB - 200)).fine(), acks(1, 2));
    assert!(bench.run(["read", "s", "--from", "1"]).fine().len() > 16 * MIB - 200);
}

/// Goal: a batch over 64 MiB is refused whole, and the message names its lines.
#[test]
fn batch_too_large() {
    let bench = Bench::with_events(1);
    let input = message(14 * MIB).repeat(6);
    let done = bench.feed(["append", "s", "--batch", "6"], input).fails(1, &["lines 1 to 5: ", "--batch"]);
    assert_eq!(done.out, "");
    assert_eq!(bench.run(["read", "s"]).fine(), numbered(0));
}

/// Goal: metadata that fits no header is refused.
#[test]
fn metadata_too_large() {
    let bench = Bench::with_events(1);
    bench.run(["create", "m", "--meta", &format!("a={}", "x".repeat(5_000))]).fails(1, &["metadata", "5009"]);
    assert_eq!(bench.run(["ls", "--json"]).fine().lines().count(), 1);
}

/// Goal: a folder or file that is no store is refused and left as it is, by commands that would create one too.
#[test]
fn not_a_store() {
    let bench = Bench::new();
    fs::create_dir(bench.store()).unwrap();
    fs::write(bench.store().join("notes.txt"), "mine").unwrap();
    let before = tree(bench.root());
    for command in [&["ls"][..], &["read", "s"], &["create", "s"], &["append", "s"]] {
        bench.run(command).fails(3, &[bench.store().to_str().unwrap(), "not a sessionlog store"]);
    }
    assert_eq!(tree(bench.root()), before);

    let file = bench.store().join("notes.txt");
    for command in ["ls", "create"] {
        bench.run([command, "--store", file.to_str().unwrap()]).fails(3, &[file.to_str().unwrap()]);
    }
    assert_eq!(tree(bench.root()), before);
}

/// All that a store holds. Who had it open last is told by the lock file, which any attempt to open it writes.
fn without_lock(bench: &Bench) -> Vec<(PathBuf, u32, Option<Vec<u8>>)> {
    let lock = bench.store().join("lock");
    tree(&bench.store()).into_iter().filter(|(path, ..)| *path != lock).collect()
}

/// Goal: a store of a newer format is refused with both numbers, and left as it is.
#[test]
fn newer_format() {
    let bench = Bench::with_events(1);
    let description = bench.store().join("sessionlog");
    let text = fs::read_to_string(&description).unwrap();
    fs::write(&description, text.replace("format 1\n", "format 2\n")).unwrap();
    let before = without_lock(&bench);
    for command in [&["ls"][..], &["read", "s"], &["create", "t"]] {
        bench.run(command).fails(3, &["format 2", "1", "update sessionlog", "description"]);
    }
    assert_eq!(without_lock(&bench), before);
}

/// Goal: a damaged description is told apart from a newer one, and nothing is touched.
#[test]
fn damaged_description() {
    let bench = Bench::with_events(1);
    let description = bench.store().join("sessionlog");
    let text = fs::read_to_string(&description).unwrap();
    fs::write(&description, text.replace("\nengine engine", "\nengine Engine")).unwrap();
    let before = without_lock(&bench);
    bench.run(["ls"]).fails(3, &["corrupt", description.to_str().unwrap()]);
    assert_eq!(without_lock(&bench), before);
}
