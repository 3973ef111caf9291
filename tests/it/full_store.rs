//! A store on a disk that is really full: small ones, made for the test. The same on a medium in memory, which always
//! runs, is in `prune`, `delete` and `fault`.

use std::collections::{BTreeMap, BTreeSet};

use sessionlog::{Error, LabelChange, NewSession, Prune, Seq, Store};

use crate::small_disk::SmallDisk;
use crate::support::events::{self, Said, noise, read, user};
use crate::support::medium::{Crash, Medium};
use crate::support::run::{id, quiet};

fn full(result: sessionlog::Result<Seq>) -> bool {
    match result {
        Ok(_) => false,
        Err(Error::DiskFull { .. }) => true,
        Err(error) => panic!("a full disk gives {error:?}"),
    }
}

/// Sessions before `from` are gone, the others hold what was acknowledged.
fn check(store: &Store, said: &[Vec<Said>], from: usize, kind: &str) {
    for (n, said) in said.iter().enumerate() {
        let session = store.session(&id(&format!("s{n}")));
        match n < from {
            true => assert!(matches!(session, Err(Error::SessionNotFound { .. })), "{kind}: s{n}"),
            false => assert_eq!(
                read(session.unwrap().read_from(Seq::ZERO)),
                events::lines(said, 0),
                "{kind}: s{n}"
            ),
        }
    }
}

/// Closes a store: what has no room to be drained stays in the journal.
fn close(store: &Store, kind: &str) {
    match store.close() {
        Ok(()) => {}
        Err(Error::DiskFull { needed_bytes, free_bytes, .. }) => {
            eprintln!("{kind}: closed undrained: {needed_bytes} needed, {free_bytes} free");
        }
        Err(error) => panic!("{kind}: close: {error:?}"),
    }
}

/// A store fills its disk, and others take the rest: appends are refused with `DiskFull` and nothing else; reads, opens,
/// deletions, prunes and closes work; the store has not failed, and appends go on when there is room.
#[test]
#[ignore = "in one run of six sled itself meets the full disk in a pass, which fails the store, or a second deletion is refused: \
            what the engine needs beside the bytes of a pass has no firm bound yet"]
fn a_store_on_a_full_disk() {
    for (kind, disk) in [("tmpfs", SmallDisk::in_memory(40)), ("ext4", SmallDisk::new(48))] {
        let Some(disk) = disk else { continue };
        // What is given back at the end.
        disk.fill(28 << 20);
        let path = disk.path().join("store");
        let store = Store::open(&path).unwrap();
        let mut said: Vec<Vec<Said>> = Vec::new();
        let mut is_full = false;
        while !is_full {
            let n = said.len();
            assert!(n < 200, "{kind}: the disk does not fill");
            let session = store.create(NewSession::with_id(id(&format!("s{n}"))));
            let session = match session {
                Err(Error::DiskFull { .. }) => break,
                session => session.unwrap(),
            };
            said.push(Vec::new());
            for k in 0..20 {
                let event = noise(n as u64 * 100 + k, 50_000);
                is_full = full(session.append(event.to_new()));
                if is_full {
                    break;
                }
                said.last_mut().unwrap().push(event);
            }
        }
        drop(store.drain());
        disk.fill(0);
        eprintln!("{kind}: full with {} sessions", said.len());
        let last = store.session(&id(&format!("s{}", said.len() - 1))).unwrap();
        assert!((0..40).any(|n| full(last.append(noise(n, 1_000_000).to_new()))), "{kind}");
        // What of those fitted into the last segment is the last session's; it goes, too.
        store.delete(last.id()).unwrap();
        said.pop();
        let holds = |store: &Store, from: usize| check(store, &said, from, kind);
        holds(&store, 0);
        store.delete(&id("s0")).unwrap();
        holds(&store, 1);
        let keep = Prune::new().keep_newest(said.len() as u64 - 2);
        assert_eq!(store.prune(&store.plan_prune(&keep).unwrap()).unwrap().going().count(), 1, "{kind}");
        holds(&store, 2);
        close(&store, kind);
        drop((last, store));

        // The reserve is used up by now: what it left is all there is.
        let store = Store::open(&path).unwrap_or_else(|error| panic!("{kind}: open: {error:?}"));
        holds(&store, 2);
        store.delete(&id("s2")).unwrap();
        let session = store.session(&id("s3")).unwrap();
        let mut extra = 0;
        while extra < 40 && !full(session.append(noise(extra, 1_000_000).to_new())) {
            extra += 1;
        }
        assert!(extra < 40, "{kind}: appends went on");
        close(&store, kind);
        drop((session, store));

        let store = Store::open(&path).unwrap_or_else(|error| panic!("{kind}: open: {error:?}"));
        disk.free();
        let session = store.session(&id("s4")).unwrap();
        let before = session.len();
        session.append(user("room again").to_new()).unwrap();
        store.drain().unwrap();
        assert_eq!(session.durable_len(), before + 1);
        assert_eq!(store.session(&id("s3")).unwrap().len(), said[3].len() as u64 + extra);
        let report = store.scan().unwrap();
        assert!(report.is_clean(), "{kind}: {report:?}");
        drop((session, store));
    }
}

