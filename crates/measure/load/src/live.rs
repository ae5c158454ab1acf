use crate::clock::now_ns;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;

/// State that the threads of a run share with the supervising one. Times are on the monotonic clock.
#[derive(Debug)]
pub struct Shared {
    /// Completions count from this time; `u64::MAX` during warm-up.
    pub from_ns: AtomicU64,
    /// Completions count before this time.
    pub until_ns: AtomicU64,
    /// Threads end at this time.
    pub end_ns: AtomicU64,
    /// The progress of each thread.
    pub progress: Vec<Progress>,
}

/// One thread's progress, on cache lines of its own. Only its thread writes it, so that it needs no lock.
#[derive(Debug)]
#[repr(align(128))]
pub struct Progress {
    ios: AtomicU64,
    bytes: AtomicU64,
    stall_ns: AtomicU64,
    in_flight: AtomicU64,
    ended: AtomicU64,
    latencies: [AtomicU64; RANGES],
}

/// Eight ranges for each power of two, up to 2^40 ns (18 minutes): within 6 %, enough for the progress line.
const RANGES: usize = 8 * 38;

/// Stage of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RunStage {
    /// Completions do not count yet.
    WarmUp,
    /// Completions count.
    Measuring,
    /// Completions do not count any more.
    CoolDown,
    /// The load has ended; the written blocks are read and checked.
    Verifying,
}

/// Progress of a run, warm-up included.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LiveStats {
    /// Time since the run began.
    pub elapsed: Duration,
    /// Its stage.
    pub stage: RunStage,
    /// I/Os completed since the run began; while verifying, blocks checked.
    pub ios: u64,
    /// Bytes they moved.
    pub bytes: u64,
    /// Their summed latency in nanoseconds.
    pub stall_ns: u64,
    /// I/Os outstanding.
    pub outstanding: u64,
    /// Completions of the last second.
    pub recent: RecentStats,
}

/// Completions of about the last second.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct RecentStats {
    /// Its exact length.
    pub time: Duration,
    /// I/Os.
    pub ios: u64,
    /// Bytes.
    pub bytes: u64,
    /// Median latency, within 6 %; 0 without I/Os.
    pub p50_ns: u64,
    /// 99th percentile of latency, within 6 %; 0 without I/Os.
    pub p99_ns: u64,
    /// Highest latency, within 6 %; 0 without I/Os.
    pub max_ns: u64,
}

impl RecentStats {
    /// I/Os a second.
    pub fn iops(&self) -> f64 {
        if self.time.is_zero() { 0.0 } else { self.ios as f64 / self.time.as_secs_f64() }
    }

    /// MiB a second.
    pub fn mib_per_s(&self) -> f64 {
        if self.time.is_zero() { 0.0 } else { self.bytes as f64 / 1_048_576.0 / self.time.as_secs_f64() }
    }
}

/// Totals that a thread publishes after each batch of completions.
#[derive(Clone, Copy, Debug, Default)]
pub struct Totals {
    pub ios: u64,
    pub bytes: u64,
    pub stall_ns: u64,
    pub in_flight: u64,
}

impl Default for Progress {
    fn default() -> Progress {
        Progress {
            ios: AtomicU64::new(0),
            bytes: AtomicU64::new(0),
            stall_ns: AtomicU64::new(0),
            in_flight: AtomicU64::new(0),
            ended: AtomicU64::new(0),
            latencies: [const { AtomicU64::new(0) }; RANGES],
        }
    }
}

impl Progress {
    /// Adds I/Os of one latency.
    #[inline]
    pub fn add_latency(&self, latency_ns: u64, count: u64) {
        let range = &self.latencies[range_index(latency_ns)];
        range.store(range.load(Relaxed) + count, Relaxed);
    }

    #[inline]
    pub fn publish(&self, totals: Totals) {
        self.ios.store(totals.ios, Relaxed);
        self.bytes.store(totals.bytes, Relaxed);
        self.stall_ns.store(totals.stall_ns, Relaxed);
        self.in_flight.store(totals.in_flight, Relaxed);
    }

    /// The thread has ended.
    pub fn end(&self) {
        self.in_flight.store(0, Relaxed);
        self.ended.store(1, Relaxed);
    }
}

#[inline]
fn range_index(latency_ns: u64) -> usize {
    if latency_ns < 8 {
        return latency_ns as usize;
    }
    let top = 63 - latency_ns.leading_zeros() as usize;
    let fine = (latency_ns >> (top - 3)) as usize & 7;
    ((top - 2) * 8 + fine).min(RANGES - 1)
}

/// Highest latency of a range.
fn range_max_ns(range: usize) -> u64 {
    if range < 8 {
        return range as u64;
    }
    let (top, fine) = (range / 8 + 2, (range % 8) as u64);
    ((8 + fine + 1) << (top - 3)) - 1
}

