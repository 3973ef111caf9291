//! Whether the store works: the first failure, and whether it was closed. Both are final until it is reopened.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};

use crate::error::{Error, Result};

#[derive(Debug, Default)]
pub(crate) struct Health {
    failure: OnceLock<Arc<Error>>,
    closed: AtomicBool,
}

impl Health {
    /// Whether writes are accepted.
    pub(crate) fn check(&self) -> Result<()> {
        if self.is_closed() {
            return Err(Error::Closed);
        }
        match self.failure.get() {
            Some(cause) => Err(Error::Failed { cause: Arc::clone(cause) }),
            None => Ok(()),
        }
    }

    /// What callers get once the store has failed; [`Error::Closed`] before that.
    pub(crate) fn failure(&self) -> Error {
        self.failure.get().map_or(Error::Closed, |cause| Error::Failed { cause: Arc::clone(cause) })
    }

    pub(crate) fn is_failed(&self) -> bool {
        self.failure.get().is_some()
    }

    pub(crate) fn is_closed(&self) -> bool {
        self.closed.load(Ordering::Acquire)
    }

    /// Keeps the first failure and returns what callers get.
    pub(crate) fn fail(&self, error: Error) -> Error {
        // What the engine reports as its own earlier failure is not wrapped again.
        let first = match error {
            Error::Failed { cause } => cause,
            Error::Closed => return Error::Closed,
            error => Arc::new(error),
        };
        let cause = Arc::clone(self.failure.get_or_init(|| first));
        Error::Failed { cause }
    }

    pub(crate) fn close(&self) {
        self.closed.store(true, Ordering::Release);
    }
}
