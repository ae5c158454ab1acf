//! The "Input parameters" of the text: a line says one thing, in words.

use super::{Cache, Span, Target, buffer};
use crate::{ImportError, Note};
use std::str::FromStr;
use workload::{Content, Extent, Zone};

/// A line of the text with its number.
pub(super) type Line<'a> = (usize, &'a str);

/// Takes in one line of the parameters; a line that says nothing known is noted, not refused.
pub(super) fn take(span: &mut Span, line: Line<'_>, notes: &mut Vec<Note>) -> Result<(), ImportError> {
    let (number, text) = line;
    if let Some(path) = text.strip_prefix("path: ") {
        let path = path.trim_start_matches("template target ").trim_matches('\'');
        span.targets.push(Target { path: path.into(), ..Target::default() });
        return Ok(());
    }
    let understood = match span.targets.last_mut() {
        None => of_span(span, line)?,
        Some(target) => of_target(target, line)?,
    };
    if !understood {
        notes.push(Note::at(number, format!("a workload of ours has no word for: {text}")));
    }
    Ok(())
}

fn of_span(span: &mut Span, line: Line<'_>) -> Result<bool, ImportError> {
    let (_, text) = line;
    if let Some((key, value)) = text.split_once(": ") {
        let at = |value| number(line, value);
        match key {
            "duration" => span.duration_s = at(value.trim_end_matches('s'))?,
            "warm up time" => span.warm_up_s = at(value.trim_end_matches('s'))?,
            "cool down time" => span.cool_down_s = at(value.trim_end_matches('s'))?,
            "random seed" => span.seed = number(line, value)?,
            "number of outstanding I/O operations per thread" => span.pool_outstanding = at(value)?,
            "advanced affinity round robin (group/core)" => {}
            _ => return Ok(text.starts_with("WARNING")),
        }
    } else if let Some(ms) = text.strip_prefix("gathering IOPS at intervals of ") {
        span.bucket_ms = Some(number(line, ms.trim_end_matches("ms"))?);
    } else if let Some(pool) = text.strip_prefix("thread pool with ") {
        span.pool_threads = number(line, pool.trim_end_matches(" threads"))?;
    } else {
        match text {
            "measuring latency" => span.latency = true,
            "generating random data for each write IO" => span.fresh_content = true,
            "affinity disabled" | "using verbose mode" => {}
            _ => return Ok(text.starts_with("WARNING") || text.chars().all(|c| c == '-')),
        }
    }
    Ok(true)
}

fn of_target(target: &mut Target, line: Line<'_>) -> Result<bool, ImportError> {
    let (_, text) = line;
    if text.contains("% of IO => [") {
        target.zones.extend(zones(&target.zones, line)?);
        return Ok(true);
    }
    if let Some((use_of, size)) = text.strip_suffix(')').and_then(|text| text.rsplit_once(": ")) {
        if let Some(pattern) = use_of.strip_prefix("using ") {
            return pattern_of(target, pattern, bytes(line, size)?, line);
        }
        if let Some(mix) = text.strip_prefix("performing mix test (read/write ratio: ") {
            let writes = mix.trim_end_matches(')').rsplit('/').next().unwrap_or_default();
            target.write_percent = number(line, writes)?;
            return Ok(true);
        }
        // 2.0.15: "(write/read ratio: 30/100)" are 30 % writes.
        if let Some(mix) = text.strip_prefix("performing mix test (write/read ratio: ") {
            let writes = mix.split('/').next().unwrap_or_default();
            target.write_percent = number(line, writes)?;
            return Ok(true);
        }
    }
    if let Some(limit) = text.strip_prefix("throughput rate-limited to ") {
        let (value, unit) = limit.split_once(' ').unwrap_or((limit, ""));
        match unit {
            "IOPS" => target.limit_iops = Some(number::<u32>(line, value)?.into()),
            _ => target.limit_bytes_per_ms = Some(number::<u32>(line, value)?.into()),
        }
        return Ok(true);
    }
    let Some((key, value)) = text.split_once(": ") else {
        return Ok(state(target, text));
    };
    match key {
        "think time" => target.think_ms = number(line, value.trim_end_matches("ms"))?,
        "burst size" => target.burst_ios = number(line, value)?,
        "block size" => {
            target.block_bytes = bytes(line, value)?;
            target.block_is_rounded = value.contains('.');
        }
        "number of outstanding I/O operations" | "number of outstanding I/O operations per thread" => {
            target.outstanding = Some(number(line, value)?);
        }
        "relative IO weight in thread pool" => target.weight = Some(number(line, value)?),
        "base file offset" => target.base_bytes = bytes(line, value)?,
        "max file size" => target.end_bytes = bytes(line, value)?,
        // 2.0.15 names the stride of sequential I/O apart from its pattern.
        "stride size" => {
            let stride_bytes = bytes(line, value)?;
            if target.align_bytes == 0 {
                target.align_bytes = stride_bytes;
            }
        }
        "thread stride size" => target.thread_stride_bytes = bytes(line, value)?,
        "threads per file" => target.threads = Some(number(line, value)?),
        "write buffer size" => target.content = Some(buffer(bytes(line, value)?, None)),
        "write buffer source" => {
            if let (Some(Content::Buffer { bytes, .. }), Some(file)) =
                (&target.content, value.strip_prefix('\''))
            {
                target.content = Some(buffer(*bytes, Some(file.trim_end_matches('\'').into())));
            }
        }
        "IO priority" => return Ok(value == "normal"),
        "memory mapped I/O enabled, flush mode" => target.mapped = true,
        _ => return Ok(state(target, text)),
    }
    Ok(true)
}

