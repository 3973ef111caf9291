//! Raw files, read and never written: what carving looks through.

use std::fmt;
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt as _;
use std::sync::Arc;

use crate::storage::JournalFile;

/// A file that is only read.
pub(crate) trait Raw: fmt::Debug + Send + Sync {
    fn len(&self) -> io::Result<u64>;
    /// Fills `buffer` from `offset` on.
    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<()>;
}

impl Raw for File {
    fn len(&self) -> io::Result<u64> {
        Ok(self.metadata()?.len())
    }

    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<()> {
        self.read_exact_at(buffer, offset)
    }
}

impl Raw for Arc<dyn JournalFile> {
    fn len(&self) -> io::Result<u64> {
        self.as_ref().len()
    }

    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<()> {
        self.as_ref().read_at(buffer, offset)
    }
}
