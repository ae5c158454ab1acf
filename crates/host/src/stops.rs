//! Stops of this process: time in which the kernel let it run no thread although one was due. By a signal (`SIGSTOP`), a
//! debugger, a frozen control group, or a hypervisor that paused the machine.
//!
//! ```text
//! a thread sleeps until it is due, and wakes late:
//!     late = time in the queue of a processor (run delay: other programs were busy) + time stopped
//! schedstat counts the run delay of each thread, and no time in which it was stopped
//! ```
//!
//! A suspended machine is no stop: CLOCK_MONOTONIC stands still meanwhile, and CLOCK_BOOTTIME does not.

use crate::clock::{monotonic_ns, suspended_ns};
use std::fs;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

/// A thread that wakes later by less than this was not stopped: timers, interrupts and the kernel's own work delay it too.
const LATE_NS_MIN: u64 = 40_000_000;
/// Time between two samples of a [`StopMeter`]: 50 wakes a second, 0.02 % of a processor.
const PAUSE: Duration = Duration::from_millis(20);
/// Stops that are kept one by one; those after are added to the last one.
const STOPS_MAX: usize = 4096;
/// How long a reader waits for the sample that is overdue: the meter's thread may be in the queue of a processor.
const SETTLE_MAX: Duration = Duration::from_millis(200);

/// A sleep of the calling thread that ends at a known time, to see afterwards how long the process was stopped in it.
#[derive(Clone, Copy, Debug)]
pub struct TimedSleep {
    due_ns: u64,
    run_delay_ns: Option<u64>,
}

impl TimedSleep {
    /// A sleep that begins now and is to end after `time`.
    pub fn begin(time: Duration) -> TimedSleep {
        // Before the clock is read: a wait for a processor between the two must not count as a stop.
        let run_delay_ns = run_delay_ns();
        let due_ns = monotonic_ns().saturating_add(u64::try_from(time.as_nanos()).unwrap_or(u64::MAX));
        TimedSleep { due_ns, run_delay_ns }
    }

    /// Nanoseconds that the process was stopped since the sleep was to end; 0 where it woke in time, and where the kernel does not
    /// count the run delay.
    pub fn stopped_ns(self) -> u64 {
        let late_ns = monotonic_ns().saturating_sub(self.due_ns);
        if late_ns < LATE_NS_MIN {
            return 0;
        }
        let Some((before, now)) = self.run_delay_ns.zip(run_delay_ns()) else { return 0 };
        let stopped_ns = late_ns.saturating_sub(now.saturating_sub(before));
        if stopped_ns < LATE_NS_MIN { 0 } else { stopped_ns }
    }
}

/// Time that the calling thread waited for a processor since it began: the second number of schedstat.
fn run_delay_ns() -> Option<u64> {
    fs::read_to_string("/proc/thread-self/schedstat").ok()?.split_ascii_whitespace().nth(1)?.parse().ok()
}

/// Measures when this process was stopped, by a thread that only sleeps, until it is dropped.
#[derive(Debug)]
pub struct StopMeter {
    seen: Arc<Seen>,
    /// `None` where no thread could be started: then no stop is seen.
    thread: Option<JoinHandle<()>>,
}

#[derive(Debug, Default)]
struct Seen {
    /// Beginning and end on the monotonic clock, in their order.
    stops: Mutex<Vec<(u64, u64)>>,
    /// When the thread took its last sample.
    sampled_ns: AtomicU64,
    is_over: AtomicBool,
}

impl StopMeter {
    /// Begins to measure. The thread has the signal mask of the caller.
    pub fn start() -> StopMeter {
        let seen = Arc::new(Seen::default());
        seen.sampled_ns.store(monotonic_ns(), Relaxed);
        let of_thread = seen.clone();
        let thread = std::thread::Builder::new().name("stops".into()).spawn(move || of_thread.sample());
        StopMeter { seen, thread: thread.ok() }
    }

    /// Nanoseconds between two times of the monotonic clock in which the process was stopped.
    pub fn stopped_ns(&self, from_ns: u64, until_ns: u64) -> u64 {
        self.settle();
        let stops = self.seen.stops.lock().unwrap_or_else(PoisonError::into_inner);
        stops.iter().map(|(began, ended)| (*ended).min(until_ns).saturating_sub((*began).max(from_ns))).sum()
    }

