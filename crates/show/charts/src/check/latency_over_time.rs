use super::series::CheckSeries;
use crate::axis::Axis;
use crate::drawing::{Drawing, Size};
use crate::palette::Ink;
use crate::plot::{Margins, Plot};
use filestats::{IoClass, Profile};

/// Latency of reads and commits over time on the bands of a profile; gaps stay gaps.
pub fn latency_over_time(series: &CheckSeries, profile: &Profile, class: IoClass, size: Size) -> Drawing {
    Drawing::new(size, "latency of reads and commits over time", |canvas| {
        let x = Axis::time(series.begin_unix_ns, series.end_unix_ns, size.width as usize / 90);
        let (reads, commits) = (series.values(|at| at.read_ns), series.values(|at| at.commit_ns));
        let known = || reads.iter().chain(&commits).filter_map(|(_, ns)| *ns);
        let is_unknown = known().next().is_none();
        let margins = if series.has_phases() { Margins::WITH_PHASES } else { Margins::OVER_TIME };
        let mut plot = Plot::new(canvas, size, &margins, x, Axis::latencies(known()));
        if is_unknown {
            plot.y.ticks.clear();
        } else {
            plot.bands(profile, class);
        }
        plot.axes("time, UTC", "latency, log scale");
        series.mark(&mut plot);
        let dots = series.instants.len() <= size.width as usize / 14;
        plot.series(&reads, Ink::Read, dots);
        plot.series(&commits, Ink::Commit, dots);
        if is_unknown {
            plot.nothing("no latency is known");
        }
    })
}
