//! The ways of authentication that a server may request: libpq's `require_auth`, and no password that a listener on the
//! network could use.
//!
//! ```text
//! Authentication message: tag R | length 4 | request 4 | ...
//! ```

use std::fmt;

/// A way of authentication, by libpq's names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Method {
    /// The password itself.
    Password,
    /// A hash of the password's hash, with a salt of 4 bytes.
    Md5,
    /// GSSAPI.
    Gss,
    /// SSPI.
    Sspi,
    /// SCRAM-SHA-256, also with channel binding.
    ScramSha256,
    /// None: the server trusts the user, or knows it by its certificate.
    None,
}

impl Method {
    const ALL: [(&'static str, Method); 6] = [
        ("password", Method::Password),
        ("md5", Method::Md5),
        ("gss", Method::Gss),
        ("sspi", Method::Sspi),
        ("scram-sha-256", Method::ScramSha256),
        ("none", Method::None),
    ];

    fn bit(self) -> u8 {
        1 << self as u8
    }

    /// Whether one who reads the connection gets the password, or a hash that is as good as it or soon guessed.
    fn shows_password(self) -> bool {
        matches!(self, Method::Password | Method::Md5)
    }
}

impl fmt::Display for Method {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Method::Password => "requests the password in clear text",
            Method::Md5 => "requests the password as an MD5 hash",
            Method::Gss => "requests GSSAPI",
            Method::Sspi => "requests SSPI",
            Method::ScramSha256 => "requests SCRAM-SHA-256",
            Method::None => "did not complete an authentication",
        })
    }
}

/// libpq's `require_auth`: sets of [`Method`] by their bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct RequiredAuth {
    accepted: u8,
    /// Accepted by name.
    named: u8,
}

impl Default for RequiredAuth {
    fn default() -> RequiredAuth {
        RequiredAuth { accepted: u8::MAX, named: 0 }
    }
}

impl RequiredAuth {
    /// `scram-sha-256,none`, or all others than those of `!password,!md5`. No value is repeated in an error: it may be a piece of
    /// a password.
    pub fn parse(text: &str) -> Result<RequiredAuth, String> {
        if text.is_empty() {
            return Ok(RequiredAuth::default());
        }
        let words: Vec<(bool, &str)> = text
            .split(',')
            .map(|word| word.strip_prefix('!').map_or((false, word), |word| (true, word)))
            .collect();
        let is_negative = words[0].0;
        let mut listed = 0;
        for (is_word_negative, word) in words {
            let method = Method::ALL.iter().find(|(name, _)| *name == word).map(|(_, method)| method.bit());
            let method = method.ok_or(
                "require_auth lists none of password, md5, gss, sspi, scram-sha-256, none, each perhaps with an \
                 exclamation mark",
            )?;
            if is_word_negative != is_negative {
                return Err("require_auth lists methods with and without an exclamation mark".into());
            }
            if listed & method != 0 {
                return Err("require_auth lists a method twice".into());
            }
            listed |= method;
        }
        Ok(match is_negative {
            true => RequiredAuth { accepted: !listed, named: 0 },
            false => RequiredAuth { accepted: listed, named: listed },
        })
    }
}

/// Why an authentication is refused before the server gets an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum AuthenticationFault {
    /// `require_auth` does not accept the server's request.
    #[error("it {0}, which require_auth does not accept")]
    NotAccepted(Method),
    /// A listener on the network would get the password.
    #[error("it {0}, and the connection is not encrypted")]
    Readable(Method),
}

impl AuthenticationFault {
    pub(super) fn remedy(self) -> &'static str {
        match self {
            AuthenticationFault::NotAccepted(_) => {
                "change the method in the server's pg_hba.conf, or require_auth (PGREQUIREAUTH)"
            }
            AuthenticationFault::Readable(Method::Md5) => {
                "sslmode=require where the server has TLS, or scram-sha-256 in its pg_hba.conf and a password set again with \
                 password_encryption = 'scram-sha-256'; require_auth=md5 sends the hash all the same"
            }
            AuthenticationFault::Readable(_) => {
                "sslmode=require where the server has TLS, or scram-sha-256 in its pg_hba.conf; require_auth=password sends \
                 the password all the same"
            }
        }
    }
}

/// Checks the requests of one login.
#[derive(Clone, Copy, Debug)]
pub(super) struct RequestCheck {
    required: RequiredAuth,
    /// Over a network, without encryption.
    is_readable: bool,
    is_complete: bool,
}

