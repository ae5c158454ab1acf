//! One entry of `jobs`: what it counted, and which of fio's latencies are ours.

use super::Options;
use crate::summary::{Summary, rounded};
use crate::{ImportError, Note};
use serde_json::Value;
use workload::{Backend, Direction, LatencyHistogram, RunResult, Shape, Slice, ThreadShare};

/// One entry of `jobs`.
#[derive(Debug)]
pub(super) struct Job {
    pub name: String,
    pub group: u64,
    pub options: Options,
    /// The document has no options of it at all: what they were is unknown, not fio's defaults.
    settings_unreported: bool,
    host: Option<String>,
    read: Side,
    write: Side,
    sync: Side,
    job_runtime_ms: u64,
    cpu_ns: u64,
    errors: Option<(i32, u64)>,
}

/// Reads, writes or syncs of a job.
#[derive(Debug, Default)]
struct Side {
    told: Summary,
    runtime_ms: u64,
    histogram: LatencyHistogram,
    percentiles: Vec<(f64, u64)>,
}

/// No run counts more; sums of some thousand such numbers still fit.
const COUNT_MAX: u64 = 1 << 50;

impl Job {
    /// `None`, with a note, where the job did nothing that is kept.
    pub fn read(
        value: &Value,
        mut options: Options,
        notes: &mut Vec<Note>,
    ) -> Result<Option<Job>, ImportError> {
        let settings_unreported = options.is_empty();
        if options.get("ioengine").is_none() && is_asynchronous(value, &options) {
            options.set("ioengine", UNNAMED_ASYNCHRONOUS);
        }
        let name = value["jobname"].as_str().unwrap_or_default().to_owned();
        let say = |text: String| Note::new(format!("job '{name}': {text}"));
        let mut said = Vec::new();
        let mut side = |key| Side::read(value, key, &mut said);
        let (mut read, mut write, sync) = (side("read")?, side("write")?, side("sync")?);
        let mixed = side("mixed")?;
        if mixed.told.count > 0 && read.told.count == 0 && write.told.count == 0 {
            match options.write_percent() {
                0 if !settings_unreported => read = mixed,
                100 => write = mixed,
                _ => {
                    notes.push(say(
                        "reads and writes are reported as one (unified_rw_reporting): left out".into()
                    ));
                    return Ok(None);
                }
            }
        }
        if count(value, &["trim", "total_ios"])?.is_some_and(|trims| trims > 0) {
            notes.push(say("its trims were left out".into()));
        }
        let error = value["error"].as_i64().unwrap_or(0);
        if error != 0 {
            notes.push(say(format!("fio ended it with error {error}")));
        }
        if read.told.count == 0 && write.told.count == 0 {
            notes.push(say("it read and wrote nothing: left out".into()));
            return Ok(None);
        }
        let failed = count(value, &["total_err"])?.filter(|failed| *failed > 0);
        let errno = value["first_error"].as_i64().and_then(|errno| i32::try_from(errno).ok()).unwrap_or(0);
        let job_runtime_ms = count(value, &["job_runtime"])?.unwrap_or(0);
        let percent =
            |key: &str| value[key].as_f64().filter(|percent| (0.0..=1e5).contains(percent)).unwrap_or(0.0);
        let cpu_ms = (percent("usr_cpu") + percent("sys_cpu")) / 100.0 * job_runtime_ms as f64;
        said.dedup();
        notes.extend(said.into_iter().map(say));
        Ok(Some(Job {
            group: count(value, &["groupid"])?.unwrap_or(0),
            host: value["hostname"].as_str().map(Into::into),
            read,
            write,
            sync,
            job_runtime_ms,
            cpu_ns: (cpu_ms * 1e6) as u64,
            errors: failed.map(|failed| (errno, failed)),
            name,
            options,
            settings_unreported,
        }))
    }

    fn reads(&self) -> &Side {
        &self.read
    }

    fn writes(&self) -> &Side {
        &self.write
    }

    /// How long it ran.
    pub fn runtime_ms(&self) -> u64 {
        match self.read.runtime_ms.max(self.write.runtime_ms) {
            0 => self.job_runtime_ms,
            ms => ms,
        }
    }

