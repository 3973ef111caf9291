//! `inspect`: what the last turn left open. Writes nothing.

use std::io::Write;

use serde::Serialize;
use sessionlog::{Event, EventError, Inspection, JsonString, JsonText, Session, SessionId};

use super::exit::Failure;
use super::output::{self, printable};
use super::place::Place;
use super::resolve;

/// How much of an unfinished message is shown to people, in characters.
const SHOWN: usize = 200;

/// Shows what an interrupted turn left open, and the events that `resume` would append
///
/// An open turn and step, tool calls without a result, the text of a message that was still streamed. Nothing is
/// written. Reads back to the start of the last turn only, however long the session is.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  sessionlog inspect ID
  sessionlog inspect ID --json | jq -r '.calls[].name'")]
pub(crate) struct Args {
    /// The session's id, or the beginning of it, or its title, when that names only one
    id: SessionId,

    /// One JSON object
    #[arg(long)]
    json: bool,
}

/// What `--json` prints.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Record<'a> {
    id: &'a str,
    length: u64,
    turn: Option<Turn<'a>>,
    step: Option<Step<'a>>,
    calls: Vec<Call<'a>>,
    text: Option<&'a str>,
    closers: Vec<JsonText>,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Turn<'a> {
    seq: u64,
    turn_id: &'a JsonString,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Step<'a> {
    seq: u64,
    step_id: &'a JsonString,
    turn_id: &'a JsonString,
}

#[derive(Debug, Serialize)]
struct Call<'a> {
    seq: u64,
    id: &'a JsonString,
    name: &'a JsonString,
    args: &'a JsonText,
}

pub(crate) fn run(place: &Place, args: &Args, out: &mut impl Write) -> Result<(), Failure> {
    let store = place.open()?;
    let session = resolve::session(&store, &args.id)?;
    let found = session.inspect()?;
    let text = if args.json { json(&session, &found)? } else { text(&session, &found) };
    output::line(out, &text)?;
    output::flush(out)
}

fn json(session: &Session, found: &Inspection) -> Result<String, Failure> {
    let unwritable = |error: String| Failure::refused(format!("cannot write JSON: {error}"));
    let closers: Result<_, EventError> =
        found.closers.iter().map(|event| JsonText::parse(event.to_json())).collect();
    let record = Record {
        id: session.id().as_str(),
        length: session.len(),
        turn: found.turn.as_ref().map(|turn| Turn { seq: turn.seq.get(), turn_id: &turn.turn_id }),
        step: found.step.as_ref().map(|step| Step {
            seq: step.seq.get(),
            step_id: &step.step_id,
            turn_id: &step.turn_id,
        }),
        calls: found.calls.iter().map(Call::of).collect(),
        text: found.text.as_deref(),
        closers: closers.map_err(|error| unwritable(error.to_string()))?,
    };
    serde_json::to_string(&record).map_err(|error| unwritable(error.to_string()))
}

impl<'a> Call<'a> {
    fn of(call: &'a sessionlog::OpenCall) -> Self {
        Self { seq: call.seq.get(), id: &call.id, name: &call.name, args: &call.args }
    }
}

fn text(session: &Session, found: &Inspection) -> String {
    let mut entries =
        vec![("session", printable(session.id().as_str())), ("events", session.len().to_string())];
    let Some(turn) = &found.turn else {
        entries.push(("turn", "none is open".into()));
        return output::list(&entries);
    };
    let name = |name: &JsonString| printable(&name.to_str());
    entries.push(("turn", format!("{}, open since seq {}", name(&turn.turn_id), turn.seq)));
    if let Some(step) = &found.step {
        entries.push(("step", format!("{}, open since seq {}", name(&step.step_id), step.seq)));
    }
    for call in &found.calls {
        let (id, tool) = (name(&call.id), name(&call.name));
        entries.push(("call", format!("{id} of {tool}, no result since seq {}", call.seq)));
    }
    if let Some(text) = &found.text {
        entries.push(("text", beginning(text)));
    }
    let closers: Vec<String> = found.closers.iter().map(Event::to_json).collect();
    format!("{}\n`resume` would append:\n{}", output::list(&entries), closers.join("\n"))
}

fn beginning(text: &str) -> String {
    let shown: String = text.chars().take(SHOWN).collect();
    let rest = text.chars().skip(SHOWN).count();
    let more = if rest > 0 { format!("… and {rest} characters more") } else { String::new() };
    format!("\"{}\"{more}", printable(&shown))
}
