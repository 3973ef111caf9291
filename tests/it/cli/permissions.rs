//! Goal (h37): who may not read or write is told so, with path and reason, and never to delete anything; and what is there
//! stays as it is. Root may do everything, so the tests take another user's place when they are run by root.

use std::fs::{self, Permissions};
use std::os::unix::fs::{MetadataExt, PermissionsExt, chown};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};

use super::{Bench, Done, finish, numbered};

/// Whom nobody is.
const NOBODY: u32 = 65_534;

/// A store of an ordinary user, who runs the commands.
struct Owned {
    bench: Bench,
    events: u64,
}

impl Owned {
    fn with_events(events: u64) -> Self {
        let owned = Self { bench: Bench::with_events(events), events };
        owned.give(owned.bench.root());
        owned
    }

    fn give(&self, path: &Path) {
        if by_root() {
            chown(path, Some(NOBODY), Some(NOBODY)).unwrap();
        }
        if path.is_dir() {
            fs::read_dir(path).unwrap().for_each(|entry| self.give(&entry.unwrap().path()));
        }
    }

    fn path(&self, name: &str) -> PathBuf {
        if name.is_empty() { self.bench.store() } else { self.bench.store().join(name) }
    }

    fn run(&self, args: &[&str]) -> Done {
        let mut command = self.bench.command(args);
        if by_root() {
            command.uid(NOBODY).gid(NOBODY);
        }
        finish(&mut command, "{\"type\":\"more\"}\n")
    }

    /// All is there and nothing else.
    fn is_whole(&self) {
        let all: String = (0..self.events).map(numbered).collect();
        assert_eq!(self.run(&["read", "s"]).fine(), all);
        let scanned = self.run(&["scan"]).fine();
        assert!(scanned.contains("no problems found"), "{scanned}");
    }
}

fn by_root() -> bool {
    rustix::process::geteuid().is_root()
}

/// Everything below `path`, and what mode it has.
fn modes(path: &Path) -> Vec<(PathBuf, u32)> {
    let mut all = vec![(path.to_owned(), fs::metadata(path).unwrap().mode() & 0o777)];
    if path.is_dir() {
        fs::read_dir(path).unwrap().for_each(|entry| all.extend(modes(&entry.unwrap().path())));
    }
    all
}

/// The innermost first: to take a folder's rights away bars the way to what is in it.
fn set(modes: impl DoubleEndedIterator<Item = (PathBuf, u32)>) {
    modes.for_each(|(path, mode)| fs::set_permissions(path, Permissions::from_mode(mode)).unwrap());
}

const COMMANDS: [&[&str]; 9] = [
    &["ls"],
    &["read", "s"],
    &["show", "s"],
    &["append", "s"],
    &["create", "t"],
    &["scan"],
    &["repair"],
    &["rm", "s"],
    &["stats", "s"],
];

/// Of each file and folder of the store in turn a right is missing.
#[test]
fn h37_a_right_is_missing_somewhere() {
    for (name, mode) in [
        ("", 0o000),
        ("", 0o400),
        ("", 0o500),
        ("lock", 0o000),
        ("lock", 0o400),
        ("sessionlog", 0o000),
        ("engine-1", 0o000),
        ("engine-1", 0o500),
        ("engine-1/db", 0o000),
        ("engine-1/db", 0o400),
        ("engine-1/conf", 0o000),
        ("journal", 0o000),
        ("journal", 0o500),
        ("journal/segment-1", 0o000),
        ("journal/segment-1", 0o400),
    ] {
        let store = Owned::with_events(2);
        let path = store.path(name);
        assert!(path.exists(), "{name}");
        let before = fs::metadata(&path).unwrap().mode() & 0o777;
        // With its session gone there is nothing to look at.
        for command in COMMANDS.iter().filter(|command| command[0] != "rm") {
            set([(path.clone(), mode)].into_iter());
            let done = store.run(command);
            set([(path.clone(), before)].into_iter());
            let told = format!("{name} {mode:o}, {command:?}: {done:?}");
            match done.code {
                // It needs no such right, and says the truth.
                Some(0) => assert!(command[0] != "read" || done.out == numbered(0) + &numbered(1), "{told}"),
                Some(3) => {
                    assert!(done.err.contains("ermission denied") && done.err.contains("who owns"), "{told}");
                    assert!(done.err.contains(store.bench.store().to_str().unwrap()), "{told}");
                    assert!(!done.err.contains("delet") && !done.err.contains("panick"), "{told}");
                }
                _ => panic!("{told}"),
            }
        }
        let scanned = store.run(&["scan"]).fine();
        assert!(scanned.contains("no problems found"), "{name} {mode:o}: {scanned}");
        let read = store.run(&["read", "s"]).fine();
        assert!(read.starts_with(&(numbered(0) + &numbered(1))), "{name} {mode:o}: {read}");
    }
}

/// A store that may only be read: opening writes, so each command says so; a salvage needs no more than to read.
#[test]
fn h37_a_store_that_may_only_be_read() {
    let store = Owned::with_events(3);
    let before = modes(&store.bench.store());
    let read_only = before.iter().map(|(path, mode)| (path.clone(), mode & 0o555));
    let all = |path: &Path| {
        let files = modes(path).into_iter().filter(|(path, _)| path.is_file());
        files.map(|(path, _)| (fs::read(&path).unwrap(), path)).collect::<Vec<_>>()
    };
    let bytes = all(&store.bench.store());
    set(read_only.rev());
    for command in COMMANDS {
        let done = store.run(command);
        done.fails(3, &[store.bench.store().to_str().unwrap(), "ermission denied", "who owns"]);
    }
    let new = store.bench.root().join("new");
    let old = store.bench.store();
    let salvaged = store.run(&["salvage", old.to_str().unwrap(), new.to_str().unwrap()]).fine();
    assert!(salvaged.contains("s"), "{salvaged}");
    assert!(all(&store.bench.store()) == bytes, "nothing was written");
    set(before.into_iter());
    store.is_whole();
    let read = store.run(&["--store", new.to_str().unwrap(), "read", "s"]).fine();
    assert_eq!(read, (0..3).map(numbered).collect::<String>());
}

/// Where nothing may be made, or nothing may be entered.
#[test]
fn h37_a_place_that_may_not_be_written() {
    let store = Owned::with_events(1);
    let closed = store.bench.root().join("closed");
    fs::create_dir(&closed).unwrap();
    store.give(&closed);
    let inside = closed.join("store");
    let inside = inside.to_str().unwrap();
    let old = store.bench.store();
    for mode in [0o500, 0o000] {
        set([(closed.clone(), mode)].into_iter());
        for (code, command) in [
            (3, &["--store", inside, "create", "t"][..]),
            (1, &["backup", inside]),
            (1, &["salvage", old.to_str().unwrap(), inside]),
            (1, &["export", "s", "--output", inside]),
        ] {
            let done = store.run(command);
            assert_eq!(done.code, Some(code), "{mode:o} {command:?}: {done:?}");
            assert!(
                done.err.contains("ermission denied") && done.err.contains("closed"),
                "{command:?}: {done:?}"
            );
        }
        set([(closed.clone(), 0o700)].into_iter());
        assert_eq!(fs::read_dir(&closed).unwrap().count(), 0, "nothing is left there");
    }
    store.is_whole();
}
