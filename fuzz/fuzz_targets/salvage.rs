//! Salvage from files that are damaged, or are anything at all: it ends with a store that opens and scans clean, or with
//! a typed error; and of what is only damaged never a wrong event comes out.

#![no_main]

use std::sync::Arc;

use libfuzzer_sys::fuzz_target;
use sessionlog::storage::{JournalFiles, MemoryJournalFiles, MemoryStorage};
use sessionlog::{Error, Salvage, Scan, Seq};
use sessionlog_fuzz::base::{Base, CLOSED, KILLED, quiet};
use sessionlog_fuzz::frames;
use sessionlog_fuzz::image::Entries;
use sessionlog_fuzz::input::{Input, damage, overwrite};
use sessionlog_fuzz::reads::{Depth, Trust, look_at_error, read_all};
use sessionlog_fuzz::values;

sessionlog_fuzz::limit_memory!();

/// More damage than this teaches nothing.
const MAX_CHANGES: usize = 24;
/// More events than any base has.
const MAX_EVENTS: usize = 10_000;

/// The raw files of a store: the engine's, and the journal's.
struct Raw {
    db: Vec<u8>,
    journal: Vec<(String, Vec<u8>)>,
}

fuzz_target!(|bytes: &[u8]| {
    let mut input = Input::new(bytes);
    let flags = input.u8();
    let base = match flags % 8 {
        0..=2 => Some(&KILLED[usize::from(flags % 8)]),
        3 | 4 => Some(&CLOSED[usize::from(flags % 8 - 3)]),
        _ => None,
    };
    let Some(base) = base else {
        let rest = input.rest();
        let (db, segment) = rest.split_at(if flags & 8 == 0 { rest.len() } else { rest.len() / 2 });
        let mut raw = Raw { db: db.to_vec(), journal: vec![("segment-1".into(), segment.to_vec())] };
        if flags & 16 != 0 {
            values::fix_all(&mut raw.db);
            frames::fix(&mut raw.journal[0].1);
        }
        salvage(&raw, None, flags & 32 != 0);
        return;
    };
    let mut raw = raw_of(base, &mut input);
    let sound = (pieces(&raw.db), journal_pieces(&raw));
    for _ in 0..MAX_CHANGES {
        if input.is_empty() {
            break;
        }
        change(&mut raw, &mut input);
    }
    if flags & 8 != 0 {
        values::fix_all(&mut raw.db);
    }
    if flags & 16 != 0 {
        raw.journal.iter_mut().for_each(|(_, file)| frames::fix(file));
    }
    let forged = pieces(&raw.db).iter().any(|value| !sound.0.contains(value))
        || journal_pieces(&raw).iter().any(|frame| !sound.1.contains(frame));
    salvage(&raw, (!forged).then_some(base), flags & 32 != 0);
});

/// The values of a store one behind the other, with anything in between, some of them twice.
fn raw_of(base: &Base, input: &mut Input<'_>) -> Raw {
    let mut db = Vec::new();
    let mut add = |entries: &Entries| {
        for value in entries.values() {
            let gap = input.u8();
            db.extend(std::iter::repeat_n(gap, usize::from(gap % 32)));
            db.extend_from_slice(value);
            if gap >= 250 {
                db.extend_from_slice(value);
            }
        }
    };
    add(&base.image.sessions);
    add(&base.image.events);
    Raw { db, journal: base.image.files.iter().map(|(name, file)| (name.clone(), file.clone())).collect() }
}

fn pieces(db: &[u8]) -> Vec<Vec<u8>> {
    values::found(db).into_iter().map(<[u8]>::to_vec).collect()
}

fn journal_pieces(raw: &Raw) -> Vec<Vec<u8>> {
    raw.journal.iter().flat_map(|(_, file)| frames::found(file)).map(<[u8]>::to_vec).collect()
}

