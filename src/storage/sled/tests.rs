//! What needs the inside: time limits, and files damaged in every way a sample of bytes can be.

use std::ops::Bound::Unbounded;

use super::*;

const CACHE: u64 = 1024 * 1024;

fn fill(dir: &Path) {
    for round in 0..3_u8 {
        let storage = SledStorage::open(dir, CACHE).unwrap();
        for number in 0..120_u8 {
            storage.insert(Map::Events, &[round, number], &[number; MAX_VALUE_BYTES]).unwrap();
            storage.insert(Map::Sessions, &[number], &[round]).unwrap();
        }
        storage.apply(Map::Care, &[(vec![1], Some(vec![2])), (vec![3], Some(vec![4]))]).unwrap();
        storage.flush().unwrap();
        storage.close().unwrap();
    }
}

fn copy(from: &Path, to: &Path) {
    std::fs::create_dir(to).unwrap();
    for entry in std::fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        if entry.path().is_file() {
            std::fs::copy(entry.path(), to.join(entry.file_name())).unwrap();
        }
    }
}

/// Damages `bytes` at `at` in one of four ways.
fn damage(bytes: &mut Vec<u8>, way: usize, at: usize) {
    let end = (at + 600).min(bytes.len());
    match way % 4 {
        0 => bytes.truncate(at),
        1 => bytes[at] ^= 1 << (at % 8),
        2 => bytes[at..end].fill(0),
        _ => bytes[at..end].fill(0xA5),
    }
}

/// Opens, reads everything, writes and closes, within a time limit. Returns whether it opened.
fn use_all(dir: &Path) -> bool {
    let limit = Duration::from_secs(20);
    let folder = dir.to_owned();
    let used = on_thread("use", limit * 2, move || {
        let storage = match SledStorage::open_within(&folder, CACHE, limit) {
            Ok(storage) => storage,
            Err(Error::Corrupt { place, corruption: Corruption::Engine { message } }) => {
                assert_eq!((place.what, place.at), ("engine", Some(folder.display().to_string())));
                assert!(!message.is_empty());
                return false;
            }
            Err(other) => panic!("{other:?}"),
        };
        for map in Map::ALL {
            for entries in
                [storage.range(map, Unbounded, Unbounded), storage.range_reverse(map, Unbounded, Unbounded)]
            {
                for entry in entries {
                    match entry {
                        // sled checks its pages: what comes back is what was written, though perhaps not all of it.
                        Ok((key, value)) if map == Map::Events => {
                            assert_eq!(value, [key[1]; MAX_VALUE_BYTES])
                        }
                        Ok(_) => {}
                        Err(Error::Corrupt { .. } | Error::Storage(_)) => break,
                        Err(other) => panic!("{other:?}"),
                    }
                }
            }
        }
        let written = storage.insert(Map::Care, b"new", b"x").and_then(|()| storage.flush());
        if let Err(error) = written {
            assert!(matches!(error, Error::Corrupt { .. } | Error::Storage(_)), "{error:?}");
            assert!(matches!(storage.flush(), Err(Error::Failed { .. })));
            assert!(matches!(storage.insert(Map::Care, b"a", b"b"), Err(Error::Failed { .. })));
            assert!(matches!(storage.apply(Map::Care, &[]), Err(Error::Failed { .. })));
        }
        storage.close().unwrap();
        true
    });
    match used {
        Ok(opened) => opened.unwrap(),
        Err(_) => panic!("{} hangs", dir.display()),
    }
}

/// Each file cut, flipped, zeroed and overwritten in many places: sled opens or a typed error says that it cannot, and
/// it never panics through, hangs, or gives a wrong value. Nothing is deleted: the undamaged files open again.
#[test]
fn damaged_files() {
    let base = tempfile::tempdir().unwrap();
    let good = base.path().join("good");
    fill(&good);
    let names = files::names(&good).unwrap();
    assert!(names.iter().any(|name| name.starts_with("snap.")), "{names:?}");
    let mut opened = 0;
    let mut refused = 0;
    for name in names.into_iter().filter(|name| name != "blobs") {
        let bytes = std::fs::read(good.join(&name)).unwrap();
        for sample in 0..24 {
            let dir = base.path().join("damaged");
            copy(&good, &dir);
            // Every third one hits the header of one of sled's segments.
            let at = bytes.len() * sample / 24 + sample % 3;
            let at = if sample % 3 == 0 && name == "db" { at / 524_288 * 524_288 + sample % 20 } else { at };
            let mut damaged = bytes.clone();
            // Not cut to nothing: that is an unborn database, and a case of its own.
            damage(&mut damaged, sample, at.max(1));
            std::fs::write(dir.join(&name), &damaged).unwrap();
            if use_all(&dir) {
                opened += 1
            } else {
                refused += 1
            }
            let left = files::names(&dir).unwrap();
            assert!(
                left.contains(&name) && left.iter().any(|name| name.starts_with("snap.")),
                "{name}: {left:?}"
            );
            std::fs::remove_dir_all(&dir).unwrap();
        }
    }
    assert!(opened > 0 && refused > 0, "{opened} opened, {refused} refused");
    assert!(use_all(&good));
}

