//! Results of one timespan, arranged as all three formats need them.

use crate::profile::TimeSpan;
use crate::report::Report;
use workload::{CoreUse, LatencyHistogram, PhaseResult, RunResult, Slice, Tally, ThreadShare};

/// I/Os that a table is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Section {
    Total,
    Read,
    Write,
}

impl Section {
    pub const ALL: [Section; 3] = [Section::Total, Section::Read, Section::Write];
    pub const READ_WRITE_TOTAL: [Section; 3] = [Section::Read, Section::Write, Section::Total];

    pub fn name(self) -> &'static str {
        match self {
            Section::Total => "Total",
            Section::Read => "Read",
            Section::Write => "Write",
        }
    }

    fn select(self, read: &Tally, write: &Tally) -> Tally {
        match self {
            Section::Total => read.plus(write),
            Section::Read => *read,
            Section::Write => *write,
        }
    }
}

/// The results of one timespan in the order of diskspd's report.
pub(crate) struct Span<'a> {
    pub requested: &'a TimeSpan,
    pub results: Vec<Named<'a>>,
    /// For each thread, its share of each target that it served.
    pub threads: Vec<Vec<Share<'a>>>,
    pub elapsed_s: f64,
}

/// The result of a target and the name that the user gave to it.
#[derive(Clone, Copy)]
pub(crate) struct Named<'a> {
    pub path: &'a str,
    pub result: &'a RunResult,
}

/// I/O of one thread on one target.
pub(crate) struct Share<'a> {
    pub path: &'a str,
    pub result: &'a RunResult,
    pub thread: &'a ThreadShare,
}

impl<'a> Report<'a> {
    pub(crate) fn spans(&self) -> impl Iterator<Item = Span<'a>> {
        self.profile.time_spans.iter().zip(self.phases).map(|(requested, phase)| Span::new(requested, phase))
    }
}

impl<'a> Span<'a> {
    fn new(requested: &'a TimeSpan, phase: &'a PhaseResult) -> Span<'a> {
        let named = |(at, result): (usize, &'a RunResult)| {
            let path =
                requested.targets.get(at).map_or(result.target.as_str(), |target| target.path.as_str());
            Named { path, result }
        };
        let results: Vec<Named> = phase.results.iter().enumerate().map(named).collect();
        let elapsed_ns = phase.results.iter().map(|result| result.elapsed_ns).max().unwrap_or(0);
        let threads = if requested.threads_total > 0 { pooled(&results) } else { own(&results) };
        Span { requested, results, threads, elapsed_s: elapsed_ns as f64 / 1e9 }
    }

    /// Below a tenth of a microsecond diskspd says that nothing was measured.
    pub fn is_measured(&self) -> bool {
        self.elapsed_s >= 1e-7
    }

    pub fn thread_count(&self) -> usize {
        match self.requested.threads_total {
            0 => self.threads.len(),
            pool => pool as usize,
        }
    }

    /// CPU use is of the whole machine, so that any result that has it will do.
    pub fn cores(&self) -> &'a [CoreUse] {
        let with_cores = self.results.iter().map(|named| &named.result.cores).find(|cores| !cores.is_empty());
        with_cores.map_or(&[], Vec::as_slice)
    }

    pub fn samples(&self, section: Section) -> Samples {
        Samples::collect(&self.results, section)
    }

    /// The targets by path, in their order; several may have the same.
    pub fn by_path(&self) -> Vec<(&'a str, Vec<Named<'a>>)> {
        let mut groups: Vec<(&'a str, Vec<Named<'a>>)> = Vec::new();
        for named in &self.results {
            match groups.iter_mut().find(|(path, _)| *path == named.path) {
                Some((_, group)) => group.push(*named),
                None => groups.push((named.path, vec![*named])),
            }
        }
        groups
    }

    /// The buckets of all threads, added up.
    pub fn buckets(&self) -> Buckets {
        let mut sum = Buckets::default();
        for named in &self.results {
            let result = named.result;
            if result.threads.iter().all(|thread| thread.series.is_empty()) {
                sum.merge(&Buckets::new(&result.series, result));
                continue;
            }
            result.threads.iter().for_each(|thread| sum.merge(&Buckets::new(&thread.series, result)));
        }
        sum
    }
}

/// Threads of a pool serve every target: thread by thread, in each the targets.
fn pooled<'a>(results: &[Named<'a>]) -> Vec<Vec<Share<'a>>> {
    let threads = results.iter().map(|named| named.result.threads.len()).max().unwrap_or(0);
    (0..threads).map(|at| results.iter().filter_map(|named| named.share(at)).collect()).collect()
}

/// Each target has threads of its own, which are numbered on from target to target.
fn own<'a>(results: &[Named<'a>]) -> Vec<Vec<Share<'a>>> {
    let of_target = |named: &Named<'a>| {
        let named = *named;
        (0..named.result.threads.len()).filter_map(move |at| named.share(at)).map(|share| vec![share])
    };
    results.iter().flat_map(of_target).collect()
}

impl<'a> Named<'a> {
    fn share(&self, at: usize) -> Option<Share<'a>> {
        let Named { path, result } = *self;
        let thread = result.threads.get(at)?;
        Some(Share { path, result, thread })
    }
}

