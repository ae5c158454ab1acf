//! A trace: where the I/Os of each file were, and how long they took, over time.

mod picture;

pub use picture::TracePicture;

use crate::axis::Axis;
use crate::chart::{Chart, Panel};
use crate::drawing::{Canvas, Drawing, Size};
use crate::legend::{Key, Mark};
use crate::number;
use crate::palette::Ink;
use crate::plot::{Margins, Plot};
use filestats::TracedOp;
use picture::{FileOffsets, Grid, Point, RANGES_A_DECADE};
use std::rc::Rc;

const SIZE: Size = Size { width: 1040, height: 340 };
/// The palest cell, which one I/O has.
const OPACITY_MIN: f64 = 0.25;

/// A chart's facts of its trace.
#[derive(Clone, Copy, Debug)]
pub struct TraceLabels<'a> {
    /// The processes and files whose I/Os these are: "pid 812, *.db".
    pub subject: &'a str,
    /// Files with I/Os.
    pub files: usize,
    /// I/Os that found the buffer full.
    pub lost: u64,
}

/// The drawn contents: each I/O, or the number of I/Os in each cell.
enum Drawn {
    Points(Vec<(f64, f64, TracedOp)>),
    Cells(Vec<Cell>),
}

struct Cell {
    x: (f64, f64),
    y: (f64, f64),
    op: TracedOp,
    /// Number of I/Os of each kind.
    counts: [u32; 4],
    /// 0 to 1.
    strength: f64,
}

impl Cell {
    /// "12 reads, 1 sync".
    fn words(&self) -> String {
        let kinds = TracedOp::ALL.into_iter().map(|op| (op, self.counts[op as usize]));
        let words = kinds.filter(|(_, count)| *count > 0).map(|(op, count)| {
            let plural = if count == 1 { "" } else { "s" };
            format!("{} {}{plural}", number::count(count.into()), op.word())
        });
        words.collect::<Vec<_>>().join(", ")
    }
}

/// Where the I/Os of each file were, and how long they took, over time. A dot an I/O; too many are drawn as cells, whose
/// colour is of the kind that most of them were, the stronger the more.
pub fn trace(picture: &TracePicture, labels: &TraceLabels) -> Chart {
    let scatter = picture.points.len() <= TracePicture::POINTS_MAX;
    let settings = vec![
        ("of".to_owned(), labels.subject.to_owned()),
        ("ios".to_owned(), picture.ios.to_string()),
        ("lost".to_owned(), labels.lost.to_string()),
    ];
    let mut chart = Chart::new("Trace", settings);
    if picture.ios == 0 {
        chart.notes.push("No I/O was seen.".into());
        return chart;
    }
    let ios = number::count(picture.ios);
    chart.notes.push(match scatter {
        true => format!("{ios} I/Os, a dot each, where they began."),
        false => format!(
            "{ios} I/Os. A cell has the colour of the kind that most of its I/Os are, stronger the more there are, log scale."
        ),
    });
    if labels.lost > 0 {
        chart.notes.push(format!(
            "{} more were lost, because the buffer was full, and are not drawn.",
            number::count(labels.lost)
        ));
    }
    let (end_s, first_ns) = (picture.elapsed_ns() as f64 / 1e9, picture.first_ns());
    let shown = match scatter {
        true => Drawn::points(picture.points.iter(), first_ns, |point| Some(point.latency_ns.max(1) as f64)),
        false => Drawn::cells(&picture.latencies, first_ns, |row| 10_f64.powf(row as f64 / RANGES_A_DECADE)),
    };
    chart.panels.push(panel("Latency, all files".into(), Vertical::Latency, shown, end_s));
    for at in picture.busiest() {
        let FileOffsets { path, grid: Some(grid), .. } = &picture.files[at] else { continue };
        let in_file = picture.points.iter().filter(|point| point.file == at);
        let shown = match scatter {
            true => Drawn::points(in_file, first_ns, |point| point.offset_bytes.map(|offset| offset as f64)),
            false => Drawn::cells(grid, first_ns, |row| row as f64 * grid.row as f64),
        };
        if !shown.is_empty() {
            chart.panels.push(panel(format!("Offset in {path}"), Vertical::Offset, shown, end_s));
        }
    }
    let left_out = labels.files.saturating_sub(TracePicture::FILES_MAX);
    if left_out > 0 {
        chart.notes.push(format!(
            "Places are drawn in the files with the most I/Os, not in {left_out} more; the latencies are those of all."
        ));
    }
    chart
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Vertical {
    Offset,
    Latency,
}

impl Drawn {
    fn points<'a>(
        points: impl Iterator<Item = &'a Point>,
        first_ns: u64,
        y: impl Fn(&Point) -> Option<f64>,
    ) -> Drawn {
        let point = |point: &Point| Some(((point.at_ns - first_ns) as f64 / 1e9, y(point)?, point.op));
        Drawn::Points(points.filter_map(point).collect())
    }

    fn cells(grid: &Grid, first_ns: u64, y: impl Fn(u64) -> f64) -> Drawn {
        let most = grid.filled().map(|(_, _, counts)| sum(counts)).fold(1.0, f64::max);
        let cell = |(column, row, counts): (u64, u64, &[u32; 4])| {
            let op =
                TracedOp::ALL.into_iter().max_by_key(|op| counts[*op as usize]).unwrap_or(TracedOp::Read);
            let share = if most > 1.0 { sum(counts).ln() / most.ln() } else { 1.0 };
            let x = |column: u64| (column * grid.cell_ns).saturating_sub(first_ns) as f64 / 1e9;
            // In steps: fewer different colours.
            let strength = (share * 20.0).round() / 20.0;
            Cell { x: (x(column), x(column + 1)), y: (y(row), y(row + 1)), op, counts: *counts, strength }
        };
        Drawn::Cells(grid.filled().map(cell).collect())
    }

    fn is_empty(&self) -> bool {
        match self {
            Drawn::Points(points) => points.is_empty(),
            Drawn::Cells(cells) => cells.is_empty(),
        }
    }

    fn ops(&self) -> Vec<TracedOp> {
        let has = |op: &TracedOp| match self {
            Drawn::Points(points) => points.iter().any(|point| point.2 == *op),
            Drawn::Cells(cells) => cells.iter().any(|cell| cell.op == *op),
        };
        TracedOp::ALL.into_iter().filter(has).collect()
    }

    fn heights(&self) -> Vec<f64> {
        match self {
            Drawn::Points(points) => points.iter().map(|point| point.1).collect(),
            Drawn::Cells(cells) => cells.iter().flat_map(|cell| [cell.y.0, cell.y.1]).collect(),
        }
    }
}

