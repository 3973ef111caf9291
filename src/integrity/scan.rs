//! The scan: of a whole store or one session, of an open store or of a folder.

mod one;
mod tail;

use std::collections::BTreeMap;
use std::fmt;
use std::ops::Bound;
use std::path::Path;
use std::sync::Arc;

use super::finding::{Finding, FindingKind, Severity};
use super::journal::{Frames, JournalBytes};
use super::records;
use super::report::{Head, ScanProgress, ScanReport};
use super::session::{self, Checked, is_final};
use super::view::{View, entries};
use super::walk::Buffers;
use crate::error::{Error, Result};
use crate::format::{self, WriteNumber};
use crate::id::{SessionId, StorageKey};
use crate::log::core::Core;
use crate::log::tail::SessionState;
use crate::running_hash::RunningHash;
use crate::spans::span;
use crate::storage::{JournalFiles, Map, Storage};
use crate::store::{Handle, Store};

/// Times that something is looked at again while the store is open: a drain may have changed it in between.
const LOOKS: u32 = 5;
/// Findings of one session that are kept.
const KEPT: usize = 20_000;

type Progress = Box<dyn FnMut(&ScanProgress<'_>) + Send>;

/// A check of everything that is stored: checksums, seqs, running hashes, and that all records agree.
///
/// It reads what is stored itself, never what the store holds in memory, goes to the end whatever it meets, and writes
/// nothing. It finds no error if and only if every read of every session works.
///
/// # Cost
/// Reads and hashes all events: about twice what reading them costs. Memory: a few blocks, whatever the store's size.
///
/// # Examples
/// ```
/// # fn main() -> sessionlog::Result<()> {
/// use sessionlog::{NewEvent, NewSession, Scan, Seq, Store};
/// let store = Store::in_memory()?;
/// let session = store.create(NewSession::new())?;
/// session.append(NewEvent::user_message("hello"))?;
/// let noted = session.running_hash(Seq::new(session.len()))?;
/// session.append(NewEvent::user_message("more"))?;
/// let report = Scan::new().session(session.id().clone()).expect(1, noted).store(&store)?;
/// assert!(report.is_clean());
/// # Ok(()) }
/// ```
#[derive(Default)]
pub struct Scan {
    session: Option<SessionId>,
    expect: Option<(u64, RunningHash)>,
    progress: Option<Progress>,
}

impl fmt::Debug for Scan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Scan")
            .field("session", &self.session)
            .field("expect", &self.expect)
            .finish_non_exhaustive()
    }
}

impl Scan {
    /// Makes a scan of all sessions.
    pub fn new() -> Self {
        Self::default()
    }

    /// Looks at one session only, and at what its ancestors lend it. Its hashes are followed from its very first event.
    #[must_use]
    pub fn session(mut self, id: SessionId) -> Self {
        self.session = Some(id);
        self
    }

    /// Checks that the hash after the first `events` events of the session is `hash`: then its history up to there is
    /// the one that was noted. Another one is the finding [`FindingKind::Expected`]. Only with
    /// [`session`](Self::session).
    #[must_use]
    pub fn expect(mut self, events: u64, hash: RunningHash) -> Self {
        self.expect = Some((events, hash));
        self
    }

