//! Folders for journals: `/run/pinwise` for root, `$XDG_RUNTIME_DIR/pinwise` for other users, or,
//! if that is not available, a folder below `$TMPDIR` or `/tmp`. A folder is used only if it
//! belongs to this user and nobody else may enter it. If another user has taken the name of the
//! temporary folder, one with a random name is created; [`journal_folders`] finds it again.

use std::ffi::OsStr;
use std::fs::{DirBuilder, File, TryLockError};
use std::io;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::LedgerError;
use crate::linux::sys;

/// The extension of journals.
const SUFFIX: &str = ".journal";

/// The folders that may hold journals of this user, the preferred one first.
#[must_use]
pub fn journal_folders() -> Vec<PathBuf> {
    if let Some(folder) = folder_from_environment("PINWISE_RUNTIME_DIR") {
        return vec![folder];
    }
    let mut folders = Vec::new();
    if sys::is_root() {
        folders.push(PathBuf::from("/run/pinwise"));
    } else if let Some(folder) = folder_from_environment("XDG_RUNTIME_DIR") {
        folders.push(folder.join("pinwise"));
    }
    let temporary = temporary_folder();
    folders.push(temporary.join(own_folder_name()));
    folders.extend(find_random_folders(&temporary));
    folders
}

fn temporary_folder() -> PathBuf {
    folder_from_environment("TMPDIR").unwrap_or_else(|| "/tmp".into())
}

/// The name of this user's folder among temporary files.
pub(super) fn own_folder_name() -> String {
    format!("pinwise-{}", sys::effective_user())
}

/// Finds the folders with random names that this user has created.
pub(super) fn find_random_folders(temporary: &Path) -> Vec<PathBuf> {
    let prefix = own_folder_name() + "-";
    let names = crate::linux::capture::list_names(temporary).into_iter();
    let folders = names.filter(|name| name.starts_with(&prefix));
    let folders = folders.map(|name| temporary.join(name));
    folders.filter(|folder| is_private(folder)).collect()
}

#[expect(
    clippy::disallowed_methods,
    reason = "the environment says where files of this session go"
)]
fn folder_from_environment(name: &str) -> Option<PathBuf> {
    let value = std::env::var_os(name)?;
    Some(PathBuf::from(value)).filter(|folder| folder.is_absolute())
}

/// Creates or finds the first usable one of these folders. If none are given, it tries
/// [`journal_folders`], and creates one with a random name if none of them is usable.
pub(super) fn prepare_folder(folders: &[PathBuf]) -> Result<PathBuf, LedgerError> {
    if !folders.is_empty() {
        return prepare_first_usable(folders);
    }
    let found = prepare_first_usable(&journal_folders());
    match folder_from_environment("PINWISE_RUNTIME_DIR") {
        Some(_) => found,
        None => found.or_else(|error| make_random_folder(&temporary_folder()).map_err(|_| error)),
    }
}

/// Creates a folder whose name nobody can have taken.
pub(super) fn make_random_folder(temporary: &Path) -> io::Result<PathBuf> {
    let folder = temporary.join(format!("{}-{:016x}", own_folder_name(), sys::random_u64()));
    make_private(&folder).map(|()| folder)
}

fn prepare_first_usable(folders: &[PathBuf]) -> Result<PathBuf, LedgerError> {
    let mut failure = None;
    for folder in folders {
        match make_private(folder) {
            Ok(()) => return Ok(folder.clone()),
            Err(error) => {
                failure.get_or_insert((folder.clone(), error));
            }
        }
    }
    let (path, reason) =
        failure.unwrap_or_else(|| (PathBuf::new(), io::Error::from(io::ErrorKind::NotFound)));
    Err(LedgerError::Folder { path, reason })
}

/// Creates a folder, or checks that the existing one is private.
pub(super) fn make_private(folder: &Path) -> io::Result<()> {
    match DirBuilder::new().mode(0o700).create(folder) {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(error),
        _ => {}
    }
    if is_private(folder) {
        return Ok(());
    }
    Err(io::Error::new(
        io::ErrorKind::PermissionDenied,
        "it is not a private folder of this user (chmod 700)",
    ))
}

