//! What is open around a value, whatever its nesting.

/// What is open around a value, one bit a level: objects are 1, arrays 0.
#[derive(Debug, Default)]
pub(super) struct Nesting {
    depth: usize,
    /// The innermost levels, the last one in the lowest bit.
    bits: u64,
    /// Full words of levels further out.
    outer: Vec<u64>,
}

impl Nesting {
    pub(super) fn push(&mut self, object: bool) {
        if self.depth > 0 && self.depth.is_multiple_of(64) {
            self.outer.push(self.bits);
        }
        self.bits = self.bits << 1 | u64::from(object);
        self.depth += 1;
    }

    pub(super) fn pop(&mut self) {
        self.bits >>= 1;
        self.depth -= 1;
        if self.depth > 0 && self.depth.is_multiple_of(64) {
            self.bits = self.outer.pop().unwrap_or_default();
        }
    }

    /// Whether the innermost level is an object; `None` outside of all.
    pub(super) fn top(&self) -> Option<bool> {
        (self.depth > 0).then_some(self.bits & 1 == 1)
    }
}
