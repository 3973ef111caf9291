//! On a terminal: colours and progress, and where there are none. The terminal is a real one, a pty.

use std::fs::File;
use std::io::{ErrorKind, Read, Write};
use std::os::fd::OwnedFd;
use std::process::{Command, Stdio};

use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};

use super::{Bench, numbered};

const ESCAPE: char = '\u{1b}';

/// A pty: what a program sees, and what stands behind it.
fn pty() -> (OwnedFd, File) {
    let behind = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).unwrap();
    grantpt(&behind).unwrap();
    unlockpt(&behind).unwrap();
    let name = ptsname(&behind, Vec::new()).unwrap();
    let seen = File::options().read(true).write(true).open(name.to_str().unwrap()).unwrap();
    rustix::termios::tcsetwinsize(
        &behind,
        rustix::termios::Winsize { ws_row: 24, ws_col: 120, ws_xpixel: 0, ws_ypixel: 0 },
    )
    .unwrap();
    (behind, seen)
}

/// Which outputs are a terminal; the other one is a pipe that nobody looks at.
#[derive(Clone, Copy, PartialEq)]
enum On {
    Both,
    Errors,
}

/// Runs to the end and returns what came on the terminal.
fn on_terminal(command: &mut Command, on: On, input: &[u8]) -> String {
    let (behind, seen) = pty();
    command.stdin(Stdio::piped()).stderr(seen.try_clone().unwrap());
    match on {
        On::Both => command.stdout(seen),
        On::Errors => {
            drop(seen);
            command.stdout(Stdio::null())
        }
    };
    let mut child = command.spawn().unwrap();
    // The command holds the terminal open, too: what is read from it ends with the last holder.
    command.stdout(Stdio::null()).stderr(Stdio::null());
    let mut stdin = child.stdin.take().unwrap();
    let input = input.to_vec();
    let feeder = std::thread::spawn(move || {
        let _ = stdin.write_all(&input);
    });
    let (mut text, mut terminal) = (Vec::new(), File::from(behind));
    let mut bytes = [0; 4096];
    loop {
        match terminal.read(&mut bytes) {
            Ok(0) => break,
            Ok(read) => text.extend_from_slice(&bytes[..read]),
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            // Nobody has it open any more: Linux says EIO then.
            Err(_) => break,
        }
    }
    child.wait().unwrap();
    feeder.join().unwrap();
    String::from_utf8(text).unwrap()
}

fn with_term<'a>(command: &'a mut Command, variables: &[(&str, &str)]) -> &'a mut Command {
    command.env("TERM", "xterm-256color").envs(variables.iter().copied())
}

/// Goal: colours on a terminal; none in a pipe, and none where one of the agreed variables says so.
#[test]
fn colours_on_a_terminal_only() {
    let bench = Bench::with_events(2);
    for args in [&["show"][..], &["show", "s"], &["ls"], &["scan"], &["read", "nobody"]] {
        let run = |variables: &[(&str, &str)]| {
            on_terminal(with_term(&mut bench.command(args), variables), On::Both, b"")
        };
        assert!(run(&[]).contains("\u{1b}[1m") || run(&[]).contains("\u{1b}[31m"), "{args:?}: {}", run(&[]));
        for off in [&[("NO_COLOR", "1")][..], &[("CLICOLOR", "0")], &[("TERM", "dumb")]] {
            let text = run(off);
            let text = text.replace("\u{1b}[2K", "").replace("\u{1b}[1A", "");
            assert!(!text.contains("\u{1b}[1") && !text.contains("\u{1b}[3"), "{args:?} {off:?}: {text:?}");
        }
        let mut piped = bench.command(args);
        let done = super::finish(with_term(&mut piped, &[]), "");
        assert!(!done.out.contains(ESCAPE) && !done.err.contains(ESCAPE), "{args:?}: {done:?}");
        let mut forced = bench.command(args);
        let done = super::finish(with_term(&mut forced, &[("CLICOLOR_FORCE", "1")]), "");
        assert!(done.out.contains(ESCAPE) || done.err.contains(ESCAPE), "{args:?}: {done:?}");
    }
}

/// Goal: data is data on a terminal, too: JSON and ids have no colours.
#[test]
fn data_has_no_colours() {
    let bench = Bench::with_events(2);
    for args in [&["read", "s"][..], &["ls", "--json"], &["show", "--json"], &["messages", "s"], &["create"]]
    {
        let text = on_terminal(with_term(&mut bench.command(args), &[]), On::Both, b"");
        assert!(!text.contains(ESCAPE) && !text.is_empty(), "{args:?}: {text:?}");
    }
}

/// Goal: long work shows how far it is, on a terminal only, and leaves nothing of that on the screen.
#[test]
fn progress_on_a_terminal_only() {
    let bench = Bench::with_events(2_000);
    let file = bench.root().join("s.jsonl");
    let file = file.to_str().unwrap();
    let (copy, all, new) = (bench.root().join("copy"), bench.root().join("all"), bench.root().join("new"));
    let store = bench.store();
    let path = |path: &std::path::Path| path.to_str().unwrap().to_owned();
    let (copy, all, new, store) = (path(&copy), path(&all), path(&new), path(&store));
    for (args, word) in [
        (vec!["export", "s", "--output", file], "exporting"),
        (vec!["export", "--all", &all], "exporting"),
        (vec!["import", "--as", "again", file], "s.jsonl"),
        (vec!["scan"], "scanning"),
        (vec!["backup", &copy], "copying"),
        (vec!["salvage", &store, &new], "salvaging"),
    ] {
        let text = on_terminal(with_term(&mut bench.command(&args), &[]), On::Errors, b"");
        assert!(text.contains(word) && text.contains(ESCAPE), "{args:?}: {text:?}");
        let shown = text.rsplit("\u{1b}[2K").next().unwrap_or_default();
        assert!(!shown.contains("] ") && !shown.contains(" left"), "{args:?}: something stays: {text:?}");
    }
    // A line for a log file is what stays without a terminal, and nothing moves.
    let done = bench.run(["import", "--as", "third", file]);
    assert!(!done.err.contains(ESCAPE) && !done.err.contains('\r'), "{done:?}");
    assert_eq!(bench.run(["scan"]).code, Some(0));
}

/// Goal: what is imported from a pipe counts its bytes, and its result is told behind that.
#[test]
fn progress_of_a_pipe() {
    let bench = Bench::with_events(3);
    let input = bench.run(["export", "s"]).fine();
    let text = on_terminal(
        with_term(&mut bench.command(["import", "--as", "t", "-"]), &[]),
        On::Errors,
        input.as_bytes(),
    );
    assert!(text.contains("importing") && text.contains("3 events"), "{text:?}");
    assert_eq!(bench.run(["read", "t"]).fine(), (0..3).map(numbered).collect::<String>());
}

/// Goal: times are those of this system's zone; without one they are UTC.
#[test]
fn times_are_local() {
    let bench = Bench::with_events(1);
    let mut command = bench.command(["show", "s"]);
    // POSIX spells it the other way round: five and a half hours before Greenwich.
    let done = super::finish(command.env("TZ", "XXX-05:30"), "").fine();
    assert!(done.contains("2023-11-15T03:43:20.000+05:30"), "{done}");
    assert!(bench.run(["show", "s"]).fine().contains("2023-11-14T22:13:20.000Z"));
}
