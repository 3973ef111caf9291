//! A store that is being made, and is taken away again where that fails.

use std::path::{Path, PathBuf};

/// A folder that is removed unless it is kept. There was none before, and who makes it lets go of it first.
pub(super) struct Unfinished(Option<PathBuf>);

impl Unfinished {
    pub(super) fn new(path: &Path) -> Self {
        Self(Some(path.to_owned()))
    }

    pub(super) fn keep(mut self) {
        self.0 = None;
    }
}

impl Drop for Unfinished {
    fn drop(&mut self) {
        if let Some(path) = &self.0 {
            // What failed before is what the caller has to know.
            let _ = std::fs::remove_dir_all(path);
        }
    }
}
