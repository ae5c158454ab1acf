//! `headroom lab`: experiments with engines, each a file.

mod commit;
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
}

/// `headroom lab EXPERIMENT`.
pub fn run(command: &LabCommand, history: Option<&Path>, out: &mut Output) -> Done {
    match command {
        LabCommand::Commit(args) => commit::run(args, history, out),
        LabCommand::Footprint(args) => footprint::run(args, out),
    }
}
