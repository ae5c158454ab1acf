use std::io;

/// Why there is no answer. After any but [`Server`](Fault::Server) the connection cannot be used.
#[derive(Debug)]
pub enum Fault {
    /// The connection failed, ended or reached its deadline.
    Io(io::Error),
    /// TLS failed: the certificate, for one, is not accepted.
    Tls(rustls::Error),
    /// The connection cannot be encrypted. The text is for people.
    Encryption(String),
    /// The server requests the password itself on a connection that others can read or answer.
    PasswordInClear,
    /// The server violates the protocol.
    Protocol(&'static str),
    /// The server wants an authentication plugin that is not here.
    UnknownPlugin(String),
    /// The server reports an error.
    Server {
        /// Its number in mysqld_error.h.
        code: u16,
        /// Its text.
        message: String,
    },
}

impl From<io::Error> for Fault {
    fn from(error: io::Error) -> Fault {
        match error.get_ref().and_then(|inner| inner.downcast_ref::<rustls::Error>()) {
            Some(error) => Fault::Tls(error.clone()),
            None => Fault::Io(error),
        }
    }
}
