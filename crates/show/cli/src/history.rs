mod capture_sheet;

use clap::Subcommand;
use history::{CaptureFilter, EntryKind, FutureEntries, History, ResultId};
use serde::Serialize;
use std::io::IsTerminal;
use std::path::Path;
use std::time::Instant;
use terminal::{Done, FINE, Output, kept};

/// Arguments of `headroom history`.
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  headroom history                       everything kept, newest first
  headroom history show verdict 3        one of them, whole
  headroom history show run 12           the tables of a run
  headroom history captures > c.csv      the capture table as CSV")]
pub struct HistoryArgs {
    #[command(subcommand)]
    what: Option<What>,
    /// Show this many lines, the newest
    #[arg(long, default_value_t = 30, value_name = "N")]
    limit: usize,
}

fn number(text: &str) -> Result<i64, String> {
    text.parse().map_err(|_| format!("'{text}' is not a number; headroom history lists those there are"))
}

#[derive(Subcommand)]
enum What {
    /// Print one entry: a run as text, all else as JSON
    Show {
        /// capture, run, capability or verdict
        kind: EntryKind,
        /// Its number
        #[arg(value_parser = number)]
        id: i64,
    },
    /// Print the capture table, a row for each file of each capture, as CSV (or JSON)
    Captures {
        /// Only of this source ("sqlite:/data/shop.db"), or of its kind ("sqlite")
        #[arg(long)]
        source: Option<String>,
    },
    /// Pack the older captures of each file, and free the space
    Pack,
    /// Print the path of the history
    Path,
}

/// What `headroom history path --json` prints.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(rename = "HistoryPath"))]
pub(crate) struct Kept<'a> {
    /// Where the history is kept.
    path: &'a Path,
}

/// What `headroom history pack --json` prints.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(rename = "HistoryPack"))]
pub(crate) struct Packed<'a> {
    /// Where the history is kept.
    path: &'a Path,
    /// Its size, bytes.
    bytes: u64,
    /// Its size before, bytes.
    bytes_before: u64,
}

