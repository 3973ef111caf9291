//! One measurement, in a process of its own: `peers child STORE WORK FOLDER full|quick`. Prints a figure a line.

use std::path::Path;
use std::sync::Barrier;
use std::time::Instant;

use sessionlog_peers::Outcome;
use sessionlog_peers::measure::{median, seconds, used_bytes};
use sessionlog_peers::ours::Sizes;
use sessionlog_peers::peer::{Fjall, Jsonl, Peer, Redb, Sessionlog, SqlitePeer, Writer};
use sessionlog_peers::process::Memory;
use sessionlog_peers::trace::{Messages, Trace, TraceEvent};

use crate::work::OURS;

/// The long session.
const LONG: &str = "trace";
const BATCH: usize = 1_000;
/// How often a read that takes microseconds is repeated.
const REPEATS: usize = 51;

/// How much is done.
#[derive(Clone, Copy, Debug)]
struct Sizing {
    quick: bool,
}

impl Sizing {
    fn of(self, full: usize, quick: usize) -> usize {
        if self.quick { quick } else { full }
    }

    fn events(self) -> usize {
        self.of(1_000_000, 20_000)
    }
}

/// Measures what the arguments say.
pub fn run(mut words: impl Iterator<Item = String>) -> Outcome<()> {
    let mut word = || words.next().ok_or("child needs STORE WORK FOLDER full|quick");
    let (peer, work, folder, size) = (word()?, word()?, word()?, word()?);
    let folder = Path::new(&folder);
    let sizing = Sizing { quick: size == "quick" };
    match peer.as_str() {
        OURS if work == "fork" => our_forks(folder, sizing),
        OURS => on::<Sessionlog>(&work, folder, sizing),
        "sqlite" => on::<SqlitePeer>(&work, folder, sizing),
        "jsonl" => on::<Jsonl>(&work, folder, sizing),
        "fjall" => on::<Fjall>(&work, folder, sizing),
        "redb" => on::<Redb>(&work, folder, sizing),
        _ => Err(format!("no such store: {peer}").into()),
    }
}

fn on<P: Peer>(work: &str, folder: &Path, sizing: Sizing) -> Outcome<()> {
    match work {
        "append" => append::<P>(folder, sizing, 1),
        "append-8" => append::<P>(folder, sizing, 8),
        "batch" => batches::<P>(folder, sizing),
        "load" => load::<P>(folder, sizing),
        "read" => read::<P>(folder, sizing),
        "messages" => {
            let peer = P::open(folder)?;
            say("messages", seconds(|| at_least(peer.messages(LONG)? as u64, sizing.events() as u64 / 20))?);
            peer.close()
        }
        "fork" => fork::<P>(folder),
        "fill" => {
            let peer = P::open(folder)?;
            peer.fill(sessions(sizing), &message(1))?;
            peer.close()
        }
        "list" => list::<P>(folder, sizing),
        _ => Err(format!("no such work: {work}").into()),
    }
}

fn say(key: &str, figure: f64) {
    println!("{key}={figure}");
}

/// A read that gives less than it should is no read.
fn exactly(found: u64, expected: u64) -> Outcome<()> {
    if found == expected { Ok(()) } else { Err(format!("{found} instead of {expected}").into()) }
}

fn at_least(found: u64, expected: u64) -> Outcome<()> {
    if found >= expected { Ok(()) } else { Err(format!("{found}, at least {expected} expected").into()) }
}

fn message(seed: u64) -> TraceEvent {
    Messages::new(200, seed).next().expect("it has no end")
}

fn sessions(sizing: Sizing) -> usize {
    sizing.of(100_000, 1_000)
}

/// Durable appends of one event each, by so many writers at once: the time from one to the next.
fn append<P: Peer>(folder: &Path, sizing: Sizing, writers: usize) -> Outcome<()> {
    let peer = P::open(folder)?;
    let each = sizing.of(if writers == 1 { 2_000 } else { 500 }, 50);
    let start = Barrier::new(writers + 1);
    let taken = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..writers)
            .map(|n| {
                let (peer, start) = (&peer, &start);
                scope.spawn(move || {
                    let events: Vec<TraceEvent> = Messages::new(200, n as u64).take(each).collect();
                    let session = format!("writer-{n}");
                    let writer = peer.writer(&session);
                    start.wait();
                    let mut writer = writer?;
                    events.iter().try_for_each(|event| writer.append(event))
                })
            })
            .collect();
        start.wait();
        let started = Instant::now();
        threads.into_iter().try_for_each(|thread| thread.join().expect("no panic"))?;
        Outcome::Ok(started.elapsed())
    })?;
    say(if writers == 1 { "append" } else { "append-8" }, taken.as_secs_f64() / (writers * each) as f64);
    peer.close()
}

