//! Which session a command that only reads means: an exact id, or the beginning of exactly one.
//!
//! Commands that change a session do not come here: half an id must not be enough to write to one.

use std::io::{self, Write};

use sessionlog::{Error, Session, SessionId, Store};

use super::exit::Failure;

/// How many candidates an ambiguous beginning lists.
const SHOWN: usize = 10;

/// Returns the session with the id `given`, else the only one whose id begins with it; the latter is told on standard
/// error.
pub(crate) fn session(store: &Store, given: &SessionId) -> Result<Session, Failure> {
    match store.session(given) {
        Err(not_found @ Error::SessionNotFound { .. }) => by_beginning(store, given, not_found),
        found => Ok(found?),
    }
}

fn by_beginning(store: &Store, given: &SessionId, not_found: Error) -> Result<Session, Failure> {
    let mut candidates: Vec<SessionId> = Vec::new();
    let mut more = 0;
    for info in store.list()? {
        let id = info?.header.id;
        match id.as_str().starts_with(given.as_str()) {
            true if candidates.len() < SHOWN => candidates.push(id),
            true => more += 1,
            false => {}
        }
    }
    match candidates.as_slice() {
        [] => Err(not_found.into()),
        [id] => {
            let session = store.session(id)?;
            // Data is still to come on standard output; who cannot be told here is not in the way of it.
            let _ = writeln!(io::stderr(), "note: {given} is session {id}");
            Ok(session)
        }
        _ => Err(ambiguous(given, &candidates, more)),
    }
}

fn ambiguous(given: &SessionId, candidates: &[SessionId], more: usize) -> Failure {
    let mut text = format!("{} sessions begin with {given}:", candidates.len() + more);
    for id in candidates {
        text.push_str(&format!("\n  {id}"));
    }
    if more > 0 {
        text.push_str(&format!("\n  and {more} more"));
    }
    Failure::refused(text).hint("give more of the id")
}
