//! `headroom sources`: what uses storage on this host, what reading its counters needs, and how it publishes them.

mod capture_script;
pub mod discover;
pub mod doctor;
pub mod sqlite_extension;

use clap::Subcommand;
use std::path::Path;
use terminal::{Done, Output};

/// Arguments of `headroom sources`.
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  headroom sources discover              what uses storage here, and the source of each
  headroom sources doctor                what the sources of this host need
  headroom sources doctor --source postgres:host=/run/postgresql
  headroom check --source 'SOURCE'       with a source that discover printed")]
pub struct SourcesArgs {
    #[command(subcommand)]
    action: Action,
}

#[derive(Subcommand)]
enum Action {
    /// Find what uses storage on this host, and the best source for each
    Discover(discover::DiscoverArgs),
    /// Say what each source needs, what is missing, and what grants it
    Doctor(doctor::DoctorArgs),
    /// Show how to make a SQLite program publish its counters
    #[command(after_help = "\
Examples:
  headroom sources sqlite-extension           the library, and how a program loads it
  headroom sources sqlite-extension --json    its path for scripts")]
    SqliteExtension,
    /// Print a script that records a server's counters in a table on the server, for import
    CaptureScript(capture_script::CaptureScriptArgs),
}

/// `headroom sources`.
pub fn run(args: &SourcesArgs, history: Option<&Path>, out: &mut Output) -> Done {
    match &args.action {
        Action::Discover(args) => discover::run(args, history, out),
        Action::Doctor(args) => doctor::run(args, out),
        Action::SqliteExtension => sqlite_extension::run(out),
        Action::CaptureScript(args) => capture_script::run(args, out),
    }
}
