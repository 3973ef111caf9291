//! The scan: each kind of damage is provoked and named rightly, and clean means that every read works.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use sessionlog::storage::{JournalFiles, Map, MemoryJournalFiles, Storage};
use sessionlog::{
    Error, FindingKind, NewEvent, NewSession, RunningHash, Scan, ScanReport, Seq, Severity, Store,
    StoreOptions, Timestamp,
};

use crate::support::bytes::{Bytes, errors, forged, frames, kinds, noise, reseal, say};
use crate::support::dice::Dice;
use crate::support::run::id;
use crate::support::watched::{Call, Once, Watched};

/// Three sessions, drained: `a` with several blocks and a large event, its fork `b`, and `c` in one block.
pub(crate) fn sample() -> Bytes {
    let bytes = Bytes::new();
    let store = bytes.open().unwrap();
    let a = store.create(NewSession::with_id(id("a"))).unwrap();
    for seed in 0..3 {
        a.append(NewEvent::user_message(noise(seed, 5_000))).unwrap();
    }
    a.append(NewEvent::user_message(noise(7, 20_000))).unwrap();
    a.append(NewEvent::user_message(noise(8, 5_000))).unwrap();
    let b = store.fork(&id("a"), Seq::new(2), NewSession::with_id(id("b"))).unwrap();
    say(&b, 3);
    say(&store.create(NewSession::with_id(id("c"))).unwrap(), 4);
    store.close().unwrap();
    bytes
}

/// The storage key of a session.
pub(crate) fn key(bytes: &Bytes, name: &str) -> [u8; 16] {
    let value = bytes.storage.get(Map::Sessions, format!("i{name}").as_bytes()).unwrap().unwrap();
    value[8..24].try_into().unwrap()
}

pub(crate) fn record(bytes: &Bytes, tag: u8, name: &str) -> (Vec<u8>, Vec<u8>) {
    let key = [&[tag][..], &key(bytes, name)].concat();
    let value = bytes.storage.get(Map::Sessions, &key).unwrap().unwrap();
    (key, value)
}

pub(crate) fn block(bytes: &Bytes, name: &str, seq: u64) -> (Vec<u8>, Vec<u8>) {
    let key = [&key(bytes, name)[..], &seq.to_be_bytes()].concat();
    let value = bytes.storage.get(Map::Events, &key).unwrap().unwrap();
    (key, value)
}

fn flip(bytes: &Bytes, map: Map, (key, mut value): (Vec<u8>, Vec<u8>), at: usize) {
    value[at] ^= 1;
    bytes.put(map, &key, &value);
}

/// A sound store is clean, with its sessions, their lengths and their hashes; open and closed, whole and one by one.
#[test]
fn a_sound_store_is_clean() {
    let bytes = sample();
    let report = bytes.scan();
    assert_eq!(report.findings, [], "{report:?}");
    assert_eq!((report.sessions, report.events), (3, 12));
    let store = bytes.open().unwrap();
    assert_eq!(store.scan().unwrap().heads, report.heads);
    for head in &report.heads {
        let session = store.session(&id(&head.session)).unwrap();
        assert_eq!(
            (session.len(), Some(session.running_hash(Seq::new(session.len())).unwrap())),
            (head.length, head.hash)
        );
    }
    store.close().unwrap();
    for (name, len) in [("a", 5), ("b", 5), ("c", 4)] {
        let scan = Scan::new().session(id(name));
        let report = scan.on(&bytes.storage, &bytes.files, [0; 16]).unwrap();
        assert_eq!((report.findings.len(), report.heads[0].length), (0, len), "{report:?}");
    }
    let none = Scan::new().session(id("none")).on(&bytes.storage, &bytes.files, [0; 16]);
    assert!(matches!(none, Err(Error::SessionNotFound { .. })), "{none:?}");
}

/// An empty store, and one that was never drained, are clean.
#[test]
fn what_is_only_in_the_journal_is_scanned() {
    let bytes = Bytes::new();
    assert_eq!(bytes.scan().findings, []);
    let store = bytes.open().unwrap();
    assert_eq!(bytes.copy().scan().findings, []);
    let a = store.create(NewSession::with_id(id("a"))).unwrap();
    say(&a, 3);
    let b = store.fork(&id("a"), Seq::new(2), NewSession::with_id(id("b"))).unwrap();
    say(&b, 3);
    let killed = bytes.copy().scan();
    assert_eq!(killed.findings, []);
    assert_eq!((killed.sessions, killed.events), (2, 6));
    let live = store.scan().unwrap();
    assert_eq!((live.findings.len(), live.sessions, live.events), (0, 2, 6));
    assert_eq!(live.heads, killed.heads, "{live:?}");
    store.drain().unwrap();
    say(&a, 1);
    let killed = bytes.copy().scan();
    assert_eq!((killed.findings.len(), killed.events), (0, 7));
    assert_eq!(store.scan().unwrap().heads, killed.heads);
}

