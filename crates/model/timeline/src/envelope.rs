use crate::{Sample, Span};

/// The buckets of a chart: consecutive and of one length.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Grid {
    /// When the first begins: a multiple of `step_ns`, so that the same moment is in the same bucket wherever a chart begins.
    pub from_ns: u64,
    /// How long each is.
    pub step_ns: u64,
    /// Number of buckets.
    pub count: usize,
}

/// The lowest, mean and highest value of each bucket; `None` where nothing is known.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Envelope {
    /// The lowest.
    pub min: Vec<Option<f64>>,
    /// The mean over the known time.
    pub mean: Vec<Option<f64>>,
    /// The highest.
    pub max: Vec<Option<f64>>,
}

/// The most points of a chart: more than a screen has columns.
pub const POINTS_MAX: usize = 4_000;
/// The shortest bucket: the time between two samples.
const STEP_MIN_NS: u64 = 1_000_000_000;

#[derive(Clone, Copy)]
struct Bucket {
    min: f64,
    max: f64,
    /// The sum of value x nanoseconds.
    sum: f64,
    known_ns: f64,
}

impl Grid {
    /// Buckets of whole seconds that cover a span with `points` of them at most, and one more at its end.
    pub fn new(span: Span, points: usize) -> Grid {
        let points = points.clamp(1, POINTS_MAX) as u64;
        let step_ns = span.len_ns().div_ceil(points).max(1).next_multiple_of(STEP_MIN_NS);
        let from_ns = span.from_ns - span.from_ns % step_ns;
        let count = span.to_ns.saturating_sub(from_ns).div_ceil(step_ns).max(1);
        Grid { from_ns, step_ns, count: count as usize }
    }

    /// All of it.
    pub fn span(&self) -> Span {
        let len_ns = self.step_ns.saturating_mul(self.count as u64);
        Span { from_ns: self.from_ns, to_ns: self.from_ns.saturating_add(len_ns) }
    }

