//! What a longer file adds to a session that is here.

use std::io::{BufReader, Read};

use super::fault::{Fault, FaultKind, Faults};
use super::header::Header;
use super::import::{batch_fault, import_error, missing};
use super::lines::Lines;
use super::options::{ImportOptions, ImportReport};
use crate::error::{Error, Result};
use crate::{Append, Event, NewEvent, RunningHash, Seq, Session, SessionId};

/// The most events, and the most bytes of lines, of one batch.
const BATCH_EVENTS: usize = 8_192;
const BATCH_BYTES: usize = 1 << 20;

/// The file's header, when something can be read as one.
pub(super) fn header(input: impl Read) -> Result<Option<Header>> {
    let mut lines = Lines::new(BufReader::new(input));
    let io = |source| Error::Io { action: "read", path: "the file to import".into(), source };
    while let Some(line) = lines.next().map_err(io)? {
        if !line.is_blank() {
            return Ok(Header::read(&line, &mut Faults::default()));
        }
    }
    Ok(None)
}

/// Appends to `session` what the file says beyond it. `open` gives the file from its beginning: it is read twice, so
/// that nothing is appended from one that turns out to be wrong.
pub(super) fn update<R: Read>(
    session: &Session,
    header: &Header,
    options: &ImportOptions,
    mut open: impl FnMut() -> Result<R>,
    watch: &mut dyn FnMut(u64),
) -> Result<ImportReport> {
    let here = session.len();
    let mut check = Check::new(session, header, here)?;
    check.read(open()?, watch)?;
    let (events, other_session_ids) = (check.next, check.other_session_ids);
    if check.faults.total > 0 {
        return Err(import_error(check.faults));
    }
    if !options.dry_run && events > here {
        append(session, header, here, open()?)?;
    }
    Ok(ImportReport {
        session: session.id().clone(),
        existed: true,
        appended: events.saturating_sub(here),
        shared: 0,
        other_session_ids,
        faults: Vec::new(),
        total_faults: 0,
        rest_lines: 0,
    })
}

/// The first reading.
struct Check<'a> {
    header: &'a Header,
    here: u64,
    stored: crate::Events,
    hash: RunningHash,
    next: u64,
    faults: Faults,
    id: &'a SessionId,
    other_session_ids: u64,
}

impl<'a> Check<'a> {
    fn new(session: &'a Session, header: &'a Header, here: u64) -> Result<Self> {
        let first = header.first_seq;
        let mut faults = Faults::default();
        if first > here {
            faults.add(Fault::new(1, FaultKind::Shorter { here }).field("firstSeq"));
        } else if first > 0 && header.hash.is_none() {
            faults.add(Fault::new(1, missing()).field("hash"));
        }
        let from = Seq::new(first.min(here));
        Ok(Self {
            header,
            here,
            stored: session.read_range(from..Seq::new(here))?,
            hash: session.running_hash(from)?,
            next: first,
            faults,
            id: &header.id,
            other_session_ids: 0,
        })
    }

    fn read(&mut self, input: impl Read, watch: &mut dyn FnMut(u64)) -> Result<()> {
        let mut lines = Lines::new(BufReader::with_capacity(256 << 10, input));
        let io = |source| Error::Io { action: "read", path: "the file to import".into(), source };
        let (mut begun, mut number) = (false, 0);
        let (mut stored, mut given) = (Vec::new(), Vec::new());
        loop {
            watch(lines.bytes);
            let Some(line) = lines.next().map_err(io)? else { break };
            number = line.number;
            if line.is_blank() || !std::mem::replace(&mut begun, true) {
                continue;
            }
            let event = match Event::from_json(line.text) {
                Ok(event) => event,
                Err(error) => {
                    self.faults.add(Fault::in_line(line.number, line.offset, error));
                    break;
                }
            };
            let found = event.seq.get();
            if found != self.next {
                let expected = self.next;
                let kind = match found < expected {
                    true => FaultKind::SeqRepeated { expected, found },
                    false => FaultKind::SeqMissing { expected, found },
                };
                self.faults.add(Fault::new(line.number, kind).field("seq"));
                break;
            }
            given.clear();
            event.write_json(&mut given);
            if found < self.here {
                stored.clear();
                if let Some(event) = self.stored.next().transpose()? {
                    event.write_json(&mut stored);
                }
                if stored != given {
                    self.faults.add(Fault::new(line.number, FaultKind::Differs { seq: found }));
                    break;
                }
            }
            let id = event.extra.iter().find(|(name, _)| name.spelling() == "sessionId");
            if id.is_some_and(|(_, id)| id.to_str().is_none_or(|id| id != self.id.as_str())) {
                self.other_session_ids += 1;
            }
            self.hash = self.hash.next_line(&given);
            self.next += 1;
        }
        if self.faults.total == 0 {
            self.finish(number);
        }
        Ok(())
    }

    fn finish(&mut self, line: u64) {
        let found = self.next;
        if let Some(expected) = self.header.len.filter(|expected| *expected != found) {
            self.faults.add(Fault::new(line, FaultKind::Length { expected, found }).field("length"));
        } else if self.header.hash.is_some_and(|hash| hash != self.hash) {
            self.faults.add(Fault::new(line, FaultKind::Hash).field("hash"));
        } else if found < self.here {
            self.faults.add(Fault::new(line, FaultKind::Shorter { here: self.here }));
        }
    }
}

/// The second reading: what is behind seq `from`.
fn append(session: &Session, header: &Header, from: u64, input: impl Read) -> Result<()> {
    let mut lines = Lines::new(BufReader::with_capacity(256 << 10, input));
    let io = |source| Error::Io { action: "read", path: "the file to import".into(), source };
    let mut begun = false;
    let mut batch = Batch { session, next: from, events: Vec::new(), lines: Vec::new(), bytes: 0 };
    let mut seq = header.first_seq;
    while let Some(line) = lines.next().map_err(io)? {
        if line.is_blank() || !std::mem::replace(&mut begun, true) {
            continue;
        }
        if seq >= from {
            let refused = |fault| Error::Import { faults: vec![fault], total: 1 };
            let event = Event::from_json(line.text)
                .map_err(|error| refused(Fault::in_line(line.number, line.offset, error)))?;
            batch.push(event, line.text.len(), line.number)?;
        }
        seq += 1;
    }
    batch.append(true)
}

struct Batch<'a> {
    session: &'a Session,
    next: u64,
    events: Vec<NewEvent>,
    lines: Vec<u64>,
    bytes: usize,
}

impl Batch<'_> {
    fn push(&mut self, event: Event, bytes: usize, line: u64) -> Result<()> {
        self.events.push(event.into());
        self.lines.push(line);
        self.bytes += bytes;
        if self.events.len() >= BATCH_EVENTS || self.bytes >= BATCH_BYTES {
            self.append(false)?;
        }
        Ok(())
    }

    /// `last`: durable when it returns, and all before it.
    fn append(&mut self, last: bool) -> Result<()> {
        let how = Append::new().recorded().expect(Seq::new(self.next));
        let how = if last { how.sync() } else { how.buffered() };
        match self.session.append_with(how, self.events.drain(..)) {
            Ok(seqs) => self.next = seqs.end.get(),
            Err(error) => {
                let fault = batch_fault(&error, &self.lines);
                return Err(fault.map_or(error, |fault| Error::Import { faults: vec![fault], total: 1 }));
            }
        }
        self.lines.clear();
        self.bytes = 0;
        Ok(())
    }
}
