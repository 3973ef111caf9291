//! Files to sessions: one pass, all or nothing, bounded memory.

use std::fmt;
use std::io::{self, BufRead, BufReader, Read, Write};

use super::fault::{Fault, FaultKind, Faults};
use super::header::{Header, is_header};
use super::lines::{Line, Lines};
use super::options::{ImportOptions, ImportReport};
use super::target::Target;
use crate::error::{Error, Result};
use crate::{Event, EventFault, JsonMember, RunningHash, Store};

/// How much is read at once.
const BUFFER_BYTES: usize = 256 << 10;

/// Imports one session from native JSON Lines; see [the module](super) for the form.
///
/// Reads once and from the front to the end, and stores as it reads: nobody sees the session before all of it is
/// stored. Of a crash nothing remains but what the next open removes.
///
/// A file whose events begin at 0 makes a session of its own. Where the parent that it names is here, and has the same
/// events up to the prefix, these are shared again; else the parent is only noted. A file that begins later needs its
/// parent, whose running hash at the prefix has to lead to the header's `hash`.
///
/// A byte order mark, CRLF, blank lines and a missing last newline are fine.
///
/// # Durability
/// The session survives `kill -9` and a power cut when this returns.
/// # Cost
/// Some MiB of memory and the store's tail, whatever the file's length.
/// # Errors
/// [`Error::Import`]: the file, with all its faults. [`Error::SessionExists`]: it is not read further. Others as
/// [`Session::append_batch`](crate::Session::append_batch). In all cases nothing is stored; after [`Error::Failed`]
/// that is known when the store was opened again.
/// # Examples
/// See [the module](super).
pub fn import(store: &Store, input: impl Read, options: &ImportOptions) -> Result<ImportReport> {
    let mut none = io::sink();
    import_with(store, input, options, &mut none, &mut |_| {})
}

/// The same, with a place for what a salvage leaves out, and word of each line's end in bytes.
pub(super) fn import_with(
    store: &Store,
    input: impl Read,
    options: &ImportOptions,
    rest: &mut dyn Write,
    watch: &mut dyn FnMut(u64),
) -> Result<ImportReport> {
    let lines = Lines::new(BufReader::with_capacity(BUFFER_BYTES, input));
    let mut importer = Importer::new(store, options, rest);
    importer.read(lines, watch)?;
    importer.finish()
}

/// One file on its way.
pub(super) struct Importer<'a> {
    store: &'a Store,
    options: &'a ImportOptions,
    rest: &'a mut dyn Write,
    faults: Faults,
    header: Option<Header>,
    begun: bool,
    target: Target,
    /// The seq that is next; `None` when the first one is not known.
    next: Option<u64>,
    /// Lines that could not be read since the last event.
    unread: u64,
    /// Set when a salvage met the first seq that is missing.
    cut: bool,
    hash: Option<RunningHash>,
    line: Vec<u8>,
    last_line: u64,
    events: u64,
    other_session_ids: u64,
    rest_lines: u64,
}

impl fmt::Debug for Importer<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Importer")
            .field("header", &self.header)
            .field("next", &self.next)
            .finish_non_exhaustive()
    }
}

impl<'a> Importer<'a> {
    fn new(store: &'a Store, options: &'a ImportOptions, rest: &'a mut dyn Write) -> Self {
        Self {
            store,
            options,
            rest,
            faults: Faults::default(),
            header: None,
            begun: false,
            target: Target::Nothing,
            next: None,
            unread: 0,
            cut: false,
            hash: None,
            line: Vec::new(),
            last_line: 0,
            events: 0,
            other_session_ids: 0,
            rest_lines: 0,
        }
    }

    fn read(&mut self, mut lines: Lines<impl BufRead>, watch: &mut dyn FnMut(u64)) -> Result<()> {
        let io = |source| Error::Io { action: "read", path: "the file to import".into(), source };
        loop {
            watch(lines.bytes);
            let Some(line) = lines.next().map_err(io)? else { return Ok(()) };
            self.last_line = line.number;
            let too_long = line.too_long;
            self.take(&line)?;
            if too_long {
                let mut none = io::sink();
                let sink: &mut dyn Write = if self.options.salvage { &mut *self.rest } else { &mut none };
                lines.pass_over(sink).map_err(io)?;
            }
        }
    }

