//! Identities and positions: session ids, seqs, timestamps and the storage keys behind sessions.

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::error::{Error, IdFault};

/// The position of an event in its session: 0 for the first, without a hole.
///
/// A `Seq` is a position, not a count: the length of a session whose last event is `Seq(4)` is 5.
///
/// ```
/// use sessionlog::Seq;
/// let seq: Seq = "41".parse().unwrap();
/// assert_eq!(seq.next(), Some(Seq::new(42)));
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Seq(u64);

impl Seq {
    /// The first position of every session.
    pub const ZERO: Self = Self(0);

    /// Makes the position `value`.
    pub const fn new(value: u64) -> Self {
        Self(value)
    }

    /// Returns the number.
    pub const fn get(self) -> u64 {
        self.0
    }

    /// Returns the position after this one, or `None` behind the last one a `u64` can name.
    pub const fn next(self) -> Option<Self> {
        match self.0.checked_add(1) {
            Some(value) => Some(Self(value)),
            None => None,
        }
    }
}

impl fmt::Display for Seq {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl FromStr for Seq {
    type Err = std::num::ParseIntError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        text.parse().map(Self)
    }
}

/// Milliseconds since the Unix epoch, within ±(2^53 − 1).
///
/// Timestamps are information. Order is [`Seq`], nothing else: clocks go backwards.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Timestamp(i64);

impl Timestamp {
    /// The latest timestamp: the greatest integer that every JSON reader keeps exactly.
    pub const MAX: Self = Self((1 << 53) - 1);
    /// The earliest timestamp.
    pub const MIN: Self = Self(-((1 << 53) - 1));

    /// Makes a timestamp from milliseconds since the Unix epoch, or `None` outside ±(2^53 − 1).
    pub const fn from_millis(millis: i64) -> Option<Self> {
        if millis < Self::MIN.0 || millis > Self::MAX.0 { None } else { Some(Self(millis)) }
    }

    /// Returns the milliseconds since the Unix epoch.
    pub const fn as_millis(self) -> i64 {
        self.0
    }

    /// Reads the system's clock. A clock outside the range gives the nearest end.
    pub(crate) fn now() -> Self {
        let millis = match std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH) {
            Ok(since) => i64::try_from(since.as_millis()).unwrap_or(i64::MAX),
            Err(before) => i64::try_from(before.duration().as_millis()).map_or(i64::MIN, |m| -m),
        };
        Self(millis.clamp(Self::MIN.0, Self::MAX.0))
    }
}

impl fmt::Display for Timestamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// The name of a session: 1 to 255 bytes of text without control characters.
///
/// An id is an opaque key, never a path: `../x` is a fine id and touches no file.
///
/// ```
/// use sessionlog::SessionId;
/// assert!("release-notes".parse::<SessionId>().is_ok());
/// assert!("".parse::<SessionId>().is_err());
/// assert!("two\nlines".parse::<SessionId>().is_err());
/// ```
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SessionId(Arc<str>);

impl SessionId {
    /// The greatest length of an id, in bytes.
    pub const MAX_BYTES: usize = 255;

    /// Checks `text` and makes it an id.
    ///
    /// # Errors
    /// [`Error::BadSessionId`] when it is empty, longer than [`Self::MAX_BYTES`] or holds a control character.
    pub fn new(text: &str) -> Result<Self, Error> {
        let fault = if text.is_empty() {
            IdFault::Empty
        } else if text.len() > Self::MAX_BYTES {
            IdFault::TooLong { bytes: text.len() }
        } else if let Some(at) = text.find(char::is_control) {
            IdFault::ControlCharacter { at }
        } else {
            return Ok(Self(Arc::from(text)));
        };
        Err(Error::BadSessionId { fault })
    }

    /// Returns the id's text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for SessionId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl FromStr for SessionId {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self, Error> {
        Self::new(text)
    }
}

/// The key under which a session's values are stored: a fresh UUIDv7 for each creation, so that a deleted and
/// re-created id never meets old blocks.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct StorageKey(pub(crate) [u8; 16]);

impl StorageKey {
    pub(crate) fn mint() -> Self {
        Self(uuid::Uuid::now_v7().into_bytes())
    }

    /// The id of a session that was created without one.
    pub(crate) fn to_id(self) -> SessionId {
        SessionId(Arc::from(self.to_string()))
    }
}

impl fmt::Display for StorageKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        uuid::Uuid::from_bytes(self.0).hyphenated().fmt(f)
    }
}

impl fmt::Debug for StorageKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "StorageKey({self})")
    }
}
