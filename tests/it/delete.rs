//! Deletion: gone at once and for all, while forks keep what they share; then everything that nobody needs is removed.

use sessionlog::storage::Map;
use sessionlog::{Error, NewSession, Seq, Session, Store};

use crate::support::events::{self, Said, chunk, noise, read, user};
use crate::support::medium::{Crash, Medium};
use crate::support::run::{id, quiet};

fn at(seq: u64) -> Seq {
    Seq::new(seq)
}

fn create(store: &Store, name: &str) -> Session {
    store.create(NewSession::with_id(id(name))).unwrap()
}

fn fork(store: &Store, parent: &str, prefix_len: u64, name: &str) -> Session {
    store.fork(&id(parent), at(prefix_len), NewSession::with_id(id(name))).unwrap()
}

fn append(session: &Session, said: &[Said]) {
    session.append_batch(said.iter().map(Said::to_new)).unwrap();
}

fn users(count: usize) -> Vec<Said> {
    (0..count).map(|n| user(&format!("message {n}")).at(events::NOON + n as i64)).collect()
}

fn all(store: &Store, name: &str) -> Vec<String> {
    read(store.session(&id(name)).unwrap().read_from(Seq::ZERO))
}

fn listed(store: &Store) -> Vec<String> {
    let mut names: Vec<_> = store.list().unwrap().map(|info| info.unwrap().header.id.to_string()).collect();
    names.sort();
    names
}

fn keys(medium: &Medium, map: Map) -> usize {
    medium.storage().range(map, std::ops::Bound::Unbounded, std::ops::Bound::Unbounded).count()
}

/// What is left of all sessions: nothing but the drained mark and the open count.
fn is_empty(medium: &Medium) -> bool {
    keys(medium, Map::Events) == 0
        && keys(medium, Map::Sessions) == 2
        && keys(medium, Map::Care) == 0
        && keys(medium, Map::Derived) == 0
}

fn is_gone<T>(result: sessionlog::Result<T>, name: &str) -> bool {
    matches!(result, Err(Error::SessionNotFound { session }) if session.as_str() == name)
}

/// Gone from every call, also through handles that are there already, before a drain, after it and after a reopen.
#[test]
fn a_deleted_session_is_gone_for_every_call() {
    for (drained, drain_after) in [(false, false), (false, true), (true, false), (true, true)] {
        let medium = Medium::new(1);
        let store = medium.open(quiet()).unwrap();
        let session = create(&store, "a");
        append(&session, &users(2_000));
        create(&store, "b");
        if drained {
            store.drain().unwrap();
        }
        let mut reader = session.read_from(Seq::ZERO).unwrap();
        let mut reverse = session.read_reverse(at(0)..at(2_000)).unwrap();
        let mut follower = session.follow(at(1_999)).unwrap();
        assert_eq!(reader.next().unwrap().unwrap().to_string(), users(1)[0].line(0));
        assert!(reverse.next().unwrap().is_ok());
        assert!(follower.next().unwrap().is_ok());

        store.delete(&id("a")).unwrap();
        if drain_after {
            store.drain().unwrap();
        }
        let gone = [
            ("session", store.session(&id("a")).map(drop)),
            ("delete", store.delete(&id("a"))),
            ("fork by id", store.fork(&id("a"), at(1), NewSession::new()).map(drop)),
            ("fork by handle", session.fork(at(1)).map(drop)),
            ("fork of nothing by handle", session.fork(at(0)).map(drop)),
            ("append", session.append(user("x").to_new()).map(drop)),
            ("append nothing", session.append_batch([]).map(drop)),
            ("read_from", session.read_from(at(5_000)).map(drop)),
            ("read_range", session.read_range(at(1)..at(2)).map(drop)),
            ("read_reverse", session.read_reverse(at(1)..at(2)).map(drop)),
            ("last", session.last(3).map(drop)),
            ("follow", session.follow(at(0)).map(drop)),
            ("messages", session.messages().map(drop)),
            ("surface_at", session.surface_at(at(1)).map(drop)),
            ("statistics", session.statistics().map(drop)),
            ("inspect", session.inspect().map(drop)),
            ("resume", session.resume().map(drop)),
            ("header", session.header().map(drop)),
            ("info", session.info().map(drop)),
            ("follower", follower.next().unwrap().map(drop)),
        ];
        for (what, result) in gone {
            assert!(is_gone(result, "a"), "{what}");
        }
        assert!(follower.next().is_none());
        for (name, reader) in [("reader", reader), ("reverse", reverse)] {
            let (lines, error) = events::read_some(reader);
            assert!(lines.len() < 1_999, "{name}");
            assert!(matches!(error, Some(Error::SessionNotFound { .. })), "{name}: {error:?}");
        }
        assert_eq!(listed(&store), ["b"]);
        assert!(store.check().unwrap().is_clean(), "{:?}", store.check());
        assert_eq!(store.check().unwrap().sessions, 1);
        drop((store, session, follower));
        let store = medium.open(quiet()).unwrap();
        assert!(is_gone(store.session(&id("a")), "a"));
        assert_eq!(listed(&store), ["b"]);
        store.delete(&id("b")).unwrap();
        store.drain().unwrap();
        assert!(is_empty(&medium), "{:?}", medium.image().maps);
    }
}

