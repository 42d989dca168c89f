//! The local site of `pinwise serve`: the page, and a read-only API.
//!
//! Records are private: they contain command lines and host names. The site is
//! therefore bound to loopback by default, changes nothing, and answers only
//! requests below a secret path that name it as their host and that no other
//! site caused. No file is read by a name from a request.
//!
//! Requests are served on one thread; the store is read on others, so that a slow disk or a slow
//! reader blocks nobody.
//!
//! ```
//! use pinwise_serve::Secret;
//!
//! // Made of 24 random bytes; only the address contains it.
//! let secret = Secret::new(&[0xa5; 24]);
//! assert_eq!(secret.word().len(), 48);
//! assert!(secret.matches(secret.word()));
//! assert!(!secret.matches(&secret.word()[..47]));
//! // Debug output does not reveal it.
//! assert_eq!(format!("{secret:?}"), "Secret(…)");
//! ```

#![cfg_attr(test, allow(clippy::disallowed_methods, reason = "tests use files"))]

mod answers;
mod changes;
mod live;
mod policy;
mod problem;
mod query;
mod secret;
mod server;
mod slots;
mod state;
mod store_reader;

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;

pub use secret::Secret;
pub use server::Server;

use pinwise_store::{Filter, Store, StoreError, Stored};

/// Why the site is not available.
#[derive(Debug, thiserror::Error)]
pub enum WebError {
    /// Another program listens there.
    #[error(
        "port {port} of {address} is in use by another program (choose another with --port, or leave --port out for a free one)"
    )]
    PortInUse {
        /// The address.
        address: String,
        /// The port.
        port: u16,
    },
    /// The system refuses the address.
    #[error("cannot listen on {address}: {reason} (choose others with --listen and --port)")]
    Listen {
        /// Address and port.
        address: SocketAddr,
        /// The system's error.
        reason: io::Error,
    },
    /// The page was built with another version.
    #[error("the page has no place for data: it was built with another version of pinwise")]
    Page,
    /// The store cannot be used.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The system does not provide a thread, signal or timer.
    #[error("the site cannot be started: {0}")]
    System(#[from] io::Error),
}

/// The content of the site, and who may see it.
pub struct Site {
    /// The built page (HTML).
    pub page: String,
    /// The store.
    pub store: pinwise_store::Location,
    /// The spool for records that the store cannot take.
    pub spool: pinwise_store::Spool,
    /// The path below which everything is served.
    pub secret: Secret,
    /// A second secret that opens the site once, for a file given to a browser: a copy of the file
    /// is useless afterwards.
    pub ticket: Option<Secret>,
    /// Computes the difference of two records.
    pub differ: Box<Differ>,
    /// Makes the history of a benchmark.
    pub chain: Box<Chain>,
    /// The user id that is answered. Of other local users, only root is answered, too.
    pub user: u32,
    /// Finds the user at the other end of a local connection.
    pub owner_of_peer: Box<OwnerOfPeer>,
    /// Prints a warning on standard error.
    pub warn: Arc<dyn Fn(&str) + Send + Sync>,
}

/// Finds the user id at the first address, connected to the second (ours); `None` if it is unknown.
pub type OwnerOfPeer = dyn Fn(SocketAddr, SocketAddr) -> Option<u32> + Send + Sync;

/// Makes the history of a benchmark from the gates that match a filter, as JSON; `null` without a
/// gate.
pub type Chain = dyn Fn(&Store, &Filter, &str) -> Result<String, StoreError> + Send + Sync;

/// Computes the difference of two records as JSON, or says why they cannot be compared.
pub type Differ = dyn Fn(&Stored, &Stored) -> Result<String, String> + Send + Sync;

impl std::fmt::Debug for Site {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Site")
            .field("store", &self.store)
            .finish_non_exhaustive()
    }
}
