//! Appending: seqs, batches, durability, conflicts, limits, many threads; and that what is refused leaves no trace.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use sessionlog::{
    Append, Durability, DurabilityRule, Error, NewEvent, NewSession, Seq, Session, Store, StoreOptions,
    Timestamp,
};

use crate::support::events::{self, Said, call, chunk, noise, read, step_start, turn_start, user};
use crate::support::medium::{Crash, Medium};
use crate::support::run::{id, quiet, whole};

fn new_session() -> (Store, Session) {
    let store = Store::in_memory().unwrap();
    let session = store.create(NewSession::with_id(id("a"))).unwrap();
    (store, session)
}

fn seqs(range: std::ops::Range<u64>) -> std::ops::Range<Seq> {
    Seq::new(range.start)..Seq::new(range.end)
}

fn all(session: &Session) -> Vec<String> {
    read(session.read_from(Seq::ZERO))
}

/// Seqs run 0, 1, 2, … over single events and batches, and what was given comes back.
#[test]
fn seqs_are_contiguous_over_appends_and_batches() {
    let (_store, session) = new_session();
    let said: Vec<Said> = (0..10).map(events::any).collect();
    let new = |range: std::ops::Range<usize>| said[range].iter().map(Said::to_new).collect::<Vec<_>>();
    assert_eq!(session.append(said[0].to_new()).unwrap(), Seq::ZERO);
    assert_eq!(session.append_batch(new(1..4)).unwrap(), seqs(1..4));
    assert_eq!(session.append_batch(new(4..4)).unwrap(), seqs(4..4));
    assert_eq!(session.append_with(Append::new().buffered(), new(4..9)).unwrap(), seqs(4..9));
    assert_eq!(session.append(said[9].to_new()).unwrap(), Seq::new(9));
    assert_eq!(all(&session), events::lines(&said, 0));
    assert_eq!((session.len(), session.is_empty()), (10, false));
}

/// A timestamp that is given is kept, also one that goes back (H13); else the clock's is taken.
#[test]
fn h13_timestamps_are_kept_and_order_nothing() {
    let (_store, session) = new_session();
    for timestamp in [9, 1, 5, -86_400_000, (1 << 53) - 1, -(1 << 53) + 1, 0] {
        session.append(user("given").at(timestamp).to_new()).unwrap();
    }
    let before =
        std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap().as_millis() as i64;
    session.append(NewEvent::user_message("clock")).unwrap();
    let found: Vec<i64> =
        session.read_from(Seq::ZERO).unwrap().map(|event| event.unwrap().timestamp.as_millis()).collect();
    assert_eq!(found[..7], [9, 1, 5, -86_400_000, (1 << 53) - 1, -(1 << 53) + 1, 0]);
    assert!((before..before + 60_000).contains(&found[7]), "{} is not about {before}", found[7]);
    assert_eq!(session.info().unwrap().updated_at, Timestamp::from_millis(found[7]).unwrap());
}

/// What was acknowledged is durable by its durability: chunks when something after them is, all else at once.
#[test]
fn durability_is_by_type_by_option_and_by_call() {
    let medium = Medium::new(1);
    let store = medium.open(quiet()).unwrap();
    let session = store.create(NewSession::new()).unwrap();
    let lens = |session: &Session| (session.len(), session.durable_len());
    session.append(chunk("one").to_new()).unwrap();
    assert_eq!(lens(&session), (1, 0));
    session.append(user("two").to_new()).unwrap();
    assert_eq!(lens(&session), (2, 2), "a sync covers what stands before it");
    session.append_batch([chunk("3").to_new(), chunk("4").to_new()]).unwrap();
    assert_eq!(lens(&session), (4, 2));
    session.append_batch([chunk("5").to_new(), user("6").to_new(), chunk("7").to_new()]).unwrap();
    assert_eq!(lens(&session), (7, 7), "a batch with any Sync event is Sync");
    session.append_with(Append::new().buffered(), [user("8").to_new()]).unwrap();
    assert_eq!(lens(&session), (8, 7));
    session.append_with(Append::new().sync(), [chunk("9").to_new()]).unwrap();
    assert_eq!(lens(&session), (9, 9));
    session.append(chunk("10").to_new()).unwrap();
    store.flush().unwrap();
    assert_eq!(lens(&session), (10, 10));
    // Another session's sync covers it, too: the journal is one.
    session.append(chunk("11").to_new()).unwrap();
    store.create(NewSession::new()).unwrap();
    assert_eq!(lens(&session), (11, 11));
    drop((session, store));

    for (durability, durable) in [(Durability::Sync, 1), (Durability::Buffered, 0)] {
        let options = quiet().durability(DurabilityRule::Always(durability));
        let store = Medium::new(1).open(options).unwrap();
        let session = store.create(NewSession::new()).unwrap();
        session.append(chunk("one").to_new()).unwrap();
        assert_eq!(lens(&session), (1, durable));
        session.append_with(Append::new().sync(), [chunk("two").to_new()]).unwrap();
        assert_eq!(lens(&session), (2, 2));
    }
}

