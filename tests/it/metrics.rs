//! Figures of an open store, against what the medium saw.

use std::sync::Barrier;

use sessionlog::storage::{MAX_VALUE_BYTES, Map};
use sessionlog::{Append, Error, NewSession, Store, StoreOptions};

use crate::support::events::{any, chunk, user};
use crate::support::medium::{Fault, Medium, Step};
use crate::support::run::quiet;

/// Goal: after known work the figures are those of that work, and bytes and counts are what the medium saw.
#[test]
fn after_known_work() {
    let medium = Medium::new(1);
    let store = medium.open(quiet().cache_bytes(1 << 20).tail_bytes(1 << 22)).unwrap();
    let before = store.metrics();
    assert_eq!((before.appends, before.events, before.tail_bytes), (0, 0, 0));
    assert_eq!((before.cache_bytes, before.tail_max_bytes), (1 << 20, 1 << 22));
    medium.take_log();

    let session = store.create(NewSession::new()).unwrap();
    session.append(user("hello").to_new()).unwrap();
    session.append(chunk("not synced").to_new()).unwrap();
    session.append_batch((0..1_000).map(|seed| any(seed).to_new())).unwrap();
    let metrics = store.metrics();
    assert_eq!((metrics.appends, metrics.events, metrics.commits), (3, 1_002, 4));
    let shared = &metrics.commit_events;
    assert_eq!(
        (shared.count(), shared.total(), shared.min(), shared.max()),
        (3, 1_002, Some(1), Some(1_000))
    );
    assert_eq!((metrics.sessions_in_use, metrics.waiting_appends), (1, 0));
    assert_eq!(metrics.tail_bytes, store.info().unwrap().tail_bytes);
    assert!(metrics.tail_bytes > 0);
    assert_eq!((metrics.drain_us.count(), metrics.drained_events, metrics.engine_bytes), (0, 0, 0));
    let log = medium.take_log();
    let writes: Vec<u64> = log.iter().filter_map(written).collect();
    assert_eq!((metrics.commits, metrics.journal_bytes), (writes.len() as u64, writes.iter().sum::<u64>()));
    let syncs = log.iter().filter(|step| matches!(step, Step::Sync(_))).count() as u64;
    // Of three Sync commits, and of a segment that was left.
    assert!(syncs >= 3);
    assert_eq!(metrics.sync_us.count(), syncs);

    store.drain().unwrap();
    let drained = store.metrics();
    assert_eq!((drained.drain_us.count(), drained.drained_events, drained.tail_bytes), (1, 1_002, 0));
    let blocks = &drained.block_bytes;
    let inserts = medium.take_log().iter().filter(|step| **step == Step::Insert(Map::Events)).count() as u64;
    assert_eq!(blocks.count(), inserts);
    let image = medium.image();
    let (events, sessions) = (&image.maps[1], &image.maps[0]);
    let stored =
        |map: &[(Vec<u8>, Vec<u8>)]| map.iter().map(|(key, value)| key.len() + value.len()).sum::<usize>();
    assert_eq!(blocks.total(), events.iter().map(|(_, value)| value.len() as u64).sum::<u64>());
    assert!(blocks.max().unwrap() <= MAX_VALUE_BYTES as u64);
    let open_count = sessions.iter().find(|(key, _)| key == b"O").unwrap();
    let at_open = open_count.0.len() + open_count.1.len();
    assert_eq!(drained.engine_bytes, (stored(events) + stored(sessions) - at_open) as u64);

    // A pass that finds nothing is none; a block that is continued counts again.
    store.drain().unwrap();
    assert_eq!(store.metrics().drain_us.count(), 1);
    session.append(user("more").to_new()).unwrap();
    store.drain().unwrap();
    let continued = store.metrics();
    assert_eq!((continued.drain_us.count(), continued.drained_events), (2, 1_003));
    assert!(continued.block_bytes.count() > blocks.count());
    store.close().unwrap();
    assert_eq!(store.metrics().appends, 4);
}

fn written(step: &Step) -> Option<u64> {
    match step {
        Step::Write(_, _, bytes) => Some(*bytes as u64),
        _ => None,
    }
}

/// Goal: what was refused or failed counts as nothing; what an open replays was not appended in this life.
#[test]
fn what_did_not_happen_is_not_counted() {
    let medium = Medium::new(2);
    let store = medium.open(quiet()).unwrap();
    let session = store.create(NewSession::new()).unwrap();
    session.append(user("one").to_new()).unwrap();
    let late = session.append_with(Append::new().expect(sessionlog::Seq::ZERO), [user("late").to_new()]);
    assert!(matches!(late, Err(Error::SeqConflict { .. })));
    assert_eq!((store.metrics().appends, store.metrics().commits), (1, 2));
    medium.plan(1, Fault::Fail);
    session.append(user("two").to_new()).unwrap_err();
    let failed = store.metrics();
    assert_eq!((failed.appends, failed.events, failed.commits), (1, 1, 2));
    drop((session, store));

    medium.stop();
    medium.restart(crate::support::medium::Crash::Kill);
    let store = medium.open(quiet()).unwrap();
    let metrics = store.metrics();
    assert_eq!((store.open_report().replayed_events, metrics.appends), (1, 0));
    assert_eq!((metrics.drain_us.count(), metrics.drained_events), (1, 1));
}

/// Goal: writers that share a commit show in the events of a commit; the sum is right whoever led.
#[test]
fn of_many_writers() {
    let store = Store::in_memory().unwrap();
    let barrier = Barrier::new(8);
    std::thread::scope(|scope| {
        for _ in 0..8 {
            scope.spawn(|| {
                let session = store.create(NewSession::new()).unwrap();
                barrier.wait();
                for _ in 0..50 {
                    session.append_batch([user("a").to_new(), user("b").to_new()]).unwrap();
                }
            });
        }
    });
    let metrics = store.metrics();
    assert_eq!((metrics.appends, metrics.events, metrics.commit_events.total()), (400, 800, 800));
    assert!(metrics.commit_events.count() <= 400 && metrics.commit_events.count() <= metrics.commits);
}

/// Goal: of a real folder, too; and as JSON, for whoever ships figures elsewhere.
#[test]
fn of_a_folder_as_json() {
    let folder = tempfile::tempdir().unwrap();
    let store = StoreOptions::new().open(folder.path()).unwrap();
    let session = store.create(NewSession::new()).unwrap();
    session.append(user("hello").to_new()).unwrap();
    let json = serde_json::to_value(store.metrics()).unwrap();
    assert_eq!((json["appends"].as_u64(), json["commitEvents"]["p50"].as_u64()), (Some(1), Some(1)));
    assert!(json["syncUs"]["max"].as_u64().unwrap() >= json["syncUs"]["min"].as_u64().unwrap());
}
