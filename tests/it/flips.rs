//! Every byte of every file: flipped, or cut off, before any open. Whatever is read then is the truth, an error, or told
//! by a finding; nobody panics, hangs, or deletes anything.
//!
//! The normal run takes a seeded choice spread over all regions of all files; `SESSIONLOG_FLIPS=all` takes every used
//! byte with three patterns, and every length. Figures of the last full run are in DESIGN.md.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{RecvTimeoutError, sync_channel};
use std::sync::{Mutex, Once};
use std::time::Duration;

use sessionlog::{NewSession, Scan, Seq, Session, Store, StoreOptions};

use crate::support::dice::Dice;
use crate::support::events::{Said, assistant, call, chunk, letters, lines, noise, result, user};

/// What was acknowledged, by session.
type Truth = BTreeMap<String, Vec<String>>;

/// The files of a store, by their names below its folder.
#[derive(Clone)]
struct Image {
    files: BTreeMap<PathBuf, Vec<u8>>,
    truth: Truth,
}

/// Something that happens to a file.
#[derive(Clone, Debug)]
struct Damage {
    file: PathBuf,
    at: usize,
    how: How,
}

#[derive(Clone, Copy, Debug)]
enum How {
    /// The byte is combined with this one.
    Flip(u8),
    /// The file ends there.
    Cut,
    /// So many bytes are zeros.
    Zeros(usize),
    /// So many bytes are anything.
    Noise(usize),
}

/// What a damaged store does.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Outcome {
    /// All that was said comes back, and nothing is told.
    Truth,
    /// Opening gives an error.
    Refused(String),
    /// Reads give an error, or the truth; and a scan or the open's report tells that something is wrong.
    Told(String),
    /// Less than was said, and nothing is told.
    SilentLoss(String),
    /// What was never said, a panic, a hang, or something was deleted.
    Wrong(String),
}

const PATTERNS: [u8; 3] = [0xff, 0x01, 0x80];
/// Far above what any of it takes: to tell a hang.
const HANG: Duration = Duration::from_secs(300);

fn quiet() -> StoreOptions {
    let hour = Duration::from_secs(3_600);
    StoreOptions::new().drain_age(hour).sync_window(hour).cache_bytes(1 << 20)
}

fn say(session: &Session, truth: &mut Truth, said: &[Said]) {
    session.append_batch(said.iter().map(Said::to_new)).unwrap();
    let truth = truth.entry(session.id().to_string()).or_default();
    truth.extend(lines(said, truth.len()));
}

/// A small store with all that there is: a fork, a large event, blocks that were continued; after an orderly close, or
/// killed with undrained frames.
fn image(killed: bool, large: bool) -> Image {
    // Where the damaged ones will stand: the description names the mode of that file system.
    let folder = tempfile::tempdir_in(place()).unwrap();
    let path = folder.path().join("store");
    let mut truth = Truth::new();
    let mut store = quiet().open(&path).unwrap();
    let named = |name: &str| NewSession::with_id(name.parse().unwrap());
    for round in 0..3 {
        let session = |name: &str, store: &Store| match store.session(&name.parse().unwrap()) {
            Ok(session) => session,
            Err(_) => store.create(named(name)).unwrap(),
        };
        let a = session("a", &store);
        let said =
            [user("hello"), chunk("Hel"), chunk("lo"), assistant(&letters(round, 90)), call("c", "{}")];
        say(&a, &mut truth, &said);
        say(
            &session("b", &store),
            &mut truth,
            &[result("c", &format!("[{round}]")), user(&letters(round, 40))],
        );
        if round == 1 {
            let fork = store.fork(a.id(), Seq::new(4), named("fork")).unwrap();
            truth.insert("fork".into(), truth["a"][..4].to_vec());
            say(&fork, &mut truth, &[noise(1, 7_000), user("behind it")]);
        }
        if large {
            // More than a segment, so that no frame of before is left.
            (0..3).for_each(|n| say(&a, &mut truth, &[noise(3 * round + n, 100_000)]));
        }
        store.drain().unwrap();
        if round == 1 {
            store.close().unwrap();
            drop((a, store));
            store = quiet().open(&path).unwrap();
        }
    }
    let image = |truth: Truth| {
        let mut files = BTreeMap::new();
        collect(&path, Path::new(""), &mut files);
        // Nobody reads it.
        files.insert("reserve".into(), vec![0; 4_096]);
        Image { files, truth }
    };
    if !killed {
        store.close().unwrap();
        return image(truth);
    }
    let b = store.session(&"b".parse().unwrap()).unwrap();
    say(&b, &mut truth, &[user("not drained"), chunk("n")]);
    let late = store.create(named("late")).unwrap();
    say(&late, &mut truth, &[user("late")]);
    let image = image(truth);
    store.close().unwrap();
    image
}

