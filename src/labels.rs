//! What people call a session: a title and key=value pairs, which may change. Plain types.

use std::collections::BTreeMap;

use crate::error::{Error, Result};

/// The most bytes of a session's title and labels: names and values, and 8 more for each label. They are one small
/// value of the engine.
pub const MAX_LABEL_BYTES: usize = 4 << 10;

/// What each label counts beside its name and value.
const EACH: usize = 8;

/// The title and the labels of a session; see [`Session::labels`](crate::Session::labels).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Labels {
    /// What people call it. Not empty; several sessions may have the same.
    pub title: Option<String>,
    /// Values by name. No value is empty.
    pub labels: BTreeMap<String, String>,
}

impl Labels {
    /// Whether there is neither a title nor a label.
    pub fn is_empty(&self) -> bool {
        self.title.is_none() && self.labels.is_empty()
    }

    /// Returns the same, changed.
    ///
    /// # Errors
    /// As [`Session::label`](crate::Session::label).
    pub fn changed(&self, change: &LabelChange) -> Result<Self> {
        let mut labels = self.clone();
        if let Some(title) = &change.title {
            labels.title = Some(title.clone()).filter(|title| !title.is_empty());
        }
        for (name, value) in &change.labels {
            if name.is_empty() || name.contains('=') || name.contains(char::is_control) {
                return Err(Error::BadLabel { name: name.clone() });
            }
            match value.is_empty() {
                true => labels.labels.remove(name),
                false => labels.labels.insert(name.clone(), value.clone()),
            };
        }
        let bytes = labels.bytes();
        match bytes > MAX_LABEL_BYTES {
            true => Err(Error::LabelsTooLarge { bytes, max_bytes: MAX_LABEL_BYTES }),
            false => Ok(labels),
        }
    }

    /// What counts against [`MAX_LABEL_BYTES`].
    fn bytes(&self) -> usize {
        let labels = self.labels.iter().map(|(name, value)| name.len() + value.len() + EACH);
        self.title.as_ref().map_or(0, String::len) + labels.sum::<usize>()
    }
}

/// A change of a session's title and labels, made as one; see [`Session::label`](crate::Session::label).
///
/// An empty text removes: a title or a label is never empty.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LabelChange {
    title: Option<String>,
    labels: Vec<(String, String)>,
}

impl LabelChange {
    /// No change.
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets the title; an empty one removes it.
    #[must_use]
    pub fn title(mut self, title: impl Into<String>) -> Self {
        self.title = Some(title.into());
        self
    }

    /// Sets the label `name`, which is not empty and holds neither `=` nor control characters; an empty value removes
    /// it. Of two changes of one label the later counts.
    #[must_use]
    pub fn set(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        self.labels.push((name.into(), value.into()));
        self
    }

    /// Removes the label `name`, if it is there.
    #[must_use]
    pub fn remove(self, name: impl Into<String>) -> Self {
        self.set(name, "")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Goal: an empty text removes, the later change of a label counts, and what was not named stays.
    #[test]
    fn changes_are_applied_in_order() {
        let first = LabelChange::new().title("one").set("a", "1").set("b", "2").set("a", "3");
        let labels = Labels::default().changed(&first).unwrap();
        assert_eq!(labels.title.as_deref(), Some("one"));
        assert_eq!(labels.labels, BTreeMap::from([("a".into(), "3".into()), ("b".into(), "2".into())]));
        let labels = labels.changed(&LabelChange::new().title("").remove("a").remove("x")).unwrap();
        assert_eq!((labels.title, labels.labels), (None, BTreeMap::from([("b".into(), "2".into())])));
    }

    /// Goal: names that the command line could not give, and more than fits in a value, are refused.
    #[test]
    fn bad_names_and_too_much_are_refused() {
        for name in ["", "a=b", "a\nb"] {
            let refused = Labels::default().changed(&LabelChange::new().set(name, "v"));
            assert!(matches!(refused, Err(Error::BadLabel { .. })), "{name:?}");
        }
        let of = |bytes: usize| LabelChange::new().set("n", "v".repeat(bytes - 1 - EACH));
        assert!(Labels::default().changed(&of(MAX_LABEL_BYTES)).is_ok());
        let refused = Labels::default().changed(&of(MAX_LABEL_BYTES + 1));
        assert!(matches!(refused, Err(Error::LabelsTooLarge { bytes, .. }) if bytes == MAX_LABEL_BYTES + 1));
    }
}
