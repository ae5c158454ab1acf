use super::axis::Axis;
use super::canvas::{Ink, svg};
use super::plot::{Margins, OVER_TIME, Plot};
use super::{Course, Size};
use crate::Check;

/// I/Os a second over time, as the database counts them and as the device does.
pub(crate) fn iops_over_time(check: &Check, course: &Course, size: Size) -> String {
    svg(size, "I/Os a second over time, database and device", |canvas| {
        let x = Axis::time(course.begin_unix_ns, course.end_unix_ns, size.width as usize / 90);
        let (database, device) = (course.values(|at| at.database_iops), course.values(|at| at.device_iops));
        let known = || database.iter().chain(&device).filter_map(|(_, iops)| *iops);
        let nothing = known().next().is_none();
        let top = if check.phases.is_empty() { OVER_TIME.top } else { 48.0 };
        let mut plot = Plot::new(canvas, size, &Margins { top, ..OVER_TIME }, x, Axis::rates(known(), 5));
        if nothing {
            plot.y.ticks.clear();
        }
        let y_title = if plot.y.is_logarithmic() { "IOPS, log scale" } else { "IOPS" };
        plot.axes("time, UTC", y_title);
        plot.gaps(course);
        plot.phases(&course.phases(check));
        let dots = course.instants.len() <= size.width as usize / 14;
        plot.series(&device, Ink::Device, dots);
        plot.series(&database, Ink::Database, dots);
        if nothing {
            plot.nothing("no rate is known");
        }
    })
}
