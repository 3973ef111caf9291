//! The engine's files: modes, attribute, leftovers of crashes, space, and opening again at once.

use std::fs::{self, File};
use std::ops::Bound::Unbounded;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use rustix::fs::{IFlags, Mode, ioctl_getflags, ioctl_setflags};
use sessionlog::storage::{EngineDurability, MAX_VALUE_BYTES, Map, SledStorage, Storage};

/// The smallest there is.
const CACHE: u64 = 0;
const MAP: Map = Map::Events;

fn open(dir: &Path) -> SledStorage {
    SledStorage::open(dir, CACHE).unwrap()
}

fn synchronous(path: &Path) -> bool {
    ioctl_getflags(File::open(path).unwrap()).is_ok_and(|flags| flags.contains(IFlags::SYNC))
}

fn contents(dir: &Path) -> Vec<std::path::PathBuf> {
    fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().path()).collect()
}

/// Whether the temporary folder's file system has the attribute; says so when it has not.
fn attribute_can_be_had(dir: &Path) -> bool {
    let file = File::open(dir).unwrap();
    let set = ioctl_getflags(&file).and_then(|flags| ioctl_setflags(&file, flags | IFlags::SYNC));
    if let Err(error) = set {
        eprintln!("NOT TESTED: {} cannot have the synchronous attribute: {error}", dir.display());
    }
    set.is_ok()
}

/// Every file and folder of the engine has the attribute, also after a copy that dropped it, and the engine says so.
#[test]
fn the_attribute_is_set_and_told() {
    let base = tempfile::tempdir().unwrap();
    let probe = base.path().join("probe");
    fs::create_dir(&probe).unwrap();
    if !attribute_can_be_had(&probe) {
        return;
    }
    let dir = base.path().join("engine-1");
    for round in 0..3 {
        let storage = open(&dir);
        assert_eq!(storage.durability(), EngineDurability::SynchronousAttribute);
        assert!(synchronous(&dir));
        for path in contents(&dir) {
            assert!(synchronous(&path), "{}", path.display());
        }
        storage.insert(MAP, b"key", &[round]).unwrap();
        storage.flush().unwrap();
        storage.close().unwrap();
        for path in contents(&dir).iter().chain([&dir]) {
            let file = File::open(path).unwrap();
            ioctl_setflags(&file, ioctl_getflags(&file).unwrap() - IFlags::SYNC).unwrap();
            assert!(!synchronous(path));
        }
    }
}

/// Where the attribute cannot be had the weaker mode is on, told, and works.
#[test]
fn the_weaker_mode_on_tmpfs() {
    const TMPFS: i64 = 0x0102_1994;
    let shm = Path::new("/dev/shm");
    let is_tmpfs = rustix::fs::statfs(shm).is_ok_and(|stat| stat.f_type == TMPFS);
    let base = tempfile::tempdir_in(shm);
    let (true, Ok(base)) = (is_tmpfs, base) else {
        eprintln!("NOT TESTED: there is no tmpfs at /dev/shm");
        return;
    };
    let dir = base.path().join("engine-1");
    for round in 0..3_u8 {
        let storage = open(&dir);
        assert_eq!(storage.durability(), EngineDurability::SyncAfterFlush);
        for number in 0..100 {
            storage.insert(MAP, &[round, number], &[number; MAX_VALUE_BYTES]).unwrap();
            if number % 10 == 0 {
                storage.flush().unwrap();
            }
        }
        storage.apply(MAP, &[(vec![round], Some(vec![1]))]).unwrap();
        storage.flush().unwrap();
    }
    assert_eq!(open(&dir).range(MAP, Unbounded, Unbounded).count(), 303);
}

/// Whatever the umask, nobody else may look into the engine's files.
#[test]
fn modes() {
    let before = rustix::process::umask(Mode::from_raw_mode(0o022));
    let base = tempfile::tempdir().unwrap();
    let dir = base.path().join("made").join("engine-1");
    for _ in 0..2 {
        let storage = open(&dir);
        storage.insert(MAP, b"key", b"value").unwrap();
        storage.flush().unwrap();
        let mode = |path: &Path| path.metadata().unwrap().mode() & 0o777;
        assert_eq!(mode(&dir), 0o700);
        assert_eq!(mode(dir.parent().unwrap()), 0o700);
        for path in contents(&dir) {
            assert_eq!(mode(&path), if path.is_dir() { 0o700 } else { 0o600 }, "{}", path.display());
        }
    }
    rustix::process::umask(before);
}

