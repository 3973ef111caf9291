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
    let mut seen = HashSet::new();
    loop {
        let from = current.header.prefix_len().max(range.start);
        if from < to {
            found.push(Segment { session: Arc::clone(&current), from, to });
            to = from;
        }
        let Some((key, _)) = current.header.parent.filter(|_| range.start < to) else { break };
        let corrupt = |corruption| Error::Corrupt {
            place: Place::new("header").session(&session.header.id),
            corruption,
        };
        // Before the link is made: a circle of links would never be let go.
        seen.insert(current.key());
        if seen.contains(&key) {
            return Err(corrupt(Corruption::Undecodable {
                what: "a chain of parents that leads back to itself",
            }));
        }
        if let Some(parent) = current.parent.get() {
            let parent = Arc::clone(parent);
            current = parent;
            continue;
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

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use crate::id::Timestamp;

    const CREATED: Timestamp = Timestamp::MAX;

    fn key(number: u16) -> StorageKey {
        let mut bytes = [0; 16];
        bytes[..2].copy_from_slice(&number.to_be_bytes());
        StorageKey(bytes)
    }

    fn state(number: u16, parent: Option<(u16, u64)>) -> Arc<SessionState> {
        SessionState::new(crate::format::NewHeader {
            id: key(number).to_id(),
            key: key(number),
            created: CREATED,
            parent: parent.map(|(parent, prefix_len)| (key(parent), prefix_len)),
            meta: BTreeMap::new(),
            extra: Vec::new(),
        })
    }

    /// Parents that lead in a circle (only damage makes that) are an error, not an endless walk.
    #[test]
    fn a_circle_of_parents_is_an_error() {
        let states = [state(0, Some((2, 5))), state(1, Some((0, 5))), state(2, Some((1, 5)))];
        let load = |wanted| Ok(states.iter().find(|state| state.key() == wanted).cloned());
        for _ in 0..2 {
            let found = segments(&states[0], &(0..9), load);
            let circle = Corruption::Undecodable { what: "a chain of parents that leads back to itself" };
            assert!(
                matches!(&found, Err(Error::Corrupt { corruption, .. }) if *corruption == circle),
                "{found:?}"
            );
        }
    }

    /// A parent that is gone is named.
    #[test]
    fn a_missing_parent_is_an_error() {
        let found = segments(&state(1, Some((0, 5))), &(0..9), |_| Ok(None));
        let missing = Corruption::MissingParent { parent: key(0).to_string() };
        assert!(
            matches!(&found, Err(Error::Corrupt { corruption, .. }) if *corruption == missing),
            "{found:?}"
        );
    }

    /// Each session lends what the range wants of it; a chain of 10,000 is walked, and let go, without recursion.
    #[test]
    fn long_chains_are_walked_and_dropped() {
        let mut states = vec![state(0, None)];
        for number in 1..=10_000_u16 {
            states.push(state(number, Some((number - 1, u64::from(number) * 2))));
        }
        let last = Arc::clone(&states[10_000]);
        let load = |wanted| Ok(states.iter().find(|state| state.key() == wanted).cloned());
        assert_eq!(
            segments(&last, &(20_001..20_003), load).unwrap().len(),
            1,
            "its own part needs no parent"
        );
        assert!(last.parent.get().is_none());
        let found = segments(&last, &(0..20_003), load).unwrap();
        assert_eq!(found.len(), 10_001);
        assert!(found.windows(2).all(|pair| pair[0].to == pair[1].from));
        let part: Vec<_> = segments(&last, &(7..11), load).unwrap();
        let part: Vec<_> = part.iter().map(|segment| (segment.from, segment.to)).collect();
        assert_eq!(part, [(7, 8), (8, 10), (10, 11)]);
        drop((found, states));
        drop(last);
    }
}
