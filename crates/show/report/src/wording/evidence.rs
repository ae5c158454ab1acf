//! Evidence of a verdict with its units.

use charts::number::{NONE, bytes, rate, share, time, times};
use verdict::Evidence;

/// A piece of evidence with its unit.
pub(crate) fn value(evidence: &Evidence) -> String {
    let value = evidence.value;
    if !value.is_finite() {
        return NONE.into();
    }
    match evidence.unit.as_str() {
        "ns" => time(value),
        "share" => share(value),
        "times" => times(value),
        "1/s" => format!("{}/s", rate(value)),
        "B/s" => format!("{}/s", bytes(value)),
        "B" | "bytes" => bytes(value),
        unit => format!("{} {unit}", rate(value)),
    }
}
