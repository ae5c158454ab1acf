//! State of the agent: plain values, unknown where they are `None`.

use crate::identity::ExtraLabels;
use crate::pushed::Dropped;
use capability::{Binding, Capability};
use filestats::SourceTotals;
use incidents::Subject;
use std::collections::BTreeMap;
use std::sync::Arc;
use verdict::{Confidence, VerdictKind};
use workload::CapKind;

/// The agent's current state.
#[derive(Clone, Debug, Default)]
pub struct AgentState {
    /// Version of Headroom.
    pub version: String,
    /// The last judgement of each database and volume.
    pub subjects: BTreeMap<Subject, SubjectState>,
    /// The capability of each volume, by its mount point.
    pub capabilities: BTreeMap<String, Arc<Capability>>,
    /// Each source that is watched.
    pub sources: BTreeMap<String, SourceState>,
    /// The block device below each volume, by its mount point.
    pub devices: BTreeMap<String, DeviceState>,
    /// Resources that the agent itself uses; `None` where not known.
    pub process: Option<ProcessState>,
    /// Lost pushes, by server and reason.
    pub pushes_dropped: BTreeMap<(String, Dropped), u64>,
    /// Labels added to those of all series.
    pub labels: ExtraLabels,
}

/// Resources that the agent's process uses.
#[derive(Clone, Copy, Debug)]
pub struct ProcessState {
    /// Processor time since it started, seconds.
    pub cpu_s: f64,
    /// Memory in use, bytes.
    pub resident_bytes: u64,
    /// Open file descriptors.
    pub open_files: u64,
    /// When it started, seconds since 1970.
    pub started_unix_s: f64,
}

/// The kernel's counters of a block device since it appeared: the I/O of all processes.
#[derive(Clone, Debug, Default)]
pub struct DeviceState {
    /// Its name below /dev.
    pub device: String,
    /// Its kind: "partition", "dm".
    pub kind: String,
    /// Names of the devices that it lies on: its I/O is theirs too. Empty for a disk.
    pub parents: Vec<String>,
    /// Reads, their bytes, and their time in nanoseconds.
    pub reads: DeviceOps,
    /// Writes likewise.
    pub writes: DeviceOps,
    /// `None` where the kernel does not count them.
    pub flushes: Option<DeviceFlushes>,
    /// Time with at least one I/O in flight, nanoseconds.
    pub busy_ns: u64,
}

/// Flushes of a device's cache.
#[derive(Clone, Copy, Debug, Default)]
pub struct DeviceFlushes {
    /// Number of flushes.
    pub count: u64,
    /// Their time, nanoseconds.
    pub time_ns: u64,
}

/// Completed I/Os in one direction.
#[derive(Clone, Copy, Debug, Default)]
pub struct DeviceOps {
    /// Number of I/Os.
    pub count: u64,
    /// Their bytes.
    pub bytes: u64,
    /// Their time from request to completion, nanoseconds.
    pub time_ns: u64,
}

/// The judgement of a database on a volume.
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
    /// The multiple of today's demand that can be carried.
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
    /// Ratio of the storage's observed to its measured figures, where they contradict each other for a day.
    pub contradicted: Option<f64>,
    /// Limits of the database's processes on the volume: operations or bytes a second.
    pub caps: BTreeMap<CapKind, u64>,
}

/// The multiple of today's demand that can be carried, as `headroom check` reports it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Headroom {
    /// The figure to plan with.
    pub plan: f64,
    /// The low end of its range.
    pub low: f64,
    /// The high end of its range.
    pub high: f64,
}

/// A latency, and the one that the curves expect.
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
    /// Since when it has been watched, nanoseconds since 1970: all of its counters were zero then.
    pub since_unix_ns: u64,
    /// The last sample gave counters; `None` before the first one.
    pub up: Option<bool>,
    /// Samples that gave nothing.
    pub failures: u64,
    /// When counters were last read, nanoseconds since 1970.
    pub last_success_unix_ns: Option<u64>,
    /// How long the last sample took, seconds.
    pub collection_s: Option<f64>,
    /// Its totals, by class of file and of wait.
    pub totals: Arc<SourceTotals>,
}
