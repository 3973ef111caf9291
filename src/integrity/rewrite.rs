//! A store's engine written anew with only what is live, checked, and swapped in: what was deleted is then in none of
//! the folder's files.
//!
//! 1. Everything goes into the engine; small blocks are merged; the journal holds nothing that counts.
//! 2. The store is scanned: what is damaged is for a repair, and must not get lost here.
//! 3. A new engine is filled under a name that nobody opens, closed, opened again, compared and scanned; then it gets
//!    its name.
//! 4. The journal's files and the copies that repairs have made go.
//! 5. The description names the new engine: the swap. Then the old one goes.
//!
//! The lock is held from 2 on. A crash before 5 leaves the store as it was, one behind it the new one; the next open
//! removes the other.

use std::ops::Bound;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde::Serialize;

use super::backup::{Sink, copy_blocks};
use super::copies;
use super::scan::Scan;
use crate::error::{Error, Place, Result};
use crate::format::{self, Drained, Opened, PackContext, WriteNumbers};
use crate::options::StoreOptions;
use crate::storage::{self, Description, EngineDurability, Map, MemoryJournalFiles, SledStorage, Storage};
use crate::store::{Parts, drained};

/// The new engine's cache.
const CACHE_BYTES: u64 = 16 << 20;
/// Opens, each followed by an orderly close, after which the journal must hold nothing: somebody else may come between.
const TRIES: u32 = 3;
/// Free space that is asked for beside twice the live data: the engine writes whole segments, and a reserve stays.
const MARGIN_BYTES: u64 = 8 << 20;

/// An engine's files of this length are left as they are.
const SMALL_BYTES: u64 = 4 << 20;
/// What the engine's files grow and shrink by.
const SEGMENT_BYTES: u64 = 512 << 10;

/// What a rewrite did; see [`Store::rewrite`](crate::Store::rewrite).
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct RewriteReport {
    /// Sessions in the new engine, and their events; those that forks share count once.
    pub sessions: u64,
    /// See `sessions`.
    pub events: u64,
    /// What the engine's files took before, in bytes.
    pub engine_bytes_before: u64,
    /// What they take now.
    pub engine_bytes_after: u64,
    /// Other files and folders that were removed, by their path in the store's folder: of the journal, and copies that
    /// repairs have made.
    pub removed: Vec<String>,
}

