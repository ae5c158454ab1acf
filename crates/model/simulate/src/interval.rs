use statistics::{half_width, mean};
use workload::{RunResult, Tally};

/// A mean and half the width of its 95 % confidence interval.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Interval {
    /// The mean.
    pub mean: f64,
    /// Half the width.
    pub half_width: f64,
}

impl Interval {
    /// Whether it contains a value.
    pub fn contains(&self, value: f64) -> bool {
        (value - self.mean).abs() <= self.half_width
    }
}

/// Batches that a series is cut into.
const BATCHES: usize = 20;

/// I/Os a second and mean latency (ns) of a run, with intervals by batch means over the rows of the series (Law and
/// Kelton). `None` with fewer than twenty rows.
pub fn intervals(result: &RunResult) -> Option<(Interval, Interval)> {
    let each = result.series.len() / BATCHES;
    if each == 0 {
        return None;
    }
    let batches: Vec<Tally> = result
        .series
        .chunks_exact(each)
        .take(BATCHES)
        .map(|rows| rows.iter().fold(Tally::default(), |sum, row| sum.plus(&row.total())))
        .collect();
    let seconds = result.slice_ns as f64 * each as f64 / 1e9;
    let rates: Vec<f64> = batches.iter().map(|batch| batch.count as f64 / seconds).collect();
    let rate = Interval { mean: result.iops(), half_width: half_width(&rates, mean(&rates)) };
    let latency_ns = result.mean_latency_ns()?;
    // Of a ratio: the deviation of each batch's sum from its count times the mean, divided by the mean count.
    let count = batches.iter().map(|batch| batch.count as f64).sum::<f64>() / BATCHES as f64;
    let deviations: Vec<f64> = batches
        .iter()
        .map(|batch| (batch.stall_ns as f64 - latency_ns * batch.count as f64) / count)
        .collect();
    Some((rate, Interval { mean: latency_ns, half_width: half_width(&deviations, mean(&deviations)) }))
}
