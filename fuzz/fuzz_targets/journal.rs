//! Opening a store whose journal is damaged, or is anything at all: the truth or a typed error, and nothing lost that
//! no damage was done to.

#![no_main]

use libfuzzer_sys::fuzz_target;
use sessionlog::Error;
use sessionlog_fuzz::base::{KILLED, quiet};
use sessionlog_fuzz::frames;
use sessionlog_fuzz::image::Image;
use sessionlog_fuzz::input::{Input, damage, overwrite};
use sessionlog_fuzz::reads::{Depth, Trust, Truth, go_on, look_at_error, read_all, truth_of};

sessionlog_fuzz::limit_memory!();

/// More damage than this teaches nothing.
const MAX_CHANGES: usize = 24;

fuzz_target!(|bytes: &[u8]| {
    let mut input = Input::new(bytes);
    let flags = input.u8();
    match KILLED.get(usize::from(flags % 4)) {
        Some(base) => {
            let mut image = base.image.clone();
            for _ in 0..MAX_CHANGES {
                if input.is_empty() {
                    break;
                }
                change(&mut image, &mut input);
            }
            if flags & 4 != 0 {
                image.files.values_mut().for_each(|file| frames::fix(file));
            }
            // Files that were cut short are refused at once; most should not be.
            if flags & 24 != 24 {
                image = image.with_whole_segments();
            }
            let sound = frames::whole(&base.image);
            let forged = frames::whole(&image).into_iter().any(|frame| !sound.contains(frame));
            open(&image, if forged { None } else { Some((&base.truth, &base.drained)) });
        }
        None => {
            let mut image = Image::default();
            let rest = input.rest();
            let (first, second) = rest.split_at(if flags & 8 == 0 { rest.len() } else { rest.len() / 2 });
            for (name, bytes) in [("segment-1", first), ("segment-2", second)] {
                let mut file = bytes.to_vec();
                if flags & 4 != 0 {
                    frames::fix(&mut file);
                }
                image.files.insert(name.into(), file);
            }
            open(&if flags & 48 == 48 { image } else { image.with_whole_segments() }, None);
        }
    }
});

/// Damages one of the journal's files, or all of them together.
fn change(image: &mut Image, input: &mut Input<'_>) {
    let names: Vec<String> = image.files.keys().cloned().collect();
    let (first, second) = (input.index(names.len()), input.index(names.len()));
    let (Some(name), Some(other)) = (names.get(first), names.get(second)) else { return };
    let mut file = image.files.remove(name).unwrap_or_default();
    let used = file.iter().rposition(|byte| *byte != 0).map_or(0, |last| last + 64);
    match input.u8() % 10 {
        0..=2 => damage(input, &mut file, used),
        3 | 4 => {
            let starts = frames::starts(&file);
            let start = starts.get(input.index(starts.len())).copied().unwrap_or_default();
            let (at, len) = frames::FIELDS[input.index(frames::FIELDS.len())];
            overwrite(&mut file, start + at, &input.edge().to_be_bytes()[8 - len..]);
        }
        5 => {
            let starts = frames::starts(&file);
            let from = starts.get(input.index(starts.len())).copied().unwrap_or_default();
            let to = starts.get(input.index(starts.len())).copied().unwrap_or_default();
            let end = (from + input.index(4096)).min(file.len());
            let piece = file[from..end].to_vec();
            overwrite(&mut file, to, &piece);
        }
        6 => {
            if let Some(other) = image.files.get_mut(other) {
                std::mem::swap(&mut file, other);
            }
        }
        7 => return,
        8 => {
            image.files.insert(new_name(input), file);
            return;
        }
        _ => {
            image.files.insert(new_name(input), file.clone());
        }
    }
    image.files.insert(name.clone(), file);
}

fn new_name(input: &mut Input<'_>) -> String {
    let kind = ["segment", "new", "torn", "segment-"][input.index(4)];
    format!("{kind}-{}", input.edge())
}

/// Opens the store, reads it, goes on with it, and does so once more after a close. `sound`: what all frames say that
/// are whole, and what is drained; `None` when some were made up.
fn open(image: &Image, sound: Option<(&Truth, &Truth)>) {
    let seams = image.seams();
    let store = match seams.open(quiet()) {
        Ok(store) => store,
        Err(error) => {
            look_at_error(&error, &Trust::Forged);
            assert!(matches!(error, Error::Corrupt { .. } | Error::UnsupportedFormat { .. }), "{error:?}");
            if sound.is_some() {
                let after = seams.image();
                assert_eq!(after.files, image.files, "an open that fails deletes nothing");
                assert_eq!(after.events, image.events, "an open that fails changes nothing");
            }
            return;
        }
    };
    let no_names = Truth::new();
    let mut names = sound.map_or(&no_names, |(truth, _)| truth).clone();
    let mut trust = match sound {
        Some((truth, drained)) => Trust::Damaged(found(&store, truth, drained)),
        None => {
            names = listed(&store);
            Trust::Forged
        }
    };
    read_all(&store, names.keys(), &trust, Depth::EveryWay);
    if let Trust::Damaged(found) = &trust {
        names = found.clone();
        let report = store.scan().expect("the store is open");
        assert!(report.is_clean(), "{:?}", report.findings);
    }
    go_on(&store, names.keys(), &mut trust);
    read_all(&store, names.keys(), &trust, Depth::Forward);
    let closed = store.close();
    drop(store);
    if let Err(error) = closed {
        look_at_error(&error, &trust);
    }
    match seams.open(quiet()) {
        Ok(store) => {
            read_all(&store, names.keys(), &trust, Depth::Forward);
            if let Trust::Damaged(truth) = &trust {
                assert_eq!(store.open_report().replayed_commits, 0, "a clean open replays nothing");
                assert_eq!(truth_of(&store), *truth, "an orderly close loses nothing");
            }
        }
        Err(error) => {
            look_at_error(&error, &trust);
            assert!(matches!(trust, Trust::Forged), "{error:?}");
        }
    }
}

/// What an opened store holds: of each session no more than the truth, and no less than what is in blocks.
fn found(store: &sessionlog::Store, truth: &Truth, drained: &Truth) -> Truth {
    let found = truth_of(store);
    for (name, lines) in &found {
        let truth = truth.get(name).unwrap_or_else(|| panic!("there never was a session {name}"));
        assert!(truth.starts_with(lines), "session {name}: never a wrong event");
    }
    for (name, lines) in drained {
        assert!(found.get(name).is_some_and(|found| found.starts_with(lines)), "session {name} is in blocks");
    }
    found
}

fn listed(store: &sessionlog::Store) -> Truth {
    let infos = store.list().expect("the store is open").flatten();
    infos.take(20).map(|info| (info.header.id.to_string(), Vec::new())).collect()
}
