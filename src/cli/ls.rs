//! `ls`: the sessions of a store, the one written last first.

use std::collections::BTreeMap;
use std::io::Write;

use serde::Serialize;
use sessionlog::{
    List, ListCursor, Parent, RunningHash, SessionId, SessionInfo, Statistics, Store, Timestamp,
};

use super::exit::Failure;
use super::label::name_and_value;
use super::output::{self, Buffered, printable, size};
use super::place::Place;
use super::resolve;
use super::style::Paint;
use super::time::{ago, now, when};

/// Rows that are aligned with each other: memory does not grow with the store.
const PAGE: u64 = 1_000;
/// A longer cell does not widen its column.
const WIDEST: usize = 44;
const HEADINGS: [&str; COLUMNS] =
    ["ID", "EVENTS", "SIZE", "UPDATED", "CREATED", "PARENT@PREFIX", "META", "TITLE", "LABELS"];
const COLUMNS: usize = 9;
/// The columns of numbers, which stand to the right.
const EVENTS: usize = 1;
const SIZE: usize = 2;

/// Lists the sessions, the one updated last first
///
/// Of several filters all must hold. Times are how long ago (30d, 12h, 5m, 45s, 2w), a date or time in UTC (2026-12-01,
/// 2026-12-01T10:25:42Z), or milliseconds since 1970. With --json each line is a session, as `show --json` prints it;
/// where --limit leaves some out a last line {"after":CURSOR} says how to go on.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  sessionlog ls
  sessionlog ls --label branch=main --title release --since 7d
  sessionlog ls --limit 20
  sessionlog ls --parent chat --size
  sessionlog ls --json | jq -r 'select(.length > 0) | .id'")]
pub(crate) struct Args {
    /// One JSON object a line, with times in milliseconds
    #[arg(long)]
    json: bool,

    /// At most so many; what goes on from there is told
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    limit: Option<u64>,

    /// Only those behind an earlier page, whose end said this
    #[arg(long, visible_alias = "cursor", value_name = "CURSOR")]
    after: Option<ListCursor>,

    /// Only those with this label; may be given several times
    #[arg(long, value_name = "K=V", value_parser = name_and_value)]
    label: Vec<(String, String)>,

    /// Only those whose title holds this text
    #[arg(long, value_name = "TEXT")]
    title: Option<String>,

    /// Only those that were updated at this time or later
    #[arg(long, value_name = "TIME", value_parser = when)]
    since: Option<Timestamp>,

    /// Only those that were updated before this time
    #[arg(long, value_name = "TIME", value_parser = when)]
    until: Option<Timestamp>,

    /// Only those that were forked from this session: its id, or the beginning of it, or its title
    #[arg(long, value_name = "ID")]
    parent: Option<SessionId>,

    /// Also what their own events take as they are stored, compressed; their blocks are gone over for that
    #[arg(long)]
    size: bool,
}

impl Args {
    fn list(&self, parent: Option<&SessionId>) -> List {
        let mut list = List::new();
        for (name, value) in &self.label {
            list = list.label(name, value);
        }
        if let Some(title) = &self.title {
            list = list.title(title);
        }
        if let Some(time) = self.since {
            list = list.since(time);
        }
        if let Some(time) = self.until {
            list = list.until(time);
        }
        if let Some(parent) = parent {
            list = list.parent(parent.clone());
        }
        match self.after {
            Some(after) => list.after(after),
            None => list,
        }
    }
}

/// What `--json` prints for a session, here and in `show`.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Record<'a> {
    id: &'a str,
    length: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) durable_length: Option<u64>,
    created_at: i64,
    updated_at: i64,
    #[serde(skip_serializing_if = "Option::is_none")]
    parent: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    prefix_length: Option<u64>,
    meta: &'a BTreeMap<String, String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) hash: Option<RunningHash>,
    #[serde(skip_serializing_if = "Option::is_none")]
    stored_bytes: Option<u64>,
    title: Option<&'a str>,
    labels: &'a BTreeMap<String, String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) statistics: Option<&'a Statistics>,
}

impl<'a> Record<'a> {
    pub(crate) fn of(info: &'a SessionInfo) -> Self {
        let parent = info.header.parent.as_ref();
        Self {
            id: info.header.id.as_str(),
            length: info.len,
            durable_length: None,
            created_at: info.header.created_at.as_millis(),
            updated_at: info.updated_at.as_millis(),
            parent: parent.and_then(|parent| parent.session.as_ref()).map(SessionId::as_str),
            prefix_length: parent.map(|parent| parent.prefix_len),
            meta: &info.header.meta,
            hash: None,
            stored_bytes: None,
            title: info.labels.title.as_deref(),
            labels: &info.labels.labels,
            statistics: None,
        }
    }

    pub(crate) fn json(&self) -> Result<String, Failure> {
        serde_json::to_string(self).map_err(|error| Failure::refused(format!("cannot write JSON: {error}")))
    }
}

pub(crate) fn run(place: &Place, args: &Args, out: &mut impl Write) -> Result<(), Failure> {
    let store = place.open()?;
    let mut out = Buffered::new(out);
    let mut printer = Printer { args, now: now(), headed: false };
    let parent = match &args.parent {
        Some(parent) => Some(resolve::session(&store, parent)?.id().clone()),
        None => None,
    };
    let listed = pages(&store, args.list(parent.as_ref()), args, &mut printer, &mut out);
    // What was found before a failure is true and is printed.
    match listed {
        Err(Failure::ClosedPipe) => Err(Failure::ClosedPipe),
        listed => out.finish().and(listed),
    }
}