/// A panic in sled at open is a typed error with sled's words, and what caused it is the way out.
#[test]
fn panic_at_open() {
    use std::os::unix::ffi::OsStrExt;
    let base = tempfile::tempdir().unwrap();
    let dir = base.path().join("engine-1");
    fill(&dir);
    // sled unwraps the name's text.
    let strange = dir.join("blobs").join(std::ffi::OsStr::from_bytes(b"\xFF"));
    std::fs::write(&strange, b"").unwrap();
    for _ in 0..3 {
        let error = SledStorage::open(&dir, CACHE).unwrap_err();
        let Error::Corrupt { corruption: Corruption::Engine { message }, .. } = error else {
            panic!("{error:?}")
        };
        assert!(message.contains("unwrap"), "{message}");
    }
    std::fs::remove_file(&strange).unwrap();
    assert!(use_all(&dir));
}

/// An open that takes too long gives up; the next one waits for it to be done with the files.
#[test]
fn open_within_a_limit() {
    let base = tempfile::tempdir().unwrap();
    let dir = base.path().join("engine-1");
    let error = SledStorage::open_within(&dir, CACHE, Duration::ZERO).unwrap_err();
    assert!(matches!(error, Error::TimedOut { .. }), "{error:?}");
    assert!(use_all(&dir));
}

/// Files that somebody has open are not touched, and the error says so.
#[test]
fn files_in_use() {
    let base = tempfile::tempdir().unwrap();
    let dir = base.path().join("engine-1");
    let storage = SledStorage::open(&dir, CACHE).unwrap();
    std::fs::write(dir.join("snap.0000000000000001.generating"), b"half").unwrap();
    let error = SledStorage::open(&dir, CACHE).unwrap_err();
    assert!(matches!(error, Error::InUse { holder: None, .. }), "{error:?}");
    assert!(dir.join("snap.0000000000000001.generating").exists());
    storage.insert(Map::Care, b"key", b"value").unwrap();
    drop(storage);
    assert!(use_all(&dir));
}

/// The first failed write is given as it is; later writes refer to it; reads go on.
#[test]
fn errors_are_final() {
    let base = tempfile::tempdir().unwrap();
    let storage = SledStorage::open(&base.path().join("engine-1"), CACHE).unwrap();
    storage.insert(Map::Events, b"key", b"value").unwrap();
    let failing = |_: &Engine| -> ::sled::Result<()> {
        Err(::sled::Error::Io(std::io::Error::from_raw_os_error(rustix::io::Errno::NOSPC.raw_os_error())))
    };
    let error = storage.shared.write("write", failing).unwrap_err();
    let Error::Io { action: "write", source, .. } = &error else { panic!("{error:?}") };
    assert_eq!(source.kind(), std::io::ErrorKind::StorageFull);
    for result in [
        storage.insert(Map::Events, b"other", b"value"),
        storage.apply(Map::Events, &[(b"key".to_vec(), None)]),
        storage.flush(),
    ] {
        let Err(Error::Failed { cause }) = result else { panic!("{result:?}") };
        assert_eq!(cause.to_string(), error.to_string());
    }
    assert_eq!(storage.get(Map::Events, b"key").unwrap().as_deref(), Some(&b"value"[..]));
    assert_eq!(storage.range(Map::Events, Unbounded, Unbounded).count(), 1);
}

/// A panic during a read is that read's error and ends writes; its text is short.
#[test]
fn panic_in_a_call() {
    let base = tempfile::tempdir().unwrap();
    let storage = SledStorage::open(&base.path().join("engine-1"), CACHE).unwrap();
    let error =
        storage.shared.read(|_| -> ::sled::Result<()> { panic!("{}", "secret ".repeat(1_000)) }).unwrap_err();
    let Error::Storage(source) = &error else { panic!("{error:?}") };
    assert!(source.to_string().len() < 200);
    assert!(matches!(storage.flush(), Err(Error::Failed { .. })));
    assert_eq!(storage.get(Map::Events, b"key").unwrap(), None);
    storage.close().unwrap();
}
