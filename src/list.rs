//! Sessions, the latest first: the order in storage, and above it what is not drained yet.

mod wanted;

use std::collections::{BinaryHeap, HashSet};
use std::fmt;
use std::ops::Bound;
use std::sync::Arc;

pub use self::wanted::{BadListCursor, List, ListCursor};
use crate::error::{Corruption, Error, Place, Result};
use crate::format::{self, OrderKey};
use crate::id::{SessionId, StorageKey};
use crate::log::catalog::{stored_labels, stored_parent};
use crate::log::core::Core;
use crate::log::tail::SessionState;
use crate::session::{SessionInfo, info};
use crate::storage::{Entries, Map};
use crate::store::Handle;

/// Sessions by their last update, the latest first; see [`Store::list`](crate::Store::list) and
/// [`Store::list_with`](crate::Store::list_with). The first error is the last item. It keeps the store open.
///
/// # Cost
/// Some reads of small values for each session that it gives; of one that labels or the parent leave out, one. Memory: a
/// few bytes for each session with events that are not drained, and, in a list that begins at the top, for each that it
/// has given.
pub struct Sessions {
    handle: Handle,
    list: List,
    parent: Option<StorageKey>,
    /// Sessions that storage does not know as they are now.
    undrained: BinaryHeap<Undrained>,
    stored: Entries,
    /// What `stored` must not give again: all of the undrained, and what was given.
    given: HashSet<StorageKey>,
    /// The ids that were given: one can have become another session's meanwhile.
    ids: HashSet<SessionId>,
    /// How far the engine held everything when `stored` began. A drain meanwhile moves sessions in its order: what it
    /// moved past the scan is looked for once more, but not by a list that goes on: that is no longer one of a moment.
    through: u64,
    next_stored: Option<OrderKey>,
    /// How far down the order everything was given or left out.
    passed: Option<ListCursor>,
    /// Looked at, and not given yet.
    ahead: Option<Result<(ListCursor, SessionInfo)>>,
    finished: bool,
}

/// A session whose place in the order only memory knows.
struct Undrained {
    at: ListCursor,
    state: Arc<SessionState>,
}

impl Ord for Undrained {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        self.at.cmp(&other.at)
    }
}

impl PartialOrd for Undrained {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Undrained {
    fn eq(&self, other: &Self) -> bool {
        self.at == other.at
    }
}

impl Eq for Undrained {}

impl fmt::Debug for Sessions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Sessions")
            .field("list", &self.list)
            .field("finished", &self.finished)
            .finish_non_exhaustive()
    }
}

impl Sessions {
    pub(crate) fn new(handle: Handle, list: List) -> Result<Self> {
        let core = Arc::clone(handle.core());
        let parent = match &list.parent {
            Some(id) => Some(core.session(id)?.key()),
            None => None,
        };
        let up_to = core.up_to();
        let mut undrained = Vec::new();
        let mut given = HashSet::new();
        for state in core.undrained() {
            given.insert(state.key());
            let tail = state.lock();
            let is_listed =
                tail.visible_since().is_some_and(|since| since <= up_to.0) && tail.deleted.is_none();
            let at = ListCursor { updated: tail.updated(up_to), key: state.key() };
            drop(tail);
            if is_listed && list.spans(at) {
                undrained.push(Undrained { at, state });
            }
        }
        let through = core.drain.through();
        let stored = scan(&core, &list);
        let passed = list.after;
        Ok(Self {
            handle,
            list,
            parent,
            undrained: undrained.into(),
            stored,
            given,
            ids: HashSet::new(),
            through,
            next_stored: None,
            passed,
            ahead: None,
            finished: false,
        })
    }

    /// Returns where a later list goes on with what this one has not given, `None` when there is no more.
    ///
    /// With it a list is read in pages: each session that does not change meanwhile is on exactly one of them. One that is
    /// appended to meanwhile moves up, and is on none, or on two, of those that are read afterwards.
    ///
    /// # Errors
    /// Looking for the next session can fail, as reading it would.
    /// # Examples
    /// ```
    /// # fn main() -> sessionlog::Result<()> {
    /// use sessionlog::{List, NewSession, Store};
    /// let store = Store::in_memory()?;
    /// for _ in 0..5 {
    ///     store.create(NewSession::new())?;
    /// }
    /// let mut sessions = store.list()?;
    /// let page: Vec<_> = sessions.by_ref().take(3).collect::<sessionlog::Result<_>>()?;
    /// let next = sessions.next_cursor()?.expect("there are more");
    /// let mut sessions = store.list_with(List::new().after(next))?;
    /// assert_eq!((page.len(), sessions.by_ref().count()), (3, 2));
    /// assert_eq!(sessions.next_cursor()?, None);
    /// # Ok(()) }
    /// ```
    pub fn next_cursor(&mut self) -> Result<Option<ListCursor>> {
        if self.ahead.is_none() && !self.finished {
            self.ahead = self.advance();
        }
        match &self.ahead {
            None => Ok(None),
            Some(Ok(_)) => Ok(Some(self.passed.unwrap_or(ListCursor::TOP))),
            Some(Err(_)) => self.ahead.take().map_or(Ok(None), |error| error.map(|_| None)),
        }
    }

