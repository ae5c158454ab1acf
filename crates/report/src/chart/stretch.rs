//! One file through a stored stretch: latency on its bands and mean outstanding I/Os over time, with what was found
//! marked, and what is not known.

use super::Size;
use super::axis::Axis;
use super::canvas::{Ink, svg};
use super::plot::{OVER_TIME, Plot, Thin};
use crate::FindingCourse;
use analyze::{Direction, Finding};
use filestats::{Counters, Figure, FileKind, IoClass, Ops, Profile, Rules};

/// More intervals than this are drawn several to a point.
const POINTS_MAX: usize = 700;

/// What a chart shows of a file.
pub(crate) struct Stretch {
    begin_unix_ns: u64,
    end_unix_ns: u64,
    points: Vec<Point>,
    /// Intervals that a point stands for.
    pub(crate) each: usize,
    /// Of reads, the bands of which are drawn, or of writes.
    class: IoClass,
    marked: Vec<(f64, f64)>,
}

struct Point {
    from_s: f64,
    to_s: f64,
    /// Mean of reads, writes, syncs, and the longest mean of one interval.
    means_ns: [Option<f64>; 3],
    worst_ns: [Option<f64>; 3],
    outstanding: Option<f64>,
    unknown: bool,
}

/// Reads, writes, syncs.
pub(crate) const INKS: [Ink; 3] = [Ink::Series(0), Ink::Series(1), Ink::Series(3)];

impl Stretch {
    pub(crate) fn of(of: &FindingCourse, finding: &Finding) -> Stretch {
        let ticks = &of.course.ticks;
        let begin_unix_ns = ticks.first().map_or(0, |tick| tick.taken_unix_ns);
        let end_unix_ns = ticks.last().map_or(0, |tick| tick.taken_unix_ns);
        let seconds = |unix_ns: u64| unix_ns.saturating_sub(begin_unix_ns) as f64 / 1e9;
        let intervals = ticks.len().saturating_sub(1);
        let each = intervals.div_ceil(POINTS_MAX).max(1);
        let mut steps = of.file.steps.iter().peekable();
        let mut points = Vec::new();
        for first in (1..ticks.len()).step_by(each) {
            let last = (first + each - 1).min(ticks.len() - 1);
            let mut point = Gathered::default();
            for at in first..=last {
                let elapsed = of.course.elapsed_ns(at, Rules::default());
                point.elapsed_ns += elapsed.known().unwrap_or(0);
                point.unknown |= elapsed.known().is_none();
                while let Some(step) = steps.next_if(|step| step.at <= at) {
                    match step.added {
                        Figure::Known(added) => point.add(added),
                        Figure::Unknown { .. } => point.unknown = true,
                    }
                }
            }
            let (from, _) = of.course.span_unix_ns(first);
            let (_, to) = of.course.span_unix_ns(last);
            points.push(point.finish(seconds(from), seconds(to)));
        }
        let is_log = matches!(of.file.file.kind, FileKind::Log | FileKind::Journal);
        let class = match (finding.direction, is_log) {
            (Some(Direction::Write | Direction::Sync) | None, true) => IoClass::LogWrite,
            (Some(Direction::Write | Direction::Sync), false) => IoClass::Write,
            _ => IoClass::Read,
        };
        let marked = finding.when.iter();
        let marked = marked.map(|span| (seconds(span.from_unix_ns), seconds(span.until_unix_ns))).collect();
        Stretch { begin_unix_ns, end_unix_ns, points, each, class, marked }
    }

    /// Whether there is any of reads, writes, syncs to be drawn.
    pub(crate) fn has(&self) -> [bool; 3] {
        [0, 1, 2].map(|at| self.points.iter().any(|point| point.means_ns[at].is_some()))
    }

    pub(crate) fn has_unknown(&self) -> bool {
        self.points.iter().any(|point| point.unknown)
    }

