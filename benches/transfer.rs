//! Moving in and out: import and export of a trace as native JSON Lines. Prints one table.
//!
//! Each work is done by a process of its own, in turn with the others, on a store that was just opened or made, until
//! it is closed. `cargo bench --bench transfer` moves 1,000,000 events; `cargo test` shows with a small trace that all
//! of it runs.
#![allow(clippy::print_stdout, reason = "it has a table to print")]

#[allow(dead_code, unreachable_pub, reason = "the trace alone is needed, and others need more of it")]
#[path = "support/trace.rs"]
mod trace;

use std::fs::{self, File};
use std::hint::black_box;
use std::io::{BufRead, BufReader, BufWriter, Write};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Instant;

use sessionlog::Store;
use sessionlog::transfer::{ExportOptions, ImportOptions, create_file, export, import_file};

use trace::Trace;

const ID: &str = "trace";
/// What tells a process that it is to do one work and no more.
const WORK: &str = "SESSIONLOG_BENCH_WORK";

type Outcome<T> = Result<T, Box<dyn std::error::Error>>;

fn main() -> Outcome<()> {
    if let Ok(work) = std::env::var(WORK) {
        let folder = PathBuf::from(std::env::args().nth(1).ok_or("a folder is needed")?);
        return child(&work, &folder);
    }
    // `cargo bench` says so; `cargo test` does not.
    let in_full = std::env::args().any(|argument| argument == "--bench");
    let (events, rounds) = if in_full { (1_000_000, 7) } else { (2_000, 1) };
    let folder = tempfile::tempdir_in(PathBuf::from(env!("CARGO_TARGET_TMPDIR")))?;
    let bytes = write_trace(&folder.path().join("trace.jsonl"), events)?;

    let mut measured = Measured::default();
    for round in 0..=rounds {
        let figures =
            [ask("parse", folder.path())?, ask("import", folder.path())?, ask("export", folder.path())?];
        fs::remove_dir_all(folder.path().join("store"))?;
        fs::remove_file(folder.path().join("again.jsonl"))?;
        // The first round fills the page cache.
        if round > 0 {
            measured.add(figures);
        }
    }
    println!("{events} events, {bytes} bytes, medians of {rounds}; least and greatest in parentheses");
    println!("| work | bar | measured |\n| --- | --- | --- |");
    measured.print(bytes, events);
    Ok(())
}

/// What a process says of its work.
#[derive(Clone, Copy, Debug)]
struct Figures {
    seconds: f64,
    peak_bytes: f64,
}

#[derive(Debug, Default)]
struct Measured {
    rounds: Vec<[Figures; 3]>,
}

impl Measured {
    fn add(&mut self, figures: [Figures; 3]) {
        self.rounds.push(figures);
    }

    fn print(&self, bytes: u64, events: u64) {
        let of = |figure: fn(&[Figures; 3]) -> f64| self.rounds.iter().map(figure).collect::<Vec<_>>();
        let rate = |seconds: f64| {
            format!("{:.0} MB/s, {:.0} events/s", bytes as f64 / 1e6 / seconds, events as f64 / seconds)
        };
        let (parse, _, _) = spread(of(|[parse, _, _]| parse.seconds));
        let (import, _, _) = spread(of(|[_, import, _]| import.seconds));
        let (export, _, _) = spread(of(|[_, _, export]| export.seconds));
        let (ratio, least, most) = spread(of(|[parse, import, _]| parse.seconds / import.seconds));
        println!(
            "| import, against a loop that parses each line | at least 0.25 × its rate | {ratio:.2} × ({least:.2} to \
             {most:.2}); {}, the loop {} |",
            rate(import),
            rate(parse)
        );
        let (ratio, least, most) = spread(of(|[_, import, export]| import.seconds / export.seconds));
        println!(
            "| export, against the import | at least its rate | {ratio:.2} × ({least:.2} to {most:.2}); {} |",
            rate(export)
        );
        let (_, _, import) = spread(of(|[_, import, _]| import.peak_bytes));
        let (_, _, export) = spread(of(|[_, _, export]| export.peak_bytes));
        println!(
            "| memory of the process, at most | under 150 MB | import {:.0} MB, export {:.0} MB |",
            import / 1e6,
            export / 1e6
        );
    }
}

/// Median, least and greatest.
fn spread(mut figures: Vec<f64>) -> (f64, f64, f64) {
    figures.sort_by(f64::total_cmp);
    let at = |index: usize| figures.get(index).copied().unwrap_or_default();
    (at(figures.len() / 2), at(0), at(figures.len().saturating_sub(1)))
}

/// Writes the trace as a file that can be imported; returns its bytes.
fn write_trace(path: &Path, events: u64) -> Outcome<u64> {
    let mut out = BufWriter::new(File::create(path)?);
    writeln!(out, "{{\"type\":\"session\",\"version\":1,\"id\":\"{ID}\",\"createdAt\":1700000000000}}")?;
    let mut line = Vec::new();
    for (seq, event) in (0..events).zip(Trace::new(7)) {
        line.clear();
        event.write_json(seq, &mut line);
        line.push(b'\n');
        out.write_all(&line)?;
    }
    out.flush()?;
    Ok(fs::metadata(path)?.len())
}

/// Lets a process of its own do `work`.
fn ask(work: &str, folder: &Path) -> Outcome<Figures> {
    let output = Command::new(std::env::current_exe()?).env(WORK, work).arg(folder).output()?;
    let said = String::from_utf8(output.stdout)?;
    let mut words = said.split_whitespace().map(str::parse::<f64>);
    match (words.next(), words.next()) {
        (Some(seconds), Some(peak_bytes)) => Ok(Figures { seconds: seconds?, peak_bytes: peak_bytes? }),
        _ => Err(format!("{work}: {said}{}", String::from_utf8_lossy(&output.stderr)).into()),
    }
}

fn child(work: &str, folder: &Path) -> Outcome<()> {
    let (file, store) = (folder.join("trace.jsonl"), folder.join("store"));
    let began = Instant::now();
    match work {
        "parse" => parse(&file)?,
        "import" => {
            let store = Store::open(store)?;
            import_file(&store, &file, &ImportOptions::new())?;
            store.close()?;
        }
        "export" => {
            let store = Store::open(store)?;
            let session = store.session(&ID.parse()?)?;
            let again = folder.join("again.jsonl");
            create_file(&again, |out| export(&session, ExportOptions::new(), out))?;
            store.close()?;
        }
        work => return Err(format!("no such work: {work}").into()),
    }
    println!("{} {}", began.elapsed().as_secs_f64(), peak_bytes());
    Ok(())
}

/// What any importer has to do at least.
fn parse(file: &Path) -> Outcome<()> {
    let mut lines = BufReader::with_capacity(256 << 10, File::open(file)?);
    let mut line = Vec::new();
    while lines.read_until(b'\n', &mut line)? > 0 {
        black_box(serde_json::from_slice::<serde_json::Value>(&line)?);
        line.clear();
    }
    Ok(())
}

/// The most memory that this process had; 0 where the system does not say it.
fn peak_bytes() -> u64 {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let kib = line.and_then(|line| line.split_whitespace().next()).and_then(|kib| kib.parse::<u64>().ok());
    kib.unwrap_or_default() << 10
}