impl RequestCheck {
    /// For a stream that only the two ends can read: encrypted, a socket of the file system, or the loopback device.
    pub fn unreadable(required: RequiredAuth) -> RequestCheck {
        RequestCheck { required, is_readable: false, is_complete: false }
    }

    /// For TCP over a network.
    pub fn readable(required: RequiredAuth) -> RequestCheck {
        RequestCheck { is_readable: true, ..RequestCheck::unreadable(required) }
    }

    /// These settings for the encrypted stream within this one.
    pub fn within_tls(self) -> RequestCheck {
        RequestCheck::unreadable(self.required)
    }

    /// Whether the client may answer this request; see the protocol's AuthenticationRequest.
    pub fn pass(&mut self, request: u32) -> Result<(), AuthenticationFault> {
        let method = match request {
            0 if self.is_complete => return Ok(()),
            0 => Method::None,
            3 => Method::Password,
            5 => Method::Md5,
            7 => Method::Gss,
            9 => Method::Sspi,
            10 | 11 => Method::ScramSha256,
            12 => {
                self.is_complete = true;
                Method::ScramSha256
            }
            // The client library refuses it.
            _ => return Ok(()),
        };
        let RequiredAuth { accepted, named } = self.required;
        if accepted & method.bit() == 0 {
            return Err(AuthenticationFault::NotAccepted(method));
        }
        if method.shows_password() {
            if self.is_readable && named & method.bit() == 0 {
                return Err(AuthenticationFault::Readable(method));
            }
            self.is_complete = true;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn required(text: &str) -> RequiredAuth {
        RequiredAuth::parse(text).unwrap()
    }

    /// The first request that is refused.
    fn refused(mut check: RequestCheck, requests: &[u32]) -> Option<String> {
        requests.iter().find_map(|request| check.pass(*request).err()).map(|fault| fault.to_string())
    }

    const SCRAM: [u32; 4] = [10, 11, 12, 0];

    #[test]
    fn a_password_is_not_shown_to_a_network_unless_its_method_is_named() {
        let readable =
            |text: &str, requests: &[u32]| refused(RequestCheck::readable(required(text)), requests);
        for (request, name) in [(3, "password"), (5, "md5")] {
            for not_named in ["", "!gss", "!none"] {
                let why = readable(not_named, &[request, 0]).unwrap();
                assert!(why.contains("not encrypted"), "{not_named}: {why}");
            }
            assert_eq!(readable(name, &[request, 0]), None);
            let check = RequestCheck::readable(required(""));
            assert_eq!(refused(check.within_tls(), &[request, 0]), None);
            assert_eq!(refused(RequestCheck::unreadable(required("")), &[request, 0]), None);
        }
        assert_eq!(readable("", &SCRAM), None);
        assert_eq!(readable("", &[0]), None, "trust");
    }

    #[test]
    fn require_auth_is_that_of_libpq() {
        let check =
            |text: &str, requests: &[u32]| refused(RequestCheck::unreadable(required(text)), requests);
        assert_eq!(check("scram-sha-256", &SCRAM), None);
        for other in [3, 5, 7, 9] {
            assert!(check("scram-sha-256", &[other]).unwrap().contains("require_auth"), "{other}");
            assert_eq!(check("!scram-sha-256,!none", &[other]), None);
        }
        // A server that accepts without a proof has not proved anything itself.
        for unproven in [&[0][..], &[10, 0], &[10, 11, 0]] {
            let why = check("scram-sha-256", unproven).unwrap();
            assert!(why.contains("did not complete"), "{why}");
        }
        assert!(check("!none", &[0]).is_some());
        assert_eq!(check("!none", &[3, 0]), None);
        assert_eq!(check("none,md5", &[0]), None);
        assert!(check("!password,!md5", &[5]).is_some());
    }

    #[test]
    fn what_is_no_list_of_methods_is_refused_and_not_repeated() {
        for wrong in ["hunter2", "password,!md5", "!password,md5", "md5,md5", "md5,", " md5", "!"] {
            let why = RequiredAuth::parse(wrong).unwrap_err();
            assert!(why.contains("require_auth") && !why.contains("hunter2"), "{wrong}: {why}");
        }
        assert_eq!(required(""), RequiredAuth::default());
    }
}
