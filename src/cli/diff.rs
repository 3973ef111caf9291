//! `diff`: where two sessions part, and how each goes on.

use std::io::Write;

use serde::Serialize;
use serde_json::value::RawValue;
use sessionlog::{Event, Events, Seq, Session, SessionId, Store};

use super::exit::Failure;
use super::output::{Buffered, printable};
use super::place::Place;
use super::{resolve, said};

/// What a line holds beside both events: seq, marker, spaces.
const AROUND: usize = 15;
const NARROWEST: usize = 20;

/// Shows how many first events two sessions have in common, and both continuations side by side
///
/// Events are the same when their lines are: a fork and its parent have the shared ones in common, two runs of the same
/// task nothing, for their times differ. The common part is found by running hashes: it is not read.
///
/// Between both events stands `=` where they differ in their times only, `|` where they differ, `<` or `>` where only
/// one session has an event. Exit code 1 when the sessions differ.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  sessionlog diff ID BRANCH
  sessionlog diff ID BRANCH --no-chunks --width 160
  sessionlog diff ID BRANCH --json | jq -r 'select(.b) | .b.type'")]
pub(crate) struct Args {
    /// A session's id, or the beginning of it, or its title, when that names only one
    a: SessionId,

    /// The other session's
    b: SessionId,

    /// Leave out streamed chunks; what is left is put side by side
    #[arg(long)]
    no_chunks: bool,

    /// The greatest width of a line, in characters
    #[arg(long, value_name = "N", default_value_t = 120)]
    width: usize,

    /// A JSON object for what they have in common, then one for each pair: `{"a":EVENT,"b":EVENT}`, `null` where there
    /// is none
    #[arg(long)]
    json: bool,
}

#[derive(Serialize)]
struct Head<'a> {
    common: u64,
    a: Side<'a>,
    b: Side<'a>,
}

#[derive(Serialize)]
struct Side<'a> {
    id: &'a str,
    length: u64,
}

#[derive(Serialize)]
struct Pair {
    a: Option<Box<RawValue>>,
    b: Option<Box<RawValue>>,
}

pub(crate) fn run(place: &Place, args: &Args, out: &mut impl Write) -> Result<(), Failure> {
    let store = place.open()?;
    let (a, b) = both(&store, args)?;
    let common = common(&a, &b)?;
    let mut out = Buffered::new(out);
    head(&a, &b, common, args.json, &mut out)?;
    let pairs = continuations(&a, &b, common, args, &mut out);
    // What was read before a failure is true.
    out.finish()?;
    pairs?;
    if common == a.len() && common == b.len() {
        return Ok(());
    }
    Err(Failure::refused(format!("sessions {} and {} differ behind event {common}", a.id(), b.id())))
}

fn both(store: &Store, args: &Args) -> Result<(Session, Session), Failure> {
    Ok((resolve::session(store, &args.a)?, resolve::session(store, &args.b)?))
}

/// How many first events are the same: the running hash after them is, and a hash says it of all before.
fn common(a: &Session, b: &Session) -> Result<u64, Failure> {
    let (mut same, mut end) = (0, a.len().min(b.len()));
    // Often the whole of the shorter one, and then one look does.
    let mut at = end;
    while same < end {
        if a.running_hash(Seq::new(at))? == b.running_hash(Seq::new(at))? {
            same = at;
        } else {
            end = at - 1;
        }
        at = same + (end - same).div_ceil(2);
    }
    Ok(same)
}

fn head<W: Write>(
    a: &Session,
    b: &Session,
    common: u64,
    json: bool,
    out: &mut Buffered<'_, W>,
) -> Result<(), Failure> {
    if json {
        let side = |session: &Session| (session.len(), session.id().as_str().to_owned());
        let ((a_length, a), (b_length, b)) = (side(a), side(b));
        let head =
            Head { common, a: Side { id: &a, length: a_length }, b: Side { id: &b, length: b_length } };
        return json_line(&head, out);
    }
    out.line(|line| line.extend_from_slice(format!("common  {common} events").as_bytes()))?;
    for (name, session) in [("a", a), ("b", b)] {
        let more = session.len() - common;
        let text = format!("{name}       {more} more  {}", printable(session.id().as_str()));
        out.line(|line| line.extend_from_slice(text.as_bytes()))?;
    }
    Ok(())
}

fn continuations<W: Write>(
    a: &Session,
    b: &Session,
    common: u64,
    args: &Args,
    out: &mut Buffered<'_, W>,
) -> Result<(), Failure> {
    let read = |session: &Session| -> Result<Events, Failure> {
        let events = session.read_from(Seq::new(common))?;
        Ok(if args.no_chunks { events.without_chunks() } else { events })
    };
    let (mut a, mut b) = (read(a)?, read(b)?);
    let column = (args.width.saturating_sub(AROUND) / 2).max(NARROWEST);
    loop {
        let pair = (a.next().transpose()?, b.next().transpose()?);
        if pair == (None, None) {
            return Ok(());
        }
        if args.json {
            let raw =
                |event: &Option<Event>| event.as_ref().map(|event| RawValue::from_string(event.to_json()));
            let raw = |event| raw(event).transpose().map_err(|error| cannot_write(&error));
            json_line(&Pair { a: raw(&pair.0)?, b: raw(&pair.1)? }, out)?;
        } else {
            out.line(|line| line.extend_from_slice(beside(&pair, column).as_bytes()))?;
        }
    }
}

/// Both events of a pair on one line.
fn beside((a, b): &(Option<Event>, Option<Event>), column: usize) -> String {
    let marker = match (a, b) {
        (Some(a), Some(b)) if same_but_for_time(a, b) => '=',
        (Some(_), Some(_)) => '|',
        (Some(_), None) => '<',
        (None, _) => '>',
    };
    let seq = a.as_ref().or(b.as_ref()).map_or(0, |event| event.seq.get());
    let shown = |event: &Option<Event>| event.as_ref().map_or_else(String::new, |e| said::summary(e, column));
    format!("{seq:>9}  {:<column$} {marker} {}", shown(a), shown(b)).trim_end().to_owned()
}

fn same_but_for_time(a: &Event, b: &Event) -> bool {
    (&a.kind, &a.extra, &a.surface_op, &a.source_event_seqs)
        == (&b.kind, &b.extra, &b.surface_op, &b.source_event_seqs)
}

fn json_line<W: Write>(value: &impl Serialize, out: &mut Buffered<'_, W>) -> Result<(), Failure> {
    let text = serde_json::to_string(value).map_err(|error| cannot_write(&error))?;
    out.line(|line| line.extend_from_slice(text.as_bytes()))
}

fn cannot_write(error: &serde_json::Error) -> Failure {
    Failure::refused(format!("cannot write JSON: {error}"))
}
