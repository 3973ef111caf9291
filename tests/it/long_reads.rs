//! Reads so long that blocks are unpacked ahead on another thread: the same events, and the same errors, as short ones
//! give.

use sessionlog::{Error, Event, Events, NewSession, Seq, Session, Store};

use crate::support::events::{Said, chunk, difference, letters, lines, noise, user};
use crate::support::medium::Medium;
use crate::support::run::{id, quiet};

const EVENTS_MAP: usize = 1;

/// Some hundred blocks of messages and chunks, large events far apart and close together, and a tail.
fn said() -> Vec<Said> {
    let mut said = Vec::new();
    for round in 0..10_u64 {
        for n in 0..60 {
            said.push(user(&letters(100 * round + n, 800)));
            said.extend((0..3).map(|at| chunk(&letters(7 * n + at, 90))));
        }
        said.extend((0..if round % 3 == 2 { 4 } else { 1 }).map(|n| noise(round + n, 20_000)));
    }
    said
}

fn long(medium: &Medium, said: &[Said]) -> (Store, Session) {
    let store = medium.open(quiet()).unwrap();
    let session = store.create(NewSession::with_id(id("a"))).unwrap();
    let (stored, tail) = said.split_at(said.len() - 20);
    session.append_batch(stored.iter().map(Said::to_new)).unwrap();
    store.drain().unwrap();
    session.append_batch(tail.iter().map(Said::to_new)).unwrap();
    (store, session)
}

fn seq(n: usize) -> Seq {
    Seq::new(n as u64)
}

fn taken(events: impl Iterator<Item = sessionlog::Result<Event>>) -> Vec<String> {
    events.map(|event| event.unwrap().to_string()).collect()
}

/// Goal: whatever lies among the blocks, from wherever, also when chunks are left out from the middle on.
#[test]
fn a_long_read_gives_every_event() {
    let said = said();
    let expected = lines(&said, 0);
    let (_store, session) = long(&Medium::new(1), &said);
    for from in [0, 1, 500, said.len() / 2, said.len() - 21, said.len()] {
        let found = taken(session.read_from(seq(from)).unwrap());
        assert_eq!(difference(&found, &expected[from..]), None, "from {from}");
        let without: Vec<String> =
            (from..said.len()).filter(|at| !said[*at].is_chunk()).map(|at| expected[at].clone()).collect();
        let found = taken(session.read_from(seq(from)).unwrap().without_chunks());
        assert_eq!(difference(&found, &without), None, "from {from} without chunks");
    }
    let mut reader = session.read_from(Seq::ZERO).unwrap();
    assert_eq!(taken(reader.by_ref().take(1_300)), expected[..1_300]);
    let rest: Vec<String> =
        (1_300..said.len()).filter(|at| !said[*at].is_chunk()).map(|at| expected[at].clone()).collect();
    assert_eq!(difference(&taken(reader.without_chunks()), &rest), None);
}

/// Goal: several readers at a time, each at another place, and drains under them that continue the last block.
#[test]
fn long_reads_beside_each_other_and_a_drain() {
    let said = said();
    let (store, session) = long(&Medium::new(2), &said);
    let mut readers: Vec<Events> = (0..4).map(|n| session.read_from(seq(n * 100)).unwrap()).collect();
    let mut found: Vec<Vec<String>> = vec![Vec::new(); readers.len()];
    for round in 0.. {
        let mut any = false;
        for (n, (reader, found)) in readers.iter_mut().zip(&mut found).enumerate() {
            let more = taken(reader.by_ref().take(50 + 30 * n));
            any |= !more.is_empty();
            found.extend(more);
        }
        if round % 5 == 0 {
            session.append(user("meanwhile").to_new()).unwrap();
            store.drain().unwrap();
        }
        if !any {
            break;
        }
    }
    for (n, found) in found.iter().enumerate() {
        assert_eq!(difference(found, &lines(&said, 0)[n * 100..]), None, "reader {n}");
    }
}

/// Goal: a block that is damaged or gone, wherever it lies, ends a long read where it ends a short one that begins
/// there, with the same error; all before it is right.
#[test]
fn a_long_read_ends_where_a_short_one_ends() {
    let said = said();
    let expected = lines(&said, 0);
    let values = {
        let medium = Medium::new(1);
        let _open = long(&medium, &said);
        medium.image().maps[EVENTS_MAP].len()
    };
    assert!(values > 100, "{values} values");
    for n in [0, 15, 17, 20, 40, 41, 60, values / 2, values - 2] {
        for is_lost in [false, true] {
            let medium = Medium::new(1);
            let (_store, session) = long(&medium, &said);
            if is_lost {
                medium.lose_value(EVENTS_MAP, n);
            } else {
                medium.damage_value(EVENTS_MAP, n, |value| *value.last_mut().unwrap() ^= 1);
            }
            let mut reader = session.read_from(Seq::ZERO).unwrap();
            let mut found = Vec::new();
            let error = loop {
                match reader.next() {
                    Some(Ok(event)) => found.push(event.to_string()),
                    end => break end.and_then(Result::err),
                }
            };
            assert!(reader.next().is_none());
            assert!(matches!(error, Some(Error::Corrupt { .. })), "value {n}: {error:?}");
            assert_eq!(difference(&found, &expected[..found.len()]), None);
            let at = seq(found.len());
            let short = session.read_range(at..at.next().unwrap()).unwrap().find_map(Result::err);
            let place = |error: &Option<Error>| match error {
                Some(Error::Corrupt { place, corruption }) => {
                    (place.session.clone(), place.at.clone(), format!("{corruption:?}"))
                }
                other => panic!("{other:?}"),
            };
            assert_eq!(place(&error), place(&short), "value {n}");
        }
    }
}