/// Told of each change of the folder when it is done. An error ends the rewrite there, as a kill would.
pub(super) type Reached<'a> = &'a mut dyn FnMut(&'static str) -> Result<()>;

/// Rewrites the store in the folder `path`.
pub(crate) fn rewrite(path: &Path) -> Result<RewriteReport> {
    rewrite_watched(path, &mut |_| Ok(()))
}

pub(super) fn rewrite_watched(path: &Path, reached: Reached<'_>) -> Result<RewriteReport> {
    let parts = settle(path)?;
    let done = Rewriting { parts: &parts, reached }.fill();
    let (description, mut report) = match done {
        Ok(done) => done,
        Err(error) => return parts.close(Err(error)),
    };
    let mut folder = parts.into_folder()?;
    folder.describe(description)?;
    reached("swapped")?;
    folder.remove_leftovers()?;
    reached("removed the old engine")?;
    report.engine_bytes_after = storage::bytes_in(&folder.engine_dir())?;
    Ok(report)
}

/// Opens and closes the store in order, and takes it when its journal has nothing more.
fn settle(path: &Path) -> Result<Parts> {
    for _ in 0..TRIES {
        let store = StoreOptions::new().create(false).open(path)?;
        store.compact()?;
        store.close()?;
        drop(store);
        let parts = Parts::open(path)?;
        let through = drained(parts.storage.as_ref()).map(Option::unwrap_or_default);
        let folder = parts.folder.journal_dir();
        let goes_on = through.and_then(|through| {
            let end = crate::log::replay::goes_on_to(parts.files.as_ref(), parts.store_id, through, &folder)?;
            Ok(end > through)
        });
        match goes_on {
            Ok(false) => return Ok(parts),
            Ok(true) => parts.close(Ok(()))?,
            Err(error) => return parts.close(Err(error)),
        }
    }
    Err(Error::InUse { path: path.to_owned(), holder: None })
}

struct Rewriting<'a, 'r> {
    parts: &'a Parts,
    reached: Reached<'r>,
}

impl Rewriting<'_, '_> {
    /// Everything up to the swap. A failure takes the new engine away again.
    fn fill(mut self) -> Result<(Description, RewriteReport)> {
        let folder = &self.parts.folder;
        let old = Arc::clone(&self.parts.storage);
        let mut report = RewriteReport {
            engine_bytes_before: storage::bytes_in(&folder.engine_dir())?,
            ..RewriteReport::default()
        };
        let scan = Scan::new().on(old.as_ref(), self.parts.files.as_ref(), self.parts.store_id)?;
        if !scan.is_clean() {
            return Err(Error::NotClean { path: folder.path().to_owned(), errors: scan.errors });
        }
        (report.sessions, report.events) = (scan.sessions, scan.events);
        let live_bytes = live_bytes(old.as_ref())?;
        self.check_room(live_bytes)?;
        let name = folder.next_engine()?;
        let making = folder.making(&name);
        let filled = self.new_engine(&making, &report, live_bytes);
        let durability = match filled {
            Ok(durability) => durability,
            Err(error) => {
                // Where even that fails the next open does it.
                let _ = std::fs::remove_dir_all(&making);
                return Err(error);
            }
        };
        folder.name_engine(&name)?;
        (self.reached)("named the new engine")?;
        self.remove_text(&mut report)?;
        let description = Description {
            format: Description::FORMAT,
            store_id: self.parts.store_id,
            durability,
            engine: name,
        };
        Ok((description, report))
    }

    fn check_room(&self, live_bytes: u64) -> Result<()> {
        let path = self.parts.folder.path();
        let needed_bytes = live_bytes.saturating_mul(2).saturating_add(MARGIN_BYTES);
        let free_bytes = storage::free_bytes(path)?;
        if free_bytes < needed_bytes {
            return Err(Error::DiskFull { path: path.to_owned(), needed_bytes, free_bytes });
        }
        Ok(())
    }

    /// Fills an engine in the folder `dir`, and checks it as the next open will find it.
    fn new_engine(
        &mut self,
        dir: &Path,
        expected: &RewriteReport,
        live_bytes: u64,
    ) -> Result<EngineDurability> {
        let old = self.parts.storage.as_ref();
        let new = SledStorage::open(dir, CACHE_BYTES)?;
        let filled = (self.reached)("made the new engine").and_then(|()| copy(old, &new, self.reached));
        let filled = filled.and_then(|()| new.shrink(aim(live_bytes)));
        let closed = new.close();
        filled.and(closed)?;
        drop(new);
        (self.reached)("filled the new engine")?;
        let new = SledStorage::open(dir, CACHE_BYTES)?;
        let checked = check(old, &new, self.parts.store_id, expected);
        let durability = new.durability();
        let closed = new.close();
        checked.and(closed)?;
        (self.reached)("checked the new engine")?;
        Ok(durability)
    }

    /// Removes the journal's files, in which nothing counts any more, and the copies of repairs: both hold text.
    fn remove_text(&mut self, report: &mut RewriteReport) -> Result<()> {
        let files = self.parts.files.as_ref();
        let journal = self.parts.folder.journal_dir();
        let io = |action, name: &str| {
            let path = journal.join(name);
            move |source| Error::Io { action, path, source }
        };
        let mut names = files.list().map_err(io("list", ""))?;
        names.retain(|name| crate::log::replay::is_journal_file(name));
        names.sort();
        for name in names {
            files.remove(&name).map_err(io("remove", &name))?;
            (self.reached)("removed a file of the journal")?;
            let shown = PathBuf::from(journal.file_name().unwrap_or_default()).join(&name);
            report.removed.push(shown.display().to_string());
        }
        files.sync_folder().map_err(io("sync", ""))?;
        for name in copies::remove_all(self.parts.folder.path())? {
            (self.reached)("removed copies of a repair")?;
            report.removed.push(name);
        }
        Ok(())
    }
}

/// What the new engine's files should take: sled gets there with much data by itself, and with little by some help.
fn aim(live_bytes: u64) -> u64 {
    SMALL_BYTES.max(live_bytes + live_bytes / 10 * 9 + SEGMENT_BYTES)
}

/// The bytes of all keys and values.
fn live_bytes(storage: &dyn Storage) -> Result<u64> {
    let mut bytes = 0;
    for map in Map::ALL {
        for entry in storage.range(map, Bound::Unbounded, Bound::Unbounded) {
            let (key, value) = entry?;
            bytes += (key.len() + value.len()) as u64;
        }
    }
    Ok(bytes)
}

/// Copies what is live: all records, and the blocks of sessions up to their lengths.
fn copy(old: &dyn Storage, new: &dyn Storage, reached: Reached<'_>) -> Result<()> {
    let count = match old.get(Map::Sessions, format::OPENED_KEY)? {
        Some(value) => {
            format::decode_opened(&value).map_err(|error| error.at(Place::new("open count")))?.count
        }
        None => 0,
    };
    // It counts as an open, so that what is written here is newer than all that is copied.
    let count = count.saturating_add(1);
    let mut context = PackContext::new(WriteNumbers::new(count));
    let mut sink = Sink::new(new);
    let opened = format::encode_opened(Opened { count }, context.next_write_number());
    sink.put(Map::Sessions, format::OPENED_KEY, &opened)?;
    for map in RECORDS {
        for entry in records(old, map) {
            let (key, value) = entry?;
            sink.put(map, &key, &value)?;
        }
        reached("copied a map")?;
    }
    for entry in super::view::entries(old, Map::Sessions, format::SUMMARY_PREFIX) {
        let (at, value) = entry?;
        let Some(key) = format::parse_tagged_key(format::SUMMARY_PREFIX, &at) else { continue };
        let summary = format::decode_summary(key, &value)
            .map_err(|error| error.at(Place::new("summary").session(key)))?;
        copy_blocks(old, &mut sink, key, Some(summary), &mut context)?;
        reached("copied a session")?;
    }
    // Commits go on where they were: what the journal had is drained.
    let through = drained(old)?.unwrap_or_default();
    let mark = format::encode_drained(Drained { through }, context.next_write_number());
    sink.put(Map::Sessions, format::DRAINED_KEY, &mark)?;
    new.flush()
}

/// Maps that are copied as they are.
const RECORDS: [Map; 3] = [Map::Sessions, Map::Care, Map::Derived];

/// The records of a map, without the two that a rewrite makes anew.
fn records(storage: &dyn Storage, map: Map) -> impl Iterator<Item = Result<storage::Entry>> {
    let own = move |entry: &Result<storage::Entry>| match entry {
        Ok((key, _)) => map == Map::Sessions && (key == format::DRAINED_KEY || key == format::OPENED_KEY),
        Err(_) => false,
    };
    storage.range(map, Bound::Unbounded, Bound::Unbounded).filter(move |entry| !own(entry))
}

/// Checks that the copy is sound and has all that the original has.
fn check(old: &dyn Storage, new: &dyn Storage, store_id: [u8; 16], expected: &RewriteReport) -> Result<()> {
    let differs = || Err(Error::Storage("the new engine does not hold what was copied".into()));
    for map in RECORDS {
        let mut copies = records(new, map);
        for entry in records(old, map) {
            if copies.next().transpose()? != Some(entry?) {
                return differs();
            }
        }
        if copies.next().is_some() {
            return differs();
        }
    }
    if drained(old)?.unwrap_or_default() != drained(new)?.unwrap_or_default() {
        return differs();
    }
    // Without a journal: everything must be in the engine.
    let scan = Scan::new().on(new, &MemoryJournalFiles::new(), store_id)?;
    if !scan.is_clean() || (scan.sessions, scan.events) != (expected.sessions, expected.events) {
        return differs();
    }
    Ok(())
}

#[cfg(test)]
mod tests;
