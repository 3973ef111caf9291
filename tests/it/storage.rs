//! The contract of the two seams: one list of cases each, run on every implementation.

use std::collections::BTreeMap;
use std::io;
use std::ops::Bound::{self, Excluded, Included, Unbounded};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use sessionlog::Error;
use sessionlog::storage::{
    Entries, Entry, FolderJournalFiles, JournalFiles, MAX_VALUE_BYTES, Map, MemoryJournalFiles,
    MemoryStorage, SledStorage, Storage,
};
use tempfile::TempDir;

/// A storage that can be opened again.
trait Bench {
    fn new() -> Self;
    fn open(&self) -> Box<dyn Storage>;
}

struct Sled(TempDir);

impl Bench for Sled {
    fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    fn open(&self) -> Box<dyn Storage> {
        Box::new(SledStorage::open(&self.0.path().join("engine-1"), 1024 * 1024).unwrap())
    }
}

struct Memory(MemoryStorage);

impl Bench for Memory {
    fn new() -> Self {
        Self(MemoryStorage::new())
    }

    fn open(&self) -> Box<dyn Storage> {
        Box::new(self.0.clone())
    }
}

macro_rules! contract {
    ($($engine:ident: $bench:ty),+; $cases:tt) => { $(contract!(@ $engine, $bench, $cases);)+ };
    (@ $engine:ident, $bench:ty, [$($case:ident),+ $(,)?]) => {
        mod $engine {
            use super::*;
            $(#[test] fn $case() { super::$case(&<$bench>::new()); })+
        }
    };
}

contract! {
    sled: Sled, memory: Memory;
    [
        values_come_back, maps_are_apart, values_are_replaced, empty_keys_and_values, full_size_values,
        ranges_with_all_bounds, reversed_bounds_are_empty, ranges_on_an_empty_map, prefixes_of_one_another,
        bytes_0xff_in_reverse, ranges_are_lazy, apply_changes_and_removes, apply_in_order, apply_of_nothing,
        a_read_sees_what_was_written_before, standing_entries_are_seen_once, removals_around_a_reader,
        flushed_data_is_there_after_reopening, close_is_final, iterators_outlive_the_storage, size_grows,
        many_full_values, random_operations,
    ]
}

const MAP: Map = Map::Events;

fn key(number: u32) -> Vec<u8> {
    number.to_be_bytes().to_vec()
}

fn value_of(number: u32) -> Vec<u8> {
    format!("value {number}").into_bytes()
}

fn all(entries: Entries) -> Vec<Entry> {
    entries.collect::<Result<_, _>>().unwrap()
}

fn keys(entries: Entries) -> Vec<Vec<u8>> {
    all(entries).into_iter().map(|(key, _)| key).collect()
}

fn values_come_back(bench: &impl Bench) {
    let storage = bench.open();
    assert_eq!(storage.get(MAP, b"key").unwrap(), None);
    storage.insert(MAP, b"key", b"value").unwrap();
    assert_eq!(storage.get(MAP, b"key").unwrap().as_deref(), Some(&b"value"[..]));
    assert_eq!(storage.get(MAP, b"ke").unwrap(), None);
    assert_eq!(storage.get(MAP, b"key\0").unwrap(), None);
}

fn maps_are_apart(bench: &impl Bench) {
    let storage = bench.open();
    for (map, value) in Map::ALL.into_iter().zip([b"0", b"1", b"2", b"3"]) {
        storage.insert(map, b"key", value).unwrap();
    }
    for (map, value) in Map::ALL.into_iter().zip([b"0", b"1", b"2", b"3"]) {
        assert_eq!(all(storage.range(map, Unbounded, Unbounded)), [(b"key".to_vec(), value.to_vec())]);
    }
}

fn values_are_replaced(bench: &impl Bench) {
    let storage = bench.open();
    for value in [&b"first"[..], b"second and longer", b"", b"third"] {
        storage.insert(MAP, b"key", value).unwrap();
        assert_eq!(storage.get(MAP, b"key").unwrap().as_deref(), Some(value));
    }
    assert_eq!(keys(storage.range(MAP, Unbounded, Unbounded)), [b"key"]);
}

fn empty_keys_and_values(bench: &impl Bench) {
    let storage = bench.open();
    storage.insert(MAP, b"", b"").unwrap();
    storage.insert(MAP, b"a", b"").unwrap();
    assert_eq!(storage.get(MAP, b"").unwrap().as_deref(), Some(&b""[..]));
    assert_eq!(keys(storage.range(MAP, Unbounded, Unbounded)), [&b""[..], b"a"]);
    assert_eq!(keys(storage.range_reverse(MAP, Unbounded, Unbounded)), [&b"a"[..], b""]);
    assert_eq!(keys(storage.range(MAP, Excluded(b""), Unbounded)), [b"a"]);
    storage.apply(MAP, &[(vec![], None)]).unwrap();
    assert_eq!(storage.get(MAP, b"").unwrap(), None);
}

fn full_size_values(bench: &impl Bench) {
    let storage = bench.open();
    let value = vec![7; MAX_VALUE_BYTES];
    let key = vec![1; 512];
    storage.insert(MAP, &key, &value).unwrap();
    storage.apply(MAP, &[(vec![2; 512], Some(value.clone()))]).unwrap();
    assert_eq!(storage.get(MAP, &key).unwrap(), Some(value));
}

/// Every pair of bounds over keys that are and are not there gives what a sorted list gives.
fn ranges_with_all_bounds(bench: &impl Bench) {
    let storage = bench.open();
    let numbers = (0..60).map(|n| n * 2).collect::<Vec<u32>>();
    for number in &numbers {
        storage.insert(MAP, &key(*number), &value_of(*number)).unwrap();
    }
    let probes = [0, 1, 2, 31, 32, 33, 64, 117, 118, 119, 200].map(key);
    let bounds = || {
        let ends = probes.iter().flat_map(|probe| [Included(probe.as_slice()), Excluded(probe.as_slice())]);
        ends.chain([Unbounded])
    };
    for from in bounds() {
        for to in bounds() {
            let expected = numbers.iter().map(|number| key(*number)).filter(|key| within(key, from, to));
            let expected = expected.collect::<Vec<_>>();
            assert_eq!(keys(storage.range(MAP, from, to)), expected, "{from:?} {to:?}");
            let reversed = expected.into_iter().rev().collect::<Vec<_>>();
            assert_eq!(keys(storage.range_reverse(MAP, from, to)), reversed, "{from:?} {to:?}");
        }
    }
}

fn within(key: &[u8], from: Bound<&[u8]>, to: Bound<&[u8]>) -> bool {
    let above = match from {
        Included(from) => key >= from,
        Excluded(from) => key > from,
        Unbounded => true,
    };
    above
        && match to {
            Included(to) => key <= to,
            Excluded(to) => key < to,
            Unbounded => true,
        }
}

fn reversed_bounds_are_empty(bench: &impl Bench) {
    let storage = bench.open();
    for number in 0..10 {
        storage.insert(MAP, &key(number), b"").unwrap();
    }
    let (low, high) = (key(3), key(6));
    for from in [Included(high.as_slice()), Excluded(&high)] {
        for to in [Included(low.as_slice()), Excluded(&low)] {
            assert!(keys(storage.range(MAP, from, to)).is_empty());
            assert!(keys(storage.range_reverse(MAP, from, to)).is_empty());
        }
    }
}

fn ranges_on_an_empty_map(bench: &impl Bench) {
    let storage = bench.open();
    assert!(keys(storage.range(MAP, Unbounded, Unbounded)).is_empty());
    assert!(keys(storage.range_reverse(MAP, Unbounded, Unbounded)).is_empty());
    assert!(keys(storage.range_reverse(MAP, Unbounded, Included(b"x"))).is_empty());
}

/// Keys of a block and its parts: `session ++ seq` and `session ++ seq ++ part`, for sessions next to each other.
fn prefixes_of_one_another(bench: &impl Bench) {
    let storage = bench.open();
    let mut expected = BTreeMap::new();
    for session in 0..3_u8 {
        for seq in [0_u64, 1, 254, 255, 256, 65_535, 65_536, u64::from(u32::MAX), u64::from(u32::MAX) + 1] {
            let block = [&[session; 16][..], &seq.to_be_bytes()].concat();
            expected.insert(block.clone(), vec![1; 900]);
            for part in 1..20_u32 {
                expected.insert([&block[..], &part.to_be_bytes()].concat(), vec![2; 900]);
            }
        }
    }
    for (key, value) in &expected {
        storage.insert(MAP, key, value).unwrap();
    }
    let expected = expected.into_keys().collect::<Vec<_>>();
    assert_eq!(keys(storage.range(MAP, Unbounded, Unbounded)), expected);
    let reversed = expected.iter().rev().cloned().collect::<Vec<_>>();
    assert_eq!(keys(storage.range_reverse(MAP, Unbounded, Unbounded)), reversed);
    for (at, wanted) in expected.iter().enumerate() {
        let mut below = storage.range_reverse(MAP, Unbounded, Excluded(wanted));
        assert_eq!(
            below.next().map(|entry| entry.unwrap().0),
            at.checked_sub(1).map(|at| expected[at].clone())
        );
        let mut at_or_below = storage.range_reverse(MAP, Unbounded, Included(wanted));
        assert_eq!(at_or_below.next().unwrap().unwrap().0, *wanted);
    }
}

/// Keys that hold and end in the greatest byte, in both directions.
fn bytes_0xff_in_reverse(bench: &impl Bench) {
    let storage = bench.open();
    let mut expected = Vec::new();
    for first in 0..=0xFF {
        for length in 0..8 {
            expected.push([&[first][..], &[0xFF; 8][..length]].concat());
        }
        expected.push(vec![first, 0]);
        expected.push(vec![first, 0xFF, 0, 0xFF]);
        if first % 50 == 0 {
            // Many pages between `first FF FF FF FF` and the next key.
            expected.extend((0..0xFF).map(|last| vec![first, 0xFF, 0xFF, 0xFF, 0xFF, last]));
        }
    }
    expected.sort();
    expected.dedup();
    for key in &expected {
        storage.insert(MAP, key, &[0; 500]).unwrap();
    }
    assert_eq!(keys(storage.range(MAP, Unbounded, Unbounded)), expected);
    for (at, wanted) in expected.iter().enumerate() {
        let mut below = storage.range_reverse(MAP, Unbounded, Excluded(wanted));
        assert_eq!(
            below.next().map(|entry| entry.unwrap().0),
            at.checked_sub(1).map(|at| expected[at].clone())
        );
    }
    expected.reverse();
    assert_eq!(keys(storage.range_reverse(MAP, Unbounded, Unbounded)), expected);
}

/// An iterator does not read ahead by more than a batch: what is written far behind it is seen.
fn ranges_are_lazy(bench: &impl Bench) {
    let storage = bench.open();
    for number in 0..2_000 {
        storage.insert(MAP, &key(number), b"old").unwrap();
    }
    let mut entries = storage.range(MAP, Unbounded, Unbounded);
    assert_eq!(entries.next().unwrap().unwrap().0, key(0));
    storage.insert(MAP, &key(1_500), b"new").unwrap();
    assert_eq!(entries.find(|entry| entry.as_ref().unwrap().0 == key(1_500)).unwrap().unwrap().1, b"new");
    assert_eq!(entries.count(), 499);
}

fn apply_changes_and_removes(bench: &impl Bench) {
    let storage = bench.open();
    for number in 0..100 {
        storage.insert(MAP, &key(number), b"old").unwrap();
    }
    let changes = (0..200).map(|number| (key(number), (number % 2 == 1).then(|| value_of(number))));
    storage.apply(MAP, &changes.collect::<Vec<_>>()).unwrap();
    let expected = (0..200).filter(|number| number % 2 == 1).map(|number| (key(number), value_of(number)));
    assert_eq!(all(storage.range(MAP, Unbounded, Unbounded)), expected.collect::<Vec<_>>());
}

/// The last of several changes of one key counts.
fn apply_in_order(bench: &impl Bench) {
    let storage = bench.open();
    let (a, b) = (b"a".to_vec(), b"b".to_vec());
    let one = Some(b"1".to_vec());
    storage.apply(MAP, &[(a.clone(), one.clone()), (a, None), (b.clone(), None), (b, one)]).unwrap();
    assert_eq!(keys(storage.range(MAP, Unbounded, Unbounded)), [b"b"]);
}

fn apply_of_nothing(bench: &impl Bench) {
    let storage = bench.open();
    storage.apply(MAP, &[]).unwrap();
    storage.apply(MAP, &[(b"missing".to_vec(), None)]).unwrap();
    storage.flush().unwrap();
    assert!(keys(storage.range(MAP, Unbounded, Unbounded)).is_empty());
}

fn a_read_sees_what_was_written_before(bench: &impl Bench) {
    let storage = bench.open();
    std::thread::scope(|scope| {
        let (sender, receiver) = std::sync::mpsc::channel::<u32>();
        let storage = &storage;
        scope.spawn(move || {
            for number in 0..3_000 {
                storage.insert(MAP, &key(number), &value_of(number)).unwrap();
                sender.send(number).unwrap();
            }
        });
        for number in receiver {
            assert_eq!(storage.get(MAP, &key(number)).unwrap(), Some(value_of(number)));
            let last = storage.range_reverse(MAP, Unbounded, Included(&key(number))).next().unwrap().unwrap();
            assert_eq!(last.0, key(number));
        }
    });
}

/// While a writer puts entries between those that stand, which splits pages, and rewrites some, every reader in either
/// direction meets each standing one exactly once.
fn standing_entries_are_seen_once(bench: &impl Bench) {
    let storage = bench.open();
    let standing = (0..600).map(|number| key(number * 1_000)).collect::<Vec<_>>();
    for key in &standing {
        storage.insert(MAP, key, &[1; 300]).unwrap();
    }
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let (storage, standing, done) = (&storage, &standing, &done);
        for reverse in [false, true] {
            scope.spawn(move || {
                let mut rounds = 0;
                while !done.load(Ordering::Relaxed) || rounds < 3 {
                    let entries = if reverse {
                        storage.range_reverse(MAP, Unbounded, Unbounded)
                    } else {
                        storage.range(MAP, Unbounded, Unbounded)
                    };
                    let mut seen = keys(entries);
                    if reverse {
                        seen.reverse();
                    }
                    assert!(seen.is_sorted_by(|a, b| a < b), "twice, or out of order");
                    seen.retain(|key| standing.binary_search(key).is_ok());
                    assert_eq!(&seen, standing);
                    rounds += 1;
                }
            });
        }
        let mut random = Random(42);
        for round in 0..6_000 {
            let number = random.below(600_000);
            let length = usize::try_from(random.below(1_000)).unwrap();
            storage.insert(MAP, &key(number), &vec![2; length]).unwrap();
            if round % 100 == 0 {
                storage.flush().unwrap();
            }
        }
        done.store(true, Ordering::Relaxed);
    });
}

