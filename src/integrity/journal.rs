//! The journal as it lies on disk, judged without replaying it.

use std::cell::OnceCell;
use std::collections::BTreeMap;

use super::finding::{Finding, FindingKind, fault};
use crate::error::{Error, Result};
use crate::format::{self, Action, FRAME_ALIGN, FrameFault, FrameView, Hash, NewHeader, RunView};
use crate::id::StorageKey;
use crate::log::journal::is_segment_size;
use crate::storage::JournalFiles;

const SEGMENT: &str = "segment-";
const TORN: &str = "torn-";

/// A file of the journal.
pub(super) struct SegmentFile {
    pub(super) name: String,
    pub(super) bytes: Vec<u8>,
}

/// Where something stands in the journal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Spot {
    pub(super) segment: usize,
    pub(super) at: usize,
    pub(super) len: usize,
}

/// All files of a journal.
#[derive(Default)]
pub(super) struct JournalBytes {
    pub(super) segments: Vec<SegmentFile>,
    /// Files that keep torn ends.
    pub(super) torn: Vec<String>,
    /// The greatest number in a name.
    pub(super) highest_name: u64,
}

impl JournalBytes {
    /// Reads all segments. Nothing is written, and nothing synced.
    pub(super) fn read(files: &dyn JournalFiles) -> Result<Self> {
        let io = |action, name: &str| {
            let path = std::path::PathBuf::from("journal").join(name);
            move |source| Error::Io { action, path, source }
        };
        let mut found = Self::default();
        let mut names = files.list().map_err(io("list", ""))?;
        names.sort();
        for name in names {
            let number =
                |prefix| name.strip_prefix(prefix).and_then(|number: &str| number.parse::<u64>().ok());
            if let Some(number) = number(TORN) {
                found.highest_name = found.highest_name.max(number);
                found.torn.push(name);
            } else if let Some(number) = number(SEGMENT) {
                found.highest_name = found.highest_name.max(number);
                let file = files.open(&name).map_err(io("open", &name))?;
                let len = file.len().map_err(io("read", &name))?;
                let mut bytes = vec![0; usize::try_from(len).unwrap_or(usize::MAX)];
                file.read_at(&mut bytes, 0).map_err(io("read", &name))?;
                found.segments.push(SegmentFile { name, bytes });
            }
        }
        Ok(found)
    }

    /// The segments whose size is none that is made: frames may be missing at their ends.
    pub(super) fn cut_short(&self) -> impl Iterator<Item = &SegmentFile> {
        self.segments.iter().filter(|segment| !is_segment_size(segment.bytes.len() as u64))
    }

    pub(super) fn slice(&self, spot: Spot) -> &[u8] {
        let bytes = self.segments.get(spot.segment).map(|segment| segment.bytes.as_slice());
        bytes.and_then(|bytes| bytes.get(spot.at..spot.at.saturating_add(spot.len))).unwrap_or_default()
    }

    /// How a place is named.
    pub(super) fn name(&self, spot: Spot) -> String {
        let name = self.segments.get(spot.segment).map_or("?", |segment| segment.name.as_str());
        format!("{name} at {}", spot.at)
    }
}

/// The frames that are not drained.
pub(super) struct Frames<'a> {
    bytes: &'a JournalBytes,
    pub(super) valid: BTreeMap<u64, (FrameView<'a>, Spot)>,
    /// What starts as a frame of these numbers and is none.
    pub(super) broken: Vec<(u64, Spot)>,
    /// The number of a newer format, where a frame has one.
    pub(super) newer: Option<(u32, Spot)>,
    /// The first number that is missing.
    pub(super) end: u64,
    /// Whether it was acknowledged: a later frame was written when it was durable.
    pub(super) damaged: bool,
    pub(super) drained: u64,
}

impl<'a> Frames<'a> {
    /// The frames above `drained`; all of them where that is not known.
    pub(super) fn of(bytes: &'a JournalBytes, store_id: [u8; 16], drained: Option<u64>) -> Self {
        let mut frames = Self {
            bytes,
            valid: BTreeMap::new(),
            broken: Vec::new(),
            newer: None,
            end: 0,
            damaged: false,
            drained: drained.unwrap_or_default(),
        };
        for (segment, file) in bytes.segments.iter().enumerate() {
            let mut from = 0;
            frames.look_for_headless(segment, file, 0, store_id);
            while let Some(at) = format::find_magic(&file.bytes, from) {
                let rest = file.bytes.get(at..).unwrap_or_default();
                from = at + FRAME_ALIGN;
                match format::read_frame(rest, store_id) {
                    Ok(frame) => {
                        from = at + frame.len;
                        frames.look_for_headless(segment, file, from, store_id);
                        if frame.commit > frames.drained {
                            frames.valid.insert(frame.commit, (frame, Spot { segment, at, len: frame.len }));
                        }
                    }
                    Err(FrameFault::Torn { commit, len }) if commit > frames.drained => {
                        frames.broken.push((commit, Spot { segment, at, len: len.min(rest.len()) }));
                    }
                    Err(FrameFault::Unsupported { found }) => {
                        frames.newer.get_or_insert((found, Spot { segment, at, len: rest.len() }));
                    }
                    Err(FrameFault::Torn { .. } | FrameFault::Absent | FrameFault::Foreign { .. }) => {}
                }
            }
        }
        if drained.is_none() {
            // What came before the first one that is there was drained, for all that is known.
            frames.drained = frames.valid.first_key_value().map_or(0, |(commit, _)| commit.saturating_sub(1));
        }
        frames.end = frames.drained + 1;
        while frames.valid.contains_key(&frames.end) {
            frames.end += 1;
        }
        frames.damaged = frames.valid.range(frames.end..).any(|(_, (frame, _))| frame.durable >= frames.end);
        frames
    }

