//! What an event says, for people: the texts in it, and a line that shows them.

use std::borrow::Cow;

use sessionlog::{Content, Event, EventKind, JsonText};

use super::output::printable;

/// A text of an event, and where it stands.
pub(crate) struct Text<'a> {
    pub(crate) field: &'a str,
    pub(crate) text: Cow<'a, str>,
}

/// Calls `take` with each text of an event until that says no: what a message, chunk, call or result holds, and the
/// values of a custom event. Of a JSON string its text, of any other value its JSON as it is stored; of content parts
/// each `text`.
pub(crate) fn texts<'a>(event: &'a Event, take: &mut impl FnMut(Text<'a>) -> bool) {
    let mut give = |field, text| take(Text { field, text });
    match &event.kind {
        EventKind::UserMessage { content: said } | EventKind::AssistantMessage { content: said, .. } => {
            content(said, &mut give);
        }
        EventKind::AssistantChunk { delta } => {
            give("delta", delta.to_str());
        }
        EventKind::ToolCall { name, args, .. } => {
            let _ = give("name", name.to_str()) && give("args", value(args));
        }
        EventKind::ToolResult { result, error, .. } => {
            let _ = result.as_ref().is_none_or(|result| give("result", value(result)))
                && error
                    .as_ref()
                    .filter(|error| !error.is_null())
                    .is_none_or(|error| give("error", value(error)));
        }
        EventKind::Custom { .. } => {
            for (name, held) in &event.extra {
                // A name with escapes is shown as it is spelled.
                if !give(name.spelling(), value(held)) {
                    return;
                }
            }
        }
        _ => {}
    }
}

fn content<'a>(said: &'a Content, give: &mut impl FnMut(&'a str, Cow<'a, str>) -> bool) {
    if let Some(text) = said.as_text() {
        give("content", text);
    } else if !said.is_null() {
        #[derive(serde::Deserialize)]
        struct Part {
            text: Option<String>,
        }
        match said.json().deserialize::<Vec<Part>>() {
            Ok(parts) => {
                let _ =
                    parts.into_iter().filter_map(|part| part.text).all(|text| give("content", text.into()));
            }
            // Parts that are no such parts are searched as they stand.
            Err(_) => {
                give("content", said.json().as_str().into());
            }
        }
    }
}

fn value(json: &JsonText) -> Cow<'_, str> {
    json.to_str().unwrap_or_else(|| json.as_str().into())
}

/// The type, and what it says, on one line of at most `width` characters.
pub(crate) fn summary(event: &Event, width: usize) -> String {
    let mut line = printable(&event.event_type());
    texts(event, &mut |Text { text, .. }| {
        line.push(' ');
        // What is cut off anyway need not be made printable.
        let shown: String = text.chars().take(width).collect();
        line.push_str(&printable(&shown));
        line.chars().count() < width
    });
    shortened(line, width)
}

/// At most `width` characters of it, the last of them `…` where there were more.
pub(crate) fn shortened(text: String, width: usize) -> String {
    if text.chars().count() <= width {
        return text;
    }
    text.chars().take(width.saturating_sub(1)).chain(['…']).collect()
}

#[cfg(test)]
mod tests {
    use sessionlog::{Content, JsonText, NewEvent, NewSession, Seq, Store};

    use super::{summary, texts};

    fn said(new: NewEvent) -> (Vec<(String, String)>, String) {
        let session = Store::in_memory().unwrap().create(NewSession::new()).unwrap();
        session.append(new).unwrap();
        let event = session.read_from(Seq::ZERO).unwrap().next().unwrap().unwrap();
        let mut found = Vec::new();
        texts(&event, &mut |text| {
            found.push((text.field.to_owned(), text.text.into_owned()));
            true
        });
        (found, summary(&event, 24))
    }

    fn json(text: &str) -> JsonText {
        JsonText::parse(text).unwrap()
    }

    /// Goal: strings are searched as the text that they spell, other JSON as it stands, parts one by one.
    #[test]
    fn texts_of_events() {
        let found =
            |new| said(new).0.into_iter().map(|(field, text)| format!("{field}={text}")).collect::<Vec<_>>();
        assert_eq!(found(NewEvent::user_message("a\n\"b\"")), ["content=a\n\"b\""]);
        let parts = json(
            r#"[{"type":"text","text":"x"},{"type":"image_url","image_url":{}},{"type":"text","text":"y"}]"#,
        );
        assert_eq!(found(NewEvent::user_message(Content::parts(parts).unwrap())), ["content=x", "content=y"]);
        assert!(found(NewEvent::assistant_message(Content::null())).is_empty());
        let call = NewEvent::tool_call("1", "bash", json(r#"{"cmd":"ls \"a\""}"#));
        assert_eq!(found(call), ["name=bash", r#"args={"cmd":"ls \"a\""}"#]);
        assert_eq!(found(NewEvent::tool_result("1", json(r#""out""#))), ["result=out"]);
        assert_eq!(found(NewEvent::tool_error("1", "no")), ["error=no"]);
        assert!(found(NewEvent::turn_start("t")).is_empty());
        let custom = NewEvent::custom("note").field("at", json("[1,2]")).field("by", json(r#""me""#));
        assert_eq!(found(custom), ["at=[1,2]", "by=me"]);
    }

    /// Goal: one line, whatever is in it, and not longer than asked for.
    #[test]
    fn summaries_are_one_short_line() {
        assert_eq!(said(NewEvent::user_message("a\nb")).1, "user/message a\\nb");
        assert_eq!(said(NewEvent::user_message("a rather long text")).1, "user/message a rather l…");
    }
}
