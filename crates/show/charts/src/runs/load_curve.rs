//! IOPS and latency against outstanding I/Os.

use crate::axis::Axis;
use crate::chart::{Chart, Draw, Panel, grouped, truncate};
use crate::drawing::{Drawing, Size};
use crate::factor::{Factor, Level, p99_ns};
use crate::legend::{Key, Mark};
use crate::palette::{Ink, SERIES_INKS};
use crate::plot::{Margins, Plot, Stroke, Values};
use crate::run::{self, NamedRun};
use crate::words::listed;
use std::rc::Rc;
use workload::RunResult;

/// Settings of which a chart has panels.
const FACETS_MAX: usize = 6;
/// With more lines than this, mean, median and p99 get a panel each.
const TOGETHER_MAX: usize = 2;

/// Runs that differ only in their outstanding I/Os, rising.
struct Series {
    name: String,
    /// The name in two parts.
    block_size: String,
    facet: String,
    ink: Ink,
    /// Radius of a point. The lower lines have larger ones, which stay visible where lines meet.
    mark_pixels: f64,
    points: Vec<Point>,
}

/// All runs with that many outstanding I/Os: one value of each repeat.
struct Point {
    outstanding: f64,
    iops: Vec<f64>,
    mean_ns: Vec<f64>,
    median_ns: Vec<f64>,
    /// Of runs with enough I/Os for it.
    p99_ns: Vec<f64>,
    /// Another tool made a run, and reported no p99 of it.
    p99_is_unreported: bool,
}

/// IOPS and latency against outstanding I/Os, side by side. Repeats are dots, the line goes through their
/// medians. Too many lines for one panel are split: a panel for all that differ only in their block size.
pub(crate) fn load_curve(runs: &[NamedRun]) -> Chart {
    let mut chart = Chart::new("Load curve", run::settings(runs));
    let all = series(runs);
    if all.is_empty() {
        chart.notes.push("No run completed an I/O: there is no curve.".into());
        return chart;
    }
    let points = || all.iter().flat_map(|each| &each.points);
    let ranges = Ranges {
        outstanding: points().map(|point| point.outstanding).collect(),
        iops: points().flat_map(|point| point.iops.iter().copied()).collect(),
        ns: points().flat_map(Point::all_ns).collect(),
    };
    let ranges = Rc::new(ranges);
    if runs.iter().any(|run| run.result.workload.is_open_loop()) {
        chart
            .notes
            .push("Open loops stand at the outstanding I/Os that they had on average (Little’s law).".into());
    }
    if points().any(|point| point.iops.len() > 1) {
        chart.notes.push("Repeats are dots; lines go through their medians.".into());
    }
    if points().any(|point| point.p99_ns.is_empty()) {
        chart.notes.push(no_p99(points().any(|point| point.p99_is_unreported)).into());
    }
    if all.len() <= SERIES_INKS {
        panels(&mut chart, "", all, &ranges);
        return chart;
    }
    let mut facets = facets(all);
    let left_out = truncate(&mut facets, FACETS_MAX);
    let mut lines_left_out = 0;
    for (name, mut series) in facets {
        lines_left_out += truncate(&mut series, SERIES_INKS);
        panels(&mut chart, &name, series, &ranges);
    }
    if left_out + lines_left_out > 0 {
        chart.notes.push(format!(
            "Not drawn: {left_out} more settings, and {lines_left_out} lines whose colours could not be distinguished."
        ));
    }
    chart
}

/// All values of a chart: its panels have the same axes, so that they can be compared.
struct Ranges {
    outstanding: Vec<f64>,
    iops: Vec<f64>,
    ns: Vec<f64>,
}

