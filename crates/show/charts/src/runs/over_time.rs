//! Rates and latencies of runs over time.

use super::slices::{Step, steps};
use crate::axis::Axis;
use crate::chart::{Chart, Panel};
use crate::drawing::{Drawing, Size};
use crate::legend::{Key, Mark};
use crate::number;
use crate::palette::Ink;
use crate::plot::{Margins, Plot, Stroke, Values};
use crate::run::{self, NamedRun};
use filestats::{IoClass, Profile};
use workload::Tally;

/// More slices than this are drawn several to a point.
const POINTS_MAX: usize = 600;

/// I/Os of a step to draw.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Which {
    Reads,
    Writes,
    All,
}

impl Which {
    fn tally(self, step: &Step) -> Tally {
        match self {
            Which::Reads => step.read,
            Which::Writes => step.write,
            Which::All => step.read.plus(&step.write),
        }
    }

    fn p99_ns(self, step: &Step) -> Option<f64> {
        let mut latencies =
            if self == Which::Writes { &step.write_latencies } else { &step.read_latencies }.clone();
        if self == Which::All {
            latencies.merge(&step.write_latencies);
        }
        p99_ns(&latencies.0)
    }
}

/// By the ranges of latency; a histogram of each slice would be large.
fn p99_ns(ranges: &[(u64, u64)]) -> Option<f64> {
    const IOS_MIN: u128 = 1_000;
    let count: u128 = ranges.iter().map(|(_, count)| u128::from(*count)).sum();
    let mut left = (count * 99).div_ceil(100);
    let reached = ranges.iter().find(|(_, count)| {
        left = left.saturating_sub(u128::from(*count));
        left == 0
    });
    reached.filter(|_| count >= IOS_MIN).map(|(ns, _)| *ns as f64)
}

fn values(steps: &[Step], figure: impl Fn(&Step) -> Option<f64>) -> Values {
    steps.iter().map(|step| (step.middle_s(), figure(step))).collect()
}

/// `None` where no time passed. Without an I/O the rate is 0.
fn per_second(step: &Step, amount: f64) -> Option<f64> {
    let seconds = step.to_s - step.from_s;
    (seconds > 0.0).then(|| amount / seconds)
}

fn iops(which: Which) -> impl Fn(&Step) -> Option<f64> {
    move |step| per_second(step, which.tally(step).count as f64)
}

fn mib_per_s(which: Which) -> impl Fn(&Step) -> Option<f64> {
    move |step| per_second(step, which.tally(step).bytes as f64 / 1_048_576.0)
}

fn longest(which: Which) -> impl Fn(&Step) -> Option<f64> {
    move |step| Some(which.tally(step)).filter(|tally| tally.count > 0).map(|tally| tally.ns_max as f64)
}

/// A line of a panel.
struct Line {
    ink: Ink,
    stroke: Stroke,
    values: Values,
}

/// I/Os a second, MiB a second and latencies of each slice, since the measured part began. One run: reads
/// and writes apart. Several: all I/Os of each, over each other.
pub(crate) fn over_time(runs: &[NamedRun]) -> Chart {
    let mut chart = Chart::new("Over time", run::settings(runs));
    let with_series = runs.iter().zip(run::labels(runs)).filter(|(run, _)| !run.result.series.is_empty());
    let drawn = chart.distinguishable(with_series.collect(), "more runs");
    let Some((first, _)) = drawn.first() else {
        chart.notes.push("There is no series over time in what is shown.".into());
        return chart;
    };
    let slice_s = first.result.slice_ns as f64 / 1e9;
    let mut slices_each = 1;
    let runs: Vec<(Vec<Step>, String)> = drawn
        .into_iter()
        .map(|(run, label)| {
            let (steps, each) = steps(&run.result, POINTS_MAX);
            slices_each = slices_each.max(each);
            (steps, label)
        })
        .collect();
    let width = number::duration(slice_s * slices_each as f64);
    chart.notes.push(format!("Each point stands for {width}; nothing is smoothed."));
    chart
        .notes
        .push(format!("Background of latencies: the bands of the profile “{}”.", Profile::ALL[0].name));
    let end_s = runs.iter().filter_map(|(steps, _)| steps.last()).map(|step| step.to_s).fold(0.0, f64::max);
    let mut parts = if let [(steps, _)] = &runs[..] { parts_of_one(steps) } else { parts_of_several(&runs) };
    parts.retain(|part| part.values().next().is_some());
    // One scale for all latencies, so that panels can be compared.
    let latencies: Vec<f64> = parts
        .iter()
        .filter(|part| matches!(part.axis, Vertical::Latency(_)))
        .flat_map(Part::values)
        .collect();
    for part in parts {
        let (title, legend, latencies) = (part.title.clone(), part.legend.clone(), latencies.clone());
        let draw = move |size| draw(&part, &latencies, end_s, size);
        chart.panels.push(Panel { legend, ..Panel::new(title, Size::WIDE, draw) });
    }
    chart
}