    /// Whether the other entry is another thread of the same job.
    pub fn is_thread_of_same(&self, other: &Job) -> bool {
        self.name == other.name && self.host == other.host && self.options == other.options
    }
}

/// The result of a job from its threads, or from one entry for all of them (`group_reporting`).
pub(super) fn result(jobs: Vec<Job>, tool: &str, began_ms: Option<u64>, notes: &mut Vec<Note>) -> RunResult {
    let (first, entries) = (&jobs[0], jobs.len());
    let mut said = Vec::new();
    let mut workload = first.options.workload(&first.name, &mut said);
    let settings_unreported = first.settings_unreported;
    if settings_unreported {
        workload.shape = counted_shape(&jobs);
        said.push(
            "the document has no options of it: the size of its I/Os and its share of writes follow from its counts; \
             pattern, caching, threads and outstanding I/Os are unknown"
                .into(),
        );
    }
    let target = first.options.target(&first.name);
    let target = first.host.as_ref().map_or(target.clone(), |host| format!("{host}:{target}"));
    let threads = workload.threads as usize;
    let mut result = RunResult::empty(workload, target);
    result.backend = Backend::Foreign;
    result.tool = Some(tool.into());
    result.settings_unreported = settings_unreported;
    result.started_unix_ns = began_ms.unwrap_or(0).saturating_mul(1_000_000);
    result.elapsed_ns = jobs.iter().map(Job::runtime_ms).max().unwrap_or(0).saturating_mul(1_000_000);
    result.slice_ns = result.elapsed_ns.max(1);
    result.target_bytes = first.options.size_bytes().unwrap_or(0);
    let name = first.name.clone();
    let mut whole = Slice { end_ns: result.elapsed_ns, ..Slice::default() };
    for job in jobs {
        let (read, write) = (job.read.told.tally(), job.write.told.tally());
        whole.read.merge(&read);
        whole.write.merge(&write);
        if entries == threads && !settings_unreported {
            result.threads.push(ThreadShare { read, write, cpu_ns: job.cpu_ns, series: Vec::new() });
        }
        if let Some((errno, failed)) = job.errors {
            // fio does not tell reads and writes apart here.
            let side = if job.write.told.count == 0 { &mut result.read } else { &mut result.write };
            *side.errors.entry(errno).or_default() += failed;
        }
        result.read.merge(&job.read.direction());
        result.write.merge(&job.write.direction());
        result.sync.merge(&job.sync.direction());
    }
    if entries > 1 && result.read.latency.count() == 0 && result.write.latency.count() == 0 {
        said.push(format!(
            "percentiles of its {entries} threads cannot be put together (fio's json+ and group_reporting do): \
             the shortest and longest are kept"
        ));
    }
    if entries != threads {
        said.push(format!(
            "one entry stands for its {threads} threads (group_reporting): no shares of threads"
        ));
    }
    result.series.push(whole);
    said.dedup();
    notes.extend(said.into_iter().map(|text| Note::new(format!("job '{name}': {text}"))));
    result
}

/// The size and the share of writes that the counts give; the rest of it says nothing.
fn counted_shape(jobs: &[Job]) -> Shape {
    let sum = |field: fn(&Summary) -> u64, side: fn(&Job) -> &Side| {
        jobs.iter().fold(0_u64, |sum, job| sum.saturating_add(field(&side(job).told)))
    };
    let [reads, writes] = [Job::reads, Job::writes].map(|side| sum(|told| told.count, side) as f64);
    let [read_bytes, written_bytes] =
        [Job::reads, Job::writes].map(|side| sum(|told| told.bytes, side) as f64);
    let ios = (reads + writes).max(1.0);
    Shape {
        block_bytes: block_bytes((read_bytes + written_bytes) / ios),
        write_percent: (writes / ios * 100.0).round() as u8,
        ..Shape::sequential_read(SECTOR_BYTES)
    }
}

const SECTOR_BYTES: u32 = 512;

/// A mean size as that of every I/O. A count that follows from a rounded rate is near the truth: sectors are whole.
fn block_bytes(mean: f64) -> u32 {
    let sectors = (mean / f64::from(SECTOR_BYTES)).round() * f64::from(SECTOR_BYTES);
    let is_near = sectors > 0.0 && (mean - sectors).abs() <= mean / 100.0;
    // The conversion saturates.
    (if is_near { sectors } else { mean.round() }).max(1.0) as u32
}

