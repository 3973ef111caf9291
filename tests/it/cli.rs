//! The binary from outside: wiring, output and exit codes. What the library does is tested in the library.
#![cfg(feature = "cli")]

mod append;
mod bad_input;
mod care;
mod compact;
mod diff;
mod generated;
mod grep;
mod interrupted;
mod json;
mod labels;
mod listing;
mod looking;
mod looking_back;
mod messages;
mod permissions;
mod process;
mod read;
mod rm;
mod salvage;
mod sessions;
mod terminal;
mod transfer;

use std::ffi::OsStr;
use std::fs;
use std::io::Write;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};

/// A folder for one test, with a store's path in it.
struct Bench {
    folder: tempfile::TempDir,
}

/// How a run ended.
#[derive(Debug)]
struct Done {
    code: Option<i32>,
    out: String,
    err: String,
}

impl Bench {
    /// Nothing is at the store's path yet.
    fn new() -> Self {
        Self { folder: tempfile::tempdir().unwrap() }
    }

    /// A store with a session `s` of `count` events: custom ones of the type `n`, with a field `at` = seq.
    fn with_events(count: u64) -> Self {
        let bench = Self::new();
        bench.run(["create", "s"]).fine();
        let lines: String = (0..count).map(numbered).collect();
        bench.feed(["append", "s", "--batch", "1000"], lines).fine();
        bench
    }

    fn root(&self) -> &Path {
        self.folder.path()
    }

    fn store(&self) -> PathBuf {
        self.root().join("store")
    }

    /// The binary on this store; no variable of the caller's reaches it.
    fn command<S: AsRef<OsStr>>(&self, args: impl IntoIterator<Item = S>) -> Command {
        let mut command = bare(args);
        command.env("SESSIONLOG_STORE", self.store());
        command
    }

    fn run<S: AsRef<OsStr>>(&self, args: impl IntoIterator<Item = S>) -> Done {
        self.feed(args, "")
    }

    fn feed<S: AsRef<OsStr>>(&self, args: impl IntoIterator<Item = S>, input: impl Into<Vec<u8>>) -> Done {
        finish(&mut self.command(args), input)
    }

    /// Starts a run whose three streams are pipes.
    fn start<S: AsRef<OsStr>>(&self, args: impl IntoIterator<Item = S>) -> Child {
        piped(&mut self.command(args)).spawn().unwrap()
    }
}

impl Done {
    /// Asserts exit code 0 and silence on standard error; returns standard output.
    #[track_caller]
    fn fine(self) -> String {
        assert_eq!((self.code, self.err.as_str()), (Some(0), ""), "{self:?}");
        self.out
    }

    /// Asserts the exit code and that each of `parts` stands in what was said.
    #[track_caller]
    fn fails(self, code: i32, parts: &[&str]) -> Self {
        assert_eq!(self.code, Some(code), "{self:?}");
        assert!(self.err.starts_with("error: "), "{self:?}");
        for part in parts {
            assert!(self.err.contains(part), "`{part}` is missing in {self:?}");
        }
        // H37: what cannot be read now may be sound.
        assert!(!self.err.contains("delet") && !self.err.contains("remov"), "{self:?}");
        self
    }
}

/// The binary, without a store.
fn bare<S: AsRef<OsStr>>(args: impl IntoIterator<Item = S>) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_sessionlog"));
    command.args(args).env("TZ", "UTC");
    for name in ["SESSIONLOG_STORE", "XDG_DATA_HOME", "NO_COLOR", "CLICOLOR", "CLICOLOR_FORCE", "TERM", "CI"]
    {
        command.env_remove(name);
    }
    command
}

fn piped(command: &mut Command) -> &mut Command {
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped())
}

fn finish(command: &mut Command, input: impl Into<Vec<u8>>) -> Done {
    let mut child = piped(command).spawn().unwrap();
    let mut stdin = child.stdin.take().unwrap();
    let input = input.into();
    // Apart: the child may print before it has read all.
    let feeder = std::thread::spawn(move || {
        // A child that refuses a line does not read the rest.
        let _ = stdin.write_all(&input);
    });
    let output = child.wait_with_output().unwrap();
    feeder.join().unwrap();
    done(output)
}

/// Sends Ctrl-C's signal, and returns which one that was. A shell that starts the tests in the background has it ignored, in
/// all that they start, too; then SIGTERM stands in for it.
fn interrupt(child: &Child) -> i32 {
    use rustix::process::{Pid, Signal, kill_process};
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let ignored = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    let ignored = ignored.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).unwrap_or_default();
    let (signal, number) = match ignored >> 1 & 1 {
        0 => (Signal::INT, 2),
        _ => (Signal::TERM, 15),
    };
    // It may be done already.
    let _ = kill_process(Pid::from_child(child), signal);
    number
}

