//! The part of a text report that repeats the request.

use crate::profile::{CacheMode, Content, Distribution, FlushMode, Order, Priority, Profile, SpanUnit};
use crate::profile::{Target, Throughput, TimeSpan};
use std::fmt::{Result, Write};

/// Where the two text forms differ in what both tell.
#[derive(Clone, Copy)]
pub(crate) struct Form {
    /// Heading of the throughput column, ten characters.
    pub unit: &'static str,
    /// Size of a file in a thread's row.
    pub file_size: fn(u64) -> String,
    /// A size among the parameters.
    pub size: fn(u64) -> String,
    /// "... operations", "... operations per thread".
    pub outstanding: &'static str,
    /// Says that a thread stride is 0.
    pub always_tells_stride: bool,
    /// Before the heading of a time span's results.
    pub before_span: &'static str,
}

/// ```text
/// Command Line: diskspd -b8K -d10 -L /data/t.dat
///
/// Input parameters:
///
///         timespan:   1
///         -------------
///         duration: 10s
///         ...
/// ```
pub(crate) fn parameters(out: &mut String, command_line: &str, profile: &Profile, form: Form) -> Result {
    write!(out, "\nCommand Line: {command_line}\n\n")?;
    if profile.experiment_flags != 0 {
        write!(out, "Experiment Flags: {0:#x} ({0})\n\n", profile.experiment_flags)?;
    }
    write!(out, "Input parameters:\n\n")?;
    if profile.verbose {
        writeln!(out, "\tusing verbose mode")?;
    }
    for (at, span) in profile.time_spans.iter().enumerate() {
        writeln!(out, "\ttimespan: {:>3}\n\t-------------", at + 1)?;
        time_span(out, span, form)?;
        writeln!(out)?;
    }
    Ok(())
}

fn time_span(out: &mut String, span: &TimeSpan, form: Form) -> Result {
    writeln!(out, "\tduration: {}s", span.duration_s)?;
    writeln!(out, "\twarm up time: {}s", span.warm_up_s)?;
    writeln!(out, "\tcool down time: {}s", span.cool_down_s)?;
    if span.disable_affinity {
        writeln!(out, "\taffinity disabled")?;
    }
    if span.measure_latency {
        writeln!(out, "\tmeasuring latency")?;
    }
    if span.iops_deviation {
        writeln!(out, "\tgathering IOPS at intervals of {}ms", span.bucket_ms)?;
    }
    writeln!(out, "\trandom seed: {}", span.seed)?;
    if span.threads_total != 0 {
        writeln!(out, "\tthread pool with {} threads", span.threads_total)?;
        writeln!(out, "\tnumber of outstanding I/O operations per thread: {}", span.outstanding_total)?;
    }
    if !span.affinity.is_empty() {
        let cpus: Vec<String> =
            span.affinity.iter().map(|cpu| format!("{}/{}", cpu.group, cpu.processor)).collect();
        writeln!(out, "\tadvanced affinity round robin (group/core): {}", cpus.join(", "))?;
    }
    if span.random_write_data {
        writeln!(out, "\tgenerating random data for each write IO")?;
        writeln!(out, "\t  WARNING: this increases the CPU cost of issuing writes and should only")?;
        writeln!(out, "\t           be compared to other results using the -Zr flag")?;
    }
    span.targets.iter().try_for_each(|one| target(out, one, span, form))
}

