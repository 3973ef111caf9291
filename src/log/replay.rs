//! Opening: what the journal holds that the engine does not, and whether anything acknowledged is missing.
//!
//! Everything found is synced before it is read or relied on: after `kill -9` a frame that reads well may be in the
//! page cache only, and a segment's name may not be on disk.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

use super::catalog::{Used, read_end};
use super::core::Core;
use super::drain::Fault;
use super::hidden;
use super::journal::{Journal, SEGMENT, UNFINISHED, is_segment_size};
use super::pass::Writer;
use super::removal::Removals;
use super::room::RUN_OVERHEAD;
use super::tail::{SessionState, TailRun};
use crate::error::{Corruption, Error, Place, Result};
use crate::format::{
    self, Action, FORMAT_VERSION, FRAME_ALIGN, FrameFault, FrameView, MAX_NUMBER, Opened, RunView, Sections,
    WriteNumber, WriteNumbers,
};
use crate::id::StorageKey;
use crate::labels::Labels;
use crate::options::StoreOptions;
use crate::storage::{JournalFile, JournalFiles, Map, Storage};
use crate::store::OpenReport;

/// The prefix of files that keep what stood behind a torn end.
const TORN: &str = "torn-";

/// Counts this open in the engine, durably: its write numbers are then above all earlier ones, and the engine has
/// proved that it takes writes before anything is drained into it.
///
/// `known`: the store was opened before, so an engine without a count has lost its content (sled makes a new, empty
/// database where it misses its first page).
pub(crate) fn count_open(storage: &dyn Storage, known: bool) -> Result<u32> {
    let place = || Place::new("open count");
    let before = match storage.get(Map::Sessions, format::OPENED_KEY)? {
        Some(value) => format::decode_opened(&value).map_err(|error| error.at(place()))?.count,
        None if known => {
            let corruption = Corruption::Missing { what: "the record that every opened engine has" };
            return Err(Error::Corrupt { place: place(), corruption });
        }
        None => 0,
    };
    let count = before.checked_add(1).ok_or_else(|| Error::Corrupt {
        place: place(),
        corruption: Corruption::Undecodable { what: "a count that cannot be" },
    })?;
    let value = format::encode_opened(Opened { count }, WriteNumbers::new(count).next());
    storage.insert(Map::Sessions, format::OPENED_KEY, &value)?;
    storage.flush()?;
    Ok(count)
}

/// Reads the journal, drains what it holds, and makes the store ready for use.
pub(crate) fn open(
    storage: Arc<dyn Storage>,
    files: Arc<dyn JournalFiles>,
    options: &StoreOptions,
    open_count: u32,
    store_id: [u8; 16],
    folder: PathBuf,
) -> Result<(Arc<Core>, OpenReport)> {
    let (drained, mark) = match storage.get(Map::Sessions, format::DRAINED_KEY)? {
        Some(value) => {
            let place = || Place::new("drained mark");
            let drained = format::decode_drained(&value).map_err(|error| error.at(place()))?;
            (drained.through, format::write_number(&value).unwrap_or_default())
        }
        None => (0, WriteNumber::default()),
    };
    let found = Found::read(files.as_ref(), &folder)?;
    let frames = Frames::of(&found, store_id, drained)?;
    let end = frames.end(drained)?;

    let mut report = OpenReport { torn: found.torn.clone(), ..OpenReport::default() };
    let torn = frames.torn_bytes(&found, end);
    if !torn.is_empty() {
        report.torn.push(keep_torn(files.as_ref(), &found, &torn, &folder)?);
    }
    let highest = frames.highest().max(drained);
    let journal = Journal::new(
        Arc::clone(&files),
        folder.clone(),
        store_id,
        options.watchdog,
        highest + 1,
        found.highest_name + 1,
    );
    let core = Core::new(options, storage, journal);
    let removals = Removals::found(core.storage.as_ref())?;
    core.drain.prepare(drained, mark, Writer::new(open_count, removals));
    for (commit, frame) in frames.valid.range(drained + 1..end) {
        report.replayed_commits += 1;
        for action in frame.actions() {
            let action = action.map_err(|error| error.at(frame_place(*commit)))?;
            report.replayed_events += apply(&core, *commit, action)?;
        }
    }
    hidden::forget_unpublished(&core);
    let last_commits = frames.last_commits(&found);
    found.let_go(&core, files.as_ref(), &folder, &last_commits, torn.is_empty())?;
    match core.drain.pass(&core, true) {
        Ok(()) => {
            core.journal.recycle(core.drain.through())?;
            hidden::remove_all(&core)?;
        }
        // All that is valid is in the tails and durable, and numbers go on without a gap: it can wait there for room, as
        // in a store that was open when its disk got full. What is hidden may be published by then; a later open tells.
        Err(Fault::Full(_)) if torn.is_empty() => {}
        Err(Fault::Full(full)) => return Err(full.to_error()),
        Err(Fault::Error(error)) => return Err(error),
    }
    core.drain.resume_removals();
    Ok((core, report))
}

