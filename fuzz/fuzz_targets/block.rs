//! Reading and going on with a store whose values are damaged, or forged behind right checksums.

#![no_main]

use libfuzzer_sys::fuzz_target;
use sessionlog_fuzz::base::{CLOSED, quiet};
use sessionlog_fuzz::image::{Entries, Image};
use sessionlog_fuzz::input::{Input, damage, overwrite};
use sessionlog_fuzz::reads::{Depth, Trust, Truth, go_on, look_at_error, read_all};
use sessionlog_fuzz::values;

sessionlog_fuzz::limit_memory!();

/// More damage than this teaches nothing.
const MAX_CHANGES: usize = 16;

fuzz_target!(|bytes: &[u8]| {
    let mut input = Input::new(bytes);
    let flags = input.u8();
    let base = &CLOSED[usize::from(flags & 1)];
    let mut image = base.image.clone();
    for _ in 0..MAX_CHANGES {
        if input.is_empty() {
            break;
        }
        let fix = flags & 2 != 0;
        if input.coin() {
            change(&mut image.events, &image.sessions, &mut input, fix);
        } else {
            let mut sessions = std::mem::take(&mut image.sessions);
            change(&mut sessions, &base.image.sessions, &mut input, fix);
            image.sessions = sessions;
        }
    }
    let sound = values::whole(&base.image);
    let forged = values::whole(&image).into_iter().any(|value| !sound.contains(value));
    let trust = if forged { Trust::Forged } else { Trust::Damaged(base.truth.clone()) };
    open(&image, &base.truth, trust);
});

fn nth(entries: &Entries, input: &mut Input<'_>) -> Vec<u8> {
    let index = input.index(entries.len());
    entries.keys().nth(index).cloned().unwrap_or_default()
}

/// Damages one entry. `sessions`: where storage keys are found that mean something.
fn change(entries: &mut Entries, sessions: &Entries, input: &mut Input<'_>, fix: bool) {
    let mut key = nth(entries, input);
    let Some(mut value) = entries.remove(&key) else { return };
    match input.u8() % 12 {
        0..=2 => {
            let within = value.len();
            damage(input, &mut value, within);
        }
        // Behind the envelope.
        3 => {
            let payload = value.split_off(values::ENVELOPE_LEN.min(value.len()));
            let mut payload = payload;
            let within = payload.len();
            damage(input, &mut payload, within);
            value.append(&mut payload);
        }
        4 | 5 => {
            let (at, len) = values::FIELDS[input.index(values::FIELDS.len())];
            overwrite(&mut value, at, &input.edge().to_be_bytes()[8 - len..]);
        }
        6 => {
            let other = nth(sessions, input);
            let key_of = |value: &Vec<u8>| value.get(values::KEY).map(<[u8]>::to_vec);
            let storage_key = sessions.get(&other).and_then(key_of);
            // Where a parent or a child is named, or anywhere.
            let keys: Vec<_> = sessions.values().filter_map(key_of).collect();
            let named = |window: &[u8]| keys.iter().any(|key| key == window);
            let payload = value.get(values::ENVELOPE_LEN..).unwrap_or_default();
            let at = match payload.windows(values::KEY.len()).position(named) {
                Some(at) if input.coin() => values::ENVELOPE_LEN + at,
                _ => input.index(value.len()),
            };
            overwrite(&mut value, at, &storage_key.unwrap_or_default());
        }
        7 => {
            value.truncate(values::ENVELOPE_LEN);
            value.extend_from_slice(input.piece());
        }
        8 => return,
        9 => {
            let other = nth(entries, input);
            if let Some(other) = entries.get_mut(&other) {
                std::mem::swap(&mut value, other);
            }
        }
        10 => {
            entries.insert(key.clone(), value.clone());
            move_key(&mut key, input);
        }
        _ => move_key(&mut key, input),
    }
    if fix {
        if input.coin() {
            values::rekey(&key, &mut value);
        }
        values::fix(&mut value);
    }
    entries.insert(key, value);
}

fn move_key(key: &mut Vec<u8>, input: &mut Input<'_>) {
    if input.coin() {
        // Another seq, of the same session.
        overwrite(key, 16, &input.edge().to_be_bytes());
    } else {
        let within = key.len();
        damage(input, key, within);
    }
}

/// Opens the store, reads it, goes on with it, and does so once more after a close.
fn open(image: &Image, names: &Truth, mut trust: Trust) {
    let seams = image.seams();
    for goes_on in [true, false] {
        let store = match seams.open(quiet()) {
            Ok(store) => store,
            Err(error) => return look_at_error(&error, &trust),
        };
        if goes_on {
            read_all(&store, names.keys(), &trust, Depth::EveryWay);
            go_on(&store, names.keys(), &mut trust);
        }
        read_all(&store, names.keys(), &trust, Depth::Forward);
        if let Err(error) = store.close() {
            look_at_error(&error, &trust);
        }
    }
}
