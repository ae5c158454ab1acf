use crate::{Knee, KneeReason, Point, Saturation, StorageLimits};
use serde::{Deserialize, Serialize};
use workload::{Layout, RunResult};

/// One step of a sweep: load at a fixed number of outstanding I/Os, and what a monitor would have seen of it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SweepStep {
    /// Its figures with their confidence interval.
    pub point: Point,
    /// The run behind them.
    pub result: RunResult,
    /// The queue below, where the kernel counts one.
    pub queue: Option<QueueSeen>,
}

/// The I/Os in flight on a target's devices: as the kernel counts them all the time, and as a monitor sees them that
/// samples now and then.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct QueueSeen {
    /// Mean over time: the growth of the kernel's weighted time in flight (`/proc/diskstats`, field 11) a second.
    pub weighted: f64,
    /// Samples of "I/Os in flight" (field 9).
    pub samples: Vec<u64>,
    /// Time between samples, nanoseconds; the first was taken that long after the step began.
    pub every_ns: u64,
}

/// Steps of one target by rising outstanding I/Os, and what the curve says.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Sweep {
    /// The target, or the layout and its members.
    pub target: String,
    /// By rising outstanding I/Os.
    pub steps: Vec<SweepStep>,
    /// Features of the points.
    pub saturation: Saturation,
    /// The operating limit for these I/Os by the cost model of the target's measurement; `None` where it was not measured.
    #[serde(default)]
    pub operating_limit_iops: Option<f64>,
}

impl SweepStep {
    /// A run as a step without a known queue.
    pub fn from_result(result: RunResult) -> SweepStep {
        SweepStep { point: Point::from_result(&result), result, queue: None }
    }
}

impl Sweep {
    /// From steps in any order.
    pub fn from_steps(target: String, mut steps: Vec<SweepStep>, limits: &StorageLimits) -> Sweep {
        steps.sort_by_key(|step| step.point.outstanding);
        let points: Vec<Point> = steps.iter().map(|step| step.point.clone()).collect();
        let shape = steps.first().map(|step| step.result.workload.shape);
        let saturation =
            shape.map(|shape| Saturation::from_points(&shape, &points, limits)).unwrap_or_default();
        Sweep { target, steps, saturation, operating_limit_iops: None }
    }

    /// How several members were one target.
    pub fn layout(&self) -> Option<Layout> {
        self.steps.first().and_then(|step| step.result.layout)
    }
}

impl QueueSeen {
    /// Mean of the samples; `None` without any.
    pub fn sampled(&self) -> Option<f64> {
        let sum: u64 = self.samples.iter().sum();
        (!self.samples.is_empty()).then(|| sum as f64 / self.samples.len() as f64)
    }

    /// Error of the mean of the samples, as a share of the mean over time: -0.5 is half of it.
    pub fn error(&self) -> Option<f64> {
        (self.weighted > 0.0).then_some(())?;
        Some(self.sampled()? / self.weighted - 1.0)
    }

    /// Error of the worst single sample.
    pub fn error_max(&self) -> Option<f64> {
        (self.weighted > 0.0).then_some(())?;
        let errors = self.samples.iter().map(|sample| *sample as f64 / self.weighted - 1.0);
        errors.max_by(|a, b| a.abs().total_cmp(&b.abs()))
    }
}

/// Two sweeps of one kind of I/O beside each other.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct SweepComparison {
    /// Highest throughput of the second over that of the first.
    pub throughput_ratio: f64,
    /// Knee of the second over that of the first.
    pub knee_ratio: f64,
    /// Whether it is that, or a bound.
    pub knee_ratio_is: RatioIs,
    /// The 95 % confidence interval of the knees' ratio.
    pub knee_ratio_interval: (f64, f64),
}

/// How a ratio of knees is to be read: a sweep that began on its plateau knows its knee from above only.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum RatioIs {
    /// Both knees were measured.
    Measured,
    /// The first lies lower.
    AtLeast,
    /// The second lies lower.
    AtMost,
    /// Both lie lower.
    Unknown,
}

impl SweepComparison {
    /// Of two curves that both saturated; `None` where one did not.
    pub fn between(first: &Saturation, second: &Saturation) -> Option<SweepComparison> {
        let reached = |saturation: &'_ Saturation| {
            saturation.knee.clone().filter(|knee| knee.reason != KneeReason::NotReached)
        };
        let (one, two) = (&reached(first)?, &reached(second)?);
        let ratio = two.outstanding / one.outstanding;
        // Relative errors of a ratio add as squares.
        let relative = |knee: &Knee| (knee.high - knee.low) / 2.0 / knee.outstanding;
        let both = relative(one).hypot(relative(two));
        Some(SweepComparison {
            throughput_ratio: two.iops / one.iops,
            knee_ratio: ratio,
            knee_ratio_is: match (first.full_from_first, second.full_from_first) {
                (false, false) => RatioIs::Measured,
                (true, false) => RatioIs::AtLeast,
                (false, true) => RatioIs::AtMost,
                (true, true) => RatioIs::Unknown,
            },
            knee_ratio_interval: (ratio * (1.0 - both).max(0.0), ratio * (1.0 + both)),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::saturation::tests::{saturation, studied};

    #[test]
    fn three_disks_striped_saturate_at_three_times_the_outstanding() {
        let (span, stripe) = (saturation(&studied(16.0)), saturation(&studied(48.0)));
        let compared = SweepComparison::between(&span, &stripe).unwrap();
        assert!((compared.throughput_ratio - 3.0).abs() < 0.01, "{compared:?}");
        let (low, high) = compared.knee_ratio_interval;
        assert!(low < 3.0 && 3.0 < high, "{compared:?}");
        assert_eq!(compared.knee_ratio_is, RatioIs::Measured);
    }

    #[test]
    fn a_knee_that_lies_lower_than_measured_makes_the_ratio_a_bound() {
        let (late, stripe) = (saturation(&studied(16.0)[2..]), saturation(&studied(48.0)));
        let is = |first, second| SweepComparison::between(first, second).unwrap().knee_ratio_is;
        assert_eq!(is(&late, &stripe), RatioIs::AtLeast);
        assert_eq!(is(&stripe, &late), RatioIs::AtMost);
        assert_eq!(is(&late, &late), RatioIs::Unknown);
    }

    #[test]
    fn looks_are_held_against_the_mean_over_time() {
        let seen = QueueSeen { weighted: 4.0, samples: vec![0, 2, 16], every_ns: 1 };
        assert_eq!((seen.sampled(), seen.error(), seen.error_max()), (Some(6.0), Some(0.5), Some(3.0)));
        assert_eq!(QueueSeen::default().error(), None);
    }
}
