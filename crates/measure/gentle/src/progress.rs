//! Progress of a gentle measurement: kept between runs, so that it continues.

use capability::{Point, humps};
use serde::{Deserialize, Serialize};
use statistics::{half_width, poisson_half_width};
use workload::{LatencyFigures, LatencyHistogram, Shape};

/// Knowledge gained so far, and the used part of the budgets.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Progress {
    /// When it began, nanoseconds since 1970.
    pub began_unix_ns: u64,
    /// Seconds that the program ran, in all of its runs.
    pub elapsed_s: f64,
    /// Seconds in which its own reads were in flight.
    pub loaded_s: f64,
    /// Seconds of them in which others' I/O may have become slower.
    pub disturbed_s: f64,
    /// How often a guard stopped a burst.
    pub stops: u32,
    /// The kinds of reads, in the order in which they are measured.
    pub shapes: Vec<ShapeProgress>,
}

/// Knowledge of one kind of reads.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ShapeProgress {
    /// Shape of each read.
    pub shape: Shape,
    /// Median latency of a few reads far apart, nanoseconds: what later latencies are compared with.
    pub rest_ns: Option<f64>,
    /// By rising outstanding I/Os; the last one may be incomplete.
    pub steps: Vec<Step>,
    /// Why there are no more of them; `None` while there are.
    pub ended: Option<CurveEnd>,
    /// Where the next sequential burst begins.
    pub next_offset_bytes: u64,
    /// Reads complete in bursts, as a token bucket lets them.
    pub is_bursty: bool,
    /// Operations limit these reads, not bytes: each I/O of others counts as one of the load.
    pub counts_operations: bool,
}

/// Why a curve ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum CurveEnd {
    /// Throughput stopped rising.
    Flat,
    /// More would take latency over the guard.
    Guard,
    /// More would be over the rate that is permitted.
    Rate,
    /// The largest number outstanding was measured.
    Outstanding,
}

/// Bursts with the same number of reads outstanding.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Step {
    /// Reads that the load keeps outstanding.
    pub outstanding: u32,
    /// Bursts that were measured whole.
    pub bursts: u32,
    /// Seconds measured.
    pub seconds: f64,
    /// Reads of the load.
    pub own_ios: u64,
    /// I/O of others at the same time, in I/Os that cost as much as one of the load.
    pub others_ios: f64,
    /// I/Os a second of all, in stretches of a tenth of a second.
    pub rates: Vec<f64>,
    /// `others_ios` and `rates` where each I/O of others counts as one of the load.
    pub by_operations: ByOperations,
    /// Latencies of the load's reads.
    pub latencies: LatencyHistogram,
    /// Reads that failed.
    pub failed: u64,
    /// Share of its core that the busiest load thread used.
    pub client_busy: f64,
    /// Processor time of each read, nanoseconds.
    pub cpu_ns_per_io: f64,
    /// Whether the last burst made I/Os slower; `None` before the first.
    pub disturbs: Option<bool>,
    /// Bursts in a row that the guard stopped.
    pub stops: u32,
}

/// Others' I/Os beside reads of the load, by the requests that the device counts.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ByOperations {
    /// Requests that the device counts for each read of the load.
    pub requests_each: u64,
    /// I/Os of others, each `requests_each` requests.
    pub others_ios: f64,
    /// I/Os a second of all, in stretches of a tenth of a second.
    pub rates: Vec<f64>,
}

/// One burst that was measured whole.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Burst {
    /// Seconds measured.
    pub seconds: f64,
    /// Reads of the load.
    pub own_ios: u64,
    /// Others' I/Os, in I/Os that cost as much as one of the load.
    pub others_ios: f64,
    /// I/Os a second of all, in stretches of a tenth of a second.
    pub rates: Vec<f64>,
    /// `others_ios` and `rates` where each I/O of others counts as one of the load.
    pub by_operations: ByOperations,
    /// Latencies of the load's reads.
    pub latencies: LatencyHistogram,
    /// Reads that failed.
    pub failed: u64,
    /// Share of its core that the busiest load thread used.
    pub client_busy: f64,
    /// Processor time of each read, nanoseconds.
    pub cpu_ns_per_io: f64,
    /// At times no read completed while some were in flight.
    pub is_bursty: bool,
}

impl Burst {
    /// Others' I/Os a second.
    pub fn others_per_s(&self) -> f64 {
        let ByOperations { requests_each, others_ios, .. } = self.by_operations;
        others_ios * requests_each as f64 / self.seconds.max(f64::MIN_POSITIVE)
    }
}

/// Stretches behind an interval, at least.
const RATES_MIN: usize = 4;
/// Throughput that rises by less over a doubling has stopped rising.
const GAIN_MIN: f64 = 0.04;
/// Two rates of operations are equal if they differ by at most this part.
const OPERATIONS_WITHIN: f64 = 0.05;

impl Progress {
    /// Nothing is known yet of these kinds of reads.
    pub fn new(shapes: &[Shape], began_unix_ns: u64) -> Progress {
        let shape = |shape: &Shape| ShapeProgress {
            shape: *shape,
            rest_ns: None,
            steps: Vec::new(),
            ended: None,
            next_offset_bytes: 0,
            is_bursty: false,
            counts_operations: false,
        };
        Progress { began_unix_ns, shapes: shapes.iter().map(shape).collect(), ..Progress::default() }
    }

