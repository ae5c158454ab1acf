//! The server's side of TLS, by a web configuration file.

use super::AccessError;
use super::files::Files;
use super::web_config::{ClientAuth, TlsServer, TlsVersion};
use rustls::crypto::ring;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::WebPkiClientVerifier;
use rustls::{RootCertStore, ServerConfig, SupportedProtocolVersion};
use std::path::Path;
use std::sync::Arc;

/// Reads certificates and key. Their names are relative to the directory of the configuration file.
///
/// # Errors
/// Where one cannot be read, or key and certificate do not belong together.
pub(super) fn server_config(
    server: &TlsServer,
    directory: &Path,
    files: &mut Files,
) -> Result<Arc<ServerConfig>, AccessError> {
    let certificate_file = directory.join(&server.cert_file);
    let wrong = |why: &dyn std::fmt::Display| AccessError::Wrong(certificate_file.clone(), why.to_string());
    let chain = certificates(&certificate_file, files)?;
    let key = key(&directory.join(&server.key_file), files)?;
    let provider = Arc::new(ring::default_provider());
    let builder = ServerConfig::builder_with_provider(provider.clone())
        .with_protocol_versions(versions(server))
        .map_err(|error| wrong(&error))?;
    let builder = match &server.client_ca_file {
        None => builder.with_no_client_auth(),
        Some(file) => {
            let file = directory.join(file);
            let wrong = |why: &dyn std::fmt::Display| AccessError::Wrong(file.clone(), why.to_string());
            let mut roots = RootCertStore::empty();
            for certificate in certificates(&file, files)? {
                roots.add(certificate).map_err(|error| wrong(&error))?;
            }
            let verifier = WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider);
            let verifier = match server.client_auth_type {
                ClientAuth::RequireAndVerifyClientCert => verifier,
                ClientAuth::VerifyClientCertIfGiven | ClientAuth::NoClientCert => {
                    verifier.allow_unauthenticated()
                }
            };
            builder.with_client_cert_verifier(verifier.build().map_err(|error| wrong(&error))?)
        }
    };
    let mut config = builder.with_single_cert(chain, key).map_err(|error| wrong(&error))?;
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    Ok(Arc::new(config))
}

fn versions(server: &TlsServer) -> &'static [&'static SupportedProtocolVersion] {
    static TLS_1_2: &[&SupportedProtocolVersion] = &[&rustls::version::TLS12];
    static TLS_1_3: &[&SupportedProtocolVersion] = &[&rustls::version::TLS13];
    match (server.min_version, server.max_version) {
        (TlsVersion::Tls13, _) => TLS_1_3,
        (TlsVersion::Tls12, TlsVersion::Tls12) => TLS_1_2,
        (TlsVersion::Tls12, TlsVersion::Tls13) => rustls::DEFAULT_VERSIONS,
    }
}

fn certificates(path: &Path, files: &mut Files) -> Result<Vec<CertificateDer<'static>>, AccessError> {
    let bytes = files.read(path)?;
    let wrong = |why: String| AccessError::Wrong(path.to_owned(), why);
    let found: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(&bytes).collect();
    match found {
        Ok(found) if found.is_empty() => Err(wrong("it has no certificate in PEM".into())),
        Ok(found) => Ok(found),
        Err(error) => Err(wrong(error.to_string())),
    }
}

fn key(path: &Path, files: &mut Files) -> Result<PrivateKeyDer<'static>, AccessError> {
    let bytes = files.read(path)?;
    PrivateKeyDer::from_pem_slice(&bytes).map_err(|error| {
        AccessError::Wrong(path.to_owned(), format!("it has no key in PEM without a passphrase: {error}"))
    })
}
