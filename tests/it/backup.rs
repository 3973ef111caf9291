//! A backup: a store of its own with all that the original held, made while that is in use.

use std::sync::atomic::{AtomicBool, Ordering};

use sessionlog::{Error, NewEvent, NewSession, Scan, Seq, Store, StoreOptions};

use crate::support::bytes::{lines, noise, say};
use crate::support::run::id;

/// Everything is in the copy, hashes included; it goes on by itself; and what is there already is left alone.
#[test]
fn a_copy_is_a_store_of_its_own() {
    let folder = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let store = Store::open(folder.path().join("store")).unwrap();
    let a = store.create(NewSession::with_id(id("a")).meta("model", "small")).unwrap();
    say(&a, 500);
    a.append(NewEvent::user_message(noise(1, 20_000))).unwrap();
    let b = store.fork(&id("a"), Seq::new(250), NewSession::with_id(id("b"))).unwrap();
    say(&b, 3);
    store.create(NewSession::with_id(id("empty"))).unwrap();
    let path = folder.path().join("copy");
    let report = store.backup(&path).unwrap();
    assert_eq!(report.scan.findings, [], "{report:#?}");
    assert_eq!((report.scan.sessions, report.scan.events), (3, 504));
    say(&a, 1);

    let again = store.backup(&path);
    assert!(matches!(&again, Err(Error::OutputExists { path: taken }) if *taken == path), "{again:?}");
    let copy = Store::open(&path).unwrap();
    assert_ne!(copy.info().unwrap().store_id, store.info().unwrap().store_id);
    for (name, len) in [("a", 501), ("b", 253), ("empty", 0)] {
        let (old, new) = (store.session(&id(name)).unwrap(), copy.session(&id(name)).unwrap());
        assert_eq!(lines(&new), lines(&old)[..len]);
        let old_hash = old.running_hash(Seq::new(len as u64)).unwrap();
        assert_eq!(new.running_hash(Seq::new(len as u64)).unwrap(), old_hash);
        let (old, new) = (old.header().unwrap(), new.header().unwrap());
        assert_eq!(
            (new.id, new.created_at, new.parent, new.meta),
            (old.id, old.created_at, old.parent, old.meta)
        );
    }
    say(&copy.session(&id("b")).unwrap(), 2);
    copy.close().unwrap();
    assert_eq!(Scan::new().folder(&path).unwrap().findings, []);
}

/// While sessions grow, are forked and drained, a copy is of one moment: each of its sessions is a prefix of the
/// original's, and a fork is never longer than its parent.
#[test]
fn a_store_in_use_is_copied() {
    let folder = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let store = StoreOptions::new().open(folder.path().join("store")).unwrap();
    let sessions: Vec<_> = (0..4).map(|_| store.create(NewSession::new()).unwrap()).collect();
    let done = AtomicBool::new(false);
    let mut copies = Vec::new();
    std::thread::scope(|scope| {
        for session in &sessions {
            let done = &done;
            scope.spawn(move || {
                // Bounded, so that what is compared below does not depend on how fast this machine copies.
                while !done.load(Ordering::Relaxed) && session.len() < 1_000 {
                    say(session, 5);
                    if session.len() % 50 == 0 {
                        session.fork(Seq::new(session.len() - 1)).map(|fork| say(&fork, 1)).unwrap();
                    }
                }
            });
        }
        scope.spawn(|| {
            while !done.load(Ordering::Relaxed) {
                store.drain().unwrap();
            }
        });
        for number in 0..3 {
            let copied = store.backup(folder.path().join(format!("copy-{number}")));
            if copied.is_err() {
                done.store(true, Ordering::Relaxed);
            }
            copies.push(copied.unwrap());
        }
        done.store(true, Ordering::Relaxed);
    });
    for report in copies {
        assert_eq!(report.scan.findings, [], "{report:#?}");
        let copy = Store::open(&report.path).unwrap();
        for info in copy.list().unwrap() {
            let found = copy.session(&info.unwrap().header.id).unwrap();
            let original = lines(&store.session(found.id()).unwrap());
            let found = lines(&found);
            assert!(original.starts_with(&found));
        }
    }
}

/// A copy that was interrupted has no name that anybody looks for, and what stands in its way is left alone.
#[test]
fn a_copy_that_was_interrupted_is_no_store() {
    let folder = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let store = Store::open(folder.path().join("store")).unwrap();
    let unfinished = folder.path().join("copy.unfinished");
    std::fs::create_dir(&unfinished).unwrap();
    let refused = store.backup(folder.path().join("copy"));
    assert!(matches!(&refused, Err(Error::OutputExists { path }) if *path == unfinished), "{refused:?}");
    assert_eq!(std::fs::read_dir(&unfinished).unwrap().count(), 0);
    assert!(!folder.path().join("copy").exists());
}
