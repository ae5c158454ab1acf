use std::io;

/// Why there is no answer.
#[derive(Debug)]
pub enum Fault {
    /// The deadline has passed.
    TimedOut,
    /// The connection failed or ended.
    Io(io::Error),
    /// TLS failed: the certificate, for one, is not accepted.
    Tls(rustls::Error),
    /// The two sides cannot agree on encryption, or it could not be set up. The text is for people.
    Encryption(String),
    /// The server violates the protocol.
    Protocol(&'static str),
    /// The server refuses the login.
    LoginRefused(ServerError),
}

/// An error as the server reports it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServerError {
    /// Its number in sys.messages.
    pub number: i32,
    /// Its text.
    pub text: String,
}

impl From<io::Error> for Fault {
    fn from(error: io::Error) -> Fault {
        match error.kind() {
            io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut => Fault::TimedOut,
            // rustls reports a bad record so.
            io::ErrorKind::InvalidData => Fault::Encryption(error.to_string()),
            _ => Fault::Io(error),
        }
    }
}
