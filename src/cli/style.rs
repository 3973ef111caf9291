//! Colours: on a terminal only, and only where nobody forbids them. `NO_COLOR`, `CLICOLOR`, `CLICOLOR_FORCE` and
//! `TERM=dumb` mean here what they mean for the parser's own help texts: one crate decides on both.
//!
//! Nothing that is data (JSON, ids that scripts read) is ever coloured.

use std::io;

use anstream::{AutoStream, ColorChoice};
use clap::builder::styling::{AnsiColor, Style};

/// Whether texts for one of the two outputs get colours.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Paint(bool);

impl Paint {
    /// For standard output.
    pub(crate) fn stdout() -> Self {
        Self(AutoStream::choice(&io::stdout()) != ColorChoice::Never)
    }

    /// For standard error.
    pub(crate) fn stderr() -> Self {
        Self(AutoStream::choice(&io::stderr()) != ColorChoice::Never)
    }

    /// What stands above or before other text.
    pub(crate) fn heading(self, text: &str) -> String {
        self.with(Style::new().bold(), text)
    }

    /// What is wrong.
    pub(crate) fn bad(self, text: &str) -> String {
        self.with(AnsiColor::Red.on_default().bold(), text)
    }

    /// What is to be noticed.
    pub(crate) fn notice(self, text: &str) -> String {
        self.with(AnsiColor::Yellow.on_default().bold(), text)
    }

    /// What is as it should be.
    pub(crate) fn good(self, text: &str) -> String {
        self.with(AnsiColor::Green.on_default().bold(), text)
    }

    /// What helps.
    pub(crate) fn help(self, text: &str) -> String {
        self.with(AnsiColor::Cyan.on_default().bold(), text)
    }

    fn with(self, style: Style, text: &str) -> String {
        // An empty text would be two escapes around nothing.
        if self.0 && !text.is_empty() { format!("{style}{text}{style:#}") } else { text.to_owned() }
    }
}

#[cfg(test)]
mod tests {
    use super::Paint;

    /// Goal: without colours the text is the text.
    #[test]
    fn plain_is_plain() {
        assert_eq!(Paint(false).bad("x"), "x");
        assert_eq!(Paint(true).bad(""), "");
        let painted = Paint(true).bad("x");
        assert!(painted.starts_with('\u{1b}') && painted.contains('x') && painted.ends_with("\u{1b}[0m"));
    }
}
