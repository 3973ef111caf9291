//! `grep`: events whose text a regular expression matches.

use std::collections::VecDeque;
use std::io::Write;
use std::ops::Range;

use regex::{Regex, RegexBuilder};
use serde::Serialize;
use serde_json::value::RawValue;
use sessionlog::{Error, Event, Events, Seq, Session, SessionId};

use super::exit::Failure;
use super::output::{Buffered, printable};
use super::place::Place;
use super::style::Paint;
use super::{resolve, said};

/// The type whose events are stored apart.
const CHUNK: &str = "assistant/chunk";
/// Characters of a line before and behind a match.
const AROUND: usize = 60;
/// Characters of an event that is context.
const CONTEXT_WIDTH: usize = 140;

/// Prints the events whose text matches a regular expression
///
/// Searched are the contents of messages, names and arguments of tool calls, results and their errors, and the values of
/// custom events. Of a JSON string its text is searched, of other JSON what stands in the log, as it is spelled. Streamed
/// chunks are searched with `--type assistant/chunk` only: the messages that they made are searched anyway.
///
/// Each match is a line: session, seq, type, and the line of the text around the first match in it; events around it have
/// `-` instead of `:`. Exit code 1 when nothing matches. Syntax: https://docs.rs/regex/#syntax
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  sessionlog grep 'panicked at' ID
  sessionlog grep -i timeout --type tool/result
  sessionlog grep -C 2 'rm -rf' ID
  sessionlog grep --json 'error\\[E\\d+\\]' | jq -r .event.seq")]
pub(crate) struct Args {
    /// The regular expression
    #[arg(value_name = "PATTERN", allow_hyphen_values = true)]
    pattern: String,

    /// The session's id, or the beginning of it, or its title, when that names only one [default: all sessions, the one
    /// updated last first; of a fork its own events]
    id: Option<SessionId>,

    /// Only events of this type
    #[arg(long = "type", value_name = "T")]
    event_type: Option<String>,

    /// Small and capital letters are the same
    #[arg(long, short)]
    ignore_case: bool,

    /// Also show so many events before and behind each match
    #[arg(long, short = 'C', value_name = "N", default_value_t = 0, conflicts_with = "json")]
    context: usize,

    /// A JSON object for each match, with the session's id, what matched first and where, and the event
    #[arg(long)]
    json: bool,
}

/// What matched first in an event.
struct Found {
    field: String,
    matched: String,
    /// The line of the text in which it stands, and where in that.
    line: String,
    at: Range<usize>,
}

#[derive(Serialize)]
struct Record<'a> {
    session: &'a str,
    field: &'a str,
    #[serde(rename = "match")]
    matched: &'a str,
    event: Box<RawValue>,
}

pub(crate) fn run(place: &Place, args: &Args, out: &mut impl Write) -> Result<(), Failure> {
    let pattern = RegexBuilder::new(&args.pattern).case_insensitive(args.ignore_case).build();
    let pattern = pattern.map_err(|error| Failure::usage(format!("the pattern: {error}")))?;
    let store = place.open()?;
    let mut search = Search { args, pattern, out: Buffered::new(out), paint: Paint::stdout(), matches: 0 };
    let searched = match &args.id {
        Some(id) => {
            let session = resolve::session(&store, id)?;
            search.session(&session, Seq::ZERO)
        }
        None => store.list()?.try_for_each(|info| {
            let header = info?.header;
            let own = header.parent.map_or(0, |parent| parent.prefix_len);
            match store.session(&header.id) {
                Ok(session) => search.session(&session, Seq::new(own)),
                // Deleted since it was listed.
                Err(Error::SessionNotFound { .. }) => Ok(()),
                Err(error) => Err(error.into()),
            }
        }),
    };
    // What was found before a failure is true.
    search.out.finish()?;
    searched?;
    if search.matches > 0 { Ok(()) } else { Err(Failure::refused("nothing matches")) }
}

struct Search<'a, W> {
    args: &'a Args,
    pattern: Regex,
    out: Buffered<'a, W>,
    paint: Paint,
    matches: u64,
}