/// While a writer removes and rewrites ranges in batches, which merges pages, the standing entries are seen once.
fn removals_around_a_reader(bench: &impl Bench) {
    let storage = bench.open();
    let standing = (0..200).map(|number| key(number * 50)).collect::<Vec<_>>();
    let between = (0..10_000).filter(|number| number % 50 != 0).map(key).collect::<Vec<_>>();
    for key in &standing {
        storage.insert(MAP, key, &[1; 300]).unwrap();
    }
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let (storage, standing, done) = (&storage, &standing, &done);
        scope.spawn(move || {
            while !done.load(Ordering::Relaxed) {
                for reverse in [false, true] {
                    let entries = if reverse {
                        storage.range_reverse(MAP, Unbounded, Unbounded)
                    } else {
                        storage.range(MAP, Unbounded, Unbounded)
                    };
                    let mut seen = keys(entries);
                    seen.retain(|key| standing.binary_search(key).is_ok());
                    if reverse {
                        seen.reverse();
                    }
                    assert_eq!(&seen, standing);
                }
            }
        });
        for _ in 0..3 {
            for keys in between.chunks(500) {
                let changes = keys.iter().map(|key| (key.clone(), Some(vec![3; 200]))).collect::<Vec<_>>();
                storage.apply(MAP, &changes).unwrap();
            }
            for keys in between.chunks(500) {
                storage.apply(MAP, &keys.iter().map(|key| (key.clone(), None)).collect::<Vec<_>>()).unwrap();
            }
            storage.flush().unwrap();
        }
        done.store(true, Ordering::Relaxed);
    });
    assert_eq!(keys(storage.range(MAP, Unbounded, Unbounded)), standing);
}

