//! What a crash, or a fork, leaves of a turn: told by `inspect`, closed by `resume`, and nothing else touched.

use std::path::Path;

use sessionlog::{
    Error, Event, Inspection, NewEvent, NewSession, Seq, Session, Store, TOOL_OUTCOME_UNKNOWN, Timestamp,
};

use crate::support::dice::Dice;
use crate::support::events::{any, call, chunk, read, result, step_start, turn_start, user};
use crate::support::medium::{Crash, Medium, Step};
use crate::support::run::{id, quiet};

/// The events of a handed case, without its header line.
pub(crate) fn case(name: &str) -> Vec<NewEvent> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/cases").join(name);
    let text = std::fs::read_to_string(path).unwrap();
    text.lines().skip(1).map(|line| NewEvent::from_json(line.as_bytes()).unwrap()).collect()
}

/// A session `a` in a new store on the medium.
fn begin(medium: &Medium) -> (Store, Session) {
    let store = medium.open(quiet()).unwrap();
    let session = store.create(NewSession::with_id(id("a"))).unwrap();
    (store, session)
}

/// `kill -9`, and the store opened again.
fn kill(medium: &Medium, store: Store, session: Session) -> (Store, Session) {
    medium.stop();
    drop((store, session));
    medium.restart(Crash::Kill);
    let store = medium.open(quiet()).unwrap();
    let session = store.session(&id("a")).unwrap();
    (store, session)
}

fn lines(session: &Session) -> Vec<String> {
    read(session.read_from(Seq::ZERO))
}

fn in_memory(events: impl IntoIterator<Item = NewEvent>) -> Session {
    let session = Store::in_memory().unwrap().create(NewSession::new()).unwrap();
    session.append_batch(events).unwrap();
    session
}

