use std::collections::BTreeMap;
use std::convert::Infallible;
use std::io;
use std::ops::Bound;
use std::time::Duration;

use super::*;
use crate::event::NewEvent;
use crate::format::{
    self, Drained, Hash, Home, Summary, WriteNumber, encode_drained, encode_id, encode_summary,
};
use crate::id::{SessionId, StorageKey, Timestamp};
use crate::options::{NewSession, StoreOptions};
use crate::storage::{Map, SledStorage, Storage as _};

const KEY: StorageKey = StorageKey([0x5e; 16]);

/// Bytes in memory; a stretch of them cannot be read.
#[derive(Debug)]
struct Bytes(Vec<u8>, std::ops::Range<u64>);

impl Raw for Bytes {
    fn len(&self) -> io::Result<u64> {
        Ok(self.0.len() as u64)
    }

    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<()> {
        let end = offset + buffer.len() as u64;
        if offset < self.1.end && self.1.start < end {
            return Err(io::Error::other("a bad sector"));
        }
        buffer.copy_from_slice(&self.0[usize::try_from(offset).unwrap()..usize::try_from(end).unwrap()]);
        Ok(())
    }
}

/// All sound values, and the numbers of places that are damaged and of pieces that cannot be read.
fn carve(raw: &dyn Raw) -> (Vec<(u64, Vec<u8>)>, usize, usize) {
    let (mut values, mut damaged, mut unreadable) = (Vec::new(), 0, 0);
    let done: Result<_, Infallible> = carve_values(raw, &mut |at, carved| {
        match carved {
            Carved::Value(found) => values.push((at, found.value.to_vec())),
            Carved::Damaged => damaged += 1,
            Carved::Unreadable(_) => unreadable += 1,
            Carved::Newer(_) => {}
        }
        Ok(())
    });
    done.unwrap().unwrap();
    (values, damaged, unreadable)
}

fn value(seed: u64) -> Vec<u8> {
    match seed % 3 {
        0 => encode_drained(Drained { through: seed }, WriteNumber(seed)),
        1 => {
            let summary = Summary { len: seed, updated: Timestamp::MAX, hash: Hash([0xff; 32]) };
            encode_summary(KEY, &summary, WriteNumber(seed))
        }
        _ => encode_id(&SessionId::new(&"x".repeat(200)).unwrap(), KEY, WriteNumber(seed)),
    }
}

/// Goal: every value is found, wherever it stands: at any offset, back to back, at and across the windows' borders and
/// at both ends of the file; and a damaged one hides nothing behind it.
#[test]
fn every_value_is_found_at_any_offset() {
    let mut file = Vec::new();
    let mut placed = Vec::new();
    for seed in 0..12_000 {
        let value = value(seed);
        match seed % 7 {
            0 => file.extend([0xff, b'S', b'L', b'v']), // what only looks like one
            1 => file.extend([0xff, b'S', b'L']),
            2 => file.extend(vec![0xff; usize::try_from(seed % 331).unwrap()]),
            3 => {
                let mut broken = value.clone();
                *broken.last_mut().unwrap() ^= 1;
                file.extend(broken);
            }
            _ => {}
        }
        placed.push((file.len() as u64, value.clone()));
        file.extend(value);
    }
    assert!(file.len() > 2 << 20, "several windows: {}", file.len());
    for cut in 0..4 {
        let raw = Bytes([vec![0; cut], file.clone()].concat(), 0..0);
        let (values, damaged, unreadable) = carve(&raw);
        let expected: Vec<_> = placed.iter().map(|(at, value)| (at + cut as u64, value.clone())).collect();
        assert!(values == expected, "{} of {}", values.len(), expected.len());
        assert!(damaged > 0 && unreadable == 0);
    }
}

/// Goal: a piece that the medium does not give costs what stands in it, and no more.
#[test]
fn a_bad_sector_is_passed_over() {
    let mut file = Vec::new();
    while file.len() < 3 << 20 {
        file.extend(value(2));
    }
    let bad = (1u64 << 20) + 700..(1u64 << 20) + 900;
    let (values, _, unreadable) = carve(&Bytes(file.clone(), bad));
    assert!(unreadable > 0);
    assert!((values.len() + 1) * value(2).len() + 3 * 4096 > file.len(), "{} values", values.len());
}

/// Goal: of a real store, with blocks rewritten and records moved again and again, all that the engine gives is found in
/// the engine's raw files, and the newest copy under each key is the one that it gives.
#[test]
fn the_raw_files_of_a_store_hold_all_that_the_engine_gives() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("store");
    let store = StoreOptions::new().drain_age(Duration::from_secs(3_600)).open(&path).unwrap();
    let sessions: Vec<_> = (0..40).map(|_| store.create(NewSession::new().meta("a", "b")).unwrap()).collect();
    for round in 0..12 {
        for (at, session) in sessions.iter().enumerate() {
            if (at + round) % 3 == 0 {
                let text = format!("round {round} ").repeat(1 + at * 40);
                let events = (0..20).map(|n| NewEvent::user_message(format!("{text}{n}")));
                session.append_batch(events).unwrap();
            }
        }
        if round % 4 == 3 {
            sessions[round].fork(crate::id::Seq::new(7)).unwrap();
        }
        store.drain().unwrap();
    }
    let noise: String =
        (0..30_000u32).map(|n| char::from(b'!' + (n.wrapping_mul(2_654_435_761) >> 25) as u8 % 90)).collect();
    sessions[0].append(NewEvent::user_message(noise)).unwrap();
    store.close().unwrap();
    drop((sessions, store));

    let mut newest: BTreeMap<(bool, Vec<u8>), (WriteNumber, Vec<u8>)> = BTreeMap::new();
    let mut copies = 0;
    for entry in std::fs::read_dir(path.join("engine-1")).unwrap() {
        let entry = entry.unwrap();
        if entry.file_type().unwrap().is_dir() {
            assert_eq!(std::fs::read_dir(entry.path()).unwrap().count(), 0, "no blobs");
            continue;
        }
        for (_, value) in carve(&std::fs::File::open(entry.path()).unwrap()).0 {
            copies += 1;
            let found = format::read_found(&value).unwrap();
            let home = found.home().unwrap();
            let slot = (matches!(home, Home::Record(_)), home.engine_key());
            let copy = (found.write_number(), value.clone());
            match newest.get_mut(&slot) {
                Some(old) if *old < copy => *old = copy,
                Some(_) => {}
                None => drop(newest.insert(slot, copy)),
            }
        }
    }
    let engine = SledStorage::open(&path.join("engine-1"), 1 << 20).unwrap();
    let mut given = 0;
    for map in Map::ALL {
        for entry in engine.range(map, Bound::Unbounded, Bound::Unbounded) {
            let (key, value) = entry.unwrap();
            given += 1;
            let carved = newest.get(&(map == Map::Sessions, key.clone()));
            assert_eq!(carved.map(|copy| &copy.1), Some(&value), "{map:?} {}", format::hex(&key));
        }
    }
    assert!(given > 200 && copies > given, "{given} values, {copies} copies, {} keys", newest.len());
}
