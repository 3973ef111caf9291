//! File operations with our modes and our errors: 0700 folders, 0600 files, no symbolic links followed.

use std::fs::{self, DirBuilder, File, Permissions};
use std::io;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, PermissionsExt};
use std::path::Path;

use rustix::fs::{Mode, OFlags};

use crate::error::{Error, Result};

/// The permissions of group and others.
const OTHERS: u32 = 0o077;

/// Gives an error of the system its place.
pub(super) fn at(action: &'static str, path: &Path) -> impl FnOnce(io::Error) -> Error {
    move |source| Error::Io { action, path: path.to_owned(), source }
}

/// Opens the file at `path` itself, never what a link there points to.
pub(super) fn open(path: &Path, flags: OFlags) -> io::Result<File> {
    let mode = Mode::RUSR | Mode::WUSR;
    let file = File::from(rustix::fs::open(path, flags | OFlags::NOFOLLOW | OFlags::CLOEXEC, mode)?);
    if flags.contains(OFlags::CREATE) {
        restrict(&file)?;
    }
    Ok(file)
}

/// Takes the permissions of group and others away, whatever the umask was. What another user owns stays as it is, and
/// so does what the owner has made read-only.
fn restrict(file: &File) -> io::Result<()> {
    let mode = file.metadata()?.mode();
    if mode & OTHERS == 0 {
        return Ok(());
    }
    allow_denied(file.set_permissions(Permissions::from_mode(mode & 0o7777 & !OTHERS)))
}

/// The same for what somebody else opened: the engine.
pub(super) fn restrict_path(path: &Path) -> Result<()> {
    let restrict = || {
        let mode = fs::symlink_metadata(path)?.mode();
        if mode & OTHERS == 0 {
            return Ok(());
        }
        allow_denied(fs::set_permissions(path, Permissions::from_mode(mode & 0o7777 & !OTHERS)))
    };
    restrict().map_err(at("set the mode of", path))
}

fn allow_denied(result: io::Result<()>) -> io::Result<()> {
    match result {
        Err(error) if error.kind() == io::ErrorKind::PermissionDenied => Ok(()),
        result => result,
    }
}

/// Makes the folder, and the missing ones above it, 0700 and durable. A folder that exists is left as it is.
///
/// Returns whether it was made.
pub(super) fn create_folder(path: &Path) -> Result<bool> {
    match DirBuilder::new().mode(0o700).create(path) {
        Ok(()) => {}
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists && path.is_dir() => return Ok(false),
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            let parent = path.parent().filter(|parent| !parent.as_os_str().is_empty());
            let Some(parent) = parent else { return Err(at("create", path)(error)) };
            if !create_folder(parent)? {
                // The parent is there and still refuses (`/proc` does): trying again would never end.
                return Err(at("create", path)(error));
            }
            return create_folder(path);
        }
        Err(error) => return Err(at("create", path)(error)),
    }
    sync_parent(path)?;
    Ok(true)
}

/// Makes names made, changed or removed in the folder durable.
pub(super) fn sync_folder(path: &Path) -> Result<()> {
    let folder =
        || rustix::fs::open(path, OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty());
    folder()
        .map_err(io::Error::from)
        .and_then(|folder| File::from(folder).sync_all())
        .map_err(at("sync", path))
}

/// Makes the name of `path` itself durable. A parent that may not be read, and so not opened, is left alone: it was
/// there before us.
pub(super) fn sync_parent(path: &Path) -> Result<()> {
    let Some(parent) = path.parent() else { return Ok(()) };
    let parent = if parent.as_os_str().is_empty() { Path::new(".") } else { parent };
    match sync_folder(parent) {
        Err(Error::Io { source, .. }) if source.kind() == io::ErrorKind::PermissionDenied => Ok(()),
        result => result,
    }
}

/// Writes `len` real zero bytes: blocks that are allocated and written, so that overwriting them needs no metadata.
pub(super) fn fill_with_zeros(file: &File, len: u64) -> io::Result<()> {
    static ZEROS: [u8; 64 * 1024] = [0; 64 * 1024];
    let mut left = len;
    let mut file = file;
    while left > 0 {
        let step = usize::try_from(left).map_or(ZEROS.len(), |left| left.min(ZEROS.len()));
        let zeros = ZEROS.get(..step).unwrap_or(&ZEROS);
        io::Write::write_all(&mut file, zeros)?;
        left -= u64::try_from(step).unwrap_or(left);
    }
    file.sync_all()
}

/// Returns the bytes that can still be written where `path` lies.
pub(super) fn free_bytes(path: &Path) -> io::Result<u64> {
    let stat = rustix::fs::statvfs(path)?;
    Ok(stat.f_bavail.saturating_mul(stat.f_frsize))
}

/// Returns the names in a folder that are text; other names are none of ours.
pub(super) fn names(path: &Path) -> io::Result<Vec<String>> {
    let mut names = Vec::new();
    for entry in fs::read_dir(path)? {
        names.extend(entry?.file_name().into_string().ok());
    }
    Ok(names)
}

/// Removes a file that may be missing.
pub(super) fn remove_if_there(path: &Path) -> Result<bool> {
    match fs::remove_file(path) {
        Ok(()) => Ok(true),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
        Err(error) => Err(at("remove", path)(error)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A parent that exists and takes no folder (`/proc` says that the new one was not found) is an error, not a
    /// question to be asked for ever.
    #[test]
    fn a_folder_that_cannot_be_made_is_an_error() {
        if cfg!(target_os = "linux") {
            let made = create_folder(Path::new("/proc/sessionlog-test/store"));
            assert!(matches!(made, Err(Error::Io { action: "create", .. })), "{made:?}");
        }
    }
}
