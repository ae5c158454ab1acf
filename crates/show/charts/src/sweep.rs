//! The picture of a sweep: latency, IOPS and outstanding I/Os on one time axis, and latency and IOPS against N, of all
//! sweeps together.

use super::axis::Axis;
use super::canvas::{Ink, SERIES_INKS, svg};
use super::plot::{Margins, Plot};
use super::{Chart, Factor, Key, Mark, Panel, Shown, Size, first, sweep_course};
use crate::{number, swept};
use capability::{CRITICAL_NS, DEGRADED_NS, StorageLimits, Sweep, SweepComparison, SweepStep};
use std::rc::Rc;

/// A sweep as it is drawn.
pub(super) struct Drawn {
    pub(super) sweep: Sweep,
    pub(super) name: String,
    pub(super) ink: Ink,
}

/// Sweeps over each other, and how the second compares with the first.
pub(crate) fn sweeps(sweeps: &[Sweep], compared: Option<&SweepComparison>) -> Chart {
    let results = sweeps.iter().flat_map(|sweep| &sweep.steps).map(|step| &step.result);
    let results: Vec<_> = results.cloned().collect();
    let mut chart = Chart::new("Sweep", &Shown::all(&results));
    let (kept, left_out) = first(sweeps.iter().zip(swept::names(sweeps)).collect(), SERIES_INKS);
    if left_out > 0 {
        chart.notes.push(format!("{left_out} more are not drawn: their colours could not be told apart."));
    }
    let drawn = kept.into_iter().enumerate().map(|(at, (sweep, name)): (usize, (&Sweep, String))| Drawn {
        sweep: sweep.clone(),
        name,
        ink: Ink::series(at),
    });
    let drawn: Vec<Drawn> = drawn.filter(|one| !one.sweep.steps.is_empty()).collect();
    if drawn.is_empty() {
        chart.notes.push("No step completed an I/O: there is no curve.".into());
        return chart;
    }
    if let (Some(compared), [first, second, ..]) = (compared, sweeps) {
        chart.notes.push(format!("{}.", swept::comparison(first, second, compared)));
    }
    let drawn = Rc::new(drawn);
    let key = |one: &Drawn| (Mark::Line, one.ink, one.name.clone());
    let legend: Vec<Key> = drawn.iter().filter(|one| !one.name.is_empty()).map(key).collect();
    let scale = Scale::of(&drawn);
    let ratio = compared.cloned();
    let panel = |title: &str, note: &str, draw: Box<dyn Fn(Size) -> String>| Panel {
        title: title.into(),
        note: note.into(),
        legend: legend.clone(),
        size: Size::HALF,
        narrow: Size::NARROW,
        draw,
    };
    let (one, two) = (Rc::clone(&drawn), Rc::clone(&drawn));
    chart.panels = vec![
        panel(
            "Throughput against N",
            "Circles: the knees, with their 95 % intervals. Dashed: the most that is reached.",
            Box::new(move |size| throughput(&one, ratio.as_ref(), scale, size)),
        ),
        panel(
            "Mean latency against N",
            "Circles: the knees, where the dashed asymptotes cross, and where latency passes the bounds.",
            Box::new(move |size| latency(&two, scale, size)),
        ),
        sweep_course::panel(&drawn, legend.clone()),
    ];
    chart
}

/// Runs of rising outstanding I/Os as sweeps: those of one target, layout and kind of I/O are one.
pub(super) fn of_runs(runs: &[Shown]) -> Chart {
    let mut groups: Vec<(String, Vec<SweepStep>)> = Vec::new();
    for run in runs.iter().filter(|run| run.result.ios() > 0 && !run.result.workload.is_open_loop()) {
        let parts = Factor::ALL
            .into_iter()
            .filter(|factor| !matches!(factor, Factor::Outstanding | Factor::Threads | Factor::Target));
        let parts = parts.map(|factor| factor.level(&run.result).name);
        let of = [run.group.clone(), run.result.target.clone()].into_iter().chain(parts);
        let of: Vec<String> = of.filter(|part| !part.is_empty()).collect();
        let step = SweepStep::from_result(run.result.clone().into_owned());
        match groups.iter_mut().find(|(name, _)| *name == of.join(", ")) {
            Some((_, steps)) => steps.push(step),
            None => groups.push((of.join(", "), vec![step])),
        }
    }
    let found: Vec<Sweep> = groups
        .into_iter()
        .map(|(name, steps)| Sweep::from_steps(name, steps, &StorageLimits::default()))
        .collect();
    let compared = match found.as_slice() {
        [first, second] => SweepComparison::between(&first.saturation, &second.saturation),
        _ => None,
    };
    sweeps(&found, compared.as_ref())
}

/// How N is drawn.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Scale {
    /// Steps that lie evenly: what grows in step with load is a straight line from the origin.
    Linear,
    /// Steps that double.
    Log,
}

impl Scale {
    fn of(drawn: &[Drawn]) -> Scale {
        let even = |one: &Drawn| {
            let at: Vec<u32> = one.sweep.steps.iter().map(|step| step.point.outstanding).collect();
            let gaps: Vec<u32> = at.windows(2).map(|pair| pair[1].saturating_sub(pair[0])).collect();
            let (least, most) = (gaps.iter().min().copied().unwrap_or(0), gaps.iter().max().copied());
            most.is_some_and(|most| most <= least.saturating_mul(2))
        };
        if drawn.iter().all(even) { Scale::Linear } else { Scale::Log }
    }