    /// When each bucket begins.
    pub fn starts_ns(&self) -> impl Iterator<Item = u64> + '_ {
        (0..self.count as u64).map(|at| self.from_ns + at * self.step_ns)
    }

    /// One figure of the samples. A sample counts in each bucket that it lies in, by the time that lies there.
    pub fn envelope<'a>(
        &self,
        samples: impl IntoIterator<Item = &'a Sample>,
        value: impl Fn(&Sample) -> Option<f64>,
    ) -> Envelope {
        let mut buckets: Vec<Option<Bucket>> = vec![None; self.count];
        for sample in samples {
            let Some(value) = value(sample).filter(|value| value.is_finite()) else { continue };
            let Some(part) = sample.span.within(self.span()) else { continue };
            let first = (part.from_ns - self.from_ns) / self.step_ns;
            let last = (part.to_ns - 1 - self.from_ns) / self.step_ns;
            for at in first..=last {
                let from_ns = self.from_ns + at * self.step_ns;
                let known = part.within(Span { from_ns, to_ns: from_ns + self.step_ns });
                let known_ns = known.map_or(0, |known| known.len_ns()) as f64;
                let new = Bucket { min: value, max: value, sum: 0.0, known_ns: 0.0 };
                let bucket = buckets[at as usize].get_or_insert(new);
                (bucket.min, bucket.max) = (bucket.min.min(value), bucket.max.max(value));
                bucket.sum += value * known_ns;
                bucket.known_ns += known_ns;
            }
        }
        let column = |of: fn(&Bucket) -> f64| buckets.iter().map(|bucket| bucket.as_ref().map(of)).collect();
        Envelope {
            min: column(|bucket| bucket.min),
            // Rounding must not take the mean out of the envelope.
            mean: column(|bucket| (bucket.sum / bucket.known_ns).clamp(bucket.min, bucket.max)),
            max: column(|bucket| bucket.max),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Reading;
    use proptest::prelude::*;

    const SECOND: u64 = 1_000_000_000;
    /// Some instant in 2025.
    const BEGIN: u64 = 1_760_000_000 * SECOND;

    /// A sample for each second; `None` is a gap.
    fn seconds(values: &[Option<f64>]) -> Vec<Sample> {
        let sample = |(at, value): (usize, &Option<f64>)| {
            let from_ns = BEGIN + at as u64 * SECOND;
            let reading = Reading { outstanding: Some((*value)?), ..Reading::default() };
            Some(Sample { span: Span { from_ns, to_ns: from_ns + SECOND }, reading })
        };
        values.iter().enumerate().filter_map(sample).collect()
    }

    fn outstanding(sample: &Sample) -> Option<f64> {
        sample.reading.outstanding
    }

    #[test]
    fn a_spike_of_one_second_is_in_the_envelope_of_a_month() {
        let mut values = vec![Some(1.0); 900];
        values[437] = Some(90.0);
        let samples = seconds(&values);
        let month = Span { from_ns: BEGIN - 30 * 86_400 * SECOND, to_ns: BEGIN + 900 * SECOND };
        let envelope = Grid::new(month, 100).envelope(&samples, outstanding);
        assert_eq!(envelope.max.iter().flatten().copied().fold(0.0, f64::max), 90.0);
        assert_eq!(envelope.min.iter().flatten().copied().fold(9.0, f64::min), 1.0);
        assert!(envelope.mean.iter().flatten().all(|mean| *mean < 1.2), "{envelope:?}");
    }

    #[test]
    fn the_last_quarter_of_an_hour_has_a_bucket_for_each_second() {
        let grid = Grid::new(Span { from_ns: BEGIN, to_ns: BEGIN + 900 * SECOND }, 900);
        assert_eq!((grid.step_ns, grid.count), (SECOND, 900));
    }

    #[test]
    fn a_row_of_a_minute_stands_for_all_its_seconds() {
        let minute = Span { from_ns: BEGIN, to_ns: BEGIN + 60 * SECOND };
        let reading = Reading { outstanding: Some(3.0), ..Reading::default() };
        let samples = [Sample { span: minute, reading }];
        let envelope = Grid::new(minute, 900).envelope(&samples, outstanding);
        assert_eq!(envelope.mean, vec![Some(3.0); 60]);
    }

    proptest! {
        #[test]
        fn the_highest_and_lowest_of_all_are_at_every_zoom(
            values in prop::collection::vec(prop::option::weighted(0.8, -1e9..1e9_f64), 1..400),
            points in 1..500_usize,
            before in 0..1_000_u64,
            after in 0..1_000_u64,
        ) {
            let samples = seconds(&values);
            let end = BEGIN + values.len() as u64 * SECOND;
            let span = Span { from_ns: BEGIN - before * SECOND, to_ns: end + after * SECOND };
            let grid = Grid::new(span, points);
            let envelope = grid.envelope(&samples, outstanding);
            let highest = |all: &mut dyn Iterator<Item = f64>| all.fold(f64::NEG_INFINITY, f64::max);
            let lowest = |all: &mut dyn Iterator<Item = f64>| all.fold(f64::INFINITY, f64::min);
            let mut known = values.iter().flatten().copied();
            prop_assert_eq!(highest(&mut known.clone()), highest(&mut envelope.max.iter().flatten().copied()));
            prop_assert_eq!(lowest(&mut known), lowest(&mut envelope.min.iter().flatten().copied()));
            prop_assert!(grid.count <= points + 1);
            for at in 0..grid.count {
                let all = (envelope.min[at], envelope.mean[at], envelope.max[at]);
                let ordered = matches!(all, (Some(min), Some(mean), Some(max)) if min <= mean && mean <= max);
                prop_assert!(ordered || all == (None, None, None), "{:?}", all);
            }
        }

        #[test]
        fn a_bucket_is_unknown_exactly_where_no_known_sample_lies(
            values in prop::collection::vec(prop::option::of(0.0..1e6_f64), 1..300),
            points in 1..400_usize,
        ) {
            let samples = seconds(&values);
            let span = Span { from_ns: BEGIN, to_ns: BEGIN + values.len() as u64 * SECOND };
            let grid = Grid::new(span, points);
            let envelope = grid.envelope(&samples, outstanding);
            for (at, from_ns) in grid.starts_ns().enumerate() {
                let bucket = Span { from_ns, to_ns: from_ns + grid.step_ns };
                let is_known = samples.iter().any(|sample| sample.span.within(bucket).is_some());
                prop_assert_eq!(envelope.mean[at].is_some(), is_known);
            }
        }

        #[test]
        fn means_weighted_by_their_time_are_the_mean_of_all(
            values in prop::collection::vec(0.0..1e6_f64, 1..300),
            points in 1..400_usize,
        ) {
            let samples = seconds(&values.iter().copied().map(Some).collect::<Vec<_>>());
            let all = Span { from_ns: BEGIN, to_ns: BEGIN + values.len() as u64 * SECOND };
            let grid = Grid::new(all, points);
            let envelope = grid.envelope(&samples, outstanding);
            let weighted: f64 = grid.starts_ns().zip(&envelope.mean).map(|(from_ns, mean)| {
                let bucket = Span { from_ns, to_ns: from_ns + grid.step_ns };
                mean.unwrap_or(0.0) * all.within(bucket).map_or(0, |part| part.len_ns()) as f64
            }).sum();
            let mean = values.iter().sum::<f64>() / values.len() as f64;
            prop_assert!((weighted / all.len_ns() as f64 - mean).abs() <= 1e-6 * mean.max(1.0));
        }
    }
}
