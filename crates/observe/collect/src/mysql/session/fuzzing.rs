//! A source whose server sends given bytes.

use super::super::Mysql;
use super::*;
use crate::source::Source;
use filestats::Snapshot;

const LOGIN: &[u8] = b"\x4a\0\0\0\x0a8.0.36\0\x01\0\0\0abcdefgh\0\x01\xa2\x2d\x02\0\x08\0\x15\0\0\0\0\0\0\0\0\0\0ijklmnopqrst\0\
    mysql_native_password\0\x07\0\0\x02\0\0\0\x02\0\0\0";

/// Opens the source and takes snapshots while the bytes last; after a first byte that is odd, the login comes before them.
pub fn read_answers(bytes: &[u8]) -> Vec<Snapshot> {
    let options = ClientOptions {
        user: Some("watcher".into()),
        password: Some(Secret("secret".into())),
        ..ClientOptions::default()
    };
    // A new connection fails at once.
    let place = Place::Socket("/nonexistent/mysqld.sock".into());
    let login = Login { place, options, tls: Tls::Disabled, accepts_server_key: true, required_peer: None };
    let Some((tcp, _server)) = dial::to_server_of(bytes, LOGIN) else { return Vec::new() };
    let mut wire = Wire::over_tcp(tcp, Instant::now() + ANSWER_TIMEOUT);
    let credentials = Credentials { user: "watcher", password: "secret" };
    let protection = Protection { tls: None, requires_tls: false, accepts_server_key: true };
    if protocol::log_in(&mut wire, protection, &credentials, Limits::RECORDING).is_err() {
        return Vec::new();
    }
    let session = login.identify(&mut wire).and_then(|server| Session::begin(wire, server));
    let Ok(session) = session else { return Vec::new() };
    let mut mysql = Mysql::begin(login, session);
    let mut snapshots = Vec::new();
    while mysql.session.is_some()
        && let Ok(snapshot) = mysql.snapshot()
    {
        snapshots.push(snapshot);
    }
    snapshots
}
