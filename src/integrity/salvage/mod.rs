//! Salvage: from a damaged store's files into a fresh store, whatever still reads.
//!
//! ```text
//! OLD ──► copy ──► engine, if it opens ──┐
//!  │                                     ├──► values, newest by write number ──► NEW's engine ──► repair ──► NEW
//!  └────► raw files ──► carving ─────────┘    frames above the drained mark ──► NEW's journal ──┘
//! ```
//!
//! OLD is read and never written; nobody opens it meanwhile. The target's engine is the only index, so memory does not
//! grow with the store.

mod account;
mod covered;
mod deleted;
mod engine;
mod frames;
mod report;
mod sieve;

use std::fmt;
use std::path::{Path, PathBuf};

use self::account::Account;
use self::frames::Frames;
pub use self::report::{EngineOutcome, SalvageProgress, SalvageReport, SalvageStep, SalvagedSession};
use self::sieve::Sieve;
use super::carve::{Carved, Raw, carve_values};
use super::repair::{self, Ground, Mode};
use super::unfinished::Unfinished;
use crate::error::{Error, Place, Result};
use crate::format::{self, FORMAT_VERSION, Opened, WriteNumbers};
use crate::storage::{self, JournalFiles, Map, RawFolder, Storage};
use crate::store::Parts;

/// What a salvage leaves free beside all that it may write.
const SPARE_BYTES: u64 = 16 << 20;

type Progress = Box<dyn FnMut(&SalvageProgress) + Send>;

/// Makes a fresh store of what can still be read of a damaged one.
///
/// What the engine still gives is taken, and what stands in its raw files: every stored value says itself what it is
/// and how new. Frames of the journal that were not drained are applied. Then derived records are made anew, and a
/// session with a hole is ended there; what lay behind is kept apart.
///
/// # Examples
/// ```
/// # fn main() -> sessionlog::Result<()> {
/// # let folder = tempfile::tempdir().unwrap();
/// # let (old, new) = (folder.path().join("old"), folder.path().join("new"));
/// # let store = sessionlog::Store::open(&old)?;
/// # store.create(sessionlog::NewSession::new())?.append(sessionlog::NewEvent::user_message("hello"))?;
/// # store.close()?;
/// # drop(store);
/// use sessionlog::Salvage;
/// let report = Salvage::new().folder(&old, &new)?;
/// for session in &report.sessions {
///     println!("{}: {} events, {:?} missing", session.id, session.len, session.missing);
/// }
/// # assert_eq!((report.sessions.len(), report.sessions[0].len), (1, 1));
/// # Ok(()) }
/// ```
#[derive(Default)]
pub struct Salvage {
    deleted: bool,
    progress: Option<Progress>,
}

impl fmt::Debug for Salvage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Salvage").field("deleted", &self.deleted).finish_non_exhaustive()
    }
}

/// A raw file and its name.
type RawFile = (String, Box<dyn Raw>);

impl Salvage {
    /// A salvage that leaves deleted sessions out.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Whether to take what is left of deleted sessions, too, each under its id with `recovered ` before it.
    #[must_use]
    pub fn deleted(mut self, deleted: bool) -> Self {
        self.deleted = deleted;
        self
    }

    /// Calls `progress` every now and then.
    #[must_use]
    pub fn progress(mut self, progress: impl FnMut(&SalvageProgress) + Send + 'static) -> Self {
        self.progress = Some(Box::new(progress));
        self
    }

