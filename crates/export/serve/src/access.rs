//! Access control: TLS, passwords, tokens, and names of the host. Files are read again when they change.
//!
//! ```text
//! connection ─> Access::rules() ─> tls         handshake, perhaps with a client's certificate
//! request    ─> Access::allows() ─> HostNames  421     ─> method 405, another site 403     ─> password or token 401
//! ```

mod error;
mod files;
mod host_names;
mod passwords;
mod tls;
mod tokens;
mod web_config;

pub use error::AccessError;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use files::Files;
use host::privileges::{Privilege, with};
use host_names::HostNames;
use hyper::header::HeaderValue;
pub(crate) use passwords::HASHES_MAX;
use passwords::{Passwords, Users};
use ring::rand::SystemRandom;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};
use tokens::Tokens;
use web_config::{ClientAuth, WebConfig};

/// Time between two samples at the files: connections may come thousands of times a second.
const LOOK_EVERY: Duration = Duration::from_secs(1);

/// The user's settings of access.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Settings {
    /// A web configuration file of exporter-toolkit: TLS and users.
    pub web_config: Option<PathBuf>,
    /// A file with a token a line.
    pub bearer_token_file: Option<PathBuf>,
    /// Names of the host by which clients ask where nothing authenticates them, beside `localhost`, the address, and on one
    /// that other machines reach the names that this host knows of itself.
    pub host_names: Vec<String>,
    /// Whether an address that other machines reach may do without authentication.
    pub without_authentication: bool,
}

/// Result of a change of the files.
#[derive(Debug)]
pub enum Reload {
    /// The new content counts.
    Done,
    /// The new content is wrong, and the one before counts.
    Refused(AccessError),
}

/// Access control, by files that are read again when they change.
pub struct Access {
    settings: Settings,
    address: SocketAddr,
    host_names: HostNames,
    is_loopback: bool,
    random: SystemRandom,
    passwords: Passwords,
    current: Mutex<Current>,
    report: Box<dyn Fn(Reload) + Send + Sync>,
}

struct Current {
    rules: Arc<Rules>,
    files: Files,
    looked: Instant,
}

/// Contents of the files.
#[derive(Default)]
pub(crate) struct Rules {
    /// None: connections are not encrypted.
    pub tls: Option<Arc<rustls::ServerConfig>>,
    needs_client_certificate: bool,
    users: Users,
    tokens: Option<Tokens>,
}

/// The credentials of a request: its header Authorization.
#[derive(Debug, PartialEq, Eq)]
enum Credentials {
    Password { user: String, password: Vec<u8> },
    Token(Vec<u8>),
}

impl Access {
    /// Reads the files. `report` is called from the server's thread when they changed.
    ///
    /// # Errors
    /// Where a file is wrong, or other machines reach the address and no client would have to authenticate.
    pub fn new(
        settings: Settings,
        address: SocketAddr,
        report: impl Fn(Reload) + Send + Sync + 'static,
    ) -> Result<Access, AccessError> {
        let random = SystemRandom::new();
        let mut files = Files::default();
        let rules = load(&settings, address, &random, &mut files)?;
        let is_loopback = address.ip().to_canonical().is_loopback();
        Ok(Access {
            host_names: match is_loopback {
                true => HostNames::new(address.ip(), &settings.host_names),
                false => HostNames::for_network(&settings.host_names),
            },
            is_loopback,
            passwords: Passwords::new(&random).map_err(|_| no_random_numbers())?,
            current: Mutex::new(Current { rules: Arc::new(rules), files, looked: Instant::now() }),
            settings,
            address,
            random,
            report: Box::new(report),
        })
    }

