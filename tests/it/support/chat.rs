//! The rules of a chat request, and a slow fold of events into one. Both are written apart from the library's, over
//! plain JSON: no look-ups, no caches, everything anew each time.

use std::collections::BTreeMap;

use serde_json::{Value, json};

/// Says what a provider would refuse in this array of messages.
pub(crate) fn refusal(messages: &[Value]) -> Option<String> {
    let mut rest = messages.iter().enumerate().peekable();
    while let Some((at, message)) = rest.next() {
        let keys: Vec<&str> = message.as_object().unwrap().keys().map(String::as_str).collect();
        let calls = match message["role"].as_str() {
            Some("user") if keys == ["content", "role"] && is_content(&message["content"]) => continue,
            Some("assistant") if keys == ["content", "role"] => {
                if !is_content(&message["content"]) || message["content"] == "" {
                    return Some(format!("message {at} says nothing and calls nothing"));
                }
                continue;
            }
            Some("assistant") if keys == ["content", "role", "tool_calls"] => {
                let content = &message["content"];
                if !(content.is_null() || is_content(content) && content != "") {
                    return Some(format!("message {at} has bad content"));
                }
                message["tool_calls"].as_array().unwrap()
            }
            role => return Some(format!("message {at} has the role {role:?} here, and {keys:?}")),
        };
        let mut wanted = Vec::new();
        for call in calls {
            let call_keys: Vec<&str> = call.as_object().unwrap().keys().map(String::as_str).collect();
            let is_sound = call_keys == ["function", "id", "type"]
                && call["type"] == "function"
                && call["function"]["name"].is_string()
                && call["function"]["arguments"].is_string();
            if !is_sound {
                return Some(format!("message {at} has a call that is none: {call}"));
            }
            let id = call["id"].as_str().unwrap();
            if wanted.contains(&id) {
                return Some(format!("message {at} has the id {id} twice"));
            }
            wanted.push(id);
        }
        if wanted.is_empty() {
            return Some(format!("message {at} has an empty list of calls"));
        }
        while let Some((at, tool)) = rest.next_if(|(_, next)| next["role"] == "tool") {
            let id = tool["tool_call_id"].as_str().unwrap();
            let Some(found) = wanted.iter().position(|wanted| *wanted == id) else {
                return Some(format!("message {at} answers {id}, which is not open"));
            };
            wanted.remove(found);
            let is_text = tool["content"].is_string()
                || is_content(&tool["content"])
                    && tool["content"].as_array().unwrap().iter().all(|part| part["type"] == "text");
            if !is_text || tool.as_object().unwrap().len() != 3 {
                return Some(format!("message {at} is no tool message: {tool}"));
            }
        }
        if !wanted.is_empty() {
            return Some(format!("message {at} has unanswered calls: {wanted:?}"));
        }
    }
    None
}

/// A string, or parts none of which is an empty text.
fn is_content(content: &Value) -> bool {
    match content.as_array() {
        Some(parts) => !parts.is_empty() && parts.iter().all(|part| part.is_object() && !is_empty_text(part)),
        None => content.is_string(),
    }
}

fn is_empty_text(part: &Value) -> bool {
    part["type"] == "text" && part["text"] == ""
}

/// Something that has a place on the surface.
#[derive(Clone, Debug)]
struct Item {
    event: Value,
    /// Whether a step or turn event stands before it.
    parted: bool,
    /// Of a call: the id it is shown with. Of a result that counts: the place of its call in `calls`.
    shown: String,
    call: Option<u64>,
    answered: bool,
}

impl Item {
    fn seq(&self) -> u64 {
        self.event["seq"].as_u64().unwrap()
    }

    fn is(&self, event_type: &str) -> bool {
        self.event["type"] == event_type
    }

    fn is_open(&self) -> bool {
        self.is("tool/call") && !self.answered
    }

    fn counts(&self) -> bool {
        !self.is("tool/result") || self.call.is_some()
    }
}

/// What a slow fold makes of events.
#[derive(Debug, Default)]
pub(crate) struct Folded {
    pub(crate) messages: Vec<Value>,
    /// Events that were not taken as they are.
    pub(crate) mended: Vec<u64>,
    /// What has a place.
    pub(crate) placed: Vec<u64>,
    /// What lost its place, and to whom.
    pub(crate) replaced: BTreeMap<u64, u64>,
}

/// Folds events (their JSON form, ascending seqs) into messages.
pub(crate) fn fold(events: &[Value]) -> Folded {
    let mut items: Vec<Item> = Vec::new();
    let mut parted = false;
    let mut bad_replaces = Vec::new();
    let mut replaced = BTreeMap::new();
    for event in events {
        let event_type = event["type"].as_str().unwrap();
        match event_type {
            "turn/start" | "turn/end" | "step/start" | "step/end" => parted = true,
            "user/message" | "assistant/message" | "tool/call" | "tool/result" => {
                let range = range_of(&items, event);
                if range == Some(None) {
                    bad_replaces.push(event["seq"].as_u64().unwrap());
                }
                let mut item = Item {
                    event: event.clone(),
                    parted: false,
                    shown: String::new(),
                    call: None,
                    answered: false,
                };
                if let Some(Some((first, last))) = range {
                    item.parted = items[first].parted;
                    item.call = items[first].call.filter(|_| item.is("tool/result"));
                    if last + 1 == items.len() {
                        parted = false;
                    }
                    let by = item.seq();
                    replaced.extend(items.splice(first..=last, [item]).map(|item| (item.seq(), by)));
                    continue;
                }
                item.parted = std::mem::take(&mut parted);
                if event_type == "tool/call" {
                    item.shown = shown(&items, event["id"].as_str().unwrap());
                }
                if event_type == "tool/result" {
                    let open = |other: &&mut Item| other.is_open() && other.event["id"] == event["id"];
                    if let Some(call) = items.iter_mut().rev().find(open) {
                        call.answered = true;
                        item.call = Some(call.seq());
                    }
                }
                items.push(item);
            }
            _ => {}
        }
    }
    let left = |item: &&Item| item.is_open() || !item.counts();
    let mut mended: Vec<u64> = items.iter().filter(left).map(Item::seq).collect();
    mended.extend(bad_replaces.iter().filter(|seq| items.iter().any(|item| item.seq() == **seq)));
    mended.sort_unstable();
    let placed = items.iter().map(Item::seq).collect();
    Folded { messages: messages(&items), mended, placed, replaced }
}

