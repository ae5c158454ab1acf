//! Servers that get the password, and in which form.

use super::take_snapshot;
use super::tls::Encrypting;
use collect::SourceError;
use collect::postgres::{AuthenticationFault, Postgres, PostgresError};
use std::fs;
use std::io::{self, Read, Write};
use std::net::{IpAddr, Ipv4Addr, TcpListener, TcpStream, UdpSocket};
use std::sync::mpsc::{self, Receiver};
use std::time::Duration;

const PASSWORD: &str = "hunter2";

/// An address of this host that is not the loopback device's; `None`, with a message, where it has none.
fn own_address() -> Option<IpAddr> {
    // Connecting a datagram socket sends nothing: it chooses the address.
    let socket = UdpSocket::bind((Ipv4Addr::UNSPECIFIED, 0)).unwrap();
    let chosen = socket.connect((Ipv4Addr::new(192, 0, 2, 200), 9)).and_then(|()| socket.local_addr());
    let own = chosen.ok().map(|address| address.ip()).filter(|address| !address.is_loopback());
    if own.is_none() {
        eprintln!("skipped: this host has no address but loopback");
    }
    own
}

/// A server that requests an authentication of that number, and the bytes that it gets for it.
fn requests(address: IpAddr, request: u32) -> (u16, Receiver<Vec<u8>>) {
    let listener = TcpListener::bind((address, 0)).unwrap();
    let port = listener.local_addr().unwrap().port();
    let (send, got) = mpsc::channel();
    std::thread::spawn(move || {
        let serve = || -> io::Result<Vec<u8>> {
            let mut tcp = listener.accept()?.0;
            tcp.set_read_timeout(Some(Duration::from_secs(5)))?;
            let mut startup = [0; 4];
            tcp.read_exact(&mut startup)?;
            io::copy(&mut (&tcp).take(u64::from(u32::from_be_bytes(startup)) - 4), &mut io::sink())?;
            let salted = if request == 5 { [1, 2, 3, 4].as_slice() } else { &[] };
            let length = 8 + salted.len() as u32;
            tcp.write_all(&[b"R", &length.to_be_bytes()[..], &request.to_be_bytes(), salted].concat())?;
            let mut header = [0; 5];
            if tcp.read(&mut header)? == 0 {
                return Ok(Vec::new());
            }
            let mut answer = vec![0; u32::from_be_bytes(header[1..].try_into().unwrap()) as usize - 4];
            tcp.read_exact(&mut answer)?;
            Ok(answer)
        };
        let _ = send.send(serve().unwrap_or_default());
    });
    (port, got)
}

fn open(address: IpAddr, port: u16, more: &str) -> Result<Postgres, SourceError> {
    Postgres::open(&format!("host={address} port={port} user=ann password={PASSWORD} sslmode=disable {more}"))
}

#[track_caller]
fn fault(opened: Result<Postgres, SourceError>) -> AuthenticationFault {
    let error = opened.expect_err("it must be refused");
    let shown = format!("{error} {error:?} {:?} {:?}", error.facts(), error.remedy());
    assert!(!shown.contains(PASSWORD), "{shown}");
    assert!(error.is_refusal() && error.remedy().unwrap().contains("require_auth"), "{shown}");
    match error.downcast_ref() {
        Some(PostgresError::Authentication { fault, .. }) => *fault,
        _ => panic!("{shown}"),
    }
}

