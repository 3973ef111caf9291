//! The journal's frames: which of them the engine does not have, and taking them into the new journal.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use std::path::PathBuf;

use super::RawFile;
use super::report::SalvageReport;
use crate::error::{Error, Result};
use crate::format::{self, Action, FrameBuilder, FrameFault, FrameView, Hash, Summary, WriteNumbers};
use crate::id::{StorageKey, Timestamp};
use crate::integrity::carve::Raw;
use crate::log::journal::segment_size;
use crate::storage::{JournalFiles, Map, Storage};

const SEGMENT: &str = "segment-";
const TORN: &str = "torn-";
/// What the new journal's file is called.
const NEW_SEGMENT: &str = "segment-1";
/// More than a journal's file has. What lies behind is not looked at.
const MAX_FILE_BYTES: u64 = 512 << 20;
/// Bytes read at a time, and given up at a time.
const PIECE_BYTES: usize = 64 * 1024;

/// Whether a file of this name is a journal's.
pub(super) fn is_journal(name: &str) -> bool {
    [SEGMENT, TORN].iter().any(|prefix| name.starts_with(prefix))
}

/// The frames above the drained mark, by their numbers, and where they stand.
#[derive(Default)]
pub(super) struct Frames {
    found: BTreeMap<u64, Spot>,
    store_id: [u8; 16],
    /// The seqs that they hold of each session.
    pub(super) runs: BTreeMap<StorageKey, Vec<Range<u64>>>,
    /// The sessions that they create.
    created: BTreeSet<StorageKey>,
    /// The number of a newer format, where a frame has one.
    pub(super) newer: Option<u32>,
}

#[derive(Clone, Copy)]
struct Spot {
    file: usize,
    at: usize,
}

impl Frames {
    /// Reads the files, one at a time. `old_id` is whose frames count; where it is not known, those of the store that has
    /// most of them.
    pub(super) fn read(
        journal: &[RawFile],
        old_id: Option<[u8; 16]>,
        drained: Option<u64>,
        report: &mut SalvageReport,
    ) -> Result<Self> {
        let store_id = match old_id {
            Some(id) => id,
            None => most_frequent(journal)?,
        };
        let mut frames = Self { store_id, ..Self::default() };
        // What a torn end held was never acknowledged, and its seqs may have been given again.
        let mut torn = BTreeSet::new();
        for (file, (name, raw)) in journal.iter().enumerate() {
            let bytes = whole(name, raw.as_ref(), &mut report.unreadable_bytes)?;
            each(&bytes, |at| match format::read_frame(bytes.get(at..).unwrap_or_default(), store_id) {
                Ok(frame) => {
                    if name.starts_with(TORN) {
                        torn.insert(frame.commit);
                    } else if frame.commit > drained.unwrap_or_default() {
                        frames.found.insert(frame.commit, Spot { file, at });
                    }
                    frame.len
                }
                Err(FrameFault::Unsupported { found }) => {
                    frames.newer = frames.newer.max(Some(found));
                    1
                }
                Err(FrameFault::Torn { .. }) => {
                    report.damaged_places += 1;
                    1
                }
                Err(FrameFault::Absent | FrameFault::Foreign { .. }) => 1,
            });
        }
        frames.found.retain(|commit, _| !torn.contains(commit));
        frames.note_runs(journal)?;
        report.frames = frames.found.len() as u64;
        Ok(frames)
    }

    pub(super) fn is_empty(&self) -> bool {
        self.found.is_empty()
    }

    fn note_runs(&mut self, journal: &[RawFile]) -> Result<()> {
        let mut runs: BTreeMap<StorageKey, Vec<Range<u64>>> = BTreeMap::new();
        let mut created = BTreeSet::new();
        self.each_in_order(journal, &mut |frame| {
            for action in frame.actions() {
                let Ok(action) = action else { break };
                let (key, run) = match action {
                    Action::Run { key, run } => (key, run),
                    Action::Create(new) | Action::Fork(new) => {
                        created.insert(new.key);
                        continue;
                    }
                    _ => continue,
                };
                let (start, end) = (run.first_seq, run.first_seq + u64::from(run.count));
                let of_session = runs.entry(key).or_default();
                match of_session.last_mut() {
                    Some(last) if last.end == start => last.end = end,
                    _ => of_session.push(start..end),
                }
            }
            Ok(())
        })?;
        self.created = created;
        self.runs = runs;
        Ok(())
    }

