//! Salvage: from whatever is left of a store, every event that is intact, and none that never was.

use std::collections::{BTreeMap, HashMap};
use std::ops::{Bound, Range};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use sessionlog::storage::{JournalFiles, Map, MemoryJournalFiles, MemoryStorage, SledStorage, Storage};
use sessionlog::{
    Corruption, EngineOutcome, Error, NewSession, Salvage, SalvageReport, Scan, Seq, Store, StoreOptions,
};

use crate::support::bytes::{contents, copy_folder};
use crate::support::dice::Dice;
use crate::support::events::{Said, any, chunk, letters, lines, user};

/// What was said, by session.
type Truth = BTreeMap<String, Vec<String>>;

/// Where the value under a block's key has what.
const BLOCK_KEY_BYTES: usize = 24;
const MAGIC: [u8; 4] = [0xff, b'S', b'L', b'v'];
const ENVELOPE_BYTES: usize = 52;
const COUNT: Range<usize> = 32..36;

fn folder() -> tempfile::TempDir {
    tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap()
}

fn quiet() -> StoreOptions {
    let hour = Duration::from_secs(3_600);
    StoreOptions::new().drain_age(hour).sync_window(hour)
}

/// Makes a store of `sessions` sessions with `events` events in all, appended in turns and drained now and then; every
/// tenth is a fork.
fn build(path: &Path, sessions: usize, events: usize) -> (Store, Truth) {
    let store = quiet().open(path).unwrap();
    let mut truth = Truth::new();
    let mut handles = Vec::new();
    for n in 0..sessions {
        let name = format!("session-{n:03}");
        let new = NewSession::with_id(name.parse().unwrap()).meta("number", n.to_string());
        let (session, said) = if n % 10 == 9 {
            let parent: &sessionlog::Session = &handles[n - 5];
            let at = parent.len() / 2;
            let said = truth[&parent.id().to_string()][..at as usize].to_vec();
            (store.fork(parent.id(), Seq::new(at), new).unwrap(), said)
        } else {
            (store.create(new).unwrap(), Vec::new())
        };
        truth.insert(name.clone(), said);
        handles.push(session);
        if n % 10 == 4 {
            say(&handles[n], &mut truth, events / sessions / 2, n as u64);
        }
    }
    let rounds = 5;
    for round in 0..rounds {
        for (n, session) in handles.iter().enumerate() {
            let seed = (round * sessions + n) as u64;
            say(session, &mut truth, events / sessions / rounds, seed * 1_000_003);
        }
        store.drain().unwrap();
    }
    (store, truth)
}

fn say(session: &sessionlog::Session, truth: &mut Truth, count: usize, seed: u64) {
    // Large events now and then; all of that size would make the big store one of 150 MB.
    let one = |n: u64| if count > 80 || n % 40 != 7 { small(seed + n) } else { any(seed + n) };
    let said: Vec<_> = (0..count as u64).map(one).collect();
    let truth = truth.get_mut(&session.id().to_string()).unwrap();
    session.append_batch(said.iter().map(Said::to_new)).unwrap();
    truth.extend(lines(&said, truth.len()));
}

fn small(seed: u64) -> Said {
    let text = letters(seed, 20 + seed as usize % 150);
    if seed.is_multiple_of(3) { user(&text) } else { chunk(&text) }
}

/// The values of `map` that the engine of a sound store gives.
fn values(store: &Path, map: Map) -> Vec<(Vec<u8>, Vec<u8>)> {
    let copied = folder();
    let dir = copied.path().join("engine");
    copy_folder(&store.join("engine-1"), &dir);
    let engine = SledStorage::open(&dir, 1 << 20).unwrap();
    engine.range(map, Bound::Unbounded, Bound::Unbounded).map(Result::unwrap).collect()
}

