//! TLS to PostgreSQL: libpq's modes, and the stream that the client library reads and writes.

use super::bounded::{Bounded, Socket};
use super::settings::Settings;
use crate::tls::{self, Authorities, Identity, Names, Trust};
use rustls::ClientConfig;
use rustls::pki_types::ServerName;
use std::fs;
use std::io;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::pin::Pin;
use std::sync::Arc;
use tokio_postgres::config::SslMode;
use tokio_postgres::tls::{ChannelBinding, TlsConnect, TlsStream};
use tokio_rustls::TlsConnector;
use tokio_rustls::client;

/// How connections are encrypted.
#[derive(Clone)]
pub(super) struct Tls {
    /// The modes to try, the next one after a refusal; at least one.
    pub tries: &'static [SslMode],
    pub connector: Connector,
}

/// libpq's sslmode.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd)]
enum Mode {
    Disable,
    Allow,
    Prefer,
    Require,
    VerifyCa,
    VerifyFull,
}

/// The value of sslrootcert for the authorities that the system trusts.
const SYSTEM: &str = "system";
/// libpq's directory, in the home directory.
const OWN_DIRECTORY: &str = ".postgresql";

impl Mode {
    fn parse(word: &str) -> Option<Mode> {
        Some(match word {
            "disable" => Mode::Disable,
            "allow" => Mode::Allow,
            "prefer" => Mode::Prefer,
            "require" => Mode::Require,
            "verify-ca" => Mode::VerifyCa,
            "verify-full" => Mode::VerifyFull,
            _ => return None,
        })
    }

    /// As libpq: where either will do, the second is tried if the server refuses the first.
    fn tries(self) -> &'static [SslMode] {
        match self {
            Mode::Disable => &[SslMode::Disable],
            Mode::Allow => &[SslMode::Disable, SslMode::Require],
            Mode::Prefer => &[SslMode::Prefer, SslMode::Disable],
            Mode::Require | Mode::VerifyCa | Mode::VerifyFull => &[SslMode::Require],
        }
    }
}

impl Tls {
    /// Takes the settings of TLS out of all settings. A Unix socket is never encrypted, as with libpq.
    pub fn take(settings: &mut Settings, home: Option<&Path>) -> Result<Tls, String> {
        let word = settings.take("sslmode");
        let root = settings.take("sslrootcert");
        let (certificate, key) = (settings.take("sslcert"), settings.take("sslkey"));
        let revoked = [settings.take("sslcrl"), settings.take("sslcrldir")];
        let is_system = root.as_deref() == Some(SYSTEM);
        let mode = match word.as_deref() {
            None if is_system => Mode::VerifyFull,
            None => Mode::Prefer,
            // The word is not repeated: it may be a piece of a password.
            Some(word) => Mode::parse(word)
                .ok_or("sslmode is none of disable, allow, prefer, require, verify-ca, verify-full")?,
        };
        if is_system && mode < Mode::VerifyFull {
            return Err("sslrootcert=system needs sslmode=verify-full: anyone can get a certificate of \
                        a public authority"
                .into());
        }
        if mode == Mode::Disable || only_sockets(settings) {
            return Tls::new(Mode::Disable, Trust::Any, None);
        }
        if revoked.iter().flatten().next().is_some() {
            return Err("lists of revoked certificates (sslcrl) are not read: leave the setting out".into());
        }
        let own = |name: &str| home.map(|home| home.join(OWN_DIRECTORY).join(name));
        let root = root.map(PathBuf::from).or_else(|| own("root.crt"));
        let trust = trust(mode, is_system, root)?;
        Tls::new(mode, trust, identity(certificate, key, own)?)
    }

    fn new(mode: Mode, trust: Trust, identity: Option<Identity>) -> Result<Tls, String> {
        let mut config = tls::config(trust, rustls::ALL_VERSIONS, identity)?;
        // Servers from 17 on require it with sslnegotiation=direct.
        config.alpn_protocols = vec![b"postgresql".to_vec()];
        Ok(Tls { tries: mode.tries(), connector: Connector(Arc::new(config)) })
    }
}

fn only_sockets(settings: &Settings) -> bool {
    let is_socket = |host: &str| host.starts_with('/') || host.starts_with('@');
    settings.get("hostaddr").is_none()
        && settings.get("host").is_some_and(|hosts| hosts.split(',').all(is_socket))
}

