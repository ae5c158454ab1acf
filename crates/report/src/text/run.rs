use super::table::{Align, Cell, Table};
use super::{Ink, Style, clean, clip, wrap};
use crate::number;
use workload::{Backend, CoreUse, Direction, LatencyHistogram, RunResult, Slice};

/// From the median to nine nines, as diskspd prints them.
const PERCENTILES: [(&str, f64); 14] = [
    ("25", 25.0),
    ("50", 50.0),
    ("75", 75.0),
    ("90", 90.0),
    ("95", 95.0),
    ("99", 99.0),
    ("99.9", 99.9),
    ("99.99", 99.99),
    ("99.999", 99.999),
    ("99.9999", 99.9999),
    ("99.99999", 99.99999),
    ("99.999999", 99.999999),
    ("99.9999999", 99.9999999),
    ("max", 100.0),
];
/// Threads whose I/Os differ by more than this share are shown one by one.
const THREADS_DIFFER: f64 = 0.1;
const THREADS_MAX: usize = 16;
const CORES_MAX: usize = 64;

/// What a load run gave: totals, reads and writes, percentiles, errors, the course, threads and cores.
pub fn run(result: &RunResult, style: &Style) -> String {
    let sections = [
        opening(result, style),
        totals(result, style),
        percentiles(result, style),
        errors(result, style),
        course(result, style),
        threads(result, style),
        cores(result, style),
    ];
    let filled: Vec<String> =
        sections.iter().filter(|lines| !lines.is_empty()).map(|lines| lines.join("\n")).collect();
    filled.join("\n\n") + "\n"
}

fn opening(result: &RunResult, style: &Style) -> Vec<String> {
    let workload = &result.workload;
    let backend = match result.backend {
        Backend::IoUring => "io_uring",
        Backend::Blocking => "blocking I/O",
        Backend::Mapped => "memory mapping",
        Backend::Foreign => result.tool.as_deref().unwrap_or("another tool"),
    };
    let asked = format!(
        "{}, {} outstanding x {} {}, {backend}",
        workload.shape,
        workload.outstanding,
        workload.threads,
        if workload.threads == 1 { "thread" } else { "threads" },
    );
    let cpu = result
        .cpu_ns_per_io()
        .map_or("CPU not known".into(), |ns| format!("{} CPU an I/O", number::time(ns)));
    let gave = format!(
        "{} IOPS, {} MiB/s, {} outstanding on average, {cpu}",
        number::rate(result.iops()),
        number::rate(result.mib_per_s()),
        number::rate(result.outstanding()),
    );
    let target = clean(&format!(
        "{}, {} measured from {}",
        result.target,
        number::duration(result.elapsed_s()),
        number::instant(result.started_unix_ns)
    ));
    let mut lines = vec![style.heading(&asked), clip(&target, style.columns()), style.heading(&gave)];
    if result.interrupted {
        lines.push("ended early by the user: the figures cover the time until then".into());
    }
    lines
}

fn totals(result: &RunResult, style: &Style) -> Vec<String> {
    let mut table = Table::new(&[
        ("", Align::Left),
        ("I/Os", Align::Right),
        ("bytes", Align::Right),
        ("IOPS", Align::Right),
        ("MiB/s", Align::Right),
        ("mean", Align::Right),
        ("deviation", Align::Right),
        ("failed", Align::Right),
    ]);
    let seconds = result.elapsed_s();
    let mut push = |name: &'static str, count: u64, bytes: u64, latency: &LatencyHistogram, failed: u64| {
        let rate =
            |amount: f64| if seconds > 0.0 { number::rate(amount / seconds) } else { number::NONE.into() };
        let optional = |ns: Option<f64>| ns.map_or(number::NONE.into(), number::time);
        table.push(vec![
            name.into(),
            number::count(count).into(),
            workload::format_bytes(bytes).into(),
            rate(count as f64).into(),
            rate(bytes as f64 / 1_048_576.0).into(),
            optional(latency.mean_ns()).into(),
            optional(latency.deviation_ns()).into(),
            number::count(failed).into(),
        ]);
    };
    for (name, direction) in [("read", &result.read), ("write", &result.write)] {
        push(name, direction.count, direction.bytes, &direction.latency, direction.failed());
    }
    let bytes = result.read.bytes.saturating_add(result.write.bytes);
    push("total", result.ios(), bytes, &result.latency(), result.failed());
    table.lines(style)
}

