mod captures;
mod disks;
mod report;

use ::import::{CounterLog, Document, Format, ImportError, Note};
use history::{History, ResultId};
use std::fs;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::time::UNIX_EPOCH;
use terminal::{Done, FINE, Failure, Output, kept, no_answer};
use workload::{RunResult, format_bytes};

/// Arguments of `headroom history import`.
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  headroom history import results.txt       diskspd's text, one or several results
  diskspd -Rxml ... | headroom history import -  from a pipe
  headroom history import fio.json          fio's JSON; json+ has the whole histogram
  headroom history import bench/            a folder of results, as of bench_fio
  headroom history import file_stats.csv    SQL Server's file statistics
  headroom history import perfmon.csv       a counter log of PerfMon: a report of its disks
  headroom history import old.txt --dry-run  show its content, import nothing")]
pub struct ImportArgs {
    /// Output of another tool: files, folders, or - for stdin
    #[arg(required = true, value_name = "FILE|FOLDER|-")]
    from: Vec<PathBuf>,
    /// Format: diskspd, diskspd-xml, fio, file-stats, blitzfirst, dbadash or perfmon [default: as its
    /// content says]
    #[arg(long = "as", value_name = "FORMAT")]
    format: Option<Format>,
    /// Show what would be imported, without importing
    #[arg(long)]
    dry_run: bool,
    /// Also import results that were imported before; an instant of a counter history is imported once
    #[arg(long)]
    again: bool,
    /// Print each interval of PerfMon's disks as a line of CSV
    #[arg(long)]
    csv: bool,
}

/// Larger files are no output of a load generator; of a history so much takes some GiB of memory.
const FILE_BYTES_MAX: u64 = 256 << 20;
/// Folders below folders, and files in all of them: far above what bench_fio makes.
const FOLDER_DEPTH_MAX: usize = 16;
const FILES_MAX: usize = 100_000;

/// A text and where it is from.
struct Source {
    name: String,
    text: String,
    notes: Vec<Note>,
    /// When the file was last written, nanoseconds since 1970.
    written_unix_ns: Option<u64>,
}

/// A document and the outcome of its import.
struct Item {
    file: String,
    format: Format,
    document: Document,
    /// Its runs in the history; none in a dry run.
    runs: Vec<ResultId>,
    known: bool,
}

/// A history of counters that was read.
struct Log {
    file: String,
    log: CounterLog,
}

/// Items read from the files, and files that could not be read.
#[derive(Default)]
struct Outcome {
    items: Vec<Item>,
    logs: Vec<Log>,
    failed: Vec<(String, ImportError)>,
}

/// `headroom history import`.
pub fn run(args: &ImportArgs, history: Option<&Path>, out: &mut Output) -> Done {
    let mut outcome = Outcome::default();
    for from in &args.from {
        read(from, args.format, out, &mut outcome)?;
    }
    let Outcome { mut items, mut logs, failed } = outcome;
    if items.is_empty() && logs.is_empty() {
        return Err(match failed.into_iter().next() {
            Some((file, error)) => failure(&file, &error),
            None => Failure::new(format_args!("nothing to import in {}", names(&args.from))).with_remedy(
                "name files that diskspd or fio wrote, or histories of counters; in folders .json, .txt, .xml and \
                 .csv are read",
            ),
        });
    }
    for (file, error) in &failed {
        out.warn(format_args!("{file} was left out: {error}"));
    }
    let is_kept = !args.dry_run && (!items.is_empty() || logs.iter().any(|log| !log.log.series.is_empty()));
    let mut history = is_kept.then(|| kept::open_to_write(history)).transpose()?;
    if let Some(history) = &mut history {
        for item in &mut items {
            keep(item, args.again, history)?;
        }
    }
    let imported = captures::keep(&mut logs, history.as_mut())?;
    let text = || {
        let results = if items.is_empty() { String::new() } else { report::table(&items, args.dry_run) };
        let disks = if args.csv { disks::csv(&logs) } else { disks::text(&logs) };
        let notes: String = logs.iter().map(log_notes).collect();
        match args.csv {
            true => disks,
            false => results + &captures::text(&imported, args.dry_run) + &disks + &notes,
        }
    };
    let value = || {
        let mut value = report::json(&items);
        value["counters"] = captures::json(&imported).into();
        value["disks"] = disks::json(&logs).into();
        value["notes"] = logs
            .iter()
            .flat_map(|log| {
                log.log.notes.iter().map(|note| serde_json::json!({"file": log.file, "note": note}))
            })
            .collect();
        value
    };
    out.answer(|_| text(), value);
    // A named file that could not be read must not pass for imported.
    let named = |file: &String| args.from.iter().any(|from| from.display().to_string() == *file);
    Ok(if failed.iter().any(|(file, _)| named(file)) { no_answer() } else { FINE })
}

