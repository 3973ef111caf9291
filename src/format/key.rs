//! Keys of the engine's maps. All integers in them are big endian, so their order is that of the numbers.

use super::MAX_NUMBER;
use crate::id::{SessionId, StorageKey, Timestamp};

const HEADER: u8 = b'h';
const ID: u8 = b'i';
const SUMMARY: u8 = b's';
const EDGE: u8 = b'f';
const ORDER: u8 = b'o';
const TOMBSTONE: u8 = b't';
const LABELS: u8 = b'l';
const HIDDEN: u8 = b'm';

/// The record of how far the journal is drained, in `sessions`.
pub(crate) const DRAINED_KEY: &[u8] = b"D";
/// The record of how often the store was opened, in `sessions`.
pub(crate) const OPENED_KEY: &[u8] = b"O";

/// Prefixes of the name spaces in `sessions`, for range scans.
pub(crate) const HEADER_PREFIX: &[u8] = &[HEADER];
pub(crate) const ID_PREFIX: &[u8] = &[ID];
pub(crate) const SUMMARY_PREFIX: &[u8] = &[SUMMARY];
pub(crate) const EDGE_PREFIX: &[u8] = &[EDGE];
pub(crate) const ORDER_PREFIX: &[u8] = &[ORDER];
pub(crate) const TOMBSTONE_PREFIX: &[u8] = &[TOMBSTONE];
pub(crate) const LABELS_PREFIX: &[u8] = &[LABELS];
pub(crate) const HIDDEN_PREFIX: &[u8] = &[HIDDEN];

/// The tags before the storage key in `care`: end marks, quarantine.
pub(crate) const CARE_TAGS: [u8; 2] = *b"eq";

/// A key of `events`, taken apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct EventKey {
    pub(crate) key: StorageKey,
    /// The seq of the first event of the value.
    pub(crate) seq: u64,
    /// The number of the part of a large event, from 1; `None` for blocks and heads.
    pub(crate) part: Option<u32>,
}

/// A key of a fork edge, taken apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct EdgeKey {
    pub(crate) parent: StorageKey,
    pub(crate) prefix_len: u64,
    pub(crate) child: StorageKey,
}

/// A key of the order by last update, taken apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct OrderKey {
    pub(crate) updated: Timestamp,
    pub(crate) key: StorageKey,
}

/// The key of the block, or the head of a large event, that starts at `seq`.
pub(crate) fn block_key(key: StorageKey, seq: u64) -> [u8; 24] {
    concat([&key.0, &seq.to_be_bytes()])
}

/// The key of part `part` (from 1) of the large event `seq`.
pub(crate) fn part_key(key: StorageKey, seq: u64, part: u32) -> [u8; 28] {
    concat([&key.0, &seq.to_be_bytes(), &part.to_be_bytes()])
}

/// Takes a key of `events` apart; `None` for one that is none.
pub(crate) fn parse_event_key(bytes: &[u8]) -> Option<EventKey> {
    let (key, rest) = bytes.split_first_chunk()?;
    let (seq, rest) = rest.split_first_chunk()?;
    let part = match rest {
        [] => None,
        _ => Some(u32::from_be_bytes(rest.try_into().ok()?)).filter(|part| *part > 0),
    };
    if part.is_none() && !rest.is_empty() {
        return None;
    }
    Some(EventKey { key: StorageKey(*key), seq: believable(*seq)?, part })
}

/// The key of a value of a session's checkpoint, in `derived`.
pub(crate) fn checkpoint_key(key: StorageKey, part: u32) -> [u8; 20] {
    concat([&key.0, &part.to_be_bytes()])
}

pub(crate) fn header_key(key: StorageKey) -> [u8; 17] {
    concat([&[HEADER], &key.0])
}

pub(crate) fn summary_key(key: StorageKey) -> [u8; 17] {
    concat([&[SUMMARY], &key.0])
}

pub(crate) fn tombstone_key(key: StorageKey) -> [u8; 17] {
    concat([&[TOMBSTONE], &key.0])
}

/// The key of a session's title and labels.
pub(crate) fn labels_key(key: StorageKey) -> [u8; 17] {
    concat([&[LABELS], &key.0])
}

/// The key of the header of a session that is not published yet.
pub(crate) fn hidden_key(key: StorageKey) -> [u8; 17] {
    concat([&[HIDDEN], &key.0])
}

