//! Progress of long work, on standard error, and only where that is a terminal: a log file gets none of it.

use std::borrow::Cow;
use std::io::{self, IsTerminal, Read, Write};
use std::time::Duration;

use indicatif::{ProgressBar, ProgressStyle};

/// How often it is drawn while the work itself says nothing.
const TICK: Duration = Duration::from_millis(120);

/// A bar, or a count, that is gone when this is dropped.
#[derive(Clone, Debug)]
pub(crate) struct Progress(ProgressBar);

impl Progress {
    /// Of so many bytes.
    pub(crate) fn bytes(what: impl Into<Cow<'static, str>>, of: u64) -> Self {
        let bar = "{msg} [{bar:24}] {percent:>3} %  {binary_bytes} of {binary_total_bytes}  {eta} left";
        Self::new(ProgressBar::new(of), bar, what)
    }

    /// Of bytes whose number is not known.
    pub(crate) fn stream(what: impl Into<Cow<'static, str>>) -> Self {
        Self::new(ProgressBar::no_length(), "{spinner} {msg}  {binary_bytes}  {elapsed}", what)
    }

    /// Of so many events.
    pub(crate) fn events(what: impl Into<Cow<'static, str>>, of: u64) -> Self {
        Self::new(
            ProgressBar::new(of),
            "{msg} [{bar:24}] {percent:>3} %  {pos} of {len} events  {eta} left",
            what,
        )
    }

    /// Of work whose end is not known: what is said of it, and how long it has taken.
    pub(crate) fn open_ended(what: impl Into<Cow<'static, str>>) -> Self {
        Self::new(ProgressBar::no_length(), "{spinner} {msg}  {elapsed}", what)
    }

    fn new(bar: ProgressBar, template: &str, what: impl Into<Cow<'static, str>>) -> Self {
        let is_dumb = std::env::var_os("TERM").is_some_and(|term| term == "dumb");
        if !io::stderr().is_terminal() || is_dumb {
            return Self::hidden();
        }
        let style = ProgressStyle::with_template(template).unwrap_or_else(|_| ProgressStyle::default_bar());
        bar.set_style(style.progress_chars("=> "));
        bar.set_message(what);
        bar.enable_steady_tick(TICK);
        Self(bar)
    }

    /// Where none is wanted.
    pub(crate) fn hidden() -> Self {
        Self(ProgressBar::hidden())
    }

    /// So much is done.
    pub(crate) fn at(&self, done: u64) {
        self.0.set_position(done);
    }

    /// So much more is done.
    pub(crate) fn more(&self, done: u64) {
        self.0.inc(done);
    }

    /// The whole is so much.
    pub(crate) fn of(&self, whole: u64) {
        self.0.set_length(whole);
    }

    /// Says what is being done.
    pub(crate) fn say(&self, what: impl Into<Cow<'static, str>>) {
        if !self.0.is_hidden() {
            self.0.set_message(what);
        }
    }

    /// Takes it from the screen, so that something else can be written there.
    pub(crate) fn clear(&self) {
        self.0.finish_and_clear();
    }

    /// Takes it from the screen while `write` writes to standard error.
    pub(crate) fn aside(&self, write: impl FnOnce()) {
        self.0.suspend(write);
    }

    /// Counts the bytes that are read from `input`.
    pub(crate) fn reading<R: Read>(&self, input: R) -> Reading<R> {
        Reading { input, progress: self.clone() }
    }

    /// Counts the lines that are written to `out` as events.
    pub(crate) fn counting<'a, W: Write>(&'a self, out: &'a mut W) -> Counting<'a, W> {
        Counting { out, progress: self }
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        self.0.finish_and_clear();
    }
}

/// Writes through, and counts lines.
pub(crate) struct Counting<'a, W> {
    out: &'a mut W,
    progress: &'a Progress,
}

impl<W: Write> Write for Counting<'_, W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let written = self.out.write(bytes)?;
        if !self.progress.0.is_hidden() {
            let lines = bytes.iter().take(written).filter(|byte| **byte == b'\n').count();
            self.progress.more(lines as u64);
        }
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }
}

/// Reads through, and counts bytes.
pub(crate) struct Reading<R> {
    input: R,
    progress: Progress,
}

impl<R: Read> Read for Reading<R> {
    fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        let read = self.input.read(bytes)?;
        self.progress.more(read as u64);
        Ok(read)
    }
}
