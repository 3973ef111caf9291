//! A copy of a store that is in use: everything up to one commit.

use std::ops::Bound;
use std::path::{Path, PathBuf};

use super::report::ScanReport;
use super::scan::Scan;
use super::unfinished::Unfinished;
use crate::error::{Error, Place, Result};
use crate::format::{self, Drained, Opened, PackContext, Packer, Scratch, Summary, WriteNumbers};
use crate::id::StorageKey;
use crate::storage::{Map, Storage};
use crate::store::{Parts, Store};

/// Values between two flushes.
const FLUSH_VALUES: usize = 64;

/// What a backup copied, and what its check found.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct BackupReport {
    /// The copy's folder.
    pub path: PathBuf,
    /// The scan of the copy. Findings are the original's, too.
    pub scan: ScanReport,
}

/// Copies `store` into the new folder `path`.
pub(crate) fn backup(store: &Store, path: &Path) -> Result<BackupReport> {
    let path = std::path::absolute(path).map_err(|source| Error::Io {
        action: "find",
        path: path.to_owned(),
        source,
    })?;
    let making = making(&path)?;
    for taken in [&path, &making] {
        if taken.symlink_metadata().is_ok() {
            return Err(Error::OutputExists { path: taken.clone() });
        }
    }
    store.drain()?;
    let core = store.handle().core();
    // Blocks are only ever continued; nothing of them is removed while this is held.
    let removals = core.removals.lock();
    let unfinished = Unfinished::new(&making);
    let parts = Parts::make(&making)?;
    let copied = copy(core.storage.as_ref(), parts.storage.as_ref(), || core.drain.pause());
    drop(removals);
    core.drain.ask();
    match copied {
        Ok(()) => parts.finish()?,
        Err(error) => return parts.close(Err(error)),
    }
    let scan = Scan::new().folder(&making)?;
    std::fs::rename(&making, &path).map_err(|source| Error::Io {
        action: "rename",
        path: making.clone(),
        source,
    })?;
    unfinished.keep();
    if let Some(parent) = path.parent() {
        let synced = std::fs::File::open(parent).and_then(|parent| parent.sync_all());
        synced.map_err(|source| Error::Io { action: "sync", path: parent.to_owned(), source })?;
    }
    Ok(BackupReport { path, scan })
}

/// The name under which a copy is made: it is no store before it is whole.
fn making(path: &Path) -> Result<PathBuf> {
    let name = path.file_name().ok_or_else(|| Error::OutputExists { path: path.to_owned() })?;
    let mut name = name.to_owned();
    name.push(".unfinished");
    Ok(path.with_file_name(name))
}

/// Copies what `from` holds now. `pause` holds the drain while the records are copied: they are of one commit.
fn copy<P>(from: &dyn Storage, to: &dyn Storage, pause: impl FnOnce() -> P) -> Result<()> {
    let mut sink = Sink::new(to);
    let paused = pause();
    let count = match from.get(Map::Sessions, format::OPENED_KEY)? {
        Some(value) => {
            format::decode_opened(&value).map_err(|error| error.at(Place::new("open count")))?.count
        }
        None => 0,
    };
    for map in [Map::Sessions, Map::Care] {
        for entry in from.range(map, Bound::Unbounded, Bound::Unbounded) {
            let (key, value) = entry?;
            if map == Map::Sessions && (key == format::DRAINED_KEY || key == format::OPENED_KEY) {
                continue;
            }
            sink.put(map, &key, &value)?;
        }
    }
    drop(paused);
    // Above all numbers of the original, so that blocks that are cut here are newer than what they were cut from.
    let count = count.saturating_add(1);
    let mut context = PackContext::new(WriteNumbers::new(count));
    let opened = format::encode_opened(Opened { count }, context.next_write_number());
    sink.put(Map::Sessions, format::OPENED_KEY, &opened)?;
    for entry in super::view::entries(to, Map::Sessions, format::SUMMARY_PREFIX) {
        let (at, value) = entry?;
        let Some(key) = format::parse_tagged_key(format::SUMMARY_PREFIX, &at) else { continue };
        // A summary that cannot be read says nothing of where the session ends: all of it is copied.
        let summary = format::decode_summary(key, &value).ok();
        copy_blocks(from, &mut sink, key, summary, &mut context)?;
    }
    // The journal of the copy is empty, and its commits begin anew.
    let drained = format::encode_drained(Drained { through: 0 }, context.next_write_number());
    sink.put(Map::Sessions, format::DRAINED_KEY, &drained)?;
    to.flush()
}

/// Copies a session's blocks up to its length.
pub(super) fn copy_blocks(
    from: &dyn Storage,
    sink: &mut Sink<'_>,
    key: StorageKey,
    summary: Option<Summary>,
    context: &mut PackContext,
) -> Result<()> {
    let first = format::block_key(key, 0);
    let behind = format::block_key(key, summary.map_or(u64::MAX, |summary| summary.len));
    for entry in from.range(Map::Events, Bound::Included(&first), Bound::Excluded(&behind)) {
        let (at, value) = entry?;
        if let Some(summary) = summary
            && cut(key, &at, &value, summary, sink, context)?
        {
            continue;
        }
        sink.put(Map::Events, &at, &value)?;
    }
    Ok(())
}

/// Copies of a block that a later drain has continued what the session had. Returns false for any other value.
fn cut(
    key: StorageKey,
    at: &[u8],
    value: &[u8],
    summary: Summary,
    sink: &mut Sink<'_>,
    context: &mut PackContext,
) -> Result<bool> {
    let Some(at) = format::parse_event_key(at).filter(|at| at.part.is_none()) else { return Ok(false) };
    let Ok(view) = format::open_block(key, at.seq, value) else { return Ok(false) };
    if view.header().end() <= summary.len {
        return Ok(false);
    }
    let keep = u32::try_from(summary.len - at.seq).unwrap_or(u32::MAX);
    let Ok(Some(packer)) = Packer::resume(&view, keep, summary.hash, &mut Scratch::default()) else {
        return Ok(false);
    };
    packer.finish(context, &mut |key, value| sink.put(Map::Events, &key, &value))?;
    Ok(true)
}

/// Takes values and flushes now and then.
pub(super) struct Sink<'a> {
    to: &'a dyn Storage,
    unflushed: usize,
}

impl<'a> Sink<'a> {
    pub(super) fn new(to: &'a dyn Storage) -> Self {
        Self { to, unflushed: 0 }
    }

    pub(super) fn put(&mut self, map: Map, key: &[u8], value: &[u8]) -> Result<()> {
        self.to.insert(map, key, value)?;
        self.unflushed += 1;
        if self.unflushed >= FLUSH_VALUES {
            self.to.flush()?;
            self.unflushed = 0;
        }
        Ok(())
    }
}
