//! The journal: where an append becomes durable. Segment files of zero bytes, made ahead; one frame for each commit;
//! recycled when the drain has passed.
//!
//! Invariants: commit numbers have no gap; a segment is synced before the first frame goes into the next; frames are
//! only written into segments that this process made or whose frames were all drained before.

use std::collections::VecDeque;
use std::io;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use super::busy::Busy;
use super::commit::{Request, Work};
use super::drain::Fault;
use super::health::Health;
use super::meter::Timer;
use super::room::Full;
use crate::error::{Error, Result};
use crate::format::{Action, FRAME_ALIGN, FRAME_HEADER_LEN, FrameBuilder};
use crate::spans::span;
use crate::storage::{JournalFile, JournalFiles};

/// The size of the first segment, and of the one that an orderly close leaves.
pub(crate) const FIRST_SEGMENT_BYTES: u64 = 256 << 10;
/// The size that segments grow to under load.
pub(crate) const LAST_SEGMENT_BYTES: u64 = 8 << 20;
/// What all segments may take once they are recycled.
const KEPT_BYTES: u64 = 32 << 20;
/// What must stay free beside a new segment: folders, the engine's next drain.
const MARGIN_BYTES: u64 = 1 << 20;

/// The size of a segment for so many bytes.
pub(crate) fn segment_size(len: u64) -> u64 {
    let bytes = len.max(FIRST_SEGMENT_BYTES);
    if bytes <= LAST_SEGMENT_BYTES {
        bytes.next_power_of_two()
    } else {
        bytes.checked_next_multiple_of(FIRST_SEGMENT_BYTES).unwrap_or(bytes)
    }
}

/// Whether a segment can have this size. A size never changes, and a file that was cut short would look like a journal
/// that ends early.
pub(crate) fn is_segment_size(bytes: u64) -> bool {
    bytes > 0 && segment_size(bytes) == bytes
}

const _: () = assert!(FIRST_SEGMENT_BYTES.is_power_of_two() && LAST_SEGMENT_BYTES.is_power_of_two());

/// The prefix of a segment's name.
pub(crate) const SEGMENT: &str = "segment-";
/// The prefix of the name of a segment that is being made.
pub(crate) const UNFINISHED: &str = "new-";

#[derive(Debug)]
pub(crate) struct Journal {
    files: Arc<dyn JournalFiles>,
    folder: PathBuf,
    store_id: [u8; 16],
    watchdog: Duration,
    writer: Mutex<Writer>,
    /// The name of the next segment file.
    next_name: AtomicU64,
    /// One sync at a time: Linux tells a failed write-back to one of two concurrent ones only.
    in_sync: Busy,
    position: Mutex<Position>,
    durable: AtomicU64,
    published: AtomicU64,
    /// Writing a frame, or making the segment that it needs.
    writing: Busy,
    /// Free space that a drain under way counts on.
    promised: AtomicU64,
    /// Free space that is in place of the reserve: only deletions may have it.
    withheld: AtomicU64,
    pub(crate) syncs: Timer,
}

/// Free space that segments leave alone, until this is dropped.
#[derive(Debug)]
pub(crate) struct Promise<'a>(&'a Journal);

impl Drop for Promise<'_> {
    fn drop(&mut self) {
        self.0.promised.store(0, Ordering::Release);
    }
}

#[derive(Debug)]
struct Writer {
    current: Option<Segment>,
    /// Filled segments that hold frames which are not drained, oldest first.
    filled: VecDeque<Segment>,
    /// Segments that may be overwritten.
    spare: Vec<Segment>,
    next_commit: u64,
    /// The size of the next segment to be made.
    segment_bytes: u64,
    buffer: Vec<u8>,
}

/// What was written.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Frames {
    pub(crate) count: u64,
    pub(crate) bytes: u64,
}