/// Buffered events become durable by themselves within the sync window.
#[test]
fn the_sync_window_makes_buffered_events_durable() {
    let medium = Medium::new(1);
    let store = medium.open(quiet().sync_window(std::time::Duration::from_millis(2))).unwrap();
    let session = store.create(NewSession::new()).unwrap();
    session.append(chunk("one").to_new()).unwrap();
    medium.wait_log(|_| session.durable_len() == 1);
}

/// H09: a turn that was never finished is there after a kill: six events, listed and readable.
#[test]
fn h09_an_open_turn_survives_a_kill() {
    let medium = Medium::new(1);
    let store = medium.open(quiet()).unwrap();
    let session = store.create(NewSession::with_id(id("a"))).unwrap();
    let said = [turn_start("t"), user("q"), step_start("s", "t"), chunk("one"), chunk("two"), chunk("three")];
    for said in &said {
        session.append(said.to_new()).unwrap();
    }
    medium.stop();
    drop((store, session));
    medium.restart(Crash::Kill);
    let store = medium.open(quiet()).unwrap();
    let listed: Vec<_> = store.list().unwrap().map(|info| info.unwrap()).collect();
    assert_eq!((listed.len(), listed[0].len), (1, 6));
    assert_eq!(all(&store.session(&id("a")).unwrap()), events::lines(&said, 0));
}

/// H06: two handles at the same end, both expecting it. One wins; the other is told the true end and wrote nothing.
#[test]
fn h06_two_handles_one_wins() {
    let (store, first) = new_session();
    first.append(user("before").to_new()).unwrap();
    let second = store.session(&id("a")).unwrap();
    let how = Append::new().expect(Seq::new(1));
    first.append_with(how, [user("first").to_new()]).unwrap();
    let late = second.append_with(how, [user("second").to_new(), user("third").to_new()]);
    let Err(Error::SeqConflict { session, expected, actual }) = late else { panic!("{late:?}") };
    assert_eq!((session, expected, actual), (id("a"), Seq::new(1), Seq::new(2)));
    assert_eq!(all(&first), events::lines(&[user("before"), user("first")], 0));
    second.append_with(Append::new().expect(Seq::new(2)), [user("third").to_new()]).unwrap();
    assert_eq!(first.len(), 3);
}

/// H06 with threads: of all who expect a seq exactly one gets it.
#[test]
fn h06_racing_expectations_have_one_winner_each() {
    let (_store, session) = new_session();
    let wins: Vec<u64> = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..8)
            .map(|thread| {
                let session = session.clone();
                scope.spawn(move || {
                    let mut wins = 0;
                    for seq in 0..200 {
                        let event = user(&format!("{thread}")).to_new();
                        match session.append_with(Append::new().expect(Seq::new(seq)), [event]) {
                            Ok(given) => {
                                assert_eq!(given, seqs(seq..seq + 1));
                                wins += 1;
                            }
                            Err(Error::SeqConflict { actual, .. }) => assert!(actual.get() != seq),
                            Err(error) => panic!("{error:?}"),
                        }
                        while session.len() <= seq {
                            std::thread::yield_now();
                        }
                    }
                    wins
                })
            })
            .collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    });
    assert_eq!((wins.iter().sum::<u64>(), session.len()), (200, 200));
}

