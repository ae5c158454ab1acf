use history::{EntryKind, FutureEntries};
use std::io::IsTerminal;
use std::path::Path;
use terminal::{Done, FINE, Output, kept};

/// Arguments of `headroom history list`.
#[derive(clap::Args)]
pub struct ListArgs {
    /// Show this many lines, the newest
    #[arg(long, default_value_t = LINES, value_name = "N")]
    count: usize,
}

/// Lines of the list where no limit is given.
const LINES: usize = 30;

impl Default for ListArgs {
    fn default() -> ListArgs {
        ListArgs { count: LINES }
    }
}

/// `headroom history list`.
pub fn run(args: &ListArgs, history: Option<&Path>, out: &mut Output) -> Done {
    // Many captures make one line, so that more entries are read than lines are printed.
    let history = kept::open(history)?;
    let entries = history.entries(args.count.saturating_mul(ENTRIES_A_LINE))?;
    let future = history.future_entries()?;
    out.answer(
        |style| {
            // Programs that read a pipe search whole lines.
            let columns = std::io::stdout().is_terminal().then_some(style.width.max(COLUMNS_MIN));
            let note = future.map_or(String::new(), |future| future_note(&future));
            table(&entries, args.count, columns) + &note
        },
        || serde_json::json!(entries.iter().take(args.count).collect::<Vec<_>>()),
    );
    Ok(FINE)
}

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
