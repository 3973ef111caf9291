//! Figures through a store: of sessions, forks, ranges and the whole.

use sessionlog::{Error, NewEvent, NewSession, Seq, Session, Statistics, Store};

use crate::recovery::case;
use crate::support::events::{any, call, lines, turn_start, user};
use crate::support::medium::Medium;
use crate::support::run::quiet;

fn session(store: &Store, events: impl IntoIterator<Item = NewEvent>) -> Session {
    let session = store.create(NewSession::new()).unwrap();
    session.append_batch(events).unwrap();
    session
}

/// Goal: events and bytes are those of the lines, from blocks and from the tail; a fork's are its parent's and its own.
#[test]
fn of_a_session_and_its_fork() {
    let store = Store::in_memory().unwrap();
    let said: Vec<_> = (0..500).map(any).collect();
    let session = session(&store, said.iter().map(|said| said.to_new()));
    let bytes: u64 = lines(&said, 0).iter().map(|line| line.len() as u64).sum();
    let figures = session.statistics().unwrap();
    assert_eq!((figures.sessions, figures.events, figures.bytes), (1, 500, bytes));
    store.drain().unwrap();
    assert_eq!(session.statistics().unwrap(), figures);

    let fork = session.fork(Seq::new(300)).unwrap();
    let shared = fork.statistics().unwrap();
    assert_eq!(shared, session.statistics_of(Seq::ZERO..Seq::new(300)).unwrap());
    fork.append(user("more").to_new()).unwrap();
    assert_eq!(fork.statistics().unwrap().messages, shared.messages + 1);
}

/// Goal: of the whole store, what forks share counts once, and empty sessions count as sessions.
#[test]
fn of_a_store_with_forks() {
    let store = Store::in_memory().unwrap();
    assert_eq!(store.statistics().unwrap(), Statistics::default());
    let root = session(&store, (0..200).map(|seed| any(seed).to_new()));
    let mut expected = root.statistics().unwrap();
    let mut parent = root.clone();
    for depth in 0..5 {
        let fork = parent.fork(Seq::new(100 + depth)).unwrap();
        let own = [user("own").to_new(), turn_start("t").to_new()];
        let seqs = fork.append_batch(own).unwrap();
        expected.merge(&fork.statistics_of(seqs).unwrap());
        parent = fork;
    }
    root.fork(Seq::new(200)).unwrap();
    expected.sessions += 1;
    assert_eq!(store.statistics().unwrap(), expected);
    assert_eq!((expected.events, expected.sessions, expected.open_turns), (200 + 10, 7, 5 + 1));
}

/// Goal: H13: a session whose clock went back: the earliest and latest times, no negative one, and it is told.
#[test]
fn h13_clock_backwards() {
    let store = Store::in_memory().unwrap();
    let figures = session(&store, case("clock_backwards.jsonl")).statistics().unwrap();
    assert_eq!(figures.first_at.map(|at| at.as_millis()), Some(1_699_913_600_000));
    assert_eq!(figures.last_at.map(|at| at.as_millis()), Some(1_700_000_009_000));
    assert_eq!(figures.clock_set_back, 2);
}

/// Goal: H17: each of two calls with one id has its result.
#[test]
fn h17_reused_call_ids() {
    let store = Store::in_memory().unwrap();
    let figures = session(&store, case("reused_call_id.jsonl")).statistics().unwrap();
    assert_eq!((figures.tool_calls, figures.open_calls, figures.results_without_call), (2, 0, 0));
    assert_eq!((figures.tools["run"].calls, figures.call_ms.total()), (2, 2_000));
    assert_eq!((figures.turns, figures.open_turns, figures.turn_ms.total()), (2, 0, 10_000));
}

/// Goal: H28: calls with broken arguments are calls like any others; their errors count.
#[test]
fn h28_broken_arguments() {
    let store = Store::in_memory().unwrap();
    let figures = session(&store, case("bad_args.jsonl")).statistics().unwrap();
    assert_eq!((figures.tool_calls, figures.tool_errors, figures.tools["run"].errors), (3, 3, 3));
}

/// Goal: what cannot be read is an error, never a figure that is too small.
#[test]
fn unreadable_events_are_an_error() {
    let medium = Medium::new(1);
    let store = medium.open(quiet()).unwrap();
    let session = session(&store, (0..500).map(|seed| any(seed).to_new()));
    store.drain().unwrap();
    session.append(call("c", "1").to_new()).unwrap();
    medium.fail_reads(true);
    assert!(session.statistics().is_err() && store.statistics().is_err());
    medium.fail_reads(false);
    assert_eq!(store.statistics().unwrap().events, 501);
}

/// Goal: a range that begins behind the end is refused; one that ends there is cut.
#[test]
fn ranges() {
    let store = Store::in_memory().unwrap();
    let session = session(&store, (0..10).map(|seed| any(seed).to_new()));
    let of = |from, to| session.statistics_of(Seq::new(from)..Seq::new(to)).map(|figures| figures.events);
    assert_eq!((of(0, 4).unwrap(), of(4, 100).unwrap(), of(10, 10).unwrap()), (4, 6, 0));
    assert!(matches!(of(11, 12), Err(Error::SeqBeyondEnd { .. })));
}
