//! The table that comes out.

use std::fmt::{self, Write as _};

use sessionlog_peers::measure::Ratio;

/// One measurement and the bar it has to reach.
#[derive(Debug)]
pub struct Line {
    pub work: String,
    pub bar: String,
    pub measured: String,
    /// Whether the bar is reached; `None` when there is no bar.
    pub ok: Option<bool>,
}

impl Line {
    /// A measurement with a bar.
    pub fn new(work: impl Into<String>, bar: impl Into<String>, ok: bool, measured: String) -> Self {
        Self { work: work.into(), bar: bar.into(), measured, ok: Some(ok) }
    }

    /// A measurement for information.
    pub fn note(work: impl Into<String>, measured: String) -> Self {
        Self { work: work.into(), bar: "none".into(), measured, ok: None }
    }

    /// A row that could not be measured.
    pub fn failed(work: impl Into<String>, error: &str) -> Self {
        Self::new(work, "", false, format!("failed: {error}"))
    }

    fn verdict(&self) -> &'static str {
        match self.ok {
            Some(true) => "yes",
            Some(false) => "**no**",
            None => "",
        }
    }
}

impl fmt::Display for Line {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { work, bar, measured, .. } = self;
        write!(f, "| {work} | {bar} | {measured} | {} |", self.verdict())
    }
}

/// The whole table.
pub fn markdown(heading: &str, lines: &[Line]) -> String {
    let mut text = format!("{heading}\n\n| work | bar | measured | reached |\n| --- | --- | --- | --- |\n");
    for line in lines {
        writeln!(text, "{line}").expect("memory takes all");
    }
    text
}

/// `1.02 (0.98 to 1.10)`.
pub fn ratio(ratio: Ratio) -> String {
    format!("{:.2} ({:.2} to {:.2})", ratio.median, ratio.least, ratio.most)
}

/// A count with thousands kept apart.
pub fn count(number: f64) -> String {
    let digits = format!("{number:.0}");
    let mut text = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// `12.3 MiB`.
pub fn mib(bytes: f64) -> String {
    format!("{:.1} MiB", bytes / f64::from(1 << 20))
}
