//! A trace's events as sessionlog takes them.

use sessionlog::{JsonText, NewEvent, Timestamp};

use super::trace::{TraceEvent, What, write_args};

/// Makes the event that a user of the library would.
pub fn new_event(event: &TraceEvent) -> NewEvent {
    let made = match &event.what {
        What::TurnStart { turn } => NewEvent::turn_start(turn.as_str()),
        What::StepStart { step, turn } => NewEvent::step_start(step.as_str(), turn.as_str()),
        What::UserMessage { content } => NewEvent::user_message(content.as_str()),
        What::Chunk { delta } => NewEvent::assistant_chunk(delta.as_str()),
        What::AssistantMessage { content } => NewEvent::assistant_message(content.as_str()),
        What::ToolCall { id, command, timeout } => {
            let mut args = Vec::new();
            write_args(command, *timeout, &mut args);
            NewEvent::tool_call(id.as_str(), "bash", JsonText::parse(&args).expect("it is JSON"))
        }
        What::ToolResult { id, result } => NewEvent::tool_result(id.as_str(), result.as_str()),
        What::StepEnd { step, turn } => NewEvent::step_end(step.as_str()).turn(turn.as_str()),
        What::TurnEnd { turn } => NewEvent::turn_end(turn.as_str()).reason("completed"),
    };
    made.timestamp(Timestamp::from_millis(event.timestamp).expect("a time of our days"))
}
