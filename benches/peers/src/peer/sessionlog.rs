//! This store, with its defaults.

use std::ops::Range;
use std::path::Path;
use std::sync::{Mutex, PoisonError};

use sessionlog::{Append, Seq, Session, Store};

use super::{Peer, Writer, nth};
use crate::Outcome;
use crate::events::new_event;
use crate::ours::{self, append_batch};
use crate::trace::TraceEvent;

/// The store, and the session that was used last: a user keeps the handle, as others keep a connection.
#[derive(Debug)]
pub struct Sessionlog(Store, Mutex<Option<Session>>);

struct One(Session);

impl Sessionlog {
    fn session(&self, id: &str) -> Outcome<Session> {
        let mut kept = self.1.lock().unwrap_or_else(PoisonError::into_inner);
        match &*kept {
            Some(session) if session.id().as_str() == id => Ok(session.clone()),
            _ => Ok(kept.insert(self.0.session(&id.parse()?)?).clone()),
        }
    }
}

impl Peer for Sessionlog {
    fn open(folder: &Path) -> Outcome<Self> {
        Ok(Self(Store::open(ours::store_path(folder))?, Mutex::default()))
    }

    fn writer(&self, session: &str) -> Outcome<impl Writer> {
        Ok(One(ours::session(&self.0, session)?))
    }

    fn length(&self, session: &str) -> Outcome<u64> {
        Ok(self.session(session)?.len())
    }

    fn read(&self, session: &str, range: Range<u64>) -> Outcome<u64> {
        let mut count = 0;
        for event in self.session(session)?.read_range(Seq::new(range.start)..Seq::new(range.end))? {
            std::hint::black_box(event?);
            count += 1;
        }
        Ok(count)
    }

    fn last(&self, session: &str, count: usize) -> Outcome<u64> {
        let mut found = 0;
        for event in self.session(session)?.last(count as u64)? {
            std::hint::black_box(event?);
            found += 1;
        }
        Ok(found)
    }

    fn fork(&self, parent: &str, new: &str, event: &TraceEvent) -> Outcome<()> {
        let parent = self.session(parent)?;
        let new = sessionlog::NewSession::with_id(new.parse()?);
        let fork = self.0.fork(parent.id(), Seq::new(parent.len()), new)?;
        One(fork).append(event)
    }

    fn messages(&self, session: &str) -> Outcome<usize> {
        Ok(self.session(session)?.messages()?.len())
    }

    fn fill(&self, sessions: usize, event: &TraceEvent) -> Outcome<()> {
        // Threads share their syncs.
        const THREADS: usize = 16;
        std::thread::scope(|scope| {
            let part = |thread| {
                for n in (thread..sessions).step_by(THREADS) {
                    let session = ours::session(&self.0, &nth(n))?;
                    session.append_with(Append::new().buffered(), [new_event(event)])?;
                }
                Ok(())
            };
            let threads: Vec<_> = (0..THREADS).map(|thread| scope.spawn(move || part(thread))).collect();
            threads.into_iter().try_for_each(|thread| thread.join().expect("no panic"))
        })
    }

    fn list(&self, most: usize) -> Outcome<usize> {
        let mut count = 0;
        for info in self.0.list()?.take(most) {
            std::hint::black_box(info?);
            count += 1;
        }
        Ok(count)
    }

    fn close(self) -> Outcome<()> {
        Ok(self.0.close()?)
    }
}

impl Writer for One {
    fn append(&mut self, event: &TraceEvent) -> Outcome<()> {
        self.0.append_with(Append::new().sync(), [new_event(event)])?;
        Ok(())
    }

    fn append_batch(&mut self, events: &[TraceEvent]) -> Outcome<()> {
        append_batch(&self.0, events)
    }
}