/// Where a sync has to reach, and what is told of the journal: never locked while the disk is waited for.
#[derive(Debug)]
struct Position {
    file: Option<Arc<dyn JournalFile>>,
    written: u64,
    frames: Frames,
    /// The bytes of all segments.
    segments: u64,
}

#[derive(Debug)]
struct Segment {
    name: String,
    file: Arc<dyn JournalFile>,
    bytes: u64,
    used: u64,
    last_commit: u64,
    /// Whether it may be overwritten once it is drained.
    reuse: bool,
}

/// Why a frame was not written.
pub(crate) enum WriteError {
    /// Nothing was written: no room for a segment.
    Refused(Refusal),
    /// What was written is unknown.
    Failed(Error),
}

/// Why appends are refused while the store goes on.
#[derive(Clone, Debug)]
pub(crate) enum Refusal {
    Full(Full),
    Io { action: &'static str, path: PathBuf, kind: io::ErrorKind, text: String },
}

impl Refusal {
    pub(crate) fn to_error(&self) -> Error {
        match self {
            Self::Full(full) => full.to_error(),
            Self::Io { action, path, kind, text } => {
                Error::Io { action, path: path.clone(), source: io::Error::new(*kind, text.clone()) }
            }
        }
    }
}

impl Journal {
    /// A journal whose first commit gets the number `next_commit`. `next_name` is higher than that of any segment.
    pub(crate) fn new(
        files: Arc<dyn JournalFiles>,
        folder: PathBuf,
        store_id: [u8; 16],
        watchdog: Duration,
        next_commit: u64,
        next_name: u64,
    ) -> Self {
        let before = next_commit - 1;
        Self {
            files,
            folder,
            store_id,
            watchdog,
            writer: Mutex::new(Writer {
                current: None,
                filled: VecDeque::new(),
                spare: Vec::new(),
                next_commit,
                segment_bytes: FIRST_SEGMENT_BYTES,
                buffer: Vec::new(),
            }),
            next_name: AtomicU64::new(next_name),
            in_sync: Busy::default(),
            position: Mutex::new(Position {
                file: None,
                written: before,
                frames: Frames::default(),
                segments: 0,
            }),
            durable: AtomicU64::new(before),
            published: AtomicU64::new(before),
            writing: Busy::default(),
            promised: AtomicU64::new(0),
            withheld: AtomicU64::new(0),
            syncs: Timer::default(),
        }
    }

    fn writer(&self) -> MutexGuard<'_, Writer> {
        self.writer.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn position(&self) -> MutexGuard<'_, Position> {
        self.position.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The highest commit known to be durable.
    pub(crate) fn durable(&self) -> u64 {
        self.durable.load(Ordering::Acquire)
    }

    /// The highest commit written.
    pub(crate) fn written(&self) -> u64 {
        self.position().written
    }

    /// The highest commit that is durable and in the tails.
    pub(crate) fn drainable(&self) -> u64 {
        self.durable().min(self.published.load(Ordering::Acquire))
    }

    pub(crate) fn set_published(&self, commit: u64) {
        self.published.store(commit, Ordering::Release);
    }

