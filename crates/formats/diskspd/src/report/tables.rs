//! The tables that diskspd's two text forms share; they differ in the name of a unit and in how a file's
//! size is reported.

use crate::report::Report;
use crate::report::parameters::Form;
use crate::report::view::{Buckets, Named, Samples, Section, Span};
use std::fmt::{Result, Write};
use workload::Tally;

pub(crate) const INTERRUPTED: &str =
    "The test was interrupted before the measurements began. No results are displayed.";

const STARS: &str = "*******************************************************************************\n";

const MIB: f64 = 1024.0 * 1024.0;

const PERCENTILES: [(f64, &str); 13] = [
    (25.0, "25th"),
    (50.0, "50th"),
    (75.0, "75th"),
    (90.0, "90th"),
    (95.0, "95th"),
    (99.0, "99th"),
    (99.9, "3-nines"),
    (99.99, "4-nines"),
    (99.999, "5-nines"),
    (99.9999, "6-nines"),
    (99.99999, "7-nines"),
    (99.999999, "8-nines"),
    (99.9999999, "9-nines"),
];

/// The time spans of a report, what is particular to a version by `one`, and their totals.
pub(crate) fn time_spans(
    out: &mut String,
    report: &Report<'_>,
    form: Form,
    one: impl Fn(&mut String, &Span<'_>) -> Result,
) -> Result {
    let spans: Vec<Span> = report.spans().collect();
    for (at, span) in spans.iter().enumerate() {
        write!(out, "{}Results for timespan {}:\n{STARS}", form.before_span, at + 1)?;
        if span.is_measured() {
            write!(out, "\nactual test time:\t{:.2}s\n", span.elapsed_s)?;
            writeln!(out, "thread count:\t\t{}", span.thread_count())?;
            one(out, span)?;
        } else {
            writeln!(out, "{INTERRUPTED}")?;
        }
    }
    if spans.len() > 1 { totals(out, &spans, form) } else { Ok(()) }
}

/// The tables of all I/Os, of the reads and of the writes.
pub(crate) fn io_tables(out: &mut String, span: &Span<'_>, form: Form) -> Result {
    for section in Section::ALL {
        writeln!(out, "\n{} IO", section.name())?;
        io_table(out, span, section, form)?;
    }
    Ok(())
}

/// ```text
/// thread |       bytes     |     I/Os     |    MiB/s   |  I/O per s |  AvgLat  | IopsStdDev | LatStdDev |  file
/// ```
fn io_table(out: &mut String, span: &Span<'_>, section: Section, form: Form) -> Result {
    let (latency, iops) = (span.requested.measure_latency, span.requested.iops_deviation);
    let or_none = |shown: bool, column: &'static str| if shown { column } else { "" };
    writeln!(
        out,
        "thread |       bytes     |     I/Os     | {} |  I/O per s {}{}{}|  file",
        form.unit,
        or_none(latency, "|  AvgLat  "),
        or_none(iops, "| IopsStdDev "),
        or_none(latency, "| LatStdDev "),
    )?;
    let dashes = 78 + if latency { 23 } else { 0 } + if iops { 13 } else { 0 };
    let border = "-".repeat(dashes);
    writeln!(out, "{border}")?;
    for (number, shares) in span.threads.iter().enumerate() {
        for share in shares {
            write!(out, "{number:>6} | ")?;
            cells(out, span, &share.tally(section), || share.buckets(), section)?;
            writeln!(out, " | {} ({})", share.path, (form.file_size)(share.result.target_bytes))?;
        }
    }
    writeln!(out, "{border}")?;
    write!(out, "total:   ")?;
    cells(out, span, &span.samples(section).tally, || span.buckets(), section)?;
    writeln!(out)
}

/// From the bytes on; a thread's row goes on with the file.
fn cells(
    out: &mut String,
    span: &Span<'_>,
    tally: &Tally,
    buckets: impl FnOnce() -> Buckets,
    section: Section,
) -> Result {
    throughput(out, tally, span.elapsed_s)?;
    if span.requested.measure_latency {
        // 0.000 without I/Os, as in diskspd: the row says that there are none.
        write!(out, " | {:>8.3}", tally.mean_ns().unwrap_or(0.0) / 1e6)?;
    }
    if span.requested.iops_deviation {
        match buckets().iops_deviation(section) {
            Some(deviation) => write!(out, " | {deviation:>10.2}")?,
            None => write!(out, " |        N/A")?,
        }
    }
    if span.requested.measure_latency {
        match tally.deviation_ns() {
            Some(deviation_ns) => write!(out, " |  {:>8.3}", deviation_ns / 1e6)?,
            None => write!(out, " |       N/A")?,
        }
    }
    Ok(())
}

fn throughput(out: &mut String, tally: &Tally, elapsed_s: f64) -> Result {
    let Tally { bytes, count, .. } = *tally;
    let (mib_per_s, iops) = (bytes as f64 / MIB / elapsed_s, count as f64 / elapsed_s);
    write!(out, "{bytes:>15} | {count:>12} | {mib_per_s:>10.2} | {iops:>10.2}")
}

/// ```text
///   %-ile |  Read (ms) | Write (ms) | Total (ms)
/// ```
///
/// A percentile with fewer than ten samples above it is `N/A`, as is all of a direction without samples.
pub(crate) fn percentiles(out: &mut String, results: &[Named<'_>]) -> Result {
    let [read, write, total] = Section::READ_WRITE_TOTAL.map(|section| Samples::collect(results, section));
    let row = |out: &mut String, name: &str, value: &dyn Fn(&Samples) -> Option<u64>| {
        let [read, write, total] = [&read, &write, &total].map(|samples| milliseconds(value(samples)));
        writeln!(out, "{name:>7} | {read:>10} | {write:>10} | {total:>10}")
    };
    writeln!(out, "  %-ile |  Read (ms) | Write (ms) | Total (ms)")?;
    writeln!(out, "----------------------------------------------")?;
    row(out, "min", &Samples::shortest_ns)?;
    for (percent, name) in PERCENTILES {
        row(out, name, &|samples| samples.percentile_ns(percent))?;
    }
    row(out, "max", &Samples::longest_ns)
}

fn milliseconds(ns: Option<u64>) -> String {
    ns.map_or_else(|| "N/A".into(), |ns| format!("{:.3}", ns as f64 / 1e6))
}

/// The sums over several timespans; one that was interrupted before it was measured is not among them.
fn totals(out: &mut String, spans: &[Span<'_>], form: Form) -> Result {
    let measured = || spans.iter().filter(|span| span.is_measured());
    let elapsed_s: f64 = measured().map(|span| span.elapsed_s).sum();
    let sum = |section| {
        let tallies = measured().map(|span| span.samples(section).tally);
        tallies.fold(Tally::default(), |sum, tally| sum.plus(&tally))
    };
    let line = "-".repeat(79);
    write!(out, "\n\nTotals:\n{STARS}\n")?;
    writeln!(out, "type   |       bytes     |     I/Os     | {} |  I/O per s", form.unit)?;
    writeln!(out, "{line}")?;
    for (name, section) in [("write", Section::Write), ("read", Section::Read), ("total", Section::Total)] {
        if section == Section::Total {
            writeln!(out, "{line}")?;
        }
        write!(out, "{name:<7}| ")?;
        match elapsed_s {
            0.0 => throughput(out, &Tally::default(), 1.0)?,
            _ => throughput(out, &sum(section), elapsed_s)?,
        }
        writeln!(out)?;
    }
    writeln!(out, "\ntotal test time:\t{elapsed_s:.2}s")
}
