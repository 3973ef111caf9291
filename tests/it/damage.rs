//! Damage: whatever is missing, old or flipped, a store says so, names the place, and serves the rest.

use std::ops::Bound;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use sessionlog::storage::{Map, MemoryJournalFiles, MemoryStorage, Storage};
use sessionlog::{Corruption, Error, NewEvent, NewSession, Seq, Session, SessionId, Store, StoreOptions};

use crate::support::bytes::copy_folder;

fn id(text: &str) -> SessionId {
    text.parse().unwrap()
}

/// A store in memory whose values can be changed while it is closed.
struct Bytes {
    storage: MemoryStorage,
    files: MemoryJournalFiles,
}

impl Bytes {
    fn new() -> Self {
        Self { storage: MemoryStorage::new(), files: MemoryJournalFiles::new() }
    }

    fn open(&self) -> sessionlog::Result<Store> {
        let quiet =
            StoreOptions::new().drain_age(Duration::from_secs(3_600)).sync_window(Duration::from_secs(3_600));
        quiet.open_on(Arc::new(self.storage.clone()), Arc::new(self.files.clone()))
    }

    fn all(&self, map: Map) -> Vec<(Vec<u8>, Vec<u8>)> {
        let all = self.storage.range(map, Bound::Unbounded, Bound::Unbounded);
        all.collect::<sessionlog::Result<_>>().unwrap()
    }
}

fn say(session: &Session, count: usize) {
    let len = session.len();
    let events = (len..).take(count).map(|n| NewEvent::user_message(format!("message {n}")));
    session.append_batch(events).unwrap();
}

fn count(session: &Session) -> usize {
    count_from(session, 0)
}

fn count_from(session: &Session, from: u64) -> usize {
    session.read_from(Seq::new(from)).unwrap().map(Result::unwrap).fold(0, |count, _| count + 1)
}

/// A block that cannot be read gives an error there; the drain, other sessions, and what comes behind it go on.
#[test]
fn damage_in_one_session_stops_nobody_else() {
    let bytes = Bytes::new();
    let store = bytes.open().unwrap();
    for name in ["broken", "sound"] {
        say(&store.create(NewSession::with_id(id(name))).unwrap(), 5);
        store.drain().unwrap();
    }
    store.close().unwrap();
    // The first block is the older session's: storage keys are made in order of time.
    let (key, mut value) = bytes.all(Map::Events)[0].clone();
    let middle = value.len() / 2;
    value[middle] ^= 1;
    bytes.storage.insert(Map::Events, &key, &value).unwrap();

    let store = bytes.open().unwrap();
    let (broken, sound) = (store.session(&id("broken")).unwrap(), store.session(&id("sound")).unwrap());
    say(&broken, 2);
    say(&sound, 2);
    store.drain().unwrap();
    assert_eq!(count(&sound), 7);
    let mut read = broken.read_from(Seq::ZERO).unwrap();
    let error = read.next().unwrap().unwrap_err();
    assert!(matches!(&error, Error::Corrupt { corruption: Corruption::Checksum { .. }, .. }), "{error:?}");
    assert!(error.to_string().contains("broken"), "{error}");
    assert!(read.next().is_none(), "the first error is the last item");
    assert_eq!(count_from(&broken, 5), 2);
    let report = store.scan().unwrap();
    assert_eq!((report.sessions, report.findings.len()), (2, 1), "{report:?}");
}

/// A block that is gone is a gap, not a shorter session.
#[test]
fn a_missing_block_is_a_gap() {
    let bytes = Bytes::new();
    let store = bytes.open().unwrap();
    let session = store.create(NewSession::with_id(id("a"))).unwrap();
    for seed in 0..3 {
        // Too large to share a block.
        session.append(NewEvent::user_message(noise(seed, 5_000))).unwrap();
    }
    store.close().unwrap();
    drop(session);
    let blocks = bytes.all(Map::Events);
    assert_eq!(blocks.len(), 3);
    bytes.storage.apply(Map::Events, &[(blocks[1].0.clone(), None)]).unwrap();
    let store = bytes.open().unwrap();
    let session = store.session(&id("a")).unwrap();
    let read: Vec<_> = session.read_from(Seq::ZERO).unwrap().collect();
    assert_eq!(read.len(), 2);
    let gap = Corruption::Gap { expected: 1, found: None };
    assert!(
        matches!(&read[1], Err(Error::Corrupt { corruption, .. }) if *corruption == gap),
        "{:?}",
        read[1]
    );
    let reverse: Vec<_> = session.read_reverse(Seq::ZERO..Seq::new(3)).unwrap().collect();
    assert!(reverse[0].is_ok());
    assert!(
        matches!(&reverse[1], Err(Error::Corrupt { corruption, .. }) if *corruption == gap),
        "{:?}",
        reverse[1]
    );
    assert_eq!(reverse.len(), 2);
}

