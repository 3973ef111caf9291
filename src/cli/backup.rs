//! `backup`: a checked copy of the store.

use std::io::Write;
use std::path::PathBuf;

use super::exit::Failure;
use super::output;
use super::place::Place;
use super::scan;

/// Copies the store into a new folder, and scans the copy
///
/// All sessions with their forks, and what repairs have set aside, as they are now. The folder must not exist; it
/// gets its name when the copy is whole.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  sessionlog backup /backups/$(date +%F)
  sessionlog --store /backups/2026-01-31 ls")]
pub(crate) struct Args {
    /// The copy's folder
    dir: PathBuf,
}

pub(crate) fn run(place: &Place, args: &Args, out: &mut impl Write) -> Result<(), Failure> {
    let store = place.open()?;
    let report = store.backup(&args.dir)?;
    let text = format!(
        "{}: {} sessions, {} events",
        report.path.display(),
        report.scan.sessions,
        report.scan.events
    );
    output::line(out, &text)?;
    for finding in &report.scan.findings {
        output::line(out, &output::printable(&finding.to_string()))?;
    }
    output::flush(out)?;
    store.close()?;
    scan::verdict(&report.scan)
}
