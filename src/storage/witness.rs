//! What the engine had when the store was last closed in order, kept outside of it.
//!
//! ```text
//! sessionlog witness
//! drained 4711
//! checksum 5d41402a
//! ```
//!
//! An engine whose last bytes are damaged takes them for the torn end of a write and falls back to what it was before:
//! sound, and shorter. Nothing in it shows that, for the record of what is drained falls back with the rest. So each
//! orderly close notes that record's number here. It only ever grows, so an older note is true, too, and a missing or
//! damaged one takes nothing but this check away.

use std::io::Write as _;
use std::path::Path;

use rustix::fs::OFlags;

use super::files;
use crate::error::Result;

const NAME: &str = "witness";
const NEW_NAME: &str = "witness.new";
const FIRST_LINE: &str = "sessionlog witness\ndrained ";
/// More than a note has.
const MAX_BYTES: u64 = 256;

/// The note of the last orderly close.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Witness {
    /// The engine held everything up to this commit.
    pub(crate) drained: u64,
}

impl Witness {
    /// Reads the note in the store's folder `dir`; `None` when there is none that can be believed.
    pub(crate) fn read(dir: &Path) -> Option<Self> {
        let path = dir.join(NAME);
        if path.symlink_metadata().ok()?.len() > MAX_BYTES {
            return None;
        }
        let text = std::fs::read_to_string(path).ok()?;
        let drained = text.strip_prefix(FIRST_LINE)?.split('\n').next()?.parse().ok()?;
        let note = Self { drained };
        (note.to_text() == text).then_some(note)
    }

    /// Replaces the note; durable when it returns.
    pub(crate) fn write(self, dir: &Path) -> Result<()> {
        if Self::read(dir) == Some(self) {
            return Ok(());
        }
        let path = dir.join(NEW_NAME);
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::TRUNC;
        let written = files::open(&path, flags).and_then(|mut file| {
            file.write_all(self.to_text().as_bytes())?;
            file.sync_all()
        });
        written.map_err(files::at("write", &path))?;
        std::fs::rename(&path, dir.join(NAME)).map_err(files::at("rename", &path))?;
        files::sync_folder(dir)
    }

    /// Takes the note away: what the engine holds was changed on purpose.
    pub(crate) fn forget(dir: &Path) -> Result<()> {
        if files::remove_if_there(&dir.join(NAME))? { files::sync_folder(dir) } else { Ok(()) }
    }

    fn to_text(self) -> String {
        let text = format!("{FIRST_LINE}{}\n", self.drained);
        format!("{text}checksum {:08x}\n", crc32fast::hash(text.as_bytes()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// It comes back as written; damaged in any byte, cut or linked elsewhere it says nothing.
    #[test]
    fn only_a_sound_note_is_believed() {
        let dir = tempfile::tempdir().unwrap();
        assert_eq!(Witness::read(dir.path()), None);
        for drained in [0, 7, u64::MAX] {
            Witness { drained }.write(dir.path()).unwrap();
            assert_eq!(Witness::read(dir.path()), Some(Witness { drained }));
        }
        let path = dir.path().join(NAME);
        let sound = std::fs::read(&path).unwrap();
        for at in 0..sound.len() {
            let mut damaged = sound.clone();
            damaged[at] ^= 1;
            std::fs::write(&path, &damaged).unwrap();
            assert_eq!(Witness::read(dir.path()), None, "{at}");
            std::fs::write(&path, &sound[..at]).unwrap();
            assert_eq!(Witness::read(dir.path()), None, "{at}");
        }
        Witness::forget(dir.path()).unwrap();
        assert!(!path.exists());
    }
}
