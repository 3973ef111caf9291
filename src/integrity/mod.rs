//! A first integrity pass: reads everything as any reader would, and checks what readers do not look at.

mod carve;
mod records;
mod salvage;

use std::sync::Arc;

pub use self::salvage::{
    EngineOutcome, Salvage, SalvageProgress, SalvageReport, SalvageStep, SalvagedSession,
};

use crate::error::{Corruption, Error, Place, Result};
use crate::format::{self, Hash};
use crate::id::{Seq, StorageKey};
use crate::log::core::Core;
use crate::log::tail::SessionState;
use crate::session::Session;
use crate::storage::Map;
use crate::store::{Handle, Store};

/// What a check of a whole store found.
#[derive(Debug, Default)]
#[non_exhaustive]
pub struct CheckReport {
    /// Sessions looked at.
    pub sessions: u64,
    /// Events read: their checksums are right and their seqs contiguous. Events that forks share count once.
    pub events: u64,
    /// What is wrong, in no order.
    pub problems: Vec<Problem>,
}

/// Something that a check found wrong.
#[derive(Debug)]
#[non_exhaustive]
pub struct Problem {
    /// The session's id, where it is known.
    pub session: Option<String>,
    /// What reading it gave.
    pub error: Error,
}

impl CheckReport {
    /// Whether nothing is wrong.
    pub fn is_clean(&self) -> bool {
        self.problems.is_empty()
    }

    /// Goes to the end, whatever it meets.
    pub(crate) fn of(store: &Store) -> Result<Self> {
        let handle = store.handle();
        let core = handle.core();
        let mut report = Self::default();
        // Before the headers in storage: a session that is drained meanwhile is met there, and only there.
        let undrained = core.undrained();
        records::check(core, &mut report)?;
        for entry in records::all(core, format::HEADER_PREFIX) {
            let (key, value) = match entry {
                Ok(entry) => entry,
                Err(error) => {
                    report.add(None, error)?;
                    break;
                }
            };
            let Some(key) = format::parse_tagged_key(format::HEADER_PREFIX, &key) else {
                let place = Place::new("header").at(format::hex(&key));
                report.add(None, Error::Corrupt { place, corruption: Corruption::NotRecognised })?;
                continue;
            };
            report.sessions += 1;
            match records::session(core, key, &value) {
                Ok(state) => report.read(handle, &state)?,
                Err(error) => report.add(Some(key.to_string()), error)?,
            }
        }
        for state in undrained {
            let is_new = state.lock().created.is_some_and(|created| created > 0);
            if is_new && core.storage.get(Map::Sessions, &format::header_key(state.key()))?.is_none() {
                report.sessions += 1;
                report.read(handle, &state)?;
            }
        }
        Ok(report)
    }

    fn read(&mut self, handle: &Handle, state: &Arc<SessionState>) -> Result<()> {
        match read_session(handle, state) {
            Ok(events) => {
                self.events += events;
                Ok(())
            }
            Err(error) => self.add(Some(state.header.id.to_string()), error),
        }
    }

    /// Notes a problem. A store that was closed has none: that ends the check.
    fn add(&mut self, session: Option<String>, error: Error) -> Result<()> {
        if matches!(error, Error::Closed) {
            return Err(error);
        }
        self.problems.push(Problem { session, error });
        Ok(())
    }
}

/// Reads a session's own events and follows the running hash to where its summary says it is. Returns their number.
fn read_session(handle: &Handle, state: &Arc<SessionState>) -> Result<u64> {
    let core: &Core = handle.core();
    core.drain.check_end(core, state)?;
    let own = state.header.prefix_len();
    let mut hash = prefix_hash(core, state.key(), state)?;
    let stored = state.lock().stored;
    let differs = || Error::Corrupt {
        place: Place::new("summary").session(&state.header.id),
        corruption: Corruption::RunningHash,
    };
    let mut next = own;
    let mut line = Vec::new();
    let mut events = Session::new(handle.clone(), Arc::clone(state)).read_from(Seq::new(own))?;
    loop {
        let wrong = |hash: Hash| next == stored.len && stored.hash.is_some_and(|stored| stored != hash);
        if hash.is_some_and(wrong) {
            return Err(differs());
        }
        let Some(event) = events.next().transpose()? else { return Ok(next - own) };
        line.clear();
        event.write_json(&mut line);
        hash = hash.map(|hash| hash.next(&line));
        next += 1;
    }
}

/// The hash that a session begins with; `None` while it is not stored, or where its parent is damaged.
fn prefix_hash(core: &Core, key: StorageKey, state: &SessionState) -> Result<Option<Hash>> {
    let Some(value) = core.storage.get(Map::Sessions, &format::header_key(key))? else { return Ok(None) };
    let header =
        format::decode_header(key, &value).map_err(|e| e.at(state.place(state.header.prefix_len())))?;
    Ok(Some(header.prefix_hash).filter(|hash| *hash != Hash::UNKNOWN))
}

/// Stands where repair will be: makes the few records that opening needs.
fn mend(storage: &dyn crate::storage::Storage, _files: &dyn crate::storage::JournalFiles, _store_id: [u8; 16]) -> Result<()> {
    crate::log::replay::count_open(storage, false).map(drop)
}
