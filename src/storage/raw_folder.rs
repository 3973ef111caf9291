//! The folder of a damaged store, read and never written.

use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};

use rustix::fs::OFlags;

use super::description::{self, engine_number};
use super::folder::JOURNAL;
use super::{Description, files};
use crate::error::{Error, Result};
use crate::storage::Lock;

/// A store's folder as it lies there. Nobody opens it while this lives.
#[derive(Debug)]
pub(crate) struct RawFolder {
    path: PathBuf,
    description: Option<Description>,
    _lock: Option<Lock>,
}

impl RawFolder {
    /// # Errors
    /// [`Error::NoStore`], [`Error::NotAStore`], [`Error::InUse`], [`Error::UnsupportedFormat`], [`Error::Io`]. A
    /// damaged description is none: the parts of a store are there.
    pub(crate) fn open(path: &Path) -> Result<Self> {
        let path = std::path::absolute(path).map_err(files::at("find", path))?;
        match path.metadata() {
            Ok(found) if found.is_dir() => {}
            Ok(_) => return Err(Error::NotAStore { path, reason: "it is not a folder" }),
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Err(Error::NoStore { path }),
            Err(error) => return Err(files::at("read", &path)(error)),
        }
        let mut folder = Self { description: Description::read_damaged(&path)?, path, _lock: None };
        let described = folder.path.join(description::NAME).exists();
        if !described && folder.engines()?.is_empty() && folder.journal()?.is_empty() {
            if files::names(&folder.path).map_err(files::at("read", &folder.path))?.is_empty() {
                return Err(Error::NoStore { path: folder.path });
            }
            return Err(Error::NotAStore { path: folder.path, reason: "it has no part of a store" });
        }
        folder._lock = Lock::hold_unwritten(&folder.path)?;
        Ok(folder)
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// The id that its journal's frames have, where the description is sound.
    pub(crate) fn store_id(&self) -> Option<[u8; 16]> {
        self.description.as_ref().map(|description| description.store_id)
    }

    /// The commit up to which the engine held everything at the last orderly close, where that is known.
    pub(crate) fn drained_at_close(&self) -> Option<u64> {
        super::Witness::read(&self.path).map(|witness| witness.drained)
    }

    /// The engine's folder, or all that could be it, the newest first.
    pub(crate) fn engines(&self) -> Result<Vec<PathBuf>> {
        if let Some(description) = &self.description {
            let dir = self.path.join(&description.engine);
            return Ok(if is_folder(&dir) { vec![dir] } else { Vec::new() });
        }
        let names = files::names(&self.path).map_err(files::at("list", &self.path))?;
        let mut engines: Vec<_> =
            names.iter().filter_map(|name| Some((engine_number(name)?, self.path.join(name)))).collect();
        engines.retain(|(_, dir)| is_folder(dir) && dir.join("db").exists());
        engines.sort_by(|a, b| b.cmp(a));
        Ok(engines.into_iter().map(|(_, dir)| dir).collect())
    }

    /// The files of the journal, by name.
    pub(crate) fn journal(&self) -> Result<Vec<PathBuf>> {
        let dir = self.path.join(JOURNAL);
        if !is_folder(&dir) {
            return Ok(Vec::new());
        }
        plain_files(&dir)
    }
}

/// The plain files in a folder and in the folders in it, by name. Links are not followed.
pub(crate) fn plain_files(dir: &Path) -> Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    let mut folders = vec![dir.to_owned()];
    while let Some(folder) = folders.pop() {
        let entries = std::fs::read_dir(&folder).map_err(files::at("list", &folder))?;
        for entry in entries {
            let entry = entry.map_err(files::at("list", &folder))?;
            let kind = entry.file_type().map_err(files::at("read", &entry.path()))?;
            if kind.is_dir() {
                folders.push(entry.path());
            } else if kind.is_file() {
                found.push(entry.path());
            }
        }
    }
    found.sort();
    Ok(found)
}

/// Opens a file to read it. Links are not followed.
pub(crate) fn open_raw(path: &Path) -> Result<File> {
    files::open(path, OFlags::RDONLY).map_err(files::at("open", path))
}

/// Copies the files of an engine's folder into the new folder `to`. Returns how many bytes it took.
pub(crate) fn copy_engine(from: &Path, to: &Path) -> Result<()> {
    files::create_folder(to)?;
    for path in plain_files(from)? {
        let Ok(name) = path.strip_prefix(from) else { continue };
        let target = to.join(name);
        if let Some(parent) = target.parent() {
            files::create_folder(parent)?;
        }
        let mut source = open_raw(&path)?;
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL;
        let copied = files::open(&target, flags).and_then(|mut file| io::copy(&mut source, &mut file));
        copied.map_err(files::at("copy", &path))?;
    }
    Ok(())
}

/// The bytes of all plain files in a folder.
pub(crate) fn bytes_in(dir: &Path) -> Result<u64> {
    let mut bytes = 0;
    for path in plain_files(dir)? {
        bytes += path.symlink_metadata().map_err(files::at("read", &path))?.len();
    }
    Ok(bytes)
}

/// The bytes that can still be written where `path` lies.
pub(crate) fn free_bytes(path: &Path) -> Result<u64> {
    files::free_bytes(path).map_err(files::at("read the free space of", path))
}

fn is_folder(path: &Path) -> bool {
    path.symlink_metadata().is_ok_and(|found| found.is_dir())
}
