use proptest::prelude::*;

use super::records::header;
use super::support::*;
use crate::format::*;
use crate::id::StorageKey;

const STORE: [u8; 16] = [0x77; 16];

fn new_header() -> NewHeader {
    let SessionHeader { id, key, created, parent, meta, .. } = header();
    NewHeader { id, key, created, parent, meta }
}

/// A frame of every action.
pub(super) fn frame(runs: &[Run]) -> Vec<u8> {
    frame_of(&actions(runs))
}

pub(super) fn frame_of(actions: &[Action<'_>]) -> Vec<u8> {
    let mut builder = FrameBuilder::new(Vec::new());
    builder.begin(STORE, 41, 40);
    for action in actions {
        builder.add(action);
    }
    builder.finish().to_vec()
}

fn actions(runs: &[Run]) -> Vec<Action<'_>> {
    let mut actions = vec![
        Action::Create(NewHeader { parent: None, ..new_header() }),
        Action::Fork(new_header()),
        Action::Seal,
    ];
    actions.extend(runs.iter().map(|run| Action::Run { key: KEY, run: run.view() }));
    actions
}

fn forge_frame(mut frame: Vec<u8>) -> Vec<u8> {
    let len = u32::from_be_bytes(frame[8..12].try_into().unwrap()) as usize;
    if let Some(rest) = frame.get(16..len) {
        let crc = crc32fast::hash(&[&frame[..12], rest].concat());
        frame[12..16].copy_from_slice(&crc.to_be_bytes());
    }
    frame
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// Goal: what happened comes back, and costs no more than foretold.
    #[test]
    fn any_frame_comes_back(batches in proptest::collection::vec(any_events(1..40), 0..5)) {
        let runs: Vec<_> = batches.iter().map(|events| encode(events)).collect();
        let frame = frame(&runs);
        let view = read_frame(&[&frame[..], &[0xff; 20]].concat(), STORE).map(|view| {
            assert_eq!((view.commit, view.durable, view.len), (41, 40, frame.len()));
            view.actions().collect::<Result<Vec<_>, _>>().unwrap() == actions(&runs)
        });
        prop_assert_eq!(view, Ok(true));
        prop_assert_eq!(frame.len() % FRAME_ALIGN, 0);
        let cost: usize = runs.iter().map(FrameBuilder::run_cost).sum();
        let creations = 2 * FrameBuilder::creation_cost(&new_header());
        prop_assert!(frame.len() <= FRAME_HEADER_LEN + cost + creations + 1 + FRAME_ALIGN);
    }

    /// Goal: a frame with a right checksum and any content makes no panic.
    #[test]
    fn forged_frames_make_no_panic(events in any_events(1..10), at in 16..2000usize, bits in 1..=255u8) {
        let mut frame = frame(&[encode(&events)]);
        let at = 16 + at % (frame.len() - 16);
        frame[at] ^= bits;
        let frame = forge_frame(frame);
        if let Ok(view) = read_frame(&frame, STORE) {
            for action in view.actions() {
                if let Ok(Action::Run { run, .. }) = action {
                    let _ = run.decode(0, u32::MAX, Sections::All, &mut Vec::new());
                }
            }
        }
    }
}

/// Goal: every damaged byte and every truncation shows; in the padding it does no harm.
#[test]
fn damaged_frames_are_torn() {
    let run = encode(&trace(20, 21));
    let frame = frame(std::slice::from_ref(&run));
    let len = u32::from_be_bytes(frame[8..12].try_into().unwrap()) as usize;
    assert!(len < frame.len(), "this frame has padding");
    for at in 0..frame.len() {
        let mut damaged = frame.clone();
        damaged[at] ^= 0x10;
        match read_frame(&damaged, STORE) {
            Err(FrameFault::Absent) => assert!(at < 8),
            Err(FrameFault::Torn { commit, len }) => {
                assert!(commit == 41 || (40..48).contains(&at));
                assert!(len <= frame.len() || (8..12).contains(&at));
            }
            Ok(view) => assert!(at >= len && view.actions().all(|action| action.is_ok()), "byte {at}"),
            other => panic!("byte {at}: {other:?}"),
        }
        if at < len {
            assert!(read_frame(&frame[..at], STORE).is_err());
        }
    }
    assert_eq!(read_frame(&[0; 512], STORE).err(), Some(FrameFault::Absent), "zeros are no frame");
    assert_eq!(read_frame(&[], STORE).err(), Some(FrameFault::Absent));
}

