//! Which sessions hold the events of a fork: its header chain, resolved once and without recursion.

use std::collections::HashSet;
use std::sync::Arc;

use super::tail::SessionState;
use crate::error::{Corruption, Error, Place, Result};
use crate::id::StorageKey;

/// The ancestors that a fork shares events with, oldest first. Its own events, from its prefix length on, are not
/// listed.
#[derive(Debug, Default)]
pub(crate) struct Lineage {
    shared: Vec<Segment>,
}

/// Consecutive events that one session holds.
#[derive(Clone, Debug)]
pub(crate) struct Segment {
    pub(crate) session: Arc<SessionState>,
    pub(crate) from: u64,
    pub(crate) to: u64,
}

impl Lineage {
    /// Follows the parents of `session`. Ancestors that lend nothing (forked at the same place again) leave no
    /// segment, so a chain of 10,000 forks without events costs one.
    pub(crate) fn resolve(
        session: &SessionState,
        mut load: impl FnMut(StorageKey) -> Result<Option<Arc<SessionState>>>,
    ) -> Result<Self> {
        let mut shared = Vec::new();
        let mut seen = HashSet::from([session.key()]);
        let mut parent = session.header.parent;
        let mut to = session.header.prefix_len();
        while let Some((key, _)) = parent.filter(|_| to > 0) {
            let corrupt = |corruption| Error::Corrupt {
                place: Place::new("header").session(&session.header.id),
                corruption,
            };
            if !seen.insert(key) {
                return Err(corrupt(Corruption::Undecodable {
                    what: "a chain of parents that leads back to itself",
                }));
            }
            let Some(ancestor) = load(key)? else {
                return Err(corrupt(Corruption::MissingParent { parent: key.to_string() }));
            };
            let from = ancestor.header.prefix_len();
            parent = ancestor.header.parent;
            if from < to {
                shared.push(Segment { session: ancestor, from, to });
                to = from;
            }
        }
        shared.reverse();
        Ok(Self { shared })
    }

    /// The segments that overlap `from..to`, cut to it, oldest first.
    pub(crate) fn within(&self, from: u64, to: u64) -> impl Iterator<Item = Segment> + '_ {
        let first = self.shared.partition_point(|segment| segment.to <= from);
        let rest = self.shared.get(first..).unwrap_or_default();
        rest.iter().take_while(move |segment| segment.from < to).map(move |segment| Segment {
            session: Arc::clone(&segment.session),
            from: segment.from.max(from),
            to: segment.to.min(to),
        })
    }
}
