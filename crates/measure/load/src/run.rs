use crate::check::{check, check_resources, check_threads};
use crate::error::LoadError;
use crate::job::{Job, RunControl, RunOptions};
use crate::live::LiveStats;
use crate::thread_plan::plan_threads;
use crate::workers::Workers;
use std::io;
use storage::Region;
use workload::{Backend, RunLength, RunResult, Workload};

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
    watch: &mut dyn FnMut(&LiveStats) -> RunControl,
) -> Result<RunResult, LoadError> {
    let job = Job { region, workload, weight: 1, trace: None };
    run_jobs(&[job], &RunOptions::from(*length), watch).map(only_result)
}

/// [`run`] with the given backend and no other.
///
/// # Errors
/// See [`LoadError`].
pub fn run_with_backend(
    backend: Backend,
    region: &Region,
    workload: &Workload,
    length: &RunLength,
    watch: &mut dyn FnMut(&LiveStats) -> RunControl,
) -> Result<RunResult, LoadError> {
    let job = Job { region, workload, weight: 1, trace: None };
    let options = RunOptions::from(*length);
    check(&[job], &options)?;
    attempt(&[job], &options, backend == Backend::IoUring, watch).map(only_result)
}

fn only_result(mut results: Vec<RunResult>) -> RunResult {
    results.pop().expect("one result for one job")
}

/// Runs several jobs at once; one result for each, in their order. All start together, after one warm-up,
/// and are measured over the same time.
///
/// # Errors
/// See [`LoadError`]; failures of single I/Os are counted in the results instead.
///
/// # Panics
/// If there is no job.
pub fn run_jobs(
    jobs: &[Job<'_>],
    options: &RunOptions,
    watch: &mut dyn FnMut(&LiveStats) -> RunControl,
) -> Result<Vec<RunResult>, LoadError> {
    assert!(!jobs.is_empty(), "a run needs a job");
    check(jobs, options)?;
    match attempt(jobs, options, true, watch) {
        // A thread that blocks in an I/O has no others outstanding to share.
        Err(LoadError::Start { error, .. })
            if is_refused(&error) && options.pool.is_some_and(|pool| pool.outstanding.is_some()) =>
        {
            Err(LoadError::Pool { error })
        }
        Err(LoadError::Start { error, .. }) if is_refused(&error) => attempt(jobs, options, false, watch),
        other => other,
    }
}

fn attempt(
    jobs: &[Job<'_>],
    options: &RunOptions,
    allow_ring: bool,
    watch: &mut dyn FnMut(&LiveStats) -> RunControl,
) -> Result<Vec<RunResult>, LoadError> {
    check_threads(jobs, options, allow_ring)?;
    let threads = plan_threads(jobs, options, allow_ring);
    check_resources(jobs, options, &threads)?;
    Workers::new(jobs, options, &threads)?.run(watch)
}

/// Whether io_uring is compiled out, too old, disabled by sysctl, filtered, or short of locked memory.
fn is_refused(error: &io::Error) -> bool {
    matches!(error.raw_os_error(), Some(libc::ENOSYS | libc::EPERM | libc::EACCES | libc::ENOMEM))
}