/// H42: a batch sent again with the same expected seq is stored once; twins are both kept; three for one session in
/// one batch get n, n + 1, n + 2.
#[test]
fn h42_sent_twice_is_stored_once_and_twins_are_kept() {
    let (_store, session) = new_session();
    let batch = || (0..3).map(|n| user(&format!("{n}")).to_new());
    let how = Append::new().expect(Seq::ZERO);
    assert_eq!(session.append_with(how, batch()).unwrap(), seqs(0..3));
    let again = session.append_with(how, batch());
    assert!(matches!(again, Err(Error::SeqConflict { actual, .. }) if actual == Seq::new(3)), "{again:?}");
    for _ in 0..2 {
        session.append(chunk("twin").to_new()).unwrap();
    }
    assert_eq!(session.append_batch(batch()).unwrap(), seqs(5..8));
    assert_eq!(session.len(), 8);
}

/// H44: the third of a batch is invalid: none is stored, the error names it, and another handle appends at once.
#[test]
fn h44_a_batch_with_an_invalid_event_stores_nothing() {
    let (store, session) = new_session();
    let other = store.session(&id("a")).unwrap();
    let bad: [(&str, NewEvent); 3] = [
        ("a reserved type", NewEvent::custom("session")),
        ("a field twice", NewEvent::user_message("x").field("content", "again")),
        ("a field of surfaces", NewEvent::turn_start("t").sources([Seq::ZERO])),
    ];
    for (n, (what, bad)) in bad.into_iter().enumerate() {
        let refused = session.append_batch([user("1").to_new(), user("2").to_new(), bad]);
        assert!(matches!(refused, Err(Error::InvalidEvent { index: 2, .. })), "{what}: {refused:?}");
        assert_eq!(session.len(), n as u64);
        assert_eq!(other.append(user("other").to_new()).unwrap(), Seq::new(n as u64));
    }
    // An expectation inside a batch counts those before it as if they were there.
    let expecting = |seq| NewEvent::user_message("e").expect_seq(Seq::new(seq));
    assert_eq!(session.append_batch([expecting(3), expecting(4)]).unwrap(), seqs(3..5));
    let refused = session.append_batch([expecting(5), expecting(5)]);
    assert!(
        matches!(refused, Err(Error::SeqConflict { actual, .. }) if actual == Seq::new(6)),
        "{refused:?}"
    );
    assert_eq!(session.len(), 5);
}

