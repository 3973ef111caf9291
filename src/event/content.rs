//! The content of messages.

use super::JsonText;

/// What a message says: a string, an array of parts (objects), or null.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Content(JsonText);

impl Content {
    /// Returns the content as JSON.
    pub fn json(&self) -> &JsonText {
        &self.0
    }

    /// Takes content that was checked when it was stored.
    pub(crate) fn from_checked(text: JsonText) -> Self {
        Self(text)
    }
}