/// What is in the journal when a store is opened and has no room to be drained waits there: it is read, labelled, deleted
/// and appended to as in any other store as far as there is room, crashes again, and is whole when there is room. A hidden
/// session whose publication is in there is not taken for one that was given up.
#[test]
fn a_tail_without_room_waits_in_the_journal() {
    for crash in [Crash::Kill, Crash::Power] {
        for free in [0, (2 << 20) - 1, 3 << 20, 4 << 20] {
            let medium = Medium::new(free);
            let reopen = |store: Store, free| {
                medium.stop();
                drop(store);
                medium.restart(crash);
                medium.set_free_bytes(free);
                medium.open(quiet()).unwrap()
            };
            let mut expected: BTreeMap<String, Vec<Said>> = BTreeMap::new();
            let store = medium.open(quiet()).unwrap();
            let append = |store: &Store, name: &str, said: &[Said]| {
                store.session(&id(name)).unwrap().append_batch(said.iter().map(Said::to_new))
            };
            let hidden = ["published", "given up"].map(|name| {
                let hidden = store.create_hidden(NewSession::with_id(id(name))).unwrap();
                hidden.append_batch([user("hidden").to_new()]).unwrap();
                hidden
            });
            // Blocks of a hidden session, whose publication will be in the journal alone.
            store.drain().unwrap();
            for name in ["a", "b"] {
                store.create(NewSession::with_id(id(name))).unwrap();
                let said: Vec<Said> = (0..30).map(|n| noise(n, 60_000)).collect();
                append(&store, name, &said).unwrap();
                expected.insert(name.into(), said);
            }
            let [published, given_up] = hidden;
            drop(published.publish(LabelChange::new()).unwrap());
            expected.insert("published".into(), vec![user("hidden")]);
            medium.stop();
            drop(given_up);

            let holds = |store: &Store, expected: &BTreeMap<String, Vec<Said>>| {
                let listed: BTreeSet<String> =
                    store.list().unwrap().map(|info| info.unwrap().header.id.to_string()).collect();
                assert!(listed.iter().eq(expected.keys()), "{listed:?}");
                for (name, said) in expected {
                    let session = store.session(&id(name)).unwrap();
                    assert_eq!(read(session.read_from(Seq::ZERO)), events::lines(said, 0), "{name}");
                }
            };
            let mut store = reopen(store, free);
            holds(&store, &expected);
            for round in 0..2 {
                let more = user(&format!("more {round}"));
                match append(&store, "b", std::slice::from_ref(&more)) {
                    Ok(_) => expected.get_mut("b").unwrap().push(more),
                    Err(Error::DiskFull { .. }) => {}
                    Err(error) => panic!("{free}: {error:?}"),
                }
                match store.drain() {
                    Ok(()) | Err(Error::DiskFull { .. }) => {}
                    Err(error) => panic!("{free}: {error:?}"),
                }
                store = reopen(store, free);
                holds(&store, &expected);
            }
            match store.delete(&id("a")) {
                Ok(()) => drop(expected.remove("a")),
                Err(Error::DiskFull { .. }) => assert!(free < 2 << 20, "{free}"),
                Err(error) => panic!("{free}: {error:?}"),
            }
            holds(&store, &expected);
            let store = reopen(store, 1 << 40);
            holds(&store, &expected);
            assert!(store.scan().unwrap().is_clean());
            for name in expected.keys() {
                store.delete(&id(name)).unwrap();
            }
            let store = reopen(store, 1 << 40);
            store.drain().unwrap();
            let left: Vec<usize> = medium.image().maps.iter().map(Vec::len).collect();
            assert_eq!(left, [2, 0, 0, 0], "{free}");
        }
    }
}
