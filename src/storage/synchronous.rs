//! The synchronous attribute of files and folders: `FS_SYNC_FL`, what `chattr +S` sets.
//!
//! A write to a file that has it is on the medium when it returns, and files made in a folder that has it inherit it.

use std::fs::File;
use std::io;
use std::path::Path;

use super::files;
use crate::error::Result;

/// Sets the attribute on a file or folder, durably, where it is not set. Returns whether it is there now.
#[cfg(target_os = "linux")]
pub(super) fn set(path: &Path) -> Result<bool> {
    use rustix::fs::{IFlags, ioctl_getflags, ioctl_setflags};
    let file = open(path).map_err(files::at("open", path))?;
    let Ok(flags) = ioctl_getflags(&file) else { return Ok(false) };
    if flags.contains(IFlags::SYNC) {
        return Ok(true);
    }
    // Refused by tmpfs and overlayfs (EOPNOTSUPP), ramfs (ENOTTY) and to others than the owner (EPERM). Whatever the
    // reason, the weaker mode is the answer; a medium that fails will say so when it is written to.
    if ioctl_setflags(&file, flags | IFlags::SYNC).is_err() {
        return Ok(false);
    }
    file.sync_all().map_err(files::at("sync", path))?;
    is_set(path)
}

/// Reads the attribute back.
#[cfg(target_os = "linux")]
pub(super) fn is_set(path: &Path) -> Result<bool> {
    use rustix::fs::{IFlags, ioctl_getflags};
    let file = open(path).map_err(files::at("open", path))?;
    Ok(ioctl_getflags(&file).is_ok_and(|flags| flags.contains(IFlags::SYNC)))
}

#[cfg(not(target_os = "linux"))]
pub(super) fn set(_path: &Path) -> Result<bool> {
    Ok(false)
}

#[cfg(not(target_os = "linux"))]
pub(super) fn is_set(_path: &Path) -> Result<bool> {
    Ok(false)
}

#[cfg(target_os = "linux")]
fn open(path: &Path) -> io::Result<File> {
    files::open(path, rustix::fs::OFlags::RDONLY | rustix::fs::OFlags::NONBLOCK)
}