    /// Calls `progress` after each session.
    #[must_use]
    pub fn progress(mut self, progress: impl FnMut(&ScanProgress<'_>) + Send + 'static) -> Self {
        self.progress = Some(Box::new(progress));
        self
    }

    /// Scans a store that is open, while it is in use. What is appended meanwhile may be looked at or not.
    ///
    /// # Errors
    /// [`Error::SessionNotFound`], [`Error::Closed`]. What is found is in the report.
    pub fn store(self, store: &Store) -> Result<ScanReport> {
        let _span = span!("scan");
        let core = Arc::clone(store.handle().core());
        let pending = BTreeMap::new();
        let ground = View { storage: core.storage.as_ref(), pending: &pending };
        let mut scanner = Scanner::new(ground, Some(store.handle()), self.progress);
        if core.health.is_closed() {
            return Err(Error::Closed);
        }
        // Before the headers in storage: a session that is drained meanwhile is met there, and only there.
        let undrained = core.undrained();
        match &self.session {
            Some(id) => scanner.one(id, self.expect)?,
            None => {
                scanner.all(&undrained)?;
                scanner.torn(&store.open_report().torn);
            }
        }
        Ok(scanner.report)
    }

    /// Scans what stands behind both seams, which nobody uses meanwhile. Nothing is replayed, drained or written.
    ///
    /// `store_id`: frames of other stores are no frames of this one; zeros for a store that was opened on seams.
    ///
    /// # Errors
    /// [`Error::SessionNotFound`]; [`Error::Io`]: the journal's files cannot be read. What is found is in the report.
    pub fn on(
        self,
        storage: &dyn Storage,
        files: &dyn JournalFiles,
        store_id: [u8; 16],
    ) -> Result<ScanReport> {
        let _span = span!("scan");
        let bytes = JournalBytes::read(files)?;
        let mut findings = Vec::new();
        let mut tell = |finding| findings.push(finding);
        let nothing = BTreeMap::new();
        let pending = match (View { storage, pending: &nothing }).through()? {
            Some(through) => {
                let frames = Frames::of(&bytes, store_id, Some(through));
                frames.tell(&mut tell);
                frames.pending(&mut tell)
            }
            // Which frames are drained is not known, so nothing can be said of any: the record is a finding of its own.
            None => BTreeMap::new(),
        };
        let ground = View { storage, pending: &pending };
        let mut scanner = Scanner::new(ground, None, self.progress);
        match &self.session {
            Some(id) => scanner.one(id, self.expect)?,
            None => {
                scanner.torn(&bytes.torn);
                scanner.all(&[])?;
            }
        }
        findings.into_iter().for_each(|finding| scanner.report.add(finding));
        Ok(scanner.report)
    }

    /// Scans the store in the folder `path`, which nobody has open. It is not replayed and not drained: storage and
    /// journal are judged together, as they are.
    ///
    /// The engine may rewrite files of its own when it is opened.
    ///
    /// # Errors
    /// [`Error::NoStore`], [`Error::NotAStore`], [`Error::InUse`], [`Error::UnsupportedFormat`]: nothing was touched.
    /// [`Error::Corrupt`]: the engine does not open its files, or the description is damaged: see
    /// [`Error::Corrupt`] for what to do. [`Error::SessionNotFound`]. What is found is in the report.
    pub fn folder(self, path: impl AsRef<Path>) -> Result<ScanReport> {
        let opened = crate::store::Parts::open(path.as_ref())?;
        let report = self.on(opened.storage.as_ref(), opened.files.as_ref(), opened.store_id);
        opened.close(report)
    }
}

struct Scanner<'a> {
    ground: View<'a>,
    /// The store, when it is open.
    live: Option<&'a Handle>,
    mark: WriteNumber,
    buffers: Buffers,
    progress: Option<Progress>,
    report: ScanReport,
}

impl<'a> Scanner<'a> {
    fn new(ground: View<'a>, live: Option<&'a Handle>, progress: Option<Progress>) -> Self {
        Self {
            ground,
            live,
            mark: WriteNumber::default(),
            buffers: Buffers::default(),
            progress,
            report: ScanReport::default(),
        }
    }

