//! When a burst must stop: pure, from what was counted until now.

use serde::{Deserialize, Serialize};
use std::collections::VecDeque;
use std::fmt;
use std::time::Duration;

/// Latencies above which no load runs beside what others do.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Guard {
    /// Of reads, those of the load included, nanoseconds.
    pub read_ns: Option<f64>,
    /// Of writes, nanoseconds.
    pub write_ns: Option<f64>,
}

/// I/Os of a device and their times, summed.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct DeviceTotals {
    /// Completed reads.
    pub reads: u64,
    /// Completed writes.
    pub writes: u64,
    /// Bytes of both.
    pub bytes: u64,
    /// Time of the reads, nanoseconds.
    pub read_ns: u64,
    /// Time of the writes, nanoseconds.
    pub write_ns: u64,
}

/// Counts from the beginning of a burst until a moment in it.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Reading {
    /// Since the burst began.
    pub at: Duration,
    /// Reads of the load that completed.
    pub own_ios: u64,
    /// Their time, nanoseconds.
    pub own_ns: u64,
    /// Reads of the load in flight.
    pub own_outstanding: u64,
    /// Everybody's I/Os at the device; `None` where it counts none.
    pub device: Option<DeviceTotals>,
}

/// Figure that exceeded the guard.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Tripped {
    /// Mean latency of the load's reads, nanoseconds.
    OwnReads(f64),
    /// Time in which no read of the load completed, nanoseconds.
    NoCompletion(f64),
    /// Mean latency of the device's reads, nanoseconds.
    DeviceReads(f64),
    /// Mean latency of the device's writes, nanoseconds.
    DeviceWrites(f64),
}

/// Latencies are means over this time: shorter, and one slow I/O ends a burst; longer, and the load goes on too long.
const WINDOW: Duration = Duration::from_millis(100);
/// A mean over a shorter time than this says nothing yet.
const WINDOW_MIN: Duration = Duration::from_millis(40);
/// I/Os of a device behind a mean: it counts time in whole milliseconds.
const DEVICE_IOS_MIN: u64 = 5;

/// Watches the readings of one burst.
#[derive(Clone, Debug)]
pub struct GuardWatch {
    guard: Guard,
    readings: VecDeque<Reading>,
    /// When a completion was noticed last.
    completed_at: Duration,
    completed: u64,
}

impl GuardWatch {
    /// For a burst that begins now.
    pub fn new(guard: Guard, device: Option<DeviceTotals>) -> GuardWatch {
        let first = Reading { device, ..Reading::default() };
        GuardWatch { guard, readings: VecDeque::from([first]), completed_at: Duration::ZERO, completed: 0 }
    }

    /// Adds the newest reading. Returns what is over the guard now.
    pub fn add(&mut self, now: Reading) -> Option<Tripped> {
        if now.own_ios > self.completed || now.own_outstanding == 0 {
            (self.completed, self.completed_at) = (now.own_ios, now.at);
        }
        self.readings.push_back(now);
        while self.readings.len() > 2 && now.at.saturating_sub(self.readings[1].at) >= WINDOW {
            self.readings.pop_front();
        }
        let read_ns = self.guard.read_ns.unwrap_or(f64::INFINITY);
        let then = self.readings[0];
        if now.at.saturating_sub(then.at) < WINDOW_MIN {
            return None;
        }
        // Reads in flight count with the time that they take already: a device that serves in bursts (a throttle's slices)
        // is as fast as it is on average, and one that hangs is noticed though nothing completes.
        let stuck_ns = now.at.saturating_sub(self.completed_at).as_nanos() as u64;
        let (ios, own_ns) = (now.own_ios - then.own_ios, now.own_ns - then.own_ns);
        let in_flight_ns = now.own_outstanding * stuck_ns;
        let completed = mean_ns(ios, own_ns, 1);
        let with_in_flight = mean_ns(ios + now.own_outstanding, own_ns + in_flight_ns, 1);
        let own_ns = completed.into_iter().chain(with_in_flight).fold(0.0, f64::max);
        if own_ns > read_ns {
            return Some(if ios > 0 { Tripped::OwnReads(own_ns) } else { Tripped::NoCompletion(own_ns) });
        }
        let (now, then) = (now.device?, then.device?);
        let reads = mean_ns(now.reads - then.reads, now.read_ns - then.read_ns, DEVICE_IOS_MIN);
        if let Some(ns) = reads.filter(|ns| *ns > read_ns) {
            return Some(Tripped::DeviceReads(ns));
        }
        let write_ns = self.guard.write_ns.unwrap_or(f64::INFINITY);
        let writes = mean_ns(now.writes - then.writes, now.write_ns - then.write_ns, DEVICE_IOS_MIN);
        writes.filter(|ns| *ns > write_ns).map(Tripped::DeviceWrites)
    }
}

fn mean_ns(ios: u64, ns: u64, least: u64) -> Option<f64> {
    (ios >= least).then(|| ns as f64 / ios as f64)
}

