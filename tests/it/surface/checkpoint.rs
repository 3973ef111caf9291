//! Checkpoints of the fold: a shortcut that is taken when it is right, and never trusted when it is not.

use proptest::prelude::*;
use sessionlog::storage::Map;
use sessionlog::{Event, Message, NewEvent, NewSession, Seq, Session, Store, StoreOptions, SurfaceOptions};

use super::folded;
use super::soup::{Drop, soup};
use crate::support::medium::{Crash, Fault, Medium, Step};
use crate::support::run::{id, quiet};

/// Where the medium keeps what is derived.
const DERIVED: usize = 3;
/// An envelope's bytes: its checksum, and where its payload begins.
const CRC_AT: usize = 48;
const PAYLOAD_AT: usize = 52;
/// What a payload has before the surface's bytes: the hash, the number of values.
const PIECE_AT: usize = PAYLOAD_AT + 36;

fn options() -> StoreOptions {
    quiet().checkpoint_events(4)
}

fn message(n: usize) -> NewEvent {
    NewEvent::user_message(format!("message {n}"))
}

/// The messages as a fold of all events gives them, without the library's reading for surfaces.
fn expected(session: &Session) -> Vec<Message> {
    let events: Vec<Event> = session.read_from(Seq::ZERO).unwrap().map(Result::unwrap).collect();
    folded(&events).messages().to_vec()
}

/// A store whose session `a` has `count` messages, and a checkpoint of all of them; closed.
fn with_checkpoint(count: usize) -> Medium {
    let medium = Medium::new(1);
    let store = medium.open(options()).unwrap();
    let session = store.create(NewSession::with_id(id("a"))).unwrap();
    session.append_batch((0..count).map(message)).unwrap();
    session.messages().unwrap();
    store.close().unwrap();
    assert!(!derived(&medium).is_empty(), "no checkpoint was written");
    medium
}

fn derived(medium: &Medium) -> Vec<(Vec<u8>, Vec<u8>)> {
    medium.image().maps[DERIVED].clone()
}

fn checksum(value: &mut [u8]) {
    let mut hasher = crc32fast::Hasher::new();
    hasher.update(&value[..CRC_AT]);
    hasher.update(&value[PAYLOAD_AT..]);
    value[CRC_AT..PAYLOAD_AT].copy_from_slice(&hasher.finalize().to_be_bytes());
}

/// Changes a value so that its checksum is right again.
fn forge(medium: &Medium, part: usize, change: impl FnOnce(&mut Vec<u8>)) {
    medium.damage_value(DERIVED, part, |value| {
        change(value);
        checksum(value);
    });
}

/// Lets the checkpoint say `forgery 0` where the first message says `message 0`: whoever shows that has used it.
fn mark(medium: &Medium) {
    forge(medium, 0, |value| {
        let at = value.windows(9).position(|found| found == b"message 0").unwrap();
        value[at..at + 7].copy_from_slice(b"forgery");
    });
}

fn first(messages: &[Message]) -> String {
    messages[0].content().json().to_string()
}

fn open(medium: &Medium) -> (Store, Session) {
    let store = medium.open(options()).unwrap();
    let session = store.session(&id("a")).unwrap();
    (store, session)
}

/// Goal: a sound checkpoint is what every fold begins with: a session's, at its end and at an earlier one, one that goes
/// on behind it, also where the last block was continued, and a fork's that shares it; below it nothing is taken.
#[test]
fn a_checkpoint_is_where_a_fold_begins() {
    const MARKED: &str = r#""forgery 0""#;
    const PLAIN: &str = r#""message 0""#;
    let medium = with_checkpoint(9);
    mark(&medium);
    let (store, session) = open(&medium);
    assert_eq!(first(&session.messages().unwrap()), MARKED);
    session.append_batch((9..12).map(message)).unwrap();
    store.drain().unwrap();
    store.close().unwrap();
    drop((store, session));

    let (store, session) = open(&medium);
    assert_eq!(first(session.surface().unwrap().messages()), MARKED, "behind a block that was continued");
    assert_eq!(session.messages().unwrap().len(), 12);
    let mut surface = sessionlog::Surface::new(SurfaceOptions::new().results_as_json(true));
    session.advance(&mut surface).unwrap();
    assert_eq!(first(surface.messages()), MARKED);
    assert_eq!(first(&session.messages_at(Seq::new(9)).unwrap()), MARKED);
    assert_eq!(first(&session.messages_at(Seq::new(8)).unwrap()), PLAIN, "below the checkpoint");
    let fork = session.fork(Seq::new(10)).unwrap();
    assert_eq!(first(&fork.messages().unwrap()), MARKED, "a parent's within the prefix");
    let fork_of_fork = fork.fork(Seq::new(9)).unwrap();
    assert_eq!(first(&fork_of_fork.messages().unwrap()), MARKED);
    let before = session.fork(Seq::new(8)).unwrap();
    assert_eq!(first(&before.messages().unwrap()), PLAIN, "a parent's beyond the prefix");
    assert!(store.scan().unwrap().is_clean());
}