fn flushed_data_is_there_after_reopening(bench: &impl Bench) {
    for round in 0..5_u32 {
        let storage = bench.open();
        let expected = (0..round * 100).map(|number| (key(number), value_of(number))).collect::<Vec<_>>();
        assert_eq!(all(storage.range(MAP, Unbounded, Unbounded)), expected);
        for number in round * 100..round * 100 + 100 {
            storage.insert(MAP, &key(number), &value_of(number)).unwrap();
        }
        storage.flush().unwrap();
    }
}

/// Behind `close` every call gives `Closed`; another handle can be opened at once.
fn close_is_final(bench: &impl Bench) {
    let storage = bench.open();
    storage.insert(MAP, b"key", b"value").unwrap();
    storage.close().unwrap();
    storage.close().unwrap();
    let closed = |result: Result<(), Error>| assert!(matches!(result, Err(Error::Closed)), "{result:?}");
    closed(storage.get(MAP, b"key").map(drop));
    closed(storage.range(MAP, Unbounded, Unbounded).next().unwrap().map(drop));
    closed(storage.range_reverse(MAP, Unbounded, Unbounded).next().unwrap().map(drop));
    closed(storage.insert(MAP, b"key", b"other"));
    closed(storage.apply(MAP, &[]));
    closed(storage.flush());
    closed(storage.size_on_disk().map(drop));
    let again = bench.open();
    assert_eq!(again.get(MAP, b"key").unwrap().as_deref(), Some(&b"value"[..]));
    closed(storage.get(MAP, b"key").map(drop));
}