type Damage = fn(&Bytes);

/// Each finding of values, provoked by one change, is the only kind of error found.
#[test]
fn each_damage_of_a_value_is_named() {
    let cases: &[(&str, FindingKind, Damage)] = &[
        ("a bit of a block", FindingKind::Checksum, |bytes| {
            flip(bytes, Map::Events, block(bytes, "a", 1), 100)
        }),
        ("a bit of a part", FindingKind::Checksum, |bytes| {
            let part = [&block(bytes, "a", 3).0[..], &2_u32.to_be_bytes()].concat();
            let value = bytes.storage.get(Map::Events, &part).unwrap().unwrap();
            flip(bytes, Map::Events, (part, value), 100);
        }),
        ("a block of a newer version", FindingKind::UnknownVersion, |bytes| {
            let (key, mut value) = block(bytes, "c", 0);
            value[5] = 2;
            bytes.put(Map::Events, &key, &reseal(value));
        }),
        ("sections that are none", FindingKind::Undecodable, |bytes| {
            let (key, value) = block(bytes, "c", 0);
            bytes.put(Map::Events, &key, &forged(&value, |payload| payload[52..].fill(0xff)));
        }),
        ("a block under another's key", FindingKind::WrongKey, |bytes| {
            let (key, _) = block(bytes, "a", 1);
            bytes.put(Map::Events, &key, &block(bytes, "a", 2).1);
        }),
        ("a block that is gone", FindingKind::Gap, |bytes| {
            bytes.remove(Map::Events, &block(bytes, "a", 1).0)
        }),
        ("the last block is gone", FindingKind::SummaryLeads, |bytes| {
            bytes.remove(Map::Events, &block(bytes, "c", 0).0);
        }),
        ("a part that is gone", FindingKind::MissingPart, |bytes| {
            bytes.remove(Map::Events, &[&block(bytes, "a", 3).0[..], &1_u32.to_be_bytes()].concat());
        }),
        ("a block twice", FindingKind::Overlap, |bytes| {
            let (key, mut value) = block(bytes, "c", 0);
            (value[31], value[35]) = (2, 2);
            bytes.put(Map::Events, &[&key[..23], &[2]].concat(), &reseal(value));
        }),
        ("a part of nothing", FindingKind::Orphan, |bytes| {
            let part = [&block(bytes, "a", 3).0[..], &1_u32.to_be_bytes()].concat();
            let value = bytes.storage.get(Map::Events, &part).unwrap().unwrap();
            let mut key = part;
            key[23] = 1;
            bytes.put(Map::Events, &key, &value);
        }),
        ("blocks of no session", FindingKind::Orphan, |bytes| {
            let (mut key, mut value) = block(bytes, "c", 0);
            key[0] ^= 1;
            value[8] ^= 1;
            bytes.put(Map::Events, &key, &reseal(value));
        }),
        ("a key that is none", FindingKind::NotRecognised, |bytes| {
            let (key, value) = block(bytes, "c", 0);
            bytes.put(Map::Events, &[&key[..], &[0]].concat(), &value);
        }),
        ("another running hash", FindingKind::RunningHash, |bytes| {
            let (key, value) = block(bytes, "a", 1);
            bytes.put(Map::Events, &key, &forged(&value, |payload| payload[0] ^= 1));
        }),
        ("another text, its checksum right", FindingKind::RunningHash, |bytes| {
            let (key, value) = block(bytes, "a", 4);
            let x = value.iter().rposition(|byte| *byte == b'x').unwrap() - 52;
            bytes.put(Map::Events, &key, &forged(&value, |payload| payload[x] = b'y'));
        }),
        ("another hash in the summary", FindingKind::RunningHash, |bytes| {
            let (key, value) = record(bytes, b's', "c");
            bytes.put(Map::Sessions, &key, &forged(&value, |payload| *payload.last_mut().unwrap() ^= 1));
        }),
        ("another hash at the prefix", FindingKind::RunningHash, |bytes| {
            let (key, value) = record(bytes, b'h', "b");
            // Within the hash: behind it stand the counts of metadata and unknown fields.
            let at = value.len() - 52 - 10;
            bytes.put(Map::Sessions, &key, &forged(&value, |payload| payload[at] ^= 1));
        }),
        ("a header's bit", FindingKind::Header, |bytes| {
            flip(bytes, Map::Sessions, record(bytes, b'h', "c"), 60)
        }),
        ("no header", FindingKind::Header, |bytes| bytes.remove(Map::Sessions, &record(bytes, b'h', "c").0)),
        ("no summary", FindingKind::Summary, |bytes| {
            bytes.remove(Map::Sessions, &record(bytes, b's', "c").0)
        }),
        ("a summary's bit", FindingKind::Summary, |bytes| {
            flip(bytes, Map::Sessions, record(bytes, b's', "c"), 60)
        }),
        ("no id", FindingKind::Unreachable, |bytes| bytes.remove(Map::Sessions, b"ic")),
        ("an id's bit", FindingKind::IdRecord, |bytes| {
            let value = bytes.storage.get(Map::Sessions, b"ic").unwrap().unwrap();
            flip(bytes, Map::Sessions, (b"ic".to_vec(), value), 52);
        }),
        ("an id that leads elsewhere", FindingKind::Unreachable, |bytes| {
            let mut value = bytes.storage.get(Map::Sessions, b"ic").unwrap().unwrap();
            value[8..24].copy_from_slice(&key(bytes, "a"));
            bytes.put(Map::Sessions, b"ic", &reseal(value));
        }),
        ("no place in the order", FindingKind::OrderRecord, |bytes| {
            bytes.remove(Map::Sessions, &bytes.with(Map::Sessions, b"o")[0].0);
        }),
        ("a second place in the order", FindingKind::OrderRecord, |bytes| {
            let (mut key, value) = bytes.with(Map::Sessions, b"o")[0].clone();
            key[8] ^= 1;
            bytes.put(Map::Sessions, &key, &forged(&value, |payload| payload[7] ^= 1));
        }),
        ("no edge", FindingKind::Edge, |bytes| {
            bytes.remove(Map::Sessions, &bytes.with(Map::Sessions, b"f")[0].0)
        }),
        ("an edge's bit", FindingKind::Edge, |bytes| {
            flip(bytes, Map::Sessions, bytes.with(Map::Sessions, b"f")[0].clone(), 60);
        }),
        ("a key of no record", FindingKind::NotRecognised, |bytes| bytes.put(Map::Sessions, b"?", b"?")),
        ("the drained mark's bit", FindingKind::StoreRecord, |bytes| {
            let value = bytes.storage.get(Map::Sessions, b"D").unwrap().unwrap();
            flip(bytes, Map::Sessions, (b"D".to_vec(), value), 50);
        }),
        ("no open count", FindingKind::StoreRecord, |bytes| bytes.remove(Map::Sessions, b"O")),
    ];
    for (what, kind, damage) in cases {
        let bytes = sample();
        damage(&bytes);
        let report = bytes.scan();
        let found = kinds(&report);
        assert!(found.contains(kind), "{what}: {kind} expected: {report:#?}");
        // A lost header leaves its blocks and records behind, a wrong id both sides of it.
        let related =
            [FindingKind::Orphan, FindingKind::Header, FindingKind::IdRecord, FindingKind::Unreachable];
        let others = found.iter().filter(|found| *found != kind && !related.contains(found));
        assert_eq!(others.count(), 0, "{what}: {report:#?}");
        for finding in errors(&report) {
            assert!(finding.key.is_some() || finding.seqs.is_some(), "{what}: it has no place: {finding}");
        }
        // The open itself counts anew.
        if *what == "no open count" {
            continue;
        }
        if let Ok(store) = bytes.open() {
            assert!(!store.scan().unwrap().is_clean(), "{what}: not seen in an open store");
        }
    }
}

