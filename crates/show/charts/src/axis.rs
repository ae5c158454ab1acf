//! A range of values with its ticks.

use crate::number;

/// A range of values with its ticks.
pub struct Axis {
    from: f64,
    to: f64,
    logarithmic: bool,
    /// Values and how they are written.
    pub ticks: Vec<(f64, String)>,
    values: Values,
}

/// Unit of an axis's values, for a reader of one of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Values {
    Numbers,
    /// Nanoseconds.
    Times,
    /// 1 is 100 %.
    Shares,
    /// Signed shares: 1 is 100 %.
    Differences,
    /// Seconds since then.
    Clock {
        begin_unix_ns: u64,
    },
    /// Seconds since something began.
    Elapsed,
    /// Nines.
    Percentiles,
}

/// Smallest value on a logarithmic axis.
const LOG_MIN: f64 = 1e-3;
/// With a peak this many times the median, only a logarithmic axis shows the other values.
const PEAK_MIN: f64 = 20.0;
/// No sample is large enough for more nines.
pub(crate) const NINES_MAX: f64 = 12.0;
/// Differences beyond a thousand times are drawn at the edge.
const DIFFERENCE_MAX: f64 = 1e3;
/// Largest value on any axis.
const MAX: f64 = 1e18;

impl Axis {
    /// From 0 to a little over the highest value, about `ticks` ticks.
    pub(crate) fn from_zero(values: impl Iterator<Item = f64>, ticks: usize) -> Axis {
        let highest = finite(values).fold(0.0, f64::max).min(MAX);
        let highest = if highest > 0.0 { highest * 1.08 } else { 1.0 };
        let step = nice_step(highest / ticks.max(1) as f64);
        let count = (highest / step).floor() as usize;
        let ticks = (0..=count).map(|at| (at as f64 * step, number::tick(at as f64 * step))).collect();
        Axis { from: 0.0, to: highest, logarithmic: false, ticks, values: Values::Numbers }
    }

    /// Nanoseconds from 0.
    pub(crate) fn times_from_zero(values: impl Iterator<Item = f64>, ticks: usize) -> Axis {
        let mut axis = Axis::from_zero(values, ticks);
        axis.values = Values::Times;
        for (at, label) in &mut axis.ticks {
            *label = if *at == 0.0 { "0".into() } else { number::tick_time(*at) };
        }
        axis
    }

    /// Rates from 0; logarithmic where a peak would hide everything else.
    pub(crate) fn rates(values: impl Iterator<Item = f64>, ticks: usize) -> Axis {
        let mut values: Vec<f64> = finite(values).collect();
        values.sort_by(f64::total_cmp);
        let usual = values.get(values.len() / 2).copied().unwrap_or(0.0).max(1.0);
        let highest = values.last().copied().unwrap_or(0.0).min(MAX);
        if highest / usual < PEAK_MIN {
            return Axis::from_zero(values.into_iter(), ticks);
        }
        let lowest = values.iter().copied().find(|value| *value >= 1.0).unwrap_or(1.0);
        let (first, last) = (lowest.log10().floor() as i32, highest.log10().ceil() as i32);
        let ticks = (first..=last).map(|power| 10_f64.powi(power)).map(|at| (at, number::tick(at))).collect();
        Axis {
            from: 10_f64.powi(first),
            to: 10_f64.powi(last),
            logarithmic: true,
            ticks,
            values: Values::Numbers,
        }
    }

    /// Powers of two around all values, as numbers of outstanding I/Os are.
    pub(crate) fn powers_of_two(values: impl Iterator<Item = f64>, ticks_max: usize) -> Axis {
        let (low, high) = range(values, (1.0, 2.0));
        let (low, high) = (low.log2(), high.log2());
        let (first, last) = (low.ceil() as i32, high.floor() as i32);
        let every = ((last - first + 1).max(1) as usize).div_ceil(ticks_max.max(1));
        let ticks = (first..=last)
            .step_by(every.max(1))
            .map(|power| (f64::from(power).exp2(), number::rate(f64::from(power).exp2())))
            .collect();
        let margin = (high - low).max(1.0) * 0.03;
        Axis {
            from: (low - margin).exp2(),
            to: (high + margin).exp2(),
            logarithmic: true,
            ticks,
            values: Values::Numbers,
        }
    }

