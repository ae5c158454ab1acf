use crate::cpu::now_ns;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;

/// What the threads of a run and the one that watches them share. Times are on the monotonic clock.
#[derive(Debug)]
pub struct Shared {
    /// I/Os count that complete from here on; `u64::MAX` during warm-up.
    pub from_ns: AtomicU64,
    /// ... and before this.
    pub until_ns: AtomicU64,
    /// Threads end once this has passed.
    pub end_ns: AtomicU64,
    /// Each thread's own progress.
    pub progress: Vec<Progress>,
}

/// One thread's progress, alone on its cache lines. Only its thread writes, so that nothing is locked.
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

/// Eight ranges for each power of two, up to 2^40 ns (18 minutes): within 6 %, enough for a live line.
const RANGES: usize = 8 * 38;

/// Where a run stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stage {
    /// Running, nothing counts yet.
    WarmUp,
    /// What completes now counts.
    Measuring,
    /// Running on, nothing counts any more.
    CoolDown,
    /// The load has ended; what was written is read again.
    Verifying,
}

/// How a run stands, warm-up included.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Live {
    /// Time since the run began.
    pub elapsed: Duration,
    /// Where it stands.
    pub stage: Stage,
    /// Whether what completes now counts.
    pub measuring: bool,
    /// I/Os completed since the run began; while verifying, blocks checked.
    pub ios: u64,
    /// Bytes they moved.
    pub bytes: u64,
    /// Their summed latency in nanoseconds.
    pub stall_ns: u64,
    /// I/Os outstanding just now.
    pub outstanding: u64,
    /// The last second: what completed in it.
    pub recent: Recent,
}

/// What completed in the last second or so.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Recent {
    /// How long that was.
    pub time: Duration,
    /// I/Os.
    pub ios: u64,
    /// Bytes.
    pub bytes: u64,
    /// Half of them took no longer, within 6 %; 0 without I/Os.
    pub p50_ns: u64,
    /// 99 % of them took no longer, within 6 %; 0 without I/Os.
    pub p99_ns: u64,
    /// None took longer, within 6 %; 0 without I/Os.
    pub max_ns: u64,
}

impl Recent {
    /// I/Os a second.
    pub fn iops(&self) -> f64 {
        if self.time.is_zero() { 0.0 } else { self.ios as f64 / self.time.as_secs_f64() }
    }

    /// MiB a second.
    pub fn mib_per_s(&self) -> f64 {
        if self.time.is_zero() { 0.0 } else { self.bytes as f64 / 1_048_576.0 / self.time.as_secs_f64() }
    }
}

/// What a thread tells at the end of each turn of its loop.
#[derive(Clone, Copy, Debug, Default)]
pub struct Told {
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
    /// One more I/O took so long.
    #[inline]
    pub fn took(&self, latency_ns: u64, count: u64) {
        let range = &self.latencies[range_of(latency_ns)];
        range.store(range.load(Relaxed) + count, Relaxed);
    }

    #[inline]
    pub fn tell(&self, told: Told) {
        self.ios.store(told.ios, Relaxed);
        self.bytes.store(told.bytes, Relaxed);
        self.stall_ns.store(told.stall_ns, Relaxed);
        self.in_flight.store(told.in_flight, Relaxed);
    }

    /// The thread has ended on its own.
    pub fn end(&self) {
        self.in_flight.store(0, Relaxed);
        self.ended.store(1, Relaxed);
    }
}

#[inline]
fn range_of(latency_ns: u64) -> usize {
    if latency_ns < 8 {
        return latency_ns as usize;
    }
    let top = 63 - latency_ns.leading_zeros() as usize;
    let fine = (latency_ns >> (top - 3)) as usize & 7;
    ((top - 2) * 8 + fine).min(RANGES - 1)
}

/// The largest latency of a range.
fn longest_of(range: usize) -> u64 {
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

    fn sum(&self, of: fn(&Progress) -> &AtomicU64) -> u64 {
        self.progress.iter().map(|progress| of(progress).load(Relaxed)).sum()
    }

    pub fn all_ended(&self) -> bool {
        self.sum(|progress| &progress.ended) == self.progress.len() as u64
    }
}

/// Reads the threads' progress again and again, and remembers the last second.
pub struct Watcher<'a> {
    shared: &'a Shared,
    began_ns: u64,
    before: Reading,
    recent: Recent,
}

struct Reading {
    at_ns: u64,
    ios: u64,
    bytes: u64,
    latencies: Vec<u64>,
}

/// The live figures are renewed that often.
const RENEWED_NS: u64 = 1_000_000_000;

impl<'a> Watcher<'a> {
    pub fn new(shared: &'a Shared) -> Watcher<'a> {
        let began_ns = now_ns();
        let before = Reading { at_ns: began_ns, ios: 0, bytes: 0, latencies: vec![0; RANGES] };
        Watcher { shared, began_ns, before, recent: Recent::default() }
    }

    pub fn live(&mut self, stage: Stage) -> Live {
        let now = now_ns();
        let (ios, bytes) =
            (self.shared.sum(|progress| &progress.ios), self.shared.sum(|progress| &progress.bytes));
        if now >= self.before.at_ns + RENEWED_NS {
            let sum = |range: usize| {
                self.shared.progress.iter().map(|progress| progress.latencies[range].load(Relaxed)).sum()
            };
            let reading = Reading { at_ns: now, ios, bytes, latencies: (0..RANGES).map(sum).collect() };
            self.recent = reading.since(&self.before);
            self.before = reading;
        }
        Live {
            elapsed: Duration::from_nanos(now - self.began_ns),
            stage,
            measuring: stage == Stage::Measuring,
            ios,
            bytes,
            stall_ns: self.shared.sum(|progress| &progress.stall_ns),
            outstanding: self.shared.sum(|progress| &progress.in_flight),
            recent: self.recent,
        }
    }
}

impl Reading {
    fn since(&self, before: &Reading) -> Recent {
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
            counts.iter().position(reaches).map_or(0, longest_of)
        };
        let (p50_ns, p99_ns, max_ns) = match all {
            0 => (0, 0, 0),
            _ => (percentile(0.5), percentile(0.99), percentile(1.0)),
        };
        Recent {
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
            let range = range_of(latency_ns);
            assert!(latency_ns <= longest_of(range), "{latency_ns}");
            assert!(range == 0 || latency_ns > longest_of(range - 1), "{latency_ns}");
            assert!(longest_of(range) as f64 <= latency_ns as f64 * 1.125 + 1.0);
        }
        assert_eq!(range_of(u64::MAX), RANGES - 1);
    }

    #[test]
    fn the_recent_percentiles_are_those_of_the_last_reading() {
        let reading = |at_ns, slow: u64| {
            let mut latencies = vec![0; RANGES];
            latencies[range_of(1_000)] = 98;
            latencies[range_of(1_000_000)] = slow;
            Reading { at_ns, ios: 98 + slow, bytes: 0, latencies }
        };
        let nothing = Reading { at_ns: 0, ios: 0, bytes: 0, latencies: vec![0; RANGES] };
        let recent = reading(1_000, 2).since(&nothing);
        assert!((1_000..1_130).contains(&recent.p50_ns) && recent.p99_ns >= 1_000_000);
        let recent = reading(2_000, 3).since(&reading(1_000, 2));
        assert!(recent.ios == 1 && recent.p50_ns >= 1_000_000);
    }
}
