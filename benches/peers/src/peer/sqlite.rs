//! SQLite, through rusqlite: see [`Sqlite`] for its options. A writer has a connection of its own.

use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

use super::{Peer, Writer, nth};
use crate::Outcome;
use crate::sqlite::Sqlite;
use crate::trace::TraceEvent;

/// A database with its path, and the connection that reads.
#[derive(Debug)]
pub struct SqlitePeer {
    path: PathBuf,
    reader: Mutex<Sqlite>,
}

struct One {
    connection: Sqlite,
    session: String,
    next: u64,
}

impl SqlitePeer {
    fn reader(&self) -> MutexGuard<'_, Sqlite> {
        self.reader.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Peer for SqlitePeer {
    fn open(folder: &Path) -> Outcome<Self> {
        let path = folder.join("sqlite");
        let reader = Mutex::new(Sqlite::open(&path)?);
        Ok(Self { path, reader })
    }

    fn writer(&self, session: &str) -> Outcome<impl Writer> {
        Ok(One { connection: Sqlite::open(&self.path)?, session: session.to_owned(), next: 0 })
    }

    fn length(&self, session: &str) -> Outcome<u64> {
        self.reader().length(session)
    }

    fn read(&self, session: &str, range: Range<u64>) -> Outcome<u64> {
        self.reader().read(session, range)
    }

    fn last(&self, session: &str, count: usize) -> Outcome<u64> {
        Ok(self.reader().last(session, count)?.len() as u64)
    }

    fn fork(&self, parent: &str, new: &str, event: &TraceEvent) -> Outcome<()> {
        self.reader().fork(parent, new, event)
    }

    fn messages(&self, session: &str) -> Outcome<usize> {
        Ok(self.reader().messages(session)?.len())
    }

    fn fill(&self, sessions: usize, event: &TraceEvent) -> Outcome<()> {
        self.reader().fill((0..sessions).map(nth), event)
    }

    fn list(&self, most: usize) -> Outcome<usize> {
        self.reader().list(most)
    }

    fn close(self) -> Outcome<()> {
        self.reader.into_inner().unwrap_or_else(PoisonError::into_inner).close()
    }
}

impl Writer for One {
    fn append(&mut self, event: &TraceEvent) -> Outcome<()> {
        self.connection.append(&self.session, self.next, event)?;
        self.next += 1;
        Ok(())
    }

    fn append_batch(&mut self, events: &[TraceEvent]) -> Outcome<()> {
        self.connection.append_batch(&self.session, self.next, events)?;
        self.next += events.len() as u64;
        Ok(())
    }
}
