//! `headroom run --sweep`: load at rising outstanding I/Os, on each target, or on each layout of the targets.

mod queue;
mod steps;

use super::{RUNS_AGAIN_MAX, RunArgs, STOPPED, warn_of_changes};
use crate::layouts;
use crate::targets::{self, Opened};
use crate::traces::Traces;
use capability::{Point, Sweep, SweepComparison, SweepStep};
use everyday::Known;
use history::History;
use load::RunControl;
use queue::QueueWatch;
use std::path::{Path, PathBuf};
use std::time::Duration;
pub use steps::{Steps, steps};
use storage::Region;
use terminal::{Done, FINE, Failure, Output, interrupt, kept, page, problem_found};
use workload::{
    Caching, Phase, PhaseResult, Placed, Plan, PlanTarget, RunLength, RunResult, Shape, TargetChange,
    TargetFacts, Workload,
};
use workload_file::default_workload;

/// `headroom run --sweep`.
pub fn run(args: &RunArgs, steps: &Steps, history: Option<&Path>, out: &mut Output) -> Done {
    page::check(args.html.as_deref())?;
    let sweeping = Sweeping::new(args, steps)?;
    let plan = plan(args, &sweeping)?;
    let traces = Traces::read(&plan)?;
    let mut history = kept::open_to_write(history)?;
    interrupt::install();
    let mut sweeps = Vec::new();
    let mut done = Ok(());
    // Sequentially, each with its own open: a device that is written is opened exclusively.
    for target in 0..plan.targets.len() {
        let one = Plan { targets: vec![plan.targets[target].clone()], phases: plan.phases.clone() };
        let opened = targets::open(&one, &traces, &args.destroy_data, &mut history, out)?;
        let swept = sweep(&sweeping, &opened, (target, plan.targets.len()), out);
        let limit = operating_limit(&sweeping, &opened, &history);
        let removed = opened.remove(&mut history, out);
        match swept {
            Ok(sweep) if !sweep.steps.is_empty() => {
                sweeps.push(Sweep { operating_limit_iops: limit, ..sweep });
            }
            Ok(_) => {}
            Err(failure) => done = done.and(Err(failure)),
        }
        done = done.and(removed);
        if done.is_err() || interrupt::requested() {
            break;
        }
    }
    if sweeps.is_empty() {
        done?;
        return Err(Failure::new("ended before anything was measured"));
    }
    let compared = match sweeps.as_slice() {
        [first, second, ..] => SweepComparison::between(&first.saturation, &second.saturation),
        _ => None,
    };
    out.answer(
        |style| report::text::sweeps(&sweeps, compared.as_ref(), style),
        || report::json::sweeps(&sweeps, compared.as_ref()),
    );
    keep(&sweeps, &mut history)?;
    let page =
        || report::html::sweeps(&sweeps, compared.as_ref(), &page::command_line(), env!("CARGO_PKG_VERSION"));
    page::write(args.html.as_deref(), page, out)?;
    done?;
    let failed: u64 = sweeps.iter().flat_map(|sweep| &sweep.steps).map(|step| step.point.failed).sum();
    let results = || sweeps.iter().flat_map(|sweep| &sweep.steps).map(|step| &step.result);
    let mut changes: Vec<TargetChange> = results().flat_map(|result| result.target_changes.clone()).collect();
    changes.dedup();
    let is_changed = warn_of_changes(&changes, out);
    let was_stopped = results().any(RunResult::was_stopped);
    if was_stopped {
        out.warn(format_args!("{STOPPED}: its steps are not valid"));
    }
    Ok(if failed > 0 || is_changed || was_stopped { problem_found() } else { FINE })
}

/// The steps of a sweep, and the load that they have in common.
struct Sweeping<'a> {
    steps: &'a Steps,
    base: Workload,
    /// Threads that share the outstanding I/Os; `None`: one, and more where it is too busy.
    threads: Option<u32>,
    warm_up: Duration,
    duration: Duration,
    /// Time between two samples of the queue.
    sample: Duration,
}

