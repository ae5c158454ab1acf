//! Hosts that do not exist: their agents' own exposition, with the labels that a scrape adds.

use crate::checks;
use filestats::{
    FileClass, FileKind, FileTotals, LatencyBuckets, LatencyTotals, OpTotals, SourceTotals, WaitClass,
    WaitTotals,
};
use incidents::Subject;
use metrics::{
    AgentState, DeviceFlushes, DeviceOps, DeviceState, Dropped, Format, Headroom, Latency, ProcessState,
    SourceState, SubjectState,
};
use std::collections::BTreeMap;
use std::fmt::Write;
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};
use verdict::{Confidence, VerdictKind};
use workload::CapKind;

/// A volume of a host.
#[derive(Clone)]
pub struct SyntheticVolume {
    pub mount: String,
    pub verdict: VerdictKind,
    pub headroom: Option<f64>,
    pub utilisation: Option<f64>,
    pub measured: bool,
    /// Seconds before the time of the samples.
    pub judged_ago_s: u64,
}

/// A host with an agent.
#[derive(Clone)]
pub struct SyntheticHost {
    pub instance: String,
    pub cluster: &'static str,
    pub volumes: Vec<SyntheticVolume>,
    /// Whether its agent can read the database's counters.
    pub source_up: bool,
}

/// When all counters were zero.
const BOOT_UNIX_S: u64 = 1_700_000_000;
/// The database of all of them.
pub const DATABASE: &str = "postgres:";

pub fn now_unix_s() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs()
}

/// How long counters have counted at a time, in seconds or milliseconds since 1970.
pub fn uptime_s(time: &str) -> u64 {
    let time: u64 = time.parse().unwrap();
    let unix_s = if time > BOOT_UNIX_S * 100 { time / 1000 } else { time };
    unix_s - BOOT_UNIX_S
}

impl SyntheticVolume {
    pub fn healthy(mount: &str, headroom: f64) -> SyntheticVolume {
        SyntheticVolume {
            mount: mount.into(),
            verdict: VerdictKind::Healthy,
            headroom: Some(headroom),
            utilisation: Some(1.0 / headroom),
            measured: true,
            judged_ago_s: 0,
        }
    }
}

impl SyntheticHost {
    pub fn new(instance: &str, cluster: &'static str, volumes: Vec<SyntheticVolume>) -> SyntheticHost {
        SyntheticHost { instance: instance.into(), cluster, volumes, source_up: true }
    }

    /// The state of its agent at a time.
    fn state(&self, at_unix_s: u64) -> AgentState {
        let capability = Arc::new(checks::capability());
        let mut state = AgentState { version: "0.1.0".into(), ..AgentState::default() };
        for (number, volume) in self.volumes.iter().enumerate() {
            let subject = Subject { mount: volume.mount.clone(), database: DATABASE.into() };
            let judged_unix_ns = (at_unix_s - volume.judged_ago_s) * 1_000_000_000;
            let judged = SubjectState {
                verdict: volume.verdict,
                confidence: Confidence::High,
                judged_unix_ns,
                since_unix_ns: judged_unix_ns - 60_000_000_000,
                headroom: volume.headroom.map(|plan| Headroom { plan, low: 0.9 * plan, high: 1.1 * plan }),
                binding: volume.measured.then_some(capability::Binding::ReadOperations),
                utilisation: volume.utilisation,
                outstanding: Some(2.0),
                read: Latency { latency_ns: Some(1.5e6), expected_ns: Some(1.0e6) },
                commit: Latency { latency_ns: Some(3.0e6), expected_ns: Some(2.0e6) },
                incident_open: volume.verdict.needs_action(),
                contradicted: volume.measured.then_some(1.2),
                caps: [(CapKind::WriteIops, 2000), (CapKind::ReadBytes, 100 << 20)].into(),
            };
            state.subjects.insert(subject, judged);
            if volume.measured {
                state.capabilities.insert(volume.mount.clone(), capability.clone());
            }
            // 400 reads of 8 KiB and 100 writes of 16 KiB a second.
            let seconds = at_unix_s - BOOT_UNIX_S;
            let ops = |per_second: u64, bytes: u64| DeviceOps {
                count: seconds * per_second,
                bytes: seconds * per_second * bytes,
                time_ns: seconds * per_second * 1_200_000,
            };
            let device = DeviceState {
                device: format!("vd{number}"),
                kind: "partition".into(),
                parents: vec!["vd".into()],
                reads: ops(400, 8192),
                writes: ops(100, 16_384),
                flushes: Some(DeviceFlushes { count: seconds * 50, time_ns: seconds * 50_000_000 }),
                busy_ns: seconds * 300_000_000,
            };
            state.devices.insert(volume.mount.clone(), device);
        }
        let source = SourceState {
            since_unix_ns: BOOT_UNIX_S * 1_000_000_000,
            up: Some(self.source_up),
            failures: at_unix_s - BOOT_UNIX_S,
            last_success_unix_ns: Some(at_unix_s * 1_000_000_000),
            collection_s: Some(0.01),
            totals: Arc::new(totals(&self.volumes, at_unix_s - BOOT_UNIX_S)),
        };
        state.sources.insert(DATABASE.into(), source);
        state.process = Some(ProcessState {
            cpu_s: 0.02 * (at_unix_s - BOOT_UNIX_S) as f64,
            resident_bytes: 60 << 20,
            open_files: 70,
            started_unix_s: BOOT_UNIX_S as f64,
        });
        state
            .pushes_dropped
            .insert(("remote-write http://store:8428/api/v1/write".into(), Dropped::Refused), 0);
        state
    }

