//! Certificates that are accepted from a SQL Server.

use crate::tls::{self, Authorities, Names};
use rustls::ClientConnection;
use std::path::PathBuf;
use std::sync::Arc;

/// Certificates that are accepted.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) enum Trust {
    /// One that a public authority signed for the host.
    #[default]
    Public,
    /// One that an authority of this file signed for the host.
    Authority(PathBuf),
    /// Any: the connection is encrypted, but the server is not authenticated.
    Any,
}

/// A TLS client for a connection to `host`. The error is a text for people.
pub(super) fn client(trust: &Trust, host: &str) -> Result<ClientConnection, String> {
    let trust = match trust {
        Trust::Public => tls::Trust::Signed(Authorities::public(), Names::Checked),
        Trust::Authority(file) => tls::Trust::Signed(Authorities::from_file(file)?, Names::Checked),
        Trust::Any => tls::Trust::Any,
    };
    let config = tls::config(trust, tds::TLS_VERSIONS, None)?;
    let name = tls::server_name(host)?;
    ClientConnection::new(Arc::new(config), name).map_err(|error| tls::describe_error(&error))
}
