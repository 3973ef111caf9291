//! Kills a real child process, -9, at random moments, and finds every acknowledged event intact: Buffered ones too,
//! none half there, nothing out of order, batches whole. The folder is kept between the kills, and every second time
//! it is the next child that has to recover it.
//!
//! `SESSIONLOG_KILLS=n` kills n times (50 by default), `SESSIONLOG_SEED=n` chooses the moments.
//!
//! The same binary is the program that a crash laboratory outside this project drives; see `lab.rs`.
#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::cast_possible_truncation,
    reason = "in a test a panic is a finding"
)]

#[path = "../it/support/dice.rs"]
mod dice;
#[path = "../it/support/events.rs"]
#[expect(dead_code, reason = "shared with the integration tests")]
mod events;

mod child;
mod content;
mod lab;

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Write};
use std::ops::Bound;
use std::path::Path;
use std::process::{Command, ExitCode, Stdio};
use std::sync::mpsc;
use std::time::{Duration, Instant};

use sessionlog::storage::{Map, SledStorage, Storage};
use sessionlog::{Seq, Store};

use dice::Dice;

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = args.iter().map(String::as_str).collect();
    match words.as_slice() {
        ["child", folder, seed] => child::run(Path::new(folder), seed.parse().unwrap()),
        ["lab-write", folder, seed, options @ ..] => {
            lab::write(Path::new(folder), seed.parse().unwrap(), options)
        }
        ["lab-read", folder, options @ ..] => lab::read(Path::new(folder), options),
        ["lab-extra", folder, seed] => lab::extra_and_die(Path::new(folder), seed.parse().unwrap()),
        // `cargo test FILTER` gives its filter to every test binary.
        _ if args.iter().any(|arg| arg == "--list") => {}
        [filter, ..] if !filter.starts_with('-') && !"crash".contains(filter) => {}
        _ => kills(),
    }
    ExitCode::SUCCESS
}

/// Writes one line to standard output, in one piece.
fn say(line: &str) {
    let mut out = std::io::stdout().lock();
    out.write_all(format!("{line}\n").as_bytes()).and_then(|()| out.flush()).unwrap();
}

fn from_env(name: &str, default: u64) -> u64 {
    std::env::var(name).map_or(default, |text| text.parse().unwrap_or_else(|_| panic!("{name}={text}")))
}

/// What the children said of each session.
type Acks = BTreeMap<String, Known>;

#[derive(Debug, Default)]
struct Known {
    /// Events that were acknowledged.
    acked: u64,
    /// A deletion of it began and was not acknowledged: either may be true.
    deleting: bool,
    /// It was deleted for certain.
    deleted: bool,
    /// It may be another one since: made anew, and not acknowledged.
    creating: bool,
}

impl Known {
    /// Whether a store may hold `len` events of it, or may not hold it.
    fn allows(&self, len: Option<u64>) -> bool {
        match len {
            None => self.deleted || self.deleting || self.acked == 0 && self.creating,
            Some(len) => {
                let is_new = self.creating && (self.deleted || self.deleting);
                is_new || !self.deleted && len >= self.acked
            }
        }
    }
}

/// What a child says when it begins to rewrite the store: some die in that.
const REWRITING: &str = "rewriting";

/// Takes note of a line that a child wrote.
fn note(acks: &mut Acks, line: &str) {
    if line == REWRITING {
        return;
    }
    let (first, second) = line.split_once(' ').unwrap_or_else(|| panic!("the child said {line:?}"));
    let (session, said) = match first {
        "creating" | "deleting" | "deleted" => (second, first),
        _ => (first, ""),
    };
    let known = acks.entry(session.to_string()).or_default();
    match said {
        "creating" => known.creating = true,
        "deleting" => known.deleting = true,
        "deleted" => *known = Known { deleted: true, ..Known::default() },
        _ => {
            // What it was before does not count any more.
            let before = if known.deleting || known.deleted { 0 } else { known.acked };
            *known = Known { acked: before.max(second.parse().unwrap()), ..Known::default() };
        }
    }
}

