//! The bars of small events: what an acknowledgement takes.

use std::iter;
use std::sync::{Mutex, PoisonError};

use sessionlog::{Append, Session, Store};
use sessionlog_peers::Outcome;
use sessionlog_peers::events::new_event;
use sessionlog_peers::measure::{Ratio, interleave, median, seconds};
use sessionlog_peers::ours::{self, store_path};
use sessionlog_peers::plain_file::PlainFile;
use sessionlog_peers::sqlite::Sqlite;
use sessionlog_peers::trace::{Messages, TraceEvent};

use crate::Setup;
use crate::table::{Line, count, ratio};

const LINE_BYTES: usize = 200;
const BATCH: usize = 100;
const THREADS: usize = 8;

/// Messages of 200 bytes a line, as many as a round appends.
fn messages(number: usize) -> Vec<TraceEvent> {
    Messages::new(LINE_BYTES, 7).take(number).collect()
}

fn micros(seconds: f64, times: usize) -> f64 {
    seconds * 1e6 / times as f64
}

/// One thread, one event an append, Sync.
pub fn sync(setup: &Setup) -> Outcome<Vec<Line>> {
    let folder = setup.folder("sync")?;
    // Long enough for drains to take their share.
    let times = setup.size(20_000, 500);
    let messages = messages(times);
    let bytes = ours::journal_bytes_of(&messages[..1])?;

    let store = Store::open(store_path(&folder))?;
    let session = ours::session(&store, "one")?;
    let mut file = PlainFile::create(&folder.join("r"))?;
    let mut sqlite = Sqlite::open(&folder.join("sqlite"))?;
    let mut seq = 0;

    let figures = interleave(
        setup.rounds,
        &mut [
            &mut |_| {
                let taken = seconds(|| append_each(&session, Append::new().sync(), &messages))?;
                store.drain()?;
                Ok(micros(taken, times))
            },
            &mut |_| {
                let taken = seconds(|| (0..times).try_for_each(|_| file.append(&bytes)))?;
                Ok(micros(taken, times))
            },
            &mut |_| {
                let taken = seconds(|| {
                    messages.iter().try_for_each(|message| {
                        seq += 1;
                        sqlite.append("one", seq, message)
                    })
                })?;
                Ok(micros(taken, times))
            },
        ],
    )?;
    store.close()?;

    let to_r = Ratio::of(&figures[0], &figures[1]);
    let to_sqlite = Ratio::of(&figures[0], &figures[2]);
    Ok(vec![
        Line::new(
            "1 thread, one 200-byte event an append, Sync",
            "at most 1.1 x R",
            to_r.median <= 1.1,
            format!(
                "{} x R; ours {:.0} µs, R {:.0} µs ({} bytes, as our journal writes them)",
                ratio(to_r),
                median(&figures[0]),
                median(&figures[1]),
                bytes.len(),
            ),
        ),
        Line::note(
            "the same beside SQLite",
            format!("{} x SQLite's {:.0} µs", ratio(to_sqlite), median(&figures[2])),
        ),
    ])
}

fn append_each(session: &Session, how: Append, messages: &[TraceEvent]) -> Outcome<()> {
    for message in messages {
        session.append_with(how, iter::once(new_event(message)))?;
    }
    Ok(())
}

/// One thread, one event an append, Buffered.
pub fn buffered(setup: &Setup) -> Outcome<Vec<Line>> {
    let folder = setup.folder("buffered")?;
    let times = setup.size(300_000, 10_000);
    let messages = messages(times);
    let store = Store::open(store_path(&folder))?;
    let session = ours::session(&store, "one")?;
    let mut flushes = Vec::new();
    let figures = interleave(
        setup.rounds,
        &mut [&mut |_| {
            let taken = seconds(|| append_each(&session, Append::new().buffered(), &messages))?;
            let flush = seconds(|| Ok(store.flush()?))?;
            flushes.push(flush);
            Ok(times as f64 / (taken + flush))
        }],
    )?;
    store.close()?;
    let rate = median(&figures[0]);
    Ok(vec![Line::new(
        "the same, Buffered",
        "at least 100,000 events/s",
        rate >= 100_000.0,
        format!(
            "{} events/s, with drains under way and a flush at the end of each {} events (it takes {:.1} ms)",
            count(rate),
            count(times as f64),
            median(&flushes) * 1e3,
        ),
    )])
}

