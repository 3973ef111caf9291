//! SQLite as a careful user would keep sessions in it: WAL, synchronous FULL, one row an event, prepared statements,
//! one transaction an acknowledgement.

use std::path::Path;
use std::time::Duration;

use rusqlite::{Connection, params};

use crate::Outcome;
use crate::trace::TraceEvent;

/// A connection to a database of events.
#[derive(Debug)]
pub struct Sqlite {
    connection: Connection,
    line: Vec<u8>,
}

impl Sqlite {
    /// Opens the database, with the table in it.
    pub fn open(path: &Path) -> Outcome<Self> {
        let connection = Connection::open(path)?;
        connection.busy_timeout(Duration::from_secs(60))?;
        let mode: String = connection.query_row("PRAGMA journal_mode = WAL", [], |row| row.get(0))?;
        if mode != "wal" {
            return Err(format!("journal mode is {mode}").into());
        }
        connection.pragma_update(None, "synchronous", "FULL")?;
        // The cache that sessionlog has by default.
        connection.pragma_update(None, "cache_size", -65_536)?;
        // Without ROWID it is slower (fewer events a page), so this counts.
        connection.execute_batch(
            "CREATE TABLE IF NOT EXISTS events (
                session TEXT NOT NULL, seq INTEGER NOT NULL, type TEXT NOT NULL, timestamp INTEGER NOT NULL,
                json TEXT NOT NULL, PRIMARY KEY (session, seq)
            )",
        )?;
        Ok(Self { connection, line: Vec::new() })
    }

    /// Appends one event.
    pub fn append(&mut self, session: &str, seq: u64, event: &TraceEvent) -> Outcome<()> {
        // A statement alone is a transaction: cheaper than one with BEGIN and COMMIT around it.
        self.insert(session, seq, event)
    }

    /// Appends all events or none.
    pub fn append_batch(&mut self, session: &str, first_seq: u64, events: &[TraceEvent]) -> Outcome<()> {
        self.connection.prepare_cached("BEGIN IMMEDIATE")?.execute([])?;
        for (seq, event) in (first_seq..).zip(events) {
            self.insert(session, seq, event)?;
        }
        self.connection.prepare_cached("COMMIT")?.execute([])?;
        Ok(())
    }

    fn insert(&mut self, session: &str, seq: u64, event: &TraceEvent) -> Outcome<()> {
        self.line.clear();
        event.write_json(seq, &mut self.line);
        let json = std::str::from_utf8(&self.line)?;
        self.connection
            .prepare_cached(
                "INSERT INTO events (session, seq, type, timestamp, json) VALUES (?1, ?2, ?3, ?4, ?5)",
            )?
            .execute(params![session, i64::try_from(seq)?, event.event_type(), event.timestamp, json])?;
        Ok(())
    }

    /// Moves all that is in the WAL into the database and closes it.
    pub fn close(self) -> Outcome<()> {
        let busy: i64 = self.connection.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |row| row.get(0))?;
        if busy != 0 {
            return Err("the checkpoint did not end".into());
        }
        self.connection.close().map_err(|(_, error)| error)?;
        Ok(())
    }
}
