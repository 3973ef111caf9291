//! Calls into the engine that may panic or never return.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::time::Duration;

/// How much of the engine's own words an error repeats.
const MAX_MESSAGE_CHARS: usize = 160;

/// Why work has no result.
pub(super) enum NotDone {
    /// It took too long, and goes on.
    Late,
    /// There was no thread for it.
    NoThread(std::io::Error),
}

/// Runs `work` on a thread for at most `limit`; after that it goes on alone and its result is dropped. The inner error
/// is the message of a panic.
pub(super) fn on_thread<T: Send + 'static>(
    name: &str,
    limit: Duration,
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<Result<T, String>, NotDone> {
    let (sender, receiver) = mpsc::sync_channel(1);
    let run = move || {
        // A receiver that has given up drops the result: an engine that opens late is closed again.
        let _ = sender.send(guarded(work));
    };
    let thread = std::thread::Builder::new().name(name.to_owned()).spawn(run).map_err(NotDone::NoThread)?;
    match receiver.recv_timeout(limit) {
        Ok(result) => {
            let _ = thread.join();
            Ok(result)
        }
        Err(RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected) => Err(NotDone::Late),
    }
}

/// Catches a panic and returns its message. The caller answers for what the work leaves behind.
pub(super) fn guarded<T>(work: impl FnOnce() -> T) -> Result<T, String> {
    catch_unwind(AssertUnwindSafe(work)).map_err(|payload| {
        let text = payload.downcast_ref::<String>().map(String::as_str);
        shorten(text.or_else(|| payload.downcast_ref::<&str>().copied()).unwrap_or("panic"))
    })
}

/// Cuts a message of the engine: it likes to print whole pages, which are people's conversations.
pub(super) fn shorten(message: &str) -> String {
    message.chars().take(MAX_MESSAGE_CHARS).collect()
}
