//! What the engine still gives, from a copy of its files: it may panic, hang, or give a part.

use std::collections::BTreeSet;
use std::ops::Bound;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{RecvTimeoutError, SyncSender, sync_channel};
use std::time::Duration;

use super::report::EngineOutcome;
use super::sieve::Sieve;
use crate::error::{Error, Result};
use crate::id::StorageKey;
use crate::storage::{self, Map, SledStorage, Storage as _};

const CACHE_BYTES: u64 = 16 << 20;
/// How long the engine may be silent once it has opened. Opening has a limit of its own.
const SILENCE: Duration = Duration::from_secs(60);
/// Values that wait to be taken.
const QUEUED: usize = 64;

/// Asks the engine whose folder is the first of `engines`, and puts what it gives into the sieve. The copy stands
/// beside `new` meanwhile, if it has room in `spare` bytes.
pub(super) fn ask(
    engines: &[PathBuf],
    new: &Path,
    spare: u64,
    sieve: &mut Sieve<'_>,
) -> Result<EngineOutcome> {
    let Some(dir) = engines.first() else { return Ok(EngineOutcome::NotAsked) };
    let unborn = SledStorage::is_unborn(dir)?;
    if unborn || storage::bytes_in(dir)? > spare {
        return Ok(EngineOutcome::NotAsked);
    }
    let copy = CopyFolder::beside(new);
    if let Err(error) = storage::copy_engine(dir, &copy.0) {
        return Ok(EngineOutcome::Failed(error.to_string()));
    }
    let (sender, receiver) = sync_channel(QUEUED);
    let path = copy.0.clone();
    let thread = std::thread::Builder::new()
        .name("sessionlog-salvage".to_owned())
        .spawn(move || give(&path, &sender))
        .map_err(|source| Error::Io { action: "start a thread for", path: "salvage".into(), source })?;
    let limit = SledStorage::open_limit(dir) + SILENCE;
    let mut living = BTreeSet::new();
    let outcome = loop {
        match receiver.recv_timeout(limit) {
            Ok(Given::Value(map, key, value)) => living.extend(sieve.put_given(map, &key, &value)?),
            Ok(Given::Failed(error)) => break EngineOutcome::Failed(error),
            Ok(Given::Done) => break EngineOutcome::Whole,
            Err(RecvTimeoutError::Timeout) => {
                // The thread stays, with files that nobody sees any more.
                return Ok(EngineOutcome::Failed("it hangs".to_owned()));
            }
            Err(RecvTimeoutError::Disconnected) => break EngineOutcome::Failed("it panicked".to_owned()),
        }
    };
    let _ = thread.join();
    if outcome == EngineOutcome::Whole {
        living.remove(&StorageKey([0; 16]));
        sieve.engine_is_whole(living);
    }
    Ok(outcome)
}

enum Given {
    Value(Map, Vec<u8>, Vec<u8>),
    Failed(String),
    Done,
}

/// Gives all values, then how it ended. Nobody listens any more when sending fails.
fn give(path: &Path, sender: &SyncSender<Given>) {
    let engine = match SledStorage::open(path, CACHE_BYTES) {
        Ok(engine) => engine,
        Err(error) => {
            let _ = sender.send(Given::Failed(error.to_string()));
            return;
        }
    };
    let mut failed = None;
    for map in [Map::Sessions, Map::Events, Map::Care] {
        for entry in engine.range(map, Bound::Unbounded, Bound::Unbounded) {
            match entry {
                Ok((key, value)) => {
                    if sender.send(Given::Value(map, key, value)).is_err() {
                        return;
                    }
                }
                Err(error) => failed = Some(error.to_string()),
            }
        }
    }
    let _ = engine.close();
    let _ = sender.send(failed.map_or(Given::Done, Given::Failed));
}

/// A folder that is removed in the end.
struct CopyFolder(PathBuf);

impl CopyFolder {
    fn beside(new: &Path) -> Self {
        let name = new.file_name().unwrap_or_default().to_string_lossy();
        Self(new.with_file_name(format!(".{name}.salvage-{}", uuid::Uuid::now_v7().simple())))
    }
}

impl Drop for CopyFolder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}
