//! The journal at its seam: torn ends and damaged frames told apart, frames that outlive the process, the order of
//! the drain's steps. Knows nothing of the bytes of a frame but where they were written.

use std::time::Duration;

use sessionlog::storage::{Entry, Map};
use sessionlog::{Corruption, Error, NewSession, Seq, Session, Store};

use crate::support::events::{Said, chunk, difference, noise, read, user};
use crate::support::medium::{Crash, Medium, Step};
use crate::support::run::{id, quiet};

/// Where a frame stands.
#[derive(Clone, Debug)]
struct Frame {
    file: String,
    offset: usize,
    len: usize,
}

impl Frame {
    fn end(&self) -> usize {
        self.offset + self.len
    }
}

/// The frames written since the last call.
fn frames(medium: &Medium) -> Vec<Frame> {
    let frame = |step| match step {
        Step::Write(file, offset, len) => Some(Frame { file, offset: offset as usize, len }),
        _ => None,
    };
    medium.take_log().into_iter().filter_map(frame).collect()
}

fn new_store(medium: &Medium) -> (Store, Session) {
    let store = medium.open(quiet()).unwrap();
    let session = store.create(NewSession::with_id(id("a"))).unwrap();
    (store, session)
}

/// Appends each event by itself; the frames, one an event.
fn append_each(medium: &Medium, session: &Session, said: &[Said]) -> Vec<Frame> {
    medium.take_log();
    for event in said {
        session.append(event.to_new()).unwrap();
    }
    let frames = frames(medium);
    assert_eq!(frames.len(), said.len(), "one frame, one write: {frames:?}");
    frames
}

fn end(medium: &Medium, store: Store, session: Session, crash: Crash) {
    medium.stop();
    drop((store, session));
    medium.restart(crash);
}

fn lines(said: &[Said]) -> Vec<String> {
    crate::support::events::lines(said, 0)
}

fn stored(medium: &Medium) -> (Store, Vec<String>) {
    let store = medium.open(quiet()).unwrap();
    let found = read(store.session(&id("a")).unwrap().read_from(Seq::ZERO));
    (store, found)
}

/// Opening fails with the number of an acknowledged commit, and leaves everything as it was but the count of opens.
fn refuses(medium: &Medium, what: &str) -> u64 {
    let before = medium.image();
    let commit = match medium.open(quiet()) {
        Err(Error::Corrupt { corruption: Corruption::AcknowledgedFrame { commit }, .. }) => commit,
        // Said before the frames are looked at.
        Err(Error::Corrupt { corruption: Corruption::SegmentSize { .. }, .. }) if what == "cut short" => 0,
        Err(error) => panic!("{what}: {error:?}"),
        Ok(store) => {
            panic!("{what}: opened, though an acknowledged frame is gone: {:?}", store.open_report())
        }
    };
    let after = medium.image();
    assert!(after.files == before.files, "opening changed the journal of a damaged store");
    let changed =
        |(before, after): (&Vec<Entry>, &Vec<Entry>)| after.iter().filter(|e| !before.contains(e)).count();
    let changed: usize = before.maps.iter().zip(&after.maps).map(changed).sum();
    assert!(changed <= 1, "opening changed {changed} values of a damaged store");
    commit
}

fn users(count: usize) -> Vec<Said> {
    (0..count).map(|n| user(&format!("message {n}"))).collect()
}

/// Acknowledged events are in the journal alone until a drain, and come back from there.
#[test]
fn frames_outlive_the_process_without_a_drain() {
    for crash in [Crash::Kill, Crash::Power] {
        let medium = Medium::new(1);
        let (store, session) = new_store(&medium);
        let said = users(5);
        append_each(&medium, &session, &said);
        end(&medium, store, session, crash);
        let (store, found) = stored(&medium);
        assert_eq!(found, lines(&said));
        assert_eq!(store.open_report().replayed_events, 5);
        assert!(store.open_report().torn.is_empty(), "{:?}", store.open_report());
    }
}