/// Forks whose parents are not what they should be.
#[test]
fn each_damage_of_a_parent_is_named() {
    let bytes = sample();
    let parent = key(&bytes, "a");
    for (key, _) in bytes.all(Map::Sessions) {
        if key.windows(16).any(|window| window == parent) && key[0] != b'f' || key == b"ia" {
            bytes.remove(Map::Sessions, &key);
        }
    }
    for (key, _) in bytes.with(Map::Events, &parent) {
        bytes.remove(Map::Events, &key);
    }
    let report = bytes.scan();
    assert_eq!(kinds(&report), [FindingKind::MissingParent], "{report:#?}");

    let bytes = sample();
    let (at, value) = record(&bytes, b's', "a");
    bytes.put(Map::Sessions, &at, &forged(&value, |payload| payload[0] = 1));
    let report = bytes.scan();
    assert!(kinds(&report).contains(&FindingKind::PrefixBeyondParent), "{report:#?}");

    let bytes = sample();
    let store = bytes.open().unwrap();
    store.fork(&id("b"), Seq::new(2), NewSession::with_id(id("d"))).unwrap();
    store.close().unwrap();
    let (a, d) = (key(&bytes, "a"), key(&bytes, "d"));
    let (at, value) = record(&bytes, b'h', "b");
    let circle = forged(&value, |payload| {
        let parent = payload.windows(16).position(|window| window == a).unwrap();
        payload[parent..parent + 16].copy_from_slice(&d);
    });
    bytes.put(Map::Sessions, &at, &circle);
    let report = bytes.scan();
    assert!(kinds(&report).contains(&FindingKind::ParentCycle), "{report:#?}");
}

