//! `read`: events out, one a line.

use std::io::Write;
use std::ops::Range;

use sessionlog::{Events, Seq, Session, SessionId};

use super::exit::Failure;
use super::output::{self, Buffered};
use super::place::Place;
use super::resolve;

/// The type whose events are stored apart: a reader that does not want them need not decode them.
const CHUNK: &str = "assistant/chunk";

/// Prints events of a session, one JSON object a line, in order
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  sessionlog read ID
  sessionlog read ID --from 1000 --to 2000
  sessionlog read ID --last 3 --type user/message | jq .content")]
pub(crate) struct Args {
    /// The session's id, or the beginning of it, or its title, when that names only one
    id: SessionId,

    /// The first event to print [default: 0]
    #[arg(long, value_name = "N")]
    from: Option<Seq>,

    /// The event to stop before; beyond the end means the end [default: the end]
    #[arg(long, value_name = "N")]
    to: Option<Seq>,

    /// Only the last N of them (with --type: the last N of that type)
    #[arg(long, value_name = "N")]
    last: Option<u64>,

    /// Only events of this type
    #[arg(long = "type", value_name = "T")]
    event_type: Option<String>,

    /// What a repair has set aside of this session instead: the events behind a hole, with their seqs. What cannot be
    /// read is named on standard error
    #[arg(long, conflicts_with_all = ["from", "to", "last"])]
    quarantine: bool,
}

pub(crate) fn run(place: &Place, args: &Args, out: &mut impl Write) -> Result<(), Failure> {
    let from = args.from.unwrap_or(Seq::ZERO);
    let to = args.to.unwrap_or(Seq::new(u64::MAX));
    if to < from {
        return Err(Failure::usage(format!("--to {to} lies before --from {from}")));
    }
    let store = place.open()?;
    let session = resolve::session(&store, &args.id)?;
    if args.quarantine {
        return quarantine(&session, args.event_type.as_deref(), out);
    }
    let range = from..to;
    let range = match args.last {
        Some(count) => last(&session, range, count, args.event_type.as_deref())?,
        None => range,
    };
    let events = wanted(session.read_range(range)?, args.event_type.as_deref());
    print(events, args.event_type.as_deref(), out)
}

/// The part of `range` that begins with the last `count` events (of the type). Two passes, of which the first keeps
/// one number: the other way, keeping the events, holds as many in memory as somebody asks for.
fn last(session: &Session, range: Range<Seq>, count: u64, of: Option<&str>) -> Result<Range<Seq>, Failure> {
    let end = Seq::new(range.end.get().min(session.len()));
    if count == 0 || range.start >= end {
        // Not `end..end`: a start beyond the session's end is an error, and it is the reader's to give.
        return Ok(range.start..range.start);
    }
    if of.is_none() {
        let start = range.start.max(Seq::new(end.get().saturating_sub(count)));
        return Ok(start..end);
    }
    let mut start = end;
    let mut left = count;
    for event in wanted(session.read_reverse(range.start..end)?, of) {
        let event = event?;
        if left > 0 && is_of(&event, of) {
            start = event.seq;
            left -= 1;
        }
        if left == 0 {
            break;
        }
    }
    Ok(start..end)
}

fn quarantine(session: &Session, of: Option<&str>, out: &mut impl Write) -> Result<(), Failure> {
    let mut out = Buffered::new(out);
    for item in session.quarantine()? {
        let item = item?;
        for event in item.events.iter().filter(|event| is_of(event, of)) {
            out.line(|line| event.write_json(line))?;
        }
        if item.events.is_empty() {
            output::note(&format!("{} bytes of {}: {}", item.bytes.len(), item.place, item.reason));
        }
    }
    out.finish()
}

fn print(events: Events, of: Option<&str>, out: &mut impl Write) -> Result<(), Failure> {
    let mut out = Buffered::new(out);
    for event in events {
        match event {
            Ok(event) if is_of(&event, of) => out.line(|line| event.write_json(line))?,
            Ok(_) => {}
            Err(error) => {
                out.finish()?;
                return Err(error.into());
            }
        }
    }
    out.finish()
}

fn wanted(events: Events, of: Option<&str>) -> Events {
    if of.is_some_and(|of| of != CHUNK) { events.without_chunks() } else { events }
}

fn is_of(event: &sessionlog::Event, of: Option<&str>) -> bool {
    of.is_none_or(|of| event.event_type() == of)
}