/// Goal: frames of other stores and of newer formats are sound, and told apart.
#[test]
fn foreign_and_newer_frames_are_told_apart() {
    let frame = frame(&[]);
    assert_eq!(read_frame(&frame, [1; 16]).err(), Some(FrameFault::Foreign { store_id: STORE }));
    let mut newer = frame.clone();
    newer[16] = 2;
    assert!(matches!(read_frame(&newer, STORE), Err(FrameFault::Torn { .. })), "a flipped version is damage");
    assert_eq!(read_frame(&forge_frame(newer), STORE).err(), Some(FrameFault::Unsupported { found: 2 }));
}

/// Goal: actions are as many as the frame says, and known.
#[test]
fn actions_are_counted_and_known() {
    let mut builder = FrameBuilder::new(Vec::new());
    builder.begin(STORE, 1, 0);
    builder.add(&Action::Seal);
    let seal = builder.finish().to_vec();
    let read = |at: usize, byte: u8| {
        let mut frame = seal.clone();
        frame[at] = byte;
        let frame = forge_frame(frame);
        read_frame(&frame, STORE).unwrap().actions().map(|action| action.map(drop)).collect::<Vec<_>>()
    };
    assert_eq!(read(23, 1), [Ok(())]);
    assert_eq!(read(23, 0), [Err(FormatError::undecodable("the end of a frame"))]);
    assert_eq!(read(23, 2), [Ok(()), Err(FormatError::undecodable("an action of a frame"))]);
    assert_eq!(read(56, 9), [Err(FormatError::undecodable("an action of a frame"))]);
}

/// Goal: a deletion comes back, costs no more than foretold, and one that is cut off is none.
#[test]
fn deletions_come_back() {
    let delete = Action::Delete { key: StorageKey([9; 16]) };
    let frame = frame_of(&[delete.clone(), Action::Seal, delete.clone()]);
    fn read(frame: &[u8]) -> Vec<Result<Action<'_>, FormatError>> {
        read_frame(frame, STORE).unwrap().actions().collect()
    }
    assert_eq!(read(&frame), [Ok(delete.clone()), Ok(Action::Seal), Ok(delete.clone())]);
    assert!(frame.len() <= FRAME_HEADER_LEN + 2 * FrameBuilder::DELETION_COST + 1 + FRAME_ALIGN);
    let mut short = frame_of(&[delete]);
    short.truncate(FRAME_HEADER_LEN + 16);
    short[8..12].copy_from_slice(&(FRAME_HEADER_LEN as u32 + 16).to_be_bytes());
    let short = forge_frame(short);
    assert_eq!(read(&short), [Err(FormatError::undecodable("an action of a frame"))]);
}

/// Goal: one builder makes frame after frame, and each is its own.
#[test]
fn a_builder_is_used_again() {
    let mut builder = FrameBuilder::new(vec![1; 100]);
    for commit in 1..4 {
        builder.begin(STORE, commit, commit - 1);
        builder.add_run(StorageKey([commit as u8; 16]), &encode(&trace(commit as usize, commit)));
        let len = builder.len();
        let frame = builder.finish();
        assert_eq!(frame.len(), len);
        let view = read_frame(frame, STORE).unwrap();
        assert_eq!((view.commit, view.durable, view.action_count), (commit, commit - 1, 1));
    }
    assert!(!builder.into_buffer().is_empty());
}

/// Goal: frames are found where frames can start, and nowhere else.
#[test]
fn magic_is_found_at_multiples_of_eight() {
    let frame = frame(&[]);
    let mut bytes = vec![0; 64];
    bytes.extend_from_slice(&frame);
    bytes.extend_from_slice(&[0; 4]);
    bytes.extend_from_slice(&frame); // not where a frame can start
    bytes.extend_from_slice(&[0; 4]);
    let last = bytes.len();
    bytes.extend_from_slice(&frame);
    assert_eq!(find_magic(&bytes, 0), Some(64));
    assert_eq!(find_magic(&bytes, 64), Some(64));
    assert_eq!(find_magic(&bytes, 65), Some(last));
    assert_eq!(find_magic(&bytes, last + 1), None);
    assert_eq!(find_magic(&bytes, bytes.len() + 9), None);
    assert_eq!(find_magic(&bytes, usize::MAX), None);
}
