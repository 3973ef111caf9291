//! Repair: what is derived is made anew, leftovers are finished, and what cannot be read goes into quarantine. Only on
//! request, and planned before it is done.
//!
//! It works on both seams, without replay, drain or a live store, so that salvage can call it on values that were
//! carved out of damaged files. Each change is made durable behind a copy of what it replaces; a repair that was
//! interrupted goes on where it is begun again, and one that is repeated finds nothing to do.

mod events;
mod headers;
mod journal;
mod relations;

use std::collections::BTreeMap;
use std::ops::Bound;
use std::path::{Path, PathBuf};

use super::copies::Copies;
use super::journal::{Frames, JournalBytes, Pending};
use super::overlay::Overlay;
use super::view::View;
use super::walk::Buffers;
use super::work::{RemedyKind, RepairReport, Work};
use crate::error::{Error, Place, Result};
use crate::format::{self, Drained, FORMAT_VERSION, Opened, WriteNumber};
use crate::id::StorageKey;
use crate::storage::{JournalFiles, Map, Storage, Witness};
use crate::store::Parts;

/// What is repaired. Nobody else uses it meanwhile.
#[derive(Clone, Copy)]
pub(crate) struct Ground<'a> {
    pub(crate) storage: &'a dyn Storage,
    pub(crate) files: &'a dyn JournalFiles,
    pub(crate) store_id: [u8; 16],
}

/// Whether it is done.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Mode<'a> {
    /// Nothing is written.
    Plan,
    /// It is done; a new folder in `copies` keeps what is changed as it was.
    Apply { copies: Option<&'a Path> },
}

/// A repair of the store in a folder: planned first, then done or not.
///
/// # Examples
/// ```
/// # fn main() -> sessionlog::Result<()> {
/// # let folder = tempfile::tempdir().unwrap();
/// # let path = folder.path().join("sessions");
/// # sessionlog::Store::open(&path)?.close()?;
/// let repair = sessionlog::Repair::folder(&path)?;
/// for mend in &repair.plan().remedies {
///     println!("{mend}");
/// }
/// let done = repair.apply()?;
/// assert!(done.is_empty());
/// # Ok(()) }
/// ```
pub struct Repair {
    parts: Parts,
    plan: RepairReport,
}

impl std::fmt::Debug for Repair {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Repair").field("plan", &self.plan).finish_non_exhaustive()
    }
}

impl Repair {
    /// Opens the store in `path`, which nobody has open, and plans its repair. Nothing of it is changed (the engine may
    /// rewrite files of its own).
    ///
    /// # Cost
    /// Reads and hashes all events. Memory: what would be changed.
    /// # Errors
    /// As [`Scan::folder`](crate::Scan::folder). [`Error::UnsupportedFormat`]: something in it was written by a newer
    /// program, which is the one to repair it. [`Error::Corrupt`] of the engine: it cannot read its files; `salvage` is
    /// for that.
    pub fn folder(path: impl AsRef<Path>) -> Result<Self> {
        let parts = Parts::open(path.as_ref())?;
        match repair(&ground(&parts), &Mode::Plan) {
            Ok(plan) => Ok(Self { parts, plan }),
            Err(error) => parts.close(Err(error)),
        }
    }

    /// Returns what is to be done.
    pub fn plan(&self) -> &RepairReport {
        &self.plan
    }

    /// Does it. What is changed is kept, as it was, in a new folder `repair-N` in the store's: `values.jsonl` with a
    /// JSON object a line (`map`, `key`, `value`: hexadecimal, `null` where nothing was), and the journal's files where
    /// those are changed.
    ///
    /// # Durability
    /// Every change is durable behind its copy. Interrupted anywhere, a repair that is begun again comes to the same end.
    /// # Errors
    /// [`Error::Io`], [`Error::Failed`], [`Error::Storage`]: begin again.
    pub fn apply(self) -> Result<RepairReport> {
        let copies: PathBuf = self.parts.folder.path().to_owned();
        if !self.plan.is_empty() {
            // The record that it is compared with may be made anew from what is left.
            Witness::forget(&copies)?;
        }
        let done = repair(&ground(&self.parts), &Mode::Apply { copies: Some(&copies) });
        self.parts.close(done)
    }

