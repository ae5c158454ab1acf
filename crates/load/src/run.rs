use crate::cpu::{CoreTimes, now_ns};
use crate::worker::{Outcome, Progress, Shared, Worker};
use std::io;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Condvar, Mutex, PoisonError};
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use storage::Region;
use workload::{
    Backend, Caching, Direction, Durability, InvalidWorkload, RunLength, RunResult, Slice, Workload,
};

/// How a run stands, warm-up included.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Live {
    /// Time since the run began.
    pub elapsed: Duration,
    /// Whether what completes now counts.
    pub measuring: bool,
    /// I/Os completed since the run began.
    pub ios: u64,
    /// Their summed latency in nanoseconds.
    pub stall_ns: u64,
}

/// What the watcher wants.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Next {
    /// Go on as planned.
    Continue,
    /// End warm-up now.
    Measure,
    /// End the run now, by the user's wish: the result is marked as interrupted.
    Interrupt,
    /// End the run now, because enough is known.
    Enough,
}

/// Why a run gave nothing.
#[derive(Debug, thiserror::Error)]
pub enum LoadError {
    /// The workload is out of range.
    #[error("cannot run this workload: {0}")]
    Workload(#[from] InvalidWorkload),
    /// The region is smaller than one block.
    #[error("cannot load {path}: it has {bytes} bytes, less than one block of {block_bytes} bytes")]
    TooSmall {
        /// Target.
        path: String,
        /// Its bytes.
        bytes: u64,
        /// The block size.
        block_bytes: u32,
    },
    /// Direct I/O of that size is not possible on that target.
    #[error(
        "cannot load {path} directly: {block_bytes} bytes are no multiple of its {align_bytes} byte blocks"
    )]
    Unaligned {
        /// Target.
        path: String,
        /// The block size.
        block_bytes: u32,
        /// What it must be a multiple of.
        align_bytes: u32,
    },
    /// Memory, threads or a ring are not to be had.
    #[error("cannot start the load on {path}: {error}")]
    Start {
        /// Target.
        path: String,
        /// Why.
        error: io::Error,
    },
    /// Every I/O failed.
    #[error("every I/O on {path} failed, {count} times: {error}")]
    AllFailed {
        /// Target.
        path: String,
        /// Failed I/Os.
        count: u64,
        /// The most frequent error.
        error: io::Error,
    },
}

/// How often the watcher is asked.
const WATCH: Duration = Duration::from_millis(20);

/// Runs a workload on a region until its time, its count or the watcher ends it.
///
/// `watch` is called every 20 ms on the calling thread. Threads of the run block all signals, so that
/// Ctrl-C reaches the caller.
///
/// # Errors
/// See [`LoadError`]; failures of single I/Os are counted in the result instead.
pub fn run(
    region: &Region,
    workload: &Workload,
    length: &RunLength,
    watch: &mut dyn FnMut(&Live) -> Next,
) -> Result<RunResult, LoadError> {
    if workload.shape.durability == Durability::Synced {
        // A sync waits for its write: there is nothing to batch.
        return run_with(Backend::Blocking, region, workload, length, watch);
    }
    match run_with(Backend::IoUring, region, workload, length, watch) {
        Err(LoadError::Start { error, .. }) if is_refused(&error) => {
            run_with(Backend::Blocking, region, workload, length, watch)
        }
        other => other,
    }
}

/// [`run`] with that backend and no other.
///
/// # Errors
/// See [`LoadError`].
pub fn run_with(
    backend: Backend,
    region: &Region,
    workload: &Workload,
    length: &RunLength,
    watch: &mut dyn FnMut(&Live) -> Next,
) -> Result<RunResult, LoadError> {
    check(region, workload)?;
    assert!(
        backend == Backend::Blocking || workload.shape.durability != Durability::Synced,
        "the ring does not sync"
    );
    attempt(region, workload, length, watch, backend)
}

/// io_uring is compiled out, too old, switched off by sysctl, filtered, or short of locked memory.
fn is_refused(error: &io::Error) -> bool {
    matches!(error.raw_os_error(), Some(libc::ENOSYS | libc::EPERM | libc::EACCES | libc::ENOMEM))
}

fn check(region: &Region, workload: &Workload) -> Result<(), LoadError> {
    workload.validate()?;
    let path = || region.path.display().to_string();
    let block_bytes = workload.shape.block_bytes;
    if region.bytes < u64::from(block_bytes) {
        return Err(LoadError::TooSmall { path: path(), bytes: region.bytes, block_bytes });
    }
    let direct = region.direct && workload.shape.caching == Caching::Direct;
    if direct && !block_bytes.is_multiple_of(region.align_bytes.max(1)) {
        return Err(LoadError::Unaligned { path: path(), block_bytes, align_bytes: region.align_bytes });
    }
    Ok(())
}

