//! How a file is imported, and what came of it.

use super::fault::Fault;
use crate::SessionId;

/// How a file is imported.
#[derive(Clone, Debug, Default)]
pub struct ImportOptions {
    pub(super) id: Option<SessionId>,
    pub(super) update: bool,
    pub(super) salvage: bool,
    pub(super) dry_run: bool,
}

impl ImportOptions {
    /// The whole file or nothing, under the id that it names, which must be free.
    pub fn new() -> Self {
        Self::default()
    }

    /// Gives the session another id.
    #[must_use]
    pub fn id(mut self, id: SessionId) -> Self {
        self.id = Some(id);
        self
    }

    /// A session that is here gets what a longer file adds, in several batches: a repeat goes on where an interrupted
    /// one ended. A file that says the same changes nothing, and any other is refused before anything is appended.
    /// Title, labels and metadata stay as they are here. Only for [`import_file`](super::import_file) and
    /// [`import_files`](super::import_files), for the file is read twice.
    #[must_use]
    pub fn update(mut self) -> Self {
        self.update = true;
        self
    }

    /// Keeps what can be read up to the first seq that is missing. What cannot be read, and what stands behind that
    /// seq, goes to the file's name with `.rest`, and the report lists the faults.
    #[must_use]
    pub fn salvage(mut self) -> Self {
        self.salvage = true;
        self
    }

    /// Reads and checks, and writes nothing.
    #[must_use]
    pub fn dry_run(mut self) -> Self {
        self.dry_run = true;
        self
    }
}

/// What an import did.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ImportReport {
    /// The session's id here.
    pub session: SessionId,
    /// Whether it was there before.
    pub existed: bool,
    /// Events appended; in a dry run those that would be.
    pub appended: u64,
    /// Events that it shares with a parent here.
    pub shared: u64,
    /// Events whose `sessionId` names another session than the header. They are kept as they are.
    pub other_session_ids: u64,
    /// What a salvage left out: the first 1,000 faults.
    pub faults: Vec<Fault>,
    /// How many there are.
    pub total_faults: u64,
    /// Lines that a salvage put aside.
    pub rest_lines: u64,
}
