use proptest::prelude::*;

use super::support::*;
use crate::error::Corruption;
use crate::event::Event;
use crate::format::*;

/// What holds for every packed session.
fn check(values: &Values, events: &[Event]) {
    let mut next = events[0].seq.get();
    let mut hash = Hash::START;
    let mut events_left = events.iter();
    for value in values.map.values() {
        assert!(value.len() <= MAX_VALUE_BYTES, "{} bytes", value.len());
    }
    for (block, parts) in values.blocks() {
        let header = block.header();
        assert_eq!(header.first_seq, next);
        assert!(header.count <= MAX_BLOCK_EVENTS);
        assert!(block.is_large().is_some() || header.main_len + header.chunks_len <= MAX_BLOCK_LEN);
        assert_eq!(parts.len() + 1, header.parts as usize);
        next = header.end();
        for event in events_left.by_ref().take(header.count as usize) {
            hash = next_hash(hash, event);
        }
        assert_eq!(header.hash_after, hash);
    }
    assert_eq!(values.decode(Sections::All), events);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    /// Goal: sessions of any events come back from their blocks.
    #[test]
    fn any_session_comes_back(events in any_events(1..900)) {
        check(&Values::of(&events), &events);
    }

    /// Goal: every window of a block is that slice of its events.
    #[test]
    fn any_window_of_a_block_is_that_slice(seed in 1..u64::MAX, skip in 0..300u32, take in 0..300u32) {
        let events = trace(400, seed);
        let values = Values::of(&events);
        let block = values.blocks()[0].0;
        let (mut scratch, mut out) = (Scratch::default(), Vec::new());
        block.decode(&mut scratch, skip, take, Sections::All, &mut out).unwrap();
        let count = block.header().count as usize;
        let from = (skip as usize).min(count);
        prop_assert_eq!(&out[..], &events[from..(from + take as usize).min(count)]);
    }

    /// Goal: a session that grows in steps, its last block continued, is the same session; and no value that
    /// replaces another holds fewer events.
    #[test]
    fn a_continued_block_keeps_its_events(seed in 1..u64::MAX, steps in proptest::collection::vec(1..400usize, 1..8)) {
        let events = trace(steps.iter().sum(), seed);
        let mut values = Values::new();
        let (mut hash, mut done) = (Hash::START, 0);
        for step in steps {
            let last = values.map.iter().next_back().map(|(key, value)| (key.clone(), value.clone()));
            let resumed = last.as_ref().and_then(|(key, value)| {
                let block = open_block(KEY, parse_event_key(key).unwrap().seq, value).unwrap();
                Packer::resume(&block, block.header().count, hash, &mut Scratch::default()).unwrap()
            });
            let packer = resumed.unwrap_or_else(|| Packer::new(KEY, done as u64));
            hash = values.pack(packer, &events[done..done + step], hash);
            done += step;
            check(&values, &events[..done]);
            if let Some((key, value)) = last {
                let seq = parse_event_key(&key).unwrap().seq;
                let (old, new) = (open_block(KEY, seq, &value).unwrap(), open_block(KEY, seq, &values.map[&key]).unwrap());
                prop_assert!(new.header().count >= old.header().count);
                prop_assert!(new.header().write_number >= old.header().write_number);
            }
        }
    }
}

/// Goal: blocks are full, in few tries, and small: the bar is 24 bytes an event.
#[test]
fn blocks_of_a_trace_are_full_and_small() {
    let events = trace(20_000, 11);
    let values = Values::of(&events);
    let lens: Vec<_> = values.map.values().map(Vec::len).collect();
    let full = &lens[..lens.len() - 1];
    let fill = full.iter().sum::<usize>() * 1000 / full.len() / MAX_VALUE_BYTES;
    assert!(fill >= 930, "{fill} per mille");
    let (blocks, tries) = values.context.figures();
    assert!(tries * 10 <= blocks * 13, "{tries} compressions for {blocks} blocks");
    let stored = values.map.iter().map(|(key, value)| key.len() + value.len()).sum::<usize>();
    assert!(stored <= 24 * events.len(), "{} bytes an event", stored as f64 / events.len() as f64);
}

