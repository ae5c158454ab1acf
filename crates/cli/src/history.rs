use crate::failure::Failure;
use crate::output::Output;
use crate::{Done, FINE};
use clap::Subcommand;
use history::{CaptureFilter, EntryKind, History};
use std::path::Path;

/// Arguments of `headroom history`.
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  headroom history                       everything kept, newest first
  headroom history show verdict 3        one of them, whole
  headroom history captures > c.csv      the capture table as CSV")]
pub struct HistoryArgs {
    #[command(subcommand)]
    what: Option<What>,
    /// Only so many lines, the newest
    #[arg(long, default_value_t = 30, value_name = "N")]
    limit: usize,
}

#[derive(Subcommand)]
enum What {
    /// Print one entry as JSON
    Show {
        /// capture, run, capability or verdict
        kind: EntryKind,
        /// Its number
        id: i64,
    },
    /// Print the capture table, a row for each file of each capture, as CSV (or JSON)
    Captures {
        /// Only of this source ("sqlite")
        #[arg(long)]
        source: Option<String>,
    },
    /// Print where the history is kept
    Path,
}

/// Opens the history that was named, or the user's own.
pub fn open(path: Option<&Path>) -> Result<History, Failure> {
    let path = path.map_or_else(History::default_path, |path| Ok(path.to_owned()))?;
    Ok(History::open(&path)?)
}

/// The same, and refuses one that nothing can be added to.
pub fn open_to_write(path: Option<&Path>) -> Result<History, Failure> {
    let history = open(path)?;
    history.check_writable()?;
    Ok(history)
}

/// `headroom history`.
pub fn run(args: &HistoryArgs, history: Option<&Path>, out: &mut Output) -> Done {
    let history = open(history)?;
    match &args.what {
        None => {
            // Many captures make one line, so that more entries are looked at than lines are printed.
            let entries = history.entries(args.limit.saturating_mul(ENTRIES_A_LINE))?;
            out.answer(
                |_| table(&entries, args.limit),
                || serde_json::json!(entries.iter().take(args.limit).collect::<Vec<_>>()),
            );
        }
        Some(What::Show { kind, id }) => {
            let value = history.show(*kind, *id)?;
            out.answer(|_| serde_json::to_string_pretty(&value).unwrap_or_default(), || value.clone());
        }
        Some(What::Captures { source }) => {
            let filter = CaptureFilter { source: source.clone(), ..CaptureFilter::default() };
            let rows = history.captures_table(&filter)?;
            let mut csv = Vec::new();
            history::to_csv(&rows, &mut csv)
                .map_err(|error| Failure::new(format_args!("cannot write the capture table: {error}")))?;
            out.answer(|_| String::from_utf8_lossy(&csv).into_owned(), || serde_json::json!(rows));
        }
        Some(What::Path) => {
            let path = history.path();
            out.answer(|_| path.display().to_string(), || serde_json::json!({"path": path}));
        }
    }
    Ok(FINE)
}

/// Captures that one line of the list may stand for, about: two a second, some minutes of a check.
const ENTRIES_A_LINE: usize = 500;

/// One line each: kind and number, time, what it says, what it is about. Captures without a name of their own
/// that follow each other share a line.
fn table(entries: &[history::Entry], limit: usize) -> String {
    if entries.is_empty() {
        return "nothing is kept yet: headroom check or headroom measure fill the history".into();
    }
    let is_plain = |entry: &history::Entry| entry.kind == EntryKind::Capture && !entry.summary.contains('(');
    let mut lines = Vec::new();
    for group in entries.chunk_by(|a, b| is_plain(a) && is_plain(b)).take(limit) {
        let [newest, .., oldest] = group else {
            let entry = &group[0];
            lines.push([
                format!("{} {}", entry.kind, entry.id),
                at(entry.at_unix_ns),
                entry.summary.clone(),
                entry.target.clone(),
            ]);
            continue;
        };
        let mut sources: Vec<&str> = group.iter().map(|entry| entry.target.as_str()).collect();
        sources.sort_unstable();
        sources.dedup();
        lines.push([
            format!("captures {}-{}", oldest.id.min(newest.id), oldest.id.max(newest.id)),
            at(newest.at_unix_ns),
            format!("{} captures since {}", group.len(), at(oldest.at_unix_ns)),
            sources.join(", "),
        ]);
    }
    let width = |column: usize| lines.iter().map(|line| line[column].chars().count()).max().unwrap_or(0);
    let (kind, target) = (width(0), width(3));
    let line = |[a, b, c, d]: &[String; 4]| format!("{a:kind$}  {b}  {d:target$}  {c}\n");
    lines.iter().map(line).collect()
}

/// An instant as all of Headroom writes it.
pub fn at(unix_ns: u64) -> String {
    let at = jiff::Timestamp::from_nanosecond(i128::from(unix_ns)).unwrap_or_default();
    at.strftime("%Y-%m-%d %H:%M:%S UTC").to_string()
}
