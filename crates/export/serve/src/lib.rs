//! The HTTP server of `record --metrics` and of the agent.
//!
//! ```text
//! GET /metrics ─> Exposition::text(), OpenMetrics or the older format, as the Accept header asks
//! GET /        ─> a text that names /metrics
//! ```
//!
//! [`Access`] says who may ask: TLS, passwords, tokens, names of the host. One thread serves all connections; pages,
//! scrapes and streams have bounds of their own, so that none takes the places of another, and slow clients are dropped.
//! The server reads what was collected and never a source, so that a scrape costs a database nothing.

mod accept;
mod access;
mod connections;
mod encoding;
mod pace;

pub use access::{Access, AccessError, Reload, Settings};
pub use connections::{CONNECTIONS_MAX, PAGES_MAX, SCRAPES_MAX, STREAMS_MAX};
pub use pace::PATIENCE;

use http_body_util::Full;
use hyper::body::{Bytes, Incoming};
use hyper::header::{ACCEPT, CONTENT_TYPE};
use hyper::{Request, Response, StatusCode};
use metrics::{Exposition, Format};
use std::io;
use std::net::{SocketAddr, TcpListener};
use std::sync::{Arc, Mutex, PoisonError};

/// Serves in a thread of its own until the program ends. Returns the address that it listens on.
///
/// # Errors
/// Where the address cannot be listened on.
pub fn metrics<T: Exposition + Send + 'static>(
    address: SocketAddr,
    access: Access,
    served: Arc<Mutex<T>>,
) -> io::Result<SocketAddr> {
    let listener = TcpListener::bind(address)?;
    listener.set_nonblocking(true)?;
    let bound = listener.local_addr()?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    std::thread::Builder::new().name("metrics".into()).spawn(move || {
        let answer = move |request| std::future::ready(answer(&request, &*served));
        // A listener that fails permanently ends the server, not the program.
        let _ = runtime.block_on(accept::accept(listener, access, answer));
    })?;
    Ok(bound)
}

fn answer(request: &Request<Incoming>, served: &Mutex<impl Exposition>) -> Response<Full<Bytes>> {
    match request.uri().path() {
        "/metrics" => {
            let accept =
                request.headers().get(ACCEPT).and_then(|value| value.to_str().ok()).unwrap_or_default();
            let format = Format::accepted(accept);
            let text = served.lock().unwrap_or_else(PoisonError::into_inner).text(format);
            response(StatusCode::OK, format.content_type(), text)
        }
        "/healthz" => plain(StatusCode::OK, "ok\n"),
        "/" => plain(StatusCode::OK, "headroom: the metrics are at /metrics\n"),
        _ => plain(StatusCode::NOT_FOUND, "not here; the metrics are at /metrics\n"),
    }
}

fn plain(status: StatusCode, text: &str) -> Response<Full<Bytes>> {
    response(status, "text/plain; charset=utf-8", text.into())
}

fn response(status: StatusCode, content_type: &'static str, text: String) -> Response<Full<Bytes>> {
    let mut response = Response::new(Full::new(Bytes::from(text)));
    *response.status_mut() = status;
    response.headers_mut().insert(CONTENT_TYPE, hyper::header::HeaderValue::from_static(content_type));
    response
}
