//! `ls`: the sessions of a store, the one written last first.

use std::collections::BTreeMap;
use std::io::{self, Write};

use serde::Serialize;
use sessionlog::{HistoryHash, Parent, SessionId, SessionInfo, Statistics, Store};

use super::exit::Failure;
use super::output::{Buffered, printable};
use super::place::Place;
use super::time::rfc3339;

/// Rows that are aligned with each other: memory does not grow with the store.
const PAGE: usize = 1_000;
/// A longer cell does not widen its column.
const WIDEST: usize = 44;
const HEADINGS: [&str; COLUMNS] = ["ID", "EVENTS", "CREATED", "UPDATED", "PARENT@PREFIX", "META"];
const COLUMNS: usize = 6;
/// The column of a number, which stands to the right.
const EVENTS: usize = 1;

/// Lists the sessions, the one updated last first
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  sessionlog ls
  sessionlog ls --json | jq -r 'select(.length > 0) | .id'")]
pub(crate) struct Args {
    /// One JSON object a line, with times in milliseconds
    #[arg(long)]
    json: bool,
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
    pub(crate) hash: Option<HistoryHash>,
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
    let listed = if args.json { json(&store, &mut out) } else { table(&store, &mut out) };
    // What was found before a failure is true and is printed.
    match listed {
        Err(Failure::ClosedPipe) => Err(Failure::ClosedPipe),
        listed => out.finish().and(listed),
    }
}

fn json(store: &Store, out: &mut Buffered<'_, impl Write>) -> Result<(), Failure> {
    for info in store.list()? {
        let record = Record::of(&info?).json()?;
        out.line(|line| line.extend_from_slice(record.as_bytes()))?;
    }
    Ok(())
}

fn table(store: &Store, out: &mut Buffered<'_, impl Write>) -> Result<(), Failure> {
    let mut page = vec![HEADINGS.map(String::from)];
    let mut is_empty = true;
    for info in store.list()? {
        match info {
            Ok(info) => page.push(row(&info)),
            Err(error) => {
                print(&page, out)?;
                return Err(error.into());
            }
        }
        is_empty = false;
        if page.len() > PAGE {
            print(&page, out)?;
            page.clear();
        }
    }
    if is_empty {
        // For people only; a script sees no lines.
        let _ = writeln!(io::stderr(), "no sessions yet: `sessionlog create` makes one");
        return Ok(());
    }
    print(&page, out)
}

fn row(info: &SessionInfo) -> [String; COLUMNS] {
    let header = &info.header;
    let parent = header.parent.as_ref();
    [
        header.id.to_string(),
        info.len.to_string(),
        rfc3339(header.created_at),
        rfc3339(info.updated_at),
        parent.map_or_else(|| "-".into(), |parent| format!("{}@{}", parent_name(parent), parent.prefix_len)),
        meta(&header.meta),
    ]
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

fn print(page: &[[String; COLUMNS]], out: &mut Buffered<'_, impl Write>) -> Result<(), Failure> {
    let mut widths = [0; COLUMNS];
    for row in page {
        for (width, cell) in widths.iter_mut().zip(row) {
            *width = (*width).max(cell.chars().count().min(WIDEST));
        }
    }
    for row in page {
        let mut text = String::new();
        for (column, (cell, width)) in row.iter().zip(widths).enumerate() {
            match column {
                EVENTS => text.push_str(&format!("{cell:>width$}  ")),
                _ => text.push_str(&format!("{cell:<width$}  ")),
            }
        }
        out.line(|line| line.extend_from_slice(text.trim_end().as_bytes()))?;
    }
    Ok(())
}
