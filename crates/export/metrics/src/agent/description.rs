//! Descriptions of families, and the points that each makes of a state.

use super::state::AgentState;
use super::values::{Counters, Gauges, Histograms};
use crate::families::{FamilyKind, Point, Unit, Value};

/// One family: everything but its values.
pub struct FamilyDescription {
    /// Its name.
    pub name: &'static str,
    /// Its labels, in order.
    pub labels: &'static [&'static str],
    /// Its help text.
    pub help: &'static str,
    pub(super) unit: Unit,
    values: Values,
}

/// Of which kind it is, and where its values are.
enum Values {
    Gauge(fn(&AgentState) -> Gauges),
    Counter(fn(&AgentState) -> Counters),
    Histogram(fn(&AgentState) -> Histograms),
}

impl FamilyDescription {
    pub(super) fn kind(&self) -> FamilyKind {
        match self.values {
            Values::Gauge(_) => FamilyKind::Gauge,
            Values::Counter(_) => FamilyKind::Counter,
            Values::Histogram(_) => FamilyKind::Histogram,
        }
    }

    /// The known points; a value that is no number is unknown.
    pub(super) fn points(&self, state: &AgentState) -> Vec<Point> {
        let point = |values: Vec<String>, value: Value, since_unix_ns: Option<u64>| {
            debug_assert_eq!(values.len(), self.labels.len(), "{}", self.name);
            Point { labels: self.labels.iter().copied().zip(values).collect(), value, since_unix_ns }
        };
        let number = |(labels, value, since): (Vec<String>, f64, Option<u64>)| {
            value.is_finite().then(|| point(labels, Value::Number(value), since))
        };
        match self.values {
            Values::Gauge(read) => {
                let gauges = read(state).into_iter().map(|(labels, value)| (labels, value, None));
                gauges.filter_map(number).collect()
            }
            Values::Counter(read) => read(state).into_iter().filter_map(number).collect(),
            Values::Histogram(read) => {
                let all = read(state).into_iter();
                all.map(|(labels, value, since)| point(labels, Value::Histogram(value), since)).collect()
            }
        }
    }
}

pub(super) const fn gauge(
    name: &'static str,
    labels: &'static [&'static str],
    help: &'static str,
    unit: Unit,
    values: fn(&AgentState) -> Gauges,
) -> FamilyDescription {
    FamilyDescription { name, labels, help, unit, values: Values::Gauge(values) }
}

pub(super) const fn counter(
    name: &'static str,
    labels: &'static [&'static str],
    help: &'static str,
    unit: Unit,
    values: fn(&AgentState) -> Counters,
) -> FamilyDescription {
    FamilyDescription { name, labels, help, unit, values: Values::Counter(values) }
}

pub(super) const fn histogram(
    name: &'static str,
    labels: &'static [&'static str],
    help: &'static str,
    unit: Unit,
    values: fn(&AgentState) -> Histograms,
) -> FamilyDescription {
    FamilyDescription { name, labels, help, unit, values: Values::Histogram(values) }
}