fn percentiles(result: &RunResult, style: &Style) -> Vec<String> {
    let both = result.latency();
    let histograms = [&result.read.latency, &result.write.latency, &both];
    if both.count() == 0 {
        return vec!["No I/O completed: there are no latencies".into()];
    }
    let mut table = Table::new(&[
        ("percentile", Align::Right),
        ("read", Align::Right),
        ("write", Align::Right),
        ("total", Align::Right),
    ]);
    let least = |histogram: &LatencyHistogram| {
        histogram.min_ns().map_or(number::NONE.into(), |ns| format!("{} ", number::time(ns as f64)))
    };
    let mut row: Vec<Cell> = vec!["min".into()];
    row.extend(histograms.iter().map(|histogram| Cell::from(least(histogram))));
    table.push(row);
    let mut marked = false;
    for (name, percent) in PERCENTILES {
        let mut row: Vec<Cell> = vec![name.into()];
        for histogram in histograms {
            let longest = percent >= 100.0;
            let thin = !longest && !histogram.supports_percentile(percent);
            let ns = if longest { histogram.max_ns() } else { histogram.percentile_ns(percent) };
            row.push(match ns {
                None => number::NONE.into(),
                Some(ns) => {
                    marked |= thin;
                    let text = format!("{}{}", number::time(ns as f64), if thin { "*" } else { " " });
                    Cell::inked(text, if thin { Ink::Dim } else { Ink::Plain })
                }
            });
        }
        table.push(row);
    }
    let mut lines = table.lines(style);
    if marked {
        lines.push("  * fewer than ten I/Os took longer: little more than the maximum".into());
    }
    lines
}

fn errors(result: &RunResult, style: &Style) -> Vec<String> {
    let of = |name: &'static str, direction: &Direction| {
        let lines = direction.errors.iter().map(|(errno, count)| {
            let plural = if *count == 1 { "" } else { "s" };
            format!("  {} {name}{plural} failed with {}", number::count(*count), errno_name(*errno))
        });
        lines.collect::<Vec<String>>()
    };
    let mut lines = of("read", &result.read);
    lines.extend(of("write", &result.write));
    if !lines.is_empty() {
        lines.insert(0, style.heading("Errors"));
    }
    lines
}

/// Linux's name of an error and what it means for storage.
fn errno_name(errno: i32) -> String {
    let (name, meaning) = match errno {
        1 => ("EPERM", "not permitted"),
        4 => ("EINTR", "interrupted"),
        5 => ("EIO", "input/output error or short transfer"),
        9 => ("EBADF", "file not open for this"),
        11 => ("EAGAIN", "out of requests"),
        12 => ("ENOMEM", "out of memory"),
        16 => ("EBUSY", "busy"),
        22 => ("EINVAL", "refused, often for its alignment"),
        27 => ("EFBIG", "beyond the largest file"),
        28 => ("ENOSPC", "no space left"),
        30 => ("EROFS", "read-only file system"),
        52 => ("EBADE", "invalid exchange"),
        61 => ("ENODATA", "medium error"),
        62 => ("ETIME", "timer expired"),
        84 => ("EILSEQ", "failed integrity check"),
        95 => ("EOPNOTSUPP", "not supported"),
        110 => ("ETIMEDOUT", "timed out"),
        121 => ("EREMOTEIO", "device error"),
        122 => ("EDQUOT", "quota exceeded"),
        125 => ("ECANCELED", "cancelled"),
        _ => return format!("errno {errno}"),
    };
    format!("{name} ({meaning})")
}

