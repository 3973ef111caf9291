//! `create`: a new session, and the store with it where there is none.

use std::collections::BTreeSet;
use std::io::Write;

use sessionlog::{NewSession, SessionId};

use super::exit::Failure;
use super::label::name_and_value;
use super::output;
use super::place::Place;

/// Creates a session and prints its id
///
/// Creates the store too, where the folder is missing or empty. A session that exists is never overwritten.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  id=$(sessionlog create)
  sessionlog create nightly-7 --meta model=small --meta branch=main")]
pub(crate) struct Args {
    /// The session's id: 1 to 255 bytes without control characters [default: a new UUID]
    id: Option<SessionId>,

    /// Free metadata; may be given several times and never changes later
    #[arg(long, value_name = "K=V", value_parser = name_and_value)]
    meta: Vec<(String, String)>,
}

impl Args {
    /// Refuses a command line that says two things, before it makes a store.
    fn check(&self) -> Result<(), Failure> {
        let mut names = BTreeSet::new();
        match self.meta.iter().find(|(name, _)| !names.insert(name)) {
            Some((name, _)) => Err(Failure::usage(format!("--meta names `{name}` twice"))),
            None => Ok(()),
        }
    }
}

pub(crate) fn run(place: &Place, args: Args, out: &mut impl Write) -> Result<(), Failure> {
    args.check()?;
    let store = place.open_or_create()?;
    let new = args.id.map_or_else(NewSession::new, NewSession::with_id);
    let new = args.meta.into_iter().fold(new, |new, (name, value)| new.meta(name, value));
    let session = store.create(new)?;
    output::line(out, session.id().as_str())?;
    output::flush(out)?;
    Ok(store.close()?)
}
