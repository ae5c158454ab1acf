//! `headroom lab`: experiments with engines, each a file.

mod commit;
mod crash;
mod footprint;
mod recover;

use clap::Subcommand;
use std::path::Path;
use terminal::{Done, Output};

/// The experiments.
#[derive(Subcommand)]
pub enum LabCommand {
    /// Insert rows in batches, and count what each commit asks of the log
    Commit(commit::CommitArgs),
    /// Kill engines in the middle of writing, and time what it takes to serve again, one way and another
    Recover(recover::RecoverArgs),
    /// Tell what one query moves: values, rows, pages, from the storage, to the client
    Footprint(footprint::FootprintArgs),
    /// Crash the page store at every write and sync of drawn workloads, and see whether all comes back
    Crash(crash::CrashArgs),
    /// What `recover` starts: writes until it is killed
    #[command(hide = true)]
    RecoverWriter(recover::WriterArgs),
}

/// `headroom lab EXPERIMENT`.
pub fn run(command: &LabCommand, history: Option<&Path>, out: &mut Output) -> Done {
    match command {
        LabCommand::Commit(args) => commit::run(args, history, out),
        LabCommand::Recover(args) => recover::run(args, history, out),
        LabCommand::RecoverWriter(args) => recover::write(args),
        LabCommand::Footprint(args) => footprint::run(args, out),
        LabCommand::Crash(args) => crash::run(args, history, out),
    }
}

/// Removes repeated elements, and keeps the order of the first ones.
fn dedup<T: PartialEq + Clone>(list: &mut Vec<T>) {
    let all = std::mem::take(list);
    all.into_iter().for_each(|each| {
        if !list.contains(&each) {
            list.push(each);
        }
    });
}
