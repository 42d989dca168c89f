//! Why the folder of a fleet cannot be used.

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
    /// It is no fleet's.
    #[error("{path}: no fleet found ({reason})")]
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
    /// Others could have written what it says, or could replace it.
    #[error("{path}: {reason}")]
    Untrusted {
        /// Which file or folder.
        path: String,
        /// Why.
        reason: String,
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

    /// What others could have written or could replace.
    pub(super) fn untrusted(path: &Path, reason: String) -> Self {
        Self::Untrusted {
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
