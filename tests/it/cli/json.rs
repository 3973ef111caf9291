//! The JSON that programs read is what the guide says.

use std::collections::BTreeSet;

use super::Bench;

const GUIDE: &str = include_str!("../../../src/guide/command_line.rs");

/// The fields that the guide lists for a command, and whether each is always there.
fn documented(command: &str) -> Vec<(String, bool)> {
    let head = format!("//! | `{command}` | ");
    let row =
        GUIDE.lines().find_map(|line| line.strip_prefix(&head)).unwrap_or_else(|| panic!("no {command}"));
    let mut fields = Vec::new();
    let mut parts = row.split('`').peekable();
    parts.next();
    while let (Some(name), Some(behind)) = (parts.next(), parts.next()) {
        fields.push((name.to_owned(), !behind.starts_with('?')));
        if behind.contains("(as") {
            parts.next();
            parts.next();
        }
    }
    if row.starts_with("as `") {
        let (other, _) = fields.remove(0);
        fields.extend(documented(&other));
    }
    fields
}

/// Goal: every field is in the guide, and every field of the guide that is not optional is there.
#[test]
fn fields_are_those_of_the_guide() {
    let bench = Bench::with_events(2);
    bench.run(["fork", "s", "--id", "child"]).fine();
    bench.feed(["append", "child"], r#"{"type":"user/message","content":"hello"}"#).fine();
    let (copy, new) = (bench.root().join("copy"), bench.root().join("new"));
    let (copy, new, old) = (copy.to_str().unwrap(), new.to_str().unwrap(), bench.store());
    for (command, args) in [
        ("ls", &["ls"][..]),
        ("show ID", &["show", "child"]),
        ("show", &["show"]),
        ("tree", &["tree"]),
        ("prune", &["prune", "--keep", "1", "--dry-run"]),
        ("grep", &["grep", "hello"]),
        ("stats", &["stats"]),
        ("inspect", &["inspect", "s"]),
        ("label", &["label", "s", "--title", "T", "a=b"]),
        ("scan", &["scan"]),
        ("repair", &["repair", "--dry-run"]),
        ("compact", &["compact"]),
        ("compact --rewrite", &["compact", "--rewrite"]),
        ("backup", &["backup", copy]),
        ("salvage", &["salvage", old.to_str().unwrap(), new]),
    ] {
        let printed = bench.run([args, &["--json"]].concat()).fine();
        let fields = documented(command);
        let known: BTreeSet<&str> = fields.iter().map(|(name, _)| name.as_str()).collect();
        for line in printed.lines() {
            let record: serde_json::Value = serde_json::from_str(line).unwrap();
            let there: BTreeSet<&str> = record.as_object().unwrap().keys().map(String::as_str).collect();
            let unknown: Vec<_> = there.difference(&known).collect();
            assert!(unknown.is_empty(), "{command}: not in the guide: {unknown:?}");
            for (name, always) in &fields {
                assert!(!always || there.contains(name.as_str()), "{command}: `{name}` is missing in {line}");
            }
        }
        assert!(!printed.is_empty(), "{command}");
    }
}
