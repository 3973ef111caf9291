//! The README runs as it is written: each command of its console blocks, one after the other, in one folder.
//!
//! What differs from run to run (times, ids, hashes, sizes on disk, paths) counts as equal; a line `…` stands for lines
//! that are left out.
#![cfg(feature = "cli")]

use std::path::Path;
use std::process::Command;

const README: &str = include_str!("../../README.md");

/// A command and what is printed behind it.
#[derive(Debug)]
struct Step<'a> {
    command: &'a str,
    printed: Vec<&'a str>,
}

/// The commands of all blocks that begin with this line.
fn steps(fence: &str) -> Vec<Step<'_>> {
    let mut steps: Vec<Step<'_>> = Vec::new();
    let mut lines = README.lines();
    while let Some(line) = lines.next() {
        if line != fence {
            continue;
        }
        for line in lines.by_ref().take_while(|line| *line != "```") {
            match (line.strip_prefix("$ "), steps.last_mut()) {
                (Some(command), _) => steps.push(Step { command, printed: Vec::new() }),
                (None, Some(step)) => step.printed.push(line),
                (None, None) => panic!("a block begins without a command: {line}"),
            }
        }
    }
    steps
}

/// Runs a command as a shell does in which the README's `alias` and `export` were given.
fn run(command: &str, folder: &Path) -> Vec<String> {
    let program = Path::new(env!("CARGO_BIN_EXE_sessionlog"));
    let folders = [program.parent().unwrap().to_str().unwrap(), &std::env::var("PATH").unwrap()].join(":");
    let mut shell = Command::new("sh");
    shell.args(["-c", &format!("exec 2>&1; {command}")]).current_dir(folder);
    shell.env("PATH", folders).env("SESSIONLOG_STORE", "tour").env("TZ", "UTC");
    for name in ["NO_COLOR", "CLICOLOR", "CLICOLOR_FORCE"] {
        shell.env_remove(name);
    }
    let output = shell.output().unwrap();
    String::from_utf8(output.stdout).unwrap().lines().map(str::to_owned).collect()
}

/// A line with what differs from run to run taken out of it.
fn normal(line: &str, folder: &Path) -> String {
    let line = line.replace(folder.to_str().unwrap(), "/home/you/sessionlog");
    let between = |c: char| c.is_whitespace() || "\",{}()".contains(c);
    let words: Vec<&str> = line.split(between).filter(|word| !word.is_empty()).collect();
    let mut text = Vec::new();
    let mut at = 0;
    while at < words.len() {
        let is_number = words[at].parse::<f64>().is_ok();
        let behind = |n: usize| words.get(at + n).copied().unwrap_or_default();
        let (word, taken) = match (behind(1), behind(2)) {
            ("s" | "min" | "h" | "d", "ago") if is_number => ("AGO", 3),
            ("B" | "KiB" | "MiB" | "GiB", _) if is_number => ("SIZE", 2),
            _ => (one_word(words[at]), 1),
        };
        text.push(word);
        at += taken;
    }
    text.join(" ")
}

fn one_word(word: &str) -> &str {
    let digits = word.bytes().filter(u8::is_ascii_digit).count();
    let is_hex = word.bytes().all(|byte| byte.is_ascii_hexdigit());
    match word {
        word if word.starts_with(':') && digits == 13 => "TIMESTAMP",
        word if is_hex && word.len() >= 32 => "HASH",
        word if word.contains('T') && word.ends_with('Z') && digits >= 14 => "TIME",
        word if word.matches('-').count() == 4 && word.len() == 36 => "UUID",
        word => word,
    }
}

fn is_same(expected: &[&str], found: &[String], folder: &Path) -> bool {
    match (expected.split_first(), found.split_first()) {
        (None, None) => true,
        (Some((&"…", rest)), None) => is_same(rest, found, folder),
        (Some((&"…", rest)), Some((_, left))) => {
            is_same(rest, found, folder) || is_same(expected, left, folder)
        }
        (Some((expected, rest)), Some((line, left))) => {
            normal(expected, folder) == normal(line, folder) && is_same(rest, left, folder)
        }
        _ => false,
    }
}

/// Goal: somebody who types what the README says sees what it shows.
#[test]
fn the_tour_runs_as_it_is_written() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::create_dir(folder.path().join("examples")).unwrap();
    let events = Path::new(env!("CARGO_MANIFEST_DIR")).join("examples/tour.jsonl");
    std::fs::copy(events, folder.path().join("examples/tour.jsonl")).unwrap();
    let steps = steps("```console");
    assert!(steps.len() > 20, "{}", steps.len());
    for step in steps {
        let found = run(step.command, folder.path());
        assert!(
            is_same(&step.printed, &found, folder.path()),
            "$ {}\nthe README shows:\n{}\nit prints:\n{}",
            step.command,
            step.printed.join("\n"),
            found.join("\n")
        );
    }
}

/// Goal: every command has a place in the README.
#[test]
fn every_command_is_named() {
    let help = run("sessionlog --help", Path::new("."));
    let commands =
        help.iter().skip_while(|line| *line != "Commands:").skip(1).take_while(|line| !line.is_empty());
    let names: Vec<&str> = commands.filter_map(|line| line.split_whitespace().next()).collect();
    assert!(names.len() > 20, "{help:?}");
    for name in names {
        let is_named =
            README.contains(&format!("`{name}`")) || README.contains(&format!("sessionlog {name}"));
        assert!(is_named || name == "help", "`{name}` is not in the README");
    }
}
