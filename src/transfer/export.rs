//! Sessions to files.

use std::fs::{DirBuilder, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use super::header::Header;
use crate::error::{Error, Result};
use crate::{Seq, Session, Store};

/// How much is collected before it is written.
const BUFFER_BYTES: usize = 256 << 10;

/// What of a session is exported.
#[derive(Clone, Copy, Debug, Default)]
pub struct ExportOptions {
    own: bool,
}

impl ExportOptions {
    /// All events, from 0, also of a fork: the file needs no other.
    pub fn new() -> Self {
        Self::default()
    }

    /// Of a fork only the events behind those that it shares: an import needs the parent to be there.
    #[must_use]
    pub fn own(mut self) -> Self {
        self.own = true;
        self
    }
}

/// What was exported.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Exported {
    /// Events in the file.
    pub events: u64,
    /// Bytes written.
    pub bytes: u64,
}

/// Writes a session as native JSON Lines; see [the module](super) for the form.
///
/// What is appended meanwhile is not in it. Provisional events are: see [`Session::durable_len`].
///
/// # Cost
/// That of reading; memory does not grow with the session.
/// # Errors
/// As reading: see [`Events`](crate::Events). [`Error::Io`] when writing fails. What was written before is of no use:
/// an import finds out that it is too short.
pub fn export(session: &Session, options: ExportOptions, out: &mut impl Write) -> Result<Exported> {
    let len = session.len();
    let shared = session.header()?.parent.map_or(0, |parent| parent.prefix_len);
    let first = if options.own { shared } else { 0 };
    let write = |out: &mut dyn Write, bytes: &[u8]| {
        let io = |source| Error::Io { action: "write", path: "the export".into(), source };
        out.write_all(bytes).map_err(io)
    };
    let mut buffer = Vec::with_capacity(BUFFER_BYTES);
    Header::of(session, first, len)?.write(&mut buffer);
    buffer.push(b'\n');
    let mut exported = Exported { events: 0, bytes: 0 };
    for event in session.read_range(Seq::new(first)..Seq::new(len))? {
        event?.write_json(&mut buffer);
        buffer.push(b'\n');
        exported.events += 1;
        if buffer.len() >= BUFFER_BYTES {
            write(out, &buffer)?;
            exported.bytes += buffer.len() as u64;
            buffer.clear();
            buffer.shrink_to(2 * BUFFER_BYTES);
        }
    }
    write(out, &buffer)?;
    exported.bytes += buffer.len() as u64;
    out.flush().map_err(|source| Error::Io { action: "write", path: "the export".into(), source })?;
    Ok(exported)
}

/// Exports every session of a store into the folder `folder`, which is made, or is there and empty. A session's file
/// is named by its [storage key](Session::storage_key): an id is never a file's name.
///
/// Of a fork only its own events are written, for its parent is there, too; of one whose parent was deleted all.
/// `each` is told of every file when it is complete.
///
/// # Durability
/// Files and their names are synced when this returns.
/// # Errors
/// [`Error::Io`] of the kind `AlreadyExists` when the folder is not empty: nothing was written. As [`export`], where
/// the file concerned is removed and those before it stay.
pub fn export_all(
    store: &Store,
    folder: &Path,
    mut each: impl FnMut(&Session, &Path, Exported),
) -> Result<u64> {
    empty_folder(folder)?;
    let mut files = 0;
    for info in store.list()? {
        let session = store.session(&info?.header.id)?;
        let parent = session.header()?.parent;
        let own = parent.is_some_and(|parent| parent.session.is_some());
        let options = if own { ExportOptions::new().own() } else { ExportOptions::new() };
        let path = folder.join(format!("{}.jsonl", session.storage_key()));
        let exported = create_file(&path, |file| export(&session, options, file))?;
        each(&session, &path, exported);
        files += 1;
    }
    let sync = || File::open(folder)?.sync_all();
    sync().map_err(|source| Error::Io { action: "sync", path: folder.to_owned(), source })?;
    Ok(files)
}

/// Makes a file that is not there, for its owner only, lets `fill` write it, and syncs it. When that fails the file
/// is removed.
///
/// # Errors
/// [`Error::Io`] of the kind `AlreadyExists`: nothing was changed. What `fill` gives.
pub fn create_file<T>(path: &Path, fill: impl FnOnce(&mut File) -> Result<T>) -> Result<T> {
    let io = |action, source| Error::Io { action, path: path.to_owned(), source };
    let mut file = OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(path)
        .map_err(|source| io("create", source))?;
    let filled = fill(&mut file).and_then(|value| {
        file.sync_all().map_err(|source| io("sync", source))?;
        Ok(value)
    });
    if filled.is_err() {
        // The first error is what the caller has to know.
        let _ = std::fs::remove_file(path);
    }
    filled
}

/// Makes a folder that is not there, for its owner only; one that is there must be empty.
fn empty_folder(folder: &Path) -> Result<()> {
    let io = |action, source| Error::Io { action, path: PathBuf::from(folder), source };
    match DirBuilder::new().mode(0o700).create(folder) {
        Ok(()) => Ok(()),
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists && folder.is_dir() => {
            let mut entries = std::fs::read_dir(folder).map_err(|source| io("read", source))?;
            match entries.next() {
                None => Ok(()),
                Some(_) => Err(io("export into", io::ErrorKind::AlreadyExists.into())),
            }
        }
        Err(source) => Err(io("create", source)),
    }
}
