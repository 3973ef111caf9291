//! A store's life in a real folder: made, opened, held, closed, dropped, killed; and who may not open it.

use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use sessionlog::storage::MemoryJournalFiles;
use sessionlog::transfer::{ExportOptions, ImportOptions, export, import};
use sessionlog::{Error, NewSession, Seq, Session, Store, StoreOptions};

use crate::support::events::{self, Said, chunk, read, user};
use crate::support::run::id;
use crate::support::watched::{Call, Watched};

const HOLD: &str = "SESSIONLOG_TEST_HOLD";

fn session(store: &Store) -> Session {
    store.session(&id("a")).or_else(|_| store.create(NewSession::with_id(id("a")))).unwrap()
}

/// H22: open, append, close or drop, open, 200 times in one process: always works, and nothing is lost.
#[test]
fn h22_open_and_close_two_hundred_times() {
    let folder = tempfile::tempdir().unwrap();
    for round in 0..200 {
        let store = Store::open(folder.path()).unwrap_or_else(|error| panic!("round {round}: {error:?}"));
        let session = session(&store);
        assert_eq!(session.len(), round);
        assert_eq!(session.append(user(&format!("{round}")).to_new()).unwrap(), Seq::new(round));
        assert_eq!(store.open_report().replayed_commits, 0);
        if round % 2 == 0 {
            store.close().unwrap();
            // Handles of a closed store do not keep it.
            if round % 4 == 0 {
                let again = Store::open(folder.path()).unwrap();
                assert_eq!(self::session(&again).len(), round + 1);
            }
        }
    }
    let lines: Vec<String> = (0..200).map(|n| user(&format!("{n}")).line(n)).collect();
    assert_eq!(read(session(&Store::open(folder.path()).unwrap()).read_from(Seq::ZERO)), lines);
}

/// Not a test by itself: the process that the next ones start, hold the store with, and kill.
#[test]
fn hold() {
    let Some(folder) = std::env::var_os(HOLD) else { return };
    let store = Store::open(&folder).unwrap();
    let session = session(&store);
    for n in 0..100 {
        session.append(if n % 2 == 0 { user("x") } else { chunk("y") }.to_new()).unwrap();
    }
    std::io::stdout().write_all(b"\nholding\n").unwrap();
    loop {
        std::thread::park();
    }
}

/// Starts a process that has appended 100 events and holds the store.
fn holder(folder: &Path) -> std::process::Child {
    let mut child = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "lifecycle::hold", "--nocapture"])
        .env(HOLD, folder)
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(child.stdout.as_mut().unwrap()).lines();
    assert!(lines.any(|line| line.unwrap() == "holding"), "the holder ended");
    child
}

