//! The login: the server's greeting, TLS, and the proof of the password by one of two plugins.

use super::{Fault, Limits, Reader, Wire, key, proof};
use rustls::ClientConnection;

/// The protocol since MySQL 3.21.
const VERSION: u64 = 10;
/// Capabilities (CLIENT_...): LONG_PASSWORD, PROTOCOL_41, TRANSACTIONS, SECURE_CONNECTION, PLUGIN_AUTH.
const WANTED: u32 = 0x1 | PROTOCOL_41 | 0x2000 | SECURE_CONNECTION | PLUGIN_AUTH;
const PROTOCOL_41: u32 = 0x200;
const SSL: u32 = 0x800;
const SECURE_CONNECTION: u32 = 0x8000;
const PLUGIN_AUTH: u32 = 0x8_0000;
/// utf8mb4_general_ci.
const CHARACTER_SET: u8 = 45;
/// The longest packet that this client announces.
const PACKET_BYTES_MAX: u32 = 1 << 24;
const NONCE_BYTES: usize = 20;
/// Packets of the server in one login: greeting, switch, two of the plugin, OK.
const STEPS_MAX: usize = 6;

const OK: u8 = 0x00;
const MORE_DATA: u8 = 0x01;
const SWITCH: u8 = 0xFE;
/// The plugin caching_sha2_password: the server knows the proof; it wants the password itself.
const IS_CACHED: u8 = 3;
const WANTS_PASSWORD: u8 = 4;
const REQUEST_KEY: u8 = 2;

/// The user who logs in. It has no `Debug`, so that the password cannot be printed by mistake.
pub struct Credentials<'a> {
    pub user: &'a str,
    pub password: &'a str,
}

/// How what is sent is kept from others.
pub struct Protection {
    /// The TLS client; `None` where nothing is encrypted.
    pub tls: Option<ClientConnection>,
    /// Whether a server that offers no TLS is refused.
    pub requires_tls: bool,
    /// Whether a password may be sent encrypted with a key that the server sends. Any server can send a key of its own.
    pub accepts_server_key: bool,
}

/// How the password is proved.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Plugin {
    NativePassword,
    CachingSha2Password,
}

struct Greeting {
    capabilities: u32,
    nonce: Vec<u8>,
    plugin: Plugin,
}

/// Logs in, encrypted with the TLS client if there is one and the server offers TLS. Answers have these limits from then on.
///
/// # Errors
/// [`Fault`].
pub fn log_in(
    wire: &mut Wire,
    protection: Protection,
    credentials: &Credentials,
    limits: Limits,
) -> Result<(), Fault> {
    let greeting = Greeting::parse(&wire.receive()?)?;
    let is_tls_offered = greeting.capabilities & SSL != 0;
    if protection.requires_tls && !is_tls_offered {
        return Err(Fault::Encryption("the server offers no encryption".into()));
    }
    let tls = protection.tls.filter(|_| is_tls_offered);
    let ours = WANTED & greeting.capabilities;
    let capabilities = ours | if tls.is_some() { SSL } else { 0 };
    let mut response = [capabilities.to_le_bytes(), PACKET_BYTES_MAX.to_le_bytes()].concat();
    response.push(CHARACTER_SET);
    response.extend([0; 23]);
    if let Some(tls) = tls {
        wire.send(&response)?;
        wire.encrypt(tls)?;
    }
    let proof = greeting.plugin.proof(credentials.password, &greeting.nonce);
    response.extend(credentials.user.bytes().filter(|byte| *byte != 0));
    response.extend([0, proof.len() as u8]);
    response.extend(proof);
    if ours & PLUGIN_AUTH != 0 {
        response.extend(greeting.plugin.name());
        response.push(0);
    }
    wire.send(&response)?;
    let accepts_key = protection.accepts_server_key;
    prove(wire, greeting.plugin, greeting.nonce, credentials.password, accepts_key)?;
    wire.set_logged_in(limits);
    Ok(())
}