/// The figure on a panel's y axis.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Vertical {
    Iops,
    MibPerS,
    Latency(IoClass),
}

/// The contents of a panel.
struct Part {
    title: String,
    axis: Vertical,
    legend: Vec<Key>,
    lines: Vec<Line>,
}

impl Part {
    fn new(title: impl Into<String>, axis: Vertical, legend: Vec<Key>, lines: Vec<Line>) -> Part {
        Part { title: title.into(), axis, legend, lines }
    }

    fn values(&self) -> impl Iterator<Item = f64> + '_ {
        self.lines.iter().flat_map(|line| &line.values).filter_map(|(_, value)| *value)
    }
}

fn parts_of_one(steps: &[Step]) -> Vec<Part> {
    let kinds = [(Which::Reads, "reads", Ink::Read), (Which::Writes, "writes", Ink::Commit)];
    let did = kinds.into_iter().filter(|(which, ..)| steps.iter().any(|step| which.tally(step).count > 0));
    let did: Vec<(Which, &str, Ink)> = did.collect();
    let legend: Vec<Key> = did.iter().map(|(_, name, ink)| (Mark::Line, *ink, (*name).into())).collect();
    let lines = |figure: &dyn Fn(Which, &Step) -> Option<f64>| {
        let line = |(which, _, ink): &(Which, &str, Ink)| {
            let values = values(steps, |step| figure(*which, step));
            Line { ink: *ink, stroke: Stroke::Solid, values }
        };
        did.iter().map(line).collect::<Vec<Line>>()
    };
    let rates = lines(&|which, step| iops(which)(step));
    let bandwidths = lines(&|which, step| mib_per_s(which)(step));
    let mut parts = vec![
        Part::new("I/Os a second", Vertical::Iops, legend.clone(), rates),
        Part::new("MiB a second", Vertical::MibPerS, legend, bandwidths),
    ];
    for (which, name, ink) in did {
        let p99 = values(steps, |step| which.p99_ns(step));
        let mut legend =
            vec![(Mark::Line, ink, "mean".to_owned()), (Mark::Dotted, ink, "longest".to_owned())];
        if p99.iter().any(|(_, ns)| ns.is_some()) {
            legend.insert(1, (Mark::Dashed, ink, "p99, where over 1,000 I/Os completed".to_owned()));
        }
        let lines = vec![
            Line { ink, stroke: Stroke::Dotted, values: values(steps, longest(which)) },
            Line { ink, stroke: Stroke::Dashed, values: p99 },
            Line { ink, stroke: Stroke::Solid, values: values(steps, |step| which.tally(step).mean_ns()) },
        ];
        let class = if which == Which::Reads { IoClass::Read } else { IoClass::Write };
        parts.push(Part::new(format!("Latency of {name}"), Vertical::Latency(class), legend, lines));
    }
    parts
}

