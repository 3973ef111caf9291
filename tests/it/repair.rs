//! Repair: planned before it is done, the same end whenever it is interrupted, and a clean store behind it.

use sessionlog::storage::{JournalFiles, Map, Storage};
use sessionlog::{
    Error, FindingKind, NewEvent, NewSession, Remedy, RemedyKind, Repair, RepairReport, Scan, Seq, SessionId,
    Severity, Store, StoreOptions,
};

use crate::scan::{block, key, record, reseal_frame, sample};
use crate::support::bytes::{Bytes, forged, frames, kinds, lines, newest_frame, noise, say};
use crate::support::dice::Dice;
use crate::support::medium::{Crash, Fault, Medium};
use crate::support::run::id;

/// Plans, does it, and checks what holds of every repair: the plan is what is done, a second one finds nothing to do,
/// and the scan is clean.
fn mend(bytes: &Bytes) -> RepairReport {
    let before: Vec<_> = Map::ALL.iter().map(|map| bytes.all(*map)).collect();
    let plan = bytes.plan();
    assert!(
        before == Map::ALL.iter().map(|map| bytes.all(*map)).collect::<Vec<_>>(),
        "a plan writes nothing"
    );
    let done = bytes.repair();
    assert_eq!(done.remedies, plan.remedies, "what was planned is done");
    let report = bytes.scan();
    assert!(report.is_clean(), "{:#?}\nbehind {:#?}", report.findings, done.remedies);
    let again = bytes.plan();
    assert!(again.is_empty(), "nothing is left to do: {again:#?}");
    done
}

fn did(report: &RepairReport, kind: RemedyKind) -> Vec<&Remedy> {
    report.remedies.iter().filter(|remedy| remedy.kind == kind).collect()
}

/// A session's id, its events, and the error that ended the read.
type Read = (String, Vec<String>, Option<String>);

/// What every session gives, read as far as it goes; and the store's list.
fn all_reads(bytes: &Bytes) -> Vec<Read> {
    let store = bytes.open().unwrap();
    let mut ids: Vec<_> = store.list().unwrap().map(|info| info.unwrap().header.id).collect();
    ids.sort();
    let mut all = Vec::new();
    for id in ids {
        let mut read = Vec::new();
        let mut failed = None;
        for event in store.session(&id).unwrap().read_from(Seq::ZERO).unwrap() {
            match event {
                Ok(event) => read.push(event.to_string()),
                Err(error) => failed = Some(error.to_string()),
            }
        }
        all.push((id.to_string(), read, failed));
    }
    store.close().unwrap();
    all
}

/// A sound store, and an empty one, have nothing to repair, and nothing is written.
#[test]
fn a_sound_store_is_left_alone() {
    for bytes in [sample(), Bytes::new()] {
        let before: Vec<_> = Map::ALL.iter().map(|map| bytes.all(*map)).collect();
        assert!(bytes.repair().is_empty());
        assert!(before == Map::ALL.iter().map(|map| bytes.all(*map)).collect::<Vec<_>>());
    }
}

/// Records that are derived come back as they were; nothing else changes.
#[test]
fn derived_records_are_made_anew() {
    let sound = sample();
    let truth = all_reads(&sound.copy());
    let records = sound.all(Map::Sessions);
    for (key, value) in &records {
        // A header is no derived record.
        if key[0] == b'h' {
            continue;
        }
        for flip in [false, true] {
            let bytes = sound.copy();
            if flip {
                let mut value = value.clone();
                *value.last_mut().unwrap() ^= 1;
                bytes.put(Map::Sessions, key, &value);
            } else {
                bytes.remove(Map::Sessions, key);
            }
            let done = mend(&bytes);
            let what = format!("`{}`, flipped: {flip}: {done:#?}", char::from(key[0]));
            assert!(!done.is_empty(), "{what}");
            assert!(did(&done, RemedyKind::Ended).is_empty(), "{what}");
            assert_eq!(all_reads(&bytes), truth, "{what}");
            let value = |key: &[u8], bytes: &Bytes| bytes.storage.get(Map::Sessions, key).unwrap().unwrap();
            // All but the write number and the checksum are what they were.
            if key != b"O" && key != b"D" {
                assert_eq!(value(key, &bytes)[52..], value(key, &sound)[52..], "{what}");
            }
        }
    }
}

