//! Integers in bytes, and a reader that never reads past the end.

/// Appends `value` as LEB128, the shortest way.
pub(super) fn put_varint(mut value: u64, out: &mut Vec<u8>) {
    while value >= 0x80 {
        out.push((value & 0x7f) as u8 | 0x80);
        value >>= 7;
    }
    out.push((value & 0x7f) as u8);
}

/// The number of bytes that [`put_varint`] appends.
pub(super) fn varint_len(value: u64) -> usize {
    (64 - (value | 1).leading_zeros()).div_ceil(7) as usize
}

pub(super) fn put_len(len: usize, out: &mut Vec<u8>) {
    put_varint(len as u64, out);
}

/// Small numbers of either sign as small numbers.
pub(super) fn zigzag(value: i64) -> u64 {
    (value.cast_unsigned() << 1) ^ (value >> 63).cast_unsigned()
}

pub(super) fn unzigzag(value: u64) -> i64 {
    (value >> 1).cast_signed() ^ -(value & 1).cast_signed()
}

/// Reads from the front of some bytes; `None` where they end too early or are spelled in a way we never write.
#[derive(Clone, Copy, Debug)]
pub(super) struct Reader<'a> {
    rest: &'a [u8],
}

impl<'a> Reader<'a> {
    pub(super) fn new(bytes: &'a [u8]) -> Self {
        Self { rest: bytes }
    }

    pub(super) fn rest(&self) -> &'a [u8] {
        self.rest
    }

    pub(super) fn is_empty(&self) -> bool {
        self.rest.is_empty()
    }

    pub(super) fn take(&mut self, len: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.rest.split_at_checked(len)?;
        self.rest = rest;
        Some(taken)
    }

    pub(super) fn array<const N: usize>(&mut self) -> Option<[u8; N]> {
        let (taken, rest) = self.rest.split_first_chunk::<N>()?;
        self.rest = rest;
        Some(*taken)
    }

    pub(super) fn u8(&mut self) -> Option<u8> {
        self.array().map(u8::from_be_bytes)
    }

    pub(super) fn u32(&mut self) -> Option<u32> {
        self.array().map(u32::from_be_bytes)
    }

    pub(super) fn u64(&mut self) -> Option<u64> {
        self.array().map(u64::from_be_bytes)
    }

    /// A length of four bytes.
    pub(super) fn len32(&mut self) -> Option<usize> {
        usize::try_from(self.u32()?).ok()
    }

    #[inline]
    pub(super) fn varint(&mut self) -> Option<u64> {
        match self.rest {
            [first, rest @ ..] if *first < 0x80 => {
                self.rest = rest;
                Some(u64::from(*first))
            }
            _ => self.long_varint(),
        }
    }

    fn long_varint(&mut self) -> Option<u64> {
        let mut value = 0u64;
        for (at, byte) in self.rest.iter().enumerate().take(10) {
            let bits = u64::from(byte & 0x7f);
            // The tenth byte holds the last bit of 64.
            if at == 9 && bits > 1 {
                return None;
            }
            value |= bits << (7 * at);
            if *byte < 0x80 {
                if *byte == 0 {
                    return None; // not the shortest
                }
                self.rest = self.rest.get(at + 1..)?;
                return Some(value);
            }
        }
        None
    }

    /// A length or count that fits memory.
    #[inline]
    pub(super) fn len(&mut self) -> Option<usize> {
        usize::try_from(self.varint()?).ok()
    }

    pub(super) fn varint_u32(&mut self) -> Option<u32> {
        u32::try_from(self.varint()?).ok()
    }
}

/// Finds the first place at or behind `from`, wherever it is, that starts with `magic`.
pub(super) fn find<const N: usize>(bytes: &[u8], magic: &[u8; N], from: usize) -> Option<usize> {
    let first = magic.first()?;
    let mut at = from;
    loop {
        at += bytes.get(at..)?.iter().position(|byte| byte == first)?;
        if bytes.get(at..)?.starts_with(magic) {
            return Some(at);
        }
        at += 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Goal: every integer comes back, has the length foretold, and has one spelling only.
    #[test]
    fn varints_have_one_spelling() {
        for shift in 0..64 {
            for value in [(1u64 << shift) - 1, 1 << shift, (1 << shift) | 1, u64::MAX >> shift] {
                let mut out = Vec::new();
                put_varint(value, &mut out);
                assert_eq!(out.len(), varint_len(value), "{value}");
                let mut reader = Reader::new(&out);
                assert_eq!(reader.varint(), Some(value));
                assert!(reader.is_empty());
                for cut in 0..out.len() {
                    assert_eq!(Reader::new(&out[..cut]).varint(), None);
                }
                *out.last_mut().unwrap() |= 0x80;
                out.push(0);
                assert_eq!(Reader::new(&out).varint(), None, "a longer spelling of {value}");
            }
        }
        assert_eq!(Reader::new(&[0xff; 11]).varint(), None);
        assert_eq!(Reader::new(&[0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 2]).varint(), None);
    }

    /// Goal: signed values survive, at both ends too.
    #[test]
    fn zigzag_round_trips() {
        for value in [0, 1, -1, 63, -64, 64, i64::MAX, i64::MIN] {
            assert_eq!(unzigzag(zigzag(value)), value);
        }
        assert_eq!((zigzag(-1), zigzag(1), zigzag(-64)), (1, 2, 127));
    }
}