/// Lines that say one thing without a value.
fn state(target: &mut Target, text: &str) -> bool {
    match text {
        "using software cache" => target.cache = Cache::Software,
        "local software cache disabled, remote cache enabled" => target.cache = Cache::RemoteOnly,
        "software cache disabled" => target.cache = Cache::None,
        // 2.0.15.
        "software and hardware cache disabled" => {
            (target.cache, target.write_through) = (Cache::None, true);
        }
        "using software and hardware cache" => target.cache = Cache::Software,
        "using hardware write cache, writethrough off" => target.write_through = false,
        "hardware write cache disabled, writethrough on"
        | "hardware and software write caches disabled, writethrough on" => target.write_through = true,
        "zeroing write buffers" => target.content = Some(Content::Zeros),
        "using parallel async I/O" => target.same_offset = true,
        "performing read test" => target.write_percent = 0,
        "performing write test" => target.write_percent = 100,
        "using I/O Completion Ports" | "IO Distribution:" => {}
        _ if text.starts_with("memory mapped I/O enabled") => target.mapped = true,
        _ if text.starts_with("using completion routines") || text.starts_with("using FILE_") => {}
        _ if text.starts_with("WARNING") => {}
        _ => return false,
    }
    true
}

/// "random I/O (alignment", "mixed random/sequential I/O (20% random) (alignment/stride", ...
fn pattern_of(target: &mut Target, pattern: &str, align: u64, line: Line<'_>) -> Result<bool, ImportError> {
    target.align_bytes = align;
    if pattern.starts_with("random I/O") {
        target.random_percent = 100;
    } else if let Some(mix) = pattern.strip_prefix("mixed random/sequential I/O (") {
        target.random_percent = number(line, mix.split('%').next().unwrap_or_default())?;
    } else if pattern.starts_with("interlocked sequential I/O") {
        target.interlocked = true;
    } else {
        return Ok(pattern.starts_with("sequential I/O"));
    }
    Ok(true)
}

/// "   10% of IO => [ 0% -  10%) of target", "... => [     0    - 10GiB)": a zone, and the hole before it.
fn zones(before: &[Zone], line: Line<'_>) -> Result<Vec<Zone>, ImportError> {
    let wrong = || ImportError::at(line.0, format!("'{}' is not a zone of a distribution", line.1));
    let (ios, range) = line.1.split_once("% of IO => [").ok_or_else(wrong)?;
    let ios = ios.trim().parse::<f64>().ok().filter(|ios| (0.0..=100.0).contains(ios)).ok_or_else(wrong)?;
    let (from, to) = range.split_once(')').ok_or_else(wrong)?.0.split_once(" - ").ok_or_else(wrong)?;
    let percent = to.contains('%');
    let place = |text: &str| match text.trim().trim_end_matches('%') {
        "end" => Ok(None),
        text => bytes(line, text).map(Some),
    };
    let sum = before.iter().fold(0_u64, |sum, zone| match zone.extent {
        Extent::Percent(percent) => sum.saturating_add(percent.into()),
        Extent::Bytes(bytes) => sum.saturating_add(bytes),
    });
    let extent = |length: u64| match percent {
        true => u8::try_from(length).map(Extent::Percent).map_err(|_| wrong()),
        false => Ok(Extent::Bytes(length)),
    };
    let from = place(from)?.ok_or_else(wrong)?;
    let mut zones = Vec::new();
    if from > sum {
        zones.push(Zone { ios_percent: 0, extent: extent(from - sum)? });
    }
    // The zone to the end of the target is the rest that the other zones leave.
    if let Some(to) = place(to)? {
        let length = to.checked_sub(from).ok_or_else(wrong)?;
        zones.push(Zone { ios_percent: ios.round() as u8, extent: extent(length)? });
    }
    Ok(zones)
}

pub(super) fn number<T: FromStr>(line: Line<'_>, text: &str) -> Result<T, ImportError> {
    let wrong = || ImportError::at(line.0, format!("'{}' is not a number that fits here", text.trim()));
    text.trim().parse().map_err(|_| wrong())
}

fn bytes(line: Line<'_>, text: &str) -> Result<u64, ImportError> {
    workload::parse_bytes(text).map_err(|_| ImportError::at(line.0, format!("'{text}' is not a size")))
}
