//! Merges what the threads measured into one result for each job.

use crate::error::LoadError;
use crate::job::{Job, RunOptions};
use crate::lane::FIRST_BAD_MAX;
use crate::live::Shared;
use crate::recorder::Recorder;
use crate::supervisor::SupervisedRun;
use crate::thread_plan::ThreadPlan;
use std::io;
use std::sync::atomic::Ordering::Relaxed;
use stream::{MeasuredWindow, Responses, complete_series};
use workload::{Backend, MemberShare, Response, RunResult, Slice, TargetChange, ThreadShare, Verification};

/// Results of one thread for one of its jobs.
pub struct Outcome {
    pub job: usize,
    /// Number of the thread among the job's.
    pub thread: u32,
    pub share: ThreadShare,
    pub recorder: Recorder,
    pub checked: Verification,
    /// The lane was over before the run: its count was reached, its trace at an end, or only failures were left.
    pub finished: bool,
}

/// The run that outcomes are of.
pub struct RunContext<'a> {
    pub jobs: &'a [Job<'a>],
    pub options: &'a RunOptions,
    pub threads: &'a [ThreadPlan],
    pub shared: &'a Shared,
}

impl RunContext<'_> {
    /// One result for each job.
    ///
    /// # Errors
    /// [`LoadError::AllFailed`] where no I/O of any job succeeded.
    pub fn merge(
        &self,
        run: &SupervisedRun,
        outcomes: Vec<Outcome>,
        changes: Vec<Vec<TargetChange>>,
    ) -> Result<Vec<RunResult>, LoadError> {
        let mut by_job: Vec<Vec<Outcome>> = self.jobs.iter().map(|_| Vec::new()).collect();
        outcomes.into_iter().for_each(|outcome| by_job[outcome.job].push(outcome));
        let merge = |((at, outcomes), target_changes)| RunResult {
            target_changes,
            ..self.merge_job(at, run, outcomes)
        };
        let results: Vec<RunResult> = by_job.into_iter().enumerate().zip(changes).map(merge).collect();
        if results.iter().all(|result| result.ios() == 0)
            && let Some(failed) = results.iter().find(|result| result.failed() > 0)
        {
            let errors = failed.read.errors.iter().chain(&failed.write.errors).chain(&failed.sync.errors);
            let errno = errors.max_by_key(|(_, count)| **count).map_or(libc::EIO, |(errno, _)| *errno);
            let (path, error) = (failed.target.clone(), io::Error::from_raw_os_error(errno));
            let changes = failed.target_changes.clone();
            return Err(LoadError::AllFailed { path, count: failed.failed(), error, changes });
        }
        Ok(results)
    }

    fn merge_job(&self, at: usize, run: &SupervisedRun, outcomes: Vec<Outcome>) -> RunResult {
        let (job, options, shared) = (&self.jobs[at], self.options, self.shared);
        let thread = self.threads.iter().find(|thread| thread.lanes.iter().any(|lane| lane.job == at));
        let window =
            MeasuredWindow { from_ns: shared.from_ns.load(Relaxed), until_ns: shared.until_ns.load(Relaxed) };
        let finished = !outcomes.is_empty() && outcomes.iter().all(|outcome| outcome.finished);
        let last_ns = outcomes.iter().map(|outcome| outcome.recorder.last_ns).max().unwrap_or(0);
        let elapsed_ns = window.elapsed_ns(finished, last_ns.saturating_sub(window.from_ns));
        let slice_ns = options.slice.as_nanos() as u64;
        let mut result = RunResult {
            replayed: job.trace.is_some(),
            backend: thread.map_or(Backend::IoUring, |thread| thread.backend),
            started_unix_ns: run.started_unix_ns,
            elapsed_ns,
            interrupted: run.interrupted,
            target_bytes: job.region.bytes,
            slice_ns,
            cores: run.cores.clone(),
            stopped_ns: run.stopped_ns.min(elapsed_ns),
            suspended_ns: run.suspended_ns,
            pool: options.pool,
            layout: job.region.volume.as_ref().map(|volume| volume.layout),
            ..RunResult::empty(job.workload.clone(), job.region.name())
        };
        // Blocking: as many threads as outstanding I/Os stand for one thread.
        let threads = options.pool.map_or(job.workload.threads, |pool| pool.threads) as usize;
        result.threads = vec![ThreadShare::default(); threads.min(outcomes.len())];
        for outcome in outcomes {
            merge_outcome(&mut result, outcome, options.thread_series);
        }
        complete_series(&mut result.series, slice_ns, elapsed_ns);
        result
    }
}

fn merge_outcome(result: &mut RunResult, outcome: Outcome, thread_series: bool) {
    let mut record = outcome.recorder.record;
    result.read.merge(&record.read);
    result.write.merge(&record.write);
    result.sync.merge(&record.sync);
    merge_series(&mut result.series, &record.series);
    merge_response(&mut result.response, record.responses.map(Responses::into_response));
    merge_checked(&mut result.verification, outcome.checked);
    merge_members(&mut result.members, outcome.recorder.members);
    let count = result.threads.len();
    let share = &mut result.threads[outcome.thread as usize % count];
    share.read.merge(&outcome.share.read);
    share.write.merge(&outcome.share.write);
    share.cpu_ns += outcome.share.cpu_ns;
    if thread_series {
        record.series.iter_mut().for_each(|slice| {
            *slice = Slice { read: slice.read, write: slice.write, ..Slice::default() };
        });
        merge_series(&mut share.series, &record.series);
        complete_series(&mut share.series, result.slice_ns, result.elapsed_ns);
    }
}

fn merge_series(into: &mut Vec<Slice>, from: &[Slice]) {
    if into.len() < from.len() {
        into.resize(from.len(), Slice::default());
    }
    into.iter_mut().zip(from).for_each(|(sum, more)| sum.merge(more));
}

fn merge_members(into: &mut Vec<MemberShare>, from: Vec<MemberShare>) {
    for (sum, more) in into.iter_mut().zip(&from) {
        sum.read.merge(&more.read);
        sum.write.merge(&more.write);
        sum.failed += more.failed;
    }
    if into.is_empty() {
        *into = from;
    }
}

fn merge_response(into: &mut Option<Response>, from: Option<Response>) {
    let Some(from) = from else { return };
    let into = into.get_or_insert_default();
    into.read.merge(&from.read);
    into.write.merge(&from.write);
    into.waiting += from.waiting;
    into.waiting_ns_max = into.waiting_ns_max.max(from.waiting_ns_max);
    into.late_ns_max = into.late_ns_max.max(from.late_ns_max);
}

fn merge_checked(into: &mut Option<Verification>, from: Verification) {
    if from.blocks == 0 {
        return;
    }
    let into = into.get_or_insert_default();
    into.blocks += from.blocks;
    into.bad += from.bad;
    into.first_bad.extend(from.first_bad);
    into.first_bad.truncate(FIRST_BAD_MAX);
}
