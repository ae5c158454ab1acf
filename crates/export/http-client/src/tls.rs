use std::fmt;
use std::fs::File;
use std::io::BufReader;
use std::path::Path;
use std::sync::Arc;
use tokio_rustls::rustls::pki_types::pem::{self, PemObject};
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio_rustls::rustls::{ClientConfig, RootCertStore};

/// Who is trusted, and as whom this client comes.
#[derive(Clone)]
pub struct Tls(Arc<ClientConfig>);

/// A file of certificates or keys that cannot be used. The message names the file.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct WrongTls(String);

impl Tls {
    /// The certificates that this host trusts (`SSL_CERT_FILE`, or the system's store), as they are now.
    pub fn system() -> Tls {
        Tls(Arc::new(ClientConfig::builder().with_root_certificates(system_roots()).with_no_client_auth()))
    }

    /// The authorities of a PEM file, else those of this host; and a certificate of this client with its key, in PEM too.
    ///
    /// # Errors
    /// A file cannot be read or used.
    pub fn from_files(authorities: Option<&Path>, identity: Option<(&Path, &Path)>) -> Result<Tls, WrongTls> {
        let roots = match authorities {
            None => system_roots(),
            Some(file) => roots_of(file)?,
        };
        let builder = ClientConfig::builder().with_root_certificates(roots);
        let Some((chain, key)) = identity else { return Ok(Tls(Arc::new(builder.with_no_client_auth()))) };
        let found = open_pem(key).and_then(PrivateKeyDer::from_pem_reader);
        let key = found.map_err(|error| {
            WrongTls(format!("no key without a passphrase can be read from {}: {error}", key.display()))
        })?;
        let config = builder.with_client_auth_cert(certificates(chain)?, key);
        let config = config.map_err(|error| {
            WrongTls(format!("the certificate in {} does not fit its key: {error}", chain.display()))
        })?;
        Ok(Tls(Arc::new(config)))
    }

    pub(crate) fn config(&self) -> Arc<ClientConfig> {
        self.0.clone()
    }
}

impl fmt::Debug for Tls {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Tls(not shown)")
    }
}

fn system_roots() -> RootCertStore {
    let mut roots = RootCertStore::empty();
    roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
    roots
}

fn roots_of(file: &Path) -> Result<RootCertStore, WrongTls> {
    let mut roots = RootCertStore::empty();
    for certificate in certificates(file)? {
        roots.add(certificate).map_err(|error| unreadable(file, &error))?;
    }
    Ok(roots)
}

fn certificates(file: &Path) -> Result<Vec<CertificateDer<'static>>, WrongTls> {
    let read = open_pem(file).and_then(|file| CertificateDer::pem_reader_iter(file).collect());
    let read: Vec<_> = read.map_err(|error| unreadable(file, &error))?;
    if read.is_empty() { Err(unreadable(file, &"there is none in it")) } else { Ok(read) }
}

fn open_pem(file: &Path) -> Result<BufReader<File>, pem::Error> {
    host::open_regular_file(file).map(BufReader::new).map_err(pem::Error::Io)
}

fn unreadable(file: &Path, why: &dyn fmt::Display) -> WrongTls {
    WrongTls(format!("no certificate can be read from {}: {why}", file.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_without_a_certificate_is_refused_by_its_name() {
        let none = Tls::from_files(Some(Path::new("/proc/self/status")), None).unwrap_err().to_string();
        assert!(none.contains("/proc/self/status") && none.contains("there is none in it"), "{none}");
        let gone = Path::new("/nonexistent/client.pem");
        let gone = Tls::from_files(None, Some((gone, gone))).unwrap_err().to_string();
        assert!(gone.contains("/nonexistent/client.pem"), "{gone}");
    }
}
