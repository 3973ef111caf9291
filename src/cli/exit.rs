//! What the process says and returns when a command fails: the table of exit codes, which the library does not know.

use std::error::Error as StdError;
use std::io::{self, Write};
use std::process::ExitCode;

use sessionlog::{Corruption, Error};

use super::style::Paint;

/// Not found, refused input or state, conflict, I/O error.
const REFUSED: u8 = 1;
/// The command line itself is wrong, or an id in it.
const USAGE: u8 = 2;
/// The store cannot be opened.
const NO_STORE: u8 = 3;

/// What the library says of a folder whose description is gone.
const DESCRIPTION_LOST: &str = "it has a journal but no description";

/// Why a command ends early.
#[derive(Debug)]
pub(crate) enum Failure {
    /// The reader of standard output went away: it has seen what it wanted (`read | head -1`), so this is no fault.
    ClosedPipe,
    /// Anything that is reported.
    Told {
        /// The exit code.
        code: u8,
        /// What happened and where, with all causes.
        message: String,
        /// What to do next. Never to delete anything: what cannot be read now may be sound.
        hint: Option<String>,
    },
}

impl Failure {
    /// A refusal of what was asked or given.
    pub(crate) fn refused(message: impl Into<String>) -> Self {
        Self::Told { code: REFUSED, message: message.into(), hint: None }
    }

    /// A command line that parses and makes no sense.
    pub(crate) fn usage(message: impl Into<String>) -> Self {
        Self::Told {
            code: USAGE,
            message: message.into(),
            hint: Some(
                "`sessionlog help` and `sessionlog help COMMAND` show how commands are written".into(),
            ),
        }
    }

    /// A store that cannot be opened, whatever the reason.
    pub(crate) fn open(error: &Error) -> Self {
        Self::Told { code: NO_STORE, message: with_causes(error), hint: hint(error) }
    }

    /// A salvage that could not be done.
    pub(crate) fn salvage(error: &Error) -> Self {
        let code = match error {
            Error::UnsupportedFormat { .. } => NO_STORE,
            error => code(error),
        };
        let told = matches!(error, Error::NoStore { .. } | Error::NotAStore { .. });
        let hint =
            if told { Some("name the folder of a store, damaged as it may be".into()) } else { hint(error) };
        Self::Told { code, message: with_causes(error), hint }
    }

    /// A folder that is looked at without opening the store in it: what is about a session is not about the folder.
    pub(crate) fn folder(error: &Error) -> Self {
        match error {
            Error::SessionNotFound { .. } => {
                Self::Told { code: REFUSED, message: with_causes(error), hint: hint(error) }
            }
            _ => Self::open(error),
        }
    }

    /// An error in an open store.
    pub(crate) fn of(error: &Error) -> Self {
        Self::Told { code: code(error), message: with_causes(error), hint: hint(error) }
    }

    /// A file operation of the command line's own.
    pub(crate) fn io(what: &str, error: &io::Error) -> Self {
        Self::refused(format!("{what}: {error}"))
    }

    /// A failed write to standard output.
    pub(crate) fn output(error: &io::Error) -> Self {
        match error.kind() {
            io::ErrorKind::BrokenPipe => Self::ClosedPipe,
            _ => Self::io("cannot write to standard output", error),
        }
    }

    /// Says where in the input it happened.
    pub(crate) fn at(self, place: &str) -> Self {
        match self {
            Self::ClosedPipe => self,
            Self::Told { code, message, hint } => {
                Self::Told { code, message: format!("{place}: {message}"), hint }
            }
        }
    }

    /// Says what to do next.
    pub(crate) fn hint(self, text: impl Into<String>) -> Self {
        match self {
            Self::ClosedPipe => self,
            Self::Told { code, message, .. } => Self::Told { code, message, hint: Some(text.into()) },
        }
    }

    /// Prints it on standard error and returns the exit code.
    pub(crate) fn report(self) -> ExitCode {
        let Self::Told { code, message, hint } = self else { return ExitCode::SUCCESS };
        let paint = Paint::stderr();
        let mut text = format!("{} {message}\n", paint.bad("error:"));
        if let Some(hint) = hint {
            text.push_str(&format!("{} {hint}\n", paint.help("hint:")));
        }
        // Where standard error is closed nobody can be told; the exit code still says it.
        let _ = io::stderr().write_all(text.as_bytes());
        ExitCode::from(code)
    }
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        Self::of(&error)
    }
}

