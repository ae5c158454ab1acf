//! Evidence of a difference: an interval at any confidence, and p, the smallest error probability at which
//! the interval still excludes "no difference".

use crate::rank_tests;
use crate::single_run::Estimate;
use serde::{Deserialize, Serialize};
use statistics::{mean, squared_deviations, student};

/// Ratios are compared by their logarithms: half is as far from 1 as double.
#[derive(Clone, Debug)]
pub(crate) enum Evidence {
    /// One run each: each estimate's own interval.
    Within {
        /// `None`: a stated figure, exact.
        a: Option<Estimate>,
        b: Estimate,
        /// Logarithm of b / a.
        ln_ratio: f64,
        /// Seconds of the shorter run.
        seconds: f64,
    },
    /// Repeats: Student's t on the logarithms of the runs' figures.
    Repeats {
        ln_ratio: f64,
        /// Standard deviation of a pair's, or of a single run's, logarithm.
        deviation: f64,
        degrees: f64,
        /// The standard error is the deviation by the root of this.
        weight: f64,
        /// Whether the test by order alone agrees.
        agrees: bool,
        /// Pairs, or runs of the smaller group.
        count: usize,
        design: Design,
    },
    /// Two given intervals: half the width of the 95 % interval of the logarithm.
    Given { ln_ratio: f64, half_width: f64 },
}

/// Design of the repeats.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Design {
    /// Pairs of runs, each pair close in time.
    Pairs,
    /// Two groups, both of which scatter.
    Groups,
    /// One group, against a figure without noise.
    One,
}

/// Further or longer runs that would decide an open question in four of five cases, if the noise does not change.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(rename = "MoreNeeded"))]
#[serde(rename_all = "kebab-case")]
pub enum More {
    /// Further pairs.
    Pairs(u32),
    /// Further runs on each side.
    Runs(u32),
    /// Runs of this many seconds.
    Seconds(f64),
}

/// More runs than this are never advised: then something else is wrong.
pub(crate) const MORE_MAX: u32 = 1000;
/// Degrees of freedom assumed of given intervals beyond 95 %: batch means of five.
const GIVEN_DEGREES: f64 = 8.0;
/// The advised runs find a difference with this probability.
const POWER: f64 = 0.8;

impl Evidence {
    /// Repeats, each against its partner or a stated figure: logarithms of b / a.
    pub(crate) fn from_ratios(ln_ratios: &[f64], design: Design) -> Result<Evidence, String> {
        let count = ln_ratios.len();
        if count < PAIRS_MIN {
            let what = if design == Design::Pairs { "pairs" } else { "runs" };
            return Err(format!("{count} {what} say nothing of their noise: {PAIRS_MIN} are needed"));
        }
        Ok(Evidence::Repeats {
            ln_ratio: mean(ln_ratios),
            deviation: (squared_deviations(ln_ratios) / (count - 1) as f64).sqrt(),
            degrees: (count - 1) as f64,
            weight: count as f64,
            agrees: agrees(rank_tests::signed_rank(ln_ratios)),
            count,
            design,
        })
    }

    /// Logarithms of the figures of two groups of runs.
    pub(crate) fn from_groups(a: &[f64], b: &[f64]) -> Result<Evidence, String> {
        let (count_a, count_b) = (a.len() as f64, b.len() as f64);
        if a.len() + b.len() < RUNS_MIN || a.is_empty() || b.is_empty() {
            return Err(format!(
                "{} and {} runs say nothing of their noise: {RUNS_MIN} are needed in all",
                a.len(),
                b.len()
            ));
        }
        let (ln_ratio, agrees) = (mean(b) - mean(a), agrees(rank_tests::rank_sum(a, b)));
        let count = a.len().min(b.len());
        let (squares_a, squares_b) = (squared_deviations(a), squared_deviations(b));
        let (error, degrees) = if count >= 3 {
            // Welch: the groups differ in noise.
            let (part_a, part_b) =
                (squares_a / (count_a - 1.0) / count_a, squares_b / (count_b - 1.0) / count_b);
            let degrees = (part_a + part_b).powi(2)
                / (part_a.powi(2) / (count_a - 1.0) + part_b.powi(2) / (count_b - 1.0));
            ((part_a + part_b).sqrt(), if degrees.is_finite() { degrees } else { count_a + count_b - 2.0 })
        } else {
            // The noise of a single run is unknown: the other side's stands for both.
            let degrees = count_a + count_b - 2.0;
            (((squares_a + squares_b) / degrees * (1.0 / count_a + 1.0 / count_b)).sqrt(), degrees)
        };
        let weight = 1.0 / (1.0 / count_a + 1.0 / count_b);
        let deviation = error * weight.sqrt();
        Ok(Evidence::Repeats { ln_ratio, deviation, degrees, weight, agrees, count, design: Design::Groups })
    }

    /// Logarithm of b / a.
    pub(crate) fn ln_ratio(&self) -> f64 {
        match self {
            Evidence::Within { ln_ratio, .. }
            | Evidence::Repeats { ln_ratio, .. }
            | Evidence::Given { ln_ratio, .. } => *ln_ratio,
        }
    }