/// Goal: a checkpoint of another history, of another version or with a piece that is missing, damaged or another
/// checkpoint's is passed over in silence.
#[test]
fn a_checkpoint_is_never_an_authority() {
    let many = || with_checkpoint(600);
    assert!(derived(&many()).len() > 3, "several values");
    let flip = |medium: &Medium, part: usize, at: usize| {
        medium.damage_value(DERIVED, part, |value| value[at] ^= 1);
    };
    let is_refused = |what: &str, damage: &dyn Fn(&Medium)| {
        let medium = many();
        mark(&medium);
        damage(&medium);
        let (store, session) = open(&medium);
        assert!(session.messages().unwrap() == expected(&session), "{what}");
        assert!(store.scan().unwrap().is_clean(), "{what}");
    };
    let last = derived(&many()).len() - 1;
    is_refused("another history's hash", &|medium| {
        for part in 0..=last {
            forge(medium, part, |value| value[PAYLOAD_AT] ^= 1);
        }
    });
    is_refused("another length", &|medium| {
        for part in 0..=last {
            forge(medium, part, |value| value[31] -= 1);
        }
    });
    is_refused("more events than there are", &|medium| {
        for part in 0..=last {
            forge(medium, part, |value| value[31] += 1);
        }
    });
    is_refused("another session's", &|medium| forge(medium, 0, |value| value[8] ^= 1));
    is_refused("a newer format", &|medium| forge(medium, 0, |value| value[5] += 1));
    is_refused("another kind", &|medium| forge(medium, 0, |value| value[4] = 18));
    is_refused("another version of the fold", &|medium| {
        forge(medium, 0, |value| {
            let at = PIECE_AT + br#"{"version":"#.len();
            assert_eq!(value[at], b'1');
            value[at] = b'9';
        });
    });
    is_refused("a piece of another checkpoint", &|medium| forge(medium, 1, |value| value[43] ^= 1));
    is_refused("a surface that no events give", &|medium| {
        forge(medium, last, |value| value.truncate(value.len() - 1))
    });
    for part in 0..=last {
        is_refused("a missing piece", &|medium| medium.lose_value(DERIVED, part));
        for at in [0, 4, 9, 31, 35, 40, 47, 50, 60, 86, 95] {
            is_refused("a damaged piece", &|medium| flip(medium, part, at));
        }
    }
    // Not all of it was in vain: as it is, the marked one is used.
    let medium = many();
    mark(&medium);
    let (_store, session) = open(&medium);
    assert!(session.messages().unwrap() != expected(&session));
}

/// Goal: a checkpoint is written behind the batch that makes its events count, and behind that one's flush; one of events
/// that are not drained waits.
#[test]
fn a_checkpoint_comes_behind_what_it_covers() {
    let medium = Medium::new(1);
    let store = medium.open(options()).unwrap();
    let session = store.create(NewSession::with_id(id("a"))).unwrap();
    for round in 0..3 {
        session.append_batch((0..5).map(message)).unwrap();
        medium.take_log();
        session.messages().unwrap();
        assert_eq!(medium.take_log(), [], "asking writes nothing");
        store.drain().unwrap();
        let log = medium.take_log();
        let at = |wanted: &dyn Fn(&Step) -> bool| log.iter().position(wanted).unwrap();
        let counted = at(&|step| matches!(step, Step::Apply(Map::Sessions, _)));
        let written = at(&|step| matches!(step, Step::Apply(Map::Derived, _)));
        assert!(counted < written, "round {round}: {log:?}");
        assert!(log[counted..written].contains(&Step::Flush), "round {round}: {log:?}");
        assert_eq!(log.last(), Some(&Step::Flush));
    }
    // Too few events since, and then nothing that asks.
    session.append_batch((0..3).map(message)).unwrap();
    session.messages().unwrap();
    session.append_batch((0..9).map(message)).unwrap();
    medium.take_log();
    store.close().unwrap();
    assert!(!medium.take_log().iter().any(|step| matches!(step, Step::Apply(Map::Derived, _))));
}