    /// Salvages the store in the folder `old` into the new folder `new`.
    ///
    /// `old` is only read, and may be on a read-only medium. While the engine is asked, a copy of its files stands
    /// beside `new`. When it returns an error there is no `new`.
    ///
    /// # Cost
    /// Reads all of `old`, writes what was found, and reads that twice. An engine that hangs on damaged files is given
    /// up after a minute or more; the thread that waits for it stays.
    /// # Errors
    /// [`Error::OutputExists`]: `new` is there; it was not touched. [`Error::NoStore`], [`Error::NotAStore`],
    /// [`Error::InUse`]. [`Error::UnsupportedFormat`]: a newer version wrote `old`. [`Error::DiskFull`]: nothing was
    /// written. [`Error::Io`], [`Error::Failed`]: of the new store.
    pub fn folder(mut self, old: impl AsRef<Path>, new: impl AsRef<Path>) -> Result<SalvageReport> {
        let new = absolute(new.as_ref())?;
        if new.symlink_metadata().is_ok() {
            return Err(Error::OutputExists { path: new });
        }
        let old = RawFolder::open(old.as_ref())?;
        let above = check_place(&old, &new)?;
        let engines = old.engines()?;
        let mut needed = SPARE_BYTES;
        for dir in old.journal().iter().flatten().filter_map(|path| path.metadata().ok()) {
            needed += 2 * dir.len();
        }
        for dir in &engines {
            needed += storage::bytes_in(dir)?;
        }
        let free = storage::free_bytes(&above)?;
        if free < needed {
            return Err(Error::DiskFull { path: above, needed_bytes: needed, free_bytes: free });
        }
        let unfinished = Unfinished::new(&new);
        let report = self.fill(&old, &engines, &new, free - needed)?;
        unfinished.keep();
        Ok(report)
    }

    fn fill(
        &mut self,
        old: &RawFolder,
        engines: &[PathBuf],
        new: &Path,
        spare: u64,
    ) -> Result<SalvageReport> {
        let parts = Parts::make(new)?;
        let (storage, files) = (parts.storage.as_ref(), parts.files.as_ref());
        let filled = (|| {
            let mut report =
                SalvageReport { drained_at_close: old.drained_at_close(), ..SalvageReport::default() };
            let mut sieve = Sieve::new(storage, self.deleted);
            self.tell(SalvageStep::Engine, 0, 0);
            report.engine = engine::ask(engines, new, spare, &mut sieve)?;
            let mut raws = Vec::new();
            for dir in engines {
                for path in storage::plain_files(dir)? {
                    raws.push((
                        path.display().to_string(),
                        Box::new(storage::open_raw(&path)?) as Box<dyn Raw>,
                    ));
                }
            }
            let mut journal = Vec::new();
            for path in old.journal()? {
                let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
                journal.push((name, Box::new(storage::open_raw(&path)?) as Box<dyn Raw>));
            }
            self.take(raws, &journal, old.store_id(), sieve, (storage, files, parts.store_id), &mut report)?;
            Ok(report)
        })();
        match filled {
            Ok(report) => parts.finish().map(|()| report),
            Err(error) => parts.close(Err(named(error, old.path()))),
        }
    }

    /// Salvages from files that are passed in, into seams that are: `old` holds an engine's raw files under any name,
    /// and a journal's under those that they have (`segment-N`, `torn-N`). The seams are empty, and can then be opened
    /// with [`StoreOptions::open_on`](crate::StoreOptions::open_on).
    ///
    /// # Errors
    /// As [`folder`](Self::folder), where they apply.
    pub fn on(
        mut self,
        old: &dyn JournalFiles,
        storage: &dyn Storage,
        files: &dyn JournalFiles,
    ) -> Result<SalvageReport> {
        let (mut raws, mut journal) = (Vec::new(), Vec::new());
        let io = |action, name: &str| {
            let path = PathBuf::from(name);
            move |source| Error::Io { action, path, source }
        };
        let mut names = old.list().map_err(io("list", ""))?;
        names.sort();
        for name in names {
            let raw: Box<dyn Raw> = Box::new(old.open(&name).map_err(io("open", &name))?);
            if frames::is_journal(&name) { journal.push((name, raw)) } else { raws.push((name, raw)) }
        }
        let mut report = SalvageReport::default();
        let sieve = Sieve::new(storage, self.deleted);
        self.take(raws, &journal, None, sieve, (storage, files, [0; 16]), &mut report)?;
        Ok(report)
    }

