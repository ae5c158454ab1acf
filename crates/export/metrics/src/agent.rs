//! What the agent knows now, as metric families: the verdict on each database and volume, and what each volume can give.
//!
//! [`FAMILIES`] is the one list of names, units and labels; `/metrics` and the table of docs/reference/metrics.md are made from it. A series
//! is absent where its value is unknown.

use crate::families::{Family, FamilyKind, Point, Unit, Value};
use crate::text::{Exposition, Format, write_families};
use capability::{Binding, Capability, Curve, Demand};
use incidents::Subject;
use std::collections::BTreeMap;
use std::sync::Arc;
use verdict::{Confidence, VerdictKind};
use workload::{Durability, Pattern, Shape};

/// What the agent knows now.
#[derive(Clone, Debug, Default)]
pub struct AgentState {
    /// Version of Headroom.
    pub version: String,
    /// What was judged last of each database and volume.
    pub subjects: BTreeMap<Subject, SubjectState>,
    /// What each volume can give, by its mount point.
    pub capabilities: BTreeMap<String, Arc<Capability>>,
    /// Each source that is watched.
    pub sources: BTreeMap<String, SourceState>,
    /// The block device below each volume, by its mount point.
    pub devices: BTreeMap<String, DeviceState>,
}

/// What the kernel counted of a block device since it appeared: the I/O of all processes.
#[derive(Clone, Debug, Default)]
pub struct DeviceState {
    /// Its name below /dev.
    pub device: String,
    /// Reads, their bytes, and their time in nanoseconds.
    pub reads: DeviceOps,
    /// Writes likewise.
    pub writes: DeviceOps,
    /// Time with at least one I/O in flight, nanoseconds.
    pub busy_ns: u64,
}

/// Completed I/Os in one direction.
#[derive(Clone, Copy, Debug, Default)]
pub struct DeviceOps {
    /// How many.
    pub count: u64,
    /// Their bytes.
    pub bytes: u64,
    /// Their time from request to completion, nanoseconds.
    pub time_ns: u64,
}

/// What was judged of a database on a volume.
#[derive(Clone, Debug)]
pub struct SubjectState {
    /// The verdict.
    pub verdict: VerdictKind,
    /// How far to trust it.
    pub confidence: Confidence,
    /// When, nanoseconds since 1970.
    pub judged_unix_ns: u64,
    /// Since when it is the same, nanoseconds since 1970.
    pub since_unix_ns: u64,
    /// How many times today's demand can be carried.
    pub headroom: Option<Headroom>,
    /// The resource that runs out first.
    pub binding: Option<Binding>,
    /// Share of the storage in use.
    pub utilisation: Option<f64>,
    /// Mean I/Os that the database waits for.
    pub outstanding: Option<f64>,
    /// Mean latency of reads from the storage.
    pub read: Latency,
    /// Mean latency of a commit's write and sync.
    pub commit: Latency,
    /// Whether an incident is open.
    pub incident_open: bool,
    /// What the storage was seen to give over what it gave when it was measured, where that contradicts the measurement for a day.
    pub contradicted: Option<f64>,
}

/// How many times today's demand can be carried, as `headroom check` says it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Headroom {
    /// The figure to plan with.
    pub plan: f64,
    /// The low end of its range.
    pub low: f64,
    /// The high end of its range.
    pub high: f64,
}

/// A latency, and what the curves expect.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Latency {
    /// Nanoseconds.
    pub latency_ns: Option<f64>,
    /// Nanoseconds.
    pub expected_ns: Option<f64>,
}

/// How a source is read.
#[derive(Clone, Debug, Default)]
pub struct SourceState {
    /// The last sample gave counters.
    pub up: bool,
    /// Samples that gave nothing.
    pub failures: u64,
    /// When counters were last read, nanoseconds since 1970.
    pub last_success_unix_ns: Option<u64>,
    /// How long the last sample took, seconds.
    pub collection_s: Option<f64>,
}