/// A session with a hole ends there, and says so to who appends; a fork at the gap goes on; what lay behind comes out
/// of quarantine with its seqs.
#[test]
fn a_session_with_a_hole_is_ended_there() {
    let removed: fn(&Bytes) = |bytes| bytes.remove(Map::Events, &block(bytes, "a", 1).0);
    let broken: fn(&Bytes) = |bytes| {
        let (key, mut value) = block(bytes, "a", 1);
        value[100] ^= 1;
        bytes.put(Map::Events, &key, &value);
    };
    for damage in [removed, broken] {
        let bytes = sample();
        let truth = all_reads(&bytes.copy());
        damage(&bytes);
        let done = mend(&bytes);
        let [ended] = did(&done, RemedyKind::Ended)[..] else { panic!("{done:#?}") };
        assert_eq!((ended.session.as_deref(), ended.seqs.clone()), (Some("a"), Some(1..5)), "{ended}");
        let report = bytes.scan();
        let notices: Vec<_> = report.findings.iter().map(|finding| finding.kind).collect();
        assert!(notices.contains(&FindingKind::Ended), "{report:#?}");
        assert!(notices.contains(&FindingKind::PrefixBeyondParent), "the fork at 2: {report:#?}");

        let store = bytes.open().unwrap();
        let a = store.session(&id("a")).unwrap();
        assert_eq!(lines(&a), truth[0].1[..1]);
        let refused = a.append(NewEvent::user_message("more"));
        assert!(matches!(refused, Err(Error::Ended { at, .. }) if at == Seq::new(1)), "{refused:?}");
        let fork = a.fork(Seq::new(1)).unwrap();
        say(&fork, 2);
        assert_eq!(fork.len(), 3);
        // The fork at 2 is there, with an error where its parent ends.
        let b = store.session(&id("b")).unwrap();
        let read: Vec<_> = b.read_from(Seq::ZERO).unwrap().collect();
        assert!(read[0].is_ok());
        assert!(matches!(&read[1], Err(Error::Corrupt { .. })), "{:?}", read[1]);
        assert_eq!(b.read_from(Seq::new(2)).unwrap().map(Result::unwrap).count(), 3);
        say(&b, 1);
        let kept: Vec<_> = a
            .quarantine()
            .unwrap()
            .flat_map(|item| item.unwrap().events)
            .map(|event| event.to_string())
            .collect();
        assert_eq!(kept, truth[0].1[2..]);
        store.close().unwrap();
        assert!(bytes.scan().is_clean(), "{:#?}", bytes.scan());
    }
}

/// Whatever is lost of a session's header comes from its other records; without any, its id is its storage key.
#[test]
fn a_lost_header_is_made_from_what_is_known() {
    let bytes = sample();
    let truth = all_reads(&bytes.copy());
    let b = record(&bytes, b'h', "b").0;
    bytes.remove(Map::Sessions, &b);
    let done = mend(&bytes);
    assert_eq!(did(&done, RemedyKind::HeaderMade).len(), 1, "{done:#?}");
    assert_eq!(all_reads(&bytes), truth, "id and parent were known");

    let bytes = sample();
    let truth = all_reads(&bytes.copy());
    let name = key_text(&key(&bytes, "c"));
    let header = record(&bytes, b'h', "c").0;
    bytes.remove(Map::Sessions, &header);
    bytes.remove(Map::Sessions, b"ic");
    mend(&bytes);
    let reads = all_reads(&bytes);
    let found = reads.iter().find(|(id, ..)| *id == name).unwrap_or_else(|| panic!("{name} in {reads:?}"));
    assert_eq!(found.1, truth[2].1);

    // All that is left of the store are its blocks.
    let bytes = sample();
    let truth = all_reads(&bytes.copy());
    for (key, _) in bytes.all(Map::Sessions) {
        bytes.remove(Map::Sessions, &key);
    }
    mend(&bytes);
    let reads = all_reads(&bytes);
    assert_eq!(reads, truth, "the journal still had their creations");
    let bytes = sample();
    let truth = all_reads(&bytes.copy());
    for (key, _) in bytes.all(Map::Sessions) {
        bytes.remove(Map::Sessions, &key);
    }
    for name in bytes.files.list().unwrap() {
        bytes.files.remove(&name).unwrap();
    }
    mend(&bytes);
    let reads = all_reads(&bytes);
    assert_eq!(reads.len(), 3);
    assert_eq!(reads[0].1, truth[0].1, "`a` was made first");
    assert_eq!(reads[1].1, [""; 0], "what `b` shared is not known, so its events lie behind a hole");
    assert_eq!(reads[2].1, truth[2].1);
}

