use crate::in_time::InTime;
use crate::{Endpoint, Tls};
use http_body_util::{BodyExt, Full, LengthLimitError, Limited};
use hyper::body::{Body, Bytes, Incoming};
use hyper::client::conn::http1;
use hyper::header::{AUTHORIZATION, HOST, HeaderMap, HeaderName, HeaderValue, USER_AGENT};
use hyper::{Method, Request, StatusCode, Uri};
use hyper_util::rt::TokioIo;
use std::io;
use std::time::{Duration, Instant};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::rustls::pki_types::ServerName;

/// A POST.
#[derive(Clone, Debug)]
pub struct Call {
    /// Headers beside those of the endpoint.
    pub headers: Vec<(HeaderName, HeaderValue)>,
    /// Bytes of the request's body.
    pub body: Vec<u8>,
    /// The limit from the first packet to the end of the answer.
    pub patience: Duration,
    /// The most bytes that are read of the answer.
    pub answer_bytes_max: usize,
}

/// Answer of a server.
#[derive(Debug)]
pub struct Answer {
    /// The status.
    pub status: StatusCode,
    /// The headers.
    pub headers: HeaderMap,
    /// The body; the error where it is too long or incomplete.
    pub body: Result<Bytes, Failed>,
}

/// Why there is no answer.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Failed {
    /// No connection, or it broke.
    #[error("{0}")]
    Connection(String),
    /// It took too long.
    #[error("no answer within {seconds} s")]
    Late {
        /// The limit.
        seconds: u64,
    },
    /// It is too long.
    #[error("its answer is longer than {bytes_max} bytes")]
    TooLong {
        /// The limit.
        bytes_max: usize,
    },
}

/// Sends one request over a connection of its own and reads the answer. Without `tls`, what this host trusts when the
/// connection is made counts.
///
/// # Errors
/// [`Failed`]: no answer came. A status that is not a success is an answer.
pub async fn exchange(to: &Endpoint, call: Call, tls: Option<&Tls>) -> Result<Answer, Failed> {
    let patience = call.patience;
    let late = Failed::Late { seconds: patience.as_secs() };
    let until = Instant::now() + patience;
    match tokio::time::timeout(patience, connect_and_send(to, call, tls, until)).await {
        Ok(Ok(answer)) => Ok(answer),
        Ok(Err(_)) if Instant::now() >= until => Err(late),
        Ok(Err(why)) => Err(Failed::Connection(why)),
        Err(_) => Err(late),
    }
}

async fn connect_and_send(
    to: &Endpoint,
    call: Call,
    tls: Option<&Tls>,
    until: Instant,
) -> Result<Answer, String> {
    let uri = to.uri();
    let (host, secure) = (host(uri), uri.scheme_str() == Some("https"));
    let port = uri.port_u16().unwrap_or(if secure { 443 } else { 80 });
    let connected = TcpStream::connect((host, port)).await;
    let stream = connected.map_err(|error| format!("cannot connect: {error}"))?;
    let bytes_max = call.answer_bytes_max;
    let request = request(to, call).map_err(|error| error.to_string())?;
    if secure {
        let name = ServerName::try_from(host.to_owned()).map_err(|error| error.to_string())?;
        let config = tls.map_or_else(|| Tls::system().config(), Tls::config);
        let stream = TlsConnector::from(config).connect(name, stream).await;
        send(InTime::new(stream.map_err(|error| tls_failed(&error))?, until), request, bytes_max).await
    } else {
        send(InTime::new(stream, until), request, bytes_max).await
    }
}

/// The name without the brackets of an IPv6 address.
fn host(uri: &Uri) -> &str {
    let host = uri.host().unwrap_or_default();
    host.strip_prefix('[').and_then(|host| host.strip_suffix(']')).unwrap_or(host)
}

fn request(to: &Endpoint, call: Call) -> Result<Request<Full<Bytes>>, hyper::http::Error> {
    let uri = to.uri();
    let path = uri.path_and_query().map_or("/", |path| path.as_str());
    let host = uri.authority().map_or("", |authority| authority.as_str());
    let mut request = Request::builder().method(Method::POST).uri(path).header(HOST, host);
    request = request.header(USER_AGENT, concat!("headroom/", env!("CARGO_PKG_VERSION")));
    for (name, value) in call.headers {
        request = request.header(name, value);
    }
    if let Some(credential) = to.credential() {
        request = request.header(AUTHORIZATION, credential.header());
    }
    request.body(Full::new(Bytes::from(call.body)))
}

async fn send<S>(stream: InTime<S>, request: Request<Full<Bytes>>, bytes_max: usize) -> Result<Answer, String>
where
    S: tokio::io::AsyncRead + tokio::io::AsyncWrite + Unpin + Send + 'static,
{
    let head_seen = stream.head_seen();
    let (mut sender, connection) =
        http1::handshake(TokioIo::new(stream)).await.map_err(|error| error.to_string())?;
    // The task ends with the sender; the request reports errors of the connection.
    tokio::spawn(connection);
    let answer = sender.send_request(request).await.map_err(|error| error.to_string())?;
    head_seen.set();
    let (head, body) = answer.into_parts();
    Ok(Answer { status: head.status, headers: head.headers, body: read(body, bytes_max).await })
}

async fn read(body: Incoming, bytes_max: usize) -> Result<Bytes, Failed> {
    if body.is_end_stream() {
        return Ok(Bytes::new());
    }
    match Limited::new(body, bytes_max).collect().await {
        Ok(collected) => Ok(collected.to_bytes()),
        Err(error) if error.is::<LengthLimitError>() => Err(Failed::TooLong { bytes_max }),
        Err(error) => Err(Failed::Connection(format!("its answer broke off: {error}"))),
    }
}

fn tls_failed(error: &io::Error) -> String {
    format!(
        "its certificate or TLS is not accepted: {error}; a private authority's goes into the system's store or SSL_CERT_FILE"
    )
}
