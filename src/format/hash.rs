//! The running hash of a session's history.

use std::fmt;

/// A hash over all events of a session up to some seq: BLAKE3 of the hash before it and the event's export line.
///
/// No store or session id goes in, so it survives export and import, and anyone can recompute it from an export.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct Hash(pub(crate) [u8; 32]);

impl Hash {
    /// Stands where the hash cannot be computed, as the events before are damaged. It is no history's hash.
    pub(crate) const UNKNOWN: Self = Self([0; 32]);

    /// The hash of no events: BLAKE3 of `sessionlog history 1`.
    pub(crate) const START: Self = Self([
        0xea, 0x77, 0x17, 0xf7, 0x61, 0x38, 0x18, 0x21, 0x46, 0x60, 0x37, 0xde, 0x30, 0xd1, 0x03, 0x95, 0xd4,
        0x37, 0x3e, 0x84, 0xfc, 0x13, 0xed, 0x5a, 0x73, 0xa7, 0x77, 0xe3, 0xbd, 0x9f, 0xfb, 0x47,
    ]);

    /// The hash after one more event, whose export line (without LF) is `line`.
    pub(crate) fn next(self, line: &[u8]) -> Self {
        Self::after(&[&self.0, line].concat())
    }

    /// Begins what [`after`](Self::after) hashes: the line is to be appended.
    pub(crate) fn begin(self, buffer: &mut Vec<u8>) {
        buffer.clear();
        buffer.extend_from_slice(&self.0);
    }

    /// The hash of a hash and a line that stand in one buffer: the fast way for many.
    pub(crate) fn after(buffer: &[u8]) -> Self {
        Self(*blake3::hash(buffer).as_bytes())
    }
}

impl fmt::Display for Hash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl fmt::Debug for Hash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Hash({self})")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Goal: the constants and the chain are what the design says, for lines of any length.
    #[test]
    fn the_chain_is_blake3_of_hash_and_line() {
        assert_eq!(Hash::START.0, *blake3::hash(b"sessionlog history 1").as_bytes());
        for len in [0, 1, 31, 32, 33, 170, 991, 992, 993, 100_000] {
            let line = vec![b'x'; len];
            let whole = [&Hash::START.0[..], &line].concat();
            assert_eq!(Hash::START.next(&line).0, *blake3::hash(&whole).as_bytes(), "{len}");
        }
    }

    /// Goal: it reads as 64 hexadecimal digits.
    #[test]
    fn displays_as_hexadecimal() {
        assert_eq!(Hash([0xa1; 32]).to_string(), "a1".repeat(32));
    }
}
