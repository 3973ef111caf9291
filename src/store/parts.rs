//! A store's folder opened for care: lock, engine and journal, without replay and drain.

use std::path::Path;
use std::sync::Arc;

use crate::error::{Corruption, Error, Place, Result};
use crate::format;
use crate::log;
use crate::storage::{
    Create, Description, EngineDurability, Folder, FolderJournalFiles, JournalFiles, Map, SledStorage,
    Storage, Witness,
};

/// The engine's cache while a store is looked at.
const CACHE_BYTES: u64 = 16 << 20;

/// What a store is made of.
pub(crate) struct Parts {
    pub(crate) storage: Arc<dyn Storage>,
    pub(crate) files: Arc<dyn JournalFiles>,
    pub(crate) store_id: [u8; 16],
    /// Holds the lock: given back last.
    pub(crate) folder: Folder,
    durability: EngineDurability,
}

impl Parts {
    /// Opens the store at `path`. Nothing is made, and nothing of ours changed; the engine may rewrite files of its own.
    ///
    /// # Errors
    /// As [`StoreOptions::open`](crate::StoreOptions::open).
    pub(crate) fn open(path: &Path) -> Result<Self> {
        let folder = Folder::open(path, Create::Never)?;
        let Some(description) = folder.description() else {
            return Err(Error::NoStore { path: folder.path().to_owned() });
        };
        let store_id = description.store_id;
        check_parts(&folder)?;
        let files = FolderJournalFiles::open(&folder.journal_dir())?;
        let storage = SledStorage::open(&folder.engine_dir(), CACHE_BYTES)?;
        let durability = storage.durability();
        let checked = match drained(&storage) {
            // A scan tells what is wrong with the record itself.
            Ok(None) | Err(_) => Ok(()),
            Ok(Some(drained)) => check_witness(&folder, &files, drained),
        };
        let parts = Self { storage: Arc::new(storage), files: Arc::new(files), store_id, folder, durability };
        match checked {
            Ok(()) => Ok(parts),
            Err(error) => parts.close(Err(error)),
        }
    }

    /// Begins a new store in `path`, where nothing is. It is no store before [`finish`](Self::finish).
    pub(crate) fn make(path: &Path) -> Result<Self> {
        let folder = Folder::open(path, Create::IfMissing)?;
        let files = FolderJournalFiles::open(&folder.journal_dir())?;
        let storage = SledStorage::open(&folder.engine_dir(), CACHE_BYTES)?;
        let durability = storage.durability();
        let store_id = *uuid::Uuid::now_v7().as_bytes();
        Ok(Self { storage: Arc::new(storage), files: Arc::new(files), store_id, folder, durability })
    }

    /// Closes a new store's engine and makes it a store.
    pub(crate) fn finish(mut self) -> Result<()> {
        self.storage.flush()?;
        let description = Description {
            format: Description::FORMAT,
            store_id: self.store_id,
            durability: self.durability,
            engine: self.folder.engine().to_owned(),
        };
        self.folder.describe(description)?;
        self.close(Ok(()))
    }

    /// Lets go of everything but the folder, which stays locked.
    pub(crate) fn into_folder(self) -> Result<Folder> {
        self.storage.close()?;
        Ok(self.folder)
    }

    /// Lets go of everything, and passes `result` on. What works on the seams alone names files as seen from the folder.
    pub(crate) fn close<T>(self, result: Result<T>) -> Result<T> {
        let closed = self.storage.close();
        let path = self.folder.path().to_owned();
        drop(self.folder);
        let value = result.map_err(|error| match error {
            Error::Io { action, path: name, source } => Error::Io { action, path: path.join(name), source },
            error => error,
        })?;
        closed.map(|()| value)
    }
}

/// Checks that a store that says what it is has its parts. They are made before its description: without them it has
/// lost events, and empty ones in their place would hide that.
pub(crate) fn check_parts(folder: &Folder) -> Result<()> {
    let lost = |what, path: &Path| Error::Corrupt {
        place: Place::new("store").at(path.display().to_string()),
        corruption: Corruption::Missing { what },
    };
    if !folder.journal_dir().is_dir() {
        return Err(lost("the journal's folder", &folder.journal_dir()));
    }
    if SledStorage::is_unborn(&folder.engine_dir())? {
        return Err(lost("the engine's data", &folder.engine_dir()));
    }
    Ok(())
}

/// The commit up to which the engine says that it holds everything.
pub(crate) fn drained(storage: &dyn Storage) -> Result<Option<u64>> {
    let value = storage.get(Map::Sessions, format::DRAINED_KEY)?;
    let place = || Place::new("drained mark");
    value
        .map(|value| format::decode_drained(&value).map_err(|error| error.at(place())))
        .transpose()
        .map(|drained| drained.map(|drained| drained.through))
}

/// Checks that engine and journal hold what the engine held at the last orderly close: it can take damaged last bytes for
/// the end of its file, and is then sound and shorter.
pub(crate) fn check_witness(folder: &Folder, files: &dyn JournalFiles, drained: u64) -> Result<()> {
    let expected = Witness::read(folder.path()).map_or(0, |witness| witness.drained);
    let Some(description) = folder.description().filter(|_| expected > drained) else { return Ok(()) };
    // Recycled segments still hold frames of before, until they are written over.
    let found = log::replay::goes_on_to(files, description.store_id, drained, &folder.journal_dir())?;
    if found >= expected {
        return Ok(());
    }
    Err(Error::Corrupt {
        place: Place::new("engine").at(folder.engine_dir().display().to_string()),
        corruption: Corruption::EngineFellBack { expected, found },
    })
}
