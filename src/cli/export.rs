//! `export`: sessions to files.

use std::io::{self, ErrorKind, IsTerminal, Write};
use std::path::PathBuf;

use sessionlog::transfer::{self, ExportOptions};
use sessionlog::{Error, SessionId, Store};

use super::exit::Failure;
use super::output::{self, printable};
use super::place::Place;
use super::progress::Progress;
use super::resolve;

/// Writes a session as JSON Lines: a header, then one event a line; `import` reads it
///
/// Also of a fork all events are written, from 0 on, so that the file needs no other. Files are for their owner only,
/// and nothing that is there is overwritten.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  sessionlog export ID > session.jsonl
  sessionlog export ID --output session.jsonl
  sessionlog export --all backup/   # a file for each session, which may need the one of its parent")]
pub(crate) struct Args {
    /// The session's id, or the beginning of it, or its title, when that names only one
    #[arg(required_unless_present = "all")]
    id: Option<SessionId>,

    /// Of a fork only the events behind those that it shares
    #[arg(long, conflicts_with = "all")]
    own: bool,

    /// Write to this file, which is made [default: standard output]
    #[arg(long, short, value_name = "FILE", conflicts_with = "all")]
    output: Option<PathBuf>,

    /// Export every session into this folder, which is made, or is empty
    #[arg(long, value_name = "DIR", conflicts_with = "id")]
    all: Option<PathBuf>,
}

pub(crate) fn run(place: &Place, args: &Args, out: &mut impl Write) -> Result<(), Failure> {
    let store = place.open()?;
    match (&args.id, &args.all) {
        (_, Some(folder)) => all(&store, folder),
        (Some(id), None) => one(&store, id, args, out),
        (None, None) => Err(Failure::usage("a session's id, or --all DIR, is needed")),
    }
}

fn one(store: &Store, id: &SessionId, args: &Args, out: &mut impl Write) -> Result<(), Failure> {
    let session = resolve::session(store, id)?;
    let options = if args.own { ExportOptions::new().own() } else { ExportOptions::new() };
    let progress = match args.output.is_some() || !io::stdout().is_terminal() {
        true => Progress::events("exporting", session.len()),
        // Data and bar would be on one screen.
        false => Progress::hidden(),
    };
    match &args.output {
        Some(path) => {
            let exported = transfer::create_file(path, |file| {
                transfer::export(&session, options, &mut progress.counting(file))
            });
            let exported = exported.map_err(failure)?;
            progress.clear();
            told(&format!("{} events of session {} to {}", exported.events, session.id(), path.display()));
            Ok(())
        }
        None => match transfer::export(&session, options, &mut progress.counting(out)) {
            Err(Error::Io { source, .. }) if source.kind() == ErrorKind::BrokenPipe => {
                Err(Failure::ClosedPipe)
            }
            exported => {
                exported?;
                output::flush(out)
            }
        },
    }
}

fn all(store: &Store, folder: &std::path::Path) -> Result<(), Failure> {
    let mut events = 0;
    let progress = Progress::open_ended("exporting");
    let files = transfer::export_all(store, folder, |session, _, exported| {
        events += exported.events;
        progress.say(format!("exporting: {events} events, the last of {}", printable(session.id().as_str())));
    });
    let files = files.map_err(failure)?;
    progress.clear();
    told(&format!("{events} events of {files} sessions to {}", folder.display()));
    Ok(())
}

/// Something that is there already is a wrong command line, not a failure of the system.
fn failure(error: Error) -> Failure {
    match &error {
        Error::Io { path, source, .. } if source.kind() == ErrorKind::AlreadyExists => {
            Failure::usage(format!("{} is there already", path.display()))
                .hint("name a place where nothing is")
        }
        _ => error.into(),
    }
}

/// A summary for people.
fn told(text: &str) {
    let _ = writeln!(io::stderr(), "exported {text}");
}
