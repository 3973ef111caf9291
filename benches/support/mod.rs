//! What the benches share: events, and stores on memory and on disk.
#![allow(dead_code, reason = "each bench uses its part")]
#![allow(unreachable_pub, reason = "the other package of benches makes two of these files its modules")]

pub mod events;
pub mod trace;

use std::path::PathBuf;
use std::time::Duration;

use sessionlog::storage::{MemoryJournalFiles, MemoryStorage};
use sessionlog::{Append, NewEvent, NewSession, Session, Store, StoreOptions};

use events::new_event;
use trace::Trace;

/// Where a store keeps its bytes. On memory the time is our own; what it takes longer on sled is the engine's and the
/// disk's.
#[derive(Clone, Copy, Debug)]
pub enum Place {
    Memory,
    Sled,
}

impl Place {
    pub const BOTH: [Self; 2] = [Self::Memory, Self::Sled];

    pub fn name(self) -> &'static str {
        match self {
            Self::Memory => "memory",
            Self::Sled => "sled",
        }
    }
}

/// A new store, and the folder that goes with it.
#[derive(Debug)]
pub struct Bench {
    // Before the folder: closed while that still stands.
    pub store: Store,
    _folder: Option<tempfile::TempDir>,
}

impl Bench {
    /// A store as a user has it.
    pub fn new(place: Place) -> Self {
        Self::with(place, StoreOptions::new())
    }

    /// A store that leaves events in the tail as long as they fit.
    pub fn undrained(place: Place) -> Self {
        Self::with(place, StoreOptions::new().drain_age(Duration::from_secs(3600)))
    }

    fn with(place: Place, options: StoreOptions) -> Self {
        match place {
            Place::Memory => {
                let storage = std::sync::Arc::new(MemoryStorage::new());
                let files = std::sync::Arc::new(MemoryJournalFiles::new());
                let store = options.open_on(storage, files).expect("a store in memory opens");
                Self { store, _folder: None }
            }
            Place::Sled => {
                // Below target/, which is on a disk: the folder for temporary files often is not.
                let folder = tempfile::tempdir_in(PathBuf::from(env!("CARGO_TARGET_TMPDIR")))
                    .expect("a folder below target");
                let store = options.open(folder.path().join("store")).expect("a new store opens");
                Self { store, _folder: Some(folder) }
            }
        }
    }

    pub fn session(&self) -> Session {
        self.store.create(NewSession::new()).expect("a new session")
    }

    /// A session with the first `events` of the trace.
    pub fn session_of(&self, events: usize) -> Session {
        let session = self.session();
        append_trace(&session, events);
        session
    }
}

/// Appends the first `events` of the trace.
pub fn append_trace(session: &Session, events: usize) {
    let mut trace = Trace::new(7);
    let mut left = events;
    while left > 0 {
        let batch: Vec<NewEvent> =
            trace.by_ref().take(left.min(1000)).map(|event| new_event(&event)).collect();
        left -= batch.len();
        session.append_with(Append::new().sync(), batch).expect("an append");
    }
}
