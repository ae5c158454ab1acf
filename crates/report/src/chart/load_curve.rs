use super::axis::Axis;
use super::canvas::{Ink, SERIES_INKS, svg};
use super::plot::{Margins, Plot, Thin};
use super::{Chart, Factor, Mark, Panel, Shown, Size, first, shown};
use std::rc::Rc;
use workload::RunResult;

/// More lines than this, and mean, median and p99 get a panel each.
const TOGETHER_MAX: usize = 2;

/// Runs that differ only in their outstanding I/Os, rising.
struct Series {
    name: String,
    ink: Ink,
    points: Vec<Point>,
}

/// All runs with so many outstanding I/Os; repeats lie apart.
struct Point {
    outstanding: f64,
    iops: Vec<f64>,
    mean_ns: Vec<f64>,
    median_ns: Vec<f64>,
    /// Only of runs with enough I/Os for it.
    p99_ns: Vec<f64>,
}

/// IOPS and latency against outstanding I/Os, one under the other's x axis. Repeats are dots, the line goes
/// through their medians.
pub(super) fn load_curve(runs: &[Shown]) -> Chart {
    let mut chart = Chart::new("Load curve", runs);
    let (series, left_out) = first(series(runs), SERIES_INKS);
    if series.is_empty() {
        chart.notes.push("No run completed an I/O: there is no curve.".into());
        return chart;
    }
    if left_out > 0 {
        chart.notes.push(format!("{left_out} more series are not drawn: their colours could not be told apart."));
    }
    if runs.iter().any(|run| run.result.workload.is_open_loop()) {
        chart.notes.push(
            "Open loops stand at the outstanding I/Os that they had on average (Little’s law).".into(),
        );
    }
    let repeats = series.iter().flat_map(|each| &each.points).any(|point| point.iops.len() > 1);
    if repeats {
        chart.notes.push("Repeats are dots; lines go through their medians.".into());
    }
    if series.iter().flat_map(|each| &each.points).any(|point| point.p99_ns.is_empty()) {
        chart.notes.push("No p99 where fewer than ten I/Os took longer than it.".into());
    }
    let single = series.len() == 1 && series[0].name.is_empty();
    let of_series = |mark: Mark| {
        let named = series.iter().filter(|_| !single);
        named.map(move |each| (mark, each.ink, each.name.clone())).collect::<Vec<_>>()
    };
    let together = series.len() <= TOGETHER_MAX;
    let lines = of_series(Mark::Line);
    let series = Rc::new(series);

    let drawn = Rc::clone(&series);
    chart.panels.push(Panel {
        title: "Throughput".into(),
        note: "I/Os a second".into(),
        legend: lines.clone(),
        size: Size::HALF,
        narrow: Size::NARROW,
        draw: Box::new(move |size| iops(&drawn, size)),
    });
    let all_ns: Vec<f64> = series.iter().flat_map(Series::all_ns).collect();
    let mut latency = |title: &str, note: &str, legend, which: &'static [Line]| {
        let (drawn, all_ns) = (Rc::clone(&series), all_ns.clone());
        chart.panels.push(Panel {
            title: title.into(),
            note: note.into(),
            legend,
            size: Size::HALF,
            narrow: Size::NARROW,
            draw: Box::new(move |size| latencies(&drawn, &all_ns, which, size)),
        });
    };
    if together {
        let mut legend = lines;
        let ink = if single { series[0].ink } else { Ink::Muted };
        legend.push((Mark::Line, ink, "mean".into()));
        legend.push((Mark::Dotted, ink, "p50".into()));
        legend.push((Mark::Dashed, ink, "p99".into()));
        latency("Latency", "mean, median and p99", legend, &[Line::Mean, Line::Median, Line::P99]);
    } else {
        latency("Mean latency", "same scale as p50 and p99", lines.clone(), &[Line::Mean]);
        latency("p50 latency", "same scale as mean and p99", lines.clone(), &[Line::Median]);
        latency("p99 latency", "same scale as mean and p50", lines, &[Line::P99]);
    }
    chart
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Line {
    Mean,
    Median,
    P99,
}

const TITLE_X: &str = "outstanding I/Os (N), log scale";

fn x_axis(series: &[Series]) -> Axis {
    let all = series.iter().flat_map(|each| &each.points).map(|point| point.outstanding);
    Axis::powers_of_two(all, 9)
}

const MARGINS: Margins = Margins { left: 0.0, top: 26.0, right: 14.0 };

fn iops(series: &[Series], size: Size) -> String {
    svg(size, "I/Os a second against outstanding I/Os", |canvas| {
        let rates = series.iter().flat_map(|each| &each.points).flat_map(|point| point.iops.iter().copied());
        let mut plot = Plot::new(canvas, size, &MARGINS, x_axis(series), Axis::from_zero(rates, 5));
        plot.axes(TITLE_X, "IOPS");
        for each in series {
            plot.repeats(each, |point| &point.iops);
            plot.series(&each.line(|point| &point.iops), each.ink, true);
        }
    })
}

fn latencies(series: &[Series], all_ns: &[f64], which: &[Line], size: Size) -> String {
    svg(size, "latency against outstanding I/Os", |canvas| {
        let y = Axis::latencies(all_ns.iter().copied());
        let mut plot = Plot::new(canvas, size, &MARGINS, x_axis(series), y);
        plot.axes(TITLE_X, "latency, log scale");
        for each in series {
            for line in which {
                let of = line.of();
                let values = each.line(of);
                if which.len() == 1 || *line == Line::Mean {
                    plot.repeats(each, of);
                    plot.series(&values, each.ink, true);
                } else {
                    plot.thin(&values, each.ink, if *line == Line::P99 { Thin::Dashed } else { Thin::Dotted });
                }
            }
        }
    })
}

