//! Flow control: pages of events, appends that wait for a slow disk, the memory that a very large event takes.

use std::fs;
use std::path::Path;
use std::process::Command;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use sessionlog::transfer::{ExportOptions, ImportOptions, create_file, export, import_file};
use sessionlog::{Append, Error, MAX_EVENT_BYTES, NewEvent, NewSession, Seq, Store};

use crate::support::dice::Dice;
use crate::support::events::{self, Said, letters, noise, read};
use crate::support::medium::{Medium, Step};
use crate::support::run::{NEVER, id, quiet};

/// Pages of any size, by count and bytes, are together what a whole read gives: none is empty before the end, none has
/// more than was asked for but for a single event.
#[test]
fn pages_of_events() {
    let store = Medium::new(1).open(quiet()).unwrap();
    let session = store.create(NewSession::new()).unwrap();
    let mut dice = Dice::new(7);
    let said: Vec<Said> = (0..300).map(|n| noise(n, 1 + dice.below(900) as usize)).collect();
    for (n, batch) in said.chunks(30).enumerate() {
        session.append_batch(batch.iter().map(Said::to_new)).unwrap();
        if n == 6 {
            store.drain().unwrap();
        }
    }
    let expected = events::lines(&said, 0);
    for _ in 0..200 {
        let from = dice.below(300);
        let mut reader = session.read_from(Seq::new(from)).unwrap();
        let mut found = Vec::new();
        loop {
            let (count, bytes) = (1 + dice.below(40) as usize, dice.below(8_000));
            let page = reader.page(count, bytes).unwrap();
            if page.is_empty() {
                break;
            }
            let lines: Vec<String> = page.iter().map(ToString::to_string).collect();
            assert!(lines.len() <= count);
            assert!(lines.len() == 1 || lines.iter().map(String::len).sum::<usize>() as u64 <= bytes);
            found.extend(lines);
            if dice.chance(1, 5) {
                reader = session.read_from(reader.next_seq()).unwrap();
            }
        }
        assert_eq!(found, expected[from as usize..]);
        assert!(reader.next().is_none());
    }
    let reverse = session.read_reverse(Seq::ZERO..Seq::new(300)).unwrap().page(2, u64::MAX).unwrap();
    assert_eq!(reverse.iter().map(|event| event.seq.get()).collect::<Vec<_>>(), [299, 298]);
}

/// What stands before damage is given, then the error, once.
#[test]
fn a_page_before_damage() {
    let medium = Medium::new(1);
    let store = medium.open(quiet()).unwrap();
    let session = store.create(NewSession::new()).unwrap();
    for n in 0..12 {
        session.append(noise(n, 4_000).to_new()).unwrap();
    }
    store.drain().unwrap();
    medium.damage_value(1, 3, |value| *value.last_mut().unwrap() ^= 1);
    for by_page in [true, false] {
        let mut reader = session.read_from(Seq::ZERO).unwrap();
        let page = reader.page(100, u64::MAX).unwrap();
        assert!(!page.is_empty() && page.len() < 12);
        let next =
            if by_page { reader.page(100, u64::MAX).map(drop) } else { reader.next().unwrap().map(drop) };
        assert!(matches!(next, Err(Error::Corrupt { .. })), "{next:?}");
        assert!(reader.page(100, u64::MAX).unwrap().is_empty());
        assert!(reader.next().is_none());
    }
}

/// Lets the medium go on when a test ends, also when it fails.
struct Release<'a>(&'a Medium);

impl Drop for Release<'_> {
    fn drop(&mut self) {
        self.0.release();
    }
}

