//! The lock of a store: one process, and one handle in it, has a store open.
//!
//! The lock is `flock` on the file `lock`, which the system releases when its holder ends, however it ends. The text
//! in the file only names the holder; it is never a reason to keep anybody out who can get the lock.

use std::fs::{File, TryLockError};
use std::io;
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use rustix::fs::OFlags;

use super::files;
use crate::error::{Error, Result};

/// The lock's file. It stays in place: removing it would let two processes lock two files.
pub(super) const NAME: &str = "lock";
/// More than a holder's text has.
const MAX_BYTES: usize = 64;
/// How long a lock is waited for whose holder is gone: its last writes can be under way in the system.
const PATIENCE: Duration = Duration::from_secs(5);
const PAUSE: Duration = Duration::from_millis(10);

/// The right to a store, until it is dropped.
#[derive(Debug)]
pub(crate) struct Lock {
    file: File,
}

impl Drop for Lock {
    fn drop(&mut self) {
        // Closing is not enough: a child that another thread is just starting has a copy of the file until it runs
        // its program, and the next open in this process would find the lock held by this process.
        let _ = self.file.unlock();
    }
}

impl Lock {
    /// Takes the lock of the store in `dir`.
    ///
    /// # Errors
    /// [`Error::InUse`]: at once when the process that the file names is alive, else after five seconds.
    /// [`Error::Io`]: the file cannot be made, or opened for writing.
    pub(crate) fn acquire(dir: &Path) -> Result<Self> {
        Self::acquire_within(dir, PATIENCE)
    }

    fn acquire_within(dir: &Path, patience: Duration) -> Result<Self> {
        let path = dir.join(NAME);
        let file = files::open(&path, OFlags::RDWR | OFlags::CREATE).map_err(files::at("open", &path))?;
        let lock = Self::wait_for(file, dir, patience)?;
        Holder::own().write(&lock.file).map_err(files::at("write", &path))?;
        Ok(lock)
    }

    /// Keeps others from opening the store in `dir` and writes nothing there, not even who holds it. `None` when there
    /// is no lock's file: it cannot be in use then, and somebody may open it.
    ///
    /// # Errors
    /// As [`acquire`](Self::acquire).
    pub(crate) fn hold_unwritten(dir: &Path) -> Result<Option<Self>> {
        let path = dir.join(NAME);
        match files::open(&path, OFlags::RDONLY) {
            Ok(file) => Self::wait_for(file, dir, PATIENCE).map(Some),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(files::at("open", &path)(error)),
        }
    }

    fn wait_for(file: File, dir: &Path, patience: Duration) -> Result<Self> {
        let start = Instant::now();
        loop {
            match file.try_lock() {
                Ok(()) => break,
                Err(TryLockError::WouldBlock) => {}
                Err(TryLockError::Error(error)) => return Err(files::at("lock", &dir.join(NAME))(error)),
            }
            // Read anew each time: another process may have taken it over meanwhile.
            let holder = Holder::read(&file);
            if holder.as_ref().is_some_and(Holder::lives) || start.elapsed() >= patience {
                return Err(Error::InUse { path: dir.to_owned(), holder: holder.map(|holder| holder.pid) });
            }
            std::thread::sleep(PAUSE);
        }
        Ok(Self { file })
    }

    /// Returns whether the file `path` can be a lock of ours, so that locking it harms nobody: also one that a crash
    /// left with a part of its text, or with its size and no text.
    pub(super) fn is_ours(path: &Path) -> io::Result<bool> {
        let metadata = path.symlink_metadata()?;
        if !metadata.is_file() || metadata.len() > MAX_BYTES as u64 {
            return Ok(false);
        }
        let bytes = std::fs::read(path)?;
        let end = bytes.iter().rposition(|byte| *byte != 0).map_or(0, |last| last + 1);
        let text = bytes.get(..end).unwrap_or_default();
        let numbers = |rest: &[u8]| rest.iter().all(|byte| b"0123456789 \n".contains(byte));
        Ok(TAG.as_bytes().starts_with(text) || text.strip_prefix(TAG.as_bytes()).is_some_and(numbers))
    }
}

/// How the text begins: tells our lock from another program's, which may hold a pid, too.
const TAG: &str = "sessionlog ";

/// Who has the lock: `sessionlog PID START`. The start tells a process from an earlier one that had the same pid,
/// which in containers is nearly always so.
#[derive(Debug, PartialEq, Eq)]
struct Holder {
    pid: u32,
    /// In clock ticks since the system's start; 0 where it cannot be known.
    start: u64,
}

