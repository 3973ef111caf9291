//! JSON kept as it was spelled.

use std::borrow::Cow;
use std::fmt;
use std::sync::Arc;

use serde::{Deserialize, Serialize, Serializer};

use super::escape::{escape, unescape};
use super::scan::{Scanner, with_text};
use crate::error::{EventError, EventFault};

/// Any JSON value, as it was spelled: numbers, escapes and key order stay; white space between tokens is gone.
///
/// Two are equal when their spellings are. A clone shares the text.
///
/// ```
/// use sessionlog::JsonText;
/// let args = JsonText::parse(r#" {"id": 9007199254740993, "rate": 1e400} "#).unwrap();
/// assert_eq!(args.as_str(), r#"{"id":9007199254740993,"rate":1e400}"#);
/// assert_eq!(JsonText::from("plain text").as_str(), r#""plain text""#);
/// ```
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct JsonText(Arc<str>);

impl JsonText {
    /// Checks that `text` is one JSON value, of any nesting, and keeps it.
    ///
    /// # Errors
    /// Not JSON, not UTF-8, or half of a surrogate pair (as an escape, anywhere in it); with the column.
    pub fn parse(text: impl AsRef<[u8]>) -> Result<Self, EventError> {
        with_text(text.as_ref(), |text| {
            let mut scanner = Scanner::new(text);
            scanner.skip_space();
            let value = scanner.value()?;
            scanner.end()?;
            Ok(Self(value.into_text()))
        })
    }

    /// Makes JSON from what serde can serialize. As serde_json has it, a float without a value is `null`.
    ///
    /// ```
    /// # use sessionlog::JsonText;
    /// let usage = JsonText::from_serialize(&std::collections::BTreeMap::from([("total_tokens", 17)])).unwrap();
    /// assert_eq!(usage.as_str(), r#"{"total_tokens":17}"#);
    /// ```
    ///
    /// # Errors
    /// The value refuses to be serialized as JSON.
    pub fn from_serialize(value: &(impl Serialize + ?Sized)) -> Result<Self, EventError> {
        // Checked again: a raw value inside may hold what we refuse.
        match serde_json::to_string(value) {
            Ok(text) => Self::parse(text),
            Err(error) => Err(EventError::new(EventFault::NotJson { reason: error.to_string() })),
        }
    }

    /// Returns the JSON text, without white space between tokens.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Whether it is `null`.
    pub fn is_null(&self) -> bool {
        &*self.0 == "null"
    }

    /// Returns the text of a JSON string; `None` for any other value.
    pub fn to_str(&self) -> Option<Cow<'_, str>> {
        self.0.strip_prefix('"')?.strip_suffix('"').map(unescape)
    }

    /// Reads it as a `T`: `serde_json::Value`, or a type of yours.
    ///
    /// # Errors
    /// It is no `T`; or it is nested deeper, or holds numbers greater, than serde_json reads.
    pub fn deserialize<'a, T: Deserialize<'a>>(&'a self) -> Result<T, serde_json::Error> {
        serde_json::from_str(&self.0)
    }

    /// Takes text that was checked when it was stored.
    pub(crate) fn from_checked(text: &str) -> Self {
        Self(text.into())
    }

    /// Takes a value that the scanner went through.
    pub(super) fn from_scanned(text: Arc<str>) -> Self {
        Self(text)
    }
}

impl fmt::Display for JsonText {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Debug for JsonText {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// As it was spelled where the serializer is serde_json's.
impl Serialize for JsonText {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let raw: &serde_json::value::RawValue = self.deserialize().map_err(serde::ser::Error::custom)?;
        raw.serialize(serializer)
    }
}

/// The JSON string with this text: not JSON to be parsed.
impl From<&str> for JsonText {
    fn from(text: &str) -> Self {
        Self(format!("\"{}\"", escape(text)).into())
    }
}

/// The JSON string with this text: not JSON to be parsed.
impl From<String> for JsonText {
    fn from(text: String) -> Self {
        Self::from(text.as_str())
    }
}

impl From<&JsonString> for JsonText {
    fn from(string: &JsonString) -> Self {
        Self(format!("\"{}\"", string.spelling()).into())
    }
}

impl From<serde_json::Value> for JsonText {
    fn from(value: serde_json::Value) -> Self {
        // A `Value` always is JSON, and its strings are UTF-8; its text has no white space.
        Self(value.to_string().into())
    }
}

/// A JSON string, as it was spelled: escapes stay.
///
/// Two are equal when their spellings are.
///
/// ```
/// use sessionlog::JsonString;
/// let id = JsonString::new("call\t1");
/// assert_eq!(id.spelling(), r"call\t1");
/// assert_eq!(id.to_str(), "call\t1");
/// ```
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct JsonString(Box<str>);

impl JsonString {
    /// Makes the string with this text. Only what must be escaped is.
    pub fn new(text: &str) -> Self {
        Self(escape(text).into())
    }

    /// Returns what stands between the quotes, escapes as they were spelled.
    pub fn spelling(&self) -> &str {
        &self.0
    }

    /// Returns the text: without a copy when the spelling has no escapes.
    pub fn to_str(&self) -> Cow<'_, str> {
        unescape(&self.0)
    }

    /// Takes the spelling (without quotes) of a string that was checked when it was stored.
    pub(crate) fn from_checked(spelling: &str) -> Self {
        Self(spelling.into())
    }
}

/// The text.
impl fmt::Display for JsonString {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.to_str())
    }
}

/// The spelling, in quotes.
impl fmt::Debug for JsonString {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "\"{}\"", self.0)
    }
}

/// As its text, in any format.
impl Serialize for JsonString {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.to_str())
    }
}

impl From<&str> for JsonString {
    fn from(text: &str) -> Self {
        Self::new(text)
    }
}

impl From<String> for JsonString {
    fn from(text: String) -> Self {
        match escape(&text) {
            Cow::Borrowed(_) => Self(text.into_boxed_str()),
            Cow::Owned(spelling) => Self(spelling.into_boxed_str()),
        }
    }
}
