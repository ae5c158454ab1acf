//! `headroom measure`.

mod doubt;
mod gentle;
mod staged;

pub use staged::Staged;

use self::gentle::GentleFlags;
use crate::layouts;
use crate::run::warn_of_changes;
use crate::targets::{check_destroy, test_file_bytes};
use ::measure::{MeasureProgress, Plan};
use capability::{Capability, Effort};
use history::History;
use std::path::{Path, PathBuf};
use std::time::Duration;
use storage::{Access, Region, StorageError, Target, TestFile, Workspace};
use terminal::{
    Done, FINE, Failure, Output, failure::DMESG, interrupt, kept, page, problem_found, workspace,
};
use workload::{
    Caching, Layout, PlanTarget, TargetChange, TargetFacts, TargetKind, format_bytes, parse_bytes,
};

/// Arguments of `headroom measure`.
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  headroom measure /data                     a directory's storage, 75 s
  headroom measure /data --quick --json      half a minute, for a program
  headroom measure /dev/vdb --read-only      a device, not a byte written to it
  headroom measure /dev/vdb --destroy-data /dev/vdb
                                             writes too: its content is lost
  headroom measure --gentle /data            a live database's files, only read, in hours")]
pub struct MeasureArgs {
    /// Directory (a test file is made in it and removed), regular file or block device [default: .]
    #[arg(value_name = "TARGET")]
    targets: Vec<PathBuf>,
    /// The targets, two or more files or devices, as one: span (in sequence) or stripe:UNIT (interleaved)
    #[arg(long, value_name = "LAYOUT")]
    layout: Option<Layout>,
    #[command(flatten)]
    how: How,
    /// Write over this file or device: its content is lost
    #[arg(long, value_name = "PATH", conflicts_with = "read_only")]
    destroy_data: Vec<PathBuf>,
    /// Only read; without writes there is no cost model
    #[arg(long)]
    read_only: bool,
    /// Measure again only figures that observations contradict for a day. At most a quarter of the time
    #[arg(long, conflicts_with_all = ["layout", "read_only", "destroy_data", "buffered", "gentle"])]
    refresh: bool,
    /// Also write a page with charts
    #[arg(long, value_name = "FILE")]
    html: Option<PathBuf>,
    #[command(flatten)]
    gentle: GentleFlags,
}

/// How to measure: shared with `check`.
#[derive(clap::Args, Clone)]
pub struct How {
    /// Half a minute instead of 75 s, with wider confidence intervals
    #[arg(long, conflicts_with = "thorough")]
    quick: bool,
    /// Five minutes, with narrow confidence intervals
    #[arg(long)]
    thorough: bool,
    /// Size of the test file in a directory [default: 1G, less where little is free]
    #[arg(long, value_name = "SIZE", value_parser = some_bytes)]
    size: Option<u64>,
    /// Through the page cache, where direct I/O is unavailable; results are labelled so
    #[arg(long)]
    buffered: bool,
    /// Seed of the random offsets
    #[arg(long, default_value_t = 0, value_name = "N")]
    seed: u64,
}

/// A size that is not 0.
fn some_bytes(text: &str) -> Result<u64, String> {
    match parse_bytes(text) {
        Ok(0) => Err("a test file of 0 bytes measures nothing; give a size as in 64M or 1G".into()),
        size => size.map_err(|error| error.to_string()),
    }
}

/// The log that commits are measured with grows no further than this, then it is written over.
const LOG_BYTES_MAX: u64 = 128 << 20;
/// The smallest that a person may ask for: a few hundred of the largest blocks.
const SIZE_MIN: u64 = 16 << 20;
/// Others' I/O on the device above this is worth a warning.
const FOREIGN_IOPS_MAX: f64 = 20.0;

impl How {
    fn effort(&self) -> Effort {
        match (self.quick, self.thorough) {
            (true, _) => Effort::Quick,
            (_, true) => Effort::Thorough,
            _ => Effort::Default,
        }
    }

    fn plan(&self, writes: bool) -> Plan {
        let effort = self.effort();
        Plan { writes, caching: self.caching(), seed: self.seed, ..Plan::new(effort) }
    }

    /// The size of the test file in a directory.
    pub fn test_bytes(&self, target: &Target) -> u64 {
        self.size.unwrap_or_else(|| test_file_bytes(target))
    }

    /// Whether the page cache takes part.
    pub fn caching(&self) -> Caching {
        if self.buffered { Caching::Buffered } else { Caching::Direct }
    }
}

impl MeasureArgs {
    fn single_target(&self) -> Result<Option<&Path>, Failure> {
        match self.targets.as_slice() {
            [] => Ok(None),
            [one] => Ok(Some(one)),
            _ => Err(Failure::usage("several targets are measured as one")
                .with_remedy("--layout span or --layout stripe:64K; or one target after another")),
        }
    }

