//! `demo`: the whole idea in one run, on a temporary store.

mod again;

use std::env;
use std::fs::{self, DirBuilder};
use std::io::Write;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{self, Receiver};
use std::time::Duration;

use sessionlog::{Event, NewEvent, NewSession, Seq, Session, SessionId, Store, StoreOptions};

use super::exit::Failure;
use super::output::{flush, line};
use super::time::rfc3339;

/// How long to wait for an event that was appended to be heard. It takes microseconds.
const PATIENCE: Duration = Duration::from_secs(30);
/// The events of the first turn; the fork is made behind them.
const FIRST_TURN: u64 = 6;

/// Shows what the log does: a small agent session in a temporary store, removed at the end
///
/// Two turns of an agent with a calculator, 16 events: appended, heard, counted, shown as the model's 6 messages, forked,
/// replayed, measured and checked.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Example:
  sessionlog demo")]
pub(crate) struct Args {}

pub(crate) fn run(out: &mut impl Write) -> Result<(), Failure> {
    let folder = TemporaryFolder::new()?;
    let (heard, hear) = mpsc::channel();
    let options = StoreOptions::new().observer(move |_: &SessionId, event: &Event| {
        // The receiver is gone only when the demo has ended early.
        let _ = heard.send(event.clone());
    });
    let store = options.open(folder.path()).map_err(|error| Failure::open(&error))?;

    line(out, "sessionlog: a durable, append-only event log for AI-agent sessions")?;
    let session = store.create(NewSession::with_id(SessionId::new("demo")?))?;
    append(&session, &hear, out)?;
    count(&session, out)?;
    messages(&session, out)?;
    let branch = fork(&store, &session, out)?;
    again::replay(&store, &session, out)?;
    again::audit(&session, out)?;
    times(&[&session, &branch], out)?;
    scan(&store, out)?;
    line(out, "\nYour turn:\n  sessionlog create my-session")?;
    line(out, r#"  echo '{"type":"user/message","content":"hello"}' | sessionlog append my-session"#)?;
    line(out, "  sessionlog read my-session\n  sessionlog messages my-session")?;
    flush(out)?;
    Ok(store.close()?)
}

/// Two turns: one answered at once, one with the help of a tool.
fn walk_through() -> Vec<NewEvent> {
    let arguments = serde_json::json!({ "expression": "2 + 2" });
    vec![
        NewEvent::turn_start("turn-1"),
        NewEvent::user_message("Hello!"),
        NewEvent::step_start("step-1", "turn-1"),
        NewEvent::assistant_message("Hello! How can I help you?"),
        NewEvent::step_end("step-1"),
        NewEvent::turn_end("turn-1").reason("completed"),
        NewEvent::turn_start("turn-2"),
        NewEvent::user_message("What is 2 + 2?"),
        NewEvent::step_start("step-2", "turn-2"),
        NewEvent::tool_call("call-1", "calculator", arguments),
        NewEvent::tool_result("call-1", serde_json::json!(2 + 2)),
        NewEvent::step_end("step-2"),
        NewEvent::step_start("step-3", "turn-2"),
        NewEvent::assistant_message("The answer is 4."),
        NewEvent::step_end("step-3"),
        NewEvent::turn_end("turn-2").reason("completed"),
    ]
}

fn append(session: &Session, hear: &Receiver<Event>, out: &mut impl Write) -> Result<(), Failure> {
    heading(
        out,
        &format!("Appending to session `{}`, each event as the store's observer hears it", session.id()),
    )?;
    for event in walk_through() {
        session.append(event)?;
        // The observer has a thread of its own: waiting for it here keeps the lines in order.
        let heard = hear
            .recv_timeout(PATIENCE)
            .map_err(|_| Failure::refused("the observer did not hear an event that was appended"))?;
        line(out, &format!("  {heard}"))?;
    }
    Ok(())
}

fn count(session: &Session, out: &mut impl Write) -> Result<(), Failure> {
    heading(out, "Events by type, read back")?;
    let mut counts: Vec<(String, u64)> = Vec::new();
    for event in session.read_from(Seq::ZERO)? {
        let event_type = event?.event_type().into_owned();
        // In the order in which they first came, which tells more here than the alphabet's.
        match counts.iter_mut().find(|(name, _)| *name == event_type) {
            Some((_, count)) => *count += 1,
            None => counts.push((event_type, 1)),
        }
    }
    for (event_type, count) in &counts {
        line(out, &format!("  {event_type:<18}{count:>3}"))?;
    }
    line(out, &format!("  {:<18}{:>3}", "all", session.len()))
}

fn messages(session: &Session, out: &mut impl Write) -> Result<(), Failure> {
    let messages = session.messages()?;
    heading(out, &format!("What the model sees: {} messages of {} events", messages.len(), session.len()))?;
    for message in &messages {
        line(out, &format!("  {}", message.to_json()))?;
    }
    Ok(())
}

fn fork(store: &Store, session: &Session, out: &mut impl Write) -> Result<Session, Failure> {
    let new = NewSession::with_id(SessionId::new("what-if")?);
    let branch = store.fork(session.id(), Seq::new(FIRST_TURN), new)?;
    let title =
        format!("Fork at {FIRST_TURN}, the end of turn one: session `{}`, its events replayed", branch.id());
    heading(out, &title)?;
    for event in branch.read_from(Seq::ZERO)? {
        line(out, &format!("  {}", event?))?;
    }
    line(out, &format!("  {} events, shared with `{}`, none copied", branch.len(), session.id()))?;
    Ok(branch)
}

fn times(sessions: &[&Session], out: &mut impl Write) -> Result<(), Failure> {
    heading(out, "Times")?;
    for session in sessions {
        let info = session.info()?;
        let (created, updated) = (rfc3339(info.header.created_at), rfc3339(info.updated_at));
        line(out, &format!("  {:<9}created {created}  updated {updated}", session.id().as_str()))?;
    }
    Ok(())
}

/// What was just written is moved into blocks first, so that there is something to be checked.
fn scan(store: &Store, out: &mut impl Write) -> Result<(), Failure> {
    heading(out, "Integrity: checksums, seqs without a hole, running hashes")?;
    store.drain()?;
    let report = store.scan()?;
    line(out, &format!("  {} sessions, {} events checked", report.sessions, report.events))?;
    for head in &report.heads {
        let hash = head.hash.map_or_else(|| "unknown".to_owned(), |hash| hash.to_string());
        line(
            out,
            &format!(
                "  {:<9}{:>3} events, hash {}…",
                head.session,
                head.length,
                hash.get(..16).unwrap_or(&hash)
            ),
        )?;
    }
    for finding in &report.findings {
        line(out, &format!("  {finding}"))?;
    }
    if report.is_clean() {
        return line(out, "  no problems found");
    }
    Err(Failure::refused(format!("{} problems found", report.errors)))
}

fn heading(out: &mut impl Write, text: &str) -> Result<(), Failure> {
    line(out, &format!("\n{text}"))
}

/// A folder of our own that nobody else can look into, removed with all that is in it when it is dropped.
struct TemporaryFolder(PathBuf);

impl TemporaryFolder {
    fn new() -> Result<Self, Failure> {
        // A random name, and creating it fails where it exists: nobody can have prepared it.
        let path = env::temp_dir().join(format!("sessionlog-demo-{}", uuid::Uuid::now_v7()));
        match DirBuilder::new().mode(0o700).create(&path) {
            Ok(()) => Ok(Self(path)),
            Err(error) => Err(Failure::io(&format!("cannot create {}", path.display()), &error)),
        }
    }

    fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for TemporaryFolder {
    fn drop(&mut self) {
        // Nothing in it is worth a failure of what was shown.
        let _ = fs::remove_dir_all(&self.0);
    }
}
