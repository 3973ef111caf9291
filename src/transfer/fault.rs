//! What is wrong with a file, and where.

use std::fmt;

use crate::{EventError, EventFault};

/// How many faults of a file are listed.
pub(super) const LISTED: usize = 1_000;

/// Something that is wrong with a file.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Fault {
    /// The line, from 1.
    pub line: u64,
    /// The column, in bytes from 1.
    pub column: Option<usize>,
    /// The top-level field concerned.
    pub field: Option<String>,
    /// What is wrong.
    pub kind: FaultKind,
}

/// The kinds of faults in a file.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum FaultKind {
    /// The line is no event, or no header.
    #[error("{0}")]
    Line(EventFault),
    /// The file does not begin with a header.
    #[error("a header expected: {{\"type\":\"session\",…}}")]
    NoHeader,
    /// There is another header.
    #[error("a second header: one session a file")]
    SecondHeader,
    /// The file was written by a newer program.
    #[error("version {found} of the form is not supported (newest known: 1); update sessionlog")]
    UnsupportedVersion {
        /// The version.
        found: u64,
    },
    /// Bytes that are zero: what a power cut leaves in a file that was being written.
    #[error("{count} NUL bytes")]
    Nul {
        /// How many.
        count: usize,
    },
    /// The line is longer than any event may be.
    #[error("more than {max_bytes} bytes, which no event may have")]
    TooLong {
        /// The most that one may have.
        max_bytes: u64,
    },
    /// A seq stands again.
    #[error("seq {found} again, {expected} is next")]
    SeqRepeated {
        /// The seq that is next.
        expected: u64,
        /// The seq of the line.
        found: u64,
    },
    /// Seqs are left out.
    #[error("seq {expected} is missing: {found} found")]
    SeqMissing {
        /// The seq that is next.
        expected: u64,
        /// The seq of the line.
        found: u64,
    },
    /// The file ends before, or after, the length that its header says.
    #[error("the events end at {found}, the header says {expected}")]
    Length {
        /// The header's length.
        expected: u64,
        /// The seq behind the last event.
        found: u64,
    },
    /// The running hash of the events is not the header's.
    #[error("the running hash of the events is not the header's")]
    Hash,
    /// The events before the first one are nowhere here.
    #[error("{reason}")]
    Parent {
        /// What is missing.
        reason: &'static str,
    },
    /// The title or the labels are more than a session can have, or have bad names.
    #[error("{reason}")]
    Labels {
        /// Why.
        reason: String,
    },
    /// The session that is here has another event at this seq.
    #[error("the session here has another event with seq {seq}")]
    Differs {
        /// The seq.
        seq: u64,
    },
    /// The session that is here has more events.
    #[error("the session here has {here} events")]
    Shorter {
        /// Its length.
        here: u64,
    },
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "line {}", self.line)?;
        if let Some(column) = self.column {
            write!(f, ", column {column}")?;
        }
        if let Some(field) = &self.field {
            write!(f, ", field `{field}`")?;
        }
        write!(f, ": {}", self.kind)
    }
}

impl Fault {
    pub(super) fn new(line: u64, kind: FaultKind) -> Self {
        Self { line, column: None, field: None, kind }
    }

    pub(super) fn at(mut self, column: usize) -> Self {
        self.column = Some(column);
        self
    }

    pub(super) fn field(mut self, field: &str) -> Self {
        self.field = Some(field.to_owned());
        self
    }

    /// A fault that was found in the text of a line, which begins `offset` bytes behind the line's start.
    pub(super) fn in_line(line: u64, offset: usize, error: EventError) -> Self {
        let column = error.column.map(|column| column + offset);
        Self { line, column, field: error.field, kind: FaultKind::Line(error.fault) }
    }
}

/// The faults of a file.
#[derive(Clone, Debug, Default)]
pub(super) struct Faults {
    pub(super) listed: Vec<Fault>,
    pub(super) total: u64,
}

impl Faults {
    pub(super) fn add(&mut self, fault: Fault) {
        self.total += 1;
        if self.listed.len() < LISTED {
            self.listed.push(fault);
        }
    }
}