/// `headroom history`.
pub fn run(args: &HistoryArgs, history: Option<&Path>, out: &mut Output) -> Done {
    match &args.what {
        None => {
            // Many captures make one line, so that more entries are looked at than lines are printed.
            let history = kept::open(history)?;
            let entries = history.entries(args.limit.saturating_mul(ENTRIES_A_LINE))?;
            let future = history.future_entries()?;
            out.answer(
                |style| {
                    // What reads a pipe searches whole lines.
                    let columns = std::io::stdout().is_terminal().then_some(style.width.max(COLUMNS_MIN));
                    let note = future.map_or(String::new(), |future| future_note(&future));
                    table(&entries, args.limit, columns) + &note
                },
                || serde_json::json!(entries.iter().take(args.limit).collect::<Vec<_>>()),
            );
        }
        Some(What::Show { kind, id }) => {
            let history = kept::open(history)?;
            let value = history.show(*kind, *id)?;
            let run = match kind {
                EntryKind::Run => Some(history.run(ResultId(*id))?),
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
        }
        Some(What::Captures { source }) => {
            let filter = CaptureFilter { source: source.clone(), ..CaptureFilter::default() };
            let rows = kept::open(history)?.captures_table(&filter)?;
            out.answer(|_| capture_sheet::sheet(&rows), || serde_json::json!(rows));
        }
        Some(What::Pack) => {
            let mut history = kept::open_to_change(history)?;
            let bytes = |history: &History| std::fs::metadata(history.path()).map_or(0, |found| found.len());
            let before = bytes(&history);
            let began = Instant::now();
            history.pack(PACKED_TOGETHER, |done, all| {
                let left = began.elapsed().mul_f64((all - done) as f64 / done as f64);
                out.progress(format_args!("packing: file {done} of {all}"), Some(left));
            })?;
            out.clear_progress();
            out.progress("writing the history again", None);
            history.vacuum()?;
            let after = bytes(&history);
            let path = history.path();
            out.answer(
                |_| format!("{}: {} MiB, {} MiB before", path.display(), after >> 20, before >> 20),
                || serde_json::json!(Packed { path, bytes: after, bytes_before: before }),
            );
        }
        Some(What::Path) => {
            let path = kept::path(history)?;
            out.answer(|_| path.display().to_string(), || serde_json::json!(Kept { path: &path }));
        }
    }
    Ok(FINE)
}

/// Changes of a file that make a block, as when they are recorded.
const PACKED_TOGETHER: usize = 64;

/// Captures that one line of the list may stand for, about: two a second, some minutes of a check.
const ENTRIES_A_LINE: usize = 500;

/// Narrower terminals wrap the lines.
const COLUMNS_MIN: usize = 80;
/// The longest subject in a line that must fit.
const TARGET_MAX: usize = 22;
/// Columns are padded to this width at most: a text may be a stranger's and longer than the formatter takes (65,535).
const WIDTH_MAX: usize = 200;
/// The characters of a time to the minute: seconds and zone are left out of a line that must fit.
const MINUTE: usize = "2026-11-26 03:13".len();

/// One line each, cut to so many columns: kind and number, time, what it is about, what it says. Captures without a name of
/// their own that follow each other share a line, and so do the runs of one command where they are many.
fn table(entries: &[history::Entry], limit: usize, columns: Option<usize>) -> String {
    if entries.is_empty() {
        return "nothing is kept yet: headroom check, measure and run fill the history".into();
    }
    let is_plain = |entry: &history::Entry| entry.kind == EntryKind::Capture && !entry.summary.contains('(');
    let together = |a: &history::Entry, b: &history::Entry| {
        (is_plain(a) && is_plain(b)) || (a.session.is_some() && a.session == b.session)
    };
    let mut lines = Vec::new();
    for group in entries.chunk_by(together) {
        match group {
            [newest, .., oldest] if newest.session.is_none() || group.len() > RUNS_APART_MAX => {
                lines.push(one_line(group, newest, oldest));
            }
            _ => lines.extend(group.iter().map(|entry| {
                let name = format!("{} {}", entry.kind, entry.id);
                [name, kept::format_time(entry.at_unix_ns), entry.summary.clone(), entry.target.clone()]
            })),
        }
    }
    lines.truncate(limit);
    if columns.is_some() {
        for line in &mut lines {
            line[1].truncate(MINUTE);
            line[3] = without_beginning(&line[3], TARGET_MAX);
        }
    }
    let width = |column: usize| {
        lines.iter().map(|line| line[column].chars().count()).max().unwrap_or(0).min(WIDTH_MAX)
    };
    let (kind, target) = (width(0), width(3));
    let line = |[a, b, c, d]: &[String; 4]| {
        let line = format!("{a:kind$}  {b}  {d:target$}  {c}");
        columns.map_or(line.clone(), |columns| without_end(&line, columns)) + "\n"
    };
    lines.iter().map(line).collect()
}

/// A line on entries that are dated in the future, which the list has last.
fn future_note(future: &FutureEntries) -> String {
    let (entries, verb) = if future.entries == 1 { ("entry", "is") } else { ("entries", "are") };
    format!(
        "note: {} {entries} {verb} dated in the future, up to {}: the clock was ahead then, or is behind now\n",
        future.entries,
        kept::format_time(future.latest_unix_ns)
    )
}

/// The end of a text of more characters, after an ellipsis.
fn without_beginning(text: &str, characters: usize) -> String {
    match text.chars().count() {
        count if count > characters => {
            format!("…{}", text.chars().skip(count - characters + 1).collect::<String>())
        }
        _ => text.to_owned(),
    }
}

/// The beginning of a text of more characters, and an ellipsis.
fn without_end(text: &str, characters: usize) -> String {
    match text.chars().count() {
        count if count > characters => format!("{}…", text.chars().take(characters - 1).collect::<String>()),
        _ => text.to_owned(),
    }
}

/// The runs of one command, a line each up to so many.
const RUNS_APART_MAX: usize = 8;

/// Several captures, or runs of one command.
fn one_line(group: &[history::Entry], newest: &history::Entry, oldest: &history::Entry) -> [String; 4] {
    let kind = newest.kind;
    let ids = || group.iter().map(|entry| entry.id);
    let mut targets: Vec<&str> = group.iter().map(|entry| entry.target.as_str()).collect();
    targets.sort_unstable();
    targets.dedup();
    [
        format!("{kind}s {}-{}", ids().min().unwrap_or(0), ids().max().unwrap_or(0)),
        kept::format_time(newest.at_unix_ns),
        format!("{} {kind}s since {}", group.len(), kept::format_time(oldest.at_unix_ns)),
        targets.join(", "),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_fit_a_terminal_and_are_whole_in_a_pipe() {
        let entry = history::Entry {
            kind: EntryKind::Run,
            id: 12,
            at_unix_ns: 1_795_251_600_000_000_000,
            target: "/srv/data/databases/headroom.tmp/headroom-test".into(),
            summary: "12,344 IOPS, 96.4 MiB/s, 2.37 ms mean; random read 8 KiB, 32 outstanding".into(),
            session: None,
        };
        let whole = table(std::slice::from_ref(&entry), 9, None);
        assert!(whole.contains(&entry.target) && whole.contains(&entry.summary), "{whole}");
        let long = history::Entry { target: "A".repeat(70_000), ..entry.clone() };
        assert!(
            table(&[long, entry.clone()], 9, None).len() < 80_000,
            "a stranger's name widens no other line"
        );
        let cut = table(&[entry], 9, Some(100));
        assert_eq!(cut.lines().next().unwrap().chars().count(), 100, "{cut}");
        assert!(
            cut.contains("  …oom.tmp/headroom-test  12,344 IOPS, 96.4 MiB/s, 2.37 ms mean; ")
                && cut.ends_with("…\n"),
            "{cut}"
        );
    }
}
