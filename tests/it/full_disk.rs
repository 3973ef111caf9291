//! Full disks that are real: a small file system, filled. What was acknowledged stays, what could not be done is told and
//! leaves nothing that looks done, and with room again it works.

use std::io::ErrorKind;
use std::ops::Bound;
use std::path::Path;

use sessionlog::storage::{Map, SledStorage, Storage};
use sessionlog::{Error, NewSession, Repair, Salvage, Scan, Store};

use crate::small_disk::SmallDisk;
use crate::support::bytes::{contents, copy_folder, lines, noise, say};
use crate::support::run::id;

/// Room for a store, its segments and its reserve, and little else.
const MIB: u64 = 48;

fn folder() -> tempfile::TempDir {
    tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap()
}

/// Two sessions in a store that was closed; what they say.
fn make(path: &Path) -> [Vec<String>; 2] {
    let store = Store::open(path).unwrap();
    let said = ["a", "b"].map(|name| {
        let session = store.create(NewSession::with_id(id(name))).unwrap();
        for round in 0..4 {
            say(&session, 300);
            session.append(sessionlog::NewEvent::user_message(noise(round, 40_000))).unwrap();
            store.drain().unwrap();
        }
        lines(&session)
    });
    store.close().unwrap();
    said
}

/// Says of an error that the disk was full, whoever met it first.
fn is_full(error: &Error) -> bool {
    let mut next: Option<&(dyn std::error::Error + 'static)> = Some(error);
    while let Some(cause) = next {
        let by_system = cause.downcast_ref::<std::io::Error>().map(std::io::Error::kind);
        if by_system == Some(ErrorKind::StorageFull) || cause.to_string().contains("No space left") {
            return true;
        }
        next = cause.source();
    }
    matches!(error, Error::DiskFull { .. })
}

fn reads(path: &Path) -> [Vec<String>; 2] {
    let store = Store::open(path).unwrap();
    let all = ["a", "b"].map(|name| {
        let session = store.session(&id(name)).unwrap();
        session
            .read_from(sessionlog::Seq::ZERO)
            .unwrap()
            .map_while(Result::ok)
            .map(|event| event.to_string())
            .collect()
    });
    store.close().unwrap();
    all
}

/// A repair needs room for its copies and for what it writes: with too little it says so, at whatever step the disk is
/// full, and begun again with room it comes to the same end.
#[test]
fn h19_a_repair_on_a_full_disk() {
    let Some(disk) = SmallDisk::new(MIB) else { return };
    let base = folder();
    let sound = base.path().join("sound");
    let said = make(&sound);
    let damaged = base.path().join("damaged");
    copy_folder(&sound, &damaged);
    let engine = SledStorage::open(&damaged.join("engine-1"), 1 << 20).unwrap();
    let blocks: Vec<_> =
        engine.range(Map::Events, Bound::Unbounded, Bound::Unbounded).map(Result::unwrap).collect();
    // The second block of `a`: all that lies behind it goes into quarantine.
    engine.apply(Map::Events, &[(blocks[1].0.clone(), None)]).unwrap();
    engine.flush().unwrap();
    engine.close().unwrap();
    drop(engine);

    let repaired = base.path().join("repaired");
    copy_folder(&damaged, &repaired);
    let plan = Repair::folder(&repaired).unwrap().apply().unwrap();
    assert!(!plan.is_empty());
    let expected = reads(&repaired);
    assert!(expected[0].len() < said[0].len() && said[0].starts_with(&expected[0]));
    assert_eq!(expected[1], said[1]);

    let mut refused = 0;
    for left in [0, 4 << 10, 64 << 10, 200 << 10, 600 << 10, 2 << 20, 8 << 20] {
        let path = disk.path().join("store");
        copy_folder(&damaged, &path);
        disk.fill(left);
        let done = Repair::folder(&path).and_then(Repair::apply);
        if let Err(error) = &done {
            assert!(is_full(error), "{left}: {error:?}");
            refused += 1;
        }
        disk.free();
        Repair::folder(&path).unwrap().apply().unwrap();
        assert!(Scan::new().folder(&path).unwrap().is_clean());
        assert!(Repair::folder(&path).unwrap().apply().unwrap().is_empty(), "nothing is left to do");
        assert!(reads(&path) == expected, "{left}: the same end");
        std::fs::remove_dir_all(&path).unwrap();
    }
    assert!(refused >= 2, "the disk was never full");
}

/// A backup, a salvage, onto a disk that is too small: told, nothing of that name is there, and the store is as it was.
#[test]
fn h19_copies_onto_a_full_disk() {
    let Some(disk) = SmallDisk::new(MIB) else { return };
    let base = folder();
    let path = base.path().join("store");
    let said = make(&path);
    let before = contents(&path);
    let copy = disk.path().join("copy");
    let mut refused = 0;
    for left in [0, 64 << 10, 600 << 10, 1 << 20, 3 << 20, 12 << 20] {
        disk.fill(left);
        let salvaged = Salvage::new().folder(&path, &copy);
        match salvaged {
            Ok(_) => std::fs::remove_dir_all(&copy).unwrap(),
            Err(error) => {
                assert!(is_full(&error), "{left}: {error:?}");
                assert!(!copy.exists(), "{left}: what is not done has no name");
                refused += 1;
            }
        }
    }
    assert!(refused >= 2, "the disk was never full");
    assert!(contents(&path) == before, "what is salvaged is never written to");

    let store = Store::open(&path).unwrap();
    refused = 0;
    for left in [0, 64 << 10, 600 << 10, 1 << 20, 3 << 20, 12 << 20] {
        disk.fill(left);
        match store.backup(&copy) {
            Ok(_) => std::fs::remove_dir_all(&copy).unwrap(),
            Err(error) => {
                assert!(is_full(&error), "{left}: {error:?}");
                assert!(!copy.exists(), "{left}: what is not done has no name");
                refused += 1;
            }
        }
    }
    assert!(refused >= 2, "the disk was never full");
    disk.free();
    say(&store.session(&id("a")).unwrap(), 1);
    store.backup(&copy).unwrap();
    store.close().unwrap();
    let copied = reads(&copy);
    assert!(copied[0].starts_with(&said[0]) && copied[0].len() == said[0].len() + 1 && copied[1] == said[1]);
}