/// Whether a file of this name in the journal's folder is the journal's.
pub(crate) fn is_journal_file(name: &str) -> bool {
    [SEGMENT, UNFINISHED, TORN].into_iter().any(|prefix| name.starts_with(prefix))
}

/// The commit up to which the journal goes on from `drained` without a gap. Nothing is written.
pub(crate) fn goes_on_to(
    files: &dyn JournalFiles,
    store_id: [u8; 16],
    drained: u64,
    folder: &std::path::Path,
) -> Result<u64> {
    let found = Found::read(files, folder)?;
    Ok(Frames::of(&found, store_id, drained)?.end(drained)? - 1)
}

/// What stands in the journal's folder.
struct Found {
    segments: Vec<FoundSegment>,
    /// Segments whose making was interrupted.
    unfinished: Vec<String>,
    torn: Vec<String>,
    highest_name: u64,
}

struct FoundSegment {
    name: String,
    file: Arc<dyn JournalFile>,
    bytes: Vec<u8>,
}

impl Found {
    fn read(files: &dyn JournalFiles, folder: &std::path::Path) -> Result<Self> {
        let io = |action, name: &str| {
            let path = folder.join(name);
            move |source| Error::Io { action, path, source }
        };
        files.sync_folder().map_err(io("sync", ""))?;
        let mut found =
            Self { segments: Vec::new(), unfinished: Vec::new(), torn: Vec::new(), highest_name: 0 };
        let mut names = files.list().map_err(io("list", ""))?;
        names.sort();
        for name in names {
            let number = |prefix| {
                let number = name.strip_prefix(prefix)?.parse::<u64>().ok()?;
                // There is a next name.
                Some(number).filter(|number| *number <= MAX_NUMBER)
            };
            let known =
                [SEGMENT, UNFINISHED, TORN].into_iter().find_map(|prefix| Some((prefix, number(prefix)?)));
            let Some((prefix, number)) = known else { continue };
            found.highest_name = found.highest_name.max(number);
            match prefix {
                UNFINISHED => found.unfinished.push(name),
                TORN => found.torn.push(name),
                _ => {
                    let file = files.open(&name).map_err(io("open", &name))?;
                    file.sync().map_err(io("sync", &name))?;
                    let len = file.len().map_err(io("read", &name))?;
                    if !is_segment_size(len) {
                        return Err(Error::Corrupt {
                            place: Place::new("journal segment").at(folder.join(name).display().to_string()),
                            corruption: Corruption::SegmentSize { bytes: len },
                        });
                    }
                    let mut bytes = vec![0; usize::try_from(len).unwrap_or(usize::MAX)];
                    file.read_at(&mut bytes, 0).map_err(io("read", &name))?;
                    found.segments.push(FoundSegment { name, file, bytes });
                }
            }
        }
        Ok(found)
    }

    /// Gives the segments to the new journal, which keeps them until they are drained. Behind a torn end none is used
    /// again: what was kept of it must not be found another time.
    fn let_go(
        self,
        core: &Core,
        files: &dyn JournalFiles,
        folder: &std::path::Path,
        last_commits: &[u64],
        clean: bool,
    ) -> Result<()> {
        for name in self.unfinished {
            let path = folder.join(&name);
            files.remove(&name).map_err(|source| Error::Io { action: "remove", path, source })?;
        }
        let mut segments: Vec<_> = self.segments.into_iter().zip(last_commits).collect();
        segments.sort_by_key(|(_, last_commit)| **last_commit);
        for (segment, last_commit) in segments {
            let FoundSegment { name, file, bytes } = segment;
            core.journal.adopt(name, file, bytes.len() as u64, *last_commit, clean);
        }
        Ok(())
    }
}

/// All frames above the drained mark, by their numbers.
struct Frames<'a> {
    valid: BTreeMap<u64, FrameView<'a>>,
    /// Where each valid frame stands, and every place that starts as a frame and is none: segment, offset, length.
    places: BTreeMap<u64, (usize, usize, usize)>,
    broken: Vec<(usize, usize, usize)>,
    drained: u64,
}

