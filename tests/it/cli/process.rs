//! The process among others: pipes, signals, the store's lock, file modes.

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::process::ExitStatusExt;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{self, Receiver};
use std::time::{Duration, Instant};

use super::{Bench, acks, done, finish, interrupt, numbered, tree};

/// Longer than anything here takes: a test that waits for ever tells nothing.
const PATIENCE: Duration = Duration::from_secs(60);

/// An `append` that is fed while its acknowledgements are read.
struct Conversation {
    child: Child,
    answers: Receiver<String>,
}

impl Conversation {
    fn start(bench: &Bench, flags: &[&str]) -> Self {
        let mut child = bench.start([&["append", "s"], flags].concat());
        let stdout = BufReader::new(child.stdout.take().unwrap());
        let (sender, answers) = mpsc::channel();
        std::thread::spawn(move || {
            for line in stdout.lines() {
                if sender.send(line.unwrap()).is_err() {
                    return;
                }
            }
        });
        Self { child, answers }
    }

    fn say(&mut self, line: &str) {
        self.child.stdin.as_mut().unwrap().write_all(line.as_bytes()).unwrap();
    }

    #[track_caller]
    fn hear(&self) -> String {
        self.answers.recv_timeout(PATIENCE).unwrap()
    }
}

/// Goal: each event is acknowledged before the next one is written: an agent can wait for its answer.
#[test]
fn a_slow_pipe_is_answered_line_by_line() {
    for flags in [&[][..], &["--buffered"]] {
        let bench = Bench::with_events(0);
        let mut talk = Conversation::start(&bench, flags);
        for seq in 0..5 {
            talk.say(&numbered(seq));
            assert_eq!(talk.hear() + "\n", acks(seq, seq + 1));
        }
        drop(talk.child.stdin.take());
        assert!(talk.child.wait().unwrap().success());
    }
}

/// Goal: H08 and H09: what was acknowledged is there after `kill -9`, in both modes; the next command just works.
#[test]
fn h08_acknowledged_then_killed() {
    for flags in [&[][..], &["--buffered"], &["--batch", "5"]] {
        let bench = Bench::with_events(0);
        let mut talk = Conversation::start(&bench, flags);
        (0..20).for_each(|seq| talk.say(&numbered(seq)));
        (0..20).for_each(|seq| assert_eq!(talk.hear() + "\n", acks(seq, seq + 1)));
        talk.child.kill().unwrap();
        assert_eq!(talk.child.wait().unwrap().signal(), Some(9));

        assert_eq!(bench.run(["read", "s"]).fine(), (0..20).map(numbered).collect::<String>());
        assert_eq!(bench.feed(["append", "s"], numbered(20)).fine(), acks(20, 21));
    }
}

/// Goal: Ctrl-C ends the command as a shell expects (it reports 130), and what was acknowledged is there.
#[test]
fn ctrl_c() {
    let bench = Bench::with_events(0);
    let mut talk = Conversation::start(&bench, &[]);
    talk.say(&numbered(0));
    talk.hear();
    let sent = interrupt(&talk.child);
    assert_eq!(talk.child.wait().unwrap().signal(), Some(sent));
    assert_eq!(bench.run(["read", "s"]).fine(), numbered(0));
}

/// Goal: a reader that has seen enough ends `read` without an error.
#[test]
fn read_into_a_closed_pipe() {
    // More than pipes and buffers hold.
    let bench = Bench::with_events(20_000);
    let mut child = bench.start(["read", "s"]);
    let mut first = String::new();
    let mut stdout = BufReader::new(child.stdout.take().unwrap());
    stdout.read_line(&mut first).unwrap();
    drop(stdout);
    let done = done(child.wait_with_output().unwrap());
    assert_eq!((first, done.fine()), (numbered(0), String::new()));
}

