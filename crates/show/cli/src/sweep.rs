//! `headroom sweep`: load at rising outstanding I/Os, one layout or several on the same members.

mod queue;
mod steps;

use crate::layouts;
use crate::run::{RUNS_AGAIN_MAX, STOPPED, warn_of_changes};
use crate::targets::{self, Opened};
use crate::traces::Traces;
use capability::{Point, Sweep, SweepComparison, SweepStep};
use everyday::Known;
use history::History;
use load::RunControl;
use queue::QueueWatch;
use std::path::{Path, PathBuf};
use std::time::Duration;
use steps::Steps;
use storage::Region;
use terminal::{Done, FINE, Failure, Output, interrupt, kept, page, problem_found};
use workload::{
    Caching, Layout, Pattern, Phase, PhaseResult, Placed, Plan, PlanTarget, RunLength, RunResult, Shape,
    TargetChange, TargetFacts, Workload,
};
use workload_file::values;

/// Arguments of `headroom sweep`.
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  headroom sweep /dev/vdb --outstanding 8:256:8 --duration 60s      fixed steps
  headroom sweep /data                                              adaptive: finds its steps
  headroom sweep --layout stripe:64K /dev/loop0 /dev/loop1          two devices as one
  headroom sweep --compare span,stripe:64K /dev/loop0 /dev/loop1 --html r.html
                                                                    both layouts in one figure

Only reads, unless --writes and --destroy-data are given.")]
pub struct SweepArgs {
    /// Directory (a test file is made in it and removed), file or block device; several make a layout [default: .]
    #[arg(value_name = "TARGET")]
    targets: Vec<PathBuf>,
    /// The targets as one: span (in sequence) or stripe:UNIT (interleaved)
    #[arg(long, value_name = "LAYOUT", conflicts_with = "compare")]
    layout: Option<Layout>,
    /// Sweep under each of these layouts, side by side
    #[arg(long, value_name = "LAYOUTS", value_delimiter = ',')]
    compare: Vec<Layout>,
    /// Outstanding I/Os over all threads: FROM:TO:STEP, FROM:TO:geometric, a list, or adaptive[:TO]
    #[arg(long, value_name = "STEPS", default_value = "adaptive", value_parser = steps::steps)]
    outstanding: Steps,
    /// Threads, which share the outstanding I/Os evenly [default: 1, more where one is too busy]
    #[arg(long, value_name = "N", value_parser = values::count)]
    threads: Option<u32>,
    /// Bytes of each I/O
    #[arg(long, value_name = "SIZE", default_value = "64K", value_parser = values::block)]
    block: u32,
    /// random or sequential
    #[arg(long, value_name = "WORD", default_value = "random", value_parser = values::word(values::PATTERNS))]
    pattern: Pattern,
    /// Share of writes in percent
    #[arg(long, value_name = "PERCENT", default_value = "0", value_parser = values::percent)]
    writes: u8,
    /// Bytes used, from the beginning of the target; less than a member keeps a span on its first [default: all]
    #[arg(long, value_name = "SIZE", value_parser = values::some_bytes)]
    length: Option<u64>,
    /// Measured time of each step
    #[arg(long, value_name = "TIME", default_value = "5s", value_parser = values::some_time)]
    duration: Duration,
    /// Time before the measured time, not counted
    #[arg(long, value_name = "TIME", default_value = "1s", value_parser = values::time)]
    warm_up: Duration,
    /// How often a monitor samples the queue, for comparison
    #[arg(long, value_name = "TIME", default_value = "1s", value_parser = values::some_time)]
    sample: Duration,
    /// Through the page cache
    #[arg(long)]
    buffered: bool,
    /// Size of the test file in a directory
    #[arg(long, value_name = "SIZE", value_parser = values::some_bytes)]
    create: Option<u64>,
    /// Write over this file or device: its content is lost
    #[arg(long, value_name = "TARGET")]
    destroy_data: Vec<PathBuf>,
    /// Seed of the random offsets
    #[arg(long, value_name = "N", default_value_t = 0)]
    seed: u64,
    /// Also write a page with the figures
    #[arg(long, value_name = "FILE")]
    html: Option<PathBuf>,
}

