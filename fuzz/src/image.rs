//! A store in memory as plain bytes: what a kill leaves, or an orderly close.

use std::collections::BTreeMap;
use std::ops::Bound::Unbounded;
use std::sync::Arc;

use crate::base::SEGMENT_BYTES;
use sessionlog::storage::{JournalFiles, Map, MemoryJournalFiles, MemoryStorage, Storage};
use sessionlog::{Result, Store, StoreOptions};

/// The entries of a map.
pub type Entries = BTreeMap<Vec<u8>, Vec<u8>>;

/// The bytes of a store.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Image {
    pub sessions: Entries,
    pub events: Entries,
    /// The journal's files.
    pub files: BTreeMap<String, Vec<u8>>,
}

/// Both seams of a store in memory, to be opened again and again.
#[derive(Clone, Debug, Default)]
pub struct Seams {
    storage: MemoryStorage,
    files: MemoryJournalFiles,
}

impl Seams {
    /// Opens a store on them.
    pub fn open(&self, options: StoreOptions) -> Result<Store> {
        options.open_on(Arc::new(self.storage.clone()), Arc::new(self.files.clone()))
    }

    /// Copies all bytes, also while a store is open on them: that is what a kill leaves.
    pub fn image(&self) -> Image {
        let entries = |map| {
            self.storage.range(map, Unbounded, Unbounded).map(|entry| entry.expect("memory has no faults"))
        };
        let bytes = |name: &String| {
            let file = self.files.open(name).expect("it was listed");
            let len = file.len().expect("memory has no faults");
            let mut bytes = vec![0; usize::try_from(len).expect("it is in memory")];
            file.read_at(&mut bytes, 0).expect("memory has no faults");
            bytes
        };
        let names = self.files.list().expect("memory has no faults");
        Image {
            sessions: entries(Map::Sessions).collect(),
            events: entries(Map::Events).collect(),
            files: names.into_iter().map(|name| (name.clone(), bytes(&name))).collect(),
        }
    }
}

/// Gives a file that is kept without the zeros at its end a size that segments are made with.
fn whole_segment(file: &mut Vec<u8>) {
    file.resize(file.len().next_multiple_of(SEGMENT_BYTES).max(SEGMENT_BYTES), 0);
}

impl Image {
    /// The same with segments of the sizes that they are made with: others are refused before they are looked at.
    pub fn with_whole_segments(mut self) -> Self {
        let segments = self.files.iter_mut().filter(|(name, _)| name.starts_with("segment-"));
        segments.for_each(|(_, file)| whole_segment(file));
        self
    }

    /// Lays the bytes down where a store can be opened on them.
    pub fn seams(&self) -> Seams {
        let seams = Seams::default();
        for (map, entries) in [(Map::Sessions, &self.sessions), (Map::Events, &self.events)] {
            for (key, value) in entries {
                seams.storage.insert(map, key, value).expect("memory has no faults");
            }
        }
        for (name, bytes) in &self.files {
            let file = seams.files.create(name, bytes.len() as u64).expect("a name stands once");
            file.write_at(bytes, 0).expect("within the file");
        }
        seams
    }
}
