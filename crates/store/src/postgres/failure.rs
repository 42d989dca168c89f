//! Why there is no connection to a server, or none as asked for.

use std::io;

/// Why a connection is not as it was asked to be.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub(super) struct Insecure(pub(super) String);

/// Why there is no connection.
#[derive(Debug, thiserror::Error)]
pub(super) enum Failure {
    #[error(transparent)]
    Io(#[from] io::Error),
    #[error(transparent)]
    Insecure(#[from] Insecure),
}

/// A server's words in one line; they may be anybody's.
pub(super) fn plain(words: &str) -> String {
    words
        .chars()
        .map(|c| if c.is_control() { ' ' } else { c })
        .collect()
}
