//! `messages`: what the model sees, as the chat API has it.

use std::io::Write;

use sessionlog::{Message, Report, Seq, SessionId};

use super::exit::Failure;
use super::output::{self, Buffered};
use super::place::Place;
use super::resolve;

/// How many mends are named; the library lists all.
const SHOWN: usize = 10;

/// Prints the messages of the next request, as the chat API has them: a JSON array
///
/// It can be sent, whatever was logged: calls stand in assistant messages, results right behind them. Where a result is
/// missing something stands in for it, a result without a call is left out; standard error says so.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  sessionlog messages ID
  sessionlog messages ID --at 1000 --strict
  sessionlog messages ID | jq -r '.[] | select(.role == \"user\").content'")]
pub(crate) struct Args {
    /// The session's id, or the beginning of it, or its title, when that names only one
    id: SessionId,

    /// As it was when the session had N events [default: all of them]
    #[arg(long, value_name = "N")]
    at: Option<Seq>,

    /// Fail where something would have to be added or left out
    #[arg(long)]
    strict: bool,

    /// One message for each event that stands, as it was logged: to look at, not to send
    #[arg(long, conflicts_with = "strict")]
    plain: bool,
}

pub(crate) fn run(place: &Place, args: &Args, out: &mut impl Write) -> Result<(), Failure> {
    let store = place.open()?;
    let session = resolve::session(&store, &args.id)?;
    let mut surface = match args.at {
        Some(at) => session.surface_at(at)?,
        None => session.surface()?,
    };
    if args.plain {
        return print(&surface.plain_messages(), out);
    }
    let report = surface.report();
    if args.strict && !report.is_empty() {
        let told = format!("session {} cannot be sent as it was logged:\n{}", session.id(), lines(&report));
        return Err(Failure::refused(told).hint("without --strict it is mended"));
    }
    if !report.is_empty() {
        output::note(&format!("mended:\n{}", lines(&report)));
    }
    print(surface.messages(), out)
}

fn lines(report: &Report) -> String {
    let mut lines: Vec<String> =
        report.mends.iter().take(SHOWN).map(|mend| format!("  event {}: {}", mend.seq, mend.fault)).collect();
    let more = report.mends.len() - lines.len();
    if more > 0 {
        lines.push(format!("  and {more} more"));
    }
    lines.join("\n")
}

fn print(messages: &[Message], out: &mut impl Write) -> Result<(), Failure> {
    let mut out = Buffered::new(out);
    if messages.is_empty() {
        out.line(|line| line.extend_from_slice(b"[]"))?;
    }
    for (index, message) in messages.iter().enumerate() {
        out.line(|line| {
            line.push(if index == 0 { b'[' } else { b' ' });
            line.extend_from_slice(message.to_json().as_bytes());
            line.push(if index + 1 == messages.len() { b']' } else { b',' });
        })?;
    }
    out.finish()
}