/// The id that a new call is shown with.
fn shown(items: &[Item], id: &str) -> String {
    let open: Vec<&Item> = items.iter().filter(|item| item.is_open()).collect();
    let same = open.iter().filter(|item| item.event["id"] == id).count();
    let taken = |shown: &str| open.iter().any(|item| item.event["id"] == shown || item.shown == shown);
    if !taken(id) {
        return id.to_owned();
    }
    (same.max(1) + 1..).map(|nth| format!("{id}#{nth}")).find(|shown| !taken(shown)).unwrap()
}

/// `None`: it replaces nothing. `Some(None)`: it cannot replace what it says.
fn range_of(items: &[Item], event: &Value) -> Option<Option<(usize, usize)>> {
    let op = event.get("surfaceOp").filter(|op| op.is_object())?;
    let place = |seq: &Value| items.iter().position(|item| item.event["seq"] == *seq && item.counts());
    let (Some(first), Some(last)) = (place(&op["start"]), place(&op["end"])) else { return Some(None) };
    if first > last {
        return Some(None);
    }
    let range = &items[first..=last];
    if event["type"] == "tool/result" {
        let is_own = range.len() == 1 && range[0].is("tool/result") && range[0].event["id"] == event["id"];
        return Some(is_own.then_some((first, last)));
    }
    let pairs_stay_whole = range.iter().all(|item| {
        let partner = |other: &Item| {
            item.call == Some(other.seq()) && other.is("tool/call")
                || other.call == Some(item.seq()) && item.is("tool/call")
        };
        items.iter().filter(|other| partner(other)).count()
            == range.iter().filter(|other| partner(other)).count()
    });
    Some(pairs_stay_whole.then_some((first, last)))
}

fn messages(items: &[Item]) -> Vec<Value> {
    let mut messages = Vec::new();
    for (at, item) in items.iter().enumerate() {
        let joins = |at: usize| {
            at > 0
                && items[at].is("tool/call")
                && !items[at].parted
                && (items[at - 1].is("tool/call") || items[at - 1].is("assistant/message"))
        };
        if item.is("user/message") {
            let content = content(&item.event["content"]);
            messages.push(
                json!({"role": "user", "content": if content.is_null() { json!("") } else { content }}),
            );
        }
        if !(item.is("assistant/message") || item.is("tool/call") && !joins(at)) {
            continue;
        }
        let end = (at + 1..items.len()).find(|at| !joins(*at)).unwrap_or(items.len());
        let calls: Vec<&Item> = items[at..end].iter().filter(|item| item.is("tool/call")).collect();
        let said = if item.is("tool/call") { Value::Null } else { content(&item.event["content"]) };
        if calls.is_empty() {
            if !said.is_null() {
                messages.push(json!({"role": "assistant", "content": said}));
            }
            continue;
        }
        let spelled: Vec<Value> = calls.iter().map(|call| spell(call)).collect();
        messages.push(json!({"role": "assistant", "content": said, "tool_calls": spelled}));
        for result in items {
            if let Some(call) = calls.iter().find(|call| result.call == Some(call.seq())) {
                messages.push(json!({
                    "role": "tool", "tool_call_id": call.shown, "content": answer(&result.event),
                }));
            }
        }
        for call in calls.iter().filter(|call| call.is_open()) {
            let content = sessionlog::MISSING_RESULT;
            messages.push(json!({"role": "tool", "tool_call_id": call.shown, "content": content}));
        }
    }
    messages
}

fn spell(call: &Item) -> Value {
    let args = &call.event["args"];
    let arguments = args.as_str().map_or_else(|| args.to_string(), str::to_owned);
    let function = json!({"name": call.event["name"], "arguments": arguments});
    json!({"id": call.shown, "type": "function", "function": function})
}

/// Null when nothing is in it.
fn content(content: &Value) -> Value {
    match content {
        Value::Array(parts) => {
            let full: Vec<&Value> = parts.iter().filter(|part| !is_empty_text(part)).collect();
            if full.is_empty() { Value::Null } else { json!(full) }
        }
        Value::String(text) if text.is_empty() => Value::Null,
        content => content.clone(),
    }
}

fn answer(event: &Value) -> Value {
    if event["error"].is_string() {
        return event["error"].clone();
    }
    let result = &event["result"];
    match result {
        Value::String(_) => result.clone(),
        Value::Array(parts)
            if !parts.is_empty()
                && parts.iter().all(|part| part["type"] == "text" && part["text"].is_string()) =>
        {
            let content = content(result);
            if content.is_null() { json!("") } else { content }
        }
        result => json!(result.to_string()),
    }
}
