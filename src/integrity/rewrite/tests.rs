use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use super::*;
use crate::{LabelChange, NewEvent, NewSession, Repair, Salvage, Seq, Session, Store};

const CANARY: &str = "the canary that must be gone";

fn id(name: &str) -> crate::SessionId {
    name.parse().unwrap()
}

fn say(session: &Session, text: &str, count: u64) {
    let len = session.len();
    let events = (len..len + count).map(|n| NewEvent::user_message(format!("{text} {n}")));
    session.append_batch(events).unwrap();
}

/// A store with all sorts of things in it, some of them deleted.
fn make(path: &Path) -> BTreeMap<String, Vec<String>> {
    let store = Store::open(path).unwrap();
    for round in 0..3 {
        let secret = store.create(NewSession::with_id(id("secret"))).unwrap();
        say(&secret, CANARY, 400);
        store.drain().unwrap();
        say(&secret, CANARY, 3);
        store.delete(secret.id()).unwrap();
        if round == 1 {
            store.drain().unwrap();
        }
    }
    let parent = store.create(NewSession::with_id(id("parent"))).unwrap();
    say(&parent, "shared", 50);
    let fork = parent.fork(Seq::new(40)).unwrap();
    say(&fork, "own", 5);
    say(&parent, CANARY, 300);
    store.drain().unwrap();
    store.delete(parent.id()).unwrap();
    let plain = store.create(NewSession::with_id(id("plain"))).unwrap();
    say(&plain, "plain", 1_000);
    plain.append(NewEvent::assistant_message("large ".repeat(10_000))).unwrap();
    plain.label(LabelChange::new().title("named")).unwrap();
    say(&plain, "behind", 20);
    plain.messages().unwrap();
    store.create(NewSession::with_id(id("empty"))).unwrap();
    // Begun and not published.
    let hidden = store.create_hidden(NewSession::with_id(id("hidden"))).unwrap();
    hidden.append_batch((0..20).map(|n| NewEvent::user_message(format!("{CANARY} {n}")))).unwrap();
    let expected = lines(&store);
    store.close().unwrap();
    expected
}

fn lines(store: &Store) -> BTreeMap<String, Vec<String>> {
    let mut all = BTreeMap::new();
    for info in store.list().unwrap() {
        let session = store.session(&info.unwrap().header.id).unwrap();
        let events = session.read_from(Seq::ZERO).unwrap().map(|event| event.unwrap().to_string());
        all.insert(session.id().to_string(), events.collect());
    }
    all
}

/// The files below `path`, by their names in it.
fn files(path: &Path) -> BTreeMap<String, Vec<u8>> {
    let name = |file: &Path| file.strip_prefix(path).unwrap().display().to_string();
    let all = crate::storage::plain_files(path).unwrap();
    all.iter().map(|file| (name(file), fs::read(file).unwrap())).collect()
}

fn copy_folder(from: &Path, to: &Path) {
    fs::create_dir(to).unwrap();
    for entry in fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        let target = to.join(entry.file_name());
        if entry.file_type().unwrap().is_dir() {
            copy_folder(&entry.path(), &target);
        } else if entry.file_name() != "reserve" {
            fs::copy(entry.path(), target).unwrap();
        }
    }
}

/// Whether text of deleted sessions is in a file. Values are compressed, so it is looked for as values have it, too.
fn holds_canary(path: &Path) -> Option<String> {
    for (name, bytes) in files(path) {
        if bytes.windows(CANARY.len()).any(|window| window == CANARY.as_bytes()) {
            return Some(name);
        }
        let mut found = None;
        super::super::carve::carve_values(&fs::File::open(path.join(&name)).unwrap(), &mut |_, carved| {
            let super::super::carve::Carved::Value(value) = carved else { return Ok::<_, Error>(()) };
            let key = value.envelope.key;
            let Ok(block) = format::open_block(key, value.envelope.seq, value.value) else { return Ok(()) };
            let mut events = Vec::new();
            let count = block.header().count;
            let all = format::Sections::All;
            let decoded = block.decode(&mut format::Scratch::default(), 0, count, all, &mut events);
            if decoded.is_ok() && events.iter().any(|event| event.to_string().contains(CANARY)) {
                found = Some(name.clone());
            }
            Ok(())
        })
        .unwrap()
        .unwrap();
        if found.is_some() {
            return found;
        }
    }
    None
}

