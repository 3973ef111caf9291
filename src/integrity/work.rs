//! The hand that a repair works with: copies before it changes, tells what it does, and numbers what it writes.

use std::fmt;
use std::ops::Range;
use std::path::PathBuf;

use serde::Serialize;

use super::copies::Copies;
use crate::error::Result;
use crate::format::{self, Origin, WriteNumber, WriteNumbers};
use crate::id::StorageKey;
use crate::storage::{Map, Storage};

/// Mends that a report lists; the others are counted.
const LISTED: usize = 10_000;
/// Changes in one batch.
const CHANGED_AT_ONCE: usize = 500;

/// What kind of thing a repair does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum RemedyKind {
    /// A derived record (summary, id, order, edge, a hash, a count) is written anew from what it is derived from.
    Rebuilt,
    /// A record that belongs to nothing, or a leftover of an interrupted pass, is removed.
    Removed,
    /// Bytes that nothing can be made of, or events that lie behind a hole, go into quarantine.
    Quarantined,
    /// A session ends where events are missing. Fork it there to go on.
    Ended,
    /// A session's header was lost and is made anew from what is known; or one is made for a parent that is missing.
    HeaderMade,
    /// The journal is written anew without what cannot be applied.
    Journal,
}

/// Something that a repair does.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct Remedy {
    /// What kind of thing.
    pub kind: RemedyKind,
    /// The session's id where it is known, else its storage key.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub session: Option<String>,
    /// The seqs concerned, half open.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub seqs: Option<Range<u64>>,
    /// What is done, and why.
    pub detail: String,
}

impl fmt::Display for Remedy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let kind = match self.kind {
            RemedyKind::Rebuilt => "rebuilt",
            RemedyKind::Removed => "removed",
            RemedyKind::Quarantined => "quarantined",
            RemedyKind::Ended => "ended",
            RemedyKind::HeaderMade => "header made",
            RemedyKind::Journal => "journal",
        };
        f.write_str(kind)?;
        if let Some(session) = &self.session {
            write!(f, ", session {session}")?;
        }
        match &self.seqs {
            Some(seqs) if seqs.end == u64::MAX => write!(f, ", seqs {} and on", seqs.start)?,
            Some(seqs) if seqs.end.saturating_sub(seqs.start) <= 1 => write!(f, ", seq {}", seqs.start)?,
            Some(seqs) => write!(f, ", seqs {} to {}", seqs.start, seqs.end - 1)?,
            None => {}
        }
        write!(f, ": {}", self.detail)
    }
}

/// What a repair did, or a plan would do.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct RepairReport {
    /// In the order in which it is done: the first 10,000.
    pub remedies: Vec<Remedy>,
    /// How many more there are.
    pub more: u64,
    /// The folder that keeps what was changed, as it was before.
    pub copies: Option<PathBuf>,
}

impl RepairReport {
    /// Whether there is nothing to do.
    pub fn is_empty(&self) -> bool {
        self.remedies.is_empty()
    }
}

/// The hand.
pub(super) struct Work<'a> {
    pub(super) storage: &'a dyn Storage,
    /// Whether this is done, or only planned on an overlay.
    pub(super) real: bool,
    pub(super) copies: Option<Copies>,
    numbers: WriteNumbers,
    pub(super) report: RepairReport,
    /// Whether projections may have seen events that do not count any more.
    pub(super) cut: bool,
}

impl<'a> Work<'a> {
    pub(super) fn new(storage: &'a dyn Storage, real: bool, copies: Option<Copies>, open_count: u32) -> Self {
        let report = RepairReport {
            copies: copies.as_ref().map(|copies| copies.folder().to_owned()),
            ..RepairReport::default()
        };
        Self { storage, real, copies, numbers: WriteNumbers::new(open_count), report, cut: false }
    }

    pub(super) fn number(&mut self) -> WriteNumber {
        self.numbers.next()
    }

    /// Says what is done.
    pub(super) fn say(
        &mut self,
        kind: RemedyKind,
        session: Option<&str>,
        seqs: Option<Range<u64>>,
        detail: impl Into<String>,
    ) {
        if self.report.remedies.len() >= LISTED {
            self.report.more += 1;
            return;
        }
        self.report.remedies.push(Remedy {
            kind,
            session: session.map(str::to_owned),
            seqs,
            detail: detail.into(),
        });
    }

    /// Writes and removes, each batch in one step, durable when it returns. What stood there is copied before.
    pub(super) fn change(&mut self, map: Map, changes: &[(Vec<u8>, Option<Vec<u8>>)]) -> Result<()> {
        for batch in changes.chunks(CHANGED_AT_ONCE) {
            if let Some(copies) = &mut self.copies {
                for (key, _) in batch {
                    let value = self.storage.get(map, key)?;
                    copies.value(map, key, value.as_deref())?;
                }
                copies.sync()?;
            }
            self.storage.apply(map, batch)?;
        }
        self.storage.flush()
    }

    /// Puts bytes into quarantine, durably. The same bytes from the same place are there once, however often.
    pub(super) fn quarantine(
        &mut self,
        of: (StorageKey, u64),
        from: (Origin, &[u8]),
        reason: &str,
        bytes: &[u8],
    ) -> Result<()> {
        let numbers = &mut self.numbers;
        let values = format::encode_quarantine(of, from, reason, bytes, || numbers.next());
        for (key, value) in values {
            self.storage.insert(Map::Care, &key, &value)?;
        }
        Ok(())
    }

    /// Moves values of `events` into quarantine: they are there, durably, before they are removed here.
    pub(super) fn move_blocks(
        &mut self,
        session: StorageKey,
        keys: impl Iterator<Item = Vec<u8>>,
        reason: &str,
    ) -> Result<u64> {
        let mut moved = 0;
        let mut batch = Vec::new();
        for key in keys {
            let Some(value) = self.storage.get(Map::Events, &key)? else { continue };
            let seq = format::parse_event_key(&key).map_or(0, |at| at.seq);
            self.quarantine((session, seq), (Origin::Events, &key), reason, &value)?;
            moved += 1;
            batch.push((key, None));
            if batch.len() >= CHANGED_AT_ONCE {
                self.storage.flush()?;
                self.change(Map::Events, &batch)?;
                batch.clear();
            }
        }
        if !batch.is_empty() {
            self.storage.flush()?;
            self.change(Map::Events, &batch)?;
        }
        Ok(moved)
    }

    /// Moves a record into quarantine.
    pub(super) fn move_record(
        &mut self,
        map: Map,
        session: StorageKey,
        key: &[u8],
        value: &[u8],
        reason: &str,
    ) -> Result<()> {
        let origin = match map {
            Map::Sessions => Origin::Sessions,
            Map::Events => Origin::Events,
            Map::Care => Origin::Care,
            Map::Derived => Origin::Derived,
        };
        self.quarantine((session, 0), (origin, key), reason, value)?;
        self.storage.flush()?;
        self.change(map, &[(key.to_vec(), None)])
    }
}
