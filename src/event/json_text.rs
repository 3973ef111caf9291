//! JSON kept as it was spelled.

use std::borrow::Cow;

/// Any JSON value, as it was spelled: numbers, escapes and key order stay; white space between tokens is gone.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct JsonText(Box<str>);

impl JsonText {
    /// Returns the JSON text, without white space between tokens.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Whether it is `null`.
    pub fn is_null(&self) -> bool {
        &*self.0 == "null"
    }

    /// Takes text that was checked when it was stored.
    pub(crate) fn from_checked(text: &str) -> Self {
        Self(text.into())
    }
}

/// A JSON string, as it was spelled: escapes stay.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct JsonString(Box<str>);

impl JsonString {
    /// Returns what stands between the quotes, escapes as they were spelled.
    pub fn spelling(&self) -> &str {
        &self.0
    }

    /// Takes the spelling (without quotes) of a string that was checked when it was stored.
    pub(crate) fn from_checked(spelling: &str) -> Self {
        Self(spelling.into())
    }

    /// Returns the text.
    pub fn to_str(&self) -> Cow<'_, str> {
        Cow::Borrowed(&self.0) // event helper: unescape
    }
}
