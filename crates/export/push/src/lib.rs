//! Sends totals to other servers, every some seconds: Prometheus remote-write 1.0 and OTLP/HTTP.
//!
//! ```text
//! every tick: Totals ─> request ─> Waiting (QUEUE_BYTES_MAX; the oldest are dropped) ─> sender ─> POST, one at a time
//!                                                                                       │ 2xx: the next one
//!                                            connection, 429, 5xx: again, later and later ─┤
//!                                                     any other 4xx: dropped, never again ─┘
//! ```
//!
//! Main path: [`Destination::new`], then [`start`], which returns at once: all of this lives in a thread of its own and
//! waits for nobody but the other server. Totals are cumulative, so that what is dropped costs detail, not truth. A
//! change of state (it fails, for a new reason; it works again) is told once, not each time. [`finish`] ends it: what waits is
//! sent within a bounded time, and what could not be is told.
//!
//! A credential is in no word that it says: see [`Credential`].

mod credential;
mod destination;
mod http;
mod partial;
mod queue;
mod sender;

pub use credential::{Credential, WrongCredential};
pub use destination::{Destination, Protocol, WrongDestination};
pub use queue::QUEUE_BYTES_MAX;
pub use sender::{Pushing, Said, finish, start};
