//! Connections: how many, how long, and how the server ends.
//!
//! Each connection carries one request. Slow senders and slow readers lose the connection; live
//! pages keep theirs. Unauthenticated connections never use slots of authenticated ones.

use std::future::ready;
use std::net::{IpAddr, SocketAddr, TcpListener};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use axum::extract::Request;
use axum::http::StatusCode;
use axum::middleware::map_response;
use axum::response::{IntoResponse, Response};
use axum::{Extension, Router};
use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use tokio::net::TcpStream;
use tokio::runtime::Runtime;
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::Semaphore;
use tokio::time::{sleep, timeout};

use super::answers::router;
use super::guest::{Guest, WaitingRoom};
use super::live::Endless;
use super::policy::{Policy, protect};
use super::state::AppState;
use super::{Site, WebError};

/// Simultaneous authenticated connections; a live page holds up to two.
const PLACES: usize = 64;
/// Connections of other local users, who are only refused.
const REFUSALS: usize = 16;
/// Bytes of a request's head.
const LARGEST_HEAD: usize = 16 << 10;
const MAX_HEADERS: usize = 64;
/// Time allowed for a request's head.
const HEAD_TIME: Duration = Duration::from_secs(10);
/// Time allowed for an answer that is not live.
const ANSWER_TIME: Duration = Duration::from_secs(300);
/// Time allowed for using the ticket.
const TICKET_TIME: Duration = Duration::from_secs(60);
/// Pause after a connection could not be accepted, as when file descriptors have run out.
const REST: Duration = Duration::from_millis(100);
/// Threads that read the store.
const READERS: usize = 4;

/// A listening site.
pub struct Server {
    listener: TcpListener,
    address: SocketAddr,
    state: Arc<AppState>,
    runtime: Runtime,
    interrupt: Signal,
    terminate: Signal,
}

impl std::fmt::Debug for Server {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Server")
            .field("address", &self.address)
            .finish_non_exhaustive()
    }
}

impl Server {
    /// Opens the store and binds the address; port 0 is any free one. From now on SIGINT and
    /// SIGTERM end the site properly instead of killing the process.
    ///
    /// # Errors
    /// [`WebError`] if one of them is not available.
    pub fn open(site: Site, listen: IpAddr, port: u16) -> Result<Self, WebError> {
        if !pinwise_report::page::has_place_for_data(&site.page) {
            return Err(WebError::Page);
        }
        let listener = bind(SocketAddr::new(listen, port))?;
        let address = listener.local_addr()?;
        let policy = Policy {
            listen,
            port: address.port(),
        };
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .max_blocking_threads(READERS)
            .build()?;
        let (interrupt, terminate) = {
            let _inside = runtime.enter();
            (
                signal(SignalKind::interrupt())?,
                signal(SignalKind::terminate())?,
            )
        };
        Ok(Self {
            state: Arc::new(AppState::new(site, policy)?),
            listener,
            address,
            runtime,
            interrupt,
            terminate,
        })
    }

    /// The address it listens on.
    #[must_use]
    pub const fn address(&self) -> SocketAddr {
        self.address
    }

    /// Answers until SIGINT or SIGTERM ends the process.
    ///
    /// # Errors
    /// [`WebError::System`] if the system gives no thread or signal.
    pub fn serve(mut self) -> Result<(), WebError> {
        self.listener.set_nonblocking(true)?;
        let ended = self.runtime.block_on(async {
            let listener = tokio::net::TcpListener::from_std(self.listener)?;
            tokio::select! {
                () = answer(listener, &self.state) => {}
                () = self.state.changes.poll(&self.state.reader) => {}
                _ = self.interrupt.recv() => {}
                _ = self.terminate.recv() => {}
            }
            Ok(())
        });
        // A reader that waits for a lock would delay the end.
        self.runtime.shutdown_background();
        ended
    }
}

fn bind(address: SocketAddr) -> Result<TcpListener, WebError> {
    TcpListener::bind(address).map_err(|reason| match reason.kind() {
        std::io::ErrorKind::AddrInUse => WebError::PortInUse {
            address: address.ip().to_string(),
            port: address.port(),
        },
        _ => WebError::Listen { address, reason },
    })
}

async fn answer(listener: tokio::net::TcpListener, state: &Arc<AppState>) {
    let site = router(Arc::clone(state));
    let stranger = Router::new().fallback(refuse);
    let places = Arc::new(Semaphore::new(PLACES));
    let refusals = Arc::new(Semaphore::new(REFUSALS));
    let mut waiting = WaitingRoom::default();
    let burnt = Arc::clone(state);
    tokio::spawn(async move {
        sleep(TICKET_TIME).await;
        burnt.burn_ticket();
    });
    loop {
        let Ok((stream, peer)) = listener.accept().await else {
            sleep(REST).await;
            continue;
        };
        if !state.serves(&stream, peer) {
            if let Ok(place) = Arc::clone(&refusals).try_acquire_owned() {
                let router = stranger.clone();
                tokio::spawn(async move {
                    converse(stream, router).await;
                    drop(place);
                });
            }
            continue;
        }
        let guest = Guest::new(&places);
        let place = guest.place();
        let router = site.clone().layer(Extension(guest));
        let connection = tokio::spawn(converse(stream, router));
        waiting.admit(place, connection.abort_handle());
    }
}

/// One request and its answer. Errors are the other side's problem.
async fn converse(stream: TcpStream, router: Router) {
    // A small event must be sent at once.
    let _ = stream.set_nodelay(true);
    let is_live = Arc::new(AtomicBool::new(false));
    let mark = Arc::clone(&is_live);
    let marked = router.layer(map_response(move |response: Response| {
        let is_endless = response.extensions().get::<Endless>().is_some();
        mark.fetch_or(is_endless, Ordering::Relaxed);
        ready(response)
    }));
    let mut http = http1::Builder::new();
    http.timer(TokioTimer::new())
        .header_read_timeout(HEAD_TIME)
        .max_buf_size(LARGEST_HEAD)
        .max_headers(MAX_HEADERS)
        .keep_alive(false);
    let connection = http.serve_connection(TokioIo::new(stream), TowerToHyperService::new(marked));
    tokio::pin!(connection);
    if timeout(ANSWER_TIME, connection.as_mut()).await.is_err() && is_live.load(Ordering::Relaxed) {
        let _ = connection.await;
    }
}

/// The answer to other local users, whatever they request.
async fn refuse(_: Request) -> Response {
    let body = "This site answers the user who started it.\n";
    let mut response = (StatusCode::FORBIDDEN, body).into_response();
    protect(response.headers_mut());
    response
}
