//! The text that Prometheus reads: OpenMetrics 1.0 (<https://prometheus.io/docs/specs/om/open_metrics_spec/>) and the
//! older format 0.0.4.

use crate::families::{Family, FamilyKind, Unit};
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

/// What a server that scrapes can be given.
pub trait Exposition {
    /// All of it in a text format.
    fn text(&self, format: Format) -> String;
}

/// Families in a text format, with further labels for all of them.
pub(crate) fn write_families(families: &[Family], format: Format, further: &ExtraLabels) -> String {
    let mut text = String::new();
    for family in families {
        describe(&mut text, family, format);
        for (name, point, value) in family.series() {
            // Writing into a String cannot fail.
            let own = point.labels.iter().map(|(name, value)| (*name, value.as_str()));
            let _ = writeln!(text, "{name}{} {value}", written_labels(own.chain(further.iter())));
        }
    }
    if format == Format::OpenMetrics {
        text.push_str("# EOF\n");
    }
    text
}

fn describe(text: &mut String, family: &Family, format: Format) {
    let kind = match family.kind {
        FamilyKind::Counter => "counter",
        FamilyKind::Summary => "summary",
        FamilyKind::Gauge => "gauge",
    };
    // The older format names a counter family like its sample, with `_total`.
    let old_counter = format == Format::Prometheus && family.kind == FamilyKind::Counter;
    let called = format!("{}{}", family.name, if old_counter { "_total" } else { "" });
    let _ = writeln!(text, "# HELP {called} {}\n# TYPE {called} {kind}", family.help);
    let unit = match family.unit {
        Unit::None => return,
        Unit::Bytes => "bytes",
        Unit::Seconds => "seconds",
        Unit::Ratio => "ratio",
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
    use crate::Totals;

    #[test]
    fn a_label_cannot_end_its_line() {
        let labels = [("path", "a\"b\\c\nd")];
        assert_eq!(written_labels(labels.into_iter()), "{path=\"a\\\"b\\\\c\\nd\"}");
    }

    #[test]
    fn each_family_is_described_once_and_the_text_ends() {
        let text = Totals::default().text(Format::OpenMetrics);
        let mut types: Vec<&str> = text.lines().filter(|line| line.starts_with("# TYPE")).collect();
        let all = types.len();
        types.sort_unstable();
        types.dedup();
        assert_eq!(types.len(), all);
        assert!(text.ends_with("# EOF\n") && text.contains("# UNIT headroom_file_read_bytes bytes"));
        assert!(
            Totals::default().text(Format::Prometheus).contains("# TYPE headroom_file_reads_total counter")
        );
    }
}