fn collect(folder: &Path, below: &Path, files: &mut BTreeMap<PathBuf, Vec<u8>>) {
    for entry in std::fs::read_dir(folder).unwrap() {
        let entry = entry.unwrap();
        let name = below.join(entry.file_name());
        if entry.file_type().unwrap().is_dir() {
            collect(&entry.path(), &name, files);
        } else {
            files.insert(name, std::fs::read(entry.path()).unwrap());
        }
    }
}

impl Image {
    /// Puts the store into `path`, with one damage.
    fn write(&self, path: &Path, damage: &Damage) {
        for (name, bytes) in &self.files {
            let path = path.join(name);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            if *name != damage.file {
                std::fs::write(path, bytes).unwrap();
                continue;
            }
            let mut bytes = bytes.clone();
            let whole = bytes.len();
            let end = |len: usize| (damage.at + len).min(whole);
            match damage.how {
                How::Flip(pattern) => bytes[damage.at] ^= pattern,
                How::Cut => bytes.truncate(damage.at),
                How::Zeros(len) => {
                    let end = end(len);
                    bytes[damage.at..end].fill(0);
                }
                How::Noise(len) => {
                    let end = end(len);
                    let mut dice = Dice::new(damage.at as u64);
                    bytes[damage.at..end].iter_mut().for_each(|byte| *byte = dice.next() as u8);
                }
            }
            std::fs::write(path, bytes).unwrap();
        }
        for empty in ["engine-1/blobs", "journal"] {
            std::fs::create_dir_all(path.join(empty)).unwrap();
        }
    }

    /// Puts the damaged store there, opens it and looks at everything.
    fn outcome(&self, damage: &Damage) -> Outcome {
        let folder = tempfile::tempdir_in(place()).unwrap();
        let path = folder.path().join("store");
        self.write(&path, damage);
        let judged = self.judge(&path);
        match &judged {
            Outcome::Refused(_) => self.untouched(&path, damage).map_or(judged, Outcome::Wrong),
            _ => judged,
        }
    }

    /// After an open that was refused no file is gone, and none of ours is changed.
    fn untouched(&self, path: &Path, damage: &Damage) -> Option<String> {
        for (name, bytes) in &self.files {
            // sled makes snapshots anew; the lock names its last holder.
            let text = name.to_string_lossy();
            if text.contains("snap.") || text == "lock" || text == "reserve" {
                continue;
            }
            let Ok(found) = std::fs::read(path.join(name)) else {
                return Some(format!("{text} is gone"));
            };
            let damaged = *name == damage.file;
            if !damaged && !text.starts_with("engine") && found != *bytes {
                return Some(format!("{text} was changed"));
            }
            if !damaged && found.len() < bytes.len() {
                return Some(format!("{text} was cut to {}", found.len()));
            }
        }
        None
    }

