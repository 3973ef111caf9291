//! A storage in memory that asks before each call.

use std::fmt;
use std::ops::Bound;
use std::sync::{Arc, Mutex};

use sessionlog::Result;
use sessionlog::storage::{Entries, Map, MemoryStorage, Storage};

/// What is about to be done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Call<'a> {
    Get(Map, &'a [u8]),
    /// With the lower bound.
    Range(Map, &'a [u8]),
    RangeReverse(Map),
    Write(Map),
    Flush,
}

type Before = dyn Fn(Call<'_>) -> Result<()> + Send + Sync;
type Deed = Box<dyn FnOnce() + Send>;

#[derive(Clone)]
pub(crate) struct Watched {
    pub(crate) inner: MemoryStorage,
    before: Arc<Before>,
}

impl Watched {
    /// `before` is called before each call; where it fails so does the call.
    pub(crate) fn new(before: impl Fn(Call<'_>) -> Result<()> + Send + Sync + 'static) -> Self {
        Self { inner: MemoryStorage::new(), before: Arc::new(before) }
    }

    /// One that does what `once` is given when a call is `when`.
    pub(crate) fn with_deed(when: fn(Call<'_>) -> bool, once: &Once) -> Self {
        let once = once.clone();
        Self::new(move |call| {
            let deed = if when(call) { once.0.lock().unwrap().take() } else { None };
            deed.into_iter().for_each(|deed| deed());
            Ok(())
        })
    }
}

/// Something that is to be done once.
#[derive(Clone, Default)]
pub(crate) struct Once(Arc<Mutex<Option<Deed>>>);

impl Once {
    pub(crate) fn set(&self, deed: impl FnOnce() + Send + 'static) {
        *self.0.lock().unwrap() = Some(Box::new(deed));
    }

    pub(crate) fn is_done(&self) -> bool {
        self.0.lock().unwrap().is_none()
    }
}

impl fmt::Debug for Watched {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.inner.fmt(f)
    }
}

impl Storage for Watched {
    fn get(&self, map: Map, key: &[u8]) -> Result<Option<Vec<u8>>> {
        (self.before)(Call::Get(map, key))?;
        self.inner.get(map, key)
    }

    fn range(&self, map: Map, from: Bound<&[u8]>, to: Bound<&[u8]>) -> Entries {
        let lower = match from {
            Bound::Included(lower) | Bound::Excluded(lower) => lower,
            Bound::Unbounded => &[],
        };
        match (self.before)(Call::Range(map, lower)) {
            Ok(()) => self.inner.range(map, from, to),
            Err(error) => Box::new(std::iter::once(Err(error))),
        }
    }

    fn range_reverse(&self, map: Map, from: Bound<&[u8]>, to: Bound<&[u8]>) -> Entries {
        match (self.before)(Call::RangeReverse(map)) {
            Ok(()) => self.inner.range_reverse(map, from, to),
            Err(error) => Box::new(std::iter::once(Err(error))),
        }
    }

    fn insert(&self, map: Map, key: &[u8], value: &[u8]) -> Result<()> {
        (self.before)(Call::Write(map))?;
        self.inner.insert(map, key, value)
    }

    fn apply(&self, map: Map, changes: &[(Vec<u8>, Option<Vec<u8>>)]) -> Result<()> {
        (self.before)(Call::Write(map))?;
        self.inner.apply(map, changes)
    }

    fn flush(&self) -> Result<()> {
        (self.before)(Call::Flush)?;
        self.inner.flush()
    }

    fn size_on_disk(&self) -> Result<u64> {
        self.inner.size_on_disk()
    }

    fn close(&self) -> Result<()> {
        self.inner.close()
    }
}
