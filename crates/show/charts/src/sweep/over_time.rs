//! A sweep over time: IOPS, latency and outstanding I/Os under each other on one axis.

use super::DrawnSweep;
use crate::axis::Axis;
use crate::chart::Panel;
use crate::drawing::{Drawing, Size};
use crate::legend::{Key, Mark};
use crate::palette::Ink;
use crate::plot::{Margins, Plot, Stroke, Values};
use crate::runs::slices::steps;
use capability::SweepStep;

/// Points of one sweep, about.
const POINTS_MAX: usize = 400;
const WIDE: Size = Size { width: Size::WIDE.width, height: 560 };
const NARROW: Size = Size { width: Size::NARROW.width, height: 560 };

/// Pixels between two panels, for the title of the lower one.
const APART: f64 = 40.0;

/// One sweep's figures by seconds since it began; lines break between its steps.
struct SweepSeries {
    ink: Ink,
    iops: Values,
    latency_ns: Values,
    outstanding: Values,
    /// The kernel's mean of the queue, over each step.
    queue: Values,
    /// Single samples of the queue.
    samples: Vec<(f64, f64)>,
    end_s: f64,
}

pub(super) fn panel(drawn: &[DrawnSweep], mut legend: Vec<Key>) -> Panel {
    for later in drawn.iter().skip(1).filter(|later| !later.name.is_empty()) {
        legend.push((Mark::Dashed, later.ink, format!("N of {}", later.name)));
    }
    let queue = drawn.iter().flat_map(DrawnSweep::steps).any(|step| step.queue.is_some());
    if queue {
        let ink = if let [one] = drawn { one.ink } else { Ink::Muted };
        legend.push((Mark::Dotted, ink, "queue of the devices, the kernel's mean".into()));
        legend.push((Mark::Dot, ink, "one sample of it".into()));
    }
    let all: Vec<SweepSeries> = drawn.iter().map(SweepSeries::new).collect();
    Panel {
        title: "Over time".into(),
        note:
            "Each sweep from its own beginning, step by step. N is the time waited over the time that passed \
               (Little's law)."
                .into(),
        legend,
        lines_are_named: false,
        size: WIDE,
        narrow: NARROW,
        draw: Box::new(move |size| draw(&all, size)),
    }
}

impl SweepSeries {
    fn new(drawn: &DrawnSweep) -> SweepSeries {
        // An adaptive sweep goes back: in the order in which it ran, not by rising N.
        let mut taken: Vec<&SweepStep> = drawn.steps().iter().collect();
        taken.sort_by_key(|step| step.result.started_unix_ns);
        let began_unix_ns = taken.first().map_or(0, |step| step.result.started_unix_ns);
        let each = (POINTS_MAX / taken.len().max(1)).clamp(1, 40);
        let mut series = SweepSeries {
            ink: drawn.ink,
            iops: Vec::new(),
            latency_ns: Vec::new(),
            outstanding: Vec::new(),
            queue: Vec::new(),
            samples: Vec::new(),
            end_s: 0.0,
        };
        for SweepStep { result, queue, .. } in taken {
            let from_s = result.started_unix_ns.saturating_sub(began_unix_ns) as f64 / 1e9;
            let to_s = from_s + result.elapsed_s();
            // Slices shorter than a fifth of a second show the bursts of a limit, not its rate.
            let each = each.min((result.elapsed_s() * 5.0) as usize).max(1);
            for slice in steps(result, each).0 {
                let all = slice.read.plus(&slice.write);
                let seconds = slice.to_s - slice.from_s;
                if seconds <= 0.0 {
                    continue;
                }
                let at = from_s + f64::midpoint(slice.from_s, slice.to_s);
                series.iops.push((at, Some(all.count as f64 / seconds)));
                series.latency_ns.push((at, all.mean_ns()));
                series.outstanding.push((at, Some(all.stall_ns as f64 / 1e9 / seconds)));
            }
            for line in [&mut series.iops, &mut series.latency_ns, &mut series.outstanding] {
                line.push((to_s, None));
            }
            if let Some(queue) = queue {
                let weighted = Some(queue.weighted);
                series.queue.extend([(from_s, weighted), (to_s, weighted), (to_s, None)]);
                let every_s = queue.every_ns as f64 / 1e9;
                let samples = queue.samples.iter().enumerate();
                series.samples.extend(samples.map(|(at, n)| (from_s + (at + 1) as f64 * every_s, *n as f64)));
            }
            series.end_s = series.end_s.max(to_s);
        }
        series
    }
}

/// The samples of the queue, its mean and N on top. Equal steps give sweeps an equal N: each line is drawn over those before it
/// with gaps, and each dot smaller, so that all are seen.
fn draw_outstanding(all: &[SweepSeries], plot: &mut Plot) {
    for (at, series) in all.iter().enumerate() {
        let over = all.len() - 1 - at;
        plot.dots(&series.samples, series.ink, 1.4 + 1.2 * over as f64);
    }
    for series in all {
        plot.thin(&series.queue, series.ink, Stroke::Dotted);
    }
    for (at, series) in all.iter().enumerate() {
        match at {
            0 => plot.series(&series.outstanding, series.ink, false),
            _ => plot.thin(&series.outstanding, series.ink, Stroke::Dashed),
        }
    }
}

fn draw(all: &[SweepSeries], size: Size) -> Drawing {
    let known = |line: fn(&SweepSeries) -> &Values| {
        let lines = all.iter().flat_map(line);
        lines.filter_map(|(_, value)| *value).collect::<Vec<f64>>()
    };
    let end_s = all.iter().map(|series| series.end_s).fold(0.0, f64::max);
    let samples = all.iter().flat_map(|series| &series.samples).map(|(_, n)| *n);
    let outstanding = known(|series| &series.outstanding).into_iter().chain(samples);
    let outstanding: Vec<f64> = outstanding.chain(known(|series| &series.queue)).collect();
    let (height, around) = (f64::from(size.height), Margins::OVER_TIME);
    let room = (height - around.bottom - around.top - 2.0 * APART) / 3.0;
    let drawing = Drawing::new(size, "IOPS, latency and outstanding I/Os of a sweep over time", |canvas| {
        let axes = [
            Axis::from_zero(known(|series| &series.iops).into_iter(), 4),
            Axis::times_from_zero(known(|series| &series.latency_ns).into_iter(), 4),
            Axis::from_zero(outstanding.into_iter(), 4),
        ];
        for (row, y) in axes.into_iter().enumerate() {
            let (x, unit) = Axis::elapsed(end_s, size.width as usize / 90);
            let top = around.top + row as f64 * (room + APART);
            let bottom = height - top - room;
            let margins = Margins { top, right: 14.0, bottom, title_y: top - 17.0, ..around };
            let mut plot = Plot::new(canvas, size, &margins, x, y);
            plot.vertical_grid();
            match row {
                0 => plot.rows("IOPS"),
                1 => plot.rows("mean latency"),
                _ => plot.axes(&format!("{unit} since the sweep began"), "outstanding I/Os (N)"),
            }
            match row {
                0 => all.iter().for_each(|series| plot.series(&series.iops, series.ink, false)),
                1 => all.iter().for_each(|series| plot.series(&series.latency_ns, series.ink, false)),
                _ => draw_outstanding(all, &mut plot),
            }
        }
    });
    Drawing { panels: 3, ..drawing }
}
