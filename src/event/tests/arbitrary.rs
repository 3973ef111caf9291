//! Arbitrary events, for the tests of every module that handles them.

use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;
use proptest::sample::{Index, select};

use crate::event::{Content, Event, EventKind, JsonString, JsonText, NewEvent};
use crate::id::{Seq, Timestamp};

/// Events that the log accepts, of all types, with rare spellings.
pub(crate) fn event() -> impl Strategy<Value = Event> {
    any_event().prop_filter_map("valid", |mut event| {
        // Most that are refused carry what only messages may.
        if !event.kind.is_on_surface() {
            event.surface_op = None;
            event.source_event_seqs = None;
        }
        NewEvent::from(event.clone()).validate().is_ok().then_some(event)
    })
}

/// Events as public fields let them be made, good or bad.
pub(crate) fn any_event() -> impl Strategy<Value = Event> {
    let seq = prop_oneof![0..1000_u64, any::<u64>(), Just(u64::MAX)].prop_map(Seq::new);
    let surface_op = prop_oneof![
        select(vec![r#""append""#, "null", r#""\u0061ppend""#, r#""replace""#, r#"{"op":"replace"}"#])
            .prop_map(json),
        (any::<u64>(), any::<u64>()).prop_map(|(start, end)| {
            json(&format!(r#"{{"op":"replace","start":{start},"end":{end},"k":[]}}"#))
        }),
        json_text(),
    ];
    let sources = prop_oneof![
        vec(0..100_u64, 0..4).prop_map(|seqs| JsonText::from_serialize(&seqs).unwrap()),
        json_text()
    ];
    (
        seq,
        timestamp(),
        kind(),
        vec((field_name(), json_text()), 0..4),
        option::of(surface_op),
        option::of(sources),
    )
        .prop_map(|(seq, timestamp, kind, extra, surface_op, source_event_seqs)| Event {
            seq,
            timestamp,
            kind,
            extra,
            surface_op,
            source_event_seqs,
        })
}

fn timestamp() -> impl Strategy<Value = Timestamp> {
    let range = Timestamp::MIN.as_millis()..=Timestamp::MAX.as_millis();
    prop_oneof![1_700_000_000_000..1_800_000_000_000_i64, range, -10..10_i64]
        .prop_map(|millis| Timestamp::from_millis(millis).unwrap())
}

fn kind() -> impl Strategy<Value = EventKind> {
    let maybe_string =
        || option::of(prop_oneof![3 => json_string().prop_map(|s| JsonText::from(&s)), 1 => json_text()]);
    let object = prop_oneof![3 => object(), 1 => json_text()];
    prop_oneof![
        json_string().prop_map(|turn_id| EventKind::TurnStart { turn_id }),
        (json_string(), option::of(json_text()))
            .prop_map(|(turn_id, reason)| EventKind::TurnEnd { turn_id, reason }),
        (json_string(), json_string())
            .prop_map(|(step_id, turn_id)| EventKind::StepStart { step_id, turn_id }),
        (json_string(), maybe_string())
            .prop_map(|(step_id, turn_id)| EventKind::StepEnd { step_id, turn_id }),
        content().prop_map(|content| EventKind::UserMessage { content }),
        (content(), option::of(object))
            .prop_map(|(content, usage)| EventKind::AssistantMessage { content, usage }),
        json_string().prop_map(|delta| EventKind::AssistantChunk { delta }),
        (json_string(), json_string(), json_text()).prop_map(|(id, name, args)| EventKind::ToolCall {
            id,
            name,
            args
        }),
        (json_string(), option::of(json_text()), maybe_string())
            .prop_map(|(id, result, error)| EventKind::ToolResult { id, result, error }),
        custom_type().prop_map(|event_type| EventKind::Custom { event_type }),
    ]
}

fn custom_type() -> impl Strategy<Value = JsonString> {
    let taken = ["session", "", "tool/call", "tool\\/call", "\\u0073ession", "x", "x\\/y"];
    prop_oneof![json_string(), select(taken.to_vec()).prop_map(JsonString::from_checked)]
}

fn field_name() -> impl Strategy<Value = JsonString> {
    let known = [
        "type",
        "seq",
        "timestamp",
        "\\u0074ype",
        "turnId",
        "stepId",
        "reason",
        "content",
        "usage",
        "delta",
        "id",
        "name",
        "args",
        "result",
        "error",
        "surfaceOp",
        "sourceEventSeqs",
        "sessionId",
        "session\\u0049d",
    ];
    prop_oneof![json_string(), select(known.to_vec()).prop_map(JsonString::from_checked)]
}

fn content() -> impl Strategy<Value = Content> {
    prop_oneof![
        json_string().prop_map(|text| Content::from_checked(JsonText::from(&text))),
        vec(object(), 0..3).prop_map(|parts| Content::parts(join('[', parts, ']')).unwrap()),
        Just(Content::null()),
    ]
}

/// Spellings of strings: plain ones and every sort of escape.
pub(crate) fn json_string() -> impl Strategy<Value = JsonString> {
    let pieces = [
        "a",
        "turn-1",
        " ",
        "/",
        "\\/",
        "\\\"",
        "\\\\",
        "\\b",
        "\\f",
        "\\n",
        "\\r",
        "\\t",
        "\\u0000",
        "\\u00e9",
        "\\u00E9",
        "\\ud83d\\ude00",
        "\u{e9}",
        "\u{1f600}",
        "\u{2028}",
        "\u{2029}",
        "\u{85}",
        "\u{7f}",
        "{",
        "}",
        "[",
        "]",
        ",",
        ":",
        "\\uFFFF",
        "\u{feff}",
    ];
    prop_oneof![
        4 => vec(select(pieces.to_vec()), 0..6)
            .prop_map(|pieces| JsonString::from_checked(&pieces.concat())),
        1 => any::<String>().prop_map(JsonString::from),
    ]
}

/// Spellings of values: nested ones, and numbers that a double cannot hold.
pub(crate) fn json_text() -> impl Strategy<Value = JsonText> {
    let numbers = [
        "0",
        "-0",
        "1",
        "-1.5e-300",
        "1e400",
        "1E+2",
        "9007199254740993",
        "2512292042121000001",
        "-9223372036854775808",
        "18446744073709551615",
        "0.10",
        "123456789012345678901234567890",
    ];
    let leaf = prop_oneof![
        select(vec!["null", "true", "false"]).prop_map(json),
        select(numbers.to_vec()).prop_map(json),
        json_string().prop_map(|string| JsonText::from(&string)),
    ];
    leaf.prop_recursive(3, 12, 4, |inner| {
        prop_oneof![
            vec(inner.clone(), 0..4).prop_map(|items| join('[', items, ']')),
            vec((json_string(), inner), 0..4).prop_map(members_of)
        ]
    })
}

fn object() -> impl Strategy<Value = JsonText> {
    vec((json_string(), json_text()), 0..3).prop_map(members_of)
}

fn members_of(members: Vec<(JsonString, JsonText)>) -> JsonText {
    let members = members.into_iter().map(|(name, value)| format!("{name:?}:{value}"));
    join('{', members, '}')
}

fn join(open: char, items: impl IntoIterator<Item = impl ToString>, close: char) -> JsonText {
    let items: Vec<_> = items.into_iter().map(|item| item.to_string()).collect();
    json(&format!("{open}{}{close}", items.join(",")))
}

fn json(text: &str) -> JsonText {
    JsonText::parse(text).unwrap()
}

/// White space to put between tokens.
#[derive(Debug)]
pub(crate) struct Spacing(Vec<(Index, &'static str)>);

pub(crate) fn spacing() -> impl Strategy<Value = Spacing> {
    let spaces = select(vec![" ", "  ", "\t", "\n", "\r\n", "         "]);
    vec((any::<Index>(), spaces), 0..8).prop_map(Spacing)
}

impl Spacing {
    pub(crate) fn inject(&self, line: &str) -> String {
        let mut tokens = tokens(line);
        for (at, space) in &self.0 {
            tokens.insert(at.index(tokens.len() + 1), space);
        }
        tokens.concat()
    }
}

/// The tokens of compact JSON.
fn tokens(json: &str) -> Vec<&str> {
    let (mut tokens, mut start, mut in_string, mut escaped) = (Vec::new(), 0, false, false);
    for (at, character) in json.char_indices() {
        let structural = !in_string && matches!(character, '{' | '}' | '[' | ']' | ',' | ':');
        if structural {
            tokens.extend([&json[start..at], &json[at..=at]].into_iter().filter(|token| !token.is_empty()));
            start = at + 1;
        }
        match character {
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            '"' => in_string = !in_string,
            _ => {}
        }
    }
    tokens.push(&json[start..]);
    tokens.retain(|token| !token.is_empty());
    tokens
}

/// The members of a compact object, as they are spelled.
pub(crate) fn members(object: &str) -> Vec<String> {
    let (mut members, mut depth) = (vec![String::new()], 0);
    for token in tokens(&object[1..object.len() - 1]) {
        match token {
            "{" | "[" => depth += 1,
            "}" | "]" => depth -= 1,
            "," if depth == 0 => {
                members.push(String::new());
                continue;
            }
            _ => {}
        }
        members.last_mut().unwrap().push_str(token);
    }
    members
}
