//! The program `headroom`: argument parsing and wiring only. Each subcommand is a file that reads from top
//! to bottom: parse, do, render. A library, so that tests see the tree of its arguments.

mod agent;
mod check;
mod compare;
mod diskspd;
mod fleet;
mod help;
mod history;
mod laboratory;
mod layouts;
mod listening;
mod measure;
mod private_file;
mod progress_line;
mod pushing;
mod run;
mod service_log;
mod simulate;
mod sources;
mod storage;
mod targets;
mod trace;
mod traces;
mod version;
mod watch;

use clap::error::ErrorKind;
use clap::{CommandFactory, FromArgMatches, Parser, Subcommand};
use std::path::PathBuf;
use std::process::ExitCode;
use terminal::Output;

/// Know what your storage can give, what your database asks of it, and how much room is left.
#[derive(Parser)]
#[command(name = "headroom", version, max_term_width = 100, after_help = EXAMPLES)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
    /// Keep and look up results in this file [default: headroom/history.db in the user's data directory]
    #[arg(long, global = true, value_name = "FILE")]
    history: Option<PathBuf>,
    /// Print JSON on stdout; keys do not change their meaning
    #[arg(long, global = true)]
    json: bool,
}

const EXAMPLES: &str = "\
Examples:
  headroom check                          the storage here, with a workload of its own
  headroom check /data --html r.html      another disk, as a page with charts
  headroom check --source sqlite:shop.db  a live database, without any load
  headroom measure /data                  the storage alone
  headroom run --preset oltp /data        load like a database's
  headroom history                        earlier measurements and verdicts

Exit codes: 0 fine, 1 a problem was found, 2 wrong usage, \
3 it could not be done or nothing can be said, 130 ended by Ctrl-C \
(what was known by then is printed).";

/// The remedy where a part of Headroom is missing.
const INSTALL: &str = "install the headroom package; from source: cargo build --release --workspace";

#[derive(Subcommand)]
enum Command {
    /// Say whether storage or workload is the limit, with the numbers that prove it
    Check(check::CheckArgs),
    /// Measure what a directory, file or block device can give
    Measure(measure::MeasureArgs),
    /// Show what is known of a storage, declare it, or copy it to another host; no load
    Storage(storage::StorageArgs),
    /// Run a workload by flags, a preset or a file; every combination of lists of values; a rising load
    Run(Box<run::RunArgs>),
    /// Predict a workload's results on storage that does not exist, or on measured storage after a change
    Simulate(simulate::SimulateArgs),
    /// Say whether one result is faster or slower than another, beyond noise
    Compare(compare::CompareArgs),
    /// Find databases and their sources; say what each source needs
    Sources(sources::SourcesArgs),
    /// Judge databases and their volumes all the time, or record their counters; open and close incidents
    Agent(Box<agent::AgentArgs>),
    /// Rank the volumes of all hosts by headroom, from Prometheus; write its rules, alerts and dashboards
    Fleet(Box<fleet::FleetArgs>),
    /// Watch files, devices and waits live, or print them interval by interval
    Watch(watch::WatchArgs),
    /// Print the I/Os of processes one by one: file, place, size, time; draw them, and keep them for a replay
    Trace(Box<trace::TraceArgs>),
    /// List, show, analyze and draw what was kept; import results of other tools; list incidents
    History(history::HistoryArgs),
    /// Run diskspd command lines and XML profiles (-? lists the flags)
    Diskspd(diskspd::DiskspdArgs),
    /// Experiments: log writes of commits, crash recovery, the data that a query moves; disks for them
    Lab(laboratory::Arguments),
    /// Inspect the log of the laboratory's engine, also after a crash
    Log(laboratory::Arguments),
}

/// Its subcommands and their arguments.
pub fn arguments() -> clap::Command {
    Arguments::command()
}

/// The program.
pub fn main() -> ExitCode {
    if laboratory::is_named(std::env::args_os().skip(1)) {
        return terminal::finish(laboratory::run(), Output::new(false));
    }
    let columns = Output::new(false).style().width;
    let command = help::with_all_options(help::by_task(arguments(), columns), std::env::args_os());
    let matches = command.try_get_matches();
    let arguments = match matches.and_then(|matches| Arguments::from_arg_matches(&matches)) {
        Ok(arguments) => arguments,
        Err(error) if error.kind() == ErrorKind::DisplayVersion => {
            let mut out = Output::new(version::is_json(std::env::args_os()));
            let done = version::run(&mut out);
            return terminal::finish(done, out);
        }
        Err(error) => terminal::source_argument::exit(error),
    };
    let mut out = Output::new(arguments.json);
    let history = arguments.history.as_deref();
    let done = match &arguments.command {
        Command::Check(args) => check::run(args, history, &mut out),
        Command::Measure(args) => measure::run(args, history, &mut out),
        Command::Storage(args) => storage::run(args, history, &mut out),
        Command::Run(args) => run::run(args, history, &mut out),
        Command::Simulate(args) => simulate::run(args, history, &mut out),
        Command::Compare(args) => compare::run(args, history, &mut out),
        Command::Agent(args) => agent::run(args, history, &mut out),
        Command::Sources(args) => sources::run(args, history, &mut out),
        Command::Fleet(args) => fleet::run(args, arguments.json, &mut out),
        Command::Watch(args) => watch::run(args, history, arguments.json, &mut out),
        Command::Trace(args) => trace::run(args, arguments.json, &mut out),
        Command::History(args) => history::run(args, history, &mut out),
        Command::Diskspd(args) => diskspd::run(args, history, &mut out),
        Command::Lab(_) | Command::Log(_) => laboratory::run(),
    };
    terminal::finish(done, out)
}

/// The schema of what each command prints with `--json`, by its name, and of the live page's state.
#[cfg(feature = "schema")]
pub fn json_schemas(generator: &mut schemars::SchemaGenerator) -> Vec<(&'static str, schemars::Schema)> {
    let mut all = report::json::schemas(generator);
    all.extend([
        ("sources discover", generator.subschema_for::<::discover::Scan>()),
        ("sources doctor", generator.subschema_for::<sources::doctor::Sources>()),
        ("history", generator.subschema_for::<Vec<::history::Entry>>()),
        ("history captures", generator.subschema_for::<Vec<::history::CaptureRow>>()),
        ("history path", generator.subschema_for::<history::Kept>()),
        ("history pack", generator.subschema_for::<history::pack::Packed>()),
        ("history capture", generator.subschema_for::<history::capture::Captured>()),
        ("history intervals", generator.subschema_for::<history::intervals::Intervals>()),
        ("compare", generator.subschema_for::<compare::Comparisons>()),
        ("history matrices", generator.subschema_for::<Vec<::history::MatrixInfo>>()),
        ("history chart", generator.subschema_for::<history::chart::Drawn>()),
        ("storage clean", generator.subschema_for::<storage::clean::Cleaned>()),
        ("history page", generator.subschema_for::<history::page::Served>()),
        ("--version", generator.subschema_for::<version::Version>()),
        ("/api/v1/state", ::page::state_schema(generator)),
    ]);
    all
}
