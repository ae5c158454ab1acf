//! Words of a comparison.

use charts::number;
use compare::{FigureUnit, Verdict};

/// A figure with the unit that its row has.
pub(crate) fn value(unit: FigureUnit, value: f64) -> String {
    match unit {
        FigureUnit::Ns => number::time(value),
        FigureUnit::PerSecond | FigureUnit::MibPerSecond | FigureUnit::Outstanding => number::rate(value),
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
