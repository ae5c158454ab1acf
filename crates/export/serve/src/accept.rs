//! Accepts connections, and answers the requests that [`Access`] allows.
//!
//! ```text
//! connection ─> Connections::begin ─> TLS ─> request ─> refuse? 421 405 401 ─> Connections::enter 503 ─> answer ─> gzip
//!                                             └─ and everything within the time of Pace ─┘
//! ```

use crate::access::{Access, Rules};
use crate::connections::{Class, Connections};
use crate::encoding::{BoxError, accepts_gzip, compress};
use crate::pace::{PATIENCE, Paced, PacedBody, Shared};
use http_body_util::{Either, Full};
use hyper::body::{Body, Bytes, Incoming};
use hyper::header::{
    ALLOW, AUTHORIZATION, CACHE_CONTROL, CONTENT_SECURITY_POLICY, CONTENT_TYPE, HOST, HeaderMap, HeaderValue,
    RETRY_AFTER, WWW_AUTHENTICATE, X_CONTENT_TYPE_OPTIONS,
};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Method, Request, Response, StatusCode, Version};
use hyper_util::rt::TokioIo;
use std::convert::Infallible;
use std::io;
use std::net::TcpListener;
use std::pin::pin;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio_rustls::TlsAcceptor;

/// Bytes of a request's head.
const HEAD_BYTES_MAX: usize = 32 << 10;
/// Answered without authentication, and without a place of an authenticated client: it says only that the server lives.
const HEALTH: &str = "/healthz";

/// What each connection needs.
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
        let place =
            Place { number: server.connections.begin(client.ip().to_canonical()), server: server.clone() };
        let number = place.number;
        let task = tokio::spawn(serve(stream, place));
        server.connections.set_task(number, task.abort_handle());
        // A request that has arrived is answered before many further connections are accepted.
        tokio::task::yield_now().await;
    }
}

/// The place of a connection; given back however the connection ends.
struct Place<F> {
    number: u64,
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
    first(served, pace.overdue()).await;
}

/// Waits for the first of two to end, and drops the other.
async fn first(one: impl Future<Output = ()>, other: impl Future<Output = ()>) {
    let (mut one, mut other) = (pin!(one), pin!(other));
    std::future::poll_fn(|context| {
        match one.as_mut().poll(context).is_ready() || other.as_mut().poll(context).is_ready() {
            true => Poll::Ready(()),
            false => Poll::Pending,
        }
    })
    .await;
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
            let response = respond(request, place, &pace).await;
            Ok::<_, Infallible>(response.map(|body| PacedBody { body, pace }))
        }
    });
    let mut connection = http1::Builder::new();
    connection.max_buf_size(HEAD_BYTES_MAX);
    // Errors of a connection are the client's.
    let _ = connection.serve_connection(TokioIo::new(paced), service).await;
}

type Sent<B> = Either<Either<B, Full<Bytes>>, Full<Bytes>>;

async fn respond<F, A, B>(request: Request<Incoming>, place: &Place<F>, pace: &Shared) -> Response<Sent<B>>
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
    let mut response = match refuse(&request, &server.access) {
        Some(refusal) => refusal.map(Either::Right),
        None if !is_open && !server.access.allows(&rules, authorization.as_ref()).await => {
            unauthorized(&rules).map(Either::Right)
        }
        None if !is_open && !server.connections.enter(place.number, class) => busy().map(Either::Right),
        None => {
            let gzip = accepts_gzip(request.headers());
            let response = (server.answer)(request).await;
            if class == Class::Stream && response.status() == StatusCode::OK {
                pace.begin_stream();
            }
            match gzip {
                true => compress(response).await.map(Either::Left),
                false => response.map(|body| Either::Left(Either::Left(body))),
            }
        }
    };
    // A page loads and runs only what this server sends, and is not kept.
    for (name, value) in [
        (CONTENT_SECURITY_POLICY, "default-src 'self'"),
        (X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (CACHE_CONTROL, "no-cache"),
    ] {
        response.headers_mut().entry(name).or_insert(HeaderValue::from_static(value));
    }
    response
}

/// The answer to a request that no client may make.
fn refuse(request: &Request<Incoming>, access: &Access) -> Option<Response<Full<Bytes>>> {
    if !access.is_host(host(request)) {
        let text = "this host has another name: ask for localhost, or give --host-name NAME\n";
        return Some(plain(StatusCode::MISDIRECTED_REQUEST, text));
    }
    if request.method() != Method::GET && request.method() != Method::HEAD {
        let mut response = plain(StatusCode::METHOD_NOT_ALLOWED, "only GET\n");
        response.headers_mut().insert(ALLOW, HeaderValue::from_static("GET, HEAD"));
        return Some(response);
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
