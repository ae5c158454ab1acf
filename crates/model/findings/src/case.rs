use crate::RunConditions;
use crate::run_series::{RunSeries, is_paced};
use workload::{Arrival, Caching, Direction, LatencyFigures, RunResult};

/// A run with what several rules need of it.
pub struct Case<'a> {
    pub result: &'a RunResult,
    pub conditions: &'a RunConditions,
    /// Reads and writes together.
    pub latency: LatencyFigures<'a>,
    pub series: RunSeries,
}

impl<'a> Case<'a> {
    pub fn new(result: &'a RunResult, conditions: &'a RunConditions) -> Case<'a> {
        Case { result, conditions, latency: result.total_latency(), series: RunSeries::from_result(result) }
    }

    /// The directions in which I/Os completed, with their names.
    pub fn directions(&self) -> impl Iterator<Item = (&'static str, &'a Direction)> {
        let both = [("read", &self.result.read), ("write", &self.result.write)];
        both.into_iter().filter(|(_, direction)| direction.count > 0)
    }

    /// Latencies of the directions in which I/Os completed, with their names.
    pub fn latencies(&self) -> impl Iterator<Item = (&'static str, LatencyFigures<'a>)> {
        let both = [
            ("read", self.result.read.count, self.result.read_latency()),
            ("write", self.result.write.count, self.result.write_latency()),
        ];
        both.into_iter().filter(|(_, count, _)| *count > 0).map(|(name, _, latency)| (name, latency))
    }

    /// I/Os come at a rate of their own rather than as fast as the storage lets them.
    pub fn is_paced(&self) -> bool {
        is_paced(self.result)
    }

    /// Something other than the storage keeps I/Os back: a rate, rests, syncs that others wait for.
    pub fn is_held_back(&self) -> bool {
        let workload = &self.result.workload;
        self.is_paced() || workload.burst.is_some() || workload.sync.is_some()
    }

    /// The workload says what each I/O was like: no trace did, and the settings were reported.
    pub fn has_known_shape(&self) -> bool {
        // Older results of a trace do not say so, but have its times at least.
        let replayed =
            self.result.replayed || matches!(self.result.workload.arrival, Arrival::Recorded { .. });
        !replayed && !self.result.settings_unreported
    }

    /// The page cache may answer.
    pub fn is_cached(&self) -> bool {
        self.result.workload.shape.caching != Caching::Direct
    }

    /// I/Os a second that an open loop requests.
    pub fn requested_iops(&self) -> Option<f64> {
        match self.result.workload.arrival {
            Arrival::Constant { iops } | Arrival::Poisson { iops } => Some(iops),
            Arrival::Closed | Arrival::Recorded { .. } => None,
        }
    }

    /// Whether each counted I/O has its part in the latencies: imported results may lack them.
    pub fn has_latencies(&self) -> bool {
        let (ios, latencies) = (self.result.ios() as f64, self.latency.count() as f64);
        latencies > 0.0 && (ios - latencies).abs() <= 0.01 * ios
    }

    /// Bytes of the target that the workload uses; `None` where its size is not known.
    pub fn used_bytes(&self) -> Option<u64> {
        let access = &self.result.workload.access;
        let after_base =
            self.result.target_bytes.checked_sub(access.base_bytes).filter(|bytes| *bytes > 0)?;
        Some(access.length_bytes.map_or(after_base, |length| length.min(after_base)))
    }
}

#[cfg(test)]
pub mod tests {
    use super::*;
    use crate::{Finding, FindingKind, Weight, findings};
    use workload::{CoreUse, Shape, Slice, Tally, ThreadShare, Workload};

    /// The finding of a kind, under unknown conditions.
    pub fn finding(result: &RunResult, kind: FindingKind) -> Option<Finding> {
        find(result, &RunConditions::default(), kind)
    }

    pub fn find(result: &RunResult, conditions: &RunConditions, kind: FindingKind) -> Option<Finding> {
        findings(result, conditions).into_iter().find(|finding| finding.kind == kind)
    }

    pub fn weight(result: &RunResult, kind: FindingKind) -> Option<Weight> {
        finding(result, kind).map(|finding| finding.weight)
    }

    /// `count` I/Os of 8 KiB, evenly spread from `from_ns` to `to_ns`.
    pub fn direction(count: u64, from_ns: u64, to_ns: u64) -> Direction {
        let mut direction = Direction { count, bytes: count * 8192, ..Direction::default() };
        let steps = count.min(1_000);
        for step in 0..steps {
            let n = count / steps + u64::from(step < count % steps);
            direction.latency.record_n(from_ns + (to_ns - from_ns) * step / steps, n);
        }
        direction
    }

    /// Ten seconds of 8 KiB random reads, four outstanding in two threads, without a fault.
    pub fn plain() -> RunResult {
        let workload = Workload { outstanding: 2, threads: 2, ..Workload::from(Shape::random_read(8192)) };
        let half = |count| ThreadShare {
            read: Tally { count, bytes: count * 8192, stall_ns: count * 200_000, ..Tally::default() },
            cpu_ns: 1_500_000_000,
            ..ThreadShare::default()
        };
        let series = (1..=10_u64).map(|second| Slice {
            end_ns: second * 1_000_000_000,
            read: Tally {
                count: 20_000 + (second * 37) % 211,
                bytes: 20_000 * 8192,
                stall_ns: 20_000 * 200_000,
                ..Tally::default()
            },
            ..Slice::default()
        });
        let core = |core| CoreUse { core, user_percent: 5.0, kernel_percent: 12.0, idle_percent: 83.0 };
        RunResult {
            elapsed_ns: 10_000_000_000,
            read: direction(200_000, 150_000, 250_000),
            target_bytes: 64 << 30,
            series: series.collect(),
            cores: vec![core(0), core(1)],
            threads: vec![half(99_000), half(101_000)],
            ..RunResult::empty(workload, "/data/test".into())
        }
    }

    /// A run with those I/Os in each second.
    pub fn of_rates(rates: &[u64]) -> RunResult {
        let slices = rates.iter().enumerate().map(|(at, rate)| {
            let mut read = Tally::default();
            read.record_n(200_000, 8192, *rate);
            Slice { end_ns: (at as u64 + 1) * 1_000_000_000, read, ..Slice::default() }
        });
        RunResult {
            elapsed_ns: rates.len() as u64 * 1_000_000_000,
            read: direction(rates.iter().sum(), 150_000, 250_000),
            series: slices.collect(),
            ..plain()
        }
    }

    #[test]
    fn a_faultless_run_gives_good_findings_only() {
        let found = findings(&plain(), &RunConditions::default());
        let bad: Vec<&Finding> = found.iter().filter(|finding| finding.weight != Weight::Good).collect();
        assert!(bad.is_empty(), "{bad:?}");
        assert!(found.len() >= 6, "{found:?}");
    }
}
