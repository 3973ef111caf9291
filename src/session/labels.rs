//! Title and labels of a session.

use std::sync::Arc;

use super::Session;
use crate::error::Result;
use crate::labels::{LabelChange, Labels};
use crate::log::commit::{Request, Work};

impl Session {
    /// Returns the session's title and labels.
    ///
    /// # Cost
    /// They are in memory.
    pub fn labels(&self) -> Labels {
        self.state.lock().labels.now.as_ref().clone()
    }

    /// Returns the session's title.
    pub fn title(&self) -> Option<String> {
        self.state.lock().labels.now.title.clone()
    }

    /// Changes the session's title and labels, and returns what they are then.
    ///
    /// They are no events: the session's history does not show them, a fork does not get them, and the time of the
    /// last update stays. Changes by several handles or threads are made one behind the other, and none is lost.
    ///
    /// # Durability
    /// Survives `kill -9` and a power cut when it returns.
    /// # Cost
    /// One journal frame and a share of one sync.
    /// # Errors
    /// Nothing was written: [`Error::BadLabel`](crate::Error::BadLabel),
    /// [`Error::LabelsTooLarge`](crate::Error::LabelsTooLarge) (more than [`MAX_LABEL_BYTES`](crate::MAX_LABEL_BYTES)),
    /// and as [`append_batch`](Self::append_batch) where they apply.
    /// # Examples
    /// ```
    /// # fn main() -> sessionlog::Result<()> {
    /// use sessionlog::{LabelChange, NewSession, Store};
    /// let store = Store::in_memory()?;
    /// let session = store.create(NewSession::new())?;
    /// session.label(LabelChange::new().title("A first try").set("branch", "main"))?;
    /// session.label(LabelChange::new().remove("branch"))?;
    /// assert_eq!(session.title().as_deref(), Some("A first try"));
    /// assert!(session.labels().labels.is_empty());
    /// # Ok(()) }
    /// ```
    pub fn label(&self, change: LabelChange) -> Result<Labels> {
        let core = self.core();
        core.health.check()?;
        core.observers.refuse_own_thread()?;
        let (labels, ticket) = loop {
            let mut tail = self.state.lock();
            if tail.deleted.is_some() {
                drop(tail);
                return Err(self.state.not_found());
            }
            if let Some(ticket) = tail.deleting {
                drop(tail);
                core.committer.wait_for_other(ticket, core)?;
                continue;
            }
            let before = tail.labels.queued.as_ref().unwrap_or(&tail.labels.now);
            let labels = Arc::new(before.changed(&change)?);
            let work = Work::Label { session: Arc::clone(&self.state), labels: Arc::clone(&labels) };
            let ticket = core.committer.enqueue(Request { work, sync: true })?;
            tail.labels.queued = Some(Arc::clone(&labels));
            break (labels, ticket);
        };
        core.committer.wait(ticket, core)?;
        Ok(labels.as_ref().clone())
    }
}
