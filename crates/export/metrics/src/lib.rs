//! What sources counted, for Prometheus: totals by class of file, which only grow.
//!
//! ```text
//! two snapshots of a source ─> Totals::add() ─> by (source, database, kind, drive): counts, bytes, timed operations
//!                                              by (source, event): time waited
//!                              Totals::failed()          └─> families: one list, four ways to write it
//!                                                             ├─ text(OpenMetrics | Prometheus)   for a scrape
//!                                                             └─ remote_write(), otlp()           to push
//! ```
//!
//! A source's own counters cannot be passed on: the sum over files falls when a file goes, and thousands of file names are
//! thousands of series. So known intervals are added up by class. An interval that is not known adds nothing, and is
//! counted with its reason. A latency is the usual quotient of a summary: `rate(x_seconds_sum) / rate(x_seconds_count)`;
//! what was not timed is in `_total` and not in `_count`, so that it makes no latency shorter.
//!
//! Names and units follow the Prometheus and OpenMetrics conventions: base units, `_total`, `# UNIT`. This crate does no
//! I/O and reads no clock.

mod families;
mod otlp;
mod protobuf;
mod remote_write;
mod text;
mod totals;

pub use text::Format;
pub use totals::{Dropped, Totals};

/// What a pushed request says beside the totals.
#[derive(Clone, Debug)]
pub struct Stamp {
    /// When everything was zero, nanoseconds since 1970.
    pub since_unix_ns: u64,
    /// When it was as it is now.
    pub at_unix_ns: u64,
    /// The host: two that push to one server are two instances.
    pub host: String,
}
