use super::axis::Axis;
use super::canvas::{Ink, SERIES_INKS, svg};
use super::percentiles::KINDS;
use super::plot::{Margins, Plot};
use super::{Chart, Mark, Panel, Shown, Size, first, heat_map, shown};
use workload::LatencyHistogram;

/// Bars for each power of ten.
const BARS_A_DECADE: f64 = 12.0;

/// How many I/Os took how long, of one kind and run.
struct Bars {
    name: String,
    ink: Ink,
    /// (number of the range, share of the I/Os), rising.
    shares: Vec<(i32, f64)>,
}

/// A histogram with a log x axis. One run: reads and writes in one panel. Several: a panel for each kind of
/// I/O, the runs over each other.
pub(super) fn histogram(runs: &[Shown]) -> Chart {
    let mut chart = Chart::new("Histogram of latencies", runs);
    let labels = shown::labels(runs);
    let (drawn, left_out) = first(runs.iter().zip(labels).collect::<Vec<_>>(), SERIES_INKS);
    if left_out > 0 {
        chart
            .notes
            .push(format!("{left_out} more runs are not drawn: their colours could not be told apart."));
    }
    let mut panels: Vec<(String, Vec<Bars>)> = if let [(run, _)] = &drawn[..] {
        let bars = KINDS.iter().filter_map(|(name, ink, of)| bars((*name).into(), *ink, of(&run.result)?));
        vec![("I/Os by latency".into(), bars.collect())]
    } else {
        let panel = |(kind, _, of): &super::percentiles::Kind| {
            let bars = |(at, (run, label)): (usize, &(&Shown, String))| {
                bars(label.clone(), Ink::series(at), of(&run.result)?)
            };
            (heat_map::capitalised(kind), drawn.iter().enumerate().filter_map(bars).collect())
        };
        KINDS.iter().map(panel).collect()
    };
    panels.retain(|(_, bars)| !bars.is_empty());
    if panels.is_empty() {
        chart.notes.push("No I/O completed: there are no latencies.".into());
        return chart;
    }
    chart.notes.push(format!(
        "{BARS_A_DECADE} bars for each power of ten; each is the share of its own I/Os. A bar too low to be seen \
         is drawn 1.5 pixels high, so that the slow few are not lost."
    ));
    let half = panels.len() > 1;
    for (title, bars) in panels {
        chart.panels.push(Panel {
            title,
            note: String::new(),
            legend: bars.iter().map(|bars| (Mark::Area, bars.ink, bars.name.clone())).collect(),
            size: if half { Size::HALF } else { Size::WIDE },
            narrow: Size::NARROW,
            draw: Box::new(move |size| draw(&bars, size)),
        });
    }
    chart.panels.iter_mut().for_each(|panel| panel.legend.retain(|(_, _, name)| !name.is_empty()));
    chart
}

fn bars(name: String, ink: Ink, latency: &LatencyHistogram) -> Option<Bars> {
    let count = latency.count();
    let mut shares: Vec<(i32, f64)> = Vec::new();
    for (ns, of) in latency.filled() {
        let range = ((ns as f64).max(1.0).log10() * BARS_A_DECADE).floor() as i32;
        let share = of as f64 / count as f64;
        match shares.last_mut() {
            Some((last, sum)) if *last == range => *sum += share,
            _ => shares.push((range, share)),
        }
    }
    (count > 0).then_some(Bars { name, ink, shares })
}

fn edge(range: i32) -> f64 {
    10_f64.powf(f64::from(range) / BARS_A_DECADE)
}

fn draw(all: &[Bars], size: Size) -> String {
    svg(size, "share of the I/Os by latency", |canvas| {
        let ranges = || all.iter().flat_map(|bars| &bars.shares);
        let x = Axis::latencies(ranges().flat_map(|(range, _)| [edge(*range), edge(range + 1)]));
        let y = Axis::shares(ranges().map(|(_, share)| *share), 5);
        let margins = Margins { left: 0.0, top: 26.0, right: 24.0 };
        let mut plot = Plot::new(canvas, size, &margins, x, y);
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
    fn all_bars_together_are_all_ios() {
        let mut latency = LatencyHistogram::new();
        latency.record_n(90_000, 500);
        latency.record_n(3_000_000, 499);
        latency.record(2_000_000_000);
        let bars = bars(String::new(), Ink::Read, &latency).unwrap();
        assert_eq!(bars.shares.len(), 3);
        assert!((bars.shares.iter().map(|(_, share)| share).sum::<f64>() - 1.0).abs() < 1e-12);
        let (range, _) = bars.shares[2];
        assert!(edge(range) <= 2.01e9 && edge(range + 1) >= 2e9);
    }
}
