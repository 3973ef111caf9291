//! The running hash of a history, as callers note and compare it.

use std::fmt;
use std::str::FromStr;

use serde::{Serialize, Serializer};

use crate::format::Hash;

/// The running hash of a history: the *hash after the first N events* of a session.
///
/// After no event it is BLAKE3 of `sessionlog history 1`; after each further event BLAKE3 of the 32 bytes of the hash
/// before it and the event's JSON line, without the line's end. Neither the session's id nor the store goes in: a fork
/// has its parent's hashes up to its prefix, and an export that is imported elsewhere has the same ones.
///
/// It reads, and is parsed, as 64 hexadecimal digits.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct HistoryHash([u8; 32]);

impl HistoryHash {
    /// The hash after no event.
    pub const START: Self = Self(Hash::START.0);

    /// Returns its bytes.
    pub const fn as_bytes(&self) -> &[u8; 32] {
        &self.0
    }
}

impl From<Hash> for HistoryHash {
    fn from(hash: Hash) -> Self {
        Self(hash.0)
    }
}

impl fmt::Display for HistoryHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        Hash(self.0).fmt(f)
    }
}

impl fmt::Debug for HistoryHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "HistoryHash({self})")
    }
}

/// The text is not 64 hexadecimal digits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a hash has 64 hexadecimal digits")]
pub struct BadHash;

impl FromStr for HistoryHash {
    type Err = BadHash;

    fn from_str(text: &str) -> Result<Self, BadHash> {
        let mut bytes = [0; 32];
        let (pairs, rest) = text.as_bytes().as_chunks::<2>();
        if pairs.len() != bytes.len() || !rest.is_empty() {
            return Err(BadHash);
        }
        for (byte, pair) in bytes.iter_mut().zip(pairs) {
            let digits = std::str::from_utf8(pair).ok().filter(|_| pair.iter().all(u8::is_ascii_hexdigit));
            *byte = digits.and_then(|digits| u8::from_str_radix(digits, 16).ok()).ok_or(BadHash)?;
        }
        Ok(Self(bytes))
    }
}

impl Serialize for HistoryHash {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}