    /// All values with a small margin, ticks at powers of ten, as for batches of rows and counts of writes.
    pub fn decades(values: impl Iterator<Item = f64>) -> Axis {
        let (low, high) = range(values, (1.0, 10.0));
        let (low, high) = (low.log10(), high.log10());
        let margin = (high - low).max(1.0) * 0.04;
        let (first, last) = ((low - margin).ceil() as i32, (high + margin).floor() as i32);
        let ticks = (first..=last).map(|power| 10_f64.powi(power)).map(|at| (at, number::tick(at))).collect();
        Axis {
            from: 10_f64.powf(low - margin),
            to: 10_f64.powf(high + margin),
            logarithmic: true,
            ticks,
            values: Values::Numbers,
        }
    }

    /// Latencies in nanoseconds, ticks at 1, 2 and 5 or at whole decades.
    pub fn latencies(values: impl Iterator<Item = f64>) -> Axis {
        let (low, high) = range(values, (1e5, 1e7));
        let (from, to) = (low / 1.35, high * 1.5);
        let decades = (to / from).log10();
        let steps: &[f64] = match decades {
            d if d > 4.0 => &[1.0],
            d if d > 2.6 => &[1.0, 3.0],
            _ => &[1.0, 2.0, 5.0],
        };
        let powers = from.log10().floor() as i32..=to.log10().ceil() as i32;
        let ticks = powers
            .flat_map(|power| steps.iter().map(move |step| step * 10_f64.powi(power)))
            .filter(|value| (from..=to).contains(value))
            .map(|value| (value, number::tick_time(value)))
            .collect();
        Axis { from, to, logarithmic: true, ticks, values: Values::Times }
    }

    /// Seconds since `begin_unix_ns`, ticks at round times of the day.
    pub(crate) fn time(begin_unix_ns: u64, end_unix_ns: u64, ticks_max: usize) -> Axis {
        const STEPS_S: [u64; 17] =
            [1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1_800, 3_600, 7_200, 21_600, 43_200, 86_400];
        let seconds = (end_unix_ns.saturating_sub(begin_unix_ns) as f64 / 1e9).max(1.0);
        let wanted = seconds / ticks_max.max(1) as f64;
        let step = STEPS_S.iter().copied().find(|step| *step as f64 >= wanted);
        let step = step.unwrap_or_else(|| (wanted / 86_400.0).ceil() as u64 * 86_400);
        let step_ns = step.saturating_mul(1_000_000_000);
        let first = begin_unix_ns.div_ceil(step_ns).saturating_mul(step_ns);
        let ticks = (0..=ticks_max as u64)
            .map(|at| first.saturating_add(at.saturating_mul(step_ns)))
            .take_while(|at| *at <= end_unix_ns)
            .map(|at| {
                let label =
                    if step >= 86_400 { number::day(at) } else { number::time_of_day(at, step >= 60) };
                (at.saturating_sub(begin_unix_ns) as f64 / 1e9, label)
            })
            .collect();
        Axis { from: 0.0, to: seconds, logarithmic: false, ticks, values: Values::Clock { begin_unix_ns } }
    }

    /// Percentiles by their nines: 0 is the lowest value, 1 is 90 %, 2 is 99 %, 3 is 99.9 %.
    pub(crate) fn nines(last: f64) -> Axis {
        let to = if last.is_finite() { last.clamp(1.0, NINES_MAX) } else { 1.0 };
        let mut ticks = vec![(0.0, "min".to_owned()), (2.0_f64.log10(), "p50".to_owned())];
        ticks.extend((1..=to.floor() as usize).map(|nines| (nines as f64, percentile_of_nines(nines))));
        Axis { from: 0.0, to: to * 1.02, logarithmic: false, ticks, values: Values::Percentiles }
    }

    /// Seconds since something began, ticks in microseconds to hours; the second value names the unit.
    pub(crate) fn elapsed(seconds: f64, ticks_max: usize) -> (Axis, &'static str) {
        let seconds = if seconds.is_finite() { seconds.clamp(1e-6, MAX) } else { 1.0 };
        let (unit_s, unit) = match seconds {
            s if s < 1e-3 => (1e-6, "microseconds"),
            s if s < 1.0 => (1e-3, "milliseconds"),
            s if s < 600.0 => (1.0, "seconds"),
            s if s < 36_000.0 => (60.0, "minutes"),
            _ => (3_600.0, "hours"),
        };
        let step = nice_step(seconds / unit_s / ticks_max.max(1) as f64);
        let count = (seconds / unit_s / step).floor() as usize;
        let ticks =
            (0..=count).map(|at| at as f64 * step).map(|at| (at * unit_s, number::tick(at))).collect();
        (Axis { from: 0.0, to: seconds, logarithmic: false, ticks, values: Values::Elapsed }, unit)
    }

