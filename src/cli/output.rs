//! Writing to standard output: failures told apart, lines for people kept to one line each.

use std::io::{self, Write};

use super::exit::Failure;
use super::style::Paint;

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

/// Tells something for people on standard error. Who cannot be told there is not in the way of the data.
pub(crate) fn note(text: &str) {
    let _ = writeln!(io::stderr(), "{} {text}", Paint::stderr().notice("note:"));
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
    let paint = Paint::stdout();
    let line = |(name, value): &(&str, String)| {
        // The colour stands around the padded name: it has no width.
        format!("{}  {value}", paint.heading(&format!("{name:<width$}")))
    };
    entries.iter().map(line).collect::<Vec<_>>().join("\n")
}

/// A number of bytes for people: `1.5 MiB`.
pub(crate) fn size(bytes: u64) -> String {
    const UNITS: [&str; 5] = ["B", "KiB", "MiB", "GiB", "TiB"];
    let (mut value, mut unit) = (bytes as f64, 0);
    while value >= 1_023.95 && unit + 1 < UNITS.len() {
        value /= 1_024.0;
        unit += 1;
    }
    let name = UNITS.get(unit).copied().unwrap_or_default();
    if unit == 0 { format!("{bytes} {name}") } else { format!("{value:.1} {name}") }
}

/// The number of bytes that a text says: `500`, `10K`, `10KiB` (1,024 each), `10KB` (1,000 each), and so on up to `T`.
pub(crate) fn bytes(text: &str) -> Result<u64, String> {
    let digits = text.bytes().take_while(u8::is_ascii_digit).count();
    let (number, unit) = text.split_at_checked(digits).unwrap_or((text, ""));
    let power = |unit: &str| ["", "K", "M", "G", "T"].iter().position(|name| *name == unit);
    let (base, power) = match unit.strip_suffix("iB").or_else(|| unit.strip_suffix('B')) {
        Some(unit_name) if unit.ends_with("iB") || unit_name.is_empty() => (1_024_u64, power(unit_name)),
        Some(unit_name) => (1_000, power(unit_name)),
        None => (1_024, power(unit)),
    };
    let found = number
        .parse::<u64>()
        .ok()
        .zip(power)
        .and_then(|(number, power)| number.checked_mul(base.checked_pow(u32::try_from(power).ok()?)?));
    found.ok_or_else(|| "not a size: write bytes, or a number with K, M, G or T, as in 500M or 2GiB".into())
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
    use super::{bytes, printable, size};

    /// Goal: sizes are short, and read with and without units.
    #[test]
    fn sizes_out_and_in() {
        for (number, text) in [
            (0, "0 B"),
            (1_023, "1023 B"),
            (1_024, "1.0 KiB"),
            (1_048_575, "1.0 MiB"),
            (1_610_612_736, "1.5 GiB"),
            (u64::MAX, "16777216.0 TiB"),
        ] {
            assert_eq!(size(number), text);
        }
        for (text, number) in [
            ("0", 0),
            ("500", 500),
            ("5B", 5),
            ("2K", 2_048),
            ("2KiB", 2_048),
            ("2KB", 2_000),
            ("3GB", 3_000_000_000),
        ] {
            assert_eq!(bytes(text), Ok(number), "{text}");
        }
        for bad in ["", "K", "-1", "1.5G", "1X", "1 K", "99999999T", "1iB2"] {
            assert!(bytes(bad).is_err(), "{bad}");
        }
    }

    /// Goal: metadata cannot break a table or colour a terminal.
    #[test]
    fn control_characters_are_escaped() {
        assert_eq!(printable("a\nb\u{1b}[31m ü"), "a\\nb\\u{1b}[31m ü");
    }
}
