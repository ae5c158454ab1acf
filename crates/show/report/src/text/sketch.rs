//! A curve in a few lines: N, a bar for the throughput, the latency.

use super::style::{Ink, Style};
use super::wrap::clip;
use crate::{Tone, number};
use capability::{Curve, KneeReason, Point};
use verdict::Place;

const BAR_COLUMNS: usize = 24;

/// At most `lines_max` points, including the first, the last and the one at the knee.
pub(super) fn interesting(curve: &Curve, lines_max: usize) -> Vec<&Point> {
    let last = curve.points.len().saturating_sub(1);
    if curve.points.len() <= lines_max || lines_max < 3 {
        return curve.points.iter().take(lines_max).collect();
    }
    let knee = curve.knee.as_ref().map_or(0, |knee| nearest(&curve.points, knee.outstanding).unwrap_or(0));
    let mut chosen: Vec<usize> = (0..lines_max - 1).map(|step| step * last / (lines_max - 2)).collect();
    chosen.push(knee);
    chosen.sort_unstable();
    chosen.dedup();
    chosen.iter().filter_map(|at| curve.points.get(*at)).collect()
}

/// The point whose N is nearest by ratio.
fn nearest(points: &[Point], outstanding: f64) -> Option<usize> {
    let distance = |point: &Point| (f64::from(point.outstanding.max(1)) / outstanding.max(0.1)).ln().abs();
    (0..points.len()).min_by(|a, b| distance(&points[*a]).total_cmp(&distance(&points[*b])))
}

/// A line for each point; the knee and the demand are marked at the nearest one.
pub(super) fn sketch(curve: &Curve, place: Option<&Place>, style: &Style, lines_max: usize) -> Vec<String> {
    let points = interesting(curve, lines_max);
    let highest = curve.iops_max().filter(|iops| iops.is_finite() && *iops > 0.0).unwrap_or(1.0);
    let shown: Vec<Point> = points.iter().map(|point| (*point).clone()).collect();
    let reached = curve.knee.as_ref().filter(|knee| knee.reason != KneeReason::NotReached);
    let knee = reached.and_then(|knee| nearest(&shown, knee.outstanding));
    let demand = place.and_then(|place| nearest(&shown, place.outstanding));
    let line = |(at, point): (usize, &&Point)| {
        let mut notes = String::new();
        if knee == Some(at) {
            notes.push_str("  knee");
        }
        if demand == Some(at)
            && let Some(place) = place
        {
            notes.push_str("  <- demand");
            if style.columns() >= 100 {
                let (n, latency) = (number::rate(place.outstanding), number::time(place.latency_ns));
                notes.push_str(&format!(": N {n}, {latency}"));
            }
        }
        let ink = if demand == Some(at) { Ink::Bold } else { Ink::Tone(Tone::Neutral) };
        let figures = format!(
            "  {:>5}  {}  {:>9} IOPS  {:>8}",
            point.outstanding,
            bar(point.iops / highest),
            number::rate(point.iops),
            number::time(point.latency_ns)
        );
        let notes = clip(&notes, style.columns().saturating_sub(figures.chars().count()));
        format!("{figures}{}", style.paint(ink, &notes))
    };
    points.iter().enumerate().map(line).collect()
}

/// A bar in eighths of a column.
pub(super) fn bar(share: f64) -> String {
    const EIGHTHS: [char; 8] = [' ', '▏', '▎', '▍', '▌', '▋', '▊', '▉'];
    let share = if share.is_finite() { share.clamp(0.0, 1.0) } else { 0.0 };
    let eighths = (share * BAR_COLUMNS as f64 * 8.0).round() as usize;
    let mut text = "█".repeat(eighths / 8);
    if eighths / 8 < BAR_COLUMNS {
        text.push(EIGHTHS[eighths % 8]);
        text.push_str(&" ".repeat(BAR_COLUMNS - eighths / 8 - 1));
    }
    text
}
