//! What is counted while the store works. Everything here is recorded by one thread at a time (the leader, the drain),
//! so its locks are free but for the moment of a snapshot.

use std::ops::Bound;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use super::commit::{Request, Work};
use super::core::Core;
use crate::error::Result;
use crate::format::parse_event_key;
use crate::metrics::Metrics;
use crate::stats::Distribution;
use crate::storage::{Entries, Map, Storage};

/// Takes the lock of figures: a panic elsewhere makes none of them wrong.
fn lock<T>(figures: &Mutex<T>) -> MutexGuard<'_, T> {
    figures.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Durations, by microseconds.
#[derive(Debug, Default)]
pub(crate) struct Timer(Mutex<Distribution>);

impl Timer {
    /// Does `work` and records how long it took if it went well.
    pub(crate) fn time<T, E>(&self, work: impl FnOnce() -> Result<T, E>) -> Result<T, E> {
        let start = Instant::now();
        let outcome = work();
        if outcome.is_ok() {
            self.record(start.elapsed());
        }
        outcome
    }

    fn record(&self, time: Duration) {
        lock(&self.0).record(u64::try_from(time.as_micros()).unwrap_or(u64::MAX));
    }

    pub(crate) fn snapshot(&self) -> Distribution {
        lock(&self.0).clone()
    }
}

/// What was published.
#[derive(Debug, Default)]
pub(crate) struct Published(Mutex<Appends>);

#[derive(Clone, Debug, Default)]
pub(crate) struct Appends {
    pub(crate) appends: u64,
    pub(crate) events: u64,
    /// Events in each commit that has any.
    pub(crate) by_commit: Distribution,
}

impl Published {
    /// Counts a group that became one commit.
    pub(crate) fn record(&self, group: &[Request]) {
        let mut appends = 0;
        let mut events = 0;
        for request in group {
            if let Work::Run { run, .. } = &request.work {
                appends += 1;
                events += run.end() - run.first_seq;
            }
        }
        if appends > 0 {
            let mut figures = lock(&self.0);
            figures.appends += appends;
            figures.events += events;
            figures.by_commit.record(events);
        }
    }

    pub(crate) fn snapshot(&self) -> Appends {
        lock(&self.0).clone()
    }
}

/// The engine, with what is written to it counted: all writes of an open store go through here, whoever does them.
#[derive(Debug)]
pub(crate) struct MeteredStorage {
    engine: Arc<dyn Storage>,
    written: Mutex<Written>,
}

#[derive(Clone, Debug, Default)]
pub(crate) struct Written {
    /// Keys and values.
    pub(crate) bytes: u64,
    /// Blocks and parts, by the bytes of each.
    pub(crate) blocks: Distribution,
}

impl Written {
    fn count(&mut self, map: Map, key: &[u8], value: Option<&[u8]>) {
        self.bytes += (key.len() + value.map_or(0, <[u8]>::len)) as u64;
        if let Some(value) = value.filter(|_| map == Map::Events && parse_event_key(key).is_some()) {
            self.blocks.record(value.len() as u64);
        }
    }
}

impl MeteredStorage {
    pub(crate) fn new(engine: Arc<dyn Storage>) -> Self {
        Self { engine, written: Mutex::default() }
    }

    pub(crate) fn written(&self) -> Written {
        lock(&self.written).clone()
    }
}

impl Storage for MeteredStorage {
    fn get(&self, map: Map, key: &[u8]) -> Result<Option<Vec<u8>>> {
        self.engine.get(map, key)
    }

    fn range(&self, map: Map, from: Bound<&[u8]>, to: Bound<&[u8]>) -> Entries {
        self.engine.range(map, from, to)
    }

    fn range_reverse(&self, map: Map, from: Bound<&[u8]>, to: Bound<&[u8]>) -> Entries {
        self.engine.range_reverse(map, from, to)
    }

    fn insert(&self, map: Map, key: &[u8], value: &[u8]) -> Result<()> {
        self.engine.insert(map, key, value)?;
        lock(&self.written).count(map, key, Some(value));
        Ok(())
    }

    fn apply(&self, map: Map, changes: &[(Vec<u8>, Option<Vec<u8>>)]) -> Result<()> {
        self.engine.apply(map, changes)?;
        let mut written = lock(&self.written);
        for (key, value) in changes {
            written.count(map, key, value.as_deref());
        }
        Ok(())
    }

    fn flush(&self) -> Result<()> {
        self.engine.flush()
    }

    fn size_on_disk(&self) -> Result<u64> {
        self.engine.size_on_disk()
    }

    fn close(&self) -> Result<()> {
        self.engine.close()
    }
}

impl Core {
    /// All figures as they stand.
    pub(crate) fn metrics(&self) -> Metrics {
        let Appends { appends, events, by_commit } = self.published.snapshot();
        let frames = self.journal.frames();
        let Written { bytes, blocks } = self.metered.written();
        let (tail_bytes, tail_max_bytes, waiting_appends) = self.room.snapshot();
        Metrics {
            appends,
            events,
            commits: frames.count,
            commit_events: by_commit,
            journal_bytes: frames.bytes,
            sync_us: self.journal.syncs.snapshot(),
            drain_us: self.drain.passes.snapshot(),
            drained_events: self.drain.moved_events(),
            engine_bytes: bytes,
            block_bytes: blocks,
            cache_bytes: self.cache_bytes,
            sessions_in_use: self.catalog.in_use().len() as u64,
            tail_bytes,
            tail_max_bytes,
            waiting_appends,
        }
    }
}
