//! Appends as futures and followers as streams: nothing blocks, the order is that of the calls, and what was handed over is
//! stored whoever still waits for it.

use std::future::{Future, poll_fn};
use std::pin::{Pin, pin};
use std::task::{Context, Poll, Waker};

use sessionlog::{
    Append, AppendFuture, Error, FollowStream, NewEvent, NewSession, Seq, Session, Store, Stream,
};

use crate::support::events::{chunk, noise, read, user};
use crate::support::medium::{Crash, Medium, Step};
use crate::support::run::{id, quiet};

fn create(store: &Store) -> Session {
    store.create(NewSession::with_id(id("a"))).unwrap()
}

fn say(session: &Session, text: &str) -> AppendFuture {
    session.append_async(Append::new(), [user(text).to_new()])
}

fn run<T>(work: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(work)
}

fn is_pending(future: &mut AppendFuture) -> bool {
    Pin::new(future).poll(&mut Context::from_waker(Waker::noop())).is_pending()
}

async fn next(stream: &mut FollowStream) -> Option<sessionlog::Result<sessionlog::Event>> {
    poll_fn(|context| Pin::new(&mut *stream).poll_next(context)).await
}

fn texts(session: &Session) -> Vec<String> {
    read(session.read_from(Seq::ZERO))
}

/// Async and other appends of one caller take seqs in the order of the calls, awaited or not.
#[test]
fn the_order_is_that_of_the_calls() {
    let medium = Medium::new(1);
    let store = medium.open(quiet()).unwrap();
    let session = create(&store);
    let mut expected = Vec::new();
    run(async {
        let mut waiting = Vec::new();
        for n in 0..300u64 {
            let text = format!("{n}");
            expected.push(user(&text).line(n));
            if n % 3 == 0 {
                assert_eq!(session.append(user(&text).to_new()).unwrap(), Seq::new(n));
            } else {
                waiting.push((n, say(&session, &text)));
            }
        }
        // In any order.
        for (n, future) in waiting.into_iter().rev() {
            assert_eq!(future.await.unwrap(), Seq::new(n)..Seq::new(n + 1));
        }
    });
    assert_eq!(texts(&session), expected);
    medium.stop();
    drop((session, store));
    medium.restart(Crash::Power);
    let store = medium.open(quiet()).unwrap();
    assert_eq!(texts(&store.session(&id("a")).unwrap()), expected, "a future that was ready was durable");
}

/// A disk that does not answer blocks nobody; many that wait for it share its syncs.
#[test]
fn a_slow_disk_blocks_nobody() {
    let medium = Medium::new(1);
    let store = medium.open(quiet()).unwrap();
    let session = create(&store);
    medium.hold(|step| matches!(step, Step::Sync(_)));
    let mut futures: Vec<_> = (0..100).map(|n| say(&session, &format!("{n}"))).collect();
    medium.wait_held();
    assert!(futures.iter_mut().all(is_pending), "not durable yet");
    medium.take_log();
    medium.release();
    run(async {
        for (n, future) in (0..).zip(futures) {
            assert_eq!(future.await.unwrap().start, Seq::new(n));
        }
    });
    let syncs = medium.take_log().iter().filter(|step| matches!(step, Step::Sync(_))).count();
    assert!(syncs <= 5, "{syncs} syncs for 100 appends");
}

/// Where there is no room in the tail the caller does not wait for it, and those who come later do not overtake.
#[test]
fn a_full_tail_blocks_nobody_and_keeps_the_order() {
    let medium = Medium::new(1);
    let store = medium.open(quiet().tail_bytes(100 << 10)).unwrap();
    let session = create(&store);
    // No drain comes to an end, so no room is made.
    medium.hold(|step| matches!(step, Step::Flush));
    let said: Vec<_> = (0..12).map(|n| noise(n, 30_000)).collect();
    let mut futures: Vec<_> =
        said[..11].iter().map(|said| session.append_async(Append::new(), [said.to_new()])).collect();
    assert!(is_pending(futures.last_mut().unwrap()));
    let (last, blocking) = (said[11].to_new(), session.clone());
    let late = std::thread::spawn(move || blocking.append(last).unwrap());
    medium.wait_held();
    medium.release();
    run(async {
        for (n, future) in (0..).zip(futures) {
            assert_eq!(future.await.unwrap().start, Seq::new(n));
        }
    });
    assert_eq!(late.join().unwrap(), Seq::new(11), "it came last");
    let lines: Vec<_> = (0..).zip(&said).map(|(n, said)| said.line(n)).collect();
    assert_eq!(texts(&session), lines);
}

/// What a future stands for is stored although the future is dropped, and although every handle is: the store closes
/// itself behind it.
#[test]
fn dropped_futures_take_nothing_back() {
    for round in 0..20 {
        let medium = Medium::new(round);
        let storage = medium.storage();
        let held = std::sync::Arc::downgrade(&storage);
        let store = quiet().tail_bytes(50 << 10).open_on(storage, medium.files()).unwrap();
        let session = create(&store);
        for n in 0..30 {
            drop(session.append_async(Append::new(), [noise(n, 5_000).to_new()]));
        }
        drop((session, store));
        while held.strong_count() > 0 {
            std::thread::yield_now();
        }
        let store = medium.open(quiet()).unwrap();
        assert_eq!(store.session(&id("a")).unwrap().len(), 30);
    }
}

