use super::axis::Axis;
use super::canvas::{Ink, SERIES_INKS, svg};
use super::plot::{OVER_TIME, Plot, Thin};
use super::{Chart, Key, Mark, Panel, Shown, Size, first, shown};
use filestats::{IoClass, Profile};
use workload::{Latencies, RunResult, Tally};

/// More slices than this are drawn several to a point.
const POINTS_MAX: usize = 600;
/// The rate of a last sliver of a slice is noise.
const SLICE_MIN: f64 = 0.5;

/// Slices of a run that one point stands for.
#[derive(Clone, Debug, Default)]
pub(super) struct Step {
    pub(super) from_s: f64,
    pub(super) to_s: f64,
    pub(super) read: Tally,
    pub(super) write: Tally,
    pub(super) read_latencies: Latencies,
    pub(super) write_latencies: Latencies,
}

/// The steps of a run, and how many slices each of them is.
pub(super) fn steps(result: &RunResult, most: usize) -> (Vec<Step>, usize) {
    let mut slices = &result.series[..];
    let begin_of = |at: usize| at.checked_sub(1).map_or(0, |before| result.series[before].end_ns);
    if let [.., last] = slices
        && slices.len() > 1
        && (last.end_ns.saturating_sub(begin_of(slices.len() - 1)) as f64)
            < result.slice_ns as f64 * SLICE_MIN
    {
        slices = &slices[..slices.len() - 1];
    }
    let each = slices.len().div_ceil(most).max(1);
    let mut from_ns = 0;
    let step = |slices: &[workload::Slice]| {
        let to_ns = slices.last().map_or(from_ns, |slice| slice.end_ns);
        let mut step = Step { from_s: from_ns as f64 / 1e9, to_s: to_ns as f64 / 1e9, ..Step::default() };
        for slice in slices {
            step.read.merge(&slice.read);
            step.write.merge(&slice.write);
            step.read_latencies.merge(&slice.read_latencies);
            step.write_latencies.merge(&slice.write_latencies);
        }
        from_ns = to_ns;
        step
    };
    (slices.chunks(each).map(step).collect(), each)
}

impl Step {
    fn middle_s(&self) -> f64 {
        f64::midpoint(self.from_s, self.to_s)
    }
}

/// Which I/Os of a step.
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

/// From the ranges alone: a histogram of each slice would be large.
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

type Values = Vec<(f64, Option<f64>)>;

fn values(steps: &[Step], of: impl Fn(&Step) -> Option<f64>) -> Values {
    steps.iter().map(|step| (step.middle_s(), of(step))).collect()
}

/// Of no time there is no rate; of no I/O in some time there is one, and it is 0.
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
    /// `None`: whole.
    thin: Option<Thin>,
    values: Values,
}

/// I/Os a second, MiB a second and latencies of each slice, since the measured part began. One run: reads
/// apart from writes. Several: all I/Os of each, over each other.
pub(super) fn run_course(runs: &[Shown]) -> Chart {
    let mut chart = Chart::new("Course of the run", runs);
    let labels = shown::labels(runs);
    let with_series = runs.iter().zip(labels).filter(|(run, _)| !run.result.series.is_empty()).collect();
    let (drawn, left_out) = first::<(&Shown, String)>(with_series, SERIES_INKS);
    if left_out > 0 {
        chart
            .notes
            .push(format!("{left_out} more runs are not drawn: their colours could not be told apart."));
    }
    if drawn.is_empty() {
        chart.notes.push("There is no series over time in what is shown.".into());
        return chart;
    }
    let runs: Vec<(Vec<Step>, usize, String)> = drawn
        .iter()
        .map(|(run, label)| {
            let (steps, each) = steps(&run.result, POINTS_MAX);
            (steps, each, label.clone())
        })
        .collect();
    let slice_s = drawn[0].0.result.slice_ns as f64 / 1e9;
    let each = runs.iter().map(|(_, each, _)| *each).max().unwrap_or(1);
    let width = crate::number::duration(slice_s * each as f64);
    chart.notes.push(format!("Each point stands for {width}; nothing is smoothed."));
    chart
        .notes
        .push(format!("Background of latencies: the bands of the profile “{}”.", Profile::ALL[0].name));
    let end_s = runs.iter().filter_map(|(steps, ..)| steps.last()).map(|step| step.to_s).fold(0.0, f64::max);
    let mut parts = if let [(steps, ..)] = &runs[..] { one(steps) } else { several(&runs) };
    parts.retain(|part| part.values().next().is_some());
    // One scale for all latencies, so that panels can be compared.
    let latencies: Vec<f64> = parts
        .iter()
        .filter(|part| matches!(part.axis, Vertical::Latency(_)))
        .flat_map(Part::values)
        .collect();
    for part in parts {
        let latencies = latencies.clone();
        chart.panels.push(Panel {
            title: part.title.clone(),
            note: String::new(),
            legend: part.legend.clone(),
            size: Size::WIDE,
            narrow: Size::NARROW,
            draw: Box::new(move |size| draw(&part, &latencies, end_s, size)),
        });
    }
    chart
}

