//! What can go wrong, in one vocabulary for callers, the command line and the scanner.

use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;

use crate::id::{Seq, SessionId};
use crate::surface::ReplaceFault;

/// The result of every call that can fail.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// Why a call failed. A variant exists where a caller acts differently on it.
///
/// Unless a variant says otherwise, nothing was written and the store is as it was.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// No session has this id, or it was deleted.
    #[error("session {session} not found")]
    SessionNotFound {
        /// The id that was asked for.
        session: SessionId,
    },
    /// A session with this id exists; it is never overwritten.
    #[error("session {session} already exists")]
    SessionExists {
        /// The id that is taken.
        session: SessionId,
    },
    /// The text cannot be a session id.
    #[error("bad session id: {fault}")]
    BadSessionId {
        /// What is wrong with it.
        fault: IdFault,
    },
    /// Another append was first, or the expected seq was wrong.
    #[error("session {session} is at seq {actual}, not {expected}")]
    SeqConflict {
        /// The session.
        session: SessionId,
        /// The seq that the caller expected to be given.
        expected: Seq,
        /// The seq that the next event will be given.
        actual: Seq,
    },
    /// A repair has ended the session, as events behind its end were missing. What it has is read as ever; to go on, fork
    /// it at `at`.
    #[error("session {session} was ended at {at} by a repair: fork it there to go on")]
    Ended {
        /// The session.
        session: SessionId,
        /// The number of its events: where to fork it.
        at: Seq,
    },
    /// A read was to start behind the session's end.
    #[error("cannot read session {session} from seq {from}: it has {len} events")]
    SeqBeyondEnd {
        /// The session.
        session: SessionId,
        /// Where the read was to start.
        from: Seq,
        /// The number of events that readers may see.
        len: u64,
    },
    /// A fork was to be made behind the parent's end.
    #[error("cannot fork {parent} at {prefix_len}: it has {len} events")]
    ForkBeyondEnd {
        /// The session to be forked.
        parent: SessionId,
        /// The number of events that the fork was to share.
        prefix_len: u64,
        /// The number of events that readers of the parent may see.
        len: u64,
    },
    /// An event is not valid; see [`EventError`].
    #[error("event {index} is not valid")]
    InvalidEvent {
        /// The position of the event in what was given, from 0.
        index: usize,
        /// What is wrong, and where.
        source: EventError,
    },
    /// An event cannot replace what it names on the surface; see [`ReplaceFault`].
    #[error("session {session}, event {index}: {fault}")]
    InvalidReplace {
        /// The session.
        session: SessionId,
        /// The position of the event in what was given, from 0.
        index: usize,
        /// Why.
        fault: ReplaceFault,
    },
    /// The event's line is longer than the store's limit.
    #[error("event {index} of {bytes} bytes exceeds {max_bytes}")]
    EventTooLarge {
        /// The position of the event in what was given, from 0.
        index: usize,
        /// The length of the event's line, in bytes.
        bytes: u64,
        /// The store's limit.
        max_bytes: u64,
    },
    /// The batch has more events or bytes than one may have.
    #[error("batch of {events} events and {bytes} bytes exceeds {max_events} events or {max_bytes} bytes")]
    BatchTooLarge {
        /// Events in the batch (counted up to the first one too many).
        events: usize,
        /// Bytes of their lines (counted up to the first one too many).
        bytes: u64,
        /// The greatest number of events.
        max_events: usize,
        /// The greatest number of bytes.
        max_bytes: u64,
    },
    /// A header's free metadata is larger than a header may be.
    #[error("metadata of {bytes} bytes exceeds {max_bytes}")]
    MetaTooLarge {
        /// Bytes of all names and values, and 8 more for each.
        bytes: usize,
        /// The greatest number of bytes.
        max_bytes: usize,
    },
    /// A label's name is empty, or holds `=` or a control character.
    #[error("bad label name {name:?}: it is empty, or holds `=` or a control character")]
    BadLabel {
        /// The name.
        name: String,
    },
    /// A session's title and labels would be larger than a record may be.
    #[error("title and labels of {bytes} bytes exceed {max_bytes}")]
    LabelsTooLarge {
        /// Bytes of the title and of all names and values, and 8 more for each label.
        bytes: usize,
        /// The greatest number of bytes.
        max_bytes: usize,
    },
    /// A file cannot be imported; see [`Fault`](crate::transfer::Fault). Nothing of it was stored.
    #[error("{}", Faults(faults, *total))]
    Import {
        /// What is wrong with it: the first 1,000 faults.
        faults: Vec<crate::transfer::Fault>,
        /// How many there are.
        total: u64,
    },
    /// Stored bytes are damaged; nothing was changed. Reads of other places go on working.
    ///
    /// What to do: [`Scan`](crate::Scan) lists all that is wrong, [`Repair`](crate::Repair) plans and does what can
    /// be done. Where the engine does not open its files ([`Corruption::Engine`]) or a part of the store is gone
    /// ([`Corruption::Missing`] of the store): `sessionlog salvage OLD NEW` gets what is left.
    #[error("corrupt {place}: {corruption}")]
    Corrupt {
        /// Where.
        place: Place,
        /// What is wrong there.
        corruption: Corruption,
    },
    /// The store, or a value in it, was written by a newer sessionlog. It may be sound: update the program.
    #[error("{place}: format {found} is not supported (newest known: {known}); update sessionlog")]
    UnsupportedFormat {
        /// Where the number stands.
        place: Place,
        /// The format's number.
        found: u32,
        /// The newest number that this program reads.
        known: u32,
    },
    /// Another process, or another handle in this one, has the store open.
    #[error("store {} is in use{}", path.display(), Holder(*holder))]
    InUse {
        /// The store's folder.
        path: PathBuf,
        /// The process that holds it, when its lock file says so.
        holder: Option<u32>,
    },
    /// There is no store here, and this call does not create one.
    #[error("no store at {}", path.display())]
    NoStore {
        /// The folder that was named.
        path: PathBuf,
    },
    /// What was to be made is there already; it is never overwritten.
    #[error("{} exists already", path.display())]
    OutputExists {
        /// What is there.
        path: PathBuf,
    },
    /// The folder holds something else. It was left untouched.
    #[error("{} is not a sessionlog store: {reason}", path.display())]
    NotAStore {
        /// The folder that was named.
        path: PathBuf,
        /// What shows that.
        reason: &'static str,
    },
    /// The store is damaged: a [`Scan`](crate::Scan) says where. What was asked for could make that worse; nothing was
    /// done. [`Repair`](crate::Repair) first.
    #[error("{} has {errors} problems that a scan names", path.display())]
    NotClean {
        /// The store's folder.
        path: PathBuf,
        /// Findings that are errors.
        errors: u64,
    },
    /// There is too little free space for what the call needs. Nothing was stored; free some and go on.
    #[error("{} has {free_bytes} bytes free, {needed_bytes} are needed", path.display())]
    DiskFull {
        /// The journal's folder: both it and the engine lie on that disk.
        path: PathBuf,
        /// What the call may need.
        needed_bytes: u64,
        /// What is there.
        free_bytes: u64,
    },
    /// An earlier write, sync or drain failed. Reads of durable events go on; writes are refused. Whether the events
    /// then in flight were stored is known after reopening: compare `Session::durable_len`.
    #[error("an earlier write failed; reopen the store")]
    Failed {
        /// The failure.
        #[source]
        cause: Arc<Error>,
    },
    /// A write or sync took longer than the watchdog allows.
    #[error("{action} took longer than {limit_ms} ms")]
    TimedOut {
        /// What was under way.
        action: &'static str,
        /// The limit.
        limit_ms: u64,
    },
    /// The store was closed.
    #[error("the store is closed")]
    Closed,
    /// An observer called a function of its own store that would wait for the observer itself.
    #[error("an observer cannot write to the store it observes; hand the work to another thread")]
    CalledFromObserver,
    /// A file operation failed.
    #[error("cannot {action} {}", path.display())]
    Io {
        /// What was tried, as a verb: `create`, `read`, `sync`.
        action: &'static str,
        /// The file or folder.
        path: PathBuf,
        /// The system's reason.
        #[source]
        source: std::io::Error,
    },
    /// The storage engine failed.
    #[error("storage engine failed")]
    Storage(#[source] Box<dyn std::error::Error + Send + Sync>),
}

