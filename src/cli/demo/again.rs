//! The parts of the demo that look back: the run replayed into a branch, and its figures.

use std::io::Write;
use std::time::Duration;

use sessionlog::{NewSession, Pace, Seq, Session, SessionId, Store};

use super::{FIRST_TURN, heading};
use crate::cli::exit::Failure;
use crate::cli::output::line;
use crate::cli::stats;

/// The demo's own pauses are some milliseconds; nobody waits for a machine that stood still.
const LONGEST_PAUSE: Duration = Duration::from_millis(50);

/// Plays the second turn again, with its pauses, into a fork made before it.
pub(super) fn replay(store: &Store, session: &Session, out: &mut impl Write) -> Result<(), Failure> {
    heading(out, "Turn two replayed into a new fork, with its pauses")?;
    let from = Seq::new(FIRST_TURN);
    let again = store.fork(session.id(), from, NewSession::with_id(SessionId::new("again")?))?;
    let pace = Pace::recorded().longest_pause(LONGEST_PAUSE);
    let seqs = session.replay(from..Seq::new(session.len()), pace)?.append_to(&again)?;
    for (event, original) in again.read_from(from)?.zip(session.read_from(from)?) {
        let (event, original) = (event?, original?);
        if event != original {
            return Err(Failure::refused(format!("the replay differs from seq {} on", event.seq)));
        }
        line(out, &format!("  {:>2}  {}", event.seq, event.event_type()))?;
    }
    let count = seqs.end.get() - seqs.start.get();
    line(out, &format!("  {count} events, equal to those of `{}` in every byte", session.id()))
}

/// What the session's events add up to.
pub(super) fn audit(session: &Session, out: &mut impl Write) -> Result<(), Failure> {
    heading(out, "Audit")?;
    let figures = session.statistics()?;
    for (name, value) in stats::audit(&figures) {
        line(out, &format!("  {name:<12}{value}"))?;
    }
    for (name, times) in
        [("turn", &figures.turn_ms), ("step", &figures.step_ms), ("tool call", &figures.call_ms)]
    {
        if let (Some(mean), Some(max)) = (times.mean(), times.max()) {
            line(out, &format!("  {name:<12}{mean} ms on average, {max} ms at most"))?;
        }
    }
    Ok(())
}
