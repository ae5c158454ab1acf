//! TLS clients for the sources that make their own connections: which certificates are accepted.
//!
//! ```text
//! Trust ─> config() ─> rustls::ClientConfig      authorities of the system, of browsers or of a file; or any certificate
//! rustls::Error ─> describe_error()              what is wrong with a certificate, for people
//! ```

use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::client::{WebPkiServerVerifier, verify_server_name};
use rustls::crypto::ring;
use rustls::pki_types::pem::{self, PemObject};
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName, UnixTime};
use rustls::server::ParsedCertificate;
use rustls::{
    CertificateError, ClientConfig, DigitallySignedStruct, Error, RootCertStore, SignatureScheme,
    SupportedProtocolVersion,
};
use std::fs::File;
use std::io::BufReader;
use std::path::Path;
use std::sync::Arc;

/// Certificates that are accepted.
pub(crate) enum Trust {
    /// All: the connection is encrypted, but the server is not authenticated.
    Any,
    /// Those that one of these authorities signed.
    Signed(Authorities, Names),
}

/// Whether the certificate must name the host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Names {
    Checked,
    Ignored,
}

/// Authorities that may sign certificates.
pub(crate) struct Authorities {
    roots: RootCertStore,
    /// The certificates of a file: a server may present one of them as its own.
    in_file: Vec<CertificateDer<'static>>,
}

/// The client's own certificate, for servers that request one.
pub(crate) struct Identity {
    pub chain: Vec<CertificateDer<'static>>,
    pub key: PrivateKeyDer<'static>,
}

impl Authorities {
    /// Those that browsers trust, compiled into this program.
    pub fn public() -> Authorities {
        let roots = RootCertStore { roots: webpki_roots::TLS_SERVER_ROOTS.to_vec() };
        Authorities { roots, in_file: Vec::new() }
    }

    /// Those of the operating system, or of SSL_CERT_FILE and SSL_CERT_DIR.
    pub fn system() -> Result<Authorities, String> {
        let mut roots = RootCertStore::empty();
        let found = rustls_native_certs::load_native_certs();
        roots.add_parsable_certificates(found.certs);
        match roots.is_empty() {
            true => Err("this system has no trusted authorities".into()),
            false => Ok(Authorities { roots, in_file: Vec::new() }),
        }
    }

    /// Those of a PEM file.
    pub fn from_file(file: &Path) -> Result<Authorities, String> {
        let unreadable = |why: String| format!("no certificate can be read from {}: {why}", file.display());
        let in_file = certificates(file)?;
        let mut roots = RootCertStore::empty();
        for certificate in &in_file {
            roots.add(certificate.clone()).map_err(|error| unreadable(error.to_string()))?;
        }
        Ok(Authorities { roots, in_file })
    }
}

impl Identity {
    /// A certificate, perhaps with intermediate ones, and its key, both in PEM.
    pub fn from_files(chain: &Path, key: &Path) -> Result<Identity, String> {
        let found = open_pem(key).and_then(PrivateKeyDer::from_pem_reader);
        let key = found.map_err(|error| {
            format!("no key without a passphrase can be read from {}: {error}", key.display())
        })?;
        Ok(Identity { chain: certificates(chain)?, key })
    }
}

fn certificates(file: &Path) -> Result<Vec<CertificateDer<'static>>, String> {
    let unreadable = |why: String| format!("no certificate can be read from {}: {why}", file.display());
    let found = open_pem(file).and_then(|file| CertificateDer::pem_reader_iter(file).collect());
    let found: Vec<_> = found.map_err(|error| unreadable(error.to_string()))?;
    if found.is_empty() { Err(unreadable("there is none in it".into())) } else { Ok(found) }
}

fn open_pem(file: &Path) -> Result<BufReader<File>, pem::Error> {
    host::open_regular_file(file).map(BufReader::new).map_err(pem::Error::Io)
}