/// Goal: H01: killed between call and result, the session is listed with its open turn; resume closes it once and for
/// all: neither a second resume nor another kill changes a byte.
#[test]
fn h01_killed_between_call_and_result() {
    let medium = Medium::new(1);
    let (store, session) = begin(&medium);
    for event in case("orphan_call_tail.jsonl") {
        session.append(event).unwrap();
    }
    let before = lines(&session);
    let (store, session) = kill(&medium, store, session);
    assert_eq!(lines(&session), before);
    let found = session.inspect().unwrap();
    assert_eq!(found.turn.as_ref().map(|turn| turn.turn_id.to_string()).as_deref(), Some("turn-1"));
    assert_eq!(
        found.step.as_ref().map(|step| (step.seq.get(), step.step_id.to_string())),
        Some((2, "step-1".into()))
    );
    let calls: Vec<_> =
        found.calls.iter().map(|call| (call.seq.get(), call.id.to_string(), call.args.to_string())).collect();
    assert_eq!(calls, [(4, "c1".into(), r#"{"cmd":"ls"}"#.into())]);
    assert_eq!(lines(&session), before, "inspect wrote something");

    let resumed = session.resume().unwrap();
    assert_eq!((resumed.seqs.start, resumed.seqs.end), (Seq::new(5), Seq::new(8)));
    assert_eq!(resumed.inspection.closers, found.closers);
    let after = lines(&session);
    assert_eq!(after[..5], before);
    let closers: Vec<String> = found.closers.iter().map(Event::to_json).collect();
    assert_eq!(after[5..], closers);
    assert!(closers[0].contains(&format!(r#""error":"{TOOL_OUTCOME_UNKNOWN}: "#)));
    for _ in 0..2 {
        let again = session.resume().unwrap();
        assert!(again.inspection.is_empty() && again.seqs.is_empty());
        assert_eq!((again.seqs.start, lines(&session)), (Seq::new(8), after.clone()));
    }
    let (_store, session) = kill(&medium, store, session);
    assert_eq!(session.inspect().unwrap(), Inspection::default());
    assert_eq!(lines(&session), after);
}

/// Goal: H09: killed in the midst of a turn, all of it is there: listed, readable, with an open turn and the text that
/// was streamed so far.
#[test]
fn h09_killed_in_the_midst_of_a_turn() {
    let medium = Medium::new(9);
    let (store, session) = begin(&medium);
    let said = [
        turn_start("t"),
        user("count"),
        step_start("s", "t"),
        chunk("One, "),
        chunk("two\\u002c "),
        chunk("thr"),
    ];
    for event in &said {
        session.append(event.to_new()).unwrap();
    }
    let (store, session) = kill(&medium, store, session);
    assert_eq!(lines(&session), crate::support::events::lines(&said, 0));
    let listed: Vec<_> = store.list().unwrap().map(|info| info.unwrap()).collect();
    assert_eq!((listed.len(), listed[0].len), (1, 6));
    let found = session.inspect().unwrap();
    assert_eq!(found.text.as_deref(), Some("One, two, thr"));
    assert_eq!((found.turn.is_some(), found.step.is_some(), found.calls.len()), (true, true, 0));
    assert_eq!(session.resume().unwrap().seqs, Seq::new(6)..Seq::new(8));
}

/// Goal: H17: ids that are used again in each turn: closed turns stay closed, and a fork cut in the second turn has the
/// second call open, not the first.
#[test]
fn h17_reused_call_ids() {
    let session = in_memory(case("reused_call_id.jsonl"));
    assert!(session.inspect().unwrap().is_empty());
    let calls = |at| {
        let fork = session.fork(Seq::new(at)).unwrap();
        fork.inspect().unwrap().calls.iter().map(|call| call.seq.get()).collect::<Vec<_>>()
    };
    assert_eq!(
        [4, 5, 6, 9, 10, 11, 12].map(calls),
        [vec![3], vec![], vec![], vec![], vec![9], vec![], vec![]]
    );
}

/// Goal: H13: whatever the clock did, closers repeat the last timestamp, not the latest.
#[test]
fn h13_closers_repeat_the_last_timestamp() {
    let times = [9_000, 1_000, 5_000, -86_400_000];
    let events = [
        turn_start("t").to_new(),
        step_start("s", "t").to_new(),
        call("c", "1").to_new(),
        chunk("x").to_new(),
    ];
    let at = |millis: i64| Timestamp::from_millis(1_700_000_000_000 + millis).unwrap();
    let session = in_memory(events.into_iter().zip(times).map(|(event, millis)| event.timestamp(at(millis))));
    let closers = session.resume().unwrap().inspection.closers;
    assert_eq!(closers.len(), 3);
    assert!(closers.iter().all(|closer| closer.timestamp == at(-86_400_000)));
}

/// Goal: H48: asked for a session that is not there, nothing is made.
#[test]
fn h48_an_unknown_session() {
    let store = Store::in_memory().unwrap();
    let unknown = store.session(&id("nobody"));
    assert!(matches!(unknown, Err(Error::SessionNotFound { session }) if session == id("nobody")));
    assert_eq!(store.list().unwrap().count(), 0);
}

/// Goal: a fork cut in mid-turn is closed by events of its own; the parent goes on with its turn.
#[test]
fn a_fork_cut_in_the_midst_of_a_turn() {
    let said = [turn_start("t"), step_start("s", "t"), call("c", "{}"), result("c", "1"), call("d", "{}")];
    let parent = in_memory(said.iter().map(|said| said.to_new()));
    let child = parent.fork(Seq::new(3)).unwrap();
    assert_eq!(child.inspect().unwrap().calls.len(), 1);
    assert_eq!(child.resume().unwrap().seqs, Seq::new(3)..Seq::new(6));
    assert_eq!((child.len(), parent.len()), (6, 5));
    assert_eq!(parent.inspect().unwrap().calls[0].id.to_str(), "d");
    parent.append(result("d", "1").to_new()).unwrap();
    // Cut between two closers: the rest is closed.
    let grandchild = child.fork(Seq::new(4)).unwrap();
    grandchild.resume().unwrap();
    assert_eq!(lines(&grandchild), lines(&child));
}

/// Goal: a writer whose event is under way makes it a conflict, and nothing of the closers is stored.
#[test]
fn a_racing_writer_is_a_conflict() {
    let medium = Medium::new(5);
    let (_store, session) = begin(&medium);
    session.append(turn_start("t").to_new()).unwrap();
    medium.hold(|step| matches!(step, Step::Sync(_)));
    let writer = {
        let session = session.clone();
        std::thread::spawn(move || session.append(user("still here").to_new()))
    };
    medium.wait_held();
    let refused = session.resume();
    medium.release();
    assert_eq!(writer.join().unwrap().unwrap(), Seq::new(1));
    assert!(
        matches!(refused, Err(Error::SeqConflict { actual, .. }) if actual == Seq::new(2)),
        "{refused:?}"
    );
    assert_eq!(session.len(), 2);
}

/// Goal: nothing before the last turn is read: all of it is in the engine, which fails every read.
#[test]
fn only_the_last_turn_is_read() {
    let medium = Medium::new(3);
    let (store, session) = begin(&medium);
    session.append_batch((0..3_000).map(|seed| any(seed).to_new())).unwrap();
    session.append(NewEvent::turn_start("long ago")).unwrap();
    store.drain().unwrap();
    let last = [turn_start("t"), step_start("s", "t"), call("c", "1"), chunk("x"), chunk("y")];
    session.append_batch(last.iter().map(|said| said.to_new())).unwrap();
    let fork = session.fork(Seq::new(3_001)).unwrap();
    medium.fail_reads(true);
    assert!(session.read_from(Seq::ZERO).unwrap().next().unwrap().is_err());
    let found = session.inspect().unwrap();
    assert_eq!((found.calls.len(), found.text.as_deref()), (1, Some("xy")));
    // An error in what must be read is told, and nothing is appended.
    assert!(fork.inspect().is_err() && fork.resume().is_err());
    medium.fail_reads(false);
    assert_eq!((fork.len(), session.resume().unwrap().inspection.closers), (3_001, found.closers));
}

/// Goal: any order of any events, read through the store, in blocks or not, cut anywhere: what the session says is what
/// the events say, and after a resume nothing is open.
#[test]
fn any_events_are_closed() {
    for seed in 0..40 {
        let mut dice = Dice::new(seed);
        let store = Store::in_memory().unwrap();
        let session = store.create(NewSession::new()).unwrap();
        let events: Vec<NewEvent> = (0..dice.below(200)).map(|_| soup(&mut dice)).collect();
        session.append_batch(events).unwrap();
        if dice.chance(1, 2) {
            store.drain().unwrap();
        }
        let fork = session.fork(Seq::new(dice.below(session.len() + 1))).unwrap();
        for session in [fork, session] {
            let events: Vec<Event> =
                session.read_from(Seq::ZERO).unwrap().map(|event| event.unwrap()).collect();
            let found = session.inspect().unwrap();
            assert_eq!(found, Inspection::of(&events), "seed {seed}");
            let resumed = session.resume().unwrap();
            assert_eq!(resumed.inspection.closers, found.closers, "seed {seed}");
            assert!(session.inspect().unwrap().is_empty(), "seed {seed}");
            assert_eq!(session.len(), (events.len() + found.closers.len()) as u64);
        }
    }
}

/// Events with few ids; turns are rare enough to grow.
fn soup(dice: &mut Dice) -> NewEvent {
    let name = ["a", "b", "c"][dice.below(3) as usize];
    match dice.below(24) {
        0 => NewEvent::turn_start(name),
        1 => NewEvent::turn_end(name),
        2 | 3 => NewEvent::step_start(name, name),
        4 | 5 => NewEvent::step_end(name),
        6..=9 => call(name, "1").to_new(),
        10..=12 => result(name, "1").to_new(),
        13..=19 => chunk("piece").to_new(),
        _ => any(dice.next()).to_new(),
    }
}