/// The last frame, torn: the store opens without it, keeps its bytes and says where.
#[test]
fn a_torn_end_is_kept_and_reported() {
    let medium = Medium::new(1);
    let (store, session) = new_store(&medium);
    let said = [users(3), vec![noise(1, 3_000)]].concat();
    let written = append_each(&medium, &session, &said);
    end(&medium, store, session, Crash::Kill);
    let last = written.last().unwrap();
    medium.damage(&last.file, |bytes| bytes[last.offset + last.len / 2..last.end()].fill(0));
    let half = medium.file(&last.file)[last.offset..last.offset + last.len / 2].to_vec();

    let (store, found) = stored(&medium);
    assert_eq!(found, lines(&said[..3]));
    let torn = &store.open_report().torn;
    assert_eq!(torn.len(), 1, "{torn:?}");
    let kept = medium.names().into_iter().find(|name| name.starts_with("torn-")).expect("a file torn-N");
    assert!(torn[0].contains(&kept), "{torn:?} names {kept}");
    assert!(medium.file(&kept).windows(half.len()).any(|bytes| bytes == half), "the torn bytes are kept");

    // It is a notice: the store goes on. The file stays, and is told of, until somebody takes it away.
    store.session(&id("a")).unwrap().append(said[3].to_new()).unwrap();
    store.close().unwrap();
    drop(store);
    let (store, found) = stored(&medium);
    assert_eq!(found, lines(&said));
    assert_eq!(store.open_report().torn, [kept]);
}

/// H04: numbers and seqs behind a torn end go on; what stands behind the tear never comes back.
#[test]
fn h04_a_frame_behind_the_tear_never_comes_back() {
    for after in 1..4 {
        let medium = Medium::new(1);
        let (store, session) = new_store(&medium);
        session.append(user("durable").to_new()).unwrap();
        // Two frames that no sync covers; the power cut takes the first and leaves the second.
        session.append(chunk("lost lost lost lost").to_new()).unwrap();
        session.append(chunk("left left left left").to_new()).unwrap();
        medium.stop();
        drop((store, session));
        medium.cut_power_losing_first(1);

        let (store, mut found) = stored(&medium);
        assert_eq!(found, lines(&[user("durable")]));
        let session = store.session(&id("a")).unwrap();
        for n in 0..after {
            // Frames of the same size as those that stood here.
            let said = chunk(&format!("next next next {n:4}"));
            let seq = session.append(said.to_new()).unwrap();
            assert_eq!(seq.get(), found.len() as u64);
            found.push(said.line(seq.get()));
        }
        end(&medium, store, session, Crash::Kill);
        let (store, again) = stored(&medium);
        assert_eq!(again, found);
        drop(store);
        assert_eq!(stored(&medium).1, found);
    }
}

/// The number of any frame that was ever valid is not given again, also when it stood behind a torn end.
#[test]
fn commit_numbers_are_not_reused() {
    let medium = Medium::new(1);
    let (store, session) = new_store(&medium);
    let durable = append_each(&medium, &session, &[user("durable")]);
    append_each(&medium, &session, &[chunk("lost"), chunk("left")]);
    medium.stop();
    drop((store, session));

    // The durable frame's number, as a damaged copy of the store gives it.
    let damaged = medium.copy(1);
    damaged.damage(&durable[0].file, |bytes| bytes[durable[0].offset + 40] ^= 1);
    let number = refuses(&damaged, "a flipped bit");

    medium.cut_power_losing_first(1);
    let (store, found) = stored(&medium);
    assert_eq!(found, lines(&[user("durable")]));
    let session = store.session(&id("a")).unwrap();
    let next = append_each(&medium, &session, &[user("next"), user("after")]);
    end(&medium, store, session, Crash::Kill);
    medium.damage(&next[0].file, |bytes| bytes[next[0].offset + 40] ^= 1);
    let next = refuses(&medium, "a flipped bit");
    assert!(next > number + 2, "commit {} is given twice: {number}, two more, then {next}", number + 2);
}

/// Any byte of an acknowledged frame flipped: opening names the commit and changes nothing. (A frame is padded to
/// a multiple of 8 bytes; the padding means nothing.)
#[test]
fn a_damaged_acknowledged_frame_is_not_taken_for_a_torn_end() {
    let medium = Medium::new(1);
    let (store, session) = new_store(&medium);
    let written = append_each(&medium, &session, &users(4));
    end(&medium, store, session, Crash::Kill);
    let mut commits = Vec::new();
    let bytes = medium.file(&written[0].file);
    for frame in &written[..3] {
        let mut named = None;
        // The frame says its length without the padding, which means nothing.
        let len = u32::from_be_bytes(bytes[frame.offset + 8..frame.offset + 12].try_into().unwrap());
        for at in frame.offset..frame.end() {
            let damaged = medium.copy(1);
            damaged.damage(&frame.file, |bytes| bytes[at] ^= 0x10);
            let what = format!("byte {} of {}", at - frame.offset, frame.len);
            if at >= frame.offset + len as usize {
                assert_eq!(stored(&damaged).1, lines(&users(4)), "{what}");
                continue;
            }
            let commit = refuses(&damaged, &what);
            assert!(named.is_none_or(|named| named == commit), "byte {at} names another commit");
            named = Some(commit);
        }
        commits.extend(named);
    }
    assert_eq!(commits, [commits[0], commits[0] + 1, commits[0] + 2]);
    // Undamaged it opens.
    assert_eq!(stored(&medium).1, lines(&users(4)));
}

