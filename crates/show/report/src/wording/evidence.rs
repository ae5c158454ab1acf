//! Evidence of a verdict with its units.

use charts::number::{NONE, bytes, rate, share, time, times};
use verdict::Evidence;
use workload::Unit;

/// The number that was observed, with its unit.
pub(crate) fn observed(evidence: &Evidence) -> String {
    with_unit(evidence.value, &evidence.unit)
}

/// The number that was expected; empty where nothing was.
pub(crate) fn expected(evidence: &Evidence) -> String {
    evidence.expected.as_ref().map_or_else(String::new, |expected| with_unit(expected.value, &evidence.unit))
}

/// "3.10 x"; empty where nothing was expected.
pub(crate) fn ratio(evidence: &Evidence) -> String {
    evidence.ratio().map_or_else(String::new, times)
}

/// Where both numbers come from.
pub(crate) fn sources(evidence: &Evidence) -> String {
    match &evidence.expected {
        Some(expected) => format!("{}; expected: {}", evidence.source, expected.source),
        None => evidence.source.clone(),
    }
}

fn with_unit(value: f64, unit: &Unit) -> String {
    if !value.is_finite() {
        return NONE.into();
    }
    match unit {
        Unit::Ns => time(value),
        Unit::Share => share(value),
        Unit::Times => times(value),
        Unit::PerSecond => format!("{}/s", rate(value)),
        Unit::BytesPerSecond => format!("{}/s", bytes(value)),
        Unit::None => rate(value),
        unit => format!("{} {unit}", rate(value)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_unit_is_serialised_as_its_word() {
        let shown = |unit: &str, value: f64| {
            let unit: Unit = serde_json::from_value(unit.into()).unwrap();
            let word = serde_json::to_value(&unit).unwrap();
            (word.as_str().unwrap().to_owned(), with_unit(value, &unit))
        };
        let all = [("ns", "8.00 us"), ("1/s", "8,000/s"), ("B/s", "7.8 KiB/s"), ("MiB/s", "8,000 MiB/s")];
        let more =
            [("I/Os", "8,000 I/Os"), ("share", "800,000 %"), ("times", "8,000 x"), ("cores", "8,000 cores")];
        for (unit, text) in all.into_iter().chain(more) {
            assert_eq!(shown(unit, 8000.0), (unit.to_owned(), text.to_owned()));
        }
    }
}
