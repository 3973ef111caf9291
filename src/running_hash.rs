//! The running hash, as callers see it.

use std::fmt;
use std::str::FromStr;

use serde::{Serialize, Serializer};

use crate::event::Event;
use crate::format::Hash;

/// A hash over all events of a session up to some seq.
///
/// The hash of no events is BLAKE3 of `sessionlog history 1`; with each event it becomes BLAKE3 of the hash before it
/// and the event's JSON line, without its end. No id goes in: it survives export and import, and anybody can compute
/// it from an export.
///
/// ```
/// # fn main() -> sessionlog::Result<()> {
/// use sessionlog::{NewEvent, NewSession, RunningHash, Seq, Store};
/// let session = Store::in_memory()?.create(NewSession::new())?;
/// session.append_batch([NewEvent::user_message("hi"), NewEvent::assistant_message("hello")])?;
/// let mut hash = RunningHash::START;
/// for event in session.read_from(Seq::ZERO)? {
///     hash = hash.next(&event?);
/// }
/// assert_eq!(session.running_hash(Seq::new(2))?, hash);
/// # Ok(()) }
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct RunningHash([u8; 32]);

impl RunningHash {
    /// The hash of no events.
    pub const START: Self = Self(Hash::START.0);

    /// The hash with one more event.
    #[must_use]
    pub fn next(self, event: &Event) -> Self {
        let mut line = Vec::new();
        event.write_json(&mut line);
        self.next_line(&line)
    }

    /// The hash with one more event, whose JSON line is `line`, without its end.
    #[must_use]
    pub fn next_line(self, line: &[u8]) -> Self {
        Hash(self.0).next(line).into()
    }

    /// Returns the bytes.
    pub fn as_bytes(&self) -> &[u8; 32] {
        &self.0
    }
}

impl From<Hash> for RunningHash {
    fn from(hash: Hash) -> Self {
        Self(hash.0)
    }
}

/// 64 hexadecimal digits.
impl fmt::Display for RunningHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl fmt::Debug for RunningHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "RunningHash({self})")
    }
}

/// The text is not 64 hexadecimal digits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("64 hexadecimal digits expected")]
pub struct BadRunningHash;

impl FromStr for RunningHash {
    type Err = BadRunningHash;

    fn from_str(text: &str) -> Result<Self, BadRunningHash> {
        let mut bytes = [0; 32];
        let (digits, rest) = text.as_bytes().as_chunks::<2>();
        if digits.len() != bytes.len() || !rest.is_empty() {
            return Err(BadRunningHash);
        }
        for (byte, digits) in bytes.iter_mut().zip(digits) {
            for digit in digits {
                let value = char::from(*digit).to_digit(16).and_then(|value| u8::try_from(value).ok());
                *byte = (*byte << 4) | value.ok_or(BadRunningHash)?;
            }
        }
        Ok(Self(bytes))
    }
}

impl Serialize for RunningHash {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Goal: the text of a hash is read as that hash, and nothing else is.
    #[test]
    fn reads_what_it_writes() {
        let text = RunningHash::START.to_string();
        assert_eq!(text.parse(), Ok(RunningHash::START));
        assert_eq!(text.to_uppercase().parse(), Ok(RunningHash::START));
        for bad in ["", &text[1..], &format!("{text}0"), &format!("{text}00"), &text.replace('e', "g")] {
            assert_eq!(bad.parse::<RunningHash>(), Err(BadRunningHash), "{bad}");
        }
    }
}
