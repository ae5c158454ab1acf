//! Latency against percentiles.

use super::latency_kind;
use crate::axis::{Axis, NINES_MAX};
use crate::chart::{Chart, Panel};
use crate::drawing::{Drawing, Size};
use crate::legend::Mark;
use crate::palette::Ink;
use crate::plot::{Margins, Plot, Stroke, Values};
use crate::run::{self, NamedRun};
use workload::{LatencyFigures, LatencyHistogram, ReportedLatency};

/// Points of a curve for each nine.
const POINTS_A_NINE: usize = 24;
/// A percentile is known where this many I/Os took longer.
const ABOVE_MIN: f64 = 10.0;
/// Radius of a reported point.
const POINT_PIXELS: f64 = 2.6;
/// Where there is one panel.
const SIZE: Size = Size { width: 1040, height: 380 };

/// The latencies of a run, or one kind of them.
struct Curve {
    name: String,
    ink: Ink,
    /// Latency by nines, as far as ten I/Os or more took longer.
    known: Values,
    /// From there to the longest I/O.
    thin: Values,
    /// Another tool reported these points; there is nothing between them.
    is_points: bool,
}

/// Latency against percentiles on an axis of nines. One run: all it did, in one panel. Several: a panel for
/// reads, one for writes and so on, the runs over each other.
pub(crate) fn percentiles(runs: &[NamedRun]) -> Chart {
    let mut chart = Chart::new("Latency percentiles", run::settings(runs));
    let panels = latency_kind::panels(&mut chart, runs, "Latency by percentile", curve);
    if panels.is_empty() {
        return chart;
    }
    if panels.iter().flat_map(|(_, curves)| curves).any(|curve| !curve.thin.is_empty()) {
        chart.notes.push(
            "Dashed: fewer than ten I/Os took longer, so it says little more than the longest, the ring at its end."
                .into(),
        );
    }
    if panels.iter().flat_map(|(_, curves)| curves).any(|curve| curve.is_points) {
        chart.notes.push("Dots: percentiles as another tool reported them; lines only join them.".into());
    }
    if runs.iter().any(|run| run.result.response.is_some()) {
        chart.notes.push(
            "From their intended start: what a user of the open loop waited, queueing included.".into(),
        );
    }
    let size = if panels.len() == 1 { SIZE } else { Size::HALF };
    for (title, curves) in panels {
        let named = curves.iter().filter(|curve| !curve.name.is_empty());
        let legend = named.map(|curve| (Mark::Line, curve.ink, curve.name.clone())).collect();
        let draw = move |size| draw(&curves, size);
        chart.panels.push(Panel::new(title, size, draw).with_legend(legend, &Margins::LONG_TICKS));
    }
    chart
}

fn draw(curves: &[Curve], size: Size) -> Drawing {
    Drawing::new(size, "latency against percentiles", |canvas| {
        let all = || curves.iter().flat_map(|curve| curve.known.iter().chain(&curve.thin));
        let x = Axis::nines(all().map(|(nines, _)| *nines).fold(1.0, f64::max));
        let y = Axis::latencies(all().filter_map(|(_, ns)| *ns));
        let named = curves.iter().map(|curve| curve.name.as_str()).filter(|name| !name.is_empty());
        let with_names = Margins::LONG_TICKS.with_names(size, named);
        let mut plot = Plot::new(canvas, size, with_names.as_ref().unwrap_or(&Margins::LONG_TICKS), x, y);
        plot.axes("percentile of the I/Os, an equal step for each nine", "latency, log scale");
        for curve in curves {
            plot.thin(&curve.thin, curve.ink, Stroke::Dashed);
            if curve.is_points {
                plot.thin(&curve.known, curve.ink, Stroke::Dotted);
                plot.marks(&curve.known, curve.ink, POINT_PIXELS);
            } else {
                plot.series(&curve.known, curve.ink, false);
            }
            if let Some(at) = curve.thin.last().and_then(|(nines, ns)| plot.pixel(*nines, (*ns)?)) {
                plot.canvas.ring(at, 3.5, curve.ink, 1.5);
            }
        }
        if with_names.is_some() {
            let end =
                |curve: &Curve| if curve.thin.is_empty() { curve.known.clone() } else { curve.thin.clone() };
            let ends: Vec<Values> = curves.iter().map(end).collect();
            let lines = ends.iter().zip(curves);
            plot.name_lines(lines.map(|(values, curve)| (&values[..], curve.ink, curve.name.as_str())));
        }
    })
}

fn curve(name: String, ink: Ink, latency: &LatencyFigures) -> Option<Curve> {
    match latency {
        LatencyFigures::Counted(histogram) => curve_of_histogram(name, ink, histogram),
        LatencyFigures::Reported(reported) => curve_of_points(name, ink, latency, reported),
    }
}

