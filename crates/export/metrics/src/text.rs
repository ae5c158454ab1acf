//! The text that Prometheus reads: OpenMetrics 1.0 (<https://prometheus.io/docs/specs/om/open_metrics_spec/>) and the
//! older format 0.0.4.

use crate::families::{Family, FamilyKind, Point, Unit};
use crate::identity::ExtraLabels;
use std::fmt::Write;

/// A text format.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// `application/openmetrics-text; version=1.0.0`
    OpenMetrics,
    /// `text/plain; version=0.0.4`
    Prometheus,
}

impl Format {
    /// The format that a request's Accept header prefers.
    pub fn accepted(accept: &str) -> Format {
        if accept.contains("application/openmetrics-text") { Format::OpenMetrics } else { Format::Prometheus }
    }

    /// The Content-Type of the response.
    pub fn content_type(self) -> &'static str {
        match self {
            Format::OpenMetrics => "application/openmetrics-text; version=1.0.0; charset=utf-8",
            Format::Prometheus => "text/plain; version=0.0.4; charset=utf-8",
        }
    }
}

/// Families in a text format, with further labels for all of them.
pub(crate) fn write_families(families: &[Family], format: Format, further: &ExtraLabels) -> String {
    let mut text = String::new();
    for family in families {
        describe(&mut text, family, format);
        for point in &family.points {
            write_point(&mut text, family, point, format, further);
        }
    }
    if format == Format::OpenMetrics {
        text.push_str("# EOF\n");
    }
    text
}

/// Writing into a String cannot fail.
fn write_point(text: &mut String, family: &Family, point: &Point, format: Format, further: &ExtraLabels) {
    let labels = |bound: Option<&str>| {
        let own = point.labels.iter().map(|(name, value)| (*name, value.as_str()));
        written_labels(own.chain(further.iter()).chain(bound.map(|bound| ("le", bound))))
    };
    for series in family.series_of(point) {
        let _ = writeln!(text, "{}{} {}", series.name, labels(series.bound.as_deref()), series.value);
    }
    if let (Format::OpenMetrics, Some(since)) = (format, point.since_unix_ns) {
        let _ = writeln!(text, "{}_created{} {}", family.name, labels(None), since as f64 / 1e9);
    }
}

fn describe(text: &mut String, family: &Family, format: Format) {
    let kind = match family.kind {
        FamilyKind::Counter => "counter",
        FamilyKind::Gauge => "gauge",
        FamilyKind::Histogram => "histogram",
    };
    // The older format names a counter family like its sample, with `_total`.
    let old_counter = format == Format::Prometheus && family.kind == FamilyKind::Counter;
    let called = format!("{}{}", family.name, if old_counter { "_total" } else { "" });
    let _ = writeln!(text, "# HELP {called} {}\n# TYPE {called} {kind}", family.help);
    // A unit must be the end of the name.
    let unit = match family.unit {
        Unit::Bytes => "bytes",
        Unit::Seconds => "seconds",
        Unit::Ratio => "ratio",
        _ => return,
    };
    if format == Format::OpenMetrics {
        let _ = writeln!(text, "# UNIT {called} {unit}");
    }
}

/// `{name="value",…}`; backslash, quote and line feed are escaped.
fn written_labels<'a>(labels: impl Iterator<Item = (&'a str, &'a str)>) -> String {
    let escaped = |value: &str| value.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n");
    let written: Vec<String> = labels.map(|(name, value)| format!("{name}=\"{}\"", escaped(value))).collect();
    format!("{{{}}}", written.join(","))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::AgentState;

    #[test]
    fn a_label_cannot_end_its_line() {
        let labels = [("path", "a\"b\\c\nd")];
        assert_eq!(written_labels(labels.into_iter()), "{path=\"a\\\"b\\\\c\\nd\"}");
    }

    #[test]
    fn each_family_is_described_once_and_the_text_ends() {
        let text = AgentState::default().text(Format::OpenMetrics);
        let mut types: Vec<&str> = text.lines().filter(|line| line.starts_with("# TYPE")).collect();
        let all = types.len();
        types.sort_unstable();
        types.dedup();
        assert_eq!(types.len(), all);
        assert!(text.ends_with("# EOF\n") && text.contains("# UNIT headroom_device_read_bytes bytes"));
        let old = AgentState::default().text(Format::Prometheus);
        assert!(old.contains("# TYPE headroom_device_reads_total counter") && !old.contains("# EOF"));
    }
}
