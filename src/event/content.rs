//! The content of messages.

use std::borrow::Cow;

use serde::{Serialize, Serializer};

use super::JsonText;
use super::escape::unescape;
use super::names::Field;
use super::scan::{Fault, Scanner};
use crate::error::{EventError, EventFault};

/// What a message says: a string, an array of parts (objects), or null.
///
/// ```
/// use sessionlog::{Content, JsonText};
/// assert_eq!(Content::from("hello").as_text().as_deref(), Some("hello"));
/// let parts = JsonText::parse(r#"[{"type":"text","text":"hello"}]"#).unwrap();
/// assert!(Content::parts(parts).is_ok());
/// assert!(Content::parts(JsonText::parse("[1]").unwrap()).is_err());
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Content(JsonText);

impl Content {
    /// Makes the content of a message that says `text`.
    pub fn text(text: &str) -> Self {
        Self(JsonText::from(text))
    }

    /// Makes content of parts, as the OpenAI API has them: an array of objects. What is in them stays as it is.
    ///
    /// # Errors
    /// It is no array, or holds something that is no object.
    pub fn parts(parts: JsonText) -> Result<Self, EventError> {
        match check_parts(parts.as_str()) {
            Ok(()) => Ok(Self(parts)),
            Err(fault) => Err(EventError::new(fault.fault).field(Field::Content.text())),
        }
    }

    /// Makes the content of an assistant message that says nothing.
    pub fn null() -> Self {
        Self(JsonText::from_checked("null"))
    }

    /// Whether it is null.
    pub fn is_null(&self) -> bool {
        self.0.is_null()
    }

    /// Returns the text when the content is a string.
    pub fn as_text(&self) -> Option<Cow<'_, str>> {
        self.0.to_str()
    }

    /// Returns the content as JSON.
    pub fn json(&self) -> &JsonText {
        &self.0
    }

    /// Takes content that was checked when it was stored.
    pub(crate) fn from_checked(text: JsonText) -> Self {
        Self(text)
    }
}

/// As its JSON.
impl Serialize for Content {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.0.serialize(serializer)
    }
}

impl From<&str> for Content {
    fn from(text: &str) -> Self {
        Self::text(text)
    }
}

impl From<String> for Content {
    fn from(text: String) -> Self {
        Self::text(&text)
    }
}

/// Checks the JSON of a message's content.
pub(super) fn check_content(json: &str, may_be_null: bool) -> Result<(), Fault> {
    match json.as_bytes().first() {
        Some(b'"') => Ok(()),
        Some(b'[') => check_parts(json),
        _ if may_be_null && json == "null" => Ok(()),
        _ => Err(Fault::new(0, EventFault::WrongType { expected: "a string or an array of objects" })),
    }
}

/// What a part of content is, as far as the surface cares.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PartKind {
    /// `{"type":"text","text":"…"}`, with whatever else.
    Text,
    /// The same, with an empty text.
    EmptyText,
    /// An image, a sound, …; or no part at all.
    Other,
}

/// The items of a JSON array, each with its kind; `None` when `json` is no array.
pub(crate) fn parts_of(json: &str) -> Option<Vec<(&str, PartKind)>> {
    let mut scanner = Scanner::new(json);
    scanner.open(b'[', "an array").ok()?;
    let mut parts = Vec::new();
    while scanner.next_item(parts.is_empty()).ok()? {
        let part = scanner.value().ok()?.raw;
        parts.push((part, part_kind(part).unwrap_or(PartKind::Other)));
    }
    Some(parts)
}

fn part_kind(part: &str) -> Option<PartKind> {
    let mut scanner = Scanner::new(part);
    scanner.open(b'{', "an object").ok()?;
    let (mut is_text, mut text, mut first) = (false, None, true);
    while let Some((_, name)) = scanner.next_member(first).ok()? {
        first = false;
        let value = scanner.value().ok()?.raw;
        match &*unescape(name) {
            "type" => is_text = value.strip_prefix('"')?.strip_suffix('"').map(unescape)? == "text",
            // A name may stand twice here, and who reads it may take either: empty is what is empty both times.
            "text" if value.starts_with('"') => text = Some(text.unwrap_or(true) && value == "\"\""),
            "text" => return None,
            _ => {}
        }
    }
    match text {
        Some(true) if is_text => Some(PartKind::EmptyText),
        Some(false) if is_text => Some(PartKind::Text),
        _ => None,
    }
}

fn check_parts(json: &str) -> Result<(), Fault> {
    let mut scanner = Scanner::new(json);
    scanner.open(b'[', "an array of objects")?;
    let mut first = true;
    while scanner.next_item(first)? {
        if scanner.peek() != Some(b'{') {
            return Err(Fault::new(scanner.at(), EventFault::WrongType { expected: "an object" }));
        }
        scanner.value()?;
        first = false;
    }
    Ok(())
}