/// H21 and H08: the holder is killed; the next open works by itself, within seconds, and has all that was acknowledged,
/// Buffered events too.
#[test]
fn h21_a_killed_holder_leaves_no_lock() {
    let folder = tempfile::tempdir().unwrap();
    for round in 1..=3 {
        let mut child = holder(folder.path());
        child.kill().unwrap();
        // Not waited for yet: a dead process that nobody has buried holds nothing.
        let begun = Instant::now();
        let store = Store::open(folder.path()).unwrap();
        assert!(begun.elapsed() < Duration::from_secs(30), "{:?}", begun.elapsed());
        child.wait().unwrap();
        let session = session(&store);
        assert_eq!((session.len(), session.durable_len()), (100 * round, 100 * round));
        let found = session.read_from(Seq::ZERO).unwrap();
        let all_alike = found.map(|event| event.unwrap()).filter(|event| event.seq.get() % 2 == 0);
        assert!(all_alike.map(|event| event.to_string()).all(|line| line.contains(r#""content":"x""#)));
        assert!(store.open_report().replayed_events > 0);
    }
}

/// A second open fails at once, in this process and beside a living other one, and says where and who.
#[test]
fn one_process_at_a_time() {
    let folder = tempfile::tempdir().unwrap();
    let store = Store::open(folder.path()).unwrap();
    let refused = Store::open(folder.path()).unwrap_err();
    let Error::InUse { path, holder: Some(pid) } = &refused else { panic!("{refused:?}") };
    assert_eq!((path.as_path(), *pid), (folder.path(), std::process::id()));
    session(&store).append(user("goes on").to_new()).unwrap();
    drop(store);

    let mut child = holder(folder.path());
    let refused = Store::open(folder.path()).unwrap_err();
    assert!(matches!(&refused, Error::InUse { holder: Some(pid), .. } if *pid == child.id()), "{refused:?}");
    child.kill().unwrap();
    child.wait().unwrap();
    assert_eq!(session(&Store::open(folder.path()).unwrap()).len(), 101);
}

/// After `close` every call through any handle says so, a second close does nothing, and what was appended is there.
#[test]
fn everything_is_closed_after_close() {
    let folder = tempfile::tempdir().unwrap();
    let store = Store::open(folder.path()).unwrap();
    let other = store.clone();
    let session = session(&store);
    session.append(chunk("buffered").to_new()).unwrap();
    store.close().unwrap();
    store.close().unwrap();
    other.close().unwrap();
    let at = Seq::ZERO;
    for (what, outcome) in [
        ("create", other.create(NewSession::new()).map(drop)),
        ("session", other.session(&id("a")).map(drop)),
        ("fork", other.fork(&id("a"), at, NewSession::new()).map(drop)),
        ("list", other.list().and_then(|mut list| list.next().transpose()).map(drop)),
        ("flush", other.flush()),
        ("drain", other.drain()),
        ("append", session.append(user("x").to_new()).map(drop)),
        ("batch", session.append_batch([user("x").to_new()]).map(drop)),
        ("read", session.read_from(at).and_then(|mut events| events.next().transpose()).map(drop)),
        ("last", session.last(1).and_then(|mut events| events.next().transpose()).map(drop)),
        ("follow", session.follow(at).map(drop)),
        ("fork of a session", session.fork(at).map(drop)),
        ("scan", other.scan().map(drop)),
    ] {
        assert!(matches!(outcome, Err(Error::Closed)), "{what}: {outcome:?}");
    }
    drop((session, store, other));
    let store = Store::open(folder.path()).unwrap();
    assert_eq!(store.open_report().replayed_commits, 0);
    assert_eq!(read(self::session(&store).read_from(at)), [chunk("buffered").line(0)]);
}

/// Threads that append while the store is closed: each append is acknowledged and there, or refused and not there.
#[test]
fn closing_under_appending_threads() {
    let folder = tempfile::tempdir().unwrap();
    for round in 0..10_u64 {
        let store = Store::open(folder.path()).unwrap();
        let session = store.create(NewSession::with_id(id(&format!("r{round}")))).unwrap();
        let acknowledged: u64 = std::thread::scope(|scope| {
            let writer = |_| {
                let session = session.clone();
                scope.spawn(move || {
                    let mut done = 0;
                    loop {
                        match session.append(if done % 3 == 0 { chunk("c") } else { user("u") }.to_new()) {
                            Ok(_) => done += 1,
                            Err(Error::Closed) => return done,
                            Err(error) => panic!("{error:?}"),
                        }
                    }
                })
            };
            let writers: Vec<_> = (0..4).map(writer).collect();
            while session.len() < 20 * round {
                std::thread::yield_now();
            }
            store.close().unwrap();
            writers.into_iter().map(|writer| writer.join().unwrap()).sum()
        });
        drop((session, store));
        let store = Store::open(folder.path()).unwrap();
        assert_eq!(store.session(&id(&format!("r{round}"))).unwrap().len(), acknowledged, "round {round}");
        assert_eq!(store.open_report().replayed_commits, 0);
    }
}

/// The last handle of any kind closes the store in order: a reader keeps it open, dropping it lets go.
#[test]
fn the_last_handle_closes() {
    let folder = tempfile::tempdir().unwrap();
    let store = Store::open(folder.path()).unwrap();
    let session = session(&store);
    session.append(chunk("one").to_new()).unwrap();
    drop(store);
    assert!(matches!(Store::open(folder.path()), Err(Error::InUse { .. })));
    let mut reader = session.read_from(Seq::ZERO).unwrap();
    drop(session);
    assert!(matches!(Store::open(folder.path()), Err(Error::InUse { .. })));
    assert_eq!(reader.next().unwrap().unwrap().to_string(), chunk("one").line(0));
    drop(reader);
    let store = Store::open(folder.path()).unwrap();
    assert_eq!(store.open_report().replayed_commits, 0);
    assert_eq!(self::session(&store).len(), 1);
}

/// H45: what conversations are written into is for the owner only, whatever the mask is.
#[test]
fn h45_folders_and_files_are_private() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("store");
    let store = Store::open(&path).unwrap();
    session(&store).append(user("secret").to_new()).unwrap();
    store.drain().unwrap();
    let mut folders = vec![path];
    let mut files = 0;
    while let Some(folder) = folders.pop() {
        assert_eq!(
            fs::metadata(&folder).unwrap().permissions().mode() & 0o777,
            0o700,
            "{}",
            folder.display()
        );
        for entry in fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap()) {
            if entry.file_type().unwrap().is_dir() {
                folders.push(entry.path());
            } else {
                let mode = entry.metadata().unwrap().permissions().mode() & 0o777;
                assert_eq!(mode, 0o600, "{}", entry.path().display());
                files += 1;
            }
        }
    }
    assert!(files >= 4, "{files} files");
}

/// Folders that are no store are refused and left as they are; without `create` nothing is made.
#[test]
fn what_is_no_store_is_left_alone() {
    let folder = tempfile::tempdir().unwrap();
    let missing = folder.path().join("missing");
    let refused = StoreOptions::new().create(false).open(&missing).unwrap_err();
    assert!(matches!(&refused, Error::NoStore { path } if *path == missing), "{refused:?}");
    assert!(!missing.exists());
    let empty = folder.path().join("empty");
    fs::create_dir(&empty).unwrap();
    let refused = StoreOptions::new().create(false).open(&empty).unwrap_err();
    assert!(matches!(refused, Error::NoStore { .. }), "{refused:?}");
    assert_eq!(fs::read_dir(&empty).unwrap().count(), 0);

    let other = folder.path().join("other");
    fs::create_dir(&other).unwrap();
    fs::write(other.join("letter.txt"), "dear").unwrap();
    fs::create_dir(other.join("journal")).unwrap();
    let refused = Store::open(&other).unwrap_err();
    assert!(matches!(&refused, Error::NotAStore { path, .. } if *path == other), "{refused:?}");
    assert_eq!(fs::read_dir(&other).unwrap().count(), 2);
    assert_eq!(fs::read_to_string(other.join("letter.txt")).unwrap(), "dear");
    let file = folder.path().join("file");
    fs::write(&file, "x").unwrap();
    assert!(Store::open(&file).is_err());
    assert_eq!(fs::read_to_string(&file).unwrap(), "x");

    // An empty folder becomes a store.
    let store = Store::open(&empty).unwrap();
    session(&store).append(user("x").to_new()).unwrap();
    drop(store);
    assert_eq!(StoreOptions::new().create(false).open(&empty).unwrap().list().unwrap().count(), 1);
}

/// A kill or a power cut in the very first open leaves a started store, with any part of its lock's text: the next
/// open completes it.
#[test]
fn an_interrupted_making_is_completed() {
    let whole = "sessionlog 3599 437988\n";
    let parts = (0..=whole.len()).map(|len| whole[..len].to_owned());
    let zeros = [0, 3, 11, 14].map(|len| format!("{}{}", &whole[..len], "\0".repeat(whole.len() - len)));
    for text in parts.chain(zeros) {
        let folder = tempfile::tempdir().unwrap();
        fs::create_dir(folder.path().join("journal")).unwrap();
        fs::create_dir(folder.path().join("engine-1")).unwrap();
        fs::write(folder.path().join("lock"), &text).unwrap();
        let store = Store::open(folder.path()).unwrap_or_else(|error| panic!("{text:?}: {error:?}"));
        session(&store).append(user("x").to_new()).unwrap();
    }
    // A file of that name that is not ours is left alone, and its folder is none of ours.
    for text in ["door", "4711", "sessionlog of monday"] {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("lock"), text).unwrap();
        assert!(matches!(Store::open(folder.path()), Err(Error::NotAStore { .. })), "{text}");
        assert_eq!(fs::read_to_string(folder.path().join("lock")).unwrap(), text);
    }
}

