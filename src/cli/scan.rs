//! `scan`: whether a store, or one session, is sound.

use std::io::Write;

use sessionlog::{Finding, RunningHash, Scan, ScanReport, SessionId, Severity};

use super::exit::Failure;
use super::output::{self, printable};
use super::place::Place;
use super::progress::Progress;
use super::style::Paint;

/// A longer id does not widen its column.
const WIDEST: usize = 44;

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
    expect: Option<(u64, RunningHash)>,

    /// One JSON object
    #[arg(long)]
    json: bool,
}

fn expectation(text: &str) -> Result<(u64, RunningHash), String> {
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
    let progress = Progress::open_ended("scanning");
    let shown = progress.clone();
    scan = scan.progress(move |done| {
        shown.say(format!("scanning: {} sessions, {} events", done.sessions, done.events));
    });
    let report = scan.folder(place.path()?).map_err(|error| Failure::folder(&error))?;
    progress.clear();
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
    let heads: Vec<_> = report
        .heads
        .iter()
        .map(|head| (printable(&head.session), head.length.to_string(), head.hash))
        .collect();
    let widest = |widths: &mut dyn Iterator<Item = usize>| widths.max().unwrap_or(0);
    let names = widest(&mut heads.iter().map(|(name, _, _)| name.chars().count())).min(WIDEST);
    let lengths = widest(&mut heads.iter().map(|(_, length, _)| length.len()));
    for (name, length, hash) in &heads {
        let hash = hash.map_or_else(|| "unknown".to_owned(), |hash| hash.to_string());
        output::line(out, &format!("{name:<names$}  {length:>lengths$} events  {hash}"))?;
    }
    for finding in &report.findings {
        output::line(out, &told(finding))?;
    }
    if report.unlisted() > 0 {
        output::line(out, &format!("and {} findings more", report.unlisted()))?;
    }
    let paint = Paint::stdout();
    let verdict = if report.is_clean() {
        paint.good("no problems found")
    } else {
        paint.bad(&format!("{} problems found", report.errors))
    };
    let notices = if report.notices > 0 { format!(", {} notices", report.notices) } else { String::new() };
    output::line(out, &format!("{} sessions, {} events: {verdict}{notices}", report.sessions, report.events))
}

/// A finding in one line.
pub(crate) fn told(finding: &Finding) -> String {
    let text = printable(&finding.to_string());
    let paint = Paint::stdout();
    match text.split_once(": ") {
        Some((severity, rest)) if finding.severity == Severity::Error => {
            format!("{} {rest}", paint.bad(&format!("{severity}:")))
        }
        Some((severity, rest)) => format!("{} {rest}", paint.notice(&format!("{severity}:"))),
        None => text,
    }
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