/// The labels' values and the value of each series.
type Points = Vec<(Vec<String>, f64)>;

/// One family: everything but its values.
pub struct FamilyDescription {
    /// Its name.
    pub name: &'static str,
    /// Its labels, in order.
    pub labels: &'static [&'static str],
    /// What it says.
    pub help: &'static str,
    kind: FamilyKind,
    unit: Unit,
    points: fn(&AgentState) -> Points,
}

const SUBJECT: &[&str] = &["mount", "source"];
const BY_RESOURCE: &[&str] = &["mount", "source", "resource"];
const BY_OPERATION: &[&str] = &["mount", "source", "op"];
const BY_CURVE: &[&str] = &["mount", "curve"];
const BY_CURVE_AND_ORIGIN: &[&str] = &["mount", "curve", "from"];
const BY_POINT: &[&str] = &["mount", "curve", "outstanding"];
const BY_FLOW: &[&str] = &["mount", "op", "pattern"];
const BY_PART: &[&str] = &["mount", "part"];
const DEVICE: &[&str] = &["mount", "device"];
const SOURCE: &[&str] = &["source"];

/// All families, in the order in which they are written.
pub const FAMILIES: &[FamilyDescription] = &[
    gauge("headroom_build_info", &["version"], "1; which Headroom this is", Unit::None, |state| {
        vec![(vec![state.version.clone()], 1.0)]
    }),
    gauge(
        "headroom_verdict",
        &["mount", "source", "verdict"],
        "1 for the verdict on the database and the volume, 0 for all others",
        Unit::None,
        AgentState::verdicts,
    ),
    gauge(
        "headroom_verdict_confidence",
        SUBJECT,
        "how far to trust the verdict: 1 low, 2 medium, 3 high",
        Unit::None,
        |state| {
            state.of_subjects(|one| {
                Some(match one.confidence {
                    Confidence::Low => 1.0,
                    Confidence::Medium => 2.0,
                    Confidence::High => 3.0,
                })
            })
        },
    ),
    gauge(
        "headroom_verdict_timestamp_seconds",
        SUBJECT,
        "when the verdict was reached",
        Unit::Seconds,
        |state| state.of_subjects(|one| Some(seconds(one.judged_unix_ns as f64))),
    ),
    gauge(
        "headroom_verdict_since_timestamp_seconds",
        SUBJECT,
        "since when the verdict is the same",
        Unit::Seconds,
        |state| state.of_subjects(|one| Some(seconds(one.since_unix_ns as f64))),
    ),
    gauge(
        "headroom_headroom_ratio",
        SUBJECT,
        "how many times today's demand can be carried, the figure to plan with",
        Unit::Ratio,
        |state| state.of_subjects(|one| Some(one.headroom?.plan)),
    ),
    gauge("headroom_headroom_low_ratio", SUBJECT, "the low end of its range", Unit::Ratio, |state| {
        state.of_subjects(|one| Some(one.headroom?.low))
    }),
    gauge("headroom_headroom_high_ratio", SUBJECT, "the high end of its range", Unit::Ratio, |state| {
        state.of_subjects(|one| Some(one.headroom?.high))
    }),
    gauge(
        "headroom_binding",
        BY_RESOURCE,
        "1 for the resource that runs out first; no series for the others",
        Unit::None,
        AgentState::bindings,
    ),
    gauge(
        "headroom_utilisation_ratio",
        SUBJECT,
        "share of the storage that is in use, of what runs out first; 1 is the knee and beyond",
        Unit::Ratio,
        |state| state.of_subjects(|one| one.utilisation),
    ),
    gauge(
        "headroom_demand_outstanding",
        SUBJECT,
        "mean I/Os that the database waits for",
        Unit::None,
        |state| state.of_subjects(|one| one.outstanding),
    ),
    gauge(
        "headroom_latency_seconds",
        BY_OPERATION,
        "mean latency of reads from the storage and of commits",
        Unit::Seconds,
        |state| state.of_operations(|latency| latency.latency_ns),
    ),
    gauge(
        "headroom_expected_latency_seconds",
        BY_OPERATION,
        "latency that the curves expect at that concurrency and size",
        Unit::Seconds,
        |state| state.of_operations(|latency| latency.expected_ns),
    ),
    gauge("headroom_incident_open", SUBJECT, "1 while an incident is open", Unit::None, |state| {
        state.of_subjects(|one| Some(f64::from(u8::from(one.incident_open))))
    }),
    gauge(
        "headroom_capability_measured_timestamp_seconds",
        BY_CURVE_AND_ORIGIN,
        "when the curve became known: measured, gentle, borrowed or declared",
        Unit::Seconds,
        AgentState::ages_of_curves,
    ),
    gauge(
        "headroom_capability_contradicted_ratio",
        SUBJECT,
        "what the storage was seen to give over what is known of it, where that differs by 15 % for a day; else no series",
        Unit::Ratio,
        |state| state.of_subjects(|one| one.contradicted),
    ),
    gauge(
        "headroom_capability_knee_outstanding",
        BY_CURVE,
        "outstanding I/Os at which latency begins to pay for throughput",
        Unit::None,
        |state| state.of_curves(|_, curve| Some(curve.knee.as_ref()?.outstanding)),
    ),
    gauge(
        "headroom_capability_operations_per_second",
        BY_CURVE,
        "highest rate of I/Os of the curve",
        Unit::None,
        |state| state.of_curves(|_, curve| curve.iops_max()),
    ),
    gauge(
        "headroom_capability_cost_seconds",
        BY_FLOW,
        "time of the storage that each I/O takes, beside its bytes",
        Unit::Seconds,
        |state| state.of_flows(|demand| demand.fixed_ns),
    ),
    gauge(
        "headroom_capability_cost_seconds_per_byte",
        BY_FLOW,
        "time of the storage that each byte of an I/O takes",
        Unit::None,
        |state| state.of_flows(|demand| demand.per_byte_ns),
    ),
    gauge(
        "headroom_capability_sharing_ratio",
        BY_PART,
        "share of that cost that reads and writes take from each other, of each I/O (operations) and of its bytes (bytes)",
        Unit::Ratio,
        AgentState::sharings,
    ),
    gauge(
        "headroom_curve_operations_per_second",
        BY_POINT,
        "I/Os a second of the curve with so many outstanding",
        Unit::None,
        |state| state.of_points(|point| point.iops),
    ),
    gauge(
        "headroom_curve_latency_seconds",
        BY_POINT,
        "mean latency of the curve with so many outstanding",
        Unit::Seconds,
        |state| state.of_points(|point| seconds(point.latency_ns)),
    ),
    counter("headroom_device_reads", DEVICE, "reads of the volume's block device", Unit::None, |state| {
        state.of_devices(|one| one.reads.count as f64)
    }),
    counter("headroom_device_writes", DEVICE, "writes of it", Unit::None, |state| {
        state.of_devices(|one| one.writes.count as f64)
    }),
    counter("headroom_device_read_bytes", DEVICE, "bytes of its reads", Unit::Bytes, |state| {
        state.of_devices(|one| one.reads.bytes as f64)
    }),
    counter("headroom_device_written_bytes", DEVICE, "bytes of its writes", Unit::Bytes, |state| {
        state.of_devices(|one| one.writes.bytes as f64)
    }),
    counter(
        "headroom_device_read_time_seconds",
        DEVICE,
        "time of its reads, summed over all of them",
        Unit::Seconds,
        |state| state.of_devices(|one| seconds(one.reads.time_ns as f64)),
    ),
    counter(
        "headroom_device_write_time_seconds",
        DEVICE,
        "time of its writes, summed over all of them",
        Unit::Seconds,
        |state| state.of_devices(|one| seconds(one.writes.time_ns as f64)),
    ),
    counter(
        "headroom_device_busy_seconds",
        DEVICE,
        "time in which it had at least one I/O in flight",
        Unit::Seconds,
        |state| state.of_devices(|one| seconds(one.busy_ns as f64)),
    ),
    gauge("headroom_source_up", SOURCE, "1: the last sample gave counters", Unit::None, |state| {
        state.of_sources(|one| Some(f64::from(u8::from(one.up))))
    }),
    counter("headroom_source_failures", SOURCE, "samples that gave nothing", Unit::None, |state| {
        state.of_sources(|one| Some(one.failures as f64))
    }),
    gauge(
        "headroom_source_last_success_timestamp_seconds",
        SOURCE,
        "when counters were last read",
        Unit::Seconds,
        |state| state.of_sources(|one| Some(seconds(one.last_success_unix_ns? as f64))),
    ),
    gauge(
        "headroom_source_collection_duration_seconds",
        SOURCE,
        "how long the last sample took",
        Unit::Seconds,
        |state| state.of_sources(|one| one.collection_s),
    ),
];

