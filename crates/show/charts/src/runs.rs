//! Charts of runs, one file each.

pub(crate) mod heat_map;
pub(crate) mod histogram;
mod latency_kind;
pub(crate) mod latency_map;
pub(crate) mod load_curve;
pub(crate) mod over_time;
pub(crate) mod percentiles;
pub(crate) mod slices;