/// Half-written snapshots, and what is left of a database that was never born, are in nobody's way.
#[test]
fn leftovers_of_crashes() {
    let base = tempfile::tempdir().unwrap();
    let dir = base.path().join("engine-1");
    let storage = open(&dir);
    storage.insert(MAP, b"key", b"value").unwrap();
    storage.flush().unwrap();
    drop(storage);

    let half = dir.join("snap.FFFFFFFFFFFFFFFF.generating");
    fs::write(&half, b"half a snapshot").unwrap();
    let storage = open(&dir);
    assert!(!half.exists());
    assert_eq!(storage.get(MAP, b"key").unwrap().as_deref(), Some(&b"value"[..]));
    drop(storage);

    for missing in [true, false] {
        let db = dir.join("db");
        if missing {
            fs::remove_file(&db).unwrap()
        } else {
            fs::write(&db, b"").unwrap()
        }
        fs::write(dir.join("conf"), b"segment_size: 77\n").unwrap();
        fs::write(dir.join("snap.0000000000001000"), b"of nothing").unwrap();
        let storage = open(&dir);
        assert_eq!(storage.range(MAP, Unbounded, Unbounded).count(), 0);
        storage.insert(MAP, b"key", b"value").unwrap();
        storage.flush().unwrap();
        drop(storage);
        assert_eq!(open(&dir).range(MAP, Unbounded, Unbounded).count(), 1);
    }
}

/// Opened and closed 200 times in one process, each time with a reader that still stands in the last round's store and
/// with writes not flushed: always succeeds (sled's issue 1289).
#[test]
fn opened_200_times() {
    let base = tempfile::tempdir().unwrap();
    let dir = base.path().join("engine-1");
    let mut reader = None;
    for round in 0..200_u32 {
        let storage = open(&dir);
        for part in 0..4 {
            storage.insert(MAP, &[&round.to_be_bytes()[..], &[part]].concat(), &[part; 3_000]).unwrap();
        }
        if round % 3 == 0 {
            storage.flush().unwrap();
        }
        let mut entries = storage.range(MAP, Unbounded, Unbounded);
        entries.next().unwrap().unwrap();
        if round % 2 == 0 {
            storage.close().unwrap();
        }
        drop(storage);
        reader = Some(entries);
    }
    drop(reader);
    assert_eq!(open(&dir).range(MAP, Unbounded, Unbounded).count(), 800);
}

/// Full values, written, rewritten and removed, never spill into files of their own, which the weaker mode would not
/// keep safe.
#[test]
fn no_blob_files() {
    let base = tempfile::tempdir().unwrap();
    let dir = base.path().join("engine-1");
    let storage = open(&dir);
    let key = |number: u32| [&[7; 16][..], &u64::from(number).to_be_bytes(), &[0; 4]].concat();
    for round in 0..3_u8 {
        for number in 0..1_000 {
            storage.insert(MAP, &key(number * 3 + u32::from(round)), &[round; MAX_VALUE_BYTES]).unwrap();
            if number % 64 == 0 {
                storage.flush().unwrap();
            }
        }
        // A batch is one write in the engine: many full values of one page in it.
        let batch =
            (0..500).map(|number| (key(number), Some(vec![round; MAX_VALUE_BYTES]))).collect::<Vec<_>>();
        storage.apply(MAP, &batch).unwrap();
        storage.apply(MAP, &(900..1_400).map(|number| (key(number), None)).collect::<Vec<_>>()).unwrap();
        storage.flush().unwrap();
    }
    assert!(contents(&dir.join("blobs")).is_empty());
    drop(storage);
    drop(open(&dir));
    assert!(contents(&dir.join("blobs")).is_empty());
}

/// The size is that of the files.
#[test]
fn size_is_that_of_the_files() {
    let base = tempfile::tempdir().unwrap();
    let dir = base.path().join("engine-1");
    let storage = open(&dir);
    storage.insert(MAP, b"key", b"value").unwrap();
    storage.flush().unwrap();
    let sizes =
        contents(&dir).into_iter().filter(|path| path.is_file()).map(|path| path.metadata().unwrap().len());
    assert_eq!(storage.size_on_disk().unwrap(), sizes.sum::<u64>());
}
