//! The program under test of a crash laboratory: a writer that says what it submits and what was acknowledged, and a
//! reader that says what is there. The laboratory kills the writer, or cuts the power under what it wrote.
//!
//! ```text
//! lab-write DIR SEED [lives=N] [ops=N] [kill] [deletes] [rewrites]
//!                                               sub S A B | ack S B | del S | deld S
//! lab-read DIR [die]                            have S A B | bad S N why | end
//! ```
//! Streams are numbers; each is a session, some of them forks of others. `ops`: appends of a thread in one life;
//! `lives`: how often the store is opened, closed or dropped in one process; both endless by default. With `kill`
//! Buffered appends count as acknowledged when they return: a kill cannot lose them, a power cut can. With `deletes`
//! forks are deleted, also such as have forks: `del` says that one is submitted, `deld` that it is acknowledged. A stream
//! that is gone must not be had any more, one that was submitted may be had (all of it) or not. With `rewrites` the
//! store is rewritten before some of the lives, and compacted within them. With `die` the
//! reader, before it answers, twice lets another process append to every session and die, and checks what that one
//! was told; its events are marked, and are not counted in the answer.

use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use sessionlog::{Append, Error, Event, NewSession, Seq, Session, SessionId, Severity, Store, StoreOptions};

use crate::dice::Dice;
use crate::events::{self, Said};
use crate::say;

const THREADS: u64 = 4;
/// Streams of a thread's own; forks have numbers above.
const STREAMS: u64 = 2;
const FORKS: u64 = 1_000;

fn id(stream: u64) -> SessionId {
    stream.to_string().parse().unwrap()
}

fn word(stream: u64, seq: u64) -> u64 {
    Dice::new(stream.wrapping_mul(0x0100_0000_01B3) ^ seq).next()
}

/// The event at `seq` of a stream.
fn event(stream: u64, seq: u64) -> Said {
    let word = word(stream, seq);
    let body = match word % 400 {
        0 => events::letters(word, 200_000),
        1..=3 => events::letters(word, 20_000 + (word >> 20) as usize % 20_000),
        4..=20 => events::letters(word, 3_000),
        _ => format!("{stream} {seq} {word}"),
    };
    let said = if word >> 32 & 1 == 0 { events::chunk(&body) } else { events::user(&body) };
    said.at(events::NOON + (word >> 40) as i64)
}

