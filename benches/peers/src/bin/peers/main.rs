//! The same work on sessionlog and on what users would take instead, with the same durability, in one run.
//!
//! `peers [--quick] [--rounds N] [--dir FOLDER] [--out FOLDER] [--keep] [WORK…]`; without works: all of them.
//!
//! FOLDER must be on a disk (default: `target/peers` here). `RESULTS.md` and `results.svg` go to the folder `--out`
//! (default: where the checked-in ones are; of a quick run: FOLDER). Every measurement is a process of its own; rounds go from store to store. With `--keep` the
//! stores and figures stay in FOLDER, and a later run adds its works to them: so a long run can be had in parts.

mod chart;
mod child;
mod figures;
mod report;
mod work;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use sessionlog_peers::{Outcome, machine};

use figures::Figures;
use work::{PEERS, Setup, WORKS};

#[derive(Debug, Default)]
struct Arguments {
    quick: bool,
    rounds: Option<usize>,
    dir: Option<PathBuf>,
    out: Option<PathBuf>,
    keep: bool,
    works: Vec<String>,
}

impl Arguments {
    fn parse(mut words: impl Iterator<Item = String>) -> Outcome<Self> {
        let mut arguments = Self::default();
        while let Some(word) = words.next() {
            let mut value = || words.next().ok_or_else(|| format!("{word} needs a value"));
            match word.as_str() {
                "--quick" => arguments.quick = true,
                "--keep" => arguments.keep = true,
                "--rounds" => arguments.rounds = Some(value()?.parse()?),
                "--dir" => arguments.dir = Some(value()?.into()),
                "--out" => arguments.out = Some(value()?.into()),
                work if WORKS.iter().any(|known| known.name == work) => arguments.works.push(word),
                _ => {
                    let works: Vec<&str> = WORKS.iter().map(|work| work.name).collect();
                    return Err(format!("unknown argument {word}; the works: {}", works.join(" ")).into());
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
            eprintln!("peers: {error}");
            ExitCode::FAILURE
        }
    }
}

fn measure(arguments: &Arguments) -> Outcome<()> {
    let dir = match &arguments.dir {
        Some(dir) => std::path::absolute(dir)?,
        None => std::env::current_dir()?.join("target/peers"),
    };
    fs::create_dir_all(&dir)?;
    machine::refuse_memory(&dir)?;
    let kept = dir.join(if arguments.quick { "quick" } else { "full" });
    fs::create_dir_all(&kept)?;
    let rounds = arguments.rounds.unwrap_or(if arguments.quick { 1 } else { 5 });
    let setup = Setup { dir: kept.clone(), quick: arguments.quick, rounds };

    let saved = kept.join("figures.json");
    let mut figures = Figures::read(&saved)?;
    for work in WORKS {
        if arguments.works.is_empty() || arguments.works.iter().any(|asked| asked == work.name) {
            eprintln!("peers: {}", work.name);
            for (name, _) in PEERS {
                figures.forget(work, name);
            }
            work.measure(&setup, &mut figures)?;
            figures.write(&saved)?;
        }
    }

    let checked_in = Path::new(env!("CARGO_MANIFEST_DIR"));
    let out = arguments.out.as_deref().unwrap_or(if arguments.quick { &dir } else { checked_in });
    write_results(out, &setup, &figures)?;
    if !arguments.keep {
        fs::remove_dir_all(&kept)?;
    }
    Ok(())
}

fn write_results(out: &Path, setup: &Setup, figures: &Figures) -> Outcome<()> {
    let heading = machine::describe(&setup.dir)?;
    let text = report::markdown(&heading, setup, figures);
    print!("{text}");
    for (name, text) in [("RESULTS.md", &text), ("results.svg", &chart::svg(&heading, figures))] {
        let path = out.join(name);
        fs::write(&path, text).map_err(|error| format!("{}: {error}", path.display()))?;
    }
    Ok(())
}