/// An engine that fell back to an older summary is found out by the blocks behind it.
#[test]
fn a_summary_that_fell_back_is_named() {
    let bytes = Bytes::new();
    let store = bytes.open().unwrap();
    let a = store.create(NewSession::with_id(id("a"))).unwrap();
    a.append(NewEvent::user_message(noise(1, 5_000))).unwrap();
    store.drain().unwrap();
    let before = bytes.with(Map::Sessions, b"s");
    a.append(NewEvent::user_message(noise(2, 5_000))).unwrap();
    store.close().unwrap();
    bytes.put(Map::Sessions, &before[0].0, &before[0].1);
    assert!(kinds(&bytes.scan()).contains(&FindingKind::SummaryBehind), "{:#?}", bytes.scan());
}

/// What an interrupted drain leaves is a notice, and the store is clean: before the next open and behind it.
#[test]
fn leftovers_of_a_drain_are_a_notice() {
    let bytes = Bytes::new();
    let store = bytes.open().unwrap();
    let a = store.create(NewSession::with_id(id("a"))).unwrap();
    a.append(NewEvent::user_message(noise(1, 5_000))).unwrap();
    store.drain().unwrap();
    a.append(NewEvent::user_message(noise(2, 5_000))).unwrap();
    let killed = bytes.copy();
    store.drain().unwrap();
    for (key, value) in bytes.all(Map::Events) {
        killed.put(Map::Events, &key, &value);
    }
    let report = killed.scan();
    assert!(report.is_clean(), "{report:#?}");
    assert_eq!(
        report.findings.iter().map(|finding| finding.kind).collect::<Vec<_>>(),
        [FindingKind::Leftover]
    );
    killed.open().unwrap().close().unwrap();
    assert_eq!(killed.scan().findings, []);
}

/// A session that was told its events were safe, in a journal that nothing was drained of.
fn journal(appends: u64) -> Bytes {
    let bytes = Bytes::new();
    let store = bytes.open().unwrap();
    let a = store.create(NewSession::with_id(id("a"))).unwrap();
    for _ in 0..appends {
        say(&a, 1);
    }
    bytes.copy()
}

fn segment(bytes: &Bytes) -> (String, Vec<u8>) {
    let name = bytes.files.list().unwrap().into_iter().find(|name| name.starts_with("segment-")).unwrap();
    let file = bytes.file(&name);
    (name, file)
}