impl fmt::Display for Tripped {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (what, ns) = match self {
            Tripped::OwnReads(ns) => ("reads of the measurement took", ns),
            Tripped::NoCompletion(ns) => ("no read of the measurement completed for", ns),
            Tripped::DeviceReads(ns) => ("the device's reads took", ns),
            Tripped::DeviceWrites(ns) => ("the device's writes took", ns),
        };
        write!(f, "{what} {}", workload::format_ns(*ns))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TICK_MS: u64 = 20;

    /// When the guard stops a load whose reads take `before_ms`, and `after_ms` from `rise_ms` on.
    fn stopped_at(before_ms: u64, after_ms: u64, rise_ms: u64, outstanding: u64) -> Option<u64> {
        let guard = Guard { read_ns: Some(10e6), write_ns: None };
        let mut watch = GuardWatch::new(guard, None);
        let mut now = Reading { own_outstanding: outstanding, ..Reading::default() };
        // Each place of the queue holds a read that ends after the latency of the moment at which it began.
        let mut ends = vec![(before_ms, before_ms); outstanding as usize];
        (1..2_000_u64).find(|ms| {
            let latency = if *ms < rise_ms { before_ms } else { after_ms };
            for (end, took) in &mut ends {
                if *end == *ms {
                    (now.own_ios, now.own_ns) = (now.own_ios + 1, now.own_ns + *took * 1_000_000);
                    (*end, *took) = (*ms + latency, latency);
                }
            }
            now.at = Duration::from_millis(*ms);
            ms.is_multiple_of(TICK_MS) && watch.add(now).is_some()
        })
    }

    #[test]
    fn a_latency_over_the_guard_stops_the_load_within_200_ms() {
        for outstanding in [1, 4, 64] {
            for (before_ms, after_ms) in [(1, 11), (5, 15), (9, 12), (2, 100), (5, 100_000)] {
                let stopped = stopped_at(before_ms, after_ms, 500, outstanding);
                let stopped = stopped.unwrap_or_else(|| panic!("{before_ms} {after_ms} never"));
                assert!((500..=700).contains(&stopped), "{outstanding} {before_ms} {after_ms}: {stopped} ms");
            }
        }
    }

    #[test]
    fn a_latency_below_the_guard_never_stops_it() {
        assert_eq!(stopped_at(1, 9, 500, 16), None);
    }

    #[test]
    fn a_throttle_that_serves_in_slices_is_as_fast_as_it_is_on_average() {
        let mut watch = GuardWatch::new(Guard { read_ns: Some(10e6), write_ns: None }, None);
        for ms in (20..2_000).step_by(20) {
            // 80 reads at the beginning of each tenth of a second, one at a time.
            let own_ios = 80 * (ms / 100 + 1);
            let own_ns = own_ios * 1_250_000;
            let at = Duration::from_millis(ms);
            let now = Reading { at, own_ios, own_ns, own_outstanding: 1, ..Reading::default() };
            assert_eq!(watch.add(now), None, "{ms}");
        }
    }

    #[test]
    fn a_device_that_is_slow_for_others_stops_it_too() {
        let guard = Guard { read_ns: Some(10e6), write_ns: Some(20e6) };
        let device = |reads, read_ms: u64, writes, write_ms: u64| {
            let (read_ns, write_ns) = (read_ms * 1_000_000, write_ms * 1_000_000);
            Some(DeviceTotals { reads, writes, bytes: 0, read_ns, write_ns })
        };
        let reading = |ms, device| Reading { at: Duration::from_millis(ms), device, ..Reading::default() };
        let mut watch = GuardWatch::new(guard, device(7, 7, 7, 7));
        assert_eq!(watch.add(reading(60, device(17, 87, 17, 187))), None);
        let slow = watch.add(reading(120, device(37, 387, 17, 187)));
        assert!(matches!(slow, Some(Tripped::DeviceReads(ns)) if ns > 10e6), "{slow:?}");
        let mut watch = GuardWatch::new(guard, device(0, 0, 0, 0));
        let slow = watch.add(reading(60, device(0, 0, 10, 210)));
        assert_eq!(slow, Some(Tripped::DeviceWrites(21e6)));
        let text = slow.unwrap().to_string();
        assert!(text.starts_with("the device's writes took 21"), "{text}");
        // Too few to tell.
        let mut watch = GuardWatch::new(guard, device(0, 0, 0, 0));
        assert_eq!(watch.add(reading(60, device(4, 400, 0, 0))), None);
    }

    #[test]
    fn idle_time_between_paced_reads_is_no_stall() {
        let mut watch = GuardWatch::new(Guard { read_ns: Some(10e6), write_ns: None }, None);
        for ms in (20..1_000).step_by(20) {
            let now = Reading {
                at: Duration::from_millis(ms),
                own_ios: 1,
                own_ns: 1_000_000,
                ..Reading::default()
            };
            assert_eq!(watch.add(now), None);
        }
    }
}
