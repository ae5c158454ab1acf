use crate::traces::Traces;
use capability::Capability;
use charts::NamedRun;
use report::html::{RunsPage, Validity};
use report::{Estimate, Simulation};
use simulate::{Fit, PredictedModel, SimulationProgress, Storage, WhatIf};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};
use storage::Target;
use terminal::{Done, FINE, Failure, Output, interrupt, kept, page, text_file};
use workload::{PhaseResult, Plan, Shape};

/// Arguments of `headroom simulate`.
#[derive(clap::Args)]
#[command(after_help = "\
FILE is a workload file, as headroom run --print-file prints one, with [storage] in it.
With --fit, the storage is a model of one that was measured, and how far the model \
is off on what it never saw is printed. Everything here is an estimate.

Examples:
  headroom simulate three-disks.toml
  headroom measure /data && headroom simulate --fit /data --what-if disks=3
  headroom simulate --fit capability.json --what-if latency=0.5x,clients=2x
  headroom simulate my.toml --fit /data --what-if disks=4,layout=stripe:256K")]
pub struct SimulateArgs {
    /// Workload and storage to simulate
    #[arg(value_name = "FILE", required_unless_present = "fit")]
    file: Option<PathBuf>,
    /// Model this measured storage: JSON of headroom measure, or a target that was measured
    #[arg(long, value_name = "CAPABILITY")]
    fit: Option<PathBuf>,
    /// Changes: disks=3, layout=stripe:64K, latency=0.5x, clients=2x, limits=2x or none, batch=10
    #[arg(long, value_name = "CHANGES")]
    what_if: Option<WhatIf>,
    /// Without FILE: I/Os that today's clients keep outstanding [default: as many as the knee]
    #[arg(long, value_name = "N", conflicts_with = "file", value_parser = workload_file::values::count)]
    outstanding: Option<u32>,
    /// Also write a page with charts
    #[arg(long, value_name = "FILE")]
    html: Option<PathBuf>,
}

/// I/Os of each point of a simulated curve.
const IOS_A_POINT: u64 = 20_000;

/// `headroom simulate`.
pub fn run(args: &SimulateArgs, history: Option<&Path>, out: &mut Output) -> Done {
    page::check(args.html.as_deref())?;
    interrupt::install();
    let measured = args.fit.as_ref().map(|of| capability(of, history)).transpose()?;
    let fit = measured.as_ref().map(|(capability, of)| fitted(capability, of, out)).transpose()?;
    match (&args.file, measured, fit) {
        (Some(file), _, fit) => run_file(args, file, fit, out),
        (None, Some((capability, of)), Some(fit)) => forecast(args, &capability, &of, fit, out),
        _ => Err(Failure::usage("there is nothing to simulate").with_remedy("give a FILE, or --fit")),
    }
}

/// The workloads of a file on its storage, or on a fitted one; with changes, before and after them.
fn run_file(args: &SimulateArgs, file: &Path, fit: Option<Fit>, out: &mut Output) -> Done {
    let (mut plan, storage) = read_file(file)?;
    let storage = match (storage, &fit) {
        (Some(_), Some(_)) => {
            let what = "the file says the storage, and --fit says another";
            return Err(Failure::usage(what).with_remedy("leave [storage] out of the file, or --fit here"));
        }
        (Some(storage), None) => storage,
        (None, Some(fit)) => fit.storage.clone(),
        (None, None) => {
            let what = format_args!("{} does not say the storage", file.display()).to_string();
            let remedy =
                "add [storage] with [[storage.disks]] (count, size, units, read, write), or give --fit";
            return Err(Failure::usage(what).with_remedy(remedy));
        }
    };
    // A name in a real file is a path that need not be there.
    if plan.targets.is_empty() {
        let path = PathBuf::from("simulated");
        plan.targets.push(workload::PlanTarget { path, create_bytes: None, laid: None });
    }
    if let Some(target) = plan.targets.iter().find(|target| target.laid.is_some()) {
        let what = format_args!("the target {} has a layout of its own", target.path.display()).to_string();
        return Err(
            Failure::usage(what).with_remedy("layout = \"stripe:64K\" under [storage], which lays its disks")
        );
    }
    let traces = Traces::read(&plan)?;
    let mut phases = simulated(&plan, &storage, &traces, out)?;
    if let Some(what_if) = args.what_if.as_ref().filter(|_| !interrupt::requested()) {
        let named = |phases: &mut Vec<PhaseResult>, what: &str| {
            phases
                .iter_mut()
                .for_each(|phase| phase.name = format!("{} {what}", phase.name).trim().to_owned());
        };
        named(&mut phases, "unchanged");
        let phases_then = plan.phases.iter().map(|phase| what_if.phase(phase)).collect();
        let then = Plan { phases: phases_then, ..plan.clone() };
        let mut changed = simulated(&then, &what_if.storage(&storage), &traces, out)?;
        named(&mut changed, "if changed");
        phases.extend(changed);
    }
    let simulation = Simulation { phases, storage, fit };
    out.answer(
        |style| report::text::simulation(&simulation, style),
        || report::json::simulation(&simulation),
    );
    let title = format!("Simulated: {}", file.display());
    let sentences = [report::simulated_note(simulation.fit.as_ref())];
    let page = || {
        report::html::runs(&RunsPage {
            title: &title,
            runs: &NamedRun::phases(&simulation.phases),
            charts: &[],
            sentences: &sentences,
            validity: Validity::Unknown,
            command: &page::command_line(),
            version: env!("CARGO_PKG_VERSION"),
        })
    };
    page::write(args.html.as_deref(), page, out)?;
    Ok(FINE)
}

