//! Throughput and latency of sweeps against outstanding I/Os.

use super::DrawnSweep;
use super::words::{knee_ratio, reached_knee};
use crate::axis::Axis;
use crate::drawing::{Drawing, Size};
use crate::number;
use crate::palette::Ink;
use crate::plot::{Margins, Plot, Values};
use capability::{CRITICAL_NS, DEGRADED_NS, SweepComparison, SweepStep};

/// How N is drawn.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Scale {
    /// For evenly spaced steps: latency that grows in step with load is a straight line from the origin.
    Linear,
    /// For steps that double.
    Log,
}

impl Scale {
    pub(super) fn for_steps(drawn: &[DrawnSweep]) -> Scale {
        let even = |one: &DrawnSweep| {
            let at: Vec<u32> = one.steps().iter().map(|step| step.point.outstanding).collect();
            let gaps: Vec<u32> = at.windows(2).map(|pair| pair[1].saturating_sub(pair[0])).collect();
            let (least, most) = (gaps.iter().min().copied().unwrap_or(0), gaps.iter().max().copied());
            most.is_some_and(|most| most <= least.saturating_mul(2))
        };
        if drawn.iter().all(even) { Scale::Linear } else { Scale::Log }
    }

    fn x(self, drawn: &[DrawnSweep]) -> Axis {
        // Also the requested numbers, whose ticks must not fall off where a little less was reached.
        let requested = all(drawn, |step| f64::from(step.point.outstanding)).into_iter();
        let values = all(drawn, |step| step.point.outstanding_measured).into_iter().chain(requested);
        match self {
            Scale::Linear => Axis::from_zero(values, 8),
            Scale::Log => Axis::powers_of_two(values, 9),
        }
    }

    fn title(self) -> &'static str {
        match self {
            Scale::Linear => "N, mean outstanding I/Os by Little's law",
            Scale::Log => "N, mean outstanding I/Os by Little's law, log scale",
        }
    }
}

fn points(one: &DrawnSweep, figure: impl Fn(&SweepStep) -> f64) -> Values {
    one.steps().iter().map(|step| (step.point.outstanding_measured, Some(figure(step)))).collect()
}

fn all(drawn: &[DrawnSweep], figure: impl Fn(&SweepStep) -> f64) -> Vec<f64> {
    drawn.iter().flat_map(DrawnSweep::steps).map(figure).collect()
}

pub(super) fn throughput(
    drawn: &[DrawnSweep],
    ratio: Option<&SweepComparison>,
    scale: Scale,
    size: Size,
) -> Drawing {
    Drawing::new(size, "I/Os a second against outstanding I/Os", |canvas| {
        let x = scale.x(drawn);
        // Space above for the labels of the knees.
        let y = Axis::from_zero(all(drawn, |step| step.point.iops * 1.12).into_iter(), 5);
        let with_names = with_names(drawn, size);
        let mut plot = Plot::new(canvas, size, with_names.as_ref().unwrap_or(&Margins::CURVE), x, y);
        let knees: Vec<_> = drawn.iter().map(|one| reached_knee(&one.sweep)).collect();
        for (one, knee) in drawn.iter().zip(&knees) {
            if let Some(knee) = knee {
                plot.stripe(knee.low, knee.high, one.ink, 0.2);
            }
        }
        plot.axes(scale.title(), "IOPS");
        for (one, knee) in drawn.iter().zip(&knees) {
            if let Some(knee) = knee {
                let (from, to) = (plot.x.from(), plot.x.to());
                plot.dashed((from, knee.iops), (to, knee.iops), Ink::Bound);
            }
            plot.series(&points(one, |step| step.point.iops), one.ink, true);
        }
        for (one, knee) in drawn.iter().zip(&knees) {
            if let Some(knee) = knee {
                let sign = if one.sweep.saturation.full_from_first { "≤ " } else { "" };
                let label = format!("knee {sign}{}", number::rate(knee.outstanding));
                let below = knees.iter().flatten().any(|other| other.iops > knee.iops);
                plot.marked(knee.outstanding, knee.iops, &label, one.ink, below);
            }
        }
        if with_names.is_some() {
            plot.name_sweeps(drawn, |step| step.point.iops);
        }
        if let (Some(ratio), [Some(one), Some(two), ..]) = (ratio, knees.as_slice()) {
            let (from, to) = (plot.x.from(), plot.x.to());
            let right = match scale {
                Scale::Linear => from + 0.9 * (to - from),
                Scale::Log => from * (to / from).powf(0.9),
            };
            let label = format!("{:.2} x throughput", ratio.throughput_ratio);
            plot.span((right, one.iops), (right, two.iops), &label, Ink::Text);
            let low = plot.y.to() * 0.07;
            let label = format!("{} outstanding", knee_ratio(ratio));
            plot.span((one.outstanding, low), (two.outstanding, low), &label, Ink::Text);
        }
    })
}

