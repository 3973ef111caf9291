//! The reserve: zero-filled space that a full disk leaves to those calls that make room.

use std::path::Path;

use rustix::fs::OFlags;

use super::files;
use crate::error::Result;

const NAME: &str = "reserve";

/// The file `reserve` of a store. Appends never use it: a store that has filled a disk can still be opened, pruned
/// and closed.
#[derive(Debug)]
pub(crate) struct Reserve;

impl Reserve {
    /// Makes the reserve when it is missing, has another size (a crash while it was made) and there is room: four
    /// times its size. Returns whether it is there.
    ///
    /// Costs a write and sync of `bytes` when it has to be made, else a look.
    pub(crate) fn ensure(dir: &Path, bytes: u64) -> Result<bool> {
        let path = dir.join(NAME);
        if std::fs::symlink_metadata(&path).is_ok_and(|found| found.is_file() && found.len() == bytes) {
            return Ok(true);
        }
        Self::release(dir)?;
        if bytes == 0 || files::free_bytes(dir).map_err(files::at("ask for free space in", dir))? / 4 < bytes
        {
            return Ok(false);
        }
        let file = files::open(&path, OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL)
            .map_err(files::at("create", &path))?;
        if let Err(error) = files::fill_with_zeros(&file, bytes) {
            drop(file);
            Self::release(dir)?;
            // Somebody else was faster. Being without a reserve is a state, not a failure.
            let full =
                matches!(error.kind(), std::io::ErrorKind::StorageFull | std::io::ErrorKind::QuotaExceeded);
            return if full { Ok(false) } else { Err(files::at("write", &path)(error)) };
        }
        files::sync_folder(dir)?;
        Ok(true)
    }

    /// Gives the reserve's space back to the disk. Returns whether there was one.
    pub(crate) fn release(dir: &Path) -> Result<bool> {
        let released = files::remove_if_there(&dir.join(NAME))?;
        if released {
            files::sync_folder(dir)?;
        }
        Ok(released)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Made with the right size and mode, made anew when a crash left it short, gone when released.
    #[test]
    fn made_completed_and_released() {
        use std::os::unix::fs::MetadataExt;
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join(NAME);
        assert!(Reserve::ensure(dir.path(), 300_000).unwrap());
        let metadata = path.metadata().unwrap();
        assert_eq!((metadata.len(), metadata.mode() & 0o777), (300_000, 0o600));
        assert!(metadata.blocks() * 512 >= 300_000, "a reserve without blocks reserves nothing");

        std::fs::write(&path, b"short").unwrap();
        assert!(Reserve::ensure(dir.path(), 300_000).unwrap());
        assert_eq!(path.metadata().unwrap().len(), 300_000);

        assert!(Reserve::release(dir.path()).unwrap());
        assert!(!Reserve::release(dir.path()).unwrap());
        assert!(!path.exists());
    }

    /// Without four times the room there is none, and that is no error.
    #[test]
    fn not_made_without_room() {
        let dir = tempfile::tempdir().unwrap();
        assert!(!Reserve::ensure(dir.path(), u64::MAX / 2).unwrap());
        assert!(!dir.path().join(NAME).exists());
    }
}
