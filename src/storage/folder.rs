//! The folder of a store: finding, making and completing it.
//!
//! ```text
//! lock         who has it open        lock.rs
//! sessionlog   what it is             description.rs
//! journal/     the durable front      the log's
//! engine-N/    history                the engine's; the description says which N
//! reserve      space for a full disk  reserve.rs
//! ```
//!
//! The description is written last, when the engine is there and its "ready" record is durable. So a folder without
//! one is empty, or a store whose making was interrupted, or none of ours; and a store with one is whole.

use std::path::{Path, PathBuf};

use super::description::{self, engine_number};
use super::lock::{self, Lock};
use super::{Description, files};
use crate::error::{Error, Result};

pub(super) const JOURNAL: &str = "journal";
/// The engine's folder of a new store.
const FIRST_ENGINE: &str = "engine-1";
/// Behind the name of an engine's folder while that is being filled.
const UNFINISHED: &str = ".new";

/// Whether opening may make a store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Create {
    /// A store must be there.
    Never,
    /// A missing or empty folder becomes a store.
    IfMissing,
}

/// A store's folder, locked until this is dropped.
#[derive(Debug)]
pub(crate) struct Folder {
    path: PathBuf,
    description: Option<Description>,
    _lock: Lock,
}

impl Folder {
    /// Locks the store at `path`, or starts to make one there.
    ///
    /// A store that is being made has no [`Folder::description`]. Its maker opens the engine in
    /// [`Folder::engine_dir`], writes and flushes the engine's "ready" record with the store's id (or takes the id
    /// from the record that is there: an earlier making was interrupted behind it), and then calls
    /// [`Folder::describe`]. Only then may files be made in the journal. A crash before that leaves what the next
    /// open completes.
    ///
    /// # Errors
    /// [`Error::NoStore`]: nothing is here and nothing may be made. [`Error::NotAStore`]: something else is here; it
    /// was not touched. [`Error::InUse`], [`Error::UnsupportedFormat`], [`Error::Corrupt`]: the description, nothing
    /// was changed. [`Error::Io`]: the system's reason, such as a missing permission.
    pub(crate) fn open(path: &Path, create: Create) -> Result<Self> {
        let path = std::path::absolute(path).map_err(files::at("find", path))?;
        match (look(&path)?, create) {
            (Found::Nothing | Found::Started, Create::Never) => return Err(Error::NoStore { path }),
            (Found::Nothing, Create::IfMissing) => drop(files::create_folder(&path)?),
            (Found::Started, Create::IfMissing) | (Found::Store, _) => {}
        }
        let lock = Lock::acquire(&path)?;
        // Looked at before without the lock, so that others' folders stay untouched; what counts is what is here now.
        let description = match look(&path)? {
            Found::Store => Description::read(&path)?,
            Found::Nothing | Found::Started if create == Create::Never => {
                return Err(Error::NoStore { path });
            }
            Found::Nothing | Found::Started => None,
        };
        let folder = Self { path, description, _lock: lock };
        if folder.description.is_none() {
            folder.start()?;
        }
        Ok(folder)
    }

    /// Returns the folder's absolute path.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Returns what the store says about itself; `None` while it is being made.
    pub(crate) fn description(&self) -> Option<&Description> {
        self.description.as_ref()
    }

    /// Returns the folder of the engine in use.
    pub(crate) fn engine_dir(&self) -> PathBuf {
        self.path.join(self.engine())
    }

    /// Returns the name of the engine's folder in use.
    pub(crate) fn engine(&self) -> &str {
        self.description.as_ref().map_or(FIRST_ENGINE, |description| &description.engine)
    }

    /// Returns the journal's folder.
    pub(crate) fn journal_dir(&self) -> PathBuf {
        self.path.join(JOURNAL)
    }

    /// Replaces the description, in one step and durably: this makes a started store a store, and another engine's
    /// folder the one in use.
    pub(crate) fn describe(&mut self, description: Description) -> Result<()> {
        description.write(&self.path)?;
        self.description = Some(description);
        Ok(())
    }

