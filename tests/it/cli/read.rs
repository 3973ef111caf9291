//! `read`: which events, and which session.

use super::{Bench, numbered};

fn events(range: std::ops::Range<u64>) -> String {
    range.map(numbered).collect()
}

/// Goal: H33: `--from` is inclusive, `--to` exclusive and cut at the end, `--last` is the end in ascending order.
#[test]
fn h33_bounds() {
    let bench = Bench::with_events(10);
    let read = |args: &[&str]| bench.run([&["read", "s"], args].concat()).fine();
    assert_eq!(read(&[]), events(0..10));
    for from in [0, 3, 9, 10] {
        assert_eq!(read(&["--from", &from.to_string()]), events(from..10), "{from}");
    }
    assert_eq!(read(&["--from", "3", "--to", "5"]), events(3..5));
    assert_eq!(read(&["--from", "3", "--to", "3"]), "");
    assert_eq!(read(&["--to", "0"]), "");
    assert_eq!(read(&["--to", "99"]), events(0..10));
    assert_eq!(read(&["--last", "3"]), events(7..10));
    assert_eq!(read(&["--last", "0"]), "");
    assert_eq!(read(&["--last", "11"]), events(0..10));
    assert_eq!(read(&["--to", "5", "--last", "2"]), events(3..5));
    assert_eq!(read(&["--from", "4", "--to", "5", "--last", "2"]), events(4..5));
    assert_eq!(read(&["--from", "10", "--last", "2"]), "");
}

/// Goal: H33: a start beyond the end is an error, with `--last` too; a range that runs backwards is usage.
#[test]
fn h33_beyond_the_end() {
    let bench = Bench::with_events(10);
    for from in ["11", "18446744073709551615"] {
        bench.run(["read", "s", "--from", from]).fails(1, &[from, "10 events"]);
        bench.run(["read", "s", "--from", from, "--last", "1"]).fails(1, &[from, "10 events"]);
        bench.run(["read", "s", "--from", from, "--last", "1", "--type", "n"]).fails(1, &[from, "10 events"]);
    }
    for from in ["18446744073709551616", "x", ""] {
        bench.run(["read", "s", "--from", from]).fails(2, &["--from"]);
    }
    bench.run(["read", "s", "--from", "5", "--to", "3"]).fails(2, &["--to 3", "--from 5"]);
}

/// Goal: `--type` picks one type, and `--last` then counts events of it.
#[test]
fn type_and_last_of_a_type() {
    let bench = Bench::new();
    bench.run(["create", "s"]).fine();
    let types = [
        "user/message",
        "assistant/chunk",
        "assistant/chunk",
        "assistant/message",
        "x",
        "assistant/chunk",
        "x",
    ];
    let lines: Vec<String> = types
        .iter()
        .enumerate()
        .map(|(seq, name)| {
            let field = match *name {
                "assistant/chunk" => "\"delta\":\"d\",",
                "x" => "",
                _ => "\"content\":\"c\",",
            };
            format!("{{\"type\":\"{name}\",\"seq\":{seq},{field}\"timestamp\":5}}\n")
        })
        .collect();
    bench.feed(["append", "s", "--batch", "10"], lines.concat()).fine();
    let read = |args: &[&str]| bench.run([&["read", "s"], args].concat()).fine();
    let pick = |seqs: &[usize]| seqs.iter().map(|seq| lines[*seq].as_str()).collect::<String>();
    assert_eq!(read(&["--type", "assistant/chunk"]), pick(&[1, 2, 5]));
    assert_eq!(read(&["--type", "assistant/chunk", "--last", "2"]), pick(&[2, 5]));
    assert_eq!(read(&["--type", "assistant/chunk", "--last", "2", "--to", "5"]), pick(&[1, 2]));
    assert_eq!(read(&["--type", "x", "--last", "1"]), pick(&[6]));
    assert_eq!(read(&["--type", "x", "--last", "9", "--from", "5"]), pick(&[6]));
    assert_eq!(read(&["--type", "user/message", "--last", "1"]), pick(&[0]));
    assert_eq!(read(&["--type", "user/message", "--from", "1"]), "");
    assert_eq!(read(&["--type", "no/such", "--last", "3"]), "");
}

/// Goal: commands that only look take the beginning of an id when it is the only one, and say which session it is; an
/// exact id wins; several are listed.
#[test]
fn beginnings_of_ids() {
    let bench = Bench::new();
    for id in ["night", "nightly-1", "nightly-2", "day"] {
        bench.run(["create", id]).fine();
    }
    bench.feed(["append", "day"], numbered(0)).fine();
    for command in [&["read", "da"][..], &["show", "d"]] {
        let done = bench.run(command);
        assert_eq!(done.code, Some(0), "{done:?}");
        assert!(done.err.contains("session day") && !done.out.is_empty(), "{done:?}");
    }
    assert_eq!(bench.run(["read", "night"]).fine(), "");
    bench.run(["show", "nightly"]).fails(1, &["2 sessions", "nightly-1", "nightly-2"]);
    bench.run(["read", "x"]).fails(1, &["session x not found"]);
}

/// Goal: what changes a session wants its full id.
#[test]
fn half_an_id_is_not_enough_to_write() {
    let bench = Bench::with_events(1);
    bench.run(["create", "other"]).fine();
    bench.feed(["append", "oth"], numbered(0)).fails(1, &["session oth not found"]);
    bench.run(["fork", "oth"]).fails(1, &["session oth not found"]);
    assert_eq!(bench.run(["ls", "--json"]).fine().lines().count(), 2);
}