    fn take(&mut self, line: &Line<'_>) -> Result<()> {
        let nul = line.text.iter().position(|byte| *byte == 0);
        if line.too_long {
            let kind = FaultKind::TooLong { max_bytes: crate::MAX_EVENT_BYTES };
            return self.unreadable(line, Fault::new(line.number, kind));
        }
        if line.is_blank() {
            return Ok(());
        }
        if !std::mem::replace(&mut self.begun, true) {
            self.header = Header::read(line, &mut self.faults);
            let is_one = self.header.is_some() || is_header(line.text);
            if let Some(header) = self.header.clone() {
                self.begin(&header, line)?;
            }
            // What is no object is told of already.
            if is_one || JsonMember::parse_object(line.text).is_err() {
                return Ok(());
            }
        }
        if let Some(at) = nul {
            let count = line.text.iter().filter(|byte| **byte == 0).count();
            let fault = Fault::new(line.number, FaultKind::Nul { count }).at(line.offset + at + 1);
            return self.unreadable(line, fault);
        }
        match Event::from_json(line.text) {
            Ok(event) => self.event(event, line),
            Err(error) => {
                let is_type = error.field.as_deref() == Some("type");
                let column = error.column;
                let mut fault = Fault::in_line(line.number, line.offset, error);
                if (is_type || fault.field.as_deref() == Some("seq")) && is_header(line.text) {
                    fault = Fault { column, field: None, ..Fault::new(line.number, FaultKind::SecondHeader) };
                }
                self.unreadable(line, fault)
            }
        }
    }

    /// Finds out what the file makes.
    fn begin(&mut self, header: &Header, line: &Line<'_>) -> Result<()> {
        let id = self.options.id.as_ref().unwrap_or(&header.id).clone();
        self.next = Some(header.first_seq);
        let found = match self.store.session(&id) {
            Ok(session) => Some(session),
            Err(Error::SessionNotFound { .. }) => None,
            Err(error) => return Err(error),
        };
        if found.is_some() {
            // An update of one that is here goes another way.
            return Err(Error::SessionExists { session: id });
        }
        if header.first_seq == 0 {
            self.hash = header.hash.map(|_| RunningHash::START);
            self.target = Target::new(self.store, id, header, self.options.dry_run)?;
            return Ok(());
        }
        match Target::behind_parent(self.store, id, header, self.options.dry_run)? {
            Ok((target, hash)) => {
                self.target = target;
                self.hash = Some(hash);
            }
            Err(fault) => self.fault(Fault { line: line.number, ..fault }),
        }
        Ok(())
    }

    fn event(&mut self, event: Event, line: &Line<'_>) -> Result<()> {
        let seq = event.seq.get();
        let expected = self.next.unwrap_or(seq);
        if seq < expected {
            let fault = Fault::new(line.number, FaultKind::SeqRepeated { expected, found: seq });
            return self.unreadable_seq(line, fault.field("seq"));
        }
        if self.cut {
            return self.put_aside(line);
        }
        let unread = std::mem::take(&mut self.unread);
        if seq > expected {
            // Lines that could not be read are told of already.
            if seq > expected.saturating_add(unread) {
                let kind = FaultKind::SeqMissing { expected, found: seq };
                self.fault(Fault::new(line.number, kind).field("seq"));
            }
            if self.options.salvage {
                self.cut = true;
                return self.put_aside(line);
            }
        }
        self.next = Some(seq.saturating_add(1));
        if self.refused() {
            return Ok(());
        }
        self.note_session_id(&event);
        self.line.clear();
        event.write_json(&mut self.line);
        self.hash = self.hash.map(|hash| hash.next_line(&self.line));
        self.events += 1;
        let header = self.header.as_ref();
        let taken = self.target.event(self.store, header, event, &self.line, line.number)?;
        if let Err(fault) = taken {
            self.fault(fault);
        }
        Ok(())
    }

