//! redb: one table of events under (session, seq), JSON text; one write transaction of `Durability::Immediate`, its
//! default, an acknowledgement.

use std::ops::Range;
use std::path::Path;
use std::sync::Arc;

use redb::{Database, Durability, ReadableDatabase, ReadableTable, TableDefinition};

use super::{CACHE_BYTES, Peer, Writer, nth};
use crate::Outcome;
use crate::trace::TraceEvent;
use crate::typed::{Listed, Message, parse};

const EVENTS: TableDefinition<'_, (&str, u64), &[u8]> = TableDefinition::new("events");
const SESSIONS: TableDefinition<'_, &str, &[u8]> = TableDefinition::new("sessions");

/// The database.
#[derive(Debug)]
pub struct Redb(Arc<Database>);

struct One {
    database: Arc<Database>,
    session: String,
    next: u64,
    json: Vec<u8>,
}

impl Redb {
    fn write(&self) -> Outcome<redb::WriteTransaction> {
        begin(&self.0)
    }
}

fn begin(database: &Database) -> Outcome<redb::WriteTransaction> {
    let mut transaction = database.begin_write()?;
    transaction.set_durability(Durability::Immediate)?;
    Ok(transaction)
}

impl Peer for Redb {
    fn open(folder: &Path) -> Outcome<Self> {
        let database =
            Database::builder().set_cache_size(usize::try_from(CACHE_BYTES)?).create(folder.join("redb"))?;
        let peer = Self(Arc::new(database));
        if peer.0.begin_read()?.list_tables()?.next().is_none() {
            let transaction = peer.write()?;
            transaction.open_table(EVENTS)?;
            transaction.open_table(SESSIONS)?;
            transaction.commit()?;
        }
        Ok(peer)
    }

    fn writer(&self, session: &str) -> Outcome<impl Writer> {
        Ok(One { database: Arc::clone(&self.0), session: session.to_owned(), next: 0, json: Vec::new() })
    }

    fn length(&self, session: &str) -> Outcome<u64> {
        let table = self.0.begin_read()?.open_table(EVENTS)?;
        let last = table.range((session, 0)..=(session, u64::MAX))?.next_back();
        Ok(last.transpose()?.map_or(0, |(key, _)| key.value().1 + 1))
    }

    fn read(&self, session: &str, range: Range<u64>) -> Outcome<u64> {
        let table = self.0.begin_read()?.open_table(EVENTS)?;
        let mut count = 0;
        for entry in table.range((session, range.start)..(session, range.end))? {
            std::hint::black_box(parse(entry?.1.value())?);
            count += 1;
        }
        Ok(count)
    }

    fn last(&self, session: &str, count: usize) -> Outcome<u64> {
        let table = self.0.begin_read()?.open_table(EVENTS)?;
        let mut events = Vec::with_capacity(count);
        for entry in table.range((session, 0)..=(session, u64::MAX))?.rev().take(count) {
            events.push(parse(entry?.1.value())?);
        }
        events.reverse();
        Ok(std::hint::black_box(events).len() as u64)
    }

    /// A copy in one transaction.
    fn fork(&self, parent: &str, new: &str, event: &TraceEvent) -> Outcome<()> {
        let from = self.0.begin_read()?.open_table(EVENTS)?;
        let transaction = self.write()?;
        let mut next = 0;
        {
            let mut to = transaction.open_table(EVENTS)?;
            for entry in from.range((parent, 0)..=(parent, u64::MAX))? {
                to.insert((new, next), entry?.1.value())?;
                next += 1;
            }
        }
        transaction.commit()?;
        let database = Arc::clone(&self.0);
        One { database, session: new.to_owned(), next, json: Vec::new() }.append(event)
    }

    fn messages(&self, session: &str) -> Outcome<usize> {
        let table = self.0.begin_read()?.open_table(EVENTS)?;
        let mut messages = Vec::new();
        for entry in table.range((session, 0)..=(session, u64::MAX))? {
            let (_, value) = entry?;
            if !value.value().starts_with(br#"{"type":"assistant/chunk""#) {
                messages.extend(Message::of(parse(value.value())?));
            }
        }
        Ok(messages.len())
    }

    fn fill(&self, sessions: usize, event: &TraceEvent) -> Outcome<()> {
        let mut json = Vec::new();
        event.write_json(0, &mut json);
        let transaction = self.write()?;
        {
            let mut events = transaction.open_table(EVENTS)?;
            let mut table = transaction.open_table(SESSIONS)?;
            for n in 0..sessions {
                let id = nth(n);
                let updated = event.timestamp + i64::try_from(n)?;
                events.insert((id.as_str(), 0), json.as_slice())?;
                let listed = serde_json::to_vec(&Listed { id: id.clone(), updated, length: 1 })?;
                table.insert(id.as_str(), listed.as_slice())?;
            }
        }
        Ok(transaction.commit()?)
    }

    /// All records, sorted: a second table in order of update would make each append write three.
    fn list(&self, most: usize) -> Outcome<usize> {
        let table = self.0.begin_read()?.open_table(SESSIONS)?;
        let mut found: Vec<Listed> = Vec::new();
        for entry in table.iter()? {
            found.push(serde_json::from_slice(entry?.1.value())?);
        }
        found.sort_unstable_by_key(|listed| std::cmp::Reverse(listed.updated));
        found.truncate(most);
        Ok(std::hint::black_box(found).len())
    }

    fn close(self) -> Outcome<()> {
        match Arc::try_unwrap(self.0) {
            Ok(database) => Ok(database.close()?),
            Err(_) => Err("a writer still has the database".into()),
        }
    }
}

impl Writer for One {
    fn append(&mut self, event: &TraceEvent) -> Outcome<()> {
        self.append_batch(std::slice::from_ref(event))
    }

    fn append_batch(&mut self, events: &[TraceEvent]) -> Outcome<()> {
        let transaction = begin(&self.database)?;
        {
            let mut table = transaction.open_table(EVENTS)?;
            for event in events {
                self.json.clear();
                event.write_json(self.next, &mut self.json);
                table.insert((self.session.as_str(), self.next), self.json.as_slice())?;
                self.next += 1;
            }
        }
        Ok(transaction.commit()?)
    }
}
