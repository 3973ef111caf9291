//! Measures what a large store costs: 10,000,000 events in 1,000 sessions, and a store of 100,000 sessions.
//!
//! `large --program SESSIONLOG [--events N] [--sessions N] [--dir FOLDER] [--keep]`
//!
//! Each store is made once; everything is measured on it, in processes of their own, in one run. FOLDER must be on a
//! disk (default: `target/large` here). With `--keep` the stores stay, and the next run takes them as they are: for a
//! second look at one row. SESSIONLOG is the command line program, built with optimizations.

mod child;

use std::fs;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};
use std::time::Instant;

use sessionlog_peers::Outcome;
use sessionlog_peers::measure::median;

/// How often what takes less than a second is measured.
const ROUNDS: usize = 7;

#[derive(Debug)]
struct Setup {
    program: PathBuf,
    dir: PathBuf,
    events: usize,
    sessions: usize,
    many: usize,
    keep: bool,
}

impl Setup {
    fn parse(mut words: impl Iterator<Item = String>) -> Outcome<Self> {
        let mut program = None;
        let mut setup = Self {
            program: PathBuf::new(),
            dir: "target/large".into(),
            events: 10_000_000,
            sessions: 1_000,
            many: 100_000,
            keep: false,
        };
        while let Some(word) = words.next() {
            let mut value = || words.next().ok_or_else(|| format!("{word} needs a value"));
            match word.as_str() {
                "--program" => program = Some(PathBuf::from(value()?)),
                "--events" => setup.events = value()?.parse()?,
                "--sessions" => setup.sessions = value()?.parse()?,
                "--many" => setup.many = value()?.parse()?,
                "--dir" => setup.dir = value()?.into(),
                "--keep" => setup.keep = true,
                _ => return Err(format!("unknown argument {word}").into()),
            }
        }
        setup.program = std::path::absolute(program.ok_or("--program is missing")?)?;
        setup.dir = std::path::absolute(&setup.dir)?;
        Ok(setup)
    }
}

fn main() -> ExitCode {
    let mut words = std::env::args().skip(1).peekable();
    let result = if words.next_if_eq("child").is_some() {
        child::run(words)
    } else {
        Setup::parse(words).and_then(|setup| measure(&setup))
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("large: {error}");
            ExitCode::FAILURE
        }
    }
}

fn measure(setup: &Setup) -> Outcome<()> {
    fs::create_dir_all(&setup.dir)?;
    println!("| work | bar | measured |\n| --- | --- | --- |");
    let store = setup.dir.join("events");
    if !store.exists() {
        load(setup, &store)?;
    }
    opening(setup, &store)?;
    commands(setup, &store)?;
    memory(setup, &store)?;
    killed(setup, &store)?;
    let many = setup.dir.join("sessions");
    if !many.exists() {
        child::ask("create", &many, &[setup.many])?;
    }
    listing(setup, &many)?;
    if !setup.keep {
        fs::remove_dir_all(&setup.dir)?;
    }
    Ok(())
}

fn line(work: &str, bar: &str, measured: &str) {
    println!("| {work} | {bar} | {measured} |");
}

/// The load: what an event costs at the beginning and at the end.
fn load(setup: &Setup, store: &Path) -> Outcome<()> {
    let answer = child::ask("load", store, &[setup.events, setup.sessions])?;
    let (wall, cpu) = (answer.all("seconds"), answer.all("processor"));
    let ratio = |of: &[f64]| match of {
        [_, second, .., last] => last / second,
        _ => f64::NAN,
    };
    let per_event = |of: &[f64]| of.iter().sum::<f64>() * 1e6 / setup.events as f64;
    let bytes = sessionlog_peers::ours::Sizes::of(store)?.engine as f64 / setup.events as f64;
    line(
        &format!(
            "{} events in {} sessions, the last million against the second",
            setup.events, setup.sessions
        ),
        "at most 1.2 ×",
        &format!(
            "{:.2} × (processor {:.2} ×); {:.2} µs an event (processor {:.2}); {bytes:.1} bytes an event; peak {}",
            ratio(wall),
            ratio(cpu),
            per_event(wall),
            per_event(cpu),
            mib(answer.one("peak")?)
        ),
    );
    let each: Vec<String> = wall.iter().zip(cpu).map(|(wall, cpu)| format!("{wall:.2}/{cpu:.2}")).collect();
    eprintln!("a million each, seconds and processor's seconds: {}", each.join(" "));
    Ok(())
}