    pub(crate) fn latency(&self, profile: &Profile, size: Size) -> String {
        svg(size, "latency over time", |canvas| {
            let known = || {
                let points = self.points.iter();
                points.flat_map(|point| point.means_ns.into_iter().chain(point.worst_ns)).flatten()
            };
            let nothing = known().next().is_none();
            let mut plot = Plot::new(canvas, size, &OVER_TIME, self.time(size), Axis::latencies(known()));
            if nothing {
                plot.y.ticks.clear();
            } else {
                plot.bands(profile, self.class);
            }
            self.marks(&mut plot);
            plot.axes("time, UTC", "latency, log scale");
            let dots = self.points.len() <= size.width as usize / 14;
            for (at, ink) in INKS.into_iter().enumerate() {
                if self.each > 1 {
                    plot.thin(&self.values(|point| point.worst_ns[at]), ink, Thin::Dotted);
                }
                plot.series(&self.values(|point| point.means_ns[at]), ink, dots);
            }
            if nothing {
                plot.nothing("no latency is known");
            }
        })
    }

    pub(crate) fn outstanding(&self, size: Size) -> String {
        svg(size, "mean outstanding I/Os over time", |canvas| {
            let values = self.values(|point| point.outstanding);
            let y = Axis::from_zero(values.iter().filter_map(|(_, n)| *n), 5);
            let mut plot = Plot::new(canvas, size, &OVER_TIME, self.time(size), y);
            self.marks(&mut plot);
            plot.axes("time, UTC", "N");
            plot.series(&values, Ink::Database, self.points.len() <= size.width as usize / 14);
        })
    }

    fn time(&self, size: Size) -> Axis {
        Axis::time(self.begin_unix_ns, self.end_unix_ns, size.width as usize / 90)
    }

    fn marks(&self, plot: &mut Plot<'_, '_>) {
        for point in self.points.iter().filter(|point| point.unknown) {
            plot.stripe(point.from_s, point.to_s, Ink::Gap, 0.85);
        }
        for (from, to) in &self.marked {
            plot.stripe(*from, *to, Ink::Worse, 0.12);
        }
    }

    fn values(&self, of: impl Fn(&Point) -> Option<f64>) -> Vec<(f64, Option<f64>)> {
        self.points.iter().map(|point| (f64::midpoint(point.from_s, point.to_s), of(point))).collect()
    }
}

/// Intervals that make one point.
struct Gathered {
    sums: [Ops; 3],
    worst_ns: [Option<f64>; 3],
    stall: Figure<u64>,
    elapsed_ns: u64,
    unknown: bool,
}

impl Default for Gathered {
    fn default() -> Self {
        Gathered {
            sums: [Ops::ZERO; 3],
            worst_ns: [None; 3],
            stall: Figure::Known(0),
            elapsed_ns: 0,
            unknown: false,
        }
    }
}

impl Gathered {
    fn add(&mut self, added: Counters) {
        self.stall = self.stall.zip(added.stall_ns(), u64::saturating_add);
        let all = [added.read, added.write, added.sync.known().unwrap_or(Ops::ZERO)];
        for (at, ops) in all.into_iter().enumerate() {
            self.sums[at] = self.sums[at].plus(ops);
            let latency_ns = ops.latency_ns().known();
            self.worst_ns[at] = match (self.worst_ns[at], latency_ns) {
                (Some(worst), Some(ns)) => Some(worst.max(ns)),
                (worst, ns) => worst.or(ns),
            };
        }
    }

    fn finish(self, from_s: f64, to_s: f64) -> Point {
        let outstanding = match (self.stall, self.elapsed_ns, self.unknown) {
            (Figure::Known(stall), 1.., false) => Some(stall as f64 / self.elapsed_ns as f64),
            _ => None,
        };
        Point {
            from_s,
            to_s,
            means_ns: self.sums.map(|ops| ops.latency_ns().known()),
            worst_ns: self.worst_ns,
            outstanding,
            unknown: self.unknown,
        }
    }
}
