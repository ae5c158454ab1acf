//! When to read, how much, and when to wait: pure, a function of the time and of what was measured.
//!
//! ```text
//! a few reads far apart -> latency at rest -> bursts of 1, 2, 4, ... outstanding until throughput stops rising
//!
//! budget   own reads are in flight for a share of the time         after each burst, a pause
//! credit   others' I/O may become slower for a far smaller share   saved up before a burst that may disturb
//! guard    latency over it stops a burst                           pauses double; three times in a row end the curve
//! others   busy: near what the storage gave, or slower than usual  wait
//! ```
//!
//! A percentile stays where it is while fewer I/Os are disturbed than lie above it: with a credit of 0.25 % of the time the
//! 99th percentile of others moves to what was their 99.25th at most.

use crate::guard::Guard;
use crate::progress::{Burst, CurveEnd, Progress, ShapeProgress, Step};
use workload::Shape;

/// Limits of the load.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Limits {
    /// Share of the time in which its reads may be in flight.
    pub time_share: f64,
    /// Share of the time in which others' I/O may become slower.
    pub disturbed_share: f64,
    /// Most reads a second.
    pub iops_max: Option<f64>,
    /// Latencies that stop it; without one of reads, it follows from latency at rest.
    pub guard: Guard,
    /// A point is known once half of its 95 % interval is below this share of it.
    pub precision: f64,
    /// Most reads outstanding.
    pub outstanding_max: u32,
}

/// I/O of others, from the device's counters of about the last second without own reads.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Others {
    /// Reads and writes a second.
    pub iops: f64,
    /// Mean latency of their reads, nanoseconds; `None` with too few.
    pub read_ns: Option<f64>,
    /// The usual value of that: its median over the last minutes.
    pub usual_read_ns: Option<f64>,
    /// The mean latency of their writes.
    pub write_ns: Option<f64>,
}

/// The next step.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Next {
    /// Reads.
    Burst(BurstPlan),
    /// Nothing until this second.
    Wait {
        /// Seconds since the beginning.
        until_s: f64,
        /// Why.
        why: Waiting,
    },
    /// All is known.
    Finished,
}

/// Why nothing is read now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Waiting {
    /// The share of the time for own reads is used.
    Budget,
    /// The share of the time in which others may become slower is used.
    Credit,
    /// A guard stopped the last burst.
    Guard,
    /// Others are busy.
    Others,
}

/// One burst of reads.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct BurstPlan {
    /// Shape of each read.
    pub shape: Shape,
    /// Reads kept outstanding.
    pub outstanding: u32,
    /// Most reads a second.
    pub iops_max: Option<f64>,
    /// Seconds before it is measured: a token bucket's savings are used up, the queue is full.
    pub ramp_s: f64,
    /// Seconds that are measured.
    pub measured_s: f64,
    /// Limits at which it stops.
    pub guard: Guard,
    /// Where a sequential burst begins.
    pub offset_bytes: u64,
}

/// How a burst ended.
#[derive(Clone, Debug, PartialEq)]
pub enum BurstEnd {
    /// It was measured whole.
    Measured(Box<Burst>),
    /// The guard stopped it.
    Stopped,
}

/// Decides; holds what is known.
#[derive(Clone, Debug)]
pub struct Controller {
    limits: Limits,
    progress: Progress,
    wait_until_s: f64,
    waiting: Waiting,
    /// Seconds in which others may become slower, saved up until `credit_at_s`.
    credit_s: f64,
    credit_at_s: f64,
    /// Highest rate of all I/Os at which they waited for each other: what the storage gives, nearly.
    iops_high: f64,
    stops_in_a_row: u32,
}

/// Longer than the slice of the kernel's throttle (100 ms), whose savings it uses up.
const RAMP_S: f64 = 0.1;
/// Three slices of the kernel's throttle.
const MEASURED_S: f64 = 0.3;
/// Measured seconds where reads complete in bursts, of which only whole periods count.
const MEASURED_S_OF_BURSTS: f64 = 1.1;
/// Of slow storage, this many latencies are measured at least.
const LATENCIES_MIN: f64 = 10.0;
const MEASURED_S_MAX: f64 = 2.0;
/// The first reads: this many a second for this time, one at a time.
const FIRST_IOPS: f64 = 40.0;
const FIRST_S: f64 = 0.5;
/// Reads that take this many times their time at rest wait for each other, and so do others'.
const DISTURBED: f64 = 1.3;
/// Others that do fewer I/Os a second than this are not disturbed by anything.
const OTHERS_MIN: f64 = 1.0;
/// Credit that can be saved up, in bursts: after a quiet night no morning of disturbance.
const CREDIT_BURSTS: f64 = 2.0;
/// Bursts of a point.
const BURSTS_MIN: u32 = 2;
const BURSTS_MAX: u32 = 6;
/// Bursts in a row that the guard stopped, until the curve ends there.
const STOPS_MAX: u32 = 3;
/// Longest pause after the guard stopped a burst, seconds.
const BACK_OFF_S_MAX: f64 = 600.0;
const BACK_OFF_S: f64 = 5.0;
/// Others are busy from this share of the rate that the storage reached, or where their reads take this many
/// times the usual.
const BUSY_SHARE: f64 = 0.75;
const BUSY_LATENCY: f64 = 2.0;
/// How long to wait then, seconds.
const BUSY_WAIT_S: f64 = 5.0;
/// Without a guard of the user's, reads may take this many times their time at rest, between these bounds.
const GUARD_TIMES: f64 = 10.0;
const GUARD_NS: (f64, f64) = (20e6, 200e6);
/// Own reads at this share of the rate that is permitted are held back by it.
const AT_RATE: f64 = 0.9;

