//! The file of a journal: lines are appended, or the whole is rewritten.
//!
//! A file without a name is useless: session folders are removed at logout with their contents. So
//! the name is checked before the file is relied on.

use std::fs::{DirBuilder, File};
use std::io::{self, Seek, SeekFrom, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::{LedgerError, folder};

/// The file whose lock covers host-wide changes.
const HOST_LOCK: &str = "host.lock";

/// The path of a journal.
#[derive(Debug, Clone)]
pub(super) struct Place {
    pub(super) path: PathBuf,
    /// Named by the user, whose folder is used as is; other folders are used only if nobody else
    /// may enter them.
    pub(super) is_named: bool,
}

impl Place {
    /// Makes the folder if it is missing.
    pub(super) fn make_folder(&self) -> io::Result<()> {
        let folder = self.path.parent().unwrap_or(Path::new("/"));
        match self.is_named {
            false => folder::make_private(folder),
            true if folder.exists() => Ok(()),
            true => DirBuilder::new().recursive(true).mode(0o700).create(folder),
        }
    }

    /// Can the folder be trusted? Otherwise each file in it must be checked.
    pub(super) fn is_ours(&self) -> bool {
        self.is_named || self.path.parent().is_some_and(folder::is_private)
    }

    /// Does the path lead to this file?
    pub(super) fn leads_to(&self, file: &File) -> bool {
        let number = |found: std::fs::Metadata| (found.dev(), found.ino());
        let named = std::fs::symlink_metadata(&self.path).map(number);
        let is_it = named.is_ok_and(|named| file.metadata().is_ok_and(|own| number(own) == named));
        is_it && self.is_ours()
    }
}

/// An open journal.
#[derive(Debug)]
pub(super) struct JournalFile {
    pub(super) place: Place,
    pub(super) file: File,
    /// Bytes of complete lines.
    length: u64,
    pub(super) lines: usize,
}

impl JournalFile {
    /// Makes it, locked, with this text.
    pub(super) fn create(place: Place, text: &str) -> io::Result<Self> {
        Ok(Self {
            file: folder::write_journal(&place.path, text)?,
            place,
            length: text.len() as u64,
            lines: text.lines().count(),
        })
    }

    /// Does its name still lead to it, in a folder that is still this user's?
    pub(super) fn is_linked(&self) -> bool {
        self.place.leads_to(&self.file)
    }

    /// Appends a whole line or nothing.
    pub(super) fn append(&mut self, line: &str) -> io::Result<()> {
        if let Err(error) = self.file.write_all(line.as_bytes()) {
            // Half a line must not corrupt the next one.
            self.cut();
            return Err(error);
        }
        self.length += line.len() as u64;
        self.lines += 1;
        Ok(())
    }

    /// Removes the last line, which was this one.
    pub(super) fn take_back(&mut self, line: &str) {
        self.length -= line.len() as u64;
        self.lines -= 1;
        self.cut();
    }

    fn cut(&mut self) {
        let _ = self.file.set_len(self.length);
        let _ = self.file.seek(SeekFrom::Start(self.length));
    }

    /// Rewrites the whole; recreates a missing folder.
    pub(super) fn rewrite(&mut self, text: &str) -> io::Result<()> {
        self.place.make_folder()?;
        *self = Self::create(self.place.clone(), text)?;
        Ok(())
    }

    /// Removes the file if its name still leads to it.
    pub(super) fn remove(&self) {
        if self.is_linked() {
            folder::remove(&self.place.path);
        }
    }
}

/// Recreates a removed journal, so that `restore` finds it.
pub(super) fn write_again(place: &Place, text: &str) {
    if place.make_folder().is_ok() {
        let _ = folder::write_journal(&place.path, text);
    }
}

/// Opens and locks a journal, waiting for a `restore` of this user.
pub(super) fn open_locked(place: &Place) -> io::Result<File> {
    if !place.is_ours() {
        return Err(io::ErrorKind::NotFound.into());
    }
    let file = folder::open(&place.path)?;
    file.lock()?;
    Ok(file)
}

/// Takes the lock for host-wide changes; also returns where it is.
pub(super) fn lock_host(journals: &Path) -> Result<(Place, File), LedgerError> {
    let path = journals.join(HOST_LOCK);
    match folder::lock(&path, Duration::ZERO) {
        Ok(Some(file)) => {
            let is_named = false;
            Ok((Place { path, is_named }, file))
        }
        Ok(None) => Err(LedgerError::Busy(path)),
        Err(reason) => Err(LedgerError::Folder { path, reason }),
    }
}
