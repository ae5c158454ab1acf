//! How latencies were distributed over time.

use super::latency_kind::shares_by_range;
use super::slices::{Step, steps};
use crate::axis::Axis;
use crate::cells::Scale;
use crate::chart::{Chart, Panel, truncate};
use crate::drawing::{Drawing, Size};
use crate::number;
use crate::palette::Ink;
use crate::plot::{Margins, Plot};
use crate::run::{self, NamedRun};
use crate::words::capitalised;
use workload::Latencies;

/// Ranges of latency for each power of ten.
const RANGES_A_DECADE: f64 = 8.0;
/// Columns of the map; more slices than this are drawn several to a column.
const COLUMNS_MAX: usize = 130;
/// Panels of a chart.
const PANELS_MAX: usize = 8;
/// The palest colour: this share and less.
const SHARE_MIN: f64 = 1e-4;
const SIZE: Size = Size { width: 1040, height: 340 };

/// How the latencies of each slice were distributed: a column a slice, a row a range of latency, the colour
/// the share of the slice's I/Os. It shows two humps or a stall, which means hide.
pub(crate) fn latency_map(runs: &[NamedRun]) -> Chart {
    let mut chart = Chart::new("Latencies over time", run::settings(runs));
    let mut maps: Vec<(String, Vec<Column>)> = Vec::new();
    let mut columns_each = 1;
    for (run, label) in runs.iter().zip(run::labels(runs)) {
        let (steps, each) = steps(&run.result, COLUMNS_MAX);
        columns_each = columns_each.max(each);
        let mut push = |kind: &str, latencies: fn(&Step) -> &Latencies| {
            let columns: Vec<Column> = steps.iter().map(|step| Column::new(step, latencies(step))).collect();
            if columns.iter().any(|column| !column.shares.is_empty()) {
                let title = if label.is_empty() { kind.to_owned() } else { format!("{label}: {kind}") };
                maps.push((capitalised(&title), columns));
            }
        };
        push("reads", |step| &step.read_latencies);
        push("writes", |step| &step.write_latencies);
    }
    if maps.is_empty() {
        chart.notes.push("The latencies of single slices are not known of what is shown.".into());
        return chart;
    }
    let left_out = truncate(&mut maps, PANELS_MAX);
    if left_out > 0 {
        chart.notes.push(format!("{left_out} more are not drawn."));
    }
    let slice_s = runs.first().map_or(1.0, |run| run.result.slice_ns as f64 / 1e9);
    chart.notes.push(format!(
        "A column is {}. Colour: share of its I/Os in that range of latency, log scale.",
        number::duration(slice_s * columns_each as f64)
    ));
    // One scale for all panels, so that they can be compared.
    let above = 10_f64.powf(1.0 / RANGES_A_DECADE);
    let lows = || {
        maps.iter().flat_map(|(_, columns)| columns).flat_map(|column| &column.shares).map(|(low, _)| *low)
    };
    let ends = [lows().fold(f64::INFINITY, f64::min), lows().fold(0.0, f64::max) * above];
    for (title, columns) in maps {
        chart.panels.push(Panel::new(title, SIZE, move |size| draw(&columns, ends, size)));
    }
    chart
}

/// One slice, or several.
struct Column {
    from_s: f64,
    to_s: f64,
    /// (lower end of a range in ns, share of the I/Os).
    shares: Vec<(f64, f64)>,
}

impl Column {
    fn new(step: &Step, latencies: &Latencies) -> Column {
        let total: f64 = latencies.0.iter().map(|(_, count)| *count as f64).sum();
        let shares = shares_by_range(latencies.0.iter().copied(), total, RANGES_A_DECADE).into_iter();
        let low = |range: i32| 10_f64.powf(f64::from(range) / RANGES_A_DECADE);
        let shares = shares.filter(|(_, share)| share.is_finite());
        let shares = shares.map(|(range, share)| (low(range), share)).collect();
        Column { from_s: step.from_s, to_s: step.to_s, shares }
    }
}

fn draw(columns: &[Column], ends: [f64; 2], size: Size) -> Drawing {
    Drawing::new(size, "distribution of latencies over time", |canvas| {
        let end_s = columns.last().map_or(1.0, |column| column.to_s);
        let (x, unit) = Axis::elapsed(end_s, size.width as usize / 90);
        let above = 10_f64.powf(1.0 / RANGES_A_DECADE);
        let mut plot = Plot::new(canvas, size, &Margins::OVER_TIME, x, Axis::latencies(ends.into_iter()));
        plot.axes(&format!("{unit} since the measured part began"), "latency, log scale");
        let scale = Scale::shares(SHARE_MIN, Ink::HeatTime);
        scale.key(plot.canvas, f64::from(size.width) - 8.0, number::tick_share);
        for column in columns {
            for (low, share) in &column.shares {
                let strength = scale.strength(*share);
                let x = (column.from_s, column.to_s);
                let opacity = (strength * 50.0).round() / 50.0;
                let value = format!("{} of the I/Os", number::share(*share));
                plot.cell(x, (*low, *low * above), scale.ink, opacity, value);
            }
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_shares_of_a_column_are_those_of_its_ios() {
        let latencies = Latencies(vec![(100_000, 70), (101_000, 20), (5_000_000, 10)]);
        let column = Column::new(&Step::default(), &latencies);
        assert_eq!(column.shares.len(), 2);
        assert!((column.shares[0].1 - 0.9).abs() < 1e-9 && (column.shares[1].1 - 0.1).abs() < 1e-9);
        assert!(column.shares[1].0 <= 5e6 && column.shares[1].0 > 3e6);
    }
}
