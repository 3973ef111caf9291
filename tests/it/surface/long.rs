//! Folds so long that blocks are unpacked ahead: the same messages, and the same errors, as reading gives.

use sessionlog::{Error, Event, Message, NewEvent, NewSession, Seq, Session, Store};

use super::folded;
use crate::support::events::letters;
use crate::support::medium::Medium;
use crate::support::run::{id, quiet};

const EVENTS_MAP: usize = 1;

/// Some hundred blocks; large events far apart, then close together, and a tail.
fn long(medium: &Medium) -> (Store, Session) {
    let store = medium.open(quiet()).unwrap();
    let session = store.create(NewSession::with_id(id("a"))).unwrap();
    for round in 0..12_u64 {
        let small = (0..60).map(|n| NewEvent::user_message(letters(100 * round + n, 900)));
        let large = |n: u64| NewEvent::assistant_message(letters(round + n, 20_000));
        let close_together = if round % 3 == 2 { 3 } else { 0 };
        session.append_batch(small.chain([large(0)]).chain((0..close_together).map(large))).unwrap();
    }
    store.drain().unwrap();
    session.append_batch((0..5).map(|n| NewEvent::user_message(format!("tail {n}")))).unwrap();
    (store, session)
}

fn read(session: &Session, to: u64) -> Vec<Message> {
    let range = Seq::ZERO..Seq::new(to);
    let events: Vec<Event> = session.read_range(range).unwrap().map(Result::unwrap).collect();
    folded(&events).into_messages()
}

/// Goal: whatever lies among the blocks, and wherever the fold ends, it sees what a read sees.
#[test]
fn a_long_fold_sees_every_block() {
    let medium = Medium::new(1);
    let (store, session) = long(&medium);
    let len = session.len();
    for at in [len, len - 3, len - 6, len / 2, len / 3, 61, 60, 1, 0] {
        assert!(session.messages_at(Seq::new(at)).unwrap() == read(&session, at), "at {at}");
    }
    let fork = session.fork(Seq::new(len - 100)).unwrap();
    fork.append_batch((0..300).map(|n| NewEvent::user_message(letters(n, 700)))).unwrap();
    store.drain().unwrap();
    assert!(fork.messages().unwrap() == read(&fork, fork.len()));
    assert!(session.messages().unwrap() == read(&session, len));
}

/// Goal: a block that is damaged or gone, wherever it lies, ends the fold with the error that a read gives.
#[test]
fn a_long_fold_ends_where_a_read_ends() {
    let values = {
        let medium = Medium::new(1);
        let _open = long(&medium);
        medium.image().maps[EVENTS_MAP].len()
    };
    assert!(values > 100, "{values} values");
    for n in [0, 15, 17, 20, 40, 41, 60, values / 2, values - 2] {
        for is_lost in [false, true] {
            let medium = Medium::new(1);
            let (_store, session) = long(&medium);
            if is_lost {
                medium.lose_value(EVENTS_MAP, n);
            } else {
                medium.damage_value(EVENTS_MAP, n, |value| *value.last_mut().unwrap() ^= 1);
            }
            let read = session.read_from(Seq::ZERO).unwrap().find_map(Result::err);
            let folded = session.messages().err();
            assert!(matches!(folded, Some(Error::Corrupt { .. })), "value {n}: {folded:?}");
            assert_eq!(format!("{folded:?}"), format!("{read:?}"), "value {n}");
        }
    }
}
