//! Charts of a check: its time series, and the demand on the curve of a capability.

pub(crate) mod curve_iops;
pub(crate) mod curve_latency;
pub(crate) mod iops_over_time;
pub(crate) mod latency_over_time;
pub(crate) mod series;