    fn core(&self) -> Option<&'a Core> {
        self.live.map(|handle| handle.core().as_ref())
    }

    /// Notes an error of the engine and goes on; one that ends everything is returned.
    fn failed(&mut self, map: Map, error: Error) -> Result<()> {
        if is_final(&error) {
            return Err(error);
        }
        self.report.add(Finding::engine(map, &error));
        Ok(())
    }

    /// The mark is read before anything that is compared with it.
    fn read_mark(&mut self) -> Result<()> {
        self.mark = self.ground.drained()?.map(|(_, mark)| mark).unwrap_or_default();
        Ok(())
    }

    fn torn(&mut self, names: &[String]) {
        for name in names {
            let finding = Finding::notice(
                FindingKind::TornEnd,
                "no such file",
                "bytes of commits that were not finished",
            );
            self.report.add(finding.in_journal(name.clone()));
        }
    }

    fn all(&mut self, undrained: &[Arc<SessionState>]) -> Result<()> {
        self.read_mark()?;
        self.store_records()?;
        let ground = self.ground;
        let mut pending = ground.pending.keys().copied().peekable();
        let mut before: Option<StorageKey> = None;
        let mut headers = entries(ground.storage, Map::Sessions, format::HEADER_PREFIX).peekable();
        loop {
            let stored = match headers.peek() {
                Some(Ok((key, _))) => match format::parse_tagged_key(format::HEADER_PREFIX, key) {
                    Some(key) => Some(key),
                    None => {
                        headers.next();
                        continue;
                    }
                },
                Some(Err(_)) => {
                    if let Some(Err(error)) = headers.next() {
                        self.failed(Map::Sessions, error)?;
                    }
                    None
                }
                None => None,
            };
            let next = match (stored, pending.peek().copied()) {
                (Some(stored), Some(waiting)) => Some(stored.min(waiting)),
                (stored, waiting) => stored.or(waiting),
            };
            self.orphans(before, next)?;
            let Some(key) = next else { break };
            if stored == Some(key) {
                headers.next();
            }
            if pending.peek() == Some(&key) {
                pending.next();
            }
            self.session(key)?;
            before = Some(key);
        }
        for state in undrained {
            let is_new = state.lock().visible_since().is_some_and(|since| since > 0) && !state.is_deleted();
            if is_new && ground.storage.get(Map::Sessions, &format::header_key(state.key()))?.is_none() {
                self.session(state.key())?;
            }
        }
        self.records()?;
        self.care()
    }

    /// The two records of the store itself.
    fn store_records(&mut self) -> Result<()> {
        let storage = self.ground.storage;
        let opened = storage.get(Map::Sessions, format::OPENED_KEY)?.is_some();
        if !opened && entries(storage, Map::Sessions, format::HEADER_PREFIX).next().is_some() {
            let finding = Finding::error(FindingKind::StoreRecord, "the open count", "none");
            self.report.add(finding.at(Map::Sessions, format::OPENED_KEY));
        }
        let drained = storage.get(Map::Sessions, format::DRAINED_KEY)?.is_some();
        let has_sessions = entries(storage, Map::Sessions, format::HEADER_PREFIX).next().is_some();
        if !drained && has_sessions && storage.get(Map::Sessions, format::DRAINED_KEY)?.is_none() {
            let finding = Finding::error(FindingKind::StoreRecord, "the drained mark", "none");
            self.report.add(finding.at(Map::Sessions, format::DRAINED_KEY));
        }
        Ok(())
    }

    /// Checks a session, and again while the store is in use and something seems wrong.
    fn session(&mut self, key: StorageKey) -> Result<()> {
        // One that an import has begun is none yet.
        if self.is_unpublished(key)? {
            return Ok(());
        }
        let (mut checked, mut findings) = self.look(key)?;
        if self.live.is_some() {
            for _ in 1..LOOKS {
                if findings.iter().all(|finding| finding.severity == Severity::Notice) {
                    break;
                }
                let (again, also) = self.look(key)?;
                let stands = findings == also;
                checked = again;
                findings.retain(|finding| also.contains(finding));
                if stands {
                    break;
                }
            }
        }
        findings.into_iter().for_each(|finding| self.report.add(finding));
        self.report.events += checked.events;
        // Of a deleted session only what it lends is looked at.
        if self.is_deleted(key)? {
            return Ok(());
        }
        self.report.sessions += 1;
        if checked.id.is_some() {
            self.tell(key, &checked);
        }
        Ok(())
    }

    fn look(&mut self, key: StorageKey) -> Result<(Checked, Vec<Finding>)> {
        let mut findings = Vec::new();
        let looked = self.read_mark().and_then(|()| {
            let mut tell = |finding| {
                if findings.len() < KEPT {
                    findings.push(finding);
                }
            };
            session::check(self.ground, key, self.mark, self.live.is_some(), &mut self.buffers, &mut tell)
        });
        let mut checked = match looked {
            Ok(checked) => checked,
            Err(error) if is_final(&error) => return Err(error),
            Err(error) => {
                findings.push(Finding::engine(Map::Sessions, &error).of(None, key));
                Checked::default()
            }
        };
        if let (Some(handle), Some(core)) = (self.live, self.core()) {
            tail::read(handle, core, key, &mut checked, &mut findings)?;
        }
        Ok((checked, findings))
    }

    fn is_unpublished(&self, key: StorageKey) -> Result<bool> {
        let in_use = self.core().and_then(|core| tail::state(core, key));
        if let Some(state) = in_use {
            return Ok(state.lock().visible_since().is_none());
        }
        match self.ground.pending.get(&key) {
            Some(pending) if pending.begun.is_some() => Ok(true),
            Some(pending) if pending.published.is_some() => Ok(false),
            _ => self.ground.is_hidden(key),
        }
    }

    /// Whether the session was deleted: as storage, the journal or the open store has it.
    fn is_deleted(&self, key: StorageKey) -> Result<bool> {
        let in_journal = self.ground.pending.get(&key).is_some_and(|pending| pending.deleted.is_some());
        let in_use =
            self.core().and_then(|core| tail::state(core, key)).is_some_and(|state| state.is_deleted());
        Ok(in_journal || in_use || self.ground.deleted(key)?.is_some())
    }

    fn tell(&mut self, key: StorageKey, checked: &Checked) {
        let head = Head {
            session: checked.id.clone().unwrap_or_else(|| key.to_string()),
            length: checked.len,
            hash: checked.head.map(RunningHash::from),
        };
        if let Some(progress) = &mut self.progress {
            let ScanReport { sessions, events, errors, .. } = self.report;
            progress(&ScanProgress { sessions, events, errors, head: Some(&head) });
        }
        self.report.add_head(head);
    }

    /// Blocks between two sessions belong to none.
    fn orphans(&mut self, before: Option<StorageKey>, next: Option<StorageKey>) -> Result<()> {
        let storage = self.ground.storage;
        let mut from = before.map(|key| format::part_key(key, u64::MAX, u32::MAX).to_vec());
        let to = next.map(|key| format::block_key(key, 0));
        loop {
            let lower = from.as_deref().map_or(Bound::Unbounded, Bound::Excluded);
            let upper = to.as_ref().map_or(Bound::Unbounded, |to| Bound::Excluded(to.as_slice()));
            let (key, value) = match storage.range(Map::Events, lower, upper).next() {
                None => return Ok(()),
                Some(Ok(entry)) => entry,
                Some(Err(error)) => return self.failed(Map::Events, error),
            };
            let Some(at) = format::parse_event_key(&key) else {
                let finding =
                    Finding::error(FindingKind::NotRecognised, "a key of a block or part", "another key");
                self.report.add(finding.at(Map::Events, &key));
                from = Some(key);
                continue;
            };
            let last = format::part_key(at.key, u64::MAX, u32::MAX);
            let end =
                storage.range_reverse(Map::Events, Bound::Included(&key), Bound::Included(&last)).next();
            let end = end.and_then(Result::ok).and_then(|(key, _)| format::parse_event_key(&key));
            from = Some(last.to_vec());
            // A drain writes the blocks of a new session before its header: looked at again, it is there.
            if self.ground.new_header(at.key)?.is_some()
                || self.is_new(at.key)
                || self.ground.is_hidden(at.key)?
            {
                continue;
            }
            if self.live.is_some() && format::write_number(&value).is_some_and(|number| number > self.mark) {
                continue;
            }
            let header_there = storage.get(Map::Sessions, &format::header_key(at.key))?.is_some();
            if header_there {
                continue;
            }
            let finding =
                Finding::error(FindingKind::Orphan, "a session with this storage key", "blocks without one");
            let seqs = at.seq..end.map_or(at.seq, |end| end.seq).max(at.seq) + 1;
            self.report.add(finding.at(Map::Events, &key).seqs(seqs).of(None, at.key));
        }
    }

    /// Whether the open store knows the session from its journal.
    fn is_new(&self, key: StorageKey) -> bool {
        self.core().is_some_and(|core| tail::state(core, key).is_some())
    }

    /// The records of `sessions`, each from its own side.
    fn records(&mut self) -> Result<()> {
        let ground = self.ground;
        for entry in ground.storage.range(Map::Sessions, Bound::Unbounded, Bound::Unbounded) {
            let (key, value) = match entry {
                Ok(entry) => entry,
                Err(error) => return self.failed(Map::Sessions, error),
            };
            let mut finding = records::of_sessions(ground, &key, &value)?;
            let mut looks = 1;
            while self.live.is_some() && finding.is_some() && looks < LOOKS {
                looks += 1;
                finding = match ground.storage.get(Map::Sessions, &key)? {
                    Some(value) => records::of_sessions(ground, &key, &value)?,
                    None => None,
                };
            }
            // While the store is in use an import goes on, and ends or is taken away.
            let goes_on = self.live.is_some() && key.starts_with(format::HIDDEN_PREFIX);
            let finding = finding.filter(|finding| !(goes_on && finding.kind == FindingKind::Leftover));
            finding.into_iter().for_each(|finding| self.report.add(finding));
        }
        Ok(())
    }

    fn care(&mut self) -> Result<()> {
        let ground = self.ground;
        let mut quarantined = 0;
        for entry in ground.storage.range(Map::Care, Bound::Unbounded, Bound::Unbounded) {
            match entry {
                Ok((key, value)) => {
                    let finding = records::of_care(ground, &key, &value, &mut quarantined)?;
                    finding.into_iter().for_each(|finding| self.report.add(finding));
                }
                Err(error) => self.failed(Map::Care, error)?,
            }
        }
        if quarantined > 0 {
            let found = format!("{quarantined} values");
            let mut finding = Finding::notice(FindingKind::Quarantine, "nothing in quarantine", found);
            finding.map = "care";
            self.report.add(finding);
        }
        Ok(())
    }
}
