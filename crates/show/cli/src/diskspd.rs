//! `headroom diskspd`: runs diskspd command lines unchanged.

mod options;
mod system;

use crate::run::{Measured, Run};
use crate::targets::Opened;
use crate::traces::Traces;
use ::diskspd::checked::{Checked, Refused, check};
use ::diskspd::command_line::{CommandLine, Source, parse};
use ::diskspd::plan::{Advice, Affinity, Extras, Planned, to_plan};
use ::diskspd::profile::{Priority, ResultFormat};
use ::diskspd::profile_xml;
use ::diskspd::report::{self, Report, profile_text};
use ::diskspd::usage::{USAGE, UsageError};
use ::diskspd::windows_path;
use load::RunOptions;
use options::{Options, TextForm};
use std::io::Read;
use std::path::Path;
use terminal::{Done, FINE, Failure, Output, kept};
use workload::{Phase, Plan};

/// Arguments of `headroom diskspd`: diskspd's own, not ours.
#[derive(clap::Args)]
#[command(disable_help_flag = true)]
pub struct DiskspdArgs {
    /// Flags and targets as diskspd takes them; -? lists them
    #[arg(trailing_var_arg = true, allow_hyphen_values = true, value_name = "FLAGS AND TARGETS")]
    arguments: Vec<String>,
}

/// More than a profile of ten thousand targets has.
const XML_BYTES_MAX: u64 = 64 << 20;
/// A longer command line is cut where it names a run in the history.
const NAME_CHARS_MAX: usize = 120;

/// Names of remedies in this command: (ours, theirs).
const WORDS: [(&str, &str); 8] = [
    ("a directory, or another path", "another path"),
    ("--size SIZE", "-cSIZE"),
    ("--size ", "-c"),
    ("--outstanding", "-o"),
    ("--threads", "-t"),
    ("--block", "-b"),
    ("--buffered", "-Sb"),
    ("buffer: --set buffer=SIZE", "-Z"),
];

/// `headroom diskspd`.
pub fn run(args: &DiskspdArgs, history: Option<&Path>, out: &mut Output) -> Done {
    let asked = match parse(&args.arguments, &options::VALUED).map_err(wrong_usage)? {
        CommandLine::Run(asked) => asked,
        CommandLine::Usage => {
            out.answer(|_| USAGE.into(), || serde_json::json!({"usage": USAGE}));
            return Ok(FINE);
        }
    };
    let options = Options::read(&asked.ours)?;
    if options.json {
        out.print_json();
    }
    let xml = read_xml(&asked.source)?;
    let mut checked = check(&asked, xml.as_deref(), clock_seed(), options.ignore_unsupported)
        .map_err(|why| refused(why, &asked.source))?;
    if let Some(directory) = &options.target {
        for target in windows_path::place(&mut checked.profile, directory).map_err(wrong_usage)? {
            out.warn(format_args!("'{}' is {} here", target.windows, target.here));
        }
    } else if !asked.common.profile_only {
        windows_path::refuse(&checked.profile, &args.arguments).map_err(wrong_usage)?;
    }
    warn(&checked, options.ignore_unsupported, out);
    let planned = to_plan(&checked.profile).map_err(wrong_usage)?;
    planned.notes.iter().for_each(|note| out.warn(note));
    let line = format!("headroom diskspd {}", args.arguments.join(" "));
    if asked.common.profile_only {
        let text = match checked.profile.result_format {
            ResultFormat::Xml => profile_xml::write(&checked.profile),
            ResultFormat::Text => profile_text(&line, &checked.profile),
        };
        out.answer(|_| text, || serde_json::json!({"plan": planned.plan, "notes": planned.notes}));
        return Ok(FINE);
    }
    let print = printer(options.text_form, checked.profile.result_format)?;
    let history = options.history.as_deref().or(history);
    let load = Load { line: &line, checked: &checked, planned, print };
    load.run(&options, history, out).map_err(|why| why.with_option_names(&WORDS))
}

