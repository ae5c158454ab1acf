//! A sweep over time, as the study drew it: IOPS, latency and outstanding I/Os under each other on one axis.

use super::axis::Axis;
use super::canvas::{Ink, svg};
use super::plot::{BELOW, Margins, OVER_TIME, Plot, Thin};
use super::run_course::steps;
use super::sweep::Drawn;
use super::{Key, Mark, Panel, Size};
use capability::{Sweep, SweepStep};

/// Points of one sweep, about.
const POINTS_MAX: usize = 400;
const WIDE: Size = Size { width: Size::WIDE.width, height: 560 };
const NARROW: Size = Size { width: Size::NARROW.width, height: 560 };

/// Pixels between two panels, for the title of the lower one.
const APART: f64 = 40.0;

/// Values over seconds since a sweep began; a line breaks between its steps.
type Line = Vec<(f64, Option<f64>)>;

/// One sweep's three lines, and what a monitor saw.
struct Course {
    ink: Ink,
    iops: Line,
    latency_ns: Line,
    outstanding: Line,
    /// The kernel's mean of the queue, over each step.
    queue: Line,
    /// Single looks at it.
    looks: Vec<(f64, f64)>,
    end_s: f64,
}

pub(super) fn panel(drawn: &[Drawn], mut legend: Vec<Key>) -> Panel {
    let queue = drawn.iter().flat_map(|one| &one.sweep.steps).any(|step| step.queue.is_some());
    if queue {
        let ink = if let [one] = drawn { one.ink } else { Ink::Muted };
        legend.push((Mark::Dashed, ink, "queue of the devices, the kernel's mean".into()));
        legend.push((Mark::Dot, ink, "one look at it".into()));
    }
    let courses: Vec<Course> = drawn.iter().map(Course::of).collect();
    Panel {
        title: "The course".into(),
        note:
            "Each sweep from its own beginning, step by step. N is the time waited over the time that passed \
               (Little's law)."
                .into(),
        legend,
        size: WIDE,
        narrow: NARROW,
        draw: Box::new(move |size| draw(&courses, size)),
    }
}

impl Course {
    fn of(drawn: &Drawn) -> Course {
        let Sweep { steps: taken, .. } = &drawn.sweep;
        // An adaptive sweep goes back: as it ran, not by rising N.
        let mut taken: Vec<&SweepStep> = taken.iter().collect();
        taken.sort_by_key(|step| step.result.started_unix_ns);
        let began = taken.first().map_or(0, |step| step.result.started_unix_ns);
        let each = (POINTS_MAX / taken.len().max(1)).clamp(1, 40);
        let mut course = Course {
            ink: drawn.ink,
            iops: Vec::new(),
            latency_ns: Vec::new(),
            outstanding: Vec::new(),
            queue: Vec::new(),
            looks: Vec::new(),
            end_s: 0.0,
        };
        for SweepStep { result, queue, .. } in taken {
            let from_s = result.started_unix_ns.saturating_sub(began) as f64 / 1e9;
            let to_s = from_s + result.elapsed_s();
            // Shorter stretches than a fifth of a second show the bursts of a limit, not what it gives.
            let each = each.min((result.elapsed_s() * 5.0) as usize).max(1);
            for slice in steps(result, each).0 {
                let all = slice.read.plus(&slice.write);
                let seconds = slice.to_s - slice.from_s;
                if seconds <= 0.0 {
                    continue;
                }
                let at = from_s + f64::midpoint(slice.from_s, slice.to_s);
                course.iops.push((at, Some(all.count as f64 / seconds)));
                course.latency_ns.push((at, all.mean_ns()));
                course.outstanding.push((at, Some(all.stall_ns as f64 / 1e9 / seconds)));
            }
            for line in [&mut course.iops, &mut course.latency_ns, &mut course.outstanding] {
                line.push((to_s, None));
            }
            if let Some(queue) = queue {
                let weighted = Some(queue.weighted);
                course.queue.extend([(from_s, weighted), (to_s, weighted), (to_s, None)]);
                let every_s = queue.every_ns as f64 / 1e9;
                let looks = queue.samples.iter().enumerate();
                course.looks.extend(looks.map(|(at, n)| (from_s + (at + 1) as f64 * every_s, *n as f64)));
            }
            course.end_s = course.end_s.max(to_s);
        }
        course
    }
}

fn draw(courses: &[Course], size: Size) -> String {
    let known = |of: fn(&Course) -> &Line| {
        let lines = courses.iter().flat_map(of);
        lines.filter_map(|(_, value)| *value).collect::<Vec<f64>>()
    };
    let end_s = courses.iter().map(|course| course.end_s).fold(0.0, f64::max);
    let looks = courses.iter().flat_map(|course| &course.looks).map(|(_, n)| *n);
    let outstanding = known(|course| &course.outstanding).into_iter().chain(looks);
    let outstanding: Vec<f64> = outstanding.chain(known(|course| &course.queue)).collect();
    let room = (f64::from(size.height) - BELOW - OVER_TIME.top - 2.0 * APART) / 3.0;
    let drawing = svg(size, "IOPS, latency and outstanding I/Os of a sweep over time", |canvas| {
        let axes = [
            Axis::from_zero(known(|course| &course.iops).into_iter(), 4),
            Axis::times_from_zero(known(|course| &course.latency_ns).into_iter(), 4),
            Axis::from_zero(outstanding.into_iter(), 4),
        ];
        for (row, y) in axes.into_iter().enumerate() {
            let (x, unit) = Axis::elapsed(end_s, size.width as usize / 90);
            let top = OVER_TIME.top + row as f64 * (room + APART);
            let margins = Margins { top, right: 14.0, ..OVER_TIME };
            let mut plot = Plot::between(canvas, size, &margins, top + room, x, y);
            plot.vertical_grid();
            match row {
                0 => plot.rows("IOPS"),
                1 => plot.rows("mean latency"),
                _ => plot.axes(&format!("{unit} since the sweep began"), "outstanding I/Os (N)"),
            }
            for course in courses {
                match row {
                    0 => plot.series(&course.iops, course.ink, false),
                    1 => plot.series(&course.latency_ns, course.ink, false),
                    _ => {
                        plot.series(&course.outstanding, course.ink, false);
                        plot.thin(&course.queue, course.ink, Thin::Dashed);
                        plot.dots(&course.looks, course.ink);
                    }
                }
            }
        }
    });
    // It may be taller than wide: each of them is not.
    drawing.replacen("<svg ", "<svg data-panels=\"3\" ", 1)
}
