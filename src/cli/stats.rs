//! `stats`: what a session, or the whole store, holds and how long it took.

use std::collections::BTreeMap;
use std::io::Write;

use sessionlog::{Distribution, SessionId, Statistics, TokenUsage};

use super::exit::Failure;
use super::output::{self, printable};
use super::place::Place;
use super::resolve;
use super::time::local;

/// A longer name does not widen its column.
const WIDEST: usize = 44;

/// Counts and measures a session, or without an id the whole store
///
/// Events and bytes by type, turns, steps, messages, tool calls with their errors, times from the recorded timestamps,
/// tokens where messages tell them. Reads everything once. Of the whole store, events that forks share count once.
///
/// Percentiles are at most 3.2 % too great.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  sessionlog stats ID
  sessionlog stats
  sessionlog stats ID --json | jq .turnMs.p90")]
pub(crate) struct Args {
    /// The session's id, or the beginning of it, or its title, when that names only one
    id: Option<SessionId>,

    /// One JSON object, with times in milliseconds and sizes in bytes
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(place: &Place, args: &Args, out: &mut impl Write) -> Result<(), Failure> {
    let store = place.open()?;
    let (name, figures) = match &args.id {
        Some(id) => {
            let session = resolve::session(&store, id)?;
            (Some(session.id().clone()), session.statistics()?)
        }
        None => (None, store.statistics()?),
    };
    let text = if args.json { json(&figures)? } else { text(name.as_ref(), &figures) };
    output::line(out, &text)?;
    output::flush(out)
}

fn json(figures: &Statistics) -> Result<String, Failure> {
    serde_json::to_string(figures).map_err(|error| Failure::refused(format!("cannot write JSON: {error}")))
}

fn text(session: Option<&SessionId>, figures: &Statistics) -> String {
    let mut entries = vec![match session {
        Some(id) => ("session", printable(id.as_str())),
        None => ("sessions", figures.sessions.to_string()),
    }];
    entries.push(("events", figures.events.to_string()));
    entries.extend(audit(figures));
    let tables = [types(figures), times(figures), tools(figures), tokens(&figures.usage)];
    let mut text = output::list(&entries);
    for table in tables.iter().filter(|table| table.len() > 1) {
        text.push_str("\n\n");
        text.push_str(&aligned(table));
    }
    text
}

/// The lines that tell most, also for `show` and `demo`.
pub(crate) fn audit(figures: &Statistics) -> Vec<(&'static str, String)> {
    let time = |at: Option<_>| at.map_or_else(|| "-".into(), local);
    let mut entries = vec![
        ("bytes", output::size(figures.bytes)),
        ("first", time(figures.first_at)),
        ("last", time(figures.last_at)),
        ("turns", with(figures.turns, &[(figures.open_turns, "open")])),
        ("steps", figures.steps.to_string()),
        ("messages", figures.messages.to_string()),
    ];
    let calls = [
        (figures.tool_errors, "failed"),
        (figures.tool_outcomes_unknown, "of them of unknown outcome"),
        (figures.open_calls, "without a result"),
        (figures.results_without_call, "results without a call"),
    ];
    entries.push(("tool calls", with(figures.tool_calls, &calls)));
    if figures.clock_set_back > 0 {
        entries.push(("clock", format!("set back {} times", figures.clock_set_back)));
    }
    entries
}

/// A number, and what there is to say of it.
fn with(number: u64, of_them: &[(u64, &str)]) -> String {
    let mut text = number.to_string();
    for (count, what) in of_them.iter().filter(|(count, _)| *count > 0) {
        text.push_str(&format!(", {count} {what}"));
    }
    text
}

fn row<const N: usize>(cells: [&str; N]) -> Vec<String> {
    cells.map(String::from).to_vec()
}

fn types(figures: &Statistics) -> Vec<Vec<String>> {
    let mut rows = vec![row(["TYPE", "EVENTS", "BYTES"])];
    let others = (figures.other_types.events > 0).then_some(("(others)", &figures.other_types));
    let named = figures.by_type.iter().map(|(name, count)| (name.as_str(), count));
    for (name, count) in named.chain(others) {
        rows.push(vec![printable(name), count.events.to_string(), count.bytes.to_string()]);
    }
    rows
}

fn times(figures: &Statistics) -> Vec<Vec<String>> {
    let mut rows = vec![row(["TIME (ms)", "COUNT", "MEAN", "P50", "P90", "P99", "MAX"])];
    let measured = [
        ("turn", &figures.turn_ms),
        ("step", &figures.step_ms),
        ("tool call", &figures.call_ms),
        ("step to first chunk", &figures.first_chunk_ms),
        ("chunks a second", &figures.chunks_per_second),
    ];
    for (name, values) in measured.into_iter().filter(|(_, values)| values.count() > 0) {
        rows.push(distribution(name.into(), values));
    }
    rows
}

fn distribution(name: String, values: &Distribution) -> Vec<String> {
    let percentile = |percent| values.percentile(percent);
    let mut cells = vec![name, values.count().to_string()];
    let figures = [values.mean(), percentile(50), percentile(90), percentile(99), values.max()];
    cells.extend(figures.map(|figure| figure.map_or_else(|| "-".into(), |figure| figure.to_string())));
    cells
}

fn tools(figures: &Statistics) -> Vec<Vec<String>> {
    let mut rows = vec![row(["TOOL", "CALLS", "FAILED", "UNKNOWN", "P50 (ms)", "P99", "MAX"])];
    let others = (figures.other_tools.calls > 0).then_some(("(others)", &figures.other_tools));
    let named = figures.tools.iter().map(|(name, tool)| (name.as_str(), tool));
    for (name, tool) in named.chain(others) {
        let millis = &tool.call_ms;
        let figures = [millis.percentile(50), millis.percentile(99), millis.max()];
        let mut cells = vec![printable(name)];
        cells.extend([tool.calls, tool.errors, tool.outcomes_unknown].map(|count| count.to_string()));
        cells.extend(figures.map(|figure| figure.map_or_else(|| "-".into(), |figure| figure.to_string())));
        rows.push(cells);
    }
    rows
}

/// Under the providers' names, which serde knows.
fn tokens(usage: &TokenUsage) -> Vec<Vec<String>> {
    let mut rows = vec![row(["TOKENS", "SUM"])];
    let fields = serde_json::to_value(usage).and_then(serde_json::from_value::<BTreeMap<String, u64>>);
    let mut told: Vec<_> = fields.unwrap_or_default().into_iter().filter(|(_, sum)| *sum > 0).collect();
    told.sort();
    rows.extend(told.into_iter().map(|(name, sum)| vec![name, sum.to_string()]));
    rows
}

/// Columns: the first to the left, numbers to the right.
fn aligned(rows: &[Vec<String>]) -> String {
    let width = |column: usize| {
        let cells = rows.iter().filter_map(|row| row.get(column));
        cells.map(|cell| cell.chars().count().min(WIDEST)).max().unwrap_or(0)
    };
    let lines: Vec<String> = rows
        .iter()
        .map(|row| {
            let cells = row.iter().enumerate().map(|(column, cell)| match (column, width(column)) {
                (0, width) => format!("{cell:<width$}"),
                (_, width) => format!("{cell:>width$}"),
            });
            cells.collect::<Vec<_>>().join("  ")
        })
        .collect();
    lines.join("\n")
}