fn key_text(key: &[u8; 16]) -> String {
    let hex: String = key.iter().map(|byte| format!("{byte:02x}")).collect();
    [&hex[..8], &hex[8..12], &hex[12..16], &hex[16..20], &hex[20..]].join("-")
}

/// A parent that is gone gets a stand-in, so that its fork's own events are read and its end is told.
#[test]
fn a_missing_parent_gets_a_stand_in() {
    let bytes = sample();
    let parent = key(&bytes, "a");
    for (key, _) in bytes.all(Map::Sessions) {
        if key.windows(16).any(|window| window == parent) && key[0] != b'f' || key == b"ia" {
            bytes.remove(Map::Sessions, &key);
        }
    }
    for (key, _) in bytes.with(Map::Events, &parent) {
        bytes.remove(Map::Events, &key);
    }
    let done = mend(&bytes);
    assert_eq!(did(&done, RemedyKind::HeaderMade).len(), 1, "{done:#?}");
    let store = bytes.open().unwrap();
    let b = store.session(&id("b")).unwrap();
    assert_eq!(b.read_from(Seq::new(2)).unwrap().map(Result::unwrap).count(), 3);
    assert!(b.read_from(Seq::ZERO).unwrap().next().unwrap().is_err());
}

/// An engine that fell back to an older summary: the blocks are there, and count again.
#[test]
fn a_summary_that_fell_back_is_made_anew() {
    let bytes = Bytes::new();
    let store = bytes.open().unwrap();
    let a = store.create(NewSession::with_id(id("a"))).unwrap();
    a.append(NewEvent::user_message(noise(1, 5_000))).unwrap();
    store.drain().unwrap();
    let before = bytes.with(Map::Sessions, b"s");
    a.append(NewEvent::user_message(noise(2, 5_000))).unwrap();
    store.close().unwrap();
    let truth = all_reads(&bytes.copy());
    bytes.put(Map::Sessions, &before[0].0, &before[0].1);
    mend(&bytes);
    assert_eq!(all_reads(&bytes), truth);
}

/// What an interrupted drain left goes, and the journal's events are still there.
#[test]
fn leftovers_of_a_drain_are_finished() {
    let bytes = Bytes::new();
    let store = bytes.open().unwrap();
    let a = store.create(NewSession::with_id(id("a"))).unwrap();
    a.append(NewEvent::user_message(noise(1, 5_000))).unwrap();
    store.drain().unwrap();
    a.append(NewEvent::user_message(noise(2, 5_000))).unwrap();
    let killed = bytes.copy();
    store.drain().unwrap();
    for (key, value) in bytes.all(Map::Events) {
        killed.put(Map::Events, &key, &value);
    }
    let done = mend(&killed);
    assert!(did(&done, RemedyKind::Ended).is_empty(), "{done:#?}");
    assert_eq!(killed.scan().findings, []);
    assert_eq!(all_reads(&killed), all_reads(&bytes.copy()));
}

/// Two sessions in a journal of which nothing was drained, their appends in turns; what is said in each frame.
fn journal() -> (Bytes, Vec<Read>) {
    let bytes = Bytes::new();
    let store = bytes.open().unwrap();
    let sessions = ["a", "b"].map(|name| store.create(NewSession::with_id(id(name))).unwrap());
    for turn in 0..6 {
        say(&sessions[turn % 2], 2);
    }
    let killed = bytes.copy();
    (killed.copy(), all_reads(&killed))
}

fn segment(bytes: &Bytes) -> (String, Vec<u8>) {
    let name = bytes.files.list().unwrap().into_iter().find(|name| name.starts_with("segment-")).unwrap();
    let file = bytes.file(&name);
    (name, file)
}

