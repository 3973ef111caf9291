//! [`JournalFiles`] on real files.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustix::fs::{OFlags, RenameFlags};

use super::journal_files::{JournalFile, JournalFiles, beyond_end, check_name};
use super::{files, journal_files};
use crate::error::{Error, Result};

/// [`JournalFiles`] in a folder: 0600 files in a 0700 folder. Links in it are never followed.
#[derive(Debug)]
pub struct FolderJournalFiles {
    folder: PathBuf,
}

impl FolderJournalFiles {
    /// Takes the folder `path`; makes it when it is missing.
    ///
    /// # Errors
    /// [`Error::Io`]: it cannot be made, or is no folder.
    pub fn open(path: &Path) -> Result<Self> {
        files::create_folder(path)?;
        Ok(Self { folder: path.to_owned() })
    }

    /// Returns the folder.
    pub fn path(&self) -> &Path {
        &self.folder
    }

    fn file(&self, name: &str) -> io::Result<PathBuf> {
        journal_files::check_name(name)?;
        Ok(self.folder.join(name))
    }
}

impl JournalFiles for FolderJournalFiles {
    fn list(&self) -> io::Result<Vec<String>> {
        let mut names = Vec::new();
        for entry in std::fs::read_dir(&self.folder)? {
            let entry = entry?;
            if entry.file_type()?.is_file() {
                names.extend(entry.file_name().into_string().ok());
            }
        }
        Ok(names)
    }

    fn create(&self, name: &str, len: u64) -> io::Result<Arc<dyn JournalFile>> {
        let path = self.file(name)?;
        let file = files::open(&path, OFlags::RDWR | OFlags::CREATE | OFlags::EXCL)?;
        if let Err(error) = files::fill_with_zeros(&file, len) {
            // The error that matters is the first one; a file that cannot be removed either is one that `list` shows.
            let _ = std::fs::remove_file(&path);
            return Err(error);
        }
        Ok(Arc::new(FolderJournalFile { file, len }))
    }

    fn open(&self, name: &str) -> io::Result<Arc<dyn JournalFile>> {
        let file = files::open(&self.file(name)?, OFlags::RDWR)?;
        let metadata = file.metadata()?;
        if !metadata.is_file() {
            return Err(io::Error::new(io::ErrorKind::InvalidInput, "not a file"));
        }
        Ok(Arc::new(FolderJournalFile { file, len: metadata.len() }))
    }

    fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        check_name(from)?;
        check_name(to)?;
        rename_new(&self.folder.join(from), &self.folder.join(to))
    }

    fn remove(&self, name: &str) -> io::Result<()> {
        std::fs::remove_file(self.file(name)?)
    }

    fn sync_folder(&self) -> io::Result<()> {
        match files::sync_folder(&self.folder) {
            Err(Error::Io { source, .. }) => Err(source),
            Err(error) => Err(io::Error::other(error)),
            Ok(()) => Ok(()),
        }
    }

    fn free_bytes(&self) -> io::Result<u64> {
        files::free_bytes(&self.folder)
    }
}

/// Renames without replacing. A file system that cannot do it in one step is asked first: the store's lock keeps
/// others out in between.
fn rename_new(from: &Path, to: &Path) -> io::Result<()> {
    let here = rustix::fs::CWD;
    match rustix::fs::renameat_with(here, from, here, to, RenameFlags::NOREPLACE) {
        Err(rustix::io::Errno::INVAL | rustix::io::Errno::NOSYS) => {}
        result => return Ok(result?),
    }
    if to.symlink_metadata().is_ok() {
        return Err(io::ErrorKind::AlreadyExists.into());
    }
    std::fs::rename(from, to)
}

#[derive(Debug)]
struct FolderJournalFile {
    file: File,
    /// Sizes never change once a file is made, so the system is asked once.
    len: u64,
}

impl JournalFile for FolderJournalFile {
    fn len(&self) -> io::Result<u64> {
        Ok(self.len)
    }

    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<()> {
        self.file.read_exact_at(buffer, offset)
    }

    fn write_at(&self, bytes: &[u8], offset: u64) -> io::Result<()> {
        let end = u64::try_from(bytes.len()).ok().and_then(|len| offset.checked_add(len));
        if end.is_none_or(|end| end > self.len) {
            return Err(beyond_end());
        }
        self.file.write_all_at(bytes, offset)
    }

    fn sync(&self) -> io::Result<()> {
        // fdatasync: no size and no block changes here, so there is no metadata that a reader would need.
        self.file.sync_data()
    }
}
