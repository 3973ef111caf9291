//! Making, completing and refusing folders.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt};

use super::*;
use crate::storage::EngineDurability;

fn description(engine: &str) -> Description {
    Description {
        format: Description::FORMAT,
        store_id: [7; 16],
        durability: EngineDurability::SynchronousAttribute,
        engine: engine.into(),
    }
}

fn make(path: &Path) -> Folder {
    let mut folder = Folder::open(path, Create::IfMissing).unwrap();
    assert_eq!(folder.description(), None);
    fs::create_dir(folder.engine_dir()).unwrap();
    folder.describe(description("engine-1")).unwrap();
    folder
}

/// All that is below `path`: names, contents, modes.
fn picture(path: &Path) -> BTreeMap<PathBuf, (u32, Vec<u8>)> {
    let mut found = BTreeMap::new();
    for entry in fs::read_dir(path).unwrap() {
        let path = entry.unwrap().path();
        let mode = path.symlink_metadata().unwrap().mode();
        if path.is_dir() {
            found.extend(picture(&path));
        }
        found.insert(path.clone(), (mode, fs::read(&path).unwrap_or_default()));
    }
    found
}

/// In a missing folder, with missing ones above it, and in an empty one; all private.
#[test]
fn made_in_missing_and_empty_folders() {
    let base = tempfile::tempdir().unwrap();
    let empty = base.path().join("empty");
    fs::create_dir(&empty).unwrap();
    for path in [base.path().join("a/b/c"), empty] {
        let folder = make(&path);
        assert_eq!(folder.path(), path);
        assert_eq!(folder.engine_dir(), path.join("engine-1"));
        assert_eq!(folder.journal_dir(), path.join("journal"));
        drop(folder);
        let mode = |path: &Path| path.metadata().unwrap().mode() & 0o777;
        for name in ["", "journal"] {
            assert_eq!(mode(&path.join(name)), 0o700);
        }
        for name in ["lock", "sessionlog"] {
            assert_eq!(mode(&path.join(name)), 0o600);
        }
        for create in [Create::Never, Create::IfMissing] {
            assert_eq!(Folder::open(&path, create).unwrap().description(), Some(&description("engine-1")));
        }
    }
    assert_eq!(base.path().join("a").metadata().unwrap().mode() & 0o777, 0o700);
}

/// A call that may not create leaves no trace.
#[test]
fn nothing_is_made_when_it_may_not() {
    let base = tempfile::tempdir().unwrap();
    let missing = base.path().join("missing");
    let empty = base.path().join("empty");
    let started = base.path().join("started");
    fs::create_dir(&empty).unwrap();
    drop(Folder::open(&started, Create::IfMissing).unwrap());
    let before = picture(base.path());
    for path in [missing, empty, started] {
        let error = Folder::open(&path, Create::Never).unwrap_err();
        assert!(matches!(&error, Error::NoStore { path: found } if *found == path), "{error}");
    }
    assert_eq!(picture(base.path()), before);
}

/// Folders and files of others are refused and stay as they are, to the last byte and mode.
#[test]
fn what_is_no_store_stays_untouched() {
    let base = tempfile::tempdir().unwrap();
    type Case<'a> = (&'a str, &'a [(&'a str, &'a [u8])]);
    let cases: [Case<'_>; 9] = [
        ("files", &[("notes.txt", b"mine")]),
        ("foreign lock", &[("lock", b"4711")]),
        ("lock and more", &[("lock", b""), ("data", b"")]),
        ("journal file", &[("journal", b"")]),
        ("journal in use", &[("lock", b""), ("journal/segment-1", b"frames"), ("engine-1/db", b"")]),
        ("later engine", &[("lock", b""), ("engine-2/db", b"")]),
        ("hidden", &[(".git/config", b"")]),
        ("reserve", &[("reserve", b"0000")]),
        ("other case", &[("SESSIONLOG", b"")]),
    ];
    for (name, contents) in cases {
        for (file, bytes) in contents {
            let file = base.path().join(name).join(file);
            fs::create_dir_all(file.parent().unwrap()).unwrap();
            fs::write(file, bytes).unwrap();
        }
        fs::set_permissions(base.path().join(name), fs::Permissions::from_mode(0o755)).unwrap();
    }
    fs::write(base.path().join("file"), b"").unwrap();
    let strange = base.path().join("strange");
    fs::create_dir(&strange).unwrap();
    let not_text = std::os::unix::ffi::OsStrExt::from_bytes(b"\xFF");
    fs::write(strange.join::<&std::ffi::OsStr>(not_text), b"").unwrap();

    let before = picture(base.path());
    for entry in fs::read_dir(base.path()).unwrap() {
        let path = entry.unwrap().path();
        for create in [Create::Never, Create::IfMissing] {
            let error = Folder::open(&path, create).unwrap_err();
            let refused = matches!(&error, Error::NotAStore { path: found, .. } if *found == path);
            assert!(refused, "{}: {error}", path.display());
        }
    }
    assert_eq!(picture(base.path()), before);
}

