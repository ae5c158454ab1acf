//! One POST request.

use crate::{Destination, Endpoint, Protocol, partial};
use http_body_util::{BodyExt, Collected, Full, Limited};
use hyper::body::{Body, Bytes, Incoming};
use hyper::client::conn::http1;
use hyper::header::{AUTHORIZATION, HOST, HeaderMap, RETRY_AFTER, USER_AGENT};
use hyper::{Method, Request, StatusCode, Uri};
use hyper_util::rt::TokioIo;
use std::io;
use std::sync::Arc;
use std::time::Duration;
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::rustls::pki_types::ServerName;
use tokio_rustls::rustls::{ClientConfig, RootCertStore};

/// The limit from the first packet to the end of the response.
const PATIENCE: Duration = Duration::from_secs(30);
/// The most bytes read of an error response.
const ANSWER_BYTES_MAX: usize = 4096;

/// The outcome of a request.
#[derive(Debug)]
pub enum Outcome {
    /// The server accepted it.
    Taken,
    /// The server rejected it permanently.
    Refused(String),
    /// It failed and can be tried again, after the time that the server names.
    Failed {
        /// Why.
        why: String,
        /// The time that the server names.
        not_before: Option<Duration>,
    },
}

/// Headers that describe a body.
pub type Headers = &'static [(&'static str, &'static str)];

/// Sends one request of a protocol.
pub(crate) async fn push(to: &Destination, body: Vec<u8>) -> Outcome {
    match exchange_within(&to.endpoint, to.protocol.headers(), body).await {
        (Outcome::Taken, answer) if to.protocol == Protocol::Otlp => {
            partial::rejected(&answer).map_or(Outcome::Taken, Outcome::Refused)
        }
        (outcome, _) => outcome,
    }
}

/// Sends one request over a connection of its own: with one request in 15 s, many servers would close an idle connection.
pub async fn post(to: &Endpoint, headers: Headers, body: Vec<u8>) -> Outcome {
    exchange_within(to, headers, body).await.0
}

/// The outcome, and the beginning of the answer.
async fn exchange_within(to: &Endpoint, headers: Headers, body: Vec<u8>) -> (Outcome, Bytes) {
    let failed = |why| (Outcome::Failed { why, not_before: None }, Bytes::new());
    match tokio::time::timeout(PATIENCE, try_post(to, headers, body)).await {
        Ok(Ok((status, headers, answer))) => (judge(status, &headers, &answer), answer),
        Ok(Err(why)) => failed(why),
        Err(_) => failed(format!("no answer within {} s", PATIENCE.as_secs())),
    }
}

fn judge(status: StatusCode, headers: &HeaderMap, answer: &[u8]) -> Outcome {
    if status.is_success() {
        return Outcome::Taken;
    }
    let answer = String::from_utf8_lossy(answer);
    let said: String = answer.lines().next().unwrap_or_default().trim().chars().take(200).collect();
    let why = format!("it answers {status}{}{said}", if said.is_empty() { "" } else { ": " });
    if status.is_server_error() || status == StatusCode::TOO_MANY_REQUESTS {
        let seconds = headers.get(RETRY_AFTER).and_then(|value| value.to_str().ok()?.trim().parse().ok());
        return Outcome::Failed { why, not_before: seconds.map(Duration::from_secs) };
    }
    Outcome::Refused(why)
}

type Answer = (StatusCode, HeaderMap, Bytes);

async fn try_post(to: &Endpoint, headers: Headers, body: Vec<u8>) -> Result<Answer, String> {
    let (host, secure) = (host(&to.uri), to.uri.scheme_str() == Some("https"));
    let port = to.uri.port_u16().unwrap_or(if secure { 443 } else { 80 });
    let connected = TcpStream::connect((host, port)).await;
    let stream = connected.map_err(|error| format!("cannot connect: {error}"))?;
    let request = request(to, headers, body).map_err(|error| error.to_string())?;
    if secure {
        let name = ServerName::try_from(host.to_owned()).map_err(|error| error.to_string())?;
        let connector = TlsConnector::from(Arc::new(trusting_the_system()));
        let stream = connector.connect(name, stream).await;
        exchange(stream.map_err(|error| tls_failed(&error))?, request).await
    } else {
        exchange(stream, request).await
    }
}

