//! What a scan finds: where, what was expected there, and what stands there.

use std::fmt;
use std::ops::Range;

use serde::Serialize;

use crate::error::{Corruption, Error};
use crate::format::{self, FormatError};
use crate::storage::Map;

/// How much a finding means.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum Severity {
    /// Nothing is wrong with what readers get: leftovers that the next open or drain takes away, torn ends that were
    /// never acknowledged, what a repair has set aside.
    Notice,
    /// Something cannot be read, or cannot be vouched for.
    Error,
}

/// What kind of thing was found. [`as_str`](Self::as_str) gives the word that the command line and JSON use.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum FindingKind {
    /// A value's checksum is not that of its bytes.
    Checksum,
    /// A value's checksum is right and its content is not.
    Undecodable,
    /// A value was written by a newer version of the program.
    UnknownVersion,
    /// A sound value stands under a key that is not its own.
    WrongKey,
    /// A key or value that is none of this kind.
    NotRecognised,
    /// Events are missing.
    Gap,
    /// Two blocks hold the same seqs.
    Overlap,
    /// A block or part that belongs to nothing: no session has its storage key, or no event its part.
    Orphan,
    /// The running hash is not that of the events.
    RunningHash,
    /// A part of a large event is missing, or is one of an earlier write.
    MissingPart,
    /// A fork's parent is not there.
    MissingParent,
    /// A fork shares more events than its parent has.
    PrefixBeyondParent,
    /// A chain of parents leads back to itself.
    ParentCycle,
    /// A session's header is missing or broken.
    Header,
    /// A session's labels are broken.
    Label,
    /// A session's summary is missing or broken, or its last update is not that of the events.
    Summary,
    /// A summary counts more events than the blocks hold: the tail is lost.
    SummaryLeads,
    /// A summary counts fewer events than were stored before it: the engine fell back to an older one.
    SummaryBehind,
    /// A record of an id is broken, or leads to no session of that id.
    IdRecord,
    /// No id leads to a session.
    Unreachable,
    /// A record of the order by last update is missing or broken, or disagrees with its summary.
    OrderRecord,
    /// The record of a deleted session is broken.
    Tombstone,
    /// A fork's edge is missing or broken, or disagrees with the fork's header.
    Edge,
    /// The record of how far the journal is drained, or of how often the store was opened, is missing or broken.
    StoreRecord,
    /// A frame of the journal that was acknowledged is damaged or missing.
    JournalFrame,
    /// A frame of the journal does not fit what comes before it.
    JournalOrder,
    /// The journal ends in bytes that are no frame and were never acknowledged, or a file keeps such bytes.
    TornEnd,
    /// What an interrupted drain, delete, import or repair left behind; the next one takes it away.
    Leftover,
    /// The session was ended by a repair: events were missing behind its end.
    Ended,
    /// Something lies in quarantine.
    Quarantine,
    /// The running hash where a fork begins is not known, as its parent was damaged when it was made.
    HashUnknown,
    /// The history up to the given seq is not the one that was noted.
    Expected,
    /// The engine or a file failed while this was read.
    Engine,
}

impl FindingKind {
    /// Returns the word for it.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Checksum => "checksum",
            Self::Undecodable => "undecodable",
            Self::UnknownVersion => "unknown-version",
            Self::WrongKey => "wrong-key",
            Self::NotRecognised => "not-recognised",
            Self::Gap => "gap",
            Self::Overlap => "overlap",
            Self::Orphan => "orphan",
            Self::RunningHash => "running-hash",
            Self::MissingPart => "missing-part",
            Self::MissingParent => "missing-parent",
            Self::PrefixBeyondParent => "prefix-beyond-parent",
            Self::ParentCycle => "parent-cycle",
            Self::Header => "header",
            Self::Label => "label",
            Self::Summary => "summary",
            Self::SummaryLeads => "summary-leads",
            Self::SummaryBehind => "summary-behind",
            Self::IdRecord => "id-record",
            Self::Unreachable => "unreachable",
            Self::OrderRecord => "order-record",
            Self::Tombstone => "tombstone",
            Self::Edge => "edge",
            Self::StoreRecord => "store-record",
            Self::JournalFrame => "journal-frame",
            Self::JournalOrder => "journal-order",
            Self::TornEnd => "torn-end",
            Self::Leftover => "leftover",
            Self::Ended => "ended",
            Self::Quarantine => "quarantine",
            Self::HashUnknown => "hash-unknown",
            Self::Expected => "expected",
            Self::Engine => "engine",
        }
    }

    /// The kind for a block whose bytes are found to be that.
    pub(super) fn of_block(error: &FormatError) -> Self {
        match error {
            FormatError::Unsupported { .. } => Self::UnknownVersion,
            FormatError::Corrupt(corruption) => match corruption {
                Corruption::Checksum { .. } => Self::Checksum,
                Corruption::WrongKey { .. } => Self::WrongKey,
                Corruption::MissingPart { .. } => Self::MissingPart,
                Corruption::NotRecognised => Self::NotRecognised,
                _ => Self::Undecodable,
            },
        }
    }

    /// The same, unless the value is of a newer version.
    pub(super) fn unless_newer(self, error: &FormatError) -> Self {
        match error {
            FormatError::Unsupported { .. } => Self::UnknownVersion,
            FormatError::Corrupt(_) => self,
        }
    }
}

