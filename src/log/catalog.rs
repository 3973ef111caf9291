//! The sessions that this process uses, by id and by storage key. What nobody uses is forgotten and read again.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use super::tail::{SessionState, Stored};
use crate::error::{Error, Place, Result};
use crate::format;
use crate::id::{SessionId, StorageKey};
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

    /// The session of this id, also one whose creation is not durable yet.
    pub(crate) fn by_id(&self, id: &SessionId, storage: &dyn Storage) -> Result<Option<Arc<SessionState>>> {
        self.lock().by_id(id, storage)
    }

    /// The session of this key.
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
        if let Some(state) = self.by_id.get(id).and_then(Weak::upgrade) {
            return Ok(Some(state));
        }
        let Some(value) = storage.get(Map::Sessions, &format::id_key(id))? else { return Ok(None) };
        let key = format::decode_id(id, &value).map_err(|e| e.at(Place::new("id record").session(id)))?;
        match self.by_key(key, storage)? {
            Some(state) if state.header.id == *id => Ok(Some(state)),
            _ => Err(missing_header(id)),
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
        let Some((header, stored)) = read_session(key, storage)? else { return Ok(None) };
        let state = SessionState::stored(header, stored);
        read_end(&state, storage)?;
        self.add(&state);
        Ok(Some(state))
    }

    pub(crate) fn add(&mut self, state: &Arc<SessionState>) {
        if self.by_key.len() >= self.sweep_at.max(1_024) {
            self.by_key.retain(|_, state| state.strong_count() > 0);
            self.by_id.retain(|_, state| state.strong_count() > 0);
            self.sweep_at = self.by_key.len() * 2;
        }
        self.by_id.insert(state.header.id.clone(), Arc::downgrade(state));
        self.by_key.insert(state.key(), Arc::downgrade(state));
    }

    /// Forgets a session whose creation was refused.
    pub(crate) fn remove(&mut self, state: &SessionState) {
        self.by_id.remove(&state.header.id);
        self.by_key.remove(&state.key());
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

/// Reads a session's header and summary.
pub(crate) fn read_session(
    key: StorageKey,
    storage: &dyn Storage,
) -> Result<Option<(format::NewHeader, Stored)>> {
    let Some(value) = storage.get(Map::Sessions, &format::header_key(key))? else { return Ok(None) };
    let header = format::decode_header(key, &value).map_err(|e| e.at(Place::new("header").session(key)))?;
    let stored = match storage.get(Map::Sessions, &format::summary_key(key))? {
        Some(value) => {
            let place = || Place::new("summary").session(&header.id);
            let summary = format::decode_summary(key, &value).map_err(|e| e.at(place()))?;
            Stored { len: summary.len, updated: summary.updated, hash: Some(summary.hash) }
        }
        None => {
            return Err(Error::Corrupt {
                place: Place::new("summary").session(&header.id),
                corruption: crate::error::Corruption::Missing { what: "the summary" },
            });
        }
    };
    Ok(Some((header.into_new(), stored)))
}

fn missing_header(id: &SessionId) -> Error {
    Error::Corrupt {
        place: Place::new("header").session(id),
        corruption: crate::error::Corruption::Missing { what: "the header that the id names" },
    }
}
