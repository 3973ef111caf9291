//! The observer: hears every event, on a thread of its own, outside all locks, through a queue that waits.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::thread::{JoinHandle, ThreadId};

use super::tail::SessionState;
use crate::error::{Error, Result};
use crate::format::{Run, Sections};
use crate::options::Observer;

/// Runs that may wait for the observer.
const QUEUE_RUNS: usize = 1_024;

/// A published run and its session.
type Heard = (Arc<SessionState>, Arc<Run>);

#[derive(Debug, Default)]
pub(crate) struct Observers {
    queue: Mutex<Option<SyncSender<Heard>>>,
    thread: OnceLock<ThreadId>,
    worker: Mutex<Option<JoinHandle<()>>>,
}

impl Observers {
    /// Starts the observer's thread, if there is an observer.
    pub(crate) fn start(&self, observer: Option<Observer>) -> Result<()> {
        if let Some(observer) = observer {
            let (sender, receiver) = sync_channel(QUEUE_RUNS);
            let worker = super::spawn("sessionlog-observer", move || listen(observer, &receiver))?;
            let _ = self.thread.set(worker.thread().id());
            *self.queue.lock().unwrap_or_else(PoisonError::into_inner) = Some(sender);
            *self.worker.lock().unwrap_or_else(PoisonError::into_inner) = Some(worker);
        }
        Ok(())
    }

    /// Queues a published run, waiting while the queue is full. Called by the leader only, so in the order of commits.
    pub(crate) fn tell(&self, session: &Arc<SessionState>, run: &Arc<Run>) {
        if self.thread.get().is_none() {
            return;
        }
        let sender = self.queue.lock().unwrap_or_else(PoisonError::into_inner).clone();
        if let Some(sender) = sender {
            // It fails only when the thread is gone, and then nobody listens.
            let _ = sender.send((Arc::clone(session), Arc::clone(run)));
        }
    }

    /// Refuses a call that would wait for the thread it is made on.
    pub(crate) fn refuse_own_thread(&self) -> Result<()> {
        match self.thread.get() {
            Some(thread) if *thread == std::thread::current().id() => Err(Error::CalledFromObserver),
            _ => Ok(()),
        }
    }

    /// Lets the observer hear what is queued, and ends its thread.
    pub(crate) fn stop(&self) {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner).take();
        let worker = self.worker.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(worker) = worker.filter(|_| self.refuse_own_thread().is_ok()) {
            let _ = worker.join();
        }
    }
}

fn listen(mut observer: Observer, queue: &Receiver<Heard>) {
    let mut events = Vec::new();
    while let Ok((session, run)) = queue.recv() {
        events.clear();
        let view = run.view();
        if view.decode(0, run.count, Sections::All, &mut events).is_err() {
            continue; // We encoded it a moment ago, and readers get the error.
        }
        for event in &events {
            // A panic is the observer's own: the log and the next event are not its business.
            let _ = catch_unwind(AssertUnwindSafe(|| observer(&session.header.id, event)));
        }
    }
}