impl Holder {
    fn own() -> Self {
        let pid = std::process::id();
        Self { pid, start: Process::look(pid).map_or(0, |process| process.start) }
    }

    fn read(file: &File) -> Option<Self> {
        let mut bytes = [0; MAX_BYTES];
        let read = file.read_at(&mut bytes, 0).ok()?;
        Self::parse(bytes.get(..read)?)
    }

    /// Anything else than what `write` writes is nobody.
    fn parse(bytes: &[u8]) -> Option<Self> {
        let text = std::str::from_utf8(bytes).ok()?.strip_prefix(TAG)?.strip_suffix('\n')?;
        let (pid, start) = text.split_once(' ')?;
        Some(Self { pid: pid.parse().ok()?, start: start.parse().ok()? })
    }

    fn write(&self, file: &File) -> io::Result<()> {
        file.set_len(0)?;
        file.write_all_at(format!("{TAG}{} {}\n", self.pid, self.start).as_bytes(), 0)
    }

    /// Whether this very process is there and not on its way out.
    fn lives(&self) -> bool {
        let Some(process) = Process::look(self.pid) else { return exists(self.pid) };
        let same = self.start == 0 || process.start == self.start;
        same && !process.ends
    }
}

/// Asks the system whether there is such a process, also one of another user.
fn exists(pid: u32) -> bool {
    if cfg!(target_os = "linux") && Path::new("/proc/self/stat").exists() {
        return false; // `Process::look` would have found it.
    }
    let pid = i32::try_from(pid).ok().and_then(rustix::process::Pid::from_raw);
    pid.is_some_and(|pid| !matches!(rustix::process::test_kill_process(pid), Err(rustix::io::Errno::SRCH)))
}

/// What Linux tells of a process.
#[derive(Debug)]
struct Process {
    start: u64,
    /// It is a zombie, is exiting, or has been killed and will notice. Its lock goes with it.
    ends: bool,
}

impl Process {
    fn look(pid: u32) -> Option<Self> {
        let folder = PathBuf::from(format!("/proc/{pid}"));
        let stat = std::fs::read_to_string(folder.join("stat")).ok()?;
        // The name, in parentheses, may hold anything: count from behind it. See proc_pid_stat(5).
        let (_, fields) = stat.rsplit_once(") ")?;
        let fields = fields.split(' ').collect::<Vec<_>>();
        let state = *fields.first()?;
        let flags = fields.get(6)?.parse::<u64>().ok()?;
        let start = fields.get(19)?.parse::<u64>().ok()?;
        const PF_EXITING: u64 = 0x4;
        let exiting = matches!(state, "Z" | "X" | "x") || flags & PF_EXITING != 0;
        Some(Self { start, ends: exiting || killed(&folder) })
    }
}

/// Whether SIGKILL is on its way: until it arrives the process looks alive.
fn killed(folder: &Path) -> bool {
    const SIGKILL: u64 = 1 << 8;
    let status = std::fs::read_to_string(folder.join("status")).unwrap_or_default();
    let pending = |line: &str| {
        let mask = line.strip_prefix("SigPnd:").or_else(|| line.strip_prefix("ShdPnd:"))?;
        u64::from_str_radix(mask.trim(), 16).ok()
    };
    status.lines().filter_map(pending).any(|mask| mask & SIGKILL != 0)
}

#[cfg(test)]
mod tests {
    use std::process::{Child, Command, Stdio};

    use super::*;

    const CHILD_DIR: &str = "SESSIONLOG_TEST_LOCK_DIR";

    /// What the child processes of the tests below run: it takes the lock and waits to be killed.
    #[test]
    fn child_process() {
        let Some(dir) = std::env::var_os(CHILD_DIR) else { return };
        let _lock = Lock::acquire(Path::new(&dir)).unwrap();
        std::fs::write(Path::new(&dir).join("locked"), b"").unwrap();
        std::thread::park();
    }