/// The percentiles that another tool reported. A percentile of 100 has no place on the axis: the longest stands at the
/// end, where one I/O took longer.
fn curve_of_points(
    name: String,
    ink: Ink,
    latency: &LatencyFigures,
    reported: &ReportedLatency,
) -> Option<Curve> {
    let last = (reported.count as f64).log10().clamp(0.0, NINES_MAX);
    let nines = |percent: f64| -(1.0 - percent / 100.0).log10();
    let (mut known, mut thin) = (Values::new(), Values::new());
    for (percent, ns) in reported.percentiles.iter().filter(|(percent, _)| (0.0..=100.0).contains(percent)) {
        let point = (nines(*percent).min(last), Some(*ns as f64));
        let is_known = *percent == 0.0 || latency.supports_percentile(*percent);
        if is_known { known.push(point) } else { thin.push(point) }
    }
    // The dashed part begins where the other ends.
    if let (Some(end), false) = (known.last(), thin.is_empty()) {
        thin.insert(0, *end);
    }
    (!known.is_empty() || !thin.is_empty()).then_some(Curve { name, ink, known, thin, is_points: true })
}

fn curve_of_histogram(name: String, ink: Ink, latency: &LatencyHistogram) -> Option<Curve> {
    let count = latency.count() as f64;
    let longest = latency.max_ns()? as f64;
    let last = count.log10().min(NINES_MAX);
    let known = (count / ABOVE_MIN).log10().min(NINES_MAX);
    let point = |nines: f64| {
        let percent = 100.0 * (1.0 - 10_f64.powf(-nines));
        (nines, latency.percentile_ns(percent).map(|ns| ns as f64))
    };
    let between = |from: f64, to: f64| {
        let steps = ((to - from) * POINTS_A_NINE as f64).ceil().max(1.0) as usize;
        (0..=steps).map(move |step| point(from + (to - from) * step as f64 / steps as f64))
    };
    let known_points = if known > 0.0 { between(0.0, known).collect() } else { Vec::new() };
    let mut thin: Values = between(known.max(0.0), last.max(0.0)).collect();
    if let Some(end) = thin.last_mut() {
        end.1 = Some(longest);
    }
    Some(Curve { name, ink, known: known_points, thin, is_points: false })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_percentile_that_ten_ios_exceed_is_known_and_the_rest_is_dashed() {
        let mut latency = LatencyHistogram::new();
        latency.record_n(1_000_000, 999);
        latency.record(50_000_000);
        let curve = curve(String::new(), Ink::Read, &LatencyFigures::from(&latency)).unwrap();
        assert_eq!(curve.known.last().map(|(nines, _)| *nines), Some(2.0), "1000 I/Os support p99");
        let (nines, ns) = *curve.thin.last().unwrap();
        assert!((nines - 3.0).abs() < 1e-9 && (ns.unwrap() / 50e6 - 1.0).abs() < 0.01);
    }

    #[test]
    fn three_ios_have_no_percentile_but_a_longest() {
        let mut latency = LatencyHistogram::new();
        latency.record_n(1_000_000, 3);
        let curve = curve(String::new(), Ink::Read, &LatencyFigures::from(&latency)).unwrap();
        assert!(curve.known.is_empty() && !curve.thin.is_empty());
    }

    #[test]
    fn reported_percentiles_are_points_and_nothing_is_drawn_between_the_last_and_the_longest() {
        let percentiles = vec![(0.0, 100), (50.0, 900), (99.0, 3_000), (99.9, 8_000), (100.0, 9_000)];
        let latency = LatencyFigures::Reported(ReportedLatency {
            count: 5_000,
            percentiles: percentiles.into(),
            ..ReportedLatency::default()
        });
        let curve = curve(String::new(), Ink::Read, &latency).unwrap();
        assert!(curve.is_points);
        let nines: Vec<f64> = curve.known.iter().map(|(nines, _)| (nines * 100.0).round() / 100.0).collect();
        assert_eq!(nines, [0.0, 0.3, 2.0], "5000 I/Os do not support p99.9");
        let ns: Vec<f64> = curve.thin.iter().filter_map(|(_, ns)| *ns).collect();
        assert_eq!(ns, [3_000.0, 8_000.0, 9_000.0]);
        assert!((curve.thin[2].0 - 5_000_f64.log10()).abs() < 1e-9, "the longest stands at the end");
        let none = LatencyFigures::Reported(ReportedLatency { count: 5_000, ..ReportedLatency::default() });
        assert!(super::curve(String::new(), Ink::Read, &none).is_none());
    }
}
