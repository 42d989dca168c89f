//! The file of a journal: lines are added, or the whole is written anew.
//!
//! A file without its name serves nobody: folders for things of a session go at
//! logout, with what is in them. So the name is looked at before it is relied on.

use std::fs::File;
use std::io::{self, Seek, SeekFrom, Write};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use super::folder;

/// A journal that is being written.
#[derive(Debug)]
pub(super) struct JournalFile {
    pub(super) path: PathBuf,
    pub(super) file: File,
    /// Bytes that are whole lines.
    length: u64,
    pub(super) lines: usize,
}

impl JournalFile {
    /// Makes it, locked, with this text.
    pub(super) fn create(path: PathBuf, text: &str) -> io::Result<Self> {
        Ok(Self {
            file: folder::write_journal(&path, text)?,
            path,
            length: text.len() as u64,
            lines: text.lines().count(),
        })
    }

    /// Is it what its name leads to, in a folder that is still this user's?
    pub(super) fn is_linked(&self) -> bool {
        is_at(&self.file, &self.path)
    }

    /// Adds a line, or nothing.
    pub(super) fn append(&mut self, line: &str) -> io::Result<()> {
        if let Err(error) = self.file.write_all(line.as_bytes()) {
            // Half a line must not spoil the next one.
            self.cut();
            return Err(error);
        }
        self.length += line.len() as u64;
        self.lines += 1;
        Ok(())
    }

    /// Takes the last line back, which was this one.
    pub(super) fn take_back(&mut self, line: &str) {
        self.length -= line.len() as u64;
        self.lines -= 1;
        self.cut();
    }

    fn cut(&mut self) {
        let _ = self.file.set_len(self.length);
        let _ = self.file.seek(SeekFrom::Start(self.length));
    }

    /// Writes the whole anew; a folder that is gone is made again.
    pub(super) fn rewrite(&mut self, text: &str) -> io::Result<()> {
        folder::make(self.path.parent().unwrap_or(Path::new("/")))?;
        *self = Self::create(self.path.clone(), text)?;
        Ok(())
    }

    /// Removes it where its name still leads to it.
    pub(super) fn remove(&self) {
        if self.is_linked() {
            folder::remove(&self.path);
        }
    }
}

/// Does this path lead to this file, in a folder that is this user's alone?
pub(super) fn is_at(file: &File, path: &Path) -> bool {
    path.parent().is_some_and(folder::is_ours) && leads_to(path, file)
}

/// Does this path lead to this file?
pub(in crate::machine::linux) fn leads_to(path: &Path, file: &File) -> bool {
    let number = |found: std::fs::Metadata| (found.dev(), found.ino());
    let named = std::fs::symlink_metadata(path).map(number);
    named.is_ok_and(|named| file.metadata().is_ok_and(|own| number(own) == named))
}
