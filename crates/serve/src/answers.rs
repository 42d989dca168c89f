//! The routes below the secret path.

use std::sync::Arc;

use axum::Router;
use axum::extract::{Path, RawQuery, Request, State};
use axum::http::uri::Uri;
use axum::http::{HeaderValue, StatusCode, header};
use axum::middleware::{Next, from_fn_with_state};
use axum::response::{Html, IntoResponse, Response};
use axum::routing::get;
use serde::Serialize;

use super::guest::Guest;
use super::policy::protect;
use super::problem::{Problem, json, sentence};
use super::secret::Secret;
use super::state::AppState;
use super::{live, query};
use pinwise_report::page::Line;
use pinwise_store::FoundRecords;

/// The site's routes.
pub(super) fn router(state: Arc<AppState>) -> Router {
    let at = |path: &str| format!("/{}{path}", state.secret.word());
    Router::new()
        .route(&at("/"), get(page))
        .route(&at(""), get(home))
        .route(&at("/api/records"), get(records))
        .route(&at("/api/records/{id}"), get(record))
        .route(&at("/api/diff"), get(difference))
        .route(&at("/api/gates"), get(gates))
        .route(&at("/api/live"), get(live::list))
        .route(&at("/api/live/{id}"), get(live::record))
        .fallback(async |State(state): State<Arc<AppState>>| {
            (StatusCode::NOT_FOUND, Html(nothing_here(&state.secret)))
        })
        .layer(from_fn_with_state(Arc::clone(&state), guard))
        .with_state(state)
}

/// Runs before every route: answers only requests that know the secret and do not come from another
/// site.
async fn guard(State(state): State<Arc<AppState>>, request: Request, next: Next) -> Response {
    let (parts, body) = request.into_parts();
    let mut response = match state.policy.refusal(&parts) {
        Some(StatusCode::METHOD_NOT_ALLOWED) => (
            StatusCode::METHOD_NOT_ALLOWED,
            [(header::ALLOW, "GET, HEAD")],
        )
            .into_response(),
        Some(refused) => refused.into_response(),
        None if state.secret.is(first_segment(&parts.uri)) => {
            let guest = parts.extensions.get::<Guest>();
            if guest.is_some_and(Guest::enter) {
                next.run(Request::from_parts(parts, body)).await
            } else {
                let retry = [(header::RETRY_AFTER, "1")];
                (StatusCode::SERVICE_UNAVAILABLE, retry).into_response()
            }
        }
        None if state.takes_ticket(parts.uri.path()) => {
            Html(welcome(&state.secret)).into_response()
        }
        None => StatusCode::NOT_FOUND.into_response(),
    };
    protect(response.headers_mut());
    response
}

/// Forwards to the site. Not by a redirect: a browser that came from a file would report that in
/// the next request, too.
fn welcome(secret: &Secret) -> String {
    let home = format!("/{}/", secret.word());
    format!(
        "<!doctype html>\n<meta charset=\"utf-8\">\n<title>pinwise</title>\n<meta http-equiv=\"refresh\" content=\"0; url={home}\">\n<a href=\"{home}\">The records</a>\n"
    )
}

/// The address without its last slash, as copied or typed by hand.
async fn home(State(state): State<Arc<AppState>>) -> Html<String> {
    Html(welcome(&state.secret))
}

/// The answer for an unknown address below the secret.
fn nothing_here(secret: &Secret) -> String {
    let home = secret.word();
    format!(
        "<!doctype html>\n<meta charset=\"utf-8\">\n<title>pinwise</title>\n<p>There is nothing at this address. <a href=\"/{home}/\">All records</a></p>\n"
    )
}

fn first_segment(uri: &Uri) -> &str {
    let path = uri.path().strip_prefix('/').unwrap_or_default();
    path.split('/').next().unwrap_or_default()
}

async fn page(State(state): State<Arc<AppState>>) -> Response {
    let headers = [
        (
            header::CONTENT_TYPE,
            HeaderValue::from_static("text/html; charset=utf-8"),
        ),
        (header::CONTENT_SECURITY_POLICY, state.page_policy.clone()),
    ];
    (headers, state.page.clone()).into_response()
}

#[derive(Serialize)]
struct Listing<'a> {
    records: Vec<Line<'a>>,
    total: usize,
    hosts: &'a [String],
    schemas: &'a [String],
    tags: &'a [String],
}

impl<'a> Listing<'a> {
    fn new(found: &'a FoundRecords) -> Self {
        let lines = found.lines.iter();
        Self {
            records: lines.map(|l| Line::new(&l.entry, &l.summary)).collect(),
            total: found.total,
            hosts: &found.hosts,
            schemas: &found.schemas,
            tags: &found.tags,
        }
    }
}

async fn records(
    State(state): State<Arc<AppState>>,
    RawQuery(asked): RawQuery,
) -> Result<Response, Problem> {
    let filter = query::filter(&asked.unwrap_or_default())?;
    let found = state.reader.read(move |store| store.find(&filter)).await?;
    serialize_answer(&Listing::new(&found))
}

async fn record(
    State(state): State<Arc<AppState>>,
    Path(id): Path<String>,
) -> Result<Response, Problem> {
    let read = state.reader.read(move |store| store.load(&id)?.whole());
    Ok(json(String::from(Box::<str>::from(read.await?))))
}

async fn difference(
    State(state): State<Arc<AppState>>,
    RawQuery(asked): RawQuery,
) -> Result<Response, Problem> {
    let (a, b) = query::pair(&asked.unwrap_or_default())?;
    let differ = Arc::clone(&state.differ);
    let read = state
        .reader
        .read(move |store| Ok(differ(&store.load(&a)?, &store.load(&b)?)));
    read.await?.map(json).map_err(|why| {
        let hint = "Choose two records of the same kind that have something in common.";
        Problem::new(StatusCode::UNPROCESSABLE_ENTITY, sentence(&why), hint)
    })
}

/// A benchmark over the gates of many commits.
async fn gates(
    State(state): State<Arc<AppState>>,
    RawQuery(asked): RawQuery,
) -> Result<Response, Problem> {
    let (benchmark, filter) = query::benchmark(&asked.unwrap_or_default())?;
    let chain = Arc::clone(&state.chain);
    let read = state
        .reader
        .read(move |store| chain(store, &filter, &benchmark));
    Ok(json(read.await?))
}

fn serialize_answer(answer: &impl Serialize) -> Result<Response, Problem> {
    let body = serde_json::to_string(answer).map_err(|error| {
        let text = format!("The answer cannot be written: {error}.");
        Problem::new(
            StatusCode::INTERNAL_SERVER_ERROR,
            text,
            "Load the page again.",
        )
    })?;
    Ok(json(body))
}
