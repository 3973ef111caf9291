//! `backup`: a checked copy of the store.

use std::io::Write;
use std::path::PathBuf;

use sessionlog::{BackupReport, ScanReport};

use super::exit::Failure;
use super::output;
use super::place::Place;
use super::progress::Progress;
use super::scan;

/// Copies the store into a new folder, and scans the copy
///
/// All sessions with their forks, and what repairs have set aside, as they are now. The folder must not exist; it
/// gets its name when the copy is whole.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  sessionlog backup /backups/$(date +%F)
  sessionlog backup copy --json | jq .scan.errors
  sessionlog --store /backups/2026-01-31 ls")]
pub(crate) struct Args {
    /// The copy's folder
    dir: PathBuf,

    /// One JSON object: the copy's path, and the scan of it as `scan --json` prints it
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(place: &Place, args: &Args, out: &mut impl Write) -> Result<(), Failure> {
    let store = place.open()?;
    let progress = Progress::open_ended("copying, then scanning the copy");
    let report = store.backup(&args.dir)?;
    progress.clear();
    print(&report, args.json, out)?;
    output::flush(out)?;
    store.close()?;
    scan::verdict(&report.scan)
}

fn print(report: &BackupReport, json: bool, out: &mut impl Write) -> Result<(), Failure> {
    if json {
        let record = serde_json::json!({ "path": report.path.to_string_lossy(), "scan": report.scan });
        return output::line(out, &record.to_string());
    }
    let ScanReport { sessions, events, .. } = report.scan;
    output::line(out, &format!("{}: {sessions} sessions, {events} events", report.path.display()))?;
    for finding in &report.scan.findings {
        output::line(out, &scan::told(finding))?;
    }
    Ok(())
}
