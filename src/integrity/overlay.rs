//! Storage as it would be: changes are kept in memory, and what is below stays as it is. A plan is a repair on this.

use std::collections::BTreeMap;
use std::fmt;
use std::ops::Bound;
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::error::Result;
use crate::storage::{Entries, Entry, Map, Storage};

type Changes = BTreeMap<Vec<u8>, Option<Vec<u8>>>;

/// Changes over a storage that is not changed.
pub(super) struct Overlay<'a> {
    below: &'a dyn Storage,
    changes: Mutex<[Changes; 4]>,
}

impl fmt::Debug for Overlay<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Overlay").field("below", &self.below).finish_non_exhaustive()
    }
}

impl<'a> Overlay<'a> {
    pub(super) fn new(below: &'a dyn Storage) -> Self {
        Self { below, changes: Mutex::default() }
    }

    fn lock(&self) -> MutexGuard<'_, [Changes; 4]> {
        self.changes.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn put(&self, map: Map, key: &[u8], value: Option<&[u8]>) {
        if let Some(changes) = self.lock().get_mut(map as usize) {
            changes.insert(key.to_vec(), value.map(<[u8]>::to_vec));
        }
    }

    fn merged(&self, map: Map, from: Bound<&[u8]>, to: Bound<&[u8]>, reverse: bool) -> Entries {
        let is_empty = match (from, to) {
            (Bound::Included(from), Bound::Included(to)) => from > to,
            (Bound::Included(from) | Bound::Excluded(from), Bound::Included(to) | Bound::Excluded(to)) => {
                from >= to
            }
            _ => false,
        };
        if is_empty {
            return Box::new(std::iter::empty());
        }
        let below =
            if reverse { self.below.range_reverse(map, from, to) } else { self.below.range(map, from, to) };
        let mut above: Vec<(Vec<u8>, Option<Vec<u8>>)> = match self.lock().get(map as usize) {
            Some(changes) => changes
                .range::<[u8], _>((from, to))
                .map(|(key, value)| (key.clone(), value.clone()))
                .collect(),
            None => Vec::new(),
        };
        // The next one last.
        if !reverse {
            above.reverse();
        }
        Box::new(Merged { below: below.peekable(), above, reverse })
    }
}

struct Merged {
    below: std::iter::Peekable<Entries>,
    above: Vec<(Vec<u8>, Option<Vec<u8>>)>,
    reverse: bool,
}

impl Iterator for Merged {
    type Item = Result<Entry>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            let order = match (self.above.last(), self.below.peek()) {
                (None, _) => return self.below.next(),
                (Some(_), None) => std::cmp::Ordering::Less,
                (Some(_), Some(Err(_))) => return self.below.next(),
                (Some((above, _)), Some(Ok((below, _)))) if self.reverse => below.cmp(above),
                (Some((above, _)), Some(Ok((below, _)))) => above.cmp(below),
            };
            if order == std::cmp::Ordering::Greater {
                return self.below.next();
            }
            if order == std::cmp::Ordering::Equal {
                self.below.next();
            }
            if let Some((key, Some(value))) = self.above.pop() {
                return Some(Ok((key, value)));
            }
        }
    }
}

impl Storage for Overlay<'_> {
    fn get(&self, map: Map, key: &[u8]) -> Result<Option<Vec<u8>>> {
        if let Some(value) = self.lock().get(map as usize).and_then(|changes| changes.get(key)) {
            return Ok(value.clone());
        }
        self.below.get(map, key)
    }

    fn range(&self, map: Map, from: Bound<&[u8]>, to: Bound<&[u8]>) -> Entries {
        self.merged(map, from, to, false)
    }

    fn range_reverse(&self, map: Map, from: Bound<&[u8]>, to: Bound<&[u8]>) -> Entries {
        self.merged(map, from, to, true)
    }

    fn insert(&self, map: Map, key: &[u8], value: &[u8]) -> Result<()> {
        self.put(map, key, Some(value));
        Ok(())
    }

    fn apply(&self, map: Map, changes: &[(Vec<u8>, Option<Vec<u8>>)]) -> Result<()> {
        changes.iter().for_each(|(key, value)| self.put(map, key, value.as_deref()));
        Ok(())
    }

    fn flush(&self) -> Result<()> {
        Ok(())
    }

    fn size_on_disk(&self) -> Result<u64> {
        self.below.size_on_disk()
    }

    fn close(&self) -> Result<()> {
        Ok(())
    }
}