/// The very last acknowledged frame is covered too, once a seal follows it.
#[test]
fn a_seal_covers_the_last_frame() {
    let medium = Medium::new(1);
    let store = medium.open(quiet().sync_window(Duration::from_millis(1))).unwrap();
    let session = store.create(NewSession::with_id(id("a"))).unwrap();
    medium.take_log();
    session.append(user("acknowledged, then silence").to_new()).unwrap();
    let written = |log: &[Step]| log.iter().filter(|step| matches!(step, Step::Write(..))).count();
    // Its own frame and the seal, which says that it is durable. (A seal of `create` may stand before it.)
    medium.wait_log(|log| written(log) >= 2);
    medium.wait_log(|log| matches!(log.last(), Some(Step::Write(..) | Step::Sync(_))));
    end(&medium, store, session, Crash::Kill);
    let written = frames(&medium);
    let largest = written.iter().max_by_key(|frame| frame.len).unwrap().clone();
    assert_ne!(written.last().unwrap().offset, largest.offset, "the seal is the last frame");
    let damaged = medium.copy(1);
    damaged.damage(&largest.file, |bytes| bytes[largest.end() - 20] ^= 1);
    refuses(&damaged, "a flipped bit");
    // The seal itself is no acknowledgement: torn, the store opens.
    let seal = written.last().unwrap();
    medium.damage(&seal.file, |bytes| bytes[seal.offset + seal.len / 2..seal.end()].fill(0));
    assert_eq!(stored(&medium).1, lines(&[user("acknowledged, then silence")]));
}

/// Fills three segments and more. The names of the files in the order in which they were filled.
fn fill_segments(medium: &Medium, session: &Session, said: &mut Vec<Said>) -> Vec<String> {
    let mut files: Vec<String> = Vec::new();
    medium.take_log();
    while files.len() < 3 {
        assert!(said.len() < 500, "the journal never takes another segment");
        let event = noise(said.len() as u64, 50_000);
        session.append(event.to_new()).unwrap();
        said.push(event);
        for frame in frames(medium) {
            if !files.contains(&frame.file) {
                files.push(frame.file);
            }
        }
    }
    files
}

/// A whole segment zeroed, cut short or lost, with acknowledged frames in it and later ones behind.
#[test]
fn a_lost_segment_is_damage() {
    let medium = Medium::new(1);
    let (store, session) = new_store(&medium);
    let mut said = Vec::new();
    let files = fill_segments(&medium, &session, &mut said);
    end(&medium, store, session, Crash::Kill);
    for file in &files[..2] {
        let zeroed = medium.copy(1);
        zeroed.damage(file, |bytes| bytes.fill(0));
        refuses(&zeroed, "zeroed");
        let lost = medium.copy(1);
        lost.lose_file(file);
        refuses(&lost, "lost");
        let short = medium.copy(1);
        short.damage(file, |bytes| bytes.truncate(bytes.len() / 2));
        refuses(&short, "cut short");
    }
    let (_store, found) = stored(&medium);
    assert_eq!(difference(&found, &lines(&said)), None);
}

/// Recycled segments hold old frames behind the new ones; they are not replayed.
#[test]
fn frames_of_an_earlier_use_are_ignored() {
    let medium = Medium::new(1);
    let (store, session) = new_store(&medium);
    let mut said = Vec::new();
    for _ in 0..3 {
        fill_segments(&medium, &session, &mut said);
        store.drain().unwrap();
    }
    for n in 0..2 {
        let event = user(&format!("small {n}"));
        session.append(event.to_new()).unwrap();
        said.push(event);
    }
    end(&medium, store, session, Crash::Kill);
    let (store, found) = stored(&medium);
    assert_eq!(difference(&found, &lines(&said)), None);
    let report = store.open_report();
    assert_eq!((report.replayed_events, report.torn.len()), (2, 0), "{report:?}");
}