/// A reader that stands still while the store closes keeps nothing in use, and learns of it.
fn iterators_outlive_the_storage(bench: &impl Bench) {
    let mut readers = Vec::new();
    for round in 0..20 {
        let storage = bench.open();
        for number in 0..200 {
            storage.insert(MAP, &key(number), &value_of(round)).unwrap();
        }
        for reverse in [false, true] {
            let mut entries = if reverse {
                storage.range_reverse(MAP, Unbounded, Unbounded)
            } else {
                storage.range(MAP, Unbounded, Unbounded)
            };
            entries.next().unwrap().unwrap();
            entries.next().unwrap().unwrap();
            readers.push(entries);
        }
    }
    let last = bench.open();
    for mut reader in readers {
        let error = reader.find_map(Result::err).unwrap();
        assert!(matches!(error, Error::Closed), "{error}");
        assert!(reader.next().is_none());
    }
    last.insert(MAP, b"key", b"value").unwrap();
}

fn size_grows(bench: &impl Bench) {
    let storage = bench.open();
    let before = storage.size_on_disk().unwrap();
    for number in 0..400 {
        storage.insert(MAP, &key(number), &[9; MAX_VALUE_BYTES]).unwrap();
    }
    storage.flush().unwrap();
    assert!(storage.size_on_disk().unwrap() >= before + 400 * 6 * 1024);
}

