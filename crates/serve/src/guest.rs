//! Connection slots: authenticated clients have their own. The others wait in a separate queue,
//! from which the oldest is dropped first.

use std::collections::VecDeque;
use std::sync::{Arc, OnceLock, Weak};

use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::task::AbortHandle;

/// Connections that may wait for their request or be refused.
const WAITING: usize = 64;

pub(super) type Place = OnceLock<OwnedSemaphorePermit>;

/// The other end of a connection.
#[derive(Clone)]
pub(super) struct Guest {
    places: Arc<Semaphore>,
    place: Arc<Place>,
}

impl Guest {
    pub(super) fn new(places: &Arc<Semaphore>) -> Self {
        Self {
            places: Arc::clone(places),
            place: Arc::default(),
        }
    }

    /// Takes a slot for the life of the connection; false if all are taken.
    pub(super) fn enter(&self) -> bool {
        if self.place.get().is_some() {
            return true;
        }
        let place = Arc::clone(&self.places).try_acquire_owned();
        place.is_ok_and(|place| self.place.set(place).is_ok())
    }

    /// Its slot, taken or not, for the life of the connection.
    pub(super) fn place(&self) -> Weak<Place> {
        Arc::downgrade(&self.place)
    }
}

/// Connections without a slot.
#[derive(Default)]
pub(super) struct WaitingRoom {
    waiting: VecDeque<(Weak<Place>, AbortHandle)>,
}

impl WaitingRoom {
    /// Admits a connection. If there is no room, the one that has waited longest is closed: a
    /// browser sends its request as soon as it is connected.
    pub(super) fn admit(&mut self, place: Weak<Place>, connection: AbortHandle) {
        self.waiting.retain(|(place, connection)| {
            let has_place = place.upgrade().is_none_or(|place| place.get().is_some());
            !has_place && !connection.is_finished()
        });
        if self.waiting.len() >= WAITING
            && let Some((_, oldest)) = self.waiting.pop_front()
        {
            oldest.abort();
        }
        self.waiting.push_back((place, connection));
    }
}
