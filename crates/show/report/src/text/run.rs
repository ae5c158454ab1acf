//! One run on about one screen.

use super::style::{Ink, Style};
use super::table::{Align, Table};
use super::wrap::{clean, clip, wrap};
use super::{course, errors, meaning, percentiles, shares};
use crate::wording::capability::device_line;
use crate::{number, wording};
use findings::Finding;
use workload::{Backend, Direction, LatencyFigures, RunResult};

/// A run: totals, percentiles, findings, errors, the rate over time; threads and cores where a finding is about them.
pub fn run(result: &RunResult, findings: &[Finding], style: &Style) -> String {
    let sections = [
        opening(result, style),
        totals(result, style),
        shares::members(result, style),
        percentiles::percentiles(result, style),
        meaning::meaning(findings, style),
        errors::errors(result, style),
        course::course(result, style),
        shares::threads(result, findings, style),
        shares::cores(result, findings, style),
    ];
    let filled: Vec<String> =
        sections.iter().filter(|lines| !lines.is_empty()).map(|lines| lines.join("\n")).collect();
    filled.join("\n\n") + "\n"
}

fn opening(result: &RunResult, style: &Style) -> Vec<String> {
    let backend = match result.backend {
        Backend::IoUring => "io_uring",
        Backend::Blocking => "blocking I/O",
        Backend::Mapped => "memory mapping",
        Backend::Foreign => result.tool.as_deref().unwrap_or("another tool"),
    };
    let load = format!("{}, {backend}", wording::workload::sentence(result));
    let size = match result.target_bytes {
        0 => String::new(),
        bytes => format!(" of {}", workload::format_bytes(bytes)),
    };
    let target = format!(
        "{}{size}, {} from {}",
        result.target,
        number::duration(result.elapsed_s()),
        number::instant(result.started_unix_ns)
    );
    let cpu = result.cpu_ns_per_io().filter(|ns| *ns > 0.0);
    let cpu = cpu.map_or("CPU not known".into(), |ns| format!("{} CPU an I/O", number::time(ns)));
    let outstanding = result.outstanding_known().map_or(number::NONE.into(), number::rate);
    let gave = format!(
        "{} IOPS, {} MiB/s, {outstanding} outstanding on average, {cpu}",
        number::rate(result.iops()),
        number::rate(result.mib_per_s()),
    );
    let mut lines = style.paragraph(Ink::Bold, &load, 0, 3);
    lines.extend(wrap(&clean(&target), style.columns(), 2));
    for device in &result.devices {
        lines.extend(style.paragraph(Ink::Plain, &clean(&device_line(device)), 2, 2));
    }
    lines.push(style.heading(&clip(&gave, style.columns())));
    lines
}

/// A row for each direction with I/Os, and their sum where there are two.
fn totals(result: &RunResult, style: &Style) -> Vec<String> {
    let failed = result.failed().saturating_add(result.sync.failed()) > 0;
    let mut titles = vec![
        ("", Align::Left),
        ("I/Os", Align::Right),
        ("bytes", Align::Right),
        ("IOPS", Align::Right),
        ("MiB/s", Align::Right),
        ("mean", Align::Right),
        ("deviation", Align::Right),
    ];
    if failed {
        titles.push(("failed", Align::Right));
    }
    let mut table = Table::new(&titles);
    let seconds = result.elapsed_s();
    let mut push =
        |name: &'static str, count: u64, bytes: Option<u64>, latency: &LatencyFigures, fails: u64| {
            let rate = |amount: f64| {
                if seconds > 0.0 { number::rate(amount / seconds) } else { number::NONE.into() }
            };
            let optional = |ns: Option<f64>| ns.map_or(number::NONE.into(), number::time);
            let mut row = vec![
                name.into(),
                number::count(count).into(),
                bytes.map_or(number::NONE.into(), workload::format_bytes).into(),
                rate(count as f64).into(),
                bytes.map_or(number::NONE.into(), |bytes| rate(bytes as f64 / 1_048_576.0)).into(),
                optional(latency.mean_ns()).into(),
                optional(latency.deviation_ns()).into(),
            ];
            if failed {
                row.push(number::count(fails).into());
            }
            table.push(row);
        };
    let used = |direction: &&Direction| direction.count > 0 || direction.failed() > 0;
    let shown =
        [("read", &result.read, result.read_latency()), ("write", &result.write, result.write_latency())];
    let shown: Vec<_> = shown.into_iter().filter(|(_, direction, _)| used(direction)).collect();
    for (name, each, latency) in &shown {
        push(name, each.count, Some(each.bytes), latency, each.failed());
    }
    if shown.len() != 1 {
        let bytes = result.read.bytes.saturating_add(result.write.bytes);
        push("total", result.ios(), Some(bytes), &result.total_latency(), result.failed());
    }
    if used(&&result.sync) {
        push("sync", result.sync.count, None, &result.sync_latency(), result.sync.failed());
    }
    table.lines(style)
}
