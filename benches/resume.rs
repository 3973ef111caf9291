//! What a harness waits for when it comes back to a session: its messages, its figures. Prints one table.
//!
//! Each row compares works that are done in turn, each on a store that was just opened. `cargo bench --bench resume` has
//! sessions of 1,000,000 events, and with `SESSIONLOG_BENCH_LONG=1` one of ten times as many; `cargo test` shows with
//! small ones that all of it runs.
#![allow(clippy::print_stdout, clippy::print_stderr, reason = "it has a table to print")]

mod support;

use std::hint::black_box;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use sessionlog::{Append, NewEvent, NewSession, Seq, Session, SessionId, Store, StoreOptions};

use support::events::new_event;
use support::trace::{Trace, What};

/// As told nowhere else: the trace with nothing replaced, the same with one replace, and that ten times as long.
const PLAIN: &str = "plain";
const COMPACTED: &str = "compacted";
const LONG: &str = "compacted, ten times as long";
/// How many turns a compaction leaves.
const TURNS_LEFT: usize = 50;
/// The events of one more turn.
const TURN: usize = 58;

fn main() {
    // `cargo bench` says so; `cargo test` does not.
    let in_full = std::env::args().any(|argument| argument == "--bench");
    let with_long = !in_full || std::env::var_os("SESSIONLOG_BENCH_LONG").is_some();
    let (events, rounds) = if in_full { (1_000_000, 7) } else { (6_000, 1) };
    let folder =
        tempfile::tempdir_in(PathBuf::from(env!("CARGO_TARGET_TMPDIR"))).expect("a folder below target");
    let path = folder.path().join("store");
    fill(&path, events, with_long);
    let bench = Resume { path, rounds };
    let ms = |seconds: f64| format!("{:.2} ms", seconds * 1e3);

    println!("{events} events, medians of {rounds}; least and greatest ratio of a pair in parentheses");
    println!("| work, store just opened | bar | measured |\n| --- | --- | --- |");

    let compacted = |id| move |bench: &Resume| bench.messages(id);
    let second = if with_long { LONG } else { COMPACTED };
    let (long, short, ratio) = bench.pairs(compacted(second), compacted(COMPACTED));
    println!("| messages, all but {TURNS_LEFT} turns compacted | under 10 ms | {} |", ms(short));
    if with_long {
        let measured = format!("{ratio}; {} against {}", ms(long), ms(short));
        let ratio_work = "the same, ten times as long, against that";
        println!("| {ratio_work} | 1 × within noise | {measured} |");
    }

    let (messages, read, ratio) = bench.pairs(|bench| bench.messages(PLAIN), Resume::read);
    println!(
        "| messages, nothing compacted, against reading all | at most 0.5 × | {ratio}; {} and {} |",
        ms(messages),
        ms(read)
    );

    let (figures, read, ratio) = bench.pairs(Resume::statistics, Resume::read);
    println!(
        "| statistics against reading all | at most 1.3 × | {ratio}; {} and {} |",
        ms(figures),
        ms(read)
    );

    for (id, work) in [
        (COMPACTED, "compacted: `messages` of the handle"),
        (PLAIN, "nothing compacted: a surface, advanced"),
    ] {
        let again = bench.again(id);
        println!("| messages after {TURN} more events, {work} | under 1 ms | {} |", ms(again));
    }
}

/// A store with the sessions, and how often each work is done.
struct Resume {
    path: PathBuf,
    rounds: usize,
}

/// Times its own work, on a store that it opens.
type Work<'a> = dyn Fn(&Resume) -> f64 + 'a;