/// `headroom sweep`.
pub fn run(args: &SweepArgs, history: Option<&Path>, out: &mut Output) -> Done {
    page::check(args.html.as_deref())?;
    let plan = plan(args)?;
    let traces = Traces::read(&plan)?;
    let mut history = kept::open_to_write(history)?;
    interrupt::install();
    let mut sweeps = Vec::new();
    let mut done = Ok(());
    // Sequentially, each with its own open: a device that is written is opened exclusively.
    for target in 0..plan.targets.len() {
        let one = Plan { targets: vec![plan.targets[target].clone()], phases: plan.phases.clone() };
        let opened = targets::open(&one, &traces, &args.destroy_data, &mut history, out)?;
        let swept = sweep(args, &opened, (target, plan.targets.len()), out);
        let limit = operating_limit(args, &opened, &history);
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

/// The targets, once for each layout that is compared.
fn plan(args: &SweepArgs) -> Result<Plan, Failure> {
    let layouts: Vec<Layout> = args.layout.iter().chain(&args.compare).copied().collect();
    let single = || match args.targets.as_slice() {
        [] => Ok(PathBuf::from(".")),
        [one] => Ok(one.clone()),
        _ => Err(Failure::usage("several targets need a layout")
            .with_remedy("--layout span or stripe:64K, or --compare span,stripe:64K")),
    };
    let targets = match layouts.as_slice() {
        [] => vec![PlanTarget { path: single()?, ..PlanTarget::default() }],
        layouts => {
            if args.targets.len() < 2 {
                return Err(Failure::usage("a layout has two members at least")
                    .with_remedy("headroom sweep --compare span,stripe:64K A B C"));
            }
            layouts.iter().map(|layout| layouts::laid(*layout, &args.targets)).collect::<Result<_, _>>()?
        }
    };
    let targets: Vec<PlanTarget> =
        targets.into_iter().map(|target| PlanTarget { create_bytes: args.create, ..target }).collect();
    let workload = workload(args, 1, 1);
    workload.validate().map_err(|error| Failure::usage(&error))?;
    let placed = Placed { target: 0, weight: 1, workload, replay: None };
    let phase =
        Phase { workloads: vec![placed], ..Phase::single(Workload::from(shape(args)), RunLength::default()) };
    Ok(Plan { targets, phases: vec![phase] })
}

fn shape(args: &SweepArgs) -> Shape {
    Shape {
        pattern: args.pattern,
        caching: if args.buffered { Caching::Buffered } else { Caching::Direct },
        ..Shape::random_read(args.block).with_writes(args.writes)
    }
}

fn workload(args: &SweepArgs, outstanding: u32, threads: u32) -> Workload {
    let mut workload = Workload {
        outstanding: outstanding / threads,
        threads,
        seed: args.seed.wrapping_add(u64::from(outstanding)),
        ..Workload::from(shape(args))
    };
    workload.access.length_bytes = args.length;
    workload
}

/// From this share of its core on, a load thread may be what limits.
const BUSY_MAX: f64 = 0.75;

/// The highest rate that the cost model of the target gives, where its storage was measured; `None` for I/O through the page
/// cache.
fn operating_limit(args: &SweepArgs, opened: &Opened, history: &History) -> Option<f64> {
    let shape = shape(args);
    let facts = opened.facts().remove(&opened.region(0, shape.caching).name())?;
    let known = Known::read(history, &facts, shape.caching).ok().filter(|_| !args.buffered)?;
    let measured = known.capability.filter(|capability| capability.origin.is_measured())?;
    Some(measured.cost_model?.iops_max(&shape)).filter(|limit| limit.is_finite())
}

/// All steps on one target.
fn sweep(
    args: &SweepArgs,
    opened: &Opened,
    (at, of): (usize, usize),
    out: &mut Output,
) -> Result<Sweep, Failure> {
    let shape = shape(args);
    let region = opened.region(0, shape.caching);
    let facts: Option<TargetFacts> = opened.facts().remove(&region.name());
    let around = facts.as_ref().map(measure::knee_context).unwrap_or_default();
    let mut taken: Vec<SweepStep> = Vec::new();
    let cores = std::thread::available_parallelism().map_or(1, |cores| cores.get() as u32);
    let mut threads = args.threads.unwrap_or(1);
    let mut again_left = RUNS_AGAIN_MAX;
    loop {
        let points: Vec<Point> = taken.iter().map(|step| step.point.clone()).collect();
        let Some(outstanding) = args.outstanding.next(&points, &shape, &around) else { break };
        // Every thread keeps the same number outstanding, so that N is as requested.
        let even =
            (1..=threads.min(outstanding)).rev().find(|it| outstanding.is_multiple_of(*it)).unwrap_or(1);
        let workload = workload(args, outstanding, even);
        let left = args.outstanding.left(points.len()).map(|steps| (steps + 1) * (of - at));
        let step = step(args, region, &workload, left, out)?;
        let stopped = step.result.interrupted || interrupt::requested();
        if step.result.was_stopped() && !stopped && again_left > 0 {
            again_left -= 1;
            out.warn(format_args!("{STOPPED}: this step is run again"));
            continue;
        }
        let busy = args.threads.is_none() && step.result.thread_busy_max() >= BUSY_MAX && threads < cores;
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
    args: &SweepArgs,
    region: &Region,
    workload: &Workload,
    steps_left: Option<usize>,
    out: &mut Output,
) -> Result<SweepStep, Failure> {
    let target = region.name();
    let length = RunLength { warm_up: args.warm_up, duration: args.duration, ..RunLength::default() };
    let mut queue = QueueWatch::new(region, args.sample);
    let all = workload.outstanding_total();
    let mut watch = |live: &load::LiveStats| {
        queue.sample(live);
        let iops = live.ios as f64 / live.elapsed.as_secs_f64().max(1e-3);
        let each = args.warm_up + args.duration;
        let left = steps_left.map(|steps| (each * steps as u32).saturating_sub(live.elapsed));
        out.progress(format_args!("{target}: {all} outstanding: {iops:.0} IOPS"), left);
        if interrupt::requested() { RunControl::Interrupt } else { RunControl::Continue }
    };
    let job = load::Job { region, workload, weight: 1, trace: None };
    // Twenty rows: batches for the confidence interval.
    let slice = (args.duration / 20).max(Duration::from_millis(50));
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
