//! Values on their way into the new engine: of each key the newest copy.

use std::collections::BTreeSet;

use super::report::SalvageReport;
use crate::error::Result;
use crate::format::{self, FoundValue, Home, WriteNumber};
use crate::id::StorageKey;
use crate::storage::{Map, Storage};

/// Values inserted between two flushes: the engine then writes its pages about once.
const FLUSH_VALUES: u32 = 64;

pub(super) struct Sieve<'a> {
    target: &'a dyn Storage,
    unflushed: u32,
    pub(super) values: u64,
    copies: u64,
    conflicts: u64,
    newer_values: u64,
    /// The greatest number of a newer format that was met.
    pub(super) newer: Option<u32>,
    pub(super) highest: WriteNumber,
    /// The sessions that a whole engine knows; all others were deleted.
    living: Option<BTreeSet<StorageKey>>,
    /// The number of the drained mark that the engine gave.
    given: Option<WriteNumber>,
    pub(super) deleted_too: bool,
    /// Sessions that were found and are not living.
    pub(super) deleted: BTreeSet<StorageKey>,
}

impl<'a> Sieve<'a> {
    pub(super) fn new(target: &'a dyn Storage, deleted_too: bool) -> Self {
        Self {
            target,
            unflushed: 0,
            values: 0,
            copies: 0,
            conflicts: 0,
            newer_values: 0,
            newer: None,
            highest: WriteNumber::default(),
            living: None,
            given: None,
            deleted_too,
            deleted: BTreeSet::new(),
        }
    }

    /// Says that the engine gave everything: these are its sessions.
    pub(super) fn engine_is_whole(&mut self, living: BTreeSet<StorageKey>) {
        self.living = Some(living);
    }

    /// Notes the marks that the engine gave. One that has not even what it had at the last close does not know all
    /// sessions.
    pub(super) fn engine_was_asked(&mut self, drained_at_close: Option<u64>) -> Result<()> {
        self.given = self.marks()?;
        let drained = self.drained()?;
        if drained.is_none() || drained < drained_at_close {
            self.living = None;
        }
        Ok(())
    }

    /// Whether its files hold newer marks than the engine gave: then it fell back, and what it does not know need not
    /// have been deleted. From now on that is taken, too.
    pub(super) fn engine_fell_back(&mut self) -> Result<bool> {
        let fell_back = self.living.is_some() && self.marks()? > self.given;
        if fell_back {
            self.living = None;
            self.deleted.clear();
        }
        Ok(fell_back)
    }

    /// The write number of the drained mark, which is the greatest of all records of its pass.
    fn marks(&self) -> Result<Option<WriteNumber>> {
        let value = self.target.get(Map::Sessions, format::DRAINED_KEY)?;
        Ok(value.as_deref().and_then(format::write_number))
    }

    /// Takes a value if it is newer than what is there.
    pub(super) fn put(&mut self, found: &FoundValue<'_>) -> Result<()> {
        // What cannot be what it says is as good as damaged.
        let Ok(home) = found.home() else { return Ok(()) };
        self.values += 1;
        self.highest = self.highest.max(found.write_number());
        if !self.wanted(found, &home) {
            return Ok(());
        }
        let (map, key) = match &home {
            Home::Block(header) => (Map::Events, format::block_key(header.key, header.first_seq).to_vec()),
            Home::Part { key, seq, part } => (Map::Events, format::part_key(*key, *seq, *part).to_vec()),
            Home::Record(key) => (Map::Sessions, key.clone()),
            Home::Care(key) => (Map::Care, key.clone()),
        };
        // Made anew from summaries, and of an old one nobody would know that it is old. The count of opens is made from
        // the write numbers.
        if map == Map::Sessions && (key.starts_with(format::ORDER_PREFIX) || key == format::OPENED_KEY) {
            return Ok(());
        }
        if let Some(there) = self.target.get(map, &key)?
            && let Ok(there) = format::read_found(&there)
        {
            self.copies += 1;
            let (old, new) = (there.write_number(), found.write_number());
            if old == new && there.checksum() != found.checksum() {
                self.conflicts += 1;
            }
            if old >= new {
                return Ok(());
            }
        }
        self.insert(map, &key, found.value)
    }

    fn insert(&mut self, map: Map, key: &[u8], value: &[u8]) -> Result<()> {
        self.target.insert(map, key, value)?;
        self.unflushed += 1;
        if self.unflushed >= FLUSH_VALUES {
            self.unflushed = 0;
            self.target.flush()?;
        }
        Ok(())
    }

    fn wanted(&mut self, found: &FoundValue<'_>, home: &Home) -> bool {
        let Some(living) = &self.living else { return true };
        let mut session = found.envelope.key;
        if let Home::Record(key) = home {
            if let Some(edge) = format::parse_edge_key(key) {
                session = edge.child;
            } else if session == StorageKey([0; 16]) {
                return true;
            }
        }
        if living.contains(&session) {
            return true;
        }
        self.deleted.insert(session);
        self.deleted_too
    }

    /// An open count above all that were found, for values made here.
    pub(super) fn next_open(&self) -> u32 {
        u32::try_from(self.highest.0 >> 32).unwrap_or(u32::MAX).saturating_add(1)
    }

    /// The newest drained mark that was found.
    pub(super) fn drained(&self) -> Result<Option<u64>> {
        let value = self.target.get(Map::Sessions, format::DRAINED_KEY)?;
        Ok(value.and_then(|value| format::decode_drained(&value).ok()).map(|drained| drained.through))
    }

    pub(super) fn report(&self, report: &mut SalvageReport) {
        report.values = self.values;
        report.copies = self.copies;
        report.conflicts = self.conflicts;
        report.newer_values = self.newer_values;
        report.deleted = self.deleted.len() as u64;
    }

    pub(super) fn note_newer(&mut self, found: u32) {
        self.newer_values += 1;
        self.newer = self.newer.max(Some(found));
    }

    /// Takes what the engine gives, and returns whose it is. What is not sound is left out.
    pub(super) fn put_given(&mut self, map: Map, key: &[u8], value: &[u8]) -> Result<Option<StorageKey>> {
        let Ok(found) = format::read_found(value) else { return Ok(None) };
        if map == Map::Care && key.starts_with(format::QUARANTINE_PREFIX) {
            // Only its key says where it belongs.
            self.values += 1;
            self.highest = self.highest.max(found.write_number());
            self.insert(map, key, value)?;
        } else {
            self.put(&found)?;
        }
        Ok(Some(found.envelope.key))
    }
}
