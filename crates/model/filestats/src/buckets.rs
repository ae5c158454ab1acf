use serde::{Deserialize, Deserializer, Serialize, Serializer, de::Error};

/// A histogram of latencies with a fixed, small set of counters, so that it can live in shared memory
/// and be subtracted like any other counter.
///
/// Four buckets an octave, from 0 ns to 2^40 ns (18 minutes; longer ones count in the last bucket):
///
/// ```text
/// index 0..4      one bucket per nanosecond
/// index 4(e-1)+s  the s-th quarter of 2^e ..= 2^(e+1)-1, e = 2..=39
/// ```
///
/// A value read back as its bucket's middle is off by at most 12.5 %.
///
/// Only the counters from the first that is not 0 to the last one take memory: ten thousand files with three histograms
/// each are held several times over, and most of them are filled in a few octaves.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LatencyBuckets {
    /// The index of the first of `counts`; 0 without any.
    first: usize,
    /// Neither the first nor the last of them is 0, so that equal histograms are equal.
    counts: Box<[u64]>,
}

impl LatencyBuckets {
    /// Number of counters of a histogram.
    pub const LEN: usize = 156;

    /// An empty histogram.
    pub fn new() -> Self {
        LatencyBuckets::default()
    }

    /// A histogram from its counters, in the order of [`LatencyBuckets::index`].
    pub fn from_counts(counts: [u64; Self::LEN]) -> Self {
        LatencyBuckets::from_first(0, &counts)
    }

    /// A histogram from some counters, of which the first has this index.
    ///
    /// # Panics
    /// If there are more than fit.
    pub fn from_range(first: usize, counts: &[u64]) -> Self {
        assert!(first + counts.len() <= Self::LEN, "more buckets than a histogram has");
        LatencyBuckets::from_first(first, counts)
    }

    /// Becomes the histogram of [`from_range`](Self::from_range), in the same memory where its buckets are filled in the same
    /// range.
    pub fn set_range(&mut self, first: usize, counts: &[u64]) {
        let at = self.first.checked_sub(first).filter(|_| !self.counts.is_empty());
        let own = at.and_then(|at| Some((at, at.checked_add(self.counts.len())?)));
        let is_same = own.is_some_and(|(begin, end)| {
            end <= counts.len()
                && (counts[begin] > 0 && counts[end - 1] > 0)
                && counts[..begin].iter().chain(&counts[end..]).all(|count| *count == 0)
        });
        match own {
            Some((begin, end)) if is_same => self.counts.copy_from_slice(&counts[begin..end]),
            _ => *self = LatencyBuckets::from_range(first, counts),
        }
    }

    /// From counters of which that is the first.
    fn from_first(first: usize, counts: &[u64]) -> Self {
        let Some(begin) = counts.iter().position(|count| *count > 0) else {
            return LatencyBuckets::default();
        };
        let end = counts.iter().rposition(|count| *count > 0).map_or(begin, |last| last + 1);
        LatencyBuckets { first: first + begin, counts: counts[begin..end].into() }
    }

    /// The counters that are not 0, each with its index, in their order.
    pub fn filled(&self) -> impl Iterator<Item = (usize, u64)> {
        let numbered = self.counts.iter().enumerate().map(|(at, count)| (self.first + at, *count));
        numbered.filter(|(_, count)| *count > 0)
    }

    /// A counter.
    fn get(&self, index: usize) -> u64 {
        let at = index.checked_sub(self.first);
        at.and_then(|at| self.counts.get(at)).copied().unwrap_or(0)
    }

    /// Adds to a counter; nothing to none, as those at the ends are not 0.
    fn add(&mut self, index: usize, more: u64) {
        if more == 0 {
            return;
        }
        self.widen(index, index);
        let at = index - self.first;
        self.counts[at] = self.counts[at].saturating_add(more);
    }

    /// Makes space for counters from `first` to `last`; the caller fills both.
    fn widen(&mut self, first: usize, last: usize) {
        let (first, last) = match self.counts.len() {
            0 => (first, last),
            len => (self.first.min(first), (self.first + len - 1).max(last)),
        };
        if last - first + 1 > self.counts.len() {
            let mut counts = vec![0; last - first + 1];
            let begin = self.first.saturating_sub(first);
            counts[begin..begin + self.counts.len()].copy_from_slice(&self.counts);
            (self.first, self.counts) = (first, counts.into());
        }
    }

    /// The counter a latency belongs to.
    #[inline]
    pub const fn index(latency_ns: u64) -> usize {
        if latency_ns < 4 {
            return latency_ns as usize;
        }
        let exponent = latency_ns.ilog2();
        let quarter = (latency_ns >> (exponent - 2)) & 3;
        let index = (4 * (exponent - 1)) as usize + quarter as usize;
        if index < Self::LEN { index } else { Self::LEN - 1 }
    }

