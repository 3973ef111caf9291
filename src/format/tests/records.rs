use std::collections::BTreeMap;

use super::support::*;
use crate::error::Corruption;
use crate::format::*;
use crate::id::{SessionId, StorageKey, Timestamp};

const NUMBER: WriteNumber = WriteNumber(3 << 32 | 9);

pub(super) fn header() -> SessionHeader {
    SessionHeader {
        id: SessionId::new("release-notes").unwrap(),
        key: KEY,
        created: Timestamp::from_millis(1_786_073_817_152).unwrap(),
        parent: Some((StorageKey([7; 16]), 6)),
        prefix_hash: Hash([9; 32]),
        meta: BTreeMap::from([("model".into(), "m-1".into()), ("".into(), "é".into())]),
    }
}

pub(super) fn summary() -> Summary {
    Summary { len: 1 << 40, updated: Timestamp::from_millis(-5).unwrap(), hash: Hash([8; 32]) }
}

/// Goal: headers come back, with a parent and without, and all damage of one is found.
#[test]
fn headers_round_trip() {
    let with = header();
    let without = SessionHeader { parent: None, prefix_hash: Hash::START, meta: BTreeMap::new(), ..header() };
    for header in [with, without] {
        let value = encode_header(&header, NUMBER);
        assert_eq!(decode_header(KEY, &value), Ok(header));
        damage(&value, |value| decode_header(KEY, value));
    }
}

/// Goal: the small records come back, and all damage of one is found.
#[test]
fn small_records_round_trip() {
    let value = encode_summary(KEY, &summary(), NUMBER);
    assert_eq!(decode_summary(KEY, &value), Ok(summary()));
    damage(&value, |value| decode_summary(KEY, value));

    let value = encode_drained(Drained { through: MAX_NUMBER }, NUMBER);
    assert_eq!(decode_drained(&value), Ok(Drained { through: MAX_NUMBER }));
    damage(&value, decode_drained);

    let value = encode_opened(Opened { count: 300 }, NUMBER);
    assert_eq!(decode_opened(&value), Ok(Opened { count: 300 }));
    damage(&value, decode_opened);

    for (kept, pending) in [(0, true), (MAX_NUMBER, false)] {
        let value = encode_tombstone(KEY, Tombstone { kept, pending }, NUMBER);
        assert_eq!(decode_tombstone(KEY, &value), Ok(Tombstone { kept, pending }));
        damage(&value, |value| decode_tombstone(KEY, value));
    }
    let value = encode_tombstone(KEY, Tombstone { kept: MAX_NUMBER + 1, pending: true }, NUMBER);
    assert_eq!(decode_tombstone(KEY, &value), Err(FormatError::undecodable("a tombstone")));

    let id = SessionId::new("release-notes").unwrap();
    let value = encode_id(&id, KEY, NUMBER);
    assert_eq!(decode_id(&id, &value), Ok(KEY));
    damage(&value, |value| {
        decode_id(&id, value)
            .and_then(|key| if key == KEY { Ok(()) } else { Err(FormatError::undecodable("key")) })
    });

    let edge = EdgeKey { parent: KEY, prefix_len: 6, child: StorageKey([7; 16]) };
    let value = encode_edge(edge.parent, edge.prefix_len, edge.child, NUMBER);
    damage(&value, |value| check_edge(&edge, value));

    let order = OrderKey { updated: Timestamp::from_millis(-5).unwrap(), key: KEY };
    let value = encode_order(order.updated, order.key, NUMBER);
    damage(&value, |value| check_order(&order, value));
}

/// Goal: a record under another key, or of another kind, is refused.
#[test]
fn records_belong_under_their_keys() {
    let wrong = |result: Result<(), FormatError>| {
        assert!(matches!(result, Err(FormatError::Corrupt(Corruption::WrongKey { .. }))), "{result:?}");
    };
    let other = StorageKey([1; 16]);
    wrong(decode_header(other, &encode_header(&header(), NUMBER)).map(drop));
    wrong(decode_summary(other, &encode_summary(KEY, &summary(), NUMBER)).map(drop));
    let tombstone = Tombstone { kept: 1, pending: true };
    wrong(decode_tombstone(other, &encode_tombstone(KEY, tombstone, NUMBER)).map(drop));
    let id = SessionId::new("a").unwrap();
    wrong(decode_id(&SessionId::new("b").unwrap(), &encode_id(&id, KEY, NUMBER)).map(drop));
    let value = encode_edge(KEY, 6, other, NUMBER);
    wrong(check_edge(&EdgeKey { parent: KEY, prefix_len: 7, child: other }, &value));
    wrong(check_edge(&EdgeKey { parent: KEY, prefix_len: 6, child: KEY }, &value));
    let value = encode_order(Timestamp::MAX, KEY, NUMBER);
    wrong(check_order(&OrderKey { updated: Timestamp::MIN, key: KEY }, &value));

    let summary = encode_summary(KEY, &summary(), NUMBER);
    assert_eq!(decode_header(KEY, &summary), Err(FormatError::Corrupt(Corruption::NotRecognised)));
    assert_eq!(open_block(KEY, 0, &summary).err(), Some(FormatError::Corrupt(Corruption::NotRecognised)));
    assert_eq!(decode_summary(KEY, b"").err(), Some(FormatError::Corrupt(Corruption::NotRecognised)));
}

/// Goal: what a record holds is checked too: ids, times, sorted names.
#[test]
fn contents_of_headers_are_checked() {
    let value = encode_header(&header(), NUMBER);
    let at = |text: &[u8]| value.windows(text.len()).position(|bytes| bytes == text).unwrap();
    let bad_id = forged(&value, at(b"release"), b"\n");
    let not_utf8 = forged(&value, at(b"release"), b"\xff");
    // The names are "" and "model": the second one made longer than the value ends the record too early.
    let bad_names = forged(&value, at(b"model") - 1, &[200]);
    for value in [bad_id, not_utf8, bad_names] {
        assert_eq!(decode_header(KEY, &value), Err(FormatError::undecodable("a session's header")));
    }
    let two = SessionHeader {
        meta: BTreeMap::from([("a".into(), "1".into()), ("b".into(), "2".into())]),
        ..header()
    };
    let value = encode_header(&two, NUMBER);
    let name = value.len() - 4; // of the second field: length, name, length, value
    assert_eq!(value[name..], [1, b'b', 1, b'2']);
    for name_again in [b"a", b"A"] {
        let unsorted = forged(&value, name + 1, name_again);
        assert_eq!(decode_header(KEY, &unsorted), Err(FormatError::undecodable("a session's header")));
    }
}

/// Goal: write numbers grow, within an open and from one to the next.
#[test]
fn write_numbers_grow() {
    let mut first = WriteNumbers::new(1);
    let (a, b) = (first.next(), first.next());
    assert!(a < b && b < WriteNumbers::new(2).next());
}