/// Goal: a large surface leaves no checkpoint; the replace that makes it small does, without anybody asking for messages,
/// and its pieces take the place of all of an older one's.
#[test]
fn a_replace_leaves_a_checkpoint() {
    let medium = with_checkpoint(600);
    let before = derived(&medium).len();
    let (store, session) = open(&medium);
    session.append_batch((0..12).map(|_| NewEvent::user_message("x".repeat(100_000)))).unwrap();
    session.messages().unwrap();
    medium.take_log();
    store.drain().unwrap();
    assert!(!medium.take_log().iter().any(|step| matches!(step, Step::Apply(Map::Derived, _))));
    session.append(NewEvent::user_message("message 0").replace(Seq::ZERO, Seq::new(611))).unwrap();
    store.close().unwrap();
    assert_eq!((before > 3, derived(&medium).len()), (true, 1));
    mark(&medium);
    drop((store, session));
    let (_store, session) = open(&medium);
    assert_eq!(first(&session.messages().unwrap()), r#""forgery 0""#);
}

/// Goal: a surface that a caller has fed with another session's events never becomes this one's checkpoint.
#[test]
fn a_callers_surface_leaves_no_checkpoint() {
    let medium = Medium::new(1);
    let store = medium.open(options()).unwrap();
    let other = store.create(NewSession::new()).unwrap();
    other.append(NewEvent::user_message("not of this session")).unwrap();
    let session = store.create(NewSession::with_id(id("a"))).unwrap();
    session.append_batch((0..9).map(message)).unwrap();
    let mut surface = folded(&other.last(1).unwrap().map(Result::unwrap).collect::<Vec<_>>());
    session.advance(&mut surface).unwrap();
    store.close().unwrap();
    assert_eq!(derived(&medium), []);
}

/// Goal: with a session its checkpoint goes, and one that waits is never written.
#[test]
fn a_deleted_session_leaves_no_checkpoint() {
    let medium = with_checkpoint(9);
    let (store, session) = open(&medium);
    session.append_batch((0..9).map(message)).unwrap();
    session.messages().unwrap();
    store.delete(&id("a")).unwrap();
    store.drain().unwrap();
    store.close().unwrap();
    assert_eq!(derived(&medium), []);
}

/// Goal: a failure or an end at every storage operation around a checkpoint leaves right messages and a clean store.
#[test]
fn at_every_operation_messages_stay_right() {
    let script = |medium: &Medium| -> sessionlog::Result<()> {
        let store = medium.open(options())?;
        let session = store.create(NewSession::with_id(id("a")))?;
        for round in 0..2 {
            session.append_batch((0..200).map(message))?;
            session.messages()?;
            store.drain()?;
            session.append(message(5 * round))?;
        }
        session.append(NewEvent::user_message("all of it").replace(Seq::ZERO, Seq::new(300)))?;
        store.drain()?;
        store.close()
    };
    for fault in [Fault::Fail, Fault::Tear, Fault::Stop] {
        for crash in [Crash::Kill, Crash::Power] {
            let mut operation = 0;
            loop {
                operation += 1;
                let medium = Medium::new(operation);
                medium.plan(operation, fault);
                let done = script(&medium);
                if !medium.fired() {
                    done.unwrap();
                    break;
                }
                medium.stop();
                medium.restart(crash);
                let store = medium.open(options()).unwrap();
                if let Ok(session) = store.session(&id("a")) {
                    let found = session.messages().unwrap();
                    assert!(found == expected(&session), "{fault:?} at {operation}, then {crash:?}");
                    session.append(message(7)).unwrap();
                    assert!(session.messages().unwrap() == expected(&session));
                }
                assert!(store.scan().unwrap().is_clean());
            }
            assert!(operation > 20, "the script did {operation} operations");
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 96, failure_persistence: None, ..ProptestConfig::default() })]

    /// Goal: whatever is appended, wherever it is drained, reopened, killed, cut off or forked, messages from a checkpoint
    /// are those of the whole fold.
    #[test]
    fn messages_from_a_checkpoint_are_the_whole_folds(soup in soup(), what in prop::collection::vec(0..12_u8, 60)) {
        let medium = Medium::new(7);
        let (mut store, mut session) = {
            let store = medium.open(options()).unwrap();
            let session = store.create(NewSession::with_id(id("a"))).unwrap();
            (store, session)
        };
        for (drop_, what) in soup.iter().zip(what) {
            let drop_: &Drop = drop_;
            let _ = session.append(super::new_event(&drop_.line(session.len() as usize, false)));
            match what {
                0..=2 => drop(session.messages().unwrap()),
                3 => store.drain().unwrap(),
                4 => prop_assert_eq!(session.surface().unwrap().into_messages(), expected(&session)),
                5 | 6 => {
                    match what {
                        5 => store.close().unwrap(),
                        _ => medium.stop(),
                    }
                    drop((store, session));
                    medium.restart(if soup.len() % 2 == 0 { Crash::Kill } else { Crash::Power });
                    (store, session) = open(&medium);
                    prop_assert_eq!(session.messages().unwrap(), expected(&session));
                }
                7 => {
                    let fork = session.fork(Seq::new(session.len() / 2)).unwrap();
                    prop_assert_eq!(fork.messages().unwrap(), expected(&fork));
                }
                8 => {
                    let fork = session.fork(Seq::new(session.len())).unwrap();
                    prop_assert_eq!(fork.messages().unwrap(), expected(&fork));
                }
                _ => {}
            }
        }
        prop_assert_eq!(session.messages().unwrap(), expected(&session));
        prop_assert!(store.scan().unwrap().is_clean());
    }
}