fn sum(counts: &[u32; 4]) -> f64 {
    counts.iter().map(|count| f64::from(*count)).sum()
}

fn ink(op: TracedOp) -> Ink {
    Ink::series(op as usize)
}

fn panel(title: String, vertical: Vertical, shown: Drawn, end_s: f64) -> Panel {
    let mark = if matches!(shown, Drawn::Points(_)) { Mark::Dot } else { Mark::Area };
    let key = |op: TracedOp| -> Key { (mark, ink(op), format!("{}s", op.word())) };
    let legend = shown.ops().into_iter().map(key).collect();
    let shown = Rc::new(shown);
    let description = format!("{title} over time");
    let draw = move |size: Size| {
        Drawing::new(size, &description, |canvas| draw(canvas, &shown, vertical, end_s, size))
    };
    Panel { legend, ..Panel::new(title, SIZE, draw) }
}

/// The unit in which the largest offset is a number below 1024.
fn unit(most: f64) -> (f64, &'static str) {
    const UNITS: [(f64, &str); 4] =
        [(1024.0, "KiB"), (1_048_576.0, "MiB"), (1_073_741_824.0, "GiB"), (1_099_511_627_776.0, "TiB")];
    let fits = |(bytes, _): &&(f64, &str)| most < 1024.0 * bytes;
    UNITS.iter().find(fits).copied().unwrap_or(UNITS[3])
}

fn draw(canvas: &mut Canvas, shown: &Drawn, vertical: Vertical, end_s: f64, size: Size) {
    let heights = shown.heights();
    let (scale, name) = match vertical {
        Vertical::Offset => unit(heights.iter().copied().fold(0.0, f64::max)),
        Vertical::Latency => (1.0, ""),
    };
    let (x, time) = Axis::elapsed(end_s, size.width as usize / 90);
    let (y, title) = match vertical {
        Vertical::Offset => {
            (Axis::from_zero(heights.iter().map(|value| value / scale), 5), format!("offset, {name}"))
        }
        Vertical::Latency => (Axis::latencies(heights.iter().copied()), "latency, log scale".to_owned()),
    };
    let mut plot = Plot::new(canvas, size, &Margins::OVER_TIME, x, y);
    plot.axes(&format!("{time} since its first I/O"), &title);
    match shown {
        Drawn::Points(points) => {
            for op in TracedOp::ALL {
                let of_op = points.iter().filter(|point| point.2 == op);
                let values: Vec<(f64, f64)> = of_op.map(|point| (point.0, point.1 / scale)).collect();
                plot.dots(&values, ink(op), 2.0);
                values.into_iter().for_each(|at| plot.read_point(at, op.word().to_owned()));
            }
        }
        Drawn::Cells(cells) => {
            for cell in cells {
                let opacity = OPACITY_MIN + (1.0 - OPACITY_MIN) * cell.strength;
                plot.cell(cell.x, (cell.y.0 / scale, cell.y.1 / scale), ink(cell.op), opacity, cell.words());
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::picture::tests::picture;
    use super::*;
    use crate::file::svg_file;
    use crate::palette::Theme;

    const LABELS: TraceLabels = TraceLabels { subject: "pid 812", files: 1, lost: 0 };

    #[test]
    fn few_ios_are_dots_and_many_are_cells_of_bounded_number() {
        let dots = svg_file(&trace(&picture(100), &LABELS), Theme::Light);
        assert_eq!(
            dots.matches("<circle").count(),
            200 + 4,
            "in each of both panels, with two in its legend"
        );
        let many = svg_file(&trace(&picture(200_000), &LABELS), Theme::Light);
        assert!(!many.contains("<circle") && many.matches("<rect").count() < 70_000);
        assert!(many.contains("200,000 I/Os. A cell has"));
    }

    #[test]
    fn a_trace_without_ios_has_an_empty_chart() {
        let chart = trace(&TracePicture::default(), &LABELS);
        assert!(chart.is_empty() && chart.notes == ["No I/O was seen."]);
    }

    #[test]
    fn offsets_have_a_unit_in_which_they_are_short() {
        assert_eq!(unit(8192.0).1, "KiB");
        assert_eq!(unit(4e6).1, "MiB", "not 4k KiB");
        assert_eq!(unit(1e9).1, "MiB");
        assert_eq!(unit(1e12).1, "GiB");
        assert_eq!(unit(1e30).1, "TiB");
    }
}