/// Does the folder belong to this user, and may nobody else enter it?
pub(super) fn is_private(folder: &Path) -> bool {
    let is_private = |found: std::fs::Metadata| {
        found.is_dir() && found.uid() == sys::effective_user() && found.mode() & 0o077 == 0
    };
    std::fs::symlink_metadata(folder).is_ok_and(is_private)
}

/// Replaces a journal by one with this text. It is locked before it gets its name, since an unlocked
/// journal counts as abandoned.
pub(super) fn write_journal(path: &Path, text: &str) -> io::Result<File> {
    use std::io::Write;
    let temporary = add_suffix(path, ".new");
    remove_file(&temporary);
    let written = (|| {
        let mut options = std::fs::OpenOptions::new();
        let mut file = options
            .create_new(true)
            .write(true)
            .mode(0o600)
            .open(&temporary)?;
        file.lock()?;
        file.write_all(text.as_bytes())?;
        std::fs::rename(&temporary, path)?;
        Ok(file)
    })();
    if written.is_err() {
        remove_file(&temporary);
    }
    written
}

pub(super) fn add_suffix(path: &Path, suffix: &str) -> PathBuf {
    let mut name = path.to_owned().into_os_string();
    name.push(suffix);
    name.into()
}

/// The path of a process's journal; `number` counts its journals from 0.
pub(super) fn journal_path(folder: &Path, boot: &str, pid: u32, number: u64) -> PathBuf {
    let number = if number == 0 {
        String::new()
    } else {
        format!("-{number}")
    };
    folder.join(format!("{boot}-{pid}{number}{SUFFIX}"))
}

/// Lists the journals in these folders, except in those that others may enter.
pub(super) fn list_journals(folders: &[PathBuf]) -> Vec<PathBuf> {
    let private = folders.iter().filter(|folder| is_private(folder));
    let all = private.flat_map(|folder| {
        let names = crate::linux::capture::list_names(folder);
        names.into_iter().map(|name| folder.join(name))
    });
    all.filter(|path| path.extension() == Some(OsStr::new(&SUFFIX[1..])))
        .collect()
}

/// Opens and locks a journal; `None` if its writer or guardian still runs.
pub(super) fn open_abandoned(path: &Path) -> io::Result<Option<File>> {
    wait_for_lock(open_journal(path)?, Duration::ZERO)
}

/// Locks the file; `None` if somebody holds the lock for longer than `timeout`.
fn wait_for_lock(file: File, timeout: Duration) -> io::Result<Option<File>> {
    let end = sys::monotonic() + timeout;
    loop {
        match file.try_lock() {
            Ok(()) => return Ok(Some(file)),
            Err(TryLockError::Error(error)) => return Err(error),
            Err(TryLockError::WouldBlock) if sys::monotonic() >= end => return Ok(None),
            Err(TryLockError::WouldBlock) => {
                sys::poll([], Some(Duration::from_millis(20)));
            }
        }
    }
}

pub(super) fn open_journal(path: &Path) -> io::Result<File> {
    std::fs::OpenOptions::new()
        .read(true)
        .write(true)
        .custom_flags(libc::O_CLOEXEC | libc::O_NOFOLLOW | libc::O_NONBLOCK)
        .open(path)
}

/// Removes a file, which may be missing.
#[expect(
    clippy::disallowed_methods,
    reason = "the Edge removes its own journals"
)]
pub(super) fn remove_file(path: &Path) {
    let _ = std::fs::remove_file(path);
}

/// Locks a file that serves as a lock, and creates it if it is missing; `None` if somebody holds
/// the lock for longer than `timeout`.
pub(super) fn lock_file(path: &Path, timeout: Duration) -> io::Result<Option<File>> {
    let mut options = std::fs::OpenOptions::new();
    options.create(true).truncate(false).write(true).mode(0o600);
    let file = options.custom_flags(libc::O_NOFOLLOW).open(path)?;
    wait_for_lock(file, timeout)
}

/// The path of the lock file of a rules journal.
pub(super) fn rules_lock_path(journal: &Path) -> PathBuf {
    add_suffix(journal, ".lock")
}
