//! The fuzzer's bytes, read as small instructions. Behind the end everything is 0, so each input means something.

/// A reader of the fuzzer's bytes.
#[derive(Debug)]
pub struct Input<'a> {
    rest: &'a [u8],
}

impl<'a> Input<'a> {
    pub fn new(bytes: &'a [u8]) -> Self {
        Self { rest: bytes }
    }

    pub fn is_empty(&self) -> bool {
        self.rest.is_empty()
    }

    pub fn u8(&mut self) -> u8 {
        self.bytes(1).first().copied().unwrap_or_default()
    }

    /// One of two ways.
    pub fn coin(&mut self) -> bool {
        self.u8() & 1 == 0
    }

    /// An index below `limit`; 0 when that is 0.
    pub fn index(&mut self, limit: usize) -> usize {
        let number = if limit <= 256 {
            usize::from(self.u8())
        } else {
            usize::try_from(self.number(3)).unwrap_or_default()
        };
        number.checked_rem(limit).unwrap_or_default()
    }

    /// Up to `count` bytes as a big-endian number.
    fn number(&mut self, count: usize) -> u64 {
        self.bytes(count).iter().fold(0, |number, byte| number << 8 | u64::from(*byte))
    }

    /// A number that is often at an edge.
    pub fn edge(&mut self) -> u64 {
        let small = u64::from(self.u8());
        match self.u8() % 8 {
            0 | 1 => small,
            2 => small << 8,
            3 => u64::MAX - small,
            4 => u64::from(u32::MAX) - small,
            5 => (1 << 32) + small,
            6 => (1 << 63) - small,
            _ => self.number(8),
        }
    }

    /// Up to `count` bytes.
    pub fn bytes(&mut self, count: usize) -> &'a [u8] {
        let (bytes, rest) = self.rest.split_at(count.min(self.rest.len()));
        self.rest = rest;
        bytes
    }

    /// A few bytes, their number first.
    pub fn piece(&mut self) -> &'a [u8] {
        let count = usize::from(self.u8() % 64);
        self.bytes(count)
    }

    pub fn rest(&mut self) -> &'a [u8] {
        std::mem::take(&mut self.rest)
    }
}

/// Changes some bytes in place, or the length of what holds them.
pub fn damage(input: &mut Input<'_>, bytes: &mut Vec<u8>, within: usize) {
    let at = input.index(within.min(bytes.len()));
    match input.u8() % 8 {
        0 | 1 => {
            if let Some(byte) = bytes.get_mut(at) {
                *byte ^= input.u8().max(1);
            }
        }
        2 | 3 => overwrite(bytes, at, input.piece()),
        4 => {
            let end = at.saturating_add(input.index(1024)).min(bytes.len());
            bytes.get_mut(at..end).unwrap_or_default().fill(0);
        }
        5 => bytes.truncate(at),
        6 => {
            let piece = input.piece();
            bytes.splice(at..at, piece.iter().copied());
        }
        _ => {
            let end = at.saturating_add(input.index(256)).min(bytes.len());
            bytes.drain(at..end);
        }
    }
}

/// Writes `new` over what stands at `at`, cut where the bytes end.
pub fn overwrite(bytes: &mut [u8], at: usize, new: &[u8]) {
    for (byte, new) in bytes.iter_mut().skip(at).zip(new) {
        *byte = *new;
    }
}
