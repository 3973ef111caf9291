//! `prune`: deletes old sessions by a policy.

use std::io::Write;

use serde::Serialize;
use sessionlog::{Error, Protection, Prune, PrunePlan, PruneReason, PrunedSession, Timestamp};

use super::exit::Failure;
use super::output::{self, Buffered, bytes, printable, size};
use super::place::Place;
use super::time::{ago, now, when};

/// Deletes the sessions that are beyond a limit
///
/// At least one limit must be given; nothing is ever pruned by itself. Look first, with --dry-run: it prints the same and
/// deletes nothing. Of several limits one is enough.
///
/// A session whose last turn is open stays (an agent is at work, or was interrupted and can be resumed: `inspect`), and
/// so does one that cannot be read. Forks keep all events that they share with a session that goes.
///
/// Sizes are those of events as they are stored, compressed, without what forks share with their parents; the store's
/// files take about twice that. This is no erasure: see `rm --help`.
#[derive(Debug, clap::Args)]
#[command(
    group = clap::ArgGroup::new("limit").required(true).multiple(true).args(["older_than", "keep", "max_size"]),
    after_help = "\
Examples:
  sessionlog prune --older-than 90d --dry-run
  sessionlog prune --older-than 90d
  sessionlog prune --keep 1000 --max-size 2GiB --dry-run --json"
)]
pub(crate) struct Args {
    /// Sessions that were last updated before: 30d, 12h, 2w ago, or a date or time in UTC
    #[arg(long, value_name = "TIME", value_parser = when)]
    older_than: Option<Timestamp>,

    /// All but so many, those that were updated last
    #[arg(long, value_name = "N")]
    keep: Option<u64>,

    /// All but those that were updated last and together take no more than this: 500M, 2GiB
    #[arg(long, value_name = "SIZE", value_parser = bytes)]
    max_size: Option<u64>,

    /// Also sessions whose last turn is open
    #[arg(long)]
    open_turns: bool,

    /// Only tell what would be deleted
    #[arg(long)]
    dry_run: bool,

    /// One JSON object a line: a session that goes or is protected
    #[arg(long)]
    json: bool,
}

/// What `--json` prints for a session.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Record<'a> {
    id: &'a str,
    deleted: bool,
    reason: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    protected: Option<&'static str>,
    length: u64,
    updated_at: i64,
    stored_bytes: u64,
}

pub(crate) fn run(place: &Place, args: &Args, out: &mut impl Write) -> Result<(), Failure> {
    let mut policy = Prune::new();
    if let Some(time) = args.older_than {
        policy = policy.updated_before(time);
    }
    if let Some(count) = args.keep {
        policy = policy.keep_newest(count);
    }
    if let Some(bytes) = args.max_size {
        policy = policy.keep_bytes(bytes);
    }
    if args.open_turns {
        policy = policy.with_open_turns();
    }
    let store = place.open()?;
    let mut plan = store.plan_prune(&policy)?;
    let mut is_full = false;
    if !args.dry_run {
        plan = store.prune(&plan)?;
        // Durable by now; this makes room, as far as there is some to do it.
        is_full = match store.drain() {
            Err(Error::DiskFull { .. }) => true,
            drained => drained.map(|()| false)?,
        };
    }
    print(&plan, args, out)?;
    if is_full {
        output::note("deleted; the disk is too full to remove all events now, a later command goes on");
        return Ok(());
    }
    Ok(store.close()?)
}

fn print(plan: &PrunePlan, args: &Args, out: &mut impl Write) -> Result<(), Failure> {
    let mut out = Buffered::new(out);
    let now = now();
    for session in &plan.sessions {
        let text = if args.json { json(session, args)? } else { line(session, args, now) };
        out.line(|line| line.extend_from_slice(text.as_bytes()))?;
    }
    if !args.json {
        let (count, bytes) = plan.going().fold((0_u64, 0), |(n, bytes), one| (n + 1, bytes + one.bytes));
        let stay = plan.within + plan.protected().count() as u64;
        let verb = if args.dry_run { "would be deleted" } else { "deleted" };
        let text = format!("{count} sessions {verb}, {} of events; {stay} stay", size(bytes));
        out.line(|line| line.extend_from_slice(text.as_bytes()))?;
    }
    out.finish()
}

fn json(session: &PrunedSession, args: &Args) -> Result<String, Failure> {
    let record = Record {
        id: session.session.as_str(),
        deleted: !args.dry_run && session.protection.is_none(),
        reason: reason(session.reason),
        protected: session.protection.map(protection),
        length: session.len,
        updated_at: session.updated_at.as_millis(),
        stored_bytes: session.bytes,
    };
    serde_json::to_string(&record).map_err(|error| Failure::refused(format!("cannot write JSON: {error}")))
}

fn line(session: &PrunedSession, args: &Args, now: Timestamp) -> String {
    let id = printable(session.session.as_str());
    let what = match (session.protection, args.dry_run) {
        (Some(why), _) => format!("keep    {id}  ({})", protection(why)),
        (None, true) => format!("delete  {id}  ({})", reason(session.reason)),
        (None, false) => format!("deleted {id}  ({})", reason(session.reason)),
    };
    format!("{what}  {} events, {}, {}", session.len, size(session.bytes), ago(session.updated_at, now))
}

fn reason(reason: PruneReason) -> &'static str {
    match reason {
        PruneReason::Age => "age",
        PruneReason::Count => "count",
        PruneReason::Bytes => "size",
        _ => "other",
    }
}

fn protection(protection: Protection) -> &'static str {
    match protection {
        Protection::OpenTurn => "open turn",
        Protection::InUse => "in use",
        Protection::Changed => "changed",
        Protection::Unreadable => "cannot be read",
        _ => "protected",
    }
}