impl fmt::Display for FindingKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl Serialize for FindingKind {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.as_str())
    }
}

/// Something that a scan found.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct Finding {
    /// How much it means.
    pub severity: Severity,
    /// What it is.
    pub kind: FindingKind,
    /// The session's id, where it is known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub session: Option<String>,
    /// The session's storage key, where there is one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub storage_key: Option<String>,
    /// The seqs concerned, half open.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub seqs: Option<Range<u64>>,
    /// Where it stands: a map of the engine, or `journal`.
    pub map: &'static str,
    /// The key there, in hexadecimal; in the journal the file and the offset, or the commit.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub key: Option<String>,
    /// What should stand there.
    pub expected: String,
    /// What does.
    pub found: String,
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let severity = match self.severity {
            Severity::Notice => "notice",
            Severity::Error => "error",
        };
        write!(f, "{severity}: {}", self.kind)?;
        if let Some(session) = self.session.as_ref().or(self.storage_key.as_ref()) {
            write!(f, ", session {session}")?;
        }
        match &self.seqs {
            Some(seqs) if seqs.end == u64::MAX => write!(f, ", seqs {} and on", seqs.start)?,
            Some(seqs) if seqs.end.saturating_sub(seqs.start) <= 1 => write!(f, ", seq {}", seqs.start)?,
            Some(seqs) => write!(f, ", seqs {} to {}", seqs.start, seqs.end - 1)?,
            None => {}
        }
        write!(f, ": {} expected, {} found", self.expected, self.found)?;
        if let Some(key) = &self.key {
            write!(f, " ({} {key})", self.map)?;
        }
        Ok(())
    }
}

pub(super) const fn map_name(map: Map) -> &'static str {
    match map {
        Map::Sessions => "sessions",
        Map::Events => "events",
        Map::Care => "care",
        Map::Derived => "derived",
    }
}

impl Finding {
    pub(super) fn new(
        severity: Severity,
        kind: FindingKind,
        expected: impl Into<String>,
        found: impl fmt::Display,
    ) -> Self {
        Self {
            severity,
            kind,
            session: None,
            storage_key: None,
            seqs: None,
            map: map_name(Map::Sessions),
            key: None,
            expected: expected.into(),
            found: found.to_string(),
        }
    }

    pub(super) fn error(kind: FindingKind, expected: impl Into<String>, found: impl fmt::Display) -> Self {
        Self::new(Severity::Error, kind, expected, found)
    }

    pub(super) fn notice(kind: FindingKind, expected: impl Into<String>, found: impl fmt::Display) -> Self {
        Self::new(Severity::Notice, kind, expected, found)
    }

    /// The engine failed.
    pub(super) fn engine(map: Map, error: &Error) -> Self {
        let mut finding = Self::error(FindingKind::Engine, "readable files", told(error));
        finding.map = map_name(map);
        finding
    }

    pub(super) fn at(mut self, map: Map, key: &[u8]) -> Self {
        self.map = map_name(map);
        self.key = Some(format::hex(key));
        self
    }

    pub(super) fn in_journal(mut self, place: String) -> Self {
        self.map = "journal";
        self.key = Some(place);
        self
    }

    pub(super) fn seqs(mut self, seqs: Range<u64>) -> Self {
        self.seqs = Some(seqs);
        self
    }

    pub(super) fn of(mut self, session: Option<&str>, key: impl fmt::Display) -> Self {
        self.session = session.map(str::to_owned);
        self.storage_key = Some(key.to_string());
        self
    }
}

/// An error with its causes, in one line.
pub(super) fn told(error: &Error) -> String {
    let mut text = error.to_string();
    let mut next = std::error::Error::source(error);
    while let Some(cause) = next {
        text.push_str(": ");
        text.push_str(&cause.to_string());
        next = cause.source();
    }
    text
}

/// What the bytes of a value are found to be.
pub(super) fn fault(error: &FormatError) -> String {
    match error {
        FormatError::Corrupt(corruption) => corruption.to_string(),
        FormatError::Unsupported { found } => format!("format {found}"),
    }
}
