//! Events of all kinds, and packers that keep what they write.

use std::collections::BTreeMap;
use std::convert::Infallible;

use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;

use crate::event::{Content, Event, EventKind, JsonString, JsonText, write_line};
use crate::format::*;
use crate::id::{Seq, StorageKey, Timestamp};

pub(super) const KEY: StorageKey = StorageKey([0x5e; 16]);

pub(super) fn string(text: &str) -> JsonString {
    JsonString::from_checked(text)
}

pub(super) fn json(text: &str) -> JsonText {
    JsonText::from_checked(text)
}

pub(super) fn event(seq: u64, millis: i64, kind: EventKind) -> Event {
    Event {
        seq: Seq::new(seq),
        timestamp: Timestamp::from_millis(millis).unwrap(),
        kind,
        extra: Vec::new(),
        surface_op: None,
        source_event_seqs: None,
    }
}

pub(super) fn chunk(seq: u64, millis: i64, delta: &str) -> Event {
    event(seq, millis, EventKind::AssistantChunk { delta: string(delta) })
}

pub(super) fn message(seq: u64, millis: i64, text: &str) -> Event {
    let content = Content::from_checked(json(&format!("\"{text}\"")));
    event(seq, millis, EventKind::UserMessage { content })
}

fn any_string() -> impl Strategy<Value = JsonString> {
    prop_oneof![8 => "[a-zé雪🦀 ]{0,12}", 1 => "[a-z]{250,260}", 1 => Just(r#"\u00e9\n\"\\"#.to_owned())]
        .prop_map(|text| string(&text))
}

fn any_json() -> impl Strategy<Value = JsonText> {
    let fixed =
        ["null", "true", "1e400", "-0", "9007199254740993", r#""""#, "[]", "{}", r#"{"b":1,"a":[null]}"#];
    prop_oneof![
        proptest::sample::select(fixed.to_vec()).prop_map(json),
        any_string().prop_map(|text| json(&format!("\"{}\"", text.spelling()))),
    ]
}

fn any_content() -> impl Strategy<Value = Content> {
    any_json().prop_map(Content::from_checked)
}

fn any_kind() -> impl Strategy<Value = EventKind> {
    let s = any_string;
    let o = || option::of(any_json());
    prop_oneof![
        12 => s().prop_map(|delta| EventKind::AssistantChunk { delta }),
        1 => s().prop_map(|turn_id| EventKind::TurnStart { turn_id }),
        1 => (s(), o()).prop_map(|(turn_id, reason)| EventKind::TurnEnd { turn_id, reason }),
        1 => (s(), s()).prop_map(|(step_id, turn_id)| EventKind::StepStart { step_id, turn_id }),
        1 => (s(), o()).prop_map(|(step_id, turn_id)| EventKind::StepEnd { step_id, turn_id }),
        1 => any_content().prop_map(|content| EventKind::UserMessage { content }),
        1 => (any_content(), o()).prop_map(|(content, usage)| EventKind::AssistantMessage { content, usage }),
        1 => (s(), s(), any_json()).prop_map(|(id, name, args)| EventKind::ToolCall { id, name, args }),
        1 => (s(), o(), o()).prop_map(|(id, result, error)| EventKind::ToolResult { id, result, error }),
        1 => s().prop_map(|event_type| EventKind::Custom { event_type }),
    ]
}

fn any_millis() -> impl Strategy<Value = i64> {
    prop_oneof![
        4 => 1_786_073_817_152i64..1_786_073_917_152,
        1 => Timestamp::MIN.as_millis()..=Timestamp::MAX.as_millis(),
        1 => proptest::sample::select(vec![Timestamp::MIN.as_millis(), -1, 0, Timestamp::MAX.as_millis()]),
    ]
}

prop_compose! {
    fn any_event()(
        millis in any_millis(),
        kind in any_kind(),
        extra in prop_oneof![6 => Just(Vec::new()), 1 => vec((any_string(), any_json()), 0..4)],
        surface_op in prop_oneof![6 => Just(None), 1 => any_json().prop_map(Some)],
        source_event_seqs in prop_oneof![6 => Just(None), 1 => any_json().prop_map(Some)],
    ) -> Event {
        Event { extra, surface_op, source_event_seqs, ..event(0, millis, kind) }
    }
}

/// Events of all kinds, most of them chunks, with seqs from some first one.
pub(super) fn any_events(count: std::ops::Range<usize>) -> impl Strategy<Value = Vec<Event>> {
    let first = prop_oneof![Just(0), 0..1000u64, Just(crate::format::MAX_NUMBER - 2000)];
    (vec(any_event(), count), first).prop_map(|(mut events, first)| {
        for (seq, event) in (first..).zip(&mut events) {
            event.seq = Seq::new(seq);
        }
        events
    })
}

/// Plain random numbers: xorshift.
pub(super) struct Random(pub(super) u64);

impl Random {
    pub(super) fn below(&mut self, bound: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 8) % bound
    }

    /// Words as an agent's model says them: one in ten is a number that no compressor foretells.
    pub(super) fn text(&mut self, len: usize) -> String {
        const WORDS: &str = "store event block frame journal drain reader writer append commit sync hash prefix parent \
             child title label prune check build error path line count limit value field name order scan salvage";
        let words: Vec<_> = WORDS.split_whitespace().collect();
        let mut text = String::new();
        while text.len() < len {
            if !text.is_empty() {
                text.push(' ');
            }
            match self.below(10) {
                0 => text.push_str(&self.below(1_000_000).to_string()),
                _ => text.push_str(words[self.below(words.len() as u64) as usize]),
            }
        }
        text
    }

    /// Text that does not compress.
    pub(super) fn noise(&mut self, len: usize) -> String {
        (0..len)
            .map(|_| {
                char::from(
                    b"0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ+/"
                        [self.below(64) as usize],
                )
            })
            .collect()
    }
}

/// The events of a session as agents write them: turns of some 50 chunks, messages, and a call with its result.
pub(super) fn trace(count: usize, seed: u64) -> Vec<Event> {
    let mut random = Random(seed);
    let mut events: Vec<Event> = Vec::with_capacity(count + 100);
    let mut millis = 1_786_073_817_152;
    let mut turn = 0;
    while events.len() < count {
        turn += 1;
        let (turn_id, step_id, id) = (format!("turn-{turn}"), format!("step-{turn}"), format!("call-{turn}"));
        let quoted = |text: String| json(&format!("\"{text}\""));
        let content = |text| Content::from_checked(quoted(text));
        let mut kinds = vec![
            EventKind::TurnStart { turn_id: string(&turn_id) },
            EventKind::StepStart { step_id: string(&step_id), turn_id: string(&turn_id) },
            EventKind::UserMessage { content: content(random.text(300)) },
        ];
        for _ in 0..35 + random.below(30) {
            kinds.push(EventKind::AssistantChunk { delta: string(&format!("{} ", random.text(10))) });
        }
        let args = json(&format!(r#"{{"command":"{}","timeout":{}}}"#, random.text(80), random.below(1000)));
        kinds.extend([
            EventKind::AssistantMessage { content: content(random.text(600)), usage: None },
            EventKind::ToolCall { id: string(&id), name: string("bash"), args },
            EventKind::ToolResult { id: string(&id), result: Some(quoted(random.text(1500))), error: None },
            EventKind::StepEnd { step_id: string(&step_id), turn_id: Some(quoted(turn_id.clone())) },
            EventKind::TurnEnd { turn_id: string(&turn_id), reason: Some(json(r#""completed""#)) },
        ]);
        for kind in kinds {
            millis += 1 + random.below(59) as i64;
            events.push(event(events.len() as u64, millis, kind));
        }
    }
    events.truncate(count);
    events
}

pub(super) fn encode(events: &[Event]) -> Run {
    let mut encoder = RunEncoder::new(events[0].seq.get());
    events.iter().for_each(|event| encoder.push(&event.parts()));
    encoder.finish()
}

/// The running hash after one more event.
pub(super) fn next_hash(hash: Hash, event: &Event) -> Hash {
    let mut line = Vec::new();
    write_line(event.seq, &event.parts(), &mut line);
    hash.next(&line)
}

/// A block, or a head with its parts.
pub(super) type Stored<'a> = (BlockView<'a>, Vec<(u32, &'a [u8])>);

/// Packs events and keeps the values.
pub(super) struct Values {
    pub(super) context: PackContext,
    pub(super) map: BTreeMap<Vec<u8>, Vec<u8>>,
}

impl Values {
    pub(super) fn new() -> Self {
        Self { context: PackContext::new(WriteNumbers::new(1)), map: BTreeMap::new() }
    }

    /// Packs a whole session.
    pub(super) fn of(events: &[Event]) -> Self {
        let mut values = Self::new();
        let packer = Packer::new(KEY, events[0].seq.get());
        values.pack(packer, events, Hash::START);
        values
    }

    /// Packs the events with a packer that stands before them; gives the hash after them.
    pub(super) fn pack(&mut self, mut packer: Packer, events: &[Event], mut hash: Hash) -> Hash {
        let Self { context, map } = self;
        let mut sink = |key: Vec<u8>, value: Vec<u8>| {
            map.insert(key, value);
            Ok::<_, Infallible>(())
        };
        for event in events {
            assert_eq!(packer.end(), event.seq.get());
            hash = next_hash(hash, event);
            packer.push(&event.parts(), hash, context, &mut sink).unwrap();
        }
        packer.finish(context, &mut sink).unwrap();
        hash
    }

    /// Blocks and heads, in order.
    pub(super) fn blocks(&self) -> Vec<Stored<'_>> {
        let mut blocks: Vec<Stored<'_>> = Vec::new();
        for (key, value) in &self.map {
            let key = parse_event_key(key).unwrap();
            match key.part {
                None => blocks.push((open_block(key.key, key.seq, value).unwrap(), Vec::new())),
                Some(part) => blocks.last_mut().unwrap().1.push((part, value)),
            }
        }
        blocks
    }

    /// Reads all back.
    pub(super) fn decode(&self, which: Sections) -> Vec<Event> {
        let (mut scratch, mut out) = (Scratch::default(), Vec::new());
        for (block, parts) in self.blocks() {
            match block.is_large() {
                None => block.decode(&mut scratch, 0, u32::MAX, which, &mut out).unwrap(),
                Some(_) => {
                    let mut reader = LargeReader::new(&block);
                    parts.iter().for_each(|(part, value)| reader.push(*part, value).unwrap());
                    reader.finish(&mut scratch, which, &mut out).unwrap();
                }
            }
        }
        out
    }
}

/// Gives a value the checksum of its bytes: what a wrong program would write.
pub(super) fn forge(mut value: Vec<u8>) -> Vec<u8> {
    let mut hasher = crc32fast::Hasher::new();
    hasher.update(&value[..48]);
    hasher.update(&value[52..]);
    value[48..52].copy_from_slice(&hasher.finalize().to_be_bytes());
    value
}

/// The value with other bytes at some place, and a checksum that fits.
pub(super) fn forged(value: &[u8], at: usize, bytes: &[u8]) -> Vec<u8> {
    let mut value = value.to_vec();
    value[at..at + bytes.len()].copy_from_slice(bytes);
    forge(value)
}

/// Goal, for any value: each byte flipped and each truncation is an error, a newer version is told apart from
/// damage, and no bytes with a right checksum make a panic.
pub(super) fn damage<T>(value: &[u8], read: impl Fn(&[u8]) -> Result<T, FormatError>) {
    assert!(read(value).is_ok());
    for at in 0..value.len() {
        for bits in [1, 0x80, 0xff] {
            let mut damaged = value.to_vec();
            damaged[at] ^= bits;
            assert!(matches!(read(&damaged), Err(FormatError::Corrupt(_))), "byte {at} ^ {bits}");
            let _ = read(&forge(damaged));
        }
        assert!(matches!(read(&value[..at]), Err(FormatError::Corrupt(_))), "cut at {at}");
    }
    assert!(matches!(read(&[value, &[0]].concat()), Err(FormatError::Corrupt(_))), "a byte behind the end");
    for found in [2, 255] {
        let newer = forged(value, 5, &[found]);
        assert_eq!(read(&newer).err(), Some(FormatError::Unsupported { found: u32::from(found) }));
    }
    assert!(matches!(read(&forged(value, 5, &[0])), Err(FormatError::Corrupt(_))), "version 0");
    assert!(matches!(read(&forged(value, 7, &[1])), Err(FormatError::Corrupt(_))), "the spare byte");
    assert!(matches!(read(&forged(value, 8, &[0xee; 16])), Err(FormatError::Corrupt(_))), "another key");
}