fn engines(path: &Path) -> Vec<String> {
    let names = fs::read_dir(path).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap());
    let mut engines: Vec<_> = names.filter(|name| name.starts_with("engine")).collect();
    engines.sort();
    engines
}

fn check_whole(path: &Path, expected: &BTreeMap<String, Vec<String>>, what: &str) {
    let store = Store::open(path).unwrap();
    assert!(lines(&store) == *expected, "{what}");
    assert!(store.open_report().torn.is_empty(), "{what}");
    let report = store.scan().unwrap();
    assert!(report.is_clean(), "{what}: {report:?}");
    let plain = store.session(&id("plain")).unwrap();
    assert_eq!(plain.labels().title.as_deref(), Some("named"), "{what}");
    say(&plain, "on", 1);
    store.close().unwrap();
    assert_eq!(engines(path).len(), 1, "{what}: {:?}", engines(path));
}

/// Goal: afterwards the store holds what it held, takes less, and no file of it holds what was deleted: neither the
/// engine's nor the journal's, torn ends and copies of repairs included.
#[test]
fn deleted_text_is_gone() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("store");
    let expected = make(&path);
    fs::write(path.join("journal/torn-7"), CANARY).unwrap();
    fs::create_dir(path.join("repair-3")).unwrap();
    fs::write(path.join("repair-3/values.jsonl"), CANARY).unwrap();
    fs::remove_dir_all(path.join("repair-3")).unwrap();
    assert!(holds_canary(&path).is_some_and(|name| name.starts_with("engine")), "the test finds it");
    fs::create_dir(path.join("repair-3")).unwrap();
    fs::write(path.join("repair-3/values.jsonl"), CANARY).unwrap();

    let report = Store::rewrite(&path).unwrap();
    assert_eq!(holds_canary(&path), None);
    assert_eq!((report.sessions, engines(&path)), (3, vec!["engine-2".to_owned()]));
    assert!(report.engine_bytes_after < report.engine_bytes_before, "{report:?}");
    assert!(report.removed.contains(&"journal/torn-7".to_owned()), "{report:?}");
    assert!(report.removed.contains(&"repair-3".to_owned()), "{report:?}");
    check_whole(&path, &expected, "rewritten");

    let again = Store::rewrite(&path).unwrap();
    assert_eq!(again.sessions, 3);
    assert_eq!(engines(&path), ["engine-3"]);
}

/// Goal: killed behind any change of the folder, the store is whole, its scan and its salvage work as it lies there, and
/// the next open removes what is left. (What the folder is at each of them is copied: a kill keeps the page cache.)
#[test]
fn killed_at_every_change() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("store");
    let expected = make(&path);
    let mut points = Vec::new();
    rewrite_watched(&path, &mut |point| {
        copy_folder(&path, &folder.path().join(format!("killed-{}", points.len())));
        points.push(point);
        Ok(())
    })
    .unwrap();
    assert!(points.len() > 10, "{points:?}");
    let swapped = points.iter().position(|point| *point == "swapped").unwrap();
    let named = points.iter().position(|point| *point == "named the new engine").unwrap();
    for (number, point) in points.iter().enumerate() {
        let killed = folder.path().join(format!("killed-{number}"));
        let scan = Scan::new().folder(&killed).unwrap();
        assert!(scan.is_clean() && scan.sessions == 3, "{point}: {scan:?}");
        if number % 3 == 0 || number >= named {
            // Whichever engine the description names, and when nothing says which.
            for lost in [false, true] {
                if lost {
                    fs::rename(killed.join("sessionlog"), killed.join("sessionlog.lost")).unwrap();
                }
                let new = folder.path().join(format!("salvaged-{number}-{lost}"));
                Salvage::new().folder(&killed, &new).unwrap();
                let salvaged = Store::open(&new).unwrap();
                assert!(lines(&salvaged) == expected, "salvaged, {point}");
                salvaged.close().unwrap();
                if lost {
                    fs::rename(killed.join("sessionlog.lost"), killed.join("sessionlog")).unwrap();
                }
            }
        }
        check_whole(&killed, &expected, point);
        assert_eq!(engines(&killed), [if number < swapped { "engine-1" } else { "engine-2" }], "{point}");
        if number >= swapped {
            assert_eq!(holds_canary(&killed), None, "{point}");
        }
        // And a rewrite of that is a rewrite.
        Store::rewrite(&killed).unwrap();
        assert_eq!(holds_canary(&killed), None, "{point}");
        fs::remove_dir_all(&killed).unwrap();
    }
}

