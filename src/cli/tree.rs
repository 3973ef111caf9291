//! `tree`: sessions and their forks.

use std::io::Write;

use serde::Serialize;
use sessionlog::{SessionId, Timestamp, TreeNode};

use super::exit::Failure;
use super::output::{self, Buffered, printable};
use super::place::Place;
use super::resolve;
use super::time::{ago, now};

/// Deeper forks are not moved further to the right: their depth is told instead.
const DEEPEST: usize = 32;

/// Draws sessions and what was forked from them
///
/// Each fork stands below its parent, with the number of events that they share. A session that was deleted and that
/// forks still hang on is shown as (deleted). With --json each line is a session, with its depth, from 0.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  sessionlog tree
  sessionlog tree chat
  sessionlog tree --json | jq -r 'select(.depth > 0) | .id'")]
pub(crate) struct Args {
    /// Only this session and its forks: its id, or the beginning of it, or its title
    id: Option<SessionId>,

    /// One JSON object a line, with times in milliseconds
    #[arg(long)]
    json: bool,
}

/// What `--json` prints; of a deleted session neither id nor what it held.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Record<'a> {
    depth: usize,
    id: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    prefix_length: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    length: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    updated_at: Option<i64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    title: Option<&'a str>,
}

pub(crate) fn run(place: &Place, args: &Args, out: &mut impl Write) -> Result<(), Failure> {
    let store = place.open()?;
    let mut out = Buffered::new(out);
    let mut drawing = Drawing { now: now(), last: Vec::new() };
    let mut is_empty = true;
    let root = match &args.id {
        Some(id) => Some(resolve::session(&store, id)?.id().clone()),
        None => None,
    };
    for node in store.tree(root.as_ref())? {
        let node = match node {
            Ok(node) => node,
            Err(error) => {
                out.finish()?;
                return Err(error.into());
            }
        };
        is_empty = false;
        let text = if args.json { json(&node)? } else { drawing.line(&node) };
        out.line(|line| line.extend_from_slice(text.as_bytes()))?;
    }
    if is_empty && !args.json {
        output::note("no sessions yet: `sessionlog create` makes one");
    }
    out.finish()
}

fn json(node: &TreeNode) -> Result<String, Failure> {
    let session = node.session.as_ref();
    let record = Record {
        depth: node.depth,
        id: session.map(|info| info.header.id.as_str()),
        prefix_length: node.prefix_len,
        length: session.map(|info| info.len),
        updated_at: session.map(|info| info.updated_at.as_millis()),
        title: session.and_then(|info| info.labels.title.as_deref()),
    };
    serde_json::to_string(&record).map_err(|error| Failure::refused(format!("cannot write JSON: {error}")))
}

struct Drawing {
    now: Timestamp,
    /// For each node above the next one, but for the root: whether it is the last below its own.
    last: Vec<bool>,
}

impl Drawing {
    fn line(&mut self, node: &TreeNode) -> String {
        let mut line = String::new();
        if let Some(above) = node.depth.checked_sub(1) {
            self.last.truncate(above);
            for is_last in self.last.iter().take(DEEPEST) {
                line.push_str(if *is_last { "    " } else { "│   " });
            }
            line.push_str(if node.is_last { "└── " } else { "├── " });
            if node.depth > DEEPEST {
                line.push_str(&format!("[{} deep] ", node.depth));
            }
            self.last.push(node.is_last);
        }
        let name = node.session.as_ref().map_or("(deleted)", |info| info.header.id.as_str());
        line.push_str(&printable(name));
        if let Some(prefix_len) = node.prefix_len {
            line.push_str(&format!(" @{prefix_len}"));
        }
        if let Some(info) = &node.session {
            line.push_str(&format!("  {} events, {}", info.len, ago(info.updated_at, self.now)));
            if let Some(title) = &info.labels.title {
                line.push_str(&format!("  {}", printable(title)));
            }
        }
        line
    }
}
