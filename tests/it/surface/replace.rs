//! What may replace what, at append.

use std::sync::Barrier;
use std::thread;

use sessionlog::{Append, Error, NewEvent, NewSession, ReplaceFault, Seq, Session, Store, SurfaceFault};

use super::{brief, session};

fn seq(n: u64) -> Seq {
    Seq::new(n)
}

fn summary(start: u64, end: u64) -> NewEvent {
    NewEvent::user_message("S").replace(seq(start), seq(end))
}

/// user 0, assistant 1, call 2 (c1), call 3 (c2), result 4 (c1), result 5 (c2), assistant 6, open call 7 (c3).
fn with_calls() -> Session {
    let session = session();
    session
        .append_batch([
            NewEvent::user_message("u"),
            NewEvent::assistant_message("a"),
            NewEvent::tool_call("c1", "n", "1"),
            NewEvent::tool_call("c2", "n", "2"),
            NewEvent::tool_result("c1", "r1"),
            NewEvent::tool_result("c2", "r2"),
            NewEvent::assistant_message("b"),
            NewEvent::tool_call("c3", "n", "3"),
        ])
        .unwrap();
    session
}

#[track_caller]
fn refused(session: &Session, event: NewEvent) -> ReplaceFault {
    let len = session.len();
    let error = session.append(event).unwrap_err();
    assert_eq!(session.len(), len, "nothing is stored");
    match error {
        Error::InvalidReplace { session: id, index: 0, fault } if id == *session.id() => fault,
        error => panic!("{error}"),
    }
}

/// Goal: every replace that would tear a request apart is refused with its reason, and the next append works.
#[test]
fn what_is_refused() {
    let session = with_calls();
    let not_there = |n| ReplaceFault::NotOnSurface { seq: seq(n) };
    assert_eq!(refused(&session, summary(0, 8)), ReplaceFault::Itself { seq: seq(8) });
    assert_eq!(refused(&session, summary(8, 0)), ReplaceFault::Itself { seq: seq(8) });
    assert_eq!(refused(&session, summary(0, 9)), not_there(9));
    assert_eq!(refused(&session, summary(1, 0)), ReplaceFault::Reversed { start: seq(1), end: seq(0) });
    let half = ReplaceFault::CallWithoutResult { call: seq(3), result: seq(5) };
    assert_eq!(refused(&session, summary(2, 4)), half);
    let half = ReplaceFault::ResultWithoutCall { result: seq(5), call: seq(3) };
    assert_eq!(refused(&session, summary(5, 6)), half);
    let result = |id: &str, at| NewEvent::tool_result(id, "shorter").replace(seq(at), seq(at));
    assert_eq!(refused(&session, result("c1", 5)), ReplaceFault::NotItsResult { seq: seq(5) });
    assert_eq!(refused(&session, result("c1", 0)), ReplaceFault::NotItsResult { seq: seq(0) });
    let both = NewEvent::tool_result("c1", "both").replace(seq(4), seq(5));
    assert_eq!(refused(&session, both), ReplaceFault::NotItsResult { seq: seq(5) });

    let sources = |seqs: &[u64]| summary(0, 5).sources(seqs.iter().copied().map(Seq::new));
    assert_eq!(refused(&session, sources(&[0, 1, 4])), ReplaceFault::MissingSource { seq: seq(5) });
    assert_eq!(refused(&session, sources(&[])), ReplaceFault::MissingSource { seq: seq(0) });
    assert_eq!(refused(&session, sources(&[0, 1, 4, 5, 8])), ReplaceFault::LaterSource { seq: seq(8) });
    for invalid in [
        sources(&[0, 1, 1, 4, 5]),
        NewEvent::user_message("later").sources([seq(8)]),
        NewEvent::tool_result("c3", "later").sources([seq(3), seq(900)]),
    ] {
        let error = session.append(invalid).unwrap_err();
        assert!(matches!(error, Error::InvalidEvent { index: 0, .. }), "{error}");
    }
    let unknown = br#"{"type":"user/message","content":"x","surfaceOp":{"op":"remove","start":0,"end":1}}"#;
    assert!(NewEvent::from_json(unknown).is_err());

    assert_eq!(session.append(sources(&[5, 4, 1, 0])).unwrap(), seq(8));
    session.append(NewEvent::tool_result("c3", "r3").sources([seq(7)])).unwrap();
    assert_eq!(brief(&session.messages().unwrap()), ["user: S", "assistant c3: b", "tool c3: r3"]);
    assert_eq!(refused(&session, summary(0, 0)), not_there(0));
}

/// Goal: a message takes the place of what it replaces, also nested; order is position, not seq; the chain of what
/// replaced what is there to its end.
#[test]
fn replaces_of_replaces() {
    let session = session();
    session.append_batch((0..6).map(|n| NewEvent::user_message(format!("m{n}")))).unwrap();
    session.append(NewEvent::assistant_message("1 and 2").replace(seq(1), seq(2))).unwrap(); // 6
    let expected = ["user: m0", "assistant: 1 and 2", "user: m3", "user: m4", "user: m5"];
    assert_eq!(brief(&session.messages().unwrap()), expected);
    // 6 stands before 3.
    assert_eq!(refused(&session, summary(3, 6)), ReplaceFault::Reversed { start: seq(3), end: seq(6) });
    session.append(NewEvent::user_message("1 to 4").replace(seq(6), seq(4))).unwrap(); // 7
    assert_eq!(brief(&session.messages().unwrap()), ["user: m0", "user: 1 to 4", "user: m5"]);
    let surface = session.surface().unwrap();
    assert_eq!(surface.replacements(seq(1)), [seq(6), seq(7)]);
    assert_eq!(surface.replacements(seq(3)), [seq(7)]);
    assert_eq!(surface.replacements(seq(5)), []);
    assert_eq!(surface.replaced_ranges(seq(7)), [seq(6)..seq(7), seq(3)..seq(5)]);
    assert_eq!(surface.replaced_ranges(seq(0)), []);
}