/// Goal: an error at any change leaves the store whole and closed, and takes away what was begun.
#[test]
fn failed_at_every_change() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("store");
    let expected = make(&path);
    for number in 0.. {
        let mut left = number;
        let copy = folder.path().join("copy");
        copy_folder(&path, &copy);
        let done = rewrite_watched(&copy, &mut |point| {
            if left == 0 {
                return Err(Error::Storage(point.into()));
            }
            left -= 1;
            Ok(())
        });
        let failed = done.is_err();
        if let Err(error) = &done {
            assert!(matches!(error, Error::Storage(_)), "{error:?}");
            assert!(!engines(&copy).iter().any(|name| name.ends_with(".new")), "{:?}", engines(&copy));
        }
        check_whole(&copy, &expected, &format!("{done:?}"));
        fs::remove_dir_all(&copy).unwrap();
        if !failed {
            assert!(number > 10);
            break;
        }
    }
}

/// Goal: a damaged store is left as it is, for what cannot be read would be lost; so are one that is in use, and folders
/// that hold none.
#[test]
fn what_cannot_be_rewritten_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("store");
    make(&path);
    {
        let store = Store::open(&path).unwrap();
        let refused = Store::rewrite(&path);
        assert!(matches!(refused, Err(Error::InUse { .. })), "{refused:?}");
        store.close().unwrap();
    }
    let none = folder.path().join("none");
    assert!(matches!(Store::rewrite(&none), Err(Error::NoStore { .. })));
    assert!(!none.exists());

    let engine = SledStorage::open(&path.join("engine-1"), 1 << 20).unwrap();
    let (key, mut value) =
        engine.range_reverse(Map::Events, Bound::Unbounded, Bound::Unbounded).next().unwrap().unwrap();
    *value.last_mut().unwrap() ^= 1;
    engine.insert(Map::Events, &key, &value).unwrap();
    engine.flush().unwrap();
    engine.close().unwrap();
    let refused = Store::rewrite(&path);
    assert!(matches!(refused, Err(Error::NotClean { errors: 1.., .. })), "{refused:?}");
    assert_eq!(engines(&path), ["engine-1"]);

    Repair::folder(&path).unwrap().apply().unwrap();
    let report = Store::rewrite(&path).unwrap();
    assert!(report.removed.contains(&"repair-1".to_owned()), "{report:?}");
    let store = Store::open(&path).unwrap();
    assert!(store.quarantine().unwrap().count() > 0, "what was set aside stays with its session");
    assert!(store.scan().unwrap().is_clean());
}

/// Goal: too little room is told before anything is written.
#[test]
fn room_is_looked_for_first() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("store");
    Store::open(&path).unwrap().close().unwrap();
    let parts = Parts::open(&path).unwrap();
    let rewriting = Rewriting { parts: &parts, reached: &mut |_| Ok(()) };
    assert!(matches!(rewriting.check_room(u64::MAX / 3), Err(Error::DiskFull { .. })));
    rewriting.check_room(0).unwrap();
    parts.close(Ok(())).unwrap();
}