pub(super) fn latency(drawn: &[DrawnSweep], scale: Scale, size: Size) -> Drawing {
    Drawing::new(size, "mean latency against outstanding I/Os", |canvas| {
        let x = scale.x(drawn);
        let ns = all(drawn, |step| step.point.latency_ns).into_iter();
        let (y, title) = match scale {
            Scale::Linear => (Axis::times_from_zero(ns, 5), "mean latency"),
            Scale::Log => (Axis::latencies(ns), "mean latency, log scale"),
        };
        let with_names = with_names(drawn, size);
        let mut plot = Plot::new(canvas, size, with_names.as_ref().unwrap_or(&Margins::CURVE), x, y);
        plot.axes(scale.title(), title);
        let highest = all(drawn, |step| step.point.latency_ns).into_iter().fold(0.0, f64::max);
        let (from, to) = (plot.x.from(), plot.x.to());
        let bounds = [(DEGRADED_NS, "degraded 15 ms"), (CRITICAL_NS, "critical 20 ms")];
        let shown = bounds.into_iter().filter(|(ns, _)| (plot.y.from()..highest).contains(ns));
        let shown: Vec<(f64, &str)> = shown.collect();
        for (ns, _) in &shown {
            plot.dashed((from, *ns), (to, *ns), Ink::Worse);
        }
        // The lines are close: both names stand over the upper one.
        if let Some((ns, _)) = shown.last() {
            let names: Vec<&str> = shown.iter().map(|(_, name)| *name).collect();
            plot.over_end(*ns, &names.join(", "), Ink::Worse);
        }
        for one in drawn {
            if let Some(knee) = reached_knee(&one.sweep) {
                let (n, floor) = (knee.outstanding, knee.latency_ns_floor);
                plot.dashed((from, floor), (n, floor), Ink::Bound);
                // Within the axes; a line that leaves them would bend there.
                let end = to.min(plot.y.to() / 1e9 * knee.iops);
                plot.dashed((n, floor), (end, end * 1e9 / knee.iops), Ink::Bound);
            }
            plot.series(&points(one, |step| step.point.latency_ns), one.ink, true);
        }
        for one in drawn {
            let saturation = &one.sweep.saturation;
            let first = one.steps().first().map_or(0.0, |step| f64::from(step.point.outstanding));
            let crossings = [&saturation.degraded, &saturation.critical].into_iter().flatten();
            // Where the first step is above a bound already, the curve does not cross it.
            for crossing in crossings.filter(|crossing| crossing.outstanding > first) {
                if let Some(at) = plot.pixel(crossing.outstanding, crossing.latency_ns) {
                    plot.canvas.ring(at, 3.5, one.ink, 1.5);
                }
            }
            let knee = reached_knee(&one.sweep);
            if let Some(at) = knee.and_then(|knee| plot.pixel(knee.outstanding, knee.latency_ns_floor)) {
                plot.canvas.ring(at, 5.5, one.ink, 2.5);
            }
        }
        if with_names.is_some() {
            plot.name_sweeps(drawn, |step| step.point.latency_ns);
        }
    })
}

/// Margins with room for the sweeps' names, where they fit.
fn with_names(drawn: &[DrawnSweep], size: Size) -> Option<Margins> {
    let named = drawn.iter().map(|one| one.name.as_str()).filter(|name| !name.is_empty());
    Margins::CURVE.with_names(size, named)
}

impl Plot<'_> {
    fn name_sweeps(&mut self, drawn: &[DrawnSweep], figure: fn(&SweepStep) -> f64) {
        let lines: Vec<Values> = drawn.iter().map(|one| points(one, figure)).collect();
        let named = lines.iter().zip(drawn).map(|(values, one)| (&values[..], one.ink, one.name.as_str()));
        self.name_lines(named);
    }
}
