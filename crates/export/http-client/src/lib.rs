//! One request to an HTTP server: what `push`, `notify` and the client of Prometheus share.
//!
//! ```text
//! Endpoint::new(url, credential)      http:// or https://, no credential in the URL
//! Tls::system(), Tls::from_files()    who is trusted, and as whom this client comes
//! exchange(endpoint, call, tls)       a connection of its own, one POST, an answer within PATIENCE and a size
//! ```
//!
//! No message contains a credential: see [`Credential`]. Redirects are not followed: a credential goes only where the user
//! said. The caller decides what a status means.
//!
//! It is hyper with a connection for each request. `ureq` (3.5) blocks, so that no request in flight can be given up and queued again
//! when the agent ends, and reads nothing before the whole body is sent: a server that refuses it at once looks like one that hangs.

mod credential;
mod endpoint;
mod exchange;
mod in_time;
mod tls;

pub use credential::{Credential, WrongCredential};
pub use endpoint::{Endpoint, WrongEndpoint};
pub use exchange::{Answer, Call, Failed, exchange};
pub use hyper::StatusCode;
pub use hyper::header::{HeaderMap, HeaderName, HeaderValue};
pub use tls::{Tls, WrongTls};
