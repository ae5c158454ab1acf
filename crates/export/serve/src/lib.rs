//! The HTTP server of `record --metrics` and of the agent.
//!
//! ```text
//! routes.rs   GET /metrics        ─> Exposition::text(), OpenMetrics or the older format, as the Accept header asks
//!             GET /, /app.js ...  ─> files.rs: the page, embedded, with an ETag
//!             GET /api/v1/...     ─> page::Api, by a thread that may wait
//!             GET /api/v1/stream  ─> stream.rs: server-sent events, at most STREAMS_MAX
//!             GET /healthz /readyz
//! ```
//!
//! One thread and [`CONNECTIONS_MAX`] connections, each for one request that is sent and answered within [`PATIENCE`];
//! [`STREAMS_MAX`] streams beside them, each as long as its client takes what is sent. When all connections are in use, a new
//! one replaces the oldest one of the address with the most. The server reads what was collected and never a source, so that
//! neither a scrape nor a page costs a database anything.

mod files;
mod routes;
mod stream;

pub use stream::STREAMS_MAX;

use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use metrics::Exposition;
use page::Api;
use routes::Site;
use std::convert::Infallible;
use std::io;
use std::net::{IpAddr, SocketAddr, TcpListener};
use std::pin::pin;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Arc, Mutex, OnceLock};
use std::time::Duration;
use stream::Stalled;
use tokio::net::TcpStream;
use tokio::task::AbortHandle;

/// The most clients that are served in parallel: few servers scrape a recorder, and each answer may take megabytes.
pub const CONNECTIONS_MAX: usize = 32;
/// The time that a client has to send its request and read the answer: Prometheus' default timeout of a scrape.
pub const PATIENCE: Duration = Duration::from_secs(10);

/// How often it is checked whether the client of a stream still takes something.
const STALL_CHECK: Duration = Duration::from_secs(1);
/// Threads that read the history or wait for figures: requests beyond that wait.
const THREADS_MAX: usize = 8;

/// Serves metrics in a thread of its own until the program ends. Returns the address that it listens on.
///
/// # Errors
/// Where the address cannot be listened on.
pub fn metrics<T: Exposition + Send + 'static>(
    address: SocketAddr,
    served: Arc<Mutex<T>>,
) -> io::Result<SocketAddr> {
    serve(address, Site { exposition: served, api: None })
}

/// The same, and the page with its data.
///
/// # Errors
/// Where the address cannot be listened on.
pub fn page<T: Exposition + Send + 'static>(
    address: SocketAddr,
    served: Arc<Mutex<T>>,
    api: Arc<Api>,
) -> io::Result<SocketAddr> {
    serve(address, Site { exposition: served, api: Some(api) })
}

fn serve<T: Exposition + Send + 'static>(address: SocketAddr, site: Site<T>) -> io::Result<SocketAddr> {
    let listener = TcpListener::bind(address)?;
    listener.set_nonblocking(true)?;
    let bound = listener.local_addr()?;
    let mut runtime = tokio::runtime::Builder::new_current_thread();
    let runtime = runtime.enable_all().max_blocking_threads(THREADS_MAX).build()?;
    std::thread::Builder::new().name("serve".into()).spawn(move || {
        // A listener that fails permanently ends the server, not the program.
        let _ = runtime.block_on(accept(listener, Arc::new(site)));
    })?;
    Ok(bound)
}

/// Set once a connection is a stream.
type Stream = Arc<OnceLock<Stalled>>;

async fn accept<T: Exposition + Send + 'static>(listener: TcpListener, site: Arc<Site<T>>) -> io::Result<()> {
    let listener = tokio::net::TcpListener::from_std(listener)?;
    // Oldest first.
    let mut open: Vec<(IpAddr, AbortHandle, Stream)> = Vec::new();
    loop {
        let (stream, client) = match listener.accept().await {
            Ok(accepted) => accepted,
            // No descriptor is free at the moment, or the client has disconnected.
            Err(_) => {
                tokio::time::sleep(Duration::from_millis(100)).await;
                continue;
            }
        };
        // Streams have a bound of their own.
        open.retain(|(_, task, stream)| !task.is_finished() && stream.get().is_none());
        if open.len() >= CONNECTIONS_MAX {
            let addresses: Vec<IpAddr> = open.iter().map(|(address, ..)| *address).collect();
            open.remove(to_close(&addresses)).1.abort();
        }
        let is_stream = Stream::default();
        let task = tokio::spawn(serve_request(stream, site.clone(), is_stream.clone()));
        open.push((client.ip(), task.abort_handle(), is_stream));
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

async fn serve_request<T: Exposition + Send + 'static>(
    stream: TcpStream,
    site: Arc<Site<T>>,
    is_stream: Stream,
) {
    let answer = service_fn(|request| {
        let (site, is_stream) = (site.clone(), is_stream.clone());
        async move {
            let response = routes::answer(request, site).await;
            if let Some(stalled) = response.extensions().get::<Stalled>() {
                let _ = is_stream.set(stalled.clone());
            }
            Ok::<_, Infallible>(response)
        }
    });
    let mut http = http1::Builder::new();
    // An idle connection would count towards the limit, and could be closed just before its client uses it again.
    http.keep_alive(false);
    let mut connection = pin!(http.serve_connection(TokioIo::new(stream), answer));
    // Errors of a connection are the client's.
    if tokio::time::timeout(PATIENCE, &mut connection).await.is_ok() {
        return;
    }
    while let Some(stalled) = is_stream.get().filter(|stalled| !stalled.0.load(Relaxed)) {
        if tokio::time::timeout(STALL_CHECK, &mut connection).await.is_ok() || stalled.0.load(Relaxed) {
            return;
        }
    }
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
