//! Measures every bar that the engine has to reach, as ratios taken in one run on one machine.
//!
//! `bars [--quick] [--rounds N] [--dir FOLDER] [--out FILE] [ROW…]`; without rows: all of them.
//!
//! FOLDER must be on a disk (default: `target/bars` here); what is measured goes into a folder of its own in it, which
//! is removed at the end. The table goes to standard output and to FILE (default: `bars.md` in FOLDER).

mod child;
mod history;
mod small;
mod table;

use std::fs;
use std::path::PathBuf;
use std::process::ExitCode;

use sessionlog_peers::{Outcome, machine};

use table::Line;

/// What the measurements need to know.
#[derive(Debug)]
struct Setup {
    dir: PathBuf,
    quick: bool,
    rounds: usize,
}

impl Setup {
    /// `full`, or the fraction of it that a quick run takes.
    fn size(&self, full: usize, quick: usize) -> usize {
        if self.quick { quick } else { full }
    }

    /// An empty folder of this name.
    fn folder(&self, name: &str) -> Outcome<PathBuf> {
        let folder = self.dir.join(name);
        if folder.exists() {
            fs::remove_dir_all(&folder)?;
        }
        fs::create_dir_all(&folder)?;
        self.settle();
        Ok(folder)
    }

    /// Waits until the disk has nothing left of what was done before.
    fn settle(&self) {
        rustix::fs::sync();
        if !self.quick {
            std::thread::sleep(std::time::Duration::from_millis(300));
        }
    }
}

type Row = fn(&Setup) -> Outcome<Vec<Line>>;

const ROWS: [(&str, Row); 9] = [
    ("sync", small::sync),
    ("buffered", small::buffered),
    ("threads", small::threads),
    ("batch", small::batch),
    ("trace", history::trace),
    ("read", history::read),
    ("last", history::last),
    ("fork", history::fork),
    ("memory", history::memory),
];

#[derive(Debug, Default)]
struct Arguments {
    quick: bool,
    rounds: Option<usize>,
    dir: Option<PathBuf>,
    out: Option<PathBuf>,
    rows: Vec<String>,
}

impl Arguments {
    fn parse(mut words: impl Iterator<Item = String>) -> Outcome<Self> {
        let mut arguments = Self::default();
        while let Some(word) = words.next() {
            let mut value = || words.next().ok_or_else(|| format!("{word} needs a value"));
            match word.as_str() {
                "--quick" => arguments.quick = true,
                "--rounds" => arguments.rounds = Some(value()?.parse()?),
                "--dir" => arguments.dir = Some(value()?.into()),
                "--out" => arguments.out = Some(value()?.into()),
                row if ROWS.iter().any(|(name, _)| *name == row) => arguments.rows.push(word),
                _ => {
                    let rows: Vec<&str> = ROWS.iter().map(|(name, _)| *name).collect();
                    return Err(format!("unknown argument {word}; the rows: {}", rows.join(" ")).into());
                }
            }
        }
        Ok(arguments)
    }
}

fn main() -> ExitCode {
    let mut words = std::env::args().skip(1).peekable();
    let result = if words.next_if_eq("child").is_some() {
        child::run(words)
    } else {
        Arguments::parse(words).and_then(|arguments| measure(&arguments))
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("bars: {error}");
            ExitCode::FAILURE
        }
    }
}

fn measure(arguments: &Arguments) -> Outcome<()> {
    let dir = match &arguments.dir {
        Some(dir) => std::path::absolute(dir)?,
        None => std::env::current_dir()?.join("target/bars"),
    };
    fs::create_dir_all(&dir)?;
    machine::refuse_memory(&dir)?;
    let rounds = arguments.rounds.unwrap_or(if arguments.quick { 2 } else { 7 });
    let work = dir.join(format!("run-{}", std::process::id()));
    fs::create_dir(&work)?;
    let setup = Setup { dir: work.clone(), quick: arguments.quick, rounds };

    let mut lines = Vec::new();
    for (name, row) in ROWS {
        if arguments.rows.is_empty() || arguments.rows.iter().any(|asked| asked == name) {
            eprintln!("bars: {name}");
            let measured = row(&setup).unwrap_or_else(|error| vec![Line::failed(name, &error.to_string())]);
            for line in &measured {
                eprintln!("  {line}");
            }
            lines.extend(measured);
        }
    }

    let kind = if setup.quick { ", quick: figures mean nothing" } else { "" };
    let heading =
        format!("{}; medians of {} interleaved rounds{kind}", machine::describe(&dir)?, setup.rounds);
    let text = table::markdown(&heading, &lines);
    print!("{text}");
    let out = arguments.out.clone().unwrap_or_else(|| dir.join("bars.md"));
    fs::write(&out, text).map_err(|error| format!("{}: {error}", out.display()))?;
    fs::remove_dir_all(&work)?;
    Ok(())
}