/// 20,000 full values through a cache of a hundredth of their size, read back in both directions and after reopening.
fn many_full_values(bench: &impl Bench) {
    const COUNT: u32 = 20_000;
    let full = |number: u32| number.to_le_bytes().repeat(MAX_VALUE_BYTES / 4);
    let storage = bench.open();
    for number in 0..COUNT {
        storage.insert(MAP, &key(number), &full(number)).unwrap();
        if number % 64 == 63 {
            storage.flush().unwrap();
        }
    }
    storage.flush().unwrap();
    let check = |storage: &dyn Storage| {
        let mut expected = 0;
        for entry in storage.range(MAP, Unbounded, Unbounded) {
            assert_eq!(entry.unwrap(), (key(expected), full(expected)));
            expected += 1;
        }
        assert_eq!(expected, COUNT);
        for entry in storage.range_reverse(MAP, Unbounded, Unbounded) {
            expected -= 1;
            assert_eq!(entry.unwrap(), (key(expected), full(expected)));
        }
        assert_eq!(expected, 0);
    };
    check(&*storage);
    drop(storage);
    check(&*bench.open());
}

/// Operations drawn at random do what they do to a sorted map, across reopening.
fn random_operations(bench: &impl Bench) {
    let mut model = BTreeMap::<Vec<u8>, Vec<u8>>::new();
    let mut random = Random(7);
    let mut storage = bench.open();
    for _ in 0..3_000 {
        let any_key = |random: &mut Random| {
            let length = usize::try_from(random.below(4)).unwrap();
            (0..length)
                .map(|_| [0, 1, 0x80, 0xFF][usize::try_from(random.below(4)).unwrap()])
                .collect::<Vec<u8>>()
        };
        match random.below(40) {
            0 => {
                drop(storage);
                storage = bench.open();
            }
            1..=3 => storage.flush().unwrap(),
            4..=15 => {
                let key = any_key(&mut random);
                let value = vec![0; usize::try_from(random.below(3_000)).unwrap()];
                storage.insert(MAP, &key, &value).unwrap();
                model.insert(key, value);
            }
            16..=20 => {
                let mut changes = Vec::new();
                for _ in 0..random.below(12) {
                    let value = (random.below(2) == 0).then(|| vec![1; 20]);
                    changes.push((any_key(&mut random), value));
                }
                storage.apply(MAP, &changes).unwrap();
                for (key, value) in changes {
                    match value {
                        Some(value) => drop(model.insert(key, value)),
                        None => drop(model.remove(&key)),
                    }
                }
            }
            21..=27 => {
                let key = any_key(&mut random);
                assert_eq!(storage.get(MAP, &key).unwrap(), model.get(&key).cloned());
            }
            other => {
                let (from, to) = (any_key(&mut random), any_key(&mut random));
                let from = [Included(from.as_slice()), Excluded(&from), Unbounded][other as usize % 3];
                let to = [Included(to.as_slice()), Excluded(&to), Unbounded][random.below(3) as usize];
                let mut expected =
                    model.clone().into_iter().filter(|(key, _)| within(key, from, to)).collect::<Vec<_>>();
                assert_eq!(all(storage.range(MAP, from, to)), expected);
                expected.reverse();
                assert_eq!(all(storage.range_reverse(MAP, from, to)), expected);
            }
        }
    }
}

