//! The HTTP server of the agent, and of the page of a history.
//!
//! ```text
//! accept.rs   connection ─> Access: TLS, names, users ─> bounds, pace ─> routes.rs, as long as the client is there
//! routes.rs   GET /metrics        ─> AgentState::text(), OpenMetrics or the older format, as the Accept header asks
//!             GET /, /app.js ...  ─> files.rs: the page, embedded, with an ETag
//!             GET /api/v1/...     ─> work.rs: a bounded queue ─> page::Api, by a thread that may wait
//!             GET /api/v1/stream  ─> stream.rs: server-sent events
//!             GET /healthz /readyz
//! ```
//!
//! [`Access`] says who may ask: TLS, passwords, tokens, names of the host. One thread serves all connections; pages,
//! scrapes and streams have bounds of their own, so that none takes the places of another, and slow clients are dropped.
//! The server reads collected figures and never a source, so that neither a scrape nor a page costs a database anything.

mod accept;
mod access;
mod connections;
mod cross_site;
mod encoding;
mod files;
mod kept;
mod made;
mod pace;
mod routes;
mod stream;
mod work;

pub use access::{Access, AccessError, Reload, Settings};
pub use connections::{CONNECTIONS_MAX, PAGES_MAX, SCRAPES_MAX, STREAMS_MAX};
pub use pace::PATIENCE;
pub use work::{RUN_MAX, WAIT_MAX, WAITING_MAX, WAITING_OF_CLIENT_MAX};

use access::HASHES_MAX;
use host::privileges::{Privilege, give_up_in_thread, with};
use metrics::AgentState;
use page::Api;
use routes::Site;
use std::io;
use std::net::{SocketAddr, TcpListener};
use std::sync::{Arc, Mutex};

/// Threads that make answers, and those that compare passwords.
const THREADS_MAX: usize = routes::THREADS + HASHES_MAX;

/// Serves metrics, and the page with its data, in a thread of its own until the program ends. Returns the address that it
/// listens on.
///
/// # Errors
/// Where the address cannot be listened on.
pub fn serve(
    address: SocketAddr,
    access: Access,
    state: Arc<Mutex<AgentState>>,
    api: Arc<Api>,
) -> io::Result<SocketAddr> {
    let listener = with(Privilege::LowPorts, || TcpListener::bind(address))?;
    listener.set_nonblocking(true)?;
    let bound = listener.local_addr()?;
    let mut runtime = tokio::runtime::Builder::new_current_thread();
    let runtime = runtime.enable_all().max_blocking_threads(THREADS_MAX).build()?;
    let site = Arc::new(Site::new(state, api));
    std::thread::Builder::new().name("serve".into()).spawn(move || {
        // It reads data of other machines. Refused by a filter of system calls, it serves as before.
        let _ = give_up_in_thread(&[Privilege::Files]);
        let answer = move |request| routes::answer(request, site.clone());
        // A listener that fails permanently ends the server, not the program.
        let _ = runtime.block_on(accept::accept(listener, access, answer));
    })?;
    Ok(bound)
}