impl Resume {
    /// Does both works in turn. Returns their medians, and the ratios of the pairs.
    fn pairs(&self, a: impl Fn(&Self) -> f64, b: impl Fn(&Self) -> f64) -> (f64, f64, String) {
        let works: [&Work<'_>; 2] = [&a, &b];
        let mut figures = [Vec::new(), Vec::new()];
        for round in 0..=self.rounds {
            for (work, figures) in works.iter().zip(&mut figures) {
                let seconds = work(self);
                // The first round fills the page cache.
                if round > 0 {
                    figures.push(seconds);
                }
            }
        }
        let [a, b] = figures;
        let mut ratios: Vec<f64> = a.iter().zip(&b).map(|(a, b)| a / b).collect();
        let middle = median(&mut ratios);
        let (least, most) = (ratios.first(), ratios.last());
        let ratio = format!("{middle:.2} × ({:.2} to {:.2})", least.expect("a pair"), most.expect("a pair"));
        (median(&mut a.clone()), median(&mut b.clone()), ratio)
    }

    fn with<T>(&self, id: &str, work: impl FnOnce(&Session) -> T) -> T {
        let store = open(&self.path);
        let session = store.session(&id_of(id)).expect("the session");
        let done = work(&session);
        store.close().expect("an orderly close");
        done
    }

    fn messages(&self, id: &str) -> f64 {
        self.with(id, |session| timed(|| session.messages().expect("messages")))
    }

    fn read(&self) -> f64 {
        self.with(PLAIN, |session| {
            timed(|| {
                for event in session.read_from(Seq::ZERO).expect("a read") {
                    black_box(event).expect("an event");
                }
            })
        })
    }

    fn statistics(&self) -> f64 {
        self.with(PLAIN, |session| timed(|| session.statistics().expect("figures")))
    }

    /// The median of asking once more after each of some turns.
    fn again(&self, id: &str) -> f64 {
        self.with(id, |session| {
            let mut turns = Trace::new(99);
            let mut surface = session.surface().expect("a surface");
            surface.messages();
            session.messages().expect("messages");
            let mut figures = Vec::new();
            for _ in 0..self.rounds {
                append(session, turns.by_ref().take(TURN).map(|event| new_event(&event)).collect());
                figures.push(timed(|| match id {
                    PLAIN => {
                        session.advance(&mut surface).expect("new events");
                        surface.messages().len()
                    }
                    _ => session.messages().expect("messages").len(),
                }));
            }
            median(&mut figures)
        })
    }
}

fn timed<T>(work: impl FnOnce() -> T) -> f64 {
    let start = Instant::now();
    let done = work();
    let seconds = start.elapsed().as_secs_f64();
    drop(black_box(done));
    seconds
}

fn median(figures: &mut [f64]) -> f64 {
    figures.sort_by(f64::total_cmp);
    figures.get(figures.len() / 2).copied().expect("a figure")
}

fn id_of(name: &str) -> SessionId {
    name.parse().expect("an id")
}

fn open(path: &Path) -> Store {
    StoreOptions::new().drain_age(Duration::from_secs(3600)).open(path).expect("the store opens")
}

fn append(session: &Session, batch: Vec<NewEvent>) {
    session.append_with(Append::new().sync(), batch).expect("an append");
}

fn fill(path: &Path, events: usize, with_long: bool) {
    let store = open(path);
    let session = |name| store.create(NewSession::with_id(id_of(name))).expect("a new session");
    append_trace(&session(PLAIN), events);
    let mut compacted = vec![(COMPACTED, events)];
    if with_long {
        compacted.push((LONG, 10 * events));
    }
    for (name, events) in compacted {
        let session = session(name);
        let results = append_trace(&session, events);
        // From the first message of all to the last one of a turn.
        let end = results.iter().rev().nth(TURNS_LEFT).copied().expect("more turns than are left");
        session
            .append(NewEvent::user_message("what was said so far").replace(Seq::new(2), end))
            .expect("a replace");
    }
    store.close().expect("an orderly close");
}

/// Appends the trace. Returns the seqs of results: the last of what stands of each turn.
fn append_trace(session: &Session, events: usize) -> Vec<Seq> {
    let mut trace = Trace::new(7).take(events).enumerate().peekable();
    let mut results = Vec::new();
    while trace.peek().is_some() {
        let mut batch = Vec::new();
        for (seq, event) in trace.by_ref().take(1_000) {
            if matches!(event.what, What::ToolResult { .. }) {
                results.push(Seq::new(seq as u64));
            }
            batch.push(new_event(&event));
        }
        append(session, batch);
    }
    results
}