/// A small generator: the same numbers in every run.
struct Random(u64);

impl Random {
    fn below(&mut self, end: u32) -> u32 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        u32::try_from((self.0 >> 33) % u64::from(end)).unwrap()
    }
}

/// Journal files that can be opened again.
trait FilesBench {
    fn new() -> Self;
    fn open(&self) -> Box<dyn JournalFiles>;
}

struct FolderFiles(TempDir);

impl FilesBench for FolderFiles {
    fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    fn open(&self) -> Box<dyn JournalFiles> {
        Box::new(FolderJournalFiles::open(&self.0.path().join("journal")).unwrap())
    }
}

struct MemoryFiles(MemoryJournalFiles);

impl FilesBench for MemoryFiles {
    fn new() -> Self {
        Self(MemoryJournalFiles::new())
    }

    fn open(&self) -> Box<dyn JournalFiles> {
        Box::new(self.0.clone())
    }
}

contract! {
    folder_files: FolderFiles, memory_files: MemoryFiles;
    [
        created_files_are_zeros, writes_stay_within_the_file, names_are_plain, renames_replace_nothing,
        removed_files_stay_readable, files_are_there_after_reopening, an_empty_file, free_bytes_are_told,
    ]
}

fn kind<T: std::fmt::Debug>(result: io::Result<T>) -> io::ErrorKind {
    result.unwrap_err().kind()
}

