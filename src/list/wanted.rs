//! Which sessions a list gives, and where it goes on: plain types.

use std::fmt;
use std::str::FromStr;

use crate::id::{SessionId, StorageKey, Timestamp};
use crate::labels::Labels;

/// Which sessions a list gives: all that are set must hold; see [`Store::list_with`](crate::Store::list_with).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct List {
    labels: Vec<(String, String)>,
    title: Option<String>,
    pub(super) since: Option<Timestamp>,
    pub(super) until: Option<Timestamp>,
    pub(super) parent: Option<SessionId>,
    pub(super) after: Option<ListCursor>,
}

impl List {
    /// All sessions.
    pub fn new() -> Self {
        Self::default()
    }

    /// Only those whose label `name` has this value. May be given several times; all must hold.
    #[must_use]
    pub fn label(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        self.labels.push((name.into(), value.into()));
        self
    }

    /// Only those whose title holds this text, in upper and lower case as it is here.
    #[must_use]
    pub fn title(mut self, text: impl Into<String>) -> Self {
        self.title = Some(text.into());
        self
    }

    /// Only those that were last updated at this time or later.
    #[must_use]
    pub fn since(mut self, time: Timestamp) -> Self {
        self.since = Some(time);
        self
    }

    /// Only those that were last updated before this time.
    #[must_use]
    pub fn until(mut self, time: Timestamp) -> Self {
        self.until = Some(time);
        self
    }

    /// Only those that were forked from this session itself, not from its forks.
    #[must_use]
    pub fn parent(mut self, parent: SessionId) -> Self {
        self.parent = Some(parent);
        self
    }

    /// Goes on behind an earlier page; see [`Sessions::next_cursor`](crate::Sessions::next_cursor).
    #[must_use]
    pub fn after(mut self, cursor: ListCursor) -> Self {
        self.after = Some(cursor);
        self
    }

    /// Whether labels decide.
    pub(super) fn looks_at_labels(&self) -> bool {
        self.title.is_some() || !self.labels.is_empty()
    }

    pub(super) fn wants(&self, labels: &Labels) -> bool {
        let title = |text: &String| labels.title.as_ref().is_some_and(|title| title.contains(text));
        self.title.as_ref().is_none_or(title)
            && self.labels.iter().all(|(name, value)| labels.labels.get(name) == Some(value))
    }

    /// Whether a session that stands there in the order is in the range of times, and behind the cursor.
    pub(super) fn spans(&self, at: ListCursor) -> bool {
        self.after.is_none_or(|after| at < after)
            && self.since.is_none_or(|since| at.updated >= since)
            && self.until.is_none_or(|until| at.updated < until)
    }
}

/// A place in the list of sessions, between two of them. It holds for as long as the store is there, whatever becomes of
/// the sessions around it.
///
/// Its text form is for command lines and addresses: nothing but to be given back is promised of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ListCursor {
    pub(super) updated: Timestamp,
    pub(super) key: StorageKey,
}

impl ListCursor {
    /// Before the first session.
    pub(super) const TOP: Self = Self { updated: Timestamp::MAX, key: StorageKey([u8::MAX; 16]) };
}

impl fmt::Display for ListCursor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.updated, self.key)
    }
}

impl FromStr for ListCursor {
    type Err = BadListCursor;

    fn from_str(text: &str) -> Result<Self, BadListCursor> {
        let parse = || {
            let (updated, key) = text.split_once(':')?;
            let updated = Timestamp::from_millis(updated.parse().ok()?)?;
            let key = StorageKey(uuid::Uuid::parse_str(key).ok()?.into_bytes());
            Some(Self { updated, key })
        };
        parse().ok_or(BadListCursor(()))
    }
}

/// A text that is no [`ListCursor`].
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("not a place in a list: give one that a page ended with")]
pub struct BadListCursor(());

#[cfg(test)]
mod tests {
    use super::*;

    /// Goal: a cursor's text gives the cursor; anything else is refused.
    #[test]
    fn cursors_come_back_from_their_text() {
        for millis in [0, -1, Timestamp::MAX.as_millis(), Timestamp::MIN.as_millis()] {
            let updated = Timestamp::from_millis(millis).unwrap();
            let cursor = ListCursor { updated, key: StorageKey::mint() };
            assert_eq!(cursor.to_string().parse(), Ok(cursor));
        }
        for bad in ["", "7", "7:", ":x", "9007199254740992:0198a3c4-5d6e-7f80-9a1b-2c3d4e5f6071", "7:x"] {
            assert!(bad.parse::<ListCursor>().is_err(), "{bad}");
        }
    }
}