fn done(output: Output) -> Done {
    Done {
        code: output.status.code(),
        out: String::from_utf8(output.stdout).unwrap(),
        err: String::from_utf8(output.stderr).unwrap(),
    }
}

/// An event as it is stored: what is appended is what is read.
fn numbered(seq: u64) -> String {
    format!("{{\"type\":\"n\",\"seq\":{seq},\"at\":{seq},\"timestamp\":{}}}\n", 1_700_000_000_000 + seq)
}

/// The acknowledgements of the events from `start` to before `end`.
fn acks(start: u64, end: u64) -> String {
    (start..end).map(|seq| format!("{{\"seq\":{seq}}}\n")).collect()
}

/// A handed case without its header line, which only an import reads: line N here is line N + 1 of the file.
fn case(name: &str) -> Vec<u8> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/cases").join(name);
    let bytes = fs::read(path).unwrap();
    let header_end = bytes.iter().position(|byte| *byte == b'\n').unwrap();
    bytes[header_end + 1..].to_vec()
}

/// Every file below `path` with its mode, and its content where it is a file.
fn tree(path: &Path) -> Vec<(PathBuf, u32, Option<Vec<u8>>)> {
    let mut found = Vec::new();
    let mut folders = vec![path.to_owned()];
    while let Some(folder) = folders.pop() {
        found.push((folder.clone(), fs::metadata(&folder).unwrap().mode() & 0o7777, None));
        for entry in fs::read_dir(&folder).unwrap() {
            let entry = entry.unwrap();
            if entry.file_type().unwrap().is_dir() {
                folders.push(entry.path());
            } else {
                let mode = entry.metadata().unwrap().mode() & 0o7777;
                found.push((entry.path(), mode, Some(fs::read(entry.path()).unwrap())));
            }
        }
    }
    found.sort();
    found
}

/// Goal: help and version go to standard output with 0; a wrong command line to standard error with 2.
#[test]
fn help_and_usage() {
    let run = |args: &[&str]| finish(&mut bare(args), "");
    let help = run(&["--help"]).fine();
    for word in [
        "demo",
        "create",
        "append",
        "read",
        "fork",
        "ls",
        "show",
        "stats",
        "inspect",
        "resume",
        "replay",
        "Exit codes",
    ] {
        assert!(help.contains(word), "{word}: {help}");
    }
    assert!(run(&["--version"]).fine().starts_with("sessionlog 0."));
    for command in
        ["demo", "create", "append", "read", "fork", "ls", "show", "stats", "inspect", "resume", "replay"]
    {
        assert!(run(&[command, "--help"]).fine().contains("Example"), "{command}");
    }
    assert_eq!(run(&[]).code, Some(2));
    for wrong in
        [&["no-such-command"][..], &["read"], &["read", "s", "--no-such-option"], &["ls", "--store", ""]]
    {
        let done = run(wrong).fails(2, &[]);
        assert_eq!(done.out, "");
    }
}

/// Goal: the store is where `--store` says, else SESSIONLOG_STORE, else the system's data folder.
#[test]
fn where_the_store_is() {
    let bench = Bench::new();
    let root = bench.root();
    let create = |args: &[&OsStr], variables: &[(&str, &Path)]| {
        let mut command = bare(args);
        command.env("HOME", root.join("home")).envs(variables.iter().copied());
        finish(&mut command, "").fine();
    };
    let (option, variable) = (root.join("option"), root.join("variable"));
    let (xdg, plain) = (root.join("xdg"), ["create".as_ref()]);
    create(
        &["create".as_ref(), "--store".as_ref(), option.as_ref()],
        &[("SESSIONLOG_STORE", &variable), ("XDG_DATA_HOME", &xdg)],
    );
    assert!(option.is_dir() && !variable.exists() && !xdg.exists());
    create(&plain, &[("SESSIONLOG_STORE", &variable), ("XDG_DATA_HOME", &xdg)]);
    assert!(variable.is_dir() && !xdg.exists());
    if cfg!(target_os = "linux") {
        create(&plain, &[("XDG_DATA_HOME", &xdg)]);
        assert!(xdg.join("sessionlog").is_dir());
        create(&plain, &[]);
        assert!(root.join("home/.local/share/sessionlog").is_dir());
    }
}
