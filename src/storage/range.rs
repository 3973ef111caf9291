//! The iterator behind `range`: it fetches small batches and seeks anew for each, so that it holds nothing between.
//!
//! An engine's own iterator would keep the engine alive, and with it its file lock, for as long as a reader exists.

use std::fmt;
use std::ops::Bound;
use std::sync::Arc;

use super::{Entries, Entry, Map};
use crate::error::{Error, Result};

/// Entries of the first batch; each further one has four times as many. Small, because a seek for the last key at or
/// below a wanted one takes a single entry.
const FIRST_BATCH: usize = 1;
/// Entries of a batch at most: with full values some 400 KiB.
const GREATEST_BATCH: usize = 64;

/// The part of a map that an iterator has still to give.
#[derive(Debug)]
pub(super) struct Span {
    pub(super) map: Map,
    pub(super) from: Bound<Vec<u8>>,
    pub(super) to: Bound<Vec<u8>>,
    pub(super) reverse: bool,
}

impl Span {
    /// Whether nothing can lie between the bounds. Asked first, because engines may panic at reversed bounds.
    fn is_empty(&self) -> bool {
        match (&self.from, &self.to) {
            (Bound::Included(from), Bound::Included(to)) => from > to,
            (Bound::Included(from) | Bound::Excluded(from), Bound::Included(to) | Bound::Excluded(to)) => {
                from >= to
            }
            _ => false,
        }
    }

    /// Leaves only what lies behind `key`, in the direction of travel.
    fn pass(&mut self, key: &[u8]) {
        let passed = Bound::Excluded(key.to_vec());
        if self.reverse {
            self.to = passed;
        } else {
            self.from = passed;
        }
    }

    pub(super) fn bounds(&self) -> (Bound<&[u8]>, Bound<&[u8]>) {
        (self.from.as_ref().map(Vec::as_slice), self.to.as_ref().map(Vec::as_slice))
    }
}

/// What gives the batches.
pub(super) trait Source: fmt::Debug + Send + Sync + 'static {
    /// Appends the first entries of `span` to the empty `batch`, at most `limit`; fewer only when there are no more,
    /// or an error comes behind them.
    fn batch(&self, span: &Span, limit: usize, batch: &mut Vec<Entry>) -> Result<()>;
}

/// Makes the iterator over `from` to `to`.
pub(super) fn entries<S: Source>(
    source: &Arc<S>,
    map: Map,
    from: Bound<&[u8]>,
    to: Bound<&[u8]>,
    reverse: bool,
) -> Entries {
    let span = Span { map, from: from.map(<[u8]>::to_vec), to: to.map(<[u8]>::to_vec), reverse };
    Box::new(Batches {
        source: Arc::clone(source),
        ended: span.is_empty(),
        span,
        batch: Vec::new().into_iter(),
        error: None,
        limit: FIRST_BATCH,
    })
}

#[derive(Debug)]
struct Batches<S> {
    source: Arc<S>,
    span: Span,
    batch: std::vec::IntoIter<Entry>,
    /// What comes behind the batch.
    error: Option<Error>,
    limit: usize,
    ended: bool,
}

impl<S: Source> Iterator for Batches<S> {
    type Item = Result<Entry>;

    fn next(&mut self) -> Option<Self::Item> {
        if let Some(entry) = self.batch.next() {
            return Some(Ok(entry));
        }
        if self.ended {
            return self.error.take().map(Err);
        }
        let mut batch = Vec::new();
        self.error = self.source.batch(&self.span, self.limit, &mut batch).err();
        self.ended = self.error.is_some() || batch.len() < self.limit;
        self.limit = (self.limit * 4).min(GREATEST_BATCH);
        if let Some((key, _)) = batch.last() {
            self.span.pass(key);
            self.ended |= self.span.is_empty();
        }
        self.batch = batch.into_iter();
        self.batch.next().map(Ok).or_else(|| self.error.take().map(Err))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Five entries and then an error.
    #[derive(Debug)]
    struct Damaged;

    impl Source for Damaged {
        fn batch(&self, span: &Span, limit: usize, batch: &mut Vec<Entry>) -> Result<()> {
            let passed = match &span.from {
                Bound::Excluded(key) => key[0],
                _ => 0,
            };
            let keys = (passed + 1..=5).take(limit);
            batch.extend(keys.map(|byte| (vec![byte], vec![])));
            if batch.len() < limit { Err(Error::Closed) } else { Ok(()) }
        }
    }

    /// What comes before an error is given, the error once, and nothing behind it.
    #[test]
    fn an_error_comes_behind_what_was_read() {
        let mut entries = entries(&Arc::new(Damaged), Map::Events, Bound::Unbounded, Bound::Unbounded, false);
        for byte in 1..=5 {
            assert_eq!(entries.next().unwrap().unwrap().0, [byte]);
        }
        assert!(matches!(entries.next(), Some(Err(Error::Closed))));
        assert!(entries.next().is_none() && entries.next().is_none());
    }

    #[test]
    fn reversed_and_touching_bounds_are_empty() {
        let span = |from, to| Span { map: Map::Events, from, to, reverse: false }.is_empty();
        let key = |byte: u8| vec![byte];
        assert!(span(Bound::Included(key(2)), Bound::Included(key(1))));
        assert!(!span(Bound::Included(key(1)), Bound::Included(key(1))));
        assert!(span(Bound::Included(key(1)), Bound::Excluded(key(1))));
        assert!(span(Bound::Excluded(key(1)), Bound::Included(key(1))));
        assert!(!span(Bound::Unbounded, Bound::Excluded(key(1))));
        assert!(!span(Bound::Excluded(key(1)), Bound::Unbounded));
    }
}
