//! The folder that submitter and nodes share.
//!
//! ```text
//! FOLDER/fleet.json                       what was asked; the submitter's
//! FOLDER/submission.json                  how it was asked, for resumptions
//! FOLDER/pinwise                          the executable, carried along
//! FOLDER/nodes/NODE/begun-ATTEMPT.json    an attempt has begun
//! FOLDER/nodes/NODE/ended-ATTEMPT.json    and has ended by itself
//! FOLDER/nodes/NODE/STEP.json             the record of a step
//! FOLDER/nodes/NODE/STEP.done.json        how long it took, in which attempt
//! FOLDER/nodes/NODE/STEP.failed-ATTEMPT.json
//! FOLDER/nodes/NODE/node.json             all of that in one record
//! FOLDER/nodes/NODE/log                   what the node's pinwise told
//! ```
//!
//! Nothing half-written is ever seen under one of these names: a file is
//! written beside, synchronised, and given its name by `link`, which refuses
//! where the name is taken, so that the first record of a step counts; or by
//! `rename` where the newest shall. What cannot be read is told, not believed.

use std::io::{self, Read, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

use serde::Serialize;
use serde::de::DeserializeOwned;

use super::hostlist::is_plain;
use super::node_folder::NodeFolder;
use super::submission::Submission;
use crate::record::{FLEET_SCHEMA, FleetRecord, RecordError};

/// Largest file that is read, bytes; a trace's record may be long.
const LARGEST: u64 = 256 * 1024 * 1024;
/// Names that are tried for a file that is being written.
const MOST_TEMPORARY: usize = 10_000;

/// Why a folder cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum FolderError {
    /// It is there already.
    #[error(
        "{path} is there already: two fleets cannot share a folder (choose another with --dir or --id)"
    )]
    Exists {
        /// The folder.
        path: String,
    },
    /// It is no fleet's.
    #[error("{path}: no fleet is there ({reason})")]
    NoFleet {
        /// The folder.
        path: String,
        /// The system's words.
        reason: io::Error,
    },
    /// A file cannot be read or written.
    #[error("{path}: {reason}")]
    File {
        /// Which.
        path: String,
        /// The system's words.
        reason: io::Error,
    },
    /// A file is not what it should be.
    #[error("{path}: {reason}")]
    Damaged {
        /// Which.
        path: String,
        /// Why.
        reason: String,
    },
}

impl FolderError {
    /// A file that the system does not give or take.
    pub(super) fn file(path: &Path, reason: io::Error) -> Self {
        Self::File {
            path: path.display().to_string(),
            reason,
        }
    }

    /// A file that does not hold what it should.
    pub(super) fn damaged(path: &Path, reason: impl ToString) -> Self {
        Self::Damaged {
            path: path.display().to_string(),
            reason: reason.to_string(),
        }
    }
}

/// A fleet's folder.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FleetFolder {
    path: PathBuf,
}

