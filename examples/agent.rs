//! A small agent: a model (scripted, for there is none here), a calculator, streamed answers; killed in the midst of a tool
//! call, resumed, and branched off to compare two ways to go on.
//!
//!     cargo run --example agent
#![allow(clippy::print_stdout, reason = "an example shows what it does")]

use std::env;
use std::path::Path;
use std::process::Command;

use sessionlog::{Message, NewEvent, NewSession, Result, Seq, Session, SessionId, Store};

fn main() -> std::result::Result<(), Box<dyn std::error::Error>> {
    let arguments: Vec<String> = env::args().collect();
    if let [_, folder, "until-it-dies"] = &arguments.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        return Ok(work(Path::new(folder), true)?);
    }
    let folder = tempfile::tempdir()?;
    let path = folder.path().join("sessions");

    // A process of its own, which aborts while its tool runs: nothing is closed, nothing is flushed.
    let died = Command::new(env::current_exe()?).arg(&path).arg("until-it-dies").status()?;
    println!("the agent died: {died}\n");
    work(&path, false)?;
    compare(&path)?;
    Ok(())
}

/// Opens the store, resumes what was interrupted, and answers.
fn work(path: &Path, dies: bool) -> Result<()> {
    let store = Store::open(path)?;
    let id = SessionId::new("sums")?;
    let session = match store.session(&id) {
        Ok(session) => session,
        Err(sessionlog::Error::SessionNotFound { .. }) => store.create(NewSession::with_id(id))?,
        Err(error) => return Err(error),
    };
    let before = session.inspect()?;
    if let Some(text) = &before.text {
        println!("it had said, before it died: {text:?}");
    }
    // Closes the open call, step and turn: the model is told that the call's outcome is not known.
    let resumed = session.resume()?;
    for event in session.read_range(resumed.seqs)? {
        println!("resumed with {}", event?);
    }
    if session.is_empty() {
        session.append(NewEvent::turn_start("t1"))?;
        session.append(NewEvent::user_message("What is 17 + 25?"))?;
    } else {
        session.append(NewEvent::turn_start("t2"))?;
        session.append(NewEvent::user_message("Go on."))?;
    }
    for step in 1.. {
        let turn = if dies { "t1" } else { "t2" };
        let step_id = format!("{turn}-{step}");
        session.append(NewEvent::step_start(step_id.as_str(), turn))?;
        let goes_on = self::step(&session, dies)?;
        session.append(NewEvent::step_end(step_id.as_str()))?;
        if !goes_on {
            session.append(NewEvent::turn_end(turn).reason("completed"))?;
            break;
        }
    }
    store.close()
}

/// One request to the model, and what it asks for. Returns whether it wants another one.
fn step(session: &Session, dies: bool) -> Result<bool> {
    let (answer, call) = model(&session.messages()?);
    for word in answer.split_inclusive(' ') {
        // Buffered: readers have it at once, the disk soon.
        session.append(NewEvent::assistant_chunk(word))?;
    }
    session.append(NewEvent::assistant_message(answer))?;
    let Some((left, right)) = call else { return Ok(false) };
    let id = format!("call-{}", session.len());
    let arguments = serde_json::json!({ "left": left, "right": right });
    session.append(NewEvent::tool_call(id.as_str(), "add", arguments))?;
    if dies {
        std::process::abort();
    }
    session.append(NewEvent::tool_result(id.as_str(), serde_json::json!(left + right)))?;
    Ok(true)
}

/// A model that can do one thing: it reads the messages, as a real one does, and says or calls something.
fn model(messages: &[Message]) -> (String, Option<(i64, i64)>) {
    let text = |message: &Message| message.content().as_text().unwrap_or_default().into_owned();
    match messages.last() {
        Some(last @ Message::Tool { .. }) => (format!("The answer is {}.", text(last)), None),
        // It was told that the outcome is not known. Adding has no effects, so it may be done again.
        _ => ("Let me add these.".to_owned(), Some((17, 25))),
    }
}

/// Goes back to before the answer and tries another one in a fork, which shares all events up to there.
fn compare(path: &Path) -> Result<()> {
    let store = Store::open(path)?;
    let session = store.session(&SessionId::new("sums")?)?;
    let at = Seq::new(session.len() - 3);
    let branch = session.fork(at)?;
    branch.append(NewEvent::assistant_message("It is 42, as always."))?;
    for (name, session) in [("as it was", &session), ("the branch", &branch)] {
        println!("\n{name}, from {at}:");
        for event in session.read_from(at)? {
            println!("  {}", event?);
        }
    }
    let messages = branch.messages()?;
    println!("\nthe branch's next request:\n{}", serde_json::to_string_pretty(&messages).unwrap_or_default());
    store.close()
}
