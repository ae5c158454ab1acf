use super::axis::Axis;
use super::canvas::{Ink, svg};
use super::plot::{Margins, OVER_TIME, Plot};
use super::{Course, Size};
use crate::Check;
use filestats::IoClass;

/// Latency of reads and commits over time on the profile's bands; gaps stay gaps.
pub(crate) fn latency_over_time(check: &Check, course: &Course, class: IoClass, size: Size) -> String {
    svg(size, "latency of reads and commits over time", |canvas| {
        let x = Axis::time(course.begin_unix_ns, course.end_unix_ns, size.width as usize / 90);
        let (reads, commits) = (course.values(|at| at.read_ns), course.values(|at| at.commit_ns));
        let known = || reads.iter().chain(&commits).filter_map(|(_, ns)| *ns);
        let nothing = known().next().is_none();
        let top = if check.phases.is_empty() { OVER_TIME.top } else { 48.0 };
        let mut plot = Plot::new(canvas, size, &Margins { top, ..OVER_TIME }, x, Axis::latencies(known()));
        if !nothing {
            plot.bands(&check.profile, class);
        }
        if nothing {
            plot.y.ticks.clear();
        }
        plot.axes("time, UTC", "latency, log scale");
        plot.gaps(course);
        plot.phases(&course.phases(check));
        let dots = course.instants.len() <= size.width as usize / 14;
        plot.series(&reads, Ink::Read, dots);
        plot.series(&commits, Ink::Commit, dots);
        if nothing {
            plot.nothing("no latency is known");
        }
    })
}

impl Plot<'_, '_> {
    /// Marks when nothing is known.
    pub(super) fn gaps(&mut self, course: &Course) {
        for instant in course.instants.iter().filter(|instant| instant.gap.is_some()) {
            self.stripe(instant.from_s, instant.to_s, Ink::Gap, 0.85);
        }
    }
}
