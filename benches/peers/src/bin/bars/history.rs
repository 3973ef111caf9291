//! The bars of a long history: a real trace of 1,000,000 events.

use std::path::{Path, PathBuf};
use std::time::Instant;

use sessionlog::{Append, Seq, Session, Store};
use sessionlog_peers::Outcome;
use sessionlog_peers::events::new_event;
use sessionlog_peers::measure::{Ratio, interleave, median, seconds};
use sessionlog_peers::ours::{self, Sizes, store_path};
use sessionlog_peers::process::bytes_written;
use sessionlog_peers::sqlite::Sqlite;
use sessionlog_peers::trace::{Messages, Trace, TraceEvent};

use crate::Setup;
use crate::child::{self, Answer};
use crate::table::{Line, count, mib, ratio};

const BATCH: usize = 1_000;
const SEED: u64 = 7;
/// The session that holds the trace.
pub const ID: &str = "trace";

fn events(setup: &Setup) -> usize {
    setup.size(1_000_000, 20_000)
}

/// Appends the trace in batches and closes the store.
fn append_trace(path: &Path, trace: impl Iterator<Item = TraceEvent>) -> Outcome<()> {
    let store = Store::open(path)?;
    let session = ours::session(&store, ID)?;
    append_all(&session, trace)?;
    store.close()?;
    Ok(())
}

/// Appends the trace in batches.
pub fn append_all(session: &Session, mut trace: impl Iterator<Item = TraceEvent>) -> Outcome<()> {
    loop {
        let batch: Vec<TraceEvent> = trace.by_ref().take(BATCH).collect();
        if batch.is_empty() {
            return Ok(());
        }
        ours::append_batch(session, &batch)?;
    }
}

/// A closed store that holds so many events of the trace.
fn store_of_trace(setup: &Setup, name: &str, events: usize) -> Outcome<PathBuf> {
    let path = store_path(&setup.folder(name)?);
    append_trace(&path, Trace::new(SEED).take(events))?;
    setup.settle();
    Ok(path)
}

/// The trace in batches, until closed.
pub fn trace(setup: &Setup) -> Outcome<Vec<Line>> {
    let number = events(setup);
    let trace: Vec<TraceEvent> = Trace::new(SEED).take(number).collect();
    let rate = |taken: f64| number as f64 / taken;
    let mut sizes = None;
    let mut closes = Vec::new();
    let mut sqlite_bytes = 0;

    let figures = interleave(
        setup.rounds,
        &mut [
            &mut |_| {
                let path = store_path(&setup.folder("trace")?);
                let store = Store::open(&path)?;
                let session = ours::session(&store, ID)?;
                let appends = seconds(|| {
                    trace.chunks(BATCH).try_for_each(|batch| ours::append_batch(&session, batch))
                })?;
                let close = seconds(|| Ok(store.close()?))?;
                closes.push(close);
                drop((session, store));
                sizes = Some(Sizes::of(&path)?);
                setup.settle();
                Ok(rate(appends + close))
            },
            &mut |_| {
                let path = setup.folder("trace-sqlite")?.join("sqlite");
                let mut sqlite = Sqlite::open(&path)?;
                let taken = seconds(|| {
                    for (at, batch) in trace.chunks(BATCH).enumerate() {
                        sqlite.append_batch(ID, (at * BATCH) as u64, batch)?;
                    }
                    sqlite.close()
                })?;
                sqlite_bytes = path.metadata()?.len();
                setup.settle();
                Ok(rate(taken))
            },
        ],
    )?;

    let to_sqlite = Ratio::of(&figures[0], &figures[1]);
    let sizes = sizes.ok_or("nothing was measured")?;
    let per_event = sizes.engine as f64 / number as f64;
    let work = format!("{} events of a trace, batches of 1,000, Sync, until closed", count(number as f64));
    Ok(vec![
        Line::new(
            &work,
            "at least 2.5 x SQLite",
            to_sqlite.median >= 2.5,
            format!(
                "{} x SQLite; {} events/s, of which closing {:.0} ms; SQLite {} events/s",
                ratio(to_sqlite),
                count(median(&figures[0])),
                median(&closes) * 1e3,
                count(median(&figures[1])),
            ),
        ),
        Line::new(
            &work,
            "at most 48 B an event in the engine's folder",
            per_event <= 48.0,
            format!("{per_event:.1} B; SQLite {:.0} B", sqlite_bytes as f64 / number as f64),
        ),
        Line::new(
            &work,
            "journal's folder under 10 MiB",
            sizes.journal < 10 << 20,
            mib(sizes.journal as f64),
        ),
    ])
}

/// Reading the trace back whole, decoded, in a process of its own.
pub fn read(setup: &Setup) -> Outcome<Vec<Line>> {
    let number = events(setup) as f64;
    let path = store_of_trace(setup, "read", events(setup))?;
    let answer = child::ask("read", &path, setup.rounds)?;
    // A history so long that what grows with it shows beside what fills up once.
    let long_path = store_of_trace(setup, "read-long", 4 * events(setup))?;
    let long = child::ask("read-small-cache", &long_path, 1)?;

    let per_event = median(answer.all("seconds")) * 1e6 / number;
    let of_thread = median(answer.all("thread's seconds")) * 1e6 / number;
    let first = answer.all("seconds").first().copied().unwrap_or(f64::NAN) * 1e6 / number;
    let grown = long.one("resident after the last read")? - long.one("resident after a quarter")?;
    let work = "reading that back whole, decoded";
    Ok(vec![
        Line::new(
            work,
            "under 0.35 µs an event",
            per_event < 0.35,
            format!(
                "{per_event:.3} µs ({of_thread:.3} on the processor); the first after open {first:.3} µs; {} events",
                count(answer.one("events")?)
            ),
        ),
        Line::new(
            format!("reading {} events", count(4.0 * number)),
            "memory flat (less than 8 MiB more from a quarter on, with an engine's cache of 4 MiB)",
            grown < f64::from(8 << 20),
            format!("{} more: {}", mib(grown), memory_while_reading(&long)?),
        ),
        Line::note(
            format!("reading {} events, default cache of 64 MiB", count(number)),
            memory_while_reading(&answer)?,
        ),
    ])
}

