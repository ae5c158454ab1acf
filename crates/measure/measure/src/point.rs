use crate::{Go, MeasureError, Plan, Progress};
use capability::{Point, ThroughputSlices};
use load::{Live, LoadError, Next};
use statistics::poisson_half_width;
use std::time::{Duration, Instant};
use storage::Region;
use workload::{Backend, RunLength, RunResult, Shape, Workload};

/// The user ended the measurement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stopped;

/// Runs points one after the other on one region.
pub struct PointRun<'a> {
    region: &'a Region,
    plan: &'a Plan,
    began: Instant,
    watch: &'a mut dyn FnMut(&Progress) -> Go,
    /// Load threads: more than one once a single one was too busy to be trusted.
    threads: u32,
    /// Set by the first point.
    pub backend: Option<Backend>,
    /// Time that bursty points took beyond theirs; the plan ends so much later.
    pub extra: Duration,
}

/// From this share of its core on, a load thread may be what limits; another one is added.
const BUSY_MAX: f64 = 0.75;
/// The shortest time that a point waits for steadiness, and measures.
const WARM_UP_MIN: Duration = Duration::from_millis(100);
/// At least this share of a point's time is measured, steady or not.
const MEASURED_SHARE: f64 = 0.6;
/// A point whose interval is wider than this at the end of its time says too little to end there: bursts
/// (a token bucket's refills) need many of their periods ...
const COARSE: f64 = 0.06;
/// ... up to this long ...
const EXTENDED: Duration = Duration::from_millis(2_500);
/// ... and for all points of a plan together no more than this beyond its time.
const EXTRA_MAX: Duration = Duration::from_secs(14);
/// The shortest time that a point is given, whatever the plan has left.
pub const POINT_TIME_MIN: Duration = Duration::from_millis(400);

impl<'a> PointRun<'a> {
    /// Points on a region, by a plan that began at `began`.
    pub fn new(
        region: &'a Region,
        plan: &'a Plan,
        began: Instant,
        watch: &'a mut dyn FnMut(&Progress) -> Go,
    ) -> Self {
        PointRun { region, plan, began, watch, threads: 1, backend: None, extra: Duration::ZERO }
    }

    /// One point of an empty file that grows, with one outstanding.
    pub fn append(
        &mut self,
        log: &Region,
        shape: &Shape,
        time_max: Duration,
    ) -> Result<(Point, Option<Stopped>), MeasureError> {
        // A log that was grown before would be written over, which costs less.
        let start = |error| LoadError::Start { path: log.path.display().to_string(), error };
        log.file.set_len(0).map_err(start)?;
        let (result, half_width, steady) = self.run(log, shape, 1, 1, time_max)?;
        Ok((Point::new(&result, half_width, steady), result.interrupted.then_some(Stopped)))
    }

    /// Time until the plan's end.
    pub fn time_left(&self) -> Duration {
        (self.plan.time_max + self.extra).saturating_sub(self.began.elapsed())
    }

    /// One point: steady, then precise, then done; or out of time.
    pub fn point(
        &mut self,
        shape: &Shape,
        outstanding: u32,
        time_max: Duration,
    ) -> Result<(Point, Option<Stopped>), MeasureError> {
        let time_max = time_max.max(POINT_TIME_MIN);
        let cores = std::thread::available_parallelism().map_or(1, |cores| cores.get() as u32);
        loop {
            // Every thread keeps the same number outstanding, so that N is exactly what was asked for.
            let threads =
                (1..=self.threads.min(outstanding)).rev().find(|it| outstanding.is_multiple_of(*it));
            let threads = threads.unwrap_or(1);
            let began = Instant::now();
            let (result, half_width, steady) =
                self.run(self.region, shape, outstanding, threads, time_max)?;
            self.extra += began.elapsed().saturating_sub(time_max + Duration::from_millis(100));
            let stopped = result.interrupted.then_some(Stopped);
            let busy = result.thread_busy_max() >= BUSY_MAX;
            if busy && stopped.is_none() && threads == self.threads && threads < cores.min(outstanding) {
                self.threads = (threads * 2).min(cores);
                continue;
            }
            self.backend = Some(result.backend);
            return Ok((Point::new(&result, half_width, steady), stopped));
        }
    }

    fn run(
        &mut self,
        region: &Region,
        shape: &Shape,
        outstanding: u32,
        threads: u32,
        time_max: Duration,
    ) -> Result<(RunResult, f64, bool), MeasureError> {
        let workload = Workload {
            outstanding: outstanding / threads,
            threads,
            seed: self.plan.seed.wrapping_add(u64::from(outstanding)),
            ..Workload::from(*shape)
        };
        let warm_up_max = time_max.mul_f64(1.0 - MEASURED_SHARE).max(WARM_UP_MIN);
        let length = RunLength {
            warm_up: warm_up_max,
            duration: time_max.max(EXTENDED),
            ios_max: None,
            ..RunLength::default()
        };
        let may_extend = self.extra < EXTRA_MAX;
        let time_end = self.plan.time_max + self.extra;
        let mut slices = ThroughputSlices::default();
        let mut was_steady = false;
        let mut measuring = false;
        let (plan, began) = (self.plan, self.began);
        let watch = &mut *self.watch;
        let mut each = |live: &Live| {
            let iops = live.ios as f64 / live.elapsed.as_secs_f64().max(1e-3);
            let elapsed = began.elapsed();
            let progress = Progress {
                doing: format!("{shape}, {outstanding} outstanding"),
                elapsed,
                left: time_end.saturating_sub(elapsed),
                iops,
            };
            if watch(&progress) == Go::Stop {
                return Next::Interrupt;
            }
            if live.measuring && !measuring {
                measuring = true;
                was_steady |= slices.is_steady();
                slices.restart();
            }
            let closed = slices.record(live.elapsed, live.ios);
            if !measuring {
                return if closed && slices.is_steady() { Next::Measure } else { Next::Continue };
            }
            let interval = slices.mean_interval();
            let precise = interval.half_width.is_some_and(|half| half <= plan.precision * interval.mean);
            let coarse = interval.half_width.is_none_or(|half| half > COARSE * interval.mean);
            let extended = if may_extend { EXTENDED } else { time_max };
            let out_of_time = live.elapsed >= time_max && (!coarse || live.elapsed >= extended);
            if (closed && precise && slices.is_steady()) || out_of_time {
                Next::Enough
            } else {
                Next::Continue
            }
        };
        let result = load::run(region, &workload, &length, &mut each)?;
        // With too few slices for an interval the count itself bounds it.
        let half_width = slices.mean_interval().half_width;
        let half_width = half_width.unwrap_or_else(|| poisson_half_width(result.iops(), result.ios()));
        Ok((result, half_width, was_steady || slices.is_steady()))
    }
}
