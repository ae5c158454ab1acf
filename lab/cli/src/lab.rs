//! `headroom lab`: experiments with engines, each a file.

mod clean;
mod commit;
mod crash;
mod footprint;
mod luns;
mod recover;

use clap::Subcommand;
use std::path::{Path, PathBuf};
use storage::Workspace;
use terminal::{Done, Failure, Output};

/// The experiments.
#[derive(Subcommand)]
pub enum LabCommand {
    /// Insert rows in batches, and count the log writes of each commit
    Commit(commit::CommitArgs),
    /// Kill engines while they write, and time their recovery, by several strategies
    Recover(recover::RecoverArgs),
    /// Show what one query moves: values, rows, pages, from storage, to the client
    Footprint(footprint::FootprintArgs),
    /// Crash the page store at every write and sync of random workloads, and check its recovery
    Crash(crash::CrashArgs),
    /// Create disks for experiments: block devices with exact limits, latency and parallelism
    Luns(luns::LunsArgs),
    /// Remove files and disks that a killed experiment left in a directory
    Clean(clean::CleanArgs),
    /// Writer that `recover` starts: writes until it is killed
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
        LabCommand::Luns(args) => luns::run(args, out),
        LabCommand::Clean(args) => clean::run(args, history, out),
    }
}

/// The given values, or all values if none is given, without duplicates, in the order of first appearance.
fn chosen<T: PartialEq + Clone>(given: &[T], all: &[T]) -> Vec<T> {
    let mut chosen = Vec::new();
    for each in if given.is_empty() { all } else { given } {
        if !chosen.contains(each) {
            chosen.push(each.clone());
        }
    }
    chosen
}

/// A directory of an experiment in a workspace. Servers run as users of their own where this is root.
fn directory(workspace: &Workspace, name: &str, for_servers: bool) -> Result<PathBuf, Failure> {
    if for_servers {
        workspace.allow_traversal()?;
    }
    let dir = workspace.entry(name);
    std::fs::create_dir(&dir)
        .map_err(|error| Failure::new(format_args!("cannot make {}: {error}", dir.display())))?;
    Ok(dir)
}
