//! `repair`: what can be done about what a scan finds.

use std::io::Write;

use sessionlog::{Repair, RepairReport};

use super::exit::Failure;
use super::output::{self, printable};
use super::place::Place;

/// Repairs what `scan` finds: derived records are made anew, what cannot be read is set aside, nothing is thrown away
///
/// With --dry-run it only says what would be done. Whatever is changed is kept, as it was, in a folder `repair-N` in the
/// store's. A session of which events are missing ends there: it is read as far as it goes, what lay behind comes out
/// with `sessionlog read ID --quarantine`, and a fork at its end goes on. A second run finds nothing to do.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  sessionlog repair --dry-run
  sessionlog repair")]
pub(crate) struct Args {
    /// Only say what would be done
    #[arg(long)]
    dry_run: bool,

    /// One JSON object
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(place: &Place, args: &Args, out: &mut impl Write) -> Result<(), Failure> {
    let repair = Repair::folder(place.path()?).map_err(|error| Failure::folder(&error))?;
    if args.dry_run || repair.plan().is_empty() {
        print(repair.plan(), args.json, out)?;
        if !args.json {
            let text = if repair.plan().is_empty() {
                "nothing to do"
            } else {
                "nothing was changed: this is a dry run"
            };
            output::line(out, text)?;
        }
        return output::flush(out);
    }
    let done = repair.apply()?;
    print(&done, args.json, out)?;
    if let (Some(copies), false) = (&done.copies, args.json) {
        output::line(out, &format!("what was changed is kept, as it was, in {}", copies.display()))?;
    }
    output::flush(out)
}

fn print(report: &RepairReport, json: bool, out: &mut impl Write) -> Result<(), Failure> {
    if json {
        let text = serde_json::to_string(report);
        let text = text.map_err(|error| Failure::refused(format!("cannot write JSON: {error}")))?;
        return output::line(out, &text);
    }
    for remedy in &report.remedies {
        output::line(out, &printable(&remedy.to_string()))?;
    }
    if report.more > 0 {
        output::line(out, &format!("and {} more", report.more))?;
    }
    Ok(())
}
