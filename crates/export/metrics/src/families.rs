//! Metric families, which all formats write.

use filestats::{LatencyBuckets, LatencyTotals};

/// A metric family: the series of one name.
pub(crate) struct Family {
    pub name: &'static str,
    pub kind: FamilyKind,
    pub unit: Unit,
    pub help: &'static str,
    pub points: Vec<Point>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FamilyKind {
    Counter,
    Gauge,
    Histogram,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Unit {
    None,
    Bytes,
    Seconds,
    Ratio,
    Operations,
    OperationsPerSecond,
    BytesPerSecond,
    SecondsPerByte,
}

/// A value with its labels; several series of a histogram.
pub(crate) struct Point {
    /// Labels in the order of the text format.
    pub labels: Vec<(&'static str, String)>,
    pub value: Value,
    /// When a counter or histogram was zero, nanoseconds since 1970, where that is known.
    pub since_unix_ns: Option<u64>,
}

#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Value {
    Number(f64),
    Histogram(Histogram),
}

/// A classic histogram.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Histogram {
    /// Observations in each bucket; the last one has no upper bound.
    pub counts: [u64; BUCKETS],
    /// The sum of all values, seconds.
    pub sum: f64,
}

/// A histogram's cost for a server is its buckets.
pub(crate) const BUCKETS: usize = 16;
/// The upper bounds of all but the last, as powers of two of nanoseconds: 16 us to 2.1 s. Those of [`LatencyBuckets`] are among them, so
/// that no latency is counted in another bucket than its own.
const BOUNDS_LOG2: [u32; BUCKETS - 1] = [14, 16, 17, 18, 19, 20, 21, 22, 23, 24, 25, 26, 27, 29, 31];

/// A series as Prometheus names it.
pub(crate) struct Series<'a> {
    pub name: String,
    /// The label that further labels precede: of a bucket.
    pub bound: Option<String>,
    pub point: &'a Point,
    pub value: f64,
}

impl Family {
    /// The series of all points.
    pub fn series(&self) -> impl Iterator<Item = Series<'_>> {
        self.points.iter().flat_map(|point| self.series_of(point))
    }

    /// Those of one point.
    pub fn series_of<'a>(&self, point: &'a Point) -> Vec<Series<'a>> {
        let series = |suffix: &str, bound: Option<String>, value: f64| Series {
            name: format!("{}{suffix}", self.name),
            bound,
            point,
            value,
        };
        match &point.value {
            Value::Number(value) => {
                let suffix = if self.kind == FamilyKind::Counter { "_total" } else { "" };
                vec![series(suffix, None, *value)]
            }
            Value::Histogram(histogram) => {
                let bounds = bounds_s().map(written_bound).chain(["+Inf".to_owned()]);
                let buckets = bounds.zip(histogram.cumulative());
                let mut all: Vec<Series<'a>> =
                    buckets.map(|(bound, count)| series("_bucket", Some(bound), count as f64)).collect();
                all.push(series("_count", None, histogram.count() as f64));
                all.push(series("_sum", None, histogram.sum));
                all
            }
        }
    }
}

/// The upper bounds of all buckets but the last, seconds.
pub(crate) fn bounds_s() -> impl Iterator<Item = f64> {
    BOUNDS_LOG2.into_iter().map(|log2| (1_u64 << log2) as f64 / 1e9)
}

/// As Go and so Prometheus 3 writes it, whatever a server is sent: scraped and pushed series have the same labels.
fn written_bound(bound_s: f64) -> String {
    if bound_s < 1e-4 { format!("{bound_s:e}").replace("e-", "e-0") } else { bound_s.to_string() }
}

impl Histogram {
    /// Of latencies in finer buckets.
    pub fn new(totals: &LatencyTotals) -> Histogram {
        let mut counts = [0_u64; BUCKETS];
        for (index, count) in totals.buckets.filled() {
            let lower_ns = LatencyBuckets::lower_ns(index);
            let at = BOUNDS_LOG2.iter().take_while(|log2| lower_ns >= 1 << **log2).count();
            counts[at] = counts[at].saturating_add(count);
        }
        Histogram { counts, sum: totals.time_ns as f64 / 1e9 }
    }

    pub fn count(&self) -> u64 {
        self.counts.iter().fold(0, |sum, count| sum.saturating_add(*count))
    }

    /// Observations at or below each bound.
    pub fn cumulative(&self) -> impl Iterator<Item = u64> {
        self.counts.iter().scan(0_u64, |sum, count| {
            *sum = sum.saturating_add(*count);
            Some(*sum)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_latency_is_in_the_bucket_of_its_bounds() {
        for (ns, below) in [(1, 0), (16_383, 0), (16_384, 1), (1_000_000, 5), (1 << 31, 15), (u64::MAX, 15)] {
            let mut totals = LatencyTotals::default();
            totals.buckets.record(ns);
            let histogram = Histogram::new(&totals);
            assert_eq!(histogram.counts.iter().position(|count| *count > 0), Some(below), "{ns}");
            assert_eq!(histogram.count(), 1);
        }
        let bounds: Vec<String> = bounds_s().map(written_bound).collect();
        assert_eq!(bounds[..3], ["1.6384e-05", "6.5536e-05", "0.000131072"]);
        // No bucket of the source lies across a bound.
        for log2 in BOUNDS_LOG2 {
            assert_eq!(LatencyBuckets::lower_ns(LatencyBuckets::index(1 << log2)), 1 << log2);
        }
    }
}
