//! An observation over time.

use crate::number;
use filestats::{Delta, Figure, Reason};
use serde::Serialize;
use verdict::{CapUse, Figures, Moment};
use workload::CapKind;

/// A short interval of an observation.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(rename = "Moment"))]
pub(super) struct MomentOutput {
    /// When it ended, nanoseconds since 1970.
    ended: u64,
    /// `ended` as RFC 3339.
    ended_time: Option<String>,
    /// Reads and writes a second of all files.
    iops: Figure<f64>,
    /// Their MiB a second.
    mib_per_s: Figure<f64>,
    /// Mean outstanding operations of all files.
    outstanding: Figure<f64>,
    /// Mean latency of a read, nanoseconds, cached ones included.
    read_latency_ns: Figure<f64>,
    /// Mean latency of a write, nanoseconds.
    write_latency_ns: Figure<f64>,
    /// Mean latency of a sync, nanoseconds.
    sync_latency_ns: Figure<f64>,
    /// Latency of a commit's write and sync, nanoseconds; null without commits.
    commit_latency_ns: Option<f64>,
    /// I/Os a second at the device, those of all processes.
    device_iops: Figure<f64>,
    /// MiB a second at the device.
    device_mib_per_s: Figure<f64>,
    /// Mean outstanding I/Os at the device.
    device_outstanding: Figure<f64>,
    /// Mean latency of a read at the device, nanoseconds.
    device_read_latency_ns: Figure<f64>,
    /// Mean latency of a write at the device, nanoseconds.
    device_write_latency_ns: Figure<f64>,
    /// Share of the time in which a task of this host was stalled on I/O (`/proc/pressure/io`).
    stalled: Figure<f64>,
    /// Share of the time in which a task of the database's control group was stalled on I/O (`io.pressure`).
    group_stalled: Figure<f64>,
    /// Share of the time in which the busiest block device of this host had I/Os outstanding.
    busiest_device: Figure<f64>,
    /// Throttles in force on the database's processes.
    caps: Vec<CapUseOutput>,
}

/// The count of a throttle.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(rename = "CapUse"))]
struct CapUseOutput {
    /// The kind of the limit.
    kind: CapKind,
    /// Where the limit is set.
    origin: String,
    /// Operations or bytes that it counted a second: before they are merged, and flushes as writes.
    per_second: f64,
}

impl From<&CapUse> for CapUseOutput {
    fn from(used: &CapUse) -> CapUseOutput {
        CapUseOutput { kind: used.cap.kind, origin: used.cap.origin.clone(), per_second: used.per_second() }
    }
}

impl From<&Moment> for MomentOutput {
    fn from(moment: &Moment) -> MomentOutput {
        let database = moment.database();
        let unknown =
            moment.files.iter().find_map(|file| file.interval.reason()).unwrap_or(Reason::NotCounted);
        let figure_of = |delta: Option<&Delta>, reason: Reason, figure: fn(&Delta) -> Figure<f64>| {
            delta.map_or(Figure::unknown(reason), figure)
        };
        let files = |figure| figure_of(database.as_ref(), unknown, figure);
        let device_unknown =
            moment.device.as_ref().and_then(|device| device.interval.reason()).unwrap_or(Reason::NotCounted);
        let device = |figure| figure_of(moment.device(), device_unknown, figure);
        MomentOutput {
            ended: moment.ended_unix_ns,
            ended_time: number::rfc3339(moment.ended_unix_ns),
            iops: files(|delta| Figure::Known(delta.iops())),
            mib_per_s: files(|delta| Figure::Known(delta.mib_per_s())),
            outstanding: files(Delta::outstanding),
            read_latency_ns: files(Delta::read_latency_ns),
            write_latency_ns: files(Delta::write_latency_ns),
            sync_latency_ns: files(Delta::sync_latency_ns),
            commit_latency_ns: Figures::from_moments(std::slice::from_ref(moment), None).commit_ns(),
            device_iops: device(|delta| Figure::Known(delta.iops())),
            device_mib_per_s: device(|delta| Figure::Known(delta.mib_per_s())),
            device_outstanding: device(Delta::outstanding),
            device_read_latency_ns: device(Delta::read_latency_ns),
            device_write_latency_ns: device(Delta::write_latency_ns),
            stalled: moment.pressure.share(moment.pressure.host_ns),
            group_stalled: moment.pressure.share(moment.pressure.group_ns),
            busiest_device: moment.pressure.share(moment.pressure.device_ns),
            caps: moment.caps.iter().map(CapUseOutput::from).collect(),
        }
    }
}