/// Prints page by page.
fn pages(
    store: &Store,
    mut list: List,
    args: &Args,
    printer: &mut Printer<'_>,
    out: &mut Buffered<'_, impl Write>,
) -> Result<(), Failure> {
    let is_narrowed = list != List::new();
    let mut left = args.limit.unwrap_or(u64::MAX);
    loop {
        let mut sessions = store.list_with(list.clone())?;
        let mut page = Vec::new();
        let mut failure = None;
        for _ in 0..left.min(PAGE) {
            match sessions.next().transpose().map_err(Failure::from).and_then(|info| row(store, args, info)) {
                Ok(Some(row)) => page.push(row),
                Ok(None) => break,
                Err(error) => {
                    failure = Some(error);
                    break;
                }
            }
        }
        left = left.saturating_sub(page.len() as u64);
        printer.print(&page, out)?;
        if let Some(failure) = failure {
            return Err(failure);
        }
        match sessions.next_cursor()? {
            None => break,
            Some(after) if left == 0 => return printer.go_on(after, out),
            Some(after) => list = list.after(after),
        }
    }
    if !printer.headed && !args.json {
        // For people only; a script sees no lines.
        let text = match is_narrowed {
            true => "no session is like that",
            false => "no sessions yet: `sessionlog create` makes one",
        };
        output::note(text);
    }
    Ok(())
}

/// A session, and what it takes if that is asked for.
type Row = (SessionInfo, Option<u64>);

fn row(store: &Store, args: &Args, info: Option<SessionInfo>) -> Result<Option<Row>, Failure> {
    let Some(info) = info else { return Ok(None) };
    let bytes = args
        .size
        .then(|| store.session(&info.header.id).and_then(|session| session.stored_bytes()))
        .transpose()?;
    Ok(Some((info, bytes)))
}

/// Prints rows in the form that was asked for.
struct Printer<'a> {
    args: &'a Args,
    now: Timestamp,
    headed: bool,
}

impl Printer<'_> {
    fn print(&mut self, page: &[Row], out: &mut Buffered<'_, impl Write>) -> Result<(), Failure> {
        if self.args.json {
            for (info, bytes) in page {
                let mut record = Record::of(info);
                record.stored_bytes = *bytes;
                let record = record.json()?;
                out.line(|line| line.extend_from_slice(record.as_bytes()))?;
            }
            return Ok(());
        }
        if page.is_empty() {
            return Ok(());
        }
        let mut rows = Vec::new();
        if !std::mem::replace(&mut self.headed, true) {
            rows.push(HEADINGS.map(String::from));
        }
        rows.extend(page.iter().map(|row| self.cells(row)));
        table(&rows, self.args.size, out)
    }

    fn cells(&self, (info, bytes): &Row) -> [String; COLUMNS] {
        let header = &info.header;
        let parent = header.parent.as_ref();
        [
            header.id.to_string(),
            info.len.to_string(),
            bytes.map_or_else(String::new, size),
            ago(info.updated_at, self.now),
            ago(header.created_at, self.now),
            parent.map_or_else(
                || "-".into(),
                |parent| format!("{}@{}", parent_name(parent), parent.prefix_len),
            ),
            meta(&header.meta),
            info.labels.title.as_deref().map_or_else(|| "-".into(), printable),
            meta(&info.labels.labels),
        ]
    }

    /// Tells where a page ends that is not the last.
    fn go_on(&self, after: ListCursor, out: &mut Buffered<'_, impl Write>) -> Result<(), Failure> {
        if self.args.json {
            let record = serde_json::json!({ "after": after.to_string() }).to_string();
            return out.line(|line| line.extend_from_slice(record.as_bytes()));
        }
        output::note(&format!("there are more; go on with --after {after}"));
        Ok(())
    }
}

/// The parent's id; a parent that was deleted has none any more.
pub(crate) fn parent_name(parent: &Parent) -> &str {
    parent.session.as_ref().map_or("(deleted)", SessionId::as_str)
}

/// Metadata in one line.
pub(crate) fn meta(meta: &BTreeMap<String, String>) -> String {
    let pairs: Vec<String> = meta.iter().map(|(name, value)| printable(&format!("{name}={value}"))).collect();
    if pairs.is_empty() { "-".into() } else { pairs.join(" ") }
}

fn table(
    rows: &[[String; COLUMNS]],
    with_size: bool,
    out: &mut Buffered<'_, impl Write>,
) -> Result<(), Failure> {
    let mut widths = [0; COLUMNS];
    for row in rows {
        for (width, cell) in widths.iter_mut().zip(row) {
            *width = (*width).max(cell.chars().count().min(WIDEST));
        }
    }
    for (index, row) in rows.iter().enumerate() {
        let mut text = String::new();
        for (column, (cell, width)) in row.iter().zip(widths).enumerate() {
            match column {
                SIZE if !with_size => {}
                EVENTS | SIZE => text.push_str(&format!("{cell:>width$}  ")),
                _ => text.push_str(&format!("{cell:<width$}  ")),
            }
        }
        let text = text.trim_end();
        let is_heading = index == 0 && row.iter().eq(HEADINGS);
        let text = if is_heading { Paint::stdout().heading(text) } else { text.to_owned() };
        out.line(|line| line.extend_from_slice(text.as_bytes()))?;
    }
    Ok(())
}
