//! Following one session, and the observer that hears all.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, channel};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use sessionlog::{Append, Error, Event, Follow, NewSession, Seq, Session, SessionId, Store, StoreOptions};

use crate::support::events::{self, Said, chunk, user};
use crate::support::medium::Medium;
use crate::support::run::{id, quiet};

/// Longer than any test waits that does not fail.
const LONG: Duration = Duration::from_secs(60);

fn at(seq: u64) -> Seq {
    Seq::new(seq)
}

fn next(follow: &mut Follow) -> String {
    follow.next_timeout(LONG).unwrap().expect("an event within a minute").to_string()
}

fn told(n: u64) -> Said {
    user(&format!("event {n}"))
}

fn busy() -> StoreOptions {
    StoreOptions::new()
        .sync_window(Duration::from_millis(1))
        .drain_age(Duration::from_millis(2))
        .tail_bytes(32 << 10)
}

/// History, then what comes, from any place and from beyond the end; blocks until there is something.
#[test]
fn history_then_live() {
    let store = Store::in_memory().unwrap();
    let session = store.create(NewSession::new()).unwrap();
    for n in 0..5 {
        session.append(told(n).to_new()).unwrap();
    }
    store.drain().unwrap();
    let mut from_start = session.follow(at(0)).unwrap();
    let mut from_end = session.follow(at(5)).unwrap();
    let mut beyond = session.follow(at(7)).unwrap();
    for n in 0..5 {
        assert_eq!(next(&mut from_start), told(n).line(n));
    }
    for follow in [&mut from_start, &mut from_end, &mut beyond] {
        assert_eq!(follow.next_timeout(Duration::ZERO).unwrap(), None);
    }
    std::thread::scope(|scope| {
        let waiting = scope.spawn(|| from_end.next().unwrap().unwrap().to_string());
        session.append(told(5).to_new()).unwrap();
        assert_eq!(waiting.join().unwrap(), told(5).line(5));
    });
    session.append_batch((6..9).map(|n| told(n).to_new())).unwrap();
    for n in 5..9 {
        assert_eq!(next(&mut from_start), told(n).line(n));
    }
    for n in 7..9 {
        assert_eq!(next(&mut beyond), told(n).line(n));
    }
    // A fork's follower hears the prefix and the fork's own, nothing of the parent's.
    let fork = session.fork(at(2)).unwrap();
    let mut follow = fork.follow(at(1)).unwrap();
    session.append(told(9).to_new()).unwrap();
    fork.append(user("own").to_new()).unwrap();
    assert_eq!([next(&mut follow), next(&mut follow)], [told(1).line(1), user("own").line(2)]);
    assert_eq!(follow.next_timeout(Duration::ZERO).unwrap(), None);
}

/// Followers of every speed, while threads append and drains run: each hears every event once, in order. The slow
/// ones read from blocks what was in the tail when they looked.
#[test]
fn many_followers_of_every_speed() {
    const EVENTS: u64 = 3_000;
    let store = Medium::new(1).open(busy()).unwrap();
    let session = store.create(NewSession::new()).unwrap();
    std::thread::scope(|scope| {
        for (speed, from) in [(0, 0), (0, 1_000), (1, 0), (50, 0), (300, 17)] {
            let mut follow = session.follow(at(from)).unwrap();
            scope.spawn(move || {
                for seq in from..EVENTS {
                    let event = follow.next().unwrap().unwrap();
                    assert_eq!(event.seq, at(seq));
                    if speed > 0 && seq % 100 == 0 {
                        // A slow one: it lets others run.
                        for _ in 0..speed {
                            std::thread::yield_now();
                        }
                    }
                }
            });
        }
        for thread in 0..3 {
            let session = session.clone();
            scope.spawn(move || {
                for n in 0..EVENTS / 3 {
                    let how = if n % 4 == thread { Append::new().sync() } else { Append::new().buffered() };
                    session.append_with(how, [chunk(&format!("{thread} {n}")).to_new()]).unwrap();
                }
            });
        }
    });
    assert_eq!(session.len(), EVENTS);
}