/// A checked command line that is about to run.
struct Load<'a> {
    line: &'a str,
    checked: &'a Checked,
    planned: Planned,
    /// Writes the results in the form that was requested.
    print: Printer,
}

impl Load<'_> {
    /// Runs the plan, and prints the results in diskspd's form.
    fn run(self, options: &Options, history: Option<&Path>, out: &mut Output) -> Done {
        let Load { line, checked, planned: Planned { mut plan, extras, .. }, print } = self;
        refuse_directories(&plan)?;
        let system = system::facts(Path::new("/"));
        extras.iter().try_for_each(|extras| check_cpus(&extras.affinity))?;
        name(&mut plan, line);
        let answer = |measured: &Measured<'_>, out: &mut Output| {
            let phases = measured.phases;
            let report = Report { command_line: line, profile: &checked.profile, system: &system, phases };
            let json = || {
                let mut answer = measured.json();
                answer["command_line"] = serde_json::json!(line);
                answer
            };
            out.answer(|_| print(&report), json);
            Ok(())
        };
        let how = |at: usize, phase: &Phase, opened: &Opened| {
            let span = &checked.profile.time_spans[at];
            advise(phase, &extras[at], opened)?;
            Ok(together(phase, &extras[at], span.iops_deviation))
        };
        let (traces, mut history) = (Traces::default(), kept::open_to_write(history)?);
        let run =
            Run { plan: &plan, destroy: &options.destroy_data, traces: &traces, how: &how, answer: &answer };
        run.conduct(&mut history, out)
    }
}