/// On this host, too, where another user may have taken the port of a server that is stopped.
#[test]
fn a_server_that_requests_a_readable_password_by_tcp_gets_none() {
    let addresses = [Some(Ipv4Addr::LOCALHOST.into()), own_address()];
    for address in addresses.into_iter().flatten() {
        for (request, name) in [(3, "password"), (5, "md5")] {
            let (port, got) = requests(address, request);
            assert!(matches!(fault(open(address, port, "")), AuthenticationFault::Readable(_)), "{name}");
            assert_eq!(got.recv().unwrap(), b"", "{name}");
            let (port, got) = requests(address, request);
            assert!(open(address, port, &format!("require_auth={name}")).is_err(), "it answers nothing more");
            let sent = String::from_utf8(got.recv().unwrap()).unwrap();
            let is_sent =
                if request == 3 { sent == format!("{PASSWORD}\0") } else { sent.starts_with("md5") };
            assert!(is_sent, "{sent}");
            let (port, got) = requests(address, request);
            let only_scram = fault(open(address, port, "require_auth=scram-sha-256"));
            assert!(matches!(only_scram, AuthenticationFault::NotAccepted(_)), "{only_scram}");
            assert_eq!(got.recv().unwrap(), b"", "{name}");
        }
    }
}

/// Forwards what arrives at a port of `address` to that port of the loopback device.
fn forward(address: IpAddr, port: u16) -> io::Result<()> {
    let listener = TcpListener::bind((address, port))?;
    std::thread::spawn(move || {
        for client in listener.incoming() {
            let (client, server) =
                (client.unwrap(), TcpStream::connect((Ipv4Addr::LOCALHOST, port)).unwrap());
            for (mut from, mut to) in
                [(client.try_clone().unwrap(), server.try_clone().unwrap()), (server, client)]
            {
                std::thread::spawn(move || {
                    let _ = io::copy(&mut from, &mut to);
                    let _ = to.shutdown(std::net::Shutdown::Both);
                });
            }
        }
    });
    Ok(())
}

#[test]
fn passwords_of_a_real_server_are_sent_as_the_settings_accept() {
    let Some(address) = own_address() else { return };
    let Some(server) = Encrypting::start(15, "server") else { return };
    server.server.sql(&format!(
        "SET password_encryption = 'md5'; CREATE ROLE md LOGIN PASSWORD '{PASSWORD}'; CREATE ROLE clear LOGIN PASSWORD \
         '{PASSWORD}'; GRANT pg_monitor TO md, clear"
    ));
    let rules = "local all all trust\nhost all md 127.0.0.1/32 md5\nhost all clear 127.0.0.1/32 password\n\
                 host all all 127.0.0.1/32 scram-sha-256\n";
    fs::write(server.server.data_directory().join("pg_hba.conf"), rules).unwrap();
    server.server.sql("SELECT pg_reload_conf()");
    super::soon("the server to follow its rules", || {
        server.open("127.0.0.1", "sslmode=disable user=clear require_auth=password").ok()
    });
    if let Err(error) = forward(address, server.server.port()) {
        return eprintln!("skipped: the port is in use at {address}: {error}");
    }
    let far = address.to_string();
    let works = |host: &str, more: &str| {
        let mut source = server.open(host, more).unwrap_or_else(|error| panic!("{host} {more}: {error}"));
        take_snapshot(&mut source);
        server.is_encrypted()
    };
    for (role, method) in [("md", "md5"), ("clear", "password")] {
        let refused = fault(server.open(&far, &format!("sslmode=disable user={role}")));
        assert!(matches!(refused, AuthenticationFault::Readable(_)), "{role}: {refused}");
        assert!(!works(&far, &format!("sslmode=disable user={role} require_auth={method}")));
        assert!(works(&far, &format!("sslmode=require user={role}")), "{role}");
        assert!(works(&far, &format!("sslmode=allow user={role}")), "{role}: encrypted after the refusal");
        let refused = fault(server.open("127.0.0.1", &format!("sslmode=disable user={role}")));
        assert!(matches!(refused, AuthenticationFault::Readable(_)), "{role}: this host: {refused}");
        fault(server.open("127.0.0.1", &format!("sslmode=require user={role} require_auth=scram-sha-256")));
    }
    assert!(!works(&far, "sslmode=disable"));
    assert!(works(&far, "sslmode=require require_auth=scram-sha-256"));
    fault(server.open(&far, "require_auth=!scram-sha-256"));
    fault(server.open(&far, "require_auth=none"));
}
