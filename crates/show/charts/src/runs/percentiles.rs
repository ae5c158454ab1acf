use super::axis::{Axis, NINES_MAX};
use super::canvas::{Ink, SERIES_INKS, svg};
use super::plot::{Margins, Plot, Thin};
use super::{Chart, Mark, Panel, Shown, Size, first, shown};
use workload::{LatencyHistogram, RunResult};

/// Points of a curve for each nine.
const POINTS_A_NINE: usize = 24;
/// A percentile needs so many I/Os above it to be known.
const ABOVE_MIN: f64 = 10.0;
/// Where one run is alone.
const SIZE: Size = Size { width: 1040, height: 380 };

/// The latencies of a run, or of one of several, as the chart draws them.
struct Curve {
    name: String,
    ink: Ink,
    /// (nines, latency) of what ten I/Os or more lie beyond.
    known: Vec<(f64, Option<f64>)>,
    /// From there to the longest I/O.
    thin: Vec<(f64, Option<f64>)>,
}

/// What users or programs waited for, and how a chart of one run colours it.
pub(super) type Kind = (&'static str, Ink, fn(&RunResult) -> Option<&LatencyHistogram>);

pub(super) const KINDS: [Kind; 5] = [
    ("reads", Ink::Read, |result| Some(&result.read.latency)),
    ("writes", Ink::Commit, |result| Some(&result.write.latency)),
    ("syncs", Ink::Series(3), |result| Some(&result.sync.latency)),
    ("reads, from their intended start", Ink::Series(4), |result| {
        result.response.as_ref().map(|it| &it.read)
    }),
    ("writes, from their intended start", Ink::Series(5), |result| {
        result.response.as_ref().map(|it| &it.write)
    }),
];

/// Latency against percentiles on an axis of nines. One run: all it did, in one panel. Several: a panel for
/// reads, one for writes and so on, the runs over each other.
pub(super) fn percentiles(runs: &[Shown]) -> Chart {
    let mut chart = Chart::new("Latency percentiles", runs);
    let labels = shown::labels(runs);
    let (drawn, left_out) = first(runs.iter().zip(labels).collect(), SERIES_INKS);
    if left_out > 0 {
        chart
            .notes
            .push(format!("{left_out} more runs are not drawn: their colours could not be told apart."));
    }
    let panels: Vec<(String, Vec<Curve>)> = if let [(run, _)] = &drawn[..] {
        let curves = KINDS.iter().filter_map(|(name, ink, of)| curve((*name).into(), *ink, of(&run.result)?));
        vec![("Latency by percentile".into(), curves.collect())]
    } else {
        let panel = |(kind, _, of): &Kind| {
            let curve = |(at, (run, label)): (usize, &(&Shown, String))| {
                curve(label.clone(), Ink::series(at), of(&run.result)?)
            };
            (super::heat_map::capitalised(kind), drawn.iter().enumerate().filter_map(curve).collect())
        };
        KINDS.iter().map(panel).collect()
    };
    let panels: Vec<(String, Vec<Curve>)> =
        panels.into_iter().filter(|(_, curves)| !curves.is_empty()).collect();
    if panels.is_empty() {
        chart.notes.push("No I/O completed: there are no latencies.".into());
        return chart;
    }
    if panels.iter().flat_map(|(_, curves)| curves).any(|curve| !curve.thin.is_empty()) {
        chart.notes.push(
            "Dashed: fewer than ten I/Os took longer, so it says little more than the longest, the ring at its end."
                .into(),
        );
    }
    if runs.iter().any(|run| run.result.response.is_some()) {
        chart.notes.push(
            "From their intended start: what a user of the open loop waited, queueing included.".into(),
        );
    }
    let alone = panels.len() == 1;
    for (title, curves) in panels {
        let named = curves.iter().filter(|curve| !curve.name.is_empty());
        chart.panels.push(Panel {
            title,
            note: String::new(),
            legend: named.map(|curve| (Mark::Line, curve.ink, curve.name.clone())).collect(),
            size: if alone { SIZE } else { Size::HALF },
            narrow: Size::NARROW,
            draw: Box::new(move |size| draw(&curves, size)),
        });
    }
    chart
}

fn draw(curves: &[Curve], size: Size) -> String {
    svg(size, "latency against percentiles", |canvas| {
        let all = || curves.iter().flat_map(|curve| curve.known.iter().chain(&curve.thin));
        let x = Axis::nines(all().map(|(nines, _)| *nines).fold(1.0, f64::max));
        let y = Axis::latencies(all().filter_map(|(_, ns)| *ns));
        let margins = Margins { left: 0.0, top: 26.0, right: 24.0 };
        let mut plot = Plot::new(canvas, size, &margins, x, y);
        plot.axes("percentile of the I/Os, an equal step for each nine", "latency, log scale");
        for curve in curves {
            plot.thin(&curve.thin, curve.ink, Thin::Dashed);
            plot.series(&curve.known, curve.ink, false);
            if let Some(at) = curve.thin.last().and_then(|(nines, ns)| plot.pixel(*nines, (*ns)?)) {
                plot.canvas.ring(at, 3.5, curve.ink, 1.5);
            }
        }
    })
}

fn curve(name: String, ink: Ink, latency: &LatencyHistogram) -> Option<Curve> {
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
    let mut thin: Vec<(f64, Option<f64>)> = between(known.max(0.0), last.max(0.0)).collect();
    if let Some(end) = thin.last_mut() {
        end.1 = Some(longest);
    }
    Some(Curve { name, ink, known: known_points, thin })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_ten_ios_lie_beyond_is_drawn_whole_and_the_rest_dashed() {
        let mut latency = LatencyHistogram::new();
        latency.record_n(1_000_000, 999);
        latency.record(50_000_000);
        let curve = curve(String::new(), Ink::Read, &latency).unwrap();
        assert_eq!(curve.known.last().map(|(nines, _)| *nines), Some(2.0), "1000 I/Os support p99");
        let (nines, ns) = *curve.thin.last().unwrap();
        assert!((nines - 3.0).abs() < 1e-9 && (ns.unwrap() / 50e6 - 1.0).abs() < 0.01);
    }

    #[test]
    fn three_ios_know_no_percentile_but_their_longest() {
        let mut latency = LatencyHistogram::new();
        latency.record_n(1_000_000, 3);
        let curve = curve(String::new(), Ink::Read, &latency).unwrap();
        assert!(curve.known.is_empty() && !curve.thin.is_empty());
    }
}
