//! TLS of a client, for the sources that speak their protocol themselves: whose certificate is accepted.
//!
//! ```text
//! Trust ─> config() ─> rustls::ClientConfig      the system's, the public or a file's authorities, or anybody
//! rustls::Error ─> said()                        what was wrong with a certificate, for people
//! ```

use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::client::{WebPkiServerVerifier, verify_server_name};
use rustls::crypto::ring;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName, UnixTime};
use rustls::server::ParsedCertificate;
use rustls::{
    CertificateError, ClientConfig, DigitallySignedStruct, Error, RootCertStore, SignatureScheme,
    SupportedProtocolVersion,
};
use std::path::Path;
use std::sync::Arc;

/// Whose certificate is accepted.
pub(crate) enum Trust {
    /// Anybody's: the connection is encrypted, and nobody knows with whom.
    Anybody,
    /// One that one of these signed.
    Signed(Authorities, Names),
}

/// Whether the certificate must name the host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Names {
    Checked,
    Ignored,
}

/// Who may sign certificates.
pub(crate) struct Authorities {
    roots: RootCertStore,
    /// As they stand in a file: a server may show one of them itself.
    given: Vec<CertificateDer<'static>>,
}

/// Who this client is, where a server asks.
pub(crate) struct Identity {
    pub chain: Vec<CertificateDer<'static>>,
    pub key: PrivateKeyDer<'static>,
}

impl Authorities {
    /// Those that browsers trust, as this program was built with them.
    pub fn public() -> Authorities {
        let roots = RootCertStore { roots: webpki_roots::TLS_SERVER_ROOTS.to_vec() };
        Authorities { roots, given: Vec::new() }
    }

    /// Those of the operating system, or of SSL_CERT_FILE and SSL_CERT_DIR.
    pub fn system() -> Result<Authorities, String> {
        let mut roots = RootCertStore::empty();
        let found = rustls_native_certs::load_native_certs();
        roots.add_parsable_certificates(found.certs);
        match roots.is_empty() {
            true => Err("this system has no trusted authorities".into()),
            false => Ok(Authorities { roots, given: Vec::new() }),
        }
    }

    /// Those of a file in PEM.
    pub fn of_file(file: &Path) -> Result<Authorities, String> {
        let unreadable = |why: String| format!("no certificate can be read from {}: {why}", file.display());
        let given = certificates(file)?;
        let mut roots = RootCertStore::empty();
        for certificate in &given {
            roots.add(certificate.clone()).map_err(|error| unreadable(error.to_string()))?;
        }
        Ok(Authorities { roots, given })
    }
}

impl Identity {
    /// A certificate, perhaps with those between it and its authority, and its key, both in PEM.
    pub fn of_files(chain: &Path, key: &Path) -> Result<Identity, String> {
        let found = PrivateKeyDer::from_pem_file(key);
        let key = found.map_err(|error| {
            format!("no key without a passphrase can be read from {}: {error}", key.display())
        })?;
        Ok(Identity { chain: certificates(chain)?, key })
    }
}

fn certificates(file: &Path) -> Result<Vec<CertificateDer<'static>>, String> {
    let unreadable = |why: String| format!("no certificate can be read from {}: {why}", file.display());
    let found = CertificateDer::pem_file_iter(file).map_err(|error| unreadable(error.to_string()))?;
    let found: Vec<_> = found.collect::<Result<_, _>>().map_err(|error| unreadable(error.to_string()))?;
    if found.is_empty() { Err(unreadable("there is none in it".into())) } else { Ok(found) }
}

/// What connections are made with.
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
        Trust::Anybody => {
            Arc::new(Unverified(provider.signature_verification_algorithms.supported_schemes()))
        }
        Trust::Signed(Authorities { roots, given }, names) => {
            let signed = WebPkiServerVerifier::builder_with_provider(Arc::new(roots), provider).build();
            Arc::new(Signed { signed: signed.map_err(|error| error.to_string())?, given, names })
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

/// The host as a certificate names it.
pub(crate) fn server_name(host: &str) -> Result<ServerName<'static>, String> {
    let name = ServerName::try_from(host.to_owned());
    name.map_err(|_| "the host's name is none that a certificate could be for".into())
}

/// What is wrong, for people: of certificates in words of this program.
pub(crate) fn said(error: &Error) -> String {
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

/// Accepts what an authority signed, and a certificate that is itself in the file of authorities, as OpenSSL does: one
/// that a server made itself is often handed to its clients so. Of such a one the dates are not looked at.
#[derive(Debug)]
struct Signed {
    signed: Arc<WebPkiServerVerifier>,
    given: Vec<CertificateDer<'static>>,
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
        if self.given.iter().any(|given| given == shown) {
            if self.names == Names::Checked {
                verify_server_name(&ParsedCertificate::try_from(shown)?, host)?;
            }
            return Ok(ServerCertVerified::assertion());
        }
        // The name is looked at last, when all else was found right.
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

/// Accepts whoever answers. What it signs is not looked at either: servers make themselves certificates with keys that
/// are too short for that (SQL Server up to 2017).
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
