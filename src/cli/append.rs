//! `append`: lines in, acknowledgements out.

use std::io::{BufRead, Write};
use std::ops::Range;

use sessionlog::{Append, Error, NewEvent, Seq, Session, SessionId};

use super::exit::Failure;
use super::lines::{LineFault, Lines};
use super::output;
use super::place::Place;

/// The most lines of one batch: the library's greatest batch.
const MAX_BATCH: i64 = 65_536;
/// Bytes of pending lines at which a batch is handed over although it is not full: the library refuses it when it is
/// too large, and this process does not hold more than that.
const MAX_PENDING_BYTES: usize = 64 << 20;
const _: () = assert!(MAX_BATCH == sessionlog::MAX_BATCH_EVENTS as i64);
const _: () = assert!(MAX_PENDING_BYTES as u64 == sessionlog::MAX_BATCH_BYTES);

/// Appends events read from standard input, one JSON object a line
///
/// Prints {"seq":N} for each event once it is durable: it then survives a power cut. A line that is refused ends the
/// command with its number and column; the events before it stay.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  echo '{\"type\":\"user/message\",\"content\":\"hello\"}' | sessionlog append ID
  agent | sessionlog append ID --buffered
  sessionlog append ID --batch 1000 < events.jsonl

`seq` may be given: the line is refused unless the event is given that number. `timestamp` may be given too, in
milliseconds since 1970.")]
pub(crate) struct Args {
    /// The session's full id
    id: SessionId,

    /// Acknowledge an event once it survives a power cut (the default)
    #[arg(long)]
    sync: bool,

    /// Acknowledge an event once it survives the end of this process; a power cut may take the last 200 ms
    #[arg(long, conflicts_with = "sync")]
    buffered: bool,

    /// Append N lines at a time, all or nothing: fewer and larger writes
    #[arg(long, value_name = "N", default_value_t = 1, hide_default_value = true,
          value_parser = clap::value_parser!(u32).range(1..=MAX_BATCH))]
    batch: u32,
}

pub(crate) fn run(
    place: &Place,
    args: &Args,
    input: impl BufRead,
    out: &mut impl Write,
) -> Result<(), Failure> {
    let store = place.open()?;
    let session = store.session(&args.id)?;
    let how = if args.buffered { Append::new().buffered() } else { Append::new().sync() };
    let batch = usize::try_from(args.batch).unwrap_or(usize::MAX);
    let mut appender =
        Appender { session, how, batch, pending: Vec::new(), pending_bytes: 0, stored: 0, out };
    appender.take_all(Lines::new(input))?;
    // A failed sync or drain in the background is told by the next call: this is the last one.
    Ok(store.close()?)
}

struct Appender<'a, W> {
    session: Session,
    how: Append,
    batch: usize,
    /// Lines read and not yet appended.
    pending: Vec<Line>,
    pending_bytes: usize,
    stored: u64,
    out: &'a mut W,
}

struct Line {
    number: u64,
    event: NewEvent,
}

impl<W: Write> Appender<'_, W> {
    fn take_all<R: BufRead>(&mut self, mut lines: Lines<R>) -> Result<(), Failure> {
        loop {
            let (number, line) = match lines.next() {
                Ok(Some(line)) => line,
                Ok(None) => return self.append(),
                Err(fault) => return self.refuse(fault.into()),
            };
            match NewEvent::from_json(line) {
                Ok(event) => self.pending.push(Line { number, event }),
                Err(fault) => return self.refuse(Failure::refused(format!("line {number}: {fault}"))),
            }
            self.pending_bytes += line.len();
            if self.pending.len() >= self.batch || self.pending_bytes > MAX_PENDING_BYTES {
                self.append()?;
            }
        }
    }

    /// Appends what came before a bad line, then gives the reason.
    fn refuse(&mut self, reason: Failure) -> Result<(), Failure> {
        self.append()?;
        Err(match self.stored {
            0 => reason,
            1 => reason.hint("the event before it was appended and stays: go on with this line"),
            n => {
                reason.hint(format!("the {n} events before it were appended and stay: go on with this line"))
            }
        })
    }

    /// Appends the pending lines as one batch.
    fn append(&mut self) -> Result<(), Failure> {
        if self.pending.is_empty() {
            return Ok(());
        }
        let events = self.pending.iter().map(|line| line.event.clone());
        match self.session.append_with(self.how, events) {
            Ok(seqs) => {
                self.pending.clear();
                self.pending_bytes = 0;
                self.acknowledge(seqs)
            }
            Err(error) => match self.bad_line(&error) {
                Some((index, reason)) => {
                    // A bad line as much as one that does not parse: what came before it in this batch stays. It ends,
                    // since what is left is shorter.
                    self.pending.truncate(index);
                    self.refuse(reason)
                }
                None => Err(Failure::from(error).at(&self.pending_lines())),
            },
        }
    }

    fn acknowledge(&mut self, seqs: Range<Seq>) -> Result<(), Failure> {
        let mut text = String::new();
        for seq in seqs.start.get()..seqs.end.get() {
            text.push_str(&format!("{{\"seq\":{seq}}}\n"));
            self.stored += 1;
        }
        // At once: who waits for it is blocked until then.
        output::write(self.out, text.as_bytes())?;
        output::flush(self.out)
    }

    /// Which pending line the library refused, and why; `None` when the cause is not in one line.
    fn bad_line(&self, error: &Error) -> Option<(usize, Failure)> {
        let index = match error {
            Error::InvalidEvent { index, .. } | Error::EventTooLarge { index, .. } => *index,
            // Nothing of the batch was stored, so the session still ends where the batch would have begun.
            Error::SeqConflict { actual, .. } => {
                usize::try_from(actual.get().saturating_sub(self.session.len())).ok()?
            }
            _ => return None,
        };
        let number = self.pending.get(index)?.number;
        let reason = match error {
            Error::InvalidEvent { source, .. } => format!("line {number}: {source}"),
            Error::EventTooLarge { bytes, max_bytes, .. } => {
                format!("line {number}: an event of {bytes} bytes; at most {max_bytes} are allowed")
            }
            Error::SeqConflict { expected, actual, .. } => {
                format!("line {number}: field `seq`: {expected} given, {actual} is next")
            }
            other => format!("line {number}: {other}"),
        };
        Some((index, Failure::refused(reason)))
    }

    fn pending_lines(&self) -> String {
        match (self.pending.first(), self.pending.last()) {
            (Some(first), Some(last)) if first.number < last.number => {
                format!("lines {} to {}", first.number, last.number)
            }
            (Some(only), _) => format!("line {}", only.number),
            _ => "standard input".into(),
        }
    }
}

impl From<LineFault> for Failure {
    fn from(fault: LineFault) -> Self {
        match fault {
            LineFault::TooLong { number, max_bytes } => {
                Self::refused(format!("line {number}: more than {max_bytes} bytes, which no event may have"))
            }
            LineFault::Io(error) => Self::io("cannot read standard input", &error),
        }
    }
}