/// Of a damaged frame the bytes go into quarantine; the frames behind it are applied where they follow, and the
/// sessions whose next events it held end.
#[test]
fn a_damaged_frame_ends_only_what_it_held() {
    let (sound, truth) = journal();
    let (name, file) = segment(&sound);
    let places = frames(&file);
    assert_eq!(places.len(), 8);
    // The second append of `a`: commits 1 and 2 create, 3 to 8 append in turns.
    let bytes = sound.copy();
    let mut damaged = file.clone();
    damaged[places[4].end - 1] ^= 1;
    bytes.write_file(&name, &damaged);
    assert!(bytes.open().is_err());
    assert!(kinds(&bytes.scan()).contains(&FindingKind::JournalFrame));
    let done = mend(&bytes);
    let [ended] = did(&done, RemedyKind::Ended)[..] else { panic!("{done:#?}") };
    assert_eq!(
        (ended.session.as_deref(), ended.seqs.clone().map(|seqs| seqs.start)),
        (Some("a"), Some(2)),
        "{ended}"
    );
    let reads = all_reads(&bytes);
    assert_eq!(reads[0].1, truth[0].1[..2]);
    assert_eq!(reads[1], truth[1], "all of `b` was acknowledged and is there");
    let store = bytes.open().unwrap();
    let a = store.session(&id("a")).unwrap();
    assert!(matches!(a.append(NewEvent::user_message("more")), Err(Error::Ended { .. })));
    let kept: Vec<_> = a
        .quarantine()
        .unwrap()
        .flat_map(|item| item.unwrap().events)
        .map(|event| event.to_string())
        .collect();
    assert_eq!(kept, truth[0].1[4..], "the third append of `a`");
    say(&store.session(&id("b")).unwrap(), 1);
    store.close().unwrap();
    assert!(bytes.scan().is_clean());
}

/// A frame that does not follow, its checksum right, is set aside; the rest goes on.
#[test]
fn a_frame_out_of_order_is_set_aside() {
    let (bytes, truth) = journal();
    let (name, mut file) = segment(&bytes);
    let frame = frames(&file)[7].clone();
    file[frame.start + 56 + 17] = 9;
    reseal_frame(&mut file[frame]);
    bytes.write_file(&name, &file);
    mend(&bytes);
    let reads = all_reads(&bytes);
    assert_eq!(reads[0], truth[0]);
    assert_eq!(reads[1].1, truth[1].1[..4]);
}

/// A torn end is no damage, and is left to the open.
#[test]
fn a_torn_end_is_left_to_the_open() {
    let (bytes, truth) = journal();
    let (name, mut file) = segment(&bytes);
    let last = frames(&file)[7].end - 1;
    file[last] ^= 1;
    bytes.write_file(&name, &file);
    assert!(bytes.plan().is_empty());
    assert_eq!(all_reads(&bytes)[0], truth[0]);
}

/// An earlier pass has stored what a damaged frame held: then nothing is lost.
#[test]
fn what_an_unfinished_drain_has_stored_fills_a_damaged_frame() {
    let bytes = Bytes::new();
    let store = bytes.open().unwrap();
    let a = store.create(NewSession::with_id(id("a"))).unwrap();
    say(&a, 2);
    store.drain().unwrap();
    say(&a, 2);
    say(&a, 2);
    let killed = bytes.copy();
    store.drain().unwrap();
    for (key, value) in bytes.all(Map::Events) {
        killed.put(Map::Events, &key, &value);
    }
    let (name, frame) = newest_frame(&killed, 1);
    let mut file = killed.file(&name);
    file[frame.end - 1] ^= 1;
    killed.write_file(&name, &file);
    assert!(killed.copy().open().is_err());
    let done = mend(&killed);
    assert!(did(&done, RemedyKind::Ended).is_empty(), "{done:#?}");
    assert_eq!(all_reads(&killed), all_reads(&bytes.copy()));
}

/// Whatever is changed, a repair comes to an end, and behind it every read works or ends where a session was ended.
#[test]
fn any_damage_is_repaired() {
    let sound = sample();
    let truth = all_reads(&sound.copy());
    let mut dice = Dice::new(9);
    for round in 0..150 {
        let bytes = sound.copy();
        for _ in 0..=round % 3 {
            let map = if dice.below(2) == 0 { Map::Sessions } else { Map::Events };
            let all = bytes.all(map);
            let (key, value) = all[dice.below(all.len() as u64) as usize].clone();
            match dice.below(3) {
                0 => {
                    let mut value = value;
                    let at = dice.below(value.len() as u64) as usize;
                    value[at] ^= 1 << dice.below(8);
                    bytes.put(map, &key, &value);
                }
                1 => bytes.remove(map, &key),
                _ => {
                    let (other, _) = &all[dice.below(all.len() as u64) as usize];
                    bytes.put(map, other, &value);
                }
            }
        }
        mend(&bytes);
        for (name, read, _) in all_reads(&bytes) {
            // An id may have been lost, no event may be another one.
            let known = truth.iter().any(|(_, lines, _)| lines.starts_with(&read));
            assert!(known, "round {round}: {name} has events that were never there: {read:?}");
        }
        assert!(bytes.scan().is_clean());
    }
}

