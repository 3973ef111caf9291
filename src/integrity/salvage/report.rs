//! What a salvage says in the end, and on its way.

use std::ops::Range;

use serde::Serialize;

/// What a salvage found and made.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct SalvageReport {
    /// What the engine could still do.
    pub engine: EngineOutcome,
    /// Sound values found, copies and older ones included.
    pub values: u64,
    /// Values of which there was an older or equal copy.
    pub copies: u64,
    /// Values of the same write number and another content: the first one found was kept.
    pub conflicts: u64,
    /// Places that start like a value and hold none: damage, or leftovers that were partly overwritten.
    pub damaged_places: u64,
    /// Bytes that the system could not read.
    pub unreadable_bytes: u64,
    /// Values of a newer format, which were left out.
    pub newer_values: u64,
    /// Frames of the journal that were not drained.
    pub frames: u64,
    /// Everything up to this commit was in the engine, as far as its newest record was found.
    pub drained: u64,
    /// Everything up to this commit was in the engine when the store was last closed: when it is greater, what came
    /// between is missing unless frames hold it, and no session shows it.
    pub drained_at_close: Option<u64>,
    /// Deleted sessions of which something was found. They were left out unless asked for.
    pub deleted: u64,
    /// The sessions of the new store, in no order.
    pub sessions: Vec<SalvagedSession>,
}

impl SalvageReport {
    /// Whether it is known that something is missing.
    pub fn is_incomplete(&self) -> bool {
        self.fell_back() || self.sessions.iter().any(|session| !session.missing.is_empty())
    }

    /// Whether the newest records of the engine are lost, so that sessions may be shorter than they were.
    pub fn fell_back(&self) -> bool {
        self.drained_at_close.is_some_and(|drained| drained > self.drained)
    }
}

/// What the engine could still do with a copy of its files.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub enum EngineOutcome {
    /// It was not asked: its files are missing, or there was no room for a copy.
    #[default]
    NotAsked,
    /// It gave all its values. What it does not know counts as deleted.
    Whole,
    /// It failed on its way, or did not open, and says why.
    Failed(String),
}

/// A session of the new store.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct SalvagedSession {
    /// Its id.
    pub id: String,
    /// The number of its events, those shared with its parent included.
    pub len: u64,
    /// The seqs of its own events that are missing. A session with a hole was ended there.
    pub missing: Vec<Range<u64>>,
    /// Whether it had been deleted.
    pub recovered: bool,
}

/// How far a salvage is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct SalvageProgress {
    /// What is under way.
    pub step: SalvageStep,
    /// Bytes of it that are done; 0 where that is not known.
    pub done_bytes: u64,
    /// All bytes of it; 0 where that is not known.
    pub total_bytes: u64,
}

/// The steps of a salvage.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum SalvageStep {
    /// The engine is asked for what it still gives.
    Engine,
    /// Raw files are looked through.
    Carving,
    /// The journal is read.
    Journal,
    /// Derived records are made anew; what is broken is set aside.
    Mending,
}
