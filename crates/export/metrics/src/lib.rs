//! Totals of what sources counted, by class of file, as Prometheus and OTLP metrics.
//!
//! ```text
//! two snapshots of a source ─> Totals::add() ─> by (source, database, kind, drive): counts, bytes, timed operations
//!                                              by (source, event): time waited
//!                              Totals::failed()          └─> families: one list, four output formats
//!                                                             ├─ text(OpenMetrics | Prometheus)   for a scrape
//!                                                             └─ remote_write(), otlp()           to push
//! ```
//!
//! A source's own counters are not exported: their sum over files falls when a file is removed, and thousands of files
//! would be thousands of series. Instead, known intervals are summed by class. An unknown interval adds nothing, and is
//! counted by its reason. Mean latency is the usual quotient of a summary: `rate(x_seconds_sum) / rate(x_seconds_count)`.
//! Operations without a time are in `_total` and not in `_count`, so that they do not shorten it.
//!
//! [`AgentState`] is what the agent knows now: verdicts, utilisation and capabilities, from one list of families. An [`Identity`]
//! is what makes the series of a host the same, scraped or pushed.
//!
//! Names and units follow the Prometheus and OpenMetrics conventions: base units, `_total`, `# UNIT`. This crate does no
//! I/O and reads no clock.

mod agent;
mod families;
mod identity;
mod otlp;
mod protobuf;
mod pushed;
mod recorded;
mod remote_write;
mod text;
mod totals;

pub use agent::{
    AgentState, DeviceOps, DeviceState, FAMILIES, FamilyDescription, Headroom, Latency, ProcessState,
    SourceState, SubjectState,
};
pub use identity::{EXTRA_LABELS_MAX, ExtraLabels, Identity, LABEL_BYTES_MAX, OWN_LABELS, WrongLabel};
pub use pushed::{Dropped, Pushed, SentSeries, Stamp};
pub use text::{Exposition, Format};
pub use totals::Totals;