/// Goal: a result can take the place of the result of its call; a call without a result may go, and its result is then
/// left out; a message that takes an assistant's place keeps its calls.
#[test]
fn calls_stand_between() {
    let session = with_calls();
    session.append(NewEvent::tool_result("c1", "short").replace(seq(4), seq(4))).unwrap(); // 8
    session.append(NewEvent::assistant_message("A").replace(seq(1), seq(1))).unwrap(); // 9
    session.append(NewEvent::user_message("gone").replace(seq(6), seq(7))).unwrap(); // 10
    session.append(NewEvent::tool_result("c3", "late")).unwrap(); // 11
    let mut surface = session.surface().unwrap();
    let expected = ["user: u", "assistant c1 c2: A", "tool c1: short", "tool c2: r2", "user: gone"];
    assert_eq!(brief(surface.messages()), expected);
    assert_eq!(surface.events_of(1), Some(vec![seq(9), seq(2), seq(3)]));
    assert_eq!(surface.events_of(2), Some(vec![seq(8)]));
    let mends = surface.report().mends;
    assert_eq!((mends.len(), mends[0].seq, mends[0].fault), (1, seq(11), SurfaceFault::NoCall));
    let not_there = ReplaceFault::NotOnSurface { seq: seq(11) };
    assert_eq!(refused(&session, summary(10, 11)), not_there);
}

/// Goal: in a batch each event is checked as if those before it were there; one that is refused takes all with it.
#[test]
fn a_batch_is_checked_event_by_event() {
    let session = session();
    let message = NewEvent::user_message;
    session.append_batch([message("a"), message("b"), summary(0, 1), message("c")]).unwrap();
    assert_eq!(brief(&session.messages().unwrap()), ["user: S", "user: c"]);
    let error = session.append_batch([message("d"), summary(2, 4), summary(2, 2)]).unwrap_err();
    let Error::InvalidReplace { index: 2, fault, .. } = error else { panic!("{error}") };
    assert_eq!(fault, ReplaceFault::NotOnSurface { seq: seq(2) });
    assert_eq!(session.len(), 4);
    session.append_batch([message("d"), summary(2, 4)]).unwrap();
    assert_eq!(brief(&session.messages().unwrap()), ["user: S"]);
}

/// Goal: who repeats an append that went through learns of the conflict, not of a replace that no longer fits.
#[test]
fn a_conflict_comes_first() {
    let session = session();
    session.append(NewEvent::user_message("a")).unwrap();
    session.append_with(Append::new().expect(seq(1)), [summary(0, 0)]).unwrap();
    let again = session.append_with(Append::new().expect(seq(1)), [summary(0, 0)]);
    assert!(matches!(again, Err(Error::SeqConflict { .. })), "{again:?}");
    let again = session.append(summary(0, 0).expect_seq(seq(1)));
    assert!(matches!(again, Err(Error::SeqConflict { .. })), "{again:?}");
}

/// Goal: of writers that replace the same message at the same moment one gets through, in a group commit too; each
/// replace that is stored fits exactly where it stands.
#[test]
fn racing_replaces_fit_where_they_stand() {
    const WRITERS: u64 = 6;
    const ROUNDS: u64 = 40;
    // On a disk, so that appends are in flight for a while.
    let folder = tempfile::tempdir().unwrap();
    let store = Store::open(folder.path().join("store")).unwrap();
    let session = store.create(NewSession::new()).unwrap();
    session.append_batch((0..ROUNDS).map(|n| NewEvent::user_message(format!("m{n}")))).unwrap();
    let together = Barrier::new(WRITERS as usize);
    let write = |writer: u64| {
        let mut done = Vec::new();
        for round in 0..ROUNDS {
            together.wait();
            if writer == 0 {
                session.append(NewEvent::assistant_chunk("x")).unwrap();
            }
            match session.append(summary(round, round)) {
                Ok(_) => done.push(round),
                Err(Error::InvalidReplace { fault: ReplaceFault::NotOnSurface { .. }, .. }) => {}
                Err(error) => panic!("{error}"),
            }
        }
        done
    };
    let mut done: Vec<u64> = thread::scope(|scope| {
        let write = &write;
        let writers: Vec<_> = (0..WRITERS).map(|writer| scope.spawn(move || write(writer))).collect();
        writers.into_iter().flat_map(|writer| writer.join().unwrap()).collect()
    });
    done.sort_unstable();
    assert_eq!(done, (0..ROUNDS).collect::<Vec<_>>());
    let mut surface = session.surface().unwrap();
    assert!(surface.report().is_empty(), "{}", surface.report());
    assert_eq!(session.messages().unwrap(), surface.messages());
}
