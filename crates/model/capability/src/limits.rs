//! Limits that several judges of a measurement share: knees, findings, verdicts, comparisons.

/// A load thread that uses this share of its core may itself be the limit: the run is CPU-bound.
pub const THREAD_BUSY_MIN: f64 = 0.92;
/// A plateau of throughput whose points differ by less than this share is metered, not served.
pub const METERED_SPREAD_MAX: f64 = 0.01;
/// More than the highest measured rate by this factor is another storage than the one measured, or a cache.
pub const OTHER_STORAGE_RATIO: f64 = 1.5;