    /// Writes one frame with all of `requests`. Only the leader calls it. Returns the commit's number.
    pub(crate) fn write(&self, requests: &[Request], health: &Health) -> Result<u64, WriteError> {
        let mut writer = self.writer();
        let writer = &mut *writer;
        let most: usize =
            FRAME_HEADER_LEN + FRAME_ALIGN + requests.iter().map(Request::frame_bytes).sum::<usize>();
        let most = most as u64;
        if writer.current.as_ref().is_none_or(|segment| segment.bytes - segment.used < most) {
            let deletes = |request: &Request| matches!(request.work, Work::Delete { .. } | Work::Seal);
            self.next_segment(writer, most, requests.iter().all(deletes), health)?;
        }
        // Behind the sync of the segment that is left: the mark is as high as it can be.
        let mut frame = FrameBuilder::new(std::mem::take(&mut writer.buffer));
        frame.begin(self.store_id, writer.next_commit, self.durable());
        for request in requests {
            match &request.work {
                Work::Run { session, run } => frame.add_run(session.key(), run),
                Work::Create { session } => frame.add(&match session.header.parent {
                    None => Action::Create(session.header.clone()),
                    Some(_) => Action::Fork(session.header.clone()),
                }),
                Work::Delete { session } => frame.add(&Action::Delete { key: session.key() }),
                Work::Seal => frame.add(&Action::Seal),
                Work::Begin { session } => frame.add(&Action::Begin(session.header.clone())),
                Work::Publish { session, labels } => {
                    frame.add(&Action::Publish { key: session.key(), labels: labels.as_ref().clone() });
                }
                Work::Label { session, labels } => {
                    frame.add(&Action::Label { key: session.key(), labels: labels.as_ref().clone() });
                }
            }
        }
        frame.finish();
        let bytes = frame.into_buffer();
        let len = bytes.len() as u64;
        let commit = writer.next_commit;
        let Some(segment) = writer.current.as_mut() else {
            return Err(WriteError::Failed(Error::Closed));
        };
        let written = self.writing.during(self.watchdog, || segment.file.write_at(&bytes, segment.used));
        if let Err(source) = written.unwrap_or_else(|| Err(io::ErrorKind::TimedOut.into())) {
            return Err(WriteError::Failed(self.io("write", &segment.name, source)));
        }
        segment.used += len;
        segment.last_commit = commit;
        writer.next_commit += 1;
        let mut position = self.position();
        position.written = commit;
        position.frames.count += 1;
        position.frames.bytes += len;
        // A huge batch's buffer is not kept.
        writer.buffer = if bytes.capacity() > 4 << 20 { Vec::new() } else { bytes };
        Ok(commit)
    }

    /// Goes to a segment with room for `len` bytes, after what stands in the last one is durable.
    fn next_segment(
        &self,
        writer: &mut Writer,
        len: u64,
        deletes: bool,
        health: &Health,
    ) -> Result<(), WriteError> {
        let fits = writer.spare.iter().position(|segment| segment.bytes >= len.max(FIRST_SEGMENT_BYTES));
        let mut next = match fits {
            Some(index) => writer.spare.swap_remove(index),
            None => {
                // No spare one: the drain is behind, larger segments mean fewer of them.
                if writer.current.is_some() {
                    writer.segment_bytes = (writer.segment_bytes * 2).min(LAST_SEGMENT_BYTES);
                }
                let bytes = writer.segment_bytes.max(segment_size(len));
                let least = segment_size(len);
                match self.make_now(bytes, deletes) {
                    // What little room there is may do for a small one: for a deletion, say.
                    Err(WriteError::Refused(Refusal::Full(_))) if least < bytes => {
                        self.make_now(least, deletes)?
                    }
                    made => made?,
                }
            }
        };
        self.sync(health).map_err(WriteError::Failed)?;
        next.used = 0;
        self.position().file = Some(Arc::clone(&next.file));
        if let Some(filled) = writer.current.replace(next) {
            writer.filled.push_back(filled);
        }
        Ok(())
    }

    /// Makes the segment that a frame needs, under the watchdog's eyes.
    fn make_now(&self, bytes: u64, deletes: bool) -> Result<Segment, WriteError> {
        let made = self.writing.during(self.watchdog, || self.make(bytes, deletes));
        made.unwrap_or_else(|| Err(self.refusal("create", "", &io::ErrorKind::TimedOut.into())))
            .map_err(WriteError::Refused)
    }

