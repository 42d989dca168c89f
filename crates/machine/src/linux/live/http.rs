//! Fetches one page by HTTP/1.1, bounded in size and time.
//!
//! Redirects, TLS and proxies are not supported: a service publishes its figures on its own host.
//! It starts no thread.

use std::future::poll_fn;
use std::pin::pin;
use std::time::Duration;

use hyper::body::Body;
use hyper::header::{ACCEPT, CONNECTION, HOST, USER_AGENT};
use hyper_util::rt::TokioIo;
use tokio::net::TcpStream;

use super::url::Url;

/// Largest page that is read.
const MAX_PAGE_BYTES: usize = 16 * 1024 * 1024;

/// Fetches a page; the error says why that failed.
pub(super) fn fetch_page(url: &Url, limit: Duration) -> Result<Vec<u8>, String> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|error| error.to_string())?;
    runtime.block_on(async {
        let answer = tokio::time::timeout(limit, send_request(url));
        answer
            .await
            .unwrap_or_else(|_| Err(format!("no answer within {limit:?}")))
    })
}

async fn send_request(url: &Url) -> Result<Vec<u8>, String> {
    let stream = TcpStream::connect(url.address()).await;
    let stream = stream.map_err(|error| error.to_string())?;
    let handshake = hyper::client::conn::http1::handshake::<_, String>(TokioIo::new(stream));
    let (mut sender, connection) = handshake.await.map_err(|error| error.to_string())?;
    let mut connection = pin!(connection);
    let answer = async {
        let request = hyper::Request::get(url.path())
            .header(HOST, url.host())
            .header(USER_AGENT, concat!("pinwise/", env!("CARGO_PKG_VERSION")))
            .header(ACCEPT, "text/plain;version=0.0.4,*/*;q=0.1")
            .header(CONNECTION, "close")
            .body(String::new())
            .map_err(|error| error.to_string())?;
        let response = sender.send_request(request).await;
        let response = response.map_err(|error| error.to_string())?;
        let status = response.status();
        if !status.is_success() {
            return Err(format!("the server answered {status}"));
        }
        read_page(response.into_body()).await
    };
    let mut answer = pin!(answer);
    // The answer advances only together with the connection, in this one task.
    let mut is_over = false;
    poll_fn(|context| {
        if !is_over {
            is_over = connection.as_mut().poll(context).is_ready();
        }
        answer.as_mut().poll(context)
    })
    .await
}

async fn read_page(body: hyper::body::Incoming) -> Result<Vec<u8>, String> {
    let mut body = pin!(body);
    let mut page = Vec::new();
    while let Some(frame) = poll_fn(|context| body.as_mut().poll_frame(context)).await {
        let frame = frame.map_err(|error| error.to_string())?;
        if let Ok(data) = frame.into_data() {
            page.extend_from_slice(&data);
        }
        if page.len() > MAX_PAGE_BYTES {
            return Err(format!(
                "the page is larger than {} MiB",
                MAX_PAGE_BYTES >> 20
            ));
        }
    }
    Ok(page)
}
