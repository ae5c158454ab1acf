//! A grid of cells: a figure over two factors, as colours and numbers.

use crate::drawing::{Anchor, Canvas, CellReading, Size, text_pixels};
use crate::number;
use crate::palette::Ink;

/// A grid of cells.
pub(crate) struct Cells {
    pub(crate) x_title: String,
    pub(crate) y_title: String,
    /// Name of the figure, with its unit.
    pub(crate) value_title: String,
    /// From left to right.
    pub(crate) columns: Vec<String>,
    /// From bottom to top.
    pub(crate) rows: Vec<String>,
    /// Row by row; `None` where nothing was run.
    pub(crate) values: Vec<Option<f64>>,
    pub(crate) scale: Scale,
}

/// From a figure to the strength of a colour.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Scale {
    pub(crate) ink: Ink,
    /// The colour below it.
    ground: Ink,
    low: f64,
    high: f64,
    logarithmic: bool,
    /// Strength of the lowest value.
    strength_min: f64,
}

/// Figures further apart than this need a logarithmic scale for the smaller ones to differ.
const LOG_FROM: f64 = 10.0;
/// One I/O in a hundred thousand is still visible.
const SHARE_STRENGTH_MIN: f64 = 0.15;
/// The approximate height of a text.
const LINE: f64 = 15.0;
/// Labels of rows take at most this share of the width.
const LABELS_MAX: f64 = 0.28;

impl Scale {
    /// Over all these values: linear from 0, or logarithmic where they lie far apart.
    pub(crate) fn over(values: impl Iterator<Item = f64>, ink: Ink) -> Scale {
        let positive = values.filter(|value| value.is_finite() && *value > 0.0);
        let (low, high) =
            positive.fold((f64::INFINITY, 0.0_f64), |(low, high), value| (low.min(value), high.max(value)));
        let (low, high) = if low.is_finite() { (low, high) } else { (1.0, 1.0) };
        let logarithmic = high / low >= LOG_FROM;
        let low = if logarithmic { low } else { 0.0 };
        Scale { ink, ground: Ink::HeatLow, low, high, logarithmic, strength_min: 0.0 }
    }

    /// Logarithmic from a lowest share, which is still visible on the page, to 1.
    pub(crate) fn shares(low: f64, ink: Ink) -> Scale {
        Scale {
            ink,
            ground: Ink::Surface,
            low,
            high: 1.0,
            logarithmic: true,
            strength_min: SHARE_STRENGTH_MIN,
        }
    }

    /// How strong the colour is, 0 to 1.
    pub(crate) fn strength(&self, value: f64) -> f64 {
        let share = if self.logarithmic {
            (value / self.low).ln() / (self.high / self.low).ln()
        } else {
            (value - self.low) / (self.high - self.low)
        };
        let share = if share.is_finite() { share.clamp(0.0, 1.0) } else { 0.0 };
        self.strength_min + (1.0 - self.strength_min) * share
    }

    /// "log scale" or "linear from 0".
    pub(crate) fn description(&self) -> &'static str {
        if self.logarithmic { "log scale" } else { "linear from 0" }
    }

    /// The colours with the values at both ends, at the upper right.
    pub(crate) fn key(&self, canvas: &mut Canvas, right: f64, write: impl Fn(f64) -> String) {
        const STEPS: usize = 8;
        const STEP: f64 = 9.0;
        let (low, high) = (write(self.low), write(self.high));
        let bar_end = right - text_pixels(&high) * 1.15 - 6.0;
        let bar = bar_end - STEPS as f64 * STEP;
        for step in 0..STEPS {
            let (from, to) = (bar + step as f64 * STEP, bar + (step + 1) as f64 * STEP);
            let share = step as f64 / (STEPS - 1) as f64;
            let strength = self.strength_min + (1.0 - self.strength_min) * share;
            canvas.rect((from, 3.0), (to, 14.0), self.ground, 1.0);
            canvas.rect((from, 3.0), (to, 14.0), self.ink, strength);
        }
        canvas.text((bar_end + 5.0, 9.0), &high, Anchor::Start, Ink::Muted, false);
        canvas.text((bar - 5.0, 9.0), &low, Anchor::End, Ink::Muted, false);
    }
}

/// Where the grid stands on its canvas.
struct Grid {
    left: f64,
    right: f64,
    bottom: f64,
    /// Pixels of a cell.
    across: f64,
    down: f64,
}

impl Cells {
    /// Draws the grid. `write` gives the figure in ever shorter forms; `key` writes the ends of the scale.
    pub(crate) fn draw(
        &self,
        canvas: &mut Canvas,
        size: Size,
        key: impl Fn(f64) -> String,
        write: impl Fn(f64) -> Vec<String>,
    ) {
        let (width, height) = (f64::from(size.width), f64::from(size.height));
        let room = width * LABELS_MAX;
        let labels: Vec<String> = self.rows.iter().map(|row| cut(row, room)).collect();
        let left = labels.iter().map(|label| text_pixels(label) * 1.15).fold(18.0, f64::max) + 14.0;
        let (top, right, bottom) = (26.0, width - 8.0, height - 42.0);
        let across = (right - left) / self.columns.len().max(1) as f64;
        let down = (bottom - top) / self.rows.len().max(1) as f64;
        let grid = Grid { left, right, bottom, across, down };
        canvas.text((4.0, 9.0), &self.y_title, Anchor::Start, Ink::Text, true);
        self.scale.key(canvas, right, key);
        grid.row_labels(canvas, &labels);
        self.column_labels(canvas, &grid, width);
        self.cells(canvas, &grid, write);
    }

