//! A figure of one run with its uncertainty, from the slices of the run.
//!
//! Every figure is a ratio of sums over the slices: I/Os by time, stall by I/Os, I/Os up to a latency by all
//! I/Os. The excess of each slice over its share, positive or negative, is a series with mean 0; the error of
//! that mean, by batch means, is the figure's error. A percentile's interval lies between the latencies at the
//! ends of the interval of that share (Woodruff 1952), so that nothing is assumed about how latencies are
//! distributed.

use crate::batch_means::{MeanError, VALUES_MIN, mean_error};
use crate::figure::{Figure, Measure, Operations};
use statistics::student;
use std::borrow::Cow;
use workload::{Latencies, RunResult, Slice, Tally};

/// A figure and how surely it is known.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Estimate {
    value: f64,
    error: MeanError,
    ranks: Option<Ranks>,
}

/// Where a percentile's interval is read off.
#[derive(Clone, Debug, PartialEq)]
struct Ranks {
    /// (latency, I/Os up to it), rising.
    cumulated: Vec<(u64, u64)>,
    /// 0.99 of p99.
    share: f64,
}

/// A run's slices that can be used, with the seconds of each.
pub(crate) struct SliceSeries<'a>(Vec<(&'a Slice, f64)>);

impl<'a> SliceSeries<'a> {
    /// The slices of a run; the error says why it has none.
    pub(crate) fn from_run(run: &'a RunResult) -> Result<SliceSeries<'a>, String> {
        let mut from_ns = 0;
        let mut slices = Vec::with_capacity(run.series.len());
        for slice in &run.series {
            let seconds = slice.end_ns.saturating_sub(from_ns) as f64 / 1e9;
            from_ns = slice.end_ns.max(from_ns);
            slices.push((slice, seconds));
        }
        // The last one may be cut short, and its rate rests on little.
        let whole_s = run.slice_ns as f64 / 1e9;
        if slices.last().is_some_and(|(_, seconds)| *seconds < 0.5 * whole_s) {
            slices.pop();
        }
        if slices.iter().any(|(_, seconds)| *seconds <= 0.0) {
            return Err("the rows of its series do not rise in time".into());
        }
        if slices.len() < VALUES_MIN {
            return Err(format!(
                "one run's noise follows from the rows of its series: it has {}, and {VALUES_MIN} are needed",
                slices.len()
            ));
        }
        Ok(SliceSeries(slices))
    }

    /// Seconds in all.
    pub(crate) fn seconds(&self) -> f64 {
        self.0.iter().map(|(_, seconds)| seconds).sum()
    }

    /// A figure, whose value over the whole run is given; the error says why it has no interval.
    pub(crate) fn estimate(&self, figure: Figure, value: f64) -> Result<Estimate, String> {
        let parts: Vec<(f64, f64)> = match figure.measure {
            Measure::Iops => self.parts(figure.operations, |tally, seconds| (tally.count as f64, seconds))?,
            Measure::Throughput => {
                self.parts(figure.operations, |tally, seconds| (tally.bytes as f64, seconds))?
            }
            Measure::Mean => {
                self.parts(figure.operations, |tally, _| (tally.stall_ns as f64, tally.count as f64))?
            }
            Measure::Max => return Err("a single I/O: no interval".into()),
            _ => return self.percentile(figure, value),
        };
        let (sum, base) = total(&parts);
        let error = error_of(&parts).ok_or("the series is too short")?;
        // Relative to the ratio.
        let ratio = sum / base;
        let error = MeanError { error: error.error / ratio, ..error };
        if error.error.is_finite() {
            Ok(Estimate { value, error, ranks: None })
        } else if figure.measure == Measure::Mean && sum == 0.0 {
            Err("its series keeps no latencies".into())
        } else {
            Err(format!("no {}", figure.operations))
        }
    }

    fn parts(
        &self,
        operations: Operations,
        part: impl Fn(&Tally, f64) -> (f64, f64),
    ) -> Result<Vec<(f64, f64)>, String> {
        let tally = |slice: &Slice| match operations {
            Operations::All => Ok(slice.total()),
            Operations::Reads => Ok(slice.read),
            Operations::Writes => Ok(slice.write),
            _ => Err(format!("one run keeps no series over time of its {operations}")),
        };
        self.0.iter().map(|(slice, seconds)| Ok(part(&tally(slice)?, *seconds))).collect()
    }

    fn percentile(&self, figure: Figure, value: f64) -> Result<Estimate, String> {
        let share = figure.measure.percent().unwrap_or(50.0) / 100.0;
        let latencies = |slice: &'a Slice| match figure.operations {
            Operations::All => {
                let mut both = slice.read_latencies.clone();
                both.merge(&slice.write_latencies);
                Ok(Cow::Owned(both))
            }
            Operations::Reads => Ok(Cow::Borrowed(&slice.read_latencies)),
            Operations::Writes => Ok(Cow::Borrowed(&slice.write_latencies)),
            operations => Err(format!("one run keeps no series over time of its {operations}")),
        };
        let slices: Vec<Cow<'_, Latencies>> =
            self.0.iter().map(|(slice, _)| latencies(slice)).collect::<Result<_, String>>()?;
        let mut all: Vec<(u64, u64)> = slices.iter().flat_map(|slice| slice.0.iter().copied()).collect();
        all.sort_unstable();
        if all.is_empty() {
            return Err("its series keeps no latencies".into());
        }
        let mut so_far = 0_u64;
        let add = |(ns, count): &(u64, u64)| {
            so_far = so_far.saturating_add(*count);
            (*ns, so_far)
        };
        let cumulated: Vec<(u64, u64)> = all.iter().map(add).collect();
        figure.enough(so_far)?;
        let ranks = Ranks { cumulated, share };
        let at_ns = ranks.latency_ns_at(share).unwrap_or(u64::MAX);
        let up_to = |slice: &Latencies| {
            let count = |of: &[(u64, u64)]| of.iter().map(|(_, count)| *count as f64).sum::<f64>();
            let below = slice.0.partition_point(|(ns, _)| *ns <= at_ns);
            (count(&slice.0[..below]), count(&slice.0))
        };
        let parts: Vec<(f64, f64)> = slices.iter().map(|slice| up_to(slice)).collect();
        let error = error_of(&parts).ok_or("the series is too short")?;
        Ok(Estimate { value, error, ranks: Some(ranks) })
    }
}