/// The id is free at once, and the new session is another one: not a byte of the old shows in it.
#[test]
fn an_id_is_free_at_once() {
    for drained in [false, true] {
        let medium = Medium::new(1);
        let store = medium.open(quiet()).unwrap();
        let old = create(&store, "a");
        append(&old, &users(300));
        if drained {
            store.drain().unwrap();
        }
        let mut expected = Vec::new();
        for round in 0..3_usize {
            store.delete(&id("a")).unwrap();
            let new = create(&store, "a");
            assert_eq!(new.len(), 0);
            assert!(is_gone(old.append(user("x").to_new()), "a"), "a stale handle meets the new session");
            expected = vec![user(&format!("round {round}"))];
            append(&new, &expected);
            if round == 1 {
                store.drain().unwrap();
            }
        }
        assert_eq!(all(&store, "a"), events::lines(&expected, 0));
        assert_eq!(listed(&store), ["a"]);
        drop((store, old));
        for crash in [Crash::Kill, Crash::Power] {
            medium.restart(crash);
            let store = medium.open(quiet()).unwrap();
            assert_eq!(all(&store, "a"), events::lines(&expected, 0));
            assert_eq!(listed(&store), ["a"]);
            store.drain().unwrap();
            assert_eq!(keys(&medium, Map::Events), 1, "drained: {drained}");
            assert!(store.check().unwrap().is_clean(), "{:?}", store.check());
        }
    }
}

/// H23: P, a fork C, a fork G of C. Whatever is deleted, in whatever order, drained in between or not: what is listed
/// reads in full, and when all are gone nothing is left.
#[test]
fn h23_delete_a_parent() {
    let orders = [
        ["p", "c", "g"],
        ["p", "g", "c"],
        ["c", "p", "g"],
        ["c", "g", "p"],
        ["g", "c", "p"],
        ["g", "p", "c"],
    ];
    for order in orders {
        for drains in 0..16_u8 {
            let drain = |store: &Store, when: u8| {
                if drains >> when & 1 == 1 {
                    store.drain().unwrap();
                }
            };
            let medium = Medium::new(u64::from(drains));
            let store = medium.open(quiet()).unwrap();
            let said: Vec<Said> = (0..40).map(events::any).collect();
            append(&create(&store, "p"), &said);
            drain(&store, 0);
            append(&fork(&store, "p", 25, "c"), &said[..20]);
            append(&fork(&store, "c", 35, "g"), &said[..5]);
            let shared = events::lines(&said, 0)[..25].to_vec();
            let own_c = events::lines(&said[..20], 25);
            let mut expected = vec![
                ("p", events::lines(&said, 0)),
                ("c", [&shared[..], &own_c].concat()),
                ("g", [&shared[..], &own_c[..10], &events::lines(&said[..5], 35)].concat()),
            ];
            drain(&store, 1);
            let context = format!("{order:?}, drains {drains:b}");
            for (when, name) in (2..).zip(order) {
                store.delete(&id(name)).unwrap();
                expected.retain(|(kept, _)| *kept != name);
                drain(&store, when);
                for (name, lines) in &expected {
                    assert!(all(&store, name) == *lines, "{context}: {name}");
                    let parent = store.session(&id(name)).unwrap().header().unwrap().parent;
                    let is_there = |name: &str| expected.iter().any(|(kept, _)| *kept == name);
                    let wanted = match *name {
                        "c" => Some(Some(id("p")).filter(|_| is_there("p"))),
                        "g" => Some(Some(id("c")).filter(|_| is_there("c"))),
                        _ => None,
                    };
                    assert_eq!(parent.map(|parent| parent.session), wanted, "{context}");
                }
                assert_eq!(listed(&store).len(), expected.len(), "{context}");
                assert!(store.check().unwrap().is_clean(), "{context}: {:?}", store.check());
            }
            store.drain().unwrap();
            assert!(is_empty(&medium), "{context}: {:?}", medium.image().maps);
        }
    }
}

