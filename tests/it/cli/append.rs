//! `append`: lines in, acknowledgements out.

use super::{Bench, acks, case, numbered};

fn with_session() -> Bench {
    let bench = Bench::new();
    bench.run(["create", "s"]).fine();
    bench
}

/// Goal: one acknowledgement for each event, in every mode, and what was appended is read.
#[test]
fn every_event_is_acknowledged() {
    for flags in
        [&[][..], &["--sync"], &["--buffered"], &["--batch", "3"], &["--batch", "65536", "--buffered"]]
    {
        let bench = with_session();
        let lines: String = (0..7).map(numbered).collect();
        let out = bench.feed([&["append", "s"], flags].concat(), lines.as_str()).fine();
        assert_eq!(out, acks(0, 7), "{flags:?}");
        assert_eq!(bench.run(["read", "s"]).fine(), lines, "{flags:?}");
    }
}

/// Goal: no input is no error.
#[test]
fn nothing_to_append() {
    let bench = with_session();
    for input in ["", "\n", "\u{feff}", " \r\n\t\n"] {
        assert_eq!(bench.feed(["append", "s"], input).fine(), "");
    }
}

/// Goal: H41 and H05: a byte order mark, CRLF, blank lines and a missing last newline are no faults.
#[test]
fn h41_bom_crlf_blank_lines() {
    let bench = with_session();
    let mut input = b"\xef\xbb\xbf".to_vec();
    input.extend(case("bom_crlf.jsonl"));
    assert_eq!(input.pop(), Some(b'\n'));
    assert_eq!(bench.feed(["append", "s"], input).fine(), acks(0, 6));
}

/// Goal: H12: U+2028, U+2029 and U+0085 end no line, and come back as they were.
#[test]
fn h12_unicode_line_separators() {
    let bench = with_session();
    let input = String::from_utf8(case("unicode_line_separators.jsonl")).unwrap();
    assert_eq!(bench.feed(["append", "s"], input.as_str()).fine(), acks(0, 2));
    assert_eq!(bench.run(["read", "s"]).fine(), input);
}

/// Goal: the clock gives the time where the line does not, and the log the seq.
#[test]
fn seq_and_timestamp_are_given() {
    let bench = with_session();
    bench.feed(["append", "s"], r#"{"type":"user/message","content":"hello"}"#).fine();
    let line = bench.run(["read", "s"]).fine();
    assert!(line.starts_with(r#"{"type":"user/message","seq":0,"content":"hello","timestamp":1"#), "{line}");
}

/// Goal: what came before a bad line stays, also in an unfinished batch, and the bad line and the rest are not there.
#[test]
fn what_came_before_a_bad_line_stays() {
    for batch in ["1", "2", "3", "100"] {
        let bench = with_session();
        let mut lines: Vec<String> = (0..5).map(numbered).collect();
        lines[3] = "{\"type\":\"n\",\"seq\":true}\n".into();
        let done = bench.feed(["append", "s", "--batch", batch], lines.concat());
        let done = done.fails(1, &["line 4: ", "field `seq`", "3 events before it"]);
        assert_eq!(done.out, acks(0, 3), "--batch {batch}");
        assert_eq!(bench.run(["read", "s"]).fine(), lines[..3].concat(), "--batch {batch}");
    }
}

/// Goal: a line that the log refuses (here: its seq is not the next one) is a bad line like one that does not parse.
#[test]
fn a_wrong_seq_is_a_bad_line() {
    for batch in ["1", "2", "3", "100"] {
        let bench = with_session();
        let input = [numbered(0), "\n".into(), numbered(1), numbered(7), numbered(3)].concat();
        let done = bench.feed(["append", "s", "--batch", batch], input);
        let done = done.fails(1, &["line 4: ", "field `seq`", "7", "2"]);
        assert_eq!(done.out, acks(0, 2), "--batch {batch}");
        assert_eq!(bench.run(["read", "s"]).fine(), numbered(0) + &numbered(1), "--batch {batch}");
    }
}

/// Goal: H06: of two writers that expect the same seq, the second is told the true one and has written nothing.
#[test]
fn h06_the_second_writer_is_told() {
    let bench = Bench::with_events(3);
    bench.feed(["append", "s"], numbered(3)).fine();
    bench.feed(["append", "s"], numbered(3)).fails(1, &["line 1: ", "3 given, 4 is next"]);
    assert_eq!(bench.run(["read", "s"]).fine().lines().count(), 4);
}

/// Goal: flags that contradict each other, and batches that cannot be, are usage.
#[test]
fn wrong_flags() {
    let bench = with_session();
    for flags in [&["--sync", "--buffered"][..], &["--batch", "0"], &["--batch", "65537"], &["--batch", "x"]]
    {
        bench.run([&["append", "s"], flags].concat()).fails(2, &[]);
    }
}