    /// Both ends of its interval; infinite where there is no bound.
    pub(crate) fn interval(&self, confidence: f64) -> (f64, f64) {
        let around = |ln_ratio: f64, half: f64| (ln_ratio - half, ln_ratio + half);
        match self {
            Evidence::Within { a, b, ln_ratio, .. } => {
                // The ends of both intervals, by the distances from their middles (MOVER, Zou and Donner 2008).
                let (b_low, b_high) = b.ln_interval(confidence);
                let b_ln = b.ln();
                let (a_down, a_up) = a.as_ref().map_or((0.0, 0.0), |a| {
                    let (low, high) = a.ln_interval(confidence);
                    (a.ln() - low, high - a.ln())
                });
                (ln_ratio - (b_ln - b_low).hypot(a_up), ln_ratio + (b_high - b_ln).hypot(a_down))
            }
            Evidence::Repeats { ln_ratio, deviation, degrees, weight, .. } => {
                around(*ln_ratio, student::quantile(confidence, *degrees) * deviation / weight.sqrt())
            }
            Evidence::Given { ln_ratio, half_width } => {
                let t = student::quantile(confidence, GIVEN_DEGREES) / student::quantile(0.95, GIVEN_DEGREES);
                around(*ln_ratio, half_width * t)
            }
        }
    }

    /// Two-sided p of "no difference".
    pub(crate) fn p(&self) -> f64 {
        match self {
            Evidence::Within { .. } => {
                let excludes = |p: f64| {
                    let (low, high) = self.interval(1.0 - p);
                    low > 0.0 || high < 0.0
                };
                // On a scale of exponents: p of 1e-6 and below is as good as any.
                let (mut excluded, mut included) = (0.0, 6.0);
                if excludes(1e-6) {
                    return 1e-6;
                }
                for _ in 0..16 {
                    let middle = f64::midpoint(excluded, included);
                    if excludes(10_f64.powf(-middle)) { excluded = middle } else { included = middle }
                }
                10_f64.powf(-excluded)
            }
            Evidence::Repeats { ln_ratio, deviation, degrees, weight, .. } => {
                if *ln_ratio == 0.0 {
                    return 1.0;
                }
                student::two_sided(ln_ratio.abs() / (deviation / weight.sqrt()), *degrees)
            }
            Evidence::Given { ln_ratio, half_width } => {
                if *ln_ratio == 0.0 {
                    return 1.0;
                }
                let t = student::quantile(0.95, GIVEN_DEGREES) * ln_ratio.abs() / half_width;
                student::two_sided(t, GIVEN_DEGREES)
            }
        }
    }

    /// Whether the test by order alone, where there is one, does not contradict.
    pub(crate) fn agrees(&self) -> bool {
        match self {
            Evidence::Repeats { agrees, .. } => *agrees,
            _ => true,
        }
    }

    /// Further or longer runs needed to detect a difference of `ln_margin`, or the observed one if that is larger, in four
    /// of five cases, at this noise.
    pub(crate) fn missing(&self, confidence: f64, ln_margin: f64) -> Option<More> {
        let resolve = self.ln_ratio().abs().max(ln_margin);
        match self {
            Evidence::Within { seconds, .. } => {
                let (low, high) = self.interval(confidence);
                let power =
                    1.0 + student::quantile(2.0 * POWER - 1.0, 19.0) / student::quantile(confidence, 19.0);
                let needed = seconds * (0.5 * (high - low) * power / resolve).powi(2);
                let needed = needed.max(seconds * 1.5);
                (needed.is_finite() && needed < SECONDS_MAX).then_some(More::Seconds(needed))
            }
            Evidence::Repeats { deviation, count, design, .. } => {
                let groups = *design == Design::Groups;
                let noise = if groups { deviation * std::f64::consts::SQRT_2 } else { *deviation };
                let enough = |count: u32| {
                    let degrees = f64::from(if groups { 2 * count - 2 } else { count - 1 });
                    let t = student::quantile(confidence, degrees)
                        + student::quantile(2.0 * POWER - 1.0, degrees);
                    t * noise / f64::from(count).sqrt() <= resolve
                };
                let count = u32::try_from(*count).unwrap_or(MORE_MAX);
                let more = first(count.max(2) + 1, count + MORE_MAX, enough)? - count;
                Some(if *design == Design::Pairs { More::Pairs(more) } else { More::Runs(more) })
            }
            Evidence::Given { .. } => None,
        }
    }
}

/// Fewer pairs do not show their noise.
const PAIRS_MIN: usize = 3;
/// Runs of two groups, in total.
const RUNS_MIN: usize = 4;
/// A day: longer runs are no advice.
const SECONDS_MAX: f64 = 86_400.0;

/// The smallest number from..=to that is enough, where more is always better.
fn first(from: u32, to: u32, enough: impl Fn(u32) -> bool) -> Option<u32> {
    if !enough(to) {
        return None;
    }
    let (mut low, mut high) = (from, to);
    while low < high {
        let middle = low.midpoint(high);
        if enough(middle) { high = middle } else { low = middle + 1 }
    }
    Some(high)
}

/// Few values cannot reach 5 % by order alone: then they must at least all say the same.
fn agrees((p, least): (f64, f64)) -> bool {
    p <= least.max(0.05) + 1e-9
}
