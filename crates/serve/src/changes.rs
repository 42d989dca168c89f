//! Polls the store for changes on behalf of all pages, but only while one of them listens.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{Notify, watch};
use tokio::time::sleep;

use super::store_reader::StoreReader;
use pinwise_store::{Generation, Store};

/// Time between two polls of the store.
const POLL_INTERVAL: Duration = Duration::from_millis(300);

/// Tells subscribers when the store has changed.
#[derive(Default)]
pub(super) struct ChangePoller {
    generation: watch::Sender<Option<Generation>>,
    has_subscriber: Notify,
}

impl ChangePoller {
    /// Subscribes to the store's generation, which changes with every change of the store.
    pub(super) fn subscribe(&self) -> watch::Receiver<Option<Generation>> {
        let receiver = self.generation.subscribe();
        self.has_subscriber.notify_one();
        receiver
    }

    /// Polls the store while there is a subscriber: an idle site disturbs no measurement.
    pub(super) async fn poll(&self, reader: &Arc<StoreReader>) {
        loop {
            if self.generation.receiver_count() == 0 {
                self.has_subscriber.notified().await;
            }
            // Without an answer, the next poll tries again.
            if let Ok(found) = reader.read(Store::generation).await {
                self.generation.send_if_modified(|seen| {
                    let is_new = *seen != Some(found);
                    *seen = Some(found);
                    is_new
                });
            }
            sleep(POLL_INTERVAL).await;
        }
    }
}