    fn x(self, drawn: &[Drawn]) -> Axis {
        // What was asked for as well: its ticks must not fall off where a little less was reached.
        let asked = all(drawn, |step| f64::from(step.point.outstanding)).into_iter();
        let values = all(drawn, |step| step.point.outstanding_measured).into_iter().chain(asked);
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

const MARGINS: Margins = Margins { left: 0.0, top: 26.0, right: 14.0 };

fn points(one: &Drawn, of: impl Fn(&SweepStep) -> f64) -> Vec<(f64, Option<f64>)> {
    one.sweep.steps.iter().map(|step| (step.point.outstanding_measured, Some(of(step)))).collect()
}

fn all(drawn: &[Drawn], of: impl Fn(&SweepStep) -> f64) -> Vec<f64> {
    drawn.iter().flat_map(|one| &one.sweep.steps).map(of).collect()
}

fn throughput(drawn: &[Drawn], ratio: Option<&SweepComparison>, scale: Scale, size: Size) -> String {
    svg(size, "I/Os a second against outstanding I/Os", |canvas| {
        let x = scale.x(drawn);
        // Room above for the labels of the knees.
        let y = Axis::from_zero(all(drawn, |step| step.point.iops * 1.12).into_iter(), 5);
        let mut plot = Plot::new(canvas, size, &MARGINS, x, y);
        let knees: Vec<_> = drawn.iter().map(|one| swept::reached(&one.sweep)).collect();
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
        if let (Some(ratio), [Some(one), Some(two), ..]) = (ratio, knees.as_slice()) {
            let (from, to) = (plot.x.from(), plot.x.to());
            let right = match scale {
                Scale::Linear => from + 0.9 * (to - from),
                Scale::Log => from * (to / from).powf(0.9),
            };
            let label = format!("{:.2} x throughput", ratio.throughput_ratio);
            plot.span((right, one.iops), (right, two.iops), &label, Ink::Text);
            let low = plot.y.to() * 0.07;
            let label = format!("{} outstanding", swept::knee_times(ratio));
            plot.span((one.outstanding, low), (two.outstanding, low), &label, Ink::Text);
        }
    })
}

fn latency(drawn: &[Drawn], scale: Scale, size: Size) -> String {
    svg(size, "mean latency against outstanding I/Os", |canvas| {
        let x = scale.x(drawn);
        let ns = all(drawn, |step| step.point.latency_ns).into_iter();
        let (y, title) = match scale {
            Scale::Linear => (Axis::times_from_zero(ns, 5), "mean latency"),
            Scale::Log => (Axis::latencies(ns), "mean latency, log scale"),
        };
        let mut plot = Plot::new(canvas, size, &MARGINS, x, y);
        plot.axes(scale.title(), title);
        let highest = all(drawn, |step| step.point.latency_ns).into_iter().fold(0.0, f64::max);
        let (from, to) = (plot.x.from(), plot.x.to());
        let bounds = [(DEGRADED_NS, "degraded 15 ms"), (CRITICAL_NS, "critical 20 ms")];
        let shown = bounds.into_iter().filter(|(ns, _)| (plot.y.from()..highest).contains(ns));
        let shown: Vec<(f64, &str)> = shown.collect();
        for (ns, _) in &shown {
            plot.dashed((from, *ns), (to, *ns), Ink::Worse);
        }
        // The lines lie close: their names stand together over the upper one.
        if let Some((ns, _)) = shown.last() {
            let names: Vec<&str> = shown.iter().map(|(_, name)| *name).collect();
            plot.over_end(*ns, &names.join(", "), Ink::Worse);
        }
        for one in drawn {
            if let Some(knee) = swept::reached(&one.sweep) {
                let (n, floor) = (knee.outstanding, knee.latency_ns_floor);
                plot.dashed((from, floor), (n, floor), Ink::Bound);
                // Within the axes, or it would bend there.
                let end = to.min(plot.y.to() / 1e9 * knee.iops);
                plot.dashed((n, floor), (end, end * 1e9 / knee.iops), Ink::Bound);
            }
            plot.series(&points(one, |step| step.point.latency_ns), one.ink, true);
        }
        for one in drawn {
            let saturation = &one.sweep.saturation;
            let first = one.sweep.steps.first().map_or(0.0, |step| f64::from(step.point.outstanding));
            let crossings = [&saturation.degraded, &saturation.critical].into_iter().flatten();
            // Where the first step lies above a bound already, the curve does not cross it.
            for crossing in crossings.filter(|crossing| crossing.outstanding > first) {
                if let Some(at) = plot.pixel(crossing.outstanding, crossing.latency_ns) {
                    plot.canvas.ring(at, 3.5, one.ink, 1.5);
                }
            }
            let knee = swept::reached(&one.sweep);
            if let Some(at) = knee.and_then(|knee| plot.pixel(knee.outstanding, knee.latency_ns_floor)) {
                plot.canvas.ring(at, 5.5, one.ink, 2.5);
            }
        }
    })
}