/// The seqs of each storage key that stand in blocks (or large events) all of whose bytes are still in `damaged`.
fn intact(blocks: &[(Vec<u8>, Vec<u8>)], damaged: &[u8]) -> BTreeMap<Vec<u8>, Vec<Range<u64>>> {
    let mut places: HashMap<&[u8], Vec<usize>> = HashMap::new();
    for at in 0..damaged.len().saturating_sub(ENVELOPE_BYTES) {
        if damaged[at..].starts_with(&MAGIC) {
            places.entry(&damaged[at..at + ENVELOPE_BYTES]).or_default().push(at);
        }
    }
    let is_there = |value: &[u8]| {
        let places = places.get(&value[..ENVELOPE_BYTES]);
        places.into_iter().flatten().any(|at| damaged[*at..].starts_with(value))
    };
    let mut found: BTreeMap<Vec<u8>, Vec<Range<u64>>> = BTreeMap::new();
    for (key, value) in blocks.iter().filter(|(key, _)| key.len() == BLOCK_KEY_BYTES) {
        let parts = blocks.iter().filter(|(other, _)| other.len() > key.len() && other.starts_with(key));
        if is_there(value) && (value[4] == 1 || parts.clone().all(|(_, part)| is_there(part))) {
            let seq = u64::from_be_bytes(key[16..].try_into().unwrap());
            let count = u64::from(u32::from_be_bytes(value[COUNT].try_into().unwrap()));
            found.entry(key[..16].to_vec()).or_default().push(seq..seq + count);
        }
    }
    found
}

/// Opens and reads all of a salvaged store: what it says must be the truth, or the start of it. Returns the lengths.
///
/// A session that lost its header and its id is found under its storage key; `ids` says whose that is.
fn read_new(path: &Path, truth: &Truth, ids: &BTreeMap<String, String>) -> BTreeMap<String, u64> {
    let report = Scan::new().folder(path).unwrap();
    assert!(report.is_clean(), "{:#?}", report.findings.iter().take(5).collect::<Vec<_>>());
    let store = quiet().create(false).open(path).unwrap();
    let mut lengths = BTreeMap::new();
    for info in store.list().unwrap() {
        let id = info.unwrap().header.id;
        let name = ids.get(&id.to_string()).cloned().unwrap_or_else(|| id.to_string());
        let truth = truth.get(&name).unwrap_or_else(|| panic!("there never was a session {id}"));
        let session = store.session(&id).unwrap();
        let mut read = Vec::new();
        let mut events = session.read_from(Seq::ZERO).unwrap();
        let end = events.find_map(|event| event.map(|event| read.push(event.to_string())).err());
        assert!(truth.starts_with(&read), "session {id}: never a wrong event");
        match end {
            None => assert_eq!(read.len() as u64, session.len()),
            // A fork of a session that was ended: the error is where its parent has no more, what it said itself is there.
            Some(Error::Corrupt { corruption: Corruption::Gap { expected, .. }, .. }) => {
                let own = session.header().unwrap().parent.as_ref().map_or(0, |parent| parent.prefix_len);
                assert_eq!(expected, read.len() as u64);
                assert!(expected < own, "session {id}: a hole at {expected}");
                let said: Vec<_> = session
                    .read_from(Seq::new(own))
                    .unwrap()
                    .map(|event| event.unwrap().to_string())
                    .collect();
                assert_eq!(said.len() as u64, session.len() - own);
                assert!(truth[own as usize..].starts_with(&said), "session {id}: never a wrong event");
            }
            Some(error) => panic!("session {id}: {error:?}"),
        }
        lengths.insert(id.to_string(), session.len());
    }
    store.close().unwrap();
    lengths
}

