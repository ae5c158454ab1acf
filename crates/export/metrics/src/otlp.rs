//! OTLP: an ExportMetricsServiceRequest of opentelemetry-proto 1.x.
//!
//! ```text
//! ExportMetricsServiceRequest { ResourceMetrics resource_metrics = 1 }
//! ResourceMetrics  { Resource resource = 1; ScopeMetrics scope_metrics = 2 }
//! Resource         { repeated KeyValue attributes = 1 }        KeyValue { string key = 1; AnyValue value = 2 }
//! ScopeMetrics     { InstrumentationScope scope = 1; repeated Metric metrics = 2 }
//! Metric           { name = 1; description = 2; unit = 3; Gauge gauge = 5 | Sum sum = 7 | Summary summary = 11 }
//! Gauge, Sum, Summary { repeated ...DataPoint data_points = 1 }
//! Sum              { aggregation_temporality = 2 (2: cumulative); bool is_monotonic = 3 }
//! NumberDataPoint  { start = 2; time = 3; double as_double = 4 | sfixed64 as_int = 6; repeated KeyValue attributes = 7 }
//! SummaryDataPoint { start = 2; time = 3; fixed64 count = 4; double sum = 5; repeated KeyValue attributes = 7 }
//! ```
//!
//! Names are the same as in `/metrics`, `_total` and unit included: a server that appends them by unit and kind
//! (Prometheus does) does not append them twice. Counts are integers, so they are exact.

use crate::families::{Family, FamilyKind, Point, Unit, Value, seconds};
use crate::protobuf::Message;
use crate::pushed::Stamp;

const CUMULATIVE: u64 = 2;

/// The families as an ExportMetricsServiceRequest.
pub(crate) fn write(families: &[Family], stamp: &Stamp) -> Vec<u8> {
    let mut request = Message::default();
    request.message(1, |of_resource| {
        of_resource.message(1, |resource| {
            attribute(resource, 1, "service.name", "headroom");
            attribute(resource, 1, "service.instance.id", &stamp.identity.instance);
        });
        of_resource.message(2, |of_scope| {
            of_scope.message(1, |scope| scope.text(1, "headroom"));
            for family in families.iter().filter(|family| !family.points.is_empty()) {
                of_scope.message(2, |metric| write_family(metric, family, stamp));
            }
        });
    });
    request.into_bytes()
}

fn write_family(metric: &mut Message, family: &Family, stamp: &Stamp) {
    let (field, suffix) = match family.kind {
        FamilyKind::Gauge => (5, ""),
        FamilyKind::Counter => (7, "_total"),
        FamilyKind::Summary => (11, ""),
    };
    metric.text(1, &format!("{}{suffix}", family.name));
    metric.text(2, &family.help);
    // UCUM units.
    metric.text(
        3,
        match family.unit {
            Unit::None => "",
            Unit::Bytes => "By",
            Unit::Seconds => "s",
            Unit::Ratio => "1",
        },
    );
    metric.message(field, |data| {
        for point in &family.points {
            data.message(1, |written| write_point(written, family.kind, point, stamp));
        }
        if family.kind == FamilyKind::Counter {
            data.number(2, CUMULATIVE);
            data.number(3, 1);
        }
    });
}

fn write_point(written: &mut Message, kind: FamilyKind, point: &Point, stamp: &Stamp) {
    if kind != FamilyKind::Gauge && stamp.since_unix_ns > 0 {
        written.fixed(2, stamp.since_unix_ns);
    }
    written.fixed(3, stamp.at_unix_ns);
    match point.value {
        Value::Count(count) if i64::try_from(count).is_ok() => written.fixed(6, count),
        Value::Count(count) => written.double(4, count as f64),
        Value::Time { ns } => written.double(4, seconds(ns)),
        Value::Total(value) | Value::Gauge(value) => written.double(4, value),
        Value::Summary { ns, count } => {
            written.fixed(4, count);
            written.double(5, seconds(ns));
        }
    }
    let own = point.labels.iter().map(|(name, value)| (*name, value.as_str()));
    for (name, value) in own.chain(stamp.identity.labels.iter()).filter(|(_, value)| !value.is_empty()) {
        attribute(written, 7, name, value);
    }
}

fn attribute(message: &mut Message, field: u32, key: &str, value: &str) {
    message.message(field, |pair| {
        pair.text(1, key);
        pair.message(2, |any| any.text(1, value));
    });
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::totals::{Class, Health, Summed, Sums};
    use crate::{Identity, Pushed, Totals};
    use filestats::FileKind;

    /// The bytes that OpenTelemetry's Python classes (opentelemetry-proto 1.45) write for the same figures.
    const THEIRS: &[u8] = include_bytes!("../testdata/otlp.bin");

    #[test]
    fn the_request_is_the_one_that_opentelemetry_would_write() {
        let mut totals = Totals::default();
        let class = Class {
            source: "engine".into(),
            name: "shop".into(),
            kind: FileKind::Data,
            drive: String::new(),
            below: false,
        };
        // A double cannot hold this number.
        let read = Summed { count: (1 << 53) + 1, bytes: 81_920, timed: 10, time_ns: 20_000_000 };
        totals.classes.insert(class, Sums { read, ..Sums::default() });
        totals.sources.insert("engine".into(), Health { up: true, failures: 0 });
        let stamp = Stamp {
            since_unix_ns: 1_763_740_000_000_000_000,
            at_unix_ns: 1_763_740_015_000_000_000,
            identity: Identity { instance: "db-1".into(), ..Identity::default() },
        };
        assert_eq!(totals.otlp(&stamp), THEIRS);
    }
}
