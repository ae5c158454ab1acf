//! Every combination of lists of values: the runs (definition), their targets (places) and their process (owner), run sequentially.

mod definition;
mod owner;
mod places;
mod sheet;

use super::{RUNS_AGAIN_MAX, RunArgs, STOPPED, warn_of_changes};
use ::matrix::script::{self, ScriptFormat};
use ::matrix::{Figures, Matrix, Order, Planner, Point, Progress, Row, RunKey, RunState, Step, Summary};
use charts::{Factor, NamedRun};
pub use definition::is_definition;
use definition::one_of;
use history::{History, MatrixId};
use load::RunControl;
use places::Places;
use report::html::{RunsPage, Validity};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};
use terminal::{Done, FINE, Failure, Output, failure::DMESG, interrupt, kept, page, problem_found};
use workload::{RunResult, TargetChange};
use workload_file::values;

/// Options of several runs that are combined.
#[derive(clap::Args, Default, PartialEq)]
pub struct MatrixFlags {
    /// Runs of each combination; several give confidence intervals [default: 1]
    #[arg(long, value_name = "N", help_heading = SEVERAL)]
    repeats: Option<u32>,
    /// listed or random [default: listed]
    #[arg(long, value_name = "ORDER", value_parser = definition::order, help_heading = SEVERAL, hide_short_help = true)]
    order: Option<Order>,
    /// Time for all of it: a coarse pass first, then where curves bend or repeats disagree
    #[arg(long, value_name = "TIME", value_parser = values::some_time, help_heading = SEVERAL)]
    budget: Option<Duration>,
    /// Skip points beyond saturation: where four times the outstanding I/Os gain less than PERCENT [default: 5]
    #[arg(
        long,
        value_name = "PERCENT",
        num_args = 0..=1,
        require_equals = true,
        default_missing_value = "5",
        help_heading = SEVERAL,
        hide_short_help = true
    )]
    prune: Option<f64>,
    /// Resume matrix ID, or FILE's, or the newest that is not finished
    #[arg(
        long,
        value_name = "ID",
        num_args = 0..=1,
        require_equals = true,
        conflicts_with = "start_over",
        help_heading = SEVERAL
    )]
    resume: Option<Option<i64>>,
    /// Start a new matrix although the same one is unfinished
    #[arg(long, help_heading = SEVERAL, hide_short_help = true)]
    start_over: bool,
    /// Only print the runs in their order, with their seeds, and the estimated time
    #[arg(long, conflicts_with_all = ["resume", "emit"], help_heading = SEVERAL)]
    dry_run: bool,
    /// Print a script for hosts without Headroom: diskspd, fio (a job file) or sh (fio)
    #[arg(long, value_name = "TOOL", value_parser = kind, conflicts_with = "resume", help_heading = SEVERAL, hide_short_help = true)]
    emit: Option<ScriptFormat>,
    /// Name for lists and headings
    #[arg(long, help_heading = SEVERAL, hide_short_help = true)]
    name: Option<String>,
    /// Also write the table as CSV
    #[arg(long, value_name = "FILE", help_heading = SEVERAL, hide_short_help = true)]
    csv: Option<PathBuf>,
}

const SEVERAL: &str = "Several runs (lists of values are combined, each with each)";

impl MatrixFlags {
    /// Whether one was given.
    pub fn are_given(&self) -> bool {
        *self != MatrixFlags::default()
    }
}

fn kind(text: &str) -> Result<ScriptFormat, String> {
    let kinds = [("diskspd", ScriptFormat::Diskspd), ("fio", ScriptFormat::Fio), ("sh", ScriptFormat::Sh)];
    one_of(&kinds, text)
}

