//! Encrypted connections to a real server.

use super::take_snapshot;
use collect::SourceError;
use collect::postgres::{Postgres, PostgresError};
use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt, chown};
use std::path::Path;
use std::process::Command;
use tempfile::TempDir;
use testbed::PostgresServer;

/// A server with a certificate for localhost, whose clients connect by TCP with a password.
pub(super) struct Encrypting {
    pub server: PostgresServer,
    files: TempDir,
}

/// ca.pem signed server.pem; stranger.pem signed nothing; own.pem is a self-signed certificate of a server; client.pem is
/// ann's.
fn certificates() -> Option<TempDir> {
    let files = tempfile::tempdir().unwrap();
    let make = |name: &str, subject: &str, more: &str| {
        let line = format!(
            "req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 2 -subj {subject} -keyout {name}.key \
             -out {name}.pem{more}"
        );
        let made = Command::new("openssl").args(line.split(' ')).current_dir(files.path()).output();
        made.is_ok_and(|made| made.status.success())
    };
    let localhost = " -addext subjectAltName=DNS:localhost";
    let signed = " -addext basicConstraints=CA:FALSE -CA ca.pem -CAkey ca.key";
    let made = make("ca", "/CN=authority", "")
        && make("stranger", "/CN=stranger", "")
        && make("own", "/CN=localhost", localhost)
        && make("client", "/CN=ann", signed)
        && make("server", "/CN=localhost", &format!("{localhost}{signed}"));
    if !made {
        eprintln!("skipped: no openssl 3 here");
        return None;
    }
    fs::set_permissions(files.path(), fs::Permissions::from_mode(0o755)).unwrap();
    Some(files)
}

impl Encrypting {
    pub fn start(version: u32, certificate: &str) -> Option<Encrypting> {
        let files = certificates()?;
        let server = PostgresServer::start(version)?;
        let encrypting = Encrypting { server, files };
        encrypting.server.sql("CREATE ROLE ann LOGIN PASSWORD 'hunter2'; GRANT pg_monitor TO ann");
        let key = encrypting.file(&format!("{certificate}.key"));
        give(Path::new(&key), encrypting.server.data_directory());
        encrypting.server.set("ssl_ca_file", &encrypting.file("ca.pem"));
        encrypting.server.set("ssl_cert_file", &encrypting.file(&format!("{certificate}.pem")));
        encrypting.server.set("ssl_key_file", &key);
        encrypting.server.set("ssl", "on");
        Some(encrypting)
    }

    fn file(&self, name: &str) -> String {
        self.files.path().join(name).display().to_string()
    }

    pub fn open(&self, host: &str, more: &str) -> Result<Postgres, SourceError> {
        let port = self.server.port();
        // No file of the user who runs the test is used.
        let own = format!("sslcert={} sslkey={}", self.file("client.pem"), self.file("client.key"));
        let root = if more.contains("sslrootcert") { "" } else { "sslrootcert=/none" };
        Postgres::open(&format!(
            "host={host} port={port} user=ann password=hunter2 dbname=postgres {own} {root} {more}"
        ))
    }

    /// Whether the server reports that the source's connection is encrypted.
    pub fn is_encrypted(&self) -> bool {
        let sessions = "SELECT ssl FROM pg_stat_ssl JOIN pg_stat_activity USING (pid) WHERE application_name = \
                        'headroom'";
        match self.server.sql(sessions).as_str() {
            "t" => true,
            "f" => false,
            other => panic!("not one session, but {other:?}"),
        }
    }

    /// Accepts only TCP connections of that kind from this host, and those by the socket.
    fn let_in_only(&self, kind: &str) {
        let rules = format!("local all all trust\n{kind} all all 127.0.0.1/32 scram-sha-256\n");
        fs::write(self.server.data_directory().join("pg_hba.conf"), rules).unwrap();
        self.server.sql("SELECT pg_reload_conf()");
        super::soon("the rules", || {
            let rules = self.server.sql("SELECT string_agg(type, ' ') FROM pg_hba_file_rules");
            (rules == format!("local {kind}")).then_some(())
        });
        // The postmaster reads the file a moment later: a refused connection shows that it has.
        let refused = if kind == "hostssl" { "disable" } else { "require" };
        super::soon("the server to follow them", || {
            self.open("127.0.0.1", &format!("sslmode={refused}")).is_err().then_some(())
        });
    }
}

/// The server accepts a key only if it owns the file and no other user can read it.
fn give(key: &Path, data: &Path) {
    let owner = fs::metadata(data).unwrap();
    chown(key, Some(owner.uid()), Some(owner.gid())).unwrap();
    fs::set_permissions(key, fs::Permissions::from_mode(0o600)).unwrap();
}

fn refusal(opened: Result<Postgres, SourceError>) -> String {
    let error = opened.expect_err("it must be refused");
    let shown = format!("{error} {error:?} {:?} {:?}", error.facts(), error.remedy());
    assert!(!shown.contains("hunter2"), "{shown}");
    assert!(matches!(error.downcast_ref(), Some(PostgresError::Tls { .. })), "{shown}");
    assert!(error.remedy().unwrap().contains("sslrootcert"), "{shown}");
    error.to_string()
}