/// A chain of forks, drained, and its journal, whose segment is not used again yet: with the drained mark lost, all of
/// its frames count once more.
fn forks_in_both() -> (Bytes, Vec<Read>) {
    let bytes = Bytes::new();
    let store = bytes.open().unwrap();
    let first = store.create(NewSession::with_id(id("first"))).unwrap();
    say(&first, 8);
    let child = store.fork(&id("first"), Seq::new(4), NewSession::with_id(id("child"))).unwrap();
    for _ in 0..5 {
        say(&child, 1);
    }
    let grandchild = store.fork(&id("child"), Seq::new(8), NewSession::with_id(id("grandchild"))).unwrap();
    say(&grandchild, 2);
    store.drain().unwrap();
    let killed = bytes.copy();
    say(&child, 2);
    say(&first, 1);
    say(&grandchild, 1);
    let with_tail = bytes.copy();
    assert_eq!(all_reads(&killed.copy()).len(), 3);
    (with_tail.copy(), all_reads(&with_tail))
}

/// A parent of which only its summary and the frame that creates it are left, a fork that lost its blocks and has some
/// of its events in frames, and the mark that tells which frames count is lost: the fork keeps what the frames have,
/// and both are ended where they stop, whatever the forks of them say.
#[test]
fn what_frames_still_have_counts_when_blocks_and_the_mark_are_lost() {
    let (bytes, truth) = forks_in_both();
    let of = |name: &str| truth.iter().find(|(id, ..)| id == name).unwrap().1.clone();
    let (first, child) = (key(&bytes, "first"), key(&bytes, "child"));
    for (at, _) in bytes.all(Map::Events) {
        bytes.remove(Map::Events, &at);
    }
    bytes.remove(Map::Sessions, b"D");
    bytes.remove(Map::Sessions, &[&b"h"[..], &first].concat());
    bytes.remove(Map::Sessions, &[&b"i"[..], b"first"].concat());
    let (name, mut file) = segment(&bytes);
    // Commits: 1 creates `first`, 2 appends to it, 3 makes the fork, 4 to 8 append to that, 9 and 10 are the grandchild's.
    for frame in [1, 6, 7].map(|frame: usize| frames(&file)[frame].clone()) {
        file[frame.end - 1] ^= 1;
    }
    bytes.write_file(&name, &file);
    mend(&bytes);
    let store = bytes.open().unwrap();
    assert_eq!(store.session(&id("first")).unwrap().len(), 0);
    let session = store.session(&id("child")).unwrap();
    assert_eq!(session.len(), 7, "4 of its parent's, 3 in frames");
    let events = session.read_from(Seq::new(4)).unwrap();
    let events: Vec<_> = events.map(|event| event.unwrap().to_string()).collect();
    assert_eq!(events, of("child")[4..7]);
    assert_eq!(key(&bytes, "child"), child);
}

/// Of a parent only the frame that creates it and a summary of later times are left: it has no events, whatever that says,
/// and its fork says where it was ended. Where all is lost but the journal the mark is made anew, too.
#[test]
fn a_parent_that_only_the_journal_makes() {
    let (bytes, _) = forks_in_both();
    let first = key(&bytes, "first");
    for (at, _) in bytes.all(Map::Events) {
        bytes.remove(Map::Events, &at);
    }
    for at in [&b"D"[..], b"ifirst", &[&b"h"[..], &first].concat()] {
        bytes.remove(Map::Sessions, at);
    }
    let (name, mut file) = segment(&bytes);
    let created = frames(&file)[0].end;
    file[created..].fill(0);
    bytes.write_file(&name, &file);
    mend(&bytes);
    let store = bytes.open().unwrap();
    assert_eq!(store.session(&id("first")).unwrap().len(), 0);
    let child = store.session(&id("child")).unwrap();
    let read = child.read_from(Seq::ZERO).unwrap().next();
    assert!(matches!(read, Some(Err(Error::Corrupt { .. }))), "{read:?}");
}

