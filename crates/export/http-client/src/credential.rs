use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use hyper::header::HeaderValue;
use std::fmt;

/// The value of an Authorization header. Debug output does not show it.
#[derive(Clone)]
pub struct Credential(HeaderValue);

/// The text is not a credential. The error does not contain it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("no credential; give `bearer TOKEN` or `basic USER:PASSWORD`")]
pub struct WrongCredential;

impl std::str::FromStr for Credential {
    type Err = WrongCredential;

    /// `bearer TOKEN` or `basic USER:PASSWORD`.
    fn from_str(text: &str) -> Result<Self, WrongCredential> {
        let (kind, secret) = text.trim().split_once(char::is_whitespace).ok_or(WrongCredential)?;
        let secret = secret.trim();
        let value = match kind.to_ascii_lowercase().as_str() {
            "bearer" if !secret.is_empty() => format!("Bearer {secret}"),
            "basic" if secret.contains(':') => format!("Basic {}", BASE64_STANDARD.encode(secret)),
            _ => return Err(WrongCredential),
        };
        let mut value = HeaderValue::try_from(value).map_err(|_| WrongCredential)?;
        value.set_sensitive(true);
        Ok(Credential(value))
    }
}

impl Credential {
    pub(crate) fn header(&self) -> HeaderValue {
        self.0.clone()
    }
}

impl fmt::Debug for Credential {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Credential(not shown)")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_kinds_are_read_and_neither_is_shown() {
        let header = |text: &str| text.parse::<Credential>().unwrap().header();
        assert_eq!(header("bearer abc.def"), "Bearer abc.def");
        // RFC 7617, section 2.
        assert_eq!(header("Basic Aladdin:open sesame"), "Basic QWxhZGRpbjpvcGVuIHNlc2FtZQ==");
        let shown = format!("{:?} {:?}", "bearer abc".parse::<Credential>(), header("bearer abc"));
        assert!(!shown.contains("abc"), "{shown}");
    }

    #[test]
    fn what_is_none_is_refused_without_its_text() {
        for wrong in ["", "secret", "bearer", "bearer ", "basic secret", "digest a:b", "bearer a\u{7}b"] {
            let error = wrong.parse::<Credential>().unwrap_err().to_string();
            assert!(error.contains("bearer TOKEN") && !error.contains("secret"), "{wrong}: {error}");
        }
    }
}