fn simulated(
    plan: &Plan,
    storage: &Storage,
    traces: &Traces,
    out: &mut Output,
) -> Result<Vec<PhaseResult>, Failure> {
    let mut begun = (0, Instant::now());
    let phases = plan.phases.len();
    let mut watch = |progress: SimulationProgress| {
        if begun.0 != progress.phase {
            begun = (progress.phase, Instant::now());
        }
        let elapsed = begun.1.elapsed();
        let left = (progress.share > 0.01).then(|| elapsed.mul_f64((1.0 - progress.share) / progress.share));
        let percent = progress.share * 100.0;
        out.progress(
            format_args!("simulating phase {} of {phases}, {percent:.0} %", progress.phase + 1),
            left,
        );
        !interrupt::requested()
    };
    let simulated = simulate::simulate(plan, storage, &|placed| traces.replayed_by(placed), &mut watch);
    let simulated = simulated.map_err(|error| Failure::usage(&error.what).with_remedy(error.remedy))?;
    if simulated.phases.iter().flat_map(|phase| &phase.results).any(|result| result.interrupted) {
        out.warn("ended early: what was simulated until then is printed");
    }
    Ok(simulated.phases)
}

/// The curves of a measured storage's model, and what changes would make of them.
fn forecast(args: &SimulateArgs, capability: &Capability, of: &str, fit: Fit, out: &mut Output) -> Done {
    let what_if = args.what_if.unwrap_or_default();
    let shapes = capability.curves.iter().map(|curve| curve.workload);
    let shapes: Vec<Shape> = shapes.filter(|shape| simulate::is_fitted(capability, shape)).collect();
    let (commit, outstanding) = (fit.commit, args.outstanding);
    let model = PredictedModel { storage: &fit.storage, commit, outstanding, ios: IOS_A_POINT };
    let mut predictions = Vec::new();
    for (at, shape) in shapes.iter().enumerate() {
        out.progress(format_args!("simulating curve {} of {}", at + 1, shapes.len()), None::<Duration>);
        let predicted = simulate::predict(&model, shape, &what_if);
        predictions.push(predicted.map_err(|error| Failure::usage(&error.what).with_remedy(error.remedy))?);
        if interrupt::requested() {
            break;
        }
    }
    let estimate = Estimate {
        of: of.to_owned(),
        changes: args.what_if.is_some().then(|| what_if.to_string()),
        fit,
        cost_model: capability.cost_model.clone(),
        predictions,
    };
    out.answer(|style| report::text::estimate(&estimate, style), || report::json::estimate(&estimate));
    let page = || report::html::estimate(&estimate, env!("CARGO_PKG_VERSION"));
    page::write(args.html.as_deref(), page, out)?;
    Ok(FINE)
}

fn fitted(capability: &Capability, of: &str, out: &mut Output) -> Result<Fit, Failure> {
    out.progress(format_args!("fitting a model to {of}"), Some(Duration::from_secs(2)));
    simulate::fit(capability).map_err(|error| {
        Failure::new(format_args!("cannot fit a model to {of}: {error}"))
            .with_remedy("measure it without limiting what is measured: headroom measure TARGET")
    })
}

/// A capability from a file of JSON, or the newest that was kept of a target.
fn capability(of: &Path, history: Option<&Path>) -> Result<(Capability, String), Failure> {
    let name = of.display().to_string();
    let head = host::open_regular_file(of).ok();
    let is_json = of.extension().is_some_and(|extension| extension == "json");
    if let Some(file) = head.filter(|_| is_json) {
        let read = std::io::Read::take(file, CAPABILITY_BYTES_MAX);
        let capability = parse(std::io::BufReader::new(read)).map_err(|error| {
            Failure::new(format_args!("cannot read {name}: {error}"))
                .with_remedy("give what headroom measure TARGET --json prints")
        })?;
        return Ok((capability, name));
    }
    let target = Target::open(of)?;
    let stored = kept::open(history)?.latest_capability(target.facts())?;
    let missing = || {
        Failure::new(format_args!("what {name} can give was never measured"))
            .with_remedy(format_args!("headroom measure {name}"))
    };
    stored.map(|(_, capability)| (capability, name.clone())).ok_or_else(missing)
}

/// As it is kept, or as `headroom measure --json` shows it, whose time does not matter here.
fn parse(read: impl std::io::Read) -> Result<Capability, serde_json::Error> {
    let mut value: serde_json::Value = serde_json::from_reader(read)?;
    if let Some(fields) = value.as_object_mut() {
        fields.entry("measured_unix_ns").or_insert(0.into());
    }
    serde_json::from_value(value)
}

/// A longer file is no capability.
const CAPABILITY_BYTES_MAX: u64 = 64 << 20;

fn read_file(file: &Path) -> Result<(Plan, Option<Storage>), Failure> {
    let text = text_file::read(
        file,
        "workload file",
        "a TOML file as headroom run --print-file prints, with [storage]",
    )?;
    simulate::read(&text).map_err(|error| {
        let remedy = error.remedy.clone();
        Failure::usage(format_args!("cannot simulate {}: {error}", file.display())).with_remedy(remedy)
    })
}