    /// Returns the name that another engine's folder gets: a number that none has.
    pub(crate) fn next_engine(&self) -> Result<String> {
        let names = files::names(&self.path).map_err(files::at("list", &self.path))?;
        let taken =
            names.iter().filter_map(|name| engine_number(name.strip_suffix(UNFINISHED).unwrap_or(name)));
        Ok(format!("engine-{}", taken.max().unwrap_or(0).saturating_add(1)))
    }

    /// Returns where the engine `name` is filled. Nobody takes what is there for an engine, whatever is lost beside it.
    pub(crate) fn making(&self, name: &str) -> PathBuf {
        self.path.join(format!("{name}{UNFINISHED}"))
    }

    /// Gives the engine `name`, which is whole, its name, durably.
    pub(crate) fn name_engine(&self, name: &str) -> Result<()> {
        let making = self.making(name);
        std::fs::rename(&making, self.path.join(name)).map_err(files::at("rename", &making))?;
        files::sync_folder(&self.path)
    }

    /// Removes engine folders that the description does not name, whole or not, and a half-written description: what a crash left.
    /// Returns the names. Nothing is removed while the store is being made.
    pub(crate) fn remove_leftovers(&self) -> Result<Vec<String>> {
        let mut removed = Vec::new();
        if self.description.is_none() {
            return Ok(removed);
        }
        for name in files::names(&self.path).map_err(files::at("list", &self.path))? {
            let path = self.path.join(&name);
            let number = engine_number(name.strip_suffix(UNFINISHED).unwrap_or(&name));
            let leftover_engine = number.is_some() && name != self.engine();
            // A link of that name is not ours, wherever it leads.
            if leftover_engine && path.symlink_metadata().is_ok_and(|found| found.is_dir()) {
                std::fs::remove_dir_all(&path).map_err(files::at("remove", &path))?;
                removed.push(name);
            } else if name == description::NEW_NAME && files::remove_if_there(&path)? {
                removed.push(name);
            }
        }
        if !removed.is_empty() {
            files::sync_folder(&self.path)?;
        }
        Ok(removed)
    }

    /// Makes what a new store has beside its engine.
    fn start(&self) -> Result<()> {
        // Ours from here on, and what is written into it are people's conversations.
        files::restrict_path(&self.path)?;
        files::create_folder(&self.journal_dir())?;
        // Also when an interrupted making, whose names may not be durable yet, made the folders.
        files::sync_folder(&self.path)?;
        files::sync_parent(&self.path)
    }
}

enum Found {
    /// No folder, or an empty one.
    Nothing,
    /// What an interrupted making leaves.
    Started,
    /// There is a description, whatever it says.
    Store,
}

/// Looks at what is at `path`, changing nothing.
fn look(path: &Path) -> Result<Found> {
    let names = match files::names(path) {
        Ok(names) => names,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Found::Nothing),
        Err(error) if error.kind() == std::io::ErrorKind::NotADirectory => {
            return Err(Error::NotAStore { path: path.to_owned(), reason: "it is not a folder" });
        }
        Err(error) => return Err(files::at("read", path)(error)),
    };
    if names.iter().any(|name| name == description::NAME) {
        return Ok(Found::Store);
    }
    let count = std::fs::read_dir(path).map_err(files::at("read", path))?.count();
    if count == 0 {
        return Ok(Found::Nothing);
    }
    let refuse = |reason| Err(Error::NotAStore { path: path.to_owned(), reason });
    if count != names.len() {
        return refuse("it holds other things");
    }
    for name in &names {
        let path = path.join(name);
        let read = |error| files::at("read", &path)(error);
        match name.as_str() {
            lock::NAME if Lock::is_ours(&path).map_err(read)? => {}
            // Segments are made only when the description is there: a store that has lost its description is none
            // that was interrupted, and goes to `salvage`.
            JOURNAL if path.is_dir() => {
                if !files::names(&path).map_err(read)?.is_empty() {
                    return refuse("it has a journal but no description");
                }
            }
            FIRST_ENGINE | description::NEW_NAME => {}
            _ => return refuse("it holds other things"),
        }
    }
    Ok(Found::Started)
}

#[cfg(test)]
mod tests;
