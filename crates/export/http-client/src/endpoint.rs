use crate::Credential;
use hyper::Uri;
use std::fmt;
use std::net::IpAddr;

/// Where requests go, and with what credential.
#[derive(Clone, Debug)]
pub struct Endpoint {
    uri: Uri,
    credential: Option<Credential>,
}

/// Why a URL is refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum WrongEndpoint {
    /// Its scheme is none of the supported ones.
    #[error("no http:// or https:// URL; give the whole of it, as in {example}")]
    NotHttp {
        /// An example that works.
        example: &'static str,
    },
    /// It contains a credential, and every user of the host can read arguments. The error does not repeat the URL.
    #[error("a URL with a password or user in it can be read in ps; give them by {instead}")]
    HoldsCredential {
        /// The variable of the environment, or the option.
        instead: &'static str,
    },
}

impl Endpoint {
    /// A server by its URL, with its credential. `example` is a URL that works, `instead` where a credential may
    /// stand instead of in the URL: for messages.
    ///
    /// # Errors
    /// [`WrongEndpoint`].
    pub fn new(
        url: &str,
        credential: Option<Credential>,
        example: &'static str,
        instead: &'static str,
    ) -> Result<Endpoint, WrongEndpoint> {
        let not_http = || WrongEndpoint::NotHttp { example };
        let authority = url.split_once("://").ok_or_else(not_http)?.1.split(['/', '?', '#']).next();
        if authority.is_some_and(|authority| authority.contains('@')) {
            return Err(WrongEndpoint::HoldsCredential { instead });
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

    /// A place below the URL's path, with the URL's query. A prefix stays: `/select/0/prometheus` and `/api/v1/query`.
    #[must_use]
    pub fn below(&self, path: &str) -> Endpoint {
        let mut parts = self.uri.clone().into_parts();
        let query = self.uri.query().map_or_else(String::new, |query| format!("?{query}"));
        let whole = format!("{}{path}{query}", self.uri.path().trim_end_matches('/'));
        // Of valid parts; a path that is not one leaves the URL as it is.
        if let Ok(path) = whole.parse() {
            parts.path_and_query = Some(path);
        }
        let uri = Uri::from_parts(parts).unwrap_or_else(|_| self.uri.clone());
        Endpoint { uri, credential: self.credential.clone() }
    }

    pub(crate) fn uri(&self) -> &Uri {
        &self.uri
    }

    pub(crate) fn credential(&self) -> Option<&Credential> {
        self.credential.as_ref()
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

    fn endpoint(url: &str) -> Endpoint {
        Endpoint::new(url, None, "http://h:9090", "HEADROOM_AUTH").unwrap()
    }

    #[test]
    fn a_place_is_below_any_prefix_and_keeps_the_query() {
        let below = |url: &str| endpoint(url).below("/api/v1/query").uri().to_string();
        assert_eq!(below("http://h:9090"), "http://h:9090/api/v1/query");
        assert_eq!(below("http://h/select/0/prometheus/"), "http://h/select/0/prometheus/api/v1/query");
        assert_eq!(below("https://h/p?team=a"), "https://h/p/api/v1/query?team=a");
    }

    #[test]
    fn a_wrong_url_is_refused_without_its_password() {
        let error = Endpoint::new("https://me:secret@h/", None, "http://h:9090", "HEADROOM_AUTH");
        let error = error.unwrap_err().to_string();
        assert!(error.contains("HEADROOM_AUTH") && !error.contains("secret"), "{error}");
    }
}