/// Eight threads with a session each, Sync, beside one thread and beside SQLite.
pub fn threads(setup: &Setup) -> Outcome<Vec<Line>> {
    let folder = setup.folder("threads")?;
    let one = setup.size(6_000, 200);
    let each = setup.size(3_000, 100);
    let messages = messages(one.max(each));

    let store = Store::open(store_path(&folder))?;
    let alone = ours::session(&store, "alone")?;
    let sessions =
        (0..THREADS).map(|thread| ours::session(&store, &thread.to_string())).collect::<Outcome<Vec<_>>>()?;
    let path = folder.join("sqlite-own");
    let mut own = (0..THREADS).map(|_| Sqlite::open(&path)).collect::<Outcome<Vec<_>>>()?;
    let shared = Mutex::new(Sqlite::open(&folder.join("sqlite-shared"))?);

    let sqlite_each = each / 2;
    let figures = interleave(
        setup.rounds,
        &mut [
            &mut |_| {
                let taken = seconds(|| append_each(&alone, Append::new().sync(), &messages[..one]))?;
                store.drain()?;
                Ok(one as f64 / taken)
            },
            &mut |_| {
                let taken = seconds(|| {
                    on_threads(sessions.iter(), |session| {
                        append_each(session, Append::new().sync(), &messages[..each])
                    })
                })?;
                store.drain()?;
                Ok((THREADS * each) as f64 / taken)
            },
            &mut |round| {
                let taken = seconds(|| {
                    on_threads(own.iter_mut().enumerate(), |(thread, sqlite)| {
                        let name = thread.to_string();
                        ((round * sqlite_each) as u64..)
                            .zip(&messages[..sqlite_each])
                            .try_for_each(|(seq, message)| sqlite.append(&name, seq, message))
                    })
                })?;
                Ok((THREADS * sqlite_each) as f64 / taken)
            },
            &mut |round| {
                let taken = seconds(|| {
                    on_threads(0..THREADS, |thread| {
                        let name = thread.to_string();
                        ((round * sqlite_each) as u64..).zip(&messages[..sqlite_each]).try_for_each(
                            |(seq, message)| {
                                let mut sqlite = shared.lock().unwrap_or_else(PoisonError::into_inner);
                                sqlite.append(&name, seq, message)
                            },
                        )
                    })
                })?;
                Ok((THREADS * sqlite_each) as f64 / taken)
            },
        ],
    )?;
    store.close()?;

    let (own, shared) = (median(&figures[2]), median(&figures[3]));
    let better = if own > shared { &figures[2] } else { &figures[3] };
    let to_one = Ratio::of(&figures[1], &figures[0]);
    let to_sqlite = Ratio::of(&figures[1], better);
    let work = "8 threads, 8 sessions, Sync";
    Ok(vec![
        Line::new(
            work,
            "at least 3 x one thread",
            to_one.median >= 3.0,
            format!(
                "{} x one thread; {} events/s, one thread {}",
                ratio(to_one),
                count(median(&figures[1])),
                count(median(&figures[0])),
            ),
        ),
        Line::new(
            work,
            "at least 3 x SQLite with 8",
            to_sqlite.median >= 3.0,
            format!(
                "{} x SQLite; SQLite with a connection each {} events/s, one behind a mutex {} (the better counts)",
                ratio(to_sqlite),
                count(own),
                count(shared),
            ),
        ),
    ])
}

/// Runs `work` with each of the items on a thread of its own.
fn on_threads<T: Send>(
    items: impl Iterator<Item = T>,
    work: impl Fn(T) -> Outcome<()> + Sync,
) -> Outcome<()> {
    std::thread::scope(|scope| {
        let work = &work;
        let threads: Vec<_> = items.map(|item| scope.spawn(move || work(item))).collect();
        threads.into_iter().try_for_each(|thread| thread.join().map_err(|_| "a thread panicked")?)
    })
}

/// Batches of 100, Sync.
pub fn batch(setup: &Setup) -> Outcome<Vec<Line>> {
    let folder = setup.folder("batch")?;
    let times = setup.size(2_000, 50);
    let messages = messages(times * BATCH);
    let bytes = ours::journal_bytes_of(&messages[..BATCH])?;

    let store = Store::open(store_path(&folder))?;
    let session = ours::session(&store, "one")?;
    let mut file = PlainFile::create(&folder.join("r"))?;
    let mut sqlite = Sqlite::open(&folder.join("sqlite"))?;
    let mut seq = 0;

    let figures = interleave(
        setup.rounds,
        &mut [
            &mut |_| {
                let taken = seconds(|| {
                    messages.chunks(BATCH).try_for_each(|batch| ours::append_batch(&session, batch))
                })?;
                store.drain()?;
                Ok(micros(taken, times))
            },
            &mut |_| {
                let taken = seconds(|| (0..times).try_for_each(|_| file.append(&bytes)))?;
                Ok(micros(taken, times))
            },
            &mut |_| {
                let taken = seconds(|| {
                    messages.chunks(BATCH).try_for_each(|batch| {
                        let first = seq;
                        seq += BATCH as u64;
                        sqlite.append_batch("one", first, batch)
                    })
                })?;
                Ok(micros(taken, times))
            },
        ],
    )?;
    store.close()?;

    let to_r = Ratio::of(&figures[0], &figures[1]);
    let to_sqlite = Ratio::of(&figures[2], &figures[0]);
    let work = "batches of 100, Sync";
    Ok(vec![
        Line::new(
            work,
            "at most 1.4 x R's batch",
            to_r.median <= 1.4,
            format!(
                "{} x R; ours {:.0} µs, R {:.0} µs ({} bytes, as our journal writes them)",
                ratio(to_r),
                median(&figures[0]),
                median(&figures[1]),
                bytes.len(),
            ),
        ),
        Line::new(
            work,
            "at least 1.3 x SQLite",
            to_sqlite.median >= 1.3,
            format!("{} x SQLite's events/s; SQLite {:.0} µs a batch", ratio(to_sqlite), median(&figures[2])),
        ),
    ])
}