/// The last frame, torn, was never acknowledged for all that can be known: a notice. One before it is damage.
#[test]
fn a_torn_end_is_told_from_a_damaged_frame() {
    let bytes = journal(4);
    let (name, file) = segment(&bytes);
    let frames = frames(&file);
    assert_eq!(frames.len(), 5);
    for (index, frame) in frames.iter().enumerate() {
        let bytes = bytes.copy();
        let mut file = file.clone();
        file[frame.end - 1] ^= 1;
        bytes.write_file(&name, &file);
        let report = bytes.scan();
        if index == 4 {
            assert!(report.is_clean(), "{report:#?}");
            let [notice] = report.findings.as_slice() else { panic!("{report:#?}") };
            assert_eq!((notice.kind, notice.severity), (FindingKind::TornEnd, Severity::Notice));
            // The open keeps the bytes, and the file goes on being named.
            let store = bytes.open().unwrap();
            assert_eq!(store.open_report().torn.len(), 1);
            let live = store.scan().unwrap();
            assert!(live.is_clean() && live.findings[0].kind == FindingKind::TornEnd, "{live:#?}");
            store.close().unwrap();
            assert_eq!(bytes.scan().findings.len(), 1);
        } else {
            assert!(kinds(&report).contains(&FindingKind::JournalFrame), "{index}: {report:#?}");
            let named =
                report.findings.iter().find(|finding| finding.kind == FindingKind::JournalFrame).unwrap();
            assert_eq!(named.key.as_deref(), Some(format!("{name} at {}", frame.start).as_str()));
            assert!(named.expected.contains(&format!("commit {}", index + 1)), "{named}");
            assert!(bytes.open().is_err());
        }
    }
}

/// A whole frame that does not follow is named, and so is one of a newer format.
#[test]
fn frames_out_of_order_are_named() {
    let bytes = journal(3);
    let (name, mut file) = segment(&bytes);
    let frame = frames(&file)[2].clone();
    // Behind the header (56), the tag and the key: the first seq.
    assert_eq!(file[frame.start + 56 + 17], 1);
    file[frame.start + 56 + 17] = 9;
    reseal_frame(&mut file[frame.clone()]);
    bytes.write_file(&name, &file);
    assert_eq!(kinds(&bytes.scan()), [FindingKind::JournalOrder], "{:#?}", bytes.scan());

    file[frame.start + 16] = 2;
    reseal_frame(&mut file[frame]);
    bytes.write_file(&name, &file);
    assert!(kinds(&bytes.scan()).contains(&FindingKind::UnknownVersion), "{:#?}", bytes.scan());
}

pub(crate) fn reseal_frame(frame: &mut [u8]) {
    let mut hasher = crc32fast::Hasher::new();
    hasher.update(&frame[..12]);
    hasher.update(&frame[16..]);
    let crc = hasher.finalize();
    frame[12..16].copy_from_slice(&crc.to_be_bytes());
}

/// Reads all that can be read, in all ways. The first error, if any.
fn read_all(bytes: &Bytes) -> Result<(), String> {
    let store = bytes.open().map_err(|error| error.to_string())?;
    let told = |error: Error| error.to_string();
    let mut listed = Vec::new();
    for info in store.list().map_err(told)? {
        listed.push(info.map_err(told)?.header.id.to_string());
    }
    listed.sort();
    if listed != ["a", "b", "c"] {
        return Err(format!("listed: {listed:?}"));
    }
    for name in ["a", "b", "c"] {
        let session = store.session(&id(name)).map_err(told)?;
        session.header().map_err(told)?;
        let len = session.len();
        for from in 0..=len {
            let read: Vec<_> = session.read_from(Seq::new(from)).and_then(Iterator::collect).map_err(told)?;
            let reverse: Vec<_> =
                session.read_reverse(Seq::ZERO..Seq::new(from)).and_then(Iterator::collect).map_err(told)?;
            if (read.len() as u64, reverse.len() as u64) != (len - from, from) {
                return Err(format!("{name} from {from}: {} and {} events", read.len(), reverse.len()));
            }
        }
    }
    Ok(())
}

/// One random change of the values: flipped, removed, copied to or swapped with another key.
fn harm(bytes: &Bytes, dice: &mut Dice) -> String {
    let map = if dice.below(3) == 0 { Map::Sessions } else { Map::Events };
    let all = bytes.all(map);
    let (key, value) = &all[dice.below(all.len() as u64) as usize];
    let (other_key, other) = &all[dice.below(all.len() as u64) as usize];
    match dice.below(4) {
        0 => {
            let mut value = value.clone();
            let at = dice.below(value.len() as u64) as usize;
            value[at] ^= 1 << dice.below(8);
            bytes.put(map, key, &value);
            format!("{map:?} {key:?}: bit of byte {at} flipped")
        }
        1 => {
            bytes.remove(map, key);
            format!("{map:?} {key:?}: removed")
        }
        2 => {
            bytes.put(map, key, other);
            format!("{map:?} {key:?}: now the value of {other_key:?}")
        }
        _ => {
            bytes.put(map, key, other);
            bytes.put(map, other_key, value);
            format!("{map:?} {key:?}: swapped with {other_key:?}")
        }
    }
}

