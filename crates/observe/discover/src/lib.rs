//! Discovery of the users of storage on this host, without configuration: database servers, programs with counters, and any
//! other program that does more than a share of a device's I/O.
//!
//! ```text
//! Scanner::new ─> Scanner::scan ─> Scan { databases }       a command once, an agent every 30 s
//!    Programs::read          every process                  collect::discovery
//!    collect::find_instances what each source's folder finds, with the sources to try
//!    heavy_programs          /proc/PID/io and diskstats since the last scan
//!    tries, attempts         each source is opened for real, many at once and all in bounded time; else process:PID
//!    membership              control group -> systemd unit, container and its name
//! add_capabilities(scan, history)   what is known of each volume, and since when
//! Scan::changes_since(previous)     which appeared, which are gone: by pid and start
//! ```
//! Main path of an agent: `scan` every 30 s, open the [`Database::source`] of those that appeared, close those that are gone.
//! A source that was tried is not tried again for some minutes, so that a scan costs a server nothing.
//!
//! Never: writes anything, changes a server, keeps a connection, sends a password to a server of a user that is neither root,
//! nor this user, nor the one that the server's package made, or connects to a socket before it is known who listens there.

mod attempts;
mod changes;
mod container_names;
mod heavy_programs;
mod known_capability;
mod membership;
mod scan;
mod scanner;
mod tries;

pub use changes::Changes;
pub use known_capability::add_capabilities;
pub use membership::{Container, Membership};
pub use scan::{Database, DeviceShare, Identity, KnownCapability, Refusal, Scan, Volume};
pub use scanner::{Options, Scanner};
