//! The sound stores that targets begin with, made once a process: always in the format of today.

use std::sync::LazyLock;
use std::time::{Duration, Instant};

use sessionlog::{
    Append, JsonText, NewEvent, NewSession, Seq, Session, SessionId, Store, StoreOptions, Timestamp,
};

use crate::frames;
use crate::image::{Image, Seams};
use crate::reads::{Truth, truth_of};
use crate::values::unpacked;

/// A sound store and what it holds.
#[derive(Debug)]
pub struct Base {
    pub image: Image,
    pub truth: Truth,
    /// How long each session is in blocks: that much damage to the journal cannot take away.
    pub drained: Truth,
}

/// The size of a new segment: what has it can be used again.
pub const SEGMENT_BYTES: usize = 256 << 10;

/// Longer than any run: nothing happens in the background.
const NEVER: Duration = Duration::from_secs(1_000_000);

/// A store in which only calls start syncs and drains.
pub fn quiet() -> StoreOptions {
    StoreOptions::new().sync_window(NEVER).drain_age(NEVER)
}

pub fn id(text: &str) -> SessionId {
    text.parse().expect("a plain word")
}

/// Stores that were killed, with commits in their journals.
pub static KILLED: LazyLock<[Base; 3]> =
    LazyLock::new(|| [recycled(), sealed(), two_segments()].map(checked));

/// Stores that were closed, all they hold in blocks: as they are written, and with sections that are not compressed.
pub static CLOSED: LazyLock<[Base; 2]> = LazyLock::new(|| {
    let packed = closed();
    let mut image = packed.image.clone();
    for value in image.events.values_mut() {
        if let Some(plain) = unpacked(value) {
            *value = plain;
        }
    }
    let plain = Base { image, truth: packed.truth.clone(), drained: packed.drained.clone() };
    [packed, plain].map(checked)
});

/// A base is what it says, before anything is done to it.
fn checked(base: Base) -> Base {
    let store = base.image.clone().with_whole_segments().seams().open(quiet()).expect("it is sound");
    assert_eq!(truth_of(&store), base.truth);
    base
}

/// Text that hardly compresses.
fn noise(seed: u64, len: usize) -> String {
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    let letters = std::iter::repeat_with(|| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        b'0' + u8::try_from(state >> 58).unwrap_or_default()
    });
    letters.take(len).map(|letter| if letter == b'\\' { '~' } else { char::from(letter) }).collect()
}