/// Runs every combination; `text` is that of the file.
pub fn run(args: &RunArgs, text: Option<&str>, history: Option<&Path>, out: &mut Output) -> Done {
    let flags = &args.several;
    if let Some(kind) = flags.emit {
        let matrix = definition::matrix(args, text)?;
        let script = script::emit(kind, &matrix, !args.destroy_data.is_empty()).map_err(Failure::usage)?;
        out.answer(|_| script.clone(), || serde_json::json!({ "script": script }));
        return Ok(FINE);
    }
    if flags.dry_run {
        return dry_run(&definition::matrix(args, text)?, out);
    }
    sheet::check(flags.csv.as_deref())?;
    page::check(args.html.as_deref())?;
    let open = if defines_runs(args) { kept::open_to_write } else { kept::open_to_change };
    let mut history = open(history)?;
    interrupt::install();

    let id = start_or_resume(args, text, &mut history)?;
    let worked = work(id, &args.destroy_data, &mut history, out);
    if !history.leave_matrix(id)? {
        worked?;
        return Err(Failure::new("ended before the first run was done: nothing is kept"));
    }
    // Kept results are shown, also where the rest could not be done.
    let (summary, changes) = summary(id, &history)?;
    out.answer(|style| report::text::matrix(&summary, style), || report::json::matrix(&summary));
    sheet::write(flags.csv.as_deref(), || report::csv::matrix(&summary), out)?;
    write_page(args.html.as_deref(), &summary, id, &history, out)?;
    if let Some(left) = &summary.left {
        let done: usize = summary.rows.iter().map(|row| row.runs.len()).sum();
        out.warn(format_args!(
            "ended early: {done} runs are kept and {} are left; headroom run --resume={id} continues",
            left.runs
        ));
    }
    worked?;
    let failed: u64 = summary.rows.iter().map(|row| row.failed).sum();
    if failed > 0 {
        out.warn(format_args!("{failed} I/Os failed: {DMESG}"));
    }
    let is_changed = warn_of_changes(&changes, out);
    Ok(if failed > 0 || is_changed { problem_found() } else { FINE })
}

/// The page, with heat maps over the two axes that have most values.
fn write_page(
    path: Option<&Path>,
    summary: &Summary,
    id: MatrixId,
    history: &History,
    out: &mut Output,
) -> Result<(), Failure> {
    if path.is_none() {
        return Ok(());
    }
    let mut runs = Vec::new();
    for point in 0..summary.rows.len() {
        runs.extend(history.matrix_results(id, point)?.into_iter().map(|(_, _, result)| result));
    }
    let axes = &summary.matrix.axes;
    let mut factors = [
        (Factor::BlockSize, axes.block.len()),
        (Factor::Outstanding, axes.outstanding.len()),
        (Factor::Threads, axes.threads.len()),
        (Factor::WriteShare, axes.write_percent.len()),
        (Factor::Pattern, axes.pattern.len()),
        (Factor::Target, summary.matrix.targets.len()),
    ];
    factors.sort_by_key(|(_, values)| std::cmp::Reverse(*values));
    let shown = NamedRun::all(&runs);
    let left =
        summary.left.as_ref().map(|left| format!("{} runs are left: the matrix is not finished.", left.runs));
    let sentences: Vec<String> = left.into_iter().collect();
    let title =
        if summary.matrix.name.is_empty() { charts::title(&shown) } else { summary.matrix.name.clone() };
    let shown = RunsPage {
        title: &title,
        runs: &shown,
        charts: &[],
        sentences: &sentences,
        validity: Validity::Unknown,
        command: &page::command_line(),
        version: env!("CARGO_PKG_VERSION"),
    };
    page::write(path, || report::html::matrix(&shown, factors[0].0, factors[1].0), out)
}

/// Whether the arguments say what to run, rather than only to resume it.
fn defines_runs(args: &RunArgs) -> bool {
    let MatrixFlags { repeats, order, budget, prune, name, .. } = &args.several;
    args.file.is_some()
        || !args.targets.is_empty()
        || !args.flags.are_silent()
        || args.size.is_some()
        || repeats.is_some()
        || order.is_some()
        || budget.is_some()
        || prune.is_some()
        || name.is_some()
}

