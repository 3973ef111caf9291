//! Small blocks: growing slowly leaves none, and a compaction merges what there is, whatever else goes on or fails.
//!
//! The model's tests have compactions among their operations, too.

use std::ops::Bound;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use sessionlog::storage::{JournalFiles, MAX_VALUE_BYTES, Map, MemoryJournalFiles, MemoryStorage};
use sessionlog::{CompactReport, Corruption, Error, NewSession, Salvage, Scan, Seq, Session, Store};

use crate::fault::{ALL, at_every_operation};
use crate::support::events::{self, Said, chunk, noise, read, user};
use crate::support::medium::{Crash, Medium, Step};
use crate::support::run::{Run, id, quiet};

fn users(count: usize) -> Vec<Said> {
    (0..count).map(|n| user(&format!("message {n}")).at(events::NOON + n as i64)).collect()
}

/// The lengths of all blocks, by storage key.
fn blocks(medium: &Medium) -> Vec<(Vec<u8>, usize)> {
    let all = medium.storage().range(Map::Events, Bound::Unbounded, Bound::Unbounded);
    all.map(|entry| entry.map(|(key, value)| (key[..16].to_vec(), value.len())).unwrap()).collect()
}

fn lines(session: &Session) -> Vec<String> {
    read(session.read_from(Seq::ZERO))
}

fn append(session: &Session, said: &[Said]) {
    session.append_batch(said.iter().map(Said::to_new)).unwrap();
}

/// Appends each event into a block of its own.
fn scatter(medium: &Medium, store: &Store, session: &Session, said: &[Said]) {
    store.drain().unwrap();
    medium.scatter(true);
    for one in said {
        append(session, std::slice::from_ref(one));
        store.drain().unwrap();
    }
    medium.scatter(false);
}

/// Goal: sessions that grow by single appends, with passes, closes and kills in between, have full blocks, and one
/// that goes on.
#[test]
fn slow_growth_leaves_no_small_blocks() {
    let medium = Medium::new(1);
    let names: Vec<String> = (0..12).map(|n| format!("s{n}")).collect();
    let mut store = medium.open(quiet()).unwrap();
    for name in &names {
        store.create(NewSession::with_id(id(name))).unwrap();
    }
    for round in 0..90_u64 {
        for (n, name) in names.iter().enumerate() {
            let said = noise(1_000 * n as u64 + round, 300);
            append(&store.session(&id(name)).unwrap(), &[said]);
        }
        match round % 3 {
            0 => store.drain().unwrap(),
            1 => {
                store.close().unwrap();
                drop(store);
                store = medium.open(quiet()).unwrap();
            }
            _ => {
                medium.stop();
                drop(store);
                medium.restart(if round % 2 == 0 { Crash::Kill } else { Crash::Power });
                store = medium.open(quiet()).unwrap();
            }
        }
    }
    store.drain().unwrap();
    let blocks = blocks(&medium);
    assert!(blocks.len() >= 4 * names.len(), "{}", blocks.len());
    let small = |pair: &&[(Vec<u8>, usize)]| pair[0].0 == pair[1].0 && pair[0].1 < MAX_VALUE_BYTES * 9 / 10;
    assert_eq!(blocks.windows(2).filter(small).count(), 0);
    let report = store.compact().unwrap();
    assert_eq!((report.blocks_before, report.merged_sessions), (report.blocks_after, 0));
}