/// The `n`-th of events of all sorts.
fn event(n: u64) -> NewEvent {
    let text = format!("text {n}");
    let event = match n % 12 {
        0 => NewEvent::turn_start(format!("t{n}")),
        1 => NewEvent::user_message(format!("{text}: \"{}\"", noise(n, 40))),
        2 => NewEvent::step_start(format!("s{n}"), "t"),
        3 | 4 | 8 => NewEvent::assistant_chunk(text),
        5 => NewEvent::assistant_message(text)
            .usage(JsonText::parse(r#"{"total_tokens":1e400}"#).expect("JSON")),
        6 => NewEvent::tool_call(
            format!("c{n}"),
            "calc",
            JsonText::parse(r#"{"a":[1,{"b":-0}]}"#).expect("JSON"),
        ),
        7 => NewEvent::tool_result(format!("c{n}"), noise(n, 100)).field("took", text),
        9 => NewEvent::custom("x/note").field("n", text).field("é\n", JsonText::parse("null").expect("JSON")),
        10 => NewEvent::step_end("s").turn("t"),
        _ => NewEvent::turn_end("t").reason("completed"),
    };
    let millis = 1_700_000_000_000 + i64::try_from(n * 37 % 5_000).expect("small");
    event.timestamp(Timestamp::from_millis(millis).expect("in range"))
}

/// A message of `len` letters.
fn large(seed: u64, len: usize) -> NewEvent {
    NewEvent::user_message(noise(seed, len)).timestamp(Timestamp::from_millis(5).expect("in range"))
}

fn append(session: &Session, events: impl IntoIterator<Item = NewEvent>, how: Append) {
    session.append_with(how, events).expect("memory has no faults");
}

fn create(store: &Store, name: &str) -> Session {
    store.create(NewSession::with_id(id(name)).meta("model", "small")).expect("a new id")
}

fn fork(store: &Store, parent: &str, at: u64, name: &str) -> Session {
    store.fork(&id(parent), Seq::new(at), NewSession::with_id(id(name))).expect("within the parent")
}

/// What a kill leaves of a store.
fn killed(seams: &Seams, store: &Store, drained: Truth) -> Base {
    let mut base = Base { image: seams.image(), truth: truth_of(store), drained };
    store.close().expect("memory has no faults");
    base.image.files.values_mut().for_each(cut);
    base
}

/// Cuts the zeros at the end of a segment, which only cost time.
fn cut(segment: &mut Vec<u8>) {
    let used = segment.iter().rposition(|byte| *byte != 0).map_or(0, |last| last + 1);
    segment.truncate(used.next_multiple_of(8) + 64);
}

/// A drained part, a segment that was recycled, and commits of every sort behind.
fn recycled() -> Base {
    let seams = Seams::default();
    let store = seams.open(quiet()).expect("an empty store");
    let first = create(&store, "first");
    append(&first, (0..40).map(event), Append::new().sync());
    let child = fork(&store, "first", 20, "child");
    for n in 0..5 {
        append(&child, [event(n)], Append::new().sync());
    }
    store.drain().expect("memory has no faults");
    let drained = truth_of(&store);
    // The first segment is free only behind the one that follows it.
    append(&first, [large(1, 1_000)], Append::new().sync());
    append(&child, (0..3).map(event), Append::new().buffered());
    create(&store, "second");
    let grandchild = fork(&store, "child", 24, "grandchild");
    append(&grandchild, (7..9).map(event), Append::new().sync());
    append(&first, (100..110).map(event), Append::new().sync());
    killed(&seams, &store, drained)
}

/// A seal behind the last commit covers it.
fn sealed() -> Base {
    let seams = Seams::default();
    let store = seams.open(quiet().sync_window(Duration::from_millis(1))).expect("an empty store");
    let session = create(&store, "sealed");
    append(&session, (0..4).map(event), Append::new().sync());
    append(&session, [event(4)], Append::new().sync());
    let deadline = Instant::now() + Duration::from_secs(5);
    let mut before = seams.image();
    // A seal is written once, when nothing follows: wait until the journal rests.
    loop {
        std::thread::sleep(Duration::from_millis(50));
        let now = seams.image();
        if now == before || Instant::now() > deadline {
            break;
        }
        before = now;
    }
    killed(&seams, &store, Truth::new())
}

/// The last commits stand in a segment of their own.
fn two_segments() -> Base {
    let mut base = recycled();
    let (name, mut first) = base.image.files.pop_last().expect("a journal has a segment");
    let starts = frames::starts(&first);
    let border = starts[starts.len() - 3];
    let second = first.split_off(border);
    cut(&mut first);
    base.image.files.insert(format!("{name}0"), second);
    base.image.files.insert(name, first);
    base
}

/// Blocks, large events and forks of forks.
fn closed() -> Base {
    let seams = Seams::default();
    let store = seams.open(quiet()).expect("an empty store");
    let small = create(&store, "small");
    append(&small, (0..15).map(event), Append::new().sync());
    let long = create(&store, "long");
    append(&long, (0..30).map(event), Append::new().sync());
    let chunks = (0..30).map(|n| NewEvent::assistant_chunk(noise(n, 300)));
    append(&long, chunks, Append::new().sync());
    let parts = create(&store, "parts");
    append(&parts, [event(1), large(1, 13_000), large(2, 7_000), event(2)], Append::new().sync());
    append(&parts, [NewEvent::assistant_chunk(noise(3, 7_000)), event(5)], Append::new().sync());
    let child = fork(&store, "long", 45, "child");
    append(&child, (0..5).map(event), Append::new().sync());
    let grandchild = fork(&store, "child", 48, "grandchild");
    append(&grandchild, [event(9)], Append::new().sync());
    fork(&store, "parts", 2, "cut");
    fork(&store, "child", 20, "within");
    create(&store, "empty");
    store.drain().expect("memory has no faults");
    // A last block that is continued.
    append(&small, (20..22).map(event), Append::new().sync());
    let truth = truth_of(&store);
    store.close().expect("memory has no faults");
    let mut image = seams.image();
    image.files.clear();
    Base { image, truth: truth.clone(), drained: truth }
}