impl Controller {
    /// Goes on from what is known.
    pub fn new(limits: Limits, progress: Progress) -> Controller {
        let rates =
            progress.shapes.iter().filter(|shape| is_small(&shape.shape)).flat_map(|shape| &shape.steps);
        let iops_high = rates
            .filter(|step| step.disturbs == Some(true) && step.bursts > 0)
            .map(|step| step.iops(false))
            .fold(0.0, f64::max);
        let now_s = progress.elapsed_s;
        Controller {
            limits,
            progress,
            wait_until_s: now_s,
            waiting: Waiting::Budget,
            credit_s: 0.0,
            credit_at_s: now_s,
            iops_high,
            stops_in_a_row: 0,
        }
    }

    /// The progress so far.
    pub fn progress(&self) -> &Progress {
        &self.progress
    }

    /// Returns the next step at this second since the beginning.
    pub fn next(&mut self, now_s: f64, others: Option<&Others>) -> Next {
        self.progress.elapsed_s = now_s;
        let Some(at) = self.progress.shapes.iter().position(|shape| shape.ended.is_none()) else {
            return Next::Finished;
        };
        if now_s < self.wait_until_s {
            return Next::Wait { until_s: self.wait_until_s, why: self.waiting };
        }
        if others.is_some_and(|others| self.is_busy(others)) {
            return Next::Wait { until_s: now_s + BUSY_WAIT_S, why: Waiting::Others };
        }
        let plan = self.plan(at);
        let needed_s = plan.ramp_s + plan.measured_s;
        let shape = &self.progress.shapes[at];
        let is_watched = others.is_none_or(|others| others.iops >= OTHERS_MIN);
        if is_watched && may_disturb(shape) {
            let missing_s = needed_s - self.credit(now_s, needed_s);
            if missing_s > 1e-9 {
                let until_s = now_s + missing_s / self.limits.disturbed_share;
                return Next::Wait { until_s, why: Waiting::Credit };
            }
        }
        Next::Burst(plan)
    }

    /// Learns how a burst ended that took `load_s` seconds.
    pub fn record(&mut self, now_s: f64, load_s: f64, end: &BurstEnd, others: Option<&Others>) {
        let Some(at) = self.progress.shapes.iter().position(|shape| shape.ended.is_none()) else { return };
        self.progress.elapsed_s = now_s;
        self.progress.loaded_s += load_s;
        self.waiting = Waiting::Budget;
        let mut pause_s = load_s * (1.0 / self.limits.time_share - 1.0);
        let is_disturbing = match end {
            BurstEnd::Measured(burst) => {
                self.stops_in_a_row = 0;
                self.add(at, burst)
            }
            BurstEnd::Stopped => {
                self.progress.stops += 1;
                self.stops_in_a_row = (self.stops_in_a_row + 1).min(16);
                let back_off_s = BACK_OFF_S * f64::from(1_u32 << self.stops_in_a_row);
                pause_s = pause_s.max(back_off_s.min(BACK_OFF_S_MAX));
                self.waiting = Waiting::Guard;
                self.stop(at);
                true
            }
        };
        let others_iops = match end {
            BurstEnd::Measured(burst) => burst.others_per_s(),
            BurstEnd::Stopped => others.map_or(OTHERS_MIN, |others| others.iops),
        };
        if is_disturbing && others_iops >= OTHERS_MIN {
            self.progress.disturbed_s += load_s;
            self.credit_s = self.credit(now_s, load_s) - load_s;
            self.credit_at_s = now_s;
        }
        self.wait_until_s = now_s + pause_s;
    }

