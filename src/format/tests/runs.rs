use proptest::prelude::*;

use super::support::*;
use crate::event::{Event, EventKind};
use crate::format::*;

fn decode(run: &RunView<'_>, skip: u32, take: u32, which: Sections) -> Result<Vec<Event>, FormatError> {
    let mut out = Vec::new();
    run.decode(skip, take, which, &mut out)?;
    Ok(out)
}

fn without_chunks(events: &[Event]) -> Vec<Event> {
    events.iter().filter(|event| !matches!(event.kind, EventKind::AssistantChunk { .. })).cloned().collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    /// Goal: every window of a run is that slice of its events, with chunks and without.
    #[test]
    fn any_window_is_that_slice(events in any_events(1..120), a in 0..130usize, b in 0..130usize) {
        let run = encode(&events);
        prop_assert_eq!(run.count as usize, events.len());
        prop_assert_eq!(&decode(&run.view(), 0, u32::MAX, Sections::All).unwrap(), &events);
        let (from, to) = (a.min(b).min(events.len()), a.max(b).min(events.len()));
        let wanted = &events[from..to];
        let (skip, take) = (from as u32, (to - from) as u32);
        prop_assert_eq!(decode(&run.view(), skip, take, Sections::All).unwrap(), wanted);
        let few = decode(&run.view(), skip, take, Sections::WithoutChunks).unwrap();
        prop_assert_eq!(few, without_chunks(wanted));
    }

    /// Goal: whatever the bytes, decoding ends, and gives no more events than were announced.
    #[test]
    fn any_bytes_decode_or_fail(
        main in proptest::collection::vec(any::<u8>(), 0..60),
        chunks in proptest::collection::vec(any::<u8>(), 0..60),
        count in 0..100u32,
    ) {
        let run = RunView { first_seq: 0, count, main: &main, chunks: &chunks };
        for which in [Sections::All, Sections::WithoutChunks] {
            if let Ok(events) = decode(&run, 0, u32::MAX, which) {
                prop_assert!(events.len() <= count as usize);
            }
        }
    }

    /// Goal: a byte changed in a run, which the checksums around it would have noticed, makes no panic.
    #[test]
    fn a_changed_byte_makes_no_panic(events in any_events(1..20), at in 0..4000usize, bits in 1..=255u8) {
        let mut run = encode(&events);
        let at = at % run.stored_len();
        let main_len = run.main.len();
        if at < main_len { run.main[at] ^= bits } else { run.chunks[at - main_len] ^= bits }
        let _ = decode(&run.view(), 0, u32::MAX, Sections::All);
        let _ = decode(&run.view(), 3, 5, Sections::WithoutChunks);
    }
}

/// Goal: a count that is not that of the events, and bytes left over or missing, are damage.
#[test]
fn counts_and_ends_must_agree() {
    let events = trace(60, 3);
    let run = encode(&events);
    for count in [0, 1, 59, 61, u32::MAX] {
        let view = RunView { count, ..run.view() };
        assert!(matches!(decode(&view, 0, u32::MAX, Sections::All), Err(FormatError::Corrupt(_))), "{count}");
    }
    let end = RunView { first_seq: u64::MAX, ..run.view() };
    assert!(decode(&end, 0, u32::MAX, Sections::All).is_err(), "seqs beyond the last");
    for extra in [0, 1] {
        let (mut main, mut chunks) = (run.main.clone(), run.chunks.clone());
        main.push(extra);
        assert!(decode(&RunView { main: &main, ..run.view() }, 0, u32::MAX, Sections::All).is_err());
        chunks.push(extra);
        assert!(decode(&RunView { chunks: &chunks, ..run.view() }, 0, u32::MAX, Sections::All).is_err());
    }
    for len in 0..run.main.len() {
        assert!(
            decode(&RunView { main: &run.main[..len], ..run.view() }, 0, u32::MAX, Sections::All).is_err()
        );
    }
    for len in 0..run.chunks.len() {
        let view = RunView { chunks: &run.chunks[..len], ..run.view() };
        assert!(decode(&view, 0, u32::MAX, Sections::All).is_err(), "{len}");
    }
}