#[test]
fn the_certificate_is_checked_as_configured_and_errors_say_what_is_wrong() {
    let Some(server) = Encrypting::start(15, "server") else { return };
    let authority = server.file("ca.pem");
    let opened =
        |host: &str, more: &str| server.open(host, more).map(|mut source| drop(take_snapshot(&mut source)));

    let mut source = server.open("localhost", "").unwrap();
    take_snapshot(&mut source);
    assert!(server.is_encrypted(), "without a word, where the server can");
    drop(source);
    opened("127.0.0.1", "sslmode=require").unwrap();
    opened("127.0.0.1", &format!("sslmode=verify-ca sslrootcert={authority}")).unwrap();
    opened("localhost", &format!("sslmode=verify-full sslrootcert={authority}")).unwrap();
    opened("localhost", &format!("hostaddr=127.0.0.1 sslmode=verify-full sslrootcert={authority}")).unwrap();

    let other_name =
        refusal(server.open("127.0.0.1", &format!("sslmode=verify-full sslrootcert={authority}")));
    assert!(
        other_name.contains("it is not for 127.0.0.1, but for") && other_name.contains("localhost"),
        "{other_name}"
    );
    let stranger = server.file("stranger.pem");
    for mode in ["require", "verify-ca", "verify-full"] {
        let wrong = refusal(server.open("localhost", &format!("sslmode={mode} sslrootcert={stranger}")));
        assert!(wrong.contains("no authority that is trusted signed it"), "{mode}: {wrong}");
    }
    let not_public = refusal(server.open("localhost", "sslrootcert=system"));
    assert!(not_public.contains("no authority that is trusted signed it"), "{not_public}");
}

#[test]
fn the_password_is_bound_to_the_certificate() {
    for version in [15, 18] {
        let Some(server) = Encrypting::start(version, "server") else { continue };
        let mut source = server.open("localhost", "sslmode=require channel_binding=require").unwrap();
        take_snapshot(&mut source);
        drop(source);
        let readable = server.open("localhost", "sslmode=disable channel_binding=require");
        assert!(readable.unwrap_err().to_string().contains("channel binding"));
        if version >= 17 {
            take_snapshot(&mut server.open("localhost", "sslmode=require sslnegotiation=direct").unwrap());
        }
    }
}

#[test]
fn a_self_signed_certificate_is_its_own_authority() {
    let Some(server) = Encrypting::start(15, "own") else { return };
    let own = server.file("own.pem");
    take_snapshot(&mut server.open("localhost", &format!("sslmode=verify-full sslrootcert={own}")).unwrap());
    take_snapshot(&mut server.open("127.0.0.1", &format!("sslmode=verify-ca sslrootcert={own}")).unwrap());
    let other_name = refusal(server.open("127.0.0.1", &format!("sslmode=verify-full sslrootcert={own}")));
    assert!(other_name.contains("it is not for 127.0.0.1"), "{other_name}");
}

#[test]
fn allow_and_prefer_try_the_other_mode_after_a_refusal() {
    let Some(server) = Encrypting::start(15, "server") else { return };
    let encrypted = |more: &str| {
        let mut source = server.open("127.0.0.1", more).unwrap();
        take_snapshot(&mut source);
        server.is_encrypted()
    };
    assert!(!encrypted("sslmode=allow") && !encrypted("sslmode=disable"));
    server.let_in_only("hostssl");
    assert!(encrypted("sslmode=allow"));
    let readable = server.open("127.0.0.1", "sslmode=disable").unwrap_err().to_string();
    assert!(readable.contains("no encryption"), "{readable}");
    server.let_in_only("hostnossl");
    assert!(!encrypted("sslmode=prefer"));
    let encrypted_only = server.open("127.0.0.1", "sslmode=require").unwrap_err().to_string();
    assert!(encrypted_only.contains("refuses ann"), "{encrypted_only}");
    let stranger = format!("sslmode=prefer user=stranger sslrootcert={}", server.file("stranger.pem"));
    server.let_in_only("hostssl");
    let both = server.open("127.0.0.1", &stranger).unwrap_err().to_string();
    assert!(
        both.contains("no encryption") && both.contains("; encrypted: the server's certificate"),
        "{both}"
    );
    server.server.set("ssl", "off");
    let none = refusal(server.open("127.0.0.1", "sslmode=require"));
    assert!(none.contains("server does not support TLS"), "{none}");
}

#[test]
fn the_clients_certificate_is_accepted() {
    let Some(server) = Encrypting::start(15, "server") else { return };
    let rules = "local all all trust\nhostssl all all 127.0.0.1/32 cert\n";
    fs::write(server.server.data_directory().join("pg_hba.conf"), rules).unwrap();
    server.server.sql("SELECT pg_reload_conf()");
    super::soon("the rules", || {
        let open = server.open("localhost", "sslmode=require password=wrong");
        open.ok().map(|mut source| drop(take_snapshot(&mut source)))
    });
    let nobody =
        format!("sslmode=require sslcert={} sslkey={}", server.file("ca.pem"), server.file("ca.key"));
    let error = server.open("localhost", &nobody).expect_err("not ann's certificate").to_string();
    assert!(error.contains("ann"), "{error}");
}
