//! `headroom log`: what the log of a page store holds, without opening the store; of one that a process has open, what
//! that says through its counters.

mod dump;
mod running;

use clap::Subcommand;
use dump::Dump;
use pagestore::inspect::{Anatomy, Filter, Inspection, LogInfo, WhyHeld};
use pagestore::{Lsn, PageNo, RecoveryProgress};
use running::Running;
use serde_json::{Value, json};
use std::fmt::Write;
use std::io::IsTerminal;
use std::path::{Path, PathBuf};
use terminal::{Done, FINE, Failure, Output, no_answer};

/// What to look at.
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
    /// The process that has the store open, unless the files are asked for.
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
    /// What the commit of this number is made of [default: where the time of all goes; of a store that nobody has
    /// open, the last one]
    #[arg(long, value_name = "NUMBER")]
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

/// The store's log, and on the terminal how much of it has been read.
fn inspection<'a>(path: &Path, out: &'a mut Output) -> Result<Inspection<'a>, Failure> {
    let tell = |at: RecoveryProgress| {
        let [read, all] = [at.bytes, at.bytes_total].map(|bytes| bytes / 1_000_000);
        out.progress(
            format_args!("reading the log: {read} of {all} MB, {:.0} MB/s", at.mb_per_s()),
            at.time_left(),
        );
    };
    Ok(Inspection::open(path).map_err(store_failure)?.with_progress(tell))
}

/// `headroom log WHAT`.
pub fn run(command: &LogCommand, json: bool, out: &mut Output) -> Done {
    match command {
        LogCommand::Info(args) => {
            if let Some(running) = args.running() {
                let (text, value) = running.info()?;
                out.answer(|_| text, || value);
                return Ok(FINE);
            }
            let info = inspection(&args.path, out)?.info().map_err(store_failure)?;
            out.answer(|_| info_text(&info), || info_json(&info));
        }
        LogCommand::Dump(args) => {
            let filter = Filter { from: args.from, to: args.to, tx: args.tx, page: args.page.map(PageNo) };
            if let (Some(from), Some(to)) = (args.from, args.to)
                && from > to
            {
                return Err(Failure::usage("--from is a later record than --to: none lies between"));
            }
            let mut dump = Dump::new(json, args.limit.unwrap_or(u64::MAX));
            let print = |record| dump.record(&record);
            let read = if std::io::stdout().is_terminal() {
                // The records say how far it is.
                Inspection::open(&args.store.path).map_err(store_failure)?.records(filter, print)
            } else {
                inspection(&args.store.path, out)?.records(filter, print)
            };
            out.clear_progress();
            dump.finish(read)?;
        }
        LogCommand::Why(args) => {
            if let Some(running) = args.running() {
                let (text, value) = running.why()?;
                out.answer(|_| text, || value);
                return Ok(FINE);
            }
            let why = inspection(&args.path, out)?.why().map_err(store_failure)?;
            out.answer(|_| why_text(&why), || why_json(&why));
        }
        LogCommand::Anatomy(args) => {
            let running = args.store.running();
            if let (Some(running), None) = (&running, args.commit) {
                let (text, value) = running.anatomy()?;
                out.answer(|_| text, || value);
                return Ok(FINE);
            }
            let anatomy = inspection(&args.store.path, out)?.anatomy(args.commit).map_err(store_failure)?;
            let Some(anatomy) = anatomy else {
                out.answer(|_| "the active log has no such commit".into(), || json!({"commit": null}));
                return Ok(no_answer());
            };
            // A slow commit of a running store has times too.
            let times = running.and_then(|running| running.slow(anatomy.sequence));
            let times_json = times.as_ref().map(running::slow_json);
            out.answer(
                |_| anatomy_text(&anatomy) + &times.as_ref().map_or_else(String::new, running::slow_text),
                || {
                    let mut value = anatomy_json(&anatomy);
                    value["times"] = times_json.into();
                    value
                },
            );
        }
    }
    Ok(FINE)
}

fn info_text(info: &LogInfo) -> String {
    let state = if info.clean { "closed, nothing to recover" } else { "not closed: opening it recovers" };
    let mut text = format!(
        "store {:032x}, pages of {} bytes, log blocks of multiples of {}\n{state}; times opened: {}\n\
         redo from {}, last record {}, last commit {}\nto redo: {} commits, {} pages\n\n\
         slot       offset        size    vlf  status  parity  created                       blocks        used    index\n",
        info.store,
        info.page_bytes,
        info.log_sector_bytes,
        info.epoch,
        info.redo,
        info.last,
        info.last_sequence,
        info.commits,
        info.pages
    );
    for vlf in &info.vlfs {
        let created = if vlf.vlf == 0 { "never used".into() } else { vlf.created.to_string() };
        let index = vlf.index_entries.map_or_else(|| "-".into(), |entries| entries.to_string());
        let _ = writeln!(
            text,
            "{:4} {:12} {:11} {:6} {:7} {:7}  {created:26} {:9} {:11} {index:>8}",
            vlf.slot, vlf.offset, vlf.bytes, vlf.vlf, vlf.status, vlf.parity, vlf.blocks, vlf.used_bytes
        );
    }
    text
}

