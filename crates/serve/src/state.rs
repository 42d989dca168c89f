//! State shared by all requests, and who may make them.

use std::collections::BTreeSet;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use axum::body::Bytes;
use axum::http::HeaderValue;
use tokio::net::TcpStream;

use super::changes::ChangePoller;
use super::policy::{Policy, TICKETS, page_policy};
use super::secret::Secret;
use super::store_reader::StoreReader;
use super::{Chain, Differ, OwnerOfPeer, Site};
use pinwise_store::StoreError;

/// Maximum number of other users whose attempts are reported.
const MAX_REPORTED_USERS: usize = 16;

/// State shared by all requests.
pub(super) struct AppState {
    pub(super) page: Bytes,
    pub(super) page_policy: HeaderValue,
    pub(super) secret: Secret,
    ticket: Mutex<Ticket>,
    user: u32,
    owner_of_peer: Box<OwnerOfPeer>,
    /// Other users whose attempts were reported; each is reported once.
    reported_users: Mutex<BTreeSet<u32>>,
    warn: Arc<dyn Fn(&str) + Send + Sync>,
    pub(super) policy: Policy,
    pub(super) reader: Arc<StoreReader>,
    pub(super) differ: Arc<Differ>,
    pub(super) chain: Arc<Chain>,
    pub(super) changes: Arc<ChangePoller>,
}

/// The ticket, which opens the site once without the secret.
enum Ticket {
    Valid(Secret),
    /// Stored so that a second use is noticed.
    Used(Secret),
    None,
}

impl AppState {
    pub(super) fn new(site: Site, policy: Policy) -> Result<Self, StoreError> {
        Ok(Self {
            page_policy: page_policy(&site.page),
            page: site.page.into(),
            secret: site.secret,
            ticket: Mutex::new(site.ticket.map_or(Ticket::None, Ticket::Valid)),
            user: site.user,
            owner_of_peer: site.owner_of_peer,
            reported_users: Mutex::default(),
            policy,
            reader: Arc::new(StoreReader::open(
                site.store,
                site.spool,
                Arc::clone(&site.warn),
            )?),
            warn: site.warn,
            differ: site.differ.into(),
            chain: site.chain.into(),
            changes: Arc::default(),
        })
    }

    /// May this connection be answered? A local one must belong to the site's user, or to root, who
    /// can read all files anyway. Connections from other machines only need the secret.
    pub(super) fn serves(&self, stream: &TcpStream, peer: SocketAddr) -> bool {
        if !peer.ip().to_canonical().is_loopback() {
            return true;
        }
        let own = stream.local_addr().ok();
        let owner = own.and_then(|own| (self.owner_of_peer)(peer, own));
        let is_served = owner.is_some_and(|user| user == self.user || user == 0);
        // No owner is found if the other end closed before the check.
        if !is_served && let Some(user) = owner {
            let mut reported = lock(&self.reported_users);
            if reported.len() < MAX_REPORTED_USERS && reported.insert(user) {
                (self.warn)(&format!(
                    "user {user} of this machine connected and was refused (only user {} is answered)",
                    self.user
                ));
            }
        }
        is_served
    }

    /// Makes the ticket invalid.
    pub(super) fn invalidate_ticket(&self) {
        *lock(&self.ticket) = Ticket::None;
    }

    /// Uses the ticket. False if the path is not that of a valid ticket, which works once.
    pub(super) fn use_ticket(&self, path: &str) -> bool {
        let Some(word) = path.strip_prefix(TICKETS) else {
            return false;
        };
        let mut ticket = lock(&self.ticket);
        match std::mem::replace(&mut *ticket, Ticket::None) {
            Ticket::Valid(secret) if secret.matches(word) => {
                *ticket = Ticket::Used(secret);
                true
            }
            Ticket::Used(secret) if secret.matches(word) => {
                (self.warn)(
                    "the address that --open gave the browser was used twice: if you did not load it again, another program has read it (Ctrl-C ends the site; the next one has another)",
                );
                false
            }
            other => {
                *ticket = other;
                false
            }
        }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
