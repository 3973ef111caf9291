//! Blocks that were merged since: raw files hold them until they are written over.

use std::collections::BTreeMap;
use std::ops::Bound;

use crate::error::Result;
use crate::format::{self, WriteNumber};
use crate::id::StorageKey;
use crate::storage::{Map, Storage};

/// A sound block: when it was written, its seqs, its key.
type Block = (WriteNumber, u64, u64, Vec<u8>);

/// Removes blocks all of whose events newer ones hold. What overlaps otherwise is for a repair.
pub(super) fn remove(storage: &dyn Storage) -> Result<()> {
    let mut session: Option<StorageKey> = None;
    let mut blocks: Vec<Block> = Vec::new();
    for entry in storage.range(Map::Events, Bound::Unbounded, Bound::Unbounded) {
        let (key, value) = entry?;
        let Some(at) = format::parse_event_key(&key).filter(|at| at.part.is_none()) else { continue };
        let Ok(view) = format::open_block(at.key, at.seq, &value) else { continue };
        if session.replace(at.key) != Some(at.key) {
            remove_of_session(storage, std::mem::take(&mut blocks))?;
        }
        // A large event is never merged, and holds nothing where parts are missing.
        if view.is_large().is_none() {
            let header = view.header();
            blocks.push((header.write_number, header.first_seq, header.end(), key));
        }
    }
    remove_of_session(storage, blocks)
}

fn remove_of_session(storage: &dyn Storage, mut blocks: Vec<Block>) -> Result<()> {
    blocks.sort_unstable_by(|one, other| other.cmp(one));
    let mut held = Held::default();
    for (_, from, to, key) in blocks {
        if held.holds(from, to) {
            storage.apply(Map::Events, &[(key, None)])?;
        } else {
            held.add(from, to);
        }
    }
    Ok(())
}

/// Seqs, as ranges that do not touch.
#[derive(Default)]
struct Held(BTreeMap<u64, u64>);

impl Held {
    fn holds(&self, from: u64, to: u64) -> bool {
        self.0.range(..=from).next_back().is_some_and(|(_, end)| *end >= to)
    }

    fn add(&mut self, mut from: u64, mut to: u64) {
        while let Some((start, end)) =
            self.0.range(..=to).next_back().map(|(start, end)| (*start, *end)).filter(|(_, end)| *end >= from)
        {
            self.0.remove(&start);
            (from, to) = (from.min(start), to.max(end));
        }
        self.0.insert(from, to);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Goal: ranges that touch or overlap become one, whatever order they come in.
    #[test]
    fn ranges_join() {
        let mut held = Held::default();
        for (from, to) in [(10, 20), (40, 50), (30, 40), (0, 5), (15, 32)] {
            held.add(from, to);
        }
        assert_eq!(held.0, BTreeMap::from([(0, 5), (10, 50)]));
        assert!(held.holds(10, 50) && held.holds(0, 1) && !held.holds(4, 6) && !held.holds(5, 6));
    }
}
