//! diskspd's XML (`-Rxml`): the profile as it was requested, and the timespans as measured.

use super::xml_tree::{Element, parse};
use super::{Cache, Percentiles, Row, Span, SpanTold, Target, Totals, buffer, phases, start_time};
use crate::document::fingerprint;
use crate::summary::{Summary, ms_to_ns, rounded, s_to_ns};
use crate::{Document, ImportError, Note};
use workload::{Content, CoreUse, Extent, Slice, Zone};

/// All results in the text.
pub(crate) fn read(text: &str) -> Result<Vec<Document>, ImportError> {
    let top = parse(text)?;
    let results: Vec<&Element> = top.iter().filter(|element| element.name == "Results").collect();
    if results.is_empty() {
        return Err(match top.first() {
            Some(other) => ImportError::at(other.line, format!("<{}> is no result of diskspd", other.name))
                .remedy("import what diskspd -Rxml printed: it begins with <Results>"),
            None => ImportError::new("the text holds no XML element"),
        });
    }
    let ends = results.iter().skip(1).map(|next| next.line).chain([usize::MAX]);
    let ranges = results.iter().zip(ends);
    ranges.map(|(result, end)| document(result, &part(text, result.line, end))).collect()
}

/// The timespans of a profile (`<Profile>`).
pub(super) fn profile_spans(text: &str) -> Result<Vec<Span>, ImportError> {
    let top = parse(text)?;
    let profile = top.iter().find(|element| element.name == "Profile");
    let profile = profile.ok_or_else(|| ImportError::new("the text holds no profile"))?;
    let spans = profile.wanted("TimeSpans")?.all("TimeSpan");
    spans.map(|span| parse_span(span, &mut Vec::new())).collect()
}

/// The lines of a result among others.
fn part(text: &str, first: usize, end: usize) -> String {
    let lines: Vec<&str> =
        text.lines().skip(first.saturating_sub(1)).take(end.saturating_sub(first)).collect();
    lines.join("\n")
}

fn document(results: &Element, text: &str) -> Result<Document, ImportError> {
    let system = results.child("System");
    let version = system.and_then(|system| system.child("Tool")).and_then(|tool| tool.words("Version"));
    let tool = version.map_or("diskspd".into(), |version| format!("diskspd {version}"));
    let started = system.and_then(|system| system.words("RunTime")).and_then(start_time);
    let profile = results.wanted("Profile")?.wanted("TimeSpans")?;
    let mut notes = Vec::new();
    let mut spans: Vec<Span> =
        profile.all("TimeSpan").map(|span| parse_span(span, &mut notes)).collect::<Result<_, _>>()?;
    for (index, told) in results.all("TimeSpan").enumerate() {
        let place = |error: ImportError| ImportError {
            place: Some(format!("Results/TimeSpan[{}]", index + 1)),
            ..error
        };
        let Some(span) = spans.get_mut(index) else {
            return Err(place(ImportError::at(told.line, "the profile has fewer timespans")));
        };
        let bucket_ms = span.bucket_ms;
        let block_bytes: Vec<(String, u64)> =
            span.targets.iter().map(|target| (target.path.clone(), target.block_bytes)).collect();
        span.told = span_told(told, bucket_ms, &block_bytes).map_err(place)?;
    }
    let phases = phases(spans, &tool, started, &mut notes)
        .map_err(|error| ImportError { line: error.line.or(Some(results.line)), ..error })?;
    Ok(Document { line: results.line, tool, fingerprint: fingerprint(text), phases, notes })
}

fn parse_span(span: &Element, notes: &mut Vec<Note>) -> Result<Span, ImportError> {
    let targets = span.wanted("Targets")?;
    let bucket_ms = span.number("IoBucketDuration")?.filter(|ms| *ms > 0).unwrap_or(1000);
    Ok(Span {
        duration_s: span.number("Duration")?.unwrap_or(0),
        warm_up_s: span.number("Warmup")?.unwrap_or(0),
        cool_down_s: span.number("Cooldown")?.unwrap_or(0),
        latency: span.is("MeasureLatency"),
        bucket_ms: span.is("CalculateIopsStdDev").then_some(bucket_ms),
        seed: span.number("RandSeed")?.unwrap_or(0),
        pool_threads: span.number("ThreadCount")?.unwrap_or(0),
        pool_outstanding: span.number("RequestCount")?.unwrap_or(0),
        fresh_content: span.is("RandomWriteData"),
        targets: targets.all("Target").map(|of| target(of, notes)).collect::<Result<_, _>>()?,
        told: None,
    })
}

