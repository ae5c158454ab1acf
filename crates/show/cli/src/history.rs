//! `headroom history`: the list of what was kept, and what is read from it, added to it and drawn of it.

pub mod analyze;
pub mod capture;
mod capture_sheet;
pub mod chart;
pub mod import;
pub mod incidents;
pub mod intervals;
mod list;
mod matrices;
pub mod pack;
pub mod page;

use clap::Subcommand;
use history::{CaptureFilter, EntryKind, ResultId};
use serde::Serialize;
use std::path::Path;
use terminal::{Done, FINE, Output, kept};

/// Arguments of `headroom history`.
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  headroom history                       the newest entries
  headroom history show verdict 3        one of them, whole
  headroom history show run 12           the tables of a run
  headroom history analyze --from -2h    breaches, spikes and jobs of the last two hours
  headroom history captures > c.csv      the capture table as CSV")]
pub struct HistoryArgs {
    #[command(subcommand)]
    action: Option<Action>,
}

fn number(text: &str) -> Result<i64, String> {
    text.parse().map_err(|_| format!("'{text}' is not a number; headroom history lists those there are"))
}

#[derive(Subcommand)]
enum Action {
    /// List the newest entries, as without a subcommand
    List(list::ListArgs),
    /// Print one entry: a run as text, all else as JSON
    Show {
        /// capture, run, capability or verdict
        kind: EntryKind,
        /// Its number
        #[arg(value_parser = number)]
        id: i64,
    },
    /// List the matrices that were started: runs with lists of values
    Matrices,
    /// Keep the counters of a database's files at this instant
    Capture(capture::CaptureArgs),
    /// Show what happened between two captures
    Intervals(intervals::IntervalsArgs),
    /// Print the capture table, a row for each file of each capture, as CSV (or JSON)
    Captures {
        /// Only of this source ("sqlite:/data/shop.db"), or of its kind ("sqlite")
        #[arg(long)]
        source: Option<String>,
    },
    /// Say what a stretch of the history shows: breaches, spikes, busy files, jobs, and what to examine next
    Analyze(analyze::AnalyzeArgs),
    /// List and show the incidents that the agent found
    Incidents(incidents::IncidentsArgs),
    /// Serve the live page from the history, without an agent
    Page(page::PageArgs),
    /// Draw runs: load curves, heat maps, percentiles, time series, histograms
    Chart(chart::ChartArgs),
    /// Read results of diskspd and fio, and counter histories of SQL Server and PerfMon
    Import(import::ImportArgs),
    /// Pack the older captures of each file, and free the space
    Pack,
    /// Print the path of the history
    Path,
}

/// JSON of `headroom history path`.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(rename = "HistoryPath"))]
pub(crate) struct Kept<'a> {
    /// Path of the history.
    path: &'a Path,
}

/// `headroom history`.
pub fn run(args: &HistoryArgs, history: Option<&Path>, out: &mut Output) -> Done {
    match &args.action {
        None => list::run(&list::ListArgs::default(), history, out),
        Some(Action::List(args)) => list::run(args, history, out),
        Some(Action::Show { kind, id }) => show(*kind, *id, history, out),
        Some(Action::Matrices) => matrices::run(history, out),
        Some(Action::Capture(args)) => capture::run(args, history, out),
        Some(Action::Intervals(args)) => intervals::run(args, history, out),
        Some(Action::Captures { source }) => captures(source.clone(), history, out),
        Some(Action::Analyze(args)) => analyze::run(args, history, out),
        Some(Action::Incidents(args)) => incidents::run(args, history, out),
        Some(Action::Page(args)) => page::run(args, history, out),
        Some(Action::Chart(args)) => chart::run(args, history, out),
        Some(Action::Import(args)) => import::run(args, history, out),
        Some(Action::Pack) => pack::run(history, out),
        Some(Action::Path) => path(history, out),
    }
}

fn show(kind: EntryKind, id: i64, history: Option<&Path>, out: &mut Output) -> Done {
    let history = kept::open(history)?;
    let value = history.show(kind, id)?;
    let run = match kind {
        EntryKind::Run => Some(history.run(ResultId(id))?),
        _ => None,
    };
    let text = |style: &report::text::Style| match &run {
        Some(run) => {
            let conditions = crate::run::run_conditions(run, None, &history);
            report::text::run(run, &findings::findings(run, &conditions), style)
        }
        None => serde_json::to_string_pretty(&value).unwrap_or_default(),
    };
    out.answer(text, || value.clone());
    Ok(FINE)
}

fn captures(source: Option<String>, history: Option<&Path>, out: &mut Output) -> Done {
    let filter = CaptureFilter { source, ..CaptureFilter::default() };
    let rows = kept::open(history)?.captures_table(&filter)?;
    out.answer(|_| capture_sheet::sheet(&rows), || serde_json::json!(rows));
    Ok(FINE)
}

fn path(history: Option<&Path>, out: &mut Output) -> Done {
    let path = kept::path(history)?;
    out.answer(|_| path.display().to_string(), || serde_json::json!(Kept { path: &path }));
    Ok(FINE)
}
