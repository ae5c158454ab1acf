//! `headroom run`: one workload, a workload file, every combination of lists of values (matrix), or a rising load (sweep).

mod flags;
mod matrix;
mod session;
mod sweep;

pub use session::{Measured, RUNS_AGAIN_MAX, Run, STOPPED, plain, run_conditions, warn_of_changes};

use crate::layouts;
use crate::traces::Traces;
use flags::Flags;
use matrix::MatrixFlags;
use std::path::{Path, PathBuf};
use sweep::Steps;
use terminal::{Done, FINE, Failure, Output, kept, page, text_file};
use workload::{Layout, Phase, Plan, PlanTarget, RunResult};
use workload_file::{PRESETS, default_length, default_workload, preset};

/// Arguments of `headroom run`.
#[derive(clap::Args)]
#[command(
    help_template = "{about}\n\n{before-help}{usage-heading} {usage}\n\n{all-args}",
    before_help = "\
Examples:
  headroom run --preset oltp /data                        like a transactional database
  headroom run /data --block 8K --writes 30 --outstanding 32 --duration 1m
  headroom run /data --rate 2000/s --writes 30            arrivals that do not wait for completions
  headroom run /data --block 8K,64K --outstanding 1,4,16  six runs: each value with each
  headroom run /data --sweep                              rising load, until the target saturates
  headroom run /dev/vdb --writes 50 --destroy-data /dev/vdb
                                                          writes over a device: its content is lost
  headroom run --preset backup --print-file > my.toml     a workload file to edit
  headroom run --file my.toml /data",
    after_help = "-h shows the common flags, --help all"
)]
pub struct RunArgs {
    /// Directories (a test file is made in each and removed), files or block devices [default: .]
    #[arg(value_name = "TARGET")]
    targets: Vec<PathBuf>,
    /// Workload file, as --print-file prints it, or matrix with [axes]
    #[arg(long, value_name = "FILE", conflicts_with = "preset")]
    file: Option<PathBuf>,
    /// oltp, log, checkpoint, scan, backup or tempdb; flags replace its values
    #[arg(long, value_name = "NAME", value_parser = preset_name)]
    preset: Option<&'static workload_file::Preset>,
    /// Run nothing: print the flags as a workload file
    #[arg(long)]
    print_file: bool,
    /// Size of the test file in a directory, or of one kept at TARGET
    #[arg(long, value_name = "SIZE", value_parser = workload_file::values::some_bytes)]
    size: Option<u64>,
    /// Raise the outstanding I/Os of all threads together: FROM:TO:STEP, FROM:TO:geometric, a list, or adaptive[:TO]
    #[arg(
        long,
        value_name = "STEPS",
        num_args = 0..=1,
        require_equals = true,
        default_missing_value = "adaptive",
        value_parser = sweep::steps,
        conflicts_with_all = ["file", "preset", "outstanding", "print_file"]
    )]
    sweep: Option<Steps>,
    /// The targets as one: span (in sequence) or stripe:UNIT (interleaved); several are compared
    #[arg(long, value_name = "LIST", value_delimiter = ',')]
    layout: Vec<Layout>,
    /// Also write a page with charts
    #[arg(long, value_name = "FILE")]
    html: Option<PathBuf>,
    /// Write over this file or device: its content is lost
    #[arg(long, value_name = "PATH")]
    destroy_data: Vec<PathBuf>,
    #[command(flatten)]
    flags: Flags,
    #[command(flatten)]
    several: MatrixFlags,
}

fn preset_name(name: &str) -> Result<&'static workload_file::Preset, String> {
    preset(name).ok_or_else(|| {
        let known: Vec<String> =
            PRESETS.iter().map(|preset| format!("  {:10} {}", preset.name, preset.about)).collect();
        format!("there are\n{}", known.join("\n"))
    })
}

