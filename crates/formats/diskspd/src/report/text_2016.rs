//! The text report of diskspd 2.0.17 (2016), for scripts that were written for it.

use crate::report::Report;
use crate::report::parameters::{Form, parameters};
use crate::report::tables::{io_tables, percentiles, time_spans};
use crate::report::text::{average, percents, written};
use crate::report::view::Span;
use std::fmt::{Result, Write};
use workload::CoreUse;

const FORM: Form = Form {
    // Divided by 1024 x 1024 then, too.
    unit: "    MB/s  ",
    file_size,
    size: |bytes| bytes.to_string(),
    outstanding: "number of outstanding I/O operations",
    always_tells_stride: true,
    before_span: "\n\n",
};

/// The report that diskspd 2.0.17 prints, with the corrections of [`text`](crate::report::text). Requests
/// unknown to that version (a thread pool's outstanding I/Os, ranges, mixed order, rates in IOPS, ...) are
/// reported in the words of 2.2.
pub fn text_2016(report: &Report<'_>) -> String {
    written(|out| {
        parameters(out, report.command_line, report.profile, FORM)?;
        time_spans(out, report, FORM, |out, span| time_span(out, span, report.system.cpus.len()))
    })
}

fn time_span(out: &mut String, span: &Span<'_>, cpus: usize) -> Result {
    writeln!(out, "proc count:\t\t{}", span.cores().len().max(cpus))?;
    cpu_table(out, span.cores())?;
    io_tables(out, span, FORM)?;
    if span.requested.measure_latency {
        write!(out, "\n\n")?;
        percentiles(out, &span.results)?;
    }
    Ok(())
}

fn cpu_table(out: &mut String, cores: &[CoreUse]) -> Result {
    if cores.is_empty() {
        return Ok(());
    }
    let border = "-".repeat(43);
    writeln!(out, "\nCPU |  Usage |  User  |  Kernel |  Idle\n{border}")?;
    for core in cores {
        writeln!(out, "{:>4}| {}", core.core, percents(core, "|  "))?;
    }
    writeln!(out, "{border}\navg.| {}", percents(&average(cores), "|  "))
}

/// Cut down to whole units, of which there are more than ten: "11GB", "64KB", "10240B".
fn file_size(bytes: u64) -> String {
    let units = [(30, "GB"), (20, "MB"), (10, "KB")];
    let larger = units.into_iter().find(|(shift, _)| bytes > 10_u64 << shift);
    larger.map_or_else(|| format!("{bytes}B"), |(shift, name)| format!("{}{name}", bytes >> shift))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_unit_begins_above_ten_of_it() {
        let cases = [(10 << 30, "10240MB"), ((10 << 30) + 1, "10GB"), (11 << 30, "11GB"), (10240, "10240B")];
        for (bytes, text) in cases.into_iter().chain([(64 << 10, "64KB"), (0, "0B")]) {
            assert_eq!(file_size(bytes), text);
        }
    }
}
