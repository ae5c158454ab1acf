use std::net::SocketAddr;
use std::path::PathBuf;

/// Why a server does not start, or why a changed file does not count.
#[derive(Debug, thiserror::Error)]
pub enum AccessError {
    /// A file cannot be read.
    #[error("cannot read {}: {}", .0.display(), .1)]
    Unreadable(PathBuf, String),
    /// A file has a wrong content.
    #[error("{}: {}", .0.display(), .1)]
    Wrong(PathBuf, String),
    /// Other users may read a file of secrets.
    #[error("{} holds tokens and others may read it", .0.display())]
    Exposed(PathBuf),
    /// Other machines reach the address, and no client must authenticate.
    #[error("{0} can be reached from other machines, and clients do not have to authenticate")]
    Unprotected(SocketAddr),
}

impl AccessError {
    /// The remedy.
    pub fn remedy(&self) -> String {
        match self {
            AccessError::Unreadable(..) => "name a file that the user who runs this may read".into(),
            AccessError::Wrong(..) => {
                "web.yml is written as for Prometheus' exporters (tls_server_config, basic_auth_users); a file of \
                 tokens has one a line"
                    .into()
            }
            AccessError::Exposed(path) => format!("chmod 600 {}", path.display()),
            AccessError::Unprotected(address) => format!(
                "127.0.0.1:{}, or --web-config FILE with basic_auth_users or client certificates, or \
                 --bearer-token-file FILE, or --listen-without-authentication",
                address.port()
            ),
        }
    }
}