/// What is wrong with the text of a session id.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum IdFault {
    /// It is empty.
    #[error("it is empty")]
    Empty,
    /// It is longer than [`SessionId::MAX_BYTES`].
    #[error("it has {bytes} bytes, at most 255 are allowed")]
    TooLong {
        /// Its length.
        bytes: usize,
    },
    /// It holds a control character.
    #[error("it holds a control character at byte {at}")]
    ControlCharacter {
        /// Where, in bytes from 0.
        at: usize,
    },
}

/// Where something stands: as much of it as is known.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Place {
    /// The session, by its id where that is known, else by its storage key.
    pub session: Option<String>,
    /// The seqs concerned, half open.
    pub seqs: Option<std::ops::Range<u64>>,
    /// The kind of thing: `block`, `header`, `journal frame`, `description`.
    pub what: &'static str,
    /// The key in the engine, in hexadecimal, or the file and offset.
    pub at: Option<String>,
}

impl Place {
    pub(crate) fn new(what: &'static str) -> Self {
        Self { what, ..Self::default() }
    }

    pub(crate) fn session(mut self, session: impl fmt::Display) -> Self {
        self.session = Some(session.to_string());
        self
    }

    pub(crate) fn seqs(mut self, seqs: std::ops::Range<u64>) -> Self {
        self.seqs = Some(seqs);
        self
    }