    /// Smallest latency of a bucket, in nanoseconds.
    pub const fn lower_ns(index: usize) -> u64 {
        if index < 4 {
            return index as u64;
        }
        let exponent = index / 4 + 1;
        let quarter = (index % 4) as u64;
        (4 + quarter) << (exponent - 2)
    }

    /// The value that stands for a bucket: its middle, in nanoseconds.
    pub fn middle_ns(index: usize) -> f64 {
        let lower = Self::lower_ns(index) as f64;
        if index < 4 { lower } else { (lower + Self::lower_ns(index + 1) as f64) / 2.0 }
    }

    /// Counts one latency.
    pub fn record(&mut self, latency_ns: u64) {
        self.add(Self::index(latency_ns), 1);
    }

    /// Adds another histogram.
    pub fn merge(&mut self, other: &LatencyBuckets) {
        let len = other.counts.len();
        if len == 0 {
            return;
        }
        // Neither end of `other` is 0, so that both ends are filled.
        self.widen(other.first, other.first + len - 1);
        let begin = other.first - self.first;
        for (count, more) in self.counts[begin..begin + len].iter_mut().zip(&other.counts) {
            *count = count.saturating_add(*more);
        }
    }

    /// `self - earlier`, or `None` where a counter fell.
    pub fn since(&self, earlier: &LatencyBuckets) -> Option<LatencyBuckets> {
        if earlier.filled().any(|(index, then)| self.get(index) < then) {
            return None;
        }
        let grown = |at: usize| self.counts[at] - earlier.get(self.first + at);
        let Some(begin) = (0..self.counts.len()).find(|at| grown(*at) > 0) else {
            return Some(LatencyBuckets::default());
        };
        let end = (begin..self.counts.len()).rfind(|at| grown(*at) > 0).map_or(begin, |last| last + 1);
        Some(LatencyBuckets { first: self.first + begin, counts: (begin..end).map(grown).collect() })
    }

    /// All latencies counted.
    pub fn count(&self) -> u64 {
        self.counts.iter().fold(0, |sum, count| sum.saturating_add(*count))
    }

    /// The latency below which `percent` of the samples lie, as a bucket's middle; `None` without samples.
    pub fn percentile_ns(&self, percent: f64) -> Option<f64> {
        self.percentile_index(percent).map(Self::middle_ns)
    }

    /// The bucket that has a percentile.
    fn percentile_index(&self, percent: f64) -> Option<usize> {
        let total = self.count();
        if total == 0 {
            return None;
        }
        // The product first: 100 x 0.07 is a little more than 7, and would want the 8th sample.
        let wanted = (total as f64 * percent.clamp(0.0, 100.0) / 100.0).ceil().max(1.0) as u64;
        let mut seen = 0_u64;
        let mut all = self.filled();
        all.find(|(_, count)| {
            seen = seen.saturating_add(*count);
            seen >= wanted
        })
        .map(|(index, _)| index)
    }

    /// A latency that `percent` of the samples do not exceed: the largest one of the bucket that has the percentile, at
    /// most a quarter above it. `None` without samples, and where it lies in the last bucket, which has no end.
    pub fn at_most_ns(&self, percent: f64) -> Option<u64> {
        let index = self.percentile_index(percent)?;
        (index + 1 < Self::LEN).then(|| Self::lower_ns(index + 1) - 1)
    }

    /// Count and summed time (by bucket middles) of the latencies at or above a threshold. The bucket
    /// that the threshold falls into counts in full.
    pub fn at_least(&self, threshold_ns: u64) -> (u64, f64) {
        let first = Self::index(threshold_ns);
        self.filled().skip_while(|(index, _)| *index < first).fold((0, 0.0), |(count, sum), (index, more)| {
            (count + more, sum + more as f64 * Self::middle_ns(index))
        })
    }
}

/// Serialised as `[[index, count], …]` of the buckets that are not empty.
impl Serialize for LatencyBuckets {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(self.filled())
    }
}

#[cfg(feature = "schema")]
impl schemars::JsonSchema for LatencyBuckets {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> std::borrow::Cow<'static, str> {
        "LatencyBuckets".into()
    }

    fn json_schema(generator: &mut schemars::SchemaGenerator) -> schemars::Schema {
        Vec::<(usize, u64)>::json_schema(generator)
    }
}

