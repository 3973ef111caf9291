//! Files and folders of them.

use std::collections::HashMap;
use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use super::import::import_with;
use super::options::{ImportOptions, ImportReport};
use super::target::present;
use super::update::{header, update};
use crate::Store;
use crate::error::{Error, Result};

/// Word of an import of files under way.
#[derive(Debug)]
#[non_exhaustive]
pub enum Watched<'a> {
    /// This much of a file has been read.
    Read {
        /// The file.
        path: &'a Path,
        /// Bytes read.
        bytes: u64,
        /// Its size.
        of: u64,
    },
    /// A file is done.
    Done {
        /// The file.
        path: &'a Path,
        /// What became of it.
        result: &'a Result<ImportReport>,
    },
}

/// How many bytes pass between two words of progress.
const WATCH_BYTES: u64 = 4 << 20;

/// Imports the file `path`: as [`import`](super::import), and with [`ImportOptions::update`] and the rest of a
/// [salvage](ImportOptions::salvage), which is written to `path` with `.rest` behind its name, if there is any.
///
/// # Errors
/// As [`import`](super::import). [`Error::Io`] of the kind `AlreadyExists`: a file with that name is there; nothing was
/// changed.
pub fn import_file(store: &Store, path: &Path, options: &ImportOptions) -> Result<ImportReport> {
    one(store, path, options, &mut |_| {})
}

/// Imports files, and of folders the files in them that end in `.jsonl`, a parent before its forks, whatever order they
/// come in. Each file is imported as a whole or not at all, and none keeps the others from it. `watch` hears of
/// progress and of each result.
///
/// # Errors
/// [`Error::Io`]: a folder cannot be read. [`Error::Closed`], [`Error::Failed`]: the store takes nothing more. What is
/// wrong with a file is its own result.
pub fn import_files(
    store: &Store,
    paths: &[PathBuf],
    options: &ImportOptions,
    watch: &mut dyn FnMut(Watched<'_>),
) -> Result<()> {
    for path in parents_first(expand(paths)?) {
        let result = one(store, &path, options, watch);
        watch(Watched::Done { path: &path, result: &result });
        if let Err(error @ (Error::Closed | Error::Failed { .. })) = result {
            return Err(error);
        }
    }
    Ok(())
}

fn one(
    store: &Store,
    path: &Path,
    options: &ImportOptions,
    watch: &mut dyn FnMut(Watched<'_>),
) -> Result<ImportReport> {
    let open = || File::open(path).map_err(io("open", path));
    let file = open()?;
    let of = file.metadata().map_err(io("read", path))?.len();
    let mut told = 0;
    let mut watch = |bytes: u64| {
        if bytes >= told + WATCH_BYTES {
            told = bytes;
            watch(Watched::Read { path, bytes, of });
        }
    };
    if options.update
        && let Some(header) = header(open()?)?
        && let Some(session) = present(store, options.id.as_ref().unwrap_or(&header.id))?
    {
        return placed(path, update(&session, &header, options, open, &mut watch));
    }
    let mut rest = Rest { path: with_rest(path), file: None };
    if options.salvage && rest.path.exists() {
        return Err(io("create", &rest.path)(io::ErrorKind::AlreadyExists.into()));
    }
    let rest: &mut dyn Write = if options.dry_run { &mut io::sink() } else { &mut rest };
    placed(path, import_with(store, file, options, rest, &mut watch))
}

/// Names the file in errors of reading it.
fn placed<T>(path: &Path, result: Result<T>) -> Result<T> {
    match result {
        Err(Error::Io { action: "read", source, .. }) => Err(io("read", path)(source)),
        result => result,
    }
}

fn io(action: &'static str, path: &Path) -> impl FnOnce(io::Error) -> Error {
    let path = path.to_owned();
    move |source| Error::Io { action, path, source }
}

/// Where a salvage puts what it leaves out.
fn with_rest(path: &Path) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(".rest");
    name.into()
}

/// A file that is made with its first byte.
struct Rest {
    path: PathBuf,
    file: Option<File>,
}

impl Write for Rest {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let file = match &mut self.file {
            Some(file) => file,
            None => {
                let file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&self.path)?;
                self.file.insert(file)
            }
        };
        file.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.as_mut().map_or(Ok(()), Write::flush)
    }
}

fn expand(paths: &[PathBuf]) -> Result<Vec<PathBuf>> {
    let mut files = Vec::new();
    for path in paths {
        if !path.is_dir() {
            files.push(path.clone());
            continue;
        }
        let mut found = Vec::new();
        for entry in std::fs::read_dir(path).map_err(io("read", path))? {
            let file = entry.map_err(io("read", path))?.path();
            if file.extension().is_some_and(|extension| extension == "jsonl") {
                found.push(file);
            }
        }
        found.sort();
        files.extend(found);
    }
    Ok(files)
}

/// The same files, each behind that of the parent that it names. One that cannot be read keeps its place: importing it
/// tells why.
fn parents_first(files: Vec<PathBuf>) -> Vec<PathBuf> {
    if files.len() < 2 {
        return files;
    }
    let headers: Vec<_> =
        files.iter().map(|path| File::open(path).ok().and_then(|file| header(file).ok().flatten())).collect();
    let ids: HashMap<_, _> =
        headers.iter().enumerate().rev().filter_map(|(at, found)| Some((&found.as_ref()?.id, at))).collect();
    let parent = |at: usize| {
        let (parent, _) = headers.get(at)?.as_ref()?.fork()?;
        ids.get(&parent).copied()
    };
    let mut order = Vec::new();
    let mut seen = vec![false; files.len()];
    for at in 0..files.len() {
        let mut chain = Vec::new();
        let mut next = Some(at);
        while let Some(at) = next
            && let Some(seen) = seen.get_mut(at).filter(|seen| !**seen)
        {
            *seen = true;
            chain.push(at);
            next = parent(at);
        }
        order.extend(chain.into_iter().rev());
    }
    order.into_iter().filter_map(|at| files.get(at).cloned()).collect()
}