    fn child_with_lock(dir: &Path) -> Child {
        let child = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "storage::lock::tests::child_process"])
            .env(CHILD_DIR, dir)
            .stdout(Stdio::null())
            .spawn()
            .unwrap();
        while !dir.join("locked").exists() {
            std::thread::sleep(PAUSE);
        }
        child
    }

    fn holder_of(result: Result<Lock>) -> Option<u32> {
        match result {
            Err(Error::InUse { holder, .. }) => holder,
            other => panic!("{other:?}"),
        }
    }

    /// A second handle in this process fails at once, names this process, and gets the lock when the first is gone.
    #[test]
    fn one_handle_at_a_time() {
        use std::os::unix::fs::MetadataExt;
        let dir = tempfile::tempdir().unwrap();
        let first = Lock::acquire(dir.path()).unwrap();
        let start = Instant::now();
        assert_eq!(holder_of(Lock::acquire(dir.path())), Some(std::process::id()));
        assert!(start.elapsed() < Duration::from_secs(1));
        let path = dir.path().join(NAME);
        assert_eq!(path.metadata().unwrap().mode() & 0o777, 0o600);
        assert!(Lock::is_ours(&path).unwrap());
        drop(first);
        assert!(path.exists());
    }

    /// Opened and closed again and again while other threads start programs, which get copies of all files.
    #[test]
    fn children_keep_no_lock() {
        let dir = tempfile::tempdir().unwrap();
        let done = std::sync::atomic::AtomicBool::new(false);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                while !done.load(std::sync::atomic::Ordering::Relaxed) {
                    // A working folder makes it a real fork, with time before the program runs.
                    Command::new("true").current_dir("/").status().unwrap();
                }
            });
            let taken = (0..2_000).try_for_each(|_| Lock::acquire(dir.path()).map(drop));
            done.store(true, std::sync::atomic::Ordering::Relaxed);
            taken.unwrap();
        });
    }

    /// A living process keeps its lock and is named at once; killed, its lock is free without a manual step.
    #[test]
    fn lock_of_a_killed_process() {
        let dir = tempfile::tempdir().unwrap();
        let mut child = child_with_lock(dir.path());
        let start = Instant::now();
        assert_eq!(holder_of(Lock::acquire(dir.path())), Some(child.id()));
        assert!(start.elapsed() < Duration::from_secs(1));
        child.kill().unwrap();
        // Not waited for: it may still be dying, then it is a zombie.
        let _lock = Lock::acquire(dir.path()).unwrap();
        child.wait().unwrap();
    }

    /// Whatever the file says, a free lock is given.
    #[test]
    fn text_in_the_file_keeps_nobody_out() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join(NAME);
        let own = Holder::own();
        let texts = [
            String::new(),
            "garbage\n".into(),
            format!("{TAG}{} {}\n", own.pid, own.start),
            format!("{TAG}{} {}\n", own.pid, own.start + 1),
            format!("{TAG}1 0\n"),
            format!("{TAG}4294967295 7\n"),
        ];
        for text in texts {
            std::fs::write(&path, &text).unwrap();
            drop(Lock::acquire(dir.path()).unwrap());
            assert_eq!(Holder::parse(&std::fs::read(&path).unwrap()), Some(Holder::own()));
        }
    }

    /// A held lock that names nobody, a process that is gone or an earlier process with our pid is waited for, then
    /// reported.
    #[test]
    fn held_by_nobody_known() {
        let dir = tempfile::tempdir().unwrap();
        let own = Holder::own();
        for (text, holder) in [
            (String::new(), None),
            ("x".repeat(200), None),
            (format!("{TAG}4294967295 7\n"), Some(u32::MAX)),
            (format!("{TAG}{} {}\n", own.pid, own.start + 1), Some(own.pid)),
        ] {
            let lock = Lock::acquire(dir.path()).unwrap();
            std::fs::write(dir.path().join(NAME), &text).unwrap();
            let start = Instant::now();
            let patience = Duration::from_millis(60);
            assert_eq!(holder_of(Lock::acquire_within(dir.path(), patience)), holder);
            assert!(start.elapsed() >= patience);
            drop(lock);
        }
    }

    /// A lock that comes free while somebody waits is given to them.
    #[test]
    fn waiting_is_rewarded() {
        let dir = tempfile::tempdir().unwrap();
        let lock = Lock::acquire(dir.path()).unwrap();
        std::fs::write(dir.path().join(NAME), b"").unwrap();
        let path = dir.path().to_owned();
        let waiting = std::thread::spawn(move || Lock::acquire(&path).map(drop));
        std::thread::sleep(PAUSE * 3);
        drop(lock);
        waiting.join().unwrap().unwrap();
    }

    /// Neither a link nor another program's file is taken for a lock of ours.
    #[test]
    fn foreign_files() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join(NAME);
        std::fs::write(&path, b"4711").unwrap();
        assert!(!Lock::is_ours(&path).unwrap());
        std::fs::remove_file(&path).unwrap();
        let target = dir.path().join("precious");
        std::fs::write(&target, b"kept").unwrap();
        std::os::unix::fs::symlink(&target, &path).unwrap();
        assert!(!Lock::is_ours(&path).unwrap());
        assert!(matches!(Lock::acquire(dir.path()), Err(Error::Io { .. })));
        assert_eq!(std::fs::read(&target).unwrap(), b"kept");
    }
}