    /// Shares from 0 to a little over the highest, in percent.
    pub(crate) fn shares(values: impl Iterator<Item = f64>, ticks: usize) -> Axis {
        let mut axis = Axis::from_zero(values, ticks);
        axis.values = Values::Shares;
        axis.ticks = axis.ticks.into_iter().map(|(at, _)| (at, number::tick_share(at))).collect();
        axis
    }

    /// Between two numbers, without ticks.
    pub(crate) fn plain(from: f64, to: f64) -> Axis {
        Axis { from, to, logarithmic: false, ticks: Vec::new(), values: Values::Numbers }
    }

    /// Differences as shares, around 0.
    pub(crate) fn differences(values: impl Iterator<Item = f64>, ticks: usize) -> Axis {
        let (low, high) = finite(values)
            .map(|value| value.clamp(-DIFFERENCE_MAX, DIFFERENCE_MAX))
            .fold((0.0_f64, 0.0_f64), |(low, high), value| (low.min(value), high.max(value)));
        let span = (high - low).max(0.02);
        let (from, to) = (low - span * 0.06, high + span * 0.06);
        let step = nice_step(span / ticks.max(1) as f64);
        let (first, last) = ((from / step).ceil() as i64, (to / step).floor() as i64);
        let ticks = (first..=last)
            .map(|at| at as f64 * step)
            .map(|at| (at, format!("{}{}", if at > 0.0 { "+" } else { "" }, number::tick_share(at))))
            .collect();
        Axis { from, to, logarithmic: false, ticks, values: Values::Differences }
    }

    /// Where a value lies: 0 at the beginning of the axis, 1 at its end. `None` for a value that lies nowhere.
    pub fn share(&self, value: f64) -> Option<f64> {
        let share = if self.logarithmic {
            // No logarithm: drawn at the end of the axis it would read as the smallest figure.
            if value <= 0.0 {
                return None;
            }
            (value.max(self.from * 1e-3).ln() - self.from.ln()) / (self.to.ln() - self.from.ln())
        } else {
            (value - self.from) / (self.to - self.from)
        };
        share.is_finite().then_some(share)
    }

    /// Whether values are times, which are [written](Axis::written) as seconds since 1970.
    pub(crate) fn is_clock(&self) -> bool {
        matches!(self.values, Values::Clock { .. })
    }

    /// A value in words, as exactly as figures are written.
    pub(crate) fn written(&self, value: f64) -> String {
        match self.values {
            Values::Numbers => number::rate(value),
            Values::Times => number::time(value),
            Values::Shares => number::share(value),
            Values::Differences => number::change(value),
            Values::Clock { begin_unix_ns } => {
                let seconds = begin_unix_ns as f64 / 1e9 + value.max(0.0);
                if seconds.is_finite() { format!("{seconds:.0}") } else { "0".into() }
            }
            Values::Elapsed => number::time(value * 1e9),
            // 1 - 10^-nines.
            Values::Percentiles if value <= 0.0 => "min".into(),
            Values::Percentiles => format!("p{}", number::rate((1.0 - 10_f64.powf(-value)) * 100.0)),
        }
    }

    pub(crate) fn is_logarithmic(&self) -> bool {
        self.logarithmic
    }

    pub(crate) fn from(&self) -> f64 {
        self.from
    }

    pub(crate) fn to(&self) -> f64 {
        self.to
    }
}

/// "p99.9" for three nines.
fn percentile_of_nines(nines: usize) -> String {
    match nines {
        0 | 1 => "p90".into(),
        2 => "p99".into(),
        more => format!("p99.{}", "9".repeat(more - 2)),
    }
}

fn finite(values: impl Iterator<Item = f64>) -> impl Iterator<Item = f64> {
    values.filter(|value| value.is_finite())
}

/// Lowest and highest of the positive values, kept where a logarithm makes sense.
fn range(values: impl Iterator<Item = f64>, without: (f64, f64)) -> (f64, f64) {
    let positive = finite(values).filter(|value| *value > 0.0).map(|value| value.clamp(LOG_MIN, MAX));
    let (low, high) =
        positive.fold((f64::INFINITY, 0.0_f64), |(low, high), value| (low.min(value), high.max(value)));
    if low.is_finite() { (low, high) } else { without }
}