impl Estimate {
    /// Logarithm of the value.
    pub(crate) fn ln(&self) -> f64 {
        self.value.ln()
    }

    /// Both ends of the logarithm's interval; infinite where it has no bound.
    pub(crate) fn ln_interval(&self, confidence: f64) -> (f64, f64) {
        let half = student::quantile(confidence, self.error.degrees) * self.error.error;
        let ln = self.value.ln();
        match &self.ranks {
            None => (ln - half, ln + half),
            Some(ranks) => {
                let at = |share: f64| ranks.latency_ns_at(share).map(|ns| (ns as f64).ln());
                let low = at(ranks.share - half).unwrap_or(f64::NEG_INFINITY);
                let high = at(ranks.share + half).unwrap_or(f64::INFINITY);
                (low.min(ln), high.max(ln))
            }
        }
    }
}

impl Ranks {
    /// The latency that this share of the I/Os does not exceed; `None` where the share is none.
    fn latency_ns_at(&self, share: f64) -> Option<u64> {
        let total = self.cumulated.last()?.1 as f64;
        if !(0.0..1.0).contains(&share) {
            return None;
        }
        let wanted = (share * total).max(1.0);
        let at = self.cumulated.partition_point(|(_, count)| (*count as f64) < wanted - 1e-6);
        self.cumulated.get(at).map(|(ns, _)| *ns)
    }
}

fn total(parts: &[(f64, f64)]) -> (f64, f64) {
    parts.iter().fold((0.0, 0.0), |sum, part| (sum.0 + part.0, sum.1 + part.1))
}

/// The error of the ratio of both sums.
fn error_of(parts: &[(f64, f64)]) -> Option<MeanError> {
    let (sum, base) = total(parts);
    let (ratio, base_mean) = (sum / base, base / parts.len() as f64);
    let residues: Vec<f64> = parts.iter().map(|(part, base)| (part - ratio * base) / base_mean).collect();
    mean_error(&residues)
}