/// Clean if and only if every read of every session works: a read that fails was told by the scan, and whatever the
/// scan calls an error is a change.
#[test]
fn clean_if_and_only_if_every_read_works() {
    let sound = sample();
    read_all(&sound.copy()).unwrap();
    let mut dice = Dice::new(4);
    let mut clean = 0;
    for round in 0..400 {
        let bytes = sound.copy();
        let what: Vec<_> = (0..=round % 2).map(|_| harm(&bytes, &mut dice)).collect();
        let changed = Map::ALL.iter().any(|map| bytes.all(*map) != sound.all(*map));
        let report = bytes.scan();
        let read = read_all(&bytes.copy());
        if report.is_clean() {
            clean += 1;
            assert_eq!(read, Ok(()), "round {round}, {what:?}: clean");
        } else {
            assert!(changed, "round {round}, {what:?}: {report:#?}");
        }
        if !changed {
            assert_eq!(report.findings, [], "round {round}, {what:?}");
        }
    }
    assert!(clean < 100, "damage was done: {clean} of 400 are clean");
}

/// A scan of a store that is appended to, forked and drained meanwhile finds nothing: what changes is looked at again.
#[test]
fn a_store_in_use_is_scanned_without_false_findings() {
    let store = Store::in_memory().unwrap();
    let sessions: Vec<_> = (0..8).map(|_| store.create(NewSession::new()).unwrap()).collect();
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        for half in sessions.chunks(4) {
            let done = &done;
            scope.spawn(move || {
                let is_short = || half.iter().all(|session| session.len() < 400);
                while !done.load(Ordering::Relaxed) && is_short() {
                    for session in half {
                        say(session, 3);
                        session.append(NewEvent::user_message(noise(session.len(), 9_000))).unwrap();
                        session.fork(Seq::new(session.len() / 2)).map(|fork| say(&fork, 1)).unwrap();
                    }
                }
            });
        }
        scope.spawn(|| {
            while !done.load(Ordering::Relaxed) {
                store.drain().unwrap();
            }
        });
        for _ in 0..10 {
            let report = store.scan().unwrap();
            if !report.is_clean() {
                done.store(true, Ordering::Relaxed);
                panic!("{:#?}", errors(&report));
            }
        }
        done.store(true, Ordering::Relaxed);
    });
    assert_eq!(store.scan().unwrap().findings, []);
}

/// A noted hash proves the history up to its seq, on each stretch of a fork; another one, or a seq beyond the end, is a
/// finding.
#[test]
fn a_noted_hash_proves_the_history() {
    let bytes = sample();
    let store = bytes.open().unwrap();
    let session = store.session(&id("b")).unwrap();
    say(&session, 2);
    let noted: Vec<_> = (0..=session.len()).map(|at| session.running_hash(Seq::new(at)).unwrap()).collect();
    assert_eq!(noted[0], RunningHash::START);
    assert_eq!(noted[2], store.session(&id("a")).unwrap().running_hash(Seq::new(2)).unwrap());
    let scan = |at: u64, hash| Scan::new().session(id("b")).expect(at, hash);
    let killed = bytes.copy();
    for (at, hash) in (0..).zip(&noted) {
        let live: ScanReport = scan(at, *hash).store(&store).unwrap();
        assert!(live.is_clean(), "{at}: {live:#?}");
        let offline = scan(at, *hash).on(&killed.storage, &killed.files, [0; 16]).unwrap();
        assert!(offline.is_clean(), "{at}: {offline:#?}");
        let other = noted[(at as usize + 1) % noted.len()];
        let report = scan(at, other).on(&killed.storage, &killed.files, [0; 16]).unwrap();
        assert_eq!(kinds(&report), [FindingKind::Expected], "{at}");
    }
    let beyond = scan(99, noted[0]).store(&store).unwrap();
    assert_eq!(kinds(&beyond), [FindingKind::Expected]);
    // A history that was written anew with right checksums and hashes in its records is found out by the noted hash.
    assert_eq!(noted[1].to_string().parse(), Ok(noted[1]));
    assert!("00".repeat(31).parse::<RunningHash>().is_err());
}

