//! Sums from the figures that other tools report: means and deviations.

use workload::Tally;

/// A summary of I/Os as a tool reports it; latencies in nanoseconds.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Summary {
    pub count: u64,
    pub bytes: u64,
    pub mean_ns: Option<f64>,
    pub deviation_ns: Option<f64>,
    pub min_ns: Option<u64>,
    pub max_ns: Option<u64>,
}

impl Summary {
    /// The summary as sums. Missing figures are 0, which means unknown in a tally.
    pub fn tally(&self) -> Tally {
        let known = |ns: &f64| ns.is_finite() && *ns > 0.0;
        let mean_ns = self.mean_ns.filter(|_| self.count > 0).filter(known);
        let count = self.count as f64;
        let squares_ns2 = match (mean_ns, self.deviation_ns.filter(|ns| ns.is_finite())) {
            (Some(mean), Some(deviation)) => (deviation * deviation + mean * mean) * count,
            _ => 0.0,
        };
        Tally {
            count: self.count,
            bytes: self.bytes,
            // The conversion saturates.
            stall_ns: mean_ns.map_or(0, |mean| (mean * count).round() as u64),
            squares_ns2: if squares_ns2.is_finite() { squares_ns2 } else { 0.0 },
            ns_min: self.min_ns.filter(|_| self.count > 0).unwrap_or(0),
            ns_max: self.max_ns.filter(|_| self.count > 0).unwrap_or(0),
        }
    }
}

/// Milliseconds as nanoseconds; `None` for a value that is not a time.
pub(crate) fn ms_to_ns(ms: f64) -> Option<u64> {
    (ms.is_finite() && (0.0..=MS_MAX).contains(&ms)).then(|| (ms * 1e6).round() as u64)
}

/// Seconds as nanoseconds; `None` for a value that is not a time.
pub(crate) fn s_to_ns(s: f64) -> Option<u64> {
    ms_to_ns(s * 1e3)
}

/// A year: longer times are taken for damaged input.
const MS_MAX: f64 = 366.0 * 86_400.0 * 1e3;

/// A count from a rate and a time.
pub(crate) fn rounded(value: f64) -> u64 {
    if value.is_finite() { value.round().max(0.0) as u64 } else { 0 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_missing_figure_is_unknown() {
        let summary = Summary { count: 10, bytes: 40_960, ..Summary::default() };
        assert_eq!((summary.tally().mean_ns(), summary.tally().deviation_ns()), (None, None));
        let summary = Summary { mean_ns: Some(2_000.0), deviation_ns: Some(500.0), ..summary };
        assert_eq!(summary.tally().mean_ns(), Some(2_000.0));
        assert!((summary.tally().deviation_ns().unwrap() - 500.0).abs() < 1e-6);
    }
}
