//! `replay`: a session's run again.

use std::io::Write;
use std::time::Duration;

use sessionlog::{Pace, Seq, SessionId};

use super::exit::Failure;
use super::output::Buffered;
use super::place::Place;
use super::resolve;

/// Prints the events of a session as they happened, one JSON object a line
///
/// With --speed each event comes after the pause that was recorded before it. Where the clock was set back there is
/// none.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  sessionlog replay ID --speed 1
  sessionlog replay ID --speed 10 --longest-pause 2000 | jq -r .type
  sessionlog replay ID --from 6 | sessionlog append BRANCH")]
pub(crate) struct Args {
    /// The session's id, or the beginning of it, or its title, when that names only one
    id: SessionId,

    /// X times as fast as it was recorded: 1 for the recorded pauses [default: without pauses]
    #[arg(long, value_name = "X", value_parser = speed)]
    speed: Option<Pace>,

    /// Cut pauses to so many milliseconds
    #[arg(long, value_name = "MS", requires = "speed")]
    longest_pause: Option<u64>,

    /// The first event [default: 0]
    #[arg(long, value_name = "N")]
    from: Option<Seq>,

    /// The event to stop before; beyond the end means the end [default: the end]
    #[arg(long, value_name = "N")]
    to: Option<Seq>,
}

fn speed(text: &str) -> Result<Pace, String> {
    text.parse().ok().and_then(Pace::scaled).ok_or_else(|| "a number above 0 expected".into())
}

pub(crate) fn run(place: &Place, args: &Args, out: &mut impl Write) -> Result<(), Failure> {
    let from = args.from.unwrap_or(Seq::ZERO);
    let to = args.to.unwrap_or(Seq::new(u64::MAX));
    if to < from {
        return Err(Failure::usage(format!("--to {to} lies before --from {from}")));
    }
    let mut pace = args.speed.unwrap_or(Pace::fastest());
    if let Some(millis) = args.longest_pause {
        pace = pace.longest_pause(Duration::from_millis(millis));
    }
    let store = place.open()?;
    let session = resolve::session(&store, &args.id)?;
    let mut out = Buffered::new(out);
    for event in session.replay(from..to, pace)? {
        match event {
            Ok(event) => out.line(|line| event.write_json(line))?,
            Err(error) => {
                out.finish()?;
                return Err(error.into());
            }
        }
        // What happened is seen when it happens.
        if args.speed.is_some() {
            out.finish()?;
        }
    }
    out.finish()
}
