//! OTLP: an ExportMetricsServiceRequest of opentelemetry-proto 1.x.
//!
//! ```text
//! ExportMetricsServiceRequest { ResourceMetrics resource_metrics = 1 }
//! ResourceMetrics    { Resource resource = 1; ScopeMetrics scope_metrics = 2 }
//! Resource           { repeated KeyValue attributes = 1 }        KeyValue { string key = 1; AnyValue value = 2 }
//! ScopeMetrics       { InstrumentationScope scope = 1; repeated Metric metrics = 2 }
//! Metric             { name = 1; description = 2; unit = 3; Gauge gauge = 5 | Sum sum = 7 | Histogram histogram = 9 }
//! Gauge, Sum, Histogram { repeated ...DataPoint data_points = 1 }
//! Sum, Histogram     { aggregation_temporality = 2 (2: cumulative) }     Sum { bool is_monotonic = 3 }
//! NumberDataPoint    { start = 2; time = 3; double as_double = 4; repeated KeyValue attributes = 7 }
//! HistogramDataPoint { start = 2; time = 3; fixed64 count = 4; double sum = 5; repeated fixed64 bucket_counts = 6;
//!                      repeated double explicit_bounds = 7; repeated KeyValue attributes = 9 }
//! ```
//!
//! Names are those of `/metrics` without `_total`, as OpenTelemetry has it: a server that keeps the names of Prometheus appends it by
//! the kind, and finds that the unit is there already.

use crate::families::{Family, FamilyKind, Point, Unit, Value, bounds_s};
use crate::protobuf::Message;
use crate::pushed::Stamp;

const CUMULATIVE: u64 = 2;

/// The families as an ExportMetricsServiceRequest of that version of Headroom.
pub(crate) fn write(families: &[Family], version: &str, stamp: &Stamp) -> Vec<u8> {
    let mut request = Message::default();
    request.message(1, |of_resource| {
        of_resource.message(1, |resource| {
            attribute(resource, 1, "service.name", "headroom");
            attribute(resource, 1, "service.version", version);
            attribute(resource, 1, "service.instance.id", &stamp.identity.instance);
            attribute(resource, 1, "host.name", &stamp.identity.host);
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
    let field = match family.kind {
        FamilyKind::Gauge => 5,
        FamilyKind::Counter => 7,
        FamilyKind::Histogram => 9,
    };
    metric.text(1, family.name);
    metric.text(2, family.help);
    metric.text(3, ucum(family.unit));
    metric.message(field, |data| {
        for point in &family.points {
            data.message(1, |written| write_point(written, family.kind, point, stamp));
        }
        if family.kind != FamilyKind::Gauge {
            data.number(2, CUMULATIVE);
        }
        if family.kind == FamilyKind::Counter {
            data.number(3, 1);
        }
    });
}

/// The unit in UCUM. Counted things stand in braces.
fn ucum(unit: Unit) -> &'static str {
    match unit {
        Unit::None => "",
        Unit::Bytes => "By",
        Unit::Seconds => "s",
        Unit::Ratio => "1",
        Unit::Operations => "{operation}",
        // Prometheus would append a unit with a slash to a name that has it already: it compares single words of the name.
        Unit::OperationsPerSecond | Unit::BytesPerSecond | Unit::SecondsPerByte => "",
    }
}

fn write_point(written: &mut Message, kind: FamilyKind, point: &Point, stamp: &Stamp) {
    if let Some(since) = point.since_unix_ns.filter(|_| kind != FamilyKind::Gauge) {
        written.fixed(2, since);
    }
    written.fixed(3, stamp.at_unix_ns);
    let attributes = match &point.value {
        Value::Number(value) => {
            written.double(4, *value);
            7
        }
        Value::Histogram(histogram) => {
            written.fixed(4, histogram.count());
            written.double(5, histogram.sum);
            written.packed(6, histogram.counts.into_iter());
            written.packed(7, bounds_s().map(f64::to_bits));
            9
        }
    };
    let own = point.labels.iter().map(|(name, value)| (*name, value.as_str()));
    for (name, value) in own.chain(stamp.identity.labels.iter()).filter(|(_, value)| !value.is_empty()) {
        attribute(written, attributes, name, value);
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
    use crate::Identity;
    use crate::families::{BUCKETS, Histogram};

    /// The bytes that OpenTelemetry's Python classes (opentelemetry-proto) write for the same figures.
    const THEIRS: &[u8] = include_bytes!("../testdata/otlp.bin");
    const SINCE: u64 = 1_763_740_000_000_000_000;

    fn family(name: &'static str, kind: FamilyKind, unit: Unit, value: Value) -> Family {
        let labels = vec![("source", "engine".to_owned()), ("parent", String::new())];
        let point = Point { labels, value, since_unix_ns: Some(SINCE) };
        Family { name, kind, unit, help: "what it says", points: vec![point] }
    }

    #[test]
    fn the_request_is_the_one_that_opentelemetry_would_write() {
        let mut counts = [0; BUCKETS];
        counts[5] = 2;
        let histogram = Value::Histogram(Histogram { counts, sum: 0.002 });
        let families = [
            family("headroom_file_operations", FamilyKind::Counter, Unit::Operations, Value::Number(42.0)),
            family("headroom_utilisation_ratio", FamilyKind::Gauge, Unit::Ratio, Value::Number(0.25)),
            family("headroom_file_latency_seconds", FamilyKind::Histogram, Unit::Seconds, histogram),
        ];
        let identity =
            Identity { instance: "db-1".into(), host: "db-1.example".into(), ..Identity::default() };
        let stamp = Stamp { at_unix_ns: SINCE + 15_000_000_000, identity };
        assert_eq!(write(&families, "0.1.0", &stamp), THEIRS);
    }
}