fn batches<P: Peer>(folder: &Path, sizing: Sizing) -> Outcome<()> {
    let peer = P::open(folder)?;
    let count = sizing.of(300, 10);
    let events: Vec<TraceEvent> = Messages::new(200, 3).take(100 * count).collect();
    {
        let mut writer = peer.writer("batches")?;
        let taken = seconds(|| events.chunks(100).try_for_each(|batch| writer.append_batch(batch)))?;
        say("batch", taken / count as f64);
    }
    peer.close()
}

fn load<P: Peer>(folder: &Path, sizing: Sizing) -> Outcome<()> {
    let mut events = Vec::with_capacity(sizing.events());
    events.extend(Trace::new(7).take(sizing.events()));
    let before = Memory::now()?.resident;
    let peer = P::open(folder)?;
    let taken = seconds(|| {
        {
            let mut writer = peer.writer(LONG)?;
            events.chunks(BATCH).try_for_each(|batch| writer.append_batch(batch))?;
        }
        peer.close()
    })?;
    say("load", taken / sizing.events() as f64);
    say("load-memory", Memory::now()?.peak.saturating_sub(before) as f64);
    Ok(())
}

fn read<P: Peer>(folder: &Path, sizing: Sizing) -> Outcome<()> {
    let events = sizing.events() as u64;
    let before = Memory::now()?.resident;
    let mut opened = None;
    let taken = seconds(|| {
        let peer = P::open(folder)?;
        exactly(peer.length(LONG)?, events)?;
        opened = Some(peer);
        Ok(())
    })?;
    let peer = opened.ok_or("nothing was opened")?;
    say("open", taken);
    say("last", repeated(|| exactly(peer.last(LONG, 100)?, 100))?);
    say("middle", repeated(|| exactly(peer.read(LONG, events / 2..events / 2 + 100)?, 100))?);
    say("read", seconds(|| exactly(peer.read(LONG, 0..events)?, events))? / events as f64);
    say("read-memory", Memory::now()?.peak.saturating_sub(before) as f64);
    peer.close()
}

fn repeated(mut work: impl FnMut() -> Outcome<()>) -> Outcome<f64> {
    let figures: Vec<f64> = (0..REPEATS).map(|_| seconds(&mut work)).collect::<Outcome<_>>()?;
    Ok(median(&figures))
}

fn fork<P: Peer>(folder: &Path) -> Outcome<()> {
    let before = used_bytes(folder)?;
    let peer = P::open(folder)?;
    let length = peer.length(LONG)?;
    say("fork", seconds(|| peer.fork(LONG, "fork", &message(2)))?);
    exactly(peer.length("fork")?, length + 1)?;
    peer.close()?;
    say("fork-disk", used_bytes(folder)?.saturating_sub(before) as f64);
    Ok(())
}

/// Of ours a thousand: one alone would show the engine's granularity, not what a fork takes.
fn our_forks(folder: &Path, sizing: Sizing) -> Outcome<()> {
    let count = sizing.of(1_000, 20);
    let before = Sizes::of(&sessionlog_peers::ours::store_path(folder))?.engine;
    let peer = Sessionlog::open(folder)?;
    let length = peer.length(LONG)?;
    let mut taken = Vec::with_capacity(count);
    for n in 0..count {
        taken.push(seconds(|| peer.fork(LONG, &format!("fork-{n}"), &message(n as u64)))?);
    }
    exactly(peer.length("fork-0")?, length + 1)?;
    peer.close()?;
    let after = Sizes::of(&sessionlog_peers::ours::store_path(folder))?.engine;
    say("fork", median(&taken));
    say("fork-disk", after.saturating_sub(before) as f64 / count as f64);
    Ok(())
}

fn list<P: Peer>(folder: &Path, sizing: Sizing) -> Outcome<()> {
    let peer = P::open(folder)?;
    say("list-page", seconds(|| exactly(peer.list(50)? as u64, 50))?);
    let count = sessions(sizing);
    say("list", seconds(|| exactly(peer.list(count)? as u64, count as u64))?);
    peer.close()
}
