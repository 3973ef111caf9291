//! `import`: files to sessions.

use std::io::{self, BufRead, Write};
use std::path::{Path, PathBuf};

use sessionlog::transfer::{self, ImportOptions, ImportReport, Watched};
use sessionlog::{Error, SessionId, Store};

use super::exit::Failure;
use super::output::{self, printable};
use super::place::Place;
use super::progress::Progress;

/// Reads sessions from JSON Lines, as `export` writes them, and prints their ids
///
/// A file becomes a session as a whole or not at all; every fault of a file is listed with its line and column. Nothing
/// that is here is overwritten. Creates the store where the folder is missing or empty.
///
/// Several files are taken parents first, and of a folder those that end in .jsonl. Where the parent of a fork is here,
/// with the same events, they are shared.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  sessionlog import session.jsonl
  sessionlog import backup/
  sessionlog import --as copy session.jsonl
  sessionlog import --salvage torn.jsonl   # what cannot be kept goes to torn.jsonl.rest
  ssh there sessionlog export ID | sessionlog import -")]
pub(crate) struct Args {
    /// Files, folders of files, or - for standard input
    #[arg(required = true, value_name = "FILE")]
    files: Vec<PathBuf>,

    /// Give the session another id
    #[arg(long = "as", value_name = "NEW")]
    id: Option<SessionId>,

    /// Where a session is here already, append what a longer file adds to it
    #[arg(long, conflicts_with = "salvage")]
    update: bool,

    /// Keep what can be read, up to the first seq that is missing, and write the rest to FILE.rest
    #[arg(long)]
    salvage: bool,

    /// Read and check, and store nothing
    #[arg(long)]
    dry_run: bool,
}

impl Args {
    fn check(&self) -> Result<(), Failure> {
        let stdin = self.files.iter().any(|file| is_stdin(file));
        if stdin && self.files.len() > 1 {
            return Err(Failure::usage("standard input is imported alone"));
        }
        if stdin && (self.update || self.salvage) {
            return Err(Failure::usage(
                "--update and --salvage need a file: standard input cannot be read again",
            ));
        }
        if self.id.is_some() && (self.files.len() > 1 || self.files.iter().any(|file| file.is_dir())) {
            return Err(Failure::usage("--as names one session: give one file"));
        }
        Ok(())
    }

    fn options(&self) -> ImportOptions {
        let mut options = ImportOptions::new();
        if let Some(id) = &self.id {
            options = options.id(id.clone());
        }
        if self.update {
            options = options.update();
        }
        if self.salvage {
            options = options.salvage();
        }
        if self.dry_run {
            options = options.dry_run();
        }
        options
    }
}

pub(crate) fn run(
    place: &Place,
    args: &Args,
    input: impl BufRead,
    out: &mut impl Write,
) -> Result<(), Failure> {
    args.check()?;
    let store = if args.dry_run { place.open()? } else { place.open_or_create()? };
    let progress = match args.files.iter().any(|file| is_stdin(file)) {
        true => Progress::stream("importing"),
        false => Progress::bytes("importing", 0),
    };
    let mut told = Told { out, args, progress, files: 0, refused: 0, failure: None };
    if args.files.iter().any(|file| is_stdin(file)) {
        let result = transfer::import(&store, told.progress.reading(input), &args.options());
        told.file(Path::new("standard input"), &result);
    } else {
        let watched =
            transfer::import_files(&store, &args.files, &args.options(), &mut |watched| match watched {
                Watched::Read { path, bytes, of } => told.progress(path, bytes, of),
                Watched::Done { path, result } => told.file(path, result),
                _ => {}
            });
        if told.refused == 0 {
            watched?;
        }
    }
    told.finish(&store)
}

fn is_stdin(path: &Path) -> bool {
    path.as_os_str() == "-"
}

/// What is said while files are imported.
struct Told<'a, W> {
    out: &'a mut W,
    args: &'a Args,
    progress: Progress,
    files: u64,
    refused: u64,
    /// The first one of standard output, or a file that would be overwritten.
    failure: Option<Failure>,
}

