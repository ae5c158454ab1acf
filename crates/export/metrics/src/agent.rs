//! The agent's state as metric families: the verdict on each database and volume, and each volume's capability.
//!
//! ```text
//! state.rs   AgentState ──> values.rs   points of each kind of family ──> list.rs   FAMILIES ──> families() ──> text, pushed
//!                               └─ labels.rs   their labels, and the words that are values
//! ```
//!
//! A series is absent where its value is unknown.

mod description;
mod labels;
mod list;
mod state;
mod values;

pub use description::FamilyDescription;
pub use list::FAMILIES;
pub use state::{
    AgentState, DeviceFlushes, DeviceOps, DeviceState, Headroom, Latency, ProcessState, SourceState,
    SubjectState,
};

use crate::families::Family;
use crate::pushed::{Dropped, SentSeries, Stamp};
use crate::text::{Format, write_families};
use crate::{otlp, remote_write};

impl AgentState {
    /// All of it in a text format, for a server that scrapes.
    pub fn text(&self, format: Format) -> String {
        write_families(&self.families(), format, &self.labels)
    }

    /// All of it as a WriteRequest of Prometheus remote-write 1.0, before its compression: the series of `/metrics` with the
    /// labels `job` and `instance`. Series that were sent before and are absent now are marked as ended.
    pub fn remote_write(&self, stamp: &Stamp, sent: &mut SentSeries) -> Vec<u8> {
        remote_write::write(&self.families(), stamp, sent)
    }

    /// All of it as an ExportMetricsServiceRequest of OTLP.
    pub fn otlp(&self, stamp: &Stamp) -> Vec<u8> {
        otlp::write(&self.families(), &self.version, stamp)
    }

    /// Adds lost pushes to a server; 0 makes the series visible.
    pub fn push_dropped(&mut self, to: &str, reason: Dropped, count: u64) {
        let dropped = self.pushes_dropped.entry((to.into(), reason)).or_default();
        *dropped = dropped.saturating_add(count);
    }