/// Throughput and latency of some series.
fn panels(chart: &mut Chart, facet: &str, mut series: Vec<Series>, ranges: &Rc<Ranges>) {
    let count = series.len();
    for (at, each) in series.iter_mut().enumerate() {
        each.ink = Ink::series(at);
        each.mark_pixels = MARK_PIXELS + 1.2 * (count - 1 - at).min(MARKS_LARGER_MAX) as f64;
    }
    let single = series.len() == 1 && series[0].name.is_empty();
    let lines: Vec<Key> =
        series.iter().filter(|_| !single).map(|each| (Mark::Line, each.ink, each.name.clone())).collect();
    let ink = if single { series[0].ink } else { Ink::Muted };
    let series = Rc::new(series);
    let mut panel = |title: &str, note: &str, legend: Vec<Key>, is_named: bool, draw: Draw| {
        let title = if facet.is_empty() { title.to_owned() } else { format!("{title}: {facet}") };
        let panel = Panel { note: note.into(), ..Panel::new(title, Size::HALF, draw) };
        chart.panels.push(match is_named {
            true => panel.with_legend(legend, &Margins::CURVE),
            false => Panel { legend, ..panel },
        });
    };
    let (drawn, within) = (Rc::clone(&series), Rc::clone(ranges));
    // Panels beside each other have the same axes: all of them have names at their lines, or none.
    let is_named = facet.is_empty() && count > TOGETHER_MAX;
    let draw = Box::new(move |size| iops(&drawn, &within, is_named, size));
    panel("Throughput", "I/Os a second", lines.clone(), is_named, draw);
    let with_styles = |styles: &[(Mark, &str)]| {
        let styles = styles.iter().map(|(mark, name)| (*mark, ink, (*name).to_owned()));
        lines.iter().cloned().chain(styles).collect::<Vec<Key>>()
    };
    let [mean, median, p99] = [(Mark::Line, "mean"), (Mark::Dotted, "p50"), (Mark::Dashed, "p99")];
    let parts: &[(&str, &str, Vec<Key>, &'static [Line])] = if !facet.is_empty() {
        &[("Latency", "mean and p99", with_styles(&[mean, p99]), &[Line::Mean, Line::P99])]
    } else if count <= TOGETHER_MAX {
        let legend = with_styles(&[mean, median, p99]);
        &[("Latency", "mean, median and p99", legend, &[Line::Mean, Line::Median, Line::P99])]
    } else {
        &[
            ("Mean latency", "same scale as p50 and p99", lines.clone(), &[Line::Mean]),
            ("p50 latency", "same scale as mean and p99", lines.clone(), &[Line::Median]),
            ("p99 latency", "same scale as mean and p50", lines.clone(), &[Line::P99]),
        ]
    };
    for (title, note, legend, which) in parts {
        let (drawn, within, which) = (Rc::clone(&series), Rc::clone(ranges), *which);
        let draw = Box::new(move |size| latencies(&drawn, &within, which, size));
        panel(title, note, legend.clone(), is_named, draw);
    }
}

/// The series grouped by everything but their block size, in their order.
fn facets(all: Vec<Series>) -> Vec<(String, Vec<Series>)> {
    grouped(all.into_iter().map(|mut series| {
        series.name = std::mem::take(&mut series.block_size);
        (std::mem::take(&mut series.facet), series)
    }))
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Line {
    Mean,
    Median,
    P99,
}

const TITLE_X: &str = "outstanding I/Os (N), log scale";

fn iops(series: &[Series], ranges: &Ranges, is_named: bool, size: Size) -> Drawing {
    Drawing::new(size, "I/Os a second against outstanding I/Os", |canvas| {
        let x = Axis::powers_of_two(ranges.outstanding.iter().copied(), 9);
        let y = Axis::from_zero(ranges.iops.iter().copied(), 5);
        let with_names = with_names(series, size).filter(|_| is_named);
        let mut plot = Plot::new(canvas, size, with_names.as_ref().unwrap_or(&Margins::CURVE), x, y);
        plot.axes(TITLE_X, "IOPS");
        for each in series {
            plot.repeats(each, |point| &point.iops);
            let line = each.line(|point| &point.iops);
            plot.series(&line, each.ink, false);
            plot.marks(&line, each.ink, each.mark_pixels);
        }
        if with_names.is_some() {
            plot.name_series(series, |point| &point.iops);
        }
    })
}

fn latencies(series: &[Series], ranges: &Ranges, which: &[Line], size: Size) -> Drawing {
    Drawing::new(size, "latency against outstanding I/Os", |canvas| {
        let x = Axis::powers_of_two(ranges.outstanding.iter().copied(), 9);
        let y = Axis::latencies(ranges.ns.iter().copied());
        let with_names = with_names(series, size).filter(|_| which.len() == 1);
        let mut plot = Plot::new(canvas, size, with_names.as_ref().unwrap_or(&Margins::CURVE), x, y);
        plot.axes(TITLE_X, "latency, log scale");
        for each in series {
            for line in which {
                let figures = line.figures();
                let values = each.line(figures);
                if which.len() == 1 || *line == Line::Mean {
                    plot.repeats(each, figures);
                    plot.series(&values, each.ink, false);
                    plot.marks(&values, each.ink, each.mark_pixels);
                } else {
                    plot.thin(
                        &values,
                        each.ink,
                        if *line == Line::P99 { Stroke::Dashed } else { Stroke::Dotted },
                    );
                }
            }
        }
        if with_names.is_some() {
            plot.name_series(series, which[0].figures());
        }
    })
}

/// Margins with room for the names of series, where they fit.
fn with_names(series: &[Series], size: Size) -> Option<Margins> {
    Margins::CURVE.with_names(size, series.iter().map(|each| each.name.as_str()))
}

impl Line {
    fn figures(self) -> fn(&Point) -> &Vec<f64> {
        match self {
            Line::Mean => |point| &point.mean_ns,
            Line::Median => |point| &point.median_ns,
            Line::P99 => |point| &point.p99_ns,
        }
    }
}

impl Plot<'_> {
    fn name_series(&mut self, series: &[Series], figures: impl Fn(&Point) -> &Vec<f64>) {
        let lines: Vec<Values> = series.iter().map(|each| each.line(&figures)).collect();
        let named =
            lines.iter().zip(series).map(|(values, each)| (&values[..], each.ink, each.name.as_str()));
        self.name_lines(named);
    }

    fn repeats(&mut self, series: &Series, figures: impl Fn(&Point) -> &Vec<f64>) {
        for point in series.points.iter().filter(|point| figures(point).len() > 1) {
            let dots: Vec<(f64, f64)> =
                figures(point).iter().map(|value| (point.outstanding, *value)).collect();
            self.dots(&dots, series.ink, 2.0);
        }
    }
}

impl Point {
    fn all_ns(&self) -> impl Iterator<Item = f64> + '_ {
        [&self.mean_ns, &self.median_ns, &self.p99_ns].into_iter().flatten().copied()
    }
}