fn course(result: &RunResult, style: &Style) -> Vec<String> {
    let mut begin_ns = 0;
    let rates: Vec<(f64, f64)> = result
        .series
        .iter()
        .filter_map(|slice: &Slice| {
            let seconds = slice.end_ns.saturating_sub(begin_ns) as f64 / 1e9;
            begin_ns = slice.end_ns;
            let total = slice.total();
            let (ios, stall) = (total.count as f64, total.stall_ns as f64);
            // The rate of a last sliver of a second is noise.
            (seconds >= 0.5).then(|| (ios / seconds, stall / ios))
        })
        .collect();
    let range = |of: fn(&(f64, f64)) -> f64| {
        let values = || rates.iter().map(of).filter(|value| value.is_finite());
        values().min_by(f64::total_cmp).zip(values().max_by(f64::total_cmp))
    };
    let Some((low, high)) = range(|(iops, _)| *iops) else { return Vec::new() };
    let mut text = format!("second by second: {} to {} IOPS", number::rate(low), number::rate(high));
    if let Some((low, high)) = range(|(_, latency_ns)| *latency_ns) {
        text.push_str(&format!(", mean latency {} to {}", number::time(low), number::time(high)));
    }
    let longest = result.series.iter().map(|slice| slice.total().ns_max).max();
    text.push_str(&format!(
        ", longest I/O {}",
        longest.map_or(number::NONE.into(), |ns| number::time(ns as f64))
    ));
    wrap(&text, style.columns() - 2, 2).iter().map(|line| format!("  {line}")).collect()
}

fn threads(result: &RunResult, style: &Style) -> Vec<String> {
    let threads = &result.threads;
    let ios = || threads.iter().map(|thread| thread.total().count);
    let (least, most) = (ios().min(), ios().max());
    let (Some(least), Some(most)) = (least, most) else { return Vec::new() };
    let busy = format!("the busiest used {} of a core", number::share(result.thread_busy_max()));
    if threads.len() == 1 {
        return vec![format!(
            "  one thread, which used {} of a core",
            number::share(result.thread_busy_max())
        )];
    }
    let spread = (most - least) as f64 / most.max(1) as f64;
    if spread <= THREADS_DIFFER {
        let agree = format!("  {} threads agree within {}; {busy}", threads.len(), number::share(spread));
        return vec![agree];
    }
    let mut lines = vec![style.heading(&format!("Threads differ by {}; {busy}", number::share(spread)))];
    let mut table = Table::new(&[
        ("thread", Align::Right),
        ("I/Os", Align::Right),
        ("share", Align::Right),
        ("bytes", Align::Right),
        ("CPU", Align::Right),
    ]);
    for (at, thread) in threads.iter().enumerate().take(THREADS_MAX) {
        let total = thread.total();
        table.push(vec![
            at.to_string().into(),
            number::count(total.count).into(),
            number::share(total.count as f64 / result.ios().max(1) as f64).into(),
            workload::format_bytes(total.bytes).into(),
            number::time(thread.cpu_ns as f64).into(),
        ]);
    }
    lines.extend(table.lines(style));
    if threads.len() > THREADS_MAX {
        lines.push(format!("  and {} more", threads.len() - THREADS_MAX));
    }
    lines
}

fn cores(result: &RunResult, style: &Style) -> Vec<String> {
    if result.cores.is_empty() {
        return Vec::new();
    }
    let mut table = Table::new(&[
        ("core", Align::Right),
        ("busy", Align::Right),
        ("user", Align::Right),
        ("kernel", Align::Right),
        ("idle", Align::Right),
    ]);
    let percent = |value: f64| Cell::from(number::share(value / 100.0));
    let mut push = |name: String, core: &CoreUse| {
        let busy = percent(core.user_percent + core.kernel_percent);
        let (user, kernel) = (percent(core.user_percent), percent(core.kernel_percent));
        table.push(vec![name.into(), busy, user, kernel, percent(core.idle_percent)]);
    };
    for core in result.cores.iter().take(CORES_MAX) {
        push(core.core.to_string(), core);
    }
    let mean = |of: fn(&CoreUse) -> f64| result.cores.iter().map(of).sum::<f64>() / result.cores.len() as f64;
    let all = CoreUse {
        core: 0,
        user_percent: mean(|core| core.user_percent),
        kernel_percent: mean(|core| core.kernel_percent),
        idle_percent: mean(|core| core.idle_percent),
    };
    push("mean".into(), &all);
    let mut lines = vec![style.heading("CPU of the whole machine")];
    lines.extend(table.lines(style));
    if result.cores.len() > CORES_MAX {
        lines.push(format!("  {CORES_MAX} of {} cores", result.cores.len()));
    }
    lines
}
