//! The HTTP server of `record --metrics` and of the agent.
//!
//! ```text
//! GET /metrics ─> Exposition::text(), OpenMetrics or the older format, as the Accept header asks
//! GET /        ─> a text that names /metrics
//! ```
//!
//! One thread and [`CONNECTIONS_MAX`] connections, each for one request that is sent and answered within [`PATIENCE`].
//! When all are in use, a new connection replaces the oldest one of the address with the most connections. The server
//! reads what was collected and never a source, so that a scrape costs a database nothing.

use http_body_util::Full;
use hyper::body::{Bytes, Incoming};
use hyper::header::{ACCEPT, CONTENT_TYPE};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Method, Request, Response, StatusCode};
use hyper_util::rt::TokioIo;
use metrics::{Exposition, Format};
use std::convert::Infallible;
use std::io;
use std::net::{IpAddr, SocketAddr, TcpListener};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::net::TcpStream;
use tokio::task::AbortHandle;

/// The most clients that are served in parallel: few servers scrape a recorder, and each answer may take megabytes.
pub const CONNECTIONS_MAX: usize = 32;
/// The time that a client has to send its request and read the answer: Prometheus' default timeout of a scrape.
pub const PATIENCE: Duration = Duration::from_secs(10);

/// Serves in a thread of its own until the program ends. Returns the address that it listens on.
///
/// # Errors
/// Where the address cannot be listened on.
pub fn metrics<T: Exposition + Send + 'static>(
    address: SocketAddr,
    served: Arc<Mutex<T>>,
) -> io::Result<SocketAddr> {
    let listener = TcpListener::bind(address)?;
    listener.set_nonblocking(true)?;
    let bound = listener.local_addr()?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    std::thread::Builder::new().name("metrics".into()).spawn(move || {
        // A listener that fails permanently ends the server, not the program.
        let _ = runtime.block_on(accept(listener, served));
    })?;
    Ok(bound)
}

async fn accept<T: Exposition + Send + 'static>(
    listener: TcpListener,
    served: Arc<Mutex<T>>,
) -> io::Result<()> {
    let listener = tokio::net::TcpListener::from_std(listener)?;
    // Oldest first.
    let mut open: Vec<(IpAddr, AbortHandle)> = Vec::new();
    loop {
        let (stream, client) = match listener.accept().await {
            Ok(accepted) => accepted,
            // No descriptor is free at the moment, or the client has disconnected.
            Err(_) => {
                tokio::time::sleep(Duration::from_millis(100)).await;
                continue;
            }
        };
        open.retain(|(_, task)| !task.is_finished());
        if open.len() >= CONNECTIONS_MAX {
            let addresses: Vec<IpAddr> = open.iter().map(|(address, _)| *address).collect();
            open.remove(to_close(&addresses)).1.abort();
        }
        let task = tokio::spawn(tokio::time::timeout(PATIENCE, serve_request(stream, served.clone())));
        open.push((client.ip(), task.abort_handle()));
        // A request that has arrived is answered before many further connections are accepted.
        tokio::task::yield_now().await;
    }
}

/// The connection to close for a new one: the oldest of the address with the most connections.
fn to_close(addresses: &[IpAddr]) -> usize {
    let count = |address: &IpAddr| addresses.iter().filter(|other| *other == address).count();
    // `max_by_key` returns the last maximum: in reverse order, the oldest.
    (0..addresses.len()).rev().max_by_key(|at| count(&addresses[*at])).unwrap_or(0)
}

async fn serve_request<T: Exposition>(stream: TcpStream, served: Arc<Mutex<T>>) {
    let answer = service_fn(move |request| {
        let answer = answer(&request, &*served);
        async move { Ok::<_, Infallible>(answer) }
    });
    let mut connection = http1::Builder::new();
    // An idle connection would count towards the limit, and could be closed just before its client uses it again.
    connection.keep_alive(false);
    // Errors of a connection are the client's.
    let _ = connection.serve_connection(TokioIo::new(stream), answer).await;
}

fn answer(request: &Request<Incoming>, served: &Mutex<impl Exposition>) -> Response<Full<Bytes>> {
    if request.method() != Method::GET && request.method() != Method::HEAD {
        return plain(StatusCode::METHOD_NOT_ALLOWED, "only GET\n");
    }
    match request.uri().path() {
        "/metrics" => {
            let accept =
                request.headers().get(ACCEPT).and_then(|value| value.to_str().ok()).unwrap_or_default();
            let format = Format::accepted(accept);
            let text = served.lock().unwrap_or_else(PoisonError::into_inner).text(format);
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_oldest_connection_of_the_address_with_the_most_is_closed() {
        let close = |hosts: &[u8]| {
            let addresses: Vec<IpAddr> = hosts.iter().map(|host| [10, 0, 0, *host].into()).collect();
            to_close(&addresses)
        };
        assert_eq!(close(&[1, 2, 2, 3]), 1);
        assert_eq!(close(&[3, 3, 1, 1]), 0);
        assert_eq!(close(&[1]), 0);
    }
}
