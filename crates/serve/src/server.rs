//! Accepts connections, with limits on their number and duration, until a signal ends the server.
//!
//! Each connection carries one request. Connections of slow senders and slow readers are closed,
//! except those of live pages. Unauthenticated connections never use slots of authenticated ones.

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

use super::answers::make_router;
use super::live::Endless;
use super::policy::{Policy, add_protective_headers};
use super::slots::{ConnectionSlot, PendingConnections};
use super::state::AppState;
use super::{Site, WebError};

/// Maximum number of authenticated connections; a live page has up to two.
const MAX_AUTHENTICATED: usize = 64;
/// Maximum number of connections of other local users, which are only refused.
const MAX_REFUSALS: usize = 16;
/// Maximum size of a request's head, bytes.
const MAX_HEAD_BYTES: usize = 16 << 10;
/// Maximum number of headers of a request.
const MAX_HEADERS: usize = 64;
/// Time allowed for a request's head.
const HEAD_TIMEOUT: Duration = Duration::from_secs(10);
/// Time allowed for an answer that is not live.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(300);
/// Time allowed for using the ticket.
const TICKET_LIFETIME: Duration = Duration::from_secs(60);
/// Pause after a connection could not be accepted, for example because file descriptors have run
/// out.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);
/// Number of threads that read the store.
const READER_THREADS: usize = 4;

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
    /// [`WebError`] if the page, the store, the address or the system's resources cannot be used.
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
            .max_blocking_threads(READER_THREADS)
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
                () = accept_connections(listener, &self.state) => {}
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

/// Accepts connections for ever.
async fn accept_connections(listener: tokio::net::TcpListener, state: &Arc<AppState>) {
    let site = make_router(Arc::clone(state));
    let refusing = Router::new().fallback(refuse);
    let slots = Arc::new(Semaphore::new(MAX_AUTHENTICATED));
    let refusals = Arc::new(Semaphore::new(MAX_REFUSALS));
    let mut pending = PendingConnections::default();
    let ticket_state = Arc::clone(state);
    tokio::spawn(async move {
        sleep(TICKET_LIFETIME).await;
        ticket_state.invalidate_ticket();
    });
    loop {
        let Ok((stream, peer)) = listener.accept().await else {
            sleep(ACCEPT_PAUSE).await;
            continue;
        };
        if !state.serves(&stream, peer) {
            if let Ok(permit) = Arc::clone(&refusals).try_acquire_owned() {
                let router = refusing.clone();
                tokio::spawn(async move {
                    serve_connection(stream, router).await;
                    drop(permit);
                });
            }
            continue;
        }
        let slot = ConnectionSlot::new(&slots);
        let permit = slot.permit();
        let router = site.clone().layer(Extension(slot));
        let connection = tokio::spawn(serve_connection(stream, router));
        pending.add(permit, connection.abort_handle());
    }
}

/// Answers the request of one connection. Its errors are ignored: the other side notices them.
async fn serve_connection(stream: TcpStream, router: Router) {
    // Small events must not be delayed.
    let _ = stream.set_nodelay(true);
    let is_live = Arc::new(AtomicBool::new(false));
    let live_flag = Arc::clone(&is_live);
    let marked = router.layer(map_response(move |response: Response| {
        let is_endless = response.extensions().get::<Endless>().is_some();
        live_flag.fetch_or(is_endless, Ordering::Relaxed);
        ready(response)
    }));
    let mut http = http1::Builder::new();
    http.timer(TokioTimer::new())
        .header_read_timeout(HEAD_TIMEOUT)
        .max_buf_size(MAX_HEAD_BYTES)
        .max_headers(MAX_HEADERS)
        .keep_alive(false);
    let connection = http.serve_connection(TokioIo::new(stream), TowerToHyperService::new(marked));
    tokio::pin!(connection);
    if timeout(ANSWER_TIMEOUT, connection.as_mut()).await.is_err()
        && is_live.load(Ordering::Relaxed)
    {
        let _ = connection.await;
    }
}

/// The answer to other local users, whatever they request.
async fn refuse(_: Request) -> Response {
    let body = "This site answers the user who started it.\n";
    let mut response = (StatusCode::FORBIDDEN, body).into_response();
    add_protective_headers(response.headers_mut());
    response
}
