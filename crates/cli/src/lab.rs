//! `headroom lab`: experiments with engines, each a file.

mod commit;
mod crash;
mod footprint;

use crate::Done;
use crate::output::Output;
use clap::Subcommand;
use std::path::Path;

/// The experiments.
#[derive(Subcommand)]
pub enum LabCommand {
    /// Insert rows in batches, and count what each commit asks of the log
    Commit(commit::CommitArgs),
    /// Tell what one query moves: values, rows, pages, from the storage, to the client
    Footprint(footprint::FootprintArgs),
    /// Crash the page store at every write and sync of drawn workloads, and see whether all comes back
    Crash(crash::CrashArgs),
}

/// `headroom lab EXPERIMENT`.
pub fn run(command: &LabCommand, history: Option<&Path>, out: &mut Output) -> Done {
    match command {
        LabCommand::Commit(args) => commit::run(args, history, out),
        LabCommand::Footprint(args) => footprint::run(args, out),
        LabCommand::Crash(args) => crash::run(args, out),
    }
}