/// Making is interrupted after each of its steps, once and again: the next open completes it.
#[test]
fn interrupted_making_is_completed() {
    let steps: [fn(&Path); 7] = [
        |path| fs::create_dir_all(path).unwrap(),
        |path| fs::write(path.join("lock"), b"").unwrap(),
        |path| fs::write(path.join("lock"), b"sessionlog 4294967295 12\n").unwrap(),
        |path| fs::create_dir(path.join("journal")).unwrap(),
        |path| fs::create_dir(path.join("engine-1")).unwrap(),
        |path| fs::write(path.join("engine-1/db"), b"half").unwrap(),
        |path| fs::write(path.join("sessionlog.new"), b"sessionlog sto").unwrap(),
    ];
    for done in 0..=steps.len() {
        let base = tempfile::tempdir().unwrap();
        let path = base.path().join("store");
        for step in &steps[..done] {
            step(&path);
        }
        drop(Folder::open(&path, Create::IfMissing).unwrap());
        let mut folder = Folder::open(&path, Create::IfMissing).unwrap();
        assert_eq!((folder.description(), folder.remove_leftovers().unwrap().len()), (None, 0));
        assert!(folder.journal_dir().is_dir());
        assert_eq!(path.join("engine-1/db").exists(), done >= 6, "the engine completes its own folder");
        folder.describe(description("engine-1")).unwrap();
        drop(folder);
        assert!(Folder::open(&path, Create::Never).unwrap().description().is_some());
        assert_eq!(path.metadata().unwrap().mode() & 0o777, 0o700);
    }
}

/// One handle at a time, and the error comes before anything is changed.
#[test]
fn second_open_is_refused() {
    let base = tempfile::tempdir().unwrap();
    let path = base.path().join("store");
    let folder = make(&path);
    let before = picture(&path);
    for create in [Create::Never, Create::IfMissing] {
        let error = Folder::open(&path, create).unwrap_err();
        assert!(
            matches!(&error, Error::InUse { holder: Some(pid), .. } if *pid == std::process::id()),
            "{error}"
        );
    }
    assert_eq!(picture(&path), before);
    drop(folder);
    for _ in 0..200 {
        drop(Folder::open(&path, Create::Never).unwrap());
    }
}

/// A store that is too new or damaged is named as such and left as it is.
#[test]
fn newer_and_damaged_stores() {
    let base = tempfile::tempdir().unwrap();
    let path = base.path().join("store");
    drop(make(&path));
    let file = path.join("sessionlog");
    let text = fs::read_to_string(&file).unwrap();
    for (changed, newer) in
        [(text.replace("format 1", "format 12"), true), (text.replace("engine-1", "engine-2"), false)]
    {
        fs::write(&file, &changed).unwrap();
        let error = Folder::open(&path, Create::IfMissing).unwrap_err();
        match error {
            Error::UnsupportedFormat { found: 12, known: 1, .. } => assert!(newer),
            Error::Corrupt { ref place, .. } => assert!(!newer && place.what == "description"),
            other => panic!("{other}"),
        }
        assert_eq!(fs::read_to_string(&file).unwrap(), changed);
    }
    fs::write(&file, text).unwrap();
    Folder::open(&path, Create::Never).unwrap();
}

/// Only engine folders that the description does not name go, and only real ones.
#[test]
fn leftovers_are_removed() {
    let base = tempfile::tempdir().unwrap();
    let path = base.path().join("store");
    let mut folder = make(&path);
    let elsewhere = base.path().join("elsewhere");
    fs::create_dir(&elsewhere).unwrap();
    fs::write(elsewhere.join("kept"), b"").unwrap();
    std::os::unix::fs::symlink(&elsewhere, path.join("engine-9")).unwrap();
    for name in ["engine-2/blobs", "engine-03", "engine-x", "engine-", "engines", "engine-4294967296"] {
        fs::create_dir_all(path.join(name)).unwrap();
    }
    fs::write(path.join("engine-7"), b"a file").unwrap();
    fs::write(path.join("sessionlog.new"), b"").unwrap();
    let mut removed = folder.remove_leftovers().unwrap();
    removed.sort();
    assert_eq!(removed, ["engine-2", "sessionlog.new"]);
    for kept in ["engine-1", "engine-03", "engine-x", "engine-", "engines", "engine-7", "engine-9/kept"] {
        assert!(path.join(kept).exists(), "{kept}");
    }
    assert!(folder.remove_leftovers().unwrap().is_empty());

    fs::create_dir(path.join("engine-2")).unwrap();
    folder.describe(description("engine-2")).unwrap();
    assert_eq!(folder.engine_dir(), path.join("engine-2"));
    assert_eq!(folder.remove_leftovers().unwrap(), ["engine-1"]);
}