/// The scan writes nothing, and tells how far it is.
#[test]
fn a_scan_writes_nothing_and_tells_its_progress() {
    let bytes = sample();
    let before: Vec<_> = Map::ALL.iter().map(|map| bytes.all(*map)).collect();
    let (sender, told) = std::sync::mpsc::channel();
    let scan = Scan::new().progress(move |progress| {
        sender
            .send((progress.sessions, progress.events, progress.head.map(|head| head.session.clone())))
            .unwrap();
    });
    scan.on(&bytes.storage, &bytes.files, [0; 16]).unwrap();
    let told: Vec<_> = told.iter().collect();
    assert_eq!(told.len(), 3);
    assert_eq!(told[2], (3, 12, Some("c".to_owned())));
    assert!(before == Map::ALL.iter().map(|map| bytes.all(*map)).collect::<Vec<_>>());
}

/// Folders that are no store, that somebody uses, or that a newer program wrote: a typed error, and nothing is touched.
#[test]
fn a_folder_that_is_no_store_is_left_alone() {
    let folder = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let path = folder.path().join("store");
    let missing = Scan::new().folder(&path);
    assert!(matches!(missing, Err(Error::NoStore { .. })), "{missing:?}");
    assert!(!path.exists());

    let other = folder.path().join("other");
    std::fs::create_dir(&other).unwrap();
    std::fs::write(other.join("letter"), "dear").unwrap();
    let refused = Scan::new().folder(&other);
    assert!(matches!(refused, Err(Error::NotAStore { .. })), "{refused:?}");
    assert_eq!(std::fs::read_dir(&other).unwrap().count(), 1);

    let store = StoreOptions::new().sync_window(Duration::from_secs(3_600)).open(&path).unwrap();
    say(&store.create(NewSession::with_id(id("a"))).unwrap(), 3);
    let in_use = Scan::new().folder(&path);
    assert!(matches!(in_use, Err(Error::InUse { .. })), "{in_use:?}");
    assert!(matches!(sessionlog::Repair::folder(&path), Err(Error::InUse { .. })));
    store.close().unwrap();
    let report = Scan::new().folder(&path).unwrap();
    assert_eq!((report.findings.len(), report.events), (0, 3), "{report:?}");

    let description = path.join("sessionlog");
    let text = std::fs::read_to_string(&description).unwrap();
    std::fs::write(&description, text.replace("format 1", "format 9")).unwrap();
    let engine = std::fs::read(path.join("engine-1/db")).unwrap();
    let newer = Scan::new().folder(&path);
    assert!(matches!(newer, Err(Error::UnsupportedFormat { found: 9, .. })), "{newer:?}");
    assert!(std::fs::read(path.join("engine-1/db")).unwrap() == engine);
}

/// Of a deleted session only what its forks share counts: damage there is found, and what is still to be removed is a
/// notice.
#[test]
fn what_a_deleted_session_lends_is_checked() {
    let bytes = sample();
    let store = bytes.open().unwrap();
    let broken = block(&bytes, "a", 1);
    let beyond = block(&bytes, "a", 2);
    let tombstone = [&b"t"[..], &key(&bytes, "a")].concat();
    store.delete(&id("a")).unwrap();
    let report = bytes.copy().scan();
    assert!(report.is_clean(), "only in the journal: {report:#?}");
    assert_eq!(store.scan().unwrap().findings, []);
    store.close().unwrap();
    let report = bytes.scan();
    assert!(report.is_clean(), "{report:#?}");
    assert_eq!((report.sessions, report.heads.len()), (2, 2));
    bytes.open().unwrap().drain().unwrap();
    let report = bytes.scan();
    assert_eq!((report.findings.len(), report.sessions), (0, 2), "{report:#?}");
    assert!(bytes.storage.get(Map::Events, &beyond.0).unwrap().is_none(), "what nobody shares is gone");

    let damaged = bytes.copy();
    flip(&damaged, Map::Events, broken, 100);
    assert_eq!(kinds(&damaged.scan()), [FindingKind::Checksum]);
    let value = bytes.storage.get(Map::Sessions, &tombstone).unwrap().unwrap();
    flip(&bytes, Map::Sessions, (tombstone, value), 52);
    assert_eq!(kinds(&bytes.scan()), [FindingKind::Tombstone]);
}

