//! The sessions that this process uses, by id and by storage key. What nobody uses is forgotten and read again.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use super::tail::{SessionState, Stored};
use crate::error::{Corruption, Error, Place, Result};
use crate::format::{self, NewHeader};
use crate::id::{SessionId, StorageKey};
use crate::labels::Labels;
use crate::storage::{Map, Storage};

#[derive(Debug, Default)]
pub(crate) struct Catalog {
    used: Mutex<Used>,
}

/// The sessions in use. Held locked while a create or a fork is checked and queued.
#[derive(Debug, Default)]
pub(crate) struct Used {
    by_id: HashMap<SessionId, Weak<SessionState>>,
    by_key: HashMap<StorageKey, Weak<SessionState>>,
    /// The size at which forgotten ones are swept out.
    sweep_at: usize,
}

impl Catalog {
    pub(crate) fn lock(&self) -> MutexGuard<'_, Used> {
        self.used.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// All sessions in use.
    pub(crate) fn in_use(&self) -> Vec<Arc<SessionState>> {
        self.lock().by_key.values().filter_map(Weak::upgrade).collect()
    }

    /// Whether the session of this key is in use.
    pub(crate) fn has(&self, key: StorageKey) -> bool {
        self.lock().by_key.get(&key).is_some_and(|state| state.strong_count() > 0)
    }

    /// The session of this id, also one whose creation is not durable yet; none that was deleted.
    pub(crate) fn by_id(&self, id: &SessionId, storage: &dyn Storage) -> Result<Option<Arc<SessionState>>> {
        self.lock().by_id(id, storage)
    }

    /// The session of this key, also a deleted one of which something is left.
    pub(crate) fn by_key(&self, key: StorageKey, storage: &dyn Storage) -> Result<Option<Arc<SessionState>>> {
        self.lock().by_key(key, storage)
    }
}

impl Used {
    pub(crate) fn by_id(
        &mut self,
        id: &SessionId,
        storage: &dyn Storage,
    ) -> Result<Option<Arc<SessionState>>> {
        if let Some(state) = self.by_id.get(id).and_then(Weak::upgrade).filter(|state| !state.is_deleted()) {
            return Ok(Some(state));
        }
        let mut before = None;
        loop {
            let Some(value) = storage.get(Map::Sessions, &format::id_key(id))? else { return Ok(None) };
            let key = format::decode_id(id, &value).map_err(|e| e.at(Place::new("id record").session(id)))?;
            match self.by_key(key, storage)? {
                Some(state) if state.header.id == *id => {
                    return Ok(Some(state).filter(|state| !state.is_deleted()));
                }
                // A removal may have come between: then the record is gone, or is another session's.
                _ if before.replace(key) != Some(key) => {}
                _ => return Err(missing("header", id, "the header that the id names")),
            }
        }
    }

    pub(crate) fn by_key(
        &mut self,
        key: StorageKey,
        storage: &dyn Storage,
    ) -> Result<Option<Arc<SessionState>>> {
        if let Some(state) = self.by_key.get(&key).and_then(Weak::upgrade) {
            return Ok(Some(state));
        }
        let state = if let Some(found) = read_session(key, storage)? {
            let state = SessionState::stored(found.header, found.stored, found.is_deleted);
            read_end(&state, storage)?;
            if found.is_deleted {
                // Its id may be another session's by now.
                self.add_key(&state);
            } else {
                state.lock().labels.now = Arc::new(stored_labels(key, storage)?);
                self.add(&state);
            }
            state
        } else if let Some((header, stored)) = read_hidden(key, storage)? {
            let state = SessionState::stored_hidden(header, stored);
            self.add_key(&state);
            state
        } else {
            return Ok(None);
        };
        Ok(Some(state))
    }

    pub(crate) fn add(&mut self, state: &Arc<SessionState>) {
        self.add_key(state);
        self.by_id.insert(state.header.id.clone(), Arc::downgrade(state));
    }

    /// Adds a session that is found by its key only.
    pub(crate) fn add_key(&mut self, state: &Arc<SessionState>) {
        if self.by_key.len() >= self.sweep_at.max(1_024) {
            self.by_key.retain(|_, state| state.strong_count() > 0);
            self.by_id.retain(|_, state| state.strong_count() > 0);
            self.sweep_at = self.by_key.len() * 2;
        }
        self.by_key.insert(state.key(), Arc::downgrade(state));
    }

