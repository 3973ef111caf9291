//! What the model sees: whatever is in a log can be sent, and every way to get there gives the same.

mod cases;
mod checkpoint;
mod long;
mod replace;
mod soup;

use serde_json::Value;
use sessionlog::{Event, Message, NewEvent, NewSession, Session, Store, Surface};

/// The chat array as plain JSON.
fn values(messages: &[Message]) -> Vec<Value> {
    messages.iter().map(|message| serde_json::from_str(&message.to_json()).unwrap()).collect()
}

/// A session in memory; its store stays open with it.
fn session() -> Session {
    Store::in_memory().unwrap().create(NewSession::new()).unwrap()
}

fn event(line: &str) -> Event {
    Event::from_json(line.as_bytes()).unwrap_or_else(|error| panic!("{error}: {line}"))
}

fn new_event(line: &str) -> NewEvent {
    NewEvent::from_json(line.as_bytes()).unwrap_or_else(|error| panic!("{error}: {line}"))
}

fn folded<'a>(events: impl IntoIterator<Item = &'a Event>) -> Surface {
    let mut surface = Surface::default();
    for event in events {
        surface.push(event);
    }
    surface
}

/// One line for each message: role, content, and the ids of its calls or of the call that it answers.
fn brief(messages: &[Message]) -> Vec<String> {
    let brief = |message: &Value| {
        let content =
            message["content"].as_str().map_or_else(|| message["content"].to_string(), str::to_owned);
        let calls = message["tool_calls"].as_array().map(|calls| {
            calls.iter().map(|call| format!(" {}", call["id"].as_str().unwrap())).collect::<String>()
        });
        let answers = message["tool_call_id"].as_str().map(|id| format!(" {id}"));
        let ids = calls.or(answers).unwrap_or_default();
        format!("{}{ids}: {content}", message["role"].as_str().unwrap())
    };
    values(messages).iter().map(brief).collect()
}
