//! PerfMon's disks: what its rates and means say, interval by interval. Nothing of it is kept.

use super::Log;
use report::csv::{Cell, row};
use terminal::kept;

use filestats::{Figure, IoClass, Profile, Reason};
use import::{Disk, DiskInterval, DiskTotals};
use serde_json::json;
use workload::format_ns;

/// Intervals that the text shows of each disk; `--csv` and `--json` give all.
const SHOWN: usize = 10;

const HEADS: [&str; 10] =
    ["until", "reads/s", "read ms", "writes/s", "write ms", "IOPS", "MiB/s", "KiB", "N", "queue"];

/// Each disk over the log, and its busiest intervals.
pub fn text(logs: &[Log]) -> String {
    let mut text = String::new();
    for disk in disks(logs) {
        let totals = disk.totals();
        text.push_str(&format!("{}\n{}", name(disk), over_all(&totals)));
        let mut busiest: Vec<&DiskInterval> = disk.intervals.iter().filter(|one| one.is_known()).collect();
        let weight = |one: &DiskInterval| one.outstanding().known().or(one.iops().known()).unwrap_or(0.0);
        busiest.sort_by(|a, b| weight(b).total_cmp(&weight(a)));
        if !busiest.is_empty() {
            text.push_str(&table(&busiest[..busiest.len().min(SHOWN)]));
        }
        text.push('\n');
    }
    if !text.is_empty() {
        text.push_str(
            "N is the mean of outstanding I/Os by Little's law; queue was sampled at one instant and misses what was \
             between.\nnot kept: PerfMon logs hold rounded means, no counters. All intervals: --csv or --json\n",
        );
    }
    text
}

fn disks(logs: &[Log]) -> impl Iterator<Item = &Disk> {
    logs.iter().filter_map(|log| log.log.disks.as_ref()).flat_map(|log| &log.disks)
}

fn name(disk: &Disk) -> String {
    let host = if disk.host.is_empty() { String::new() } else { format!(" of {}", disk.host) };
    format!("{} {}{host}", disk.object, disk.name)
}

fn over_all(totals: &DiskTotals) -> String {
    if totals.intervals == 0 {
        return "  no interval of known length and rate: log Disk Reads/sec and Disk Writes/sec, twice at least\n".into();
    }
    let graded = |class: IoClass, latency_ns: Figure<f64>| match latency_ns {
        Figure::Known(ns) => format!("{} ({})", format_ns(ns), Profile::ALL[0].band(class, ns).name),
        Figure::Unknown { unknown } => format!("unknown, {unknown}"),
    };
    let mut lines = vec![format!(
        "  {} intervals, {} in all: {} IOPS, {} MiB/s, N {}",
        totals.intervals,
        format_ns(totals.elapsed_ns as f64),
        number(totals.iops, 1.0),
        number(totals.mib_per_s, 1.0),
        number(totals.outstanding, 1.0)
    )];
    lines.push(format!(
        "  mean read {}, mean write {}; bands of {}",
        graded(IoClass::Read, totals.read_latency_ns),
        graded(IoClass::Write, totals.write_latency_ns),
        Profile::ALL[0].name
    ));
    if let Figure::Known(mean) = totals.queue_sampled {
        lines.push(format!(
            "  queue as sampled: {mean:.2} on average, {} at most",
            number(totals.queue_sampled_max, 1.0)
        ));
    }
    if totals.unknown_intervals > 0 {
        lines.push(format!("  {} samples without rates or length", totals.unknown_intervals));
    }
    lines.join("\n") + "\n"
}

/// A figure times a factor; "-" for the mean of nothing, "?" for what is unknown.
fn number(figure: Figure<f64>, factor: f64) -> String {
    match figure.map(|value| value * factor) {
        Figure::Known(value) if value >= 99.95 => format!("{value:.0}"),
        Figure::Known(value) => format!("{value:.2}"),
        Figure::Unknown { unknown: Reason::NoOperations } => "-".into(),
        Figure::Unknown { .. } => "?".into(),
    }
}