/// A fork that shares nothing holds nothing, and outlives its parent.
#[test]
fn a_fork_of_nothing_holds_nothing() {
    for drained in [false, true] {
        let medium = Medium::new(1);
        let store = medium.open(quiet()).unwrap();
        append(&create(&store, "p"), &users(100));
        let own = [user("own"), chunk("own")];
        append(&fork(&store, "p", 0, "c"), &own);
        if drained {
            store.drain().unwrap();
        }
        store.delete(&id("p")).unwrap();
        store.drain().unwrap();
        assert_eq!(all(&store, "c"), events::lines(&own, 0));
        assert_eq!(keys(&medium, Map::Events), 1);
        append(&fork(&store, "c", 1, "g"), &own);
        drop(store);
        let store = medium.open(quiet()).unwrap();
        assert_eq!(all(&store, "g"), [own[0].line(0), own[0].line(1), own[1].line(2)]);
        assert_eq!(store.session(&id("c")).unwrap().header().unwrap().parent.unwrap().session, None);
        store.delete(&id("c")).unwrap();
        store.delete(&id("g")).unwrap();
        store.drain().unwrap();
        assert!(is_empty(&medium));
    }
}

/// H36: empty sessions and forks of them go as others do, from either end.
#[test]
fn h36_empty_sessions_and_forks_of_them() {
    for reversed in [false, true] {
        let medium = Medium::new(1);
        let store = medium.open(quiet()).unwrap();
        create(&store, "s0");
        let mut names = vec!["s0".to_string()];
        for depth in 1..=6 {
            let name = format!("s{depth}");
            fork(&store, &names[depth - 1], 0, &name);
            names.push(name);
        }
        append(&store.session(&id("s6")).unwrap(), &users(1));
        store.drain().unwrap();
        if reversed {
            names.reverse();
        }
        for name in &names {
            store.delete(&id(name)).unwrap();
        }
        store.drain().unwrap();
        assert!(is_empty(&medium));
    }
}

/// A block that straddles the longest living prefix is cut: what lies behind is gone from storage, what lies before is
/// read, and its running hash is right for whoever computes on.
#[test]
fn a_straddling_block_is_cut() {
    for prefix_len in [1, 2, 7, 12, 13, 14, 30, 39, 40] {
        let medium = Medium::new(1);
        let store = medium.open(quiet()).unwrap();
        let said: Vec<Said> = (0..40)
            .map(|n| match n {
                12 => noise(1, 20_000),
                n if n % 3 == 0 => chunk(&format!("piece {n}")),
                n => user(&format!("message {n}")),
            })
            .collect();
        append(&create(&store, "p"), &said);
        store.drain().unwrap();
        fork(&store, "p", prefix_len, "c");
        fork(&store, "p", prefix_len / 2, "d");
        store.delete(&id("p")).unwrap();
        store.drain().unwrap();
        let lines = events::lines(&said, 0);
        let check = |store: &Store, round: usize| {
            assert_eq!(all(store, "c"), lines[..prefix_len as usize]);
            assert_eq!(all(store, "d"), lines[..prefix_len as usize / 2]);
            // Two forks more, made after the cut: the hash at their prefix comes from what is left.
            append(&fork(store, "c", prefix_len, &format!("e{round}")), &users(2));
            append(&fork(store, "c", prefix_len / 2, &format!("f{round}")), &users(2));
            store.drain().unwrap();
            assert!(store.check().unwrap().is_clean(), "{prefix_len}: {:?}", store.check());
        };
        check(&store, 1);
        // The first value is the oldest session's; the number of its events stands in the envelope.
        let image = medium.image();
        let owner = image.maps[1][0].0[..16].to_vec();
        let events: u32 = image.maps[1]
            .iter()
            .filter(|(key, value)| key[..16] == owner[..] && value[4] != 3)
            .map(|(_, value)| u32::from_be_bytes(value[32..36].try_into().unwrap()))
            .sum();
        assert_eq!(u64::from(events), prefix_len, "what lies behind the prefix is gone");
        drop(store);
        check(&medium.open(quiet()).unwrap(), 2);
        let store = medium.open(quiet()).unwrap();
        for name in listed(&store) {
            store.delete(&id(&name)).unwrap();
        }
        store.drain().unwrap();
        assert!(is_empty(&medium), "{prefix_len}");
    }
}
