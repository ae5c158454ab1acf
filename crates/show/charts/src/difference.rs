use super::axis::Axis;
use super::canvas::{Anchor, Ink, svg, text_pixels};
use super::plot::{Margins, Plot};
use super::{Panel, Size};

/// One figure of B against A, as shares of A: 0.1 is 10 % more.
pub(crate) struct Difference {
    pub(crate) name: String,
    pub(crate) change: f64,
    /// Where the change lies by the interval; `None`: not known.
    pub(crate) interval: Option<(f64, f64)>,
    /// Good or bad news; [`Ink::Muted`] where neither can be said.
    pub(crate) ink: Ink,
}

/// Differences that are drawn; a table has all.
pub(crate) const ROWS_MAX: usize = 20;

/// The differences with their intervals around no difference.
pub(crate) fn difference(rows: Vec<Difference>, title: &str, note: &str) -> Panel {
    let height = 76 + 26 * rows.len().min(ROWS_MAX) as u32;
    Panel {
        title: title.into(),
        note: note.into(),
        legend: vec![
            (super::Mark::Dot, Ink::Better, "better".into()),
            (super::Mark::Dot, Ink::Worse, "worse".into()),
            (super::Mark::Dot, Ink::Muted, "cannot be told apart from none".into()),
        ],
        size: Size { width: 1040, height: height.max(200) },
        narrow: Size { width: 372, height: height.clamp(230, 372) },
        draw: Box::new(move |size| draw(&rows, size)),
    }
}

fn draw(rows: &[Difference], size: Size) -> String {
    svg(size, "differences with their intervals", |canvas| {
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
        let mut plot = Plot::new(canvas, size, &Margins { left, top: 26.0, right: 24.0 }, x, y);
        plot.vertical_grid();
        plot.axes("difference of B from A", "");
        if let (Some(low), Some(high)) = (plot.pixel(0.0, 0.0), plot.pixel(0.0, count)) {
            plot.canvas.line(&[low, high], Ink::Axis, 1.5);
        }
        for (at, row) in rows.iter().enumerate() {
            let middle = count - at as f64 - 0.5;
            let Some(dot) = plot.pixel(row.change, middle) else { continue };
            let most = ((left - 16.0) / (text_pixels("n") * 1.15)) as usize;
            let name: String = if row.name.chars().count() > most {
                row.name.chars().take(most.saturating_sub(1)).chain(['…']).collect()
            } else {
                row.name.clone()
            };
            plot.canvas.text((left - 10.0, dot.1), &name, Anchor::End, Ink::Text, false);
            if let Some((low, high)) = row.interval
                && let (Some(from), Some(to)) = (plot.pixel(low, middle), plot.pixel(high, middle))
            {
                plot.canvas.line(&[from, to], row.ink, 2.0);
                for end in [from, to] {
                    plot.canvas.line(&[(end.0, end.1 - 4.0), (end.0, end.1 + 4.0)], row.ink, 2.0);
                }
            }
            plot.canvas.dot(dot, 4.5, row.ink);
        }
        if rows.is_empty() {
            plot.nothing("nothing is compared");
        }
    })
}