/// Goal: the same for every command, from the first byte on: a closed pipe is exit 0 and no panic.
#[test]
fn every_command_into_a_closed_pipe() {
    let bench = Bench::with_events(3);
    for command in [
        &["read", "s"][..],
        &["messages", "s"],
        &["ls"],
        &["ls", "--json"],
        &["show"],
        &["show", "s"],
        &["stats"],
        &["inspect", "s"],
        &["replay", "s"],
        &["create"],
        &["fork", "s"],
        &["append", "s"],
        &["demo"],
        &["--help"],
    ] {
        let mut child = bench.start(command);
        drop(child.stdout.take());
        // The one that reads is fed until nobody listens.
        let mut stdin = child.stdin.take().unwrap();
        let _ = stdin.write_all(b"{\"type\":\"x\"}\n");
        drop(stdin);
        assert_eq!(done(child.wait_with_output().unwrap()).fine(), "", "{command:?}");
    }
    bench.run(["ls"]).fine();
}

/// Goal: output that cannot be written is an error, not a success without output.
#[cfg(target_os = "linux")]
#[test]
fn a_full_disk_behind_standard_output() {
    let bench = Bench::with_events(3);
    for command in [
        &["read", "s"][..],
        &["messages", "s"],
        &["ls"],
        &["show"],
        &["stats", "s"],
        &["inspect", "s"],
        &["replay", "s"],
        &["create"],
        &["demo"],
    ] {
        let full = fs::OpenOptions::new().write(true).open("/dev/full").unwrap();
        let output = bench.command(command).stdin(Stdio::null()).stdout(full).output().unwrap();
        done(output).fails(1, &["cannot write to standard output"]);
    }
}

/// Goal: a store in use is refused at once, with its path and who holds it; afterwards it opens.
#[test]
fn store_in_use() {
    let bench = Bench::with_events(1);
    let holder = sessionlog::Store::open(bench.store()).unwrap();
    let pid = std::process::id().to_string();
    for command in [&["ls"][..], &["read", "s"], &["append", "s"], &["create"]] {
        let began = Instant::now();
        bench.run(command).fails(3, &["in use", bench.store().to_str().unwrap(), &pid]);
        assert!(began.elapsed() < Duration::from_secs(4), "{:?}", began.elapsed());
    }
    holder.close().unwrap();
    drop(holder);
    assert_eq!(bench.run(["read", "s"]).fine(), numbered(0));
}

/// Goal: H45: whatever the umask allows, nobody else can read what is in a store.
#[test]
fn h45_file_modes() {
    let bench = Bench::new();
    let shell = |args: &[&str], input: &str| {
        let mut command = Command::new("sh");
        command.args(["-c", "umask 022; exec \"$0\" \"$@\"", env!("CARGO_BIN_EXE_sessionlog")]);
        finish(command.args(args).env("SESSIONLOG_STORE", bench.store()), input).fine()
    };
    shell(&["create", "s"], "");
    let mut lines = String::new();
    (0..2_000).for_each(|seq| lines.push_str(&numbered(seq)));
    shell(&["append", "s", "--batch", "100"], &lines);
    shell(&["fork", "s"], "");
    for (path, mode, content) in tree(&bench.store()) {
        let expected = if content.is_none() { 0o700 } else { 0o600 };
        assert_eq!(mode, expected, "{}: {mode:o}", path.display());
    }
}

/// Goal: a line over the limit is refused while it comes in: the process neither waits for its end nor holds it.
#[test]
fn a_line_without_end() {
    let bench = Bench::with_events(0);
    let mut child = bench.start(["append", "s"]);
    let mut stdin = child.stdin.take().unwrap();
    let feeder = std::thread::spawn(move || {
        let block = vec![b'x'; 1 << 20];
        let mut written = 0_u64;
        while stdin.write_all(&block).is_ok() {
            written += 1;
        }
        written
    });
    let mut said = String::new();
    child.stderr.take().unwrap().read_to_string(&mut said).unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(1));
    assert!(said.starts_with("error: line 1: more than 16777216 bytes"), "{said}");
    assert!(feeder.join().unwrap() < 32, "it read on");
}