    pub(crate) fn at(mut self, at: impl Into<String>) -> Self {
        self.at = Some(at.into());
        self
    }
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.what)?;
        if let Some(session) = &self.session {
            write!(f, " of session {session}")?;
        }
        if let Some(seqs) = &self.seqs {
            if seqs.end.saturating_sub(seqs.start) <= 1 {
                write!(f, ", seq {}", seqs.start)?;
            } else {
                write!(f, ", seqs {} to {}", seqs.start, seqs.end - 1)?;
            }
        }
        if let Some(at) = &self.at {
            write!(f, " ({at})")?;
        }
        Ok(())
    }
}

/// What is wrong with stored bytes: the vocabulary that errors and scan findings share.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Corruption {
    /// The stored checksum is not that of the bytes.
    #[error("checksum {stored:08x} expected, {computed:08x} found")]
    Checksum {
        /// What stands in the value.
        stored: u32,
        /// What its bytes give.
        computed: u32,
    },
    /// The bytes do not start as such a value does.
    #[error("not a value of this kind")]
    NotRecognised,
    /// The value ends before its parts do, or goes on behind them.
    #[error("{found} bytes found, {expected} expected")]
    Length {
        /// What its header says.
        expected: u64,
        /// What is there.
        found: u64,
    },
    /// The checksum is right, the content is not: written wrongly, or made by hand.
    #[error("{what} cannot be decoded")]
    Undecodable {
        /// The part concerned.
        what: &'static str,
    },
    /// The value belongs under another key.
    #[error("the value says it belongs under key {says}")]
    WrongKey {
        /// The key that the value names, in hexadecimal.
        says: String,
    },
    /// Events are missing.
    #[error("seq {expected} expected, {} found", Found(*found))]
    Gap {
        /// The seq that should come next.
        expected: u64,
        /// The seq that comes, if any.
        found: Option<u64>,
    },
    /// A part of a large event is missing.
    #[error("part {part} of {parts} is missing")]
    MissingPart {
        /// The part, from 0.
        part: u32,
        /// How many there should be.
        parts: u32,
    },
    /// A record that another one refers to is missing.
    #[error("{what} is missing")]
    Missing {
        /// What.
        what: &'static str,
    },
    /// A session's parent is missing.
    #[error("parent {parent} is missing")]
    MissingParent {
        /// The parent's storage key.
        parent: String,
    },
    /// A fork says that it shares more events than its parent has.
    #[error("a prefix of {prefix_len} events is longer than its parent, which has {parent_len}")]
    PrefixBeyondParent {
        /// Events shared, as the fork says.
        prefix_len: u64,
        /// Events of the parent.
        parent_len: u64,
    },
    /// A session's summary, or the mark of what is drained, is older than the blocks: the engine fell back.
    #[error("a summary of {len} events stands beside a block that an earlier one covered")]
    SummaryBehind {
        /// The length that the summary gives.
        len: u64,
    },
    /// The running hash is not that of the events.
    #[error("the running hash is not that of the events")]
    RunningHash,
    /// A frame that was acknowledged as durable is damaged or missing.
    #[error("commit {commit}, acknowledged as durable, is damaged or missing")]
    AcknowledgedFrame {
        /// The commit's number.
        commit: u64,
    },
    /// A file of the journal has a size that none is made with: it was cut short.
    #[error("no segment has {bytes} bytes: it was cut short")]
    SegmentSize {
        /// The size that was found.
        bytes: u64,
    },
    /// The engine holds less than when the store was last closed: damage that it took for the end of its file.
    #[error(
        "the engine holds commits up to {found}, and held them up to {expected} when the store was closed"
    )]
    EngineFellBack {
        /// The commit up to which it held everything then.
        expected: u64,
        /// The commit up to which it does now.
        found: u64,
    },
    /// Opening the engine's files failed in the engine itself.
    #[error("the engine cannot open its files: {message}")]
    Engine {
        /// What it said.
        message: String,
    },
}

