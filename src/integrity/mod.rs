//! A first integrity pass: reads everything as any reader would, and checks what readers do not look at.

use crate::error::{Corruption, Error, Place, Result};
use crate::format::{self, Hash};
use crate::id::{Seq, SessionId};
use crate::session::Session;
use crate::storage::Map;
use crate::store::Store;

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

    pub(crate) fn of(store: &Store) -> Result<Self> {
        let mut report = Self::default();
        for info in store.list()? {
            let checked = info.and_then(|info| {
                let session = listed(store, &info.header.id)?;
                let events = check_session(store, &session);
                Ok((info.header.id, events))
            });
            match checked {
                Ok((_, Ok(events))) => {
                    report.sessions += 1;
                    report.events += events;
                }
                Ok((id, Err(error))) => {
                    report.sessions += 1;
                    report.problems.push(Problem { session: Some(id.to_string()), error });
                }
                Err(Error::Closed) => return Err(Error::Closed),
                Err(error) => report.problems.push(Problem { session: None, error }),
            }
        }
        Ok(report)
    }
}

/// A session that the list shows: its id leads to it, too.
fn listed(store: &Store, id: &SessionId) -> Result<Session> {
    store.session(id).map_err(|error| match error {
        Error::SessionNotFound { session } => Error::Corrupt {
            place: Place::new("id record").session(session),
            corruption: Corruption::Missing { what: "the id of a session that is listed" },
        },
        error => error,
    })
}

/// Reads a session's own events and follows the running hash to where its summary says it is. Returns their number.
fn check_session(store: &Store, session: &Session) -> Result<u64> {
    let core = store.handle().core();
    let state = session.state();
    let own = state.header.prefix_len();
    let stored = state.lock().stored;
    let value = core.storage.get(Map::Sessions, &format::header_key(state.key()))?;
    let mut hash = match &value {
        Some(value) => {
            format::decode_header(state.key(), value).map_err(|e| e.at(state.place(own)))?.prefix_hash
        }
        // Not drained yet: nothing is stored that could be wrong.
        None => Hash::UNKNOWN,
    };
    let mut line = Vec::new();
    let mut next = own;
    let wrong = |next: u64| value.is_some() && next == stored.len;
    let differs = || Error::Corrupt {
        place: Place::new("summary").session(session.id()),
        corruption: Corruption::RunningHash,
    };
    if wrong(next) && stored.hash != Some(hash) {
        return Err(differs());
    }
    for event in session.read_from(Seq::new(own))? {
        let event = event?;
        line.clear();
        event.write_json(&mut line);
        hash = hash.next(&line);
        next += 1;
        if wrong(next) && stored.hash != Some(hash) {
            return Err(differs());
        }
    }
    Ok(next - own)
}
