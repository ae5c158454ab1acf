use crate::chooser::ThreadIndex;
use crate::random::{Random, exponential};
use workload::{Arrival, Workload};

/// When the next I/O of one thread may, or must, be issued. Times are on the monotonic clock.
///
/// The schedule is kept in fractions of nanoseconds from its beginning, so that no rate drifts: with whole
/// microseconds a gap would be 5 % wrong at 100,000 a second.
#[derive(Clone, Debug)]
pub struct Pace {
    began_ns: u64,
    schedule: Schedule,
    rest: Option<Rest>,
}

#[derive(Clone, Debug)]
enum Schedule {
    /// Whenever a slot is free.
    Free,
    /// A closed loop with a limit: no faster than this.
    Limited { io_ns: f64, byte_ns: f64, next: f64 },
    /// At times that do not depend on the storage.
    Open { gap_ns: f64, poisson: bool, next: f64 },
    /// At the times of a trace, which the stream holds.
    Recorded { speed: f64 },
}

#[derive(Clone, Debug)]
struct Rest {
    ios: u32,
    left: u32,
    pause_ns: u64,
    until_ns: u64,
}

/// Most that a limited loop catches up after it fell behind: no long burst follows a stall.
const CATCH_UP_NS: f64 = 50e6;

impl Pace {
    /// The pace of one thread: each has an equal part of the rates, and constant schedules interleave.
    pub fn new(workload: &Workload, thread: ThreadIndex) -> Pace {
        let parts = f64::from(thread.count);
        let schedule = match workload.arrival {
            Arrival::Constant { iops } => {
                let gap_ns = 1e9 * parts / iops;
                let next = gap_ns * f64::from(thread.index) / parts;
                Schedule::Open { gap_ns, poisson: false, next }
            }
            Arrival::Poisson { iops } => {
                Schedule::Open { gap_ns: 1e9 * parts / iops, poisson: true, next: 0.0 }
            }
            Arrival::Recorded { speed } => Schedule::Recorded { speed },
            Arrival::Closed => {
                let per = |rate: Option<f64>| rate.map_or(0.0, |rate| 1e9 * parts / rate);
                let (io_ns, byte_ns) = (per(workload.limit.iops), per(workload.limit.bytes_per_s));
                match io_ns + byte_ns {
                    0.0 => Schedule::Free,
                    _ => Schedule::Limited { io_ns, byte_ns, next: 0.0 },
                }
            }
        };
        let rest = workload.burst.map(|burst| Rest {
            ios: burst.ios,
            left: burst.ios,
            pause_ns: u64::try_from(burst.pause.as_nanos()).unwrap_or(u64::MAX),
            until_ns: 0,
        });
        Pace { began_ns: 0, schedule, rest }
    }

    /// Starts the schedule.
    pub fn begin(&mut self, now_ns: u64, random: &mut Random) {
        self.began_ns = now_ns;
        if let Schedule::Open { gap_ns, poisson: true, next } = &mut self.schedule {
            *next = exponential(random) * *gap_ns;
        }
    }

    /// Whether an I/O is never delayed.
    #[inline]
    pub fn is_free(&self) -> bool {
        matches!(self.schedule, Schedule::Free) && self.rest.is_none()
    }

    /// Whether I/Os have scheduled times: an open loop.
    pub fn is_open(&self) -> bool {
        matches!(self.schedule, Schedule::Open { .. } | Schedule::Recorded { .. })
    }

    /// When the next I/O is due; for a trace, the one recorded at `recorded_ns`.
    pub fn due_ns(&self, recorded_ns: u64) -> u64 {
        let due_ns = match self.schedule {
            Schedule::Free => 0,
            Schedule::Limited { next, .. } | Schedule::Open { next, .. } => {
                self.began_ns.saturating_add(next as u64)
            }
            Schedule::Recorded { speed } => self.began_ns.saturating_add((recorded_ns as f64 / speed) as u64),
        };
        due_ns.max(self.rest.as_ref().map_or(0, |rest| rest.until_ns))
    }

    /// Issues the next I/O, of `bytes`: advances the schedule.
    pub fn advance(&mut self, now_ns: u64, bytes: u32, random: &mut Random) {
        match &mut self.schedule {
            Schedule::Free | Schedule::Recorded { .. } => {}
            Schedule::Limited { io_ns, byte_ns, next } => {
                let now = now_ns.saturating_sub(self.began_ns) as f64;
                *next = next.max(now - CATCH_UP_NS) + io_ns.max(*byte_ns * f64::from(bytes));
            }
            Schedule::Open { gap_ns, poisson, next } => {
                *next += if *poisson { exponential(random) * *gap_ns } else { *gap_ns };
            }
        }
        if let Some(rest) = &mut self.rest {
            rest.left -= 1;
            if rest.left == 0 {
                (rest.left, rest.until_ns) = (rest.ios, now_ns.saturating_add(rest.pause_ns));
            }
        }
    }

