use super::{server, take_snapshot};
use collect::mysql::{ANSWER_SECONDS, Mysql};
use collect::{Source, SourceError};
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::os::unix::fs::OpenOptionsExt;
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::{Duration, Instant};

const PASSWORD: &str = "hunter2-hunter2";

/// An option file with the password, like ~/.my.cnf.
fn option_file(dir: &std::path::Path, mode: u32) -> String {
    let path = dir.join(format!("my-{mode:o}.cnf"));
    let mut file = std::fs::OpenOptions::new().create_new(true).write(true).mode(mode).open(&path).unwrap();
    writeln!(file, "[client]\nuser=watcher\npassword={PASSWORD}").unwrap();
    path.display().to_string()
}

fn shown(error: &SourceError) -> String {
    format!("{error} {error:?} {:?} {:?}", error.facts(), error.remedy())
}

#[test]
fn user_and_password_of_an_option_file_log_in_over_tcp_and_are_never_printed() {
    let Some(server) = server(&[]) else { return };
    server.sql(&format!(
        "CREATE USER watcher@'%' IDENTIFIED BY '{PASSWORD}'; GRANT SELECT ON performance_schema.* TO watcher@'%'"
    ));
    let dir = tempfile::tempdir().unwrap();
    let url = |file: &str| format!("mysql://127.0.0.1:{}/?defaults-file={file}", server.port());
    let mut source = Mysql::open(&url(&option_file(dir.path(), 0o600))).unwrap();
    let snapshot = take_snapshot(&mut source);
    assert_eq!(source.name(), format!("mysql 127.0.0.1:{}", server.port()));
    assert_eq!(source.processes(), [server.pid()], "its host name says that it is here");
    assert!(!format!("{source:?} {snapshot:?} {}", source.name()).contains(PASSWORD));

    let open_to_all = Mysql::open(&url(&option_file(dir.path(), 0o644))).unwrap_err();
    assert!(shown(&open_to_all).contains("chmod 600"), "{open_to_all}");
    server.sql("ALTER USER watcher@'%' IDENTIFIED BY 'another'");
    let refused = Mysql::open(&url(&option_file(dir.path(), 0o640))).unwrap_err();
    assert!(refused.to_string().contains("refuses the login"), "{refused}");
    assert!(shown(&refused).contains("GRANT SELECT ON performance_schema.*"), "{refused}");
    for error in [open_to_all, refused] {
        assert!(!shown(&error).contains(PASSWORD), "{error}");
    }
}

#[test]
fn the_administrator_of_a_new_debian_logs_in_by_the_socket_without_a_password() {
    let Some(server) = server(&[]) else { return };
    // SAFETY: no arguments, no failure.
    if unsafe { libc::geteuid() } != 0 {
        eprintln!("skipped: needs root");
        return;
    }
    server
        .sql("ALTER USER root@localhost IDENTIFIED VIA mysql_native_password USING 'invalid' OR unix_socket");
    take_snapshot(&mut Mysql::open(&server.url()).unwrap());
}