    /// Makes a segment: zero bytes, durable under its name.
    fn make(&self, bytes: u64, deletes: bool) -> Result<Segment, Refusal> {
        let withheld = if deletes { 0 } else { self.withheld.load(Ordering::Acquire) };
        let needed_bytes = bytes + MARGIN_BYTES + withheld + self.promised.load(Ordering::Acquire);
        let free_bytes =
            self.files.free_bytes().map_err(|e| self.refusal("read the free space of", "", &e))?;
        if free_bytes < needed_bytes {
            return Err(Refusal::Full(Full { path: self.folder.clone(), needed_bytes, free_bytes }));
        }
        let number = self.next_name.fetch_add(1, Ordering::Relaxed);
        let unfinished = format!("{UNFINISHED}{number}");
        let name = format!("{SEGMENT}{number}");
        let made = self
            .files
            .create(&unfinished, bytes)
            .and_then(|file| self.files.rename(&unfinished, &name).map(|()| file))
            .and_then(|file| self.files.sync_folder().map(|()| file));
        match made {
            Ok(file) => {
                self.position().segments += bytes;
                Ok(Segment { name, file, bytes, used: 0, last_commit: 0, reuse: true })
            }
            Err(error) => {
                // Whether these files exist is not known, nor needed: no frame was in them, the next open removes them.
                let _ = self.files.remove(&unfinished);
                let _ = self.files.remove(&name);
                if error.kind() == io::ErrorKind::StorageFull || error.kind() == io::ErrorKind::QuotaExceeded
                {
                    return Err(Refusal::Full(Full { path: self.folder.clone(), needed_bytes, free_bytes }));
                }
                Err(self.refusal("create", &name, &error))
            }
        }
    }

    /// Makes a spare segment when the current one is half full and there is none. Called in the background.
    pub(crate) fn prepare(&self) {
        let bytes = {
            let writer = self.writer();
            let half = writer.current.as_ref().is_some_and(|segment| segment.used * 2 > segment.bytes);
            if !half || !writer.spare.is_empty() {
                return;
            }
            // Larger ones only when the drain is behind: a slow writer keeps its small segments.
            if writer.filled.is_empty() {
                writer.segment_bytes
            } else {
                (writer.segment_bytes * 2).min(LAST_SEGMENT_BYTES)
            }
        };
        // A failure here is met again, and told, by the append that needs the segment.
        if let Ok(segment) = self.make(bytes, false) {
            let mut writer = self.writer();
            writer.segment_bytes = bytes;
            writer.spare.push(segment);
        }
    }

    /// Whether a spare segment should be made now.
    pub(crate) fn wants_spare(&self) -> bool {
        let writer = self.writer();
        writer.spare.is_empty() && writer.current.as_ref().is_some_and(|s| s.used * 2 > s.bytes)
    }

    /// Makes every frame that is written durable. An error fails the store.
    pub(crate) fn sync(&self, health: &Health) -> Result<()> {
        let synced = self.in_sync.during(self.watchdog, || self.sync_alone(health));
        synced.unwrap_or_else(|| Err(health.fail(self.timed_out("a sync of the journal"))))
    }

    fn sync_alone(&self, health: &Health) -> Result<()> {
        if health.is_failed() {
            return Err(health.failure());
        }
        let (file, written) = {
            let position = self.position();
            (position.file.clone(), position.written)
        };
        if self.durable() >= written {
            return Ok(());
        }
        if let Some(file) = file {
            let _span = span!("sync");
            let synced = self.syncs.time(|| file.sync());
            synced.map_err(|source| health.fail(self.io("sync", "the current segment", source)))?;
        }
        // Too late when the watchdog has failed the store meanwhile: readers were told where the end is.
        if health.is_failed() {
            return Err(health.failure());
        }
        self.durable.fetch_max(written, Ordering::AcqRel);
        Ok(())
    }

    pub(crate) fn timed_out(&self, action: &'static str) -> Error {
        Error::TimedOut { action, limit_ms: u64::try_from(self.watchdog.as_millis()).unwrap_or(u64::MAX) }
    }

    /// Whether a write or a sync has been under way for longer than the watchdog allows.
    pub(crate) fn is_stuck(&self) -> bool {
        self.writing.longer_than(self.watchdog) || self.in_sync.longer_than(self.watchdog)
    }

