//! Sends changes to pages as they happen, as server-sent events.
//!
//! A slow page gets the latest state once it is ready to receive it; events are not queued.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;
use std::time::Duration;

use axum::extract::{Path, State};
use axum::response::sse::{Event, KeepAlive, Sse};
use axum::response::{IntoResponse, Response};
use futures_util::stream::{Stream, unfold};
use serde_json::json;
use tokio::sync::watch;
use tokio::time::{Interval, MissedTickBehavior, interval};

use super::problem::Problem;
use super::state::AppState;
use super::store_reader::StoreReader;
use pinwise_store::{Generation, Growth, Store, StoreError};

/// Minimum interval between two events of a record.
const MIN_INTERVAL: Duration = Duration::from_millis(500);
/// Comments keep the connection open through proxies.
const KEEP_ALIVE: Duration = Duration::from_secs(15);

/// `api/live`: sends an event whenever a record was added, changed or removed, and one at the
/// start, for changes before the page listened.
pub(super) async fn watch_list(State(state): State<Arc<AppState>>) -> Response {
    let changes = state.changes.subscribe();
    stream_events(unfold((changes, true), async |(mut changes, is_first)| {
        if is_first {
            changes.mark_unchanged();
        } else {
            changes.changed().await.ok()?;
        }
        let event = Event::default().event("list").data("changed");
        Some((Ok(event), (changes, false)))
    }))
}

/// `api/live/ID`: sends the record at once and whenever it has grown, until it is complete.
pub(super) async fn watch_record(
    State(state): State<Arc<AppState>>,
    Path(id): Path<String>,
) -> Result<Response, Problem> {
    let read = state
        .reader
        .read(move |store| RecordState::read(store, &id));
    let watched = WatchedRecord::new(&state, read.await?);
    Ok(stream_events(unfold(watched, async |mut watched| {
        Some((Ok(watched.next_event().await?), watched))
    })))
}

/// The state of a record in the store.
struct RecordState {
    id: String,
    body: String,
    is_complete: bool,
    growth: Growth,
}

impl RecordState {
    fn read(store: &Store, id: &str) -> Result<Self, StoreError> {
        // Read before the runs, so that a run stored in between is noticed by the next poll.
        let growth = store.growth(id);
        let stored = store.load(id)?;
        Ok(Self {
            body: String::from(Box::<str>::from(stored.whole()?)),
            is_complete: stored.entry.is_complete,
            id: stored.entry.id,
            growth,
        })
    }
}

/// A record that a page watches.
struct WatchedRecord {
    id: String,
    reader: Arc<StoreReader>,
    changes: watch::Receiver<Option<Generation>>,
    pace: Interval,
    /// The state that is sent first.
    first: Option<RecordState>,
    /// The store's generation and the record's growth at the last read.
    last_read: (Option<Generation>, Growth),
    /// Hash of the last sent body.
    sent_hash: Option<u64>,
    stage: Stage,
}

/// How far the stream of events is.
enum Stage {
    Open,
    /// The record has stopped growing; its last state has not been sent yet.
    Ended {
        is_complete: bool,
    },
    Closed,
}

impl WatchedRecord {
    fn new(state: &AppState, first: RecordState) -> Self {
        let mut pace = interval(MIN_INTERVAL);
        pace.set_missed_tick_behavior(MissedTickBehavior::Delay);
        Self {
            id: first.id.clone(),
            reader: Arc::clone(&state.reader),
            changes: state.changes.subscribe(),
            pace,
            last_read: (None, first.growth),
            first: Some(first),
            sent_hash: None,
            stage: Stage::Open,
        }
    }

    async fn next_event(&mut self) -> Option<Event> {
        loop {
            match self.stage {
                Stage::Closed => return None,
                Stage::Ended { is_complete } => {
                    self.stage = Stage::Closed;
                    return Some(make_event(
                        "end",
                        &json!({ "complete": is_complete }).to_string(),
                    ));
                }
                Stage::Open => {}
            }
            self.pace.tick().await;
            let found = match self.first.take() {
                Some(first) => Some(first),
                None => match self.read_if_changed().await {
                    Ok(found) => found,
                    // The store does not answer at the moment.
                    Err(problem) if problem.concerns_store() => None,
                    Err(problem) => {
                        self.stage = Stage::Closed;
                        let data = serde_json::to_string(&problem).unwrap_or_default();
                        return Some(make_event("gone", &data));
                    }
                },
            };
            if let Some(event) = found.and_then(|state| self.make_event_for(state)) {
                return Some(event);
            }
        }
    }

    /// Reads the record if it can have changed.
    async fn read_if_changed(&mut self) -> Result<Option<RecordState>, Problem> {
        let (id, last_read) = (self.id.clone(), self.last_read);
        let generation = *self.changes.borrow();
        let read = move |store: &Store| {
            if (generation, store.growth(&id)) == last_read {
                return Ok(None);
            }
            RecordState::read(store, &id).map(Some)
        };
        let found = self.reader.read(read).await?;
        if let Some(state) = &found {
            self.last_read = (generation, state.growth);
        }
        Ok(found)
    }

    /// Makes the event for a new state; `None` if the record is the same as before.
    fn make_event_for(&mut self, state: RecordState) -> Option<Event> {
        if state.is_complete || state.growth == Growth::CutOff {
            self.stage = Stage::Ended {
                is_complete: state.is_complete,
            };
        }
        let mut hasher = DefaultHasher::new();
        state.body.hash(&mut hasher);
        let is_new = self.sent_hash.replace(hasher.finish()) != Some(hasher.finish());
        is_new.then(|| make_event("record", &state.body))
    }
}

/// Makes an event of JSON. Line breaks, which can only be between tokens, become spaces.
fn make_event(name: &str, json: &str) -> Event {
    Event::default()
        .event(name)
        .data(json.replace(['\r', '\n'], " "))
}

fn stream_events(
    stream: impl Stream<Item = Result<Event, std::convert::Infallible>> + Send + 'static,
) -> Response {
    let alive = KeepAlive::new().interval(KEEP_ALIVE);
    let mut response = Sse::new(stream).keep_alive(alive).into_response();
    response.extensions_mut().insert(Endless);
    response
}

/// Marks an answer that ends only when the page is closed.
#[derive(Debug, Clone, Copy)]
pub(super) struct Endless;
