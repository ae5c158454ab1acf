//! `headroom lab`: experiments with engines, each a file.

mod crash;

use crate::Done;
use crate::output::Output;
use clap::Subcommand;

/// The experiments.
#[derive(Subcommand)]
pub enum LabCommand {
    /// Crash the page store at every write and sync of drawn workloads, and see whether all comes back
    Crash(crash::CrashArgs),
}

/// `headroom lab EXPERIMENT`.
pub fn run(command: &LabCommand, out: &mut Output) -> Done {
    match command {
        LabCommand::Crash(args) => crash::run(args, out),
    }
}
