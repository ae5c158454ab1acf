use crate::Credential;
use hyper::Uri;
use metrics::{Stamp, Totals};
use std::fmt;
use std::net::IpAddr;

/// The protocol of a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Protocol {
    /// Prometheus remote-write 1.0: protobuf, compressed with snappy.
    RemoteWrite,
    /// OpenTelemetry's OTLP over HTTP: protobuf.
    Otlp,
}

/// A server to push to.
#[derive(Clone, Debug)]
pub struct Destination {
    pub(crate) protocol: Protocol,
    pub(crate) endpoint: Endpoint,
}

/// Where requests go, and with what credential.
#[derive(Clone, Debug)]
pub struct Endpoint {
    pub(crate) uri: Uri,
    pub(crate) credential: Option<Credential>,
}

/// Why a URL is refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum WrongDestination {
    /// Its scheme is none of the supported ones.
    #[error("no http:// or https:// URL; give the whole of it, as in {example}")]
    NotHttp {
        /// An example that works.
        example: &'static str,
    },
    /// It contains a credential, and every user of the host can read arguments. The error does not repeat the URL.
    #[error("a URL with a password or user in it can be read in ps; give them by {variable} or --push-auth")]
    HoldsCredential {
        /// The variable of the environment.
        variable: &'static str,
    },
}

impl Protocol {
    /// The name in options, messages and metric labels.
    pub fn name(self) -> &'static str {
        match self {
            Protocol::RemoteWrite => "remote-write",
            Protocol::Otlp => "otlp",
        }
    }

    /// The environment variable that may hold the credential.
    pub fn variable(self) -> &'static str {
        match self {
            Protocol::RemoteWrite => "HEADROOM_REMOTE_WRITE_AUTH",
            Protocol::Otlp => "HEADROOM_OTLP_AUTH",
        }
    }

    fn example(self) -> &'static str {
        match self {
            Protocol::RemoteWrite => "http://prometheus:9090/api/v1/write",
            Protocol::Otlp => "http://victoria-metrics:8428/opentelemetry/v1/metrics",
        }
    }

    /// The headers that describe the body.
    pub(crate) fn headers(self) -> &'static [(&'static str, &'static str)] {
        match self {
            Protocol::RemoteWrite => &[
                ("content-type", "application/x-protobuf"),
                ("content-encoding", "snappy"),
                ("x-prometheus-remote-write-version", "0.1.0"),
            ],
            Protocol::Otlp => &[("content-type", "application/x-protobuf")],
        }
    }

    /// The body of a request.
    pub(crate) fn encode(self, totals: &Totals, stamp: &Stamp) -> Vec<u8> {
        match self {
            Protocol::RemoteWrite => snap::raw::Encoder::new()
                .compress_vec(&totals.remote_write(stamp))
                .expect("a request is far below snappy's 4 GiB: classes and waits are bounded"),
            Protocol::Otlp => totals.otlp(stamp),
        }
    }
}

impl Destination {
    /// A server by its URL, with its credential.
    ///
    /// # Errors
    /// [`WrongDestination`].
    pub fn new(
        protocol: Protocol,
        url: &str,
        credential: Option<Credential>,
    ) -> Result<Destination, WrongDestination> {
        let endpoint = Endpoint::new(url, credential, protocol.example(), protocol.variable())?;
        Ok(Destination { protocol, endpoint })
    }

    /// Whether the credential goes unencrypted to another host, where the network can read it.
    pub fn shows_credential(&self) -> bool {
        self.endpoint.shows_credential()
    }
}

impl Endpoint {
    /// A server by its URL, with its credential. `example` is a URL that works, `variable` the one of the environment that may
    /// hold the credential: for messages.
    ///
    /// # Errors
    /// [`WrongDestination`].
    pub fn new(
        url: &str,
        credential: Option<Credential>,
        example: &'static str,
        variable: &'static str,
    ) -> Result<Endpoint, WrongDestination> {
        let not_http = || WrongDestination::NotHttp { example };
        let authority = url.split_once("://").ok_or_else(not_http)?.1.split(['/', '?', '#']).next();
        if authority.is_some_and(|authority| authority.contains('@')) {
            return Err(WrongDestination::HoldsCredential { variable });
        }
        let uri: Uri = url.parse().map_err(|_| not_http())?;
        if !matches!(uri.scheme_str(), Some("http" | "https")) || uri.host().is_none_or(str::is_empty) {
            return Err(not_http());
        }
        Ok(Endpoint { uri, credential })
    }

    /// Whether the credential goes unencrypted to another host, where the network can read it.
    pub fn shows_credential(&self) -> bool {
        let host = self.uri.host().unwrap_or_default();
        let address = host.trim_start_matches('[').trim_end_matches(']').parse::<IpAddr>();
        let loopback =
            host.eq_ignore_ascii_case("localhost") || address.is_ok_and(|address| address.is_loopback());
        self.credential.is_some() && self.uri.scheme_str() == Some("http") && !loopback
    }
}

/// The URL without its query, in which some servers expect a token.
impl fmt::Display for Destination {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.protocol.name(), self.endpoint)
    }
}

/// The URL without its query, in which some servers expect a token.
impl fmt::Display for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (scheme, authority) = (self.uri.scheme_str(), self.uri.authority());
        write!(f, "{}://", scheme.unwrap_or_default())?;
        write!(f, "{}{}", authority.map_or("", |authority| authority.as_str()), self.uri.path())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_cannot_be_pushed_to_is_told_why_and_never_repeated() {
        let wrong = |url| Destination::new(Protocol::Otlp, url, None).unwrap_err().to_string();
        for url in ["", "collector:4318", "ftp://h/x", "http://", "http:///x", "https://a b/"] {
            assert!(wrong(url).contains("as in http://victoria"), "{url}");
        }
        let error = wrong("https://me:secret@h/v1/metrics");
        assert!(error.contains("HEADROOM_OTLP_AUTH") && !error.contains("secret"), "{error}");
    }

    #[test]
    fn a_token_in_the_query_is_not_shown() {
        let destination = Destination::new(Protocol::RemoteWrite, "https://h:1/write?token=secret", None);
        assert_eq!(destination.unwrap().to_string(), "remote-write https://h:1/write");
    }

    #[test]
    fn a_credential_shows_on_the_way_to_another_host_without_tls() {
        let shows = |url: &str, credential: Option<&str>| {
            let credential = credential.map(|text| text.parse().unwrap());
            Destination::new(Protocol::Otlp, url, credential).unwrap().shows_credential()
        };
        let bearer = Some("bearer abc");
        for url in
            ["http://collector:4318/", "http://10.0.0.7/", "http://[fe80::1]/", "http://localhost.example/"]
        {
            assert!(shows(url, bearer) && !shows(url, None), "{url}");
        }
        for url in
            ["https://collector:4318/", "http://localhost:4318/", "http://127.0.0.9/", "http://[::1]:4318/"]
        {
            assert!(!shows(url, bearer), "{url}");
        }
    }
}
