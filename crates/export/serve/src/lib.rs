//! The HTTP server of `record --metrics`.
//!
//! ```text
//! GET /metrics ─> Totals::text(), OpenMetrics or the older format, as the Accept header asks
//! GET /        ─> a text that names /metrics
//! ```
//!
//! One thread and [`CONNECTIONS_MAX`] connections; a client that sends no request within [`PATIENCE`] is disconnected. It
//! reads [`Totals`] and never a source, so that a scrape costs a database nothing.

use http_body_util::Full;
use hyper::body::{Bytes, Incoming};
use hyper::header::{ACCEPT, CONTENT_TYPE};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Method, Request, Response, StatusCode};
use hyper_util::rt::{TokioIo, TokioTimer};
use metrics::{Format, Totals};
use std::convert::Infallible;
use std::io;
use std::net::{SocketAddr, TcpListener};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::sync::Semaphore;

/// The most clients that are served in parallel; further ones wait.
pub const CONNECTIONS_MAX: usize = 32;
/// The time that a client has to send its request.
pub const PATIENCE: Duration = Duration::from_secs(10);

/// Serves in a thread of its own until the program ends. Returns the address that it listens on.
///
/// # Errors
/// Where the address cannot be listened on.
pub fn metrics(address: SocketAddr, totals: Arc<Mutex<Totals>>) -> io::Result<SocketAddr> {
    let listener = TcpListener::bind(address)?;
    listener.set_nonblocking(true)?;
    let bound = listener.local_addr()?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    std::thread::Builder::new().name("metrics".into()).spawn(move || {
        // A listener that fails permanently ends the server, not the program.
        let _ = runtime.block_on(accept(listener, totals));
    })?;
    Ok(bound)
}

async fn accept(listener: TcpListener, totals: Arc<Mutex<Totals>>) -> io::Result<()> {
    let listener = tokio::net::TcpListener::from_std(listener)?;
    let free = Arc::new(Semaphore::new(CONNECTIONS_MAX));
    loop {
        let Ok(permit) = free.clone().acquire_owned().await else { return Ok(()) };
        let stream = match listener.accept().await {
            Ok((stream, _)) => stream,
            // No descriptor is free at the moment, or the client has disconnected.
            Err(_) => {
                tokio::time::sleep(Duration::from_millis(100)).await;
                continue;
            }
        };
        let totals = totals.clone();
        tokio::spawn(async move {
            let answer = service_fn(move |request| {
                let answer = answer(&request, &totals);
                async move { Ok::<_, Infallible>(answer) }
            });
            let mut connection = http1::Builder::new();
            connection.timer(TokioTimer::new()).header_read_timeout(PATIENCE);
            // Errors of a connection are the client's.
            let _ = connection.serve_connection(TokioIo::new(stream), answer).await;
            drop(permit);
        });
    }
}

fn answer(request: &Request<Incoming>, totals: &Mutex<Totals>) -> Response<Full<Bytes>> {
    if request.method() != Method::GET && request.method() != Method::HEAD {
        return plain(StatusCode::METHOD_NOT_ALLOWED, "only GET\n");
    }
    match request.uri().path() {
        "/metrics" => {
            let accept =
                request.headers().get(ACCEPT).and_then(|value| value.to_str().ok()).unwrap_or_default();
            let format = Format::accepted(accept);
            let text = totals.lock().unwrap_or_else(PoisonError::into_inner).text(format);
            response(StatusCode::OK, format.content_type(), text)
        }
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
