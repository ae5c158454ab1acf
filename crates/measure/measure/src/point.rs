use crate::{MeasureError, MeasureProgress, Plan};
use capability::{Point, ThroughputSlices};
use load::{LiveStats, LoadError, RunControl, RunStage};
use statistics::poisson_half_width;
use std::ops::ControlFlow;
use std::time::{Duration, Instant};
use storage::Region;
use workload::{Backend, RunLength, RunResult, Shape, TargetChange, Workload};

/// Measures points sequentially on one region.
pub struct PointRun<'a> {
    region: &'a Region,
    plan: &'a Plan,
    pass: Pass,
    began: Instant,
    watch: &'a mut dyn FnMut(&MeasureProgress) -> ControlFlow<()>,
    /// State that one pass leaves to the next.
    pub carried: Carried,
    /// The user ended the measurement.
    pub stopped: bool,
}

/// Time that points of one pass may take, and how they differ from those of another.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Pass {
    /// Time of a point that is extended.
    pub extended: Duration,
    /// Most time by which the points of the measurement are extended in total.
    pub extra_max: Duration,
    /// Added to the plan's seed: a pass that read the same blocks again might read them from a cache.
    pub seed: u64,
}

/// Knowledge from the points so far.
#[derive(Clone, Debug, PartialEq)]
pub struct Carried {
    /// Time of the passes before.
    pub spent: Duration,
    /// Load threads: more than one after a single one was too busy.
    pub threads: u32,
    /// Set by the first point.
    pub backend: Option<Backend>,
    /// Time that bursty points took beyond theirs: the plan ends that much later.
    pub extra: Duration,
    /// Time that this program was stopped, and the points that were measured again for that.
    pub stopped: Stopped,
    /// Changes of the target by other programs, each once.
    pub changes: Vec<TargetChange>,
}

/// Stops of this program while it measured.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Stopped {
    pub ns: u64,
    pub points_again: u32,
}

impl Stopped {
    /// A sentence for the reader of the figures; `None` where there was no stop.
    pub fn remark(self) -> Option<String> {
        let again = match self.points_again {
            0 => "too shortly to count".to_owned(),
            1 => "the point of that time was measured again".to_owned(),
            POINTS_AGAIN_MAX => {
                format!("{POINTS_AGAIN_MAX} points were measured again, and later ones may be too slow")
            }
            points => format!("the {points} points of that time were measured again"),
        };
        let seconds = self.ns as f64 / 1e9;
        (self.ns > 0)
            .then(|| format!("the program was stopped for {seconds:.1} s during the measurement: {again}"))
    }
}

impl Default for Carried {
    fn default() -> Carried {
        Carried {
            spent: Duration::ZERO,
            threads: 1,
            backend: None,
            extra: Duration::ZERO,
            stopped: Stopped::default(),
            changes: Vec::new(),
        }
    }
}

impl Pass {
    /// The points that decide a first verdict.
    pub const FIRST: Pass =
        Pass { extended: Duration::from_millis(1_000), extra_max: Duration::from_secs(5), seed: 1 << 32 };
    /// All points of the plan.
    pub const WHOLE: Pass =
        Pass { extended: Duration::from_millis(2_500), extra_max: Duration::from_secs(14), seed: 0 };
}

/// A load thread that uses a larger share of its core may be the limit: another one is added.
const BUSY_MAX: f64 = 0.75;
/// Shortest warm-up of a point.
const WARM_UP_MIN: Duration = Duration::from_millis(100);
/// Share of a point's time that is measured at least, steady or not.
const MEASURED_SHARE: f64 = 0.6;
/// A point whose interval is wider at the end of its time is extended: bursts (a token bucket's refills) need many of
/// their periods.
const COARSE: f64 = 0.06;
/// Points of a measurement that are measured again because the program was stopped meanwhile: one that is stopped all the time would
/// measure for ever.
const POINTS_AGAIN_MAX: u32 = 5;
/// Shortest time of a point, whatever the plan has left.
pub const POINT_TIME_MIN: Duration = Duration::from_millis(400);

impl<'a> PointRun<'a> {
    /// Points of a pass that begins now, after what was `carried` from the one before.
    pub fn new(
        region: &'a Region,
        plan: &'a Plan,
        pass: Pass,
        carried: Carried,
        watch: &'a mut dyn FnMut(&MeasureProgress) -> ControlFlow<()>,
    ) -> Self {
        PointRun { region, plan, pass, began: Instant::now(), watch, carried, stopped: false }
    }

    /// Ends the pass.
    pub fn end(self) -> Carried {
        Carried { spent: self.elapsed(), ..self.carried }
    }

    /// Time of all passes.
    fn elapsed(&self) -> Duration {
        self.carried.spent + self.began.elapsed()
    }

