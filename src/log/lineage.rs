//! Which sessions hold the events of a fork: the chain of its parents, walked without recursion.

use std::collections::HashSet;
use std::ops::Range;
use std::sync::Arc;

use super::tail::SessionState;
use crate::error::{Corruption, Error, Place, Result};
use crate::id::StorageKey;

/// Consecutive events that one session holds.
#[derive(Clone, Debug)]
pub(crate) struct Segment {
    pub(crate) session: Arc<SessionState>,
    pub(crate) from: u64,
    pub(crate) to: u64,
}

/// The segments that hold the events of `session` in `range`, oldest first.
///
/// Each session keeps a link to its parent once it was followed, so a later call costs a step for each ancestor and
/// reads nothing. Ancestors that lend no event of the range leave no segment.
pub(crate) fn segments(
    session: &Arc<SessionState>,
    range: &Range<u64>,
    load: impl Fn(StorageKey) -> Result<Option<Arc<SessionState>>>,
) -> Result<Vec<Segment>> {
    let mut found = Vec::new();
    let mut current = Arc::clone(session);
    let mut to = range.end;
    // Only a chain that is followed for the first time can lead back to itself: links are made one by one.
    let mut seen = HashSet::new();
    loop {
        let from = current.header.prefix_len().max(range.start);
        if from < to {
            found.push(Segment { session: Arc::clone(&current), from, to });
            to = from;
        }
        let Some((key, _)) = current.header.parent.filter(|_| range.start < to) else { break };
        if let Some(parent) = current.parent.get() {
            current = Arc::clone(parent);
            continue;
        }
        let corrupt = |corruption| Error::Corrupt {
            place: Place::new("header").session(&session.header.id),
            corruption,
        };
        seen.insert(current.key());
        if seen.contains(&key) {
            return Err(corrupt(Corruption::Undecodable {
                what: "a chain of parents that leads back to itself",
            }));
        }
        let Some(parent) = load(key)? else {
            return Err(corrupt(Corruption::MissingParent { parent: key.to_string() }));
        };
        let parent = Arc::clone(current.parent.get_or_init(|| parent));
        current = parent;
    }
    found.reverse();
    Ok(found)
}
