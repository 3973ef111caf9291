//! Commands that are stopped in the middle: whatever they were at, the store is sound behind it.

use std::io::{BufRead, BufReader, Write};
use std::os::unix::process::ExitStatusExt;
use std::process::Child;
use std::time::Duration;

use super::{Bench, numbered, piped};

/// Ctrl-C, as a terminal sends it.
fn interrupt(child: &Child) {
    let pid = rustix::process::Pid::from_child(child);
    // It may be done already.
    let _ = rustix::process::kill_process(pid, rustix::process::Signal::INT);
}

/// Asserts that the session `s` is as it was and that a scan finds nothing.
#[track_caller]
fn sound(bench: &Bench, events: u64) {
    let scan = bench.run(["scan"]);
    assert_eq!(scan.code, Some(0), "{scan:?}");
    assert!(scan.out.contains("no problems found"), "{scan:?}");
    assert_eq!(bench.run(["read", "s"]).fine(), (0..events).map(numbered).collect::<String>());
}

/// Goal: an import that Ctrl-C stops (of which a shell makes 130) while its file comes in leaves no session, and the next one takes the id.
#[test]
fn an_import_in_the_middle() {
    let bench = Bench::with_events(50);
    let file = bench.run(["export", "s"]).fine().replace("\"id\":\"s\"", "\"id\":\"t\"");
    let cut = file.match_indices('\n').nth(20).unwrap().0;
    for kill in [false, true] {
        let mut child = bench.start(["import", "-"]);
        let mut stdin = child.stdin.take().unwrap();
        // The pipe stays open: it waits for more, with what it has read.
        stdin.write_all(&file.as_bytes()[..cut]).unwrap();
        match kill {
            true => child.kill().unwrap(),
            false => interrupt(&child),
        }
        let signal = child.wait().unwrap().signal();
        assert_eq!(signal, Some(if kill { 9 } else { 2 }));
        sound(&bench, 50);
        bench.run(["read", "t"]).fails(1, &["not found"]);
    }
    assert_eq!(bench.feed(["import", "-"], file).code, Some(0));
    sound(&bench, 50);
}

/// Goal: work that writes is stopped wherever it happens to be; each time the store is sound. When it is stopped does
/// not matter for what is asserted.
#[test]
fn work_at_any_moment() {
    let bench = Bench::with_events(300);
    let file = bench.root().join("s.jsonl");
    let file = file.to_str().unwrap();
    assert_eq!(bench.run(["export", "s", "--output", file]).code, Some(0));
    for step in 0..6_u64 {
        let copy = bench.root().join(format!("copy-{step}"));
        let id = format!("i{step}");
        for args in [
            &["import", "--as", &id, file][..],
            &["fork", "s"],
            &["backup", copy.to_str().unwrap()],
            &["label", "s", "--title", &id],
            &["repair"],
            &["scan"],
        ] {
            let mut child = piped(&mut bench.command(args)).spawn().unwrap();
            std::thread::sleep(Duration::from_millis(4 * step));
            interrupt(&child);
            let ended = child.wait().unwrap();
            assert!(ended.signal() == Some(2) || ended.code() == Some(0), "{args:?}: {ended:?}");
        }
        sound(&bench, 300);
    }
}

/// Goal: an export that is stopped has changed nothing.
#[test]
fn an_export_in_the_middle() {
    let bench = Bench::with_events(20_000);
    let mut child = bench.start(["export", "s"]);
    let mut line = String::new();
    let mut stdout = BufReader::new(child.stdout.take().unwrap());
    stdout.read_line(&mut line).unwrap();
    interrupt(&child);
    assert_eq!(child.wait().unwrap().signal(), Some(2));
    sound(&bench, 20_000);
}
