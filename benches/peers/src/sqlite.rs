//! SQLite as a careful user would keep sessions in it: WAL, synchronous FULL, one row an event, prepared statements,
//! one transaction an acknowledgement.

use std::ops::Range;
use std::path::Path;
use std::time::Duration;

use rusqlite::{Connection, params};

use crate::Outcome;
use crate::trace::TraceEvent;
use crate::typed::{Event, Listed, Message, parse};

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
            );
            CREATE TABLE IF NOT EXISTS sessions (
                id TEXT PRIMARY KEY, updated INTEGER NOT NULL, length INTEGER NOT NULL
            );
            CREATE INDEX IF NOT EXISTS by_update ON sessions (updated DESC, id)",
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

    /// Returns how many events a session has.
    pub fn length(&self, session: &str) -> Outcome<u64> {
        let sql = "SELECT coalesce(max(seq) + 1, 0) FROM events WHERE session = ?1";
        let length: i64 = self.connection.prepare_cached(sql)?.query_row([session], |row| row.get(0))?;
        Ok(u64::try_from(length)?)
    }

    /// Reads and decodes the events in a range; returns their number.
    pub fn read(&self, session: &str, range: Range<u64>) -> Outcome<u64> {
        let sql = "SELECT json FROM events WHERE session = ?1 AND seq >= ?2 AND seq < ?3 ORDER BY seq";
        let mut statement = self.connection.prepare_cached(sql)?;
        let (from, to) = (i64::try_from(range.start)?, i64::try_from(range.end)?);
        let mut rows = statement.query(params![session, from, to])?;
        let mut count = 0;
        while let Some(row) = rows.next()? {
            std::hint::black_box(parse(row.get_ref(0)?.as_str()?.as_bytes())?);
            count += 1;
        }
        Ok(count)
    }

    /// Reads and decodes the last events, in order.
    pub fn last(&self, session: &str, count: usize) -> Outcome<Vec<Event>> {
        let sql = "SELECT json FROM events WHERE session = ?1 ORDER BY seq DESC LIMIT ?2";
        let mut statement = self.connection.prepare_cached(sql)?;
        let mut rows = statement.query(params![session, i64::try_from(count)?])?;
        let mut events = Vec::with_capacity(count);
        while let Some(row) = rows.next()? {
            events.push(parse(row.get_ref(0)?.as_str()?.as_bytes())?);
        }
        events.reverse();
        Ok(events)
    }

    /// Copies all events of `parent` into `new`, and appends one: two transactions, as two acknowledgements are.
    pub fn fork(&mut self, parent: &str, new: &str, event: &TraceEvent) -> Outcome<()> {
        let sql = "INSERT INTO events (session, seq, type, timestamp, json)
            SELECT ?2, seq, type, timestamp, json FROM events WHERE session = ?1 ORDER BY seq";
        let copied = self.connection.prepare_cached(sql)?.execute([parent, new])?;
        self.append(new, copied as u64, event)
    }

    /// Builds the messages of a session; its chunks are passed over unparsed.
    pub fn messages(&self, session: &str) -> Outcome<Vec<Message>> {
        let sql = "SELECT json FROM events WHERE session = ?1 AND type <> 'assistant/chunk' ORDER BY seq";
        let mut statement = self.connection.prepare_cached(sql)?;
        let mut rows = statement.query([session])?;
        let mut messages = Vec::new();
        while let Some(row) = rows.next()? {
            messages.extend(Message::of(parse(row.get_ref(0)?.as_str()?.as_bytes())?));
        }
        Ok(messages)
    }

    /// Makes sessions with one event each, in one transaction.
    pub fn fill(&mut self, ids: impl Iterator<Item = String>, event: &TraceEvent) -> Outcome<()> {
        self.connection.execute_batch("BEGIN IMMEDIATE")?;
        for (id, later) in ids.zip(0..) {
            self.insert(&id, 0, event)?;
            self.connection
                .prepare_cached("INSERT INTO sessions (id, updated, length) VALUES (?1, ?2, 1)")?
                .execute(params![id, event.timestamp + later])?;
        }
        self.connection.execute_batch("COMMIT")?;
        Ok(())
    }

    /// Lists sessions, the latest first.
    pub fn list(&self, most: usize) -> Outcome<usize> {
        let sql = "SELECT id, updated, length FROM sessions ORDER BY updated DESC, id LIMIT ?1";
        let mut statement = self.connection.prepare_cached(sql)?;
        let mut rows = statement.query([i64::try_from(most)?])?;
        let mut count = 0;
        while let Some(row) = rows.next()? {
            let length: i64 = row.get(2)?;
            let listed = Listed { id: row.get(0)?, updated: row.get(1)?, length: u64::try_from(length)? };
            std::hint::black_box(listed);
            count += 1;
        }
        Ok(count)
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