    /// Notes a frame whose magic is damaged, at a place where one is awaited.
    fn look_for_headless(&mut self, segment: usize, file: &SegmentFile, at: usize, store_id: [u8; 16]) {
        let bytes = file.bytes.get(at..).unwrap_or_default();
        if let Some((commit, len)) = format::headless_frame(bytes, store_id)
            && commit > self.drained
        {
            self.broken.push((commit, Spot { segment, at, len }));
        }
    }

    pub(super) fn highest(&self) -> u64 {
        self.valid.last_key_value().map_or(self.drained, |(commit, _)| *commit)
    }

    /// The frames that count: up to the torn end, or all where one is damaged.
    pub(super) fn counting(&self) -> impl Iterator<Item = (u64, FrameView<'a>, Spot)> + '_ {
        let behind = if self.damaged { u64::MAX } else { self.end };
        self.valid.range(..behind).map(|(commit, (frame, spot))| (*commit, *frame, *spot))
    }

    /// Tells what is wrong with the frames themselves.
    pub(super) fn tell(&self, tell: &mut dyn FnMut(Finding)) {
        if let Some((found, spot)) = self.newer {
            let finding = Finding::error(
                FindingKind::UnknownVersion,
                "a frame of a known format",
                format!("format {found}"),
            );
            tell(finding.in_journal(self.bytes.name(spot)));
        }
        for segment in self.bytes.cut_short() {
            let found = format!("{} bytes: it was cut short", segment.bytes.len());
            let finding = Finding::error(FindingKind::JournalFrame, "a whole segment", found);
            tell(finding.in_journal(segment.name.clone()));
        }
        if self.damaged {
            let broken = self.broken.iter().find(|(commit, _)| *commit == self.end);
            let broken = broken.or_else(|| self.broken.first());
            let place =
                broken.map_or_else(|| format!("commit {}", self.end), |(_, spot)| self.bytes.name(*spot));
            let found = if broken.is_some() { "bytes that are no frame" } else { "none" };
            let expected = format!("commit {}, acknowledged as durable", self.end);
            tell(Finding::error(FindingKind::JournalFrame, expected, found).in_journal(place));
            return;
        }
        let whole = self.valid.range(self.end..).map(|(_, (_, spot))| *spot);
        for spot in self.broken.iter().map(|(_, spot)| *spot).chain(whole) {
            let found = format!("{} bytes of a commit that was not finished", spot.len);
            let finding = Finding::notice(FindingKind::TornEnd, "the end of the journal", found);
            tell(finding.in_journal(self.bytes.name(spot)));
        }
    }

    /// What the frames add to each session.
    pub(super) fn pending(&self, tell: &mut dyn FnMut(Finding)) -> BTreeMap<StorageKey, Pending<'a>> {
        let mut pending: BTreeMap<StorageKey, Pending<'a>> = BTreeMap::new();
        for (commit, frame, spot) in self.counting() {
            for action in frame.actions() {
                let action = match action {
                    Ok(action) => action,
                    Err(error) => {
                        let finding =
                            Finding::error(FindingKind::JournalFrame, "what happened", fault(&error));
                        tell(finding.in_journal(self.bytes.name(spot)));
                        break;
                    }
                };
                match action {
                    Action::Create(new) | Action::Fork(new) => {
                        pending.entry(new.key).or_default().created.get_or_insert((commit, new));
                    }
                    Action::Run { key, run } => pending.entry(key).or_default().runs.push((commit, run)),
                    Action::Begin(new) => {
                        pending.entry(new.key).or_default().begun.get_or_insert((commit, new));
                    }
                    Action::Publish { key, .. } => pending.entry(key).or_default().publish(commit),
                    Action::Delete { key } => pending.entry(key).or_default().deleted = Some(commit),
                    Action::Label { .. } | Action::Seal => {}
                }
            }
        }
        pending
    }
}

/// What the journal adds to a session.
#[derive(Default)]
pub(super) struct Pending<'a> {
    pub(super) created: Option<(u64, NewHeader)>,
    /// It was begun hidden, and is not published.
    pub(super) begun: Option<(u64, NewHeader)>,
    /// The commit that publishes a session that storage has as a hidden one.
    pub(super) published: Option<u64>,
    pub(super) runs: Vec<(u64, RunView<'a>)>,
    /// The commit that deletes it.
    pub(super) deleted: Option<u64>,
    /// The running hash at its prefix, once it was computed: forks of forks ask for it again and again.
    pub(super) prefix_hash: OnceCell<Hash>,
}

impl Pending<'_> {
    fn publish(&mut self, commit: u64) {
        match self.begun.take() {
            Some(begun) => self.created = Some(begun),
            None => self.published = Some(commit),
        }
    }

    /// How far the runs lead on from `at` without a hole.
    pub(super) fn covers_from(&self, at: u64) -> u64 {
        self.runs.iter().fold(at, |at, (_, run)| {
            let end = run.first_seq + u64::from(run.count);
            if run.first_seq <= at { at.max(end) } else { at }
        })
    }

    /// The session's length behind all of it.
    pub(super) fn end(&self) -> Option<u64> {
        self.runs.last().map(|(_, run)| run.first_seq + u64::from(run.count))
    }
}