/// The first key behind all those that begin with `prefix`.
pub(crate) fn behind(prefix: &[u8]) -> Vec<u8> {
    match prefix.iter().rposition(|byte| *byte < u8::MAX) {
        Some(last) => {
            let mut key = prefix.get(..=last).unwrap_or_default().to_vec();
            key.iter_mut().skip(last).for_each(|byte| *byte += 1);
            key
        }
        // Behind the longest keys that there are.
        None => [prefix, &[u8::MAX; 32]].concat(),
    }
}

/// Takes a key made of a tag and a storage key apart: header, labels, summary, tombstone.
pub(crate) fn parse_tagged_key(prefix: &[u8], bytes: &[u8]) -> Option<StorageKey> {
    Some(StorageKey(bytes.strip_prefix(prefix)?.try_into().ok()?))
}

pub(crate) fn id_key(id: &SessionId) -> Vec<u8> {
    [ID_PREFIX, id.as_str().as_bytes()].concat()
}

pub(crate) fn parse_id_key(bytes: &[u8]) -> Option<SessionId> {
    let text = std::str::from_utf8(bytes.strip_prefix(ID_PREFIX)?).ok()?;
    SessionId::new(text).ok()
}

/// The key of the edge from `parent` to a fork that shares `prefix_len` events: a parent's longest living prefix is
/// that of its last edge.
pub(crate) fn edge_key(parent: StorageKey, prefix_len: u64, child: StorageKey) -> [u8; 41] {
    concat([&[EDGE], &parent.0, &prefix_len.to_be_bytes(), &child.0])
}

pub(crate) fn parse_edge_key(bytes: &[u8]) -> Option<EdgeKey> {
    let (parent, rest) = bytes.strip_prefix(EDGE_PREFIX)?.split_first_chunk()?;
    let (prefix_len, rest) = rest.split_first_chunk()?;
    let child = rest.try_into().ok()?;
    Some(EdgeKey {
        parent: StorageKey(*parent),
        prefix_len: believable(*prefix_len)?,
        child: StorageKey(child),
    })
}

/// A seq or a length that is no damage: there is room above it to count on.
fn believable(bytes: [u8; 8]) -> Option<u64> {
    Some(u64::from_be_bytes(bytes)).filter(|number| *number <= MAX_NUMBER)
}

/// The key of a session in the order by last update, oldest first.
pub(crate) fn order_key(updated: Timestamp, key: StorageKey) -> [u8; 25] {
    concat([&[ORDER], &time_bytes(updated), &key.0])
}

pub(crate) fn parse_order_key(bytes: &[u8]) -> Option<OrderKey> {
    let (time, rest) = bytes.strip_prefix(ORDER_PREFIX)?.split_first_chunk()?;
    Some(OrderKey { updated: parse_time_bytes(*time)?, key: StorageKey(rest.try_into().ok()?) })
}

/// A timestamp in eight bytes whose order is that of time: with the sign bit as it is, 1969 would follow 1970.
pub(super) fn time_bytes(time: Timestamp) -> [u8; 8] {
    (time.as_millis() ^ i64::MIN).to_be_bytes()
}

pub(super) fn parse_time_bytes(bytes: [u8; 8]) -> Option<Timestamp> {
    Timestamp::from_millis(i64::from_be_bytes(bytes) ^ i64::MIN)
}

