//! Runs one burst: a load of reads, watched every 20 ms.

use crate::controller::{BurstEnd, BurstPlan};
use crate::device::Device;
use crate::guard::{GuardWatch, Reading, Tripped};
use crate::progress::{Burst, ByOperations};
use load::{Job, LiveStats, LoadError, RunControl, RunOptions, RunStage};
use std::ops::ControlFlow;
use std::time::{Duration, Instant};
use storage::Region;
use workload::{Access, Backend, Limit, Pattern, RunLength, RunResult, Workload};

/// A burst that ran.
pub struct RanBurst {
    /// How it ended; `None` where the user ended it.
    pub end: Option<BurstEnd>,
    /// The figure that exceeded the guard.
    pub tripped: Option<Tripped>,
    /// Seconds in which its reads were in flight.
    pub load_s: f64,
    /// How I/Os were handed over.
    pub backend: Backend,
}

/// The lowest best-effort priority: schedulers that have priorities serve others first.
const PRIORITY: u8 = 7;
/// Stretches of a burst that make its interval.
const STRETCH: Duration = Duration::from_millis(100);
/// A burst is run again this often where this program was stopped meanwhile.
const BURSTS_AGAIN_MAX: u32 = 2;
/// Up to this size, I/Os cost the same; above it, their bytes count.
const SMALL_BYTES_MAX: u32 = 16_384;

/// Runs it. `seed` differs from burst to burst.
///
/// # Errors
/// The load cannot run.
pub fn run(
    region: &Region,
    device: Option<&Device>,
    plan: &BurstPlan,
    seed: u64,
    watch: &mut dyn FnMut() -> ControlFlow<()>,
) -> Result<RanBurst, LoadError> {
    let mut load_s = 0.0;
    for again_left in (0..=BURSTS_AGAIN_MAX).rev() {
        let (ran, was_stopped) = run_once(region, device, plan, seed, watch)?;
        load_s += ran.load_s;
        if !was_stopped {
            return Ok(RanBurst { load_s, ..ran });
        }
        if again_left == 0 {
            // It says nothing of the storage.
            return Ok(RanBurst { load_s, end: Some(BurstEnd::Stopped), ..ran });
        }
    }
    unreachable!("the last burst returns")
}

/// Also returns whether this program was stopped meanwhile, so that its figures are not those of the storage.
fn run_once(
    region: &Region,
    device: Option<&Device>,
    plan: &BurstPlan,
    seed: u64,
    watch: &mut dyn FnMut() -> ControlFlow<()>,
) -> Result<(RanBurst, bool), LoadError> {
    let workload = workload(region, plan, seed);
    let length = RunLength {
        warm_up: Duration::from_secs_f64(plan.ramp_s),
        duration: Duration::from_secs_f64(plan.measured_s),
        ..RunLength::default()
    };
    let job = Job { region, workload: &workload, weight: 1, trace: None };
    let options = RunOptions { priorities: vec![Some(PRIORITY)], ..RunOptions::from(length) };
    let began = Instant::now();
    let mut guard = GuardWatch::new(plan.guard, device.and_then(Device::totals));
    let mut counted = Counted::new(plan, device);
    let (mut tripped, mut is_ended) = (None, false);
    let mut each = |live: &LiveStats| {
        let reading = Reading {
            at: live.elapsed,
            own_ios: live.ios,
            own_ns: live.stall_ns,
            own_outstanding: live.outstanding,
            device: device.and_then(Device::totals),
        };
        tripped = guard.add(reading);
        is_ended = watch().is_break();
        if tripped.is_some() || is_ended {
            return RunControl::Interrupt;
        }
        if live.stage == RunStage::Measuring {
            counted.add(reading);
        }
        RunControl::Continue
    };
    let results = load::run_jobs(&[job], &options, &mut each)?;
    let load_s = began.elapsed().as_secs_f64();
    let [result] = results.as_slice() else { unreachable!("one result for one job") };
    let was_stopped = result.was_stopped() && tripped.is_none() && !is_ended;
    let end = match (tripped, is_ended || result.interrupted) {
        (Some(_), _) => Some(BurstEnd::Stopped),
        (None, true) => None,
        (None, false) => Some(BurstEnd::Measured(Box::new(counted.burst(result)))),
    };
    Ok((RanBurst { end, tripped, load_s, backend: result.backend }, was_stopped))
}