const fn gauge(
    name: &'static str,
    labels: &'static [&'static str],
    help: &'static str,
    unit: Unit,
    points: fn(&AgentState) -> Points,
) -> FamilyDescription {
    FamilyDescription { name, labels, help, kind: FamilyKind::Gauge, unit, points }
}

const fn counter(
    name: &'static str,
    labels: &'static [&'static str],
    help: &'static str,
    unit: Unit,
    points: fn(&AgentState) -> Points,
) -> FamilyDescription {
    FamilyDescription { name, labels, help, kind: FamilyKind::Counter, unit, points }
}

fn seconds(ns: f64) -> f64 {
    ns / 1e9
}

impl Exposition for AgentState {
    fn text(&self, format: Format) -> String {
        write_families(&self.families(), format)
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

    fn verdicts(&self) -> Points {
        let all = self.subjects.iter().flat_map(|(subject, state)| {
            VerdictKind::ALL.iter().map(move |kind| {
                let labels = vec![subject.mount.clone(), subject.database.clone(), word(*kind)];
                (labels, f64::from(u8::from(*kind == state.verdict)))
            })
        });
        all.collect()
    }

    fn of_subjects(&self, value: fn(&SubjectState) -> Option<f64>) -> Points {
        let known = self.subjects.iter().filter_map(|(subject, state)| {
            Some((vec![subject.mount.clone(), subject.database.clone()], value(state)?))
        });
        known.collect()
    }

    fn of_operations(&self, ns: fn(&Latency) -> Option<f64>) -> Points {
        let all = self.subjects.iter().flat_map(|(subject, state)| {
            [("read", state.read), ("commit", state.commit)].map(|(op, latency)| (subject, op, latency))
        });
        let known = all.filter_map(|(subject, op, latency)| {
            let labels = vec![subject.mount.clone(), subject.database.clone(), op.into()];
            Some((labels, seconds(ns(&latency)?)))
        });
        known.collect()
    }

    fn of_curves(&self, value: fn(&Capability, &Curve) -> Option<f64>) -> Points {
        let curves = self
            .capabilities
            .iter()
            .flat_map(|(mount, known)| known.curves.iter().map(move |curve| (mount, known, curve)));
        let known = curves.filter_map(|(mount, known, curve)| {
            Some((vec![mount.clone(), curve_name(&curve.workload)], value(known, curve)?))
        });
        known.collect()
    }

    fn ages_of_curves(&self) -> Points {
        let curves = self
            .capabilities
            .iter()
            .flat_map(|(mount, known)| known.curves.iter().map(move |curve| (mount, known, curve)));
        let known = curves.map(|(mount, known, curve)| {
            let labels = vec![mount.clone(), curve_name(&curve.workload), known.origin.to_string()];
            (labels, seconds(known.measured_unix_ns as f64))
        });
        known.collect()
    }

    fn of_points(&self, value: fn(&capability::Point) -> f64) -> Points {
        let curves = self
            .capabilities
            .iter()
            .flat_map(|(mount, known)| known.curves.iter().map(move |curve| (mount, curve)));
        let points = curves.flat_map(|(mount, curve)| {
            let name = curve_name(&curve.workload);
            curve.points.iter().map(move |point| {
                (vec![mount.clone(), name.clone(), point.outstanding.to_string()], value(point))
            })
        });
        points.collect()
    }

    fn of_flows(&self, ns: fn(&Demand) -> f64) -> Points {
        let models =
            self.capabilities.iter().filter_map(|(mount, known)| Some((mount, known.cost_model.as_ref()?)));
        let flows = models.flat_map(|(mount, model)| {
            [
                ("read", "random", &model.read_random),
                ("read", "sequential", &model.read_sequential),
                ("write", "random", &model.write_random),
                ("write", "sequential", &model.write_sequential),
            ]
            .map(|(op, pattern, demand)| {
                (vec![mount.clone(), op.into(), pattern.into()], seconds(ns(demand)))
            })
        });
        flows.collect()
    }

    fn of_devices(&self, value: fn(&DeviceState) -> f64) -> Points {
        let all = self
            .devices
            .iter()
            .map(|(mount, state)| (vec![mount.clone(), state.device.clone()], value(state)));
        all.collect()
    }

    fn bindings(&self) -> Points {
        let known = self.subjects.iter().filter_map(|(subject, state)| {
            let resource = state.binding?.to_string().replace(' ', "-");
            Some((vec![subject.mount.clone(), subject.database.clone(), resource], 1.0))
        });
        known.collect()
    }

    fn sharings(&self) -> Points {
        let models =
            self.capabilities.iter().filter_map(|(mount, known)| Some((mount, known.cost_model.as_ref()?)));
        let sharings = models.flat_map(|(mount, model)| {
            [("operations", model.sharing.fixed), ("bytes", model.sharing.bytes)]
                .map(|(part, share)| (vec![mount.clone(), part.into()], share))
        });
        sharings.collect()
    }

    fn of_sources(&self, value: fn(&SourceState) -> Option<f64>) -> Points {
        let known =
            self.sources.iter().filter_map(|(source, state)| Some((vec![source.clone()], value(state)?)));
        known.collect()
    }
}

/// "demand-exceeds-capability", as in JSON.
fn word(kind: VerdictKind) -> String {
    kind.to_string().replace(' ', "-")
}

/// A word for each shape: "random-read-8k", "sequential-write-60k-synced", "random-30w-8k".
fn curve_name(shape: &Shape) -> String {
    let pattern = match shape.pattern {
        Pattern::Random => "random",
        Pattern::Sequential => "sequential",
    };
    let what = match shape.write_percent {
        0 => "read".to_owned(),
        100 => "write".to_owned(),
        percent => format!("{percent}w"),
    };
    let size = match shape.block_bytes {
        bytes if bytes.is_multiple_of(1 << 20) => format!("{}m", bytes >> 20),
        bytes if bytes.is_multiple_of(1 << 10) => format!("{}k", bytes >> 10),
        bytes => bytes.to_string(),
    };
    let durability = match shape.durability {
        Durability::Cached => "",
        Durability::WriteThrough => "-write-through",
        Durability::Synced => "-synced",
    };
    format!("{pattern}-{what}-{size}{durability}")
}

#[cfg(test)]
mod tests {
    use super::*;

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
    fn a_verdict_is_the_same_word_as_in_json() {
        for kind in VerdictKind::ALL {
            assert_eq!(serde_json::json!(kind), word(kind));
        }
    }

    #[test]
    fn a_curve_is_a_word() {
        assert_eq!(curve_name(&Shape::random_read(8192)), "random-read-8k");
        assert_eq!(curve_name(&Shape::log_append(61_440)), "sequential-write-60k-synced");
        let mixed = Shape { write_percent: 30, ..Shape::random_read(8192) };
        assert_eq!(curve_name(&mixed), "random-30w-8k");
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
}