/// Goal: a trace that changes its nature now and then, and events from nothing to many values long, are packed as
/// well as any.
#[test]
fn mixed_sessions_come_back() {
    let mut random = Random(5);
    let mut events = trace(3000, 12);
    for at in (0..events.len()).step_by(41) {
        let len = [0, 10, 3000, 5900, 6100, 7000, 40_000, 300_000][random.below(8) as usize];
        let text = if random.below(2) == 0 { random.noise(len) } else { "ab".repeat(len / 2) };
        let (seq, millis) = (at as u64, events[at].timestamp.as_millis());
        events[at] =
            if random.below(2) == 0 { chunk(seq, millis, &text) } else { message(seq, millis, &text) };
    }
    check(&Values::of(&events), &events);
}

/// Goal: repetitive text, of which millions of bytes would fit a value, is bounded by its decoded length; tiny events
/// by their number.
#[test]
fn blocks_are_bounded_in_length_and_number() {
    let events: Vec<_> = (0..200).map(|seq| message(seq, 0, &"a".repeat(20_000))).collect();
    let values = Values::of(&events);
    check(&values, &events);
    assert!(values.map.len() >= 16 && values.map.len() <= 18, "{}", values.map.len());
    let events: Vec<_> = (0..5000).map(|seq| chunk(seq, 0, "")).collect();
    let values = Values::of(&events);
    check(&values, &events);
    assert_eq!(values.map.len(), 5);
}

/// Goal: damage of a block, a head and a part is found, whatever it is.
#[test]
fn damaged_blocks_are_found() {
    let values = Values::of(&trace(300, 13));
    let read = |value: &[u8]| {
        let mut out = Vec::new();
        open_block(KEY, 0, value)?.decode(&mut Scratch::default(), 0, 2000, Sections::All, &mut out)?;
        Ok(out)
    };
    damage(values.map.values().next().unwrap(), read);
    let large = Values::of(&[message(0, 0, &Random(1).noise(12_000))]);
    let [head, part] = large.map.values().collect::<Vec<_>>()[..] else { panic!("two values expected") };
    let read = |head: &[u8], part: &[u8]| {
        let mut reader = LargeReader::new(&open_block(KEY, 0, head)?);
        reader.push(1, part)?;
        let mut out = Vec::new();
        reader.finish(&mut Scratch::default(), Sections::All, &mut out)?;
        Ok(out)
    };
    damage(head, |head| read(head, part));
    damage(part, |part| read(head, part));
}

/// Goal: a value under another key than its own is told so.
#[test]
fn a_block_under_another_key_is_refused() {
    let values = Values::of(&trace(10, 14));
    let value = values.map.values().next().unwrap();
    for (key, seq) in [(KEY, 1), (crate::id::StorageKey([0; 16]), 0)] {
        let found = open_block(key, seq, value).err();
        let says = format!("{}{}", "5e".repeat(16), "00".repeat(8));
        assert_eq!(found, Some(FormatError::Corrupt(Corruption::WrongKey { says })));
    }
}

/// Goal: a header that claims more than its limit is refused before anything is allocated, and one that claims more
/// than its sections give is refused behind that.
#[test]
fn a_header_that_promises_too_much_is_refused() {
    let (main_len, main_stored, chunks_len) = (84, 88, 92);
    let values = Values::of(&trace(100, 15));
    let value = values.map.values().next().unwrap();
    let block = open_block(KEY, 0, value).unwrap();
    assert_eq!(value[main_len..main_len + 4], (block.header().main_len as u32).to_be_bytes());
    for at in [main_len, chunks_len] {
        for len in [u32::MAX, 1 << 31, MAX_BLOCK_LEN as u32 + 1] {
            let bomb = forged(value, at, &len.to_be_bytes());
            assert_eq!(open_block(KEY, 0, &bomb).err(), Some(FormatError::undecodable("the block's header")));
        }
        let bomb = forged(value, at, &200_000u32.to_be_bytes());
        let mut out = Vec::new();
        let block = open_block(KEY, 0, &bomb).unwrap();
        assert!(block.decode(&mut Scratch::default(), 0, 1, Sections::All, &mut out).is_err());
    }
    assert!(open_block(KEY, 0, &forged(value, main_stored, &[0xff; 4])).is_err());
    for count in [0, MAX_BLOCK_EVENTS + 1, u32::MAX] {
        assert!(open_block(KEY, 0, &forged(value, 32, &count.to_be_bytes())).is_err(), "{count} events");
    }
}