impl FleetFolder {
    /// Makes the folder of a new fleet, with its record, how it was asked for,
    /// and the executable that its nodes run.
    ///
    /// # Errors
    /// [`FolderError`] where it is there already or cannot be made; what was
    /// made of it is then gone again.
    pub fn create(
        path: &Path,
        record: &FleetRecord,
        submission: &Submission,
        program: &Path,
    ) -> Result<Self, FolderError> {
        let wrong = |error| FolderError::file(path, error);
        if let Some(parent) = path.parent().filter(|p| !p.as_os_str().is_empty()) {
            std::fs::create_dir_all(parent).map_err(|e| FolderError::file(parent, e))?;
        }
        match std::fs::create_dir(path) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                let path = path.display().to_string();
                return Err(FolderError::Exists { path });
            }
            made => made.map_err(wrong)?,
        }
        // Where nodes stand has to be the same for all.
        let made = path.canonicalize().map_err(wrong).and_then(|path| {
            let folder = Self { path };
            folder.fill(record, submission, program)?;
            Ok(folder)
        });
        if made.is_err() {
            // Only what was made here a moment ago.
            let _ = std::fs::remove_dir_all(path);
        }
        made
    }

    fn fill(
        &self,
        record: &FleetRecord,
        submission: &Submission,
        program: &Path,
    ) -> Result<(), FolderError> {
        for name in ["nodes", "files"] {
            let path = self.path.join(name);
            std::fs::create_dir(&path).map_err(|e| FolderError::file(&path, e))?;
        }
        let carried = self.program();
        std::fs::copy(program, &carried).map_err(|e| FolderError::file(&carried, e))?;
        let mode = std::fs::Permissions::from_mode(0o755);
        std::fs::set_permissions(&carried, mode).map_err(|e| FolderError::file(&carried, e))?;
        // It may hold the password of a store.
        let secret = self.path.join("submission.json");
        put(&secret, &json(submission), How::Replace, 0o600)?;
        self.write_record(record)
    }

    /// Removes the folder of a fleet of which nothing was submitted.
    pub fn discard(self) {
        // What is left of it is seen by whoever chooses its name again.
        let _ = std::fs::remove_dir_all(&self.path);
    }

    /// The fleet that a folder is of. It may have been copied from elsewhere.
    ///
    /// # Errors
    /// [`FolderError`] where there is none, or its record cannot be read.
    pub fn open(path: &Path) -> Result<(Self, FleetRecord), FolderError> {
        let no_fleet = |reason| FolderError::NoFleet {
            path: path.display().to_string(),
            reason,
        };
        let folder = Self {
            path: path.canonicalize().map_err(no_fleet)?,
        };
        let file = folder.path.join("fleet.json");
        let text = read(&file).map_err(|error| match error {
            FolderError::File { reason, .. } if reason.kind() == io::ErrorKind::NotFound => {
                no_fleet(reason)
            }
            other => other,
        })?;
        let record: FleetRecord = crate::record::read(&text, FLEET_SCHEMA)
            .map_err(|error: RecordError| FolderError::damaged(&file, error))?;
        super::check_id(&record.id).map_err(|reason| FolderError::damaged(&file, reason))?;
        for step in &record.steps {
            crate::workload::study_file::check_name(&step.name)
                .map_err(|reason| FolderError::damaged(&file, reason))?;
        }
        Ok((folder, record))
    }

    /// Where it is.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The executable that nodes run.
    #[must_use]
    pub fn program(&self) -> PathBuf {
        self.path.join("pinwise")
    }

    /// Writes the fleet's record anew, at once.
    ///
    /// # Errors
    /// [`FolderError`] where it cannot be written; it then stays as it was.
    pub fn write_record(&self, record: &FleetRecord) -> Result<(), FolderError> {
        let path = self.path.join("fleet.json");
        put(&path, &json(record), How::Replace, 0o644).map(|_| ())
    }

    /// How it was asked for.
    ///
    /// # Errors
    /// [`FolderError`] where it cannot be read.
    pub fn submission(&self) -> Result<Submission, FolderError> {
        read_json(&self.path.join("submission.json"))
    }

    /// Takes a file along, which nodes then read from the folder.
    ///
    /// # Errors
    /// [`FolderError`] where it cannot be written.
    pub fn carry(&self, name: &str, content: &[u8]) -> Result<PathBuf, FolderError> {
        let path = self.path.join("files").join(name);
        put(&path, content, How::Replace, 0o644)?;
        Ok(path)
    }

    /// Waits until no other process of this host has the fleet's turn; it is
    /// given back when the file is closed.
    ///
    /// # Errors
    /// [`FolderError`] where the folder knows no locks.
    pub fn turn(&self) -> Result<std::fs::File, FolderError> {
        let path = self.path.join("turn");
        let opened = std::fs::OpenOptions::new()
            .write(true)
            .create(true)
            .truncate(false)
            .open(&path);
        let file = opened.map_err(|error| FolderError::file(&path, error))?;
        file.lock()
            .map_err(|error| FolderError::file(&path, error))?;
        Ok(file)
    }

    /// A node's folder, made where it is missing.
    ///
    /// # Errors
    /// [`FolderError`] where the name is none of a node, or it cannot be made.
    pub fn make_node(&self, name: &str) -> Result<NodeFolder, FolderError> {
        let path = self.path.join("nodes").join(name);
        if !is_plain(name) {
            let reason = "names of nodes have letters, digits, -, _ and . only; report is taken";
            return Err(FolderError::damaged(&path, reason));
        }
        // Not the folder itself: where that is gone, nothing is made anew.
        match std::fs::create_dir(&path) {
            Err(error) if error.kind() != io::ErrorKind::AlreadyExists => {
                Err(FolderError::file(&path, error))
            }
            _ => Ok(NodeFolder::new(path, name)),
        }
    }

    /// Folders of nodes, by name, and what else lies among them.
    ///
    /// # Errors
    /// [`FolderError`] where they cannot be listed.
    pub fn nodes(&self) -> Result<(Vec<NodeFolder>, Vec<String>), FolderError> {
        let path = self.path.join("nodes");
        let (mut found, mut strange) = (Vec::new(), Vec::new());
        for name in names(&path)? {
            let inner = path.join(&name);
            let is_folder = std::fs::symlink_metadata(&inner).is_ok_and(|m| m.is_dir());
            if is_plain(&name) && is_folder {
                found.push(NodeFolder::new(inner, &name));
            } else {
                strange.push(format!("{}: no folder of a node", inner.display()));
            }
        }
        Ok((found, strange))
    }
}

