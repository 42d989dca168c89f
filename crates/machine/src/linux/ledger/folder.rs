//! Where journals are: `/run/pinwise` for root, `$XDG_RUNTIME_DIR/pinwise` for others, a folder for
//! temporary files if neither is available. Only a folder that belongs to this user and that nobody
//! else may enter is used. If another user took its name among the temporary files, one with a
//! random name is made; [`journal_folders`] finds it again.

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
    if let Some(folder) = variable("PINWISE_RUNTIME_DIR") {
        return vec![folder];
    }
    let mut folders = Vec::new();
    if sys::is_root() {
        folders.push(PathBuf::from("/run/pinwise"));
    } else if let Some(folder) = variable("XDG_RUNTIME_DIR") {
        folders.push(folder.join("pinwise"));
    }
    let temporary = temporary();
    folders.push(temporary.join(own_name()));
    folders.extend(spares(&temporary));
    folders
}

fn temporary() -> PathBuf {
    variable("TMPDIR").unwrap_or_else(|| "/tmp".into())
}

/// The name of this user's folder among temporary files.
pub(super) fn own_name() -> String {
    format!("pinwise-{}", sys::effective_user())
}

/// Folders with random names that this user made there.
pub(super) fn spares(temporary: &Path) -> Vec<PathBuf> {
    let begin = own_name() + "-";
    let names = crate::linux::capture::names(temporary).into_iter();
    let folders = names.filter(|name| name.starts_with(&begin));
    let folders = folders.map(|name| temporary.join(name));
    folders.filter(|folder| is_ours(folder)).collect()
}

#[expect(
    clippy::disallowed_methods,
    reason = "the environment says where files of this session go"
)]
fn variable(name: &str) -> Option<PathBuf> {
    let value = std::env::var_os(name)?;
    Some(PathBuf::from(value)).filter(|folder| folder.is_absolute())
}

/// The first usable of these folders; if none are given, of [`journal_folders`], or else a new one
/// with a random name.
pub(super) fn prepare(folders: &[PathBuf]) -> Result<PathBuf, LedgerError> {
    if !folders.is_empty() {
        return first_usable(folders);
    }
    let found = first_usable(&journal_folders());
    match variable("PINWISE_RUNTIME_DIR") {
        Some(_) => found,
        None => found.or_else(|error| make_spare(&temporary()).map_err(|_| error)),
    }
}

/// Makes a folder whose name nobody could have taken.
pub(super) fn make_spare(temporary: &Path) -> io::Result<PathBuf> {
    let folder = temporary.join(format!("{}-{:016x}", own_name(), sys::random_u64()));
    make(&folder).map(|()| folder)
}

fn first_usable(folders: &[PathBuf]) -> Result<PathBuf, LedgerError> {
    let mut failure = None;
    for folder in folders {
        match make(folder) {
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

/// Makes a folder, or checks that it is this user's alone.
pub(super) fn make(folder: &Path) -> io::Result<()> {
    match DirBuilder::new().mode(0o700).create(folder) {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(error),
        _ => {}
    }
    if is_ours(folder) {
        return Ok(());
    }
    Err(io::Error::new(
        io::ErrorKind::PermissionDenied,
        "it is not a private folder of this user (chmod 700)",
    ))
}

pub(super) fn is_ours(folder: &Path) -> bool {
    let is_ours = |found: std::fs::Metadata| {
        found.is_dir() && found.uid() == sys::effective_user() && found.mode() & 0o077 == 0
    };
    std::fs::symlink_metadata(folder).is_ok_and(is_ours)
}

/// Replaces a journal by one with this text, locked before it gets its name: an unlocked journal
/// counts as abandoned.
pub(super) fn write_journal(path: &Path, text: &str) -> io::Result<File> {
    use std::io::Write;
    let first = add_suffix(path, ".new");
    remove(&first);
    let folder = (|| {
        let mut options = std::fs::OpenOptions::new();
        let mut file = options
            .create_new(true)
            .write(true)
            .mode(0o600)
            .open(&first)?;
        file.lock()?;
        file.write_all(text.as_bytes())?;
        std::fs::rename(&first, path)?;
        Ok(file)
    })();
    if folder.is_err() {
        remove(&first);
    }
    folder
}

/// The path with a suffix appended.
pub(super) fn add_suffix(path: &Path, ending: &str) -> PathBuf {
    let mut name = path.to_owned().into_os_string();
    name.push(ending);
    name.into()
}

/// The name of a process's journal.
pub(super) fn journal_path(folder: &Path, boot: &str, pid: u32, turn: u64) -> PathBuf {
    let turn = if turn == 0 {
        String::new()
    } else {
        format!("-{turn}")
    };
    folder.join(format!("{boot}-{pid}{turn}{SUFFIX}"))
}

/// Journals in the folders of this user.
pub(super) fn journals(folders: &[PathBuf]) -> Vec<PathBuf> {
    let ours = folders.iter().filter(|folder| is_ours(folder));
    let all = ours.flat_map(|folder| {
        let names = crate::linux::capture::names(folder);
        names.into_iter().map(|name| folder.join(name))
    });
    all.filter(|path| path.extension() == Some(OsStr::new(&SUFFIX[1..])))
        .collect()
}

/// Opens a journal whose writer has ended, and locks it; `None` if the writer or its guardian still
/// runs.
pub(super) fn open_left(path: &Path) -> io::Result<Option<File>> {
    wait_for_lock(open(path)?, Duration::ZERO)
}

/// Locks the file; `None` if somebody holds the lock for longer than `patience`.
fn wait_for_lock(file: File, patience: Duration) -> io::Result<Option<File>> {
    let end = sys::monotonic() + patience;
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

pub(super) fn open(path: &Path) -> io::Result<File> {
    std::fs::OpenOptions::new()
        .read(true)
        .write(true)
        .custom_flags(libc::O_CLOEXEC | libc::O_NOFOLLOW | libc::O_NONBLOCK)
        .open(path)
}

/// Removes a file; a missing one is no error.
#[expect(
    clippy::disallowed_methods,
    reason = "the Edge removes its own journals"
)]
pub(super) fn remove(path: &Path) {
    let _ = std::fs::remove_file(path);
}

/// Takes a lock that has its own file, made if missing; `None` if somebody holds it for longer than
/// `patience`.
pub(super) fn lock(path: &Path, patience: Duration) -> io::Result<Option<File>> {
    let mut options = std::fs::OpenOptions::new();
    options.create(true).truncate(false).write(true).mode(0o600);
    let file = options.custom_flags(libc::O_NOFOLLOW).open(path)?;
    wait_for_lock(file, patience)
}

/// The file whose lock keeps others from writing a rules journal.
pub(super) fn rules_lock(journal: &Path) -> PathBuf {
    add_suffix(journal, ".lock")
}