/// A store says what it is and takes, and a check of a sound one is clean and counts.
#[test]
fn a_store_says_what_it_is() {
    let folder = tempfile::tempdir().unwrap();
    let store = Store::open(folder.path()).unwrap();
    let session = session(&store);
    let said: Vec<Said> = (0..500).map(events::any).collect();
    session.append_batch(said.iter().map(Said::to_new)).unwrap();
    let before = store.info().unwrap();
    assert_eq!(before.path.as_deref(), Some(folder.path()));
    assert!(before.tail_bytes > 0 && before.journal_bytes >= before.tail_bytes / 2);
    store.drain().unwrap();
    let after = store.info().unwrap();
    assert_eq!(after.tail_bytes, 0);
    assert!(after.engine_bytes > 0);
    assert_eq!(after.store_id, before.store_id);
    session.fork(Seq::new(100)).unwrap();
    let report = store.scan().unwrap();
    assert!(report.is_clean(), "{report:?}");
    assert_eq!((report.sessions, report.events), (2, 500));
    drop((session, store));
    assert_eq!(Store::open(folder.path()).unwrap().info().unwrap().store_id, before.store_id);
}

/// A moved folder is the same store.
#[test]
fn a_closed_store_can_be_moved() {
    let folder = tempfile::tempdir().unwrap();
    let (from, to) = (folder.path().join("from"), folder.path().join("to"));
    let store = Store::open(&from).unwrap();
    session(&store).append(user("x").to_new()).unwrap();
    drop(store);
    fs::rename(&from, &to).unwrap();
    assert_eq!(session(&Store::open(&to).unwrap()).len(), 1);
}