fn read(from: &Path, format: Option<Format>, out: &mut Output, into: &mut Outcome) -> Result<(), Failure> {
    if from.is_dir() {
        return read_folder(from, format, out, into);
    }
    let source = source(from)?;
    read_text(source, format, into);
    Ok(())
}

fn read_text(source: Source, format: Option<Format>, into: &mut Outcome) {
    let format = format.or_else(|| Format::detect(&source.text));
    if format.is_some_and(Format::is_counters) {
        match ::import::counters(&source.text, format) {
            Ok(mut log) => {
                log.notes.extend(source.notes);
                into.logs.push(Log { file: source.name, log });
            }
            Err(error) => into.failed.push((source.name, error)),
        }
        return;
    }
    match ::import::read(&source.text, format) {
        Ok(imported) => into.items.extend(items(&source, imported)),
        Err(error) => into.failed.push((source.name, error)),
    }
}

fn log_notes(log: &Log) -> String {
    log.log.notes.iter().map(|note| format!("note: {}: {note}\n", log.file)).collect()
}

fn items(source: &Source, imported: ::import::Imported) -> Vec<Item> {
    let item = |mut document: Document| {
        document.notes.extend(source.notes.iter().cloned());
        date(&mut document, source.written_unix_ns);
        let file = source.name.clone();
        Item { file, format: imported.format, document, runs: Vec::new(), known: false }
    };
    imported.documents.into_iter().map(item).collect()
}

/// Old diskspd does not report when it ran. The time of the file is used instead, with a note.
fn date(document: &mut Document, written_unix_ns: Option<u64>) {
    let results = document.phases.iter_mut().flat_map(|phase| &mut phase.results);
    let mut undated: Vec<&mut RunResult> = results.filter(|result| result.started_unix_ns == 0).collect();
    if undated.is_empty() {
        return;
    }
    let text = match written_unix_ns {
        Some(at) => {
            undated.iter_mut().for_each(|result| result.started_unix_ns = at);
            "when it ran is unknown: the time of the file is taken"
        }
        None => "when it ran is unknown",
    };
    document.notes.push(Note { line: None, text: text.into() });
}

/// JSON files are read by bench_fio's names, other files by their content. Files without a result are reported.
fn read_folder(
    folder: &Path,
    format: Option<Format>,
    out: &mut Output,
    into: &mut Outcome,
) -> Result<(), Failure> {
    let folder = fs::canonicalize(folder).map_err(|error| cannot("read the folder", folder, &error))?;
    let mut paths = Vec::new();
    walk(&folder, 0, &mut paths)?;
    paths.sort();
    for (index, path) in paths.iter().enumerate() {
        out.progress(format_args!("reading {} of {}", index + 1, paths.len()), None);
        let source = match source(path) {
            Ok(source) => source,
            Err(failure) if paths.len() == 1 => return Err(failure),
            Err(_) => {
                into.failed.push((path.display().to_string(), unreadable()));
                continue;
            }
        };
        let is_json = path.extension().is_some_and(|extension| extension == "json");
        if is_json && format.is_none_or(|format| format == Format::FioJson) {
            let (imported, wrong) = ::import::bench_fio(&[(source.name.clone(), source.text.clone())]);
            into.items.extend(items(&source, imported));
            into.failed.extend(wrong);
        } else {
            read_text(source, format, into);
        }
    }
    Ok(())
}