impl Series {
    fn line(&self, figures: impl Fn(&Point) -> &Vec<f64>) -> Values {
        self.points.iter().map(|point| (point.outstanding, median(figures(point)))).collect()
    }
}

/// Why points have no p99.
fn no_p99(unreported: bool) -> &'static str {
    if unreported {
        "No p99 where another tool did not report one, or fewer than ten I/Os took longer than it."
    } else {
        "No p99 where fewer than ten I/Os took longer than it."
    }
}

/// The middle value; the mean of both for an even number.
pub(crate) fn median(values: &[f64]) -> Option<f64> {
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
fn series(runs: &[NamedRun]) -> Vec<Series> {
    let ran = runs.iter().filter(|run| run.result.ios() > 0 && run.result.elapsed_ns > 0);
    let (keys, of_key): (Vec<_>, Vec<_>) =
        grouped(ran.map(|run| (key(run), &*run.result))).into_iter().unzip();
    let differs = |at: usize| keys.iter().any(|other| other[at] != keys[0][at]);
    let name = |key: &[String], parts: &dyn Fn(usize) -> bool| {
        let parts = (0..key.len()).filter(|at| differs(*at) && parts(*at)).map(|at| key[at].as_str());
        listed(parts)
    };
    let mut found: Vec<(Vec<Level>, Series)> = Vec::new();
    for (key, results) in keys.iter().zip(&of_key) {
        let factors = Factor::ALL.iter().filter(|factor| **factor != Factor::Outstanding);
        let levels = factors.map(|factor| factor.level(results[0])).collect();
        let series = Series {
            name: name(key, &|_| true),
            block_size: key[BLOCK_SIZE].clone(),
            facet: name(key, &|at| at != BLOCK_SIZE),
            ink: Ink::Curve,
            mark_pixels: MARK_PIXELS,
            points: points(results),
        };
        found.push((levels, series));
    }
    // By rising block size, not in the shuffled order of a matrix. Groups keep their order.
    if !keys.is_empty() && !differs(GROUP) {
        found.sort_by(|a, b| a.0.cmp(&b.0));
    }
    found.into_iter().map(|(_, series)| series).collect()
}

/// Places in a [`key`].
const GROUP: usize = 0;
const BLOCK_SIZE: usize = 1;
/// Radius of a point.
const MARK_PIXELS: f64 = 2.6;
/// Larger points would hide each other.
const MARKS_LARGER_MAX: usize = 4;

/// The factors that the runs of one line share.
fn key(run: &NamedRun) -> Vec<String> {
    let open = run.result.workload.is_open_loop();
    let of = |factor: Factor| factor.level(&run.result).name;
    vec![
        run.group.clone(),
        of(Factor::BlockSize),
        of(Factor::Target),
        of(Factor::Pattern),
        of(Factor::WriteShare),
        of(Factor::Threads),
        if open { "open loop".into() } else { run::factor_rest(&run.result) },
    ]
}

fn points(results: &[&RunResult]) -> Vec<Point> {
    let outstanding = |result: &RunResult| match result.workload.is_open_loop() {
        true => result.outstanding(),
        false => f64::from(result.workload.outstanding_total()),
    };
    let groups = grouped(results.iter().map(|result| (outstanding(result), *result)));
    let point = |(outstanding, results): (f64, Vec<&RunResult>)| {
        let latencies = || results.iter().map(|result| result.total_latency());
        Point {
            outstanding,
            iops: results.iter().map(|result| result.iops()).collect(),
            mean_ns: latencies().filter_map(|latency| latency.mean_ns()).collect(),
            median_ns: latencies()
                .filter_map(|latency| latency.percentile_ns(50.0))
                .map(|ns| ns as f64)
                .collect(),
            p99_ns: latencies().filter_map(|latency| p99_ns(&latency)).collect(),
            p99_is_unreported: results
                .iter()
                .any(|result| result.tool.is_some() && result.total_latency().percentile_ns(99.0).is_none()),
        }
    };
    let mut points: Vec<Point> = groups.into_iter().map(point).collect();
    points.sort_by(|a, b| a.outstanding.total_cmp(&b.outstanding));
    points
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_median_of_two_is_between_them() {
        assert_eq!(median(&[3.0, 1.0, 2.0]), Some(2.0));
        assert_eq!(median(&[4.0, 1.0]), Some(2.5));
        assert_eq!(median(&[]), None);
    }
}