/// Text that does not compress.
fn noise(seed: u64, len: usize) -> String {
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    let mut text = String::new();
    while text.len() < len {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        text.push(char::from(33 + u8::try_from((state >> 40) % 90).unwrap()));
    }
    text.replace(['"', '\\'], "x")
}

/// An engine that fell back to an older summary would give seqs a second time, and the drain would remove acknowledged
/// events as leftovers. It is found out by the block behind the summary's end, or across it.
#[test]
fn a_summary_that_fell_back_is_no_shorter_session() {
    for bytes_of_an_event in [20, 5_000] {
        let bytes = Bytes::new();
        let store = bytes.open().unwrap();
        let session = store.create(NewSession::with_id(id("a"))).unwrap();
        let event = |seed| NewEvent::user_message(noise(seed, bytes_of_an_event));
        session.append(event(1)).unwrap();
        store.drain().unwrap();
        let before: Vec<_> = bytes.all(Map::Sessions).into_iter().filter(|(key, _)| key[0] == b's').collect();
        session.append(event(2)).unwrap();
        say(&store.create(NewSession::with_id(id("b"))).unwrap(), 1);
        store.close().unwrap();
        drop((session, store));
        assert_eq!(before.len(), 1);
        bytes.storage.insert(Map::Sessions, &before[0].0, &before[0].1).unwrap();
        let blocks = bytes.all(Map::Events);

        let store = bytes.open().unwrap();
        let error = store.session(&id("a")).unwrap_err();
        let behind = Corruption::SummaryBehind { len: 1 };
        assert!(matches!(&error, Error::Corrupt { corruption, .. } if *corruption == behind), "{error:?}");
        assert_eq!(count(&store.session(&id("b")).unwrap()), 1);
        assert!(!store.scan().unwrap().is_clean());
        store.close().unwrap();
        assert!(bytes.all(Map::Events) == blocks, "nothing was removed");
    }
}

/// Records that are gone or disagree are found by a scan, which goes on behind them.
#[test]
fn scan_goes_to_the_end() {
    let bytes = Bytes::new();
    let store = bytes.open().unwrap();
    let a = store.create(NewSession::with_id(id("a"))).unwrap();
    say(&a, 3);
    say(&a.fork(Seq::new(2)).unwrap(), 3);
    say(&store.create(NewSession::with_id(id("c"))).unwrap(), 3);
    store.close().unwrap();
    drop((a, store));
    let records = bytes.all(Map::Sessions);
    for (key, value) in records.iter().filter(|(key, _)| key != b"O" && key != b"D") {
        for flip in [false, true] {
            let mut damaged = value.clone();
            *damaged.last_mut().unwrap() ^= 1;
            let change = (key.clone(), flip.then_some(damaged));
            bytes.storage.apply(Map::Sessions, &[change]).unwrap();
            let store = bytes.open().unwrap();
            let report = store.scan().unwrap();
            let what = format!("record `{}`, flipped: {flip}: {report:?}", char::from(key[0]));
            assert!(!report.is_clean(), "{what}");
            assert!(report.events >= 3, "others were read: {what}");
            store.close().unwrap();
            bytes.storage.insert(Map::Sessions, key, value).unwrap();
        }
    }
    assert!(bytes.open().unwrap().scan().unwrap().is_clean());
}

/// A store whose engine or journal is gone is not a new, empty one; nothing is made in its place.
#[test]
fn a_folder_that_lost_a_part_is_refused_untouched() {
    for part in ["engine-1/db", "engine-1", "journal"] {
        let folder = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
        let path = folder.path().join("store");
        let store = Store::open(&path).unwrap();
        say(&store.create(NewSession::with_id(id("a"))).unwrap(), 3);
        store.close().unwrap();
        let lost = path.join(part);
        if lost.is_dir() { std::fs::remove_dir_all(&lost) } else { std::fs::remove_file(&lost) }.unwrap();
        let names = || {
            let mut names: Vec<_> =
                std::fs::read_dir(&path).unwrap().map(|entry| entry.unwrap().file_name()).collect();
            names.sort();
            names
        };
        let before = names();
        let error = Store::open(&path).unwrap_err();
        let missing = matches!(&error, Error::Corrupt { corruption: Corruption::Missing { .. }, .. });
        assert!(missing, "{part}: {error:?}");
        assert_eq!(names(), before, "{part}");
    }
}