impl Line {
    fn of(self) -> fn(&Point) -> &Vec<f64> {
        match self {
            Line::Mean => |point| &point.mean_ns,
            Line::Median => |point| &point.median_ns,
            Line::P99 => |point| &point.p99_ns,
        }
    }
}

impl Plot<'_, '_> {
    fn repeats(&mut self, series: &Series, of: impl Fn(&Point) -> &Vec<f64>) {
        for point in series.points.iter().filter(|point| of(point).len() > 1) {
            let dots: Vec<(f64, f64)> = of(point).iter().map(|value| (point.outstanding, *value)).collect();
            self.dots(&dots, series.ink);
        }
    }
}

impl Series {
    fn all_ns(&self) -> impl Iterator<Item = f64> + '_ {
        self.points.iter().flat_map(|point| [&point.mean_ns, &point.median_ns, &point.p99_ns]).flatten().copied()
    }

    fn line(&self, of: impl Fn(&Point) -> &Vec<f64>) -> Vec<(f64, Option<f64>)> {
        self.points.iter().map(|point| (point.outstanding, median(of(point)))).collect()
    }
}

/// The middle value; the mean of both for an even number.
pub(super) fn median(values: &[f64]) -> Option<f64> {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let middle = sorted.len() / 2;
    match sorted.len() {
        0 => None,
        odd if odd % 2 == 1 => Some(sorted[middle]),
        _ => Some(f64::midpoint(sorted[middle - 1], sorted[middle])),
    }
}

/// The runs grouped by everything but their outstanding I/Os, in the order of their first run.
fn series(runs: &[Shown]) -> Vec<Series> {
    let runs: Vec<&Shown> = runs.iter().filter(|run| run.result.ios() > 0 && run.result.elapsed_ns > 0).collect();
    let mut keys: Vec<Vec<String>> = Vec::new();
    let mut of_key: Vec<Vec<&RunResult>> = Vec::new();
    for run in &runs {
        let key = key(run);
        match keys.iter().position(|known| *known == key) {
            Some(at) => of_key[at].push(&run.result),
            None => {
                keys.push(key);
                of_key.push(vec![&run.result]);
            }
        }
    }
    let mut named: Vec<(Vec<super::factor::Level>, String, Vec<&RunResult>)> = Vec::new();
    for (key, results) in keys.iter().zip(of_key) {
        let differs = |at: &usize| keys.iter().any(|other| other[*at] != key[*at]);
        let name: Vec<&str> =
            (0..key.len()).filter(differs).map(|at| key[at].as_str()).filter(|part| !part.is_empty()).collect();
        let order = Factor::ALL.iter().filter(|factor| **factor != Factor::Outstanding);
        named.push((order.map(|factor| factor.level(results[0])).collect(), name.join(", "), results));
    }
    // Rising block sizes, not the shuffled order in which a matrix ran them; groups stay as they came.
    if keys.iter().all(|key| key[0] == keys[0][0]) {
        named.sort_by(|a, b| a.0.cmp(&b.0));
    }
    named
        .into_iter()
        .enumerate()
        .map(|(at, (_, name, results))| Series { name, ink: Ink::series(at), points: points(&results) })
        .collect()
}

/// What runs of one line have in common, in words.
fn key(run: &Shown) -> Vec<String> {
    let mut key = vec![run.group.clone()];
    let factors = Factor::ALL.into_iter().filter(|factor| !matches!(factor, Factor::Outstanding | Factor::Threads));
    key.extend(factors.map(|factor| factor.level(&run.result).name));
    key.push(Factor::Threads.level(&run.result).name);
    key.push(if run.result.workload.is_open_loop() { "open loop".into() } else { shown::factor_rest(&run.result) });
    key
}

fn points(results: &[&RunResult]) -> Vec<Point> {
    let mut points: Vec<Point> = Vec::new();
    for result in results {
        let open = result.workload.is_open_loop();
        let outstanding =
            if open { result.outstanding() } else { f64::from(result.workload.outstanding_total()) };
        let known = points.iter().position(|point| point.outstanding == outstanding);
        let at = known.unwrap_or_else(|| {
            let empty = Vec::new;
            points.push(Point {
                outstanding,
                iops: empty(),
                mean_ns: empty(),
                median_ns: empty(),
                p99_ns: empty(),
            });
            points.len() - 1
        });
        let (point, latency) = (&mut points[at], result.latency());
        point.iops.push(result.iops());
        point.mean_ns.extend(latency.mean_ns());
        point.median_ns.extend(latency.percentile_ns(50.0).map(|ns| ns as f64));
        let p99 = latency.supports_percentile(99.0).then(|| latency.percentile_ns(99.0)).flatten();
        point.p99_ns.extend(p99.map(|ns| ns as f64));
    }
    points.sort_by(|a, b| a.outstanding.total_cmp(&b.outstanding));
    points
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_middle_of_repeats_is_drawn() {
        assert_eq!(median(&[3.0, 1.0, 2.0]), Some(2.0));
        assert_eq!(median(&[4.0, 1.0]), Some(2.5));
        assert_eq!(median(&[]), None);
    }
}