fn kills() {
    let count = from_env("SESSIONLOG_KILLS", 50);
    let seed = from_env("SESSIONLOG_SEED", u64::from(std::process::id()));
    let folder = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let store = folder.path().join("store");
    let mut dice = Dice::new(seed);
    let mut acks = Acks::new();
    let (mut checks, mut before_any_ack) = (0, 0);
    let begun = Instant::now();
    for kill in 0..count {
        let said = one_life(&store, seed.wrapping_mul(1_000).wrapping_add(kill), &mut dice);
        before_any_ack += u64::from(said.is_empty());
        for line in said {
            note(&mut acks, &line);
        }
        if dice.chance(1, 2) || kill + 1 == count {
            check(&store, &acks, seed, kill);
            checks += 1;
        }
    }
    check_leaves_nothing(&store);
    let events: u64 = acks.values().map(|known| known.acked).sum();
    let deleted = acks.values().filter(|known| known.deleted).count();
    say(&format!(
        "crash: seed {seed}: {count} kills ({before_any_ack} before any acknowledgement), {checks} checks, \
         {} sessions ({deleted} deleted), {events} acknowledged events, {:.0} s: ok",
        acks.len(),
        begun.elapsed().as_secs_f64()
    ));
    assert!(events > count, "the children hardly appended");
}

/// Starts a child and kills it. Returns the acknowledgements that it had written.
fn one_life(store: &Path, seed: u64, dice: &mut Dice) -> Vec<String> {
    let mut child = Command::new(std::env::current_exe().unwrap())
        .arg("child")
        .arg(store)
        .arg(seed.to_string())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let (first, begun) = mpsc::channel();
    let mut out = BufReader::new(child.stdout.take().unwrap());
    let lines = std::thread::spawn(move || {
        let mut lines = Vec::new();
        let mut line = String::new();
        while out.read_line(&mut line).unwrap() > 0 {
            // The last line may have been cut by the kill; it then acknowledges nothing.
            if let Some(whole) = line.strip_suffix('\n') {
                lines.push(whole.to_string());
                let _ = first.send(());
            }
            line.clear();
        }
        lines
    });
    // One in four dies while it opens, the others from their first acknowledgement on.
    if dice.chance(1, 4) {
        std::thread::sleep(Duration::from_millis(dice.below(60)));
    } else {
        let _ = begun.recv();
        std::thread::sleep(Duration::from_micros(dice.below(200_000)));
    }
    let ended = child.try_wait().unwrap();
    child.kill().unwrap();
    let output = child.wait_with_output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(ended.is_none(), "seed {seed}: the child ended by itself: {said}");
    lines.join().unwrap()
}

/// Opens the store and checks everything in it.
fn check(folder: &Path, acks: &Acks, seed: u64, kill: u64) {
    let at = format!("SESSIONLOG_SEED={seed}, kill {kill}");
    let store = Store::open(folder).unwrap_or_else(|error| panic!("{at}: {error:?}"));
    let mut lens = BTreeMap::new();
    for info in store.list().unwrap() {
        let info = info.unwrap();
        let session = store.session(&info.header.id).unwrap();
        let own = content::Own::of(&info.header.id);
        let mut len = 0;
        let mut batch = content::Batch::default();
        for event in session.read_from(Seq::ZERO).unwrap() {
            let event = event.unwrap_or_else(|error| panic!("{at}: {} at {len}: {error:?}", info.header.id));
            let line = event.to_string();
            assert_eq!(line, own.line(len), "{at}: {} at {len}", info.header.id);
            batch.see(&line);
            len += 1;
        }
        assert!(batch.is_whole(), "{at}: half a batch at the end of {}, {len}", info.header.id);
        assert_eq!((info.len, session.durable_len()), (len, len), "{at}: {}", info.header.id);
        lens.insert(info.header.id.to_string(), len);
    }
    for (session, known) in acks {
        let len = lens.get(session).copied();
        assert!(known.allows(len), "{at}: {session} has {len:?} events, and is {known:?}");
    }
    let report = store.scan().unwrap();
    assert!(report.is_clean(), "{at}: {report:?}");
}

/// Deletes what there is: then nothing is left in the engine but its two counters.
fn check_leaves_nothing(folder: &Path) {
    let store = Store::open(folder).unwrap();
    for info in store.list().unwrap() {
        store.delete(&info.unwrap().header.id).unwrap();
    }
    store.drain().unwrap();
    let engine = store.info().unwrap().engine;
    store.close().unwrap();
    drop(store);
    let engine = SledStorage::open(&folder.join(engine), 1 << 20).unwrap();
    for (map, left) in [(Map::Events, 0), (Map::Sessions, 2), (Map::Care, 0), (Map::Derived, 0)] {
        let keys = engine.range(map, Bound::Unbounded, Bound::Unbounded).count();
        assert_eq!(keys, left, "{map:?} when all is deleted");
    }
}
