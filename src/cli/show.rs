//! `show`: one session, or the store itself.

use std::io::Write;

use serde::Serialize;
use sessionlog::{SessionId, Store};

use super::exit::Failure;
use super::ls::{Record, meta, parent_name};
use super::place::Place;
use super::time::rfc3339;
use super::{output, resolve};

/// Shows a session, or without an id the store itself
///
/// Of the store: its id and format, the mode in which it makes data durable on this file system, what it takes on disk,
/// and what opening it found after a crash.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  sessionlog show ID
  sessionlog show
  sessionlog show ID --json | jq .length")]
pub(crate) struct Args {
    /// The session's id, or the beginning of it when no other id begins like that
    id: Option<SessionId>,

    /// One JSON object, with times in milliseconds and sizes in bytes
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(place: &Place, args: &Args, out: &mut impl Write) -> Result<(), Failure> {
    let store = place.open()?;
    let text = match &args.id {
        Some(id) => session(&store, id, args.json)?,
        None => whole(&store, args.json)?,
    };
    output::line(out, &text)?;
    output::flush(out)
}

fn session(store: &Store, id: &SessionId, json: bool) -> Result<String, Failure> {
    let session = resolve::session(store, id)?;
    let info = session.info()?;
    let durable = session.durable_len();
    if json {
        let mut record = Record::of(&info);
        record.durable_length = Some(durable);
        return record.json();
    }
    let parent = match &info.header.parent {
        Some(parent) => format!("{}, its first {} events", parent_name(parent), parent.prefix_len),
        None => "-".into(),
    };
    Ok(list(&[
        ("session", info.header.id.to_string()),
        ("events", info.len.to_string()),
        ("durable", durable.to_string()),
        ("created", rfc3339(info.header.created_at)),
        ("updated", rfc3339(info.updated_at)),
        ("parent", parent),
        ("meta", meta(&info.header.meta)),
    ]))
}

/// What `--json` prints for the store.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct StoreRecord<'a> {
    path: Option<String>,
    store_id: &'a str,
    format: u32,
    durability: &'a str,
    engine: &'a str,
    engine_bytes: u64,
    journal_bytes: u64,
    tail_bytes: u64,
    replayed_commits: u64,
    replayed_events: u64,
    torn: &'a [String],
}

fn whole(store: &Store, json: bool) -> Result<String, Failure> {
    let info = store.info()?;
    let opened = store.open_report();
    let path = info.path.as_ref().map(|path| path.display().to_string());
    if json {
        let record = StoreRecord {
            path,
            store_id: &info.store_id,
            format: info.format,
            durability: &info.durability,
            engine: &info.engine,
            engine_bytes: info.engine_bytes,
            journal_bytes: info.journal_bytes,
            tail_bytes: info.tail_bytes,
            replayed_commits: opened.replayed_commits,
            replayed_events: opened.replayed_events,
            torn: &opened.torn,
        };
        return serde_json::to_string(&record)
            .map_err(|error| Failure::refused(format!("cannot write JSON: {error}")));
    }
    let replayed = match opened.replayed_commits {
        0 => "nothing: it was closed in order".into(),
        commits => format!("{} events in {commits} commits of the journal", opened.replayed_events),
    };
    let torn = if opened.torn.is_empty() { "-".into() } else { opened.torn.join(" ") };
    Ok(list(&[
        ("store", path.unwrap_or_else(|| "in memory".into())),
        ("id", info.store_id.clone()),
        ("format", info.format.to_string()),
        ("durability", info.durability.clone()),
        ("engine", info.engine.clone()),
        ("engine size", format!("{} bytes", info.engine_bytes)),
        ("journal size", format!("{} bytes", info.journal_bytes)),
        ("tail", format!("{} bytes", info.tail_bytes)),
        ("replayed", replayed),
        ("torn", torn),
    ]))
}

fn list(entries: &[(&str, String)]) -> String {
    let width = entries.iter().map(|(name, _)| name.len()).max().unwrap_or(0);
    let lines: Vec<String> = entries.iter().map(|(name, value)| format!("{name:<width$}  {value}")).collect();
    lines.join("\n")
}
