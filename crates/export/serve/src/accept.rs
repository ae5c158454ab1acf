//! Accepts connections, and answers the requests that [`Access`] allows.
//!
//! ```text
//! connection ─> Connections::begin ─> TLS ─> request ─> refuse? 421 405 403 401 ─> Connections::enter 503 ─> answer
//!                                             └─ and everything within the time of Pace, while the client is there ─┘
//! ```

use crate::access::{Access, Rules};
use crate::connections::{Class, Connections};
use crate::cross_site::is_cross_site;
use crate::pace::{PATIENCE, Paced, PacedBody, Shared};
use http_body_util::{Either, Full};
use hyper::body::{Body, Bytes, Incoming};
use hyper::header::{
    ALLOW, AUTHORIZATION, CACHE_CONTROL, CONTENT_SECURITY_POLICY, CONTENT_TYPE, HOST, HeaderMap, HeaderName,
    HeaderValue, REFERRER_POLICY, RETRY_AFTER, WWW_AUTHENTICATE, X_CONTENT_TYPE_OPTIONS,
};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Method, Request, Response, StatusCode, Version};
use hyper_util::rt::TokioIo;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use std::io;
use std::net::{IpAddr, TcpListener};
use std::os::fd::{AsFd, OwnedFd};
use std::pin::pin;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio_rustls::TlsAcceptor;

/// Bytes of a request's head.
const HEAD_BYTES_MAX: usize = 32 << 10;
/// Between two checks whether a client that waits for its answer is still there.
const GONE_EVERY: Duration = Duration::from_millis(100);
/// Headers of each answer: a page loads and runs only what this server sends, is shown in no frame, and is not kept; pages of other
/// sites embed nothing of it.
const HEADERS: [(HeaderName, &str); 5] = [
    (
        CONTENT_SECURITY_POLICY,
        "default-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; object-src 'none'",
    ),
    (X_CONTENT_TYPE_OPTIONS, "nosniff"),
    (CACHE_CONTROL, "no-cache"),
    (REFERRER_POLICY, "same-origin"),
    (HeaderName::from_static("cross-origin-resource-policy"), "same-origin"),
];
/// Answered without authentication, and without a place of an authenticated client: it says only that the server lives.
const HEALTH: &str = "/healthz";

/// Why a body cannot be made.
type BoxError = Box<dyn std::error::Error + Send + Sync>;

/// The address of a request's client; an extension of the request.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Client(pub IpAddr);

/// A client has closed its connection before it was answered.
#[derive(Debug, thiserror::Error)]
#[error("the client is gone")]
struct Gone;

/// State that each connection needs.
struct Server<F> {
    access: Access,
    connections: Connections,
    answer: F,
}

/// Accepts connections until the listener fails permanently. `answer` gets the requests that are allowed.
pub(crate) async fn accept<F, A, B>(listener: TcpListener, access: Access, answer: F) -> io::Result<()>
where
    F: Fn(Request<Incoming>) -> A + Send + Sync + 'static,
    A: Future<Output = Response<B>> + Send + 'static,
    B: Body<Data = Bytes, Error: Into<BoxError>> + Send + Unpin + 'static,
{
    let listener = tokio::net::TcpListener::from_std(listener)?;
    let server = Arc::new(Server { access, connections: Connections::default(), answer });
    loop {
        let (stream, client) = match listener.accept().await {
            Ok(accepted) => accepted,
            // No descriptor is free at the moment, or the client has disconnected.
            Err(_) => {
                tokio::time::sleep(Duration::from_millis(100)).await;
                continue;
            }
        };
        // An answer's head must not wait for its body.
        let _ = stream.set_nodelay(true);
        let client = client.ip().to_canonical();
        let number = server.connections.begin(client);
        let socket = stream.as_fd().try_clone_to_owned().ok();
        let place = Place { number, client, socket, server: server.clone() };
        let task = tokio::spawn(serve(stream, place));
        server.connections.set_task(number, task.abort_handle());
        // A request that has arrived is answered before many further connections are accepted.
        tokio::task::yield_now().await;
    }
}

/// The place of a connection; given back however the connection ends.
struct Place<F> {
    number: u64,
    client: IpAddr,
    /// The connection's socket, to see its end behind bytes that are not read yet.
    socket: Option<OwnedFd>,
    server: Arc<Server<F>>,
}

impl<F> Drop for Place<F> {
    fn drop(&mut self) {
        self.server.connections.end(self.number);
    }
}

async fn serve<F, A, B>(stream: TcpStream, place: Place<F>)
where
    F: Fn(Request<Incoming>) -> A + Send + Sync + 'static,
    A: Future<Output = Response<B>> + Send + 'static,
    B: Body<Data = Bytes, Error: Into<BoxError>> + Send + Unpin + 'static,
{
    let pace = Shared::new();
    let rules = place.server.access.rules();
    let served = async {
        match &rules.tls {
            None => serve_requests(Paced { stream, pace: pace.clone() }, &place).await,
            Some(tls) => {
                let handshake = TlsAcceptor::from(tls.clone()).accept(stream);
                // Errors of a connection are the client's.
                if let Ok(Ok(stream)) = tokio::time::timeout(PATIENCE, handshake).await {
                    serve_requests(Paced { stream, pace: pace.clone() }, &place).await;
                }
            }
        }
    };
    let _ = first(served, pace.overdue()).await;
}

