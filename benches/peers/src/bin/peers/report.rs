//! The table, and whether the bars are reached.

use std::fmt::Write as _;

use sessionlog_peers::measure::Ratio;

use crate::figures::Figures;
use crate::work::{OURS, PEERS, Setup, Unit, row, rows};

const NOTES: &str = "\
Each cell: the median, and how many times sessionlog's figure that is (least and greatest of the rounds in
parentheses): above 1, sessionlog is better. Every measurement is a process of its own; the stores take turns. All
appends are durable when they return (`fdatasync`, or what the store does for it), all reads give decoded, typed events,
and the events are those of one made trace: turns with some 50 streamed chunks, messages, a tool call and a result of
1.5 KB. Caches of 64 MiB where there is one. The page cache is warm.

- **sessionlog**: defaults.
- **SQLite** (rusqlite, bundled): WAL, `synchronous=FULL`, a row an event with its JSON as text, prepared statements, a
  connection a writer. Resume leaves chunks out by a column. The list is a table of its own with an index, whose upkeep
  appends do not pay here. A fork is `INSERT … SELECT`.
- **JSONL**: a file a session, one `write` and one `fdatasync` an acknowledgement, serde_json into a struct (not into a
  tagged enum, which is slower). The middle is found by halving, the end from the end; resume passes over lines that begin
  as chunks do. A fork is a copy made by the system (`copy_file_range`), synced. The list reads all files.
- **fjall**: a keyspace, a pair an event with its JSON, lz4; a batch with `SyncData`. A fork is a copy, synced once.
- **redb**: a table, a pair an event with its JSON; a transaction of `Durability::Immediate`. A fork is a copy in one
  transaction.

Messages of the others are one an event; sessionlog's are paired and checked as providers want them. Memory is the
greatest resident size less what the process had before it opened the store.
";

/// The whole page.
pub fn markdown(heading: &str, setup: &Setup, figures: &Figures) -> String {
    let kind = if setup.quick { " A quick run: its figures mean nothing." } else { "" };
    let mut text = format!(
        "# The same work on other stores\n\nMade by `cargo run --release --manifest-path benches/peers/Cargo.toml \
         --bin peers`; do not edit.{kind}\n\n{heading}; {} events in the long session; at most {} rounds, 3 of load and fork.\n\n",
        count(setup.events() as f64),
        setup.rounds,
    );
    text += "| work |";
    PEERS.iter().for_each(|(_, title)| text += &format!(" {title} |"));
    text += "\n| --- |";
    PEERS.iter().for_each(|_| text += " --- |");
    text += "\n";
    for row in rows() {
        text += &format!("| {} |", row.text);
        for (peer, _) in PEERS {
            let cell = figures.median(row, peer).map_or("-".to_owned(), |figure| {
                let figure = amount(figure, row.unit);
                match figures.ratio(row, peer).filter(|_| peer != OURS) {
                    Some(ratio) => format!("{figure}<br>{}", times(ratio)),
                    None => format!("**{figure}**"),
                }
            });
            write!(text, " {cell} |").expect("memory takes all");
        }
        text += "\n";
    }
    text += "\n![The same as a chart](results.svg)\n\n## Bars\n\n| bar | measured | reached |\n| --- | --- | --- |\n";
    for bar in BARS {
        if let Some((measured, reached)) = (bar.measure)(figures) {
            let reached = if reached { "yes" } else { "**no**" };
            writeln!(text, "| {} | {measured} | {reached} |", bar.text).expect("memory takes all");
        }
    }
    write!(text, "\n## How\n\n{NOTES}").expect("memory takes all");
    text
}

struct Bar {
    text: &'static str,
    measure: fn(&Figures) -> Option<(String, bool)>,
}

const BARS: [Bar; 6] = [
    Bar {
        text: "read whole: at least 2.5 × SQLite",
        measure: |figures| beats(figures, "read", "sqlite", 2.5),
    },
    Bar {
        text: "read whole: at least 1.5 × JSONL with serde_json",
        measure: |figures| beats(figures, "read", "jsonl", 1.5),
    },
    Bar {
        text: "last 100: at least as fast as SQLite",
        measure: |figures| beats(figures, "last", "sqlite", 1.0),
    },
    Bar {
        text: "fork: at least 100 × faster than copying in SQLite",
        measure: |figures| beats(figures, "fork", "sqlite", 100.0),
    },
    Bar {
        text: "fork: under 4 KiB in the engine's folder",
        measure: |figures| {
            let bytes = figures.median(row("fork-disk")?, OURS)?;
            Some((amount(bytes, Unit::Bytes), bytes < 4096.0))
        },
    },
    Bar {
        text: "durable appends of 8 writers: at least 4 × SQLite",
        measure: |figures| beats(figures, "append-8", "sqlite", 4.0),
    },
];

fn beats(figures: &Figures, key: &str, peer: &str, bar: f64) -> Option<(String, bool)> {
    let ratio = figures.ratio(row(key)?, peer)?;
    Some((times(ratio), ratio.median >= bar))
}

fn times(ratio: Ratio) -> String {
    let Ratio { median, least, most, .. } = ratio;
    format!("{} × ({} to {})", short(median), short(least), short(most))
}

/// A number with few digits.
pub fn short(number: f64) -> String {
    match number {
        n if n >= 100.0 => count(n),
        n if n >= 10.0 => format!("{n:.1}"),
        n if n >= 0.1 => format!("{n:.2}"),
        n => format!("{n:.4}"),
    }
}

/// A figure with a unit in which it has few digits.
pub fn amount(figure: f64, unit: Unit) -> String {
    let units: &[(f64, &str)] = match unit {
        Unit::Seconds => &[(1.0, "s"), (1e-3, "ms"), (1e-6, "µs"), (1e-9, "ns")],
        Unit::Bytes => &[(1_073_741_824.0, "GiB"), (1_048_576.0, "MiB"), (1_024.0, "KiB"), (1.0, "B")],
    };
    let (size, name) =
        units.iter().find(|(size, _)| figure >= *size).or(units.last()).expect("there are units");
    let number = figure / size;
    if number >= 100.0 { format!("{number:.0} {name}") } else { format!("{number:.1} {name}") }
}

/// A count with thousands kept apart.
fn count(number: f64) -> String {
    let digits = format!("{number:.0}");
    let mut text = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}
