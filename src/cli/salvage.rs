//! `salvage`: a fresh store from what can still be read of a damaged one.

use std::io::Write;
use std::path::PathBuf;

use sessionlog::{EngineOutcome, Salvage, SalvageReport, SalvageStep, SalvagedSession};

use super::exit::Failure;
use super::output::{self, printable};
use super::progress::Progress;

/// Makes a fresh store of what can still be read of a damaged one
///
/// Takes what the engine still gives, what stands in its raw files, and what the journal holds. OLD is only read; NEW
/// must not be there yet. Each session is listed with its events and with the seqs that are missing; a session with a
/// hole is ended there, and goes on in a fork. The exit code is 1 when something is missing.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  sessionlog salvage sessions salvaged
  sessionlog salvage sessions salvaged --deleted
  sessionlog salvage sessions salvaged --json | jq '.sessions[] | select(.missing != [])'")]
pub(crate) struct Args {
    /// The damaged store's folder
    old: PathBuf,

    /// The folder of the new store
    new: PathBuf,

    /// Take deleted sessions, too, as far as they are still there: each under its id with `recovered ` before it
    #[arg(long)]
    deleted: bool,

    /// One JSON object
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(args: &Args, out: &mut impl Write) -> Result<(), Failure> {
    let progress = Progress::bytes("salvaging", 0);
    let shown = progress.clone();
    let salvage = Salvage::new().deleted(args.deleted).progress(move |done| {
        shown.say(match done.step {
            SalvageStep::Engine => "asking the engine",
            SalvageStep::Carving => "looking through its files",
            SalvageStep::Journal => "reading the journal",
            _ => "putting in order",
        });
        shown.of(done.total_bytes);
        shown.at(done.done_bytes);
    });
    let report = salvage.folder(&args.old, &args.new).map_err(|error| Failure::salvage(&error))?;
    progress.clear();
    if args.json {
        let text = serde_json::to_string(&report);
        let text = text.map_err(|error| Failure::refused(format!("cannot write JSON: {error}")))?;
        output::line(out, &text)?;
    } else {
        print(&report, out)?;
    }
    output::flush(out)?;
    if !report.is_incomplete() {
        return Ok(());
    }
    let missing = report.sessions.iter().filter(|session| !session.missing.is_empty()).count();
    let message = match (report.drained_at_close, missing) {
        (Some(drained), 0) => {
            format!("what was stored last is missing: {}", commits(report.drained, drained))
        }
        (Some(drained), missing) if report.fell_back() => {
            format!("events are missing in {missing} sessions, and {}", commits(report.drained, drained))
        }
        (_, missing) => format!("events are missing in {missing} sessions"),
    };
    Err(Failure::refused(message).hint(
        "what is there is the truth up to each hole; keep the old store: other copies may have the rest",
    ))
}

fn commits(found: u64, expected: u64) -> String {
    format!("commits {} to {expected}, whichever sessions they were for", found + 1)
}

fn print(report: &SalvageReport, out: &mut impl Write) -> Result<(), Failure> {
    for session in &report.sessions {
        output::line(out, &line(session))?;
    }
    let engine = match &report.engine {
        EngineOutcome::Whole => "opened, and gave everything".to_owned(),
        EngineOutcome::Failed(why) => printable(why),
        _ => "was not asked".to_owned(),
    };
    let mut entries = vec![
        ("sessions", report.sessions.len().to_string()),
        ("engine", engine),
        ("values found", format!("{} ({} of them older or equal copies)", report.values, report.copies)),
        ("frames applied", report.frames.to_string()),
        ("damaged places", report.damaged_places.to_string()),
    ];
    let more = [
        ("unreadable bytes", report.unreadable_bytes),
        ("of a newer format", report.newer_values),
        ("contradictions", report.conflicts),
        ("deleted sessions found", report.deleted),
    ];
    entries.extend(more.iter().filter(|(_, n)| *n > 0).map(|(name, n)| (*name, n.to_string())));
    output::line(out, &output::list(&entries))
}

fn line(session: &SalvagedSession) -> String {
    let mut text = format!("{}  {} events", printable(&session.id), session.len);
    for seqs in &session.missing {
        let last = seqs.end - 1;
        text.push_str(&if seqs.start == last {
            format!(", seq {last} missing")
        } else {
            format!(", seqs {} to {last} missing", seqs.start)
        });
    }
    text
}
