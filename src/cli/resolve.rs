//! Which session a command that only reads means: an exact id, else the only one whose id begins like that or that has
//! this title.
//!
//! Commands that change a session do not come here: half an id must not be enough to write to one.

use sessionlog::{Error, Session, SessionId, SessionInfo, Store};

use super::exit::Failure;
use super::output::{self, printable};

/// How many candidates an ambiguous name lists.
const SHOWN: usize = 10;

/// Returns the session with the id `given`, else the only one that it can mean; that one is told on standard error.
pub(crate) fn session(store: &Store, given: &SessionId) -> Result<Session, Failure> {
    match store.session(given) {
        Err(not_found @ Error::SessionNotFound { .. }) => by_beginning_or_title(store, given, not_found),
        found => Ok(found?),
    }
}

fn by_beginning_or_title(store: &Store, given: &SessionId, not_found: Error) -> Result<Session, Failure> {
    let mut candidates: Vec<SessionInfo> = Vec::new();
    let mut more = 0;
    for info in store.list()? {
        let info = info?;
        let begins = info.header.id.as_str().starts_with(given.as_str());
        match begins || info.labels.title.as_deref() == Some(given.as_str()) {
            true if candidates.len() < SHOWN => candidates.push(info),
            true => more += 1,
            false => {}
        }
    }
    match candidates.as_slice() {
        [] => Err(not_found.into()),
        [info] => {
            let id = &info.header.id;
            let session = store.session(id)?;
            output::note(&format!("{given} is session {id}"));
            Ok(session)
        }
        _ => Err(ambiguous(given, &candidates, more)),
    }
}

fn ambiguous(given: &SessionId, candidates: &[SessionInfo], more: usize) -> Failure {
    let mut text = format!("{} sessions begin with {given} or have that title:", candidates.len() + more);
    for info in candidates {
        text.push_str(&format!("\n  {}", printable(info.header.id.as_str())));
        if let Some(title) = &info.labels.title {
            text.push_str(&format!("  {}", printable(title)));
        }
    }
    if more > 0 {
        text.push_str(&format!("\n  and {more} more"));
    }
    Failure::refused(text).hint("give more of the id")
}
