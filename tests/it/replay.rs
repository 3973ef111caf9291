//! A run again: to whoever takes the events, and into another session.

use sessionlog::{Error, Event, NewEvent, NewSession, Pace, Seq, Session, Store, SurfaceOp};

use crate::recovery::case;
use crate::support::events::{any, read};

fn seqs(from: u64, to: u64) -> std::ops::Range<Seq> {
    Seq::new(from)..Seq::new(to)
}

fn lines(session: &Session) -> Vec<String> {
    read(session.read_from(Seq::ZERO))
}

/// A store with a session of `count` events of every sort.
fn with_events(count: u64) -> (Store, Session) {
    let store = Store::in_memory().unwrap();
    let session = store.create(NewSession::new()).unwrap();
    session.append_batch((0..count).map(|seed| any(seed).to_new())).unwrap();
    (store, session)
}

/// Goal: as fast as possible it gives what a read gives: all, or a part, cut at the end; beyond it it is refused.
#[test]
fn a_replay_gives_what_a_read_gives() {
    let (_store, session) = with_events(300);
    for (from, to) in [(0, 300), (100, 200), (299, 1_000), (300, 300), (200, 100)] {
        let replay = session.replay(seqs(from, to), Pace::fastest()).unwrap();
        let replayed: Vec<String> = replay.map(|event| event.unwrap().to_string()).collect();
        assert_eq!(replayed, read(session.read_range(seqs(from, to))), "{from} to {to}");
    }
    let beyond = session.replay(seqs(301, 302), Pace::fastest());
    assert!(matches!(beyond, Err(Error::SeqBeyondEnd { .. })));
}

/// Goal: what is appended while it is replayed, also into the session itself, is not part of it.
#[test]
fn the_range_is_fixed() {
    let (_store, session) = with_events(10);
    let mut replay = session.replay(seqs(0, u64::MAX), Pace::fastest()).unwrap();
    assert_eq!(replay.append_to(&session).unwrap(), seqs(10, 20));
    assert_eq!((session.len(), replay.next_seq()), (20, Seq::new(10)));
}

/// Goal: replayed into a fork made where it begins, the fork is the original, byte for byte.
#[test]
fn replayed_into_a_fork() {
    let (_store, session) = with_events(300);
    for at in [0, 1, 150, 300] {
        let fork = session.fork(Seq::new(at)).unwrap();
        let mut replay = session.replay(seqs(at, 300), Pace::fastest()).unwrap();
        assert_eq!(replay.append_to(&fork).unwrap(), seqs(at, 300));
        assert_eq!(lines(&fork), lines(&session));
    }
}

/// Goal: H13: seqs are the order and the pauses never negative, whatever the clock did; times are kept as given.
#[test]
fn h13_clock_backwards() {
    let store = Store::in_memory().unwrap();
    let session = store.create(NewSession::new()).unwrap();
    session.append_batch(case("clock_backwards.jsonl")).unwrap();
    // Fast enough that the one pause there is, of 4 s, is none.
    let replay = session.replay(seqs(0, 4), Pace::scaled(1e9).unwrap()).unwrap();
    let replayed: Vec<String> = replay.map(|event| event.unwrap().to_string()).collect();
    assert_eq!(replayed, lines(&session));
}

/// Messages `0`, `1`, a summary of both at 2, and `3`.
fn compacted(store: &Store) -> Session {
    let session = store.create(NewSession::new()).unwrap();
    session.append_batch(["0", "1"].map(NewEvent::user_message)).unwrap();
    let summary = NewEvent::user_message("both").replace(Seq::new(0), Seq::new(1));
    session.append(summary.sources([Seq::new(0), Seq::new(1)])).unwrap();
    session.append(NewEvent::user_message("3").sources([Seq::new(2)])).unwrap();
    session
}

fn event(session: &Session, seq: u64) -> Event {
    session.read_from(Seq::new(seq)).unwrap().next().unwrap().unwrap()
}

/// Goal: replayed to other seqs, what events name moves with them.
#[test]
fn named_events_move_with_the_replay() {
    let store = Store::in_memory().unwrap();
    let session = compacted(&store);
    let sink = store.create(NewSession::new()).unwrap();
    sink.append_batch(["x", "y", "z"].map(NewEvent::user_message)).unwrap();
    let mut replay = session.replay(seqs(0, 4), Pace::fastest()).unwrap();
    assert_eq!(replay.append_to(&sink).unwrap(), seqs(3, 7));
    let summary = event(&sink, 5);
    assert_eq!(summary.surface_op(), SurfaceOp::Replace { start: Seq::new(3), end: Seq::new(4) });
    assert_eq!(summary.source_event_seqs(), [Seq::new(3), Seq::new(4)]);
    assert_eq!(event(&sink, 6).source_event_seqs(), [Seq::new(5)]);
    assert_eq!(summary.timestamp, event(&session, 2).timestamp);
}

/// Goal: an event that names one that is left behind is refused rather than made to name another; what came before it
/// stays, and the replay says where it stands.
#[test]
fn an_event_that_names_one_left_behind_is_refused() {
    let store = Store::in_memory().unwrap();
    let session = compacted(&store);
    let sink = store.create(NewSession::new()).unwrap();
    let mut replay = session.replay(seqs(1, 4), Pace::fastest()).unwrap();
    let refused = replay.append_to(&sink);
    assert!(
        matches!(&refused, Err(Error::InvalidEvent { index: 2, source }) if source.field.as_deref() == Some("surfaceOp")),
        "{refused:?}"
    );
    assert_eq!((sink.len(), replay.next_seq(), replay.next().is_none()), (1, Seq::new(2), true));
}

/// Goal: a replay that was stopped gives nothing more and appends nothing.
#[test]
fn a_stopped_replay() {
    let (store, session) = with_events(10);
    let sink = store.create(NewSession::new()).unwrap();
    let mut replay = session.replay(seqs(0, 10), Pace::recorded()).unwrap();
    assert!(!replay.stopper().is_stopped());
    replay.stopper().stop();
    assert_eq!(replay.append_to(&sink).unwrap(), seqs(0, 0));
    assert!(replay.next().is_none() && sink.is_empty());
}