/// Goal: what is small becomes full, the report says so, every way of reading gives the same, and a second compaction
/// writes nothing.
#[test]
fn small_blocks_become_full_ones() {
    let medium = Medium::new(2);
    let store = medium.open(quiet()).unwrap();
    let mut expected = Vec::new();
    for name in ["a", "b", "c"] {
        let session = store.create(NewSession::with_id(id(name))).unwrap();
        append(&session, &users(5));
        let said: Vec<Said> = (0..150).map(|n| if n % 3 == 0 { chunk("x") } else { noise(n, 200) }).collect();
        scatter(&medium, &store, &session, if name == "c" { &said[..1] } else { &said });
        expected.push((
            session.clone(),
            lines(&session),
            session.running_hash(Seq::new(77.min(session.len()))).unwrap(),
        ));
    }
    let before = blocks(&medium);
    assert_eq!(before.len(), 2 * 151 + 2);
    let report = store.compact().unwrap();
    let after = blocks(&medium);
    let bytes = |blocks: &[(Vec<u8>, usize)]| blocks.iter().map(|(_, len)| 24 + *len as u64).sum::<u64>();
    let CompactReport {
        sessions,
        merged_sessions,
        blocks_before,
        blocks_after,
        bytes_before,
        bytes_after,
        ..
    } = report;
    assert_eq!((sessions, merged_sessions), (3, 3));
    assert_eq!((blocks_before, blocks_after), (before.len() as u64, after.len() as u64));
    assert_eq!((bytes_before, bytes_after), (bytes(&before), bytes(&after)));
    let small = |pair: &&[(Vec<u8>, usize)]| pair[0].0 == pair[1].0 && pair[0].1 < MAX_VALUE_BYTES * 9 / 10;
    assert_eq!(after.windows(2).filter(small).count(), 0, "{after:?}");
    for (session, lines, hash) in &expected {
        assert_eq!(&read(session.read_from(Seq::ZERO)), lines);
        let mut reverse = read(session.read_reverse(Seq::ZERO..Seq::new(session.len())));
        reverse.reverse();
        assert_eq!(&reverse, lines);
        assert_eq!(session.running_hash(Seq::new(77.min(session.len()))).unwrap(), *hash);
    }
    assert!(store.scan().unwrap().is_clean(), "{:?}", store.scan());
    medium.take_log();
    let again = store.compact().unwrap();
    assert_eq!((again.blocks_before, again.blocks_after), (report.blocks_after, report.blocks_after));
    assert_eq!(again.merged_sessions, 0);
    let writes = |step: &Step| matches!(step, Step::Apply(Map::Events, _) | Step::Insert(Map::Events));
    assert!(!medium.take_log().iter().any(writes));
    store.close().unwrap();
    drop((store, expected));
    let store = medium.open(quiet()).unwrap();
    assert!(store.scan().unwrap().is_clean(), "{:?}", store.scan());
}

/// Goal: a kill or a power cut at every operation of a compaction leaves what the model allows, clean, and forks of
/// sessions that are deleted keep theirs.
#[test]
fn faults_at_every_operation() {
    at_every_operation(quiet, ALL, |run| {
        run.create("a");
        run.append("a", &users(3), None);
        run.fork("a", 2, "b");
        for round in 0..4 {
            run.scatter("a", &[noise(round, 150), chunk("c")]);
            run.scatter("b", &[noise(round, 150)]);
        }
        run.fork("a", 6, "c");
        run.compact();
        run.scatter("a", &users(2));
        run.delete("a");
        run.append("b", &users(1), None);
        run.compact();
    });
}

/// Goal: the readers that are there when blocks are merged under their eyes, at any place, give every event once.
#[test]
fn merged_under_a_readers_eyes() {
    for (taken, seed) in (0..40).step_by(3).zip(10..) {
        let medium = Medium::new(seed);
        let store = medium.open(quiet()).unwrap();
        let session = store.create(NewSession::with_id(id("a"))).unwrap();
        append(&session, &users(4));
        let said: Vec<Said> = (0..40).map(|n| if n % 4 == 0 { chunk("x") } else { noise(n, 400) }).collect();
        scatter(&medium, &store, &session, &said);
        let expected = lines(&session);
        let len = expected.len() as u64;
        let mut forward = session.read_from(Seq::ZERO).unwrap();
        let mut reverse = session.read_reverse(Seq::ZERO..Seq::new(len)).unwrap();
        let mut words = session.read_from(Seq::ZERO).unwrap().without_chunks();
        let mut follower = session.follow(Seq::ZERO).unwrap();
        let mut found: [Vec<String>; 4] = Default::default();
        for _ in 0..taken {
            found[0].push(forward.next().unwrap().unwrap().to_string());
            found[1].push(reverse.next().unwrap().unwrap().to_string());
            found[2].extend(words.next().map(|event| event.unwrap().to_string()));
            found[3].push(follower.next().unwrap().unwrap().to_string());
        }
        let report = store.compact().unwrap();
        assert!(report.blocks_after < report.blocks_before / 2, "{report:?}");
        append(&session, &users(1));
        found[0].extend(forward.map(|event| event.unwrap().to_string()));
        found[1].extend(reverse.map(|event| event.unwrap().to_string()));
        found[2].extend(words.map(|event| event.unwrap().to_string()));
        while found[3].len() < expected.len() {
            found[3].push(follower.next().unwrap().unwrap().to_string());
        }
        found[1].reverse();
        assert_eq!(found[0], expected, "forward, {taken}");
        assert_eq!(found[1], expected, "reverse, {taken}");
        let without: Vec<_> =
            expected.iter().filter(|line| !line.contains("assistant/chunk")).cloned().collect();
        assert_eq!(found[2], without, "without chunks, {taken}");
        assert_eq!(found[3], expected, "follower, {taken}");
    }
}

