//! fjall: one keyspace of events under session and seq, JSON text; a write batch with `SyncData` (its `fdatasync`) an
//! acknowledgement; lz4, which is its default.

use std::ops::Range;
use std::path::Path;

use fjall::{Database, Keyspace, KeyspaceCreateOptions, PersistMode};

use super::{CACHE_BYTES, Peer, Writer, nth};
use crate::Outcome;
use crate::trace::TraceEvent;
use crate::typed::{Listed, Message, parse};

/// The sessions of a fork or of many are written in batches of this many.
const BATCH: usize = 10_000;

/// The database.
pub struct Fjall {
    database: Database,
    events: Keyspace,
    sessions: Keyspace,
}

impl std::fmt::Debug for Fjall {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Fjall").finish_non_exhaustive()
    }
}

struct One {
    database: Database,
    events: Keyspace,
    session: String,
    next: u64,
}

fn key(session: &str, seq: u64) -> Vec<u8> {
    // A zero byte is in no id.
    [session.as_bytes(), &[0], &seq.to_be_bytes()].concat()
}

impl Peer for Fjall {
    fn open(folder: &Path) -> Outcome<Self> {
        let database = Database::builder(folder.join("fjall")).cache_size(u64::from(CACHE_BYTES)).open()?;
        let events = database.keyspace("events", KeyspaceCreateOptions::default)?;
        let sessions = database.keyspace("sessions", KeyspaceCreateOptions::default)?;
        Ok(Self { database, events, sessions })
    }

    fn writer(&self, session: &str) -> Outcome<impl Writer> {
        Ok(One {
            database: self.database.clone(),
            events: self.events.clone(),
            session: session.to_owned(),
            next: 0,
        })
    }

    fn length(&self, session: &str) -> Outcome<u64> {
        match self.events.range(key(session, 0)..=key(session, u64::MAX)).next_back() {
            Some(last) => {
                let key = last.key()?;
                let seq = key.last_chunk::<8>().ok_or("a short key")?;
                Ok(u64::from_be_bytes(*seq) + 1)
            }
            None => Ok(0),
        }
    }

    fn read(&self, session: &str, range: Range<u64>) -> Outcome<u64> {
        let mut count = 0;
        for entry in self.events.range(key(session, range.start)..key(session, range.end)) {
            std::hint::black_box(parse(&entry.value()?)?);
            count += 1;
        }
        Ok(count)
    }

    fn last(&self, session: &str, count: usize) -> Outcome<u64> {
        let mut events = Vec::with_capacity(count);
        for entry in self.events.range(key(session, 0)..=key(session, u64::MAX)).rev().take(count) {
            events.push(parse(&entry.value()?)?);
        }
        events.reverse();
        Ok(std::hint::black_box(events).len() as u64)
    }

    /// A copy, synced at its end.
    fn fork(&self, parent: &str, new: &str, event: &TraceEvent) -> Outcome<()> {
        let mut next = 0;
        let mut batch = self.database.batch();
        for entry in self.events.range(key(parent, 0)..=key(parent, u64::MAX)) {
            batch.insert(&self.events, key(new, next), entry.value()?);
            next += 1;
            if next.is_multiple_of(BATCH as u64) {
                std::mem::replace(&mut batch, self.database.batch()).commit()?;
            }
        }
        batch.commit()?;
        self.database.persist(PersistMode::SyncData)?;
        let (database, events) = (self.database.clone(), self.events.clone());
        One { database, events, session: new.to_owned(), next }.append(event)
    }

    fn messages(&self, session: &str) -> Outcome<usize> {
        let mut messages = Vec::new();
        for entry in self.events.range(key(session, 0)..=key(session, u64::MAX)) {
            let value = entry.value()?;
            if !value.starts_with(br#"{"type":"assistant/chunk""#) {
                messages.extend(Message::of(parse(&value)?));
            }
        }
        Ok(messages.len())
    }

    fn fill(&self, sessions: usize, event: &TraceEvent) -> Outcome<()> {
        let mut json = Vec::new();
        event.write_json(0, &mut json);
        for first in (0..sessions).step_by(BATCH) {
            let mut batch = self.database.batch();
            for n in first..sessions.min(first + BATCH) {
                let id = nth(n);
                let updated = event.timestamp + i64::try_from(n)?;
                batch.insert(&self.events, key(&id, 0), json.as_slice());
                let listed = serde_json::to_vec(&Listed { id: id.clone(), updated, length: 1 })?;
                batch.insert(&self.sessions, id, listed);
            }
            batch.commit()?;
        }
        Ok(self.database.persist(PersistMode::SyncAll)?)
    }

    /// All records, sorted: a second keyspace in order of update would make each append write three.
    fn list(&self, most: usize) -> Outcome<usize> {
        let mut found: Vec<Listed> = Vec::new();
        for entry in self.sessions.iter() {
            found.push(serde_json::from_slice(&entry.value()?)?);
        }
        found.sort_unstable_by_key(|listed| std::cmp::Reverse(listed.updated));
        found.truncate(most);
        Ok(std::hint::black_box(found).len())
    }

    fn close(self) -> Outcome<()> {
        Ok(self.database.persist(PersistMode::SyncAll)?)
    }
}

impl Writer for One {
    fn append(&mut self, event: &TraceEvent) -> Outcome<()> {
        self.append_batch(std::slice::from_ref(event))
    }

    fn append_batch(&mut self, events: &[TraceEvent]) -> Outcome<()> {
        let mut batch = self.database.batch().durability(Some(PersistMode::SyncData));
        for event in events {
            let mut json = Vec::new();
            event.write_json(self.next, &mut json);
            batch.insert(&self.events, key(&self.session, self.next), json);
            self.next += 1;
        }
        Ok(batch.commit()?)
    }
}