    /// "https" where connections are encrypted.
    pub fn scheme(&self) -> &'static str {
        if self.rules().tls.is_some() { "https" } else { "http" }
    }

    /// The current contents of the files.
    pub(crate) fn rules(&self) -> Arc<Rules> {
        let mut current = self.current.lock().unwrap_or_else(PoisonError::into_inner);
        if current.looked.elapsed() >= LOOK_EVERY {
            current.looked = Instant::now();
            // As at the start: the key of TLS, and its directory, may be another user's.
            if with(Privilege::Files, || current.files.have_changed()) {
                let mut files = Files::default();
                let read = || load(&self.settings, self.address, &self.random, &mut files);
                match with(Privilege::Files, read) {
                    Ok(rules) => {
                        current.rules = Arc::new(rules);
                        (self.report)(Reload::Done);
                    }
                    Err(error) => (self.report)(Reload::Refused(error)),
                }
                current.files = files;
            }
        }
        current.rules.clone()
    }

    /// Whether a request names this host by one of its names: a page of another site whose name leads to this host does not.
    /// A browser that must authenticate itself does so to a name, and one that checks a certificate finds another name in it:
    /// then any name is accepted at an address that other machines reach.
    pub(crate) fn is_host(&self, rules: &Rules, name: Option<&str>) -> bool {
        let is_any_accepted = !self.is_loopback && (rules.authenticate() || rules.tls.is_some());
        is_any_accepted || name.is_some_and(|name| self.host_names.contain(name))
    }

    /// Whether an authority has a name that the user gave this host.
    pub(crate) fn is_named(&self, authority: &str) -> bool {
        HostNames::given(&self.settings.host_names).contain(authority)
    }

    /// Whether a request with this header Authorization is answered.
    pub(crate) async fn allows(&self, rules: &Rules, authorization: Option<&HeaderValue>) -> bool {
        if !rules.need_credentials() {
            return true;
        }
        match authorization.and_then(|header| Credentials::parse(header.as_bytes())) {
            None => false,
            Some(Credentials::Token(token)) => {
                rules.tokens.as_ref().is_some_and(|tokens| tokens.accept(&token))
            }
            Some(Credentials::Password { user, password }) => {
                self.passwords.verify(&rules.users, &user, &password).await
            }
        }
    }
}

impl Rules {
    fn need_credentials(&self) -> bool {
        !self.users.is_empty() || self.tokens.is_some()
    }

    fn authenticate(&self) -> bool {
        self.need_credentials() || self.needs_client_certificate
    }

    /// Values of the header WWW-Authenticate.
    pub(crate) fn challenges(&self) -> impl Iterator<Item = &'static str> {
        let password = (!self.users.is_empty()).then_some("Basic realm=\"Headroom\", charset=\"UTF-8\"");
        password.into_iter().chain(self.tokens.is_some().then_some("Bearer realm=\"Headroom\""))
    }
}

fn load(
    settings: &Settings,
    address: SocketAddr,
    random: &SystemRandom,
    files: &mut Files,
) -> Result<Rules, AccessError> {
    let mut rules = Rules::default();
    if let Some(path) = &settings.web_config {
        let config =
            WebConfig::parse(&read_text(path, Files::read, files)?).map_err(|why| wrong(path, &why))?;
        if let Some(tls) = &config.tls {
            let directory = path.parent().unwrap_or(Path::new(""));
            rules.tls = Some(tls::server_config(tls, directory, files)?);
            rules.needs_client_certificate = tls.client_auth_type == ClientAuth::RequireAndVerifyClientCert;
        }
        rules.users = config.users;
    }
    if let Some(path) = &settings.bearer_token_file {
        let text = read_text(path, Files::read_private, files)?;
        rules.tokens = Some(Tokens::parse(&text, random).map_err(|why| wrong(path, &why))?);
    }
    let is_open = !address.ip().to_canonical().is_loopback() && !rules.authenticate();
    match is_open && !settings.without_authentication {
        true => Err(AccessError::Unprotected(address)),
        false => Ok(rules),
    }
}

fn read_text(
    path: &Path,
    read: impl Fn(&mut Files, &Path) -> Result<Vec<u8>, AccessError>,
    files: &mut Files,
) -> Result<String, AccessError> {
    String::from_utf8(read(files, path)?).map_err(|_| wrong(path, "it is not UTF-8 text"))
}

fn wrong(path: &Path, why: &str) -> AccessError {
    AccessError::Wrong(path.to_owned(), why.to_owned())
}

fn no_random_numbers() -> AccessError {
    AccessError::Unreadable("/dev/urandom".into(), "the kernel gives no random numbers".into())
}

