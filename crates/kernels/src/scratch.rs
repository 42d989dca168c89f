//! A private temporary folder, and the removal of folders that earlier runs left.
//!
//! The owner of a folder keeps a file beside it locked; the system releases the lock when the owner
//! ends. Only folders of this user, with this prefix and with an unlocked file are removed; links are
//! not followed.

use std::ffi::OsStr;
use std::fs::{DirBuilder, File, OpenOptions};
use std::hash::{BuildHasher, RandomState};
use std::io;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

/// Extension of the files beside folders.
const LOCK: &str = "lock";
/// Names that are tried before giving up.
const TRIES: u32 = 1000;

/// A private folder. It is removed when this value is dropped.
#[derive(Debug)]
pub struct Scratch {
    path: PathBuf,
    lock_path: PathBuf,
    /// Locked while it is open.
    _lock: File,
}

impl Scratch {
    /// Removes folders in `parent` with this prefix that ended processes left, and creates a new one.
    ///
    /// # Errors
    /// The system's error, with the path.
    pub fn create(parent: &Path, prefix: &str) -> io::Result<Self> {
        let failed = |error: io::Error| {
            io::Error::new(error.kind(), format!("{}: {error}", parent.display()))
        };
        let parent = parent.canonicalize().map_err(failed)?;
        remove_left_over(&parent, prefix);
        for number in 0..TRIES {
            let name = format!("{prefix}{:016x}", RandomState::new().hash_one(number));
            let path = parent.join(name);
            let lock_path = path.with_extension(LOCK);
            let Some(lock) = create_locked(&lock_path).map_err(failed)? else {
                continue;
            };
            let scratch = Self {
                path,
                lock_path,
                _lock: lock,
            };
            DirBuilder::new()
                .mode(0o700)
                .create(&scratch.path)
                .map_err(failed)?;
            return Ok(scratch);
        }
        Err(failed(io::ErrorKind::AlreadyExists.into()))
    }

    /// Its path.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        remove(&self.path, &self.lock_path);
    }
}

/// Creates a file and locks it; `None` if another process has it, or removed it in between.
fn create_locked(path: &Path) -> io::Result<Option<File>> {
    let mut options = OpenOptions::new();
    let made = options.write(true).create_new(true).mode(0o600).open(path);
    let file = match made {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => return Ok(None),
        Err(error) => return Err(error),
    };
    let is_ours = file.try_lock().is_ok() && file.metadata()?.nlink() > 0;
    Ok(is_ours.then_some(file))
}

/// Ignores failures, which do not affect the run.
#[expect(
    clippy::disallowed_methods,
    reason = "the Edge tidies up its own files"
)]
fn remove(path: &Path, lock_path: &Path) {
    let _ = std::fs::remove_dir_all(path);
    let _ = std::fs::remove_file(lock_path);
}

/// Removes the folders of ended owners.
#[expect(
    clippy::disallowed_methods,
    reason = "the Edge lists where its files are"
)]
fn remove_left_over(parent: &Path, prefix: &str) {
    let Ok(entries) = std::fs::read_dir(parent) else {
        return;
    };
    for entry in entries.flatten() {
        let lock_path = entry.path();
        let name = entry.file_name();
        let is_lock = lock_path.extension() == Some(OsStr::new(LOCK));
        let is_named = name.to_str().is_some_and(|name| name.starts_with(prefix));
        if !(is_lock && is_named) {
            continue;
        }
        // The lock is held until all is gone.
        if let Some(_lock) = lock_abandoned(&lock_path) {
            remove(&lock_path.with_extension(""), &lock_path);
        }
    }
}

/// Locks a file of this user unless another process has locked it.
fn lock_abandoned(path: &Path) -> Option<File> {
    let mut options = OpenOptions::new();
    let file = options
        .write(true)
        .custom_flags(libc::O_NOFOLLOW)
        .open(path)
        .ok()?;
    #[expect(unsafe_code, reason = "the user's number has no safe form")]
    // SAFETY: the call has no preconditions and cannot fail.
    let own = unsafe { libc::geteuid() };
    let is_ours = file.metadata().ok()?.uid() == own;
    (is_ours && file.try_lock().is_ok()).then_some(file)
}

#[cfg(test)]
mod tests {
    use super::*;

    const PREFIX: &str = "pinwise-test-";

    fn create(parent: &Path) -> io::Result<Scratch> {
        Scratch::create(parent, PREFIX)
    }

    fn list_names(parent: &Path) -> Vec<String> {
        let mut names: Vec<String> = std::fs::read_dir(parent)
            .unwrap()
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect();
        names.sort();
        names
    }

    #[test]
    fn a_folder_is_made_and_removed() {
        let parent = tempfile::tempdir().unwrap();
        let one = create(parent.path()).unwrap();
        let other = create(parent.path()).unwrap();
        assert_ne!(one.path(), other.path());
        assert_eq!(one.path().metadata().unwrap().mode() & 0o777, 0o700);
        std::fs::create_dir(one.path().join("a")).unwrap();
        std::fs::write(one.path().join("a/b"), "c").unwrap();
        drop(one);
        assert!(other.path().is_dir());
        drop(other);
        assert_eq!(list_names(parent.path()), Vec::<String>::new());
    }

    #[test]
    fn only_folders_of_killed_processes_are_removed() {
        let parent = tempfile::tempdir().unwrap();
        let alive = create(parent.path()).unwrap();
        let dead = parent.path().join(format!("{PREFIX}1-0"));
        std::fs::create_dir_all(dead.join("a/b")).unwrap();
        std::fs::write(dead.with_extension(LOCK), "").unwrap();
        // Not ours: without a lock file, of another name, a link.
        std::fs::create_dir(parent.path().join(format!("{PREFIX}2-0"))).unwrap();
        std::fs::write(parent.path().join("other.lock"), "").unwrap();
        let link = parent.path().join(format!("{PREFIX}3-0.lock"));
        std::os::unix::fs::symlink("other.lock", &link).unwrap();
        drop(create(parent.path()).unwrap());
        assert!(!dead.exists() && alive.path().is_dir());
        drop(alive);
        assert_eq!(
            list_names(parent.path()),
            ["other.lock", "pinwise-test-2-0", "pinwise-test-3-0.lock"]
        );
    }

    #[test]
    fn a_folder_that_cannot_be_made_is_reported() {
        let error = create(Path::new("/proc/nothing")).unwrap_err();
        assert!(error.to_string().contains("/proc/nothing"), "{error}");
    }
}