/// A follower that waits ends when the store is closed; one that had not heard everything is told so.
#[test]
fn followers_of_a_closed_store() {
    let store = Store::in_memory().unwrap();
    let session = store.create(NewSession::new()).unwrap();
    session.append(told(0).to_new()).unwrap();
    let mut behind = session.follow(at(0)).unwrap();
    let mut waiting = session.follow(at(1)).unwrap();
    std::thread::scope(|scope| {
        let waiting = scope.spawn(move || waiting.next().is_none() && waiting.next().is_none());
        store.close().unwrap();
        assert!(waiting.join().unwrap(), "an item after close");
    });
    assert!(matches!(behind.next(), Some(Err(Error::Closed))));
    assert!(behind.next().is_none());
    assert!(matches!(session.follow(at(0)), Err(Error::Closed)));
}

type Heard = (SessionId, Event);

fn observed(options: StoreOptions) -> (Store, Receiver<Heard>) {
    let (sender, heard) = channel();
    let observer = move |id: &SessionId, event: &Event| {
        let _ = sender.send((id.clone(), event.clone()));
    };
    (Medium::new(1).open(options.observer(observer)).unwrap(), heard)
}

/// The observer hears every event of every session once, in seq order for each, as it is read; close lets it finish.
#[test]
fn an_observer_hears_everything_once_in_order() {
    let (store, heard) = observed(busy());
    let sessions: Vec<Session> =
        (0..5).map(|n| store.create(NewSession::with_id(id(&format!("s{n}")))).unwrap()).collect();
    std::thread::scope(|scope| {
        for thread in 0..4 {
            let sessions = &sessions;
            scope.spawn(move || {
                for n in 0..200_u64 {
                    let session = &sessions[(n as usize + thread) % 5];
                    let count = 1 + n % 3;
                    let batch = (0..count).map(|k| events::any(n * 3 + k).to_new());
                    let how = if n % 2 == 0 { Append::new().buffered() } else { Append::new() };
                    session.append_with(how, batch).unwrap();
                }
            });
        }
    });
    let expected: BTreeMap<SessionId, Vec<String>> = sessions
        .iter()
        .map(|session| (session.id().clone(), events::read(session.read_from(at(0)))))
        .collect();
    store.close().unwrap();
    let mut found: BTreeMap<SessionId, Vec<String>> = BTreeMap::new();
    for (id, event) in heard.try_iter() {
        found.entry(id).or_default().push(event.to_string());
    }
    assert!(found == expected, "the observer heard something else than readers read");
}

/// What the observer hears readers may already see.
#[test]
fn an_observer_hears_what_readers_may_see() {
    let seen = Arc::new(Mutex::new(None::<Session>));
    let (sender, done) = channel();
    let (in_observer, session_of) = (Arc::clone(&seen), Arc::clone(&seen));
    let observer = move |_: &SessionId, event: &Event| {
        let session = in_observer.lock().unwrap().clone().unwrap();
        let found = session.read_range(event.seq..event.seq.next().unwrap()).unwrap().next();
        let _ = sender.send(found.is_some_and(|found| found.unwrap() == *event));
    };
    let store = Medium::new(1).open(quiet().observer(observer)).unwrap();
    let session = store.create(NewSession::new()).unwrap();
    *session_of.lock().unwrap() = Some(session.clone());
    for n in 0..50 {
        session.append(if n % 2 == 0 { chunk("c").to_new() } else { told(n).to_new() }).unwrap();
        assert!(done.recv_timeout(LONG).unwrap(), "event {n} was told before it could be read");
    }
    seen.lock().unwrap().take();
}

/// A panicking observer harms nobody: it hears the next event, appends go on, close is in order.
#[test]
fn a_panicking_observer_harms_nobody() {
    let calls = Arc::new(AtomicU64::new(0));
    let counted = Arc::clone(&calls);
    let observer = move |_: &SessionId, event: &Event| {
        counted.fetch_add(1, Ordering::SeqCst);
        assert!(!event.seq.get().is_multiple_of(3), "a panic that the test wants");
    };
    let medium = Medium::new(1);
    let store = medium.open(quiet().observer(observer)).unwrap();
    let session = store.create(NewSession::with_id(id("a"))).unwrap();
    for n in 0..20 {
        session.append(told(n).to_new()).unwrap();
    }
    store.close().unwrap();
    assert_eq!(calls.load(Ordering::SeqCst), 20);
    drop((session, store));
    assert_eq!(medium.open(quiet()).unwrap().session(&id("a")).unwrap().len(), 20);
}

