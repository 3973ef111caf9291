//! `show`: one session, or the store itself.

use std::io::Write;

use serde::Serialize;
use sessionlog::{Seq, SessionId, Store, Timestamp};

use super::exit::Failure;
use super::ls::{Record, meta, parent_name};
use super::output::printable;
use super::place::Place;
use super::time::{ago, local, now};
use super::{output, resolve, stats};

/// Shows a session, or without an id the store itself
///
/// Of a session: its header, and what its events add up to, for which they are read once (`ls` reads none). `stats` tells
/// more.
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
    /// The session's id, or the beginning of it, or its title, when that names only one
    id: Option<SessionId>,

    /// One JSON object, with times in milliseconds and sizes in bytes
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(place: &Place, args: &Args, out: &mut impl Write) -> Result<(), Failure> {
    let store = place.open()?;
    match &args.id {
        Some(id) => session(&store, id, args.json, out)?,
        None => output::line(out, &whole(&store, args.json)?)?,
    }
    output::flush(out)
}

fn session(store: &Store, id: &SessionId, json: bool, out: &mut impl Write) -> Result<(), Failure> {
    let session = resolve::session(store, id)?;
    let info = session.info()?;
    let durable = session.durable_len();
    let figures = session.statistics();
    let hash = session.running_hash(Seq::new(info.len));
    if json {
        let mut record = Record::of(&info);
        record.durable_length = Some(durable);
        record.hash = hash.as_ref().ok().copied();
        record.statistics = figures.as_ref().ok();
        output::line(out, &record.json()?)?;
    } else {
        let parent = match &info.header.parent {
            Some(parent) => format!("{}, its first {} events", parent_name(parent), parent.prefix_len),
            None => "-".into(),
        };
        let mut entries = vec![
            ("session", printable(info.header.id.as_str())),
            ("events", info.len.to_string()),
            ("durable", durable.to_string()),
            ("created", since(info.header.created_at)),
            ("updated", since(info.updated_at)),
            ("parent", parent),
            ("hash", hash.map_or_else(|_| "unknown: events cannot be read".into(), |hash| hash.to_string())),
            ("meta", meta(&info.header.meta)),
            ("title", info.labels.title.as_deref().map_or_else(|| "-".into(), printable)),
            ("labels", meta(&info.labels.labels)),
        ];
        entries.extend(figures.iter().flat_map(stats::audit));
        output::line(out, &output::list(&entries))?;
    }
    // What is known of a session is shown also when its events cannot be read.
    figures?;
    Ok(())
}

/// A time, and how long ago that was where it is not long.
fn since(time: Timestamp) -> String {
    let ago = ago(time, now());
    if ago.ends_with("ago") { format!("{} ({ago})", local(time)) } else { local(time) }
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
    Ok(output::list(&[
        ("store", path.unwrap_or_else(|| "in memory".into())),
        ("id", info.store_id.clone()),
        ("format", info.format.to_string()),
        ("durability", info.durability.clone()),
        ("engine", info.engine.clone()),
        ("engine size", output::size(info.engine_bytes)),
        ("journal size", output::size(info.journal_bytes)),
        ("tail", output::size(info.tail_bytes)),
        ("replayed", replayed),
        ("torn", torn),
    ]))
}
