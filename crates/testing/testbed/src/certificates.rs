//! Certificates for tests, made by OpenSSL.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// An authority that signs certificates; its files are in a directory of the test.
pub struct CertificateAuthority {
    directory: PathBuf,
    name: String,
}

/// A certificate and its key, both in PEM.
pub struct Certificate {
    /// The file of the certificate.
    pub file: PathBuf,
    /// The file of its key.
    pub key: PathBuf,
}

impl CertificateAuthority {
    /// Makes one; `None`, with a message, where OpenSSL is not installed.
    pub fn new(directory: &Path, name: &str) -> Option<CertificateAuthority> {
        let authority = CertificateAuthority { directory: directory.to_owned(), name: name.to_owned() };
        let made = authority.openssl(name, &["-addext", "basicConstraints=critical,CA:TRUE"]);
        if !made {
            println!("skipped: openssl makes no certificate here");
        }
        made.then_some(authority)
    }

    /// Its own certificate, which clients and servers trust.
    pub fn file(&self) -> PathBuf {
        self.directory.join(format!("{}.crt", self.name))
    }

    /// Makes a certificate for localhost and 127.0.0.1, which is valid for two days.
    ///
    /// # Panics
    /// Where it cannot be made.
    pub fn make_certificate(&self, name: &str) -> Certificate {
        let (authority, key) = (self.file(), self.directory.join(format!("{}.key", self.name)));
        let signed = [
            "-CA",
            authority.to_str().expect("a path of a test"),
            "-CAkey",
            key.to_str().expect("a path of a test"),
            "-addext",
            "basicConstraints=critical,CA:FALSE",
            "-addext",
            "subjectAltName=DNS:localhost,IP:127.0.0.1",
        ];
        assert!(self.openssl(name, &signed), "openssl made no certificate");
        let file = |end| self.directory.join(format!("{name}.{end}"));
        Certificate { file: file("crt"), key: file("key") }
    }

    fn openssl(&self, name: &str, more: &[&str]) -> bool {
        let mut command = Command::new("openssl");
        command.args(["req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes"]);
        command.args(["-days", "2", "-subj", &format!("/CN={name}")]).args(more);
        command.arg("-keyout").arg(self.directory.join(format!("{name}.key")));
        command.arg("-out").arg(self.directory.join(format!("{name}.crt")));
        command.stderr(Stdio::null()).status().is_ok_and(|status| status.success())
    }
}
