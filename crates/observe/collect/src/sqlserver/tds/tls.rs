//! TLS 1.2, as TDS 7.4 has it. SQL Server speaks 1.3 in TDS 8 only.

use super::Fault;
use crate::tls::{self, Authorities, Names};
use rustls::{ClientConnection, version};
use std::path::PathBuf;
use std::sync::Arc;

/// Whose certificate is accepted.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(in super::super) enum Trust {
    /// One that a public authority signed for the host.
    #[default]
    Public,
    /// One that an authority of this file signed for the host.
    Authority(PathBuf),
    /// Anybody's: the connection is encrypted, and nobody knows with whom.
    Anybody,
}

pub(super) fn client(trust: &Trust, host: &str) -> Result<ClientConnection, Fault> {
    let trust = match trust {
        Trust::Public => tls::Trust::Signed(Authorities::public(), Names::Checked),
        Trust::Authority(file) => {
            let authorities = Authorities::of_file(file).map_err(Fault::Tls)?;
            tls::Trust::Signed(authorities, Names::Checked)
        }
        Trust::Anybody => tls::Trust::Anybody,
    };
    let config = tls::config(trust, &[&version::TLS12], None).map_err(Fault::Tls)?;
    let name = tls::server_name(host).map_err(Fault::Tls)?;
    ClientConnection::new(Arc::new(config), name).map_err(|error| Fault::Tls(tls::said(&error)))
}