/// Each refused call leaves no trace: not in the lists, not in the lengths, not in the journal.
#[test]
fn refused_calls_leave_no_trace() {
    let medium = Medium::new(1);
    let store = medium.open(quiet().max_event_bytes(10_000)).unwrap();
    let session = store.create(NewSession::with_id(id("a"))).unwrap();
    session.append(user("there").to_new()).unwrap();
    let before = whole(&store).unwrap();
    medium.take_log();
    let new = |name: &str| NewSession::with_id(id(name));
    let at = Seq::new;
    let refused: Vec<(&str, Error)> = vec![
        ("unknown session", store.session(&id("b")).unwrap_err()),
        ("fork of an unknown session", store.fork(&id("b"), at(0), new("c")).unwrap_err()),
        ("existing id", store.create(new("a")).unwrap_err()),
        ("existing id of a fork", store.fork(&id("a"), at(0), new("a")).unwrap_err()),
        ("fork past the end", store.fork(&id("a"), at(2), new("c")).unwrap_err()),
        ("fork far past the end", session.fork(at(u64::MAX)).unwrap_err()),
        ("metadata too large", store.create(new("c").meta("k", "v".repeat(5_000))).unwrap_err()),
        ("wrong expected seq", session.append(user("x").to_new().expect_seq(at(0))).unwrap_err()),
        ("expected beyond", session.append(user("x").to_new().expect_seq(at(u64::MAX))).unwrap_err()),
        ("event too large", session.append(user(&"x".repeat(10_000)).to_new()).unwrap_err()),
        ("batch with one too large", {
            let batch = [user("x").to_new(), user(&"x".repeat(10_000)).to_new()];
            session.append_batch(batch).unwrap_err()
        }),
        ("too many events", {
            session.append_batch((0..65_537).map(|_| NewEvent::assistant_chunk("x"))).unwrap_err()
        }),
        ("too many bytes", {
            let event = user(&"x".repeat(9_000)).to_new();
            session.append_batch((0..8_000).map(|_| event.clone())).unwrap_err()
        }),
        ("invalid event", session.append(NewEvent::custom("session")).unwrap_err()),
        ("read beyond the end", session.read_from(at(2)).unwrap_err()),
        ("range beyond the end", session.read_range(at(2)..at(3)).unwrap_err()),
    ];
    for ((what, error), expected) in refused.iter().zip([
        "SessionNotFound",
        "SessionNotFound",
        "SessionExists",
        "SessionExists",
        "ForkBeyondEnd",
        "ForkBeyondEnd",
        "MetaTooLarge",
        "SeqConflict",
        "SeqConflict",
        "EventTooLarge",
        "EventTooLarge",
        "BatchTooLarge",
        "BatchTooLarge",
        "InvalidEvent",
        "SeqBeyondEnd",
        "SeqBeyondEnd",
    ]) {
        assert!(format!("{error:?}").starts_with(expected), "{what}: {error:?}");
        assert!(!error.to_string().is_empty());
    }
    for text in ["", "two\nlines", "nul\0", &"x".repeat(256)] {
        assert!(matches!(text.parse::<sessionlog::SessionId>(), Err(Error::BadSessionId { .. })));
    }
    assert_eq!(medium.take_log(), [], "something was written for a refused call");
    assert!(whole(&store).unwrap() == before);
    assert_eq!(session.append(user("next").to_new()).unwrap(), at(1));
}

/// H39: a giant event is stored and read; one beyond the limit is refused before anything is written.
#[test]
fn h39_giant_events() {
    let medium = Medium::new(1);
    let store = medium.open(quiet()).unwrap();
    let session = store.create(NewSession::with_id(id("a"))).unwrap();
    let said = [user("before"), noise(1, 12 << 20), user("behind")];
    for said in &said {
        session.append(said.to_new()).unwrap();
    }
    let check = |session: &Session| {
        assert_eq!(events::difference(&all(session), &events::lines(&said, 0)), None);
        assert_eq!(read(session.last(1)), [said[2].line(2)]);
    };
    check(&session);
    store.drain().unwrap();
    check(&session);
    medium.take_log();
    let refused = session.append(user(&"x".repeat(64 << 20)).to_new());
    let Err(Error::EventTooLarge { index: 0, bytes, max_bytes }) = refused else { panic!("{refused:?}") };
    assert!(bytes > 64 << 20);
    assert_eq!(max_bytes, 16 << 20);
    assert_eq!(medium.take_log(), []);
    store.close().unwrap();
    drop((session, store));
    check(&medium.open(quiet()).unwrap().session(&id("a")).unwrap());
}

/// The limits themselves: 16 MiB for a line, 65,536 events or 64 MiB for a batch.
#[test]
fn the_largest_event_and_the_largest_batch_are_taken() {
    let (store, session) = new_session();
    let frame = user("").line(0).len();
    let largest = user(&"x".repeat((16 << 20) - frame));
    assert_eq!(largest.line(0).len(), 16 << 20);
    session.append(largest.to_new()).unwrap();
    let too_large = user(&"x".repeat((16 << 20) - frame + 1));
    let refused = session.append(too_large.at(events::NOON).to_new());
    assert!(matches!(refused, Err(Error::EventTooLarge { .. })), "{refused:?}");
    let many = session.append_batch((0..65_536).map(|_| NewEvent::assistant_chunk("x"))).unwrap();
    assert_eq!(many, seqs(1..65_537));
    // 63 MiB, more than the tail has room for.
    let seven = user(&"y".repeat(7 << 20)).to_new();
    assert_eq!(session.append_batch(vec![seven; 9]).unwrap(), seqs(65_537..65_546));
    session.append(user("behind").to_new()).unwrap();
    store.drain().unwrap();
    assert_eq!(read(session.last(1)), [user("behind").line(65_546)]);
    assert_eq!(session.read_range(seqs(65_537..65_546)).unwrap().count(), 9);
    assert_eq!(all(&session).len(), 65_547);
}