    fn judge(&self, path: &Path) -> Outcome {
        let store = match quiet().create(false).open(path) {
            Ok(store) => store,
            Err(error) => return Outcome::Refused(kind(&error)),
        };
        let mut told = Vec::new();
        let mut lost = Vec::new();
        if !store.open_report().torn.is_empty() {
            told.push("torn end kept".to_owned());
        }
        let mut listed = Vec::new();
        match store.list() {
            Ok(list) => {
                for info in list {
                    match info {
                        Ok(info) => listed.push(info.header.id.to_string()),
                        Err(error) => told.push(kind(&error)),
                    }
                }
            }
            Err(error) => told.push(kind(&error)),
        }
        for name in &listed {
            if !self.truth.contains_key(name) {
                return Outcome::Wrong(format!("there never was a session {name}"));
            }
        }
        for (name, truth) in &self.truth {
            if !listed.contains(name) {
                lost.push(format!("{name} is not listed"));
            }
            let session = match store.session(&name.parse().unwrap()) {
                Ok(session) => session,
                Err(sessionlog::Error::SessionNotFound { .. }) => {
                    lost.push(format!("{name} is gone"));
                    continue;
                }
                Err(error) => {
                    told.push(kind(&error));
                    continue;
                }
            };
            let mut read = 0;
            match session.read_from(Seq::ZERO) {
                Ok(events) => {
                    for event in events {
                        match event {
                            Ok(event) => {
                                let line = event.to_string();
                                if truth.get(read) != Some(&line) {
                                    return Outcome::Wrong(format!("{name}, seq {read}: {line}"));
                                }
                                read += 1;
                            }
                            Err(error) => {
                                told.push(kind(&error));
                                read = truth.len();
                                break;
                            }
                        }
                    }
                }
                Err(error) => {
                    told.push(kind(&error));
                    continue;
                }
            }
            if read < truth.len() {
                lost.push(format!("{name} ends at {read} of {}", truth.len()));
            }
        }
        if let Err(error) = store.close() {
            told.push(kind(&error));
        }
        drop(store);
        match Scan::new().folder(path) {
            Ok(report) => {
                told.extend(report.findings.iter().map(|finding| format!("finding {:?}", finding.kind)))
            }
            Err(error) => told.push(kind(&error)),
        }
        told.sort();
        told.dedup();
        match (lost.is_empty(), told.first()) {
            (true, None) => Outcome::Truth,
            (false, None) => Outcome::SilentLoss(lost.join(", ")),
            (_, Some(_)) => Outcome::Told(told.join(", ")),
        }
    }
}

/// The kind of an error: what stands before the first thing that differs from case to case.
fn kind(error: &sessionlog::Error) -> String {
    let text = format!("{error:?}");
    let place = text.split("what: ").nth(1).and_then(|rest| rest.split(',').next()).unwrap_or_default();
    let corruption = text.split("corruption: ").nth(1).unwrap_or_default();
    let name = |text: &str| text.chars().take_while(|letter| letter.is_alphanumeric()).collect::<String>();
    format!("{} {place} {}", name(&text), name(corruption))
}

fn place() -> PathBuf {
    std::env::var_os("SESSIONLOG_FLIPS_DIR").map_or_else(|| env!("CARGO_TARGET_TMPDIR").into(), PathBuf::from)
}

/// Keeps sled's panics, which are caught, from filling the output.
fn silence_the_engine() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let before = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |info| {
            if !info.location().is_some_and(|location| location.file().contains("sled-")) {
                before(info);
            }
        }));
    });
}

