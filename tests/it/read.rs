//! Reading: bounds, direction, cursors, over blocks and tail and large events, while drains and closes go on.

use sessionlog::{Error, Events, NewSession, Seq, Session, Store};

use crate::support::events::{self, Said, chunk, noise, read, read_some, user};
use crate::support::medium::Medium;
use crate::support::run::{id, quiet};

fn at(seq: u64) -> Seq {
    Seq::new(seq)
}

/// A session of `said`, whose first `drained` events are in blocks and the rest in the tail.
fn session_of(store: &Store, said: &[Said], drained: usize) -> Session {
    let session = store.create(NewSession::new()).unwrap();
    for batch in [&said[..drained], &said[drained..]] {
        session.append_batch(batch.iter().map(Said::to_new)).unwrap();
        if batch.len() == drained {
            store.drain().unwrap();
        }
    }
    session
}

/// Small and large events of every sort.
fn mixed(count: u64) -> Vec<Said> {
    (0..count).map(events::any).collect()
}

/// H33: `from` is inclusive, the end is empty, beyond it is an error; the last three are the last, ascending.
#[test]
fn h33_which_end_which_bound() {
    let store = Store::in_memory().unwrap();
    let said: Vec<Said> = (0..10).map(|n| user(&format!("{n}"))).collect();
    let lines = events::lines(&said, 0);
    for drained in [0, 4, 10] {
        let parent = session_of(&store, &said, drained);
        for session in [parent.clone(), parent.fork(at(10)).unwrap()] {
            for from in [0, 3, 9, 10] {
                assert_eq!(read(session.read_from(at(from))), lines[from as usize..], "from {from}");
            }
            for from in [11, 12, u64::MAX] {
                let beyond = session.read_from(at(from)).unwrap_err();
                let Error::SeqBeyondEnd { from: told, len: 10, .. } = beyond else { panic!("{beyond:?}") };
                assert_eq!(told, at(from));
                assert!(session.read_range(at(from)..at(u64::MAX)).is_err());
                assert!(session.read_reverse(at(from)..at(u64::MAX)).is_err());
            }
            assert_eq!(read(session.last(3)), lines[7..]);
            assert_eq!(read(session.last(0)), lines[10..]);
            assert_eq!(read(session.last(u64::MAX)), lines);
            for (from, to) in [(0, 10), (2, 5), (5, 5), (9, 100), (10, 10), (10, u64::MAX), (7, 3)] {
                let expected =
                    &lines[from.min(10) as usize..(to.min(10) as usize).max(from.min(10) as usize)];
                assert_eq!(read(session.read_range(at(from)..at(to))), expected, "{from}..{to}");
                let reversed: Vec<String> = expected.iter().rev().cloned().collect();
                assert_eq!(read(session.read_reverse(at(from)..at(to))), reversed, "{from}..{to}");
            }
        }
    }
    let empty = store.create(NewSession::new()).unwrap();
    assert_eq!(read(empty.read_from(at(0))), [""; 0]);
    assert_eq!(read(empty.last(5)), [""; 0]);
    assert!(matches!(empty.read_from(at(1)), Err(Error::SeqBeyondEnd { len: 0, .. })));
}

/// H34: more events than five digits count, a restart, and the last three are read.
#[test]
fn h34_a_hundred_thousand_and_one() {
    let folder = tempfile::tempdir().unwrap();
    let said: Vec<Said> = (0..100_001).map(|n| chunk(&format!("{n}"))).collect();
    let store = Store::open(folder.path()).unwrap();
    let session = store.create(NewSession::with_id(id("a"))).unwrap();
    for batch in said.chunks(5_000) {
        session.append_batch(batch.iter().map(Said::to_new)).unwrap();
    }
    store.close().unwrap();
    drop((session, store));
    let store = Store::open(folder.path()).unwrap();
    let session = store.session(&id("a")).unwrap();
    assert_eq!(session.len(), 100_001);
    let expected: Vec<String> = (99_998..100_001).map(|n| said[n as usize].line(n)).collect();
    assert_eq!(read(session.read_from(at(99_998))), expected);
    assert_eq!(read(session.last(3)), expected);
    assert_eq!(session.append(user("next").to_new()).unwrap(), at(100_001));
    assert_eq!(
        read(session.read_range(at(9_999)..at(10_001))),
        [said[9_999].line(9_999), said[10_000].line(10_000)]
    );
}

