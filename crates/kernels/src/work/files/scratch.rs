//! A private folder that is gone afterwards, and what earlier runs left.
//!
//! Beside each folder lies a file of the same name that its owner keeps
//! locked; the lock ends with the owner, however that ends. Only folders of
//! this user, of this name, and with a lock that nobody holds are removed.

#![expect(
    unsafe_code,
    reason = "signal masks and the user's number have no safe form"
)]

use std::ffi::OsStr;
use std::fs::{DirBuilder, File, OpenOptions};
use std::io;
use std::mem::MaybeUninit;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use crate::work::KernelError;

/// Beginnings of the names of folders, and of what is beside them.
const PREFIX: &str = "pinwise-tree-";
const LOCK: &str = "lock";
/// Names that are tried before giving up.
const TRIES: u32 = 1000;

/// A private folder. It is removed when this value is dropped.
#[derive(Debug)]
pub(super) struct Scratch {
    path: PathBuf,
    lock_path: PathBuf,
    /// Locked as long as it is open.
    _lock: File,
    /// Lets signals through after all is removed, so it stands last.
    _signals: HeldSignals,
}

impl Scratch {
    /// Removes what runs that are no more left in `parent`, and makes a folder
    /// there.
    ///
    /// # Errors
    /// [`KernelError::System`] where the folder cannot be made.
    pub(super) fn new(parent: &Path) -> Result<Self, KernelError> {
        let failed = |error: io::Error| KernelError::System {
            action: format!("making a folder in {}", parent.display()),
            reason: error.to_string(),
        };
        let signals = HeldSignals::hold();
        remove_left_over(parent);
        for number in 0..TRIES {
            let name = format!("{PREFIX}{}-{number}", std::process::id());
            let path = parent.join(name);
            let lock_path = path.with_extension(LOCK);
            let Some(lock) = locked_anew(&lock_path).map_err(failed)? else {
                continue;
            };
            let scratch = Self {
                path,
                lock_path,
                _lock: lock,
                _signals: signals,
            };
            DirBuilder::new()
                .mode(0o700)
                .create(&scratch.path)
                .map_err(failed)?;
            return Ok(scratch);
        }
        Err(failed(io::ErrorKind::AlreadyExists.into()))
    }

    /// Where it is.
    pub(super) fn path(&self) -> &Path {
        &self.path
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        remove(&self.path, &self.lock_path);
    }
}

/// Makes a file and locks it; `None` where another has it, or had it removed
/// in between.
fn locked_anew(path: &Path) -> io::Result<Option<File>> {
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

/// What cannot be removed is left: the run itself is not worse for it.
#[expect(
    clippy::disallowed_methods,
    reason = "the Edge tidies up its own files"
)]
fn remove(path: &Path, lock_path: &Path) {
    let _ = std::fs::remove_dir_all(path);
    let _ = std::fs::remove_file(lock_path);
}

/// Removes the folders of owners that are gone.
#[expect(
    clippy::disallowed_methods,
    reason = "the Edge lists where its files are"
)]
fn remove_left_over(parent: &Path) {
    let Ok(entries) = std::fs::read_dir(parent) else {
        return;
    };
    for entry in entries.flatten() {
        let lock_path = entry.path();
        let name = entry.file_name();
        let is_lock = lock_path.extension() == Some(OsStr::new(LOCK));
        let is_named = name.to_str().is_some_and(|name| name.starts_with(PREFIX));
        if !(is_lock && is_named) {
            continue;
        }
        // The lock is held until all is gone.
        if let Some(_lock) = lock_of_the_gone(&lock_path) {
            remove(&lock_path.with_extension(""), &lock_path);
        }
    }
}

/// A lock file of this user that nobody holds, now held.
fn lock_of_the_gone(path: &Path) -> Option<File> {
    let mut options = OpenOptions::new();
    let file = options
        .write(true)
        .custom_flags(libc::O_NOFOLLOW)
        .open(path)
        .ok()?;
    // SAFETY: the call has no preconditions and cannot fail.
    let is_ours = file.metadata().ok()?.uid() == unsafe { libc::geteuid() };
    (is_ours && file.try_lock().is_ok()).then_some(file)
}