impl<W: Write> Told<'_, W> {
    fn progress(&self, path: &Path, bytes: u64, of: u64) {
        self.progress.say(printable(&path.display().to_string()));
        self.progress.of(of);
        self.progress.at(bytes);
    }

    fn file(&mut self, path: &Path, result: &sessionlog::Result<ImportReport>) {
        self.files += 1;
        let path = path.display();
        match result {
            Ok(report) => {
                let mut text = String::new();
                for fault in &report.faults {
                    text.push_str(&format!("{path}: {fault}\n"));
                }
                text.push_str(&more(report.faults.len(), report.total_faults));
                text.push_str(&format!("{path}: {}\n", self.summary(report)));
                self.tell(&text);
                if report.total_faults > 0 {
                    self.refused += 1;
                }
                let printed =
                    output::line(self.out, report.session.as_str()).and_then(|()| output::flush(self.out));
                self.failure = self.failure.take().or(printed.err());
            }
            Err(error) => {
                self.refused += 1;
                let text = self.refusal(&path.to_string(), error);
                self.tell(&text);
            }
        }
    }

    /// What is told of a file that was not taken. Where a failure says it all, that is kept instead.
    fn refusal(&mut self, path: &str, error: &Error) -> String {
        match error {
            Error::Import { faults, total } => {
                let mut text = String::new();
                for fault in faults {
                    text.push_str(&format!("{path}: {fault}\n"));
                }
                text.push_str(&more(faults.len(), *total));
                text.push_str(&format!("{path}: nothing was stored\n"));
                return text;
            }
            Error::Io { path, source, .. } if source.kind() == io::ErrorKind::AlreadyExists => {
                let there = Failure::usage(format!("{} is there already", path.display()));
                self.failure = self.failure.take().or(Some(there.hint("name a place where nothing is")));
            }
            error if self.args.files.len() == 1 && self.failure.is_none() => {
                self.failure = Some(Failure::of(error).at(path));
            }
            error => return format!("{path}: {}\n", super::exit::with_causes(error)),
        }
        String::new()
    }

    /// Says something on standard error, with the bar out of the way.
    fn tell(&self, text: &str) {
        self.progress.aside(|| {
            let _ = io::stderr().write_all(printable_lines(text).as_bytes());
        });
    }

    fn summary(&self, report: &ImportReport) -> String {
        let done = if self.args.dry_run { "would be" } else { "was" };
        let mut text = match (report.existed, report.appended) {
            (true, 0) => format!("session {} is as the file", report.session),
            (true, events) => format!("session {} {done} continued by {events} events", report.session),
            (false, events) => format!("session {} {done} made, with {events} events", report.session),
        };
        if report.shared > 0 {
            text.push_str(&format!(" and {} shared ones", report.shared));
        }
        if report.rest_lines > 0 {
            text.push_str(&format!("; {} lines were put aside", report.rest_lines));
        }
        if report.other_session_ids > 0 {
            text.push_str(&format!("; {} events name another sessionId", report.other_session_ids));
        }
        text
    }

    fn finish(self, store: &Store) -> Result<(), Failure> {
        self.progress.clear();
        let closed = store.close();
        match (self.failure, self.refused) {
            (Some(failure), _) => Err(failure),
            (None, 0) => Ok(closed?),
            (None, 1) if self.files == 1 && !self.args.salvage => {
                Err(Failure::refused("the file was refused")
                    .hint("--salvage keeps what can be read; nothing of a file is stored without it"))
            }
            (None, refused) if self.args.salvage => {
                Err(Failure::refused(format!("{refused} of {} files were not whole", self.files)))
            }
            (None, refused) => {
                Err(Failure::refused(format!("{refused} of {} files were refused", self.files)))
            }
        }
    }
}

fn more(listed: usize, total: u64) -> String {
    match total.saturating_sub(listed as u64) {
        0 => String::new(),
        more => format!("and {more} more faults\n"),
    }
}

/// Texts of others in it say nothing to the terminal.
fn printable_lines(text: &str) -> String {
    text.lines().map(|line| printable(line) + "\n").collect()
}