/// Writes a report as text.
type Printer = fn(&Report<'_>) -> String;

fn printer(text: TextForm, requested: ResultFormat) -> Result<Printer, Failure> {
    match (text, requested) {
        (TextForm::Current, ResultFormat::Text) => Ok(report::text),
        (TextForm::Of2016, ResultFormat::Text) => Ok(report::text_2016),
        (TextForm::Current, ResultFormat::Xml) => Ok(report::xml),
        (TextForm::Of2016, ResultFormat::Xml) => {
            let what = "--format 2.0.17 with -Rxml: only the text has an older form";
            Err(Failure::usage(what).with_remedy("leave one of them out"))
        }
    }
}

/// A directory gets a test file in `headroom run`; diskspd's targets are the files themselves.
fn refuse_directories(plan: &Plan) -> Result<(), Failure> {
    let Some(target) = plan.targets.iter().find(|target| target.path.is_dir()) else { return Ok(()) };
    let path = target.path.display();
    let what = format!("cannot load {path}: it is a directory, and diskspd's targets are files");
    Err(Failure::new(what).with_remedy(format_args!("-c1G {path}/test.dat, which makes a file in it")))
}

/// Refuses CPUs that this process may not use: the scheduler would place their threads anywhere.
fn check_cpus(affinity: &Affinity) -> Result<(), Failure> {
    let (Affinity::Cores(requested), Some(allowed)) = (affinity, system::allowed_cpus()) else {
        return Ok(());
    };
    let Some(lacking) = requested.iter().find(|cpu| !allowed.contains(cpu)) else { return Ok(()) };
    let allowed: Vec<String> = allowed.iter().map(u32::to_string).collect();
    Err(Failure::usage(format_args!("-a{lacking}: this program may not run on CPU {lacking}"))
        .with_fact(format_args!("it may run on {}", allowed.join(", ")))
        .with_remedy("give some of these, or -n"))
}

/// Names the runs of a plan by the command line, for the history.
fn name(plan: &mut Plan, line: &str) {
    let cut = line.chars().count() > NAME_CHARS_MAX;
    let mut name: String = line.chars().take(NAME_CHARS_MAX).collect();
    if cut {
        name.push('…');
    }
    for placed in plan.phases.iter_mut().flat_map(|phase| &mut phase.workloads) {
        placed.workload.name.clone_from(&name);
    }
}

fn together(phase: &Phase, extras: &Extras, thread_series: bool) -> RunOptions {
    let affinity = match &extras.affinity {
        Affinity::None => load::Affinity::None,
        Affinity::RoundRobin => load::Affinity::RoundRobin,
        Affinity::Cores(cores) => load::Affinity::Cores(cores.clone()),
    };
    // Normal is what the program has, or was given by ionice.
    let level = |priority: Priority| (priority != Priority::Normal).then(|| priority.best_effort_level());
    let priorities = extras.targets.iter().map(|target| level(target.priority)).collect();
    let huge_pages = extras.targets.iter().map(|target| target.huge_pages).collect();
    let (slice, pool) = (phase.slice, phase.pool);
    RunOptions {
        slice,
        pool,
        thread_series,
        affinity,
        priorities,
        huge_pages,
        ..RunOptions::from(phase.length)
    }
}

/// Announces to the kernel what accesses will come; a target without a hint takes back that of the time span before.
fn advise(phase: &Phase, extras: &Extras, opened: &Opened) -> Result<(), Failure> {
    for (placed, target) in phase.workloads.iter().zip(&extras.targets) {
        let region = opened.region(placed.target, placed.workload.shape.caching);
        region.advise(match target.advice {
            None => storage::ExpectedAccess::Anything,
            Some(Advice::Random) => storage::ExpectedAccess::Random,
            Some(Advice::Sequential) => storage::ExpectedAccess::Sequential,
        })?;
    }
    Ok(())
}

fn read_xml(source: &Source) -> Result<Option<String>, Failure> {
    let Source::Xml { path, .. } = source else { return Ok(None) };
    let read = || {
        let mut bytes = Vec::new();
        host::open_regular_file(path.as_ref())?.take(XML_BYTES_MAX + 1).read_to_end(&mut bytes)?;
        match bytes.len() as u64 > XML_BYTES_MAX {
            true => Err(std::io::Error::other("it is larger than any profile")),
            false => Ok(bytes),
        }
    };
    let bytes = read().map_err(|error| {
        Failure::usage(format!("cannot read the profile {path}: {error}"))
            .with_remedy("name a profile in XML, as headroom diskspd -Rpxml with your flags shows one")
    })?;
    let wrong = |_| {
        let remedy = format!("iconv -f UTF-16 -t UTF-8 {path}");
        Failure::usage(format!("the profile {path} is not in UTF-8")).with_remedy(remedy)
    };
    String::from_utf8(bytes).map(Some).map_err(wrong)
}

/// Value of a bare `-z`: milliseconds, as in diskspd.
fn clock_seed() -> u32 {
    (host::unix_ns() / 1_000_000) as u32
}

fn warn(checked: &Checked, ignored: bool, out: &mut Output) {
    let what = if ignored { "ignored" } else { "would be refused" };
    checked.unsupported.iter().for_each(|one| out.warn(format_args!("{what}: {one}")));
    checked.warnings.iter().for_each(|warning| out.warn(warning));
}

fn wrong_usage(error: UsageError) -> Failure {
    let failure = Failure::usage(format!("{}: {}", error.what, error.why));
    if error.instead.is_empty() { failure } else { failure.with_remedy(error.instead) }
}

fn refused(refused: Refused, source: &Source) -> Failure {
    match refused {
        Refused::Xml(error) => {
            let path = if let Source::Xml { path, .. } = source { path } else { "" };
            Failure::usage(format!("the profile {path}: {error}"))
        }
        Refused::Rules(mut errors) if errors.len() == 1 => wrong_usage(errors.remove(0)),
        Refused::Rules(errors) => facts("the settings contradict each other", &errors),
        Refused::Unsupported(lacking) => facts("Linux has no counterpart for all of this", &lacking)
            .with_remedy("--ignore-unsupported runs without"),
    }
}

fn facts<T: std::fmt::Display>(message: &str, all: &[T]) -> Failure {
    all.iter().fold(Failure::usage(message), Failure::with_fact)
}
