//! What of logged content a request can have: nothing empty where a provider refuses that, text where it wants text.

use super::entry::Outcome;
use crate::event::{Content, JsonText, PartKind, parts_of};

/// An assistant's content without its empty text parts; null when nothing is left.
pub(super) fn of_assistant(content: &Content) -> Content {
    without_empty(content.json()).unwrap_or_else(Content::null)
}

/// A user's content without its empty text parts; an empty text when nothing is left.
pub(super) fn of_user(content: &Content) -> Content {
    without_empty(content.json()).unwrap_or_else(|| Content::text(""))
}

/// What a tool message says of what the tool gave. `as_json`: a result is its JSON text, whatever it is.
pub(super) fn of_result(outcome: &Outcome, as_json: bool) -> Content {
    let result = match outcome {
        Outcome::Error(text) => return Content::from_checked(text.clone()),
        Outcome::Result(result) => result,
    };
    let json = result.as_str();
    if as_json {
        return Content::text(json);
    }
    if json.starts_with('"') {
        return Content::from_checked(result.clone());
    }
    match parts_of(json) {
        Some(parts) if !parts.is_empty() && parts.iter().all(|(_, kind)| *kind != PartKind::Other) => {
            without_empty(result).unwrap_or_else(|| Content::text(""))
        }
        _ => Content::text(json),
    }
}

/// `None` for what is empty: null, an empty text, no parts, or only empty text parts.
fn without_empty(content: &JsonText) -> Option<Content> {
    let json = content.as_str();
    if json == "null" || json == r#""""# {
        return None;
    }
    // Nearly always: a text. Nothing is looked for in it.
    if json.starts_with('"') {
        return Some(Content::from_checked(content.clone()));
    }
    let Some(parts) = parts_of(json) else { return Some(Content::from_checked(content.clone())) };
    let full: Vec<&str> =
        parts.iter().filter(|(_, kind)| *kind != PartKind::EmptyText).map(|(part, _)| *part).collect();
    match full.len() {
        0 => None,
        all if all == parts.len() => Some(Content::from_checked(content.clone())),
        _ => Some(Content::from_checked(JsonText::from_checked(&format!("[{}]", full.join(","))))),
    }
}
