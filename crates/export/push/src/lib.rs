//! Pushes an agent's figures to other servers every few seconds: Prometheus remote-write 1.0 and OTLP/HTTP.
//!
//! ```text
//! every tick: figures ─> request ─> Queue (QUEUE_BYTES_MAX; the oldest are dropped) ─> sender ─> POST, one at a time
//!                                                                                       │ 2xx: the next one
//!                                            connection, 429, 5xx: again, later and later ─┤
//!                                                     any other 4xx: dropped, not retried ─┘
//! ```
//!
//! Main path: [`Destination::new`], then [`start`], which returns at once: a thread per server sends. Counters are
//! cumulative, so a dropped request costs detail, not correctness. A change of state (it fails for a new reason; it works
//! again) is reported once. [`finish`] ends it: queued requests are sent within a bounded time, and lost ones reported.
//!
//! [`post`] sends one request of another kind, as a notification, with the same rules.
//!
//! The request itself is the crate `http-client`'s; no message contains a credential.

mod destination;
mod http;
mod partial;
mod queue;
mod sender;

pub use destination::{Destination, Protocol};
pub use http::{Headers, Outcome, post};
pub use http_client::{Credential, Endpoint, WrongCredential, WrongEndpoint};
pub use queue::QUEUE_BYTES_MAX;
pub use sender::{Pushing, StateChange, finish, start};
