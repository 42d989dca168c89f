//! Limits the number of connections. Authenticated connections take slots; all others are pending
//! in a separate queue, from which the oldest is dropped first.

use std::collections::VecDeque;
use std::sync::{Arc, OnceLock, Weak};

use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::task::AbortHandle;

/// Maximum number of connections that have not sent a valid request yet.
const MAX_PENDING: usize = 64;

/// The permit of a connection, once it has a slot.
pub(super) type Permit = OnceLock<OwnedSemaphorePermit>;

/// The slot that a connection can take.
#[derive(Clone)]
pub(super) struct ConnectionSlot {
    slots: Arc<Semaphore>,
    permit: Arc<Permit>,
}

impl ConnectionSlot {
    pub(super) fn new(slots: &Arc<Semaphore>) -> Self {
        Self {
            slots: Arc::clone(slots),
            permit: Arc::default(),
        }
    }

    /// Takes a slot for the life of the connection; false if all are taken.
    pub(super) fn take(&self) -> bool {
        if self.permit.get().is_some() {
            return true;
        }
        let permit = Arc::clone(&self.slots).try_acquire_owned();
        permit.is_ok_and(|permit| self.permit.set(permit).is_ok())
    }

    /// Its permit, which is dropped with the connection.
    pub(super) fn permit(&self) -> Weak<Permit> {
        Arc::downgrade(&self.permit)
    }
}

/// Connections without a slot, the oldest first.
#[derive(Default)]
pub(super) struct PendingConnections {
    pending: VecDeque<(Weak<Permit>, AbortHandle)>,
}

impl PendingConnections {
    /// Adds a connection. If there are too many, the oldest is closed: a browser sends its request
    /// as soon as it is connected.
    pub(super) fn add(&mut self, permit: Weak<Permit>, connection: AbortHandle) {
        self.pending.retain(|(permit, connection)| {
            let has_slot = permit.upgrade().is_none_or(|permit| permit.get().is_some());
            !has_slot && !connection.is_finished()
        });
        if self.pending.len() >= MAX_PENDING
            && let Some((_, oldest)) = self.pending.pop_front()
        {
            oldest.abort();
        }
        self.pending.push_back((permit, connection));
    }
}