    /// Whether all is known.
    pub fn is_complete(&self) -> bool {
        self.shapes.iter().all(|shape| shape.ended.is_some())
    }

    /// Points that are known.
    pub fn points(&self) -> usize {
        self.shapes.iter().map(|shape| shape.points().len()).sum()
    }
}

impl ShapeProgress {
    /// The steps that were measured, as points by rising outstanding I/Os of all: the load's and others'.
    pub fn points(&self) -> Vec<Point> {
        let mut points: Vec<Point> = self
            .steps
            .iter()
            .filter(|step| step.bursts > 0)
            .map(|step| step.point(&self.shape, self.counts_operations))
            .collect();
        points.sort_by_key(|point| point.outstanding);
        // Of two with as many outstanding, the one with more I/Os behind it.
        points.dedup_by(|later, kept| {
            let is_same = later.outstanding == kept.outstanding;
            if is_same && later.ios > kept.ios {
                std::mem::swap(later, kept);
            }
            is_same
        });
        points
    }

    /// Decides whether operations limit these reads. They do if in each step that made I/Os slower all I/Os together reach the
    /// rate at which the curve of small reads is flat.
    pub fn compare_with_small_reads(&mut self, most_operations: f64) {
        let is_as_many =
            |step: &Step| (step.requests_per_s() / most_operations - 1.0).abs() <= OPERATIONS_WITHIN;
        let mut slower =
            self.steps.iter().filter(|step| step.bursts > 0 && step.disturbs == Some(true)).peekable();
        self.counts_operations = slower.peek().is_some() && slower.all(is_as_many);
    }

    /// Whether neither of the last two doublings raised throughput.
    pub fn is_flat(&self) -> bool {
        let [.., before, middle, last] = self.steps.as_slice() else { return false };
        let iops = |step: &Step| step.iops(self.counts_operations);
        let gains = |from: &Step, to: &Step| iops(to) >= iops(from) * (1.0 + GAIN_MIN);
        !gains(before, middle) && !gains(middle, last)
    }
}

impl Step {
    /// The first burst is still to come.
    pub fn new(outstanding: u32) -> Step {
        Step { outstanding, ..Step::default() }
    }

    /// Adds a burst.
    pub fn add(&mut self, burst: &Burst) {
        self.bursts += 1;
        self.stops = 0;
        self.seconds += burst.seconds;
        self.own_ios += burst.own_ios;
        self.others_ios += burst.others_ios;
        self.rates.extend(&burst.rates);
        let ByOperations { requests_each, others_ios, rates } = &mut self.by_operations;
        *requests_each = burst.by_operations.requests_each;
        *others_ios += burst.by_operations.others_ios;
        rates.extend(&burst.by_operations.rates);
        self.latencies.merge(&burst.latencies);
        self.failed += burst.failed;
        self.client_busy = self.client_busy.max(burst.client_busy);
        self.cpu_ns_per_io = burst.cpu_ns_per_io;
    }

    /// I/Os a second of all; `by_operations`: each I/O of others counts as one of the load.
    pub fn iops(&self, by_operations: bool) -> f64 {
        let others_ios = if by_operations { self.by_operations.others_ios } else { self.others_ios };
        (self.own_ios as f64 + others_ios) / self.seconds.max(f64::MIN_POSITIVE)
    }

    /// Requests of all a second.
    fn requests_per_s(&self) -> f64 {
        self.iops(true) * self.by_operations.requests_each as f64
    }

    /// Reads a second of the load alone.
    pub fn own_iops(&self) -> f64 {
        self.own_ios as f64 / self.seconds.max(f64::MIN_POSITIVE)
    }

    /// Half the width of the 95 % interval of [`Step::iops`]: Student's t over the stretches.
    pub fn half_width(&self, by_operations: bool) -> f64 {
        let rates = if by_operations { &self.by_operations.rates } else { &self.rates };
        if rates.len() < RATES_MIN {
            return poisson_half_width(self.iops(by_operations), self.own_ios);
        }
        half_width(rates, statistics::mean(rates))
    }

    fn point(&self, shape: &Shape, by_operations: bool) -> Point {
        let (iops, latencies) = (self.iops(by_operations), &self.latencies);
        let iops_half_width = self.half_width(by_operations);
        let latency_ns = latencies.mean_ns().unwrap_or(0.0);
        // Little's law: others' I/Os wait in the same queue.
        let outstanding = iops * latency_ns / 1e9;
        Point {
            outstanding: (outstanding.round() as u32).max(1),
            iops,
            iops_half_width,
            mib_per_s: iops * f64::from(shape.block_bytes) / f64::from(1 << 20),
            latency_ns,
            latency_ns_p50: latencies.percentile_ns(50.0).unwrap_or(0),
            latency_ns_p99: LatencyFigures::from(latencies).supported_percentile_ns(99.0),
            latency_ns_max: latencies.max_ns().unwrap_or(0),
            outstanding_measured: outstanding,
            ios: self.own_ios,
            failed: self.failed,
            seconds: self.seconds,
            steady: iops_half_width <= 0.1 * iops,
            cpu_ns_per_io: self.cpu_ns_per_io,
            client_busy: self.client_busy,
            humps: humps(latencies),
        }
    }
}
