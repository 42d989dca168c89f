//! Opens a file for writing, and creates what is missing, or for reading, and changes nothing.
//!
//! A file may come from another user: its schema can run only harmless functions
//! (`trusted_schema`), and a file that is not a store is left unchanged.

use std::fs::{DirBuilder, OpenOptions};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::time::Duration;

use rusqlite::{Connection, ErrorCode, OpenFlags};

use super::schema::{self, VERSION};
use super::{Sqlite, is_transient};
use crate::StoreError;
use crate::journal;

/// How long to wait for another process's lock.
const LOCK_TIMEOUT: Duration = Duration::from_secs(5);
/// Interval of polling a lock where SQLite does not wait itself.
const POLL_INTERVAL: Duration = Duration::from_millis(10);

/// The purpose of opening a store.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Access {
    Writing,
    Reading,
    /// Reading where nothing can be written, not even SQLite's index of its log: the file is
    /// assumed not to change.
    Immutable,
    /// There is no file: an empty store in memory replaces it.
    Absent,
}

impl Sqlite {
    /// Opens a store, making file, folder and tables if they are missing, private to this user.
    ///
    /// # Errors
    /// [`StoreError`] if it cannot be opened, is locked, damaged or of another version.
    pub(crate) fn open(path: &Path) -> Result<Self, StoreError> {
        create_private_file(path)?;
        let mut store = Self::connect(path, Access::Writing)?;
        store.refuse_foreign_files()?;
        store.configure().map_err(|error| store.explain(&error))?;
        store
            .create_tables()
            .map_err(|error| store.explain(&error))?;
        store
            .adopt_orphans()
            .map_err(|error| store.explain(&error))?;
        Ok(store)
    }

    /// Opens a store for reading. A missing one is empty, and is not made.
    ///
    /// # Errors
    /// [`StoreError`] if it cannot be opened, is locked, damaged or of another version.
    pub(crate) fn open_to_read(path: &Path) -> Result<Self, StoreError> {
        if let Some(absent) = Self::open_if_missing(path)? {
            return Ok(absent);
        }
        let store = Self::connect_to_read(path)?;
        store.refuse_foreign_files()?;
        let version = store.version().map_err(|error| store.explain(&error))?;
        if version != VERSION {
            // The file is empty, as its tables are not created yet.
            drop(store);
            return Self::open(path);
        }
        if store.access == Access::Reading {
            let result = store.connection.pragma_update(None, "query_only", true);
            result.map_err(|error| store.explain(&error))?;
        }
        Ok(store)
    }

    /// Opens a store to change its records. A missing one is empty, and is not made.
    ///
    /// # Errors
    /// [`StoreError`] if it cannot be opened, is locked, damaged or of another version.
    pub(crate) fn open_to_change(path: &Path) -> Result<Self, StoreError> {
        match Self::open_if_missing(path)? {
            Some(absent) => Ok(absent),
            None => Self::open(path),
        }
    }

    /// An empty store in place of a missing file; `None` if the file exists.
    fn open_if_missing(path: &Path) -> Result<Option<Self>, StoreError> {
        match std::fs::metadata(path) {
            Ok(found) if found.is_file() => return Ok(None),
            Ok(_) => return Err(open_error(path, &NOT_A_FILE)),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {}
            Err(error) => return Err(open_error(path, &error)),
        }
        let mut store = Self::connect(path, Access::Absent)?;
        store
            .create_tables()
            .map_err(|error| store.explain(&error))?;
        Ok(Some(store))
    }

    /// A user who may write the file opens it like a writer and sees all changes. Any other user
    /// can do so while writers keep a log, whose index is then shared; without a log the file is
    /// read as immutable.
    fn connect_to_read(path: &Path) -> Result<Self, StoreError> {
        let may_write = OpenOptions::new().write(true).open(path).is_ok();
        let has_log = log_bytes(path) > 0;
        if may_write || has_log {
            let store = Self::connect(path, Access::Reading)?;
            // SQLite may not be allowed to create its files in the folder.
            let is_readable = !matches!(
                store.version().map_err(|error| store.explain(&error)),
                Err(StoreError::Open { .. } | StoreError::Write { .. })
            );
            if is_readable || has_log {
                return Ok(store);
            }
        }
        Self::connect(path, Access::Immutable)
    }

    fn connect(path: &Path, access: Access) -> Result<Self, StoreError> {
        let connection = match access {
            Access::Absent => Connection::open_in_memory(),
            Access::Immutable => Connection::open_with_flags(
                immutable_uri(path),
                OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_URI | UNSHARED,
            ),
            Access::Reading | Access::Writing => {
                Connection::open_with_flags(path, OpenFlags::SQLITE_OPEN_READ_WRITE | UNSHARED)
            }
        };
        let store = Self {
            connection: connection.map_err(|error| StoreError::Open {
                path: path.display().to_string(),
                reason: super::short_reason(&error),
            })?,
            path: path.to_owned(),
            access,
            journal: None,
        };
        let apply_limits = || -> rusqlite::Result<()> {
            store.connection.busy_timeout(LOCK_TIMEOUT)?;
            store
                .connection
                .pragma_update(None, "trusted_schema", false)
        };
        apply_limits().map_err(|error| store.explain(&error))?;
        Ok(store)
    }