    /// Carves, applies, repairs, and accounts for it.
    fn take(
        &mut self,
        raws: Vec<RawFile>,
        journal: &[RawFile],
        old_id: Option<[u8; 16]>,
        mut sieve: Sieve<'_>,
        (storage, files, store_id): (&dyn Storage, &dyn JournalFiles, [u8; 16]),
        report: &mut SalvageReport,
    ) -> Result<()> {
        sieve.engine_was_asked(report.drained_at_close)?;
        self.carve(&raws, &mut sieve, report)?;
        if sieve.engine_fell_back()? {
            // What it did not know was not deleted, and was passed over.
            self.carve(&raws, &mut sieve, report)?;
        }
        self.tell(SalvageStep::Journal, 0, 0);
        report.drained = sieve.drained()?.unwrap_or(0);
        let mut frames = Frames::read(journal, old_id, sieve.drained()?, report)?;
        if sieve.values == 0 && frames.is_empty() {
            return Err(match sieve.newer.max(frames.newer) {
                Some(found) => Error::UnsupportedFormat {
                    place: Place::new("value"),
                    found,
                    known: u32::from(FORMAT_VERSION),
                },
                None => Error::NotAStore {
                    path: PathBuf::new(),
                    reason: "nothing that a store holds was found in its files",
                },
            });
        }
        let count = sieve.next_open();
        let mut numbers = WriteNumbers::new(count);
        // Also where nothing but frames was found: without it a store with a description does not open.
        let opened = format::encode_opened(Opened { count }, numbers.next());
        storage.insert(Map::Sessions, format::OPENED_KEY, &opened)?;
        let recovered = deleted::settle(storage, &mut sieve, &mut numbers)?;
        frames.make_known(storage, &mut numbers)?;
        sieve.report(report);
        covered::remove(storage)?;
        let account = Account::of(storage, &frames.runs)?;
        frames.write(journal, files, store_id)?;
        storage.flush()?;
        self.tell(SalvageStep::Mending, 0, 0);
        repair::repair(&Ground { storage, files, store_id }, &Mode::Apply { copies: None })?;
        account.report(storage, &recovered, report)
    }

    /// Looks through the raw files.
    fn carve(&mut self, raws: &[RawFile], sieve: &mut Sieve<'_>, report: &mut SalvageReport) -> Result<()> {
        (report.damaged_places, report.unreadable_bytes) = (0, 0);
        let total: u64 = raws.iter().filter_map(|(_, raw)| raw.len().ok()).sum();
        let mut before = 0;
        for (name, raw) in raws {
            let carved = carve_values(raw.as_ref(), &mut |at, carved| {
                match carved {
                    Carved::Value(found) => sieve.put(&found)?,
                    Carved::Newer(found) => sieve.note_newer(found),
                    Carved::Damaged => report.damaged_places += 1,
                    Carved::Unreadable(bytes) => report.unreadable_bytes += bytes,
                }
                self.tell(SalvageStep::Carving, before + at, total);
                Ok::<(), Error>(())
            })?;
            if let Err(source) = carved {
                return Err(Error::Io { action: "read", path: name.into(), source });
            }
            before += raw.len().unwrap_or_default();
        }
        Ok(())
    }

    fn tell(&mut self, step: SalvageStep, done_bytes: u64, total_bytes: u64) {
        if let Some(progress) = &mut self.progress {
            progress(&SalvageProgress { step, done_bytes, total_bytes });
        }
    }
}

/// Says whose files held nothing.
fn named(error: Error, old: &Path) -> Error {
    match error {
        Error::NotAStore { reason, .. } => Error::NotAStore { path: old.to_owned(), reason },
        error => error,
    }
}

fn absolute(path: &Path) -> Result<PathBuf> {
    let io = |source| Error::Io { action: "find", path: path.to_owned(), source };
    std::path::absolute(path).map_err(io)
}

/// Checks that `new` is not in the folder that is only read. Returns the folder above it that exists.
fn check_place(old: &RawFolder, new: &Path) -> Result<PathBuf> {
    let above = new.ancestors().skip(1).find(|path| path.is_dir()).unwrap_or(Path::new("/"));
    let real = |path: &Path| {
        path.canonicalize().map_err(|source| Error::Io { action: "find", path: path.to_owned(), source })
    };
    let above = real(above)?;
    if above.starts_with(real(old.path())?) {
        let source = std::io::Error::new(
            std::io::ErrorKind::InvalidInput,
            "it lies in the store that is salvaged, which is not written to",
        );
        return Err(Error::Io { action: "make", path: new.to_owned(), source });
    }
    Ok(above)
}