    /// Lets segments be overwritten whose frames are all drained.
    pub(crate) fn recycle(&self, through: u64) -> Result<()> {
        let mut removed = Vec::new();
        {
            let mut writer = self.writer();
            while writer.filled.front().is_some_and(|segment| segment.last_commit <= through) {
                let Some(segment) = writer.filled.pop_front() else { break };
                let kept: u64 =
                    writer.spare.iter().chain(&writer.filled).chain(&writer.current).map(|s| s.bytes).sum();
                let sizes = writer.segment_bytes..=LAST_SEGMENT_BYTES;
                let standard = segment.reuse && sizes.contains(&segment.bytes);
                if standard && kept + segment.bytes <= KEPT_BYTES {
                    writer.spare.push(segment);
                } else {
                    removed.push(segment);
                }
            }
        }
        removed.iter().try_for_each(|segment| self.remove(segment))
    }

    fn remove(&self, segment: &Segment) -> Result<()> {
        let removed = self.files.remove(&segment.name);
        removed.map_err(|source| self.io("remove", &segment.name, source))?;
        self.position().segments -= segment.bytes;
        Ok(())
    }

    /// Leaves so much free space to deletions, in place of the reserve.
    pub(crate) fn withhold(&self, bytes: u64) {
        self.withheld.store(bytes, Ordering::Release);
    }

    /// Gives the space of segments that hold nothing back to a full disk. Returns whether there were any.
    pub(crate) fn shed(&self, through: u64) -> Result<bool> {
        self.recycle(through)?;
        let spare = std::mem::take(&mut self.writer().spare);
        spare.iter().try_for_each(|segment| self.remove(segment))?;
        Ok(!spare.is_empty())
    }

    /// Removes all segments but a small one, after everything was drained. The journal is not used afterwards.
    pub(crate) fn trim(&self) -> Result<()> {
        let mut writer = self.writer();
        let mut all: Vec<Segment> = writer.spare.drain(..).collect();
        all.extend(writer.filled.drain(..));
        all.extend(writer.current.take());
        drop(writer);
        let kept = all.iter().position(|segment| segment.bytes == FIRST_SEGMENT_BYTES);
        for (index, segment) in all.iter().enumerate() {
            if Some(index) != kept {
                self.remove(segment)?;
            }
        }
        self.files.sync_folder().map_err(|source| self.io("sync", "", source))
    }

    /// Takes over a segment that was found at open, with the highest commit in it. Once that is drained the segment is
    /// recycled, or removed unless `reuse`. Called in the order of commits.
    pub(crate) fn adopt(
        &self,
        name: String,
        file: Arc<dyn JournalFile>,
        bytes: u64,
        last_commit: u64,
        reuse: bool,
    ) {
        self.position().segments += bytes;
        self.writer().filled.push_back(Segment { name, file, bytes, used: bytes, last_commit, reuse });
    }

    /// What was written since the store was opened.
    pub(crate) fn frames(&self) -> Frames {
        self.position().frames
    }

    /// What all segments take, in bytes.
    pub(crate) fn bytes(&self) -> u64 {
        self.position().segments
    }

    /// Keeps `needed_bytes` of free space for a pass of the drain, or says that they are not there.
    pub(crate) fn promise(&self, needed_bytes: u64) -> Result<Promise<'_>, Fault> {
        let free_bytes =
            self.files.free_bytes().map_err(|source| self.io("read the free space of", "", source))?;
        if free_bytes < needed_bytes {
            return Err(Fault::Full(Full { path: self.folder.clone(), needed_bytes, free_bytes }));
        }
        self.promised.store(needed_bytes, Ordering::Release);
        Ok(Promise(self))
    }

    fn io(&self, action: &'static str, name: &str, source: io::Error) -> Error {
        Error::Io { action, path: self.folder.join(name), source }
    }

    fn refusal(&self, action: &'static str, name: &str, error: &io::Error) -> Refusal {
        Refusal::Io { action, path: self.folder.join(name), kind: error.kind(), text: error.to_string() }
    }
}
