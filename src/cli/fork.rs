//! `fork`: a branch of a session that shares its first events.

use std::io::Write;

use sessionlog::{NewSession, Seq, SessionId};

use super::exit::Failure;
use super::output;
use super::place::Place;

/// Forks a session and prints the new id
///
/// The new session shares the first N events and goes on by itself; no event is copied. What the parent appends later
/// does not show in it.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  branch=$(sessionlog fork ID)
  sessionlog fork ID --at 6 --id what-if")]
pub(crate) struct Args {
    /// The parent's full id
    id: SessionId,

    /// How many events to share, from the first on [default: all]
    #[arg(long, value_name = "N")]
    at: Option<Seq>,

    /// The new session's id [default: a new UUID]
    #[arg(long = "id", value_name = "NEW")]
    new: Option<SessionId>,
}

pub(crate) fn run(place: &Place, args: Args, out: &mut impl Write) -> Result<(), Failure> {
    let store = place.open()?;
    let at = match args.at {
        Some(at) => at,
        None => Seq::new(store.session(&args.id)?.len()),
    };
    let new = args.new.map_or_else(NewSession::new, NewSession::with_id);
    let branch = store.fork(&args.id, at, new)?;
    output::line(out, branch.id().as_str())?;
    output::flush(out)?;
    Ok(store.close()?)
}
