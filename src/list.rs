//! All sessions, the latest first: the order in storage, and above it what is not drained yet.

use std::collections::HashSet;
use std::fmt;
use std::ops::Bound;
use std::sync::Arc;

use crate::error::{Corruption, Error, Place, Result};
use crate::format::{self, OrderKey};
use crate::id::{SessionId, StorageKey, Timestamp};
use crate::log::core::Core;
use crate::log::tail::SessionState;
use crate::session::{SessionInfo, info};
use crate::storage::{Entries, Map};
use crate::store::Handle;

/// Sessions by their last update, the latest first; see [`Store::list`](crate::Store::list). The first error is the
/// last item. It keeps the store open.
pub struct Sessions {
    handle: Handle,
    /// Sessions that storage does not know as they are now, the latest last.
    undrained: Vec<(Timestamp, Arc<SessionState>)>,
    stored: Entries,
    /// What `stored` must not give again: all of `undrained`, and what was given.
    given: HashSet<StorageKey>,
    /// The ids that were given: one can have become another session's meanwhile.
    ids: HashSet<SessionId>,
    /// How far the engine held everything when `stored` began. A drain meanwhile moves sessions in its order: what it
    /// moved past the scan is looked for once more.
    through: u64,
    next_stored: Option<OrderKey>,
    finished: bool,
}

impl fmt::Debug for Sessions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Sessions").field("finished", &self.finished).finish_non_exhaustive()
    }
}

impl Sessions {
    pub(crate) fn new(handle: Handle) -> Self {
        let core = Arc::clone(handle.core());
        let up_to = core.up_to();
        let mut undrained: Vec<_> = core
            .undrained()
            .into_iter()
            .filter(|state| state.lock().visible_since().is_some_and(|since| since <= up_to.0))
            .filter(|state| !state.is_deleted())
            .map(|state| {
                let updated = state.lock().updated(up_to);
                (updated, state)
            })
            .collect();
        undrained.sort_by_key(|(updated, state)| (*updated, state.key()));
        let given = undrained.iter().map(|(_, state)| state.key()).collect();
        let through = core.drain.through();
        let stored = scan(&core);
        Self {
            handle,
            undrained,
            stored,
            given,
            ids: HashSet::new(),
            through,
            next_stored: None,
            finished: false,
        }
    }

    /// The next session that is still there.
    fn step(&mut self) -> Result<Option<SessionInfo>> {
        let core = Arc::clone(self.handle.core());
        loop {
            self.look_ahead(&core)?;
            let stored = self.next_stored.map(|order| (order.updated, order.key));
            let undrained = self.undrained.last().map(|(updated, state)| (*updated, state.key()));
            let state = if undrained.is_some() && undrained >= stored {
                self.undrained.pop().map(|(_, state)| state)
            } else {
                let Some(order) = self.next_stored.take() else { return Ok(None) };
                self.given.insert(order.key);
                stored_session(&core, &order)?
            };
            match state.map(|state| info(&core, &state)) {
                // Deleted since the order was read.
                None | Some(Err(Error::SessionNotFound { .. })) => {}
                Some(found) => {
                    let found = found?;
                    if self.ids.insert(found.header.id.clone()) {
                        return Ok(Some(found));
                    }
                }
            }
        }
    }

    /// Finds the next session in the order that storage has, if there is one.
    fn look_ahead(&mut self, core: &Core) -> Result<()> {
        while self.next_stored.is_none() {
            let Some((key, value)) = self.stored.next().transpose()? else {
                let through = core.drain.through();
                if std::mem::replace(&mut self.through, through) == through {
                    break;
                }
                self.stored = scan(core);
                continue;
            };
            let place = || Place::new("order record").at(format::hex(&key));
            let Some(found) = format::parse_order_key(&key) else {
                return Err(Error::Corrupt { place: place(), corruption: Corruption::NotRecognised });
            };
            format::check_order(&found, &value).map_err(|error| error.at(place()))?;
            if !self.given.contains(&found.key) {
                self.next_stored = Some(found);
            }
        }
        Ok(())
    }
}

/// The session that a record of the order names; `None` when it was deleted, and removed, since that was read.
fn stored_session(core: &Core, order: &OrderKey) -> Result<Option<Arc<SessionState>>> {
    let state = core.catalog.by_key(order.key, core.storage.as_ref())?;
    if state.is_some() || !is_there(core, order)? {
        return Ok(state);
    }
    Err(Error::Corrupt {
        place: Place::new("order record").session(order.key),
        corruption: Corruption::Missing { what: "the session's header" },
    })
}

fn is_there(core: &Core, order: &OrderKey) -> Result<bool> {
    let key = format::order_key(order.updated, order.key);
    Ok(core.storage.get(Map::Sessions, &key)?.is_some())
}

impl Iterator for Sessions {
    type Item = Result<SessionInfo>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.finished {
            return None;
        }
        let step = self.step().transpose();
        self.finished = !matches!(step, Some(Ok(_)));
        step
    }
}

impl std::iter::FusedIterator for Sessions {}

/// The order in storage, from the latest on.
fn scan(core: &Core) -> Entries {
    let first = format::ORDER_PREFIX;
    let behind: Vec<u8> = first.iter().map(|byte| byte + 1).collect();
    core.storage.range_reverse(Map::Sessions, Bound::Included(first), Bound::Excluded(&behind))
}