/// A drain: blocks, flush; one batch that says so, flush; then, and not before, the segments are given back.
#[test]
fn a_drain_keeps_the_order_of_its_steps() {
    let medium = Medium::new(1);
    let (store, session) = new_store(&medium);
    let mut said = Vec::new();
    for _ in 0..3 {
        fill_segments(&medium, &session, &mut said);
        session.append(chunk("not synced").to_new()).unwrap();
        said.push(chunk("not synced"));
        medium.take_log();
        store.drain().unwrap();
        let log = medium.take_log();
        let steps: Vec<&Step> = log.iter().filter(|step| !matches!(step, Step::Insert(..))).collect();
        // A pass that began by itself, for the tail's size, may stand before the one asked for.
        let (mut blocks, mut passes, mut batch_flushed) = (false, 0, true);
        for step in &log {
            match step {
                Step::Insert(Map::Events) => blocks = true,
                Step::Apply(Map::Sessions, _) => {
                    assert!(!blocks, "a batch came before its blocks were flushed: {steps:?}");
                    (passes, batch_flushed) = (passes + 1, false);
                }
                Step::Apply(..) => panic!("a batch on another map: {steps:?}"),
                Step::Flush => (blocks, batch_flushed) = (false, true),
                Step::Rename(..) | Step::Remove(_) => {
                    assert!(batch_flushed, "a segment went before the drain was durable: {steps:?}");
                }
                _ => {}
            }
        }
        assert!(passes > 0 && batch_flushed && !blocks, "{steps:?}");
    }
    assert_eq!(difference(&read(session.read_from(Seq::ZERO)), &lines(&said)), None);
}

/// After a kill what reads well may be in the page cache only: opening syncs the folder and every segment before it
/// changes anything.
#[test]
fn opening_syncs_before_it_changes_anything() {
    let medium = Medium::new(1);
    let (store, session) = new_store(&medium);
    let mut said = Vec::new();
    let mut files = fill_segments(&medium, &session, &mut said);
    session.append(chunk("in the page cache").to_new()).unwrap();
    end(&medium, store, session, Crash::Kill);
    medium.take_log();
    let (store, _) = stored(&medium);
    drop(store);
    let log = medium.take_log();
    let first_change = log
        .iter()
        .position(|step| {
            !matches!(step, Step::SyncFolder | Step::Sync(_) | Step::Flush | Step::Insert(Map::Sessions))
        })
        .expect("what was found is drained");
    let before = &log[..first_change];
    assert!(before.contains(&Step::SyncFolder), "{before:?}");
    files.retain(|file| !before.contains(&Step::Sync(file.clone())));
    assert!(files.is_empty(), "{files:?} were not synced before {:?}", log[first_change]);
}

/// An orderly close leaves nothing to replay, and little of the journal.
#[test]
fn close_drains_and_trims() {
    let medium = Medium::new(1);
    let (store, session) = new_store(&medium);
    let said: Vec<Said> = (0..150).map(|n| noise(n, 200_000)).collect();
    for batch in said.chunks(10) {
        session.append_batch(batch.iter().map(Said::to_new)).unwrap();
    }
    session.append(chunk("buffered").to_new()).unwrap();
    store.close().unwrap();
    drop((store, session));
    let bytes: usize = medium.names().iter().map(|name| medium.file(name).len()).sum();
    assert!(bytes < 10 << 20, "{bytes} bytes of journal after close");
    medium.restart(Crash::Power);
    let (store, found) = stored(&medium);
    assert_eq!(difference(&found, &lines(&[said, vec![chunk("buffered")]].concat())), None);
    let report = store.open_report();
    assert_eq!((report.replayed_commits, report.replayed_events), (0, 0));
}

/// A frame of another store, copied in by hand, is none of ours.
#[test]
fn frames_of_another_store_are_ignored() {
    let folder = tempfile::tempdir().unwrap();
    let segment = |name: &str| {
        let journal = folder.path().join(name).join("journal");
        let mut files = std::fs::read_dir(journal).unwrap().map(|entry| entry.unwrap().path());
        files.find(|file| file.file_name().unwrap().to_str().unwrap().starts_with("segment-")).unwrap()
    };
    let mut frames = Vec::new();
    for (name, count) in [("ours", 2), ("theirs", 5)] {
        let store = Store::open(folder.path().join(name)).unwrap();
        let session = store.create(NewSession::with_id(id("a"))).unwrap();
        for said in users(count) {
            session.append(said.to_new()).unwrap();
        }
        // What a kill would leave, with the store still open.
        frames.push(std::fs::read(segment(name)).unwrap());
    }
    let (ours, theirs) = (&mut frames[0].clone(), &frames[1]);
    let end = ours.iter().rposition(|byte| *byte != 0).unwrap().next_multiple_of(8);
    ours[end..].copy_from_slice(&theirs[..theirs.len() - end]);
    std::fs::write(segment("ours"), ours).unwrap();
    let store = Store::open(folder.path().join("ours")).unwrap();
    assert_eq!(read(store.session(&id("a")).unwrap().read_from(Seq::ZERO)), lines(&users(2)));
}