/// An event that a reader's helper appends behind the stream's own.
fn extra(stream: u64, seq: u64) -> Said {
    events::custom(&format!(r#","extra":"{stream} {seq}""#))
}

struct Life {
    store: Store,
    ops: u64,
    buffered_is_safe: bool,
    deletes: bool,
    rewrites: bool,
    /// Fork numbers in this process.
    forks: AtomicU64,
}

pub(crate) fn write(folder: &Path, seed: u64, options: &[&str]) {
    let number = |name: &str| {
        let found = options.iter().find_map(|option| option.strip_prefix(name)?.strip_prefix('='));
        found.map_or(u64::MAX, |text| text.parse().unwrap())
    };
    let lives = number("lives");
    let mut dice = Dice::new(seed);
    for life in 0..lives {
        if options.contains(&"rewrites") && folder.exists() && dice.chance(1, 2) {
            match Store::rewrite(folder) {
                // Its making was interrupted.
                Ok(_) | Err(Error::NoStore { .. }) => {}
                Err(error) => panic!("rewrite: {error:?}"),
            }
        }
        let store = opened(folder, &mut dice);
        let ops = match number("ops") {
            u64::MAX if lives == u64::MAX && dice.chance(1, 2) => 1 + dice.below(300),
            ops => ops,
        };
        let forks = AtomicU64::new(FORKS + (seed % 1_000_000 * 100 + life % 100) * 100);
        let (buffered_is_safe, deletes) = (options.contains(&"kill"), options.contains(&"deletes"));
        let rewrites = options.contains(&"rewrites");
        let one = Life { store, ops, buffered_is_safe, deletes, rewrites, forks };
        std::thread::scope(|scope| {
            for thread in 0..THREADS {
                let (one, dice) = (&one, Dice::new(seed ^ life << 32 ^ thread << 48));
                scope.spawn(move || one.thread(thread, dice));
            }
        });
        match dice.below(3) {
            0 => one.store.close().unwrap(),
            1 => drop(one),
            // The last life ends without a word.
            _ if life + 1 == lives => std::process::exit(0),
            _ => drop(one),
        }
    }
}

fn opened(folder: &Path, dice: &mut Dice) -> Store {
    let millis = |n| Duration::from_millis(n);
    let mut options = StoreOptions::new().cache_bytes(8 << 20);
    if dice.chance(1, 2) {
        options = options.drain_age(millis(1 + dice.below(40)));
    }
    if dice.chance(1, 2) {
        options = options.sync_window(millis(1 + dice.below(10)));
    }
    if dice.chance(1, 3) {
        options = options.tail_bytes(300 << 10);
    }
    options.open(folder).unwrap()
}

fn open_session(store: &Store, stream: u64) -> Session {
    match store.create(NewSession::with_id(id(stream))) {
        Ok(session) => session,
        Err(Error::SessionExists { .. }) => store.session(&id(stream)).unwrap(),
        Err(error) => panic!("{stream}: {error:?}"),
    }
}

/// A stream as its only writer sees it.
struct Stream {
    number: u64,
    session: Session,
}

impl Life {
    fn thread(&self, thread: u64, mut dice: Dice) {
        let mut streams: Vec<Stream> = (0..STREAMS)
            .map(|n| {
                let number = thread * STREAMS + n;
                Stream { number, session: open_session(&self.store, number) }
            })
            .collect();
        for _ in 0..self.ops {
            let at = dice.below(streams.len() as u64) as usize;
            match dice.below(200) {
                0 => self.store.flush().unwrap(),
                1 => self.store.drain().unwrap(),
                5 if self.rewrites => drop(self.store.compact().unwrap()),
                // Long enough for a seal.
                2 => std::thread::sleep(Duration::from_millis(if dice.chance(1, 4) { 450 } else { 20 })),
                3 => {
                    if let Some(fork) = self.fork(&streams[at], &mut dice) {
                        // The newest few forks go on.
                        if streams.len() > 4 {
                            let old = streams.remove(STREAMS as usize);
                            if self.deletes && dice.chance(1, 2) {
                                self.delete(&old);
                            }
                        }
                        streams.push(fork);
                    }
                }
                4 if self.deletes && streams.len() > STREAMS as usize => {
                    let any = STREAMS + dice.below(streams.len() as u64 - STREAMS);
                    self.delete(&streams.remove(any as usize));
                }
                _ => self.append(&streams[at], &mut dice),
            }
        }
    }

    fn append(&self, stream: &Stream, dice: &mut Dice) {
        let first = stream.session.len();
        let count = match dice.below(20) {
            0..=11 => 1,
            12..=18 => 2 + dice.below(10),
            _ => 50 + dice.below(200),
        };
        let batch: Vec<Said> = (first..first + count).map(|seq| event(stream.number, seq)).collect();
        let how = match dice.below(4) {
            0 => Append::new().buffered(),
            1 => Append::new(),
            _ => Append::new().sync(),
        };
        let last = first + count - 1;
        say(&format!("sub {} {first} {last}", stream.number));
        let seqs =
            stream.session.append_with(how.expect(Seq::new(first)), batch.iter().map(Said::to_new)).unwrap();
        assert_eq!(seqs, Seq::new(first)..Seq::new(first + count));
        let safe = if self.buffered_is_safe { stream.session.len() } else { stream.session.durable_len() };
        if safe > 0 {
            say(&format!("ack {} {}", stream.number, safe - 1));
        }
    }

    fn delete(&self, stream: &Stream) {
        say(&format!("del {}", stream.number));
        self.store.delete(stream.session.id()).unwrap();
        say(&format!("deld {}", stream.number));
    }

    fn fork(&self, parent: &Stream, dice: &mut Dice) -> Option<Stream> {
        let len = parent.session.len();
        let at = if dice.chance(1, 3) { len } else { dice.below(len + 1) };
        let mut authors = authors(&parent.session).unwrap();
        // Metadata has its limit.
        if authors.len() > 100 {
            return None;
        }
        let number = self.forks.fetch_add(1, Ordering::Relaxed);
        if at > 0 {
            say(&format!("sub {number} 0 {}", at - 1));
        }
        authors.retain(|(from, _)| *from < at);
        authors.push((at, number));
        let authors: Vec<String> = authors.iter().map(|(from, stream)| format!("{from}:{stream}")).collect();
        let new = NewSession::with_id(id(number)).meta("authors", authors.join(","));
        let session = self.store.fork(parent.session.id(), Seq::new(at), new).unwrap();
        if at > 0 {
            say(&format!("ack {number} {}", at - 1));
        }
        Some(Stream { number, session })
    }
}

/// Appends to every session what is marked as not the stream's own, says `x S LEN` for what was acknowledged, and dies.
pub(crate) fn extra_and_die(folder: &Path, seed: u64) {
    let mut dice = Dice::new(seed);
    let store = opened(folder, &mut dice);
    let sessions: Vec<_> = store.list().unwrap().map(|info| info.unwrap().header.id).collect();
    for round in 0..3 {
        for id in &sessions {
            let session = store.session(id).unwrap();
            let stream: u64 = id.as_str().parse().unwrap();
            let first = session.len();
            let batch = (first..first + 1 + dice.below(3)).map(|seq| extra(stream, seq).to_new());
            let how = if dice.chance(1, 2) { Append::new().sync() } else { Append::new().buffered() };
            session.append_with(how, batch).unwrap();
            say(&format!("x {stream} {}", session.len()));
        }
        if round == 1 && dice.chance(1, 3) {
            store.drain().unwrap();
        }
    }
    if dice.chance(1, 2) {
        rustix::process::kill_process(rustix::process::getpid(), rustix::process::Signal::KILL).unwrap();
    }
    std::process::exit(0);
}

/// What a reader found in one session.
struct Found {
    stream: u64,
    /// The stream's own events, and the helper's behind them.
    own: u64,
    all: u64,
}

pub(crate) fn read(folder: &Path, options: &[&str]) {
    let mut told: Vec<(u64, u64)> = Vec::new();
    if options.contains(&"die") {
        for turn in 0..2 {
            let seed = turn + u64::from(std::process::id());
            let output = Command::new(std::env::current_exe().unwrap())
                .arg("lab-extra")
                .arg(folder)
                .arg(seed.to_string())
                .stdout(Stdio::piped())
                .stderr(Stdio::inherit())
                .output()
                .unwrap();
            for line in String::from_utf8(output.stdout).unwrap().lines() {
                let mut words = line.split(' ').skip(1).map(|word| word.parse::<u64>().unwrap());
                told.push((words.next().unwrap(), words.next().unwrap()));
            }
            if output.status.code().is_some_and(|code| code != 0) {
                say("bad 0 0 the helper could not append");
                std::process::exit(1);
            }
        }
    }
    let store = Store::open(folder).unwrap();
    let mut found = Vec::new();
    for info in store.list().unwrap() {
        match info.map(|info| read_session(&store, &info.header.id)) {
            Ok(Ok(session)) => found.push(session),
            Ok(Err(bad)) => say(&bad),
            Err(error) => say(&format!("bad 0 0 list: {error:?}")),
        }
    }
    for (stream, len) in told {
        let there = found.iter().find(|found| found.stream == stream).map_or(0, |found| found.all);
        if there < len {
            say(&format!("bad {stream} {there} the reader's helper was told that {len} are safe"));
        }
    }
    let report = store.scan().unwrap();
    for finding in report.findings.iter().filter(|finding| finding.severity == Severity::Error) {
        say(&format!("bad 0 0 scan: {finding}"));
    }
    for Found { stream, own, .. } in found {
        if own > 0 {
            say(&format!("have {stream} 0 {}", own - 1));
        }
    }
    say("end");
}

/// Reads a session from both ends. An error is the line to say.
fn read_session(store: &Store, id: &SessionId) -> Result<Found, String> {
    let stream: u64 = id.as_str().parse().unwrap();
    let bad = |seq: u64, why: &str| format!("bad {stream} {seq} {why}");
    let session = store.session(id).map_err(|error| bad(0, &format!("{error:?}")))?;
    let authors = authors(&session).map_err(|error| bad(0, &format!("{error:?}")))?;
    let author =
        |seq: u64| authors.iter().rev().find(|(from, _)| *from <= seq).map_or(stream, |(_, name)| *name);
    let (mut own, mut all) = (0, 0);
    let mut lines = Vec::new();
    let events = session.read_from(Seq::ZERO).map_err(|error| bad(0, &format!("{error:?}")))?;
    for found in events {
        let found: Event = found.map_err(|error| bad(all, &format!("{error:?}")))?;
        let line = found.to_string();
        if own == all && line == event(author(all), all).line(all) {
            own += 1;
        } else if line != extra(stream, all).line(all) {
            return Err(bad(all, &line.chars().take(200).collect::<String>()));
        }
        all += 1;
        lines.push(line);
    }
    if all != session.len() || all != session.durable_len() {
        return Err(bad(all, "the length is another"));
    }
    let reverse =
        session.read_reverse(Seq::ZERO..Seq::new(all)).map_err(|error| bad(0, &format!("{error:?}")))?;
    for (line, found) in lines.iter().rev().zip(reverse) {
        if found.map_err(|error| bad(0, &format!("{error:?}")))?.to_string() != *line {
            return Err(bad(all, "read in reverse it is another"));
        }
    }
    Ok(Found { stream, own, all })
}

/// Whose events stand in a stream: from which seq on, oldest first. A fork has it in its metadata: its parents may be gone.
fn authors(session: &Session) -> sessionlog::Result<Vec<(u64, u64)>> {
    let header = session.header()?;
    let Some(authors) = header.meta.get("authors") else {
        return Ok(vec![(0, header.id.as_str().parse().unwrap())]);
    };
    let author = |text: &str| {
        let (from, stream) = text.split_once(':').unwrap();
        (from.parse().unwrap(), stream.parse().unwrap())
    };
    Ok(authors.split(',').map(author).collect())
}