    /// Whether all of these were named as what may be written over.
    fn may_destroy(&self, members: &[PathBuf]) -> bool {
        let is_named = |path: &PathBuf| {
            self.destroy_data.iter().any(|named| workspace::canonical(named) == workspace::canonical(path))
        };
        members.iter().all(is_named)
    }
}

/// `headroom measure`.
pub fn run(args: &MeasureArgs, history: Option<&Path>, out: &mut Output) -> Done {
    if args.gentle.gentle {
        let (target, html) = (args.single_target()?, args.html.as_deref());
        return gentle::run(&args.gentle, args.how.effort(), target, history, html, out);
    }
    if args.refresh {
        return refresh(args, history, out);
    }
    let target = match args.layout {
        Some(layout) => layouts::laid(layout, &args.targets)?,
        None => {
            let path = args.single_target()?.unwrap_or(Path::new(".")).to_owned();
            PlanTarget { path, ..PlanTarget::default() }
        }
    };
    let directory = match target.laid {
        Some(_) => None,
        None => {
            Some(Target::open(&target.path)?).filter(|target| target.facts().kind == TargetKind::Directory)
        }
    };
    let members: Vec<PathBuf> = target.members().cloned().collect();
    check_destroy(&members, &args.destroy_data)?;
    page::check(args.html.as_deref())?;
    let mut history = kept::open_to_write(history)?;
    interrupt::install();
    let capability = if let Some(target) = &directory {
        let workspace = workspace::open(target.path(), &mut history, out)?;
        let place = TestPlace { target, workspace: &workspace };
        let capability = measure_directory(&place, &args.how, !args.read_only, &mut history, out)?;
        workspace::remove(workspace, out)?;
        capability
    } else {
        let access = match args.read_only {
            true => Access::ReadOnly,
            false => Access::ReadWrite { destroy_data: args.may_destroy(&members) },
        };
        let (region, facts) = layouts::open(&target, access, args.how.caching())?;
        sweep(&facts, &region, None, &args.how.plan(!args.read_only), out)?
    };
    // The answer first: a history or a page that cannot be written must not swallow it.
    answer(&capability, out);
    keep(&capability, &mut history, out)?;
    page::write(args.html.as_deref(), || report::html::capability(&capability), out)?;
    Ok(if has_problem(&capability) { problem_found() } else { FINE })
}

/// `headroom measure --refresh`: measures again the resources whose observed figures contradict the measurement of a
/// directory.
fn refresh(args: &MeasureArgs, history: Option<&Path>, out: &mut Output) -> Done {
    let target = Target::open(args.single_target()?.unwrap_or(Path::new(".")))?;
    if target.facts().kind != TargetKind::Directory {
        return Err(Failure::usage("only a directory is measured again in parts")
            .with_remedy("name a directory on the storage, or measure all of it without --refresh"));
    }
    page::check(args.html.as_deref())?;
    let mut history = kept::open_to_write(history)?;
    let (known, doubted) = doubt::in_doubt(&history, target.facts())?;
    if doubted.is_empty() {
        out.note("nothing to measure again: what was seen since agrees with the measurement");
        answer(&known, out);
        return Ok(FINE);
    }
    interrupt::install();
    let workspace = workspace::open(target.path(), &mut history, out)?;
    let place = TestPlace { target: &target, workspace: &workspace };
    let plan = args.how.plan(true);
    let capability = with_test_file(&place, &args.how, &mut history, out, |place, file, out| {
        let (region, facts) = (file.region(plan.caching)?, place.target.facts());
        let foreign_iops = foreign_iops(facts, out);
        let measured = ::measure::MeasuredTarget { region: &region, log: None, facts, foreign_iops };
        let mut watch = |progress: &::measure::MeasureProgress| {
            out.progress(format_args!("measuring again: {}", progress.doing), Some(progress.left));
            interrupt::break_if_requested()
        };
        Ok(::measure::refresh(measured, &plan, &known, &doubted, &mut watch)?)
    })?;
    workspace::remove(workspace, out)?;
    answer(&capability, out);
    keep(&capability, &mut history, out)?;
    page::write(args.html.as_deref(), || report::html::capability(&capability), out)?;
    Ok(if has_problem(&capability) { problem_found() } else { FINE })
}

fn answer(capability: &Capability, out: &mut Output) {
    out.answer(|style| report::text::capability(capability, style), || report::json::capability(capability));
}

/// Keeps it for later verdicts. Of what was ended early that is worth its place only where it decides a verdict.
pub fn keep(capability: &Capability, history: &mut History, out: &mut Output) -> Result<(), Failure> {
    let failed = failed(capability);
    if failed > 0 {
        out.warn(format_args!("{failed} I/Os on {} failed: {DMESG}", capability.target.path));
    }
    let changes = &capability.conditions.target_changes;
    if warn_of_changes(changes, out) && changes.iter().any(TargetChange::invalidates) {
        out.warn("what was measured is printed, and not kept in the history");
        return Ok(());
    }
    if interrupt::requested() {
        if !capability.is_preliminary() {
            out.warn("ended early: what was measured is printed, and not kept in the history");
            return Ok(());
        }
        out.warn("ended early: what was measured is kept as preliminary, until it is measured in full");
    }
    history.save_capability(capability)?;
    Ok(())
}