fn memory_while_reading(answer: &Answer) -> Outcome<String> {
    Ok(format!(
        "{} open, {} after a quarter, {} at the end",
        mib(answer.one("resident after open")?),
        mib(answer.one("resident after a quarter")?),
        mib(answer.one("resident after the last read")?),
    ))
}

/// The last 100 events, from blocks and from the tail.
pub fn last(setup: &Setup) -> Outcome<Vec<Line>> {
    let path = store_of_trace(setup, "last", events(setup))?;
    let times = setup.size(500, 20);
    let store = ours::undrained().open(&path)?;
    let session = store.session(&ID.parse()?)?;
    let timed = |what: &str| -> Outcome<Line> {
        let mut rounds = Vec::new();
        for _ in 0..setup.rounds {
            let taken: Outcome<Vec<f64>> = (0..times).map(|_| last_100(&session)).collect();
            rounds.push(median(&taken?) * 1e6);
        }
        let micros = median(&rounds);
        Ok(Line::new(
            format!("last(100) of that session, {what}"),
            "under 80 µs",
            micros < 80.0,
            format!("{micros:.1} µs"),
        ))
    };
    let drained = timed("drained")?;
    append_all(&session, Trace::new(SEED + 1).take(50))?;
    let both = timed("50 in blocks, 50 in the tail")?;
    append_all(&session, Trace::new(SEED + 2).take(5_000))?;
    let tail = timed("in the tail")?;
    store.close()?;
    Ok(vec![drained, both, tail])
}

fn last_100(session: &Session) -> Outcome<f64> {
    let mut read = 0;
    let taken = seconds(|| {
        for event in session.last(100)? {
            std::hint::black_box(event?);
            read += 1;
        }
        Ok(())
    })?;
    if read == 100 { Ok(taken) } else { Err(format!("read {read} events").into()) }
}

/// A fork at the end, beside one Sync append to the same session.
pub fn fork(setup: &Setup) -> Outcome<Vec<Line>> {
    let path = store_of_trace(setup, "fork", events(setup))?;
    let times = setup.size(1_000, 20);
    let messages: Vec<TraceEvent> = Messages::new(200, SEED).take(times).collect();
    let store = Store::open(&path)?;
    let session = store.session(&ID.parse()?)?;
    let figures = interleave(
        setup.rounds,
        &mut [
            &mut |_| {
                let taken = seconds(|| forks(&session, times))?;
                store.drain()?;
                Ok(taken * 1e6 / times as f64)
            },
            &mut |_| {
                let taken = seconds(|| {
                    for message in &messages {
                        session.append_with(Append::new().sync(), [new_event(message)])?;
                    }
                    Ok(())
                })?;
                store.drain()?;
                Ok(taken * 1e6 / times as f64)
            },
        ],
    )?;

    let long = bytes_of_forks(&store, &session, times)?;
    let short = ours::session(&store, "short")?;
    append_all(&short, Trace::new(SEED).take(100))?;
    let short = bytes_of_forks(&store, &short, times)?;
    store.close()?;

    let to_append = Ratio::of(&figures[0], &figures[1]);
    let work = "fork of that session at its end";
    Ok(vec![
        Line::new(
            work,
            "at most 1.2 x one Sync append",
            to_append.median <= 1.2,
            format!(
                "{} x; fork {:.0} µs, append {:.0} µs",
                ratio(to_append),
                median(&figures[0]),
                median(&figures[1])
            ),
        ),
        Line::new(
            work,
            "no event bytes written (as many bytes as for a parent of 100 events)",
            long <= short * 1.2,
            format!(
                "{} bytes a fork until drained, with a parent of 100 events {}",
                count(long),
                count(short)
            ),
        ),
    ])
}

fn forks(session: &Session, times: usize) -> Outcome<()> {
    for _ in 0..times {
        session.fork(Seq::new(session.len()))?;
    }
    Ok(())
}

/// Returns the bytes that this process writes for a fork, its drain counted.
fn bytes_of_forks(store: &Store, session: &Session, times: usize) -> Outcome<f64> {
    store.drain()?;
    let before = bytes_written()?;
    forks(session, times)?;
    store.drain()?;
    Ok((bytes_written()? - before) as f64 / times as f64)
}

/// The memory of a whole process that has a store of the trace open and appends.
pub fn memory(setup: &Setup) -> Outcome<Vec<Line>> {
    let path = store_path(&setup.folder("memory")?);
    let start = Instant::now();
    let writes = child::ask("write", &path, events(setup))?;
    let taken = start.elapsed().as_secs_f64();
    let appends = child::ask("append", &path, events(setup) / 10)?;
    let bar = 120e6;
    let line = |work: String, answer: &Answer| -> Outcome<Line> {
        let peak = answer.one("peak")?;
        Ok(Line::new(
            work,
            "under 120 MB",
            peak < bar,
            format!("peak {}, at the end {}", mib(peak), mib(answer.one("resident")?)),
        ))
    };
    let number = events(setup) as f64;
    Ok(vec![
        line(format!("process that appends {} events ({taken:.1} s)", count(number)), &writes)?,
        line(format!("process that opens them and appends {} more", count(number / 10.0)), &appends)?,
    ])
}
