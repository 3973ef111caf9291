//! Handles on a session, counted: a prune leaves alone what somebody holds.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use crate::log::tail::SessionState;

/// Part of each handle.
#[derive(Debug)]
pub(super) struct Held(Arc<SessionState>);

impl Held {
    pub(super) fn new(state: &Arc<SessionState>) -> Self {
        state.handles.fetch_add(1, Ordering::AcqRel);
        Self(Arc::clone(state))
    }
}

impl Clone for Held {
    fn clone(&self) -> Self {
        Self::new(&self.0)
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        self.0.handles.fetch_sub(1, Ordering::AcqRel);
    }
}
