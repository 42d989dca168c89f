//! Opens files whose paths come from watched programs, without blocking and without following
//! links; only regular files are used.
//!
//! A program chooses the paths of its mappings and of the files that name its code. A pipe would
//! block for ever, and a device can act on being opened. Nothing is written.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use super::super::sys;

/// The kernel's suffix for the path of a removed file.
pub(super) const REMOVED: &str = " (deleted)";
const ROOT: u32 = 0;

/// Is this mapping's name that of a file? A removed file does not count: another file can have its
/// name by now.
pub(in crate::linux) fn is_file(path: &str) -> bool {
    path.starts_with('/') && !path.starts_with("//") && !path.ends_with(REMOVED)
}

/// Opens a file at a process's path, possibly in a container; at the same path outside it if the
/// process is gone.
pub(in crate::linux) fn open_program(pid: i32, path: &str) -> Option<File> {
    if !is_file(path) {
        return None;
    }
    let inside = format!("/proc/{pid}/root{path}");
    let file = open_regular(Path::new(&inside));
    file.or_else(|_| open_regular(Path::new(path))).ok()
}

/// Opens a regular file; nothing else is opened, not even for a moment.
///
/// # Errors
/// If it does not exist, is not permitted, or not a regular file.
pub(in crate::linux) fn open_regular(path: &Path) -> io::Result<File> {
    let found = OpenOptions::new()
        .read(true)
        .custom_flags(libc::O_PATH | libc::O_NOFOLLOW | libc::O_CLOEXEC)
        .open(path)?;
    if !found.metadata()?.is_file() {
        return Err(io::Error::new(
            io::ErrorKind::InvalidInput,
            "it is not a regular file",
        ));
    }
    OpenOptions::new()
        .read(true)
        .custom_flags(libc::O_NONBLOCK | libc::O_CLOEXEC)
        .open(format!("/proc/self/fd/{}", found.as_raw_fd()))
}

/// The path of an open file, if only root and this user can have created it and nobody else can
/// replace it or a folder above it.
pub(in crate::linux) fn find_trusted_path(file: &File) -> Option<PathBuf> {
    let path = std::fs::read_link(format!("/proc/self/fd/{}", file.as_raw_fd())).ok()?;
    let (opened, at_path) = (file.metadata().ok()?, path.symlink_metadata().ok()?);
    let is_same = (opened.dev(), opened.ino()) == (at_path.dev(), at_path.ino());
    let own = sys::effective_user();
    let is_trusted = path.ancestors().enumerate().all(|(level, part)| {
        part.symlink_metadata().is_ok_and(|part| {
            let is_ours = part.uid() == ROOT || part.uid() == own;
            // Further up a sticky folder suffices: others cannot replace what it contains.
            let is_sticky = level > 1 && part.mode() & libc::S_ISVTX != 0;
            is_ours && (part.mode() & 0o022 == 0 || is_sticky)
        })
    });
    (is_same && is_trusted).then_some(path)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::{PermissionsExt, symlink};

    #[test]
    fn only_regular_files_are_opened() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        std::fs::write(at("file"), "x").unwrap();
        symlink(at("file"), at("link")).unwrap();
        let status = std::process::Command::new("mkfifo")
            .arg(at("pipe"))
            .status();
        assert!(status.unwrap().success());
        assert!(open_regular(&at("file")).is_ok());
        for name in ["link", "pipe", "missing", "."] {
            assert!(open_regular(&at(name)).is_err(), "{name}");
        }
        assert!(open_regular(Path::new("/dev/null")).is_err());
    }

    #[test]
    fn removed_files_are_not_opened() {
        assert!(is_file("/bin/true"));
        for name in ["/tmp/prog (deleted)", "//anon", "[heap]", "", "anon"] {
            assert!(!is_file(name), "{name}");
        }
        assert!(open_program(0, "/bin/sh (deleted)").is_none());
    }

    #[test]
    fn a_program_in_a_folder_that_others_may_write_to_is_not_trusted() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("file");
        std::fs::write(&path, "x").unwrap();
        let check = |of_folder: u32, of_file: u32, expected: bool| {
            let modes = [(folder.path(), of_folder), (path.as_path(), of_file)];
            for (path, mode) in modes {
                std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).unwrap();
            }
            let found = find_trusted_path(&open_regular(&path).unwrap());
            assert_eq!(found.is_some(), expected, "{of_folder:o} {of_file:o}");
        };
        check(0o700, 0o600, true);
        check(0o700, 0o666, false);
        check(0o1777, 0o600, false);
        let file = open_regular(&path).unwrap();
        std::fs::remove_file(&path).unwrap();
        assert_eq!(find_trusted_path(&file), None);
    }
}
