//! `scan`: whether a store, or one session, is sound.

use std::io::{self, IsTerminal, Write};
use std::time::{Duration, Instant};

use sessionlog::{HistoryHash, Scan, ScanReport, SessionId};

use super::exit::Failure;
use super::output::{self, printable};
use super::place::Place;

/// How often progress is told to a terminal.
const PROGRESS_EVERY: Duration = Duration::from_millis(500);

/// Checks everything that is stored: checksums, seqs, running hashes, and that all records agree
///
/// The store is neither replayed nor drained: what is on disk is judged as it is, blocks and journal together. Prints
/// each finding, and each session with its length and its hash: BLAKE3 over all its events up to there. The exit code is
/// 1 when there are findings that are errors; notices are no errors.
///
/// A hash that was noted earlier proves with --expect that the history up to there is still the same.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  sessionlog scan
  sessionlog scan ID --expect 16:0f3a…
  sessionlog scan --json | jq '.findings[]'")]
pub(crate) struct Args {
    /// The session's full id: only this session, and what its ancestors lend it
    id: Option<SessionId>,

    /// Check that the hash after the first SEQ events is HASH: as `show` and `scan` print it
    #[arg(long, value_name = "SEQ:HASH", requires = "id", value_parser = expectation)]
    expect: Option<(u64, HistoryHash)>,

    /// One JSON object
    #[arg(long)]
    json: bool,
}

fn expectation(text: &str) -> Result<(u64, HistoryHash), String> {
    let (seq, hash) =
        text.split_once(':').ok_or("SEQ:HASH expected: a number of events, a colon, 64 digits")?;
    let seq = seq.parse().map_err(|error| format!("`{seq}` is no number of events: {error}"))?;
    let hash = hash.parse().map_err(|error| format!("`{hash}`: {error}"))?;
    Ok((seq, hash))
}

pub(crate) fn run(place: &Place, args: &Args, out: &mut impl Write) -> Result<(), Failure> {
    let mut scan = Scan::new();
    if let Some(id) = &args.id {
        scan = scan.session(id.clone());
    }
    if let Some((events, hash)) = args.expect {
        scan = scan.expect(events, hash);
    }
    if io::stderr().is_terminal() {
        let mut told = Instant::now();
        scan = scan.progress(move |progress| {
            if told.elapsed() >= PROGRESS_EVERY {
                told = Instant::now();
                // Who cannot be told here is not in the way of the scan.
                let _ = write!(io::stderr(), "\r{} sessions, {} events", progress.sessions, progress.events);
            }
        });
    }
    let report = scan.folder(place.path()?).map_err(|error| Failure::folder(&error))?;
    print(&report, args.json, out)?;
    output::flush(out)?;
    verdict(&report)
}

/// Prints a report.
pub(crate) fn print(report: &ScanReport, json: bool, out: &mut impl Write) -> Result<(), Failure> {
    if json {
        let text = serde_json::to_string(report);
        let text = text.map_err(|error| Failure::refused(format!("cannot write JSON: {error}")))?;
        return output::line(out, &text);
    }
    for head in &report.heads {
        let hash = head.hash.map_or_else(|| "unknown".to_owned(), |hash| hash.to_string());
        output::line(out, &format!("{}  {} events  {hash}", printable(&head.session), head.length))?;
    }
    for finding in &report.findings {
        output::line(out, &printable(&finding.to_string()))?;
    }
    if report.unlisted() > 0 {
        output::line(out, &format!("and {} findings more", report.unlisted()))?;
    }
    let verdict = if report.is_clean() {
        "no problems found".to_owned()
    } else {
        format!("{} problems found", report.errors)
    };
    let notices = if report.notices > 0 { format!(", {} notices", report.notices) } else { String::new() };
    output::line(out, &format!("{} sessions, {} events: {verdict}{notices}", report.sessions, report.events))
}

/// The exit code for what was found.
pub(crate) fn verdict(report: &ScanReport) -> Result<(), Failure> {
    if report.is_clean() {
        return Ok(());
    }
    let failure = Failure::refused(format!("{} problems found", report.errors));
    Err(failure.hint(
        "`sessionlog repair --dry-run` says what can be done; nothing is changed before you ask for it",
    ))
}