    /// Waits for the sample after a stop that has just ended.
    fn settle(&self) {
        let now_ns = monotonic_ns();
        let is_overdue = || {
            let sampled_ns = self.seen.sampled_ns.load(Relaxed);
            sampled_ns < now_ns && now_ns - sampled_ns > PAUSE.as_nanos() as u64 + LATE_NS_MIN
        };
        let until_ns = now_ns + SETTLE_MAX.as_nanos() as u64;
        while self.thread.is_some() && is_overdue() && monotonic_ns() < until_ns {
            std::thread::sleep(Duration::from_millis(1));
        }
    }
}

impl Drop for StopMeter {
    fn drop(&mut self) {
        self.seen.is_over.store(true, Relaxed);
        if let Some(thread) = self.thread.take() {
            thread.thread().unpark();
            // It cannot panic but by a fault of the allocator.
            let _ = thread.join();
        }
    }
}

impl Seen {
    fn sample(&self) {
        while !self.is_over.load(Relaxed) {
            let sleep = TimedSleep::begin(PAUSE);
            std::thread::park_timeout(PAUSE);
            let stopped_ns = sleep.stopped_ns();
            let now_ns = monotonic_ns();
            if stopped_ns > 0 {
                self.add(now_ns - stopped_ns, now_ns);
            }
            self.sampled_ns.store(now_ns, Relaxed);
        }
    }

    fn add(&self, began_ns: u64, ended_ns: u64) {
        let mut stops = self.stops.lock().unwrap_or_else(PoisonError::into_inner);
        let is_full = stops.len() >= STOPS_MAX;
        match stops.last_mut() {
            Some(last) if is_full => last.1 += ended_ns - began_ns,
            _ => stops.push((began_ns, ended_ns)),
        }
    }
}

/// Nanoseconds that the machine was suspended between a reading of [`suspended_ns`] and now.
pub fn suspended_since(earlier_ns: u64) -> u64 {
    /// Bound of a real suspension, nanoseconds: the two clocks are read sequentially.
    const SUSPENDED_NS_MIN: u64 = 1_000_000;
    let suspended_ns = suspended_ns().saturating_sub(earlier_ns);
    if suspended_ns < SUSPENDED_NS_MIN { 0 } else { suspended_ns }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_part_of_a_stop_within_the_time_counts() {
        let meter = StopMeter { seen: Arc::default(), thread: None };
        meter.seen.add(1_000, 4_000);
        meter.seen.add(9_000, 9_500);
        assert_eq!(meter.stopped_ns(0, u64::MAX), 3_500);
        assert_eq!(meter.stopped_ns(2_000, 9_100), 2_100);
        assert_eq!(meter.stopped_ns(4_000, 9_000), 0);
    }

    #[test]
    fn more_stops_than_are_kept_are_added_to_the_last() {
        let meter = StopMeter { seen: Arc::default(), thread: None };
        let times = (0..STOPS_MAX as u64 + 10).map(|at| at * 100);
        times.for_each(|began| meter.seen.add(began, began + 10));
        assert_eq!(meter.seen.stops.lock().unwrap().len(), STOPS_MAX);
        assert_eq!(meter.stopped_ns(0, u64::MAX), 10 * (STOPS_MAX as u64 + 10));
    }

    /// The work of this thread delays the meter's at most by the time in the queue of a processor.
    #[test]
    fn a_busy_process_was_not_stopped_and_its_meter_ends_at_once() {
        let meter = StopMeter::start();
        let began_ns = monotonic_ns();
        while monotonic_ns() - began_ns < 150_000_000 {}
        let ended_ns = monotonic_ns();
        // A hypervisor may have taken the processor for a moment.
        assert!(meter.stopped_ns(began_ns, ended_ns) < 75_000_000);
        drop(meter);
        assert!(monotonic_ns() - ended_ns < 100_000_000 + SETTLE_MAX.as_nanos() as u64);
    }

    #[test]
    fn a_sleep_that_ends_in_time_had_no_stop() {
        let sleep = TimedSleep::begin(Duration::from_millis(5));
        std::thread::sleep(Duration::from_millis(5));
        assert_eq!(sleep.stopped_ns(), 0);
        assert_eq!(suspended_since(suspended_ns()), 0);
    }
}