impl Side {
    fn read(job: &Value, key: &str, said: &mut Vec<String>) -> Result<Side, ImportError> {
        let value = &job[key];
        if value.is_null() {
            return Ok(Side::default());
        }
        let at = |field: &[&str]| count(job, &[&[key], field].concat());
        // Before fio 3 latencies were microseconds, and bytes KiB.
        let (scale, latency) = match latency(value) {
            Some(found) => found,
            None => (1, ("", &Value::Null)),
        };
        let (kind, latency) = latency;
        let samples = latency["N"].as_u64().or_else(|| latency["samples"].as_u64());
        let counted = at(&["total_ios"])?;
        let ios = match key {
            // fio counts no syncs, but it times each.
            "sync" => samples.or(counted).unwrap_or(0),
            _ => counted.unwrap_or_else(|| from_rate(value)),
        };
        if counted.is_none() && ios > 0 && key != "sync" {
            said.push(format!(
                "its {key}s are not counted: their number follows from their rate and the time"
            ));
        }
        let bytes = at(&["io_bytes"])?.unwrap_or(0);
        let bytes =
            if value["io_kbytes"].is_null() && key != "sync" { bytes.saturating_mul(1024) } else { bytes };
        if ios == 0 {
            return Ok(Side::default());
        }
        if ios > COUNT_MAX || bytes > COUNT_MAX << 10 {
            return Err(ImportError::new(format!(
                "{key}: {ios} I/Os of {bytes} bytes are more than any run does"
            )));
        }
        let ns = |field: &str| latency[field].as_f64().filter(|ns| ns.is_finite() && *ns >= 0.0);
        let ns = |field: &str| ns(field).map(|ns| ns * f64::from(scale)).filter(|ns| *ns <= NS_MAX);
        let told = Summary {
            count: ios,
            bytes,
            mean_ns: ns("mean"),
            deviation_ns: ns("stddev"),
            min_ns: ns("min").map(|ns| ns as u64).filter(|_| samples != Some(0)),
            max_ns: ns("max").map(|ns| ns as u64).filter(|ns| *ns > 0),
        };
        if kind == "clat"
            && value["lat_ns"]["mean"].as_f64().zip(told.mean_ns).is_some_and(|(all, mean)| all > mean * 1.02)
        {
            let mean = workload::format_ns(value["lat_ns"]["mean"].as_f64().unwrap_or(0.0));
            said.push(format!(
                "latencies of its {key}s are fio's clat, from the end of submission on; its lat, with \
                 submission, is {mean} in the mean (lat_percentiles=1 reports its percentiles)"
            ));
        }
        let mut side = Side { told, runtime_ms: at(&["runtime"])?.unwrap_or(0), ..Side::default() };
        side.percentiles = percentiles(latency, scale, &told);
        side.histogram = histogram(latency, scale, key, &told, said)?;
        Ok(side)
    }

    fn direction(&self) -> Direction {
        // With a histogram, mean and deviation are its own.
        let reported = |ns: Option<f64>| ns.filter(|ns| self.histogram.count() == 0 && *ns > 0.0);
        Direction {
            count: self.told.count,
            bytes: self.told.bytes,
            latency: self.histogram.clone(),
            percentiles: self.percentiles.clone(),
            mean_ns: reported(self.told.mean_ns),
            deviation_ns: reported(self.told.deviation_ns),
            ..Direction::default()
        }
    }
}

/// The name of an engine that fio did not report. On Windows it is `windowsaio`, fio's default there.
const UNNAMED_ASYNCHRONOUS: &str = "asynchronous, not named";

/// Whether a job without a named engine had several I/Os outstanding in one thread: most of its submissions found others,
/// or, where fio does not report that, it ran on Windows.
fn is_asynchronous(job: &Value, options: &Options) -> bool {
    let Some(levels) = job["iodepth_level"].as_object() else { return options.names_windows_path() };
    let deeper = levels.iter().filter(|(level, _)| *level != "1" && *level != "0");
    deeper.filter_map(|(_, percent)| percent.as_f64()).sum::<f64>() > 50.0
}

