//! A small file system of its own, which can be filled.

use std::fs::File;
use std::io::Write;
use std::path::PathBuf;
use std::process::Command;

/// Mounted while it lives.
pub(crate) struct SmallDisk {
    folder: tempfile::TempDir,
}

impl SmallDisk {
    /// One of `mib` MiB with ext4. `None`, and said so, where this user may not mount or has no tools for it.
    pub(crate) fn new(mib: u64) -> Option<Self> {
        let folder = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
        let (image, at) = (folder.path().join("image"), folder.path().join("disk"));
        File::create(&image).unwrap().set_len(mib << 20).unwrap();
        std::fs::create_dir(&at).unwrap();
        let run = |command: &mut Command| command.output().is_ok_and(|done| done.status.success());
        // No blocks kept for root, who runs the tests where mounting is allowed.
        let made = run(Command::new("mkfs.ext4").args(["-q", "-F", "-m", "0"]).arg(&image))
            && run(Command::new("mount").args(["-o", "loop"]).args([&image, &at]));
        if !made {
            eprintln!("NOT TESTED: no file system can be made and mounted here");
            return None;
        }
        Some(Self { folder })
    }

    /// One of `mib` MiB in memory, where the engine's files have no synchronous attribute. `None` as above.
    pub(crate) fn in_memory(mib: u64) -> Option<Self> {
        let folder = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
        let at = folder.path().join("disk");
        std::fs::create_dir(&at).unwrap();
        let size = format!("size={mib}m");
        let mounted = Command::new("mount").args(["-t", "tmpfs", "-o", &size, "tmpfs"]).arg(&at).output();
        if !mounted.is_ok_and(|done| done.status.success()) {
            eprintln!("NOT TESTED: no file system can be mounted here");
            return None;
        }
        Some(Self { folder })
    }

    pub(crate) fn path(&self) -> PathBuf {
        self.folder.path().join("disk")
    }

    /// Writes to a file until nothing more goes on the disk, but for `left` bytes.
    pub(crate) fn fill(&self, left: u64) {
        self.free();
        let mut file = File::create(self.filler()).unwrap();
        for size in [1 << 20, 4096, 1] {
            let bytes = vec![0x5a; size];
            while file.write_all(&bytes).is_ok() {}
        }
        file.sync_all().unwrap_or_default();
        let len = file.metadata().unwrap().len();
        file.set_len(len.saturating_sub(left)).unwrap();
        file.sync_all().unwrap();
    }

    /// Takes that file away.
    pub(crate) fn free(&self) {
        let _ = std::fs::remove_file(self.filler());
    }

    fn filler(&self) -> PathBuf {
        self.path().join("filler")
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        // Lazily: a store that a failed test holds open must not keep it for ever.
        let _ = Command::new("umount").arg("-l").arg(self.path()).output();
    }
}