    /// Whether nothing of the file will be stored: then it is only read on for its other faults.
    fn refused(&self) -> bool {
        self.header.is_none() || self.faults.total > 0 && !self.options.salvage
    }

    fn note_session_id(&mut self, event: &Event) {
        let Some(header) = self.header.as_ref().filter(|_| !event.extra.is_empty()) else { return };
        let id = event.extra.iter().find(|(name, _)| name.spelling() == "sessionId");
        if id.is_some_and(|(_, id)| id.to_str().is_none_or(|id| id != header.id.as_str())) {
            self.other_session_ids += 1;
        }
    }

    fn fault(&mut self, fault: Fault) {
        self.faults.add(fault);
        if !self.options.salvage {
            // What was stored goes at once.
            self.target = Target::Nothing;
        }
    }

    fn unreadable(&mut self, line: &Line<'_>, fault: Fault) -> Result<()> {
        self.unread += 1;
        self.unreadable_seq(line, fault)
    }

    fn unreadable_seq(&mut self, line: &Line<'_>, fault: Fault) -> Result<()> {
        self.fault(fault);
        self.put_aside(line)
    }

    /// Hands a line that a salvage does not keep to the rest.
    fn put_aside(&mut self, line: &Line<'_>) -> Result<()> {
        if self.options.salvage {
            self.rest_lines += 1;
            let io = |source| Error::Io { action: "write", path: "the rest of the file".into(), source };
            self.rest.write_all(line.raw).map_err(io)?;
        }
        Ok(())
    }

    fn finish(mut self) -> Result<ImportReport> {
        let line = self.last_line.max(1);
        if !self.begun {
            self.faults.add(Fault::new(line, FaultKind::NoHeader).at(1));
        }
        if let Some(header) = self.header.clone() {
            let found = self.next.unwrap_or(header.first_seq);
            // Behind a line that could not be read nothing is known.
            let known = self.faults.total == 0 || self.options.salvage;
            if let Some(expected) = header.len.filter(|expected| *expected != found && known) {
                self.fault(Fault::new(line, FaultKind::Length { expected, found }).field("length"));
            } else if self.faults.total == 0 && header.hash.is_some() && self.hash != header.hash {
                self.fault(Fault::new(line, FaultKind::Hash).field("hash"));
            }
        }
        let header = match self.header.take() {
            Some(header) if self.faults.total == 0 || self.options.salvage => header,
            _ => return Err(import_error(self.faults)),
        };
        let published = self.target.publish(self.store, &header)?;
        let (session, shared) = match published {
            Ok(published) => published,
            Err(fault) => {
                self.faults.add(fault);
                return Err(import_error(self.faults));
            }
        };
        Ok(ImportReport {
            session: session.unwrap_or_else(|| self.options.id.clone().unwrap_or(header.id)),
            existed: false,
            appended: self.events - shared,
            shared: shared + header.first_seq,
            other_session_ids: self.other_session_ids,
            faults: self.faults.listed,
            total_faults: self.faults.total,
            rest_lines: self.rest_lines,
        })
    }
}

pub(super) fn import_error(faults: Faults) -> Error {
    Error::Import { faults: faults.listed, total: faults.total }
}

/// The fault of a batch's event, when its refusal is one of the file.
pub(super) fn batch_fault(error: &Error, lines: &[u64]) -> Option<Fault> {
    let (index, kind) = match error {
        Error::EventTooLarge { index, max_bytes, .. } => {
            (index, FaultKind::TooLong { max_bytes: *max_bytes })
        }
        Error::InvalidEvent { index, source } => (index, FaultKind::Line(source.fault.clone())),
        _ => return None,
    };
    Some(Fault::new(*lines.get(*index)?, kind))
}

/// A missing field, for those that only headers of some files need.
pub(super) fn missing() -> FaultKind {
    FaultKind::Line(EventFault::MissingField)
}
