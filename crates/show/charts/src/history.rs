//! A stored stretch of one file, or of all files of a kind: latency over time on its bands, with the service level, the
//! findings and the gaps; mean outstanding I/Os below.
//!
//! A week of captures is a few hundred points, made while it is read: a page of many charts does not hold many weeks.

use crate::axis::Axis;
use crate::drawing::{Drawing, Size};
use crate::palette::Ink;
use crate::plot::{Margins, Plot, Stroke, Values};
use filestats::{Counters, Figure, FileKind, IoClass, Ops, Profile, Rules, ServiceLevel, Step, TimeSeries};
use std::ops::Range;

/// More intervals than this are drawn several to a point.
const POINTS_MAX: usize = 700;
/// A service level further above the highest latency than this many times is not drawn: it would flatten the rest.
const LEVEL_FAR: f64 = 8.0;

/// Latencies and outstanding I/Os over a stretch.
#[derive(Clone, Debug, PartialEq)]
pub struct HistorySeries {
    begin_unix_ns: u64,
    end_unix_ns: u64,
    points: Vec<Point>,
    /// Intervals that a point stands for.
    pub intervals_each: usize,
    /// Whether it is of logs.
    pub is_log: bool,
}

#[derive(Clone, Debug, PartialEq)]
struct Point {
    from_s: f64,
    to_s: f64,
    /// Mean of reads, writes, syncs, and the longest mean of one interval.
    means_ns: [Option<f64>; 3],
    worst_ns: [Option<f64>; 3],
    outstanding: Option<f64>,
    unknown: bool,
}

/// Of reads, writes, syncs.
pub const HISTORY_INKS: [Ink; 3] = [Ink::Series(0), Ink::Series(1), Ink::Series(3)];

impl HistorySeries {
    /// The series of steps in their order. Of one file, an interval that is partly unknown is unknown; of several files,
    /// it is what the known ones did.
    pub fn new(course: &TimeSeries, kind: FileKind, steps: &[Step], several: bool) -> HistorySeries {
        let ticks = &course.ticks;
        let begin_unix_ns = ticks.first().map_or(0, |tick| tick.taken_unix_ns);
        let end_unix_ns = ticks.last().map_or(0, |tick| tick.taken_unix_ns);
        let seconds = |unix_ns: u64| unix_ns.saturating_sub(begin_unix_ns) as f64 / 1e9;
        let intervals = ticks.len().saturating_sub(1);
        let each = intervals.div_ceil(POINTS_MAX).max(1);
        let mut steps = steps.iter().peekable();
        let mut points = Vec::new();
        for first in (1..ticks.len()).step_by(each) {
            let last = (first + each - 1).min(ticks.len() - 1);
            let mut point = PointSums::ZERO;
            for at in first..=last {
                let elapsed = course.elapsed_ns(at, Rules::default());
                point.elapsed_ns += elapsed.known().unwrap_or(0);
                point.unknown |= elapsed.known().is_none();
                let (mut known, mut unknown) = (false, false);
                while let Some(step) = steps.next_if(|step| step.at <= at) {
                    match step.added {
                        Figure::Known(added) => {
                            point.add(added);
                            known = true;
                        }
                        Figure::Unknown { .. } => unknown = true,
                    }
                }
                point.unknown |= unknown && !(known && several);
            }
            let (from, _) = course.span_unix_ns(first);
            let (_, to) = course.span_unix_ns(last);
            points.push(point.finish(seconds(from), seconds(to)));
        }
        let is_log = matches!(kind, FileKind::Log | FileKind::Journal);
        HistorySeries { begin_unix_ns, end_unix_ns, points, intervals_each: each, is_log }
    }

    /// The service level of reads, writes and syncs as it is drawn, nanoseconds; `None` where there is none, or no such I/O,
    /// or it is far above all latencies.
    pub fn levels(&self, level: &ServiceLevel) -> [Option<f64>; 3] {
        let write_ns = if self.is_log { level.log_write_ns } else { level.write_ns };
        let sync_ns = self.is_log.then_some(level.log_write_ns);
        let highest = self.latencies().fold(0.0, f64::max);
        let promised = [Some(level.read_ns), Some(write_ns), sync_ns];
        let has = self.has();
        [0, 1, 2].map(|at| {
            let ns = promised[at].filter(|_| has[at])? as f64;
            (ns <= highest * LEVEL_FAR).then_some(ns)
        })
    }

    fn latencies(&self) -> impl Iterator<Item = f64> {
        let each =
            |point: &Point| point.means_ns.into_iter().chain(point.worst_ns).flatten().collect::<Vec<_>>();
        self.points.iter().flat_map(each)
    }

