//! `rm`: deletes a session.

use sessionlog::{Error, SessionId};

use super::exit::Failure;
use super::output;
use super::place::Place;

/// Deletes a session; its forks keep all their events
///
/// The session is gone at once, and its id is free. Events that a fork shares stay until the last such fork is deleted.
///
/// This is no erasure: deleted text stays in the store's files, the journal's too, until they are written over. Only a
/// rewrite of the store takes it off the disk: `sessionlog compact --rewrite`.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  sessionlog rm 0198a3c4-5d6e-7f80-9a1b-2c3d4e5f6071
  sessionlog rm what-if")]
pub(crate) struct Args {
    /// The session's full id
    id: SessionId,
}

pub(crate) fn run(place: &Place, args: &Args) -> Result<(), Failure> {
    let store = place.open()?;
    store.delete(&args.id)?;
    // Durable by now; this makes room, as far as there is some to do it.
    match store.drain() {
        Err(Error::DiskFull { .. }) => {
            output::note("deleted; the disk is too full to remove its events now, a later command goes on");
            return Ok(());
        }
        drained => drained?,
    }
    Ok(store.close()?)
}
