//! `resume`: closes what an interrupted turn left open.

use std::io::Write;

use sessionlog::SessionId;

use super::exit::Failure;
use super::output::{self, Buffered};
use super::place::Place;

/// Closes an interrupted turn, and prints the events that were appended
///
/// Each tool call without a result gets one that says that its outcome is unknown; then the step and the turn are
/// ended. Nothing is cut off. Where no turn is open nothing is appended, so it can be run at any time but while an
/// agent is at work in the session.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  sessionlog resume ID
  sessionlog inspect ID   # shows the same and writes nothing")]
pub(crate) struct Args {
    /// The session's full id
    id: SessionId,
}

pub(crate) fn run(place: &Place, args: &Args, out: &mut impl Write) -> Result<(), Failure> {
    let store = place.open()?;
    let resumed = store.session(&args.id)?.resume()?;
    let mut out = Buffered::new(out);
    for event in &resumed.inspection.closers {
        out.line(|line| event.write_json(line))?;
    }
    out.finish()?;
    if resumed.inspection.is_empty() {
        // For people; a script sees no lines.
        output::note("no turn is open: nothing to close");
    }
    Ok(store.close()?)
}
