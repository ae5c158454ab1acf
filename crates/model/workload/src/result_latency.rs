//! The latencies of a result, whether they were counted or reported.

use crate::latency_figures::{LatencyFigures, Moments, ReportedLatency};
use crate::{Direction, RunResult, Slice, Tally, ThreadShare};
use std::borrow::Cow;

impl RunResult {
    /// Latencies of the reads.
    pub fn read_latency(&self) -> LatencyFigures<'_> {
        figures_of(&self.read, &self.direction_tally(|slice| slice.read, |share| share.read))
    }

    /// Latencies of the writes.
    pub fn write_latency(&self) -> LatencyFigures<'_> {
        figures_of(&self.write, &self.direction_tally(|slice| slice.write, |share| share.write))
    }

    /// Latencies of the syncs.
    pub fn sync_latency(&self) -> LatencyFigures<'_> {
        figures_of(&self.sync, &Tally::default())
    }

    /// Latencies of reads and writes together. Percentiles of both are those that the other tool reported of both: they
    /// do not follow from those of each, except for the shortest and the longest.
    pub fn total_latency(&self) -> LatencyFigures<'_> {
        let (read, write) = (self.read_latency(), self.write_latency());
        match (read, write) {
            (read, _) if self.write.count == 0 && self.read.count > 0 => read,
            (_, write) if self.read.count == 0 && self.write.count > 0 => write,
            (LatencyFigures::Counted(_), LatencyFigures::Counted(_)) => {
                LatencyFigures::Counted(Cow::Owned(self.latency()))
            }
            (read, write) => LatencyFigures::Reported(self.reported_of_both(&read, &write)),
        }
    }

    fn reported_of_both(&self, read: &LatencyFigures<'_>, write: &LatencyFigures<'_>) -> ReportedLatency<'_> {
        let (reads, writes) = (self.read.count as f64, self.write.count as f64);
        let moments = |of: &LatencyFigures<'_>| Moments::new(of.mean_ns(), of.deviation_ns());
        let both = moments(read).pooled(reads, &moments(write), writes);
        let ends = || {
            let shortest = Some((0.0, read.min_ns()?.min(write.min_ns()?)));
            let longest = Some((100.0, read.max_ns()?.max(write.max_ns()?)));
            Some(shortest.into_iter().chain(longest).collect::<Vec<_>>())
        };
        ReportedLatency {
            count: self.ios(),
            mean_ns: both.mean_ns,
            deviation_ns: both.deviation_ns,
            percentiles: match self.total_percentiles.as_slice() {
                [] => Cow::Owned(ends().unwrap_or_default()),
                reported => Cow::Borrowed(reported),
            },
        }
    }

    fn direction_tally(&self, of_slice: fn(&Slice) -> Tally, of_share: fn(&ThreadShare) -> Tally) -> Tally {
        let mut sum = Tally::default();
        if self.series.is_empty() {
            self.threads.iter().for_each(|share| sum.merge(&of_share(share)));
        } else {
            self.series.iter().for_each(|slice| sum.merge(&of_slice(slice)));
        }
        sum
    }

    /// Summed latency of all reads and writes, nanoseconds; 0 where it is not known.
    pub(crate) fn stall_ns(&self) -> f64 {
        self.read_latency().sum_ns() + self.write_latency().sum_ns()
    }
}

/// Of one direction. Latencies that are not in the direction follow from the sums of its threads or series.
fn figures_of<'a>(direction: &'a Direction, tally: &Tally) -> LatencyFigures<'a> {
    if direction.latency.count() > 0 || direction.count == 0 {
        return LatencyFigures::Counted(Cow::Borrowed(&direction.latency));
    }
    LatencyFigures::Reported(ReportedLatency {
        count: direction.count,
        mean_ns: direction.mean_ns.or_else(|| tally.mean_ns()),
        deviation_ns: direction.deviation_ns.or_else(|| tally.deviation_ns()),
        percentiles: Cow::Borrowed(&direction.percentiles),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Shape, Workload};

    fn imported() -> RunResult {
        let mut run = RunResult::empty(Workload::from(Shape::random_read(8192).with_writes(25)), "t".into());
        run.read = Direction {
            count: 30_000,
            mean_ns: Some(1e6),
            deviation_ns: Some(0.0),
            percentiles: vec![(0.0, 100), (50.0, 900_000), (99.0, 3_000_000), (100.0, 9_000_000)],
            ..Direction::default()
        };
        run.write = Direction {
            count: 10_000,
            mean_ns: Some(5e6),
            deviation_ns: Some(0.0),
            percentiles: vec![(0.0, 50), (50.0, 4_000_000), (100.0, 8_000_000)],
            ..Direction::default()
        };
        run
    }

    #[test]
    fn reported_figures_take_the_place_of_a_histogram() {
        let run = imported();
        let read = run.read_latency();
        assert_eq!((read.histogram(), read.count()), (None, 30_000));
        assert_eq!((read.percentile_ns(99.0), read.percentile_ns(90.0)), (Some(3_000_000), None));
        assert_eq!(read.supported_percentile_ns(99.0), Some(3_000_000));
        assert_eq!((read.min_ns(), read.max_ns()), (Some(100), Some(9_000_000)));
        assert_eq!(run.sync_latency().count(), 0);
    }

    #[test]
    fn of_two_directions_moments_are_pooled_and_percentiles_are_not_made_up() {
        let mut run = imported();
        assert_eq!(run.mean_latency_ns(), Some(2e6));
        let deviation_ns = run.total_latency().deviation_ns().unwrap();
        assert!((deviation_ns - 3e6_f64.sqrt() * 1e3).abs() < 1.0, "{deviation_ns}");
        assert_eq!(run.total_latency().percentile_ns(50.0), None);
        assert_eq!((run.total_latency().min_ns(), run.total_latency().max_ns()), (Some(50), Some(9_000_000)));
        run.total_percentiles = vec![(50.0, 1_100_000)];
        assert_eq!(run.total_latency().percentile_ns(50.0), Some(1_100_000));
    }

    #[test]
    fn one_direction_alone_is_the_total() {
        let run = RunResult { write: Direction::default(), ..imported() };
        assert_eq!(run.total_latency(), run.read_latency());
        assert_eq!(run.total_latency().percentile_ns(99.0), Some(3_000_000));
    }

    #[test]
    fn latencies_that_nobody_reported_are_not_known() {
        let mut run = imported();
        run.read = Direction { count: 30_000, ..Direction::default() };
        run.write = Direction::default();
        assert_eq!((run.total_latency().count(), run.total_latency().mean_ns()), (0, None));
        run.threads = vec![ThreadShare {
            read: Tally { count: 30_000, stall_ns: 60_000, ..Tally::default() },
            ..ThreadShare::default()
        }];
        assert_eq!((run.total_latency().count(), run.total_latency().mean_ns()), (30_000, Some(2.0)));
    }
}