    /// Plans (`apply`: false) or does a repair of what stands behind both seams, which nobody uses meanwhile.
    ///
    /// `store_id`: zeros for a store that was opened on seams.
    ///
    /// # Errors
    /// As [`folder`](Self::folder) and [`apply`](Self::apply).
    pub fn on(
        storage: &dyn Storage,
        files: &dyn JournalFiles,
        store_id: [u8; 16],
        apply: bool,
    ) -> Result<RepairReport> {
        let mode = if apply { Mode::Apply { copies: None } } else { Mode::Plan };
        repair(&Ground { storage, files, store_id }, &mode)
    }
}

fn ground(parts: &Parts) -> Ground<'_> {
    Ground { storage: parts.storage.as_ref(), files: parts.files.as_ref(), store_id: parts.store_id }
}

/// Plans or does a repair. What salvage carved needs no more than blocks: see the module.
pub(crate) fn repair(ground: &Ground<'_>, mode: &Mode<'_>) -> Result<RepairReport> {
    let bytes = JournalBytes::read(ground.files)?;
    let overlay = Overlay::new(ground.storage);
    let plan = Mending::begin(ground, &bytes, &overlay, false, None)?.run()?;
    let Mode::Apply { copies } = mode else { return Ok(plan) };
    if plan.is_empty() {
        return Ok(plan);
    }
    let copies = copies.map(Copies::make).transpose()?;
    Mending::begin(ground, &bytes, ground.storage, true, copies)?.run()
}

/// A repair under way.
struct Mending<'a> {
    ground: Ground<'a>,
    bytes: &'a JournalBytes,
    frames: Frames<'a>,
    pending: BTreeMap<StorageKey, Pending<'a>>,
    work: Work<'a>,
    mark: WriteNumber,
    /// Whether the mark is sound, or rightly absent.
    marked: bool,
    buffers: Buffers,
}

impl<'a> Mending<'a> {
    fn begin(
        ground: &Ground<'a>,
        bytes: &'a JournalBytes,
        storage: &'a dyn Storage,
        real: bool,
        copies: Option<Copies>,
    ) -> Result<Self> {
        let nothing = BTreeMap::new();
        let view = View { storage, pending: &nothing };
        let drained = view.drained()?;
        let has_blocks = storage.range(Map::Events, Bound::Unbounded, Bound::Unbounded).next().is_some();
        // Blocks without anything: all records are lost.
        let through = view.through()?.filter(|through| *through > 0 || drained.is_some() || !has_blocks);
        let marked = through.is_some();
        let frames = Frames::of(bytes, ground.store_id, through);
        if let Some((found, spot)) = frames.newer {
            return Err(newer(Place::new("journal frame").at(bytes.name(spot)), found));
        }
        let pending = frames.pending(&mut |_| {});
        let open_count = open_count(storage)?;
        let known = open_count.is_some();
        let count = match open_count {
            Some(count) => count,
            None => newest(storage)?,
        };
        let mut mending = Self {
            ground: *ground,
            bytes,
            frames,
            pending,
            work: Work::new(storage, real, copies, count.saturating_add(1)),
            mark: drained.map(|(_, mark)| mark).unwrap_or_default(),
            marked,
            buffers: Buffers::default(),
        };
        mending.count_open(count.saturating_add(1), known)?;
        Ok(mending)
    }