    /// One point of appends to an empty file, with one outstanding.
    pub fn append(&mut self, log: &Region, shape: &Shape, time_max: Duration) -> Result<Point, MeasureError> {
        let start = |error| LoadError::Start { path: log.path.display().to_string(), error };
        loop {
            // Truncated, since overwriting costs less than appending.
            log.file.set_len(0).map_err(start)?;
            let began = Instant::now();
            let (result, half_width, steady) = self.run(log, shape, 1, 1, time_max)?;
            if !self.is_measured_again(&result, began.elapsed()) {
                return Ok(Point::new(&result, half_width, steady));
            }
        }
    }

    /// Keeps what happened during a run; returns whether the program was stopped in it, so that the point is measured again.
    fn is_measured_again(&mut self, result: &RunResult, took: Duration) -> bool {
        let carried = &mut self.carried;
        carried.stopped.ns = carried.stopped.ns.saturating_add(result.stopped_ns + result.suspended_ns);
        for change in &result.target_changes {
            if !carried.changes.contains(change) {
                carried.changes.push(change.clone());
            }
        }
        let again = result.was_stopped() && !self.stopped && carried.stopped.points_again < POINTS_AGAIN_MAX;
        if again {
            carried.stopped.points_again += 1;
            carried.extra += took;
        }
        again
    }

    /// Time until the plan's end.
    pub fn time_left(&self) -> Duration {
        (self.plan.time_max + self.carried.extra).saturating_sub(self.elapsed())
    }

    /// One point: runs until it is steady and then precise, or out of time.
    pub fn point(
        &mut self,
        shape: &Shape,
        outstanding: u32,
        time_max: Duration,
    ) -> Result<Point, MeasureError> {
        let time_max = time_max.max(POINT_TIME_MIN);
        let cores = std::thread::available_parallelism().map_or(1, |cores| cores.get() as u32);
        loop {
            // Every thread keeps the same number outstanding, so that N is exact.
            let threads =
                (1..=self.carried.threads.min(outstanding)).rev().find(|it| outstanding.is_multiple_of(*it));
            let threads = threads.unwrap_or(1);
            let began = Instant::now();
            let (result, half_width, steady) =
                self.run(self.region, shape, outstanding, threads, time_max)?;
            if self.is_measured_again(&result, began.elapsed()) {
                continue;
            }
            self.carried.extra += began.elapsed().saturating_sub(time_max + Duration::from_millis(100));
            let busy = result.thread_busy_max() >= BUSY_MAX;
            let most = threads == self.carried.threads;
            if busy && !self.stopped && most && threads < cores.min(outstanding) {
                self.carried.threads = (threads * 2).min(cores);
                continue;
            }
            self.carried.backend = Some(result.backend);
            return Ok(Point::new(&result, half_width, steady));
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
            seed: self.plan.seed.wrapping_add(self.pass.seed).wrapping_add(u64::from(outstanding)),
            ..Workload::from(*shape)
        };
        let warm_up_max = time_max.mul_f64(1.0 - MEASURED_SHARE).max(WARM_UP_MIN);
        let length = RunLength {
            warm_up: warm_up_max,
            duration: time_max.max(self.pass.extended),
            ios_max: None,
            ..RunLength::default()
        };
        let extended = if self.carried.extra < self.pass.extra_max { self.pass.extended } else { time_max };
        let time_end = self.plan.time_max + self.carried.extra;
        let mut slices = ThroughputSlices::default();
        let (mut was_steady, mut measuring) = (false, false);
        let (plan, spent, began) = (self.plan, self.carried.spent, self.began);
        let watch = &mut *self.watch;
        let mut each = |live: &LiveStats| {
            let iops = live.ios as f64 / live.elapsed.as_secs_f64().max(1e-3);
            let elapsed = spent + began.elapsed();
            let progress = MeasureProgress {
                doing: format!("{shape}, {outstanding} outstanding"),
                elapsed,
                left: time_end.saturating_sub(elapsed),
                iops,
            };
            if watch(&progress).is_break() {
                return RunControl::Interrupt;
            }
            if live.stage == RunStage::Measuring && !measuring {
                measuring = true;
                was_steady |= slices.is_steady();
                slices.restart();
            }
            let closed = slices.record(live.elapsed, live.ios);
            if !measuring {
                return if closed && slices.is_steady() {
                    RunControl::EndWarmUp
                } else {
                    RunControl::Continue
                };
            }
            let interval = slices.mean_interval();
            let precise = interval.half_width.is_some_and(|half| half <= plan.precision * interval.mean);
            let coarse = interval.half_width.is_none_or(|half| half > COARSE * interval.mean);
            let out_of_time = live.elapsed >= time_max && (!coarse || live.elapsed >= extended);
            if (closed && precise && slices.is_steady()) || out_of_time {
                RunControl::Finish
            } else {
                RunControl::Continue
            }
        };
        let result = load::run(region, &workload, &length, &mut each)?;
        self.stopped |= result.interrupted;
        // With too few slices for an interval the count itself bounds it.
        let half_width = slices.mean_interval().half_width;
        let half_width = half_width.unwrap_or_else(|| poisson_half_width(result.iops(), result.ios()));
        Ok((result, half_width, was_steady || slices.is_steady()))
    }
}
