//! Polls the store for all pages, but only while one of them listens.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{Notify, watch};
use tokio::time::sleep;

use super::store_reader::StoreReader;
use pinwise_store::{Generation, Store};

/// Time between two polls of the store.
const BEAT: Duration = Duration::from_millis(300);

/// Reports when other processes have changed the store.
#[derive(Default)]
pub(super) struct ChangePoller {
    seen: watch::Sender<Option<Generation>>,
    wanted: Notify,
}

impl ChangePoller {
    /// The latest state, and later ones.
    pub(super) fn subscribe(&self) -> watch::Receiver<Option<Generation>> {
        let receiver = self.seen.subscribe();
        self.wanted.notify_one();
        receiver
    }

    /// Polls the store while anybody listens: an idle site disturbs no measurement.
    pub(super) async fn poll(&self, reader: &Arc<StoreReader>) {
        loop {
            if self.seen.receiver_count() == 0 {
                self.wanted.notified().await;
            }
            // A store that does not answer now has not changed.
            if let Ok(found) = reader.read(Store::generation).await {
                self.seen.send_if_modified(|seen| {
                    let is_new = *seen != Some(found);
                    *seen = Some(found);
                    is_new
                });
            }
            sleep(BEAT).await;
        }
    }
}
