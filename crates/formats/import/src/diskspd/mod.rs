//! diskspd: what its parameters say and what its tables tell, as a workload and its result. The text and the
//! XML are two ways to the same [`Span`].

mod attribution;
pub(crate) mod text;
mod text_command;
mod text_complete;
mod text_parameters;
mod text_report;
mod text_tables;
pub(crate) mod xml;
mod xml_tree;

use crate::summary::Summary;
use crate::{ImportError, Note, Phase};
use std::path::PathBuf;
use std::time::Duration;
use workload::*;

/// A timespan: one phase.
#[derive(Debug, Default)]
pub(crate) struct Span {
    pub duration_s: u32,
    pub warm_up_s: u32,
    pub cool_down_s: u32,
    pub latency: bool,
    /// Width of the rows of the series, where it is gathered.
    pub bucket_ms: Option<u32>,
    pub seed: u64,
    /// Threads that serve all targets; 0: each target has its own.
    pub pool_threads: u32,
    /// Outstanding I/Os of a thread of the pool, shared by weight; 0: each target has its own.
    pub pool_outstanding: u32,
    pub fresh_content: bool,
    pub targets: Vec<Target>,
    /// Nothing, where the run was ended before anything was measured.
    pub told: Option<SpanTold>,
}

/// A target with its requested load, as far as diskspd names it.
#[derive(Debug, Default)]
pub(crate) struct Target {
    pub path: String,
    pub block_bytes: u64,
    /// The block size was printed rounded.
    pub block_is_rounded: bool,
    pub outstanding: Option<u32>,
    pub weight: Option<u32>,
    pub threads: Option<u32>,
    pub base_bytes: u64,
    /// Offset where the used part ends; 0: at the end of the target.
    pub end_bytes: u64,
    pub thread_stride_bytes: u64,
    pub random_percent: u8,
    /// Alignment of random, stride of sequential I/Os.
    pub align_bytes: u64,
    pub interlocked: bool,
    pub same_offset: bool,
    pub write_percent: u8,
    pub cache: Cache,
    pub write_through: bool,
    pub mapped: bool,
    pub content: Option<Content>,
    pub burst_ios: u32,
    pub think_ms: u32,
    pub limit_iops: Option<f64>,
    pub limit_bytes_per_ms: Option<f64>,
    pub zones: Vec<Zone>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) enum Cache {
    #[default]
    Software,
    RemoteOnly,
    None,
}

/// Figures reported for a timespan.
#[derive(Debug)]
pub(crate) struct SpanTold {
    pub elapsed_ns: u64,
    /// Threads as the result counts them; 0 where it does not.
    pub thread_count: u32,
    pub cores: Vec<CoreUse>,
    /// A row for each target of each thread, in their order.
    pub rows: Vec<Row>,
    /// Whether they are all there; else the totals count.
    pub has_all_rows: bool,
    /// Of all rows together, as reported.
    pub totals: Totals,
    /// Of all targets together.
    pub percentiles: Percentiles,
    /// Of single targets, where diskspd tells them.
    pub by_path: Vec<(String, Percentiles)>,
}

impl Default for SpanTold {
    fn default() -> SpanTold {
        SpanTold {
            elapsed_ns: 0,
            thread_count: 0,
            cores: Vec::new(),
            rows: Vec::new(),
            has_all_rows: true,
            totals: Totals::default(),
            percentiles: Percentiles::default(),
            by_path: Vec::new(),
        }
    }
}

/// Sums of all targets and threads, where they are reported.
#[derive(Debug, Default)]
pub(crate) struct Totals {
    pub read: Option<Summary>,
    pub write: Option<Summary>,
}

#[derive(Debug, Default)]
pub(crate) struct Row {
    pub thread: u32,
    pub path: String,
    pub line: usize,
    pub target_bytes: Option<u64>,
    /// Reads and writes together, where the tool reports them so.
    pub all: Summary,
    pub read: Summary,
    pub write: Summary,
    pub series: Vec<Slice>,
}

/// (percent, nanoseconds), rising.
#[derive(Clone, Debug, Default)]
pub(crate) struct Percentiles {
    pub read: Vec<(f64, u64)>,
    pub write: Vec<(f64, u64)>,
    /// Of both together.
    pub total: Vec<(f64, u64)>,
}

impl Percentiles {
    fn is_empty(&self) -> bool {
        self.read.is_empty() && self.write.is_empty() && self.total.is_empty()
    }
}