/// SIGINT, SIGTERM and SIGHUP are kept waiting for the calling thread and for
/// threads that it starts, and let through when this value is dropped, on the
/// thread that made it. Those that were ignored before stay ignored.
#[derive(Debug)]
struct HeldSignals {
    before: Box<libc::sigset_t>,
}

impl HeldSignals {
    fn hold() -> Self {
        let mut before = MaybeUninit::<libc::sigset_t>::zeroed();
        let held = held_signals();
        // SAFETY: both sets are initialised, as zeros are an empty set.
        let before = unsafe {
            libc::pthread_sigmask(libc::SIG_BLOCK, &raw const held, before.as_mut_ptr());
            before.assume_init()
        };
        Self {
            before: Box::new(before),
        }
    }
}

impl Drop for HeldSignals {
    fn drop(&mut self) {
        // SAFETY: the set is initialised.
        unsafe {
            libc::pthread_sigmask(
                libc::SIG_SETMASK,
                &raw const *self.before,
                std::ptr::null_mut(),
            );
        }
    }
}

/// Those of the three that would end this process.
fn held_signals() -> libc::sigset_t {
    let mut set = MaybeUninit::<libc::sigset_t>::zeroed();
    // SAFETY: all pointers are valid for the calls; zeros are valid in both
    // structures.
    unsafe {
        libc::sigemptyset(set.as_mut_ptr());
        for signal in [libc::SIGINT, libc::SIGTERM, libc::SIGHUP] {
            let mut action = MaybeUninit::<libc::sigaction>::zeroed();
            libc::sigaction(signal, std::ptr::null(), action.as_mut_ptr());
            if action.assume_init().sa_sigaction == libc::SIG_DFL {
                libc::sigaddset(set.as_mut_ptr(), signal);
            }
        }
        set.assume_init()
    }
}

/// Does a signal that was held wait to end this process?
pub(super) fn is_ending() -> bool {
    let mut pending = MaybeUninit::<libc::sigset_t>::zeroed();
    // SAFETY: the pointer is valid; zeros are an empty set.
    let pending = unsafe {
        libc::sigpending(pending.as_mut_ptr());
        pending.assume_init()
    };
    [libc::SIGINT, libc::SIGTERM, libc::SIGHUP]
        .into_iter()
        // SAFETY: the set is initialised.
        .any(|signal| unsafe { libc::sigismember(&raw const pending, signal) } == 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(parent: &Path) -> Vec<String> {
        let mut names: Vec<String> = std::fs::read_dir(parent)
            .unwrap()
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect();
        names.sort();
        names
    }

    #[test]
    fn a_folder_is_there_and_then_gone() {
        let parent = tempfile::tempdir().unwrap();
        let one = Scratch::new(parent.path()).unwrap();
        let other = Scratch::new(parent.path()).unwrap();
        assert_ne!(one.path(), other.path());
        std::fs::create_dir(one.path().join("a")).unwrap();
        std::fs::write(one.path().join("a/b"), "c").unwrap();
        drop(one);
        assert!(other.path().is_dir());
        drop(other);
        assert_eq!(names(parent.path()), Vec::<String>::new());
    }

    #[test]
    fn what_the_killed_left_is_removed_and_nothing_else() {
        let parent = tempfile::tempdir().unwrap();
        let alive = Scratch::new(parent.path()).unwrap();
        let dead = parent.path().join(format!("{PREFIX}1-0"));
        std::fs::create_dir_all(dead.join("a/b")).unwrap();
        std::fs::write(dead.with_extension(LOCK), "").unwrap();
        // Not ours: without a lock file, of another name, a link.
        std::fs::create_dir(parent.path().join(format!("{PREFIX}2-0"))).unwrap();
        std::fs::write(parent.path().join("other.lock"), "").unwrap();
        let link = parent.path().join(format!("{PREFIX}3-0.lock"));
        std::os::unix::fs::symlink("other.lock", &link).unwrap();
        drop(Scratch::new(parent.path()).unwrap());
        assert!(!dead.exists() && alive.path().is_dir());
        drop(alive);
        assert_eq!(
            names(parent.path()),
            ["other.lock", "pinwise-tree-2-0", "pinwise-tree-3-0.lock"]
        );
    }

    #[test]
    fn a_folder_that_cannot_be_made_is_reported() {
        let error = Scratch::new(Path::new("/proc/nothing")).unwrap_err();
        assert!(error.to_string().contains("/proc/nothing"), "{error}");
    }
}
