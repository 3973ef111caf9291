//! A store in memory whose values and files can be changed while it is closed.

use std::collections::BTreeMap;
use std::ops::Bound;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use sessionlog::storage::{JournalFiles, Map, MemoryJournalFiles, MemoryStorage, Storage};
use sessionlog::{
    Finding, FindingKind, NewEvent, Repair, RepairReport, Scan, ScanReport, Seq, Session, Severity, Store,
    StoreOptions,
};

pub(crate) type Entry = (Vec<u8>, Vec<u8>);

/// Both seams.
#[derive(Clone, Debug, Default)]
pub(crate) struct Bytes {
    pub(crate) storage: MemoryStorage,
    pub(crate) files: MemoryJournalFiles,
}

impl Bytes {
    pub(crate) fn new() -> Self {
        Self { storage: MemoryStorage::new(), files: MemoryJournalFiles::new() }
    }

    /// Opens a store that drains only when it is asked to.
    pub(crate) fn open(&self) -> sessionlog::Result<Store> {
        let quiet =
            StoreOptions::new().drain_age(Duration::from_secs(3_600)).sync_window(Duration::from_secs(3_600));
        quiet.open_on(Arc::new(self.storage.clone()), Arc::new(self.files.clone()))
    }

    pub(crate) fn all(&self, map: Map) -> Vec<Entry> {
        self.storage
            .range(map, Bound::Unbounded, Bound::Unbounded)
            .collect::<sessionlog::Result<_>>()
            .unwrap()
    }

    /// The entries of a map whose keys begin with `prefix`.
    pub(crate) fn with(&self, map: Map, prefix: &[u8]) -> Vec<Entry> {
        self.all(map).into_iter().filter(|(key, _)| key.starts_with(prefix)).collect()
    }

    pub(crate) fn put(&self, map: Map, key: &[u8], value: &[u8]) {
        self.storage.insert(map, key, value).unwrap();
    }

    pub(crate) fn remove(&self, map: Map, key: &[u8]) {
        self.storage.apply(map, &[(key.to_vec(), None)]).unwrap();
    }

    /// Both seams as they are now, apart: what a kill leaves.
    pub(crate) fn copy(&self) -> Self {
        let copy = Self::new();
        for map in Map::ALL {
            self.all(map).iter().for_each(|(key, value)| copy.put(map, key, value));
        }
        for name in self.files.list().unwrap() {
            copy.write_file(&name, &self.file(&name));
        }
        copy
    }

    pub(crate) fn file(&self, name: &str) -> Vec<u8> {
        let file = self.files.open(name).unwrap();
        let mut bytes = vec![0; usize::try_from(file.len().unwrap()).unwrap()];
        file.read_at(&mut bytes, 0).unwrap();
        bytes
    }

    pub(crate) fn write_file(&self, name: &str, bytes: &[u8]) {
        if self.files.list().unwrap().iter().any(|there| there == name) {
            self.files.remove(name).unwrap();
        }
        self.files.create(name, bytes.len() as u64).unwrap().write_at(bytes, 0).unwrap();
    }

    pub(crate) fn scan(&self) -> ScanReport {
        Scan::new().on(&self.storage, &self.files, [0; 16]).unwrap()
    }

    pub(crate) fn plan(&self) -> RepairReport {
        Repair::on(&self.storage, &self.files, [0; 16], false).unwrap()
    }

    pub(crate) fn repair(&self) -> RepairReport {
        Repair::on(&self.storage, &self.files, [0; 16], true).unwrap()
    }
}

/// The findings that are errors.
pub(crate) fn errors(report: &ScanReport) -> Vec<&Finding> {
    report.findings.iter().filter(|finding| finding.severity == Severity::Error).collect()
}

/// The kinds of the findings that are errors, each once, in order.
pub(crate) fn kinds(report: &ScanReport) -> Vec<FindingKind> {
    let mut kinds: Vec<FindingKind> = Vec::new();
    for finding in errors(report) {
        if !kinds.contains(&finding.kind) {
            kinds.push(finding.kind);
        }
    }
    kinds
}