    /// Counts the repair as an open: its write numbers are above all earlier ones.
    fn count_open(&mut self, count: u32, known: bool) -> Result<()> {
        let is_empty =
            |map| self.work.storage.range(map, Bound::Unbounded, Bound::Unbounded).next().is_none();
        let no_frames = self.frames.counting().next().is_none();
        if !known && no_frames && is_empty(Map::Sessions) && is_empty(Map::Events) {
            // Nothing is there at all.
            return Ok(());
        }
        let number = self.work.number();
        let value = format::encode_opened(Opened { count }, number);
        self.work.change(Map::Sessions, &[(format::OPENED_KEY.to_vec(), Some(value))])?;
        if !known {
            self.work.say(RemedyKind::Rebuilt, None, None, "the open count");
        }
        Ok(())
    }

    fn view(&self) -> View<'_> {
        View { storage: self.work.storage, pending: &self.pending }
    }

    fn run(mut self) -> Result<RepairReport> {
        self.headers()?;
        for key in self.keys(true)? {
            self.events(key)?;
        }
        for key in self.keys(false)? {
            self.relations(key)?;
        }
        self.records()?;
        self.care()?;
        self.journal()?;
        if !self.work.report.is_empty() {
            // A parent may have become shorter, or be one that only the journal makes, since its forks were looked at.
            for key in self.keys(false)? {
                self.relations(key)?;
            }
        }
        self.drained_mark()?;
        self.derived()?;
        Ok(self.work.report)
    }

    /// The storage keys of all sessions that have a header; with those of which only the journal knows.
    fn keys(&self, with_pending: bool) -> Result<Vec<StorageKey>> {
        let mut keys = Vec::new();
        for entry in super::view::entries(self.work.storage, Map::Sessions, format::HEADER_PREFIX) {
            keys.extend(format::parse_tagged_key(format::HEADER_PREFIX, &entry?.0));
        }
        if with_pending {
            let created = self.pending.iter().filter(|(_, pending)| pending.created.is_some());
            keys.extend(created.map(|(key, _)| *key));
            keys.sort_unstable();
            keys.dedup();
        }
        Ok(keys)
    }

    /// Without a mark nothing was drained, which is believed only where storage has no session.
    fn drained_mark(&mut self) -> Result<()> {
        if self.view().through()?.is_some() {
            return Ok(());
        }
        self.work.say(RemedyKind::Rebuilt, None, None, "the drained mark");
        let number = self.work.number();
        let mark = format::encode_drained(Drained { through: self.frames.drained }, number);
        self.work.change(Map::Sessions, &[(format::DRAINED_KEY.to_vec(), Some(mark))])
    }

    /// Projections may have seen what does not count any more.
    fn derived(&mut self) -> Result<()> {
        if !self.work.cut {
            return Ok(());
        }
        let mut keys = Vec::new();
        for entry in self.work.storage.range(Map::Derived, Bound::Unbounded, Bound::Unbounded) {
            keys.push((entry?.0, None));
        }
        if keys.is_empty() {
            return Ok(());
        }
        self.work.say(
            RemedyKind::Removed,
            None,
            None,
            "checkpoints: they are made anew when they are wanted",
        );
        self.work.change(Map::Derived, &keys)
    }
}

fn newer(place: Place, found: u32) -> Error {
    Error::UnsupportedFormat { place, found, known: u32::from(FORMAT_VERSION) }
}

/// The open count, if its record is sound.
fn open_count(storage: &dyn Storage) -> Result<Option<u32>> {
    let value = storage.get(Map::Sessions, format::OPENED_KEY)?;
    Ok(value.and_then(|value| format::decode_opened(&value).ok()).map(|opened| opened.count))
}

/// The open count in the greatest write number of all values.
fn newest(storage: &dyn Storage) -> Result<u32> {
    let mut newest = WriteNumber::default();
    for map in Map::ALL {
        for entry in storage.range(map, Bound::Unbounded, Bound::Unbounded) {
            newest = newest.max(format::write_number(&entry?.1).unwrap_or_default());
        }
    }
    Ok(u32::try_from(newest.0 >> 32).unwrap_or(u32::MAX))
}