/// The matrix that this process works at from now on.
fn start_or_resume(args: &RunArgs, text: Option<&str>, history: &mut History) -> Result<MatrixId, Failure> {
    let us = owner::this_process();
    let take = |history: &mut History, id| -> Result<MatrixId, Failure> {
        history.take_matrix(id, &us, owner::is_alive)?;
        Ok(id)
    };
    let MatrixFlags { resume, start_over, .. } = args.several;
    if let Some(Some(id)) = resume {
        if defines_runs(args) {
            return Err(Failure::usage("--resume=ID continues what was started; leave the rest out"));
        }
        return take(history, MatrixId(id));
    }
    if resume.is_some() && !defines_runs(args) {
        let Some(id) = history.unfinished_matrix(None)? else {
            return Err(Failure::new("there is no matrix to go on with: all that were started are finished")
                .with_remedy("headroom history matrices, and --resume=ID, which prints one again"));
        };
        return take(history, id);
    }
    let matrix = definition::matrix(args, text)?;
    let unfinished = history.unfinished_matrix(Some(&matrix))?;
    match unfinished {
        Some(id) if resume.is_some() => take(history, id),
        Some(id) if !start_over => Err(Failure::usage(format_args!(
            "this matrix was started before, as matrix {id}, and is not finished"
        ))
        .with_remedy(format_args!("--resume continues it, --start-over starts a new one"))),
        _ => Ok(history.start_matrix(&matrix, &us)?),
    }
}

/// Does the remaining runs.
fn work(id: MatrixId, destroy: &[PathBuf], history: &mut History, out: &mut Output) -> Result<(), Failure> {
    let (matrix, mut progress) = history.matrix(id)?;
    if progress.counts().0 == 0 {
        return Ok(());
    }
    let planner = Planner::new(&matrix);
    let began = Instant::now();
    let places = Places::check(&matrix, &planner, &progress, destroy)?;
    let forecast = planner.forecast(&progress, places.bytes_to_write());
    out.note(format_args!("matrix {id}: {}", report::text::forecast(&matrix, &forecast)));
    let prepared = places.prepare(id, history, out)?;
    let spent = began.elapsed();
    history.spend_matrix_time(id, spent)?;
    progress.spent += spent;

    let worked =
        Work { id, matrix: &matrix, planner: &planner, places: &prepared }.run(progress, history, out);
    let cleaned = prepared.remove(history, out);
    worked.and(cleaned)
}

struct Work<'a> {
    id: MatrixId,
    matrix: &'a Matrix,
    planner: &'a Planner,
    places: &'a places::Prepared,
}

impl Work<'_> {
    fn run(&self, mut progress: Progress, history: &mut History, out: &mut Output) -> Result<(), Failure> {
        // From the end of one run to the end of the next, so that keeping a result counts as well.
        let mut since = Instant::now();
        while !interrupt::requested() {
            match self.planner.next(&progress) {
                Step::Finished => break,
                Step::Skip(skipped) => {
                    history.skip_matrix_runs(self.id, &skipped)?;
                    progress.skip(&skipped);
                    self.tell_skipped(&skipped, out);
                }
                Step::Run(key) => {
                    history.begin_matrix_run(self.id, key)?;
                    let result = self.one(key, &progress, out)?;
                    let took = since.elapsed();
                    since = Instant::now();
                    progress.spent += took;
                    if result.interrupted || interrupt::requested() {
                        history.spend_matrix_time(self.id, took)?;
                        break;
                    }
                    history.keep_matrix_run(self.id, key, &result, took)?;
                    let latency_ns = result.latency().mean_ns().unwrap_or(0.0);
                    progress.set(key, RunState::Done(Figures { iops: result.iops(), latency_ns, took }));
                }
            }
        }
        Ok(())
    }

    fn one(&self, key: RunKey, progress: &Progress, out: &mut Output) -> Result<RunResult, Failure> {
        let point = &self.planner.points()[key.point];
        let workload = self.matrix.workload(point, self.matrix.seed(key, point));
        let forecast = self.planner.forecast(progress, 0);
        let (_, done, _) = progress.counts();
        let (label, all) = (self.matrix.label(point), done + forecast.runs.max(1));
        let mut watch = |live: &load::LiveStats| {
            let iops = live.ios as f64 / live.elapsed.as_secs_f64().max(1e-3);
            let left = forecast.time.saturating_sub(live.elapsed);
            out.progress(format_args!("run {} of {all}: {label}: {iops:.0} IOPS", done + 1), Some(left));
            if interrupt::requested() { RunControl::Interrupt } else { RunControl::Continue }
        };
        let region = self.places.region(point.target);
        let length = self.matrix.runs.length();
        let mut again_left = RUNS_AGAIN_MAX;
        let mut result = loop {
            let ran = load::run(region, &workload, &length, &mut watch);
            let result = ran.map_err(|error| Failure::from(error).with_fact(format_args!("run: {label}")))?;
            if !result.was_stopped() || result.interrupted || again_left == 0 {
                break result;
            }
            again_left -= 1;
        };
        if result.was_stopped() {
            out.warn(format_args!("{STOPPED}: the figures of {label} are not valid"));
        }
        // As the person named it, not the test file in it.
        result.target.clone_from(&self.matrix.targets[point.target]);
        Ok(result)
    }

    fn tell_skipped(&self, skipped: &[(RunKey, String)], out: &mut Output) {
        for (key, reason) in skipped.iter().take(SKIPPED_SHOWN_MAX) {
            let label = self.matrix.label(&self.planner.points()[key.point]);
            out.note(format_args!("skipped {label}: {reason}"));
        }
        if skipped.len() > SKIPPED_SHOWN_MAX {
            out.note(format_args!("and {} runs more", skipped.len() - SKIPPED_SHOWN_MAX));
        }
    }
}