fn info_json(info: &LogInfo) -> Value {
    json!({
        "store": format!("{:032x}", info.store),
        "page_bytes": info.page_bytes,
        "log_sector_bytes": info.log_sector_bytes,
        "epoch": info.epoch,
        "clean": info.clean,
        "redo_lsn": info.redo.to_string(),
        "last_lsn": info.last.to_string(),
        "last_commit": info.last_sequence,
        "commits_to_redo": info.commits,
        "pages_to_redo": info.pages,
        "vlfs": info.vlfs.iter().map(|vlf| json!({
            "slot": vlf.slot,
            "offset": vlf.offset,
            "bytes": vlf.bytes,
            "vlf": vlf.vlf,
            "status": vlf.status,
            "parity": vlf.parity,
            "created_lsn": vlf.created.to_string(),
            "blocks": vlf.blocks,
            "used_bytes": vlf.used_bytes,
            "index_entries": vlf.index_entries,
        })).collect::<Value>(),
    })
}

fn why_text(why: &WhyHeld) -> String {
    let mut text =
        format!("virtual log files that are needed: {}, from {} to {}\n", why.active, why.redo, why.last);
    match why.oldest_page {
        Some((page, lsn)) => {
            let _ = writeln!(
                text,
                "held by {} pages that only the log has; page {page} longest, since {lsn}: a checkpoint frees them",
                why.pages
            );
        }
        None => text.push_str("no page waits to be written: nothing holds it but its own end\n"),
    }
    if let Some((tx, lsn, records)) = why.open_transaction {
        let _ = writeln!(text, "transaction {tx} had not ended: {records} records since {lsn}");
    }
    match why.last_checkpoint {
        Some(lsn) => {
            let _ = writeln!(text, "the last checkpoint in this log ended at {lsn}");
        }
        None => text.push_str("no checkpoint has ended in this part of the log\n"),
    }
    text
}

fn why_json(why: &WhyHeld) -> Value {
    json!({
        "redo_lsn": why.redo.to_string(),
        "last_lsn": why.last.to_string(),
        "active_vlfs": why.active,
        "pages": why.pages,
        "oldest_page": why.oldest_page.map(|(page, lsn)| json!({"page": page.0, "lsn": lsn.to_string()})),
        "open_transaction": why.open_transaction.map(|(tx, lsn, records)| {
            json!({"tx": tx, "lsn": lsn.to_string(), "records": records})
        }),
        "last_checkpoint_lsn": why.last_checkpoint.map(|lsn| lsn.to_string()),
    })
}

fn anatomy_text(anatomy: &Anatomy) -> String {
    let mut text = format!(
        "commit {}, transaction {}: records {} to {}\n{} pages whole, {} bytes; {} pages by what changed, {} bytes\n\n\
         block                          bytes  padding  records  commits  durable when built\n",
        anatomy.sequence,
        anatomy.tx,
        anatomy.lsns.0,
        anatomy.lsns.1,
        anatomy.images.0,
        anatomy.images.1,
        anatomy.deltas.0,
        anatomy.deltas.1
    );
    for block in &anatomy.blocks {
        let _ = writeln!(
            text,
            "{} {:12} {:8} {:8} {:8}  {}",
            block.lsn, block.bytes, block.padding_bytes, block.records, block.commits, block.witness
        );
    }
    text
}

fn anatomy_json(anatomy: &Anatomy) -> Value {
    json!({
        "commit": anatomy.sequence,
        "tx": anatomy.tx,
        "first_lsn": anatomy.lsns.0.to_string(),
        "last_lsn": anatomy.lsns.1.to_string(),
        "images": anatomy.images.0,
        "image_bytes": anatomy.images.1,
        "deltas": anatomy.deltas.0,
        "delta_bytes": anatomy.deltas.1,
        "blocks": anatomy.blocks.iter().map(|block| json!({
            "lsn": block.lsn.to_string(),
            "bytes": block.bytes,
            "padding_bytes": block.padding_bytes,
            "records": block.records,
            "commits": block.commits,
            "witness_lsn": block.witness.to_string(),
        })).collect::<Value>(),
    })
}