/// From every seq, in both directions, over the borders of blocks, of large events and of the tail.
#[test]
fn every_start_gives_the_same_events() {
    let store = Store::in_memory().unwrap();
    let mut said = mixed(120);
    for place in [0, 60, 61, 90] {
        said.insert(place, noise(place as u64, 30_000));
    }
    let lines = events::lines(&said, 0);
    for drained in [0, 61, 62, 90, said.len()] {
        let session = session_of(&store, &said, drained);
        for from in 0..=lines.len() {
            let found = read(session.read_from(at(from as u64)));
            assert_eq!(events::difference(&found, &lines[from..]), None, "from {from}, {drained} drained");
            let found = read(session.read_reverse(at(0)..at(from as u64)));
            let expected: Vec<String> = lines[..from].iter().rev().cloned().collect();
            assert_eq!(events::difference(&found, &expected), None, "back from {from}, {drained} drained");
        }
    }
}

/// Chunks are left out, everything else comes in order: from the tail, from blocks of chunks alone, also when asked
/// for in the midst of reading. (Blocks of chunks were once refused as damaged: the unread section counted as empty.)
#[test]
fn without_chunks() {
    let store = Store::in_memory().unwrap();
    let chunks = |count: usize| (0..count).map(|n| chunk(&format!("piece {n}"))).collect::<Vec<_>>();
    let other = events::custom(r#","n":1"#);
    for said in [
        chunks(4),
        chunks(3_000),
        [chunks(500), vec![user("one")], chunks(500), vec![user("two"), other.clone()], chunks(1)].concat(),
        [vec![user("one")], chunks(5), vec![chunk(&events::letters(1, 50_000)), user("two")]].concat(),
        mixed(200),
    ] {
        for drained in [0, said.len() / 2, said.len()] {
            let session = session_of(&store, &said, drained);
            let words = |from: usize| -> Vec<String> {
                let all = said.iter().zip(0..).skip(from).filter(|(said, _)| !said.is_chunk());
                all.map(|(said, seq)| said.line(seq)).collect()
            };
            for from in [0, 1, said.len() / 2, said.len() - 1] {
                let found = read(session.read_from(at(from as u64)).map(Events::without_chunks));
                assert_eq!(events::difference(&found, &words(from)), None, "from {from}, {drained} drained");
            }
            let mut reverse = words(0);
            reverse.reverse();
            let all = at(0)..at(said.len() as u64);
            assert_eq!(read(session.read_reverse(all).map(Events::without_chunks)), reverse);

            let mut reader = session.read_from(at(0)).unwrap();
            assert_eq!(reader.next().unwrap().unwrap().to_string(), said[0].line(0));
            assert_eq!(read(Ok(reader.without_chunks())), words(1));
        }
    }
}

/// What is appended while an iterator runs is not in it; its cursor says where the next one goes on.
#[test]
fn the_end_is_fixed_and_the_cursor_goes_on() {
    let store = Store::in_memory().unwrap();
    let said = mixed(60);
    let session = session_of(&store, &said[..40], 20);
    let mut reader = session.read_from(at(0)).unwrap();
    session.append_batch(said[40..].iter().map(Said::to_new)).unwrap();
    let mut lines = Vec::new();
    let mut reads = 0;
    loop {
        assert_eq!(reader.next_seq(), at(lines.len() as u64));
        let taken = lines.len();
        lines.extend(reader.by_ref().take(7).map(|event| event.unwrap().to_string()));
        let next = reader.next_seq();
        assert_eq!(next, at(lines.len() as u64));
        if lines.len() == taken {
            break;
        }
        if reads == 0 && lines.len() == 40 {
            assert!(reader.next().is_none(), "the end was fixed at 40");
        }
        reads += 1;
        reader = session.read_from(next).unwrap();
    }
    assert_eq!(lines, events::lines(&said, 0));
    let mut first_forty = session.read_range(at(0)..at(40)).unwrap();
    assert_eq!(first_forty.by_ref().count(), 40);
    assert_eq!(first_forty.next_seq(), at(40));
}

/// A reader that began in the tail goes on in the blocks that a drain made of it meanwhile, and one that waits at the
/// border of a block that is being continued finds no hole.
#[test]
fn drains_under_a_reader() {
    let store = Medium::new(1).open(quiet()).unwrap();
    let session = store.create(NewSession::new()).unwrap();
    let said: Vec<Said> = (0..400).map(|n| user(&format!("event {n} {}", events::letters(n, 40)))).collect();
    let lines = events::lines(&said, 0);
    let mut readers: Vec<(usize, Events, bool)> = Vec::new();
    for (n, said) in said.iter().enumerate() {
        session.append(said.to_new()).unwrap();
        if n % 10 == 0 {
            readers.push((n, session.read_from(at(0)).unwrap(), false));
            readers.push((n, session.read_reverse(at(0)..at(n as u64 + 1)).unwrap(), true));
        }
        // Each reader takes a few, then a drain moves what they stand in.
        for (_, reader, _) in &mut readers {
            assert!(reader.next().is_none_or(|event| event.is_ok()));
        }
        if n % 3 == 0 {
            store.drain().unwrap();
        }
    }
    for (n, reader, reverse) in readers {
        let taken = (said.len() - n).min(n + 1);
        let found = read(Ok(reader));
        let mut expected = lines[..=n].to_vec();
        if reverse {
            expected.reverse();
        }
        assert_eq!(events::difference(&found, &expected[taken..]), None, "reader from {n}");
    }
}

/// An iterator that is alive when the store is closed ends with `Closed`, never with a silent end; and it does not keep
/// the folder: the store can be opened again at once.
#[test]
fn an_iterator_over_a_closed_store() {
    let folder = tempfile::tempdir().unwrap();
    let store = Store::open(folder.path()).unwrap();
    let session = store.create(NewSession::with_id(id("a"))).unwrap();
    let said: Vec<Said> = (0..5_000).map(|n| user(&format!("event {n}"))).collect();
    session.append_batch(said.iter().map(Said::to_new)).unwrap();
    store.drain().unwrap();
    let mut reader = session.read_from(at(0)).unwrap();
    let mut back = session.read_reverse(at(0)..at(5_000)).unwrap();
    assert_eq!(reader.next().unwrap().unwrap().seq, at(0));
    assert_eq!(back.next().unwrap().unwrap().seq, at(4_999));
    let untouched = session.read_from(at(10)).unwrap();
    store.close().unwrap();

    let again = Store::open(folder.path()).unwrap();
    assert_eq!(again.session(&id("a")).unwrap().len(), 5_000);
    for (reader, given) in [(reader, 1), (back, 1), (untouched, 0)] {
        let (lines, error) = read_some(reader);
        assert!(lines.len() < 5_000 - given, "{} events from a closed store", lines.len());
        assert!(matches!(error, Some(Error::Closed)), "{error:?}");
    }
    assert!(matches!(session.read_from(at(0)), Err(Error::Closed)));
    drop((session, store));
    assert_eq!(read(again.session(&id("a")).unwrap().read_from(at(0))).len(), 5_000);
}

/// Any byte of any block flipped: the reads that need it give an error with its place and then nothing more; those
/// that do not are as before; none gives another event.
#[test]
fn a_damaged_block_is_an_error_and_not_skipped() {
    let medium = Medium::new(1);
    let store = medium.open(quiet()).unwrap();
    let session = store.create(NewSession::with_id(id("a"))).unwrap();
    let said = [mixed(30), vec![noise(1, 9_000)], mixed(30)].concat();
    session.append_batch(said.iter().map(Said::to_new)).unwrap();
    let fork = session.fork(at(50)).unwrap();
    store.close().unwrap();
    let fork = fork.id().clone();
    drop((session, store));
    let lines = events::lines(&said, 0);
    let blocks = medium.image().maps[1].len();
    assert!(blocks > 4, "{blocks} blocks");
    for block in 0..blocks {
        let bytes = medium.image().maps[1][block].1.len();
        for byte in (0..bytes).step_by(41).chain([bytes - 1]) {
            let damaged = medium.copy(1);
            damaged.damage_value(1, block, |value| value[byte] ^= 0x20);
            let store = damaged.open(quiet()).unwrap();
            for (name, end) in [(&id("a"), lines.len()), (&fork, 50)] {
                let session = store.session(name).unwrap();
                let (found, error) = read_some(session.read_from(at(0)).unwrap());
                assert!(lines[..end].starts_with(&found), "a wrong event, block {block}, byte {byte}");
                match error {
                    Some(Error::Corrupt { place, .. }) => {
                        assert!(found.len() < end);
                        let seqs = place.seqs.unwrap();
                        assert!(seqs.contains(&(found.len() as u64)), "{seqs:?} for {}", found.len());
                        assert!(place.session.is_some() && place.at.is_some());
                    }
                    // A newer format, as far as the flipped byte can tell.
                    Some(Error::UnsupportedFormat { .. }) => assert!(found.len() < end),
                    None => assert_eq!(found.len(), end, "block {block}, byte {byte}"),
                    Some(error) => panic!("{error:?}"),
                }
                let (found, _) = read_some(session.read_reverse(at(0)..at(end as u64)).unwrap());
                assert!(lines[..end].iter().rev().take(found.len()).eq(found.iter()));
            }
            assert!(!store.scan().unwrap().is_clean(), "the check missed block {block}, byte {byte}");
            // Damage in a block does not stop what goes on behind it, nor the drain.
            let session = store.session(&id("a")).unwrap();
            let seq = session.append(user("goes on").to_new()).unwrap();
            store.drain().unwrap();
            assert_eq!(read(session.read_from(seq)), [user("goes on").line(seq.get())]);
        }
    }
}

/// A block that is missing altogether is a gap that names the seq, not an end.
#[test]
fn a_missing_block_is_a_gap() {
    let medium = Medium::new(1);
    let store = medium.open(quiet()).unwrap();
    let session = store.create(NewSession::with_id(id("a"))).unwrap();
    let said = [mixed(30), vec![noise(1, 9_000)], mixed(30)].concat();
    session.append_batch(said.iter().map(Said::to_new)).unwrap();
    store.close().unwrap();
    drop((session, store));
    let lines = events::lines(&said, 0);
    for block in 0..medium.image().maps[1].len() {
        let damaged = medium.copy(1);
        damaged.lose_value(1, block);
        let store = damaged.open(quiet()).unwrap();
        let session = store.session(&id("a")).unwrap();
        assert_eq!(session.len(), lines.len() as u64, "the length is the summary's");
        let (found, error) = read_some(session.read_from(at(0)).unwrap());
        assert!(lines.starts_with(&found) && found.len() < lines.len());
        let Some(Error::Corrupt { place, .. }) = &error else { panic!("{error:?}") };
        assert!(place.seqs.as_ref().unwrap().contains(&(found.len() as u64)), "{error:?}");
        let (found, error) = read_some(session.read_reverse(at(0)..at(lines.len() as u64)).unwrap());
        assert!(lines.iter().rev().take(found.len()).eq(found.iter()) && found.len() < lines.len());
        assert!(matches!(error, Some(Error::Corrupt { .. })), "{error:?}");
    }
}