/// Goal: a reader without chunks never looks at their section.
#[test]
fn chunks_section_is_not_read_when_unwanted() {
    let events = trace(300, 4);
    let mut run = encode(&events);
    run.chunks.fill(0xff);
    assert_eq!(decode(&run.view(), 0, u32::MAX, Sections::WithoutChunks).unwrap(), without_chunks(&events));
    assert!(decode(&run.view(), 0, u32::MAX, Sections::All).is_err());
}

/// Goal: events before the window are stepped over, not decoded: damage in them does not reach it.
#[test]
fn skipped_events_are_not_decoded() {
    let events: Vec<_> = (0..10).map(|seq| message(seq, seq as i64, "text")).collect();
    let mut run = encode(&events);
    let damaged = run.main.windows(4).position(|text| text == b"text").unwrap();
    run.main[damaged] = 0xff;
    assert!(decode(&run.view(), 0, 1, Sections::All).is_err());
    assert_eq!(decode(&run.view(), 4, 3, Sections::All).unwrap(), events[4..7]);
}

/// Goal: deltas end where characters do.
#[test]
fn a_delta_cut_within_a_character_is_damage() {
    let mut run = encode(&[chunk(0, 0, "é"), chunk(1, 0, "a")]);
    let lens = run.chunks.windows(2).position(|lens| lens == [2, 1]).unwrap();
    run.chunks[lens..lens + 2].copy_from_slice(&[1, 2]);
    let found = decode(&run.view(), 0, u32::MAX, Sections::All);
    assert_eq!(found, Err(FormatError::undecodable("the list of events")));
}

/// Goal: an integer that is spelled longer than need be is refused, in bincode's bodies too.
#[test]
fn integers_have_one_spelling_in_bodies() {
    let run = encode(&[message(0, 0, "ab")]);
    // Length of times, time, length of the body, variant, length of the content, content, no rest.
    assert_eq!(run.main, [&[1, 0, 7, 4, 4][..], b"\"ab\"", &[0]].concat());
    let long = [&[1, 0, 9, 4, 251, 4, 0][..], b"\"ab\"", &[0]].concat();
    let view = RunView { main: &long, ..run.view() };
    assert_eq!(decode(&view, 0, 1, Sections::All), Err(FormatError::undecodable("an event")));
    let behind = [&[1, 0, 8, 4, 4][..], b"\"ab\"", &[0, 0]].concat();
    let view = RunView { main: &behind, ..run.view() };
    assert_eq!(decode(&view, 0, 1, Sections::All), Err(FormatError::undecodable("an event")));
}

/// Goal: a lone event costs little beyond its text.
#[test]
fn a_lone_event_costs_little() {
    let text = "x".repeat(200);
    let now = 1_786_073_817_152;
    assert!(encode(&[message(0, now, &text)]).stored_len() <= 200 + 15);
    assert!(encode(&[chunk(0, now, &text)]).stored_len() <= 200 + 15);
}

/// Goal: an encoder that goes on gives runs that follow each other.
#[test]
fn an_encoder_goes_on_behind_its_run() {
    let events = trace(200, 5);
    let mut encoder = RunEncoder::new(0);
    let mut all = Vec::new();
    for batch in events.chunks(7) {
        batch.iter().for_each(|event| encoder.push(&event.parts()));
        assert_eq!(encoder.len(), batch.len());
        let run = encoder.finish();
        assert_eq!((run.first_seq, run.end()), (all.len() as u64, (all.len() + batch.len()) as u64));
        run.view().decode(0, u32::MAX, Sections::All, &mut all).unwrap();
    }
    assert_eq!(all, events);
}
