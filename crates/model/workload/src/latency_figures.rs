use crate::LatencyHistogram;
use std::borrow::Cow;

/// Latencies of some I/Os: counted in a histogram, or as another tool reported them.
#[derive(Clone, Debug, PartialEq)]
pub enum LatencyFigures<'a> {
    /// Every I/O is in a histogram.
    Counted(Cow<'a, LatencyHistogram>),
    /// There is no histogram.
    Reported(ReportedLatency<'a>),
}

/// Latencies that another tool reported, without a histogram.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ReportedLatency<'a> {
    /// The I/Os that it is about.
    pub count: u64,
    /// Mean, nanoseconds.
    pub mean_ns: Option<f64>,
    /// Standard deviation, nanoseconds.
    pub deviation_ns: Option<f64>,
    /// (percent, nanoseconds), rising; 0 and 100 are the shortest and the longest.
    pub percentiles: Cow<'a, [(f64, u64)]>,
}

impl<'a> LatencyFigures<'a> {
    /// The histogram, where there is one.
    pub fn histogram(&self) -> Option<&LatencyHistogram> {
        match self {
            LatencyFigures::Counted(histogram) => Some(histogram),
            LatencyFigures::Reported(_) => None,
        }
    }

    /// Of how many I/Os; 0 also where nothing is known of their latencies.
    pub fn count(&self) -> u64 {
        match self {
            LatencyFigures::Counted(histogram) => histogram.count(),
            LatencyFigures::Reported(reported) if reported.is_empty() => 0,
            LatencyFigures::Reported(reported) => reported.count,
        }
    }

    /// Whether any percentile between the shortest and the longest is known.
    pub fn has_percentiles(&self) -> bool {
        match self {
            LatencyFigures::Counted(histogram) => histogram.count() > 0,
            LatencyFigures::Reported(reported) => {
                reported.percentiles.iter().any(|(percent, _)| *percent > 0.0 && *percent < 100.0)
            }
        }
    }

    /// Mean in nanoseconds; `None` where it is not known.
    pub fn mean_ns(&self) -> Option<f64> {
        match self {
            LatencyFigures::Counted(histogram) => histogram.mean_ns(),
            LatencyFigures::Reported(reported) => reported.mean_ns,
        }
    }

    /// Standard deviation in nanoseconds; `None` where it is not known.
    pub fn deviation_ns(&self) -> Option<f64> {
        match self {
            LatencyFigures::Counted(histogram) => histogram.deviation_ns(),
            LatencyFigures::Reported(reported) => reported.deviation_ns,
        }
    }

    /// Shortest latency; `None` where it is not known.
    pub fn min_ns(&self) -> Option<u64> {
        match self {
            LatencyFigures::Counted(histogram) => histogram.min_ns(),
            LatencyFigures::Reported(reported) => reported.percentile_ns(0.0),
        }
    }

    /// Longest latency; `None` where it is not known.
    pub fn max_ns(&self) -> Option<u64> {
        match self {
            LatencyFigures::Counted(histogram) => histogram.max_ns(),
            LatencyFigures::Reported(reported) => reported.percentile_ns(100.0),
        }
    }

    /// The latency that `percent` of the I/Os do not exceed; `None` without I/Os, and where another tool did not report
    /// this percentile: none is interpolated.
    pub fn percentile_ns(&self, percent: f64) -> Option<u64> {
        match self {
            LatencyFigures::Counted(histogram) => histogram.percentile_ns(percent),
            LatencyFigures::Reported(reported) => reported.percentile_ns(percent),
        }
    }

    /// Whether enough I/Os lie above `percent`, by [`statistics::supports_percentile`].
    pub fn supports_percentile(&self, percent: f64) -> bool {
        statistics::supports_percentile(self.count(), percent)
    }

    /// A percentile that is known and has enough I/Os above it.
    pub fn supported_percentile_ns(&self, percent: f64) -> Option<u64> {
        self.percentile_ns(percent).filter(|_| self.supports_percentile(percent))
    }

    pub(crate) fn sum_ns(&self) -> f64 {
        match self {
            LatencyFigures::Counted(histogram) => histogram.sum_ns() as f64,
            LatencyFigures::Reported(reported) => reported.mean_ns.unwrap_or(0.0) * reported.count as f64,
        }
    }
}

impl<'a> From<&'a LatencyHistogram> for LatencyFigures<'a> {
    fn from(histogram: &'a LatencyHistogram) -> LatencyFigures<'a> {
        LatencyFigures::Counted(Cow::Borrowed(histogram))
    }
}

impl ReportedLatency<'_> {
    fn is_empty(&self) -> bool {
        self.mean_ns.is_none() && self.percentiles.is_empty()
    }

    fn percentile_ns(&self, percent: f64) -> Option<u64> {
        reported_percentile(&self.percentiles, percent)
    }
}

/// The value of a percentile in a list of (percent, nanoseconds).
pub(crate) fn reported_percentile(percentiles: &[(f64, u64)], percent: f64) -> Option<u64> {
    percentiles.iter().find(|(at, _)| (at - percent).abs() < 1e-9).map(|(_, ns)| *ns)
}

/// Mean and standard deviation, where they are known.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Moments {
    pub mean_ns: Option<f64>,
    pub deviation_ns: Option<f64>,
}

impl Moments {
    pub(crate) fn new(mean_ns: Option<f64>, deviation_ns: Option<f64>) -> Moments {
        Moments { mean_ns, deviation_ns }
    }

    /// Of `count` I/Os with these moments and `other_count` with the others, where both are known.
    pub(crate) fn pooled(&self, count: f64, other: &Moments, other_count: f64) -> Moments {
        let all = count + other_count;
        let pool = |one: f64, two: f64| (one * count + two * other_count) / all;
        let mean_ns = self.mean_ns.zip(other.mean_ns).map(|(one, two)| pool(one, two));
        let square = |moments: &Moments| Some(moments.deviation_ns?.powi(2) + moments.mean_ns?.powi(2));
        let square_ns2 = square(self).zip(square(other)).map(|(one, two)| pool(one, two));
        let deviation_ns =
            square_ns2.zip(mean_ns).map(|(square, mean)| (square - mean * mean).max(0.0).sqrt());
        let finite = |value: Option<f64>| value.filter(|value| value.is_finite());
        Moments { mean_ns: finite(mean_ns), deviation_ns: finite(deviation_ns) }
    }
}
