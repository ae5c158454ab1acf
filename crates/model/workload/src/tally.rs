use crate::LatencyHistogram;
use serde::{Deserialize, Serialize};

/// Sums over some I/Os: enough for their rate, mean latency and its deviation.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Tally {
    /// I/Os.
    pub count: u64,
    /// Bytes they moved.
    pub bytes: u64,
    /// Summed latency; 0 without I/Os, and where another tool did not report it, as no I/O takes no time.
    pub stall_ns: u64,
    /// Sum of the squared latencies; 0 where not known.
    pub squares_ns2: f64,
    /// Shortest latency; 0 without I/Os, and where not known.
    pub ns_min: u64,
    /// Longest latency; 0 without I/Os, and where not known.
    pub ns_max: u64,
}

/// One row of a run's series: what completed in a slice of time, by default a second.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Slice {
    /// When it ends, nanoseconds since the measured part began.
    pub end_ns: u64,
    /// Reads.
    pub read: Tally,
    /// Writes.
    pub write: Tally,
    /// Latencies of the reads.
    #[serde(default, skip_serializing_if = "Latencies::is_empty")]
    pub read_latencies: Latencies,
    /// Latencies of the writes.
    #[serde(default, skip_serializing_if = "Latencies::is_empty")]
    pub write_latencies: Latencies,
}

/// The filled ranges of a histogram: (highest latency of the range in nanoseconds, count), rising. Small
/// where a [`LatencyHistogram`] is fast.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(rename = "SliceLatencies"))]
#[serde(transparent)]
pub struct Latencies(pub Vec<(u64, u64)>);

impl Tally {
    /// Counts `n` I/Os of the same latency and `bytes` each.
    #[inline]
    pub fn record_n(&mut self, latency_ns: u64, bytes: u64, n: u64) {
        let stall_ns = latency_ns.saturating_mul(n);
        self.ns_min = if self.count == 0 { latency_ns } else { self.ns_min.min(latency_ns) };
        self.ns_max = self.ns_max.max(latency_ns);
        self.count += n;
        self.bytes = self.bytes.saturating_add(bytes.saturating_mul(n));
        self.stall_ns = self.stall_ns.saturating_add(stall_ns);
        self.squares_ns2 += latency_ns as f64 * latency_ns as f64 * n as f64;
    }

    /// Adds another tally.
    pub fn merge(&mut self, other: &Tally) {
        if other.count == 0 {
            return;
        }
        self.ns_min = if self.count == 0 { other.ns_min } else { self.ns_min.min(other.ns_min) };
        self.ns_max = self.ns_max.max(other.ns_max);
        self.count = self.count.saturating_add(other.count);
        self.bytes = self.bytes.saturating_add(other.bytes);
        self.stall_ns = self.stall_ns.saturating_add(other.stall_ns);
        self.squares_ns2 += other.squares_ns2;
    }

    /// Both together.
    #[must_use]
    pub fn plus(mut self, other: &Tally) -> Tally {
        self.merge(other);
        self
    }

    /// Mean latency in nanoseconds; `None` without I/Os, and where not known.
    pub fn mean_ns(&self) -> Option<f64> {
        (self.count > 0 && self.stall_ns > 0).then(|| self.stall_ns as f64 / self.count as f64)
    }

    /// Standard deviation of the latency in nanoseconds, of all I/Os (not of a sample); `None` without I/Os,
    /// and where not known.
    pub fn deviation_ns(&self) -> Option<f64> {
        let mean = self.mean_ns().filter(|_| self.squares_ns2 > 0.0)?;
        Some((self.squares_ns2 / self.count as f64 - mean * mean).max(0.0).sqrt())
    }
}

impl Slice {
    /// Reads and writes.
    pub fn total(&self) -> Tally {
        self.read.plus(&self.write)
    }

    /// Adds the same slice of another thread.
    pub fn merge(&mut self, other: &Slice) {
        self.end_ns = self.end_ns.max(other.end_ns);
        self.read.merge(&other.read);
        self.write.merge(&other.write);
        self.read_latencies.merge(&other.read_latencies);
        self.write_latencies.merge(&other.write_latencies);
    }
}

impl Latencies {
    /// Whether nothing was counted.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Adds another series of ranges; where both have a range, the counts add up.
    pub fn merge(&mut self, other: &Latencies) {
        if other.is_empty() {
            return;
        }
        // Of two rising runs the stable sort is a merge.
        self.0.extend(&other.0);
        self.0.sort_by_key(|(ns, _)| *ns);
        self.0.dedup_by(|next, kept| {
            let same = next.0 == kept.0;
            if same {
                kept.1 = kept.1.saturating_add(next.1);
            }
            same
        });
    }

    /// As a histogram; its sum is that of the ranges, not the exact one.
    pub fn histogram(&self) -> LatencyHistogram {
        let mut histogram = LatencyHistogram::new();
        self.0.iter().for_each(|(ns, count)| histogram.record_n(*ns, *count));
        histogram
    }
}

impl From<&LatencyHistogram> for Latencies {
    fn from(histogram: &LatencyHistogram) -> Latencies {
        Latencies(histogram.filled().collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn tally(latencies: &[u64]) -> Tally {
        let mut tally = Tally::default();
        latencies.iter().for_each(|ns| tally.record_n(*ns, 512, 1));
        tally
    }

    proptest! {
        #[test]
        fn tallies_add_up_in_any_split(latencies in prop::collection::vec(1_u64..1 << 40, 0..50), cut in 0_usize..50) {
            let cut = cut.min(latencies.len());
            let whole = tally(&latencies);
            let parts = tally(&latencies[..cut]).plus(&tally(&latencies[cut..]));
            prop_assert_eq!((whole.count, whole.stall_ns, whole.ns_min), (parts.count, parts.stall_ns, parts.ns_min));
            prop_assert_eq!((whole.ns_max, whole.bytes), (parts.ns_max, parts.bytes));
        }

        #[test]
        fn ranges_merge_as_their_histograms_do(
            ours in prop::collection::vec(1_u64..1 << 40, 0..50),
            theirs in prop::collection::vec(1_u64..1 << 40, 0..50),
        ) {
            let histogram = |values: &[u64]| {
                let mut histogram = LatencyHistogram::new();
                values.iter().for_each(|ns| histogram.record(*ns));
                histogram
            };
            let mut merged = Latencies::from(&histogram(&ours));
            merged.merge(&Latencies::from(&histogram(&theirs)));
            let all: Vec<u64> = ours.iter().chain(&theirs).copied().collect();
            prop_assert_eq!(merged, Latencies::from(&histogram(&all)));
        }
    }

    #[test]
    fn the_deviation_is_that_of_all_ios() {
        assert_eq!(tally(&[2, 4, 4, 4, 5, 5, 7, 9]).deviation_ns(), Some(2.0));
        assert_eq!(Tally::default().deviation_ns(), None);
    }
}