/// A fork that shares nothing needs no parent: one that was deleted, and is gone, is not missed. (The model found it.)
#[test]
fn a_fork_of_nothing_misses_no_parent() {
    let bytes = Bytes::new();
    let store = bytes.open().unwrap();
    say(&store.create(NewSession::with_id(id("a"))).unwrap(), 2);
    say(&store.fork(&id("a"), Seq::ZERO, NewSession::with_id(id("b"))).unwrap(), 2);
    store.delete(&id("a")).unwrap();
    store.drain().unwrap();
    assert_eq!(store.scan().unwrap().findings, []);
    let session = store.session(&id("b")).unwrap();
    let noted = session.running_hash(Seq::new(session.len())).unwrap();
    store.close().unwrap();
    assert_eq!(bytes.scan().findings, []);
    assert!(bytes.plan().is_empty());
    let report =
        Scan::new().session(id("b")).expect(2, noted).on(&bytes.storage, &bytes.files, [0; 16]).unwrap();
    assert_eq!(report.findings, []);
}

/// A drain between the look at a summary and that at the order by last update moves the session there: it is looked at
/// again, and nothing is found.
#[test]
fn a_session_that_is_drained_meanwhile_is_looked_at_again() {
    let meddling = Once::default();
    let storage =
        Watched::with_deed(|call| matches!(call, Call::Get(_, key) if key.starts_with(b"o")), &meddling);
    let options = StoreOptions::new().drain_age(Duration::from_secs(3_600));
    let store = options.open_on(Arc::new(storage), Arc::new(MemoryJournalFiles::new())).unwrap();
    let session = store.create(NewSession::with_id(id("a"))).unwrap();
    let at = |millis| NewEvent::user_message("x").timestamp(Timestamp::from_millis(millis).unwrap());
    session.append(at(1)).unwrap();
    store.drain().unwrap();
    let drains = store.clone();
    meddling.set(move || {
        session.append(at(2)).unwrap();
        drains.drain().unwrap();
    });
    assert_eq!(store.scan().unwrap().findings, []);
    assert!(meddling.is_done(), "it was drained in between");
}

/// An engine that fails under one session's events is a finding there, and the scan goes on to the others.
#[test]
fn an_engine_that_fails_is_told_and_the_scan_goes_on() {
    let failing = Arc::new(Mutex::new(Vec::new()));
    let at = Arc::clone(&failing);
    let storage = Watched::new(move |call| match call {
        Call::Range(Map::Events, from)
            if !at.lock().unwrap().is_empty() && from.starts_with(&at.lock().unwrap()) =>
        {
            let source = std::io::Error::other("no answer");
            Err(Error::Io { action: "read", path: "engine".into(), source })
        }
        _ => Ok(()),
    });
    let sound = sample();
    for map in Map::ALL {
        sound.all(map).iter().for_each(|(key, value)| storage.inner.insert(map, key, value).unwrap());
    }
    *failing.lock().unwrap() = key(&sound, "a").to_vec();
    let report = Scan::new().on(&storage, &sound.files, [0; 16]).unwrap();
    let told = errors(&report);
    let of_a = told.iter().find(|finding| finding.session.as_deref() == Some("a")).unwrap();
    assert!(of_a.kind == FindingKind::Engine && of_a.found.contains("no answer"), "{report:#?}");
    assert!(told.iter().all(|finding| finding.kind == FindingKind::Engine), "{report:#?}");
    let heads: Vec<_> = report.heads.iter().map(|head| (head.session.as_str(), head.length)).collect();
    assert!(heads.contains(&("c", 4)), "{heads:?}");
}

/// A fork that was made of a parent whose block could not be read has no hash to go on from: said, and no error, for its
/// own reads work. When the block is there again a repair computes it, unless the fork's own blocks went on without it.
#[test]
fn a_fork_of_a_damaged_parent_has_no_known_hash() {
    for own in [0, 2] {
        let bytes = sample();
        let (at, value) = block(&bytes, "a", 0);
        flip(&bytes, Map::Events, (at.clone(), value.clone()), 60);
        let store = bytes.open().unwrap();
        let fork = store.fork(&id("a"), Seq::new(1), NewSession::with_id(id("d"))).unwrap();
        say(&fork, own);
        store.close().unwrap();
        bytes.put(Map::Events, &at, &value);
        let is_unknown = |report: &ScanReport| {
            let [unknown] = &report.findings[..] else { panic!("{report:#?}") };
            assert!(report.is_clean());
            let found = (unknown.kind, unknown.severity, unknown.session.as_deref());
            assert_eq!(found, (FindingKind::HashUnknown, Severity::Notice, Some("d")));
        };
        is_unknown(&bytes.scan());
        bytes.repair();
        if own > 0 {
            is_unknown(&bytes.scan());
        } else {
            assert_eq!(bytes.scan().findings, []);
        }
    }
}
