//! A source whose server sends given bytes.

use super::*;
use crate::dial;
use tds::{Connection, Encryption, Login, LoginOutcome, Security};

/// No encryption, and the login is acknowledged.
const LOGIN: &[u8] = b"\x04\x01\0\x0f\0\0\x01\0\x01\0\x06\0\x01\xff\x02\x04\x01\0\x0b\0\0\x01\0\xad\0\0";

/// Opens the source and takes snapshots while the bytes last; after a first byte that is odd, the login comes before them.
pub fn read_answers(bytes: &[u8]) -> Vec<Snapshot> {
    let deadline = Instant::now() + SNAPSHOT_LIMIT;
    // A new connection fails at once.
    let text = "sqlserver://watcher@255.255.255.255:1/?encrypt=off";
    let secret = |name: &str| (name == "SQLCMDPASSWORD").then(|| "secret".to_owned());
    let address = Address::parse(text, &secret).expect("an address");
    let Some((tcp, _server)) = dial::to_server_of(bytes, LOGIN) else { return Vec::new() };
    let login = Login {
        host: "here".into(),
        user: address.user.clone(),
        password: address.password.clone(),
        server: "there".into(),
        database: String::new(),
    };
    let tls_client = || Err("no encryption".into());
    let security = Security { encryption: Encryption::Off, tls_client: &tls_client };
    let connected = Connection::log_in(tcp, &security, &login, deadline);
    let Ok(LoginOutcome::Connected(connection)) = connected else { return Vec::new() };
    let Ok(session) = Session::begin(connection, deadline) else { return Vec::new() };
    let mut server = SqlServer::begin(address, session);
    let mut snapshots = Vec::new();
    while server.session.is_some()
        && let Ok(snapshot) = server.snapshot()
    {
        snapshots.push(snapshot);
    }
    snapshots
}
