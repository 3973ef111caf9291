//! What the fuzzers found, each as small as it got: bytes that lie, behind checksums that are right.

use std::ops::Bound::Unbounded;
use std::sync::Arc;

use sessionlog::storage::{JournalFiles, Map, MemoryJournalFiles, MemoryStorage, Storage};
use sessionlog::{
    Corruption, Error, FindingKind, NewEvent, NewSession, Result, Seq, Store, StoreOptions, Timestamp,
};

use crate::support::run::id;

/// Where the payload of every value starts.
const PAYLOAD: usize = 52;

/// A closed store with the session `a` and two events, its parts at hand.
struct Closed {
    storage: MemoryStorage,
    files: MemoryJournalFiles,
}

impl Closed {
    fn new() -> Self {
        let closed = Self { storage: MemoryStorage::new(), files: MemoryJournalFiles::new() };
        let store = closed.open().unwrap();
        let session = store.create(NewSession::with_id(id("a"))).unwrap();
        let event = |text: &str| NewEvent::user_message(text).timestamp(Timestamp::from_millis(1).unwrap());
        session.append_batch([event("one"), event("two")]).unwrap();
        store.close().unwrap();
        closed
    }

    fn open(&self) -> Result<Store> {
        StoreOptions::new().open_on(Arc::new(self.storage.clone()), Arc::new(self.files.clone()))
    }

    /// Changes the payload of the one value whose key starts with `prefix`, and makes its checksum right.
    fn forge(&self, map: Map, prefix: &[u8], change: impl FnOnce(&mut Vec<u8>)) {
        let entries = self.storage.range(map, Unbounded, Unbounded).map(Result::unwrap);
        let mut found: Vec<_> = entries.filter(|(key, _)| key.starts_with(prefix)).collect();
        let (key, mut value) = found.pop().unwrap();
        assert!(found.is_empty(), "one value");
        let mut payload = value.split_off(PAYLOAD);
        change(&mut payload);
        value[44..48].copy_from_slice(&u32::try_from(payload.len()).unwrap().to_be_bytes());
        let mut crc = crc32fast::Hasher::new();
        crc.update(&value[..48]);
        crc.update(&payload);
        value[48..].copy_from_slice(&crc.finalize().to_be_bytes());
        value.extend(payload);
        self.storage.insert(map, &key, &value).unwrap();
    }
}

/// The greatest number, as bincode spells it.
const GREATEST: [u8; 9] = [253, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff];

fn undecodable(error: &Error) -> bool {
    matches!(error, Error::Corrupt { corruption: Corruption::Undecodable { .. }, .. })
}

/// The events before the broken one came out behind the error, the last one first.
#[test]
fn a_block_that_fails_halfway_gives_nothing_behind_the_error() {
    let closed = Closed::new();
    // The last byte says whether the second event has an optional field.
    closed.forge(Map::Events, &[], |payload| *payload.last_mut().unwrap() = 7);
    let session = closed.open().unwrap().session(&id("a")).unwrap();
    for events in [session.read_from(Seq::ZERO), session.read_reverse(Seq::ZERO..Seq::new(2))] {
        let items: Vec<_> = events.unwrap().collect();
        assert!(matches!(items.as_slice(), [Err(error)] if undecodable(error)), "{items:?}");
    }
}

/// `attempt to add with overflow`: there is no number behind the greatest one.
#[test]
fn numbers_that_no_log_gets_to_are_not_believed() {
    let closed = Closed::new();
    closed.forge(Map::Sessions, b"D", |payload| *payload = GREATEST.to_vec());
    assert!(undecodable(&closed.open().unwrap_err()));

    let closed = Closed::new();
    closed.forge(Map::Sessions, b"s", |payload| drop(payload.splice(..1, GREATEST)));
    let store = closed.open().unwrap();
    assert!(undecodable(&store.session(&id("a")).unwrap_err()));
    let report = store.scan().unwrap();
    assert!(report.findings.iter().any(|finding| finding.kind == FindingKind::Summary), "{report:?}");
}

/// The same for the names of files: a name that is none of ours is left alone.
#[test]
fn a_segment_with_the_greatest_number_is_not_ours() {
    let closed = Closed::new();
    let name = format!("segment-{}", u64::MAX);
    closed.files.create(&name, 100).unwrap();
    let store = closed.open().unwrap();
    store.session(&id("a")).unwrap().append(NewEvent::user_message("three")).unwrap();
    store.close().unwrap();
    assert!(closed.files.list().unwrap().contains(&name));
}

/// A check said that the session was not found.
#[test]
fn a_check_says_which_record_is_missing() {
    let closed = Closed::new();
    closed.storage.apply(Map::Sessions, &[(b"ia".to_vec(), None)]).unwrap();
    let report = closed.open().unwrap().scan().unwrap();
    let [finding] = report.findings.as_slice() else { panic!("{report:?}") };
    assert_eq!(finding.kind, FindingKind::Unreachable, "{finding:?}");
}

/// A drain walked in a circle for ever.
#[test]
fn parents_that_lead_in_a_circle_stop_no_drain() {
    let closed = Closed::new();
    let store = closed.open().unwrap();
    store.fork(&id("a"), Seq::new(2), NewSession::with_id(id("b"))).unwrap();
    store.fork(&id("b"), Seq::new(2), NewSession::with_id(id("c"))).unwrap();
    store.close().unwrap();
    let key = |name: &str| -> [u8; 16] {
        let value = closed.storage.get(Map::Sessions, format!("i{name}").as_bytes()).unwrap().unwrap();
        value[8..24].try_into().unwrap()
    };
    let (a, b, c) = (key("a"), key("b"), key("c"));
    closed.forge(Map::Sessions, &[b"h", b.as_slice()].concat(), |payload| {
        let parent = payload.windows(16).position(|window| window == a).unwrap();
        payload[parent..parent + 16].copy_from_slice(&c);
    });
    let store = closed.open().unwrap();
    let child = store.fork(&id("b"), Seq::new(1), NewSession::with_id(id("d"))).unwrap();
    store.drain().unwrap();
    for session in [child, store.session(&id("b")).unwrap()] {
        let failed = session.read_from(Seq::ZERO).and_then(Iterator::collect::<Result<Vec<_>>>);
        assert!(failed.as_ref().is_err_and(undecodable), "{failed:?}");
    }
    store.session(&id("a")).unwrap().append(NewEvent::user_message("three")).unwrap();
    store.close().unwrap();
}