fn attempt(
    region: &Region,
    workload: &Workload,
    length: &RunLength,
    watch: &mut dyn FnMut(&Live) -> Next,
    backend: Backend,
) -> Result<RunResult, LoadError> {
    let asked = workload.clone();
    // Blocking: one thread for each outstanding I/O. Sequential parts are then smaller, but all is walked.
    let workload = match backend {
        Backend::IoUring => asked.clone(),
        _ => Workload { threads: asked.outstanding_total(), outstanding: 1, ..asked.clone() },
    };
    let threads = workload.threads;
    let shared = Shared {
        from_ns: AtomicU64::new(u64::MAX),
        until_ns: AtomicU64::new(u64::MAX),
        progress: (0..threads).map(|_| Progress::default()).collect(),
    };
    let gate = Gate::default();
    let share = |at: u32| {
        let most = length.ios_max?;
        Some(most / u64::from(threads) + u64::from(u64::from(at) < most % u64::from(threads)))
    };
    let work = |at: u32| -> io::Result<Outcome> {
        let worker = Worker { region, workload: &workload, shared: &shared, at, ios_max: share(at) };
        let ring = match backend {
            Backend::IoUring => Some(worker.ring()),
            _ => None,
        };
        // One thread without a ring ends the attempt for all.
        let open = gate.wait(!matches!(&ring, Some(Err(_))));
        match ring {
            Some(Err(error)) => Err(error),
            _ if !open => Ok(Outcome::default()),
            Some(Ok((ring, chooser))) => Ok(worker.run_ring(ring, chooser)),
            None => worker.run_blocking(),
        }
    };
    let work = &work;
    let before = SignalsBlocked::new();
    let (outcomes, course) = std::thread::scope(|scope| {
        let mut handles = Vec::new();
        let mut spawned = Ok(());
        for at in 0..threads {
            match std::thread::Builder::new().spawn_scoped(scope, move || work(at)) {
                Ok(handle) => handles.push(handle),
                Err(error) => spawned = Err(error),
            }
        }
        drop(before);
        let course = if gate.open(handles.len(), spawned.is_ok()) {
            supervise(&shared, length, watch)
        } else {
            Course::default()
        };
        let join = |handle: std::thread::ScopedJoinHandle<'_, io::Result<Outcome>>| match handle.join() {
            Ok(outcome) => outcome,
            Err(panic) => std::panic::resume_unwind(panic),
        };
        let outcomes = handles.into_iter().map(join).collect::<io::Result<Vec<Outcome>>>();
        (spawned.and(outcomes), course)
    });
    let outcomes =
        outcomes.map_err(|error| LoadError::Start { path: region.path.display().to_string(), error })?;
    gather(region, &asked, backend, &shared, outcomes, course, length.ios_max.is_some())
}

/// Lets all threads begin together, or none of them if one could not get ready.
#[derive(Default)]
struct Gate {
    state: Mutex<GateState>,
    changed: Condvar,
}

#[derive(Default)]
struct GateState {
    waiting: usize,
    unready: bool,
    opened: Option<bool>,
}

impl Gate {
    /// A thread got ready, or failed to; whether it may begin.
    fn wait(&self, ready: bool) -> bool {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        state.waiting += 1;
        state.unready |= !ready;
        self.changed.notify_all();
        loop {
            match state.opened {
                Some(begin) => return begin,
                None => state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner),
            }
        }
    }

    /// Waits for that many threads, then lets them begin if all is well; whether they do.
    fn open(&self, threads: usize, well: bool) -> bool {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        while state.waiting < threads {
            state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
        let begin = well && !state.unready;
        state.opened = Some(begin);
        self.changed.notify_all();
        begin
    }
}

/// What the watching thread saw.
#[derive(Default)]
struct Course {
    started_unix_ns: u64,
    interrupted: bool,
    cores: Vec<workload::CoreUse>,
}

