//! Sums from what other tools tell: means and deviations instead of sums.

use workload::Tally;

/// What a tool tells of some I/Os; latencies in nanoseconds.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Told {
    pub count: u64,
    pub bytes: u64,
    pub mean_ns: Option<f64>,
    pub deviation_ns: Option<f64>,
    pub min_ns: Option<u64>,
    pub max_ns: Option<u64>,
}

impl Told {
    /// As sums. What is not told stays 0, which a tally has for "not known".
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
            // Beyond 64 bits the conversion stays at the largest.
            stall_ns: mean_ns.map_or(0, |mean| (mean * count).round() as u64),
            squares_ns2: if squares_ns2.is_finite() { squares_ns2 } else { 0.0 },
            ns_min: self.min_ns.filter(|_| self.count > 0).unwrap_or(0),
            ns_max: self.max_ns.filter(|_| self.count > 0).unwrap_or(0),
        }
    }
}

/// Milliseconds as nanoseconds; `None` for what is no time.
pub(crate) fn ms_to_ns(ms: f64) -> Option<u64> {
    (ms.is_finite() && (0.0..=MS_MAX).contains(&ms)).then(|| (ms * 1e6).round() as u64)
}

/// Seconds as nanoseconds; `None` for what is no time.
pub(crate) fn s_to_ns(s: f64) -> Option<u64> {
    ms_to_ns(s * 1e3)
}

/// A year: no run and no I/O is longer.
const MS_MAX: f64 = 366.0 * 86_400.0 * 1e3;

/// A whole number from a rate over a time.
pub(crate) fn rounded(value: f64) -> u64 {
    if value.is_finite() { value.round().max(0.0) as u64 } else { 0 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_told_is_not_known() {
        let told = Told { count: 10, bytes: 40_960, ..Told::default() };
        assert_eq!((told.tally().mean_ns(), told.tally().deviation_ns()), (None, None));
        let told = Told { mean_ns: Some(2_000.0), deviation_ns: Some(500.0), ..told };
        assert_eq!(told.tally().mean_ns(), Some(2_000.0));
        assert!((told.tally().deviation_ns().unwrap() - 500.0).abs() < 1e-6);
    }
}
