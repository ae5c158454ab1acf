use super::*;
use collect::sqlserver::SqlServerError;
use rustls::ServerConfig;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use std::path::Path;
use std::process::Command;
use std::sync::Arc;

/// A server with a certificate for localhost, signed by an authority of the test, and the authority's file. They are made
/// with `openssl`, so that no key is in the repository.
fn encrypting(word: u8) -> Option<(Responder, tempfile::TempDir, String)> {
    let directory = tempfile::tempdir().unwrap();
    let make = |arguments: &str| {
        let made = Command::new("openssl").args(arguments.split(' ')).current_dir(directory.path()).output();
        made.is_ok_and(|made| made.status.success())
    };
    let key = "req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 30";
    let made = make(&format!("{key} -subj /CN=authority -keyout ca.key -out ca.pem"))
        && make(&format!(
            "{key} -subj /CN=localhost -addext subjectAltName=DNS:localhost -addext basicConstraints=CA:FALSE -CA ca.pem \
             -CAkey ca.key -keyout server.key -out server.pem"
        ));
    if !made {
        println!("skipped: no openssl to make a certificate with");
        return None;
    }
    let responder = server(Version::V2022);
    responder.state().encryption = word;
    responder.state().tls = Some(Arc::new(config(directory.path())));
    let authority = directory.path().join("ca.pem").to_str().unwrap().to_owned();
    Some((responder, directory, authority))
}

fn config(directory: &Path) -> ServerConfig {
    let certificate = CertificateDer::from_pem_file(directory.join("server.pem")).unwrap();
    let key = PrivateKeyDer::from_pem_file(directory.join("server.key")).unwrap();
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let builder =
        ServerConfig::builder_with_provider(provider).with_safe_default_protocol_versions().unwrap();
    builder.with_no_client_auth().with_single_cert(vec![certificate], key).unwrap()
}

fn try_open(responder: &Responder, options: &str) -> Result<SqlServer, SourceError> {
    SqlServer::open_in(&responder.url(options).replace("127.0.0.1", "localhost"), &variables)
}

#[test]
fn everything_is_encrypted_with_a_server_whose_certificate_is_trusted() {
    let Some((responder, _directory, authority)) = encrypting(1) else { return };
    let mut source = try_open(&responder, &format!("?certificate={authority}")).unwrap();
    assert_eq!(take_snapshot(&mut source).samples.len(), 4);
    let state = responder.state();
    assert_eq!(
        (state.encrypted.0.as_slice(), state.encrypted.1.as_slice()),
        ([true].as_slice(), [true; 4].as_slice())
    );
}

#[test]
fn an_untrusted_certificate_is_refused_before_the_password_is_sent() {
    let Some((responder, _directory, authority)) = encrypting(3) else { return };
    let error = try_open(&responder, "").unwrap_err();
    assert!(matches!(error.downcast_ref(), Some(SqlServerError::Encryption { .. })), "{error:?}");
    assert!(error.remedy().unwrap().contains("?certificate=trust"));
    let other_name = SqlServer::open_in(&responder.url(&format!("?certificate={authority}")), &variables);
    assert!(
        matches!(other_name.unwrap_err().downcast_ref(), Some(SqlServerError::Encryption { .. })),
        "127.0.0.1"
    );
    assert_eq!(responder.state().logins, []);
    let mut source = try_open(&responder, "?certificate=trust").unwrap();
    assert_eq!(take_snapshot(&mut source).samples.len(), 4);
}

#[test]
fn only_the_login_is_encrypted_if_neither_side_wants_more() {
    let Some((responder, _directory, _)) = encrypting(0) else { return };
    let mut source = try_open(&responder, "?encrypt=optional&certificate=trust").unwrap();
    assert_eq!(take_snapshot(&mut source).samples.len(), 4);
    let state = responder.state();
    assert_eq!(
        (state.encrypted.0.as_slice(), state.encrypted.1.as_slice()),
        ([true].as_slice(), [false; 4].as_slice())
    );
}

#[test]
fn a_server_that_does_not_encrypt_gets_no_password_without_encrypt_off() {
    let responder = server(Version::V2019);
    let error = try_open(&responder, "?certificate=trust").unwrap_err();
    assert!(error.to_string().contains("does not encrypt"), "{error}");
    assert_eq!(responder.state().logins, []);
    let Some((demanding, _directory, _)) = encrypting(3) else { return };
    let error = try_open(&demanding, "?encrypt=off").unwrap_err();
    assert!(error.to_string().contains("demands encryption"), "{error}");
}
