//! The bytes of format version 1, as they are checked in: `tests/data/v1/`. A change of them is a change of the
//! format. Until 0.1.0 they are written anew with `SESSIONLOG_WRITE_GOLDEN=1 cargo test golden`, in a commit that says
//! why; after it never.
//!
//! Should another release of zstd spell the compressed ones differently, then only their comparison with fresh bytes
//! goes; that they decode stays.

use std::path::PathBuf;

use super::records::{header, summary};
use super::support::*;
use crate::event::{Event, EventKind};
use crate::format::*;
use crate::id::{SessionId, StorageKey, Timestamp};

const NUMBER: WriteNumber = WriteNumber(2 << 32 | 1);

/// Compares fresh bytes with those checked in, and gives the latter.
fn golden(name: &str, fresh: &[u8]) -> Vec<u8> {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/data/v1").join(name);
    if std::env::var_os("SESSIONLOG_WRITE_GOLDEN").is_some() {
        std::fs::write(&path, fresh).unwrap();
    }
    let stored = std::fs::read(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    assert!(stored == fresh, "{name} is spelled differently now");
    stored
}

/// Every type, with all that can stand in one.
fn events() -> Vec<Event> {
    let mut events = trace(70, 1);
    let custom = event(70, -1, EventKind::Custom { event_type: string("note/\\u00e9") });
    events.push(Event {
        extra: vec![(string("b"), json("1e400")), (string("a"), json("null"))],
        surface_op: Some(json(r#"{"op":"replace","start":2,"end":3}"#)),
        source_event_seqs: Some(json("[2,3]")),
        ..custom
    });
    let chunk = chunk(71, 0, "é");
    events.push(Event { extra: vec![(string("model"), json(r#""m""#))], ..chunk });
    let result =
        EventKind::ToolResult { id: string("c"), result: Some(json("null")), error: Some(json(r#""no""#)) };
    events.push(event(72, Timestamp::MAX.as_millis(), result));
    events
}

#[test]
fn golden_blocks() {
    let events = events();
    let values = Values::of(&events);
    let [block] = values.map.values().collect::<Vec<_>>()[..] else { panic!("one block expected") };
    let stored = golden("block-zstd.bin", block);
    let mut out = Vec::new();
    let view = open_block(KEY, 0, &stored).unwrap();
    view.decode(&mut Scratch::default(), 0, 1024, Sections::All, &mut out).unwrap();
    assert_eq!(out, events);

    let events = [chunk(0, 5, "Hel"), chunk(1, 4, "lo"), message(2, 6, "Hi")];
    let values = Values::of(&events);
    let [block] = values.map.values().collect::<Vec<_>>()[..] else { panic!("one block expected") };
    let stored = golden("block-plain.bin", block);
    out.clear();
    let view = open_block(KEY, 0, &stored).unwrap();
    view.decode(&mut Scratch::default(), 0, 1024, Sections::All, &mut out).unwrap();
    assert_eq!(out, events);
}

#[test]
fn golden_large_event() {
    let event = message(3, 1, &Random(4).noise(12_000));
    let values = Values::of(std::slice::from_ref(&event));
    let [head, part] = values.map.values().collect::<Vec<_>>()[..] else { panic!("two values expected") };
    let (head, part) = (golden("large-head.bin", head), golden("large-part.bin", part));
    let mut reader = LargeReader::new(&open_block(KEY, 3, &head).unwrap());
    reader.push(1, &part).unwrap();
    let mut out = Vec::new();
    reader.finish(&mut Scratch::default(), Sections::All, &mut out).unwrap();
    assert_eq!(out, [event]);
}

#[test]
fn golden_records() {
    let stored = golden("header.bin", &encode_header(&header(), NUMBER));
    assert_eq!(decode_header(KEY, &stored), Ok(header()));
    let stored = golden("summary.bin", &encode_summary(KEY, &summary(), NUMBER));
    assert_eq!(decode_summary(KEY, &stored), Ok(summary()));
    let id = SessionId::new("release-notes").unwrap();
    let stored = golden("id.bin", &encode_id(&id, KEY, NUMBER));
    assert_eq!(decode_id(&id, &stored), Ok(KEY));
    let edge = EdgeKey { parent: StorageKey([7; 16]), prefix_len: 6, child: KEY };
    let stored = golden("edge.bin", &encode_edge(edge.parent, edge.prefix_len, edge.child, NUMBER));
    assert_eq!(check_edge(&edge, &stored), Ok(()));
    let order = OrderKey { updated: Timestamp::MIN, key: KEY };
    let stored = golden("order.bin", &encode_order(order.updated, order.key, NUMBER));
    assert_eq!(check_order(&order, &stored), Ok(()));
    let stored = golden("drained.bin", &encode_drained(Drained { through: 300 }, NUMBER));
    assert_eq!(decode_drained(&stored), Ok(Drained { through: 300 }));
    let stored = golden("opened.bin", &encode_opened(Opened { count: 2 }, NUMBER));
    assert_eq!(decode_opened(&stored), Ok(Opened { count: 2 }));
}

#[test]
fn golden_tombstone() {
    let tombstone = Tombstone { kept: 300, pending: true };
    let stored = golden("tombstone.bin", &encode_tombstone(KEY, tombstone, NUMBER));
    assert_eq!(decode_tombstone(KEY, &stored), Ok(tombstone));
}

#[test]
fn golden_delete_frame() {
    let stored = golden("frame-delete.bin", &super::frames::frame_of(&[Action::Delete { key: KEY }]));
    let view = read_frame(&stored, [0x77; 16]).unwrap();
    assert_eq!(view.actions().collect::<Result<Vec<_>, _>>(), Ok(vec![Action::Delete { key: KEY }]));
}

#[test]
fn golden_frame() {
    let run = encode(&events());
    let stored = golden("frame.bin", &super::frames::frame(std::slice::from_ref(&run)));
    let view = read_frame(&stored, [0x77; 16]).unwrap();
    let actions = view.actions().collect::<Result<Vec<_>, _>>().unwrap();
    let Some(Action::Run { run, .. }) = actions.last() else { panic!("a run expected") };
    let mut out = Vec::new();
    run.decode(0, u32::MAX, Sections::All, &mut out).unwrap();
    assert_eq!(out, events());
}

#[test]
fn golden_checkpoint() {
    let surface = br#"{"version":1,"next":6,"breaks":true,"entries":[],"replaced":[],"bad_replaces":[]}"#;
    let checkpoint = Checkpoint { len: 6, hash: Hash([0xab; 32]), bytes: surface.to_vec() };
    let [(key, value)] = &checkpoint.to_values(KEY, NUMBER)[..] else { panic!("one value expected") };
    assert_eq!(key[..], [&KEY.0[..], &[0; 4]].concat());
    let stored = golden("checkpoint.bin", value);
    assert_eq!(CheckpointReader::new(KEY, &stored).unwrap().finish(), Ok(checkpoint));
}

#[test]
fn golden_care() {
    let stored = golden("end-mark.bin", &encode_end_mark(KEY, 300, NUMBER));
    assert_eq!(decode_end_mark(KEY, &stored), Ok(300));
    let bytes = vec![7; 9_000];
    let values = encode_quarantine((KEY, 4), (Origin::Events, b"place"), "broken", &bytes, || NUMBER);
    let [(first, head), (second, part)] = values.as_slice() else { panic!("two values expected") };
    let at = parse_quarantine_key(first).unwrap();
    assert_eq!((at.key, at.seq, at.part), (KEY, 4, 0));
    let found = decode_quarantine(&at, &golden("quarantine.bin", head)).unwrap();
    assert_eq!(
        (found.origin, found.place.as_slice(), found.reason.as_str()),
        (Origin::Events, &b"place"[..], "broken")
    );
    let at = parse_quarantine_key(second).unwrap();
    let rest = quarantine_part(&at, part).unwrap();
    assert_eq!((found.len, [&found.bytes, rest].concat()), (9_000, bytes));
    // Every byte counts, and no value goes under another key.
    for at_byte in 0..head.len() {
        let mut damaged = head.clone();
        damaged[at_byte] ^= 1;
        assert!(
            decode_quarantine(&parse_quarantine_key(first).unwrap(), &damaged).is_err(),
            "byte {at_byte}"
        );
    }
    assert!(quarantine_part(&QuarantineKey { part: 2, ..at }, part).is_err());
    assert!(decode_end_mark(StorageKey([9; 16]), &stored).is_err());
    assert!(values.iter().all(|(_, value)| value.len() <= crate::format::MAX_VALUE_BYTES));
}