/// Joins pieces whose lengths add up to `N`.
fn concat<const N: usize, const PIECES: usize>(pieces: [&[u8]; PIECES]) -> [u8; N] {
    let mut out = [0; N];
    let mut at = 0;
    for piece in pieces {
        if let Some(place) = out.get_mut(at..at + piece.len()) {
            place.copy_from_slice(piece);
        }
        at += piece.len();
    }
    debug_assert_eq!(at, N, "pieces and key differ in length");
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    const KEY: StorageKey = StorageKey([0x5a; 16]);

    /// Goal (h34): the order of keys is the order of seqs where a byte carries into the next.
    #[test]
    fn h34_event_keys_keep_order_across_byte_borders() {
        for border in [1u64 << 8, 1 << 16, 1 << 32, 1 << 62] {
            let seqs = [0, 1, border - 2, border - 1, border, border + 1, MAX_NUMBER];
            for pair in seqs.windows(2) {
                assert!(block_key(KEY, pair[0]) < block_key(KEY, pair[1]), "{pair:?}");
                assert!(part_key(KEY, pair[0], u32::MAX).as_slice() < block_key(KEY, pair[1]).as_slice());
            }
            for seq in seqs {
                let parsed = parse_event_key(&block_key(KEY, seq));
                assert_eq!(parsed, Some(EventKey { key: KEY, seq, part: None }));
                for part in [1, 255, 256, 1 << 16, u32::MAX] {
                    let parsed = parse_event_key(&part_key(KEY, seq, part));
                    assert_eq!(parsed, Some(EventKey { key: KEY, seq, part: Some(part) }));
                    assert!(block_key(KEY, seq).as_slice() < part_key(KEY, seq, part).as_slice());
                }
            }
            let (low, high) = (edge_key(KEY, border - 1, KEY), edge_key(KEY, border, StorageKey([0; 16])));
            assert!(low < high);
        }
    }

    /// Goal: sessions never interleave, whatever their seqs.
    #[test]
    fn event_keys_of_sessions_do_not_interleave() {
        let (low, high) = (StorageKey([1; 16]), StorageKey([2; 16]));
        assert!(part_key(low, u64::MAX, u32::MAX).as_slice() < block_key(high, 0).as_slice());
    }

    /// Goal: keys that are none are told apart.
    #[test]
    fn strange_keys_do_not_parse() {
        let key = part_key(KEY, 7, 1);
        for len in (0..28).filter(|len| *len != 24) {
            assert_eq!(parse_event_key(&key[..len]), None, "{len}");
        }
        assert_eq!(parse_event_key(&[&key[..], &[0]].concat()), None);
        assert_eq!(
            parse_event_key(&part_key(KEY, 7, 0)),
            None,
            "part 0 is the head, which has a key of its own"
        );
        assert_eq!(parse_event_key(&block_key(KEY, MAX_NUMBER + 1)), None, "no session gets there");
        assert_eq!(parse_edge_key(&edge_key(KEY, MAX_NUMBER + 1, KEY)), None);
        assert_eq!(parse_order_key(b"o"), None);
        assert_eq!(parse_edge_key(&order_key(Timestamp::MAX, KEY)), None);
        assert_eq!(parse_id_key(b"i"), None);
        assert_eq!(parse_id_key(b"i\xff"), None);
        assert_eq!(parse_tagged_key(HEADER_PREFIX, &summary_key(KEY)), None);
    }

    /// Goal: the order by last update is that of time, before 1970 too.
    #[test]
    fn order_keys_sort_by_time() {
        let times = [Timestamp::MIN.as_millis(), -1_000_000, -256, -255, -1, 0, 1, 255, 256, 1 << 40];
        let times: Vec<_> = times.iter().filter_map(|time| Timestamp::from_millis(*time)).collect();
        for pair in times.windows(2) {
            assert!(order_key(pair[0], StorageKey([0xff; 16])) < order_key(pair[1], StorageKey([0; 16])));
        }
        for updated in times {
            let parsed = parse_order_key(&order_key(updated, KEY));
            assert_eq!(parsed, Some(OrderKey { updated, key: KEY }));
        }
    }

    /// Goal: every other key comes apart as it was put together.
    #[test]
    fn keys_round_trip() {
        let child = StorageKey([7; 16]);
        let edge = edge_key(KEY, 6, child);
        assert_eq!(parse_edge_key(&edge), Some(EdgeKey { parent: KEY, prefix_len: 6, child }));
        let id = SessionId::new("../ünïcode").unwrap();
        assert_eq!(parse_id_key(&id_key(&id)), Some(id));
        assert_eq!(parse_tagged_key(HEADER_PREFIX, &header_key(KEY)), Some(KEY));
        assert_eq!(parse_tagged_key(LABELS_PREFIX, &labels_key(KEY)), Some(KEY));
        assert_eq!(parse_tagged_key(HIDDEN_PREFIX, &hidden_key(KEY)), Some(KEY));
        assert_eq!(parse_tagged_key(TOMBSTONE_PREFIX, &tombstone_key(KEY)), Some(KEY));
    }

    /// Goal: behind a prefix stands nothing that begins with it, and everything that is greater.
    #[test]
    fn the_key_behind_a_prefix() {
        assert_eq!(behind(b"t"), b"u");
        assert_eq!(behind(&[1, 0xff, 0xff]), [2]);
        assert_eq!(behind(&[1, 0xff, 3, 0xff]), [1, 0xff, 4]);
        for key in [KEY, StorageKey([0xff; 16])] {
            let behind = behind(&key.0);
            assert!(behind.as_slice() > part_key(key, u64::MAX, u32::MAX - 1).as_slice());
        }
    }
}
