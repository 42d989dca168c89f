//! The file of a journal, to which lines are appended, or which is written anew.
//!
//! Folders of a session are removed with their contents at logout, and a file without a name is of
//! no use. So it is checked whether the path still leads to the file before the file is relied on.

use std::fs::{DirBuilder, File};
use std::io::{self, Seek, SeekFrom, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::{LedgerError, folder};

/// The file whose lock covers host-wide changes.
const HOST_LOCK: &str = "host.lock";

/// Where a journal or a lock file is.
#[derive(Debug, Clone)]
pub(super) struct JournalPath {
    pub(super) path: PathBuf,
    /// Did the user name it? Then its folder is used as it is; other folders are used only if
    /// nobody else may enter them.
    pub(super) is_named: bool,
}

impl JournalPath {
    /// Creates the folder if it is missing.
    pub(super) fn make_folder(&self) -> io::Result<()> {
        let folder = self.path.parent().unwrap_or(Path::new("/"));
        match self.is_named {
            false => folder::make_private(folder),
            true if folder.exists() => Ok(()),
            true => DirBuilder::new().recursive(true).mode(0o700).create(folder),
        }
    }

    /// Was the folder named by the user, or is it private?
    pub(super) fn is_trusted(&self) -> bool {
        self.is_named || self.path.parent().is_some_and(folder::is_private)
    }

    /// Does the path lead to this file?
    pub(super) fn leads_to(&self, file: &File) -> bool {
        let identify = |found: std::fs::Metadata| (found.dev(), found.ino());
        let at_path = std::fs::symlink_metadata(&self.path).map(identify);
        let own = file.metadata().map(identify);
        at_path.is_ok_and(|at_path| own.is_ok_and(|own| own == at_path)) && self.is_trusted()
    }
}

/// An open journal.
#[derive(Debug)]
pub(super) struct JournalFile {
    pub(super) path: JournalPath,
    pub(super) file: File,
    /// Bytes of complete lines.
    length: u64,
    pub(super) lines: usize,
}

impl JournalFile {
    /// Creates it, locked, with this text.
    pub(super) fn create(path: JournalPath, text: &str) -> io::Result<Self> {
        Ok(Self {
            file: folder::write_journal(&path.path, text)?,
            path,
            length: text.len() as u64,
            lines: text.lines().count(),
        })
    }

    /// Does its path still lead to it, in a trusted folder?
    pub(super) fn is_linked(&self) -> bool {
        self.path.leads_to(&self.file)
    }

    /// Appends a line completely or not at all.
    pub(super) fn append(&mut self, line: &str) -> io::Result<()> {
        if let Err(error) = self.file.write_all(line.as_bytes()) {
            // Part of a line would corrupt the next one.
            self.truncate();
            return Err(error);
        }
        self.length += line.len() as u64;
        self.lines += 1;
        Ok(())
    }

    /// Removes this line, which must be the last one.
    pub(super) fn remove_last_line(&mut self, line: &str) {
        self.length -= line.len() as u64;
        self.lines -= 1;
        self.truncate();
    }

    /// Removes everything after the complete lines.
    fn truncate(&mut self) {
        let _ = self.file.set_len(self.length);
        let _ = self.file.seek(SeekFrom::Start(self.length));
    }

    /// Writes the file anew; creates a missing folder.
    pub(super) fn rewrite(&mut self, text: &str) -> io::Result<()> {
        self.path.make_folder()?;
        *self = Self::create(self.path.clone(), text)?;
        Ok(())
    }

    /// Removes the file if its path still leads to it.
    pub(super) fn remove(&self) {
        if self.is_linked() {
            folder::remove_file(&self.path.path);
        }
    }
}

/// Creates a removed journal again, so that `restore` finds it.
pub(super) fn recreate(path: &JournalPath, text: &str) {
    if path.make_folder().is_ok() {
        let _ = folder::write_journal(&path.path, text);
    }
}

/// Opens and locks a journal; waits while a `restore` of this user has the lock.
pub(super) fn open_locked(path: &JournalPath) -> io::Result<File> {
    if !path.is_trusted() {
        return Err(io::ErrorKind::NotFound.into());
    }
    let file = folder::open_journal(&path.path)?;
    file.lock()?;
    Ok(file)
}

/// Takes the lock for host-wide changes; also returns its path.
pub(super) fn lock_host(journals: &Path) -> Result<(JournalPath, File), LedgerError> {
    let path = journals.join(HOST_LOCK);
    match folder::lock_file(&path, Duration::ZERO) {
        Ok(Some(file)) => {
            let is_named = false;
            Ok((JournalPath { path, is_named }, file))
        }
        Ok(None) => Err(LedgerError::Busy(path)),
        Err(reason) => Err(LedgerError::Folder { path, reason }),
    }
}