fn change(raw: &mut Raw, input: &mut Input<'_>) {
    let which = input.index(raw.journal.len() + 2);
    match raw.journal.get_mut(which.wrapping_sub(2)) {
        None => {
            let within = raw.db.len();
            if input.u8().is_multiple_of(4) {
                // A field of a value.
                let starts = values::starts(&raw.db);
                let start = starts.get(input.index(starts.len())).copied().unwrap_or_default();
                let (at, len) = values::FIELDS[input.index(values::FIELDS.len())];
                overwrite(&mut raw.db, start + at, &input.edge().to_be_bytes()[8 - len..]);
            } else {
                damage(input, &mut raw.db, within);
            }
        }
        Some((name, file)) => {
            let within = file.iter().rposition(|byte| *byte != 0).map_or(0, |last| last + 64);
            match input.u8() % 8 {
                0 => *name = format!("torn-{}", input.u8()),
                1 => *name = format!("segment-{}", input.edge()),
                2 => {
                    let starts = frames::starts(file);
                    let start = starts.get(input.index(starts.len())).copied().unwrap_or_default();
                    let (at, len) = frames::FIELDS[input.index(frames::FIELDS.len())];
                    overwrite(file, start + at, &input.edge().to_be_bytes()[8 - len..]);
                }
                _ => damage(input, file, within),
            }
        }
    }
}

/// `sound`: whose every piece with a right checksum is.
fn salvage(raw: &Raw, sound: Option<&Base>, deleted: bool) {
    let old = MemoryJournalFiles::new();
    let put = |name: &str, bytes: &[u8]| {
        // Two of a name: the first one counts.
        if let Ok(file) = old.create(name, bytes.len() as u64) {
            file.write_at(bytes, 0).expect("within the file");
        }
    };
    put("db", &raw.db);
    raw.journal.iter().for_each(|(name, file)| put(name, file));
    let (storage, files) = (MemoryStorage::new(), MemoryJournalFiles::new());
    let report = match Salvage::new().deleted(deleted).on(&old, &storage, &files) {
        Ok(report) => report,
        Err(error) => {
            let nothing = matches!(error, Error::NotAStore { .. });
            if !nothing {
                look_at_error(&error, &Trust::Forged);
            }
            return;
        }
    };
    let scanned = Scan::new().on(&storage, &files, [0; 16]).expect("memory has no faults");
    let trust = if sound.is_some() { Trust::Damaged(Default::default()) } else { Trust::Forged };
    if sound.is_some() {
        assert!(scanned.is_clean(), "{:?}\nafter {report:?}", scanned.findings);
    }
    let store = match quiet().open_on(Arc::new(storage), Arc::new(files)) {
        Ok(store) => store,
        Err(error) => {
            look_at_error(&error, &Trust::Forged);
            assert!(sound.is_none(), "{error:?}");
            return;
        }
    };
    let Some(base) = sound else {
        let names: Vec<String> = report.sessions.iter().map(|session| session.id.clone()).take(20).collect();
        read_all(&store, names.iter(), &Trust::Forged, Depth::EveryWay);
        return;
    };
    for session in &report.sessions {
        let Ok(id) = session.id.parse() else { continue };
        let found = store.session(&id).unwrap_or_else(|error| panic!("{}: {error:?}", session.id));
        let mut lines = Vec::new();
        for event in found.read_from(Seq::ZERO).expect("from its start").take(MAX_EVENTS) {
            match event {
                Ok(event) => lines.push(event.to_json()),
                // A fork whose parent was ended within its prefix says so there.
                Err(error) => {
                    look_at_error(&error, &trust);
                    break;
                }
            }
        }
        let true_ones = |truth: &Vec<String>| truth.starts_with(&lines);
        // One that has lost its header and its id has its storage key for a name, and one without its parent starts late.
        let known = base.truth.get(&session.id).map_or_else(|| base.truth.values().any(true_ones), true_ones);
        assert!(known || lines.is_empty(), "session {}: never a wrong event: {lines:?}", session.id);
    }
}