    /// Forgets a session whose creation was refused.
    pub(crate) fn remove(&mut self, state: &SessionState) {
        self.remove_id(state);
        self.by_key.remove(&state.key());
    }

    /// Forgets that a session has its id; another one may have it.
    pub(crate) fn remove_id(&mut self, state: &SessionState) {
        let found = self.by_id.get(&state.header.id).and_then(Weak::upgrade);
        if found.is_some_and(|found| found.key() == state.key()) {
            self.by_id.remove(&state.header.id);
        }
    }
}

/// Reads whether a repair has ended the session.
pub(crate) fn read_end(state: &SessionState, storage: &dyn Storage) -> Result<()> {
    let key = state.key();
    if let Some(value) = storage.get(Map::Care, &format::end_mark_key(key))? {
        let place = || Place::new("end mark").session(&state.header.id);
        let at = format::decode_end_mark(key, &value).map_err(|error| error.at(place()))?;
        // Set once: a state is made once.
        let _ = state.ended.set(at);
    }
    Ok(())
}

/// A session as storage has it.
struct Found {
    header: NewHeader,
    stored: Stored,
    is_deleted: bool,
}

/// Reads a session's header and summary, and whether it was deleted.
fn read_session(key: StorageKey, storage: &dyn Storage) -> Result<Option<Found>> {
    let header_key = format::header_key(key);
    let Some(value) = storage.get(Map::Sessions, &header_key)? else { return Ok(None) };
    let header = format::decode_header(key, &value).map_err(|e| e.at(Place::new("header").session(key)))?;
    let is_deleted = storage.get(Map::Sessions, &format::tombstone_key(key))?.is_some();
    let place = || Place::new("summary").session(&header.id);
    let Some(value) = storage.get(Map::Sessions, &format::summary_key(key))? else {
        // A removal that is under way takes both at once.
        return match storage.get(Map::Sessions, &header_key)? {
            None => Ok(None),
            Some(_) => Err(missing("summary", &header.id, "the summary")),
        };
    };
    let summary = format::decode_summary(key, &value).map_err(|e| e.at(place()))?;
    let stored = Stored { len: summary.len, updated: summary.updated, hash: Some(summary.hash) };
    Ok(Some(Found { header: header.into_new(), stored, is_deleted }))
}

/// Reads the header and summary of a hidden session.
fn read_hidden(key: StorageKey, storage: &dyn Storage) -> Result<Option<(NewHeader, Stored)>> {
    let Some(value) = storage.get(Map::Sessions, &format::hidden_key(key))? else { return Ok(None) };
    let place = || Place::new("hidden session").session(key);
    let header = format::decode_hidden(key, &value).map_err(|e| e.at(place()))?;
    let Some(value) = storage.get(Map::Sessions, &format::summary_key(key))? else {
        return Err(missing("summary", &header.id, "the summary"));
    };
    let place = || Place::new("summary").session(&header.id);
    let summary = format::decode_summary(key, &value).map_err(|e| e.at(place()))?;
    let stored = Stored { len: summary.len, updated: summary.updated, hash: Some(summary.hash) };
    Ok(Some((header.into_new(), stored)))
}

/// Reads a session's labels from storage; most have none.
pub(crate) fn stored_labels(key: StorageKey, storage: &dyn Storage) -> Result<Labels> {
    let Some(value) = storage.get(Map::Sessions, &format::labels_key(key))? else {
        return Ok(Labels::default());
    };
    format::decode_labels(key, &value).map_err(|error| error.at(Place::new("labels").session(key)))
}

/// Reads from storage which session another one was forked from.
pub(crate) fn stored_parent(key: StorageKey, storage: &dyn Storage) -> Result<Option<StorageKey>> {
    let Some(value) = storage.get(Map::Sessions, &format::header_key(key))? else { return Ok(None) };
    let header = format::decode_header(key, &value).map_err(|e| e.at(Place::new("header").session(key)))?;
    Ok(header.into_new().parent.map(|(parent, _)| parent))
}

fn missing(record: &'static str, id: &SessionId, what: &'static str) -> Error {
    Error::Corrupt { place: Place::new(record).session(id), corruption: Corruption::Missing { what } }
}