/// Whatever is changed in values and in the journal together, a repair comes to an end behind which nothing is wrong.
#[test]
fn any_damage_of_values_and_journal_is_repaired() {
    let (sound, truth) = forks_in_both();
    let (name, file) = segment(&sound);
    let places = frames(&file);
    let rounds = std::env::var("SESSIONLOG_REPAIRS").map_or(400, |rounds| rounds.parse().unwrap());
    let mut dice = Dice::new(19);
    for round in 0..rounds {
        let bytes = sound.copy();
        if round % 4 != 0 {
            bytes.remove(Map::Sessions, b"D");
        }
        for map in [Map::Sessions, Map::Events] {
            // From a few to most of what is there.
            let part = dice.below(16);
            for (at, _) in bytes.all(map) {
                if dice.below(16) < part {
                    bytes.remove(map, &at);
                }
            }
        }
        let mut damaged = file.clone();
        for _ in 0..dice.below(8) {
            let frame = &places[dice.below(places.len() as u64) as usize];
            damaged[frame.start + dice.below(frame.len() as u64) as usize] ^= 1 << dice.below(8);
        }
        if dice.below(3) == 0 {
            // All that follows was never written, as far as anybody can tell.
            let from = places[dice.below(places.len() as u64) as usize].end;
            damaged[from..].fill(0);
        }
        bytes.write_file(&name, &damaged);
        mend(&bytes);
        for (name, read, _) in all_reads(&bytes) {
            let known = truth.iter().any(|(_, lines, _)| lines.starts_with(&read));
            assert!(known, "round {round}: {name} has events that were never there: {read:?}");
        }
    }
}

/// Values under seqs that no session reaches are told, and go: nothing counts on from them.
#[test]
fn keys_behind_every_possible_seq() {
    let sound = sample();
    let (at, value) = block(&sound, "a", 0);
    for part in [&[][..], &[0, 0, 0, 1]] {
        for seq in [u64::MAX, u64::MAX - 1, 1 << 63] {
            let bytes = sound.copy();
            let far = [&at[..16], &seq.to_be_bytes(), part].concat();
            bytes.put(Map::Events, &far, &value);
            assert!(kinds(&bytes.scan()).contains(&FindingKind::NotRecognised), "{:#?}", bytes.scan());
            mend(&bytes);
            assert_eq!(all_reads(&bytes), all_reads(&sound.copy()));
        }
    }
}

/// Values that a forger made: the fork's parents lead in a circle. It ends, too.
#[test]
fn a_circle_of_parents_is_opened() {
    let bytes = sample();
    let store = bytes.open().unwrap();
    store.fork(&id("b"), Seq::new(2), NewSession::with_id(id("d"))).unwrap();
    store.close().unwrap();
    let (a, d) = (key(&bytes, "a"), key(&bytes, "d"));
    let (at, value) = record(&bytes, b'h', "b");
    let circle = forged(&value, |payload| {
        let parent = payload.windows(16).position(|window| window == a).unwrap();
        payload[parent..parent + 16].copy_from_slice(&d);
    });
    bytes.put(Map::Sessions, &at, &circle);
    mend(&bytes);
    assert_eq!(all_reads(&bytes).len(), 4);
}