/// Goal: parts must be all there, in order, of the same write and nothing else.
#[test]
fn parts_of_a_large_event_must_agree() {
    let event = message(0, 7, &Random(2).noise(30_000));
    let (one, two) = (Values::of(std::slice::from_ref(&event)), {
        let mut values = Values::new();
        values.context.next_write_number();
        values.pack(Packer::new(KEY, 0), std::slice::from_ref(&event), Hash::START);
        values
    });
    let parts = |values: &Values| values.map.values().cloned().collect::<Vec<_>>();
    let (one, two) = (parts(&one), parts(&two));
    let head = open_block(KEY, 0, &one[0]).unwrap();
    let count = head.is_large().unwrap();
    assert_eq!(count as usize, one.len());
    let missing = |part| Err(FormatError::Corrupt(Corruption::MissingPart { part, parts: count }));
    let mut out = Vec::new();
    assert_eq!(head.decode(&mut Scratch::default(), 0, 1, Sections::All, &mut out), missing(1));

    let mut reader = LargeReader::new(&head);
    assert_eq!(reader.next_part(), Some(1));
    assert_eq!(reader.push(2, &one[2]), missing(1), "a part too early");
    assert_eq!(reader.push(1, &two[1]), missing(1), "a part of another write");
    assert_eq!(reader.push(1, &one[2]), missing(1), "a part under another part's key");
    assert!(reader.push(1, &one[0]).is_err(), "the head again");
    for (part, value) in (1..).zip(&one[1..]) {
        assert_eq!(reader.push(part, value), Ok(()));
    }
    assert_eq!(reader.next_part(), None);
    assert!(reader.push(count, &one[1]).is_err(), "one too many");
    reader.finish(&mut Scratch::default(), Sections::All, &mut out).unwrap();
    assert_eq!(out, [event]);

    let mut reader = LargeReader::new(&head);
    reader.push(1, &one[1]).unwrap();
    assert_eq!(reader.finish(&mut Scratch::default(), Sections::All, &mut out), missing(2));
}

/// Goal: one event of 16 MiB, the default limit, that does not compress.
#[test]
fn the_largest_event_comes_back() {
    let events = [chunk(0, 0, "before"), chunk(1, 1, &Random(3).noise(16 << 20)), chunk(2, 2, "behind")];
    check(&Values::of(&events), &events);
}

/// Goal: a block that holds more than counts is cut to what counts, and goes on from there.
#[test]
fn a_block_beyond_the_summary_is_cut() {
    let events = trace(150, 16);
    let mut values = Values::of(&events);
    assert_eq!(values.map.len(), 1);
    let value = values.map.values().next().unwrap().clone();
    let block = open_block(KEY, 0, &value).unwrap();
    let hash = events[..90].iter().fold(Hash::START, next_hash);
    let packer = Packer::resume(&block, 90, hash, &mut Scratch::default()).unwrap().unwrap();
    assert_eq!(packer.end(), 90);
    values.pack(packer, &[], hash);
    check(&values, &events[..90]);
    let packer = Packer::resume(&block, 90, hash, &mut Scratch::default()).unwrap().unwrap();
    values.pack(packer, &events[90..120], hash);
    check(&values, &events[..120]);
}

/// Goal: a full block is left alone; one that got no events is not written again.
#[test]
fn full_and_unchanged_blocks_are_left_alone() {
    let values = Values::of(&trace(400, 17));
    let blocks = values.blocks();
    let hash = blocks[0].0.header().hash_after;
    let count = blocks[0].0.header().count;
    assert!(Packer::resume(&blocks[0].0, count, hash, &mut Scratch::default()).unwrap().is_none());
    let (last, _) = blocks.last().unwrap();
    let packer = Packer::resume(last, last.header().count, last.header().hash_after, &mut Scratch::default());
    let mut none = Values::new();
    none.pack(packer.unwrap().unwrap(), &[], last.header().hash_after);
    assert!(none.map.is_empty());
}