fn target(of: &Element, notes: &mut Vec<Note>) -> Result<Target, ImportError> {
    let random: Option<u64> = of.number("Random")?;
    let limit = of.child("Throughput").filter(|limit| limit.text.trim() != "0");
    let in_iops = limit.is_some_and(|limit| limit.attributes.iter().any(|(_, unit)| unit == "IOPS"));
    let limit: Option<f64> = if limit.is_some() { of.number("Throughput")? } else { None };
    if of.words("IOPriority").is_some_and(|priority| priority != "3") {
        notes.push(Note::at(of.line, "the I/O priority was lowered (-I)"));
    }
    Ok(Target {
        path: of.words("Path").unwrap_or_default().into(),
        block_bytes: of.number("BlockSize")?.unwrap_or(64 << 10),
        block_is_rounded: false,
        outstanding: of.number("RequestCount")?,
        weight: of.number("Weight")?,
        threads: of.number("ThreadsPerFile")?,
        base_bytes: of.number("BaseFileOffset")?.unwrap_or(0),
        end_bytes: of.number("MaxFileSize")?.unwrap_or(0),
        thread_stride_bytes: of.number("ThreadStride")?.unwrap_or(0),
        random_percent: match random {
            Some(_) => of.number("RandomRatio")?.unwrap_or(100),
            None => 0,
        },
        align_bytes: random.or(of.number("StrideSize")?).unwrap_or(0),
        interlocked: of.is("InterlockedSequential"),
        same_offset: of.is("ParallelAsyncIO"),
        write_percent: of.number("WriteRatio")?.unwrap_or(0),
        // Versions before 2.0.18 say DisableAllCache for both.
        cache: match () {
            () if of.is("DisableOSCache") || of.is("DisableAllCache") => Cache::None,
            () if of.is("DisableLocalCache") => Cache::RemoteOnly,
            () => Cache::Software,
        },
        write_through: of.is("WriteThrough") || of.is("DisableAllCache"),
        mapped: of.is("MemoryMappedIo"),
        content: content(of)?,
        burst_ios: of.number("BurstSize")?.unwrap_or(0),
        think_ms: of.number("ThinkTime")?.unwrap_or(0),
        limit_iops: limit.filter(|_| in_iops),
        limit_bytes_per_ms: limit.filter(|_| !in_iops),
        zones: of.child("Distribution").map(zones).transpose()?.unwrap_or_default(),
    })
}

fn content(of: &Element) -> Result<Option<Content>, ImportError> {
    let Some(content) = of.child("WriteBufferContent") else { return Ok(None) };
    Ok(match content.words("Pattern") {
        Some("zero") => Some(Content::Zeros),
        Some("random") => {
            let source = content.wanted("RandomDataSource")?;
            let bytes = source.number("SizeInBytes")?.unwrap_or(0);
            Some(buffer(bytes, source.words("FilePath").map(Into::into)))
        }
        _ => None,
    })
}

fn zones(distribution: &Element) -> Result<Vec<Zone>, ImportError> {
    let kinds = distribution.children.iter();
    let ranges = kinds.flat_map(|kind| kind.all("Range").map(move |range| (kind.name == "Percent", range)));
    let zone = |(percent, range): (bool, &Element)| {
        let wrong = || ImportError::at(range.line, format!("'{}' is not an extent", range.text.trim()));
        let length: u64 = range.text.trim().parse().map_err(|_| wrong())?;
        let extent = match percent {
            true => Extent::Percent(u8::try_from(length).map_err(|_| wrong())?),
            false => Extent::Bytes(length),
        };
        Ok(Zone { ios_percent: range.attribute("IO")?.unwrap_or(0), extent })
    };
    // A length of 0 stands for all that is left of the target.
    let is_open = |zone: &Zone| zone.extent != Extent::Bytes(0);
    let zones: Result<Vec<Zone>, ImportError> = ranges.map(zone).collect();
    Ok(zones?.into_iter().filter(is_open).collect())
}

fn span_told(
    span: &Element,
    bucket_ms: Option<u32>,
    block_bytes: &[(String, u64)],
) -> Result<Option<SpanTold>, ImportError> {
    if span.child("Error").is_some() {
        return Ok(None);
    }
    let time = span.wanted("TestTimeSeconds")?;
    let elapsed_ns = span.number("TestTimeSeconds")?.and_then(s_to_ns).filter(|ns| *ns > 0);
    let elapsed_ns = elapsed_ns
        .ok_or_else(|| ImportError::at(time.line, format!("'{}' is not a test time", time.text.trim())))?;
    let mut told = SpanTold { elapsed_ns, ..SpanTold::default() };
    if let Some(cpu) = span.child("CpuUtilization") {
        for (index, core) in cpu.all("CPU").enumerate() {
            let percent = |name| Ok(core.number(name)?.unwrap_or(0.0));
            told.cores.push(CoreUse {
                core: u32::try_from(index).unwrap_or(u32::MAX),
                user_percent: percent("UserPercent")?,
                kernel_percent: percent("KernelPercent")?,
                idle_percent: percent("IdlePercent")?,
            });
        }
    }
    if let Some(latency) = span.child("Latency") {
        told.percentiles = percentiles(latency)?;
        told.totals = totals(latency)?;
    }
    for thread in span.all("Thread") {
        for target in thread.all("Target") {
            told.rows.push(row(thread, target, bucket_ms, elapsed_ns, block_bytes)?);
        }
    }
    Ok(Some(told))
}