/// Buffered appends before a disk that stands still wait, instead of growing: before its engine once the tail is full,
/// before its journal when a segment is. When the disk moves again all of them are done, in order.
#[test]
fn buffered_appends_wait_for_a_slow_disk() {
    const TAIL: u64 = 1 << 20;
    const EVENTS: u64 = 400;
    const BYTES: usize = 10_000;
    for engine in [true, false] {
        let medium = Medium::new(1);
        let store = medium.open(quiet().tail_bytes(TAIL).watchdog(NEVER)).unwrap();
        let session = store.create(NewSession::with_id(id("s"))).unwrap();
        let acknowledged = AtomicU64::new(0);
        medium.hold(match engine {
            true => |step| matches!(step, Step::Flush),
            false => |step| matches!(step, Step::Sync(_)),
        });
        std::thread::scope(|scope| {
            scope.spawn(|| {
                for n in 0..EVENTS {
                    session.append_with(Append::new().buffered(), [noise(n, BYTES).to_new()]).unwrap();
                    acknowledged.fetch_add(1, Ordering::SeqCst);
                }
            });
            let _moves_again = Release(&medium);
            medium.wait_held();
            let acknowledged = || acknowledged.load(Ordering::SeqCst) * BYTES as u64;
            // Until the next event has no room. (A minute passes only where the test has failed.)
            let end = Instant::now() + Duration::from_secs(60);
            while engine && acknowledged() < TAIL / 4 * 3 && Instant::now() < end {
                std::thread::yield_now();
            }
            assert!(!engine || acknowledged() >= TAIL / 4 * 3, "{} bytes were acknowledged", acknowledged());
            // What is asked of a store whose disk stands still is answered.
            let used = store.info().unwrap().tail_bytes.max(store.metrics().tail_bytes);
            assert!(used <= TAIL, "{used} bytes in the tail");
            assert!(acknowledged() <= TAIL);
        });
        assert_eq!(acknowledged.load(Ordering::SeqCst), EVENTS);
        let expected: Vec<Said> = (0..EVENTS).map(|n| noise(n, BYTES)).collect();
        assert_eq!(read(session.read_from(Seq::ZERO)), events::lines(&expected, 0));
    }
}

const CHILD: &str = "SESSIONLOG_FLOW_CHILD";
/// How many times the largest event's bytes a process may take, above what it takes without one.
const TIMES: u64 = 10;

/// Every way of an event of 16 MiB in and out takes a small multiple of its size: each in a process of its own, which
/// tells its greatest memory.
#[test]
fn a_very_large_event_takes_little_memory() {
    if let Ok(what) = std::env::var(CHILD) {
        return child(&what);
    }
    let folder = tempfile::tempdir().unwrap();
    let peak = |what: &str| {
        let child = Command::new(std::env::current_exe().unwrap())
            .args([
                "--exact",
                "flow::a_very_large_event_takes_little_memory",
                "--nocapture",
                "--test-threads",
                "1",
            ])
            .env(CHILD, what)
            .current_dir(folder.path())
            .output()
            .unwrap();
        let out = String::from_utf8(child.stderr).unwrap();
        assert!(child.status.success(), "{what}: {out}{}", String::from_utf8_lossy(&child.stdout));
        let told = out.lines().find_map(|line| line.split_once("peak=")).map(|(_, told)| told);
        told.and_then(|told| told.trim().parse::<u64>().ok()).unwrap_or_else(|| panic!("{what}: {out}"))
    };
    let before = peak("nothing");
    for what in ["append", "read", "list", "page", "export", "import"] {
        let taken = peak(what).saturating_sub(before);
        eprintln!("{what}: {:.1} times the event", taken as f64 / MAX_EVENT_BYTES as f64);
        assert!(taken <= TIMES * MAX_EVENT_BYTES, "{what} took {} MiB", taken >> 20);
    }
}

fn child(what: &str) {
    let store = Store::open(if what == "import" { "there" } else { "store" }).unwrap();
    let file = Path::new("file.jsonl");
    let session = || store.session(&id("s")).unwrap();
    match what {
        "nothing" => drop(store.create(NewSession::with_id(id("s"))).unwrap()),
        "append" => {
            let text = letters(1, MAX_EVENT_BYTES as usize - 200);
            session().append(NewEvent::user_message(text)).unwrap();
        }
        "read" => assert_eq!(session().read_from(Seq::ZERO).unwrap().map(Result::unwrap).count(), 1),
        "page" => assert_eq!(session().read_from(Seq::ZERO).unwrap().page(10, 100).unwrap().len(), 1),
        "list" => assert_eq!(store.list().unwrap().map(Result::unwrap).count(), 1),
        "export" => drop(
            create_file(file, |out| {
                let mut out = std::io::BufWriter::new(out);
                export(&session(), ExportOptions::new(), &mut out)
            })
            .unwrap(),
        ),
        "import" => drop(import_file(&store, file, &ImportOptions::new()).unwrap()),
        _ => panic!("{what}"),
    }
    store.close().unwrap();
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let kib: u64 = peak.and_then(|peak| peak.split_whitespace().next()?.parse().ok()).unwrap_or(0);
    eprintln!("peak={}", kib << 10);
}
