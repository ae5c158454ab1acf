//! Configuration that a Prometheus and a Grafana need beside the agents: recording rules, alerts and dashboards, from one
//! list.
//!
//! ```text
//! groups()       rules.rs         U by the cost model from the device's counters, latency, N, daily p95, shared arrays
//! alerts()       alerts.rs        a verdict that holds, a trend, an old capability, a host of which nothing is known
//! dashboards()   dashboards.rs    fleet, host, volume, database, incident
//!      └─> files::rules(), files::alerts(), files::dashboards()    YAML, JSON, a mixin of jsonnet
//! ```
//!
//! The names of metrics are those of the agent (`metrics::FAMILIES`); a test compares them. No rule of a group uses another
//! one of the same group: vmalert evaluates them at the same time. This crate does no I/O.

mod alerts;
mod dashboards;
mod device_panels;
mod file_panels;
pub mod files;
mod grafana;
mod jsonnet;
mod rules;

pub use alerts::{Alert, RUNBOOKS, alerts};
pub use dashboards::dashboards;
pub use grafana::Dashboard;
pub use rules::{Group, Rule, groups};
