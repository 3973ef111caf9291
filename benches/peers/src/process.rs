//! What the system says about this process: its memory and what it has written.

use std::fs;

use crate::Outcome;

/// Memory in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Memory {
    /// Now.
    pub resident: u64,
    /// The most there was.
    pub peak: u64,
}

impl Memory {
    /// Of this process.
    pub fn now() -> Outcome<Self> {
        let status = fs::read_to_string("/proc/self/status")?;
        Ok(Self { resident: number(&status, "VmRSS:")? << 10, peak: number(&status, "VmHWM:")? << 10 })
    }
}

/// Returns the bytes that this process has given to `write` calls of any kind.
pub fn bytes_written() -> Outcome<u64> {
    number(&fs::read_to_string("/proc/self/io")?, "wchar:")
}

/// Returns the seconds that this thread has run on a processor.
pub fn thread_seconds() -> Outcome<f64> {
    let text = fs::read_to_string("/proc/thread-self/schedstat")?;
    Ok(number(&text, "")? as f64 / 1e9)
}

fn number(text: &str, name: &str) -> Outcome<u64> {
    let line = text.lines().find_map(|line| line.strip_prefix(name));
    let word = line.and_then(|line| line.split_whitespace().next());
    Ok(word.ok_or_else(|| format!("the system does not say {name}"))?.parse()?)
}