impl<W: Write> Search<'_, W> {
    fn session(&mut self, session: &Session, from: Seq) -> Result<(), Failure> {
        let id = session.id().as_str();
        let wanted = self.args.event_type.as_deref();
        // The events before a match, and how many behind it are still to be shown.
        let mut before: VecDeque<Event> = VecDeque::new();
        let mut behind = 0;
        let mut last_shown: Option<Seq> = None;
        for event in self.events(session, from)? {
            let event = event?;
            // A chunk with fields of its own is read even where chunks are left out.
            let is_wanted = wanted.map_or(event.event_type() != CHUNK, |wanted| event.event_type() == wanted);
            let found = if is_wanted { self.find(&event) } else { None };
            let Some(found) = found else {
                if behind > 0 {
                    behind -= 1;
                    last_shown = Some(event.seq);
                    self.context(id, &event)?;
                } else if self.args.context > 0 {
                    if before.len() == self.args.context {
                        before.pop_front();
                    }
                    before.push_back(event);
                }
                continue;
            };
            self.matches += 1;
            if self.args.json {
                self.record(id, &event, &found)?;
                continue;
            }
            let first = before.front().map_or(event.seq, |first| first.seq);
            if self.args.context > 0 && last_shown.is_some_and(|last| last.next() != Some(first)) {
                self.out.line(|line| line.extend_from_slice(b"--"))?;
            }
            for event in before.drain(..) {
                self.context(id, &event)?;
            }
            self.matched(id, &event, &found)?;
            (behind, last_shown) = (self.args.context, Some(event.seq));
        }
        Ok(())
    }

    fn events(&self, session: &Session, from: Seq) -> Result<Events, Failure> {
        let events = match session.read_from(from) {
            Ok(events) => events,
            // Of an ended parent: less than the fork shares.
            Err(Error::SeqBeyondEnd { .. }) => session.read_from(Seq::new(session.len()))?,
            Err(error) => return Err(error.into()),
        };
        let with_chunks = self.args.event_type.as_deref() == Some(CHUNK);
        Ok(if with_chunks { events } else { events.without_chunks() })
    }

    fn find(&self, event: &Event) -> Option<Found> {
        let mut found = None;
        said::texts(event, &mut |text| {
            let Some(first) = self.pattern.find(&text.text) else { return true };
            let (before, behind) = (text.text.get(..first.start()), text.text.get(first.end()..));
            let start = before.and_then(|before| before.rfind('\n')).map_or(0, |at| at + 1);
            let end =
                behind.and_then(|behind| behind.find('\n')).map_or(text.text.len(), |at| first.end() + at);
            found = Some(Found {
                field: text.field.to_owned(),
                matched: first.as_str().to_owned(),
                line: text.text.get(start..end).unwrap_or_default().to_owned(),
                at: first.start() - start..first.end() - start,
            });
            false
        });
        found
    }

    fn matched(&mut self, id: &str, event: &Event, found: &Found) -> Result<(), Failure> {
        let text = excerpt(found, self.paint);
        let (id, of_type) = (printable(id), printable(&event.event_type()));
        self.text(&format!("{id}:{}:{of_type}: {text}", event.seq))
    }

    fn context(&mut self, id: &str, event: &Event) -> Result<(), Failure> {
        self.text(&format!("{}-{}-{}", printable(id), event.seq, said::summary(event, CONTEXT_WIDTH)))
    }

    fn record(&mut self, session: &str, event: &Event, found: &Found) -> Result<(), Failure> {
        let Found { field, matched, .. } = found;
        let record = RawValue::from_string(event.to_json())
            .and_then(|event| serde_json::to_string(&Record { session, field, matched, event }));
        let text = record.map_err(|error| Failure::refused(format!("cannot write JSON: {error}")))?;
        self.text(&text)
    }

    fn text(&mut self, text: &str) -> Result<(), Failure> {
        self.out.line(|line| line.extend_from_slice(text.as_bytes()))
    }
}

/// The match with some of its line around it.
fn excerpt(found: &Found, paint: Paint) -> String {
    let part = |range: Range<usize>| found.line.get(range).unwrap_or_default();
    let (before, behind) = (part(0..found.at.start), part(found.at.end..found.line.len()));
    // Where the last and the first characters that are shown begin and end.
    let from = before.char_indices().rev().nth(AROUND - 1).map_or(0, |(at, _)| at);
    let to = behind.char_indices().nth(AROUND).map_or(behind.len(), |(at, _)| at);
    format!(
        "{}{}{}{}{}",
        if from > 0 { "…" } else { "" },
        printable(before.get(from..).unwrap_or_default()),
        paint.bad(&said::shortened(printable(part(found.at.clone())), 2 * AROUND)),
        printable(behind.get(..to).unwrap_or_default()),
        if to < behind.len() { "…" } else { "" },
    )
}