    /// Whether there are reads, whether writes, whether syncs.
    pub fn has(&self) -> [bool; 3] {
        [0, 1, 2].map(|at| self.points.iter().any(|point| point.means_ns[at].is_some()))
    }

    /// Whether any part is unknown.
    pub fn has_unknown(&self) -> bool {
        self.points.iter().any(|point| point.unknown)
    }

    /// Latency over time on the bands of `class`. `marked` are nanoseconds since 1970.
    pub fn latency(
        &self,
        profile: &Profile,
        class: IoClass,
        level: &ServiceLevel,
        marked: &[Range<u64>],
        size: Size,
    ) -> Drawing {
        Drawing::new(size, "latency over time", |canvas| {
            let levels = self.levels(level);
            let nothing = self.latencies().next().is_none();
            let y = Axis::latencies(self.latencies().chain(levels.into_iter().flatten()));
            let mut plot = Plot::new(canvas, size, &Margins::OVER_TIME, self.time(size), y);
            if nothing {
                plot.y.ticks.clear();
            } else {
                plot.bands(profile, class);
            }
            self.marks(&mut plot, marked);
            plot.axes("time, UTC", "latency, log scale");
            let end = plot.x.to();
            for (ink, ns) in HISTORY_INKS.into_iter().zip(levels) {
                if let Some(ns) = ns {
                    plot.dashed((0.0, ns), (end, ns), ink);
                }
            }
            let dots = self.points.len() <= size.width as usize / 14;
            for (at, ink) in HISTORY_INKS.into_iter().enumerate() {
                if self.intervals_each > 1 {
                    plot.thin(&self.values(|point| point.worst_ns[at]), ink, Stroke::Dotted);
                }
                plot.series(&self.values(|point| point.means_ns[at]), ink, dots);
            }
            if nothing {
                plot.nothing("no latency is known");
            }
        })
    }

    /// Outstanding I/Os over time, of several series that begin and end together, each in its own ink.
    pub fn outstanding(all: &[(&HistorySeries, Ink)], marked: &[Range<u64>], size: Size) -> Drawing {
        Drawing::new(size, "mean outstanding I/Os over time", |canvas| {
            let lines: Vec<_> =
                all.iter().map(|(one, ink)| (one.values(|point| point.outstanding), *ink)).collect();
            let y = Axis::from_zero(lines.iter().flat_map(|(line, _)| line).filter_map(|(_, n)| *n), 5);
            let Some((first, _)) = all.first() else { return };
            let mut plot = Plot::new(canvas, size, &Margins::OVER_TIME, first.time(size), y);
            first.marks(&mut plot, marked);
            plot.axes("time, UTC", "N");
            for (line, ink) in lines {
                plot.series(&line, ink, first.points.len() <= size.width as usize / 14);
            }
        })
    }

    fn time(&self, size: Size) -> Axis {
        Axis::time(self.begin_unix_ns, self.end_unix_ns, size.width as usize / 90)
    }

    fn marks(&self, plot: &mut Plot<'_>, marked: &[Range<u64>]) {
        for point in self.points.iter().filter(|point| point.unknown) {
            plot.stripe(point.from_s, point.to_s, Ink::Gap, 0.85);
        }
        let seconds = |unix_ns: u64| {
            unix_ns.clamp(self.begin_unix_ns, self.end_unix_ns).saturating_sub(self.begin_unix_ns) as f64
                / 1e9
        };
        for span in marked {
            plot.stripe(seconds(span.start), seconds(span.end), Ink::Worse, 0.12);
        }
    }

    fn values(&self, figure: impl Fn(&Point) -> Option<f64>) -> Values {
        self.points.iter().map(|point| (f64::midpoint(point.from_s, point.to_s), figure(point))).collect()
    }
}

/// Sums over the intervals of a point.
struct PointSums {
    sums: [Ops; 3],
    worst_ns: [Option<f64>; 3],
    stall: Figure<u64>,
    elapsed_ns: u64,
    unknown: bool,
}

impl PointSums {
    const ZERO: PointSums = PointSums {
        sums: [Ops::ZERO; 3],
        worst_ns: [None; 3],
        stall: Figure::Known(0),
        elapsed_ns: 0,
        unknown: false,
    };

    fn add(&mut self, added: Counters) {
        self.stall = self.stall.zip(added.stall_ns(), u64::saturating_add);
        let all = [added.read, added.write, added.sync.known().unwrap_or(Ops::ZERO)];
        for (at, ops) in all.into_iter().enumerate() {
            self.sums[at] = self.sums[at].plus(ops);
            let latency_ns = ops.latency_ns().known();
            self.worst_ns[at] = self.worst_ns[at].into_iter().chain(latency_ns).reduce(f64::max);
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