fn opening(setup: &Setup, store: &Path) -> Outcome<()> {
    let mut opened = Vec::new();
    for _ in 0..ROUNDS {
        opened.push(child::ask("open", store, &[])?.one("seconds")?);
    }
    let work = format!("open of {} events after a clean close", setup.events);
    line(&work, "under 300 ms", &milliseconds(&opened));
    Ok(())
}

/// The time from the start of the program to its first byte of output.
fn commands(setup: &Setup, store: &Path) -> Outcome<()> {
    for words in ["ls", "show s7", "read s7 --last 20"] {
        let mut first = Vec::new();
        for _ in 0..ROUNDS {
            let start = Instant::now();
            let mut program = Command::new(&setup.program)
                .args(words.split(' '))
                .arg("--store")
                .arg(store)
                .stdout(Stdio::piped())
                .spawn()?;
            let mut out = program.stdout.take().ok_or("no output")?;
            if out.read(&mut [0])? == 0 {
                return Err(format!("{words} printed nothing").into());
            }
            first.push(start.elapsed().as_secs_f64());
            std::io::copy(&mut out, &mut std::io::sink())?;
            if !program.wait()?.success() {
                return Err(format!("{words} failed").into());
            }
        }
        line(&format!("first output of `{words}` there"), "under 500 ms", &milliseconds(&first));
    }
    Ok(())
}

fn memory(setup: &Setup, store: &Path) -> Outcome<()> {
    for what in ["read", "append"] {
        let answer = child::ask(what, store, &[setup.events / 10, setup.sessions])?;
        let work = format!("memory there, default cache, {what}ing {} events", setup.events / 10);
        let measured = format!("peak {}, {:.1} s", mib(answer.one("peak")?), answer.one("seconds")?);
        line(&work, "under 220 MB", &measured);
    }
    Ok(())
}

fn killed(setup: &Setup, store: &Path) -> Outcome<()> {
    let mut opened = Vec::new();
    let mut replayed = 0.0;
    for _ in 0..3 {
        let tail = child::killed(store, setup.sessions)?;
        let answer = child::ask("open", store, &[])?;
        opened.push(answer.one("seconds")?);
        replayed = answer.one("replayed")?;
        eprintln!("killed with {} in the tail, {replayed} events replayed", mib(tail));
    }
    let work = format!("open there after a kill with a full tail ({replayed} events replayed)");
    line(&work, "under 1,000 ms", &milliseconds(&opened));
    Ok(())
}

fn listing(setup: &Setup, store: &Path) -> Outcome<()> {
    let (mut first, mut whole, mut page) = (Vec::new(), Vec::new(), Vec::new());
    for _ in 0..ROUNDS {
        let answer = child::ask("list", store, &[setup.many])?;
        first.push(answer.one("first page")?);
        page.push(answer.one("page in the middle")?);
        whole.push(answer.one("whole")?);
    }
    let sessions = setup.many;
    line(
        &format!("{sessions} sessions: first page of 100, from the return of open"),
        "under 50 ms",
        &milliseconds(&first),
    );
    line("a page of 100 in the middle", "-", &milliseconds(&page));
    line("all of them", "-", &milliseconds(&whole));
    Ok(())
}

fn milliseconds(seconds: &[f64]) -> String {
    let least = seconds.iter().copied().fold(f64::INFINITY, f64::min);
    let most = seconds.iter().copied().fold(0.0, f64::max);
    format!("{:.1} ms ({:.1} to {:.1})", median(seconds) * 1e3, least * 1e3, most * 1e3)
}

fn mib(bytes: f64) -> String {
    format!("{:.1} MiB", bytes / f64::from(1 << 20))
}