/// Waits for the first of two to end, and drops the other. `None` where it is the other.
async fn first<R>(one: impl Future<Output = R>, other: impl Future<Output = ()>) -> Option<R> {
    let (mut one, mut other) = (pin!(one), pin!(other));
    std::future::poll_fn(|context| match one.as_mut().poll(context) {
        Poll::Ready(result) => Poll::Ready(Some(result)),
        Poll::Pending => other.as_mut().poll(context).map(|()| None),
    })
    .await
}

/// Waits until the client has closed its end of a connection. The HTTP library sees that only where it has read all that came before,
/// and it reads no second request before the first is answered.
async fn gone(socket: Option<&OwnedFd>) {
    let Some(socket) = socket else { return std::future::pending().await };
    loop {
        tokio::time::sleep(GONE_EVERY).await;
        let mut sockets = [PollFd::new(socket, PollFlags::RDHUP)];
        if poll(&mut sockets, Some(&Timespec::default())).is_ok() && !sockets[0].revents().is_empty() {
            return;
        }
    }
}

async fn serve_requests<S, F, A, B>(paced: Paced<S>, place: &Place<F>)
where
    S: AsyncRead + AsyncWrite + Unpin,
    F: Fn(Request<Incoming>) -> A,
    A: Future<Output = Response<B>>,
    B: Body<Data = Bytes, Error: Into<BoxError>> + Unpin + 'static,
{
    let pace = paced.pace.clone();
    let service = service_fn(|request| {
        let pace = pace.clone();
        async move {
            pace.begin_answer();
            let answered = first(respond(request, place, &pace), gone(place.socket.as_ref())).await;
            answered.map(|response| response.map(|body| PacedBody { body, pace })).ok_or(Gone)
        }
    });
    let mut connection = http1::Builder::new();
    connection.max_buf_size(HEAD_BYTES_MAX);
    // Errors of a connection are the client's.
    let _ = connection.serve_connection(TokioIo::new(paced), service).await;
}

type Sent<B> = Either<B, Full<Bytes>>;

async fn respond<F, A, B>(
    mut request: Request<Incoming>,
    place: &Place<F>,
    pace: &Shared,
) -> Response<Sent<B>>
where
    F: Fn(Request<Incoming>) -> A,
    A: Future<Output = Response<B>>,
    B: Body<Data = Bytes, Error: Into<BoxError>>,
{
    let server = &place.server;
    let rules = server.access.rules();
    let class = Class::from_path(request.uri().path());
    let is_open = request.uri().path() == HEALTH;
    let authorization = request.headers().get(AUTHORIZATION).cloned();
    let mut response = match refuse(&request, &server.access, &rules) {
        Some(refusal) => refusal.map(Either::Right),
        None if !is_open && !server.access.allows(&rules, authorization.as_ref()).await => {
            unauthorized(&rules).map(Either::Right)
        }
        None if !is_open && !server.connections.enter(place.number, class) => busy().map(Either::Right),
        None => {
            request.extensions_mut().insert(Client(place.client));
            let response = (server.answer)(request).await;
            if class == Class::Stream && response.status() == StatusCode::OK {
                pace.begin_stream();
            }
            response.map(Either::Left)
        }
    };
    for (name, value) in HEADERS {
        response.headers_mut().entry(name).or_insert(HeaderValue::from_static(value));
    }
    response
}

/// The answer to a request that no client may make.
fn refuse(request: &Request<Incoming>, access: &Access, rules: &Rules) -> Option<Response<Full<Bytes>>> {
    if !access.is_host(rules, host(request)) {
        let text = "this host has another name: ask for its address or localhost, or start headroom with \
                    --host-name NAME for the name that you use\n";
        return Some(plain(StatusCode::MISDIRECTED_REQUEST, text));
    }
    if request.method() != Method::GET && request.method() != Method::HEAD {
        let mut response = plain(StatusCode::METHOD_NOT_ALLOWED, "only GET\n");
        response.headers_mut().insert(ALLOW, HeaderValue::from_static("GET, HEAD"));
        return Some(response);
    }
    if is_cross_site(request, host(request), |name| access.is_named(name)) {
        let text = "a page of another site made this request: open this page by its own address, \
                    or give --host-name NAME where a proxy serves it by that name\n";
        return Some(plain(StatusCode::FORBIDDEN, text));
    }
    None
}

fn unauthorized(rules: &Rules) -> Response<Full<Bytes>> {
    let mut response = plain(StatusCode::UNAUTHORIZED, "a password or a token is needed\n");
    for challenge in rules.challenges() {
        response.headers_mut().append(WWW_AUTHENTICATE, HeaderValue::from_static(challenge));
    }
    response
}

/// The host that a request is for, where it says one. A program of HTTP 1.0 may say none; a browser always says one.
fn host(request: &Request<Incoming>) -> Option<&str> {
    if let Some(authority) = request.uri().authority() {
        return Some(authority.as_str());
    }
    let headers: &HeaderMap = request.headers();
    let mut values = headers.get_all(HOST).iter();
    match (values.next(), values.next()) {
        (Some(value), None) => value.to_str().ok(),
        (None, None) if request.version() == Version::HTTP_10 => Some("localhost"),
        _ => None,
    }
}

fn busy() -> Response<Full<Bytes>> {
    let mut response = plain(StatusCode::SERVICE_UNAVAILABLE, "too many streams are open\n");
    response.headers_mut().insert(RETRY_AFTER, HeaderValue::from_static("10"));
    response
}

fn plain(status: StatusCode, text: &'static str) -> Response<Full<Bytes>> {
    let mut response = Response::new(Full::new(Bytes::from_static(text.as_bytes())));
    *response.status_mut() = status;
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("text/plain; charset=utf-8"));
    response
}

#[cfg(test)]
mod tests;
