//! The series of a run: its slices, several to a step where there are many.

use workload::{Latencies, RunResult, Slice, Tally};

/// A last slice shorter than this share of the others has a noisy rate.
const SLICE_MIN: f64 = 0.5;

/// Slices of a run as one point.
#[derive(Clone, Debug, Default)]
pub(crate) struct Step {
    pub(crate) from_s: f64,
    pub(crate) to_s: f64,
    pub(crate) read: Tally,
    pub(crate) write: Tally,
    pub(crate) read_latencies: Latencies,
    pub(crate) write_latencies: Latencies,
}

/// The steps of a run, at most `most`, and the number of slices in each of them.
pub(crate) fn steps(result: &RunResult, most: usize) -> (Vec<Step>, usize) {
    let mut slices = &result.series[..];
    let begin_of = |at: usize| at.checked_sub(1).map_or(0, |before| result.series[before].end_ns);
    if let [.., last] = slices
        && slices.len() > 1
        && (last.end_ns.saturating_sub(begin_of(slices.len() - 1)) as f64)
            < result.slice_ns as f64 * SLICE_MIN
    {
        slices = &slices[..slices.len() - 1];
    }
    let each = slices.len().div_ceil(most).max(1);
    let mut from_ns = 0;
    let step = |slices: &[Slice]| {
        let to_ns = slices.last().map_or(from_ns, |slice| slice.end_ns);
        let mut step = Step { from_s: from_ns as f64 / 1e9, to_s: to_ns as f64 / 1e9, ..Step::default() };
        for slice in slices {
            step.read.merge(&slice.read);
            step.write.merge(&slice.write);
            step.read_latencies.merge(&slice.read_latencies);
            step.write_latencies.merge(&slice.write_latencies);
        }
        from_ns = to_ns;
        step
    };
    (slices.chunks(each).map(step).collect(), each)
}

impl Step {
    pub(crate) fn middle_s(&self) -> f64 {
        f64::midpoint(self.from_s, self.to_s)
    }
}