/// The configuration of a client.
pub(crate) fn config(
    trust: Trust,
    versions: &[&'static SupportedProtocolVersion],
    identity: Option<Identity>,
) -> Result<ClientConfig, String> {
    let provider = Arc::new(ring::default_provider());
    let builder = ClientConfig::builder_with_provider(Arc::clone(&provider))
        .with_protocol_versions(versions)
        .map_err(|error| error.to_string())?;
    let verifier: Arc<dyn ServerCertVerifier> = match trust {
        Trust::Any => Arc::new(Unverified(provider.signature_verification_algorithms.supported_schemes())),
        Trust::Signed(Authorities { roots, in_file }, names) => {
            let signed = WebPkiServerVerifier::builder_with_provider(Arc::new(roots), provider).build();
            Arc::new(Signed { signed: signed.map_err(|error| error.to_string())?, in_file, names })
        }
    };
    let builder = builder.dangerous().with_custom_certificate_verifier(verifier);
    match identity {
        None => Ok(builder.with_no_client_auth()),
        Some(Identity { chain, key }) => {
            let with = builder.with_client_auth_cert(chain, key);
            with.map_err(|error| format!("the client's certificate and key do not do: {error}"))
        }
    }
}

/// The host's name in the form that a certificate has it.
pub(crate) fn server_name(host: &str) -> Result<ServerName<'static>, String> {
    let name = ServerName::try_from(host.to_owned());
    name.map_err(|_| "the host's name is none that a certificate could be for".into())
}

/// Describes an error for people.
pub(crate) fn describe_error(error: &Error) -> String {
    let Error::InvalidCertificate(why) = error else { return error.to_string() };
    let what = match why {
        CertificateError::UnknownIssuer => "no authority that is trusted signed it".into(),
        CertificateError::NotValidForName => "it is not for this host".into(),
        CertificateError::NotValidForNameContext { expected, presented } if presented.is_empty() => {
            format!("it is not for {}: it names no host", expected.to_str())
        }
        CertificateError::NotValidForNameContext { expected, presented } => {
            format!("it is not for {}, but for {}", expected.to_str(), presented.join(", "))
        }
        CertificateError::Expired | CertificateError::ExpiredContext { .. } => "it has expired".into(),
        CertificateError::NotValidYet | CertificateError::NotValidYetContext { .. } => {
            "it is not valid yet".into()
        }
        CertificateError::Revoked => "it was revoked".into(),
        other => format!("{other:?}"),
    };
    format!("the server's certificate is not accepted: {what}")
}

/// Accepts what an authority signed, and, as OpenSSL does, a certificate that is itself in the file of authorities:
/// self-signed ones are often distributed that way. The dates of such a certificate are not checked.
#[derive(Debug)]
struct Signed {
    signed: Arc<WebPkiServerVerifier>,
    in_file: Vec<CertificateDer<'static>>,
    names: Names,
}

impl ServerCertVerifier for Signed {
    fn verify_server_cert(
        &self,
        shown: &CertificateDer<'_>,
        between: &[CertificateDer<'_>],
        host: &ServerName<'_>,
        stapled: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        if self.in_file.iter().any(|trusted| trusted == shown) {
            if self.names == Names::Checked {
                verify_server_name(&ParsedCertificate::try_from(shown)?, host)?;
            }
            return Ok(ServerCertVerified::assertion());
        }
        // The name is checked last: with such an error, everything else is right.
        match self.signed.verify_server_cert(shown, between, host, stapled, now) {
            Err(Error::InvalidCertificate(
                CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. },
            )) if self.names == Names::Ignored => Ok(ServerCertVerified::assertion()),
            verified => verified,
        }
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.signed.verify_tls12_signature(message, certificate, signature)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.signed.verify_tls13_signature(message, certificate, signature)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.signed.supported_verify_schemes()
    }
}

/// Accepts every certificate, and every signature: SQL Server up to 2017 makes its own certificate with a key that is too
/// short to be verified.
#[derive(Debug)]
struct Unverified(Vec<SignatureScheme>);

impl ServerCertVerifier for Unverified {
    fn verify_server_cert(
        &self,
        _: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: &ServerName<'_>,
        _: &[u8],
        _: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        _: &[u8],
        _: &CertificateDer<'_>,
        _: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        Ok(HandshakeSignatureValid::assertion())
    }

    fn verify_tls13_signature(
        &self,
        _: &[u8],
        _: &CertificateDer<'_>,
        _: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        Ok(HandshakeSignatureValid::assertion())
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.0.clone()
    }
}
