//! The seam below the journal: the few file operations it is made of.

use std::fmt;
use std::io;
use std::sync::Arc;

/// A folder of files whose sizes never change. Names are plain file names.
///
/// After a crash: of `write_at` calls since the last `sync` of that file any part may be there. A name made, changed
/// or removed is durable when `sync_folder` returns.
pub trait JournalFiles: fmt::Debug + Send + Sync {
    /// Returns the names of all files, in no order.
    fn list(&self) -> io::Result<Vec<String>>;
    /// Creates `name` with `len` zero bytes, written and synced. Fails when it exists; leaves nothing when it fails.
    fn create(&self, name: &str, len: u64) -> io::Result<Arc<dyn JournalFile>>;
    /// Opens an existing file.
    fn open(&self, name: &str) -> io::Result<Arc<dyn JournalFile>>;
    /// Gives a file another name; replaces nothing.
    fn rename(&self, from: &str, to: &str) -> io::Result<()>;
    /// Removes a file. Handles on it stay good.
    fn remove(&self, name: &str) -> io::Result<()>;
    /// Makes earlier creations, renames and removals durable.
    fn sync_folder(&self) -> io::Result<()>;
    /// Returns the bytes that can still be written to this medium.
    fn free_bytes(&self) -> io::Result<u64>;
}

/// An open file of [`JournalFiles`].
#[expect(clippy::len_without_is_empty, reason = "a size, not a collection's length")]
pub trait JournalFile: fmt::Debug + Send + Sync {
    /// Returns the file's size in bytes.
    fn len(&self) -> io::Result<u64>;
    /// Fills `buffer` from `offset` on; an error of kind `UnexpectedEof` when the file ends before.
    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<()>;
    /// Writes within the file's size; an error of kind `InvalidInput`, and nothing written, beyond it.
    fn write_at(&self, bytes: &[u8], offset: u64) -> io::Result<()>;
    /// Makes earlier writes to this file durable.
    fn sync(&self) -> io::Result<()>;
}

/// Refuses names that are not plain: a journal never leaves its folder.
pub(super) fn check_name(name: &str) -> io::Result<()> {
    let plain = !name.is_empty() && name != "." && name != ".." && !name.contains(['/', '\\', '\0']);
    if plain { Ok(()) } else { Err(io::Error::new(io::ErrorKind::InvalidInput, "not a plain file name")) }
}

/// The error of a write that would make a file longer.
pub(super) fn beyond_end() -> io::Error {
    io::Error::new(io::ErrorKind::InvalidInput, "write beyond the end of a file whose size is fixed")
}