/// `headroom run`.
pub fn run(args: &RunArgs, history: Option<&Path>, out: &mut Output) -> Done {
    args.flags.check()?;
    if let Some(steps) = &args.sweep {
        return sweep::run(args, steps, history, out);
    }
    let file = args.file.as_deref().map(read_text).transpose()?;
    if args.makes_a_matrix(file.as_deref()) {
        return matrix::run(args, file.as_deref(), history, out);
    }
    let plan = args.plan(file.as_deref())?;
    if args.print_file {
        out.answer(|_| workload_file::write(&plan), || serde_json::json!(plan));
        return Ok(FINE);
    }
    let traces = Traces::read(&plan)?;
    page::check(args.html.as_deref())?;
    let mut history = kept::open_to_write(history)?;
    let answer = |measured: &Measured<'_>, out: &mut Output| {
        let findings_of = |result: &RunResult| measured.findings(result);
        out.answer(|style| report::text::phases(measured.phases, findings_of, style), || measured.json());
        page::write(args.html.as_deref(), || measured.page(), out)
    };
    let run = Run { plan: &plan, destroy: &args.destroy_data, traces: &traces, how: &plain, answer: &answer };
    run.conduct(&mut history, out)
}

fn read_text(file: &Path) -> Result<String, Failure> {
    text_file::read(file, "workload file", "a TOML file as headroom run --print-file prints")
}

impl RunArgs {
    /// Whether the arguments make several runs that are combined, rather than one plan.
    fn makes_a_matrix(&self, file: Option<&str>) -> bool {
        self.several.are_given()
            || self.flags.have_lists()
            || self.layout.len() > 1
            || (self.layout.is_empty() && self.targets.len() > 1)
            || file.is_some_and(matrix::is_definition)
    }

    /// The plan of one workload or of a workload file.
    ///
    /// # Errors
    /// Several values of a flag, which make a matrix.
    pub fn single_plan(&self) -> Result<Plan, Failure> {
        self.flags.check()?;
        let file = self.file.as_deref().map(read_text).transpose()?;
        if self.sweep.is_some() || self.makes_a_matrix(file.as_deref()) {
            return Err(Failure::usage("each side is one workload: no list of values, no --sweep"));
        }
        self.plan(file.as_deref())
    }

    fn plan(&self, file: Option<&str>) -> Result<Plan, Failure> {
        let mut plan = match (&self.file, file) {
            (Some(path), Some(text)) => {
                if !self.flags.are_silent() {
                    let what = "--file says what to run: flags that say it too are not taken beside it";
                    return Err(Failure::usage(what).with_remedy("write it into the file"));
                }
                read_plan(path, text)?
            }
            _ => Plan { targets: Vec::new(), phases: vec![phase(self)?] },
        };
        match (plan.targets.is_empty(), self.targets.is_empty()) {
            (true, _) => plan.targets.push(self.target()?),
            (false, false) => {
                let what = "the file names its targets: none is taken beside it";
                return Err(
                    Failure::usage(what).with_remedy("leave [targets] out of the file, or TARGET here")
                );
            }
            (false, true) if self.size.is_some() => {
                let what = "the file names its targets: --size is not taken beside it";
                return Err(
                    Failure::usage(what).with_remedy("create = \"SIZE\" in the file, beside the path")
                );
            }
            (false, true) => {}
        }
        Ok(plan)
    }

    /// The one target: a directory, file or device, or several as a layout.
    fn target(&self) -> Result<PlanTarget, Failure> {
        let target = match self.layout.first() {
            Some(layout) => layouts::laid(*layout, &self.targets)?,
            None => PlanTarget {
                path: self.targets.first().cloned().unwrap_or_else(|| PathBuf::from(".")),
                ..PlanTarget::default()
            },
        };
        Ok(PlanTarget { create_bytes: self.size, ..target })
    }
}

fn read_plan(path: &Path, text: &str) -> Result<Plan, Failure> {
    workload_file::read(text).map_err(|error| {
        let remedy = error.remedy.clone();
        Failure::usage(format_args!("cannot run {}: {error}", path.display())).with_remedy(remedy)
    })
}

/// The one phase that flags make.
fn phase(args: &RunArgs) -> Result<Phase, Failure> {
    let mut phase = match args.preset {
        Some(preset) => preset.phase(),
        None => Phase::single(default_workload(), default_length()),
    };
    let (settings, shared) = (args.flags.settings(), args.flags.shared());
    for (at, placed) in phase.workloads.iter_mut().enumerate() {
        if at == 0 {
            settings.apply(placed);
        } else {
            shared.apply(placed);
        }
        placed.workload.validate().map_err(|error| Failure::usage(&error))?;
    }
    args.flags.length().apply(&mut phase);
    phase.slice = args.flags.series.unwrap_or(phase.slice);
    Ok(phase)
}