#[test]
fn an_encrypted_connection_is_made_and_its_certificate_checked_as_configured() {
    let dir = tempfile::tempdir().unwrap();
    let path = |name: &str| dir.path().join(name).display().to_string();
    // Without the extensions that the system's configuration adds.
    std::fs::write(path("plain.cnf"), "[req]\ndistinguished_name=name\n[name]\n").unwrap();
    let certify = |name: &str, more: &str| {
        let (config, key, certificate) =
            (path("plain.cnf"), path(&format!("{name}.key")), path(&format!("{name}.pem")));
        let line = format!(
            "req -x509 -newkey rsa:2048 -nodes -days 2 -config {config} -keyout {key} -out {certificate} {more}"
        );
        let output = Command::new("openssl").args(line.split(' ')).output();
        output.is_ok_and(|output| output.status.success())
    };
    let authority = path("authority.pem");
    let signed = format!(
        "-subj /CN=localhost -addext subjectAltName=DNS:localhost -addext basicConstraints=critical,CA:FALSE -CA \
         {authority} -CAkey {}",
        path("authority.key")
    );
    let made = certify("authority", "-subj /CN=authority -addext basicConstraints=critical,CA:TRUE")
        && certify("stranger", "-subj /CN=stranger -addext basicConstraints=critical,CA:TRUE")
        && certify("server", &signed);
    if !made {
        eprintln!("skipped: no openssl 3 here");
        return;
    }
    Command::new("chmod").args(["-R", "a+rX", &path("")]).status().unwrap();
    let files = [format!("ssl-key={}", path("server.key")), format!("ssl-cert={}", path("server.pem"))];
    let Some(server) = server(&[&files[0], &files[1]]) else { return };
    server.sql("CREATE USER watcher@'%' REQUIRE SSL; GRANT SELECT ON performance_schema.* TO watcher@'%'");
    let open = |host: &str, options: &str| {
        Mysql::open(&format!("mysql://watcher@{host}:{}/?{options}", server.port()))
    };

    assert!(open("127.0.0.1", "ssl-mode=disabled").unwrap_err().to_string().contains("refuses the login"));
    // As the clients of MySQL: what the server offers is used, and its certificate is not checked.
    take_snapshot(&mut open("127.0.0.1", "").unwrap());
    take_snapshot(&mut open("127.0.0.1", "ssl-mode=required").unwrap());
    take_snapshot(&mut open("127.0.0.1", &format!("ssl-mode=verify_ca&ssl-ca={authority}")).unwrap());
    take_snapshot(&mut open("localhost", &format!("ssl-mode=verify_identity&ssl-ca={authority}")).unwrap());
    for (host, options) in [
        ("127.0.0.1", format!("ssl-mode=verify_identity&ssl-ca={authority}")),
        ("127.0.0.1", format!("ssl-mode=verify_ca&ssl-ca={}", path("stranger.pem"))),
        ("localhost", "ssl-mode=verify_identity".into()),
    ] {
        let error = open(host, &options).unwrap_err();
        assert!(error.to_string().contains("certificate"), "{host} {options}: {error}");
    }
}

#[test]
fn a_connection_that_the_server_closed_is_replaced_at_once() {
    let Some(server) = server(&[]) else { return };
    let mut source = Mysql::open(&server.url()).unwrap();
    let before = take_snapshot(&mut source);
    let others = "SELECT GROUP_CONCAT(CONCAT('KILL ', ID) SEPARATOR ';') FROM information_schema.PROCESSLIST WHERE ID <> \
                  CONNECTION_ID() AND USER = 'root'";
    server.sql(&server.sql(others));
    let after = take_snapshot(&mut source);
    assert_eq!(super::sample(&before, "ibdata1").epoch, super::sample(&after, "ibdata1").epoch);
}

#[test]
fn a_server_that_hangs_times_out() {
    let Some(server) = server(&[]) else { return };
    let mut source = Mysql::open(&server.url()).unwrap();
    take_snapshot(&mut source);
    server.freeze();
    let limit = Duration::from_secs(ANSWER_SECONDS + 2);
    // The open connection, a new one of the same source, and one of another source.
    for attempt in 0..3 {
        let began = Instant::now();
        let error = match attempt {
            2 => Mysql::open(&server.url()).unwrap_err(),
            _ => source.snapshot().unwrap_err(),
        };
        let took = began.elapsed();
        assert!(took < limit, "attempt {attempt} took {took:?}");
        assert!(error.to_string().contains("no answer within"), "{error}");
    }
    server.thaw();
    take_snapshot(&mut source);
}

