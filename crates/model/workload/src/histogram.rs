use base64::{Engine, engine::general_purpose::STANDARD as BASE64};
use hdrhistogram::Histogram;
use hdrhistogram::serialization::{Deserializer as HdrDeserializer, Serializer as _, V2Serializer};
use serde::{Deserialize, Deserializer, Serialize, Serializer, de::Error as _, ser::Error as _};

/// Latencies of one direction: an HdrHistogram of nanoseconds with three significant digits, from 1 ns
/// to one hour, and their exact sum.
///
/// In JSON: `{"sum_ns", "hdr"}`, `hdr` being HdrHistogram's own V2 encoding in base 64, readable by
/// every HdrHistogram library.
#[derive(Clone, Debug, PartialEq)]
pub struct LatencyHistogram {
    histogram: Histogram<u64>,
    sum_ns: u64,
}

const LONGEST_NS: u64 = 3_600_000_000_000;

impl LatencyHistogram {
    /// An empty histogram.
    pub fn new() -> Self {
        let histogram = Histogram::new_with_bounds(1, LONGEST_NS, 3).expect("constant bounds are valid");
        LatencyHistogram { histogram, sum_ns: 0 }
    }

    /// Counts one latency. One above an hour counts as an hour; the sum stays exact.
    #[inline]
    pub fn record(&mut self, latency_ns: u64) {
        self.record_n(latency_ns, 1);
    }

    /// Counts `n` equal latencies at the cost of one.
    #[inline]
    pub fn record_n(&mut self, latency_ns: u64, n: u64) {
        self.histogram.saturating_record_n(latency_ns.min(LONGEST_NS), n);
        self.sum_ns = self.sum_ns.saturating_add(latency_ns.saturating_mul(n));
    }

    /// Forgets everything.
    pub fn clear(&mut self) {
        self.histogram.reset();
        self.sum_ns = 0;
    }

    /// Adds another histogram.
    pub fn merge(&mut self, other: &LatencyHistogram) {
        self.histogram.add(&other.histogram).expect("all histograms have the same bounds");
        self.sum_ns = self.sum_ns.saturating_add(other.sum_ns);
    }

    /// Returns the counts with an exact sum, where the caller knows it.
    #[must_use]
    pub fn with_sum(self, sum_ns: u64) -> LatencyHistogram {
        LatencyHistogram { sum_ns, ..self }
    }

    /// Number of counted latencies.
    pub fn count(&self) -> u64 {
        self.histogram.len()
    }

    /// Exact sum of all latencies in nanoseconds.
    pub fn sum_ns(&self) -> u64 {
        self.sum_ns
    }

    /// Exact mean in nanoseconds; `None` without samples.
    pub fn mean_ns(&self) -> Option<f64> {
        (self.count() > 0).then(|| self.sum_ns as f64 / self.count() as f64)
    }

    /// Standard deviation in nanoseconds; `None` without samples.
    pub fn deviation_ns(&self) -> Option<f64> {
        (self.count() > 0).then(|| self.histogram.stdev())
    }

    /// Shortest latency; `None` without samples.
    pub fn min_ns(&self) -> Option<u64> {
        (self.count() > 0).then(|| self.histogram.min())
    }

    /// Longest latency; `None` without samples.
    pub fn max_ns(&self) -> Option<u64> {
        (self.count() > 0).then(|| self.histogram.max())
    }

    /// The latency that `percent` of the samples do not exceed; `None` without samples.
    pub fn percentile_ns(&self, percent: f64) -> Option<u64> {
        (self.count() > 0).then(|| self.histogram.value_at_percentile(percent))
    }

    /// Whether enough samples lie above `percent`, by [`statistics::supports_percentile`].
    pub fn supports_percentile(&self, percent: f64) -> bool {
        statistics::supports_percentile(self.count(), percent)
    }

    /// Filled ranges as (highest latency of the range in ns, count).
    pub fn filled(&self) -> impl Iterator<Item = (u64, u64)> + '_ {
        self.histogram.iter_recorded().map(|step| (step.value_iterated_to(), step.count_at_value()))
    }
}

/// The counts of a [`LatencyHistogram`] without its other fields, to count millions a second.
#[derive(Clone, Debug)]
pub struct LatencyCounts {
    counts: Box<[u64]>,
    /// None is counted from here on.
    end: usize,
}

/// Of three significant digits: 2048 ranges of 1 ns, then 1024 for each doubling.
const FINE: usize = 2048;
const DOUBLINGS: usize = (LONGEST_NS.ilog2() - FINE.ilog2() + 1) as usize;

impl Default for LatencyCounts {
    fn default() -> LatencyCounts {
        LatencyCounts { counts: vec![0; FINE + DOUBLINGS * FINE / 2].into(), end: 0 }
    }
}