/// The phases of a document whose timespans ran sequentially from `started_unix_ns` on.
pub(crate) fn phases(
    spans: Vec<Span>,
    tool: &str,
    started_unix_ns: Option<u64>,
    notes: &mut Vec<Note>,
) -> Result<Vec<Phase>, ImportError> {
    let mut clock_ns = started_unix_ns;
    let mut phases = Vec::new();
    for (index, mut span) in spans.into_iter().enumerate() {
        let name = format!("timespan {}", index + 1);
        let Some(told) = span.told.take() else {
            notes.push(Note::new(format!("{name} was ended before anything was measured: left out")));
            continue;
        };
        let second = 1_000_000_000;
        let began_ns = clock_ns.map(|at| at.saturating_add(u64::from(span.warm_up_s) * second));
        let ended_ns = began_ns.map(|at| at.saturating_add(told.elapsed_ns));
        clock_ns = ended_ns.map(|at| at.saturating_add(u64::from(span.cool_down_s) * second));
        let results = span.results(told, &name, notes)?;
        let results = results.into_iter().map(|result| RunResult {
            tool: Some(tool.into()),
            started_unix_ns: began_ns.unwrap_or(0),
            ..result
        });
        phases.push(Phase { name, length: Some(span.length()), results: results.collect() });
    }
    if phases.is_empty() {
        return Err(ImportError::new("nothing was measured: the run was ended before its measured part")
            .remedy("run it again to its end"));
    }
    Ok(phases)
}

impl Span {
    fn length(&self) -> RunLength {
        let seconds = |s: u32| Duration::from_secs(u64::from(s));
        RunLength {
            warm_up: seconds(self.warm_up_s),
            duration: seconds(self.duration_s),
            ios_max: None,
            cool_down: seconds(self.cool_down_s),
        }
    }

    fn results(
        &self,
        mut told: SpanTold,
        name: &str,
        notes: &mut Vec<Note>,
    ) -> Result<Vec<RunResult>, ImportError> {
        let owners = self.owners(&told.rows)?;
        let mut results: Vec<RunResult> = Vec::new();
        for (index, target) in self.targets.iter().enumerate() {
            let rows: Vec<Row> = {
                let is_ours = |row: usize| owners[row] == index;
                let take = told.rows.iter_mut().enumerate().filter(|(row, _)| is_ours(*row));
                take.map(|(_, row)| std::mem::take(row)).collect()
            };
            results.push(self.result(target, rows, &told, notes));
        }
        attribution::attribute(&mut results, &told, name, notes);
        Ok(results)
    }

    /// Target that each row is about. Without a pool the threads of the first target come first.
    fn owners(&self, rows: &[Row]) -> Result<Vec<usize>, ImportError> {
        let by_order = |row: usize| -> Option<usize> {
            if self.pool_threads > 0 {
                return row.checked_rem(self.targets.len());
            }
            let mut left = row;
            self.targets.iter().position(|target| {
                let threads = target.threads.unwrap_or(1) as usize;
                let here = left < threads;
                left = left.saturating_sub(threads);
                here
            })
        };
        let find = |(index, row): (usize, &Row)| {
            let is_it = |at: &usize| self.targets.get(*at).is_some_and(|target| target.path == row.path);
            let ordered = by_order(index).filter(is_it);
            let named = || self.targets.iter().position(|target| target.path == row.path);
            ordered.or_else(named).ok_or_else(|| {
                let error = ImportError::new(format!("the parameters name no target '{}'", row.path));
                ImportError { line: (row.line > 0).then_some(row.line), ..error }
                    .remedy("import the output of diskspd as it was printed")
            })
        };
        rows.iter().enumerate().map(find).collect()
    }

    fn result(&self, target: &Target, rows: Vec<Row>, told: &SpanTold, notes: &mut Vec<Note>) -> RunResult {
        let mut result = RunResult::empty(self.workload(target, &rows, notes), target.path.clone());
        result.backend = Backend::Foreign;
        result.elapsed_ns = told.elapsed_ns;
        // Ctrl-C ends diskspd early, with a report of what there is.
        result.interrupted =
            told.elapsed_ns.saturating_add(500_000_000) < u64::from(self.duration_s) * 1_000_000_000;
        result.cores = told.cores.clone();
        result.target_bytes = rows.iter().find_map(|row| row.target_bytes).unwrap_or(0);
        result.slice_ns = match self.bucket_ms {
            Some(ms) if rows.iter().any(|row| !row.series.is_empty()) => u64::from(ms).max(1) * 1_000_000,
            _ => told.elapsed_ns.max(1),
        };
        for row in rows {
            for (direction, told) in [(&mut result.read, &row.read), (&mut result.write, &row.write)] {
                direction.count = direction.count.saturating_add(told.count);
                direction.bytes = direction.bytes.saturating_add(told.bytes);
            }
            for (index, slice) in row.series.iter().enumerate() {
                match result.series.get_mut(index) {
                    Some(sum) => sum.merge(slice),
                    None => result.series.push(slice.clone()),
                }
            }
            let (read, write) = (row.read.tally(), row.write.tally());
            result.threads.push(ThreadShare { read, write, cpu_ns: 0, series: row.series });
        }
        result
    }

