//! The calls that wait for a result.

use std::collections::{HashMap, HashSet};

use super::entry::Call;
use crate::event::JsonString;

/// Open calls, by the text of their id; and the ids that the model is shown for them, which are unique.
#[derive(Clone, Debug, Default)]
pub(super) struct OpenCalls {
    /// Orders, ascending: the nearest is the last.
    by_id: HashMap<String, Vec<u64>>,
    /// Shown ids that are no event's own.
    renamed: HashSet<String>,
    len: usize,
}

impl OpenCalls {
    pub(super) fn len(&self) -> usize {
        self.len
    }

    /// The number that makes the id of a new call unique among the open ones: 1 when it already is.
    pub(super) fn nth_of(&self, id: &JsonString) -> u32 {
        if self.len == 0 {
            return 1;
        }
        let text = id.to_str();
        let open = self.by_id.get(&*text).map_or(0, Vec::len);
        if open == 0 && !self.renamed.contains(&*text) {
            return 1;
        }
        let from = u32::try_from(open).unwrap_or(u32::MAX).saturating_add(1).max(2);
        let is_free = |nth: &u32| {
            let shown = format!("{text}#{nth}");
            !self.renamed.contains(&shown) && !self.by_id.contains_key(&shown)
        };
        (from..u32::MAX).find(is_free).unwrap_or(u32::MAX)
    }

    /// Adds the call at this order, behind all others.
    pub(super) fn add(&mut self, call: &Call, order: u64) {
        self.by_id.entry(call.id.to_str().into_owned()).or_default().push(order);
        if call.nth > 1 {
            self.renamed.insert(call.shown_id().to_str().into_owned());
        }
        self.len += 1;
    }

    /// The order of the nearest open call of this id.
    pub(super) fn nearest(&self, id: &JsonString) -> Option<u64> {
        self.by_id.get(&*id.to_str())?.last().copied()
    }

    /// Takes off the call at this order: it was answered, or is gone.
    pub(super) fn remove(&mut self, call: &Call, order: u64) {
        let text = call.id.to_str();
        let Some(orders) = self.by_id.get_mut(&*text) else { return };
        let Some(index) = orders.iter().rposition(|open| *open == order) else { return };
        orders.remove(index);
        if orders.is_empty() {
            self.by_id.remove(&*text);
        }
        if call.nth > 1 {
            self.renamed.remove(&*call.shown_id().to_str());
        }
        self.len -= 1;
    }
}