/// A list names every session once, while appends and drains move them.
#[test]
fn a_list_names_every_session_once_meanwhile() {
    let store = Store::in_memory().unwrap();
    let sessions: Vec<_> = (0..32).map(|_| store.create(NewSession::new()).unwrap()).collect();
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        for half in sessions.chunks(16) {
            scope.spawn(|| {
                while !done.load(Ordering::Relaxed) {
                    half.iter().for_each(|session| say(session, 1));
                }
            });
        }
        scope.spawn(|| {
            while !done.load(Ordering::Relaxed) {
                store.drain().unwrap();
            }
        });
        for _ in 0..300 {
            let mut ids: Vec<_> = store.list().unwrap().map(|info| info.unwrap().header.id).collect();
            ids.sort();
            assert_eq!(ids.len(), 32, "named: {ids:?}");
            ids.dedup();
            assert_eq!(ids.len(), 32, "named twice");
        }
        done.store(true, Ordering::Relaxed);
    });
}

/// Whoever closes a store that is being closed returns when it is closed: the next open finds it free.
#[test]
fn a_second_close_waits_for_the_first() {
    let folder = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    for _ in 0..10 {
        let store = Store::open(folder.path().join("store")).unwrap();
        say(&store.create(NewSession::new()).unwrap(), 2_000);
        let started = AtomicBool::new(false);
        std::thread::scope(|scope| {
            let first = scope.spawn(|| {
                started.store(true, Ordering::Release);
                store.close()
            });
            while !started.load(Ordering::Acquire) {
                std::thread::yield_now();
            }
            store.close().unwrap();
            Store::open(folder.path().join("store")).unwrap();
            first.join().unwrap().unwrap();
        });
    }
}

/// A disk with little room is drained in steps; with too little for any the store goes on, and nothing is lost.
#[test]
fn a_low_disk_is_drained_step_by_step() {
    let bytes = Bytes::new();
    let store = bytes.open().unwrap();
    let session = store.create(NewSession::with_id(id("a"))).unwrap();
    for seed in 0..24 {
        session.append(NewEvent::user_message(noise(seed, 100_000))).unwrap();
    }
    bytes.files.set_free_bytes(1 << 20);
    let refused = store.drain();
    assert!(matches!(refused, Err(Error::DiskFull { .. })), "{refused:?}");
    assert_eq!(count(&session), 24);
    bytes.files.set_free_bytes((2 << 20) + 600_000);
    store.drain().unwrap();
    assert_eq!(store.info().unwrap().tail_bytes, 0);
    session.append(NewEvent::user_message("goes on")).unwrap();
    assert_eq!(count(&session), 25);
    assert!(store.scan().unwrap().is_clean());
}

/// An engine that is sound and holds less than when the store was closed is not taken for the whole: sled falls back like
/// that where the end of its file is damaged. Nothing is written to it then.
#[test]
fn an_engine_that_fell_back_is_refused() {
    let folder = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let path = folder.path().join("store");
    let (earlier, engine) = (folder.path().join("earlier"), path.join("engine-1"));
    let noisy = |session: &Session| {
        // More than one segment of the journal, so that none is left that holds it.
        for seed in 0..4 {
            session.append(NewEvent::user_message(noise(seed, 100_000))).unwrap();
        }
    };
    let store = Store::open(&path).unwrap();
    noisy(&store.create(NewSession::with_id(id("a"))).unwrap());
    store.close().unwrap();
    drop(store);
    copy_folder(&engine, &earlier);
    let store = Store::open(&path).unwrap();
    noisy(&store.session(&id("a")).unwrap());
    store.close().unwrap();
    drop(store);
    let later = folder.path().join("later");
    std::fs::rename(&engine, &later).unwrap();
    copy_folder(&earlier, &engine);
    // Closing leaves at most one segment, whose frames are written over sooner or later.
    for entry in std::fs::read_dir(path.join("journal")).unwrap() {
        std::fs::remove_file(entry.unwrap().path()).unwrap();
    }

    let error = Store::open(&path).unwrap_err();
    let fell_back = |error: &Error| {
        let Error::Corrupt { corruption: Corruption::EngineFellBack { expected, found }, .. } = error else {
            panic!("{error:?}")
        };
        assert!(found < expected, "{error:?}");
    };
    fell_back(&error);
    fell_back(&sessionlog::Scan::new().folder(&path).unwrap_err());

    // What the engine has comes out, and it is told that it is not all.
    let report = sessionlog::Salvage::new().folder(&path, folder.path().join("new")).unwrap();
    assert!(report.fell_back() && report.is_incomplete(), "{report:?}");
    assert_eq!(report.sessions[0].len, 4);

    // The engine of the close: the same store again.
    std::fs::remove_dir_all(&engine).unwrap();
    std::fs::rename(&later, &engine).unwrap();
    let store = Store::open(&path).unwrap();
    assert_eq!(count(&store.session(&id("a")).unwrap()), 8);
    // A note that is damaged keeps nobody out.
    store.close().unwrap();
    std::fs::write(path.join("witness"), b"sessionlog witness\ndrained 9999\n").unwrap();
    Store::open(&path).unwrap();
}
