//! Words of a comparison.

use charts::number;
use compare::{Unit, Verdict};

/// A figure with the unit that its row has.
pub(crate) fn value(unit: Unit, value: f64) -> String {
    match unit {
        Unit::Ns => number::time(value),
        Unit::PerSecond | Unit::MibPerSecond | Unit::Outstanding => number::rate(value),
    }
}

/// A verdict on one figure.
pub(crate) fn verdict(verdict: Verdict) -> &'static str {
    match verdict {
        Verdict::Faster => "faster",
        Verdict::Slower => "slower",
        Verdict::NoDifference => "no difference",
        Verdict::Mixed => "faster and slower",
        Verdict::CannotTell => "cannot tell",
    }
}