fn target(out: &mut String, target: &Target, span: &TimeSpan, form: Form) -> Result {
    match target.path.strip_prefix('*') {
        Some(template) => writeln!(out, "\tpath: template target '{template}'")?,
        None => writeln!(out, "\tpath: '{}'", target.path)?,
    }
    writeln!(out, "\t\tthink time: {}ms", target.think_time_ms)?;
    writeln!(out, "\t\tburst size: {}", target.burst_ios)?;
    caches(out, target)?;
    content(out, target, form)?;
    order(out, target, form)?;
    if span.shares_outstanding() {
        writeln!(out, "\t\trelative IO weight in thread pool: {}", target.weight)?;
    } else {
        writeln!(out, "\t\t{}: {}", form.outstanding, target.outstanding)?;
    }
    extent(out, target, form)?;
    if span.threads_total == 0 {
        writeln!(out, "\t\tthreads per file: {}", target.threads)?;
        match span.completion_routines {
            _ if target.outstanding <= 1 => {}
            true => writeln!(out, "\t\tusing completion routines (ReadFileEx/WriteFileEx)")?,
            false => writeln!(out, "\t\tusing I/O Completion Ports")?,
        }
    }
    let priority = match target.priority {
        Priority::VeryLow => "very low",
        Priority::Low => "low",
        Priority::Normal => "normal",
    };
    writeln!(out, "\t\tIO priority: {priority}")?;
    match target.throughput {
        None | Some(Throughput::Iops(0) | Throughput::BytesPerMs(0)) => {}
        Some(Throughput::Iops(iops)) => writeln!(out, "\t\tthroughput rate-limited to {iops} IOPS")?,
        Some(Throughput::BytesPerMs(bytes)) => writeln!(out, "\t\tthroughput rate-limited to {bytes} B/ms")?,
    }
    match &target.distribution {
        Some(ranges) => distribution(out, ranges),
        None => Ok(()),
    }
}

fn caches(out: &mut String, target: &Target) -> Result {
    let software = match target.cache {
        CacheMode::Cached => "using software cache",
        CacheMode::RemoteOnly => "local software cache disabled, remote cache enabled",
        CacheMode::Unbuffered => "software cache disabled",
    };
    writeln!(out, "\t\t{software}")?;
    let hardware = match (target.write_through, target.cache) {
        (false, _) => "using hardware write cache, writethrough off",
        (true, CacheMode::Unbuffered) => "hardware write cache disabled, writethrough on",
        (true, _) => "hardware and software write caches disabled, writethrough on",
    };
    writeln!(out, "\t\t{hardware}")?;
    if target.mapped {
        let flush = match target.flush {
            None => "",
            Some(FlushMode::ViewOfFile) => ", flush mode: FlushViewOfFile",
            Some(FlushMode::NonVolatileMemory) => ", flush mode: FlushNonVolatileMemory",
            Some(FlushMode::NonVolatileMemoryNoDrain) => ", flush mode: FlushNonVolatileMemory with no drain",
        };
        writeln!(out, "\t\tmemory mapped I/O enabled{flush}")?;
    }
    Ok(())
}

fn content(out: &mut String, target: &Target, form: Form) -> Result {
    match &target.content {
        Content::Counting => Ok(()),
        Content::Zero => writeln!(out, "\t\tzeroing write buffers"),
        Content::Buffer { bytes, file } => {
            writeln!(out, "\t\twrite buffer size: {}", (form.size)(*bytes))?;
            match file {
                Some(file) => writeln!(out, "\t\twrite buffer source: '{file}'"),
                None => writeln!(out, "\t\twrite buffer source: random fill"),
            }
        }
    }
}

fn order(out: &mut String, target: &Target, form: Form) -> Result {
    if target.same_offset {
        writeln!(out, "\t\tusing parallel async I/O")?;
    }
    match target.write_percent {
        0 => writeln!(out, "\t\tperforming read test")?,
        100.. => writeln!(out, "\t\tperforming write test")?,
        writes => writeln!(
            out,
            "\t\tperforming mix test (read/write ratio: {reads}/{writes})",
            reads = 100 - writes
        )?,
    }
    writeln!(out, "\t\tblock size: {}", (form.size)(u64::from(target.block_bytes)))?;
    let align = (form.size)(target.align());
    match target.order() {
        Order::Random => writeln!(out, "\t\tusing random I/O (alignment: {align})"),
        Order::Mixed => writeln!(
            out,
            "\t\tusing mixed random/sequential I/O ({}% random) (alignment/stride: {align})",
            target.random_percent
        ),
        Order::Interlocked => writeln!(out, "\t\tusing interlocked sequential I/O (stride: {align})"),
        Order::Sequential | Order::SameOffset => {
            writeln!(out, "\t\tusing sequential I/O (stride: {align})")
        }
    }
}