fn workload(region: &Region, plan: &BurstPlan, seed: u64) -> Workload {
    let block = u64::from(plan.shape.block_bytes);
    // A part of the region that no burst before has read, as long as there is one: caches would serve it.
    let base_bytes = match plan.shape.pattern {
        Pattern::Random => 0,
        Pattern::Sequential => plan.offset_bytes % (region.bytes / block).max(1).saturating_mul(block),
    };
    let has_room = region.bytes - base_bytes >= 64 * block;
    Workload {
        outstanding: plan.outstanding,
        seed,
        access: Access { base_bytes: if has_room { base_bytes } else { 0 }, ..Access::default() },
        limit: Limit { iops: plan.iops_max, bytes_per_s: None },
        ..Workload::from(plan.shape)
    }
}

/// The I/Os of the measured part, the load's and those of others.
struct Counted<'a> {
    plan: &'a BurstPlan,
    device: Option<&'a Device>,
    readings: Vec<Reading>,
}

impl<'a> Counted<'a> {
    fn new(plan: &'a BurstPlan, device: Option<&'a Device>) -> Counted<'a> {
        Counted { plan, device, readings: Vec::new() }
    }

    fn add(&mut self, now: Reading) {
        self.readings.push(now);
    }

    /// Readings that end stretches: those just after reads completed again, where they complete in bursts; else each after a
    /// tenth of a second. And which of the two.
    fn ends(&self) -> (Vec<Reading>, bool) {
        let is_idle = |pair: &[Reading]| pair[0].own_ios == pair[1].own_ios && pair[1].own_outstanding > 0;
        let is_bursty = self.plan.iops_max.is_none() && self.readings.windows(2).any(is_idle);
        if is_bursty {
            let fronts =
                self.readings.windows(3).filter(|three| is_idle(&three[..2]) && !is_idle(&three[1..]));
            return (fronts.map(|three| three[2]).collect(), true);
        }
        let mut ends: Vec<Reading> = Vec::new();
        for reading in &self.readings {
            if ends.last().is_none_or(|last| reading.at.saturating_sub(last.at) >= STRETCH) {
                ends.push(*reading);
            }
        }
        (ends, false)
    }

    /// I/Os of others between two readings, in I/Os that cost as much as one of the load: by their bytes where it is large,
    /// or by their number.
    fn others(&self, from: &Reading, to: &Reading, by_operations: bool) -> f64 {
        let (Some(device), Some(before), Some(after)) = (self.device, from.device, to.device) else {
            return 0.0;
        };
        let block = self.plan.shape.block_bytes;
        let own = to.own_ios - from.own_ios;
        if by_operations || block <= SMALL_BYTES_MAX {
            let each = device.requests(u64::from(block));
            let all = (after.reads + after.writes).saturating_sub(before.reads + before.writes);
            return all.saturating_sub(own * each) as f64 / each as f64;
        }
        let own_bytes = own * u64::from(block);
        after.bytes.saturating_sub(before.bytes).saturating_sub(own_bytes) as f64 / f64::from(block)
    }

    fn burst(&self, result: &RunResult) -> Burst {
        let (ends, is_bursty) = self.ends();
        let (first, last) = match (ends.as_slice(), is_bursty) {
            ([first, .., last], true) => (*first, *last),
            _ => (
                self.readings.first().copied().unwrap_or_default(),
                self.readings.last().copied().unwrap_or_default(),
            ),
        };
        let rates = |by_operations: bool| {
            let rate = |pair: &[Reading]| {
                let own = (pair[1].own_ios - pair[0].own_ios) as f64;
                let ios = own + self.others(&pair[0], &pair[1], by_operations);
                ios / (pair[1].at - pair[0].at).as_secs_f64()
            };
            ends.windows(2).map(rate).collect()
        };
        let block = u64::from(self.plan.shape.block_bytes);
        Burst {
            seconds: last.at.saturating_sub(first.at).as_secs_f64(),
            own_ios: last.own_ios - first.own_ios,
            others_ios: self.others(&first, &last, false),
            rates: rates(false),
            by_operations: ByOperations {
                requests_each: self.device.map_or(1, |device| device.requests(block)),
                others_ios: self.others(&first, &last, true),
                rates: rates(true),
            },
            latencies: result.latency(),
            failed: result.failed(),
            client_busy: result.thread_busy_max(),
            cpu_ns_per_io: result.cpu_ns_per_io().unwrap_or(0.0),
            is_bursty,
        }
    }
}