/// A store that is closed says so to those who wait; what it says is true.
#[test]
fn closing_tells_those_who_wait() {
    for round in 0..20 {
        let medium = Medium::new(round);
        let store = medium.open(quiet().tail_bytes(50 << 10)).unwrap();
        let session = create(&store);
        let futures: Vec<_> =
            (0..30).map(|n| session.append_async(Append::new(), [noise(n, 5_000).to_new()])).collect();
        store.close().unwrap();
        let after = say(&session, "late");
        let stored = run(async {
            assert!(matches!(after.await, Err(Error::Closed)));
            let mut stored = 0;
            for future in futures {
                match future.await {
                    Ok(seqs) => {
                        assert_eq!(seqs.start, Seq::new(stored));
                        stored += 1;
                    }
                    Err(error) => assert!(matches!(error, Error::Closed), "{error:?}"),
                }
            }
            stored
        });
        drop((session, store));
        let store = medium.open(quiet()).unwrap();
        assert_eq!(store.session(&id("a")).unwrap().len(), stored);
    }
}

/// Refusals are those of the other appends, and take no seq.
#[test]
fn refusals() {
    let store = Store::in_memory().unwrap();
    let session = create(&store);
    run(async {
        let conflict = session.append_async(Append::new().expect(Seq::new(7)), [NewEvent::user_message("x")]);
        assert!(matches!(conflict.await, Err(Error::SeqConflict { .. })));
        let empty = session.append_async(Append::new(), []).await.unwrap();
        assert_eq!(empty, Seq::ZERO..Seq::ZERO);
        say(&session, "one").await.unwrap();
        let replace = NewEvent::user_message("sum").replace(Seq::new(3), Seq::new(4));
        let refused = session.append_async(Append::new(), [replace]).await;
        assert!(matches!(refused, Err(Error::InvalidReplace { .. })), "{refused:?}");
        let replace = NewEvent::user_message("sum").replace(Seq::ZERO, Seq::ZERO);
        session.append_async(Append::new(), [replace]).await.unwrap();
        assert_eq!(session.messages().unwrap().len(), 1);
        let late = say(&session, "late");
        store.delete(&id("a")).unwrap();
        assert_eq!(late.await.unwrap().start, Seq::new(2), "it was before the deletion");
        assert!(matches!(say(&session, "gone").await, Err(Error::SessionNotFound { .. })));
    });
}

/// A stream gives history, then what comes, each event once, and ends when the store is closed.
#[test]
fn a_stream_follows() {
    let store = Store::in_memory().unwrap();
    let session = create(&store);
    session.append_batch((0..500).map(|n| chunk(&format!("{n}")).to_new())).unwrap();
    let mut stream = session.follow_async(Seq::new(10)).unwrap();
    let writer = session.clone();
    let seen = run(async {
        let reading = async {
            let mut seen = Vec::new();
            while let Some(event) = next(&mut stream).await {
                seen.push(event.unwrap().seq.get());
                if seen.len() == 790 {
                    break;
                }
            }
            seen
        };
        let mut reading = pin!(reading);
        // All that is there is read without anybody writing.
        let first = poll_fn(|context| Poll::Ready(reading.as_mut().poll(context).is_pending())).await;
        assert!(first);
        let writing = tokio::task::spawn_blocking(move || {
            for n in 0..300 {
                writer.append(user(&format!("{n}")).to_new()).unwrap();
            }
        });
        let seen = reading.await;
        writing.await.unwrap();
        seen
    });
    assert_eq!(seen, (10..800).collect::<Vec<_>>());
    let mut deleted = session.follow_async(Seq::new(800)).unwrap();
    store.close().unwrap();
    assert!(run(next(&mut deleted)).is_none());
    assert!(matches!(session.follow_async(Seq::ZERO), Err(Error::Closed)));
}

/// A stream is told of the end of what it follows.
#[test]
fn a_stream_ends_with_a_deletion_and_a_failure() {
    let medium = Medium::new(3);
    let store = medium.open(quiet()).unwrap();
    let session = create(&store);
    let mut stream = session.follow_async(Seq::ZERO).unwrap();
    run(async {
        let mut pending = Box::pin(next(&mut stream));
        poll_fn(|context| {
            assert!(pending.as_mut().poll(context).is_pending());
            Poll::Ready(())
        })
        .await;
        let deleting = store.clone();
        tokio::task::spawn_blocking(move || deleting.delete(&id("a")).unwrap()).await.unwrap();
        assert!(matches!(pending.as_mut().await, Some(Err(Error::SessionNotFound { .. }))));
        drop(pending);
        assert!(next(&mut stream).await.is_none());
    });
    let session = store.create(NewSession::with_id(id("b"))).unwrap();
    let mut stream = session.follow_async(Seq::ZERO).unwrap();
    medium.stop();
    run(async {
        assert!(say(&session, "x").await.is_err());
        assert!(matches!(next(&mut stream).await, Some(Err(Error::Failed { .. }))));
        assert!(next(&mut stream).await.is_none());
    });
}
