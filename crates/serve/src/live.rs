//! Changes as they happen: server-sent events.
//!
//! A page gets the present state when it is ready to receive it: events are not queued for it.

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
const PACE: Duration = Duration::from_millis(500);
/// Comments keep the connection open through proxies.
const KEEP_ALIVE: Duration = Duration::from_secs(15);

/// `api/live`: an event whenever any record came, changed or went, and one at
/// the start for what happened before the page listened.
pub(super) async fn list(State(state): State<Arc<AppState>>) -> Response {
    let changes = state.changes.subscribe();
    events(unfold((changes, true), async |(mut changes, is_first)| {
        if is_first {
            changes.mark_unchanged();
        } else {
            changes.changed().await.ok()?;
        }
        let event = Event::default().event("list").data("changed");
        Some((Ok(event), (changes, false)))
    }))
}

/// `api/live/ID`: the record at once and whenever it grew, until it is complete.
pub(super) async fn record(
    State(state): State<Arc<AppState>>,
    Path(id): Path<String>,
) -> Result<Response, Problem> {
    let read = state.reader.read(move |store| Look::at(store, &id));
    let watched = WatchedRecord::new(&state, read.await?);
    Ok(events(unfold(watched, async |mut watched| {
        Some((Ok(watched.next().await?), watched))
    })))
}

/// The state found by polling a record.
struct Look {
    id: String,
    body: String,
    is_complete: bool,
    growth: Growth,
}

impl Look {
    fn at(store: &Store, id: &str) -> Result<Self, StoreError> {
        // Before the runs are read: runs that come in between trigger another poll.
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
    /// Found before the page was answered.
    first: Option<Look>,
    seen: (Option<Generation>, Growth),
    /// The growth of the last sent body.
    sent: Option<u64>,
    stage: Stage,
}

/// How far the stream is.
enum Stage {
    Open,
    /// The record has stopped growing; its last state has not been sent yet.
    Ended {
        is_complete: bool,
    },
    Closed,
}

impl WatchedRecord {
    fn new(state: &AppState, first: Look) -> Self {
        let mut pace = interval(PACE);
        pace.set_missed_tick_behavior(MissedTickBehavior::Delay);
        Self {
            id: first.id.clone(),
            reader: Arc::clone(&state.reader),
            changes: state.changes.subscribe(),
            pace,
            seen: (None, first.growth),
            first: Some(first),
            sent: None,
            stage: Stage::Open,
        }
    }

    async fn next(&mut self) -> Option<Event> {
        loop {
            match self.stage {
                Stage::Closed => return None,
                Stage::Ended { is_complete } => {
                    self.stage = Stage::Closed;
                    return Some(event(
                        "end",
                        &json!({ "complete": is_complete }).to_string(),
                    ));
                }
                Stage::Open => {}
            }
            self.pace.tick().await;
            let found = match self.first.take() {
                Some(first) => Some(first),
                None => match self.look().await {
                    Ok(found) => found,
                    // The store does not answer for now.
                    Err(problem) if problem.is_of_store() => None,
                    Err(problem) => {
                        self.stage = Stage::Closed;
                        let data = serde_json::to_string(&problem).unwrap_or_default();
                        return Some(event("gone", &data));
                    }
                },
            };
            if let Some(event) = found.and_then(|look| self.event_for(look)) {
                return Some(event);
            }
        }
    }

    /// The record, if anything can have changed.
    async fn look(&mut self) -> Result<Option<Look>, Problem> {
        let (id, seen) = (self.id.clone(), self.seen);
        let generation = *self.changes.borrow();
        let read = move |store: &Store| {
            if (generation, store.growth(&id)) == seen {
                return Ok(None);
            }
            Look::at(store, &id).map(Some)
        };
        let found = self.reader.read(read).await?;
        if let Some(look) = &found {
            self.seen = (generation, look.growth);
        }
        Ok(found)
    }

    fn event_for(&mut self, look: Look) -> Option<Event> {
        if look.is_complete || look.growth == Growth::CutOff {
            self.stage = Stage::Ended {
                is_complete: look.is_complete,
            };
        }
        let mut hasher = DefaultHasher::new();
        look.body.hash(&mut hasher);
        let is_new = self.sent.replace(hasher.finish()) != Some(hasher.finish());
        is_new.then(|| event("record", &look.body))
    }
}

/// JSON as an event: a line break in it is space between tokens.
fn event(name: &str, json: &str) -> Event {
    Event::default()
        .event(name)
        .data(json.replace(['\r', '\n'], " "))
}

fn events(
    stream: impl Stream<Item = Result<Event, std::convert::Infallible>> + Send + 'static,
) -> Response {
    let alive = KeepAlive::new().interval(KEEP_ALIVE);
    let mut response = Sse::new(stream).keep_alive(alive).into_response();
    response.extensions_mut().insert(Endless);
    response
}

/// Marks an answer that ends when the page closes.
#[derive(Debug, Clone, Copy)]
pub(super) struct Endless;
