//! Panels of the block devices below volumes, as the kernel counts them.

use crate::grafana::{Panel, RATIO, graph, rate};

const DEVICE: &str = "{{instance}} {{device}}";

pub(crate) fn device_operations(further: &str) -> Panel {
    let targets = vec![
        (rate("headroom_device_reads_total", further), "{{instance}} {{device}} reads"),
        (rate("headroom_device_writes_total", further), "{{instance}} {{device}} writes"),
        (rate("headroom_device_flushes_total", further), "{{instance}} {{device}} flushes"),
    ];
    graph("I/Os of devices", "The I/O of all processes, as the kernel counts it.", "iops", targets)
}

pub(crate) fn device_bytes(further: &str) -> Panel {
    let targets = vec![
        (rate("headroom_device_read_bytes_total", further), "{{instance}} {{device}} read"),
        (rate("headroom_device_written_bytes_total", further), "{{instance}} {{device}} written"),
    ];
    graph("Throughput of devices", "Bytes of all processes.", "Bps", targets)
}

pub(crate) fn device_latency(further: &str) -> Panel {
    let latency =
        |time: &str, count: &str| format!("{} / ({} > 0)", rate(time, further), rate(count, further));
    let targets = vec![
        (
            latency("headroom_device_read_time_seconds_total", "headroom_device_reads_total"),
            "{{instance}} {{device}} reads",
        ),
        (
            latency("headroom_device_write_time_seconds_total", "headroom_device_writes_total"),
            "{{instance}} {{device}} writes",
        ),
        (
            latency("headroom_device_flush_time_seconds_total", "headroom_device_flushes_total"),
            "{{instance}} {{device}} flushes",
        ),
    ];
    graph("Latency of devices", "Mean time from request to completion.", "s", targets)
}

pub(crate) fn device_outstanding(further: &str) -> Panel {
    let both = format!(
        "{} + {}",
        rate("headroom_device_read_time_seconds_total", further),
        rate("headroom_device_write_time_seconds_total", further)
    );
    graph(
        "Outstanding I/Os of devices",
        "Mean number in flight: time of I/Os over time.",
        "none",
        vec![(both, DEVICE)],
    )
}

pub(crate) fn device_busy(further: &str) -> Panel {
    let busy = rate("headroom_device_busy_seconds_total", further);
    let description = "Share of the time with an I/O in flight. A device that takes many at once is far from full at 100 %.";
    graph("Busy time of devices", description, RATIO, vec![(busy, DEVICE)])
}
