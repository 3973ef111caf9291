//! Work that a caller does not wait for: one thread does it, in the order in which it was given.

use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Mutex, PoisonError};
use std::thread::JoinHandle;

use crate::error::Result;

type Job = Box<dyn FnOnce() + Send>;

/// The way to the thread.
#[derive(Debug, Default)]
pub(crate) struct Later(Mutex<Option<Sender<Job>>>);

impl Later {
    /// Starts the thread. It ends when it is told to [`stop`](Self::stop).
    pub(crate) fn start(&self) -> Result<JoinHandle<()>> {
        let (sender, receiver) = channel();
        let thread = super::spawn("sessionlog-async", move || work(&receiver))?;
        *self.lock() = Some(sender);
        Ok(thread)
    }

    /// Hands `job` over. Where the thread is gone, the job is dropped.
    pub(crate) fn add(&self, job: impl FnOnce() + Send + 'static) {
        if let Some(sender) = &*self.lock() {
            let _ = sender.send(Box::new(job));
        }
    }

    /// Takes nothing more. What was handed over is done.
    pub(crate) fn stop(&self) {
        self.lock().take();
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Option<Sender<Job>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn work(jobs: &Receiver<Job>) {
    while let Ok(job) = jobs.recv() {
        job();
    }
}
