//! Sessions as trees of forks.

use sessionlog::{Error, NewSession, Seq, Store};

use crate::support::events::{NOON, user};
use crate::support::medium::{Crash, Medium};
use crate::support::run::{id, quiet};

fn create(store: &Store, name: &str, updated: i64) {
    let session = store.create(NewSession::with_id(id(name))).unwrap();
    session.append_batch([user("x").at(updated).to_new(), user("y").at(updated).to_new()]).unwrap();
}

fn fork(store: &Store, parent: &str, at: u64, name: &str) {
    let child = store.fork(&id(parent), Seq::new(at), NewSession::with_id(id(name))).unwrap();
    child.append(user("z").at(NOON).to_new()).unwrap();
}

/// A line a node: depth, name or `?`, prefix length, `$` behind the last of its parent's.
fn drawn(store: &Store, root: Option<&str>) -> Vec<String> {
    let root = root.map(id);
    let nodes = store.tree(root.as_ref()).unwrap().map(Result::unwrap);
    nodes
        .map(|node| {
            let name = node.session.map_or("?".to_string(), |info| info.header.id.to_string());
            let prefix = node.prefix_len.map_or(String::new(), |len| format!(" @{len}"));
            format!("{}{name}{prefix}{}", " ".repeat(node.depth), if node.is_last { "$" } else { "" })
        })
        .collect()
}

/// Forks stand below their parents, by what they share; a deleted one stays where a living fork hangs on it, and only
/// there; the same before and after drains and a crash.
#[test]
fn forks_below_their_parents() {
    let medium = Medium::new(1);
    let mut store = medium.open(quiet()).unwrap();
    create(&store, "a", NOON + 5);
    create(&store, "b", NOON + 7);
    fork(&store, "a", 2, "a2");
    fork(&store, "a", 1, "a1");
    fork(&store, "a1", 2, "a1x");
    fork(&store, "a2", 0, "a2x");
    fork(&store, "b", 1, "b1");
    let whole = ["b", " b1 @1$", "a$", " a1 @1", "  a1x @2$", " a2 @2$", "  a2x @0$"];
    let reopen = |store: Store| {
        store.flush().unwrap();
        medium.stop();
        drop(store);
        medium.restart(Crash::Kill);
        medium.open(quiet()).unwrap()
    };
    assert_eq!(drawn(&store, None), whole);
    store = reopen(store);
    assert_eq!(drawn(&store, None), whole);
    assert_eq!(drawn(&store, Some("a1")), ["a1$", " a1x @2$"]);
    assert!(matches!(store.tree(Some(&id("x"))), Err(Error::SessionNotFound { .. })));

    store.delete(&id("a1")).unwrap();
    store.delete(&id("b")).unwrap();
    store.delete(&id("a2x")).unwrap();
    let without = ["a", " ? @1", "  a1x @2$", " a2 @2$", "?$", " b1 @1$"];
    assert_eq!(drawn(&store, None), without);
    store.drain().unwrap();
    store = reopen(store);
    assert_eq!(drawn(&store, None), without);
    store.delete(&id("a1x")).unwrap();
    store.delete(&id("b1")).unwrap();
    store.drain().unwrap();
    assert_eq!(drawn(&store, None), ["a$", " a2 @2$"]);
}

/// 10,000 deep, without recursion.
#[test]
fn ten_thousand_deep() {
    let store = Store::in_memory().unwrap();
    create(&store, "0", NOON);
    let mut session = store.session(&id("0")).unwrap();
    for _ in 0..10_000 {
        session = session.fork(Seq::new(2)).unwrap();
    }
    let depths = store.tree(None).unwrap().map(|node| node.unwrap().depth);
    assert!(depths.eq(0..=10_000));
}
