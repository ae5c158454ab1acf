//! I/Os of runs by their latency.

use super::latency_kind::{self, shares_by_range};
use crate::axis::Axis;
use crate::chart::{Chart, Panel};
use crate::drawing::{Drawing, Size};
use crate::legend::Mark;
use crate::palette::Ink;
use crate::plot::{Margins, Plot};
use crate::run::{self, NamedRun};
use workload::LatencyFigures;

/// Bars for each power of ten.
const BARS_A_DECADE: f64 = 12.0;

/// I/Os of a run by their latency.
struct Bars {
    name: String,
    ink: Ink,
    /// (number of the range, share of the I/Os), rising.
    shares: Vec<(i32, f64)>,
}

/// A histogram with a log x axis. One run: reads and writes in one panel. Several: a panel for each kind of
/// I/O, the runs over each other.
pub(crate) fn histogram(runs: &[NamedRun]) -> Chart {
    let mut chart = Chart::new("Histogram of latencies", run::settings(runs));
    let panels = latency_kind::panels(&mut chart, runs, "I/Os by latency", bars);
    if panels.is_empty() {
        return chart;
    }
    chart.notes.push(format!(
        "{BARS_A_DECADE} bars for each power of ten; each is the share of its own I/Os. A bar too low to be seen \
         is drawn 1.5 pixels high, so that the slow few are not lost."
    ));
    let size = if panels.len() > 1 { Size::HALF } else { Size::WIDE };
    for (title, bars) in panels {
        let named = bars.iter().filter(|bars| !bars.name.is_empty());
        let legend = named.map(|bars| (Mark::Area, bars.ink, bars.name.clone())).collect();
        let draw = move |size| draw(&bars, size);
        chart.panels.push(Panel { legend, ..Panel::new(title, size, draw) });
    }
    chart
}

fn bars(name: String, ink: Ink, latency: &LatencyFigures) -> Option<Bars> {
    let latency = latency.histogram()?;
    let count = latency.count();
    let shares = shares_by_range(latency.filled(), count as f64, BARS_A_DECADE);
    (count > 0).then_some(Bars { name, ink, shares })
}

fn edge(range: i32) -> f64 {
    10_f64.powf(f64::from(range) / BARS_A_DECADE)
}

fn draw(all: &[Bars], size: Size) -> Drawing {
    Drawing::new(size, "share of the I/Os by latency", |canvas| {
        let ranges = || all.iter().flat_map(|bars| &bars.shares);
        let x = Axis::latencies(ranges().flat_map(|(range, _)| [edge(*range), edge(range + 1)]));
        let y = Axis::shares(ranges().map(|(_, share)| *share), 5);
        let mut plot = Plot::new(canvas, size, &Margins::LONG_TICKS, x, y);
        plot.axes("latency, log scale", "share of the I/Os");
        let opacity = if all.len() > 1 { 0.3 } else { 0.45 };
        for bars in all {
            for (range, share) in &bars.shares {
                plot.bar((edge(*range), edge(range + 1)), *share, bars.ink, opacity);
            }
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_bars_add_up_to_all_ios() {
        let mut latency = workload::LatencyHistogram::new();
        latency.record_n(90_000, 500);
        latency.record_n(3_000_000, 499);
        latency.record(2_000_000_000);
        let bars = bars(String::new(), Ink::Read, &LatencyFigures::from(&latency)).unwrap();
        assert_eq!(bars.shares.len(), 3);
        assert!((bars.shares.iter().map(|(_, share)| share).sum::<f64>() - 1.0).abs() < 1e-12);
        let (range, _) = bars.shares[2];
        assert!(edge(range) <= 2.01e9 && edge(range + 1) >= 2e9);
    }
}
