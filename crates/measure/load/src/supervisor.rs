use crate::clock::now_ns;
use crate::job::RunControl;
use crate::live::{LiveStats, RunStage, Shared, Watcher};
use host::{CoreTimes, StopMeter, suspended_ns, suspended_since};
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;
use workload::{CoreUse, RunLength};

/// Records of a run by the supervising thread.
#[derive(Default)]
pub struct SupervisedRun {
    pub started_unix_ns: u64,
    pub interrupted: bool,
    /// Use of the cores in the measured part.
    pub cores: Vec<CoreUse>,
    /// Nanoseconds of the measured part in which this program was stopped, see [`StopMeter`].
    pub stopped_ns: u64,
    /// Nanoseconds that the machine was suspended in the measured part, which are not in its length.
    pub suspended_ns: u64,
}

/// Readings at the beginning of the measured part.
#[derive(Default)]
struct Began {
    cores: CoreTimes,
    suspended_ns: u64,
}

/// Time between two calls of the watcher.
const WATCH_INTERVAL: Duration = Duration::from_millis(20);

/// Lets the threads begin, opens and closes the measured part, and calls the watcher, until the threads have ended
/// or must end.
pub fn supervise(
    shared: &Shared,
    length: &RunLength,
    meter: &StopMeter,
    let_begin: impl FnOnce(),
    watch: &mut dyn FnMut(&LiveStats) -> RunControl,
) -> SupervisedRun {
    let warm_up_end_ns = now_ns() + length.warm_up.as_nanos() as u64;
    let pause = WATCH_INTERVAL.min(length.duration.max(Duration::from_millis(1)));
    let mut watcher = Watcher::new(shared);
    let mut run = SupervisedRun::default();
    let mut began = Began::default();
    let mut stage = RunStage::WarmUp;
    if length.warm_up.is_zero() {
        began = begin_measuring(shared, &mut run, length);
        stage = RunStage::Measuring;
    }
    // After the measured part was opened: without a warm-up, no I/O comes before it.
    let_begin();
    loop {
        std::thread::sleep(pause);
        let control = watch(&watcher.read(stage));
        if stage == RunStage::WarmUp && (now_ns() >= warm_up_end_ns || control != RunControl::Continue) {
            began = begin_measuring(shared, &mut run, length);
            stage = RunStage::Measuring;
        }
        if matches!(control, RunControl::Interrupt | RunControl::Finish) {
            // Not before the beginning: a run that ends in its warm-up has a measured part of length 0.
            let now = now_ns();
            shared.until_ns.fetch_min(now, Relaxed);
            shared.end_ns.store(now, Relaxed);
            run.interrupted = control == RunControl::Interrupt;
        }
        let now = now_ns();
        let all_ended = shared.all_ended();
        let measured = stage == RunStage::Measuring && now >= shared.until_ns.load(Relaxed);
        if measured || (all_ended && stage != RunStage::CoolDown) {
            run.cores = CoreTimes::now().since(&began.cores);
            run.stopped_ns = meter.stopped_ns(shared.from_ns.load(Relaxed), shared.until_ns.load(Relaxed));
            run.suspended_ns = suspended_since(began.suspended_ns);
            stage = RunStage::CoolDown;
        }
        if all_ended || now >= shared.end_ns.load(Relaxed) {
            return run;
        }
    }
}

fn begin_measuring(shared: &Shared, run: &mut SupervisedRun, length: &RunLength) -> Began {
    let began = Began { cores: CoreTimes::now(), suspended_ns: suspended_ns() };
    run.started_unix_ns = host::unix_ns();
    let from_ns = now_ns();
    let until_ns = from_ns.saturating_add(length.duration.as_nanos() as u64);
    shared.end_ns.store(until_ns.saturating_add(length.cool_down.as_nanos() as u64), Relaxed);
    shared.until_ns.store(until_ns, Relaxed);
    shared.from_ns.store(from_ns, Relaxed);
    began
}