/// What becomes of a file that is there already.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum How {
    /// It stays.
    First,
    /// It is replaced.
    Replace,
}

/// Gives a file its content at once; false where it was there and stays.
pub(super) fn put(path: &Path, content: &[u8], how: How, mode: u32) -> Result<bool, FolderError> {
    let wrong = |error| FolderError::file(path, error);
    let beside = write_beside(path, content, mode).map_err(wrong)?;
    let named = match how {
        How::Replace => std::fs::rename(&beside, path).map(|()| true),
        How::First => link(&beside, path),
    };
    if how == How::First || named.is_err() {
        remove(&beside);
    }
    named.map_err(wrong)
}

fn link(beside: &Path, path: &Path) -> io::Result<bool> {
    match std::fs::hard_link(beside, path) {
        Ok(()) => Ok(true),
        // An answer of NFS may be lost and the link made all the same.
        Err(_) if std::fs::metadata(beside).is_ok_and(|m| m.nlink() == 2) => Ok(true),
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(false),
        Err(error) => match error.kind() {
            // File systems without hard links: the first still counts, but for
            // two that come at the same moment, of which one does.
            io::ErrorKind::Unsupported | io::ErrorKind::PermissionDenied if path.exists() => {
                Ok(false)
            }
            io::ErrorKind::Unsupported | io::ErrorKind::PermissionDenied => {
                std::fs::rename(beside, path).map(|()| true)
            }
            _ => Err(error),
        },
    }
}

fn write_beside(path: &Path, content: &[u8], mode: u32) -> io::Result<PathBuf> {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    for number in 0..MOST_TEMPORARY {
        let beside = path.with_file_name(format!(".{name}.{}-{number}", std::process::id()));
        let made = std::fs::OpenOptions::new()
            .write(true)
            .create_new(true)
            .mode(mode)
            .open(&beside);
        let mut file = match made {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => continue,
            made => made?,
        };
        let written = file.write_all(content).and_then(|()| file.sync_all());
        if let Err(error) = written {
            remove(&beside);
            return Err(error);
        }
        return Ok(beside);
    }
    Err(io::ErrorKind::AlreadyExists.into())
}

#[expect(clippy::disallowed_methods, reason = "the Edge removes its own files")]
pub(super) fn remove(path: &Path) {
    // It may be gone already.
    let _ = std::fs::remove_file(path);
}

/// The text of a file, which must be a plain one: what waits for a writer, or
/// lies elsewhere, is none of a fleet's.
pub(super) fn read(path: &Path) -> Result<String, FolderError> {
    let wrong = |error| FolderError::file(path, error);
    let found = std::fs::symlink_metadata(path).map_err(wrong)?;
    if !found.is_file() {
        return Err(FolderError::damaged(path, "it is no plain file"));
    }
    #[expect(clippy::disallowed_methods, reason = "the Edge reads a fleet's files")]
    let file = std::fs::File::open(path).map_err(wrong)?;
    let mut text = Vec::new();
    file.take(LARGEST + 1)
        .read_to_end(&mut text)
        .map_err(wrong)?;
    if text.len() as u64 > LARGEST {
        let reason = format!("larger than {} MiB", LARGEST >> 20);
        return Err(FolderError::damaged(path, reason));
    }
    String::from_utf8(text).map_err(|_| FolderError::damaged(path, "it is not UTF-8"))
}

pub(super) fn read_json<T: DeserializeOwned>(path: &Path) -> Result<T, FolderError> {
    serde_json::from_str(&read(path)?)
        .map_err(|error| FolderError::damaged(path, RecordError::Damaged(error)))
}

/// Of types whose serialisation cannot fail.
pub(super) fn json(value: &impl Serialize) -> Vec<u8> {
    let mut text = serde_json::to_vec(value).unwrap_or_default();
    text.push(b'\n');
    text
}

/// Names in a folder that are UTF-8 and not hidden, sorted.
pub(super) fn names(path: &Path) -> Result<Vec<String>, FolderError> {
    #[expect(clippy::disallowed_methods, reason = "the Edge lists a fleet's files")]
    let entries = std::fs::read_dir(path).map_err(|e| FolderError::file(path, e))?;
    let mut names: Vec<String> = entries
        .filter_map(|entry| entry.ok()?.file_name().into_string().ok())
        .filter(|name| !name.starts_with('.'))
        .collect();
    names.sort_unstable();
    Ok(names)
}