/// 1, 2, 2.5 or 5 times a power of ten, at least `least`.
fn nice_step(least: f64) -> f64 {
    let power = 10_f64.powf(least.log10().floor());
    let factor = [1.0, 2.0, 2.5, 5.0].into_iter().find(|factor| factor * power >= least);
    factor.unwrap_or(10.0) * power
}

#[cfg(test)]
mod tests {
    use super::*;

    fn labels(axis: &Axis) -> Vec<&str> {
        axis.ticks.iter().map(|(_, label)| label.as_str()).collect()
    }

    #[test]
    fn ticks_are_round() {
        assert_eq!(labels(&Axis::from_zero([12_700.0].into_iter(), 4)), ["0", "5k", "10k"]);
        assert_eq!(labels(&Axis::powers_of_two([1.0, 256.0].into_iter(), 5)), ["1", "4", "16", "64", "256"]);
        assert_eq!(labels(&Axis::decades([1.0, 15_000.0].into_iter())), ["1", "10", "100", "1k", "10k"]);
        assert_eq!(
            labels(&Axis::latencies([1.1e6, 20e6].into_iter())),
            ["1 ms", "2 ms", "5 ms", "10 ms", "20 ms"]
        );
        let begin = 1_795_251_600_000_000_000;
        assert_eq!(labels(&Axis::time(begin, begin + 700_000_000_000, 4)), ["09:00", "09:05", "09:10"]);
    }

    #[test]
    fn percentiles_shares_and_elapsed_times_have_round_ticks() {
        assert_eq!(labels(&Axis::nines(3.2)), ["min", "p50", "p90", "p99", "p99.9"]);
        assert_eq!(labels(&Axis::shares([0.09].into_iter(), 4)), ["0 %", "2.5 %", "5 %", "7.5 %"]);
        assert_eq!(
            labels(&Axis::differences([-0.1, 0.1].into_iter(), 4)),
            ["-10 %", "-5 %", "0 %", "+5 %", "+10 %"]
        );
        let (axis, unit) = Axis::elapsed(1_800.0, 4);
        assert_eq!((labels(&axis), unit), (vec!["0", "10", "20", "30"], "minutes"));
        let (axis, unit) = Axis::elapsed(0.0052, 10);
        assert_eq!((labels(&axis), unit), (vec!["0", "1", "2", "3", "4", "5"], "milliseconds"));
        assert_eq!(Axis::elapsed(0.0002, 4).1, "microseconds");
    }

    #[test]
    fn zero_lies_nowhere_on_a_logarithmic_axis() {
        let axis = Axis::latencies([2e5, 4e6].into_iter());
        assert!(axis.is_logarithmic());
        assert_eq!((axis.share(0.0), axis.share(-1.0)), (None, None), "not at its bottom");
        assert!(axis.share(2e5).is_some());
    }

    #[test]
    fn a_peak_makes_an_axis_logarithmic_so_that_usual_rates_are_visible() {
        let usual = [500.0; 20];
        let axis = Axis::rates(usual.into_iter().chain([200_000.0]), 5);
        assert_eq!(labels(&axis), ["100", "1k", "10k", "100k", "1M"]);
        assert!(axis.share(500.0).unwrap() > 0.15);
        assert_eq!(Axis::rates(usual.into_iter().chain([900.0]), 5).share(0.0), Some(0.0));
    }

    #[test]
    fn an_axis_of_no_values_or_odd_ones_has_a_range() {
        for axis in [
            Axis::from_zero([f64::NAN].into_iter(), 5),
            Axis::rates(std::iter::empty(), 5),
            Axis::rates([f64::NAN, -1.0, f64::INFINITY].into_iter(), 5),
            Axis::powers_of_two(std::iter::empty(), 5),
            Axis::latencies([0.0, -1.0, f64::INFINITY].into_iter()),
            Axis::decades(std::iter::empty()),
            Axis::decades([0.0, 7.0].into_iter()),
            Axis::time(7, 7, 5),
            Axis::nines(f64::NAN),
            Axis::elapsed(0.0, 5).0,
            Axis::shares([f64::NAN].into_iter(), 5),
            Axis::differences([f64::INFINITY].into_iter(), 5),
        ] {
            assert!(axis.to > axis.from && axis.share(axis.to) == Some(1.0));
        }
    }
}