    /// The metrics that its agent exposes.
    pub fn exposition(&self, at_unix_s: u64) -> String {
        self.state(at_unix_s).text(Format::Prometheus)
    }

    /// Its series at a time: the name with all labels, and the value.
    pub fn series(&self, at_unix_s: u64) -> Vec<(String, String)> {
        let text = self.exposition(at_unix_s);
        let added = format!("instance=\"{}\",job=\"headroom\",cluster=\"{}\"", self.instance, self.cluster);
        with_labels(&text, &added)
    }
}

/// Totals of the volumes' database after `seconds` seconds.
fn totals(volumes: &[SyntheticVolume], seconds: u64) -> SourceTotals {
    let read = OpTotals {
        count: seconds * 400,
        bytes: seconds * 400 * 8192,
        timed: seconds * 400,
        time_ns: seconds * 400 * 1_500_000,
        latencies: Some(LatencyTotals {
            buckets: LatencyBuckets::from_range(LatencyBuckets::index(1_500_000), &[seconds * 400]),
            time_ns: seconds * 400 * 1_500_000,
            ..LatencyTotals::default()
        }),
    };
    let files = FileTotals { read, sync: Some(OpTotals::default()), ..FileTotals::default() };
    let class = FileClass { kind: FileKind::Data, below_cache: false };
    let files = volumes.iter().map(|volume| (volume.mount.clone(), BTreeMap::from([(class, files.clone())])));
    let wait = WaitTotals { time_ns: seconds * 500_000_000, ..WaitTotals::default() };
    SourceTotals { files: files.collect(), waits: [(WaitClass::DataRead, wait)].into() }
}

/// The series of an exposition, with further labels.
pub fn with_labels(exposition: &str, added: &str) -> Vec<(String, String)> {
    let samples = exposition.lines().filter(|line| !line.starts_with('#'));
    let series = samples.map(|line| {
        let (series, value) = line.rsplit_once(' ').unwrap();
        let (name, labels) = series.split_once('{').unwrap_or((series, "}"));
        let and = if labels == "}" { "" } else { "," };
        (format!("{name}{{{added}{and}{labels}"), value.to_owned())
    });
    series.collect()
}

/// Samples of all hosts at those times, with their time in seconds: what promtool fills a storage with.
pub fn openmetrics(hosts: &[SyntheticHost], times: &[u64]) -> String {
    samples(hosts, times, 1) + "# EOF\n"
}

/// Samples of all hosts at those times, in milliseconds: the form that VictoriaMetrics imports.
pub fn prometheus_text(hosts: &[SyntheticHost], times: &[u64]) -> String {
    samples(hosts, times, 1000)
}

fn samples(hosts: &[SyntheticHost], times: &[u64], per_second: u64) -> String {
    let mut text = String::new();
    for (number, host) in hosts.iter().enumerate() {
        for at in times {
            for (series, value) in host.series(*at) {
                // Points of curves and files are most of the series, and the same for all.
                let is_alike =
                    ["headroom_curve_", "headroom_file_"].iter().any(|name| series.starts_with(name));
                if !is_alike || number < 2 {
                    let _ = writeln!(text, "{series} {value} {}", at * per_second);
                }
            }
        }
    }
    text
}

/// Each minute from four minutes ago until six minutes ahead: long enough for a test.
pub fn times(now_unix_s: u64) -> Vec<u64> {
    (now_unix_s - 240..now_unix_s + 360).step_by(60).collect()
}