    fn column_labels(&self, canvas: &mut Canvas, grid: &Grid, width: f64) {
        let mut free_from = f64::NEG_INFINITY;
        for (at, column) in self.columns.iter().enumerate() {
            let middle = grid.left + (at as f64 + 0.5) * grid.across;
            let column = cut(column, (grid.across * 1.6).max(40.0));
            let half = text_pixels(&column) * 1.15 / 2.0;
            if middle - half >= free_from && middle + half <= width {
                canvas.text((middle, grid.bottom + 14.0), &column, Anchor::Middle, Ink::Muted, false);
                free_from = middle + half + 4.0;
            }
        }
        let middle = f64::midpoint(grid.left, grid.right);
        canvas.text((middle, grid.bottom + 33.0), &self.x_title, Anchor::Middle, Ink::Muted, false);
    }

    fn cells(&self, canvas: &mut Canvas, grid: &Grid, write: impl Fn(f64) -> Vec<String>) {
        let Grid { left, bottom, across, down, .. } = *grid;
        // All cells have the same form: the longest that fits in each.
        let written: Vec<Vec<String>> =
            self.values.iter().map(|value| value.map_or(Vec::new(), &write)).collect();
        let fits = |text: &String| text_pixels(text) * 1.15 + 4.0 <= across && LINE <= down;
        let forms = written.iter().map(Vec::len).max().unwrap_or(0);
        let form = (0..forms).find(|form| written.iter().filter_map(|forms| forms.get(*form)).all(fits));
        let gap = (across.min(down) * 0.06).min(2.0);
        for (at, value) in self.values.iter().enumerate() {
            let (row, column) = (at / self.columns.len().max(1), at % self.columns.len().max(1));
            let from = (left + column as f64 * across + gap, bottom - (row + 1) as f64 * down + gap);
            let to = (from.0 + across - gap, from.1 + down - gap);
            let Some(value) = value.filter(|value| value.is_finite()) else {
                canvas.hatch(from, to, Ink::Axis);
                continue;
            };
            canvas.rect(from, to, self.scale.ground, 1.0);
            canvas.rect(from, to, self.scale.ink, self.scale.strength(value));
            let words = [
                format!("{}: {}", self.x_title, self.columns[column]),
                format!("{}: {}", self.y_title, self.rows[row]),
                format!("{}: {}", self.value_title, written[at].first().map_or("", String::as_str)),
            ];
            canvas.cells.push(CellReading { from, to, words });
            if let Some(text) = form.and_then(|form| written[at].get(form)) {
                let middle = (f64::midpoint(from.0, to.0), f64::midpoint(from.1, to.1));
                canvas.text(middle, text, Anchor::Middle, Ink::OnHeat, false);
            }
        }
    }
}

impl Grid {
    fn row_labels(&self, canvas: &mut Canvas, labels: &[String]) {
        let mut free_below = f64::INFINITY;
        for (at, label) in labels.iter().enumerate() {
            let middle = self.bottom - (at as f64 + 0.5) * self.down;
            if middle + LINE / 2.0 <= free_below {
                canvas.text((self.left - 8.0, middle), label, Anchor::End, Ink::Muted, false);
                free_below = middle - LINE / 2.0;
            }
        }
    }
}

/// A text cut to fit at its beginning: the end of a path identifies it.
fn cut(text: &str, room: f64) -> String {
    let most = (room / (text_pixels("n") * 1.15)).max(4.0) as usize;
    let count = text.chars().count();
    if count <= most {
        return text.to_owned();
    }
    std::iter::once('…').chain(text.chars().skip(count - most + 1)).collect()
}

/// A rate in ever shorter forms.
pub(crate) fn rate_forms(value: f64) -> Vec<String> {
    let digits = |scaled: f64, unit: &str| {
        let short = if scaled >= 9.95 { format!("{scaled:.0}") } else { format!("{scaled:.1}") };
        format!("{}{unit}", short.trim_end_matches(".0"))
    };
    let short = match value.abs() {
        v if v >= 1e9 => digits(value / 1e9, "G"),
        v if v >= 999_500.0 => digits(value / 1e6, "M"),
        v if v >= 999.5 => digits(value / 1e3, "k"),
        v if v >= 99.5 => format!("{value:.0}"),
        v if v >= 1.0 => digits(value, ""),
        _ => number::rate(value),
    };
    vec![number::rate(value), short]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_short_rate_keeps_its_magnitude() {
        assert_eq!(rate_forms(12_696.0), ["12,696", "13k"]);
        assert_eq!(rate_forms(1_250.0)[1], "1.2k");
        assert_eq!(rate_forms(1_000_000.0)[1], "1M");
        assert_eq!(rate_forms(0.5)[1], "0.500");
    }

    #[test]
    fn values_far_apart_need_a_logarithmic_scale() {
        let near = Scale::over([50.0, 100.0].into_iter(), Ink::HeatRate);
        assert_eq!((near.strength(0.0), near.strength(50.0), near.strength(100.0)), (0.0, 0.5, 1.0));
        assert_eq!(near.description(), "linear from 0");
        let far = Scale::over([1.0, 10_000.0].into_iter(), Ink::HeatRate);
        assert_eq!((far.strength(100.0), far.description()), (0.5, "log scale"));
        let nothing = Scale::over([f64::NAN, -1.0].into_iter(), Ink::HeatRate);
        assert!(nothing.strength(f64::NAN) == 0.0);
    }

    #[test]
    fn a_long_path_keeps_its_end() {
        assert_eq!(cut("/mnt/very/long/path/to/data", 80.0), "…h/to/data");
        assert_eq!(cut("8 KiB", 80.0), "8 KiB");
    }
}
