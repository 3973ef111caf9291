//! What the model sees: the messages of the next request, folded from a session's events.
//!
//! A fold: the same events give the same messages, on any machine, at any time. It knows no storage, no format, no
//! clock. Chunks and custom events never matter to it.

mod content;
mod entry;
mod fold;
mod message;
mod open;
mod origin;
mod render;
mod replace;
mod report;
mod snapshot;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::fmt;

pub use message::{FunctionCall, Message, ToolCall};
pub use replace::ReplaceFault;
pub use report::{Mend, Report, SurfaceFault};
pub use snapshot::{SnapshotFault, SurfaceSnapshot};

use crate::id::Seq;
use entry::Entries;
use open::OpenCalls;
use origin::Replaced;
use render::Rendered;

/// What a tool message says that stands in for a result that the log does not have.
pub const MISSING_RESULT: &str = "TOOL_RESULT_MISSING: no result of this call was recorded. It may have run, in part or \
as a whole. Do not repeat it unless it is read-only or idempotent.";

/// The messages of a session, kept up to date event by event.
///
/// Whatever the log holds, [`messages`](Self::messages) can be sent: calls stand in assistant messages, their results
/// right behind them, each call has one, ids are unique among those that are open. [`report`](Self::report) tells what
/// had to be added or left out for that.
///
/// It holds what stands on the surface, not what was replaced. [`Session::surface`](crate::Session::surface) makes the
/// one of a session, and [`Session::advance`](crate::Session::advance) brings it up to date.
///
/// ```
/// # fn main() -> sessionlog::Result<()> {
/// use sessionlog::{NewEvent, NewSession, Seq, Store};
/// let store = Store::in_memory()?;
/// let session = store.create(NewSession::new())?;
/// session.append(NewEvent::user_message("hello"))?;
/// let mut surface = session.surface()?;
/// assert_eq!(surface.messages().len(), 1);
/// let generation = surface.generation();
///
/// session.append(NewEvent::assistant_message("Hello!"))?;
/// session.advance(&mut surface)?; // reads one event
/// assert_eq!(surface.messages().len(), 2);
/// assert_eq!(surface.generation(), generation); // the first message is what it was
///
/// session.append(NewEvent::user_message("(they greeted)").replace(Seq::new(0), Seq::new(1)))?;
/// session.advance(&mut surface)?;
/// assert_eq!(surface.messages().len(), 1);
/// assert_ne!(surface.generation(), generation);
/// # Ok(()) }
/// ```
#[derive(Clone)]
pub struct Surface {
    options: SurfaceOptions,
    /// The seq behind the last event that was folded.
    next: u64,
    /// Whether a turn or step began or ended since the last entry was put there.
    breaks: bool,
    entries: Entries,
    open: OpenCalls,
    /// Results that answer no open call.
    left_out: usize,
    /// Replaces that were taken as appends, by seq.
    bad_replaces: BTreeMap<u64, ReplaceFault>,
    /// What replaced what, in the order in which it happened.
    replaced: Vec<Replaced>,
    rendered: Rendered,
    bytes: usize,
}

/// How messages are made.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct SurfaceOptions {
    /// Whether a result is given as JSON text also when it is a string or text parts. An error is not.
    pub results_as_json: bool,
}

impl SurfaceOptions {
    /// The defaults.
    pub fn new() -> Self {
        Self::default()
    }

    /// Whether a result is given as JSON text also when it is a string or text parts. Default: no.
    #[must_use]
    pub fn results_as_json(mut self, as_json: bool) -> Self {
        self.results_as_json = as_json;
        self
    }
}

impl Default for Surface {
    fn default() -> Self {
        Self::new(SurfaceOptions::new())
    }
}

/// The same messages and the same future: not the same history of calls to [`Surface::messages`].
impl PartialEq for Surface {
    fn eq(&self, other: &Self) -> bool {
        (self.options, self.next, self.breaks) == (other.options, other.next, other.breaks)
            && (&self.bad_replaces, &self.replaced) == (&other.bad_replaces, &other.replaced)
            && self.entries.iter().eq(other.entries.iter())
    }
}

impl fmt::Debug for Surface {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Surface")
            .field("options", &self.options)
            .field("next_seq", &self.next)
            .field("open_calls", &self.open.len())
            .field("replaces", &self.replaced.len())
            .finish_non_exhaustive()
    }
}

impl Surface {
    /// The surface before the first event.
    pub fn new(options: SurfaceOptions) -> Self {
        Self {
            options,
            next: 0,
            breaks: false,
            entries: Entries::default(),
            open: OpenCalls::default(),
            left_out: 0,
            bad_replaces: BTreeMap::new(),
            replaced: Vec::new(),
            rendered: Rendered::default(),
            bytes: 0,
        }
    }

    /// Returns the seq of the event that it waits for: all before it are folded.
    pub fn next_seq(&self) -> Seq {
        Seq::new(self.next)
    }

    pub(crate) fn options(&self) -> SurfaceOptions {
        self.options
    }

    /// Says that what lies before `next` and was not pushed does not matter: chunks that were not read.
    pub(crate) fn pass_to(&mut self, next: u64) {
        self.next = self.next.max(next);
    }

    /// The memory that what stands takes, about.
    pub(crate) fn bytes(&self) -> usize {
        self.bytes
    }
}
