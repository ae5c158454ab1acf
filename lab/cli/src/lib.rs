//! The program `headroom-lab`, which `headroom lab` and `headroom log` run: argument parsing and wiring only. Each
//! experiment is a file that reads from top to bottom: parse, do, render. A library, so that tests see the tree of its
//! arguments.

mod lab;
mod log;
mod workspace;

use clap::{CommandFactory, Parser, Subcommand};
use luns::LunError;
use std::path::PathBuf;
use std::process::ExitCode;
use terminal::{Failure, Output, source_argument};

/// Know what your storage can give, what your database asks of it, and how much room is left.
#[derive(Parser)]
#[command(name = "headroom", bin_name = "headroom", version, max_term_width = 100)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
    /// Keep and look up results in this file [default: headroom/history.db in the user's data directory]
    #[arg(long, global = true, value_name = "FILE", display_order = 100)]
    history: Option<PathBuf>,
    /// Print JSON on stdout; keys do not change their meaning
    #[arg(long, global = true, display_order = 101)]
    json: bool,
}

#[derive(Subcommand)]
enum Command {
    /// Experiments: log writes of commits, crash recovery, the data that a query moves; disks for them
    #[command(subcommand)]
    Lab(lab::LabCommand),
    /// Inspect the log of a page store, also after a crash
    #[command(subcommand)]
    Log(log::LogCommand),
}

/// Its subcommands and their arguments.
pub fn arguments() -> clap::Command {
    Arguments::command()
}

/// The program.
pub fn main() -> ExitCode {
    let arguments = Arguments::try_parse().unwrap_or_else(|error| source_argument::exit(error));
    let mut out = Output::new(arguments.json);
    let done = match &arguments.command {
        Command::Lab(command) => lab::run(command, arguments.history.as_deref(), &mut out),
        Command::Log(command) => log::run(command, arguments.json, &mut out),
    };
    terminal::finish(done, out)
}

/// A failure of an experiment.
fn lab_failure(error: ::lab::Error) -> Failure {
    let (facts, remedy) = (error.facts(), error.remedy());
    Failure::from_parts(error, facts, remedy)
}

/// A failure with a disk to experiment on.
fn lun_failure(error: LunError) -> Failure {
    match error {
        LunError::Invalid(why) => Failure::usage(why),
        error => Failure::from_parts(&error, Vec::new(), error.remedy()),
    }
}

/// The SQLite that is linked in, with its I/Os counted.
fn counted_sqlite() -> Result<&'static sqlite_vfs::Registry, Failure> {
    everyday::counted_sqlite().map_err(|error| lab_failure(error.into()))
}