fn unreadable() -> ImportError {
    ImportError {
        line: None,
        column: None,
        place: None,
        reason: "the file cannot be read".into(),
        remedy: None,
    }
}

fn walk(folder: &Path, depth: usize, paths: &mut Vec<PathBuf>) -> Result<(), Failure> {
    let entries = fs::read_dir(folder).map_err(|error| cannot("read the folder", folder, &error))?;
    for entry in entries {
        let entry = entry.map_err(|error| cannot("read the folder", folder, &error))?;
        let (path, kind) = (entry.path(), entry.file_type());
        let extension = path.extension().and_then(|extension| extension.to_str()).unwrap_or_default();
        match kind {
            // Links are not followed: they may lead round in a circle.
            Ok(kind) if kind.is_dir() && depth < FOLDER_DEPTH_MAX => walk(&path, depth + 1, paths)?,
            Ok(kind) if kind.is_file() && matches!(extension, "json" | "txt" | "xml" | "csv") => {
                paths.push(path);
            }
            _ => {}
        }
        if paths.len() > FILES_MAX {
            return Err(Failure::new(format_args!("{} holds more than {FILES_MAX} files", folder.display()))
                .with_remedy("name folders further down"));
        }
    }
    Ok(())
}

fn source(path: &Path) -> Result<Source, Failure> {
    let stdin = path == Path::new("-");
    let mut bytes = Vec::new();
    let mut written_unix_ns = None;
    let read = if stdin {
        std::io::stdin().take(FILE_BYTES_MAX + 1).read_to_end(&mut bytes)
    } else {
        host::open_regular_file(path).and_then(|file| {
            let written = file.metadata()?.modified().ok();
            let since = written.and_then(|at| at.duration_since(UNIX_EPOCH).ok());
            written_unix_ns = since.and_then(|since| u64::try_from(since.as_nanos()).ok());
            file.take(FILE_BYTES_MAX + 1).read_to_end(&mut bytes)
        })
    };
    read.map_err(|error| cannot("read", path, &error))?;
    let name = if stdin { "stdin".into() } else { path.display().to_string() };
    if bytes.len() as u64 > FILE_BYTES_MAX {
        return Err(Failure::new(format_args!("{name} is larger than {}", format_bytes(FILE_BYTES_MAX)))
            .with_remedy(
                "import what diskspd or fio printed, not their logs; of a history export shorter stretches",
            ));
    }
    let (text, notes) = ::import::decode(&bytes).map_err(|error| failure(&name, &error))?;
    Ok(Source { name, text, notes, written_unix_ns })
}

fn cannot(doing: &str, path: &Path, error: &std::io::Error) -> Failure {
    Failure::new(format_args!("cannot {doing} {}: {error}", path.display()))
        .with_remedy("name a file or folder that exists and may be read")
}

fn failure(file: &str, error: &ImportError) -> Failure {
    let failure = Failure::new(format_args!("cannot import {file}: {error}"));
    match &error.remedy {
        Some(remedy) => failure.with_remedy(remedy),
        None => failure,
    }
}

/// Keeps a document's runs, unless the same text was imported before.
fn keep(item: &mut Item, again: bool, history: &mut History) -> Result<(), Failure> {
    let before = history.imported(&item.document.fingerprint)?;
    if !before.is_empty() && !again {
        item.known = true;
        item.runs = before;
        return Ok(());
    }
    let runs: Vec<RunResult> = results(&item.document).cloned().collect();
    item.runs = history.save_imported(&runs, &item.document.fingerprint, &item.file)?;
    Ok(())
}

fn results(document: &Document) -> impl Iterator<Item = &RunResult> {
    document.phases.iter().flat_map(|phase| &phase.results)
}

fn names(from: &[PathBuf]) -> String {
    from.iter().map(|path| path.display().to_string()).collect::<Vec<_>>().join(", ")
}