impl Shared {
    pub fn new(threads: usize) -> Shared {
        Shared {
            from_ns: AtomicU64::new(u64::MAX),
            until_ns: AtomicU64::new(u64::MAX),
            end_ns: AtomicU64::new(u64::MAX),
            progress: (0..threads).map(|_| Progress::default()).collect(),
        }
    }

    fn sum(&self, counter: fn(&Progress) -> &AtomicU64) -> u64 {
        self.progress.iter().map(|progress| counter(progress).load(Relaxed)).sum()
    }

    pub fn all_ended(&self) -> bool {
        self.sum(|progress| &progress.ended) == self.progress.len() as u64
    }
}

/// Reads the threads' progress, and keeps the reading of a second ago.
pub struct Watcher<'a> {
    shared: &'a Shared,
    began_ns: u64,
    before: Reading,
    recent: RecentStats,
}

struct Reading {
    at_ns: u64,
    ios: u64,
    bytes: u64,
    latencies: Vec<u64>,
}

/// Interval of the recent figures.
const RECENT_NS: u64 = 1_000_000_000;

impl<'a> Watcher<'a> {
    pub fn new(shared: &'a Shared) -> Watcher<'a> {
        let began_ns = now_ns();
        let before = Reading { at_ns: began_ns, ios: 0, bytes: 0, latencies: vec![0; RANGES] };
        Watcher { shared, began_ns, before, recent: RecentStats::default() }
    }

    /// The progress now.
    pub fn read(&mut self, stage: RunStage) -> LiveStats {
        let now = now_ns();
        let (ios, bytes) =
            (self.shared.sum(|progress| &progress.ios), self.shared.sum(|progress| &progress.bytes));
        if now >= self.before.at_ns + RECENT_NS {
            let sum = |range: usize| {
                self.shared.progress.iter().map(|progress| progress.latencies[range].load(Relaxed)).sum()
            };
            let reading = Reading { at_ns: now, ios, bytes, latencies: (0..RANGES).map(sum).collect() };
            self.recent = reading.since(&self.before);
            self.before = reading;
        }
        LiveStats {
            elapsed: Duration::from_nanos(now - self.began_ns),
            stage,
            ios,
            bytes,
            stall_ns: self.shared.sum(|progress| &progress.stall_ns),
            outstanding: self.shared.sum(|progress| &progress.in_flight),
            recent: self.recent,
        }
    }
}

impl Reading {
    fn since(&self, before: &Reading) -> RecentStats {
        let pairs = self.latencies.iter().zip(&before.latencies);
        let counts: Vec<u64> = pairs.map(|(now, then)| now.saturating_sub(*then)).collect();
        let all: u64 = counts.iter().sum();
        let percentile = |share: f64| {
            let wanted = (all as f64 * share).ceil() as u64;
            let mut seen = 0;
            let reaches = |count: &u64| {
                seen += count;
                seen >= wanted
            };
            counts.iter().position(reaches).map_or(0, range_max_ns)
        };
        let (p50_ns, p99_ns, max_ns) = match all {
            0 => (0, 0, 0),
            _ => (percentile(0.5), percentile(0.99), percentile(1.0)),
        };
        RecentStats {
            time: Duration::from_nanos(self.at_ns - before.at_ns),
            ios: self.ios - before.ios,
            bytes: self.bytes - before.bytes,
            p50_ns,
            p99_ns,
            max_ns,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_are_an_eighth_of_a_power_of_two_wide_and_leave_no_gap() {
        for latency_ns in (0..100_000).chain([1 << 30, (1 << 40) - 1]) {
            let range = range_index(latency_ns);
            assert!(latency_ns <= range_max_ns(range), "{latency_ns}");
            assert!(range == 0 || latency_ns > range_max_ns(range - 1), "{latency_ns}");
            assert!(range_max_ns(range) as f64 <= latency_ns as f64 * 1.125 + 1.0);
        }
        assert_eq!(range_index(u64::MAX), RANGES - 1);
    }

    #[test]
    fn the_recent_percentiles_are_those_of_the_last_reading() {
        let reading = |at_ns, slow: u64| {
            let mut latencies = vec![0; RANGES];
            latencies[range_index(1_000)] = 98;
            latencies[range_index(1_000_000)] = slow;
            Reading { at_ns, ios: 98 + slow, bytes: 0, latencies }
        };
        let nothing = Reading { at_ns: 0, ios: 0, bytes: 0, latencies: vec![0; RANGES] };
        let recent = reading(1_000, 2).since(&nothing);
        assert!((1_000..1_130).contains(&recent.p50_ns) && recent.p99_ns >= 1_000_000);
        let recent = reading(2_000, 3).since(&reading(1_000, 2));
        assert!(recent.ios == 1 && recent.p50_ns >= 1_000_000);
    }
}