/// Goal: while blocks are merged all the time, other threads read, follow, append, fork, delete and scan, and all of
/// them get what is right.
#[test]
fn everything_else_goes_on() {
    let medium = Medium::new(3);
    let store = medium.open(quiet()).unwrap();
    let session = store.create(NewSession::with_id(id("a"))).unwrap();
    append(&session, &users(3));
    let done = AtomicBool::new(false);
    let compactions = std::thread::scope(|scope| {
        let compacting = scope.spawn(|| {
            let mut merged = 0;
            while !done.load(Ordering::Relaxed) {
                let report = store.compact().unwrap();
                merged += report.blocks_before - report.blocks_after;
            }
            merged
        });
        for reverse in [false, true] {
            let (session, done) = (&session, &done);
            scope.spawn(move || {
                while !done.load(Ordering::Relaxed) {
                    let len = session.len();
                    let seqs = Seq::ZERO..Seq::new(len);
                    let events = if reverse { session.read_reverse(seqs) } else { session.read_range(seqs) };
                    let seqs: Vec<u64> = events.unwrap().map(|event| event.unwrap().seq.get()).collect();
                    let all = (0..len).collect::<Vec<_>>();
                    assert!(if reverse { seqs.iter().rev().eq(&all) } else { seqs == all });
                    session.running_hash(Seq::new(len / 2)).unwrap();
                }
            });
        }
        scope.spawn(|| {
            while !done.load(Ordering::Relaxed) {
                let report = store.scan().unwrap();
                assert!(report.is_clean(), "{report:?}");
            }
        });
        scope.spawn(|| {
            let mut forks = 0;
            while !done.load(Ordering::Relaxed) {
                let fork = session.fork(Seq::new(session.len() / 2)).unwrap();
                append(&fork, &users(2));
                assert_eq!(lines(&fork).len() as u64, fork.len());
                forks += 1;
                if forks % 2 == 0 {
                    store.delete(fork.id()).unwrap();
                }
            }
        });
        for n in 0..120 {
            // Not `scatter`, which would make the hashes of forks unknown.
            append(&session, &[noise(n, 3_000), user("small"), noise(n, 4_000)]);
            store.drain().unwrap();
        }
        done.store(true, Ordering::Relaxed);
        compacting.join().unwrap()
    });
    let _ = compactions;
    assert_eq!(lines(&session).len(), 363);
    assert!(store.scan().unwrap().is_clean());
}

/// Goal: a damaged block, and what lies behind it, is left alone; what lies before it is merged.
#[test]
fn damage_is_left_alone() {
    let medium = Medium::new(4);
    let store = medium.open(quiet()).unwrap();
    let session = store.create(NewSession::with_id(id("a"))).unwrap();
    append(&session, &users(1));
    scatter(&medium, &store, &session, &users(20));
    medium.damage_value(1, 10, |value| *value.last_mut().unwrap() ^= 1);
    let damaged = medium.image().maps[1][10].clone();
    let report = store.compact().unwrap();
    // Behind it no hash leads on.
    assert_eq!((report.blocks_before, report.blocks_after), (21, 12), "{report:?}");
    assert_eq!(medium.image().maps[1][1], damaged);
    let (before, error) = events::read_some(session.read_from(Seq::ZERO).unwrap());
    assert_eq!(before.len(), 10);
    assert!(matches!(error, Some(Error::Corrupt { .. })), "{error:?}");
    assert_eq!(read(session.read_from(Seq::new(11))).len(), 10);
}

