//! Blocks unpacked on a second thread while the first reads further ones and decodes: for long reads and folds.
//!
//! Unpacking is a good third of such a read. The second thread allocates next to nothing: it fills buffers that go back
//! and forth. (Threads that decoded, too, took longer than one: what they allocate is slow to get and to give back.)

use std::collections::VecDeque;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::JoinHandle;

use crate::error::{Error, Result};
use crate::format::{self, BlockHeader, Scratch, Sections, Unpacked};
use crate::storage::{Entries, Entry};

/// A scan that has given so many entries is a long one. What is read ahead is lost when a large event ends the scan:
/// where these stand close together, nothing is.
const LONG: usize = 16;
/// Blocks that go to the thread at once: handing over costs some µs.
const BATCH: usize = 16;
/// Batches under way.
const AHEAD: usize = 6;

/// An entry of the map of blocks.
#[derive(Debug)]
pub(super) struct Piece {
    pub(super) entry: Entry,
    /// What the block says of itself, when its sections are unpacked.
    pub(super) header: Option<BlockHeader>,
    pub(super) sections: Unpacked,
}

impl Piece {
    /// An entry as it was read.
    pub(super) fn packed(entry: Entry) -> Self {
        Self { entry, header: None, sections: Unpacked::default() }
    }
}

/// Takes the entries of a scan, some of them ahead of who wants them.
#[derive(Debug)]
pub(super) struct Unpacker {
    /// What of each block is wanted.
    which: Sections,
    /// Entries that the scan gave.
    given: usize,
    thread: Option<Thread>,
    /// No thread could be had: everything goes on without.
    alone: bool,
    under_way: usize,
    ready: VecDeque<Piece>,
    /// How the scan ended, behind what is under way.
    end: Option<Result<()>>,
    spare: Vec<Unpacked>,
}

#[derive(Debug)]
struct Thread {
    jobs: Option<Sender<Vec<Piece>>>,
    done: Receiver<Vec<Piece>>,
    handle: Option<JoinHandle<()>>,
}

impl Unpacker {
    pub(super) fn new(which: Sections) -> Self {
        Self {
            which,
            given: 0,
            thread: None,
            alone: false,
            under_way: 0,
            ready: VecDeque::new(),
            end: None,
            spare: Vec::new(),
        }
    }

    /// The next entry of `scan`.
    pub(super) fn next(&mut self, scan: &mut Entries) -> Result<Option<Piece>> {
        if self.given >= LONG && self.thread.is_none() && !self.alone {
            self.thread = Thread::start(self.which).ok();
            self.alone = self.thread.is_none();
        }
        let Some(thread) = self.thread.as_mut().filter(|_| self.given >= LONG) else {
            self.given += 1;
            return Ok(scan.next().transpose()?.map(Piece::packed));
        };
        while self.ready.is_empty() {
            while self.end.is_none() && self.under_way < AHEAD {
                let mut batch = Vec::with_capacity(BATCH);
                while batch.len() < BATCH && self.end.is_none() {
                    match scan.next() {
                        Some(Ok(entry)) => {
                            let sections = self.spare.pop().unwrap_or_default();
                            batch.push(Piece { entry, header: None, sections });
                        }
                        Some(Err(error)) => self.end = Some(Err(error)),
                        None => self.end = Some(Ok(())),
                    }
                }
                if !batch.is_empty() {
                    thread.send(batch)?;
                    self.under_way += 1;
                }
            }
            if self.under_way == 0 {
                return self.end.take().unwrap_or(Ok(())).map(|()| None);
            }
            self.ready.extend(thread.receive()?);
            self.under_way -= 1;
        }
        Ok(self.ready.pop_front())
    }

    /// Takes the buffers of a piece back.
    pub(super) fn give_back(&mut self, sections: Unpacked) {
        if self.thread.is_some() && self.spare.len() < AHEAD * BATCH {
            self.spare.push(sections);
        }
    }

    /// Forgets a scan that goes no further.
    pub(super) fn reset(&mut self) {
        while self.under_way > 0 && self.thread.as_mut().is_some_and(|thread| thread.receive().is_ok()) {
            self.under_way -= 1;
        }
        self.ready.clear();
        (self.given, self.under_way, self.end) = (0, 0, None);
    }
}

impl Thread {
    fn start(which: Sections) -> Result<Self> {
        let (jobs, taken) = channel::<Vec<Piece>>();
        let (give, done) = channel();
        let unpack = move || {
            let mut scratch = Scratch::default();
            for mut batch in taken {
                for piece in &mut batch {
                    piece.header = unpacked(&piece.entry, which, &mut scratch, &mut piece.sections);
                }
                if give.send(batch).is_err() {
                    return;
                }
            }
        };
        let handle = super::spawn("sessionlog-unpack", unpack)?;
        Ok(Self { jobs: Some(jobs), done, handle: Some(handle) })
    }

    fn send(&self, batch: Vec<Piece>) -> Result<()> {
        self.jobs.as_ref().and_then(|jobs| jobs.send(batch).ok()).ok_or_else(panicked)
    }

    fn receive(&self) -> Result<Vec<Piece>> {
        self.done.recv().map_err(|_| panicked())
    }
}

impl Drop for Thread {
    fn drop(&mut self) {
        self.jobs = None;
        if let Some(handle) = self.handle.take() {
            let _ = handle.join();
        }
    }
}

/// Unpacks what is wanted of a block. `None` for all else, and for what is damaged: who decodes it finds out.
fn unpacked(
    (found, value): &Entry,
    which: Sections,
    scratch: &mut Scratch,
    sections: &mut Unpacked,
) -> Option<BlockHeader> {
    let at = format::parse_event_key(found).filter(|at| at.part.is_none())?;
    format::open_block(at.key, at.seq, value).ok()?.unpack(scratch, which, sections)
}

fn panicked() -> Error {
    Error::Storage("unpacking panicked".into())
}