/// The name without the brackets of an IPv6 address.
fn host(uri: &Uri) -> &str {
    let host = uri.host().unwrap_or_default();
    host.strip_prefix('[').and_then(|host| host.strip_suffix(']')).unwrap_or(host)
}

fn request(
    to: &Endpoint,
    headers: Headers,
    body: Vec<u8>,
) -> Result<Request<Full<Bytes>>, hyper::http::Error> {
    let path = to.uri.path_and_query().map_or("/", |path| path.as_str());
    let host = to.uri.authority().map_or("", |authority| authority.as_str());
    let mut request = Request::builder().method(Method::POST).uri(path).header(HOST, host);
    request = request.header(USER_AGENT, concat!("headroom/", env!("CARGO_PKG_VERSION")));
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    if let Some(credential) = &to.credential {
        request = request.header(AUTHORIZATION, credential.header());
    }
    request.body(Full::new(Bytes::from(body)))
}

async fn exchange<S>(stream: S, request: Request<Full<Bytes>>) -> Result<Answer, String>
where
    S: tokio::io::AsyncRead + tokio::io::AsyncWrite + Unpin + Send + 'static,
{
    let (mut sender, connection) =
        http1::handshake(TokioIo::new(stream)).await.map_err(|error| error.to_string())?;
    // The task ends with the sender; the request reports errors of the connection.
    tokio::spawn(connection);
    let answer = sender.send_request(request).await.map_err(|error| error.to_string())?;
    let (head, body) = answer.into_parts();
    Ok((head.status, head.headers, beginning(body).await))
}

/// The text of a response; empty where it is too long or incomplete, because the status decides.
async fn beginning(body: Incoming) -> Bytes {
    if body.is_end_stream() {
        return Bytes::new();
    }
    Limited::new(body, ANSWER_BYTES_MAX).collect().await.map_or_else(|_| Bytes::new(), Collected::to_bytes)
}

/// The certificates that this host trusts (`SSL_CERT_FILE`, or the system's store), read for each connection, because
/// they may be replaced meanwhile.
fn trusting_the_system() -> ClientConfig {
    let mut roots = RootCertStore::empty();
    roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
    ClientConfig::builder().with_root_certificates(roots).with_no_client_auth()
}

fn tls_failed(error: &io::Error) -> String {
    format!(
        "its certificate or TLS is not accepted: {error}; a private authority's goes into the system's store or SSL_CERT_FILE"
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use hyper::header::HeaderValue;

    #[test]
    fn only_what_may_pass_is_tried_again() {
        let with =
            |status: u16| judge(StatusCode::from_u16(status).unwrap(), &HeaderMap::new(), b"why\nmore");
        for status in [200, 204] {
            assert!(matches!(with(status), Outcome::Taken), "{status}");
        }
        for status in [400, 401, 404, 301, 413] {
            assert!(matches!(with(status), Outcome::Refused(why) if why.ends_with(": why")), "{status}");
        }
        for status in [429, 500, 503] {
            assert!(matches!(with(status), Outcome::Failed { not_before: None, .. }), "{status}");
        }
    }

    #[test]
    fn a_server_that_says_when_is_believed() {
        let after = |text: &'static str| {
            let headers = HeaderMap::from_iter([(RETRY_AFTER, HeaderValue::from_static(text))]);
            match judge(StatusCode::TOO_MANY_REQUESTS, &headers, b"") {
                Outcome::Failed { not_before, .. } => not_before,
                other => panic!("{other:?}"),
            }
        };
        assert_eq!(after("120"), Some(Duration::from_secs(120)));
        // The other form is a date by the server's clock.
        assert_eq!(after("Fri, 31 Dec 1999 23:59:59 GMT"), None);
    }
}