impl Share<'_> {
    pub fn tally(&self, section: Section) -> Tally {
        section.select(&self.thread.read, &self.thread.write)
    }

    pub fn buckets(&self) -> Buckets {
        Buckets::new(&self.thread.series, self.result)
    }
}

/// Latencies with exact count, sum, shortest and longest.
pub(crate) struct Samples {
    pub tally: Tally,
    pub histogram: LatencyHistogram,
}

impl Samples {
    pub fn collect(results: &[Named<'_>], section: Section) -> Samples {
        let mut samples = Samples { tally: Tally::default(), histogram: LatencyHistogram::new() };
        for named in results {
            let result = named.result;
            if section != Section::Write {
                samples.tally.merge(&tally_of(result, Section::Read));
                samples.histogram.merge(&result.read.latency);
            }
            if section != Section::Read {
                samples.tally.merge(&tally_of(result, Section::Write));
                samples.histogram.merge(&result.write.latency);
            }
        }
        samples
    }

    pub fn shortest_ns(&self) -> Option<u64> {
        (self.tally.count > 0).then_some(self.tally.ns_min)
    }

    pub fn longest_ns(&self) -> Option<u64> {
        (self.tally.count > 0).then_some(self.tally.ns_max)
    }

    /// `None` where too few samples lie above it; diskspd prints the longest latency there.
    pub fn percentile_ns(&self, percent: f64) -> Option<u64> {
        let supported = self.histogram.supports_percentile(percent);
        let ns = self.histogram.percentile_ns(percent).filter(|_| supported)?;
        // The histogram rounds by up to a thousandth; the shortest and the longest are exact.
        Some(ns.min(self.longest_ns()?).max(self.shortest_ns()?))
    }
}

/// The exact counts of the threads, or the figures of the histogram for a result without threads.
fn tally_of(result: &RunResult, section: Section) -> Tally {
    if !result.threads.is_empty() {
        let tallies = result.threads.iter().map(|thread| section.select(&thread.read, &thread.write));
        return tallies.fold(Tally::default(), |sum, tally| sum.plus(&tally));
    }
    let direction = if section == Section::Read { &result.read } else { &result.write };
    let latency = &direction.latency;
    let (mean, deviation) = (latency.mean_ns().unwrap_or(0.0), latency.deviation_ns().unwrap_or(0.0));
    Tally {
        count: direction.count,
        bytes: direction.bytes,
        stall_ns: latency.sum_ns(),
        squares_ns2: (mean * mean + deviation * deviation) * direction.count as f64,
        ns_min: latency.min_ns().unwrap_or(0),
        ns_max: latency.max_ns().unwrap_or(0),
    }
}

/// I/Os in periods of equal length, all of them complete.
#[derive(Default)]
pub(crate) struct Buckets {
    pub width_ns: u64,
    pub read: Vec<Tally>,
    pub write: Vec<Tally>,
}

impl Buckets {
    /// The complete buckets of a run. A thread that completed no I/O at the end has no rows there; they count as zero.
    fn new(series: &[Slice], run: &RunResult) -> Buckets {
        let longest = run.threads.iter().map(|thread| thread.series.len()).max().unwrap_or(0);
        let rows = longest.max(run.series.len());
        let full = run.elapsed_ns.checked_div(run.slice_ns).unwrap_or(0);
        let count = rows.min(usize::try_from(full).unwrap_or(rows));
        let tallies = |select: fn(&Slice) -> Tally| {
            let mut tallies: Vec<Tally> = series.iter().take(count).map(select).collect();
            tallies.resize(count, Tally::default());
            tallies
        };
        Buckets {
            width_ns: run.slice_ns,
            read: tallies(|slice| slice.read),
            write: tallies(|slice| slice.write),
        }
    }

    pub fn merge(&mut self, other: &Buckets) {
        self.width_ns = self.width_ns.max(other.width_ns);
        add(&mut self.read, &other.read);
        add(&mut self.write, &other.write);
    }

    /// Whether there was any I/O of that kind.
    pub fn have(&self, section: Section) -> bool {
        self.read.iter().zip(&self.write).any(|(read, write)| section.select(read, write).count > 0)
    }

    pub fn width_s(&self) -> f64 {
        self.width_ns as f64 / 1e9
    }

    /// Deviation of the I/Os a second from bucket to bucket, of all buckets (not of a sample).
    pub fn iops_deviation(&self, section: Section) -> Option<f64> {
        let tallies = self.read.iter().zip(&self.write).map(|(read, write)| section.select(read, write));
        let counts: Vec<f64> = tallies.map(|tally| tally.count as f64).collect();
        if counts.is_empty() {
            return None;
        }
        let mean = counts.iter().sum::<f64>() / counts.len() as f64;
        let squares: f64 = counts.iter().map(|count| (count - mean) * (count - mean)).sum();
        Some((squares / counts.len() as f64).sqrt() / self.width_s())
    }
}

fn add(sum: &mut Vec<Tally>, more: &[Tally]) {
    if sum.len() < more.len() {
        sum.resize(more.len(), Tally::default());
    }
    sum.iter_mut().zip(more).for_each(|(sum, more)| sum.merge(more));
}