fn table(intervals: &[&DiskInterval]) -> String {
    let row = |one: &&DiskInterval| {
        [
            kept::format_time(one.ended_unix_ns),
            number(one.read.per_second, 1.0),
            number(one.read.latency_ns, 1e-6),
            number(one.write.per_second, 1.0),
            number(one.write.latency_ns, 1e-6),
            number(one.iops(), 1.0),
            number(one.mib_per_s(), 1.0),
            number(one.average_bytes(), 1.0 / 1024.0),
            number(one.outstanding(), 1.0),
            number(one.queue_sampled, 1.0),
        ]
    };
    let rows: Vec<[String; 10]> =
        std::iter::once(HEADS.map(str::to_owned)).chain(intervals.iter().map(row)).collect();
    let width = |column: usize| rows.iter().map(|row| row[column].chars().count()).max().unwrap_or(0);
    let widths: Vec<usize> = (0..HEADS.len()).map(width).collect();
    let mut text = String::from("  the busiest intervals:\n");
    for row in &rows {
        let cells = row.iter().zip(&widths).map(|(cell, width)| format!("  {cell:>width$}"));
        text.push_str(&cells.collect::<String>());
        text.push('\n');
    }
    text
}

const COLUMNS: &str = "host,object,disk,until_unix_ns,until,elapsed_s,reads_per_s,read_mib_per_s,read_latency_ms,\
    writes_per_s,write_mib_per_s,write_latency_ms,iops,mib_per_s,average_bytes,outstanding,queue_mean,queue_sampled";

/// Every interval as a line; what is unknown is empty.
pub fn csv(logs: &[Log]) -> String {
    const MIB: f64 = 1024.0 * 1024.0;
    let figure = |figure: Figure<f64>, factor: f64| Cell::from(figure.known().map(|value| value * factor));
    let mut text = format!("{COLUMNS}\n");
    for disk in disks(logs) {
        for one in &disk.intervals {
            text.push_str(&row([
                disk.host.as_str().into(),
                disk.object.as_str().into(),
                disk.name.as_str().into(),
                one.ended_unix_ns.into(),
                kept::format_time(one.ended_unix_ns).into(),
                one.elapsed_ns.known().map(|ns| ns as f64 / 1e9).into(),
                figure(one.read.per_second, 1.0),
                figure(one.read.bytes_per_second, 1.0 / MIB),
                figure(one.read.latency_ns, 1e-6),
                figure(one.write.per_second, 1.0),
                figure(one.write.bytes_per_second, 1.0 / MIB),
                figure(one.write.latency_ns, 1e-6),
                figure(one.iops(), 1.0),
                figure(one.mib_per_s(), 1.0),
                figure(one.average_bytes(), 1.0),
                figure(one.outstanding(), 1.0),
                figure(one.queue_mean, 1.0),
                figure(one.queue_sampled, 1.0),
            ]));
        }
    }
    text
}

/// Every interval of every disk, with what follows from its figures.
pub fn json(logs: &[Log]) -> Vec<serde_json::Value> {
    let interval = |one: &DiskInterval| {
        json!({
            "ended_unix_ns": one.ended_unix_ns,
            "elapsed_ns": one.elapsed_ns,
            "read": one.read,
            "write": one.write,
            "transfer": one.transfer,
            "queue_mean": one.queue_mean,
            "queue_sampled": one.queue_sampled,
            "iops": one.iops(),
            "mib_per_s": one.mib_per_s(),
            "average_bytes": one.average_bytes(),
            "outstanding": one.outstanding(),
        })
    };
    let each = |disk: &Disk| {
        json!({
            "host": disk.host,
            "object": disk.object,
            "disk": disk.name,
            "totals": disk.totals(),
            "intervals": disk.intervals.iter().map(interval).collect::<Vec<_>>(),
        })
    };
    disks(logs).map(each).collect()
}