    /// Adds a burst to its step. Returns whether it made I/Os slower.
    fn add(&mut self, at: usize, burst: &Burst) -> bool {
        let (limits, most_operations) = (self.limits, self.most_operations());
        let shape = &mut self.progress.shapes[at];
        shape.next_offset_bytes += u64::from(shape.shape.block_bytes) * burst.own_ios;
        let Some(rest_ns) = shape.rest_ns else {
            shape.rest_ns = burst.latencies.percentile_ns(50.0).map(|ns| ns as f64);
            shape.steps.push(Step::new(1));
            return false;
        };
        let is_disturbing = burst.latencies.mean_ns().is_none_or(|ns| ns > DISTURBED * rest_ns);
        // A first short burst that shows it is not precise enough to count.
        let was_bursty = shape.is_bursty;
        shape.is_bursty |= burst.is_bursty;
        let Some(step) = shape.steps.last_mut() else { return is_disturbing };
        if shape.is_bursty && !was_bursty {
            step.disturbs = Some(is_disturbing);
            return is_disturbing;
        }
        step.add(burst);
        step.disturbs = Some(is_disturbing);
        if is_disturbing && is_small(&shape.shape) {
            self.iops_high = self.iops_high.max(step.iops(false));
        }
        if let Some(most) = most_operations.filter(|_| !is_small(&shape.shape)) {
            shape.compare_with_small_reads(most);
        }
        let Some(step) = shape.steps.last() else { return is_disturbing };
        let by_operations = shape.counts_operations;
        let is_precise = step.half_width(by_operations) <= limits.precision * step.iops(by_operations);
        if step.bursts < BURSTS_MIN || step.bursts < BURSTS_MAX && !is_precise {
            return is_disturbing;
        }
        let next = step.outstanding * 2;
        let is_at_rate = limits.iops_max.is_some_and(|most| step.own_iops() >= AT_RATE * most);
        shape.ended = match () {
            () if is_at_rate => Some(CurveEnd::Rate),
            () if shape.is_flat() => Some(CurveEnd::Flat),
            () if next > limits.outstanding_max => Some(CurveEnd::Outstanding),
            () => None,
        };
        if shape.ended.is_none() {
            shape.steps.push(Step::new(next));
        }
        is_disturbing
    }

    /// The rate at which the curve of small reads is flat, if it was measured to its end.
    fn most_operations(&self) -> Option<f64> {
        let is_known = |shape: &&ShapeProgress| is_small(&shape.shape) && shape.ended == Some(CurveEnd::Flat);
        let small = self.progress.shapes.iter().find(is_known)?;
        small.steps.iter().map(|step| step.iops(false)).reduce(f64::max)
    }

    /// A guard stopped a burst. Before anything is known, that says how busy others are and not what the storage gives.
    fn stop(&mut self, at: usize) {
        let shape = &mut self.progress.shapes[at];
        let Some(step) = shape.steps.last_mut() else { return };
        step.stops += 1;
        step.disturbs = Some(true);
        if step.stops < STOPS_MAX {
            return;
        }
        if step.bursts == 0 {
            shape.steps.pop();
        }
        shape.ended = Some(CurveEnd::Guard);
    }

    fn plan(&self, at: usize) -> BurstPlan {
        let shape = &self.progress.shapes[at];
        let outstanding = shape.steps.last().map_or(1, |step| step.outstanding);
        let known = shape.steps.iter().rev().find_map(|step| step.latencies.mean_ns());
        let latency_s = known.or(shape.rest_ns).unwrap_or(0.0) / 1e9;
        let least_s = if shape.is_bursty { MEASURED_S_OF_BURSTS } else { MEASURED_S };
        let measured_s = (LATENCIES_MIN * latency_s).clamp(least_s, MEASURED_S_MAX);
        let most = self.limits.iops_max;
        let (ramp_s, measured_s, iops_max) = match shape.rest_ns.is_none() {
            true => (0.0, FIRST_S, Some(most.map_or(FIRST_IOPS, |most| most.min(FIRST_IOPS)))),
            false => (RAMP_S, measured_s, most),
        };
        let guard = self.guard(shape);
        let offset_bytes = shape.next_offset_bytes;
        BurstPlan { shape: shape.shape, outstanding, iops_max, ramp_s, measured_s, guard, offset_bytes }
    }

    fn guard(&self, shape: &ShapeProgress) -> Guard {
        let (least, most) = GUARD_NS;
        let own = shape.rest_ns.map_or(most, |rest_ns| (GUARD_TIMES * rest_ns).clamp(least, most));
        Guard { read_ns: self.limits.guard.read_ns.or(Some(own)), ..self.limits.guard }
    }

    /// Credit at a second, for a burst of that length: no more than a few of them can be saved up.
    fn credit(&self, now_s: f64, burst_s: f64) -> f64 {
        let saved = self.credit_s + (now_s - self.credit_at_s) * self.limits.disturbed_share;
        saved.min(burst_s.max(CREDIT_BURSTS * (RAMP_S + MEASURED_S)))
    }

    fn is_busy(&self, others: &Others) -> bool {
        let is_over =
            |ns: Option<f64>, guard: Option<f64>| ns.zip(guard).is_some_and(|(ns, guard)| ns > guard);
        let guard = self.limits.guard;
        let slow_ns = others.usual_read_ns.map(|usual_ns| BUSY_LATENCY * usual_ns);
        is_over(others.read_ns, guard.read_ns)
            || is_over(others.write_ns, guard.write_ns)
            || is_over(others.read_ns, slow_ns)
            || self.iops_high > 0.0 && others.iops >= BUSY_SHARE * self.iops_high
    }
}

/// Whether rates of such reads are limited in operations rather than in bytes.
fn is_small(shape: &Shape) -> bool {
    shape.block_bytes <= 16_384
}

/// A step whose last burst made nothing slower does not; one at a time is too few to disturb, until it did.
fn may_disturb(shape: &ShapeProgress) -> bool {
    let Some(step) = shape.steps.last() else { return false };
    step.disturbs.unwrap_or(step.outstanding > 1)
}

#[cfg(test)]
mod tests;