/// A slow observer holds appends up, and drops nothing: the queue before it is bounded. Readers and lists go on.
#[test]
fn a_slow_observer_holds_appends_up() {
    const EVENTS: u64 = 20_000;
    let of = Arc::new(Mutex::new(None::<Session>));
    let (in_observer, session_of) = (Arc::clone(&of), of);
    let (calls, furthest) = (Arc::new(AtomicU64::new(0)), Arc::new(AtomicU64::new(0)));
    let (counted, ahead) = (Arc::clone(&calls), Arc::clone(&furthest));
    let observer = move |_: &SessionId, event: &Event| {
        let session = in_observer.lock().unwrap().clone().unwrap();
        // The first call gives the writer time to run away.
        while event.seq.get() == 0 && session.len() < 1_000 {
            std::thread::yield_now();
        }
        for _ in 0..20 {
            std::thread::yield_now();
        }
        ahead.fetch_max(session.len() - event.seq.get(), Ordering::SeqCst);
        counted.fetch_add(1, Ordering::SeqCst);
    };
    let store = Medium::new(1).open(quiet().observer(observer)).unwrap();
    let session = store.create(NewSession::new()).unwrap();
    *session_of.lock().unwrap() = Some(session.clone());
    std::thread::scope(|scope| {
        scope.spawn(|| {
            for n in 0..EVENTS {
                session.append(chunk(&format!("{n}")).to_new()).unwrap();
            }
        });
        while session.len() < EVENTS {
            let before = session.len().min(10);
            assert!(events::read(session.last(10)).len() as u64 >= before);
            assert_eq!(store.list().unwrap().count(), 1);
        }
    });
    store.close().unwrap();
    session_of.lock().unwrap().take();
    assert_eq!(calls.load(Ordering::SeqCst), EVENTS);
    let furthest = furthest.load(Ordering::SeqCst);
    assert!(furthest < 3_000, "{furthest} events were queued");
}

/// What would wait for the observer is refused on its thread; reading is not. It deadlocks nobody.
#[test]
fn an_observer_cannot_write_to_its_store() {
    let store_of = Arc::new(Mutex::new(None::<Store>));
    let in_observer = Arc::clone(&store_of);
    let (sender, outcomes) = channel();
    let observer = move |id: &SessionId, event: &Event| {
        let Some(store) = in_observer.lock().unwrap().clone() else { return };
        let session = store.session(id).unwrap();
        let refused = [
            session.append(told(1).to_new()).map(drop),
            session.append_batch([chunk("x").to_new()]).map(drop),
            store.create(NewSession::new()).map(drop),
            session.fork(at(0)).map(drop),
            store.close(),
        ];
        let read = session.read_from(at(0)).unwrap().count() as u64 > event.seq.get();
        let _ = sender.send((refused, read));
    };
    let store = Medium::new(1).open(quiet().observer(observer)).unwrap();
    let session = store.create(NewSession::new()).unwrap();
    *store_of.lock().unwrap() = Some(store.clone());
    for n in 0..3 {
        session.append(told(n).to_new()).unwrap();
        let (refused, read) = outcomes.recv_timeout(LONG).unwrap();
        for outcome in refused {
            assert!(matches!(outcome, Err(Error::CalledFromObserver)), "{outcome:?}");
        }
        assert!(read);
    }
    store_of.lock().unwrap().take();
    assert_eq!(session.len(), 3);
    store.close().unwrap();
}

/// The last handle dropped on the observer's own thread: nothing hangs, and the store is closed.
#[test]
fn the_last_handle_dropped_by_the_observer() {
    let medium = Medium::new(1);
    let last = Arc::new(Mutex::new(None::<Session>));
    let in_observer = Arc::clone(&last);
    let (let_go, go) = channel::<()>();
    let (sender, done) = channel();
    let observer = move |_: &SessionId, _: &Event| {
        let _ = go.recv();
        drop(in_observer.lock().unwrap().take());
        let _ = sender.send(());
    };
    let store = medium.open(quiet().observer(observer)).unwrap();
    let session = store.create(NewSession::with_id(id("a"))).unwrap();
    session.append(told(0).to_new()).unwrap();
    *last.lock().unwrap() = Some(session);
    drop(store);
    let_go.send(()).unwrap();
    done.recv_timeout(LONG).unwrap();
    let again = medium.open(quiet()).unwrap();
    assert_eq!(again.session(&id("a")).unwrap().len(), 1);
}