/// Changes the payload of a value and makes length and checksum right again: what a program with a fault would write.
pub(crate) fn forged(value: &[u8], change: impl FnOnce(&mut Vec<u8>)) -> Vec<u8> {
    let mut payload = value[52..].to_vec();
    change(&mut payload);
    reseal([&value[..52], &payload].concat())
}

/// Makes length and checksum of a value right.
pub(crate) fn reseal(mut value: Vec<u8>) -> Vec<u8> {
    let len = u32::try_from(value.len() - 52).unwrap();
    value[44..48].copy_from_slice(&len.to_be_bytes());
    let mut hasher = crc32fast::Hasher::new();
    hasher.update(&value[..48]);
    hasher.update(&value[52..]);
    let crc = hasher.finalize();
    value[48..52].copy_from_slice(&crc.to_be_bytes());
    value
}

/// Where frames start in a file of the journal, and how long they say they are.
pub(crate) fn frames(file: &[u8]) -> Vec<std::ops::Range<usize>> {
    const MAGIC: [u8; 8] = [0xff, b'S', b'L', b'f', b'r', b'a', b'm', b'e'];
    let (places, _) = file.as_chunks::<8>();
    let starts = places.iter().enumerate().filter(|(_, place)| **place == MAGIC).map(|(index, _)| index * 8);
    let end =
        |start: usize| start + u32::from_be_bytes(file[start + 8..start + 12].try_into().unwrap()) as usize;
    starts.map(|start| start..end(start)).collect()
}

/// The frame with the `nth` highest commit number, counted from 0: its file, and where it stands there.
pub(crate) fn newest_frame(bytes: &Bytes, nth: usize) -> (String, std::ops::Range<usize>) {
    let names = bytes.files.list().unwrap().into_iter().filter(|name| name.starts_with("segment-"));
    let mut all = Vec::new();
    for name in names {
        let file = bytes.file(&name);
        all.extend(frames(&file).into_iter().map(|frame| {
            (
                u64::from_be_bytes(file[frame.start + 40..frame.start + 48].try_into().unwrap()),
                name.clone(),
                frame,
            )
        }));
    }
    all.sort_by_key(|(commit, ..)| std::cmp::Reverse(*commit));
    let (_, name, frame) = all.swap_remove(nth);
    (name, frame)
}

/// Text that does not compress.
pub(crate) fn noise(seed: u64, len: usize) -> String {
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    let mut text = String::new();
    while text.len() < len {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        text.push(char::from(33 + u8::try_from((state >> 40) % 90).unwrap()));
    }
    text.replace(['"', '\\'], "x")
}

/// Appends so many messages to a session.
pub(crate) fn say(session: &Session, count: u64) {
    let len = session.len();
    session.append_batch((len..len + count).map(|n| NewEvent::user_message(format!("message {n}")))).unwrap();
}

/// All of a session.
pub(crate) fn lines(session: &Session) -> Vec<String> {
    session.read_from(Seq::ZERO).unwrap().map(|event| event.unwrap().to_string()).collect()
}

/// All files below a folder, and what is in them.
pub(crate) fn contents(path: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let mut all = BTreeMap::new();
    for entry in std::fs::read_dir(path).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            all.extend(contents(&path));
        } else {
            all.insert(path.clone(), std::fs::read(&path).unwrap());
        }
    }
    all
}

/// Copies a folder with all that is in it.
pub(crate) fn copy_folder(from: &Path, to: &Path) {
    std::fs::create_dir_all(to).unwrap();
    for entry in std::fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        let target = to.join(entry.file_name());
        if entry.file_type().unwrap().is_dir() {
            copy_folder(&entry.path(), &target);
        } else {
            std::fs::copy(entry.path(), target).unwrap();
        }
    }
}