/// What is wrong with an event, and where in its line.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct EventError {
    /// The column in the line, in bytes from 1; `None` for an event that was not read from a line.
    pub column: Option<usize>,
    /// The top-level field concerned.
    pub field: Option<String>,
    /// What is wrong.
    pub fault: EventFault,
}

impl EventError {
    pub(crate) fn new(fault: EventFault) -> Self {
        Self { column: None, field: None, fault }
    }

    /// The same fault, at the byte `offset` of the line, counted from 0.
    pub(crate) fn at(mut self, offset: usize) -> Self {
        self.column = Some(offset.saturating_add(1));
        self
    }

    /// The same fault, in the field `name`. A very long name is cut, so that an error stays readable.
    pub(crate) fn field(mut self, name: &str) -> Self {
        self.field = Some(match name.char_indices().nth(100) {
            Some((end, _)) => format!("{}…", name.get(..end).unwrap_or_default()),
            None => name.to_owned(),
        });
        self
    }
}

impl std::error::Error for EventError {}

impl fmt::Display for EventError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(column) = self.column {
            write!(f, "column {column}: ")?;
        }
        if let Some(field) = &self.field {
            write!(f, "field `{field}`: ")?;
        }
        self.fault.fmt(f)
    }
}

/// The kinds of faults in an event.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum EventFault {
    /// The text is not JSON.
    #[error("not JSON: {reason}")]
    NotJson {
        /// What is wrong with it.
        reason: String,
    },
    /// The bytes are not UTF-8.
    #[error("not UTF-8")]
    NotUtf8,
    /// A `\uD800` to `\uDFFF` escape without its other half.
    #[error("half of a surrogate pair")]
    LoneSurrogate,
    /// A top-level name stands twice.
    #[error("the field stands twice")]
    DuplicateField,
    /// A field that the type needs is not there.
    #[error("the field is missing")]
    MissingField,
    /// A field has a type that it cannot have.
    #[error("{expected} expected")]
    WrongType {
        /// What it can be.
        expected: &'static str,
    },
    /// An integer is outside its range.
    #[error("out of range: {range}")]
    OutOfRange {
        /// The range, in words.
        range: &'static str,
    },
    /// The value cannot stand here.
    #[error("{reason}")]
    Invalid {
        /// Why.
        reason: &'static str,
    },
}

struct Faults<'a>(&'a [crate::transfer::Fault], u64);

impl fmt::Display for Faults<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.0, self.1) {
            ([only], _) => only.fmt(f),
            ([first, ..], total) => write!(f, "{total} faults, the first in {first}"),
            ([], total) => write!(f, "{total} faults"),
        }
    }
}

struct Holder(Option<u32>);

impl fmt::Display for Holder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            Some(pid) => write!(f, " by process {pid}"),
            None => Ok(()),
        }
    }
}

struct Found(Option<u64>);

impl fmt::Display for Found {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            Some(seq) => seq.fmt(f),
            None => f.write_str("the end"),
        }
    }
}