    /// Outstanding I/Os of each thread. Threads of a pool share theirs among the targets by weight.
    fn outstanding(&self, target: &Target, notes: &mut Vec<Note>) -> u32 {
        if self.pool_threads == 0 || self.pool_outstanding == 0 {
            return target.outstanding.unwrap_or(1);
        }
        let weights: u64 = self.targets.iter().map(|t| u64::from(t.weight.unwrap_or(1))).sum();
        let ours = u64::from(self.pool_outstanding) * u64::from(target.weight.unwrap_or(1));
        let outstanding = u32::try_from(ours / weights.max(1)).unwrap_or(u32::MAX).max(1);
        notes.push(Note::new(format!(
            "{} outstanding I/Os of a thread were shared by weight: '{}' is kept with {outstanding}",
            self.pool_outstanding, target.path
        )));
        outstanding
    }

    fn workload(&self, target: &Target, rows: &[Row], notes: &mut Vec<Note>) -> Workload {
        let threads = if self.pool_threads > 0 { self.pool_threads } else { target.threads.unwrap_or(1) };
        let block_bytes = if target.block_is_rounded { exact_block_bytes(rows) } else { None };
        let block_bytes = block_bytes.unwrap_or(target.block_bytes);
        let random = target.random_percent > 0;
        if target.cache == Cache::RemoteOnly {
            notes.push(Note::new("only the local cache was off (-Sr): kept as buffered"));
        }
        let walk = match (target.interlocked, threads) {
            (true, _) => Walk::Shared,
            (false, 2..) if !random => Walk::Apart(target.thread_stride_bytes),
            _ => Walk::default(),
        };
        let align =
            (target.align_bytes > 0 && target.align_bytes != block_bytes).then_some(target.align_bytes);
        Workload {
            name: String::new(),
            shape: Shape {
                block_bytes: u32::try_from(block_bytes).unwrap_or(u32::MAX),
                pattern: if random { Pattern::Random } else { Pattern::Sequential },
                write_percent: target.write_percent.min(100),
                caching: match target.cache {
                    _ if target.mapped => Caching::Mapped,
                    Cache::None => Caching::Direct,
                    Cache::Software | Cache::RemoteOnly => Caching::Buffered,
                },
                durability: if target.write_through { Durability::WriteThrough } else { Durability::Cached },
            },
            outstanding: self.outstanding(target, notes),
            threads,
            seed: self.seed,
            access: Access {
                base_bytes: target.base_bytes,
                length_bytes: target.end_bytes.checked_sub(target.base_bytes).filter(|length| *length > 0),
                align_bytes: align.filter(|_| random),
                stride_bytes: align.filter(|_| !random),
                distribution: if target.zones.is_empty() {
                    Distribution::Uniform
                } else {
                    Distribution::Zones { zones: target.zones.clone() }
                },
                walk,
                random_percent: (1..100).contains(&target.random_percent).then_some(target.random_percent),
                same_offset: target.same_offset,
            },
            limit: Limit {
                iops: target.limit_iops.map(|iops| iops * f64::from(threads)),
                bytes_per_s: target.limit_bytes_per_ms.map(|bytes| bytes * 1e3 * f64::from(threads)),
            },
            burst: (target.burst_ios > 0 && target.think_ms > 0).then(|| Burst {
                ios: target.burst_ios,
                pause: Duration::from_millis(u64::from(target.think_ms)),
            }),
            content: match &target.content {
                _ if self.fresh_content => Content::Fresh,
                Some(content) => content.clone(),
                None => Content::Counting,
            },
            ..Workload::from(Shape::random_read(4096))
        }
    }
}

/// The block size by the exact counts, where every I/O has the same.
fn exact_block_bytes(rows: &[Row]) -> Option<u64> {
    let sum = |part: fn(&Summary) -> u64| {
        rows.iter()
            .fold(0_u64, |sum, row| sum.saturating_add(part(&row.read)).saturating_add(part(&row.write)))
    };
    let (bytes, ios) = (sum(|summary| summary.bytes), sum(|summary| summary.count));
    (ios > 0 && bytes.is_multiple_of(ios)).then(|| bytes / ios)
}

/// "2024/06/14 18:32:11 UTC" as nanoseconds since 1970.
fn start_time(text: &str) -> Option<u64> {
    let text = text.trim().trim_end_matches("UTC").trim_end();
    let at = jiff::civil::DateTime::strptime("%Y/%m/%d %H:%M:%S", text).ok()?;
    let at = at.to_zoned(jiff::tz::TimeZone::UTC).ok()?;
    u64::try_from(at.timestamp().as_nanosecond()).ok()
}

/// A buffer that writes are taken from.
fn buffer(bytes: u64, file: Option<String>) -> Content {
    Content::Buffer { bytes, file: file.map(PathBuf::from) }
}