impl<'a> Frames<'a> {
    fn of(found: &'a Found, store_id: [u8; 16], drained: u64) -> Result<Self> {
        let mut frames =
            Self { valid: BTreeMap::new(), places: BTreeMap::new(), broken: Vec::new(), drained };
        for (index, segment) in found.segments.iter().enumerate() {
            let mut from = 0;
            frames.look_for_headless(index, segment, 0, store_id);
            while let Some(at) = format::find_magic(&segment.bytes, from) {
                let bytes = segment.bytes.get(at..).unwrap_or_default();
                from = at + FRAME_ALIGN;
                match format::read_frame(bytes, store_id) {
                    Ok(frame) => {
                        from = at + frame.len;
                        frames.look_for_headless(index, segment, from, store_id);
                        if frame.commit > drained {
                            frames.places.insert(frame.commit, (index, at, frame.len));
                            frames.valid.insert(frame.commit, frame);
                        }
                    }
                    // What a recycled segment still holds of its earlier use is broken, too, and claims old numbers.
                    Err(FrameFault::Torn { commit, len }) if commit > drained => {
                        frames.broken.push((index, at, len.min(bytes.len())));
                    }
                    Err(FrameFault::Unsupported { found }) => {
                        return Err(Error::UnsupportedFormat {
                            place: Place::new("journal frame").at(format!("{} at {at}", segment.name)),
                            found,
                            known: u32::from(FORMAT_VERSION),
                        });
                    }
                    Err(FrameFault::Torn { .. } | FrameFault::Absent | FrameFault::Foreign { .. }) => {}
                }
            }
        }
        Ok(frames)
    }

    /// Notes a frame whose magic is damaged, at a place where one is awaited: nothing else would tell it from no frame.
    fn look_for_headless(&mut self, index: usize, segment: &FoundSegment, at: usize, store_id: [u8; 16]) {
        let bytes = segment.bytes.get(at..).unwrap_or_default();
        if let Some((commit, len)) = format::headless_frame(bytes, store_id)
            && commit > self.drained
        {
            self.broken.push((index, at, len));
        }
    }

    /// The first number that is missing: what stands behind it was never acknowledged, or this is an error.
    fn end(&self, drained: u64) -> Result<u64> {
        let mut end = drained + 1;
        while self.valid.contains_key(&end) {
            end += 1;
        }
        // A frame that was written when the missing one was durable proves that it was there.
        let acknowledged = self.valid.range(end..).any(|(_, frame)| frame.durable >= end);
        if acknowledged {
            return Err(Error::Corrupt {
                place: frame_place(end),
                corruption: Corruption::AcknowledgedFrame { commit: end },
            });
        }
        Ok(end)
    }

    /// The highest commit in each segment; 0 where all is drained.
    fn last_commits(&self, found: &Found) -> Vec<u64> {
        let mut last = vec![0; found.segments.len()];
        for (commit, (segment, ..)) in &self.places {
            if let Some(last) = last.get_mut(*segment) {
                *last = *commit;
            }
        }
        last
    }

    fn highest(&self) -> u64 {
        self.valid.last_key_value().map_or(self.drained, |(commit, _)| *commit)
    }

    /// What stands behind the end: broken frames, and whole ones that hang on a missing one.
    fn torn_bytes(&self, found: &Found, end: u64) -> Vec<u8> {
        let behind = self.places.range(end..).map(|(_, place)| place);
        let mut torn = Vec::new();
        for (segment, at, len) in self.broken.iter().chain(behind) {
            let bytes = found.segments.get(*segment).and_then(|segment| segment.bytes.get(*at..*at + *len));
            torn.extend_from_slice(bytes.unwrap_or_default());
        }
        torn
    }
}

/// Keeps what stood behind a torn end, for people to look at. Returns the file's name.
fn keep_torn(
    files: &dyn JournalFiles,
    found: &Found,
    torn: &[u8],
    folder: &std::path::Path,
) -> Result<String> {
    let name = format!("{TORN}{}", found.highest_name + 1);
    let io = |action| {
        let path = folder.join(&name);
        move |source| Error::Io { action, path, source }
    };
    let file = files.create(&name, torn.len() as u64).map_err(io("create"))?;
    file.write_at(torn, 0).map_err(io("write"))?;
    file.sync().map_err(io("sync"))?;
    files.sync_folder().map_err(io("sync"))?;
    Ok(name)
}

/// Applies an action to the tails. Returns the number of events in it.
fn apply(core: &Core, commit: u64, action: Action<'_>) -> Result<u64> {
    match action {
        Action::Create(header) | Action::Fork(header) => {
            create(core, commit, SessionState::new(header)).map(|()| 0)
        }
        Action::Begin(header) => create(core, commit, SessionState::new_hidden(header)).map(|()| 0),
        Action::Publish { key, labels } => publish(core, commit, key, labels).map(|()| 0),
        Action::Label { key, labels } => label(core, commit, key, labels).map(|()| 0),
        Action::Run { key, run } => append(core, commit, key, &run),
        Action::Delete { key } => delete(core, commit, key).map(|()| 0),
        Action::Seal => Ok(0),
    }
}

