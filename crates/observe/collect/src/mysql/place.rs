use std::path::PathBuf;

/// Where a server listens.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Place {
    Socket(PathBuf),
    Tcp { host: String, port: u16 },
}
