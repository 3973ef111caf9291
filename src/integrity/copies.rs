//! Copies of what a repair changes, made and durable before it is changed.

use std::fs::{DirBuilder, File, OpenOptions};
use std::io::{BufWriter, Write as _};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use super::finding::map_name;
use crate::error::{Error, Result};
use crate::format;
use crate::storage::Map;

const NAME: &str = "repair-";
/// The file with the old values: a JSON object a line, keys and values in hexadecimal; `value` is null where there was
/// none.
const VALUES: &str = "values.jsonl";

/// Removes all folders of that name in `parent`. Returns their names.
pub(super) fn remove_all(parent: &Path) -> Result<Vec<String>> {
    let entries = std::fs::read_dir(parent);
    let entries = entries.map_err(|source| Error::Io { action: "list", path: parent.to_owned(), source })?;
    let mut names = Vec::new();
    for entry in entries {
        let entry = entry.map_err(|source| Error::Io { action: "list", path: parent.to_owned(), source })?;
        let number = |name: &str| name.strip_prefix(NAME).is_some_and(|number| number.parse::<u32>().is_ok());
        let name = entry.file_name().into_string().ok().filter(|name| number(name));
        // A link of that name is not ours, wherever it leads.
        if let Some(name) = name
            && entry.file_type().is_ok_and(|kind| kind.is_dir())
        {
            names.push(name);
        }
    }
    names.sort();
    for name in &names {
        let folder = parent.join(name);
        std::fs::remove_dir_all(&folder).map_err(|source| Error::Io {
            action: "remove",
            path: folder,
            source,
        })?;
    }
    if !names.is_empty() {
        sync_folder(parent)?;
    }
    Ok(names)
}

/// A folder `repair-N` with the old values, and the journal's files.
pub(super) struct Copies {
    folder: PathBuf,
    values: BufWriter<File>,
}

impl Copies {
    /// Makes the next folder of that name in `parent`.
    pub(super) fn make(parent: &Path) -> Result<Self> {
        let mut number = 1_u32;
        let folder = loop {
            let folder = parent.join(format!("{NAME}{number}"));
            match DirBuilder::new().mode(0o700).create(&folder) {
                Ok(()) => break folder,
                Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => number += 1,
                Err(source) => return Err(Error::Io { action: "create", path: folder, source }),
            }
        };
        let values = create(&folder.join(VALUES))?;
        sync_folder(parent)?;
        sync_folder(&folder)?;
        Ok(Self { folder, values: BufWriter::new(values) })
    }

    pub(super) fn folder(&self) -> &Path {
        &self.folder
    }

    /// Adds what stands under a key now.
    pub(super) fn value(&mut self, map: Map, key: &[u8], value: Option<&[u8]>) -> Result<()> {
        let value = value.map_or_else(|| "null".to_owned(), |value| format!("\"{}\"", format::hex(value)));
        let line =
            format!("{{\"map\":\"{}\",\"key\":\"{}\",\"value\":{value}}}\n", map_name(map), format::hex(key));
        let written = self.values.write_all(line.as_bytes());
        written.map_err(|source| Error::Io { action: "write", path: self.folder.join(VALUES), source })
    }

    /// Makes what was added durable.
    pub(super) fn sync(&mut self) -> Result<()> {
        let synced = self.values.flush().and_then(|()| self.values.get_ref().sync_data());
        synced.map_err(|source| Error::Io { action: "sync", path: self.folder.join(VALUES), source })
    }

    /// Copies a file of the journal, durably.
    pub(super) fn file(&mut self, name: &str, bytes: &[u8]) -> Result<()> {
        let path = self.folder.join(name);
        let mut file = create(&path)?;
        file.write_all(bytes).and_then(|()| file.sync_all()).map_err(|source| Error::Io {
            action: "write",
            path,
            source,
        })?;
        sync_folder(&self.folder)
    }
}

fn create(path: &Path) -> Result<File> {
    let file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(path);
    file.map_err(|source| Error::Io { action: "create", path: path.to_owned(), source })
}

fn sync_folder(path: &Path) -> Result<()> {
    let synced = File::open(path).and_then(|folder| folder.sync_all());
    synced.map_err(|source| Error::Io { action: "sync", path: path.to_owned(), source })
}
