use crate::course::Course;
use crate::crew::{Outcome, Seat};
use crate::lane::FIRST_BAD_MAX;
use crate::live::Shared;
use crate::run::{Job, LoadError, Together};
use std::io;
use std::sync::atomic::Ordering::Relaxed;
use stream::{Responses, Window, whole};
use workload::{Backend, MemberShare, Response, RunResult, Slice, ThreadShare, Verification};

/// One result for each job, from what all threads measured.
pub fn gather(
    jobs: &[Job<'_>],
    how: &Together,
    seats: &[Seat],
    shared: &Shared,
    course: &Course,
    outcomes: Vec<Outcome>,
) -> Result<Vec<RunResult>, LoadError> {
    let mut of_jobs: Vec<Vec<Outcome>> = jobs.iter().map(|_| Vec::new()).collect();
    outcomes.into_iter().for_each(|outcome| of_jobs[outcome.job].push(outcome));
    let results: Vec<RunResult> = of_jobs
        .into_iter()
        .enumerate()
        .map(|(at, outcomes)| {
            let backend = seats.iter().find(|seat| seat.places.iter().any(|place| place.job == at));
            let backend = backend.map_or(Backend::IoUring, |seat| seat.backend);
            result(&jobs[at], how, backend, shared, course, outcomes)
        })
        .collect();
    if results.iter().all(|result| result.ios() == 0)
        && let Some(failed) = results.iter().find(|result| result.failed() > 0)
    {
        let errors = failed.read.errors.iter().chain(&failed.write.errors).chain(&failed.sync.errors);
        let errno = errors.max_by_key(|(_, count)| **count).map_or(libc::EIO, |(errno, _)| *errno);
        let (path, error) = (failed.target.clone(), io::Error::from_raw_os_error(errno));
        return Err(LoadError::AllFailed { path, count: failed.failed(), error });
    }
    Ok(results)
}

fn result(
    job: &Job<'_>,
    how: &Together,
    backend: Backend,
    shared: &Shared,
    course: &Course,
    outcomes: Vec<Outcome>,
) -> RunResult {
    let window = Window { from_ns: shared.from_ns.load(Relaxed), until_ns: shared.until_ns.load(Relaxed) };
    // Time ran out, or every thread had done its count (or given up) before that.
    let over = !outcomes.is_empty() && outcomes.iter().all(|outcome| outcome.over);
    let last_ns = outcomes.iter().map(|outcome| outcome.recorder.last_ns).max().unwrap_or(0);
    let elapsed_ns = window.elapsed_ns(over, last_ns.saturating_sub(window.from_ns));
    let slice_ns = how.slice.as_nanos() as u64;

    let mut result = RunResult {
        replayed: job.trace.is_some(),
        backend,
        started_unix_ns: course.started_unix_ns,
        elapsed_ns,
        interrupted: course.interrupted,
        target_bytes: job.region.bytes,
        slice_ns,
        cores: course.cores.clone(),
        pool: how.pool,
        layout: job.region.laid.as_ref().map(|laid| laid.layout),
        ..RunResult::empty(job.workload.clone(), job.region.name())
    };
    // Blocking: as many threads as outstanding I/Os stand for one thread.
    let threads = how.pool.map_or(job.workload.threads, |pool| pool.threads) as usize;
    result.threads = vec![ThreadShare::default(); threads.min(outcomes.len())];
    for outcome in outcomes {
        let mut record = outcome.recorder.record;
        result.read.merge(&record.read);
        result.write.merge(&record.write);
        result.sync.merge(&record.sync);
        merge_series(&mut result.series, &record.series);
        merge_response(&mut result.response, record.responses.map(Responses::told));
        merge_checked(&mut result.verification, outcome.checked);
        merge_members(&mut result.members, outcome.recorder.members);
        let count = result.threads.len();
        let share = &mut result.threads[outcome.at as usize % count];
        share.read.merge(&outcome.share.read);
        share.write.merge(&outcome.share.write);
        share.cpu_ns += outcome.share.cpu_ns;
        if how.thread_series {
            record.series.iter_mut().for_each(|slice| {
                *slice = Slice { read: slice.read, write: slice.write, ..Slice::default() };
            });
            merge_series(&mut share.series, &record.series);
            whole(&mut share.series, slice_ns, elapsed_ns);
        }
    }
    whole(&mut result.series, slice_ns, elapsed_ns);
    result
}

fn merge_series(into: &mut Vec<Slice>, from: &[Slice]) {
    if into.len() < from.len() {
        into.resize(from.len(), Slice::default());
    }
    into.iter_mut().zip(from).for_each(|(sum, more)| sum.merge(more));
}

fn merge_members(into: &mut Vec<MemberShare>, from: Vec<MemberShare>) {
    if into.is_empty() {
        *into = from;
        return;
    }
    for (sum, more) in into.iter_mut().zip(from) {
        sum.read.merge(&more.read);
        sum.write.merge(&more.write);
        sum.failed += more.failed;
    }
}

fn merge_response(into: &mut Option<Response>, from: Option<Response>) {
    let Some(from) = from else { return };
    let Some(into) = into else {
        *into = Some(from);
        return;
    };
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