fn create(core: &Core, commit: u64, state: Arc<SessionState>) -> Result<()> {
    {
        let mut tail = state.lock();
        tail.created = Some(commit);
        tail.list();
    }
    let mut used = core.catalog.lock();
    if let Some((key, prefix_len)) = state.header.parent {
        let corrupt = |corruption| {
            Err(Error::Corrupt { place: frame_place(commit).session(&state.header.id), corruption })
        };
        let parent = used.by_key(key, core.storage.as_ref())?.filter(|parent| !parent.is_deleted());
        let Some(parent) = parent else {
            return corrupt(Corruption::MissingParent { parent: key.to_string() });
        };
        let parent_len = parent.lock().next();
        if prefix_len > parent_len {
            return corrupt(Corruption::PrefixBeyondParent { prefix_len, parent_len });
        }
    }
    let hidden = state.lock().hidden.is_some();
    if hidden {
        used.add_key(&state);
    } else {
        add_id(core, &mut used, commit, &state)?;
    }
    core.add_undrained(state);
    Ok(())
}

fn add_id(core: &Core, used: &mut Used, commit: u64, state: &Arc<SessionState>) -> Result<()> {
    if used.by_id(&state.header.id, core.storage.as_ref())?.is_some() {
        return Err(Error::Corrupt {
            place: frame_place(commit).session(&state.header.id),
            corruption: Corruption::Undecodable { what: "the creation of a session that exists" },
        });
    }
    read_end(state, core.storage.as_ref())?;
    used.add(state);
    Ok(())
}

fn publish(core: &Core, commit: u64, key: StorageKey, labels: Labels) -> Result<()> {
    let state = known(core, commit, key)?;
    add_id(core, &mut core.catalog.lock(), commit, &state)?;
    let list = {
        let mut tail = state.lock();
        if tail.hidden.is_none_or(|hidden| hidden.published.is_some()) {
            let corruption =
                Corruption::Undecodable { what: "the publication of a session that was not hidden" };
            return Err(Error::Corrupt { place: frame_place(commit).session(key), corruption });
        }
        tail.set_published(commit, Arc::new(labels));
        tail.list()
    };
    if list {
        core.add_undrained(state);
    }
    Ok(())
}

fn delete(core: &Core, commit: u64, key: StorageKey) -> Result<()> {
    let state = known(core, commit, key)?;
    let list = {
        let mut tail = state.lock();
        tail.deleted = Some(commit);
        tail.list()
    };
    if list {
        core.add_undrained(state);
    }
    Ok(())
}

fn label(core: &Core, commit: u64, key: StorageKey, labels: Labels) -> Result<()> {
    let state = known(core, commit, key)?;
    let list = {
        let mut tail = state.lock();
        tail.set_labels(commit, Arc::new(labels));
        tail.list()
    };
    if list {
        core.add_undrained(state);
    }
    Ok(())
}

/// The session that a frame is about.
fn known(core: &Core, commit: u64, key: StorageKey) -> Result<Arc<SessionState>> {
    let found = core.catalog.by_key(key, core.storage.as_ref())?;
    found.filter(|state| !state.is_deleted()).ok_or_else(|| Error::Corrupt {
        place: frame_place(commit).session(key),
        corruption: Corruption::Missing { what: "the session that the frame is about" },
    })
}

fn append(core: &Core, commit: u64, key: StorageKey, run: &RunView<'_>) -> Result<u64> {
    let place = || frame_place(commit).session(key).seqs(run.first_seq..run.first_seq + u64::from(run.count));
    let state = core.catalog.by_key(key, core.storage.as_ref())?;
    let Some(state) = state.filter(|state| !state.is_deleted()) else {
        return Err(Error::Corrupt {
            place: place(),
            corruption: Corruption::Missing { what: "the session that the frame appends to" },
        });
    };
    core.drain.check_end(core, &state)?;
    let mut last = Vec::new();
    run.decode(run.count - 1, 1, Sections::All, &mut last).map_err(|error| error.at(place()))?;
    let Some(last) = last.last() else {
        return Err(Error::Corrupt { place: place(), corruption: Corruption::Undecodable { what: "a run" } });
    };
    let owned = run.to_run();
    let cost = owned.stored_len() as u64 + RUN_OVERHEAD;
    let mut tail = state.lock();
    let expected = tail.next();
    if run.first_seq != expected {
        return Err(Error::Corrupt {
            place: place(),
            corruption: Corruption::Gap { expected, found: Some(run.first_seq) },
        });
    }
    tail.runs.push_back(TailRun { run: Arc::new(owned), commit, last_timestamp: last.timestamp, cost });
    let list = tail.list();
    drop(tail);
    core.room.claim(cost);
    if list {
        core.add_undrained(state);
    }
    Ok(u64::from(run.count))
}

fn frame_place(commit: u64) -> Place {
    Place::new("journal frame").at(format!("commit {commit}"))
}
