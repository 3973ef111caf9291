//! `compact`: small blocks merged; with `--rewrite` the engine's files written anew.

use std::io::Write;

use sessionlog::{CompactReport, Error, RewriteReport, Store};

use super::exit::Failure;
use super::output::{self, size};
use super::place::Place;
use super::progress::Progress;

/// Merges small blocks into full ones; with --rewrite gives space back and takes deleted text off the disk
///
/// Without --rewrite it is quick and seldom finds much: blocks are filled as sessions grow, and the engine's files do not
/// shrink.
///
/// With --rewrite the engine's files are written anew with only what is live, checked, and swapped in in one step; then
/// the old ones are removed, with the journal's files and what repairs have copied. It takes as much free space as the
/// live data, which it looks for first. Interrupted at any moment it leaves the store as it was, or done.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  sessionlog compact
  sessionlog rm draft && sessionlog compact --rewrite")]
pub(crate) struct Args {
    /// Write the engine's files anew
    #[arg(long)]
    rewrite: bool,

    /// One JSON object
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(place: &Place, args: &Args, out: &mut impl Write) -> Result<(), Failure> {
    let text = if args.rewrite {
        let progress = Progress::open_ended("writing the store anew, and scanning it");
        let report = Store::rewrite(place.path()?).map_err(|error| match error {
            Error::NotClean { .. } | Error::DiskFull { .. } => Failure::of(&error),
            error => Failure::folder(&error),
        })?;
        progress.clear();
        if args.json { json(&report)? } else { rewritten(&report) }
    } else {
        let store = place.open()?;
        let progress = Progress::open_ended("merging small blocks");
        let report = store.compact()?;
        progress.clear();
        store.close()?;
        if args.json { json(&report)? } else { merged(&report) }
    };
    output::line(out, &text)?;
    output::flush(out)
}

fn merged(report: &CompactReport) -> String {
    let CompactReport { sessions, merged_sessions, blocks_before, blocks_after, .. } = report;
    if *merged_sessions == 0 {
        return format!("{sessions} sessions, {blocks_before} blocks: nothing to merge");
    }
    let (before, after) = (size(report.bytes_before), size(report.bytes_after));
    format!(
        "{blocks_before} blocks became {blocks_after}, {before} became {after}, in {merged_sessions} sessions"
    )
}

fn rewritten(report: &RewriteReport) -> String {
    let RewriteReport { sessions, events, engine_bytes_before, engine_bytes_after, removed, .. } = report;
    let mut text = format!(
        "{sessions} sessions, {events} events: {} became {}",
        size(*engine_bytes_before),
        size(*engine_bytes_after)
    );
    for name in removed {
        text += &format!("\nremoved {}", output::printable(name));
    }
    text
}

fn json(report: &impl serde::Serialize) -> Result<String, Failure> {
    serde_json::to_string(report).map_err(|error| Failure::refused(format!("cannot write JSON: {error}")))
}
