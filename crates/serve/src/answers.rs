//! The site's routes, all below the secret path.

use std::sync::Arc;

use axum::Router;
use axum::extract::{Path, RawQuery, Request, State};
use axum::http::uri::Uri;
use axum::http::{HeaderValue, StatusCode, header};
use axum::middleware::{Next, from_fn_with_state};
use axum::response::{Html, IntoResponse, Response};
use axum::routing::get;
use serde::Serialize;

use super::policy::add_protective_headers;
use super::problem::{Problem, json_response, to_sentence};
use super::secret::Secret;
use super::slots::ConnectionSlot;
use super::state::AppState;
use super::{live, query};
use pinwise_report::page::Line;
use pinwise_store::FoundRecords;

/// Makes the router of the site.
pub(super) fn make_router(state: Arc<AppState>) -> Router {
    let at = |path: &str| format!("/{}{path}", state.secret.word());
    Router::new()
        .route(&at("/"), get(serve_page))
        .route(&at(""), get(forward_home))
        .route(&at("/api/records"), get(list_records))
        .route(&at("/api/records/{id}"), get(read_record))
        .route(&at("/api/diff"), get(compare_records))
        .route(&at("/api/gates"), get(chain_gates))
        .route(&at("/api/live"), get(live::watch_list))
        .route(&at("/api/live/{id}"), get(live::watch_record))
        .fallback(async |State(state): State<Arc<AppState>>| {
            (
                StatusCode::NOT_FOUND,
                Html(render_not_found_page(&state.secret)),
            )
        })
        .layer(from_fn_with_state(Arc::clone(&state), check_request))
        .with_state(state)
}

/// Runs before every route: passes on only requests that know the secret and do not come from
/// another site.
async fn check_request(
    State(state): State<Arc<AppState>>,
    request: Request,
    next: Next,
) -> Response {
    let (parts, body) = request.into_parts();
    let mut response = match state.policy.find_refusal(&parts) {
        Some(StatusCode::METHOD_NOT_ALLOWED) => (
            StatusCode::METHOD_NOT_ALLOWED,
            [(header::ALLOW, "GET, HEAD")],
        )
            .into_response(),
        Some(refused) => refused.into_response(),
        None if state.secret.matches(first_segment(&parts.uri)) => {
            let slot = parts.extensions.get::<ConnectionSlot>();
            if slot.is_some_and(ConnectionSlot::take) {
                next.run(Request::from_parts(parts, body)).await
            } else {
                let retry = [(header::RETRY_AFTER, "1")];
                (StatusCode::SERVICE_UNAVAILABLE, retry).into_response()
            }
        }
        None if state.use_ticket(parts.uri.path()) => {
            Html(render_forwarding_page(&state.secret)).into_response()
        }
        None => StatusCode::NOT_FOUND.into_response(),
    };
    add_protective_headers(response.headers_mut());
    response
}

/// The page that forwards to the site. A redirect would not do: a browser that came from a file
/// would name that origin in the next request, too, which is then refused.
fn render_forwarding_page(secret: &Secret) -> String {
    let home = format!("/{}/", secret.word());
    format!(
        "<!doctype html>\n<meta charset=\"utf-8\">\n<title>pinwise</title>\n<meta http-equiv=\"refresh\" content=\"0; url={home}\">\n<a href=\"{home}\">The records</a>\n"
    )
}

/// Answers the address without its last slash, as copied or typed by hand.
async fn forward_home(State(state): State<Arc<AppState>>) -> Html<String> {
    Html(render_forwarding_page(&state.secret))
}

/// The page for an unknown address below the secret.
fn render_not_found_page(secret: &Secret) -> String {
    let home = secret.word();
    format!(
        "<!doctype html>\n<meta charset=\"utf-8\">\n<title>pinwise</title>\n<p>There is nothing at this address. <a href=\"/{home}/\">All records</a></p>\n"
    )
}

fn first_segment(uri: &Uri) -> &str {
    let path = uri.path().strip_prefix('/').unwrap_or_default();
    path.split('/').next().unwrap_or_default()
}

async fn serve_page(State(state): State<Arc<AppState>>) -> Response {
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
struct RecordList<'a> {
    records: Vec<Line<'a>>,
    total: usize,
    hosts: &'a [String],
    schemas: &'a [String],
    tags: &'a [String],
}

impl<'a> RecordList<'a> {
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

async fn list_records(
    State(state): State<Arc<AppState>>,
    RawQuery(query_text): RawQuery,
) -> Result<Response, Problem> {
    let filter = query::parse_filter(&query_text.unwrap_or_default())?;
    let found = state.reader.read(move |store| store.find(&filter)).await?;
    serialize_answer(&RecordList::new(&found))
}

async fn read_record(
    State(state): State<Arc<AppState>>,
    Path(id): Path<String>,
) -> Result<Response, Problem> {
    let read = state.reader.read(move |store| store.load(&id)?.whole());
    Ok(json_response(String::from(Box::<str>::from(read.await?))))
}

async fn compare_records(
    State(state): State<Arc<AppState>>,
    RawQuery(query_text): RawQuery,
) -> Result<Response, Problem> {
    let (a, b) = query::parse_pair(&query_text.unwrap_or_default())?;
    let differ = Arc::clone(&state.differ);
    let read = state
        .reader
        .read(move |store| Ok(differ(&store.load(&a)?, &store.load(&b)?)));
    read.await?.map(json_response).map_err(|why| {
        let hint = "Choose two records of the same kind that have something in common.";
        Problem::new(StatusCode::UNPROCESSABLE_ENTITY, to_sentence(&why), hint)
    })
}

/// Answers with a benchmark's history over the gates of many commits.
async fn chain_gates(
    State(state): State<Arc<AppState>>,
    RawQuery(query_text): RawQuery,
) -> Result<Response, Problem> {
    let (benchmark, filter) = query::parse_benchmark(&query_text.unwrap_or_default())?;
    let chain = Arc::clone(&state.chain);
    let read = state
        .reader
        .read(move |store| chain(store, &filter, &benchmark));
    Ok(json_response(read.await?))
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
    Ok(json_response(body))
}
