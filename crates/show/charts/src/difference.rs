//! Differences of B from A with their intervals.

use crate::axis::Axis;
use crate::chart::Panel;
use crate::drawing::{Anchor, Drawing, Size, text_pixels};
use crate::legend::Mark;
use crate::palette::Ink;
use crate::plot::{Margins, Plot};

/// One figure of B against A, as shares of A: 0.1 is 10 % more.
pub struct Difference {
    /// Of what.
    pub name: String,
    /// The share.
    pub change: f64,
    /// The interval of the change, where it is known.
    pub interval: Option<(f64, f64)>,
    /// Whether that is better; `None` where it cannot be distinguished from no change.
    pub is_better: Option<bool>,
}

impl Difference {
    /// A shape for each, so that nothing depends on colour.
    fn mark(is_better: Option<bool>) -> (Mark, Ink) {
        match is_better {
            Some(true) => (Mark::Dot, Ink::Better),
            Some(false) => (Mark::Square, Ink::Worse),
            None => (Mark::Ring, Ink::Muted),
        }
    }
}

/// Differences that are drawn; a table has all.
const ROWS_MAX: usize = 20;

/// The differences with their intervals, around no difference.
pub fn difference(rows: Vec<Difference>, title: &str, note: &str) -> Panel {
    let height = 76 + 26 * rows.len().min(ROWS_MAX) as u32;
    Panel {
        title: title.into(),
        note: note.into(),
        legend: [(Some(true), "better"), (Some(false), "worse"), (None, "cannot be distinguished from none")]
            .map(|(is_better, name)| {
                let (mark, ink) = Difference::mark(is_better);
                (mark, ink, name.to_owned())
            })
            .to_vec(),
        lines_are_named: false,
        size: Size { width: 1040, height: height.max(200) },
        narrow: Size { width: 372, height: height.clamp(230, 372) },
        draw: Box::new(move |size| draw(&rows, size)),
    }
}

fn draw(rows: &[Difference], size: Size) -> Drawing {
    Drawing::new(size, "differences with their intervals", |canvas| {
        let rows = &rows[..rows.len().min(ROWS_MAX)];
        let ends = rows.iter().flat_map(|row| {
            let (low, high) = row.interval.unwrap_or((row.change, row.change));
            [row.change, low, high]
        });
        let widest = rows.iter().map(|row| text_pixels(&row.name) * 1.15).fold(0.0, f64::max);
        let left = (widest + 20.0).min(f64::from(size.width) * 0.42);
        let x = Axis::differences(ends, size.width as usize / 110);
        // Row k lies at k + 0.5; the y axis has no ticks of its own.
        let count = rows.len().max(1) as f64;
        let y = Axis::plain(0.0, count);
        let mut plot = Plot::new(canvas, size, &Margins { left, ..Margins::LONG_TICKS }, x, y);
        plot.vertical_grid();
        plot.axes("difference of B from A", "");
        if let (Some(low), Some(high)) = (plot.pixel(0.0, 0.0), plot.pixel(0.0, count)) {
            plot.canvas.line(&[low, high], Ink::Axis, 1.5);
        }
        for (at, row) in rows.iter().enumerate() {
            let middle = count - at as f64 - 0.5;
            let Some(dot) = plot.pixel(row.change, middle) else { continue };
            let name = cut(&row.name, left - 16.0);
            plot.canvas.text((left - 10.0, dot.1), &name, Anchor::End, Ink::Text, false);
            let (mark, ink) = Difference::mark(row.is_better);
            if let Some((low, high)) = row.interval
                && let (Some(from), Some(to)) = (plot.pixel(low, middle), plot.pixel(high, middle))
            {
                plot.canvas.line(&[from, to], ink, 2.0);
                for end in [from, to] {
                    plot.canvas.line(&[(end.0, end.1 - 4.0), (end.0, end.1 + 4.0)], ink, 2.0);
                }
            }
            match mark {
                Mark::Square => plot.canvas.square(dot, 4.5, ink),
                Mark::Ring => plot.canvas.ring(dot, 4.0, ink, 2.0),
                _ => plot.canvas.dot(dot, 4.5, ink),
            }
        }
        if rows.is_empty() {
            plot.nothing("nothing is compared");
        }
    })
}

/// The beginning of a name, as much as fits.
fn cut(name: &str, room: f64) -> String {
    let most = (room / (text_pixels("n") * 1.15)) as usize;
    if name.chars().count() > most {
        name.chars().take(most.saturating_sub(1)).chain(['…']).collect()
    } else {
        name.to_owned()
    }
}