/// Whether I/Os failed, or another program changed the target.
fn has_problem(capability: &Capability) -> bool {
    failed(capability) > 0 || !capability.conditions.target_changes.is_empty()
}

fn failed(capability: &Capability) -> u64 {
    capability.curves.iter().flat_map(|curve| &curve.points).map(|point| point.failed).sum()
}

/// A directory to measure, and the workspace in it for the test file.
pub struct TestPlace<'a> {
    pub target: &'a Target,
    pub workspace: &'a Workspace,
}

/// Measures a directory through a test file of its own, which is removed afterwards.
pub fn measure_directory(
    place: &TestPlace<'_>,
    how: &How,
    writes: bool,
    history: &mut History,
    out: &mut Output,
) -> Result<Capability, Failure> {
    let plan = how.plan(writes);
    with_test_file(place, how, history, out, |place, file, out| on_test_file(place, file, &plan, out))
}

/// Runs a measurement of a directory on a test file of its own, which is removed afterwards.
fn with_test_file(
    place: &TestPlace<'_>,
    how: &How,
    history: &mut History,
    out: &mut Output,
    measure: impl FnOnce(&TestPlace<'_>, &TestFile, &mut Output) -> Result<Capability, Failure>,
) -> Result<Capability, Failure> {
    let bytes = check_place(place, how)?;
    let file = workspace::make_test_file(place.workspace, TEST_FILE, bytes, history, out)?;
    let measured = measure(place, &file, out);
    workspace::remove_test_file(file, history)?;
    measured
}

/// The size of the test file, if a directory can be measured.
fn check_place(place: &TestPlace<'_>, how: &How) -> Result<u64, Failure> {
    let TestPlace { target, workspace } = place;
    let bytes = how.test_bytes(target);
    // Checked first, because the further checks need space too.
    workspace.check_room(bytes)?;
    if how.caching() == Caching::Direct && target.facts().direct_align_bytes.is_none() {
        return Err(Failure::new(format_args!(
            "cannot measure {}: its file system does every I/O through memory (no direct I/O)",
            target.path().display()
        ))
        .with_remedy("--buffered, which includes the page cache and is labelled so, or another directory"));
    }
    if let Some(size) = how.size.filter(|size| *size < SIZE_MIN) {
        return Err(Failure::usage(format_args!(
            "--size {} is too small to measure anything; give at least {}",
            format_bytes(size),
            format_bytes(SIZE_MIN)
        )));
    }
    Ok(bytes)
}

fn on_test_file(
    place: &TestPlace<'_>,
    file: &TestFile,
    plan: &Plan,
    out: &mut Output,
) -> Result<Capability, Failure> {
    let region = file.region(plan.caching)?;
    let log = log_region(place, file)?;
    sweep(place.target.facts(), &region, Some(&log), plan, out)
}

/// The file that appends are measured with.
fn log_region(place: &TestPlace<'_>, file: &TestFile) -> Result<Region, StorageError> {
    Ok(Region {
        file: place.workspace.create("log")?,
        offset_bytes: 0,
        bytes: LOG_BYTES_MAX.min(file.bytes() / 8),
        direct: false,
        align_bytes: 1,
        memory_align_bytes: 1,
        path: place.workspace.entry("log"),
        volume: None,
    })
}

/// The test file's name in the workspace.
const TEST_FILE: &str = "test";

fn sweep(
    facts: &TargetFacts,
    region: &Region,
    log: Option<&Region>,
    plan: &Plan,
    out: &mut Output,
) -> Result<Capability, Failure> {
    let foreign_iops = foreign_iops(facts, out);
    let target = ::measure::MeasuredTarget { region, log, facts, foreign_iops };
    let mut watch = |progress: &MeasureProgress| {
        show_progress(progress, progress.left, out);
        interrupt::break_if_requested()
    };
    Ok(::measure::measure(target, plan, &mut watch)?)
}

/// Load of other programs on the device, with a warning where it matters.
fn foreign_iops(facts: &TargetFacts, out: &mut Output) -> Option<f64> {
    let foreign_iops =
        facts.device_number().and_then(|number| storage::foreign_load(number, Duration::from_millis(500)));
    if let Some(iops) = foreign_iops.filter(|iops| *iops > FOREIGN_IOPS_MAX) {
        out.warn(format_args!(
            "other programs do {iops:.0} IOPS on this storage: the result will be lower than what it can give, \
             and they will feel the load"
        ));
    }
    foreign_iops
}

fn show_progress(progress: &MeasureProgress, left: Duration, out: &mut Output) {
    out.progress(
        format_args!("measuring {}: {:.0} I/Os a second", progress.doing, progress.iops),
        Some(left),
    );
}
