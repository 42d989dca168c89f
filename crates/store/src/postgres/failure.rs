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
