//! Why a fleet's folder cannot be used.

use std::io;
use std::path::Path;

/// Why a folder cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum FolderError {
    /// It exists already.
    #[error(
        "{path} exists already: two fleets cannot share a folder (choose another with --dir or --id)"
    )]
    Exists {
        /// The folder.
        path: String,
    },
    /// Not the folder of a fleet.
    #[error("{path}: no fleet found ({reason})")]
    NoFleet {
        /// The folder.
        path: String,
        /// The system's error.
        reason: io::Error,
    },
    /// A file cannot be read or written.
    #[error("{path}: {reason}")]
    File {
        /// The path.
        path: String,
        /// The system's error.
        reason: io::Error,
    },
    /// Others could have written its content, or could replace it.
    #[error("{path}: {reason}")]
    Untrusted {
        /// The file or folder.
        path: String,
        /// Why.
        reason: String,
    },
    /// A file has invalid content.
    #[error("{path}: {reason}")]
    Damaged {
        /// The path.
        path: String,
        /// Why.
        reason: String,
    },
}

impl FolderError {
    /// A file that the system cannot read or write.
    pub(super) fn file(path: &Path, reason: io::Error) -> Self {
        Self::File {
            path: path.display().to_string(),
            reason,
        }
    }

    /// A file that others could have written or could replace.
    pub(super) fn untrusted(path: &Path, reason: String) -> Self {
        Self::Untrusted {
            path: path.display().to_string(),
            reason,
        }
    }

    /// A file with invalid content.
    pub(super) fn damaged(path: &Path, reason: impl ToString) -> Self {
        Self::Damaged {
            path: path.display().to_string(),
            reason: reason.to_string(),
        }
    }
}
