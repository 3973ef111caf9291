//! Writing to standard output: failures told apart, lines for people kept to one line each.

use std::io::Write;

use super::exit::Failure;

/// How much is collected before it is written.
const BUFFER_BYTES: usize = 64 << 10;

/// Writes `bytes`.
pub(crate) fn write(out: &mut impl Write, bytes: &[u8]) -> Result<(), Failure> {
    out.write_all(bytes).map_err(|error| Failure::output(&error))
}

/// Writes one line for people.
pub(crate) fn line(out: &mut impl Write, text: &str) -> Result<(), Failure> {
    write(out, text.as_bytes())?;
    write(out, b"\n")
}

/// Hands over what is buffered: without it the last bytes' failure (a full disk) would be nobody's.
pub(crate) fn flush(out: &mut impl Write) -> Result<(), Failure> {
    out.flush().map_err(|error| Failure::output(&error))
}

/// Collects lines into few large writes: standard output alone writes at each newline.
pub(crate) struct Buffered<'a, W> {
    out: &'a mut W,
    bytes: Vec<u8>,
}

impl<'a, W: Write> Buffered<'a, W> {
    pub(crate) fn new(out: &'a mut W) -> Self {
        Self { out, bytes: Vec::with_capacity(BUFFER_BYTES) }
    }

    /// Lets `fill` append one line without its end.
    pub(crate) fn line(&mut self, fill: impl FnOnce(&mut Vec<u8>)) -> Result<(), Failure> {
        fill(&mut self.bytes);
        self.bytes.push(b'\n');
        if self.bytes.len() < BUFFER_BYTES {
            return Ok(());
        }
        self.write_out()
    }

    /// Writes the rest. To be called also when the source failed: what was read before is true.
    pub(crate) fn finish(&mut self) -> Result<(), Failure> {
        self.write_out()?;
        flush(self.out)
    }

    fn write_out(&mut self) -> Result<(), Failure> {
        write(self.out, &self.bytes)?;
        self.bytes.clear();
        self.bytes.shrink_to(BUFFER_BYTES);
        Ok(())
    }
}

/// Names and values, one a line, the values below each other.
pub(crate) fn list(entries: &[(&str, String)]) -> String {
    let width = entries.iter().map(|(name, _)| name.len()).max().unwrap_or(0);
    let lines: Vec<String> = entries.iter().map(|(name, value)| format!("{name:<width$}  {value}")).collect();
    lines.join("\n")
}

/// Text that others chose (metadata), with its control characters escaped: a line stays one line, and nothing in it
/// speaks to the terminal.
pub(crate) fn printable(text: &str) -> String {
    let mut line = String::with_capacity(text.len());
    for c in text.chars() {
        if c.is_control() {
            line.extend(c.escape_default());
        } else {
            line.push(c);
        }
    }
    line
}

#[cfg(test)]
mod tests {
    use super::printable;

    /// Goal: metadata cannot break a table or colour a terminal.
    #[test]
    fn control_characters_are_escaped() {
        assert_eq!(printable("a\nb\u{1b}[31m ü"), "a\\nb\\u{1b}[31m ü");
    }
}