fn percentiles(latency: &Element) -> Result<Percentiles, ImportError> {
    let mut told = Percentiles::default();
    for bucket in latency.all("Bucket") {
        let Some(percent) = bucket.number("Percentile")?.filter(|percent| (0.0..=100.0).contains(percent))
        else {
            continue;
        };
        let ns = |name| Ok(bucket.number(name)?.and_then(ms_to_ns).map(|ns| (percent, ns)));
        told.read.extend(ns("ReadMilliseconds")?);
        told.write.extend(ns("WriteMilliseconds")?);
        told.total.extend(ns("TotalMilliseconds")?);
    }
    Ok(told)
}

/// Means and deviations of all targets together; the counts are those of the rows.
fn totals(latency: &Element) -> Result<Totals, ImportError> {
    let moments = |mean: &str, deviation: &str| -> Result<Option<Summary>, ImportError> {
        let ns = |name: &str| -> Result<Option<f64>, ImportError> {
            Ok(latency.number::<f64>(name)?.map(|ms| ms * 1e6))
        };
        let mean_ns = ns(mean)?;
        Ok(mean_ns.is_some().then_some(Summary {
            mean_ns,
            deviation_ns: ns(deviation)?,
            ..Summary::default()
        }))
    };
    Ok(Totals {
        read: moments("AverageReadMilliseconds", "ReadLatencyStdev")?,
        write: moments("AverageWriteMilliseconds", "WriteLatencyStdev")?,
    })
}

fn row(
    thread: &Element,
    target: &Element,
    bucket_ms: Option<u32>,
    elapsed_ns: u64,
    block_bytes: &[(String, u64)],
) -> Result<Row, ImportError> {
    let path = target.words("Path").unwrap_or_default();
    let ns = |name| Ok(target.number::<f64>(name)?.filter(|ms| *ms >= 0.0).map(|ms| ms * 1e6));
    let told = |count, bytes, mean, deviation| -> Result<Summary, ImportError> {
        Ok(Summary {
            count: target.number(count)?.unwrap_or(0),
            bytes: target.number(bytes)?.unwrap_or(0),
            mean_ns: ns(mean)?,
            deviation_ns: ns(deviation)?,
            ..Summary::default()
        })
    };
    let block_bytes = block_bytes.iter().find(|(other, _)| other == path).map_or(0, |(_, bytes)| *bytes);
    let series = match (target.child("Iops"), bucket_ms) {
        (Some(iops), Some(ms)) => {
            let mut slices = Vec::new();
            for (index, bucket) in iops.all("Bucket").enumerate() {
                slices.push(slice(bucket, index, ms, elapsed_ns, block_bytes)?);
            }
            slices
        }
        _ => Vec::new(),
    };
    Ok(Row {
        thread: thread.number("Id")?.unwrap_or(0),
        path: path.into(),
        line: target.line,
        target_bytes: target.number("FileSize")?,
        all: Summary::default(),
        read: told("ReadCount", "ReadBytes", "AverageReadLatencyMilliseconds", "ReadLatencyStdev")?,
        write: told("WriteCount", "WriteBytes", "AverageWriteLatencyMilliseconds", "WriteLatencyStdev")?,
        series,
    })
}

/// A bucket tells I/Os a second, each of the target's block size; versions before 2.0.20 no latencies.
fn slice(
    bucket: &Element,
    index: usize,
    ms: u32,
    elapsed_ns: u64,
    block_bytes: u64,
) -> Result<Slice, ImportError> {
    let side = |name: &str| -> Result<Summary, ImportError> {
        let iops: f64 = bucket.attribute(name)?.unwrap_or(0.0);
        let count = rounded(iops * f64::from(ms) / 1e3);
        let ms_of = |what: &str| bucket.attribute::<f64>(&format!("{name}{what}"));
        let ns = |what: &str| Ok(ms_of(what)?.filter(|ms| *ms > 0.0).map(|ms| ms * 1e6));
        Ok(Summary {
            count,
            bytes: count.saturating_mul(block_bytes),
            mean_ns: ns("AvgLatencyMilliseconds")?,
            deviation_ns: ns("LatencyStdDev")?,
            min_ns: ms_of("MinLatencyMilliseconds")?.filter(|ms| *ms > 0.0).and_then(ms_to_ns),
            max_ns: ms_of("MaxLatencyMilliseconds")?.filter(|ms| *ms > 0.0).and_then(ms_to_ns),
        })
    };
    let end_ms = (index as u64).saturating_add(1).saturating_mul(u64::from(ms));
    Ok(Slice {
        end_ns: end_ms.saturating_mul(1_000_000).min(elapsed_ns),
        read: side("Read")?.tally(),
        write: side("Write")?.tally(),
        ..Slice::default()
    })
}
