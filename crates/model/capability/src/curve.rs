use crate::{Humps, Knee, ThroughputSlices, humps};
use serde::{Deserialize, Serialize};
use statistics::poisson_half_width;
use std::time::Duration;
use workload::{RunResult, Shape};

/// One steady stretch of load at a fixed number of outstanding I/Os.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Point {
    /// I/Os kept outstanding over all threads.
    pub outstanding: u32,
    /// I/Os a second.
    pub iops: f64,
    /// Half the width of the 95 % confidence interval of `iops`.
    pub iops_half_width: f64,
    /// MiB a second.
    pub mib_per_s: f64,
    /// Mean latency, nanoseconds.
    pub latency_ns: f64,
    /// Median latency, nanoseconds.
    pub latency_ns_p50: u64,
    /// 99th percentile, nanoseconds; `None` with too few I/Os behind it.
    pub latency_ns_p99: Option<u64>,
    /// Longest latency, nanoseconds.
    pub latency_ns_max: u64,
    /// Outstanding I/Os really reached, IOPS x mean latency (Little 1961).
    pub outstanding_measured: f64,
    /// I/Os behind these figures.
    pub ios: u64,
    /// I/Os that failed.
    pub failed: u64,
    /// Measured seconds.
    pub seconds: f64,
    /// Whether throughput was steady by the rule of [`ThroughputSlices`].
    pub steady: bool,
    /// CPU time of the load threads for each I/O, nanoseconds.
    pub cpu_ns_per_io: f64,
    /// Share of its core that the busiest load thread used, 0 to 1.
    pub client_busy: f64,
    /// Two separate groups of latencies, as a cap makes them.
    pub humps: Option<Humps>,
}

impl Point {
    /// A run as a point: its interval is Student's t over the rows of its series as batches.
    pub fn from_result(result: &RunResult) -> Point {
        let mut slices = ThroughputSlices::default();
        let (mut elapsed, mut ios) = (Duration::ZERO, 0_u64);
        slices.record(elapsed, ios);
        for slice in &result.series {
            ios = ios.saturating_add(slice.total().count);
            elapsed = Duration::from_nanos(slice.end_ns);
            slices.record(elapsed, ios);
        }
        // With too few slices for an interval the count itself bounds it.
        let half_width = slices.mean_interval().half_width;
        let half_width = half_width.unwrap_or_else(|| poisson_half_width(result.iops(), result.ios()));
        Point::new(result, half_width, slices.is_steady())
    }

    /// A run as a point, with the precision and steadiness of its throughput.
    pub fn new(result: &RunResult, iops_half_width: f64, steady: bool) -> Point {
        let latencies = result.total_latency();
        Point {
            outstanding: result.workload.outstanding_total(),
            iops: result.iops(),
            iops_half_width,
            mib_per_s: result.mib_per_s(),
            latency_ns: latencies.mean_ns().unwrap_or(0.0),
            latency_ns_p50: latencies.percentile_ns(50.0).unwrap_or(0),
            latency_ns_p99: latencies.supported_percentile_ns(99.0),
            latency_ns_max: latencies.max_ns().unwrap_or(0),
            outstanding_measured: result.outstanding(),
            ios: result.ios(),
            failed: result.failed(),
            seconds: result.elapsed_s(),
            steady,
            cpu_ns_per_io: result.cpu_ns_per_io().unwrap_or(0.0),
            client_busy: result.thread_busy_max(),
            humps: latencies.histogram().and_then(humps),
        }
    }
}

/// Points of one shape, by rising number of outstanding I/Os, and where they saturate.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Curve {
    /// Shape of each I/O.
    pub workload: Shape,
    /// The points, by rising `outstanding`.
    pub points: Vec<Point>,
    /// Where it saturates; `None` for a curve of one point (log writes have one writer).
    pub knee: Option<Knee>,
}

impl Curve {
    /// Mean latency (ns) at a number of outstanding I/Os, between the measured points by linear
    /// interpolation. Below the first point: that point's. Beyond the last one the throughput stays and
    /// latency grows with N (the saturation asymptote). `None` without points.
    pub fn latency_ns_at(&self, outstanding: f64) -> Option<f64> {
        let first = self.points.first()?;
        let last = self.points.last()?;
        if outstanding <= f64::from(first.outstanding) {
            return Some(first.latency_ns);
        }
        if outstanding >= f64::from(last.outstanding) {
            return Some(last.latency_ns * outstanding / f64::from(last.outstanding));
        }
        let pair = self.points.windows(2).find(|pair| outstanding <= f64::from(pair[1].outstanding))?;
        let (from, to) = (f64::from(pair[0].outstanding), f64::from(pair[1].outstanding));
        let share = (outstanding - from) / (to - from);
        Some(pair[0].latency_ns + share * (pair[1].latency_ns - pair[0].latency_ns))
    }

    /// The highest throughput of any point, I/Os a second; `None` without points.
    pub fn iops_max(&self) -> Option<f64> {
        self.points.iter().map(|point| point.iops).max_by(f64::total_cmp)
    }

    /// Xmax, I/Os a second: the mean of the plateau, or the highest throughput of any point where no knee is known.
    pub fn highest_rate(&self) -> Option<f64> {
        self.knee.as_ref().map(|knee| knee.iops).or_else(|| self.iops_max())
    }

    /// The lowest mean latency of any point, nanoseconds: what one I/O takes when nothing is in its way.
    pub fn latency_ns_min(&self) -> Option<f64> {
        self.points.iter().map(|point| point.latency_ns).min_by(f64::total_cmp)
    }

    /// Processor time of each I/O at the fewest outstanding, nanoseconds; `None` where it was not counted.
    pub fn cpu_ns_per_io(&self) -> Option<f64> {
        self.points.first().map(|point| point.cpu_ns_per_io).filter(|cpu_ns| *cpu_ns > 0.0)
    }
}
