//! The volumes of many hosts, ranked by headroom, from what a Prometheus answers.
//!
//! ```text
//! Part::ALL, one query each, all at one time                      fleet()
//!   last_over_time(headroom_verdict_timestamp_seconds[1h]) ──> which volumes there are, and how old each verdict is
//!   figures, latencies ──────────────────────────────────────> Volume: verdict, headroom, U, binding, latency
//!   headroom_capability_measured_timestamp_seconds ──────────> measured when; without: never measured
//!   daily p95 of U ──────────────────────────────────────────> Trend: when it reaches 1, with its uncertainty
//!         fresh and measured: volumes, the worst first     old: stale     fresh and not measured: never measured
//! ```
//!
//! A host is all labels of a series but those of the family. A volume that is stale or was never measured is never
//! ranked: nothing says that it is healthy. The crate does no I/O and reads no clock.

mod filter;
mod gather;
mod labels;
mod query;
mod rank;
mod trend;
mod volume;

pub use filter::{Filter, WrongFilter};
pub use gather::{Answers, Sample, VolumeIncidents, fleet, with_incidents};
pub use query::{Expression, Part, Scope, incidents_within};
pub use rank::is_worse;
pub use trend::{DAYS_MIN, Reach, Trend};
pub use volume::{
    Fleet, Headroom, HeadroomOrigin, Host, Latency, NeverMeasured, SilentSource, Stale, Unknown, Volume,
};