    /// Makes sessions known of which nothing but events in frames is left, so that repair gives them headers.
    pub(super) fn make_known(&self, storage: &dyn Storage, numbers: &mut WriteNumbers) -> Result<()> {
        for key in self.runs.keys().filter(|key| !self.created.contains(key)) {
            let known = [format::header_key(*key), format::summary_key(*key)];
            let known =
                known.iter().map(|key| storage.get(Map::Sessions, key)).collect::<Result<Vec<_>>>()?;
            if known.iter().all(Option::is_none) {
                let summary = Summary { len: 0, updated: Timestamp::now(), hash: Hash::START };
                let value = format::encode_summary(*key, &summary, numbers.next());
                storage.insert(Map::Sessions, &format::summary_key(*key), &value)?;
            }
        }
        Ok(())
    }

    /// Gives the frames in the order of their numbers. A file is read anew for each stretch of them that it holds.
    fn each_in_order(
        &self,
        journal: &[RawFile],
        sink: &mut dyn FnMut(FrameView<'_>) -> Result<()>,
    ) -> Result<()> {
        let mut held: Option<(usize, Vec<u8>)> = None;
        for spot in self.found.values() {
            if held.as_ref().is_none_or(|(file, _)| *file != spot.file) {
                let Some((name, raw)) = journal.get(spot.file) else { continue };
                held = Some((spot.file, whole(name, raw.as_ref(), &mut 0)?));
            }
            let bytes = held.as_ref().and_then(|(_, bytes)| bytes.get(spot.at..)).unwrap_or_default();
            if let Ok(frame) = format::read_frame(bytes, self.store_id) {
                sink(frame)?;
            }
        }
        Ok(())
    }

    /// Writes the frames into the new journal, as frames of the new store.
    pub(super) fn write(
        &mut self,
        journal: &[RawFile],
        files: &dyn JournalFiles,
        store_id: [u8; 16],
    ) -> Result<()> {
        if self.found.is_empty() {
            return Ok(());
        }
        let io = |action| {
            move |source| Error::Io { action, path: PathBuf::from("journal").join(NEW_SEGMENT), source }
        };
        let mut len = 0;
        self.each_in_order(journal, &mut |frame| {
            len += frame.len as u64;
            Ok(())
        })?;
        let file = files.create(NEW_SEGMENT, segment_size(len)).map_err(io("create"))?;
        let (mut builder, mut at) = (FrameBuilder::new(Vec::new()), 0);
        self.each_in_order(journal, &mut |frame| {
            let bytes = builder.copy(&frame, store_id);
            file.write_at(bytes, at).map_err(io("write"))?;
            at += bytes.len() as u64;
            Ok(())
        })?;
        file.sync().map_err(io("sync"))?;
        files.sync_folder().map_err(io("sync"))
    }
}

/// The store whose frames are the most.
fn most_frequent(journal: &[RawFile]) -> Result<[u8; 16]> {
    let mut counts: BTreeMap<[u8; 16], u64> = BTreeMap::new();
    for (name, raw) in journal {
        let bytes = whole(name, raw.as_ref(), &mut 0)?;
        // No store has this id, so each whole frame is foreign and says whose it is.
        each(&bytes, |at| {
            let id = match format::read_frame(bytes.get(at..).unwrap_or_default(), NOBODY) {
                Ok(_) => NOBODY,
                Err(FrameFault::Foreign { store_id }) => store_id,
                Err(_) => return 1,
            };
            *counts.entry(id).or_default() += 1;
            1
        });
    }
    Ok(counts.into_iter().max_by_key(|(_, count)| *count).map_or(NOBODY, |(id, _)| id))
}

const NOBODY: [u8; 16] = [0xff; 16];

/// Calls `look` at each place that starts as a frame does; it says how far to go on. Torn files hold pieces at any
/// offset, and damage may have moved what stands in the others.
fn each(bytes: &[u8], mut look: impl FnMut(usize) -> usize) {
    let mut from = 0;
    while let Some(at) = format::find_frame(bytes, from) {
        from = at + look(at).max(1);
    }
}

/// All of a file; zeros where the system cannot read it.
fn whole(name: &str, raw: &dyn Raw, unreadable: &mut u64) -> Result<Vec<u8>> {
    let io = |source| Error::Io { action: "read", path: name.into(), source };
    let len = usize::try_from(raw.len().map_err(io)?.min(MAX_FILE_BYTES)).unwrap_or_default();
    let mut bytes = vec![0; len];
    if raw.read_at(&mut bytes, 0).is_ok() {
        return Ok(bytes);
    }
    for (index, piece) in bytes.chunks_mut(PIECE_BYTES).enumerate() {
        if raw.read_at(piece, (index * PIECE_BYTES) as u64).is_err() {
            piece.fill(0);
            *unreadable += piece.len() as u64;
        }
    }
    Ok(bytes)
}