/// Whatever is called from however many threads, what changes the engine is one thread: a second one could write between
/// the steps of a pass.
#[test]
fn the_engine_has_one_writer() {
    let writers = Arc::new(Mutex::new(Vec::new()));
    let seen = Arc::clone(&writers);
    let storage = Watched::new(move |call| {
        if matches!(call, Call::Write(_) | Call::Flush) {
            seen.lock().unwrap().push(std::thread::current().id());
        }
        Ok(())
    });
    let options = StoreOptions::new().drain_age(Duration::from_millis(1)).tail_bytes(64 << 10);
    let store = options.open_on(Arc::new(storage), Arc::new(MemoryJournalFiles::new())).unwrap();
    writers.lock().unwrap().clear();
    std::thread::scope(|scope| {
        for thread in 0..4 {
            let store = &store;
            scope.spawn(move || {
                for round in 0..10 {
                    let name = id(&format!("s{thread}-{round}"));
                    let session = store.create(NewSession::with_id(name.clone())).unwrap();
                    session.append_batch((0..200).map(|n| user(&format!("{n}")).to_new())).unwrap();
                    session.messages().unwrap();
                    let fork = session.fork(Seq::new(50)).unwrap();
                    fork.append(chunk("more").to_new()).unwrap();
                    let mut file = Vec::new();
                    export(&fork, ExportOptions::new(), &mut file).unwrap();
                    store.delete(&fork.id()).unwrap();
                    import(store, &file[..], &ImportOptions::new()).unwrap();
                    if round % 2 == 0 {
                        store.drain().unwrap();
                    } else {
                        store.delete(&name).unwrap();
                    }
                }
            });
        }
    });
    store.drain().unwrap();
    let writers = std::mem::take(&mut *writers.lock().unwrap());
    assert!(writers.len() > 20, "{}", writers.len());
    assert!(writers.iter().all(|thread| *thread == writers[0]), "{writers:?}");
}
