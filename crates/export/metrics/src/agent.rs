//! What the agent knows now, as metric families: the verdict on each database and volume, and what each volume can give.
//!
//! ```text
//! state.rs   AgentState ──> values.rs   points of each kind of family ──> list.rs   FAMILIES ──> families() ──> text, pushed
//!                               └─ labels.rs   their labels, and the words that are values
//! ```
//!
//! A series is absent where its value is unknown.

mod labels;
mod list;
mod state;
mod values;

pub use list::{FAMILIES, FamilyDescription};
pub use state::{
    AgentState, DeviceOps, DeviceState, Headroom, Latency, ProcessState, SourceState, SubjectState,
};

use crate::families::{Family, FamilyKind, Point, Value};
use crate::pushed::{Dropped, Pushed, SentSeries, Stamp};
use crate::text::{Exposition, Format, write_families};
use crate::{otlp, remote_write};

impl Exposition for AgentState {
    fn text(&self, format: Format) -> String {
        write_families(&self.families(), format, &self.labels)
    }
}

impl AgentState {
    fn families(&self) -> Vec<Family> {
        let family = |described: &FamilyDescription| {
            // What is no number is unknown.
            let known = (described.points)(self).into_iter().filter(|(_, value)| value.is_finite());
            let points = known.map(|(values, value)| {
                debug_assert_eq!(values.len(), described.labels.len(), "{}", described.name);
                Point {
                    labels: described.labels.iter().copied().zip(values).collect(),
                    value: match described.kind {
                        FamilyKind::Counter => Value::Total(value),
                        FamilyKind::Gauge | FamilyKind::Summary => Value::Gauge(value),
                    },
                }
            });
            Family {
                name: described.name.into(),
                kind: described.kind,
                unit: described.unit,
                help: described.help.into(),
                points: points.collect(),
            }
        };
        FAMILIES.iter().map(family).collect()
    }
}

impl Pushed for AgentState {
    fn remote_write(&self, stamp: &Stamp, sent: &mut SentSeries) -> Vec<u8> {
        remote_write::write(&self.families(), stamp, sent)
    }

    fn otlp(&self, stamp: &Stamp) -> Vec<u8> {
        // Most counters are the kernel's, of devices: they are older than the agent.
        otlp::write(&self.families(), &Stamp { since_unix_ns: 0, ..stamp.clone() })
    }

    fn push_dropped(&mut self, to: &str, reason: Dropped, count: u64) {
        let dropped = self.pushes_dropped.entry((to.into(), reason)).or_default();
        *dropped = dropped.saturating_add(count);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{ExtraLabels, OWN_LABELS};
    use capability::Binding;
    use incidents::Subject;
    use verdict::{Confidence, VerdictKind};

    fn state() -> AgentState {
        let subject = Subject { mount: "/data".into(), database: "postgres:".into() };
        let judged = SubjectState {
            verdict: VerdictKind::Throttled,
            confidence: Confidence::Medium,
            judged_unix_ns: 1_500_000_000,
            since_unix_ns: 500_000_000,
            headroom: Some(Headroom { plan: 3.5, low: 3.0, high: 4.0 }),
            binding: Some(Binding::ReadOperations),
            utilisation: Some(0.25),
            outstanding: None,
            read: Latency { latency_ns: Some(2_000_000.0), expected_ns: Some(f64::NAN) },
            commit: Latency::default(),
            incident_open: true,
            contradicted: None,
        };
        AgentState { version: "0.1.0".into(), subjects: [(subject, judged)].into(), ..AgentState::default() }
    }

    #[test]
    fn the_verdict_is_a_state_set() {
        let text = state().text(Format::Prometheus);
        let of = |verdict: &str| format!("{{mount=\"/data\",source=\"postgres:\",verdict=\"{verdict}\"}}");
        assert!(text.contains(&format!("headroom_verdict{} 1\n", of("throttled"))), "{text}");
        assert!(text.contains(&format!("headroom_verdict{} 0\n", of("demand-exceeds-capability"))), "{text}");
        let set: Vec<&str> = text.lines().filter(|line| line.starts_with("headroom_verdict{")).collect();
        assert_eq!(set.len(), VerdictKind::ALL.len());
        assert_eq!(set.iter().filter(|line| line.ends_with(" 1")).count(), 1);
    }

    #[test]
    fn a_series_is_absent_where_its_value_is_unknown() {
        let text = state().text(Format::OpenMetrics);
        assert!(text.contains("headroom_utilisation_ratio{mount=\"/data\",source=\"postgres:\"} 0.25\n"));
        assert!(
            text.contains(
                "headroom_latency_seconds{mount=\"/data\",source=\"postgres:\",op=\"read\"} 0.002\n"
            )
        );
        assert!(!text.contains("headroom_demand_outstanding{") && !text.contains("op=\"commit\""), "{text}");
        assert!(!text.contains("headroom_expected_latency_seconds{"), "{text}");
    }

    #[test]
    fn the_documentation_has_each_family_with_its_labels() {
        let documentation = include_str!("../../../../docs/reference/metrics.md");
        for FamilyDescription { name, labels, help, kind, .. } in FAMILIES {
            let total = if *kind == FamilyKind::Counter { "_total" } else { "" };
            let line = format!("| `{name}{total}` | {} | {help} |", labels.join(", "));
            assert!(documentation.contains(&line), "docs/reference/metrics.md lacks:\n{line}");
        }
    }

    #[test]
    fn each_family_is_listed_once() {
        let mut names: Vec<&str> = FAMILIES.iter().map(|family| family.name).collect();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), FAMILIES.len());
    }

    #[test]
    fn no_further_label_can_have_the_name_of_a_familys_own() {
        for family in FAMILIES {
            assert!(family.labels.iter().all(|label| OWN_LABELS.contains(label)), "{}", family.name);
        }
    }

    #[test]
    fn a_further_label_is_in_each_series() {
        let labels = ExtraLabels::new([("cluster".to_owned(), "east".to_owned())]).unwrap();
        let text = AgentState { labels, ..state() }.text(Format::Prometheus);
        let samples: Vec<&str> = text.lines().filter(|line| !line.starts_with('#')).collect();
        assert!(samples.iter().all(|line| line.contains("cluster=\"east\"} ")), "{text}");
    }
}