/// The most skipped runs that are reported immediately; the table has all.
const SKIPPED_SHOWN_MAX: usize = 8;

/// The kept results of a matrix, and changes that other programs made to its targets while it ran.
fn summary(id: MatrixId, history: &History) -> Result<(Summary, Vec<TargetChange>), Failure> {
    let (matrix, progress) = history.matrix(id)?;
    let planner = Planner::new(&matrix);
    let (mut rows, mut changes) = (Vec::new(), Vec::new());
    for (at, point) in planner.points().iter().enumerate() {
        let results: Vec<(RunKey, i64, RunResult)> = history
            .matrix_results(id, at)?
            .into_iter()
            .map(|(key, run, result)| (key, run.0, result))
            .collect();
        for change in results.iter().flat_map(|(_, _, result)| &result.target_changes) {
            if !changes.contains(change) {
                changes.push(change.clone());
            }
        }
        let mut row = Row::from_results(&matrix, point, &results);
        for repeat in 0..matrix.runs.repeats {
            match progress.get(RunKey { point: at, repeat }) {
                Some(RunState::Skipped { reason }) => row.skipped = Some(reason.clone()),
                Some(RunState::Planned) => row.planned += 1,
                _ => {}
            }
        }
        rows.push(row);
    }
    let left = (progress.counts().0 > 0).then(|| planner.forecast(&progress, 0));
    Ok((Summary { id: id.0, matrix, rows, left }, changes))
}

fn dry_run(matrix: &Matrix, out: &mut Output) -> Done {
    let planner = Planner::new(matrix);
    let forecast = planner.forecast(&Progress::new(matrix), 0);
    // Of a budget that has not time for all, only the coarse pass is known before.
    let known: Vec<RunKey> = if forecast.left_out > 0 {
        planner.coarse().iter().map(|point| RunKey { point: *point, repeat: 0 }).collect()
    } else {
        planner.order().to_vec()
    };
    let runs: Vec<(RunKey, &Point, u64)> = known
        .iter()
        .map(|key| {
            let point = &planner.points()[key.point];
            (*key, point, matrix.seed(*key, point))
        })
        .collect();
    out.answer(
        |_| {
            let mut text = report::text::forecast(matrix, &forecast) + " (test files not counted)\n";
            for (at, (key, point, seed)) in runs.iter().enumerate() {
                let repeat =
                    if matrix.runs.repeats > 1 { format!(", run {}", key.repeat + 1) } else { String::new() };
                text.push_str(&format!("{:>6}  {}{repeat}, seed {seed}\n", at + 1, matrix.label(point)));
            }
            text
        },
        || {
            let runs: Vec<serde_json::Value> = runs
                .iter()
                .map(|(key, point, seed)| {
                    serde_json::json!({ "point": point, "number": key.point, "repeat": key.repeat, "seed": seed })
                })
                .collect();
            serde_json::json!({
                "definition": matrix, "runs": runs,
                "forecast": forecast,
            })
        },
    );
    Ok(FINE)
}
