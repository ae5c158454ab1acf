//! Panels of a database's files, as its source counts them.

use crate::grafana::{Panel, graph, rate};

/// Of the database that the dashboard shows.
pub(crate) const SOURCE: &str = ",source=~\"$source\"";
const FILES: &str = "{{mount}} {{kind}} {{op}} ({{layer}})";

pub(crate) fn file_operations() -> Panel {
    let targets = vec![(rate("headroom_file_operations_total", SOURCE), FILES)];
    graph("I/Os of files", "Reads, writes and syncs by what the files are for.", "iops", targets)
}

pub(crate) fn file_bytes() -> Panel {
    let targets = vec![(rate("headroom_file_bytes_total", SOURCE), FILES)];
    graph("Throughput of files", "Bytes by what the files are for.", "Bps", targets)
}

pub(crate) fn file_latency() -> Panel {
    let time = rate("headroom_file_time_seconds_total", SOURCE);
    let count = rate("headroom_file_timed_operations_total", SOURCE);
    let targets = vec![(format!("{time} / ({count} > 0)"), FILES)];
    graph("Latency of files", "Mean time of what the source times.", "s", targets)
}

pub(crate) fn slowest_percent() -> Panel {
    let buckets = rate("headroom_file_latency_seconds_bucket", SOURCE);
    let targets = vec![(format!("histogram_quantile(0.99, {buckets})"), FILES)];
    let description = "99th percentile, where the source keeps a histogram.";
    graph("Slowest I/Os of files", description, "s", targets)
}

pub(crate) fn waits() -> Panel {
    let targets = vec![(rate("headroom_wait_time_seconds_total", SOURCE), "{{class}}")];
    let description = "Mean number of sessions that wait, where the source counts their time.";
    graph("Waiting sessions", description, "none", targets)
}
