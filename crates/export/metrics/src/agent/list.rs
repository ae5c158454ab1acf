//! [`FAMILIES`], the one list of names, units and labels: `/metrics`, pushed figures, and the table of
//! docs/reference/metrics.md are made from it.

use super::description::{FamilyDescription, counter, gauge, histogram};
use super::labels::{
    BY_CURVE, BY_FILES, BY_FLOW, BY_OPERATION, BY_ORIGIN, BY_PART, BY_POINT, BY_RESOURCE, BY_SERVER,
    BY_VERDICT, BY_WAIT, DEVICE, DEVICE_BELOW, SOURCE, SUBJECT,
};
use super::state::AgentState;
use super::values::{FILE_OPS, TRANSFERS, seconds};
use crate::families::Unit;
use verdict::Confidence;
use workload::CapKind;

/// All families, in the order in which they are written.
pub const FAMILIES: &[FamilyDescription] = &[
    gauge("headroom_build_info", &["version"], "1; which Headroom this is", Unit::None, |state| {
        vec![(vec![state.version.clone()], 1.0)]
    }),
    gauge(
        "headroom_verdict",
        BY_VERDICT,
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
        BY_VERDICT,
        "since when the verdict holds; no series for the others",
        Unit::Seconds,
        AgentState::verdicts_since,
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
        "share of the storage that is in use, of what runs out first; 1 is the operating limit",
        Unit::Ratio,
        |state| state.of_subjects(|one| one.utilisation),
    ),
    gauge(
        "headroom_demand_outstanding",
        SUBJECT,
        "mean I/Os that the database waits for",
        Unit::Operations,
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
    gauge(
        "headroom_cap_operations_per_second",
        BY_OPERATION,
        "the limit of the database's control groups on I/Os; no series without one",
        Unit::OperationsPerSecond,
        |state| state.caps([CapKind::ReadIops, CapKind::WriteIops]),
    ),
    gauge(
        "headroom_cap_bytes_per_second",
        BY_OPERATION,
        "the same on bytes",
        Unit::BytesPerSecond,
        |state| state.caps([CapKind::ReadBytes, CapKind::WriteBytes]),
    ),
    gauge("headroom_incident_open", SUBJECT, "1 while an incident is open", Unit::None, |state| {
        state.of_subjects(|one| Some(f64::from(u8::from(one.incident_open))))
    }),
    gauge(
        "headroom_capability_measured_timestamp_seconds",
        BY_ORIGIN,
        "when what the volume gives became known: measured, gentle, borrowed or declared",
        Unit::Seconds,
        |state| state.of_known(|capability| seconds(capability.measured_unix_ns as f64)),
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
        Unit::Operations,
        |state| state.of_curves(|curve| Some(curve.knee.as_ref()?.outstanding)),
    ),
    gauge(
        "headroom_capability_operations_per_second",
        BY_CURVE,
        "highest rate of I/Os of the curve",
        Unit::OperationsPerSecond,
        |state| state.of_curves(capability::Curve::iops_max),
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
        Unit::SecondsPerByte,
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
        Unit::OperationsPerSecond,
        |state| state.of_points(|point| point.iops),
    ),
    gauge(
        "headroom_curve_latency_seconds",
        BY_POINT,
        "mean latency of the curve with so many outstanding",
        Unit::Seconds,
        |state| state.of_points(|point| seconds(point.latency_ns)),
    ),
    counter(
        "headroom_device_reads",
        DEVICE,
        "reads of the volume's block device",
        Unit::Operations,
        |state| state.of_devices(|one| Some(one.reads.count as f64)),
    ),
    counter("headroom_device_writes", DEVICE, "writes of it", Unit::Operations, |state| {
        state.of_devices(|one| Some(one.writes.count as f64))
    }),
    counter("headroom_device_read_bytes", DEVICE, "bytes of its reads", Unit::Bytes, |state| {
        state.of_devices(|one| Some(one.reads.bytes as f64))
    }),
    counter("headroom_device_written_bytes", DEVICE, "bytes of its writes", Unit::Bytes, |state| {
        state.of_devices(|one| Some(one.writes.bytes as f64))
    }),
    counter(
        "headroom_device_read_time_seconds",
        DEVICE,
        "time of its reads, summed over all of them",
        Unit::Seconds,
        |state| state.of_devices(|one| Some(seconds(one.reads.time_ns as f64))),
    ),
    counter(
        "headroom_device_write_time_seconds",
        DEVICE,
        "time of its writes, summed over all of them",
        Unit::Seconds,
        |state| state.of_devices(|one| Some(seconds(one.writes.time_ns as f64))),
    ),
    counter(
        "headroom_device_flushes",
        DEVICE,
        "flushes of its cache, where the kernel counts them",
        Unit::Operations,
        |state| state.of_devices(|one| Some(one.flushes?.count as f64)),
    ),
    counter(
        "headroom_device_flush_time_seconds",
        DEVICE,
        "time of its flushes, summed over all of them",
        Unit::Seconds,
        |state| state.of_devices(|one| Some(seconds(one.flushes?.time_ns as f64))),
    ),
    counter(
        "headroom_device_busy_seconds",
        DEVICE,
        "time in which it had at least one I/O in flight",
        Unit::Seconds,
        |state| state.of_devices(|one| Some(seconds(one.busy_ns as f64))),
    ),
    gauge(
        "headroom_device_info",
        DEVICE_BELOW,
        "1; what it is (disk, partition, loop, dm, md), and a device that it lies on, whose I/O is its I/O too",
        Unit::None,
        AgentState::devices_below,
    ),
    counter(
        "headroom_file_operations",
        BY_FILES,
        "reads, writes and syncs of files",
        Unit::Operations,
        |state| state.of_files(FILE_OPS, |one| Some(one.count as f64)),
    ),
    counter("headroom_file_bytes", BY_FILES, "bytes of reads and writes of files", Unit::Bytes, |state| {
        state.of_files(TRANSFERS, |one| Some(one.bytes as f64))
    }),
    counter(
        "headroom_file_timed_operations",
        BY_FILES,
        "those of the operations that the source times",
        Unit::Operations,
        |state| state.of_files(FILE_OPS, |one| one.is_timed().then_some(one.timed as f64)),
    ),
    counter(
        "headroom_file_time_seconds",
        BY_FILES,
        "time of these, summed over all of them",
        Unit::Seconds,
        |state| state.of_files(FILE_OPS, |one| one.is_timed().then_some(seconds(one.time_ns as f64))),
    ),
    histogram(
        "headroom_file_latency_seconds",
        BY_FILES,
        "their latencies, where the source keeps a histogram",
        Unit::Seconds,
        AgentState::file_latencies,
    ),
    counter(
        "headroom_wait_time_seconds",
        BY_WAIT,
        "time that sessions waited, where the source counts it",
        Unit::Seconds,
        AgentState::waits,
    ),
    gauge("headroom_source_up", SOURCE, "1: the last sample gave counters", Unit::None, |state| {
        state.of_sources(|one| Some(f64::from(u8::from(one.up?))))
    }),
    counter(
        "headroom_source_failures",
        SOURCE,
        "samples that gave nothing",
        Unit::None,
        AgentState::source_failures,
    ),
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
    counter(
        "headroom_pushes_dropped",
        BY_SERVER,
        "requests that a server pushed to will never get",
        Unit::None,
        AgentState::dropped_pushes,
    ),
    counter(
        "process_cpu_seconds",
        &[],
        "processor time that the agent has used",
        Unit::Seconds,
        AgentState::processor_time,
    ),
    gauge("process_resident_memory_bytes", &[], "memory that the agent has in use", Unit::Bytes, |state| {
        state.of_process(|own| own.resident_bytes as f64)
    }),
    gauge("process_open_fds", &[], "open file descriptors of the agent", Unit::None, |state| {
        state.of_process(|own| own.open_files as f64)
    }),
    gauge("process_start_time_seconds", &[], "when the agent started", Unit::Seconds, |state| {
        state.of_process(|own| own.started_unix_s)
    }),
];
