use http_client::{Credential, Endpoint, WrongEndpoint};
use metrics::{AgentState, SentSeries, Stamp};
use std::fmt;

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

    /// Where a credential may stand instead of in the URL.
    fn instead(self) -> &'static str {
        match self {
            Protocol::RemoteWrite => "HEADROOM_REMOTE_WRITE_AUTH or --push-auth",
            Protocol::Otlp => "HEADROOM_OTLP_AUTH or --push-auth",
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
    pub(crate) fn encode(self, figures: &AgentState, stamp: &Stamp, sent: &mut SentSeries) -> Vec<u8> {
        match self {
            Protocol::RemoteWrite => compressed(&figures.remote_write(stamp, sent)),
            Protocol::Otlp => figures.otlp(stamp),
        }
    }

    /// The body of a request that says that all series ended. OTLP has none.
    pub(crate) fn encode_end(self, stamp: &Stamp, sent: &mut SentSeries) -> Option<Vec<u8>> {
        match self {
            Protocol::RemoteWrite => Some(compressed(&sent.ended(stamp))),
            Protocol::Otlp => None,
        }
    }
}

fn compressed(request: &[u8]) -> Vec<u8> {
    let compressed = snap::raw::Encoder::new().compress_vec(request);
    compressed.expect("a request is far below snappy's 4 GiB: series are bounded")
}

impl Destination {
    /// A server by its URL, with its credential.
    ///
    /// # Errors
    /// [`WrongEndpoint`].
    pub fn new(
        protocol: Protocol,
        url: &str,
        credential: Option<Credential>,
    ) -> Result<Destination, WrongEndpoint> {
        let endpoint = Endpoint::new(url, credential, protocol.example(), protocol.instead())?;
        Ok(Destination { protocol, endpoint })
    }

    /// Whether the credential goes unencrypted to another host, where the network can read it.
    pub fn shows_credential(&self) -> bool {
        self.endpoint.shows_credential()
    }
}

/// The URL without its query, in which some servers expect a token.
impl fmt::Display for Destination {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.protocol.name(), self.endpoint)
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
