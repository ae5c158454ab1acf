//! A run over time as one line.

use super::style::{Ink, Style};
use crate::number;
use workload::{Limit, RunResult};

const BARS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];
/// Fewer slices add nothing to the totals.
const ROWS_MIN: usize = 3;
/// Columns of the name before the line.
const NAME_COLUMNS: usize = 11;

/// A line from 0 to the highest value: IOPS, or the mean latency where the rate was given.
pub(super) fn course(result: &RunResult, style: &Style) -> Vec<String> {
    let paced = result.workload.is_open_loop() || result.workload.limit != Limit::default();
    let mut from_ns = 0;
    let mut values = Vec::new();
    for slice in &result.series {
        let ns = slice.end_ns.saturating_sub(from_ns);
        from_ns = from_ns.max(slice.end_ns);
        // A short last slice has a noisy rate.
        if ns > result.slice_ns / 2 {
            let total = slice.total();
            let rate = total.count as f64 * 1e9 / ns as f64;
            values.push(if paced { total.mean_ns().unwrap_or(0.0) } else { rate });
        }
    }
    if values.len() < ROWS_MIN {
        return Vec::new();
    }
    let (name, write): (_, fn(f64) -> String) =
        if paced { ("latency", number::time) } else { ("IOPS", number::rate) };
    let low = values.iter().copied().fold(f64::INFINITY, f64::min);
    let high = values.iter().copied().fold(0.0, f64::max);
    let line = sparkline(&values, high, style.columns() - NAME_COLUMNS - 2);
    let longest = result.series.iter().map(|slice| slice.total().ns_max).max().unwrap_or(0);
    let longest = match longest {
        0 => String::new(),
        ns => format!(", longest I/O {}", number::time(ns as f64)),
    };
    let row = number::duration(result.slice_ns as f64 / 1e9);
    let range = format!("in rows of {row}: {} to {}{longest}", write(low), write(high));
    let mut lines = vec![format!("  {name:<NAME_COLUMNS$}{line}")];
    lines.extend(style.paragraph(Ink::Plain, &range, NAME_COLUMNS + 2, 2));
    lines
}

/// Bars of eight heights. Where there are more values than columns, neighbouring ones share a column.
fn sparkline(values: &[f64], high: f64, columns: usize) -> String {
    let columns = columns.min(values.len());
    let column = |at: usize| {
        let part = &values[at * values.len() / columns..(at + 1) * values.len() / columns];
        let share = part.iter().sum::<f64>() / part.len() as f64 / high;
        let height = if share.is_finite() { (share * BARS.len() as f64).ceil() as usize } else { 0 };
        BARS[height.clamp(1, BARS.len()) - 1]
    };
    (0..columns).map(column).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_begins_at_zero_and_keeps_to_its_columns() {
        assert_eq!(sparkline(&[0.0, 25.0, 50.0, 100.0], 100.0, 80), "▁▂▄█");
        assert_eq!(sparkline(&[99.0, 100.0], 100.0, 80), "██", "what is steady looks so");
        assert_eq!(sparkline(&[0.0; 400], 0.0, 60).chars().count(), 60);
    }
}