/// H38: streamed pieces cost about what they say, not what the message says so far.
#[test]
fn h38_chunks_cost_what_they_are() {
    let (store, session) = new_session();
    let pieces: Vec<Said> =
        (0..2_000).map(|n| chunk(&events::letters(n, 4)).at(events::NOON + 20 * n as i64)).collect();
    let empty = store.info().unwrap().engine_bytes;
    for (seq, piece) in pieces.iter().enumerate() {
        assert_eq!(session.append(piece.to_new()).unwrap(), Seq::new(seq as u64));
    }
    session.append(user(&events::letters(1, 8_000)).to_new()).unwrap();
    store.drain().unwrap();
    let bytes = store.info().unwrap().engine_bytes - empty;
    // The message, 4 bytes of noise for each piece and a few beside them, and the records of one session.
    assert!(bytes < 8_000 + 2_000 * (4 + 4) + 4_000, "{bytes} bytes for 2,000 chunks and their message");
    assert_eq!(session.len(), 2_001);
    assert_eq!(read(session.read_range(seqs(0..2_000))), events::lines(&pieces, 0));
}

/// What a thread checks of a session that many threads append to.
fn assert_contiguous(lines: &[String]) {
    for (seq, line) in lines.iter().enumerate() {
        assert!(line.contains(&format!(r#""seq":{seq},"#)), "{line} at {seq}");
    }
}

/// Threads append singles and batches to one session, Sync and Buffered, while readers read and drains run. No seq is
/// given twice or left out, batches stay together, each thread's events are in its order, and no reader ever sees a
/// hole or an end that goes back.
#[test]
fn threads_appending_to_one_session() {
    let options = StoreOptions::new()
        .sync_window(std::time::Duration::from_millis(1))
        .drain_age(std::time::Duration::from_millis(2))
        .tail_bytes(64 << 10);
    let store = Medium::new(1).open(options).unwrap();
    let session = store.create(NewSession::new()).unwrap();
    let done = AtomicBool::new(false);
    let mut given: Vec<(u64, u64, u64)> = std::thread::scope(|scope| {
        let writers: Vec<_> = (0..6)
            .map(|thread| {
                let session = session.clone();
                scope.spawn(move || append_many(&session, thread))
            })
            .collect();
        for reader in 0..2 {
            let (session, done) = (&session, &done);
            scope.spawn(move || {
                let mut seen = 0;
                while !done.load(Ordering::SeqCst) {
                    let from = if reader == 0 { 0 } else { seen };
                    let mut next = from;
                    for event in session.read_from(Seq::new(from)).unwrap() {
                        assert_eq!(event.unwrap().seq, Seq::new(next));
                        next += 1;
                    }
                    assert!(next >= seen, "the end went back from {seen} to {next}");
                    seen = next;
                    let reverse =
                        session.read_reverse(Seq::new(seen.saturating_sub(50))..Seq::new(seen)).unwrap();
                    for (event, seq) in reverse.zip((0..seen).rev()) {
                        assert_eq!(event.unwrap().seq, Seq::new(seq));
                    }
                }
            });
        }
        let (drained, done_too) = (store.clone(), &done);
        scope.spawn(move || {
            while !done_too.load(Ordering::SeqCst) {
                drained.drain().unwrap();
            }
        });
        let given = writers.into_iter().flat_map(|writer| writer.join().unwrap()).collect();
        done.store(true, Ordering::SeqCst);
        given
    });
    let lines = all(&session);
    assert_contiguous(&lines);
    given.sort_unstable();
    let mut next = 0;
    let mut last_of = [0; 6];
    for (start, end, thread) in given {
        assert_eq!(start, next, "seqs are given without a hole");
        next = end;
        for line in &lines[start as usize..end as usize] {
            let text = line.split(r#""content":""#).nth(1).unwrap();
            let (from, rest) = text.split_once(' ').unwrap();
            let number: u64 = rest.split_once('"').unwrap().0.parse().unwrap();
            assert_eq!(from, thread.to_string(), "a batch was torn apart");
            assert_eq!(number, last_of[thread as usize], "events of a thread are in its order");
            last_of[thread as usize] += 1;
        }
    }
    assert_eq!(next as usize, lines.len());
}

fn append_many(session: &Session, thread: u64) -> Vec<(u64, u64, u64)> {
    let mut given = Vec::new();
    let mut number = 0;
    for n in 0..150 {
        let count = if n % 5 == 0 { 1 + n % 7 } else { 1 };
        let batch = (0..count).map(|place| user(&format!("{thread} {}", number + place)).to_new());
        let how = if n % 3 == 0 { Append::new().buffered() } else { Append::new().sync() };
        let seqs = session.append_with(how, batch).unwrap();
        assert_eq!(seqs.end.get() - seqs.start.get(), count);
        given.push((seqs.start.get(), seqs.end.get(), thread));
        number += count;
    }
    given
}

/// Threads append to many sessions, sharing frames; each session is as if it were alone.
#[test]
fn threads_appending_to_many_sessions() {
    let medium = Medium::new(1);
    let store = medium.open(quiet().tail_bytes(128 << 10)).unwrap();
    let sessions: Arc<Vec<Session>> =
        Arc::new((0..24).map(|n| store.create(NewSession::with_id(id(&format!("s{n}")))).unwrap()).collect());
    std::thread::scope(|scope| {
        for thread in 0..8 {
            let sessions = Arc::clone(&sessions);
            scope.spawn(move || {
                for n in 0..300_u64 {
                    let session = &sessions[3 * thread + n as usize % 3];
                    let said = events::any(n * 31 + thread as u64);
                    let seq = session.append_with(
                        if n % 2 == 0 { Append::new().buffered() } else { Append::new() },
                        [said.to_new()],
                    );
                    assert_eq!(seq.unwrap().start, Seq::new(n / 3));
                }
            });
        }
    });
    let check = |store: &Store| {
        for n in 0..24_u64 {
            let (thread, own) = (n / 3, n % 3);
            let said: Vec<Said> = (0..100).map(|k| events::any((3 * k + own) * 31 + thread)).collect();
            let found = all(&store.session(&id(&format!("s{n}"))).unwrap());
            assert_eq!(events::difference(&found, &events::lines(&said, 0)), None);
        }
        let ids: BTreeSet<_> = store.list().unwrap().map(|info| info.unwrap().header.id).collect();
        assert_eq!(ids.len(), 24);
        assert!(store.scan().unwrap().is_clean());
    };
    check(&store);
    medium.stop();
    drop((sessions, store));
    medium.restart(Crash::Kill);
    check(&medium.open(quiet()).unwrap());
}

/// Values are kept as they were spelled, in the tail and in blocks: numbers, escapes, order, separators, nesting.
#[test]
fn events_come_back_as_they_were_spelled() {
    let (store, session) = new_session();
    let said = [
        call("c", r#"{"b":1e400,"a":-0,"b2":9007199254740993,"c":18446744073709551615,"d":1.10}"#),
        call("c", r#""{\"a\":""#),
        call("c", "null"),
        call("c", &format!("{}{}", "[".repeat(20_000), "]".repeat(20_000))),
        user("\u{2028}\u{2029}\u{85} \\u0041\\ud83d\\ude00 \\/ \\u0000 é 🦀"),
        chunk("\\ud83d\\ude00"),
        chunk(""),
        events::custom(r#","a":null,"":"empty name","usage":{"x":[]},"sessionId":"other""#),
        events::result("c", r#"{"k":[1,2,{"z":{},"y":[]}]}"#),
    ];
    session.append_batch(said.iter().map(Said::to_new)).unwrap();
    assert_eq!(events::difference(&all(&session), &events::lines(&said, 0)), None);
    store.drain().unwrap();
    assert_eq!(events::difference(&all(&session), &events::lines(&said, 0)), None);
}