impl Greeting {
    fn parse(packet: &[u8]) -> Result<Greeting, Fault> {
        let mut reader = Reader(packet);
        if reader.int(1)? != VERSION {
            return Err(Fault::Protocol("it does not speak MySQL's protocol"));
        }
        let _version = reader.text();
        let _connection = reader.int(4)?;
        let mut nonce = reader.take(8)?.to_vec();
        reader.take(1)?;
        let low = reader.int(2)?;
        let _character_set_and_status = reader.take(3)?;
        let capabilities = (reader.int(2)? << 16 | low) as u32;
        if capabilities & (PROTOCOL_41 | SECURE_CONNECTION) != PROTOCOL_41 | SECURE_CONNECTION {
            return Err(Fault::Protocol("its protocol is older than that of MySQL 4.1"));
        }
        let _nonce_bytes_and_reserved = reader.take(11)?;
        nonce.extend(reader.take(NONCE_BYTES - nonce.len())?);
        reader.take(1)?;
        // Others follow in a switch.
        let plugin = Plugin::find(reader.text()).unwrap_or(Plugin::NativePassword);
        Ok(Greeting { capabilities, nonce, plugin })
    }
}

/// Follows the server's switches and requests until it accepts the login.
fn prove(
    wire: &mut Wire,
    mut plugin: Plugin,
    mut nonce: Vec<u8>,
    password: &str,
    accepts_key: bool,
) -> Result<(), Fault> {
    for _ in 0..STEPS_MAX {
        let packet = wire.receive()?;
        match packet.as_slice() {
            [OK, ..] => return Ok(()),
            [SWITCH, request @ ..] => {
                let mut reader = Reader(request);
                let name = reader.text();
                plugin = Plugin::find(name).ok_or_else(|| unknown(name))?;
                nonce = reader.0.strip_suffix(&[0]).unwrap_or(reader.0).to_vec();
                if nonce.len() != NONCE_BYTES {
                    return Err(Fault::Protocol("it switches the authentication without a nonce"));
                }
                wire.send(&plugin.proof(password, &nonce))?;
            }
            [MORE_DATA, IS_CACHED] if plugin == Plugin::CachingSha2Password => {}
            [MORE_DATA, WANTS_PASSWORD] if plugin == Plugin::CachingSha2Password => {
                let mut secret = [password.as_bytes(), &[0]].concat();
                if !wire.is_private() {
                    if !accepts_key {
                        return Err(Fault::PasswordInClear);
                    }
                    wire.send(&[REQUEST_KEY])?;
                    let answer = wire.receive()?;
                    let pem = answer.strip_prefix(&[MORE_DATA]);
                    let pem =
                        pem.ok_or(Fault::Protocol("it answers the request for its key with something else"))?;
                    secret.iter_mut().zip(nonce.iter().cycle()).for_each(|(byte, mask)| *byte ^= mask);
                    secret = key::encrypt(&secret, pem)
                        .ok_or(Fault::Protocol("its key is none that a password could be encrypted with"))?;
                }
                wire.send(&secret)?;
            }
            _ => return Err(Fault::Protocol("it answers a login in a form that is not understood")),
        }
    }
    Err(Fault::Protocol("its login does not end"))
}

fn unknown(name: &[u8]) -> Fault {
    // The first switch, of servers before 4.1, has no name.
    let name = if name.is_empty() { b"mysql_old_password".as_slice() } else { name };
    Fault::UnknownPlugin(String::from_utf8_lossy(name).into_owned())
}

impl Plugin {
    fn find(name: &[u8]) -> Option<Plugin> {
        [Plugin::NativePassword, Plugin::CachingSha2Password].into_iter().find(|plugin| plugin.name() == name)
    }