const STEP_DURATION: Duration = Duration::from_secs(5);
const STEP_WARM_UP: Duration = Duration::from_secs(1);
const SAMPLE: Duration = Duration::from_secs(1);

impl<'a> Sweeping<'a> {
    fn new(args: &RunArgs, steps: &'a Steps) -> Result<Sweeping<'a>, Failure> {
        let (flags, length) = (&args.flags, args.flags.length());
        if flags.have_lists() || args.several.are_given() {
            return Err(Failure::usage("--sweep takes one value of each flag")
                .with_remedy("a list of --outstanding in its place, which is a matrix"));
        }
        let settings = flags.settings();
        let others = [
            ("--rate, poisson and speed", settings.arrival.is_some()),
            ("--limit", settings.limit.is_some()),
            ("burst", settings.burst.is_some()),
            ("--replay", settings.replay.is_some()),
            ("--verify", settings.verify.is_some()),
            ("caching=mapped", settings.caching == Some(Caching::Mapped)),
            ("--ios", length.ios_max.is_some()),
            ("--cool-down", length.cool_down.is_some()),
        ];
        if let Some((flag, _)) = others.iter().find(|(_, is_given)| *is_given) {
            return Err(Failure::usage(format_args!(
                "{flag}: not with --sweep, whose load only keeps I/Os outstanding"
            )));
        }
        let mut placed = Placed { target: 0, weight: 1, workload: default_workload(), replay: None };
        settings.apply(&mut placed);
        Ok(Sweeping {
            steps,
            base: placed.workload,
            threads: flags.threads.first().copied(),
            warm_up: length.warm_up.unwrap_or(STEP_WARM_UP),
            duration: length.duration.unwrap_or(STEP_DURATION),
            sample: flags.series.unwrap_or(SAMPLE),
        })
    }

    fn shape(&self) -> Shape {
        self.base.shape
    }

    fn workload(&self, outstanding: u32, threads: u32) -> Workload {
        Workload {
            outstanding: outstanding / threads,
            threads,
            seed: self.base.seed.wrapping_add(u64::from(outstanding)),
            ..self.base.clone()
        }
    }
}

/// The targets: each, or all of them as one for each layout.
fn plan(args: &RunArgs, sweeping: &Sweeping<'_>) -> Result<Plan, Failure> {
    let targets: Vec<PlanTarget> = match args.layout.as_slice() {
        [] => {
            let here = [PathBuf::from(".")];
            let paths = if args.targets.is_empty() { &here[..] } else { &args.targets };
            paths.iter().map(|path| PlanTarget { path: path.clone(), ..PlanTarget::default() }).collect()
        }
        layouts => {
            layouts.iter().map(|layout| layouts::laid(*layout, &args.targets)).collect::<Result<_, _>>()?
        }
    };
    let targets =
        targets.into_iter().map(|target| PlanTarget { create_bytes: args.size, ..target }).collect();
    let workload = sweeping.workload(1, 1);
    workload.validate().map_err(|error| Failure::usage(&error))?;
    let phase = Phase::single(workload, RunLength::default());
    Ok(Plan { targets, phases: vec![phase] })
}

/// From this share of its core on, a load thread may be what limits.
const BUSY_MAX: f64 = 0.75;

/// The highest rate that the cost model of the target gives, where its storage was measured; `None` for I/O through the page
/// cache.
fn operating_limit(sweeping: &Sweeping<'_>, opened: &Opened, history: &History) -> Option<f64> {
    let shape = sweeping.shape();
    let facts = opened.facts().remove(&opened.region(0, shape.caching).name())?;
    let known =
        Known::read(history, &facts, shape.caching).ok().filter(|_| shape.caching != Caching::Buffered)?;
    let measured = known.capability.filter(|capability| capability.origin.is_measured())?;
    Some(measured.cost_model?.iops_max(&shape)).filter(|limit| limit.is_finite())
}

/// All steps on one target.
fn sweep(
    sweeping: &Sweeping<'_>,
    opened: &Opened,
    (at, of): (usize, usize),
    out: &mut Output,
) -> Result<Sweep, Failure> {
    let shape = sweeping.shape();
    let region = opened.region(0, shape.caching);
    let facts: Option<TargetFacts> = opened.facts().remove(&region.name());
    let around = facts.as_ref().map(measure::knee_context).unwrap_or_default();
    let mut taken: Vec<SweepStep> = Vec::new();
    let cores = std::thread::available_parallelism().map_or(1, |cores| cores.get() as u32);
    let mut threads = sweeping.threads.unwrap_or(1);
    let mut again_left = RUNS_AGAIN_MAX;
    loop {
        let points: Vec<Point> = taken.iter().map(|step| step.point.clone()).collect();
        let Some(outstanding) = sweeping.steps.next(&points, &shape, &around) else { break };
        // Every thread keeps the same number outstanding, so that N is as requested.
        let even =
            (1..=threads.min(outstanding)).rev().find(|it| outstanding.is_multiple_of(*it)).unwrap_or(1);
        let workload = sweeping.workload(outstanding, even);
        let left = sweeping.steps.left(points.len()).map(|steps| (steps + 1) * (of - at));
        let step = step(sweeping, region, &workload, left, out)?;
        let stopped = step.result.interrupted || interrupt::requested();
        if step.result.was_stopped() && !stopped && again_left > 0 {
            again_left -= 1;
            out.warn(format_args!("{STOPPED}: this step is run again"));
            continue;
        }
        let busy = sweeping.threads.is_none() && step.result.thread_busy_max() >= BUSY_MAX && threads < cores;
        if busy && !stopped && even == threads && outstanding > threads {
            threads = (threads * 2).min(cores);
            continue;
        }
        if step.point.ios > 0 {
            let place = taken.partition_point(|other| other.point.outstanding < outstanding);
            taken.insert(place, step);
        } else {
            break;
        }
        if stopped {
            break;
        }
    }
    Ok(Sweep::from_steps(region.name(), taken, &around))
}

fn step(
    sweeping: &Sweeping<'_>,
    region: &Region,
    workload: &Workload,
    steps_left: Option<usize>,
    out: &mut Output,
) -> Result<SweepStep, Failure> {
    let target = region.name();
    let length = RunLength { warm_up: sweeping.warm_up, duration: sweeping.duration, ..RunLength::default() };
    let mut queue = QueueWatch::new(region, sweeping.sample);
    let all = workload.outstanding_total();
    let mut watch = |live: &load::LiveStats| {
        queue.sample(live);
        let iops = live.ios as f64 / live.elapsed.as_secs_f64().max(1e-3);
        let each = sweeping.warm_up + sweeping.duration;
        let left = steps_left.map(|steps| (each * steps as u32).saturating_sub(live.elapsed));
        out.progress(format_args!("{target}: {all} outstanding: {iops:.0} IOPS"), left);
        if interrupt::requested() { RunControl::Interrupt } else { RunControl::Continue }
    };
    let job = load::Job { region, workload, weight: 1, trace: None };
    // Twenty rows: batches for the confidence interval.
    let slice = (sweeping.duration / 20).max(Duration::from_millis(50));
    let how = load::RunOptions { slice, ..load::RunOptions::from(length) };
    let mut results = load::run_jobs(&[job], &how, &mut watch)?;
    let result = results.pop().ok_or_else(|| Failure::new("a step gave no result"))?;
    Ok(SweepStep { point: Point::from_result(&result), result, queue: queue.finish() })
}

/// Each sweep is a session of the history: its runs are found by `history`, `chart` and `compare`.
fn keep(sweeps: &[Sweep], history: &mut History) -> Result<(), Failure> {
    let phase = |step: &SweepStep| PhaseResult {
        name: format!("{} outstanding", step.point.outstanding),
        results: vec![step.result.clone()],
    };
    for sweep in sweeps {
        let phases: Vec<PhaseResult> = sweep.steps.iter().map(phase).collect();
        history.save_session(&phases)?;
    }
    Ok(())
}