    /// As the iterator; with the storage key.
    pub(crate) fn next_with_key(&mut self) -> Option<Result<(StorageKey, SessionInfo)>> {
        self.next_found().map(|found| found.map(|(at, info)| (at.key, info)))
    }

    fn next_found(&mut self) -> Option<Result<(ListCursor, SessionInfo)>> {
        let found = match self.ahead.take() {
            Some(ahead) => Some(ahead),
            None if self.finished => None,
            None => self.advance(),
        };
        if let Some(Ok((at, _))) = &found {
            self.pass(*at);
        }
        found
    }

    fn advance(&mut self) -> Option<Result<(ListCursor, SessionInfo)>> {
        let step = self.step().transpose();
        self.finished = !matches!(step, Some(Ok(_)));
        step
    }

    /// The next session that is still there.
    fn step(&mut self) -> Result<Option<(ListCursor, SessionInfo)>> {
        let core = Arc::clone(self.handle.core());
        loop {
            self.look_ahead(&core)?;
            let stored = self.next_stored.map(place);
            let undrained = self.undrained.peek().map(|undrained| undrained.at);
            let Some(at) = undrained.max(stored) else { return Ok(None) };
            let state = if undrained >= stored {
                self.undrained.pop().map(|undrained| undrained.state).filter(|state| self.wants(state))
            } else {
                let Some(order) = self.next_stored.take() else { return Ok(None) };
                self.stored_session(&core, &order)?
            };
            match state.map(|state| info(&core, &state)) {
                // Left out, or deleted since the order was read.
                None | Some(Err(Error::SessionNotFound { .. })) => self.pass(at),
                Some(found) => {
                    let found = found?;
                    if self.is_new(at.key, &found.header.id) {
                        return Ok(Some((at, found)));
                    }
                    self.pass(at);
                }
            }
        }
    }

    /// Notes that everything down to there was given or left out.
    fn pass(&mut self, at: ListCursor) {
        self.passed = Some(self.passed.map_or(at, |passed| passed.min(at)));
    }

    /// Whether neither the session nor another one with its id was given.
    fn is_new(&mut self, key: StorageKey, id: &SessionId) -> bool {
        if self.list.after.is_some() {
            return true;
        }
        self.given.insert(key);
        self.ids.insert(id.clone())
    }

    /// Finds the next session in the order that storage has, if there is one.
    fn look_ahead(&mut self, core: &Core) -> Result<()> {
        while self.next_stored.is_none() {
            let Some((key, value)) = self.stored.next().transpose()? else {
                let through = core.drain.through();
                if self.list.after.is_some() || std::mem::replace(&mut self.through, through) == through {
                    break;
                }
                self.stored = scan(core, &self.list);
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

    /// Whether a session in memory is one of those that the list is for.
    fn wants(&self, state: &SessionState) -> bool {
        let parent = state.header.parent.map(|(parent, _)| parent);
        (self.parent.is_none() || parent == self.parent) && self.list.wants(&state.lock().labels.now)
    }

    /// The session that a record of the order names; `None` when the list leaves it out, or when it was deleted, and
    /// removed, since that was read.
    fn stored_session(&self, core: &Core, order: &OrderKey) -> Result<Option<Arc<SessionState>>> {
        let storage = core.storage.as_ref();
        // Most are left out by one record: the others are not read for that.
        if !core.catalog.has(order.key) {
            if self.parent.is_some() && stored_parent(order.key, storage)? != self.parent {
                return Ok(None);
            }
            if self.list.looks_at_labels() && !self.list.wants(&stored_labels(order.key, storage)?) {
                return Ok(None);
            }
        }
        let state = core.catalog.by_key(order.key, storage)?;
        if state.is_some() || !is_there(core, order)? {
            return Ok(state.filter(|state| self.wants(state)));
        }
        Err(Error::Corrupt {
            place: Place::new("order record").session(order.key),
            corruption: Corruption::Missing { what: "the session's header" },
        })
    }
}

fn place(order: OrderKey) -> ListCursor {
    ListCursor { updated: order.updated, key: order.key }
}

fn is_there(core: &Core, order: &OrderKey) -> Result<bool> {
    let key = format::order_key(order.updated, order.key);
    Ok(core.storage.get(Map::Sessions, &key)?.is_some())
}

impl Iterator for Sessions {
    type Item = Result<SessionInfo>;

    fn next(&mut self) -> Option<Self::Item> {
        self.next_found().map(|found| found.map(|(_, info)| info))
    }
}

impl std::iter::FusedIterator for Sessions {}

/// The order in storage, as far as the list spans it, from the latest on.
fn scan(core: &Core, list: &List) -> Entries {
    let first = StorageKey([0; 16]);
    let lowest =
        list.since.map_or(format::ORDER_PREFIX.to_vec(), |since| format::order_key(since, first).to_vec());
    let behind = format::behind(format::ORDER_PREFIX);
    let after = list.after.map(|after| format::order_key(after.updated, after.key).to_vec());
    let until = list.until.map(|until| format::order_key(until, first).to_vec());
    let highest = after.into_iter().chain(until).fold(behind, std::cmp::min);
    core.storage.range_reverse(Map::Sessions, Bound::Included(&lowest), Bound::Excluded(&highest))
}