fn supervise(shared: &Shared, length: &RunLength, watch: &mut dyn FnMut(&Live) -> Next) -> Course {
    let began_ns = now_ns();
    let warm_up_ns = length.warm_up.as_nanos() as u64;
    let duration_ns = length.duration.as_nanos() as u64;
    let mut course = Course::default();
    let mut cores = CoreTimes::default();
    let mut from_ns = u64::MAX;
    if warm_up_ns == 0 {
        from_ns = begin(shared, &mut course, &mut cores, duration_ns);
    }
    loop {
        std::thread::sleep(WATCH.min(Duration::from_nanos(duration_ns.max(1_000_000))));
        let now = now_ns();
        let sum = |of: fn(&Progress) -> &AtomicU64| {
            shared.progress.iter().map(|progress| of(progress).load(Relaxed)).sum::<u64>()
        };
        let live = Live {
            elapsed: Duration::from_nanos(now - began_ns),
            measuring: from_ns != u64::MAX,
            ios: sum(|progress| &progress.ios),
            stall_ns: sum(|progress| &progress.stall_ns),
        };
        let next = watch(&live);
        if from_ns == u64::MAX && (now >= began_ns + warm_up_ns || next != Next::Continue) {
            from_ns = begin(shared, &mut course, &mut cores, duration_ns);
        }
        if matches!(next, Next::Interrupt | Next::Enough) {
            // Not before the beginning, so that a run ended in warm-up measured nothing rather than less.
            shared.until_ns.fetch_min(now_ns(), Relaxed);
            course.interrupted = next == Next::Interrupt;
        }
        let all_ended = sum(|progress| &progress.ended) == shared.progress.len() as u64;
        if all_ended || now_ns() >= shared.until_ns.load(Relaxed) {
            break;
        }
    }
    course.cores = CoreTimes::now().since(&cores);
    course
}

fn begin(shared: &Shared, course: &mut Course, cores: &mut CoreTimes, duration_ns: u64) -> u64 {
    *cores = CoreTimes::now();
    course.started_unix_ns =
        SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |time| time.as_nanos() as u64);
    let from_ns = now_ns();
    shared.until_ns.store(from_ns.saturating_add(duration_ns), Relaxed);
    shared.from_ns.store(from_ns, Relaxed);
    from_ns
}

fn gather(
    region: &Region,
    workload: &Workload,
    backend: Backend,
    shared: &Shared,
    outcomes: Vec<Outcome>,
    course: Course,
    counted: bool,
) -> Result<RunResult, LoadError> {
    let path = region.path.display().to_string();
    let (mut read, mut write) = (Direction::default(), Direction::default());
    let mut series: Vec<Slice> = Vec::new();
    for outcome in &outcomes {
        read.merge(&outcome.recorder.read);
        write.merge(&outcome.recorder.write);
        if series.len() < outcome.recorder.series.len() {
            series.resize(outcome.recorder.series.len(), Slice::default());
        }
        series.iter_mut().zip(&outcome.recorder.series).for_each(|(sum, more)| sum.merge(more));
    }
    let from_ns = shared.from_ns.load(Relaxed);
    let until_ns = shared.until_ns.load(Relaxed);
    let last_ns = outcomes.iter().map(|outcome| outcome.last_ns).max().unwrap_or(0);
    // Time ran out, or every thread had done its count (or given up) before that.
    let gave_up = outcomes.iter().all(|outcome| outcome.gave_up || outcome.ring_error.is_some());
    let end_ns = if counted || gave_up { last_ns.min(until_ns) } else { until_ns };
    let elapsed_ns = end_ns.saturating_sub(from_ns);
    for (at, slice) in series.iter_mut().enumerate() {
        slice.end_ns = ((at as u64 + 1) * 1_000_000_000).min(elapsed_ns);
    }
    let failed = read.failed() + write.failed();
    if read.count + write.count == 0 {
        let errors = read.errors.iter().chain(&write.errors);
        if let Some((errno, _)) = errors.max_by_key(|(_, count)| **count) {
            let error = io::Error::from_raw_os_error(*errno);
            return Err(LoadError::AllFailed { path, count: failed, error });
        }
    }
    let threads = outcomes.iter().map(|outcome| outcome.share.clone()).collect();
    if let Some(error) = outcomes.into_iter().find_map(|outcome| outcome.ring_error) {
        return Err(LoadError::Start { path, error });
    }
    Ok(RunResult {
        backend,
        started_unix_ns: course.started_unix_ns,
        elapsed_ns,
        interrupted: course.interrupted,
        read,
        write,
        target_bytes: region.bytes,
        series,
        cores: course.cores,
        threads,
        ..RunResult::empty(workload.clone(), path)
    })
}

/// While it lives, threads that are started inherit a mask with all signals blocked.
struct SignalsBlocked(libc::sigset_t);

impl SignalsBlocked {
    fn new() -> SignalsBlocked {
        // SAFETY: both sets are plain memory that the calls fill.
        unsafe {
            let mut all: libc::sigset_t = std::mem::zeroed();
            let mut before: libc::sigset_t = std::mem::zeroed();
            libc::sigfillset(&mut all);
            libc::pthread_sigmask(libc::SIG_SETMASK, &all, &mut before);
            SignalsBlocked(before)
        }
    }
}

impl Drop for SignalsBlocked {
    fn drop(&mut self) {
        // SAFETY: restores the mask that `new` saved.
        unsafe { libc::pthread_sigmask(libc::SIG_SETMASK, &self.0, std::ptr::null_mut()) };
    }
}