    fn families(&self) -> Vec<Family> {
        let family = |described: &FamilyDescription| Family {
            name: described.name,
            kind: described.kind(),
            unit: described.unit,
            help: described.help,
            points: described.points(self),
        };
        FAMILIES.iter().map(family).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::families::FamilyKind;
    use crate::{ExtraLabels, OWN_LABELS};
    use capability::Binding;
    use filestats::{
        FileClass, FileKind, FileTotals, LatencyTotals, OpTotals, SourceTotals, WaitClass, WaitTotals,
    };
    use incidents::Subject;
    use std::sync::Arc;
    use verdict::{Confidence, VerdictKind};
    use workload::CapKind;

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
            caps: [(CapKind::WriteIops, 500)].into(),
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

    /// The state of the other tests, with a source that counts files and waits, and a partition.
    fn state_with_counters() -> AgentState {
        let mut latencies =
            LatencyTotals { since_unix_ns: 3_000_000_000, time_ns: 1_000_000, ..LatencyTotals::default() };
        latencies.buckets.record(1_000_000);
        let read =
            OpTotals { count: 3, bytes: 24_576, timed: 1, time_ns: 1_000_000, latencies: Some(latencies) };
        let untimed = OpTotals { count: 2, bytes: 8192, ..OpTotals::default() };
        let files = FileTotals { since_unix_ns: 2_000_000_000, read, write: untimed, sync: None };
        let class = FileClass { kind: FileKind::Data, below_cache: true };
        let wait = WaitTotals { since_unix_ns: 2_000_000_000, time_ns: 500_000_000 };
        let totals = SourceTotals {
            files: [("/data".to_owned(), [(class, files)].into())].into(),
            waits: WaitClass::ALL.into_iter().map(|class| (class, wait)).collect(),
        };
        let source =
            SourceState { since_unix_ns: 1_000_000_000, totals: Arc::new(totals), ..SourceState::default() };
        let device = DeviceState {
            device: "vda1".into(),
            kind: "partition".into(),
            parents: vec!["vda".into()],
            ..DeviceState::default()
        };
        let refused = ("remote-write http://store/write".to_owned(), Dropped::Refused);
        AgentState {
            sources: [("postgres:".to_owned(), source)].into(),
            devices: [("/data".to_owned(), device)].into(),
            pushes_dropped: [(refused, 0)].into(),
            ..state()
        }
    }

    #[test]
    fn files_are_counted_by_class_and_what_is_not_known_of_them_is_absent() {
        let text = state_with_counters().text(Format::OpenMetrics);
        let of = |op: &str| {
            format!("{{mount=\"/data\",source=\"postgres:\",kind=\"data\",layer=\"block\",op=\"{op}\"")
        };
        for line in [
            format!("headroom_file_operations_total{}}} 3", of("read")),
            format!("headroom_file_operations_created{}}} 2", of("read")),
            format!("headroom_file_bytes_total{}}} 8192", of("write")),
            format!("headroom_file_timed_operations_total{}}} 1", of("read")),
            format!("headroom_file_time_seconds_total{}}} 0.001", of("read")),
            format!("headroom_file_latency_seconds_bucket{},le=\"0.000524288\"}} 0", of("read")),
            format!("headroom_file_latency_seconds_bucket{},le=\"0.001048576\"}} 1", of("read")),
            format!("headroom_file_latency_seconds_bucket{},le=\"+Inf\"}} 1", of("read")),
            format!("headroom_file_latency_seconds_sum{}}} 0.001", of("read")),
            format!("headroom_file_latency_seconds_created{}}} 3", of("read")),
            "headroom_wait_time_seconds_total{source=\"postgres:\",class=\"log-sync\"} 0.5".to_owned(),
        ] {
            assert!(text.contains(&format!("{line}\n")), "{line} is not in {text}");
        }
        assert!(!text.contains(&format!("headroom_file_time_seconds_total{}", of("write"))), "{text}");
        assert!(!text.contains("op=\"sync\"") && !text.contains("headroom_source_up{"), "{text}");
    }

    #[test]
    fn a_counter_is_there_with_zero_before_it_counts_and_says_since_when() {
        let text = state_with_counters().text(Format::OpenMetrics);
        assert!(text.contains("headroom_source_failures_total{source=\"postgres:\"} 0\n"), "{text}");
        assert!(text.contains("headroom_source_failures_created{source=\"postgres:\"} 1\n"), "{text}");
        assert!(!text.contains("headroom_device_reads_created"), "the kernel's are older: {text}");
        assert!(!state_with_counters().text(Format::Prometheus).contains("_created"));
    }

    #[test]
    fn a_partition_names_its_disk_and_a_limit_its_operation() {
        let text = state_with_counters().text(Format::Prometheus);
        let info = "{mount=\"/data\",device=\"vda1\",type=\"partition\",parent=\"vda\"} 1";
        assert!(text.contains(&format!("headroom_device_info{info}\n")), "{text}");
        let cap = "{mount=\"/data\",source=\"postgres:\",op=\"write\"} 500";
        assert!(text.contains(&format!("headroom_cap_operations_per_second{cap}\n")), "{text}");
        assert!(
            !text.contains("headroom_device_flushes_total{"),
            "an old kernel does not count them: {text}"
        );
    }

    #[test]
    fn the_values_of_labels_that_headroom_chooses_are_words() {
        let named = ["mount", "source", "device", "parent", "version", "to", "le"];
        let is_word = |value: &str| value.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-');
        for family in state_with_counters().families() {
            for (label, value) in family.points.iter().flat_map(|point| &point.labels) {
                assert!(named.contains(label) || is_word(value), "{}: {label}={value:?}", family.name);
            }
        }
    }

    #[test]
    fn the_documentation_has_each_family_with_its_labels() {
        let documentation = include_str!("../../../../docs/reference/metrics.md");
        for family in FAMILIES {
            let FamilyDescription { name, labels, help, .. } = family;
            let total = if family.kind() == FamilyKind::Counter { "_total" } else { "" };
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