/// The exit code of what the parser reports: usage, or help and version.
pub(crate) fn of_parser(report: &clap::Error) -> ExitCode {
    if report.use_stderr() { ExitCode::from(USAGE) } else { ExitCode::SUCCESS }
}

/// The exit code of an error in an open store.
fn code(error: &Error) -> u8 {
    match error {
        Error::BadSessionId { .. } | Error::OutputExists { .. } => USAGE,
        Error::NoStore { .. } | Error::NotAStore { .. } | Error::InUse { .. } => NO_STORE,
        _ => REFUSED,
    }
}

/// The error's text, followed by its causes where it does not contain them already.
pub(crate) fn with_causes(error: &dyn StdError) -> String {
    let mut text = error.to_string();
    let mut next = error.source();
    while let Some(cause) = next {
        let said = cause.to_string();
        if !text.ends_with(&said) {
            text.push_str(": ");
            text.push_str(&said);
        }
        next = cause.source();
    }
    text
}

/// What to do next, where the message does not say it.
fn hint(error: &Error) -> Option<String> {
    let text = match error {
        Error::SessionNotFound { .. } => "`sessionlog ls` lists the sessions of this store",
        Error::SessionExists { .. } => "a session is never overwritten: choose another id",
        Error::SeqConflict { session, expected, actual } => {
            return Some(conflict(session, *expected, *actual));
        }
        Error::SeqBeyondEnd { len, .. } => return Some(format!("start at {len} or before it")),
        Error::ForkBeyondEnd { len, .. } => return Some(format!("fork at {len} or before it")),
        Error::BatchTooLarge { .. } => "nothing of this batch was stored: give --batch a smaller number",
        Error::OutputExists { .. } => "nothing is overwritten: name a folder that does not exist",
        Error::InUse { .. } => "one process at a time: wait until the other one is done, or stop it",
        Error::NoStore { .. } => {
            "`sessionlog create` makes one here; --store DIR or SESSIONLOG_STORE name another place"
        }
        Error::Corrupt {
            corruption:
                Corruption::Engine { .. }
                | Corruption::Missing { .. }
                | Corruption::EngineFellBack { .. }
                | Corruption::SegmentSize { .. },
            ..
        }
        | Error::NotAStore { reason: DESCRIPTION_LOST, .. } => {
            "nothing was changed: `sessionlog salvage OLD NEW` gets what is left of a store that does not open"
        }
        Error::NotAStore { .. } => {
            "it was left as it is: name another folder with --store DIR or SESSIONLOG_STORE"
        }
        error if is_disk_full(error) => {
            "what was acknowledged is safe: free some space on this disk and run the command again"
        }
        Error::TimedOut { action: "opening the engine", .. } => {
            "nothing was changed: run the command again, and if it is as slow then, `sessionlog salvage OLD NEW` gets what is \
             left of a store that does not open"
        }
        Error::Failed { .. } | Error::TimedOut { .. } | Error::Storage(_) => {
            "run the command again: opening the store recovers it; `sessionlog show ID` then tells how many events it has"
        }
        Error::Io { source, .. } if source.kind() == io::ErrorKind::PermissionDenied => {
            "check who owns the store's folder and what is in it, and whether you may write there"
        }
        Error::Io { source, .. } if source.kind() == io::ErrorKind::ReadOnlyFilesystem => {
            "opening a store writes to its folder: make it writable, or copy the store to a place that is"
        }
        Error::Corrupt { .. } => {
            "nothing was changed, and what is not damaged can be read: `sessionlog scan` tells all that is wrong, and \
             `sessionlog repair --dry-run` what can be done"
        }
        Error::NotClean { .. } => {
            "nothing was changed: `sessionlog scan` names them, and `sessionlog repair --dry-run` tells what can be done"
        }
        Error::Ended { session, at } => return Some(format!("sessionlog fork {session} --at {at}")),
        _ => return None,
    };
    Some(text.into())
}

