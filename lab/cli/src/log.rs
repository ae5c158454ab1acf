//! `headroom log`: what the log of a page store holds. It reads the files without opening the store, or the counters of
//! the process that has it open.

mod dump;
mod files_view;
mod live_view;
mod running;

use clap::Subcommand;
use dump::Dump;
use pagestore::inspect::{Filter, Inspection};
use pagestore::{Lsn, PageNo, RecoveryProgress};
use running::Running;
use serde_json::json;
use std::io::IsTerminal;
use std::path::{Path, PathBuf};
use terminal::{Done, FINE, Failure, Output, no_answer};

/// Views of a log.
#[derive(Subcommand)]
pub enum LogCommand {
    /// List the virtual log files: place, status, parity, LSNs, use
    Info(StoreArgs),
    /// List records, filtered by LSN, transaction or page
    Dump(DumpArgs),
    /// Say why the log's beginning cannot be reused, and who holds it
    Why(StoreArgs),
    /// Show where the time of commits goes while a store is open; what one commit is made of: pages, bytes, blocks
    Anatomy(AnatomyArgs),
}

/// The store.
#[derive(clap::Args)]
pub struct StoreArgs {
    /// Directory of the page store; a crashed one or a copy will do
    #[arg(value_name = "PATH")]
    path: PathBuf,
    /// Read the files, also of a store that a process has open
    #[arg(long)]
    files: bool,
}

impl StoreArgs {
    /// The process that has the store open, unless `--files` is given.
    fn running(&self) -> Option<Running> {
        if self.files { None } else { Running::find(&self.path) }
    }
}

/// Arguments of `headroom log dump`.
#[derive(clap::Args)]
pub struct DumpArgs {
    #[command(flatten)]
    store: StoreArgs,
    /// From this record on, as 00000031:00000da0:0001
    #[arg(long, value_name = "LSN")]
    from: Option<Lsn>,
    /// Up to this record
    #[arg(long, value_name = "LSN")]
    to: Option<Lsn>,
    /// Only of this transaction
    #[arg(long, value_name = "NUMBER")]
    tx: Option<u64>,
    /// Only of this page
    #[arg(long, value_name = "NUMBER")]
    page: Option<u64>,
    /// At most so many records
    #[arg(long, value_name = "COUNT", value_parser = clap::value_parser!(u64).range(1..))]
    limit: Option<u64>,
}

/// Arguments of `headroom log anatomy`.
#[derive(clap::Args)]
pub struct AnatomyArgs {
    #[command(flatten)]
    store: StoreArgs,
    #[arg(
        long,
        value_name = "NUMBER",
        help = "What the commit of this number is made of [default: where the time of all goes; of a store that \
                no process has open, the last one]"
    )]
    commit: Option<u64>,
}

/// A failure to read a store's files.
fn store_failure(error: pagestore::Error) -> Failure {
    let remedy = match &error {
        pagestore::Error::NotAStore { .. } => {
            Some("name the directory of a page store; where it was one, restore a copy")
        }
        pagestore::Error::Io { source, .. } if source.raw_os_error() == Some(libc::ENOTDIR) => {
            Some("name the directory that the store's files are in")
        }
        _ => None,
    };
    Failure::from_parts(error, Vec::new(), remedy.map(Into::into))
}

/// Opens the log files, and shows on the terminal how much of them has been read.
fn open_files<'a>(path: &Path, out: &'a mut Output) -> Result<Inspection<'a>, Failure> {
    let show = |at: RecoveryProgress| {
        let [read, all] = [at.bytes, at.bytes_total].map(|bytes| bytes / 1_000_000);
        out.progress(
            format_args!("reading the log: {read} of {all} MB, {:.0} MB/s", at.mb_per_s()),
            at.time_left(),
        );
    };
    Ok(Inspection::open(path).map_err(store_failure)?.with_progress(show))
}

/// `headroom log WHAT`.
pub fn run(command: &LogCommand, json: bool, out: &mut Output) -> Done {
    match command {
        LogCommand::Info(args) => info(args, out),
        LogCommand::Dump(args) => dump(args, json, out),
        LogCommand::Why(args) => why(args, out),
        LogCommand::Anatomy(args) => anatomy(args, out),
    }
}

fn info(args: &StoreArgs, out: &mut Output) -> Done {
    if let Some(running) = args.running() {
        let (log, counts) = (running.log()?, running.counts()?);
        out.answer(|_| log.info_text(&counts), || log.info_json(&counts));
    } else {
        let info = open_files(&args.path, out)?.info().map_err(store_failure)?;
        out.answer(|_| files_view::info_text(&info), || files_view::info_json(&info));
    }
    Ok(FINE)
}

fn dump(args: &DumpArgs, json: bool, out: &mut Output) -> Done {
    let filter = Filter { from: args.from, to: args.to, tx: args.tx, page: args.page.map(PageNo) };
    if let (Some(from), Some(to)) = (args.from, args.to)
        && from > to
    {
        return Err(Failure::usage("--from is a later record than --to: none lies between"));
    }
    let mut dump = Dump::new(json, args.limit.unwrap_or(u64::MAX));
    let print = |record| dump.record(&record);
    let read = if std::io::stdout().is_terminal() {
        // The records themselves show the progress.
        Inspection::open(&args.store.path).map_err(store_failure)?.records(filter, print)
    } else {
        open_files(&args.store.path, out)?.records(filter, print)
    };
    out.clear_progress();
    dump.finish(read)?;
    Ok(FINE)
}

fn why(args: &StoreArgs, out: &mut Output) -> Done {
    if let Some(running) = args.running() {
        let log = running.log()?;
        out.answer(|_| log.why_text(), || log.why_json());
    } else {
        let why = open_files(&args.path, out)?.why().map_err(store_failure)?;
        out.answer(|_| files_view::why_text(&why), || files_view::why_json(&why));
    }
    Ok(FINE)
}

fn anatomy(args: &AnatomyArgs, out: &mut Output) -> Done {
    let running = args.store.running();
    if let (Some(running), None) = (&running, args.commit) {
        let (store, times) = (running.store(), running.commit_times()?);
        out.answer(|_| store.anatomy_text(&times), || store.anatomy_json(&times));
        return Ok(FINE);
    }
    let anatomy = open_files(&args.store.path, out)?.anatomy(args.commit).map_err(store_failure)?;
    let Some(anatomy) = anatomy else {
        out.answer(|_| "the active log has no such commit".into(), || json!({"commit": null}));
        return Ok(no_answer());
    };
    // A slow commit of a running store has times too.
    let times = running.and_then(|running| running.slow_commit(anatomy.sequence));
    out.answer(
        |_| {
            let times = times.as_ref().map_or_else(String::new, live_view::slow_text);
            files_view::anatomy_text(&anatomy) + &times
        },
        || {
            let mut value = files_view::anatomy_json(&anatomy);
            value["times"] = times.as_ref().map(live_view::slow_json).into();
            value
        },
    );
    Ok(FINE)
}