fn parts_of_several(runs: &[(Vec<Step>, String)]) -> Vec<Part> {
    let legend: Vec<Key> =
        runs.iter().enumerate().map(|(at, (_, name))| (Mark::Line, Ink::series(at), name.clone())).collect();
    let part = |title: &str, axis: Vertical, figure: &dyn Fn(&Step) -> Option<f64>| {
        let line = |(at, (steps, _)): (usize, &(Vec<Step>, String))| Line {
            ink: Ink::series(at),
            stroke: Stroke::Solid,
            values: values(steps, figure),
        };
        Part::new(title, axis, legend.clone(), runs.iter().enumerate().map(line).collect())
    };
    let all = Which::All;
    let latency = Vertical::Latency(IoClass::Read);
    vec![
        part("I/Os a second", Vertical::Iops, &iops(all)),
        part("MiB a second", Vertical::MibPerS, &mib_per_s(all)),
        part("Mean latency", latency, &|step| all.tally(step).mean_ns()),
        part("p99 latency, where over 1,000 I/Os completed", latency, &|step| all.p99_ns(step)),
        part("Longest I/O", latency, &longest(all)),
    ]
}

fn draw(part: &Part, latencies: &[f64], end_s: f64, size: Size) -> Drawing {
    let Part { axis, lines, .. } = part;
    let (title, y_title) = match axis {
        Vertical::Iops => ("I/Os a second over time", "IOPS"),
        Vertical::MibPerS => ("MiB a second over time", "MiB/s"),
        Vertical::Latency(_) => ("latency over time", "latency, log scale"),
    };
    Drawing::new(size, title, |canvas| {
        let (x, unit) = Axis::elapsed(end_s, size.width as usize / 90);
        let y = match axis {
            Vertical::Latency(_) => Axis::latencies(latencies.iter().copied()),
            _ => Axis::from_zero(part.values(), 5),
        };
        let mut plot = Plot::new(canvas, size, &Margins::OVER_TIME, x, y);
        if let Vertical::Latency(class) = axis {
            plot.bands(&Profile::ALL[0], *class);
        }
        plot.axes(&format!("{unit} since the measured part began"), y_title);
        let room = size.width as usize / 14;
        for line in lines {
            match line.stroke {
                Stroke::Solid => plot.series(&line.values, line.ink, line.values.len() <= room),
                stroke => plot.thin(&line.values, line.ink, stroke),
            }
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use workload::{RunResult, Shape, Slice};

    fn run(slices: &[(u64, u64)]) -> RunResult {
        let mut result = RunResult::empty(Shape::random_read(8192).into(), String::new());
        result.series = slices
            .iter()
            .map(|(end_ms, reads)| {
                let mut slice = Slice { end_ns: end_ms * 1_000_000, ..Slice::default() };
                slice.read.record_n(1_000_000, 8192, *reads);
                slice
            })
            .collect();
        result
    }

    #[test]
    fn a_second_without_ios_has_a_rate_of_zero_and_no_latency() {
        let (steps, _) = steps(&run(&[(1_000, 500), (2_000, 0), (3_000, 400)]), 100);
        assert_eq!(values(&steps, iops(Which::All))[1], (1.5, Some(0.0)));
        assert_eq!(values(&steps, |step| step.read.mean_ns())[1].1, None);
        assert_eq!(values(&steps, longest(Which::All))[1].1, None);
    }

    #[test]
    fn p99_is_the_latency_that_99_of_100_do_not_exceed() {
        assert_eq!(p99_ns(&[(1, 989), (2, 1), (3, 10)]), Some(2.0));
        assert_eq!(p99_ns(&[(1, 990), (3, 10)]), Some(1.0));
        assert_eq!(p99_ns(&[(1, 989), (3, 10)]), None, "too few");
    }

    #[test]
    fn a_short_last_slice_is_left_out_and_a_longer_one_counts_by_its_length() {
        let (kept, _) = steps(&run(&[(1_000, 500), (1_100, 7)]), 100);
        assert_eq!(kept.len(), 1);
        let (kept, _) = steps(&run(&[(1_000, 500), (1_800, 400)]), 100);
        assert_eq!(values(&kept, iops(Which::All))[1].1, Some(500.0));
    }

    #[test]
    fn slices_of_a_long_run_are_summed_to_points() {
        let slices: Vec<(u64, u64)> = (1..=1_000).map(|at| (at * 1_000, 10)).collect();
        let (steps, each) = steps(&run(&slices), 100);
        assert_eq!((steps.len(), each), (100, 10));
        assert_eq!(steps.iter().map(|step| step.read.count).sum::<u64>(), 10_000);
        assert_eq!(values(&steps, iops(Which::All))[7].1, Some(10.0));
    }
}
