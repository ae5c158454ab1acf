//! Charts of a check: its time series, and the demand on the curve of a capability.

pub(crate) mod curve;
pub(crate) mod over_time;
pub(crate) mod series;