    const fn name(self) -> &'static [u8] {
        match self {
            Plugin::NativePassword => b"mysql_native_password",
            Plugin::CachingSha2Password => b"caching_sha2_password",
        }
    }

    /// Empty for an empty password.
    fn proof(self, password: &str, nonce: &[u8]) -> Vec<u8> {
        match self {
            _ if password.is_empty() => Vec::new(),
            Plugin::NativePassword => proof::native(password.as_bytes(), nonce),
            Plugin::CachingSha2Password => proof::sha256(password.as_bytes(), nonce),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{Read, Write};
    use std::net::TcpStream;
    use std::os::fd::OwnedFd;
    use std::os::unix::net::UnixStream;
    use std::process::{Command, Stdio};
    use std::time::{Duration, Instant};

    const PASSWORD: &str = "hunter2 hunter2";
    const NONCE: &[u8; 20] = b"abcdefghijklmnopqrst";
    const OTHER_NONCE: &[u8; 20] = b"ABCDEFGHIJKLMNOPQRST";
    const ACCEPTED: &[u8] = &[OK, 0, 0, 2, 0, 0, 0];

    /// The server's side, packet by packet.
    struct Server {
        socket: UnixStream,
        number: u8,
    }

    impl Server {
        fn send(&mut self, payload: &[u8]) {
            let [a, b, c, _] = (payload.len() as u32).to_le_bytes();
            self.socket.write_all(&[&[a, b, c, self.number], payload].concat()).unwrap();
            self.number += 1;
        }

        fn receive(&mut self) -> Vec<u8> {
            let mut header = [0; 4];
            self.socket.read_exact(&mut header).unwrap();
            assert_eq!(header[3], self.number);
            self.number += 1;
            let mut payload = vec![0; u32::from_le_bytes([header[0], header[1], header[2], 0]) as usize];
            self.socket.read_exact(&mut payload).unwrap();
            payload
        }

        fn greet(&mut self, plugin: &str) {
            let [a, b, c, d] = (WANTED | 0x1).to_le_bytes();
            let mut greeting = b"\x0a8.0.36\0\x01\0\0\0abcdefgh\0".to_vec();
            greeting.extend([a, b, CHARACTER_SET, 2, 0, c, d, 21, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]);
            greeting.extend(b"ijklmnopqrst\0");
            greeting.extend([plugin.as_bytes(), &[0]].concat());
            self.send(&greeting);
        }

        /// The proof in the client's response, which ends with it and the plugin.
        fn proof(&mut self, plugin: &str) -> Vec<u8> {
            let response = self.receive();
            let rest = response[32..].strip_prefix(b"watcher\0").expect("the user");
            let rest = rest.strip_suffix([plugin.as_bytes(), &[0]].concat().as_slice()).expect("the plugin");
            assert_eq!(usize::from(rest[0]), rest.len() - 1);
            rest[1..].to_vec()
        }
    }

    /// Logs in to a server that does this.
    fn log_in_to(
        is_local: bool,
        accepts_server_key: bool,
        password: &str,
        serve: impl FnOnce(&mut Server) + Send + 'static,
    ) -> Result<(), Fault> {
        let (ours, socket) = UnixStream::pair().unwrap();
        let server = std::thread::spawn(move || serve(&mut Server { socket, number: 0 }));
        let deadline = Instant::now() + Duration::from_secs(20);
        let mut wire = match is_local {
            true => Wire::over_unix_socket(OwnedFd::from(ours), deadline),
            false => Wire::over_tcp(TcpStream::from(OwnedFd::from(ours)), deadline),
        };
        let protection = Protection { tls: None, requires_tls: false, accepts_server_key };
        let credentials = Credentials { user: "watcher", password };
        let done = log_in(&mut wire, protection, &credentials, Limits::RECORDING);
        drop(wire);
        server.join().unwrap();
        done
    }

    #[test]
    fn the_password_is_proved_to_the_plugin_of_the_greeting_or_of_a_switch() {
        let native = |nonce: &[u8]| proof::native(PASSWORD.as_bytes(), nonce);
        let sha256 = |nonce: &[u8]| proof::sha256(PASSWORD.as_bytes(), nonce);
        log_in_to(false, false, PASSWORD, move |server| {
            server.greet("mysql_native_password");
            assert_eq!(server.proof("mysql_native_password"), native(NONCE));
            server.send(&[b"\xfecaching_sha2_password\0".as_slice(), OTHER_NONCE, &[0]].concat());
            assert_eq!(server.receive(), sha256(OTHER_NONCE));
            server.send(&[MORE_DATA, IS_CACHED]);
            server.send(ACCEPTED);
        })
        .unwrap();
        log_in_to(false, false, PASSWORD, move |server| {
            server.greet("caching_sha2_password");
            assert_eq!(server.proof("caching_sha2_password"), sha256(NONCE));
            server.send(&[b"\xfemysql_native_password\0".as_slice(), OTHER_NONCE, &[0]].concat());
            assert_eq!(server.receive(), native(OTHER_NONCE));
            server.send(ACCEPTED);
        })
        .unwrap();
        // MariaDB may name a plugin of its own as its default; what the user has follows.
        log_in_to(false, false, "", |server| {
            server.greet("auth_gssapi_client");
            assert_eq!(server.proof("mysql_native_password"), b"");
            server.send(ACCEPTED);
        })
        .unwrap();
    }

    #[test]
    fn the_password_itself_goes_over_a_unix_socket_only() {
        log_in_to(true, false, PASSWORD, |server| {
            server.greet("caching_sha2_password");
            server.receive();
            server.send(&[MORE_DATA, WANTS_PASSWORD]);
            assert_eq!(server.receive(), [PASSWORD.as_bytes(), &[0]].concat());
            server.send(ACCEPTED);
        })
        .unwrap();
        let refused = log_in_to(false, false, PASSWORD, |server| {
            server.greet("caching_sha2_password");
            server.receive();
            server.send(&[MORE_DATA, WANTS_PASSWORD]);
            let mut rest = Vec::new();
            server.socket.read_to_end(&mut rest).unwrap();
            assert_eq!(rest, b"", "no request for a key");
        });
        assert!(matches!(refused, Err(Fault::PasswordInClear)));
        let refused = log_in_to(false, true, PASSWORD, |server| {
            server.greet("caching_sha2_password");
            server.receive();
            server.send(&[MORE_DATA, WANTS_PASSWORD]);
            assert_eq!(server.receive(), [REQUEST_KEY]);
            server.send(&[&[MORE_DATA], b"no key".as_slice()].concat());
            let mut rest = Vec::new();
            server.socket.read_to_end(&mut rest).unwrap();
            assert_eq!(rest, b"");
        });
        assert!(matches!(refused, Err(Fault::Protocol(_))));
    }

    #[test]
    fn over_a_network_the_password_is_encrypted_with_the_servers_key_where_that_is_permitted() {
        let directory = tempfile::tempdir().unwrap();
        let private = directory.path().join("private.pem");
        let openssl = |arguments: &[&str]| {
            Command::new("openssl").args(arguments).stdin(Stdio::null()).stderr(Stdio::null()).output()
        };
        let key = private.to_str().unwrap();
        if !openssl(&["genrsa", "-out", key, "2048"]).is_ok_and(|made| made.status.success()) {
            eprintln!("skipped: no openssl here");
            return;
        }
        let public = openssl(&["rsa", "-in", key, "-pubout"]).unwrap().stdout;
        let sent = directory.path().join("sent");
        let path = sent.clone();
        log_in_to(false, true, PASSWORD, move |server| {
            server.greet("caching_sha2_password");
            server.receive();
            server.send(&[MORE_DATA, WANTS_PASSWORD]);
            assert_eq!(server.receive(), [REQUEST_KEY]);
            server.send(&[&[MORE_DATA], public.as_slice()].concat());
            std::fs::write(path, server.receive()).unwrap();
            server.send(ACCEPTED);
        })
        .unwrap();
        let padding = "rsa_padding_mode:oaep";
        let sent = sent.to_str().unwrap();
        let mut secret = openssl(&["pkeyutl", "-decrypt", "-inkey", key, "-pkeyopt", padding, "-in", sent])
            .unwrap()
            .stdout;
        secret.iter_mut().zip(NONCE.iter().cycle()).for_each(|(byte, mask)| *byte ^= mask);
        assert_eq!(secret, [PASSWORD.as_bytes(), &[0]].concat());
    }
}