/// Whether it is about a full disk, however deep: `Failed` keeps the failure that was first as its cause.
fn is_disk_full(error: &Error) -> bool {
    let mut next: Option<&(dyn StdError + 'static)> = Some(error);
    while let Some(cause) = next {
        let by_system = cause.downcast_ref::<io::Error>().map(io::Error::kind);
        if by_system == Some(io::ErrorKind::StorageFull) {
            return true;
        }
        next = cause.source();
    }
    matches!(error, Error::DiskFull { .. })
}

fn conflict(session: &sessionlog::SessionId, expected: sessionlog::Seq, actual: sessionlog::Seq) -> String {
    if expected < actual {
        format!("read what is there already with `sessionlog read {session} --from {expected}`")
    } else {
        format!("the next event of this session is given seq {actual}; `seq` may be left out")
    }
}

#[cfg(test)]
mod tests {
    use std::io;
    use std::sync::Arc;

    use sessionlog::{Error, SessionId};

    use super::{Failure, NO_STORE, REFUSED, USAGE, with_causes};

    fn told(failure: Failure) -> (u8, String, String) {
        match failure {
            Failure::Told { code, message, hint } => (code, message, hint.unwrap_or_default()),
            Failure::ClosedPipe => (0, String::new(), String::new()),
        }
    }

    /// Goal: the same error is 3 while the store is opened and 1 once it is open.
    #[test]
    fn the_code_depends_on_whether_the_store_was_open() {
        let denied = || Error::Io {
            action: "open",
            path: "/s".into(),
            source: io::Error::from(io::ErrorKind::PermissionDenied),
        };
        let (code, message, hint) = told(Failure::open(&denied()));
        assert_eq!((code, message.as_str()), (NO_STORE, "cannot open /s: permission denied"));
        assert!(hint.contains("who owns"));
        assert_eq!(told(denied().into()).0, REFUSED);
        assert_eq!(told(SessionId::new("").unwrap_err().into()).0, USAGE);
    }

    /// Goal: a full disk is told as one, also when it only is the cause of the failure.
    #[test]
    fn a_full_disk_is_recognised() {
        let full = || Error::Io {
            action: "flush",
            path: "/s".into(),
            source: io::Error::from(io::ErrorKind::StorageFull),
        };
        let failed = Error::Failed { cause: Arc::new(full()) };
        let needed = Error::DiskFull { path: "/s".into(), needed_bytes: 2, free_bytes: 1 };
        for error in [full(), failed, needed] {
            let (code, message, hint) = told(error.into());
            assert_eq!(code, REFUSED);
            assert!(message.contains("/s") && hint.contains("free some space"), "{message}; {hint}");
        }
    }

    /// Goal: an engine that does not open in time is not only to be tried again: there is a way out.
    #[test]
    fn an_engine_that_does_not_open_in_time_names_the_way_out() {
        let late = |action| Error::TimedOut { action, limit_ms: 60_000 };
        let (code, _, hint) = told(Failure::open(&late("opening the engine")));
        assert_eq!((code, hint.contains("salvage")), (NO_STORE, true), "{hint}");
        assert!(!told(late("a drain").into()).2.contains("salvage"));
    }

    /// Goal: every cause is told, and none twice.
    #[test]
    fn causes_are_told_once() {
        #[derive(Debug, thiserror::Error)]
        #[error("outer: inner")]
        struct Repeats(#[source] io::Error);
        assert_eq!(with_causes(&Repeats(io::Error::other("inner"))), "outer: inner");
        assert_eq!(with_causes(&Repeats(io::Error::other("deep"))), "outer: inner: deep");
    }

    /// Goal: no advice in this program is to delete something (H37).
    #[test]
    fn h37_no_hint_advises_to_delete() {
        let source = include_str!("exit.rs");
        let hints = source.split("fn hint(error").nth(1).and_then(|rest| rest.split("#[cfg(test)]").next());
        for word in ["delete", "remove", "rm "] {
            assert!(!hints.unwrap().contains(word), "a hint says `{word}`");
        }
    }
}