/// A file of authorities is used in every mode if it exists, as in libpq.
fn trust(mode: Mode, is_system: bool, root: Option<PathBuf>) -> Result<Trust, String> {
    let names = if mode == Mode::VerifyFull { Names::Checked } else { Names::Ignored };
    if is_system {
        return Ok(Trust::Signed(Authorities::system()?, names));
    }
    match root {
        Some(file) if file.exists() => Ok(Trust::Signed(Authorities::from_file(&file)?, names)),
        _ if mode < Mode::VerifyCa => Ok(Trust::Any),
        Some(file) => Err(format!(
            "there is no file {} of authorities to check the server's certificate with: give sslrootcert=FILE, \
             or sslrootcert=system for those that this system trusts",
            file.display()
        )),
        None => Err("give sslrootcert=FILE, or sslrootcert=system: no authorities are known".into()),
    }
}

/// The client's certificate: the given one, or libpq's if it exists.
fn identity(
    certificate: Option<String>,
    key: Option<String>,
    own: impl Fn(&str) -> Option<PathBuf>,
) -> Result<Option<Identity>, String> {
    let is_given = certificate.is_some();
    let certificate = certificate.map(PathBuf::from).or_else(|| own("postgresql.crt"));
    let Some(certificate) = certificate.filter(|file| is_given || file.exists()) else { return Ok(None) };
    let key = key.map(PathBuf::from).or_else(|| own("postgresql.key"));
    let key = key.ok_or("sslcert is given without sslkey")?;
    let found =
        fs::metadata(&key).map_err(|error| format!("cannot read the key {}: {error}", key.display()))?;
    // A file of root may be readable by its group, as in libpq.
    let others = if found.uid() == 0 { 0o037 } else { 0o077 };
    if found.permissions().mode() & others != 0 {
        return Err(format!("others can read the key {}: chmod 600 it", key.display()));
    }
    Identity::from_files(&certificate, &key).map(Some)
}

/// Makes handshakes.
#[derive(Clone)]
pub(super) struct Connector(Arc<ClientConfig>);

/// A handshake with one host.
pub(super) struct Handshake {
    connector: TlsConnector,
    host: ServerName<'static>,
}

/// An encrypted stream.
pub(super) type Encrypted = Bounded<Box<client::TlsStream<Socket>>>;

impl Connector {
    /// A handshake with this host.
    pub fn handshake(&self, host: &str) -> Result<Handshake, String> {
        Ok(Handshake { connector: TlsConnector::from(Arc::clone(&self.0)), host: tls::server_name(host)? })
    }
}

impl TlsConnect<Bounded<Socket>> for Handshake {
    type Stream = Encrypted;
    type Error = io::Error;
    type Future = Pin<Box<dyn Future<Output = io::Result<Encrypted>> + Send>>;

    /// The encrypted stream carries records, not messages: these are followed behind the decryption.
    fn connect(self, stream: Bounded<Socket>) -> Self::Future {
        let (socket, rules) = stream.into_inner();
        let handshake = self.connector.connect(self.host, socket);
        Box::pin(async move { Ok(Bounded::new(Box::new(handshake.await?), rules)) })
    }
}

impl TlsStream for Encrypted {
    /// Binds the proof of the password to the server's certificate, so that there can be no man in the middle.
    fn channel_binding(&self) -> ChannelBinding {
        let certificate = self.get_ref().get_ref().1.peer_certificates().and_then(<[_]>::first);
        match certificate.and_then(|certificate| super::end_point::hash(certificate)) {
            Some(hash) => ChannelBinding::tls_server_end_point(hash),
            None => ChannelBinding::none(),
        }
    }
}

/// Describes an error of TLS; `None` for other errors.
pub(super) fn describe_tls_error(error: &tokio_postgres::Error) -> Option<String> {
    let mut source = std::error::Error::source(error);
    while let Some(cause) = source {
        let inside = cause.downcast_ref::<io::Error>().and_then(io::Error::get_ref);
        let tls_error = cause.downcast_ref().or_else(|| inside?.downcast_ref::<rustls::Error>());
        if let Some(error) = tls_error {
            return Some(tls::describe_error(error));
        }
        source = cause.source();
    }
    // The client library has no type for this error.
    let about_tls = error.to_string().starts_with("error performing TLS handshake");
    about_tls.then(|| super::error::describe(error))
}