    /// Number of I/Os of an open loop that are due before `until_ns` and were not issued, and when the first of them
    /// was due.
    pub fn overdue(mut self, until_ns: u64, random: &mut Random) -> (u64, u64) {
        let first_ns = self.due_ns(0);
        let mut count = 0;
        while count < OVERDUE_MAX && self.due_ns(0) < until_ns {
            count += 1;
            self.advance(until_ns, 0, random);
        }
        (count, first_ns)
    }
}

/// Most overdue I/Os that are counted: more would take seconds.
const OVERDUE_MAX: u64 = 100_000_000;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::seeded;
    use std::time::Duration;
    use workload::{Burst, Limit, Shape};

    fn issued_within(workload: &Workload, threads: u32, time_ns: u64) -> u64 {
        let mut random = seeded(1);
        let count = |index| {
            let mut pace = Pace::new(workload, ThreadIndex { index, count: threads });
            pace.begin(5_000, &mut random);
            let mut issued = 0;
            while pace.due_ns(0) < 5_000 + time_ns {
                let due_ns = pace.due_ns(0).max(5_000);
                pace.advance(due_ns, 4096, &mut random);
                issued += 1;
            }
            issued
        };
        (0..threads).map(count).sum()
    }

    #[test]
    fn every_rate_is_met_exactly_over_all_threads() {
        for iops in [1.0, 100.0, 333.0, 10_000.0, 300_000.0, 1_700_000.0] {
            for threads in [1, 3] {
                let constant =
                    Workload { arrival: Arrival::Constant { iops }, ..Shape::random_read(4096).into() };
                let limited = Workload {
                    limit: Limit { iops: Some(iops), bytes_per_s: None },
                    ..Shape::random_read(4096).into()
                };
                for workload in [constant, limited] {
                    let seconds = 3;
                    let issued = issued_within(&workload, threads, seconds * 1_000_000_000) as f64;
                    let wanted = iops * seconds as f64;
                    assert!(
                        (issued - wanted).abs() <= f64::from(threads) + wanted * 1e-6,
                        "{issued} for {wanted}"
                    );
                }
            }
        }
    }

    #[test]
    fn poisson_arrivals_have_the_mean_and_spread_of_their_rate() {
        let workload =
            Workload { arrival: Arrival::Poisson { iops: 600_000.0 }, ..Shape::random_read(4096).into() };
        let issued = issued_within(&workload, 1, 1_000_000_000) as f64;
        // The standard deviation of a Poisson count is its root: 4 of them.
        assert!((issued - 600_000.0).abs() < 4.0 * 600_000_f64.sqrt(), "{issued}");
    }

    #[test]
    fn bytes_limit_as_ios_do() {
        let limit = Limit { iops: None, bytes_per_s: Some(40_960_000.0) };
        let workload = Workload { limit, ..Shape::random_read(4096).into() };
        assert_eq!(issued_within(&workload, 1, 1_000_000_000), 10_000);
    }

    #[test]
    fn a_limited_loop_catches_up_a_little_and_no_more() {
        let limit = Limit { iops: Some(1_000.0), bytes_per_s: None };
        let workload = Workload { limit, ..Shape::random_read(4096).into() };
        let mut random = seeded(1);
        let mut pace = Pace::new(&workload, ThreadIndex::ONLY);
        pace.begin(0, &mut random);
        let now_ns = 10_000_000_000;
        let burst = (0..).take_while(|_| {
            let due = pace.due_ns(0) <= now_ns;
            pace.advance(now_ns, 4096, &mut random);
            due
        });
        assert!((50..=52).contains(&burst.count()));
    }

    #[test]
    fn a_burst_is_followed_by_its_rest() {
        let burst = Some(Burst { ios: 3, pause: Duration::from_millis(10) });
        let workload = Workload { burst, ..Shape::random_read(4096).into() };
        assert!((300..=303).contains(&issued_within(&workload, 1, 1_000_000_000)));
    }

    #[test]
    fn what_is_overdue_is_counted_from_the_first() {
        let workload =
            Workload { arrival: Arrival::Constant { iops: 1_000.0 }, ..Shape::random_read(4096).into() };
        let mut random = seeded(1);
        let mut pace = Pace::new(&workload, ThreadIndex::ONLY);
        pace.begin(0, &mut random);
        pace.advance(0, 0, &mut random);
        assert_eq!(pace.overdue(2_000_000_000, &mut random), (1_999, 1_000_000));
    }
}