fn created_files_are_zeros(bench: &impl FilesBench) {
    let files = bench.open();
    assert!(files.list().unwrap().is_empty());
    let file = files.create("a", 100_001).unwrap();
    assert_eq!(file.len().unwrap(), 100_001);
    let mut read = vec![1; 100_001];
    file.read_at(&mut read, 0).unwrap();
    assert!(read.iter().all(|byte| *byte == 0));
    assert_eq!(kind(files.create("a", 1)), io::ErrorKind::AlreadyExists);
    assert_eq!(kind(files.open("b")), io::ErrorKind::NotFound);
    assert_eq!(files.list().unwrap(), ["a"]);
}

fn writes_stay_within_the_file(bench: &impl FilesBench) {
    let files = bench.open();
    let file = files.create("a", 10).unwrap();
    file.write_at(b"abc", 7).unwrap();
    file.sync().unwrap();
    for (bytes, offset) in
        [(&b"abcd"[..], 7), (b"x", 10), (b"x", 11), (b"x", u64::MAX), (b"xx", u64::MAX - 1)]
    {
        assert_eq!(kind(file.write_at(bytes, offset)), io::ErrorKind::InvalidInput);
    }
    let mut read = [0; 10];
    files.open("a").unwrap().read_at(&mut read, 0).unwrap();
    assert_eq!(&read, b"\0\0\0\0\0\0\0abc");
    assert_eq!(kind(file.read_at(&mut read, 1)), io::ErrorKind::UnexpectedEof);
    assert_eq!(kind(file.read_at(&mut read, 1_000)), io::ErrorKind::UnexpectedEof);
    file.read_at(&mut read[..3], 7).unwrap();
    assert_eq!(&read[..3], b"abc");
    assert_eq!(file.len().unwrap(), 10);
}

fn names_are_plain(bench: &impl FilesBench) {
    let files = bench.open();
    files.create("a", 1).unwrap();
    for name in ["", ".", "..", "../a", "/tmp/a", "a/b", "a\0", "a\\b"] {
        assert_eq!(kind(files.create(name, 1)), io::ErrorKind::InvalidInput, "{name:?}");
        assert_eq!(kind(files.rename("a", name)), io::ErrorKind::InvalidInput, "{name:?}");
        assert!(files.open(name).is_err() && files.remove(name).is_err(), "{name:?}");
    }
    assert_eq!(files.list().unwrap(), ["a"]);
}

