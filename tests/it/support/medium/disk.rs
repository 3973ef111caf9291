//! What lies on the medium: for maps, files and names what is durable, what readers see, and the changes between.

use std::collections::BTreeMap;
use std::ops::Bound;

use sessionlog::storage::{Entry, Map};

use super::Image;
use crate::support::dice::Dice;

const SECTOR: usize = 512;

type Entries = BTreeMap<Vec<u8>, Vec<u8>>;
pub(super) type Change = (Vec<u8>, Option<Vec<u8>>);

#[derive(Clone, Debug, Default)]
pub(super) struct Disk {
    maps: [Entries; 4],
    durable_maps: [Entries; 4],
    /// Each is one insert or one batch.
    unflushed: Vec<(usize, Vec<Change>)>,
    files: BTreeMap<u64, File>,
    names: BTreeMap<String, u64>,
    durable_names: BTreeMap<String, u64>,
    unsynced_names: Vec<NameChange>,
    next_file: u64,
}

#[derive(Clone, Debug, Default)]
struct File {
    seen: Vec<u8>,
    durable: Vec<u8>,
    unsynced: Vec<(usize, Vec<u8>)>,
}

#[derive(Clone, Debug)]
enum NameChange {
    Create(String, u64),
    Rename(String, String),
    Remove(String),
}

/// Which part of the volatile changes a power cut keeps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kept {
    Nothing,
    Everything,
    /// A choice by sector, change and name.
    Any,
    /// The changes up to one, the last one torn.
    Prefix,
    /// All but the first change.
    AllButFirst,
}

fn number(map: Map) -> usize {
    Map::ALL.iter().position(|one| *one == map).unwrap()
}

fn put(entries: &mut Entries, changes: &[Change]) {
    for (key, value) in changes {
        match value {
            Some(value) => entries.insert(key.clone(), value.clone()),
            None => entries.remove(key),
        };
    }
}

/// Picks `true` or `false` for each of `count` changes in order.
fn choose(kept: Kept, count: usize, dice: &mut Dice) -> Vec<bool> {
    let end = dice.below(count as u64 + 1) as usize;
    let choose = |n: usize, dice: &mut Dice| match kept {
        Kept::Nothing => false,
        Kept::Everything => true,
        Kept::Any => dice.chance(1, 2),
        Kept::Prefix => n < end,
        Kept::AllButFirst => n > 0,
    };
    (0..count).map(|n| choose(n, dice)).collect()
}

impl Disk {
    // Maps.

    pub(super) fn get(&self, map: Map, key: &[u8]) -> Option<Vec<u8>> {
        self.maps[number(map)].get(key).cloned()
    }

    pub(super) fn first(&self, map: Map, from: Bound<&[u8]>, to: Bound<&[u8]>) -> Option<Entry> {
        let mut range = self.maps[number(map)].range::<[u8], _>((from, to));
        range.next().map(|(key, value)| (key.clone(), value.clone()))
    }

    pub(super) fn last(&self, map: Map, from: Bound<&[u8]>, to: Bound<&[u8]>) -> Option<Entry> {
        let mut range = self.maps[number(map)].range::<[u8], _>((from, to));
        range.next_back().map(|(key, value)| (key.clone(), value.clone()))
    }

    pub(super) fn change(&mut self, map: Map, changes: Vec<Change>) {
        put(&mut self.maps[number(map)], &changes);
        self.unflushed.push((number(map), changes));
    }

    pub(super) fn flush(&mut self) {
        for (map, changes) in self.unflushed.drain(..) {
            put(&mut self.durable_maps[map], &changes);
        }
    }

    pub(super) fn map_bytes(&self) -> u64 {
        let entries = self.maps.iter().flatten();
        entries.map(|(key, value)| (key.len() + value.len()) as u64).sum()
    }

    // Names.

    pub(super) fn names(&self) -> Vec<String> {
        self.names.keys().cloned().collect()
    }

    pub(super) fn number_of(&self, name: &str) -> Option<u64> {
        self.names.get(name).copied()
    }