/// Goal: an engine that has lost a newer summary is known by its blocks, also when these were merged since.
#[test]
fn a_summary_that_fell_back_is_known_behind_a_compaction() {
    let medium = Medium::new(5);
    let store = medium.open(quiet()).unwrap();
    let session = store.create(NewSession::with_id(id("a"))).unwrap();
    append(&session, &users(1));
    store.drain().unwrap();
    let summary = |medium: &Medium| {
        let records = medium.image().maps[0].clone();
        records.into_iter().find(|(key, _)| key[0] == b's').unwrap()
    };
    let before = summary(&medium);
    scatter(&medium, &store, &session, &users(3));
    store.compact().unwrap();
    store.close().unwrap();
    drop((session, store));
    medium.storage().insert(Map::Sessions, &before.0, &before.1).unwrap();
    let store = medium.open(quiet()).unwrap();
    let error = store.session(&id("a")).unwrap_err();
    let behind = Corruption::SummaryBehind { len: 1 };
    assert!(matches!(&error, Error::Corrupt { corruption, .. } if *corruption == behind), "{error:?}");
}

/// Goal: raw files hold blocks that were merged, until they are written over; a salvage that finds both takes the new
/// ones, and has nothing to set aside.
#[test]
fn merged_blocks_do_not_come_back() {
    let medium = Medium::new(8);
    let store = medium.open(quiet()).unwrap();
    let session = store.create(NewSession::with_id(id("a"))).unwrap();
    append(&session, &users(2));
    let said: Vec<Said> = (0..60).map(|n| noise(n, 300)).collect();
    scatter(&medium, &store, &session, &said);
    let expected = lines(&session);
    let values = |medium: &Medium| -> Vec<u8> {
        medium.image().maps.concat().into_iter().flat_map(|(_, value)| value).collect()
    };
    let before = values(&medium);
    store.compact().unwrap();
    store.close().unwrap();
    drop((session, store));
    for raw in [[before.clone(), values(&medium)].concat(), [values(&medium), before].concat()] {
        let old = MemoryJournalFiles::new();
        old.create("db", raw.len() as u64).unwrap().write_at(&raw, 0).unwrap();
        let (storage, files) = (MemoryStorage::new(), MemoryJournalFiles::new());
        let report = Salvage::new().on(&old, &storage, &files).unwrap();
        assert!(!report.is_incomplete(), "{report:?}");
        assert_eq!(Scan::new().on(&storage, &files, [0; 16]).unwrap().findings, []);
        let salvaged = quiet().open_on(Arc::new(storage), Arc::new(files)).unwrap();
        assert_eq!(lines(&salvaged.session(&id("a")).unwrap()), expected);
    }
}

/// Goal: a full disk is told, nothing is written, and the store goes on.
#[test]
fn a_full_disk_is_told() {
    let mut run = Run::new(Medium::new(6), quiet);
    run.create("a");
    for n in 0..5 {
        run.scatter("a", &[noise(n, 100)]);
    }
    run.drain();
    run.medium.set_free_bytes(1_000);
    let before = run.medium.image().maps;
    assert!(matches!(run.store().compact(), Err(Error::DiskFull { .. })));
    assert_eq!(run.medium.image().maps, before);
    run.medium.set_free_bytes(1 << 40);
    assert_eq!(run.store().compact().unwrap().blocks_after, 1);
    run.check();
    run.check_goes_on();
    run.check_leaves_nothing();
}

/// Goal: calls of a store that is closed, or is closed meanwhile, end.
#[test]
fn a_closed_store_is_told() {
    let medium = Medium::new(7);
    let store = medium.open(quiet()).unwrap();
    let session = store.create(NewSession::with_id(id("a"))).unwrap();
    scatter(&medium, &store, &session, &users(5));
    medium.hold(|step| matches!(step, Step::Apply(Map::Events, _)));
    std::thread::scope(|scope| {
        let compacting = scope.spawn(|| store.compact());
        medium.wait_held();
        let closing = scope.spawn(|| store.close());
        medium.release();
        closing.join().unwrap().unwrap();
        assert!(matches!(compacting.join().unwrap(), Ok(_) | Err(Error::Closed)));
    });
    assert!(matches!(store.compact(), Err(Error::Closed)));
}