/// What a panel's y axis is.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Vertical {
    Iops,
    MibPerS,
    Latency(IoClass),
}

/// What becomes a panel.
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

fn one(steps: &[Step]) -> Vec<Part> {
    let kinds = [(Which::Reads, "reads", Ink::Read), (Which::Writes, "writes", Ink::Commit)];
    let did = kinds.into_iter().filter(|(which, ..)| steps.iter().any(|step| which.tally(step).count > 0));
    let did: Vec<(Which, &str, Ink)> = did.collect();
    let legend: Vec<Key> = did.iter().map(|(_, name, ink)| (Mark::Line, *ink, (*name).into())).collect();
    let lines = |of: &dyn Fn(Which, &Step) -> Option<f64>| {
        let line = |(which, _, ink): &(Which, &str, Ink)| {
            let values = values(steps, |step| of(*which, step));
            Line { ink: *ink, thin: None, values }
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
            Line { ink, thin: Some(Thin::Dotted), values: values(steps, longest(which)) },
            Line { ink, thin: Some(Thin::Dashed), values: p99 },
            Line { ink, thin: None, values: values(steps, |step| which.tally(step).mean_ns()) },
        ];
        let class = if which == Which::Reads { IoClass::Read } else { IoClass::Write };
        parts.push(Part::new(format!("Latency of {name}"), Vertical::Latency(class), legend, lines));
    }
    parts
}

fn several(runs: &[(Vec<Step>, usize, String)]) -> Vec<Part> {
    let key = |(at, (_, _, name)): (usize, &(Vec<Step>, usize, String))| {
        (Mark::Line, Ink::series(at), name.clone())
    };
    let legend: Vec<Key> = runs.iter().enumerate().map(key).collect();
    let part = |title: &str, axis: Vertical, of: &dyn Fn(&Step) -> Option<f64>| {
        let line = |(at, (steps, ..)): (usize, &(Vec<Step>, usize, String))| Line {
            ink: Ink::series(at),
            thin: None,
            values: values(steps, of),
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

fn draw(part: &Part, latencies: &[f64], end_s: f64, size: Size) -> String {
    let Part { axis, lines, .. } = part;
    let (title, y_title) = match axis {
        Vertical::Iops => ("I/Os a second over time", "IOPS"),
        Vertical::MibPerS => ("MiB a second over time", "MiB/s"),
        Vertical::Latency(_) => ("latency over time", "latency, log scale"),
    };
    svg(size, title, |canvas| {
        let (x, unit) = Axis::elapsed(end_s, size.width as usize / 90);
        let y = match axis {
            Vertical::Latency(_) => Axis::latencies(latencies.iter().copied()),
            _ => Axis::from_zero(part.values(), 5),
        };
        let mut plot = Plot::new(canvas, size, &OVER_TIME, x, y);
        if let Vertical::Latency(class) = axis {
            plot.bands(&Profile::ALL[0], *class);
        }
        plot.axes(&format!("{unit} since the measured part began"), y_title);
        let room = size.width as usize / 14;
        for line in lines {
            match line.thin {
                Some(thin) => plot.thin(&line.values, line.ink, thin),
                None => plot.series(&line.values, line.ink, line.values.len() <= room),
            }
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use workload::{Shape, Slice};

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
    fn a_last_sliver_is_left_out_and_a_long_last_slice_counts_by_its_length() {
        let (kept, _) = steps(&run(&[(1_000, 500), (1_100, 7)]), 100);
        assert_eq!(kept.len(), 1);
        let (kept, _) = steps(&run(&[(1_000, 500), (1_800, 400)]), 100);
        assert_eq!(values(&kept, iops(Which::All))[1].1, Some(500.0));
    }

    #[test]
    fn a_long_run_is_drawn_in_whole_sums() {
        let slices: Vec<(u64, u64)> = (1..=1_000).map(|at| (at * 1_000, 10)).collect();
        let (steps, each) = steps(&run(&slices), 100);
        assert_eq!((steps.len(), each), (100, 10));
        assert_eq!(steps.iter().map(|step| step.read.count).sum::<u64>(), 10_000);
        assert_eq!(values(&steps, iops(Which::All))[7].1, Some(10.0));
    }
}
