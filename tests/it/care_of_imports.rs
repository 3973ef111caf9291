//! Scan, repair and salvage of sessions that were imported, or are about to be, and of labels.

use sessionlog::storage::{JournalFiles, Map, MemoryJournalFiles};
use sessionlog::{FindingKind, LabelChange, NewEvent, NewSession, Salvage, Seq, Store};

use crate::support::bytes::{Bytes, errors, kinds, noise};
use crate::support::run::id;

fn said(n: u64) -> NewEvent {
    NewEvent::user_message(noise(n, 5_000))
}

/// One that was drained twice, once hidden; then it was published, which stands in the journal only.
fn published_in_the_journal(bytes: &Bytes) -> Store {
    let store = bytes.open().unwrap();
    store.create(NewSession::with_id(id("old"))).unwrap().append(said(0)).unwrap();
    let hidden = store.fork_hidden(&id("old"), Seq::new(1), NewSession::with_id(id("s"))).unwrap();
    hidden.append_batch((1..4).map(said)).unwrap();
    store.drain().unwrap();
    hidden.append_batch((4..6).map(said)).unwrap();
    hidden.publish(LabelChange::new().title("T").set("k", "v")).unwrap();
    store
}

fn has_all(bytes: &Bytes) {
    let store = bytes.open().unwrap();
    let session = store.session(&id("s")).unwrap();
    let read: Vec<_> = session.read_from(Seq::ZERO).unwrap().map(Result::unwrap).collect();
    assert_eq!(read.len(), 6);
    assert_eq!(session.title().as_deref(), Some("T"));
    assert_eq!(store.list().unwrap().count(), 2);
    store.close().unwrap();
    assert!(bytes.scan().is_clean());
}

/// A session that the journal publishes is one like any other for a scan, and a repair leaves it alone.
#[test]
fn published_and_not_drained() {
    let bytes = Bytes::new();
    let store = published_in_the_journal(&bytes);
    assert_eq!(store.scan().unwrap().findings, []);
    let killed = bytes.copy();
    store.close().unwrap();
    has_all(&bytes);

    let report = killed.scan();
    assert_eq!(report.findings, []);
    assert_eq!((report.sessions, report.events), (2, 6));
    assert!(killed.plan().is_empty());
    has_all(&killed);
}

/// The same when a repair has to write the journal anew, for a frame of another session is damaged.
#[test]
fn published_in_a_journal_that_is_written_anew() {
    let bytes = Bytes::new();
    let store = published_in_the_journal(&bytes);
    // A commit that is damaged, and one behind it that proves it was acknowledged.
    let other = store.session(&id("old")).unwrap();
    other.append(said(7)).unwrap();
    other.append(said(8)).unwrap();
    let killed = bytes.copy();
    store.close().unwrap();
    let (file, frame) = crate::support::bytes::newest_frame(&killed, 1);
    let mut damaged = killed.file(&file);
    damaged[frame.start + 70] ^= 1;
    killed.write_file(&file, &damaged);
    assert_eq!(kinds(&killed.scan()), [FindingKind::JournalOrder, FindingKind::JournalFrame]);
    killed.repair();
    assert!(killed.plan().is_empty());
    assert_eq!(errors(&killed.scan()), Vec::<&sessionlog::Finding>::new());
    let store = killed.open().unwrap();
    let session = store.session(&id("s")).unwrap();
    assert_eq!((session.len(), session.title().as_deref()), (6, Some("T")));
}

/// An import that was acknowledged and lost a frame in its middle is ended there; what stands behind is set aside.
#[test]
fn a_published_import_with_a_hole_is_ended_there() {
    for drained in [false, true] {
        let bytes = Bytes::new();
        let store = bytes.open().unwrap();
        let hidden = store.create_hidden(NewSession::with_id(id("s"))).unwrap();
        hidden.append_batch((0..2).map(said)).unwrap();
        if drained {
            store.drain().unwrap();
        }
        for n in 2..5 {
            hidden.append_batch([said(n)]).unwrap();
        }
        hidden.publish(LabelChange::new().title("T")).unwrap();
        store.session(&id("s")).unwrap().append(said(5)).unwrap();
        let killed = bytes.copy();
        store.close().unwrap();
        // Behind it stand: event 4, the publication, event 5.
        let (file, frame) = crate::support::bytes::newest_frame(&killed, 3);
        let mut damaged = killed.file(&file);
        damaged[frame.start + 70] ^= 1;
        killed.write_file(&file, &damaged);
        assert!(!killed.scan().is_clean(), "{drained}");
        killed.repair();
        assert!(killed.plan().is_empty(), "{drained}: {:?}", killed.plan());
        assert_eq!(errors(&killed.scan()), Vec::<&sessionlog::Finding>::new(), "{drained}");
        let store = killed.open().unwrap();
        let session = store.session(&id("s")).unwrap();
        assert_eq!((session.len(), session.title().as_deref()), (3, Some("T")), "{drained}");
        assert!(matches!(session.append(said(3)), Err(sessionlog::Error::Ended { .. })), "{drained}");
        let aside: Vec<_> = session.quarantine().unwrap().map(Result::unwrap).collect();
        assert_eq!(aside.len(), 2, "{drained}: events 4 and 5");
    }
}

