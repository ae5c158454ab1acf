use super::series::CheckSeries;
use crate::axis::Axis;
use crate::drawing::{Canvas, Drawing, Size};
use crate::palette::Ink;
use crate::plot::{Margins, Plot, Values};
use filestats::{IoClass, Profile};

/// I/Os a second over time, as the database counts them and as the device does.
pub fn iops_over_time(series: &CheckSeries, size: Size) -> Drawing {
    Drawing::new(size, "I/Os a second over time, database and device", |canvas| {
        let lines = [
            (Ink::Device, series.values(|at| at.device_iops)),
            (Ink::Database, series.values(|at| at.database_iops)),
        ];
        let y = Axis::rates(known(&lines), 5);
        let title = if y.is_logarithmic() { "IOPS, log scale" } else { "IOPS" };
        draw(plot(canvas, series, size, y), series, &lines, size, (title, "no rate is known"));
    })
}

/// Latency of reads and commits over time on the bands of a profile; gaps stay gaps.
pub fn latency_over_time(series: &CheckSeries, profile: &Profile, class: IoClass, size: Size) -> Drawing {
    Drawing::new(size, "latency of reads and commits over time", |canvas| {
        let lines =
            [(Ink::Read, series.values(|at| at.read_ns)), (Ink::Commit, series.values(|at| at.commit_ns))];
        let mut plot = plot(canvas, series, size, Axis::latencies(known(&lines)));
        if known(&lines).next().is_some() {
            plot.bands(profile, class);
        }
        draw(plot, series, &lines, size, ("latency, log scale", "no latency is known"));
    })
}

type Lines = [(Ink, Values); 2];

fn known(lines: &Lines) -> impl Iterator<Item = f64> {
    lines.iter().flat_map(|(_, values)| values).filter_map(|(_, value)| *value)
}

fn plot<'a>(canvas: &'a mut Canvas, series: &CheckSeries, size: Size, y: Axis) -> Plot<'a> {
    let x = Axis::time(series.begin_unix_ns, series.end_unix_ns, size.width as usize / 90);
    let margins = if series.has_phases() { Margins::WITH_PHASES } else { Margins::OVER_TIME };
    Plot::new(canvas, size, &margins, x, y)
}

/// The axes, the phases and gaps, the lines; without any figure, why there is none.
fn draw(
    mut plot: Plot<'_>,
    series: &CheckSeries,
    lines: &Lines,
    size: Size,
    (y_title, nothing): (&str, &str),
) {
    let is_unknown = known(lines).next().is_none();
    if is_unknown {
        plot.y.ticks.clear();
    }
    plot.axes("time, UTC", y_title);
    series.mark(&mut plot);
    let dots = series.instants.len() <= size.width as usize / 14;
    for (ink, values) in lines {
        plot.series(values, *ink, dots);
    }
    if is_unknown {
        plot.nothing(nothing);
    }
}