impl Credentials {
    /// Reads the header Authorization by RFC 7617 and RFC 6750.
    fn parse(header: &[u8]) -> Option<Credentials> {
        let text = std::str::from_utf8(header).ok()?;
        let (scheme, rest) = text.trim().split_once(' ')?;
        let rest = rest.trim();
        if scheme.eq_ignore_ascii_case("bearer") {
            return Some(Credentials::Token(rest.into()));
        }
        if !scheme.eq_ignore_ascii_case("basic") {
            return None;
        }
        let decoded = STANDARD.decode(rest).ok()?;
        let colon = decoded.iter().position(|byte| *byte == b':')?;
        let user = String::from_utf8(decoded[..colon].to_vec()).ok()?;
        Some(Credentials::Password { user, password: decoded[colon + 1..].to_vec() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    #[test]
    fn credentials_are_those_of_the_two_schemes() {
        let password = |user: &str, password: &str| {
            Some(Credentials::Password { user: user.into(), password: password.into() })
        };
        let token = |token: &str| Some(Credentials::Token(token.into()));
        for (header, expected) in [
            // alice:open:sesame
            ("Basic YWxpY2U6b3BlbjpzZXNhbWU=", password("alice", "open:sesame")),
            ("basic  Og==", password("", "")),
            ("Basic YWxpY2U=", None),
            ("Basic !", None),
            ("Bearer abc", token("abc")),
            ("BEARER   abc ", token("abc")),
            ("Digest abc", None),
            ("abc", None),
            ("", None),
        ] {
            assert_eq!(Credentials::parse(header.as_bytes()), expected, "{header:?}");
        }
        assert_eq!(Credentials::parse(b"Bearer \xff"), None);
    }

    fn open(address: &str, settings: Settings) -> Result<Access, AccessError> {
        Access::new(settings, address.parse().unwrap(), |_| {})
    }

    #[test]
    fn an_address_that_others_reach_needs_authentication_or_the_users_word() {
        let dir = tempfile::tempdir().unwrap();
        let tokens = dir.path().join("tokens");
        std::fs::write(&tokens, "abc\n").unwrap();
        std::fs::set_permissions(&tokens, std::fs::Permissions::from_mode(0o600)).unwrap();
        let empty = dir.path().join("web.yml");
        std::fs::write(&empty, "basic_auth_users: {}\n").unwrap();
        for address in ["127.0.0.1:0", "127.9.9.9:1", "[::1]:0", "[::ffff:127.0.0.1]:0"] {
            assert!(open(address, Settings::default()).is_ok(), "{address}");
        }
        for address in ["0.0.0.0:9187", "[::]:0", "192.0.2.7:0", "[::ffff:192.0.2.7]:0"] {
            let with = |bearer_token_file, web_config, without_authentication| {
                let settings =
                    Settings { bearer_token_file, web_config, without_authentication, ..Settings::default() };
                open(address, settings).map(|_| ())
            };
            assert!(matches!(with(None, None, false), Err(AccessError::Unprotected(_))), "{address}");
            assert!(matches!(with(None, Some(empty.clone()), false), Err(AccessError::Unprotected(_))));
            assert!(with(None, None, true).is_ok());
            assert!(with(Some(tokens.clone()), None, false).is_ok());
        }
    }

    #[test]
    fn a_changed_file_counts_and_a_wrong_one_leaves_the_one_before() {
        let dir = tempfile::tempdir().unwrap();
        let tokens = dir.path().join("tokens");
        let write = |text: &str| {
            std::fs::write(&tokens, text).unwrap();
            std::fs::set_permissions(&tokens, std::fs::Permissions::from_mode(0o600)).unwrap();
        };
        write("first\n");
        let settings = Settings { bearer_token_file: Some(tokens.clone()), ..Settings::default() };
        let (report, reloads) = std::sync::mpsc::channel();
        let report = move |reload| report.send(reload).unwrap();
        let access = Access::new(settings, "127.0.0.1:0".parse().unwrap(), report).unwrap();
        let accepts = |token: &str| {
            access.current.lock().unwrap().looked = Instant::now() - LOOK_EVERY;
            access.rules().tokens.as_ref().unwrap().accept(token.as_bytes())
        };
        assert!(accepts("first") && !accepts("second"));
        write("second\n");
        assert!(accepts("second") && !accepts("first"));
        assert!(matches!(reloads.try_recv(), Ok(Reload::Done)));
        write("\n");
        assert!(accepts("second"));
        assert!(matches!(reloads.try_recv(), Ok(Reload::Refused(_))));
        // Once, not at each request.
        assert!(accepts("second") && reloads.try_recv().is_err());
        write("third\n");
        assert!(accepts("third"));
    }
}
