//! R: a plain loop that appends bytes to one file, which grows, with `fdatasync` at each acknowledgement. It is no
//! store: it is what the machine takes for the bytes alone.

use std::fs::{File, OpenOptions};
use std::io::Write;
use std::path::Path;

use crate::Outcome;

/// A file that grows.
#[derive(Debug)]
pub struct PlainFile(File);

impl PlainFile {
    /// Creates the file.
    pub fn create(path: &Path) -> Outcome<Self> {
        Ok(Self(OpenOptions::new().append(true).create_new(true).open(path)?))
    }

    /// Appends and syncs.
    pub fn append(&mut self, bytes: &[u8]) -> Outcome<()> {
        self.0.write_all(bytes)?;
        self.0.sync_data()?;
        Ok(())
    }
}