/// An import that was interrupted is no damage: a notice, which the next open takes away.
#[test]
fn an_import_that_was_interrupted() {
    let bytes = Bytes::new();
    let store = bytes.open().unwrap();
    let hidden = store.create_hidden(NewSession::with_id(id("s"))).unwrap();
    hidden.append_batch((0..4).map(said)).unwrap();
    store.drain().unwrap();
    hidden.append_batch((4..6).map(said)).unwrap();
    assert_eq!(store.scan().unwrap().findings, []);
    let killed = bytes.copy();
    let report = killed.scan();
    let found: Vec<_> = report.findings.iter().map(|finding| finding.kind).collect();
    assert!(report.is_clean() && found == [FindingKind::Leftover], "{:?}", report.findings);
    assert_eq!(report.sessions, 0);
    assert!(killed.plan().is_empty());
    let store = killed.open().unwrap();
    assert_eq!(store.list().unwrap().count(), 0);
    store.close().unwrap();
    assert_eq!(killed.scan().findings, []);
    assert!(killed.all(Map::Events).is_empty());
}

/// An old record that says that a session is hidden, brought back by damage, takes nothing of the published one away.
#[test]
fn a_hidden_record_that_comes_back() {
    let bytes = Bytes::new();
    let store = published_in_the_journal(&bytes);
    let hidden = bytes.with(Map::Sessions, b"m");
    assert_eq!(hidden.len(), 1);
    store.drain().unwrap();
    store.close().unwrap();
    let (key, value) = &hidden[0];
    bytes.put(Map::Sessions, key, value);
    let opened = bytes.copy();
    has_all(&opened);

    assert_eq!(
        bytes.scan().findings.iter().map(|finding| finding.kind).collect::<Vec<_>>(),
        [FindingKind::Leftover]
    );
    bytes.repair();
    assert!(bytes.plan().is_empty());
    has_all(&bytes);
}

/// Labels that cannot be read are found, and a repair puts them aside; the events are not concerned.
#[test]
fn damaged_labels() {
    let bytes = Bytes::new();
    let store = bytes.open().unwrap();
    let session = store.create(NewSession::with_id(id("a"))).unwrap();
    session.append(said(0)).unwrap();
    session.label(LabelChange::new().title("T")).unwrap();
    store.drain().unwrap();
    store.close().unwrap();
    assert_eq!(bytes.scan().findings, []);
    let (key, mut value) = bytes.with(Map::Sessions, b"l").remove(0);
    value[55] ^= 1;
    bytes.put(Map::Sessions, &key, &value);
    assert_eq!(kinds(&bytes.scan()), [FindingKind::Label]);
    bytes.repair();
    assert!(bytes.plan().is_empty() && bytes.scan().is_clean());
    let store = bytes.open().unwrap();
    let session = store.session(&id("a")).unwrap();
    assert_eq!((session.len(), session.title()), (1, None));
}

/// The bytes of a store as raw files.
fn raw(bytes: &Bytes, without: &[&[u8]]) -> MemoryJournalFiles {
    let files = MemoryJournalFiles::new();
    let mut db = Vec::new();
    for map in Map::ALL {
        let kept =
            bytes.all(map).into_iter().filter(|(key, _)| !without.iter().any(|tag| key.starts_with(tag)));
        kept.for_each(|(_, value)| db.extend_from_slice(&value));
    }
    files.create("db", db.len() as u64).unwrap().write_at(&db, 0).unwrap();
    for name in bytes.files.list().unwrap() {
        let file = bytes.file(&name);
        files.create(&name, file.len() as u64).unwrap().write_at(&file, 0).unwrap();
    }
    files
}

/// Salvage takes labels and what was published along, also where that stands in the journal only, or where only an old
/// hidden header is left; and not what was not published.
#[test]
fn salvage_of_labels_and_imports() {
    let bytes = Bytes::new();
    let store = published_in_the_journal(&bytes);
    let unpublished = store.create_hidden(NewSession::with_id(id("never"))).unwrap();
    unpublished.append_batch([said(9)]).unwrap();
    let killed = bytes.copy();
    let hidden = killed.with(Map::Sessions, b"m").remove(0);
    store.drain().unwrap();
    let drained = bytes.copy();
    drained.put(Map::Sessions, &hidden.0, &hidden.1);
    for (name, old) in [
        ("published in the journal", raw(&killed, &[])),
        ("published and drained", raw(&drained, &[])),
        ("the header is lost", raw(&drained, &[b"h"])),
    ] {
        let new = Bytes::new();
        Salvage::new().on(&old, &new.storage, &new.files).unwrap();
        let store = new.open().unwrap();
        let session = store.session(&id("s")).unwrap_or_else(|error| panic!("{name}: {error}"));
        let own = session.read_from(Seq::new(1)).unwrap().map(Result::unwrap).count();
        assert_eq!((own, session.title().as_deref()), (5, Some("T")), "{name}");
        assert!(store.session(&id("never")).is_err(), "{name}");
        store.close().unwrap();
        assert!(new.scan().is_clean(), "{name}");
        assert!(new.with(Map::Sessions, b"m").is_empty(), "{name}");
    }
    drop(unpublished);
}