/// Runs all damages, and gives what each did. One that panics or hangs is `Wrong`.
fn run(image: &Image, damages: &[Damage]) -> Vec<Outcome> {
    silence_the_engine();
    let next = AtomicUsize::new(0);
    let outcomes = Mutex::new(vec![None; damages.len()]);
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                loop {
                    let at = next.fetch_add(1, Ordering::Relaxed);
                    let Some(damage) = damages.get(at) else { break };
                    if damages.len() > 10_000 && at.is_multiple_of(5_000) {
                        eprintln!("{at} of {}", damages.len());
                    }
                    let (sender, receiver) = sync_channel(1);
                    let (image, damage) = (image.clone(), damage.clone());
                    std::thread::spawn(move || drop(sender.send(image.outcome(&damage))));
                    let outcome = match receiver.recv_timeout(HANG) {
                        Ok(outcome) => outcome,
                        Err(RecvTimeoutError::Timeout) => Outcome::Wrong("it hangs".into()),
                        Err(RecvTimeoutError::Disconnected) => Outcome::Wrong("it panicked".into()),
                    };
                    outcomes.lock().unwrap()[at] = Some(outcome);
                }
            });
        }
    });
    outcomes.into_inner().unwrap().into_iter().map(Option::unwrap).collect()
}

/// Prints how often what came out, by file; fails for what must not be.
fn account(what: &str, damages: &[Damage], outcomes: &[Outcome]) {
    let mut counts: BTreeMap<(String, String), u64> = BTreeMap::new();
    let mut bad = Vec::new();
    for (damage, outcome) in damages.iter().zip(outcomes) {
        let file = damage.file.to_string_lossy().split("snap.").next().unwrap().to_owned();
        let (word, detail) = match outcome {
            Outcome::Truth => ("truth", ""),
            Outcome::Refused(detail) => ("refused", detail.as_str()),
            Outcome::Told(detail) => ("told", detail.as_str()),
            Outcome::SilentLoss(detail) => ("SILENT LOSS", detail.as_str()),
            Outcome::Wrong(detail) => ("WRONG", detail.as_str()),
        };
        if matches!(outcome, Outcome::SilentLoss(_) | Outcome::Wrong(_)) {
            bad.push(format!("{what}: {damage:?}: {outcome:?}"));
        }
        *counts.entry((file.clone(), word.to_owned())).or_default() += 1;
        *counts.entry((file, format!("{word}: {detail}"))).or_default() += 1;
    }
    for ((file, outcome), count) in &counts {
        eprintln!("{what}: {file}: {outcome}: {count}");
    }
    assert!(bad.is_empty(), "{} of {}:\n{}", bad.len(), damages.len(), bad[..bad.len().min(40)].join("\n"));
}

fn all() -> bool {
    std::env::var_os("SESSIONLOG_FLIPS").is_some_and(|value| value == "all")
}

/// Bytes that say something: not zero, or near one that is not.
fn used(bytes: &[u8]) -> Vec<usize> {
    const NEAR: usize = 16;
    let mut used = Vec::new();
    let mut until = 0;
    for at in 0..bytes.len() {
        let ahead = bytes[at..(at + NEAR).min(bytes.len())].iter().any(|byte| *byte != 0);
        if bytes[at] != 0 {
            until = at + NEAR;
        }
        if ahead || at < until {
            used.push(at);
        }
    }
    used
}

/// A choice of `some` flips of each file, spread evenly; or all. Of the rest, which nobody should look at, a sample.
fn flips(image: &Image, some: usize, seed: u64) -> Vec<Damage> {
    let mut dice = Dice::new(seed);
    let mut damages = Vec::new();
    for (file, bytes) in &image.files {
        let used = used(bytes);
        let mut flip =
            |at: usize, xor: u8| damages.push(Damage { file: file.clone(), at, how: How::Flip(xor) });
        if all() && used.len() < 20_000 {
            used.iter().for_each(|at| PATTERNS.iter().for_each(|xor| flip(*at, *xor)));
        } else {
            let share = some.min(used.len());
            for n in 0..share {
                let (from, to) = (n * used.len() / share, (n + 1) * used.len() / share);
                let at = used[from + dice.below((to - from) as u64) as usize];
                flip(at, PATTERNS[dice.below(3) as usize]);
            }
        }
        if all() {
            eprintln!("{}: {} bytes, {} used", file.display(), bytes.len(), used.len());
        }
        for _ in 0..if all() { 200 } else { 3 } {
            flip(dice.below(bytes.len() as u64) as usize, 0xff);
        }
    }
    damages
}