/// A proxy that delivers the server's answers a byte at a time, once that is switched on.
fn dripping(port: u16, from_the_start: bool) -> (u16, Arc<AtomicBool>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let before = listener.local_addr().unwrap().port();
    let drips = Arc::new(AtomicBool::new(from_the_start));
    let shared = Arc::clone(&drips);
    std::thread::spawn(move || {
        for client in listener.incoming() {
            let (mut client, mut server) =
                (client.unwrap(), TcpStream::connect(("127.0.0.1", port)).unwrap());
            let (mut requests, mut to) = (client.try_clone().unwrap(), server.try_clone().unwrap());
            std::thread::spawn(move || std::io::copy(&mut requests, &mut to));
            let drips = Arc::clone(&shared);
            std::thread::spawn(move || {
                let mut buffer = [0; 4096];
                while let Ok(length @ 1..) = server.read(&mut buffer) {
                    for bytes in buffer[..length].chunks(if drips.load(Relaxed) { 1 } else { length }) {
                        if client.write_all(bytes).is_err() {
                            return;
                        }
                        if drips.load(Relaxed) {
                            std::thread::sleep(Duration::from_millis(100));
                        }
                    }
                }
            });
        }
    });
    (before, drips)
}

#[test]
fn a_server_that_answers_a_byte_at_a_time_times_out() {
    let Some(server) = server(&[]) else { return };
    server.sql("CREATE USER watcher@'%'; GRANT SELECT ON performance_schema.* TO watcher@'%'");
    let limit = Duration::from_secs(ANSWER_SECONDS + 2);
    let given_up = |what: &str, ask: &mut dyn FnMut() -> SourceError| {
        let began = Instant::now();
        let error = ask().to_string();
        assert!(began.elapsed() < limit, "{what} took {:?}", began.elapsed());
        assert!(error.contains("no answer within"), "{what}: {error}");
    };
    let (port, drips) = dripping(server.port(), false);
    let url = format!("mysql://watcher@127.0.0.1:{port}/");
    let mut source = Mysql::open(&url).unwrap();
    take_snapshot(&mut source);
    let sessions = "SELECT COUNT(*) FROM information_schema.PROCESSLIST WHERE USER = 'watcher'";
    assert_eq!(server.sql(sessions).trim(), "1");
    drips.store(true, Relaxed);
    given_up("a look", &mut || source.snapshot().unwrap_err());
    drips.store(false, Relaxed);
    // The connection was shut down.
    let began = Instant::now();
    while server.sql(sessions).trim() != "0" {
        assert!(began.elapsed() < limit, "its session is still there");
        std::thread::sleep(Duration::from_millis(50));
    }
    take_snapshot(&mut source);

    // A greeting of about 100 bytes, which takes 10 s.
    let (port, drips) = dripping(server.port(), true);
    let url = format!("mysql://watcher@127.0.0.1:{port}/");
    given_up("a newcomer", &mut || Mysql::open(&url).unwrap_err());
    drips.store(false, Relaxed);
    assert!(Mysql::open(&url).is_ok(), "nothing is left of the one before");
}

#[test]
fn a_closed_port_and_another_protocol_have_their_own_errors() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let url = format!("mysql://root@127.0.0.1:{port}/");
    let silent = Mysql::open(&url).unwrap_err();
    assert!(silent.to_string().contains("no answer within"), "{silent}");
    let talker = std::thread::spawn(move || {
        for stream in listener.incoming().take(1) {
            stream.unwrap().write_all(b"SSH-2.0-OpenSSH_9.2p1 Debian-2+deb12u3\r\n").unwrap();
        }
    });
    let other = Mysql::open(&url).unwrap_err();
    assert!(other.to_string().starts_with("cannot watch mysql 127.0.0.1"), "{other}");
    talker.join().unwrap();
    let nobody = Mysql::open(&url).unwrap_err();
    assert!(nobody.to_string().contains("refused"), "{nobody}");
    let missing = Mysql::open("mysql:///nonexistent/mysqld.sock").unwrap_err();
    assert!(missing.to_string().contains("No such file"), "{missing}");
}
