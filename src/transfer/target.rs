//! Where the events of a file go: compared with a parent as long as they are the same, written where they are not.

use std::fmt;

use super::fault::{Fault, FaultKind};
use super::header::Header;
use super::import::{batch_fault, missing};
use crate::error::{Error, Result};
use crate::{Event, Events, HiddenSession, NewEvent, RunningHash, Seq, Session, SessionId, Store};

/// The most events, and the most bytes of lines, of one batch.
const BATCH_EVENTS: usize = 8_192;
const BATCH_BYTES: usize = 1 << 20;

/// What becomes of events.
pub(super) enum Target {
    /// They are only looked at.
    Nothing,
    /// They are, so far, those of the parent.
    Shared(Box<Shared>),
    /// They are stored.
    Hidden(Box<Writing>),
}

impl fmt::Debug for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Nothing => "Nothing",
            Self::Shared(_) => "Shared",
            Self::Hidden(_) => "Hidden",
        })
    }
}

pub(super) struct Shared {
    id: SessionId,
    parent: Session,
    prefix_len: u64,
    events: Events,
    same: u64,
    line: Vec<u8>,
    dry_run: bool,
}

pub(super) struct Writing {
    /// `None` in a dry run.
    hidden: Option<HiddenSession>,
    shared: u64,
    batch: Vec<NewEvent>,
    lines: Vec<u64>,
    bytes: usize,
}

impl Target {
    /// For a file that begins with seq 0.
    pub(super) fn new(store: &Store, id: SessionId, header: &Header, dry_run: bool) -> Result<Self> {
        if let Some((parent, prefix_len)) = header.fork()
            && let Some(parent) = present(store, &parent)?
            && prefix_len <= parent.len()
        {
            let events = parent.read_range(Seq::ZERO..Seq::new(prefix_len))?;
            let shared = Shared { id, parent, prefix_len, events, same: 0, line: Vec::new(), dry_run };
            return if prefix_len == 0 {
                shared.fork(store, header)
            } else {
                Ok(Self::Shared(Box::new(shared)))
            };
        }
        Self::own(store, &id, header, dry_run)
    }

    /// For a file that begins behind its parent's events: with the running hash there, or what is wrong.
    pub(super) fn behind_parent(
        store: &Store,
        id: SessionId,
        header: &Header,
        dry_run: bool,
    ) -> Result<Result<(Self, RunningHash), Fault>> {
        let fault = |field, kind| Ok(Err(Fault::new(0, kind).field(field)));
        if header.hash.is_none() {
            return fault("hash", missing());
        }
        let Some((parent, prefix_len)) = header.fork() else { return fault("parent", missing()) };
        if prefix_len != header.first_seq {
            let reason = "a file that begins behind 0 begins behind the prefix";
            return fault("firstSeq", FaultKind::Parent { reason });
        }
        let Some(parent) = present(store, &parent)? else {
            let reason = "the session that holds the first events is not here: import it first";
            return fault("parent", FaultKind::Parent { reason });
        };
        if parent.len() < prefix_len {
            let reason = "the session of this id has fewer events here";
            return fault("parent", FaultKind::Parent { reason });
        }
        let hash = parent.running_hash(Seq::new(prefix_len))?;
        let hidden = match dry_run {
            true => None,
            false => {
                Some(store.fork_hidden(parent.id(), Seq::new(prefix_len), header.new_session(&id, false))?)
            }
        };
        Ok(Ok((Writing::target(hidden, 0), hash)))
    }

    /// A session that shares nothing.
    fn own(store: &Store, id: &SessionId, header: &Header, dry_run: bool) -> Result<Self> {
        let hidden = match dry_run {
            true => None,
            false => Some(store.create_hidden(header.new_session(id, true))?),
        };
        Ok(Writing::target(hidden, 0))
    }

    /// Takes an event, whose line in the usual form is `json`, from the file's line `number`.
    pub(super) fn event(
        &mut self,
        store: &Store,
        header: Option<&Header>,
        event: Event,
        json: &[u8],
        number: u64,
    ) -> Result<Result<(), Fault>> {
        let Some(header) = header else { return Ok(Ok(())) };
        if let Self::Shared(shared) = self {
            if shared.is_same(json)? {
                if shared.same == shared.prefix_len {
                    *self = shared.fork(store, header)?;
                }
                return Ok(Ok(()));
            }
            *self = shared.copy(store, header)?;
        }
        match self {
            Self::Hidden(writing) => writing.event(event, json.len(), number),
            _ => Ok(Ok(())),
        }
    }