fn cuts(image: &Image, some: usize, seed: u64) -> Vec<Damage> {
    let mut dice = Dice::new(seed);
    let mut damages = Vec::new();
    for (file, bytes) in &image.files {
        let some = if all() { 100 * some } else { some };
        let mut lengths = vec![0, 1, bytes.len() - 1, bytes.len() / 2];
        // Within what is used, and anywhere.
        let used = used(bytes);
        lengths.extend(
            (0..some).map(|_| used.get(dice.below(used.len() as u64) as usize).copied().unwrap_or(0)),
        );
        lengths.extend((0..some / 2).map(|_| dice.below(bytes.len() as u64) as usize));
        lengths.sort_unstable();
        lengths.dedup();
        damages.extend(lengths.into_iter().map(|at| Damage { file: file.clone(), at, how: How::Cut }));
    }
    damages
}

#[test]
fn flipped_bytes_of_a_closed_store() {
    let image = image(false, false);
    let damages = flips(&image, 60, 1);
    account("flip, closed", &damages, &run(&image, &damages));
}

#[test]
fn flipped_bytes_of_a_killed_store() {
    let image = image(true, false);
    let damages = flips(&image, 60, 2);
    account("flip, killed", &damages, &run(&image, &damages));
}

/// More than a segment of the engine: what it takes for a torn end is then a pass that was complete.
#[test]
fn flipped_bytes_of_a_larger_engine() {
    let mut image = image(false, true);
    let engine = PathBuf::from("engine-1/db");
    let damages = flips(&image, if all() { 20_000 } else { 120 }, 4);
    let damages: Vec<_> = damages.into_iter().filter(|damage| damage.file == engine).collect();
    image.truth.retain(|_, lines| !lines.is_empty());
    account("flip, larger", &damages, &run(&image, &damages));
}

#[test]
fn files_cut_short() {
    for killed in [false, true] {
        let image = image(killed, false);
        let damages = cuts(&image, 6, 3);
        account(if killed { "cut, killed" } else { "cut, closed" }, &damages, &run(&image, &damages));
    }
}

/// Sectors of the engine's file that come back as zeros or as anything, some of them up to its end: what it would take
/// for a write that a crash had torn.
#[test]
fn lost_sectors_of_the_engines_file() {
    const SECTOR: usize = 512;
    for killed in [false, true] {
        let image = image(killed, true);
        let file = PathBuf::from("engine-1/db");
        let bytes = &image.files[&file];
        let end = used(bytes).last().map_or(0, |last| last + 1);
        let mut dice = Dice::new(7);
        let mut damages = Vec::new();
        for at in (0..end).step_by(if all() { SECTOR } else { 8 * SECTOR }) {
            let to_end = end - at;
            for len in [SECTOR, SECTOR << dice.below(7), to_end] {
                for how in [How::Zeros(len), How::Noise(len)] {
                    if all() || dice.chance(1, 6) {
                        damages.push(Damage { file: file.clone(), at, how });
                    }
                }
            }
        }
        account(if killed { "sectors, killed" } else { "sectors, closed" }, &damages, &run(&image, &damages));
    }
}

/// Found by a full run: the magic of the last frame, which no seal covers yet. It looked like no frame at all; now it is a
/// torn end, which is kept and told.
#[test]
fn flips_in_the_magic_of_the_last_frame() {
    let image = image(true, false);
    let file = PathBuf::from("journal/segment-1");
    let last = image.files[&file].windows(8).rposition(|bytes| bytes == b"\xffSLframe").unwrap();
    let flip = |at: usize, xor| Damage { file: file.clone(), at, how: How::Flip(xor) };
    let damages: Vec<_> = (last..last + 56).flat_map(|at| PATTERNS.map(|xor| flip(at, xor))).collect();
    let outcomes = run(&image, &damages);
    account("flip, last frame", &damages, &outcomes);
}
