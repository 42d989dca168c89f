//! Why there is no connection to a server, or not the requested one.

use std::io;

/// Why a connection lacks the requested protection.
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

/// Puts a server's message on one line, without control characters: it is untrusted.
pub(super) fn to_one_line(words: &str) -> String {
    words
        .chars()
        .map(|c| if c.is_control() { ' ' } else { c })
        .collect()
}
