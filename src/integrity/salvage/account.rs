//! What is missing: the seqs that neither blocks nor frames hold, before repair ends sessions there.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::{Bound, Range};

use super::report::{SalvageReport, SalvagedSession};
use crate::error::Result;
use crate::format;
use crate::id::{SessionId, StorageKey};
use crate::storage::{Map, Storage};

/// The holes of the sessions that have some.
#[derive(Debug, Default)]
pub(super) struct Account {
    missing: BTreeMap<StorageKey, Vec<Range<u64>>>,
}

impl Account {
    /// Goes through all blocks; `runs` are the seqs that frames hold.
    pub(super) fn of(storage: &dyn Storage, runs: &BTreeMap<StorageKey, Vec<Range<u64>>>) -> Result<Self> {
        let mut account = Self::default();
        let mut open: Option<(StorageKey, Vec<Range<u64>>)> = None;
        for entry in storage.range(Map::Events, Bound::Unbounded, Bound::Unbounded) {
            let (key, value) = entry?;
            let Some(at) = format::parse_event_key(&key).filter(|at| at.part.is_none()) else { continue };
            let Ok(view) = format::open_block(at.key, at.seq, &value) else { continue };
            if !parts_are_there(storage, &view)? {
                continue;
            }
            let covered = at.seq..view.header().end();
            match &mut open {
                Some((session, ranges)) if *session == at.key => join(ranges, covered),
                _ => {
                    account.close(storage, open.replace((at.key, vec![covered])), runs)?;
                }
            }
        }
        account.close(storage, open, runs)?;
        for key in runs.keys() {
            account.without_blocks(storage, *key, runs)?;
        }
        for entry in summaries(storage) {
            if let Some(key) = format::parse_tagged_key(format::SUMMARY_PREFIX, &entry?.0) {
                account.without_blocks(storage, key, runs)?;
            }
        }
        Ok(account)
    }

    fn without_blocks(
        &mut self,
        storage: &dyn Storage,
        key: StorageKey,
        runs: &BTreeMap<StorageKey, Vec<Range<u64>>>,
    ) -> Result<()> {
        let lowest = format::block_key(key, 0);
        let highest = format::part_key(key, u64::MAX, u32::MAX);
        let first = storage.range(Map::Events, Bound::Included(&lowest), Bound::Included(&highest)).next();
        if first.transpose()?.is_none() { self.close(storage, Some((key, Vec::new())), runs) } else { Ok(()) }
    }

    fn close(
        &mut self,
        storage: &dyn Storage,
        session: Option<(StorageKey, Vec<Range<u64>>)>,
        runs: &BTreeMap<StorageKey, Vec<Range<u64>>>,
    ) -> Result<()> {
        let Some((key, mut covered)) = session else { return Ok(()) };
        covered.extend(runs.get(&key).into_iter().flatten().cloned());
        covered.sort_by_key(|range| range.start);
        let header = storage.get(Map::Sessions, &format::header_key(key))?;
        let header = header.and_then(|value| format::decode_header(key, &value).ok());
        let own = header.and_then(|header| header.parent).map_or(0, |(_, prefix_len)| prefix_len);
        let summary = storage.get(Map::Sessions, &format::summary_key(key))?;
        let summary = summary.and_then(|value| format::decode_summary(key, &value).ok());
        let mut missing = Vec::new();
        let mut next = own;
        for range in covered {
            if range.start > next {
                missing.push(next..range.start);
            }
            next = next.max(range.end);
        }
        if let Some(summary) = summary.filter(|summary| summary.len > next) {
            missing.push(next..summary.len);
        }
        if !missing.is_empty() {
            self.missing.insert(key, missing);
        }
        Ok(())
    }

    /// Lists the sessions of the new store, with what they lack.
    pub(super) fn report(
        mut self,
        storage: &dyn Storage,
        recovered: &BTreeSet<StorageKey>,
        report: &mut SalvageReport,
    ) -> Result<()> {
        let behind: Vec<u8> = format::HEADER_PREFIX.iter().map(|byte| byte + 1).collect();
        let from = Bound::Included(format::HEADER_PREFIX);
        for entry in storage.range(Map::Sessions, from, Bound::Excluded(&behind)) {
            let (key, value) = entry?;
            let Some(key) = format::parse_tagged_key(format::HEADER_PREFIX, &key) else { continue };
            let id = match format::decode_header(key, &value) {
                Ok(header) => header.id,
                Err(_) => key.to_id(),
            };
            let summary = storage.get(Map::Sessions, &format::summary_key(key))?;
            let summary = summary.and_then(|value| format::decode_summary(key, &value).ok());
            report.sessions.push(SalvagedSession {
                id: SessionId::to_string(&id),
                len: summary.map_or(0, |summary| summary.len),
                missing: self.missing.remove(&key).unwrap_or_default(),
                recovered: recovered.contains(&key),
            });
        }
        Ok(())
    }
}

fn summaries(storage: &dyn Storage) -> crate::storage::Entries {
    let behind: Vec<u8> = format::SUMMARY_PREFIX.iter().map(|byte| byte + 1).collect();
    storage.range(Map::Sessions, Bound::Included(format::SUMMARY_PREFIX), Bound::Excluded(&behind))
}

/// Adds a range that starts no earlier than the last one.
fn join(ranges: &mut Vec<Range<u64>>, next: Range<u64>) {
    match ranges.last_mut() {
        Some(last) if next.start <= last.end => last.end = last.end.max(next.end),
        _ => ranges.push(next),
    }
}

/// Whether all parts of a large event are there, and are its own.
fn parts_are_there(storage: &dyn Storage, head: &format::BlockView<'_>) -> Result<bool> {
    let header = head.header();
    for part in 1..head.is_large().unwrap_or(1) {
        let value = storage.get(Map::Events, &format::part_key(header.key, header.first_seq, part))?;
        if value.as_deref().and_then(format::write_number) != Some(header.write_number) {
            return Ok(false);
        }
    }
    Ok(true)
}