/// I/Os of a version without `total_ios` (2.1.4).
fn from_rate(side: &Value) -> u64 {
    let number = |key: &str| side[key].as_f64().filter(|number| (0.0..COUNT_MAX as f64).contains(number));
    number("iops").zip(number("runtime")).map_or(0, |(iops, ms)| rounded(iops * ms / 1e3))
}

/// A year.
const NS_MAX: f64 = 366.0 * 86_400.0 * 1e9;

/// Chooses which of fio's latencies is taken: its total latency (submission included, as ours) where that has
/// percentiles, else completion latency where that has them, so that all figures are of one kind.
fn latency(side: &Value) -> Option<(u32, (&'static str, &Value))> {
    let (scale, lat, clat) = match side["lat_ns"].is_null() && side["clat_ns"].is_null() {
        true => (1000, &side["lat"], &side["clat"]),
        false => (1, &side["lat_ns"], &side["clat_ns"]),
    };
    let has_percentiles = |value: &Value| value["percentile"].is_object() || value["bins"].is_object();
    match (has_percentiles(lat), has_percentiles(clat)) {
        (false, true) => Some((scale, ("clat", clat))),
        _ if lat.is_object() => Some((scale, ("lat", lat))),
        _ if clat.is_object() => Some((scale, ("clat", clat))),
        _ => None,
    }
}

fn percentiles(latency: &Value, scale: u32, told: &Summary) -> Vec<(f64, u64)> {
    let list = latency["percentile"].as_object().into_iter().flatten();
    let mut points: Vec<(f64, u64)> = list
        .filter_map(|(percent, ns)| {
            let percent = percent.parse().ok().filter(|percent| (0.0..=100.0).contains(percent))?;
            Some((percent, ns.as_u64()?.checked_mul(u64::from(scale))?))
        })
        .collect();
    points.retain(|(percent, _)| *percent > 0.0 && *percent < 100.0);
    points.extend(told.min_ns.map(|ns| (0.0, ns)));
    points.extend(told.max_ns.map(|ns| (100.0, ns)));
    points.sort_by(|a, b| a.0.total_cmp(&b.0));
    points
}

/// json+ has the histogram: the middle of each range, and how many. The sum follows from the exact mean.
fn histogram(
    latency: &Value,
    scale: u32,
    key: &str,
    told: &Summary,
    said: &mut Vec<String>,
) -> Result<LatencyHistogram, ImportError> {
    let mut histogram = LatencyHistogram::new();
    let Some(bins) = latency["bins"].as_object() else { return Ok(histogram) };
    let mut counted = 0_u64;
    for (ns, ios) in bins {
        let bin = ns.parse::<u64>().ok().zip(ios.as_u64()).filter(|(_, ios)| *ios <= COUNT_MAX);
        let Some((ns, ios)) = bin else {
            return Err(ImportError::new(format!("{key}: '{ns}': {ios} is not a bin of a histogram")));
        };
        counted = counted.saturating_add(ios);
        histogram.record_n(ns.saturating_mul(u64::from(scale)), ios);
    }
    if counted > COUNT_MAX {
        return Err(ImportError::new(format!(
            "{key}: a histogram of {counted} I/Os is more than any run does"
        )));
    }
    if counted != told.count {
        said.push(format!("{} {key}s, but {counted} in their histogram", told.count));
    }
    match told.mean_ns {
        Some(mean) => Ok(histogram.with_sum((mean * counted as f64).round() as u64)),
        None => Ok(histogram),
    }
}

/// A count somewhere below a job; old versions wrote some as fractions.
fn count(value: &Value, path: &[&str]) -> Result<Option<u64>, ImportError> {
    let found = path.iter().fold(value, |value, key| &value[*key]);
    match found {
        Value::Null => Ok(None),
        Value::Number(number) => match (number.as_u64(), number.as_f64()) {
            (Some(count), _) => Ok(Some(count)),
            (None, Some(float)) if (0.0..COUNT_MAX as f64).contains(&float) => Ok(Some(float.round() as u64)),
            _ => Err(ImportError::new(format!("{}: {number} is not a count", path.join("/")))),
        },
        other => {
            let what = match other {
                Value::String(_) => "a text",
                Value::Array(_) | Value::Object(_) => "a list",
                _ => "a yes or no",
            };
            Err(ImportError::new(format!("{}: {what} instead of a number", path.join("/"))))
        }
    }
}