    pub(super) fn name_of(&self, file: u64) -> String {
        let name = self.names.iter().find(|(_, number)| **number == file);
        name.map_or_else(|| format!("(removed {file})"), |(name, _)| name.clone())
    }

    /// A new file with `len` durable zero bytes under a name that is not durable.
    pub(super) fn create(&mut self, name: &str, len: usize) -> u64 {
        let number = self.next_file;
        self.next_file += 1;
        let file = File { seen: vec![0; len], durable: vec![0; len], unsynced: Vec::new() };
        self.files.insert(number, file);
        self.change_name(NameChange::Create(name.into(), number));
        number
    }

    pub(super) fn rename(&mut self, from: &str, to: &str) {
        self.change_name(NameChange::Rename(from.into(), to.into()));
    }

    pub(super) fn remove(&mut self, name: &str) {
        self.change_name(NameChange::Remove(name.into()));
    }

    fn change_name(&mut self, change: NameChange) {
        change.on(&mut self.names);
        self.unsynced_names.push(change);
    }

    pub(super) fn sync_folder(&mut self) {
        self.unsynced_names.clear();
        self.durable_names = self.names.clone();
    }

    // Files.

    pub(super) fn len(&self, file: u64) -> usize {
        self.files[&file].seen.len()
    }

    pub(super) fn read(&self, file: u64, buffer: &mut [u8], offset: usize) -> bool {
        let bytes = self.files[&file].seen.get(offset..offset + buffer.len());
        bytes.is_some_and(|bytes| {
            buffer.copy_from_slice(bytes);
            true
        })
    }

    pub(super) fn write(&mut self, file: u64, bytes: &[u8], offset: usize) {
        self.files.get_mut(&file).unwrap().write(bytes, offset);
    }

    /// Of a write, the bytes up to some sector or any choice of sectors.
    pub(super) fn write_in_part(&mut self, file: u64, bytes: &[u8], offset: usize, dice: &mut Dice) {
        let end = dice.below((bytes.len() / SECTOR + 2) as u64) as usize;
        let any = dice.chance(1, 2);
        for (n, (at, piece)) in sectors(offset, bytes).enumerate() {
            if if any { dice.chance(1, 2) } else { n < end } {
                self.write(file, piece, at);
            }
        }
    }

    pub(super) fn sync(&mut self, file: u64) {
        self.files.get_mut(&file).unwrap().sync();
    }

    /// A sync that fails: some sectors are durable, the others never will be by themselves, and all are seen.
    pub(super) fn sync_in_part(&mut self, file: u64, dice: &mut Dice) {
        let file = self.files.get_mut(&file).unwrap();
        let unsynced = std::mem::take(&mut file.unsynced);
        file.keep(unsynced, Kept::Any, dice);
    }

    // Crashes.

    pub(super) fn cut_power(&mut self, dice: &mut Dice) {
        const KINDS: [Kept; 5] =
            [Kept::Nothing, Kept::Everything, Kept::Any, Kept::Prefix, Kept::AllButFirst];
        let kept = KINDS[dice.below(5) as usize];
        let unflushed = std::mem::take(&mut self.unflushed);
        for ((map, changes), yes) in unflushed.iter().zip(choose(kept, unflushed.len(), dice)) {
            if yes {
                put(&mut self.durable_maps[*map], changes);
            }
        }
        self.maps = self.durable_maps.clone();
        for file in self.files.values_mut() {
            let unsynced = std::mem::take(&mut file.unsynced);
            file.keep(unsynced, kept, dice);
            file.seen.clone_from(&file.durable);
        }
        let changes = std::mem::take(&mut self.unsynced_names);
        for (change, yes) in changes.iter().zip(choose(kept, changes.len(), dice)) {
            if yes {
                change.on(&mut self.durable_names);
            }
        }
        self.names = self.durable_names.clone();
        let living: Vec<u64> = self.names.values().copied().collect();
        self.files.retain(|number, _| living.contains(number));
    }

