use crate::cpu::{CoreTimes, now_ns};
use crate::live::{Live, Shared, Stage, Watcher};
use crate::run::Next;
use std::sync::atomic::Ordering::Relaxed;
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use workload::{CoreUse, RunLength};

/// What the watching thread saw.
#[derive(Default)]
pub struct Course {
    pub started_unix_ns: u64,
    pub interrupted: bool,
    /// Over the measured part.
    pub cores: Vec<CoreUse>,
}

/// How often the watcher is asked.
const WATCH: Duration = Duration::from_millis(20);

/// Lets the threads begin, opens and closes the measured part, and asks the watcher, until the threads end or
/// are ended.
pub fn supervise(
    shared: &Shared,
    length: &RunLength,
    let_begin: impl FnOnce(),
    watch: &mut dyn FnMut(&Live) -> Next,
) -> Course {
    let warm_up_end_ns = now_ns() + length.warm_up.as_nanos() as u64;
    let pause = WATCH.min(length.duration.max(Duration::from_millis(1)));
    let mut watcher = Watcher::new(shared);
    let mut course = Course::default();
    let mut cores = CoreTimes::default();
    let mut stage = Stage::WarmUp;
    if length.warm_up.is_zero() {
        cores = begin(shared, &mut course, length);
        stage = Stage::Measuring;
    }
    // After the measured part was opened: without a warm-up, no I/O comes before it.
    let_begin();
    loop {
        std::thread::sleep(pause);
        let next = watch(&watcher.live(stage));
        if stage == Stage::WarmUp && (now_ns() >= warm_up_end_ns || next != Next::Continue) {
            cores = begin(shared, &mut course, length);
            stage = Stage::Measuring;
        }
        if matches!(next, Next::Interrupt | Next::Enough) {
            // Not before the beginning, so that a run ended in warm-up measured nothing rather than less.
            let now = now_ns();
            shared.until_ns.fetch_min(now, Relaxed);
            shared.end_ns.store(now, Relaxed);
            course.interrupted = next == Next::Interrupt;
        }
        let now = now_ns();
        let all_ended = shared.all_ended();
        let measured = stage == Stage::Measuring && now >= shared.until_ns.load(Relaxed);
        if measured || (all_ended && stage != Stage::CoolDown) {
            course.cores = CoreTimes::now().since(&cores);
            stage = Stage::CoolDown;
        }
        if all_ended || now >= shared.end_ns.load(Relaxed) {
            return course;
        }
    }
}

fn begin(shared: &Shared, course: &mut Course, length: &RunLength) -> CoreTimes {
    let cores = CoreTimes::now();
    course.started_unix_ns =
        SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |time| time.as_nanos() as u64);
    let from_ns = now_ns();
    let until_ns = from_ns.saturating_add(length.duration.as_nanos() as u64);
    shared.end_ns.store(until_ns.saturating_add(length.cool_down.as_nanos() as u64), Relaxed);
    shared.until_ns.store(until_ns, Relaxed);
    shared.from_ns.store(from_ns, Relaxed);
    cores
}
