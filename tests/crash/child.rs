//! The process that is killed: threads append, alone and together, fork, delete and compact, and say what was
//! acknowledged. One in three rewrites the store before it opens it.
//!
//! `NAME LEN`: so many events are acknowledged. `creating NAME`, `deleting NAME`: what comes next may be done or not.
//! `deleted NAME`: it is gone.

use std::path::Path;

use sessionlog::{Append, Error, NewSession, Seq, Session, SessionId, Store, StoreOptions};

use crate::content;
use crate::dice::Dice;
use crate::events::Said;
use crate::{REWRITING, say};

const THREADS: u64 = 4;
/// Appends of a thread, so that the folder stays small; then it waits for the end.
const APPENDS: u64 = 400;

pub(crate) fn run(folder: &Path, seed: u64) {
    if Dice::new(seed ^ 0x7e77).chance(1, 3) && folder.exists() {
        say(REWRITING);
        match Store::rewrite(folder) {
            // Its making was interrupted.
            Ok(_) | Err(Error::NoStore { .. }) => {}
            Err(error) => panic!("rewrite: {error:?}"),
        }
    }
    let store = options(seed).open(folder).unwrap();
    std::thread::scope(|scope| {
        for thread in 0..THREADS {
            let store = &store;
            scope.spawn(move || append(store, seed, thread));
        }
    });
    // All is appended: idle, as an agent that waits for its user.
    loop {
        std::thread::park();
    }
}

/// Some lives drain all the time, others never.
fn options(seed: u64) -> StoreOptions {
    let mut dice = Dice::new(seed);
    let millis = |n| std::time::Duration::from_millis(n);
    let options = StoreOptions::new().cache_bytes(8 << 20);
    let options = if dice.chance(1, 2) { options.drain_age(millis(dice.below(50))) } else { options };
    let options = if dice.chance(1, 2) { options.sync_window(millis(1 + dice.below(10))) } else { options };
    if dice.chance(1, 3) { options.tail_bytes(200 << 10) } else { options }
}

fn append(store: &Store, seed: u64, thread: u64) {
    let mut dice = Dice::new(seed ^ thread << 48);
    let own_name = format!("own-{thread}");
    let mut own = session(store, &own_name);
    let mut forks: Vec<Session> = Vec::new();
    let shared = session(store, "shared");
    for n in 0..APPENDS {
        let session = match dice.below(9) {
            0..=2 => &shared,
            3 => forks.last().unwrap_or(&own),
            _ => &own,
        };
        if !one(session, &mut dice) {
            continue;
        }
        // An id has its limit: forks of forks of forks have long ones.
        if dice.chance(1, 30) && session.id().as_str().len() < 200 {
            let at = dice.below(session.len() + 1);
            let at = whole_batches(session, at);
            // Whose events it shares is told by the name: a parent that was deleted has none.
            let name = content::fork_name(session.id().as_str(), at.get(), &format!("{seed}.{thread}.{n}"));
            say(&format!("creating {name}"));
            let fork = match store.fork(session.id(), at, NewSession::with_id(id(&name))) {
                Ok(fork) => fork,
                Err(error) => panic!("fork {name}: {error:?}"),
            };
            say(&format!("{name} {}", fork.len()));
            for _ in 0..dice.below(4) {
                one(&fork, &mut dice);
            }
            forks.push(fork);
        }
        if dice.chance(1, 40) && !forks.is_empty() {
            let fork = forks.swap_remove(dice.below(forks.len() as u64) as usize);
            delete(store, fork.id());
        }
        if dice.chance(1, 100) {
            delete(store, own.id());
            if dice.chance(1, 3) {
                store.drain().unwrap();
            }
            own = self::session(store, &own_name);
        }
        if dice.chance(1, 100) {
            store.drain().unwrap();
        }
        if dice.chance(1, 100) {
            store.compact().unwrap();
        }
    }
}

fn id(name: &str) -> SessionId {
    name.parse().unwrap()
}

fn delete(store: &Store, id: &SessionId) {
    say(&format!("deleting {id}"));
    store.delete(id).unwrap();
    say(&format!("deleted {id}"));
}

fn session(store: &Store, name: &str) -> Session {
    say(&format!("creating {name}"));
    match store.create(NewSession::with_id(id(name))) {
        Ok(session) => session,
        Err(Error::SessionExists { .. }) => store.session(&id(name)).unwrap(),
        Err(error) => panic!("{name}: {error:?}"),
    }
}

/// A fork may cut a batch of its parent; for the check that sees batches it does so between two.
fn whole_batches(session: &Session, at: u64) -> Seq {
    let own = session.header().unwrap().parent.map_or(0, |parent| parent.prefix_len);
    let mut end = own;
    while end + content::batch_len(session.id().as_str(), end) <= at {
        end += content::batch_len(session.id().as_str(), end);
    }
    Seq::new(end.min(session.len()))
}

/// Appends what comes next. Returns whether this thread was the one that appended it.
fn one(session: &Session, dice: &mut Dice) -> bool {
    let next = session.len();
    let batch = content::batch(session.id().as_str(), next);
    let how = match dice.below(4) {
        0 => Append::new().sync(),
        1 => Append::new().buffered(),
        _ => Append::new(),
    };
    match session.append_with(how.expect(Seq::new(next)), batch.iter().map(Said::to_new)) {
        Ok(seqs) => {
            say(&format!("{} {}", session.id(), seqs.end));
            true
        }
        // Another thread was first.
        Err(Error::SeqConflict { .. }) => false,
        Err(error) => panic!("{}: {error:?}", session.id()),
    }
}
