use super::series::CheckSeries;
use crate::axis::Axis;
use crate::drawing::{Drawing, Size};
use crate::palette::Ink;
use crate::plot::{Margins, Plot};

/// I/Os a second over time, as the database counts them and as the device does.
pub fn iops_over_time(series: &CheckSeries, size: Size) -> Drawing {
    Drawing::new(size, "I/Os a second over time, database and device", |canvas| {
        let x = Axis::time(series.begin_unix_ns, series.end_unix_ns, size.width as usize / 90);
        let (database, device) = (series.values(|at| at.database_iops), series.values(|at| at.device_iops));
        let known = || database.iter().chain(&device).filter_map(|(_, iops)| *iops);
        let is_unknown = known().next().is_none();
        let margins = if series.has_phases() { Margins::WITH_PHASES } else { Margins::OVER_TIME };
        let mut plot = Plot::new(canvas, size, &margins, x, Axis::rates(known(), 5));
        if is_unknown {
            plot.y.ticks.clear();
        }
        let y_title = if plot.y.is_logarithmic() { "IOPS, log scale" } else { "IOPS" };
        plot.axes("time, UTC", y_title);
        series.mark(&mut plot);
        let dots = series.instants.len() <= size.width as usize / 14;
        plot.series(&device, Ink::Device, dots);
        plot.series(&database, Ink::Database, dots);
        if is_unknown {
            plot.nothing("no rate is known");
        }
    })
}