/// In a folder: what is changed is kept, as it was, and only its owner may look at it.
#[test]
fn a_folder_keeps_what_is_changed() {
    use std::os::unix::fs::PermissionsExt;
    let folder = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let path = folder.path().join("store");
    let store = StoreOptions::new().open(&path).unwrap();
    say(&store.create(NewSession::with_id(id("a"))).unwrap(), 3);
    store.close().unwrap();
    let engine = sessionlog::storage::SledStorage::open(&path.join("engine-1"), 1 << 20).unwrap();
    engine.apply(Map::Sessions, &[(b"ia".to_vec(), None)]).unwrap();
    engine.flush().unwrap();
    engine.close().unwrap();
    assert_eq!(kinds(&Scan::new().folder(&path).unwrap()), [FindingKind::Unreachable]);
    let repair = Repair::folder(&path).unwrap();
    assert_eq!(repair.plan().remedies.len(), 1, "{:?}", repair.plan());
    assert!(!path.join("repair-1").exists(), "a plan makes nothing");
    let done = repair.apply().unwrap();
    let copies = done.copies.unwrap();
    assert_eq!(copies, path.join("repair-1"));
    assert_eq!(copies.metadata().unwrap().permissions().mode() & 0o777, 0o700);
    let values = std::fs::read_to_string(copies.join("values.jsonl")).unwrap();
    assert!(values.contains(r#"{"map":"sessions","key":"6961","value":null}"#), "{values}");
    let report = Scan::new().folder(&path).unwrap();
    assert!(report.findings.iter().all(|finding| finding.severity == Severity::Notice), "{report:?}");
    assert_eq!(lines(&Store::open(&path).unwrap().session(&id("a")).unwrap()).len(), 3);
    assert!(Repair::folder(&path).unwrap().apply().unwrap().is_empty());
    assert!(!path.join("repair-2").exists());
}

/// What a store damaged in several ways is laid onto: one that fails at any operation.
fn laid(bytes: &Bytes) -> Medium {
    let medium = Medium::new(7);
    let (storage, files) = (medium.storage(), medium.files());
    for map in Map::ALL {
        bytes.all(map).iter().for_each(|(key, value)| storage.insert(map, key, value).unwrap());
    }
    storage.flush().unwrap();
    for name in bytes.files.list().unwrap() {
        let content = bytes.file(&name);
        let file = files.create(&name, content.len() as u64).unwrap();
        file.write_at(&content, 0).unwrap();
        file.sync().unwrap();
    }
    files.sync_folder().unwrap();
    medium
}

fn repair_on(medium: &Medium) -> sessionlog::Result<RepairReport> {
    Repair::on(medium.storage().as_ref(), medium.files().as_ref(), [0; 16], true)
}

fn reads_of(medium: &Medium) -> Vec<Read> {
    let report = Scan::new().on(medium.storage().as_ref(), medium.files().as_ref(), [0; 16]).unwrap();
    assert!(report.is_clean(), "{report:#?}");
    let store = medium.open(StoreOptions::new()).unwrap();
    let mut ids: Vec<_> = store.list().unwrap().map(|info| info.unwrap().header.id).collect();
    ids.sort();
    let read = |id: &SessionId| {
        let session = store.session(id).unwrap();
        let mut all = Vec::new();
        let mut failed = None;
        for event in session.read_from(Seq::ZERO).unwrap() {
            match event {
                Ok(event) => all.push(event.to_string()),
                Err(error) => failed = Some(error.to_string()),
            }
        }
        let kept = session.quarantine().unwrap().flat_map(|item| item.unwrap().events);
        all.push("quarantine".to_owned());
        all.extend(kept.map(|event| event.to_string()));
        (id.to_string(), all, failed)
    };
    ids.iter().map(read).collect()
}

/// Damage of every kind at once: a hole, a broken record, a lost header, and an acknowledged frame that is broken.
fn ruined() -> Bytes {
    let bytes = sample();
    let store = bytes.open().unwrap();
    for name in ["a", "b", "c", "a", "b", "c"] {
        say(&store.session(&id(name)).unwrap(), 2);
    }
    say(&store.create(NewSession::with_id(id("new"))).unwrap(), 2);
    let killed = bytes.copy();
    killed.remove(Map::Events, &block(&killed, "a", 1).0);
    let (at, mut value) = record(&killed, b's', "b");
    value[60] ^= 1;
    killed.put(Map::Sessions, &at, &value);
    let header = record(&killed, b'h', "c").0;
    killed.remove(Map::Sessions, &header);
    // An append to `b`, with six commits behind it.
    let (name, frame) = newest_frame(&killed, 6);
    let mut file = killed.file(&name);
    file[frame.end - 1] ^= 1;
    killed.write_file(&name, &file);
    killed
}

/// A repair that fails, is torn, killed, or loses power at any of its operations comes to the same end when it is begun
/// again.
#[test]
fn a_repair_interrupted_anywhere_comes_to_the_same_end() {
    let ruined = ruined();
    let whole = laid(&ruined);
    let done = repair_on(&whole).unwrap();
    for kind in [
        RemedyKind::Ended,
        RemedyKind::Quarantined,
        RemedyKind::HeaderMade,
        RemedyKind::Rebuilt,
        RemedyKind::Journal,
    ] {
        assert!(!did(&done, kind).is_empty(), "{kind:?}: {done:#?}");
    }
    let truth = reads_of(&whole);
    let copy = laid(&ruined);
    // What a power cut leaves is drawn by lot: a few times for each operation.
    for (fault, crash, seed) in [
        (Fault::Fail, None, 0),
        (Fault::Tear, None, 0),
        (Fault::Stop, Some(Crash::Kill), 0),
        (Fault::Stop, Some(Crash::Power), 0),
        (Fault::Stop, Some(Crash::Power), 1_000),
        (Fault::Stop, Some(Crash::Power), 2_000),
        (Fault::Stop, Some(Crash::Power), 3_000),
    ] {
        for operation in 1.. {
            let medium = copy.copy(seed + operation);
            medium.plan(operation, fault);
            let interrupted = repair_on(&medium);
            if !medium.fired() {
                assert!(operation > 20, "few operations: {operation}");
                break;
            }
            assert!(interrupted.is_err(), "{fault:?} at {operation}");
            medium.forget_plan();
            medium.restart(crash.unwrap_or(Crash::Kill));
            repair_on(&medium).unwrap();
            let again =
                Repair::on(medium.storage().as_ref(), medium.files().as_ref(), [0; 16], false).unwrap();
            assert!(again.is_empty(), "{fault:?} at {operation}, {crash:?}: {again:#?}");
            assert_eq!(reads_of(&medium), truth, "{fault:?} at {operation}, {crash:?}");
        }
    }
}

/// A deleted session lends its forks less where a block is broken, and they say so there; a broken record of the
/// deletion is made anew; a deletion in a damaged journal is kept.
#[test]
fn deleted_sessions_are_mended_for_their_forks() {
    let bytes = sample();
    let broken = block(&bytes, "a", 1);
    let tombstone = [&b"t"[..], &key(&bytes, "a")].concat();
    let store = bytes.open().unwrap();
    store.delete(&id("a")).unwrap();
    let (in_journal, truth) = (bytes.copy(), all_reads(&bytes.copy()));
    store.drain().unwrap();
    store.close().unwrap();
    for damage in 0..2 {
        let bytes = bytes.copy();
        if damage == 0 {
            bytes.remove(Map::Events, &broken.0);
        } else {
            bytes.put(Map::Sessions, &tombstone, b"nothing");
        }
        mend(&bytes);
        let reads = all_reads(&bytes);
        assert_eq!(reads.len(), 2);
        assert_eq!(reads[0].1, truth[0].1[..if damage == 0 { 1 } else { 5 }]);
        assert_eq!(reads[0].2.is_some(), damage == 0);
        assert!(bytes.scan().is_clean());
    }

    let store = in_journal.open().unwrap();
    say(&store.session(&id("b")).unwrap(), 1);
    store.create(NewSession::with_id(id("a"))).map(|again| say(&again, 1)).unwrap();
    say(&store.session(&id("c")).unwrap(), 1);
    say(&store.session(&id("c")).unwrap(), 1);
    let killed = in_journal.copy();
    let truth = all_reads(&killed.copy());
    // The next to last: an append to `c`.
    let (name, frame) = newest_frame(&killed, 1);
    let mut file = killed.file(&name);
    file[frame.end - 1] ^= 1;
    killed.write_file(&name, &file);
    assert!(killed.copy().open().is_err());
    mend(&killed);
    let reads = all_reads(&killed);
    assert_eq!(reads[..2], truth[..2], "`a` is the second of that name");
    assert_eq!(reads[2].1, truth[2].1[..4]);
}

/// A session that is drained in part and has a hole in the journal keeps the events before the hole, whoever looks again.
#[test]
fn a_drained_session_with_a_hole_in_the_journal() {
    let bytes = Bytes::new();
    let store = bytes.open().unwrap();
    let session = store.create(NewSession::with_id(id("a"))).unwrap();
    say(&session, 2);
    store.drain().unwrap();
    for _ in 0..4 {
        say(&session, 1);
    }
    let killed = bytes.copy();
    // Of seqs 2 to 5 the frame of 3 is damaged.
    let (file, frame) = newest_frame(&killed, 2);
    let mut damaged = killed.file(&file);
    damaged[frame.start + 70] ^= 1;
    killed.write_file(&file, &damaged);
    mend(&killed);
    let store = killed.open().unwrap();
    assert_eq!(store.session(&id("a")).unwrap().len(), 3);
}