fn salvage(old: &Path, new: &Path) -> SalvageReport {
    let before = contents(old);
    let report = Salvage::new().folder(old, new).unwrap_or_else(|error| panic!("{error:?}"));
    assert!(before == contents(old), "the old store is never written");
    let beside: Vec<_> =
        std::fs::read_dir(new.parent().unwrap()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert!(
        !beside.iter().any(|name| name.to_string_lossy().contains("salvage-")),
        "the copy is removed: {beside:?}"
    );
    report
}

/// Damages the engine's settings, which it then refuses.
fn refuse_engine(store: &Path) {
    let path = store.join("engine-1/conf");
    let mut settings = std::fs::read(&path).unwrap();
    settings[10] ^= 0xff;
    std::fs::write(path, settings).unwrap();
}

fn all_there(truth: &Truth, new: &Path) {
    let lengths = read_new(new, truth, &BTreeMap::new());
    let expected: BTreeMap<_, _> = truth.iter().map(|(id, lines)| (id.clone(), lines.len() as u64)).collect();
    assert_eq!(lengths, expected);
}

/// A sound store comes out as it is, whether the engine opens or not.
#[test]
fn a_sound_store_comes_out_whole() {
    let folder = folder();
    let old = folder.path().join("old");
    let (store, truth) = build(&old, 20, 3_000);
    store.close().unwrap();
    drop(store);
    let report = salvage(&old, &folder.path().join("new"));
    assert_eq!(report.engine, EngineOutcome::Whole);
    assert!(report.sessions.iter().all(|session| session.missing.is_empty() && !session.recovered));
    all_there(&truth, &folder.path().join("new"));

    // Settings that sled refuses: the engine says nothing, carving finds everything.
    refuse_engine(&old);
    let report = salvage(&old, &folder.path().join("carved"));
    assert!(matches!(report.engine, EngineOutcome::Failed(_)), "{report:?}");
    all_there(&truth, &folder.path().join("carved"));
}

/// What was acknowledged and not drained is in the journal's frames, also when the description that names the store is
/// damaged.
#[test]
fn undrained_frames_are_applied() {
    let folder = folder();
    let (live, old) = (folder.path().join("live"), folder.path().join("old"));
    let (store, mut truth) = build(&live, 10, 1_000);
    let session = store.session(&"session-003".parse().unwrap()).unwrap();
    say(&session, &mut truth, 40, 77);
    let new = NewSession::with_id("late".parse().unwrap());
    let late = store.fork(session.id(), Seq::new(5), new).unwrap();
    truth.insert("late".into(), truth["session-003"][..5].to_vec());
    say(&late, &mut truth, 10, 78);
    copy_folder(&live, &old);
    store.close().unwrap();
    drop((store, session, late));
    let report = salvage(&old, &folder.path().join("new"));
    assert!(report.frames >= 3, "{report:?}");
    all_there(&truth, &folder.path().join("new"));
    std::fs::write(old.join("sessionlog"), b"sessionlog store\nformat 1\nnonsense\n").unwrap();
    refuse_engine(&old);
    salvage(&old, &folder.path().join("carved"));
    all_there(&truth, &folder.path().join("carved"));
}

/// The bar: the first 64 KiB of the engine's file are random bytes; every event whose block's bytes are intact comes out,
/// none altered.
#[test]
fn the_first_64_kib_of_200_sessions_are_overwritten() {
    let folder = folder();
    let old = folder.path().join("old");
    let (store, truth) = build(&old, 200, 100_000);
    store.close().unwrap();
    drop(store);
    overwritten(folder.path(), &old, &truth, 0..64 << 10, 1);
}

/// The same anywhere in the file, and for stretches of any length.
#[test]
fn random_bytes_anywhere_in_the_engines_file() {
    let folder = folder();
    let sound = folder.path().join("sound");
    let (store, truth) = build(&sound, 20, 4_000);
    store.close().unwrap();
    drop(store);
    let db = std::fs::read(sound.join("engine-1/db")).unwrap();
    let blocks = values(&sound, Map::Events);
    let live: Vec<usize> = blocks
        .iter()
        .map(|(_, value)| db.windows(value.len()).rposition(|bytes| bytes == value).unwrap())
        .collect();
    let mut dice = Dice::new(5);
    for round in 0..8 {
        let below = folder.path().join(round.to_string());
        let old = below.join("old");
        copy_folder(&sound, &old);
        // Anywhere, and where a block stands that counts.
        let start = if round % 2 == 0 {
            dice.below(db.len() as u64) as usize
        } else {
            live[dice.below(live.len() as u64) as usize]
        };
        let bytes = 1 << (6 + dice.below(14));
        overwritten(&below, &old, &truth, start..(start + bytes).min(db.len()), round);
    }
}

fn overwritten(folder: &Path, old: &Path, truth: &Truth, range: Range<usize>, seed: u64) {
    let (blocks, records) = (values(old, Map::Events), values(old, Map::Sessions));
    let db = old.join("engine-1/db");
    let mut bytes = std::fs::read(&db).unwrap();
    let mut dice = Dice::new(seed);
    bytes[range.clone()].iter_mut().for_each(|byte| *byte = dice.next() as u8);
    std::fs::write(&db, &bytes).unwrap();
    let intact = intact(&blocks, &bytes);
    let new = folder.join("new");
    let report = salvage(old, &new);

    // Which storage key is whose, as the engine had it: `i` ++ id, whose value has the key in its header.
    let ids: BTreeMap<Vec<u8>, String> = records
        .iter()
        .filter(|(key, _)| key[0] == b'i')
        .map(|(key, value)| (value[8..24].to_vec(), String::from_utf8(key[1..].to_vec()).unwrap()))
        .collect();
    let by_key = ids.iter().map(|(key, id)| (uuid_of(key), id.clone())).collect();
    let lengths = read_new(&new, truth, &by_key);
    let mut expected = 0;
    for (key, seqs) in &intact {
        let id = &ids[key];
        let session = report.sessions.iter().find(|session| session.id == *id || uuid_of(key) == session.id);
        let session = session.unwrap_or_else(|| panic!("session {id} has intact blocks"));
        for seqs in seqs {
            expected += seqs.end - seqs.start;
            for lost in &session.missing {
                let apart = lost.end <= seqs.start || seqs.end <= lost.start;
                assert!(apart, "session {id}: {seqs:?} are intact, and {lost:?} are said to be missing");
            }
        }
        let first_hole = session.missing.first().map_or(u64::MAX, |lost| lost.start);
        let read = lengths[&session.id];
        for seqs in seqs.iter().filter(|seqs| seqs.end <= first_hole) {
            assert!(seqs.end <= read, "session {id}: {seqs:?} are intact, and {read} are there");
        }
    }
    // Where anything is missing, the report says so.
    let whole = |name: &String| {
        let read = lengths.iter().find(|(id, _)| by_key.get(*id).unwrap_or(id) == name);
        read.is_some_and(|(_, read)| *read == truth[name].len() as u64)
    };
    let short: Vec<_> = truth.keys().filter(|name| !whole(name)).collect();
    assert!(short.is_empty() || report.is_incomplete(), "{range:?}: {short:?}, {report:?}");
    eprintln!("{range:?}: {expected} events in intact blocks, {} sessions short", short.len());
}

fn uuid_of(key: &[u8]) -> String {
    let hex: String = key.iter().map(|byte| format!("{byte:02x}")).collect();
    format!("{}-{}-{}-{}-{}", &hex[..8], &hex[8..12], &hex[12..16], &hex[16..20], &hex[20..])
}

/// What is refused is left as it was.
#[test]
fn refusals() {
    let folder = folder();
    let (old, new) = (folder.path().join("old"), folder.path().join("new"));
    let refused = |old: &Path, new: &Path| Salvage::new().folder(old, new).unwrap_err();
    assert!(matches!(refused(&old, &new), Error::NoStore { .. }));
    std::fs::create_dir(&old).unwrap();
    assert!(matches!(refused(&old, &new), Error::NoStore { .. }));
    std::fs::write(old.join("precious"), b"kept").unwrap();
    assert!(matches!(refused(&old, &new), Error::NotAStore { .. }));
    assert_eq!(contents(&old).len(), 1);
    std::fs::remove_file(old.join("precious")).unwrap();
    let (store, _) = build(&old, 2, 20);
    assert!(matches!(refused(&old, &new), Error::InUse { .. }));
    store.close().unwrap();
    drop(store);
    std::fs::create_dir(&new).unwrap();
    assert!(matches!(refused(&old, &new), Error::OutputExists { .. }));
    std::fs::remove_dir(&new).unwrap();
    assert!(matches!(refused(&old, &old.join("inside")), Error::Io { .. }));
    // A sound description of a newer format.
    let text = "sessionlog store\nformat 2\nwhatever\n";
    let sound = format!("{text}checksum {:08x}\n", crc32fast::hash(text.as_bytes()));
    std::fs::write(old.join("sessionlog"), sound).unwrap();
    let before = contents(&old);
    assert!(matches!(refused(&old, &new), Error::UnsupportedFormat { found: 2, .. }));
    assert!(contents(&old) == before && !new.exists());
}

/// A store in memory, as raw files: its values one behind the other, and its journal.
struct Raw {
    storage: MemoryStorage,
    files: MemoryJournalFiles,
}

impl Raw {
    fn new() -> Self {
        Self { storage: MemoryStorage::new(), files: MemoryJournalFiles::new() }
    }

    fn open(&self) -> Store {
        quiet().open_on(Arc::new(self.storage.clone()), Arc::new(self.files.clone())).unwrap()
    }

    fn values(&self) -> Vec<Vec<u8>> {
        let maps = [Map::Sessions, Map::Events];
        let all = maps.iter().flat_map(|map| self.storage.range(*map, Bound::Unbounded, Bound::Unbounded));
        all.map(|entry| entry.unwrap().1).collect()
    }

    fn file(&self, name: &str) -> Vec<u8> {
        let file = self.files.open(name).unwrap();
        let mut bytes = vec![0; file.len().unwrap() as usize];
        file.read_at(&mut bytes, 0).unwrap();
        bytes
    }
}

/// What comes out of raw files: the report, and the store.
fn on(files: &[(&str, Vec<u8>)]) -> Result<(SalvageReport, Store), Error> {
    let old = MemoryJournalFiles::new();
    for (name, bytes) in files {
        old.create(name, bytes.len() as u64).unwrap().write_at(bytes, 0).unwrap();
    }
    let new = Raw::new();
    let report = Salvage::new().on(&old, &new.storage, &new.files)?;
    assert!(Scan::new().on(&new.storage, &new.files, [0; 16]).unwrap().is_clean());
    Ok((report, new.open()))
}

fn len(store: &Store, id: &str) -> u64 {
    store.session(&id.parse().unwrap()).unwrap().len()
}

/// Of two copies under a key the one with the greater write number counts, in whichever order they stand; two of the same
/// number and another content are told.
#[test]
fn the_newest_copy_counts() {
    let raw = Raw::new();
    let store = raw.open();
    let session = store.create(NewSession::with_id("a".parse().unwrap())).unwrap();
    session.append(small(1).to_new()).unwrap();
    store.drain().unwrap();
    let before = raw.values();
    session.append(small(2).to_new()).unwrap();
    store.close().unwrap();
    drop((session, store));
    let after = raw.values();
    for values in [[before.clone(), after.clone()], [after.clone(), before]] {
        let (report, store) = on(&[("db", values.concat().concat())]).unwrap();
        assert_eq!((len(&store, "a"), report.conflicts), (2, 0), "{report:?}");
        assert!(report.copies > 0 && !report.is_incomplete());
    }

    // A block of kind 1 with another timestamp in it, and a right checksum.
    let block = after.iter().find(|value| value[4] == 1).unwrap();
    let mut other = block.clone();
    *other.last_mut().unwrap() ^= 1;
    let crc = crc32fast::hash(&[&other[..48], &other[52..]].concat());
    other[48..52].copy_from_slice(&crc.to_be_bytes());
    let (report, store) = on(&[("db", [after.concat(), other].concat())]).unwrap();
    assert_eq!((len(&store, "a"), report.conflicts), (2, 1), "{report:?}");
}

/// A frame that stood behind a torn end was never acknowledged: where its bytes are kept it does not count, though it
/// stands in a segment, too.
#[test]
fn torn_frames_do_not_count() {
    let raw = Raw::new();
    let store = raw.open();
    let session = store.create(NewSession::with_id("a".parse().unwrap())).unwrap();
    (0..3).for_each(|seed| assert!(session.append(small(seed).to_new()).is_ok()));
    let segment = raw.file("segment-1");
    let frame = b"\xffSLframe";
    let last = segment.windows(8).rposition(|bytes| bytes == frame).unwrap();
    let torn = [b"rest of another one".to_vec(), segment[last..].to_vec()].concat();
    let (report, salvaged) = on(&[("segment-1", segment.clone())]).unwrap();
    assert_eq!((report.frames, len(&salvaged, "a")), (4, 3));
    let (report, salvaged) = on(&[("segment-1", segment), ("torn-2", torn)]).unwrap();
    assert_eq!((report.frames, len(&salvaged, "a")), (3, 2));
    store.close().unwrap();
}

/// Bytes that hold nothing of a store, or only what a newer program wrote, make no new store.
#[test]
fn nothing_comes_of_nothing() {
    let error = on(&[("db", vec![7; 100_000]), ("segment-1", vec![0; 4096])]).unwrap_err();
    assert!(matches!(error, Error::NotAStore { .. }), "{error:?}");
    let raw = Raw::new();
    raw.open().close().unwrap();
    let mut value = raw.values().concat();
    value.truncate(ENVELOPE_BYTES + u32::from_be_bytes(value[44..48].try_into().unwrap()) as usize);
    value[5] = 9;
    let crc = crc32fast::hash(&[&value[..48], &value[52..]].concat());
    value[48..52].copy_from_slice(&crc.to_be_bytes());
    let error = on(&[("db", value)]).unwrap_err();
    assert!(matches!(error, Error::UnsupportedFormat { found: 9, known: 1, .. }), "{error:?}");
}

/// A deleted session stays deleted, however much of it is left in the engine's file, and with what its forks need of it;
/// asked for, it comes back under another name.
#[test]
fn deleted_sessions_come_back_on_request_only() {
    let folder = folder();
    let old = folder.path().join("old");
    let (store, mut truth) = build(&old, 10, 1_000);
    // One with a fork (session-009), one without, and one whose id is given again.
    for name in ["session-004", "session-002", "session-006"] {
        store.delete(&name.parse().unwrap()).unwrap();
    }
    let again = store.create(NewSession::with_id("session-006".parse().unwrap())).unwrap();
    let deleted: Truth = ["session-004", "session-002", "session-006"]
        .into_iter()
        .map(|name| (format!("recovered {name}"), truth.remove(name).unwrap()))
        .collect();
    truth.insert("session-006".into(), Vec::new());
    say(&again, &mut truth, 5, 99);
    store.close().unwrap();
    drop((store, again));
    for engine_opens in [true, false] {
        if !engine_opens {
            refuse_engine(&old);
        }
        let new = folder.path().join(format!("new-{engine_opens}"));
        let report = salvage(&old, &new);
        assert_eq!(report.engine == EngineOutcome::Whole, engine_opens, "{:?}", report.engine);
        let lengths = read_new(&new, &truth_with(&truth, &deleted), &BTreeMap::new());
        for (id, lines) in &truth {
            assert_eq!(lengths.get(id), Some(&(lines.len() as u64)), "{id}, engine opens: {engine_opens}");
        }
        // The engine knows what was deleted; of raw files alone only what a tombstone or an id is left of.
        if engine_opens {
            assert_eq!(lengths.len(), truth.len(), "{lengths:?}");
            assert!(report.deleted >= 2, "{report:?}");
        } else {
            assert!(!lengths.contains_key("recovered session-006"), "{lengths:?}");
        }
        let new = folder.path().join(format!("deleted-{engine_opens}"));
        let report = Salvage::new().deleted(true).folder(&old, &new).unwrap();
        let recovered: Vec<_> = report.sessions.iter().filter(|session| session.recovered).collect();
        assert!(
            !recovered.is_empty() && recovered.iter().all(|session| session.id.starts_with("recovered "))
        );
        let lengths = read_new(&new, &truth_with(&truth, &deleted), &BTreeMap::new());
        assert!(truth.iter().all(|(id, lines)| lengths[id] == lines.len() as u64));
    }
}

/// With the deleted ones, under the names that they come back with, or had.
fn truth_with(truth: &Truth, deleted: &Truth) -> Truth {
    let mut all = truth.clone();
    for (name, lines) in deleted {
        all.insert(name.clone(), lines.clone());
        all.entry(name.trim_start_matches("recovered ").to_owned()).or_insert_with(|| lines.clone());
    }
    all
}

/// Found by fuzzing: a fork in the journal whose parent has lost the events that it shares. It was applied as it stood, and
/// the new store did not open.
#[test]
fn a_fork_in_the_journal_of_a_parent_that_lost_events() {
    let raw = Raw::new();
    let store = raw.open();
    let parent = store.create(NewSession::with_id("parent".parse().unwrap())).unwrap();
    (0..3).for_each(|seed| assert!(parent.append(small(seed).to_new()).is_ok()));
    store.drain().unwrap();
    parent.append(small(3).to_new()).unwrap();
    let fork = store.fork(parent.id(), Seq::new(4), NewSession::with_id("fork".parse().unwrap())).unwrap();
    fork.append(small(4).to_new()).unwrap();
    let mut segment = raw.file("segment-1");
    let frames: Vec<_> =
        segment.windows(8).enumerate().filter(|(_, bytes)| *bytes == b"\xffSLframe").collect();
    let lost = frames[frames.len() - 3].0;
    segment[lost + 60] ^= 1;
    let files = [("db", raw.values().concat()), ("segment-1", segment)];
    let (report, salvaged) = on(&files).unwrap();
    assert_eq!(len(&salvaged, "parent"), 3, "{report:?}");
    let fork = salvaged.session(&"fork".parse().unwrap()).unwrap();
    let read: Vec<_> = fork.read_from(Seq::ZERO).unwrap().collect();
    assert!(read.len() == 4 && read[3].is_err(), "{read:?}");
    let behind: Vec<_> =
        fork.read_from(Seq::new(4)).unwrap().map(|event| event.unwrap().to_string()).collect();
    assert_eq!(behind, lines(&[small(4)], 4));
    store.close().unwrap();
}

/// Found by fuzzing: a session whose header was lost, whose id record is there, and which the journal still creates. The
/// frame was taken for one of a session that exists, and no header was left.
#[test]
fn a_session_that_the_journal_creates_beside_its_id() {
    let raw = Raw::new();
    let store = raw.open();
    let session = store.create(NewSession::with_id("a".parse().unwrap())).unwrap();
    session.append(small(1).to_new()).unwrap();
    let fork = store.fork(session.id(), Seq::new(1), NewSession::with_id("fork".parse().unwrap())).unwrap();
    fork.append(small(2).to_new()).unwrap();
    store.drain().unwrap();
    // Of the records only the ids are left; of the journal everything.
    let is_id = |value: &Vec<u8>| value[4] == 17;
    let ids: Vec<_> = raw.values().into_iter().filter(is_id).collect();
    let (report, salvaged) = on(&[("db", ids.concat()), ("segment-1", raw.file("segment-1"))]).unwrap();
    assert_eq!((len(&salvaged, "a"), len(&salvaged, "fork")), (1, 2), "{report:?}");
    store.close().unwrap();
}

/// Found by fuzzing: of a store nothing but its journal is left. The new one had no count of opens, and did not open.
#[test]
fn nothing_but_the_journal_is_left() {
    let folder = folder();
    let (live, old) = (folder.path().join("live"), folder.path().join("old"));
    let store = quiet().open(&live).unwrap();
    let session = store.create(NewSession::with_id("a".parse().unwrap())).unwrap();
    let mut truth = Truth::from([("a".to_owned(), Vec::new())]);
    say(&session, &mut truth, 30, 5);
    copy_folder(&live, &old);
    store.close().unwrap();
    drop((store, session));
    let len = std::fs::metadata(old.join("engine-1/db")).unwrap().len() as usize;
    std::fs::write(old.join("engine-1/db"), vec![7; len]).unwrap();
    salvage(&old, &folder.path().join("new"));
    all_there(&truth, &folder.path().join("new"));
}
