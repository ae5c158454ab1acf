//! The agent's state as metrics of Prometheus and OTLP.
//!
//! ```text
//! AgentState ─> agent/list.rs: FAMILIES, the one list of names, units and labels ─> families
//!                                                             ├─ text(OpenMetrics | Prometheus)   for a scrape
//!                                                             └─ remote_write(), otlp()           to push
//! ```
//!
//! Names and units follow the Prometheus and OpenMetrics conventions: base units, `_total`, `# UNIT`. An [`Identity`] is what makes
//! the series of a host the same, scraped or pushed. A source's own counters are not exported: their sum over files falls when a
//! file is removed, and thousands of files would be thousands of series. They are [`filestats::SourceTotals`] by class of file.
//!
//! This crate does no I/O and reads no clock.

mod agent;
mod families;
mod identity;
mod otlp;
mod protobuf;
mod pushed;
mod remote_write;
mod text;

pub use agent::{
    AgentState, DeviceFlushes, DeviceOps, DeviceState, FAMILIES, FamilyDescription, Headroom, Latency,
    ProcessState, SourceState, SubjectState,
};
pub use identity::{EXTRA_LABELS_MAX, ExtraLabels, Identity, LABEL_BYTES_MAX, OWN_LABELS, WrongLabel};
pub use pushed::{Dropped, SentSeries, Stamp};
pub use text::Format;