impl LatencyCounts {
    /// Counts `n` equal latencies. One above an hour counts as an hour.
    #[inline]
    pub fn record_n(&mut self, latency_ns: u64, n: u64) {
        let latency_ns = latency_ns.min(LONGEST_NS);
        let doubling = (latency_ns | (FINE as u64 - 1)).ilog2() as usize - (FINE.ilog2() as usize - 1);
        let range = doubling * (FINE / 2) + (latency_ns >> doubling) as usize;
        self.counts[range] += n;
        self.end = self.end.max(range + 1);
    }

    /// Adds the counts to a histogram, with the exact sum that the caller knows, and clears them.
    pub fn pour(&mut self, histogram: &mut LatencyHistogram, sum_ns: u64) {
        for (range, count) in self.counts[..self.end].iter_mut().enumerate().filter(|(_, count)| **count > 0)
        {
            let doubling = (range / (FINE / 2)).saturating_sub(1);
            let latency_ns = ((range - doubling * (FINE / 2)) as u64) << doubling;
            histogram.histogram.saturating_record_n(latency_ns, std::mem::take(count));
        }
        histogram.sum_ns = histogram.sum_ns.saturating_add(sum_ns);
        self.end = 0;
    }
}

impl Default for LatencyHistogram {
    fn default() -> Self {
        Self::new()
    }
}

/// All latencies of one kind of I/O.
#[derive(Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(rename = "LatencyHistogram"))]
struct Encoded {
    /// Their sum, nanoseconds, exact.
    sum_ns: u64,
    /// All of them: HdrHistogram's V2 encoding in base 64, nanoseconds, three digits.
    hdr: String,
}

#[cfg(feature = "schema")]
impl schemars::JsonSchema for LatencyHistogram {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> std::borrow::Cow<'static, str> {
        "LatencyHistogram".into()
    }

    fn json_schema(generator: &mut schemars::SchemaGenerator) -> schemars::Schema {
        generator.subschema_for::<Encoded>()
    }
}

impl Serialize for LatencyHistogram {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut bytes = Vec::new();
        V2Serializer::new().serialize(&self.histogram, &mut bytes).map_err(S::Error::custom)?;
        Encoded { sum_ns: self.sum_ns, hdr: BASE64.encode(&bytes) }.serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for LatencyHistogram {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let encoded = Encoded::deserialize(deserializer)?;
        let bytes = BASE64.decode(&encoded.hdr).map_err(D::Error::custom)?;
        let read: Histogram<u64> =
            HdrDeserializer::new().deserialize(&mut bytes.as_slice()).map_err(D::Error::custom)?;
        let mut latencies = LatencyHistogram::new();
        latencies.histogram.add(&read).map_err(D::Error::custom)?;
        latencies.sum_ns = encoded.sum_ns;
        Ok(latencies)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn counts_are_the_histogram(latencies in prop::collection::vec((0..63_u32, any::<u64>(), 1..5_u64), 0..200)) {
            let (mut straight, mut poured) = (LatencyHistogram::new(), LatencyHistogram::new());
            let mut counts = LatencyCounts::default();
            for half in latencies.chunks(100) {
                let mut sum_ns = 0;
                for (bits, any, n) in half {
                    let latency_ns = any >> bits >> 1;
                    straight.record_n(latency_ns, *n);
                    counts.record_n(latency_ns, *n);
                    sum_ns = latency_ns.saturating_mul(*n).saturating_add(sum_ns);
                }
                counts.pour(&mut poured, sum_ns);
            }
            prop_assert_eq!(poured, straight);
        }
    }

    proptest! {
        #[test]
        fn json_keeps_counts_percentiles_and_the_exact_sum(
            latencies in prop::collection::vec(1_u64..4_000_000_000_000, 0..60),
        ) {
            let mut histogram = LatencyHistogram::new();
            latencies.iter().for_each(|latency| histogram.record(*latency));
            let text = serde_json::to_string(&histogram).unwrap();
            let read: LatencyHistogram = serde_json::from_str(&text).unwrap();
            prop_assert_eq!(read.sum_ns(), latencies.iter().sum::<u64>());
            prop_assert_eq!(read.count(), latencies.len() as u64);
            prop_assert_eq!(read.percentile_ns(99.0), histogram.percentile_ns(99.0));
        }
    }

    #[test]
    fn a_percentile_without_enough_samples_says_so() {
        let mut histogram = LatencyHistogram::new();
        histogram.record_n(1_000, 9_999);
        assert!(histogram.supports_percentile(99.0));
        assert!(!histogram.supports_percentile(99.99));
        assert_eq!(LatencyHistogram::new().percentile_ns(50.0), None);
    }
}