fn extent(out: &mut String, target: &Target, form: Form) -> Result {
    if target.base_bytes != 0 {
        writeln!(out, "\t\tbase file offset: {}", (form.size)(target.base_bytes))?;
    }
    if let Some(end_bytes) = target.end_bytes {
        writeln!(out, "\t\tmax file size: {}", (form.size)(end_bytes))?;
    }
    if target.thread_stride_bytes != 0 || form.always_tells_stride {
        writeln!(out, "\t\tthread stride size: {}", (form.size)(target.thread_stride_bytes))?;
    }
    let hints = [
        (target.hint_sequential, "FILE_FLAG_SEQUENTIAL_SCAN"),
        (target.hint_random, "FILE_FLAG_RANDOM_ACCESS"),
        (target.hint_temporary, "FILE_ATTRIBUTE_TEMPORARY"),
    ];
    let mut given = hints.iter().filter(|(given, _)| *given);
    given.try_for_each(|(_, hint)| writeln!(out, "\t\tusing {hint} hint"))
}

fn distribution(out: &mut String, distribution: &Distribution) -> Result {
    writeln!(out, "\t\tIO Distribution:")?;
    let mut from = 0_u64;
    for range in &distribution.ranges {
        let to = from.saturating_add(range.span);
        write!(out, "\t\t   {:>3}% of IO => [", range.ios_percent)?;
        match (distribution.unit, range.span) {
            (SpanUnit::Percent, _) => writeln!(out, "{from:>2}% - {to:>3}%) of target")?,
            // No span: up to the end of the target.
            (SpanUnit::Bytes, 0) => writeln!(out, "{} -       end)", place(from))?,
            (SpanUnit::Bytes, _) => writeln!(out, "{} - {})", place(from), place(to))?,
        }
        from = to;
    }
    Ok(())
}

/// An offset in a column: "     0   ", "    10GiB", "  1.95MiB".
fn place(bytes: u64) -> String {
    match (bytes, unit_of(bytes)) {
        (0, _) => "     0   ".into(),
        (_, None) => bytes.to_string(),
        (_, Some((shift, name))) if bytes.is_multiple_of(1 << shift) => {
            format!("{:>6}{name}", bytes >> shift)
        }
        (_, Some((shift, name))) => format!("{:>6.2}{name}", bytes as f64 / (1_u64 << shift) as f64),
    }
}

/// A size as diskspd 2.2 tells it: "64KiB", "1.95MiB" where it is no multiple of the unit, "512".
pub(crate) fn size(bytes: u64) -> String {
    match unit_of(bytes) {
        None => bytes.to_string(),
        Some((shift, name)) if bytes.is_multiple_of(1 << shift) => format!("{}{name}", bytes >> shift),
        Some((shift, name)) => format!("{:.2}{name}", bytes as f64 / (1_u64 << shift) as f64),
    }
}

/// The largest unit that the size has one of.
fn unit_of(bytes: u64) -> Option<(u32, &'static str)> {
    [(40, "TiB"), (30, "GiB"), (20, "MiB"), (10, "KiB")].into_iter().find(|(shift, _)| bytes >> shift > 0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::profile::Range;

    #[test]
    fn sizes_are_exact_or_have_two_decimals() {
        let cases = [(0, "0"), (1023, "1023"), (1024, "1KiB"), (65536, "64KiB"), (100 << 10, "100KiB")];
        for (bytes, text) in cases.into_iter().chain([(2000 << 10, "1.95MiB"), (3 << 40, "3TiB")]) {
            assert_eq!(size(bytes), text);
        }
    }

    #[test]
    fn ranges_of_bytes_line_up_and_the_last_one_is_open() {
        let range = |ios_percent, span| Range { ios_percent, span };
        let ranges = vec![range(10, 1 << 30), range(0, 512 << 10), range(70, 3 << 30)];
        let mut out = String::new();
        distribution(&mut out, &Distribution::new(SpanUnit::Bytes, ranges)).unwrap();
        let lines: Vec<&str> = out.lines().map(str::trim).collect();
        assert_eq!(lines[1], "10% of IO => [     0    -      1GiB)");
        assert_eq!(lines[2], "0% of IO => [     1GiB -   1.00GiB)");
        assert_eq!(lines[3], "70% of IO => [  1.00GiB -   4.00GiB)");
        assert_eq!(lines[4], "20% of IO => [  4.00GiB -       end)");
    }
}