    fn configure(&self) -> rusqlite::Result<()> {
        self.enable_write_ahead_log()?;
        self.connection
            .pragma_update(None, "synchronous", "NORMAL")?;
        self.connection.pragma_update(None, "foreign_keys", true)
    }

    /// Switches to write-ahead logging. While other processes create the same store, SQLite does
    /// not wait: two readers that both want to change the mode would wait for each other. So this
    /// function polls.
    fn enable_write_ahead_log(&self) -> rusqlite::Result<()> {
        let change = || self.connection.pragma_update(None, "journal_mode", "WAL");
        let is_locked =
            |error: &rusqlite::Error| error.sqlite_error_code() == Some(ErrorCode::DatabaseBusy);
        self.connection.busy_timeout(Duration::ZERO)?;
        let mut changed = change();
        let mut waited = Duration::ZERO;
        while changed.as_ref().is_err_and(is_locked) && waited < LOCK_TIMEOUT {
            std::thread::sleep(POLL_INTERVAL);
            waited += POLL_INTERVAL;
            changed = change();
        }
        self.connection.busy_timeout(LOCK_TIMEOUT)?;
        changed
    }

    /// Checks before any change: a store of another version, and a file that is not a store, are
    /// left as they are.
    fn refuse_foreign_files(&self) -> Result<(), StoreError> {
        let found = self.version().map_err(|error| self.explain(&error))?;
        let path = self.path.display().to_string();
        if found != 0 && found != VERSION {
            return Err(StoreError::OtherVersion {
                path,
                found,
                known: VERSION,
            });
        }
        if found == 0 && self.has_tables().map_err(|error| self.explain(&error))? {
            let reason = "it is a database of another program".to_owned();
            return Err(StoreError::Damaged { path, reason });
        }
        Ok(())
    }

    fn version(&self) -> rusqlite::Result<i64> {
        self.connection
            .pragma_query_value(None, "user_version", |row| row.get(0))
    }

    fn has_tables(&self) -> rusqlite::Result<bool> {
        let mut tables = self.connection.prepare("SELECT 1 FROM sqlite_schema")?;
        let found = tables.exists([])?;
        // Another process may just have created them and set the version.
        Ok(found && self.version()? == 0)
    }

    fn create_tables(&mut self) -> rusqlite::Result<()> {
        if self.version()? == VERSION {
            return Ok(());
        }
        schema::create_tables(&mut self.connection)
    }

    /// Takes in the journals whose writers have ended.
    fn adopt_orphans(&mut self) -> rusqlite::Result<()> {
        for orphan in journal::lock_orphans(&self.path) {
            match self.adopt(&orphan) {
                Ok(()) => orphan.remove(),
                // If nothing can be written for now, as on a full disk, its runs are read from the
                // journal.
                Err(error) if is_transient(&error) => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }
}

/// SQLite need not lock the connection: one thread at a time uses it.
const UNSHARED: OpenFlags = OpenFlags::SQLITE_OPEN_NO_MUTEX;

/// Why a folder, pipe or device is not a store.
const NOT_A_FILE: &str = "it is not a file";

fn open_error(path: &Path, error: &dyn std::fmt::Display) -> StoreError {
    StoreError::Open {
        path: path.display().to_string(),
        reason: error.to_string(),
    }
}

/// Makes folder and file if they are missing; SQLite gives its log the file's mode. Existing ones
/// keep their mode.
fn create_private_file(path: &Path) -> Result<(), StoreError> {
    if let Some(folder) = path.parent().filter(|f| !f.as_os_str().is_empty()) {
        let mut builder = DirBuilder::new();
        let created = builder.recursive(true).mode(0o700).create(folder);
        created.map_err(|error| open_error(path, &error))?;
    }
    let mut options = OpenOptions::new();
    match { options.write(true).create_new(true).mode(0o600) }.open(path) {
        Err(error) if error.kind() != std::io::ErrorKind::AlreadyExists => {
            Err(open_error(path, &error))
        }
        Err(_) if !path.is_file() => Err(open_error(path, &NOT_A_FILE)),
        _ => Ok(()),
    }
}

/// Bytes of the log beside a file.
pub(super) fn log_bytes(path: &Path) -> u64 {
    let mut log = path.as_os_str().to_owned();
    log.push("-wal");
    std::fs::metadata(PathBuf::from(log)).map_or(0, |found| found.len())
}

/// The URI that opens the file as immutable (<https://www.sqlite.org/uri.html>).
fn immutable_uri(path: &Path) -> String {
    let mut uri = String::from("file:");
    for &byte in path.as_os_str().as_bytes() {
        if byte.is_ascii_alphanumeric() || b"/._-".contains(&byte) {
            uri.push(char::from(byte));
        } else {
            uri.push_str(&format!("%{byte:02X}"));
        }
    }
    uri + "?immutable=1"
}

#[cfg(test)]
mod tests;