impl<'de> Deserialize<'de> for LatencyBuckets {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let mut buckets = LatencyBuckets::new();
        for (index, count) in Vec::<(usize, u64)>::deserialize(deserializer)? {
            if index >= LatencyBuckets::LEN {
                return Err(D::Error::custom(format!("no latency bucket {index}")));
            }
            buckets.add(index, count);
        }
        Ok(buckets)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn buckets_follow_each_other_without_gap() {
        for index in 0..LatencyBuckets::LEN {
            let lower = LatencyBuckets::lower_ns(index);
            assert_eq!(LatencyBuckets::index(lower), index);
            if index > 0 {
                assert_eq!(LatencyBuckets::index(lower - 1), index - 1);
            }
        }
    }

    #[test]
    fn the_longest_latency_has_a_bucket() {
        assert_eq!(LatencyBuckets::index(u64::MAX), LatencyBuckets::LEN - 1);
    }

    /// Counters as they were kept before: all of them.
    fn some_counts() -> impl Strategy<Value = [u64; LatencyBuckets::LEN]> {
        let filled = prop::collection::vec((0..LatencyBuckets::LEN, 0_u64..5), 0..9);
        filled.prop_map(|filled| {
            let mut counts = [0; LatencyBuckets::LEN];
            filled.into_iter().for_each(|(index, count)| counts[index] = count);
            counts
        })
    }

    #[test]
    fn seven_percent_of_a_hundred_samples_are_seven() {
        let mut buckets = LatencyBuckets::new();
        (0..7).for_each(|_| buckets.record(1));
        (0..93).for_each(|_| buckets.record(1_000));
        assert_eq!(buckets.percentile_ns(7.0), Some(1.0));
    }

    fn all_counts(buckets: &LatencyBuckets) -> [u64; LatencyBuckets::LEN] {
        std::array::from_fn(|index| buckets.get(index))
    }

    proptest! {
        #[test]
        fn a_part_of_the_counters_counts_as_all_of_them(
            a in some_counts(), b in some_counts(), latency_ns in any::<u64>(),
        ) {
            let (mut sum, mut one) = (LatencyBuckets::from_counts(a), LatencyBuckets::from_counts(a));
            prop_assert_eq!(all_counts(&one), a);
            let other = LatencyBuckets::from_counts(b);
            sum.merge(&other);
            prop_assert_eq!(all_counts(&sum), std::array::from_fn(|at| a[at] + b[at]));
            let back = sum.since(&other);
            prop_assert_eq!(back.as_ref(), Some(&one), "and equal ones are equal");
            let grown: Vec<Option<u64>> = a.iter().zip(b).map(|(a, b)| a.checked_sub(b)).collect();
            let since = one.since(&other).map(|since| all_counts(&since).to_vec());
            prop_assert_eq!(since, grown.into_iter().collect::<Option<Vec<u64>>>());
            one.record(latency_ns);
            let mut more = a;
            more[LatencyBuckets::index(latency_ns)] += 1;
            prop_assert_eq!(&one, &LatencyBuckets::from_counts(more));
        }

        #[test]
        fn a_histogram_that_is_set_is_the_one_that_is_made(a in some_counts(), b in some_counts(), first in 0_usize..40) {
            let mut set = LatencyBuckets::from_counts(a);
            for counts in [a, b, b, a] {
                set.set_range(first, &counts[first..]);
                prop_assert_eq!(&set, &LatencyBuckets::from_range(first, &counts[first..]));
            }
        }

        #[test]
        fn a_bucket_middle_is_within_an_eighth(latency_ns in 4_u64..(1 << 40)) {
            let middle = LatencyBuckets::middle_ns(LatencyBuckets::index(latency_ns));
            prop_assert!((middle - latency_ns as f64).abs() <= latency_ns as f64 * 0.125);
        }

        #[test]
        fn a_percentile_is_at_most_what_is_said_and_at_least_four_fifths_of_it(
            mut latencies in prop::collection::vec(0_u64..1 << 39, 1..200), percent in 1..=100_u32,
        ) {
            let mut buckets = LatencyBuckets::new();
            latencies.iter().for_each(|latency| buckets.record(*latency));
            latencies.sort_unstable();
            let rank = (latencies.len() as f64 * f64::from(percent) / 100.0).ceil() as usize;
            let (truth, said) = (latencies[rank.max(1) - 1], buckets.at_most_ns(percent.into()).unwrap());
            prop_assert!(truth <= said && said as f64 <= truth as f64 * 1.25, "{} said, {} true", said, truth);
        }

        #[test]
        fn json_keeps_every_count(latencies in prop::collection::vec(any::<u64>(), 0..50)) {
            let mut buckets = LatencyBuckets::new();
            latencies.iter().for_each(|latency| buckets.record(*latency));
            let text = serde_json::to_string(&buckets).unwrap();
            prop_assert_eq!(serde_json::from_str::<LatencyBuckets>(&text).unwrap(), buckets);
        }
    }
}