fn renames_replace_nothing(bench: &impl FilesBench) {
    let files = bench.open();
    let a = files.create("a", 1).unwrap();
    a.write_at(b"a", 0).unwrap();
    files.create("b", 2).unwrap();
    assert_eq!(kind(files.rename("a", "b")), io::ErrorKind::AlreadyExists);
    assert_eq!(files.open("b").unwrap().len().unwrap(), 2);
    assert_eq!(kind(files.rename("missing", "c")), io::ErrorKind::NotFound);
    files.rename("a", "c").unwrap();
    files.sync_folder().unwrap();
    let mut read = [0];
    files.open("c").unwrap().read_at(&mut read, 0).unwrap();
    assert_eq!(&read, b"a");
    a.write_at(b"c", 0).unwrap();
    let mut names = files.list().unwrap();
    names.sort();
    assert_eq!(names, ["b", "c"]);
}

fn removed_files_stay_readable(bench: &impl FilesBench) {
    let files = bench.open();
    let file = files.create("a", 3).unwrap();
    files.remove("a").unwrap();
    assert_eq!(kind(files.remove("a")), io::ErrorKind::NotFound);
    file.write_at(b"abc", 0).unwrap();
    file.read_at(&mut [0; 3], 0).unwrap();
    assert!(files.list().unwrap().is_empty());
    assert_eq!(files.create("a", 5).unwrap().len().unwrap(), 5);
}

fn files_are_there_after_reopening(bench: &impl FilesBench) {
    let files = bench.open();
    files.create("a", 4).unwrap().write_at(b"kept", 0).unwrap();
    drop(files);
    let files = bench.open();
    let mut read = [0; 4];
    files.open("a").unwrap().read_at(&mut read, 0).unwrap();
    assert_eq!(&read, b"kept");
}

fn an_empty_file(bench: &impl FilesBench) {
    let file = bench.open().create("a", 0).unwrap();
    assert_eq!(file.len().unwrap(), 0);
    file.read_at(&mut [], 0).unwrap();
    file.write_at(b"", 0).unwrap();
    file.sync().unwrap();
}

fn free_bytes_are_told(bench: &impl FilesBench) {
    assert!(bench.open().free_bytes().unwrap() > 0);
}

/// Files in memory can run out of space, too, and leave nothing when they do.
#[test]
fn memory_files_with_little_room() {
    let files = MemoryJournalFiles::new();
    files.set_free_bytes(100);
    files.create("a", 60).unwrap();
    assert_eq!(kind(files.create("b", 60)), io::ErrorKind::StorageFull);
    assert_eq!((files.free_bytes().unwrap(), files.list().unwrap().len()), (40, 1));
    files.remove("a").unwrap();
    assert_eq!(files.free_bytes().unwrap(), 100);
}

/// Real files are their owner's alone; links are neither followed nor taken for files; blocks are really allocated.
#[test]
fn folder_files_are_private_and_real() {
    use std::os::unix::fs::MetadataExt;
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("journal");
    let files = FolderJournalFiles::open(&path).unwrap();
    assert_eq!(files.path(), path);
    files.create("a", 1_000_000).unwrap();
    let mode = |path: &Path| path.symlink_metadata().unwrap().mode() & 0o777;
    assert_eq!((mode(&path), mode(&path.join("a"))), (0o700, 0o600));
    assert!(path.join("a").metadata().unwrap().blocks() * 512 >= 1_000_000);

    let target = dir.path().join("target");
    std::fs::write(&target, b"kept").unwrap();
    std::os::unix::fs::symlink(&target, path.join("link")).unwrap();
    std::fs::create_dir(path.join("folder")).unwrap();
    assert_eq!(files.list().unwrap(), ["a"]);
    assert!(files.open("link").is_err());
    assert!(files.open("folder").is_err());
    assert!(files.create("link", 9).is_err());
    assert!(files.rename("a", "link").is_err());
    files.remove("link").unwrap();
    assert_eq!(std::fs::read(&target).unwrap(), b"kept");
}

/// Handles cross threads: the log's readers, writer and drain are different ones.
#[test]
fn handles_are_shared() {
    fn shared<T: Send + Sync + 'static>() {}
    shared::<Arc<dyn Storage>>();
    shared::<Arc<dyn JournalFiles>>();
}
