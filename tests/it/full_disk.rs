//! A file system that is really full: small ones, made for the test. Where they cannot be made (that needs root) the test
//! says so; the same on a medium in memory, which always runs, is in `prune` and `delete`.

use std::fs::{self, File};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Command;

use sessionlog::{Error, NewSession, Prune, Seq, Store};

use crate::support::events::{self, Said, noise, read, user};
use crate::support::run::id;

/// A mounted file system, unmounted at the end.
struct Small {
    point: PathBuf,
    _folder: tempfile::TempDir,
}

impl Drop for Small {
    fn drop(&mut self) {
        run("umount", &[self.point.to_str().unwrap()]);
    }
}

fn run(program: &str, args: &[&str]) -> bool {
    Command::new(program).args(args).output().is_ok_and(|output| output.status.success())
}

/// A file system of this kind and size; `None` where that is not allowed here.
fn small(kind: &str) -> Option<Small> {
    let folder = tempfile::tempdir().unwrap();
    let point = folder.path().join("disk");
    fs::create_dir(&point).unwrap();
    let at = point.to_str().unwrap();
    let mounted = match kind {
        "tmpfs" => run("mount", &["-t", "tmpfs", "-o", "size=40m", "tmpfs", at]),
        _ => {
            let image = folder.path().join("image");
            File::create(&image).unwrap().set_len(48 << 20).unwrap();
            let image = image.to_str().unwrap();
            run("mkfs.ext4", &["-q", "-m", "0", image]) && run("mount", &["-o", "loop", image, at])
        }
    };
    mounted.then_some(Small { point, _folder: folder })
}

/// Takes all space that is left.
fn fill(path: &Path) {
    let mut file = File::create(path).unwrap();
    for size in [1 << 20, 4_096, 1] {
        while file.write_all(&vec![b'x'; size]).is_ok() {}
    }
    let _ = file.sync_all();
}

fn full(result: sessionlog::Result<Seq>) -> bool {
    match result {
        Ok(_) => false,
        Err(Error::DiskFull { .. }) => true,
        Err(error) => panic!("a full disk gives {error:?}"),
    }
}

/// Sessions before `from` are gone, the others hold what was acknowledged.
fn check(store: &Store, said: &[Vec<Said>], from: usize, kind: &str) {
    for (n, said) in said.iter().enumerate() {
        let session = store.session(&id(&format!("s{n}")));
        match n < from {
            true => assert!(matches!(session, Err(Error::SessionNotFound { .. })), "{kind}: s{n}"),
            false => assert_eq!(
                read(session.unwrap().read_from(Seq::ZERO)),
                events::lines(said, 0),
                "{kind}: s{n}"
            ),
        }
    }
}

/// Closes a store: what has no room to be drained stays in the journal.
fn close(store: &Store, kind: &str) {
    match store.close() {
        Ok(()) => {}
        Err(Error::DiskFull { needed_bytes, free_bytes, .. }) => {
            eprintln!("{kind}: closed undrained: {needed_bytes} needed, {free_bytes} free");
        }
        Err(error) => panic!("{kind}: close: {error:?}"),
    }
}

/// A store fills its disk, and others take the rest: appends are refused with `DiskFull` and nothing else; reads, opens,
/// deletions, prunes and closes work; the store has not failed, and appends go on when there is room.
#[test]
fn a_store_on_a_full_disk() {
    for kind in ["tmpfs", "ext4"] {
        let Some(disk) = small(kind) else {
            eprintln!("SKIPPED: a small {kind} cannot be mounted here; run the tests as root for it");
            continue;
        };
        let path = disk.point.join("store");
        let ballast = disk.point.join("ballast");
        let store = Store::open(&path).unwrap();
        let mut said: Vec<Vec<Said>> = Vec::new();
        let mut is_full = false;
        while !is_full {
            let n = said.len();
            assert!(n < 200, "{kind}: the disk does not fill");
            let session = store.create(NewSession::with_id(id(&format!("s{n}"))));
            let session = match session {
                Err(Error::DiskFull { .. }) => break,
                session => session.unwrap(),
            };
            said.push(Vec::new());
            for k in 0..20 {
                let event = noise(n as u64 * 100 + k, 50_000);
                is_full = full(session.append(event.to_new()));
                if is_full {
                    break;
                }
                said.last_mut().unwrap().push(event);
            }
        }
        drop(store.drain());
        fill(&ballast);
        eprintln!("{kind}: full with {} sessions", said.len());
        let last = store.session(&id(&format!("s{}", said.len() - 1))).unwrap();
        assert!((0..40).any(|n| full(last.append(noise(n, 1_000_000).to_new()))), "{kind}");
        // What of those fitted into the last segment is the last session's; it goes, too.
        store.delete(last.id()).unwrap();
        said.pop();
        let holds = |store: &Store, from: usize| check(store, &said, from, kind);
        holds(&store, 0);
        store.delete(&id("s0")).unwrap();
        holds(&store, 1);
        let keep = Prune::new().keep_newest(said.len() as u64 - 2);
        assert_eq!(store.prune(&store.plan_prune(&keep).unwrap()).unwrap().going().count(), 1, "{kind}");
        holds(&store, 2);
        close(&store, kind);
        drop((last, store));

        fill(&ballast.with_extension("more"));
        let store = Store::open(&path).unwrap_or_else(|error| panic!("{kind}: open: {error:?}"));
        holds(&store, 2);
        store.delete(&id("s2")).unwrap();
        let session = store.session(&id("s3")).unwrap();
        let mut extra = 0;
        while extra < 40 && !full(session.append(noise(extra, 1_000_000).to_new())) {
            extra += 1;
        }
        assert!(extra < 40, "{kind}: appends went on");
        close(&store, kind);
        drop((session, store));

        let store = Store::open(&path).unwrap_or_else(|error| panic!("{kind}: open: {error:?}"));
        fs::remove_file(&ballast).unwrap();
        fs::remove_file(ballast.with_extension("more")).unwrap();
        let session = store.session(&id("s4")).unwrap();
        let before = session.len();
        session.append(user("room again").to_new()).unwrap();
        store.drain().unwrap();
        assert_eq!(session.durable_len(), before + 1);
        assert_eq!(store.session(&id("s3")).unwrap().len(), said[3].len() as u64 + extra);
        let report = store.scan().unwrap();
        assert!(report.is_clean(), "{kind}: {report:?}");
        drop((session, store));
    }
}