    /// Lets everybody see the session. Returns its id, if there is one, and how many of the file's events it shares.
    pub(super) fn publish(
        self,
        store: &Store,
        header: &Header,
    ) -> Result<Result<(Option<SessionId>, u64), Fault>> {
        let mut writing = match self {
            Self::Nothing => return Ok(Ok((None, 0))),
            // It ends within its parent.
            Self::Shared(shared) => match shared.copy(store, header)? {
                Self::Hidden(writing) => writing,
                _ => return Ok(Ok((None, 0))),
            },
            Self::Hidden(writing) => writing,
        };
        if let Err(fault) = writing.append()? {
            return Ok(Err(fault));
        }
        let Some(hidden) = writing.hidden else { return Ok(Ok((None, writing.shared))) };
        let session = hidden.publish(header.label_change())?;
        Ok(Ok((Some(session.id().clone()), writing.shared)))
    }
}

impl Shared {
    fn is_same(&mut self, json: &[u8]) -> Result<bool> {
        let Some(event) = self.events.next().transpose()? else { return Ok(false) };
        self.line.clear();
        event.write_json(&mut self.line);
        let same = self.line == json;
        self.same += u64::from(same);
        Ok(same)
    }

    /// The prefix is the parent's: it is shared.
    fn fork(&self, store: &Store, header: &Header) -> Result<Target> {
        let hidden = match self.dry_run {
            true => None,
            false => {
                let at = Seq::new(self.prefix_len);
                Some(store.fork_hidden(self.parent.id(), at, header.new_session(&self.id, false))?)
            }
        };
        Ok(Writing::target(hidden, self.prefix_len))
    }

    /// It is not: what was the same up to here is written, too.
    fn copy(&self, store: &Store, header: &Header) -> Result<Target> {
        let mut target = Target::own(store, &self.id, header, self.dry_run)?;
        if let Target::Hidden(writing) = &mut target {
            let mut line = Vec::new();
            for event in self.parent.read_range(Seq::ZERO..Seq::new(self.same))? {
                let event = event?;
                line.clear();
                event.write_json(&mut line);
                // They were events of a session here: nothing is wrong with them.
                let _ = writing.event(event, line.len(), 0)?;
            }
        }
        Ok(target)
    }
}

impl Writing {
    /// `shared`: how many of the file's events are the parent's.
    fn target(hidden: Option<HiddenSession>, shared: u64) -> Target {
        let (batch, lines) = (Vec::new(), Vec::new());
        Target::Hidden(Box::new(Self { hidden, shared, batch, lines, bytes: 0 }))
    }

    fn event(&mut self, event: Event, bytes: usize, number: u64) -> Result<Result<(), Fault>> {
        if self.hidden.is_none() {
            return Ok(Ok(()));
        }
        self.batch.push(event.into());
        self.lines.push(number);
        self.bytes += bytes;
        match self.batch.len() >= BATCH_EVENTS || self.bytes >= BATCH_BYTES {
            true => self.append(),
            false => Ok(Ok(())),
        }
    }

    fn append(&mut self) -> Result<Result<(), Fault>> {
        let Some(hidden) = self.hidden.as_ref().filter(|_| !self.batch.is_empty()) else { return Ok(Ok(())) };
        let appended = hidden.append_batch(self.batch.drain(..));
        self.bytes = 0;
        let lines = std::mem::take(&mut self.lines);
        match appended {
            Ok(_) => Ok(Ok(())),
            Err(error) => batch_fault(&error, &lines).map_or(Err(error), |fault| Ok(Err(fault))),
        }
    }
}

/// The session of this id, if there is one.
pub(super) fn present(store: &Store, id: &SessionId) -> Result<Option<Session>> {
    match store.session(id) {
        Ok(session) => Ok(Some(session)),
        Err(Error::SessionNotFound { .. }) => Ok(None),
        Err(error) => Err(error),
    }
}