    /// A power cut that keeps all but the first `lost` of the unsynced writes to files.
    pub(super) fn lose_first(&mut self, mut lost: usize) {
        for file in self.files.values_mut() {
            for (at, bytes) in std::mem::take(&mut file.unsynced) {
                if lost > 0 {
                    lost -= 1;
                } else {
                    file.durable[at..at + bytes.len()].copy_from_slice(&bytes);
                }
            }
            file.seen.clone_from(&file.durable);
        }
        self.flush();
        self.sync_folder();
    }

    // From outside.

    pub(super) fn file(&self, name: &str) -> Option<Vec<u8>> {
        Some(self.files[self.names.get(name)?].seen.clone())
    }

    pub(super) fn damage(&mut self, name: &str, change: impl FnOnce(&mut Vec<u8>)) {
        let file = self.files.get_mut(&self.names[name]).unwrap();
        file.sync();
        change(&mut file.seen);
        file.durable.clone_from(&file.seen);
    }

    pub(super) fn damage_value(&mut self, map: usize, n: usize, change: Option<impl FnOnce(&mut Vec<u8>)>) {
        self.flush();
        let key = self.maps[map].keys().nth(n).unwrap().clone();
        match change {
            Some(change) => change(self.maps[map].get_mut(&key).unwrap()),
            None => drop(self.maps[map].remove(&key)),
        }
        self.durable_maps[map].clone_from(&self.maps[map]);
    }

    pub(super) fn image(&self) -> Image {
        let maps = self.maps.iter().map(|map| map.clone().into_iter().collect()).collect();
        let files = self.names.iter().map(|(name, file)| (name.clone(), self.files[file].seen.clone()));
        Image { maps, files: files.collect() }
    }
}

impl NameChange {
    /// A change whose file is not there (an earlier change was lost) does nothing.
    fn on(&self, names: &mut BTreeMap<String, u64>) {
        match self {
            Self::Create(name, file) => {
                names.insert(name.clone(), *file);
            }
            Self::Rename(from, to) => {
                if let Some(file) = names.remove(from) {
                    names.insert(to.clone(), file);
                }
            }
            Self::Remove(name) => {
                names.remove(name);
            }
        }
    }
}

impl File {
    fn write(&mut self, bytes: &[u8], offset: usize) {
        self.seen[offset..offset + bytes.len()].copy_from_slice(bytes);
        self.unsynced.push((offset, bytes.to_vec()));
    }

    fn sync(&mut self) {
        for (at, bytes) in self.unsynced.drain(..) {
            self.durable[at..at + bytes.len()].copy_from_slice(&bytes);
        }
    }

    /// Makes part of the writes durable: each sector keeps its changes up to one of them.
    fn keep(&mut self, writes: Vec<(usize, Vec<u8>)>, kept: Kept, dice: &mut Dice) {
        let last = dice.below(writes.len() as u64 + 1) as usize;
        let mut given_up = BTreeMap::new();
        for (n, (offset, bytes)) in writes.iter().enumerate() {
            let torn = dice.below(bytes.len() as u64 / SECTOR as u64 + 1) as usize;
            for (piece_number, (at, piece)) in sectors(*offset, bytes).enumerate() {
                let yes = match kept {
                    Kept::Nothing => false,
                    Kept::Everything => true,
                    Kept::AllButFirst => n > 0,
                    Kept::Prefix => n < last || (n == last && piece_number < torn),
                    Kept::Any => {
                        let over = given_up.entry(at / SECTOR).or_insert(false);
                        *over = *over || dice.chance(1, 3);
                        !*over
                    }
                };
                if yes {
                    self.durable[at..at + piece.len()].copy_from_slice(piece);
                }
            }
        }
    }
}

/// Cuts a write where sectors of the file begin.
fn sectors(offset: usize, bytes: &[u8]) -> impl Iterator<Item = (usize, &[u8])> {
    let mut done = 0;
    std::iter::from_fn(move || {
        let at = offset + done;
        let len = (SECTOR - at % SECTOR).min(bytes.len() - done);
        let piece = &bytes[done..done + len];
        done += len;
        (len > 0).then_some((at, piece))
    })
}
