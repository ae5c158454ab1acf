//! Parts that are missing of a report for people, and whether the rest says enough.

use super::text_report::{Report, Section, Table};
use super::{Row, Span, SpanTold};
use crate::summary::Summary;
use crate::{ImportError, Note};

/// Completes what follows from the rest, notes what is missing, and refuses a report that does not say what it measured.
pub(super) fn check(report: &mut Report, last_line: usize) -> Result<(), ImportError> {
    if report.spans.is_empty() {
        return Err(cut(last_line, "the report has no parameters"));
    }
    if report.current.is_none() {
        return Err(cut(last_line, "the report ends before its results"));
    }
    let command = report.command.clone().unwrap_or_default();
    for (span, tables) in report.spans.iter_mut().zip(&report.tables) {
        let Some(mut told) = span.told.take() else { continue };
        tables_of(span, &mut told, tables, last_line, &mut report.notes)?;
        let did_ios = told.rows.iter().any(|row| row.read.count > 0 || row.write.count > 0);
        let no_percentiles =
            told.percentiles.is_empty() && told.by_path.iter().all(|(_, each)| each.is_empty());
        if span.latency && did_ios && no_percentiles {
            report.notes.push(Note::at(last_line, "latency was measured, but its percentiles are missing"));
        }
        pool(span, &told, &command, &mut report.notes);
        span.told = Some(told);
    }
    Ok(())
}

fn cut(line: usize, reason: &str) -> ImportError {
    ImportError::at(line, reason).remedy("import the whole output, this seems cut off")
}

/// The three thread tables: a direction without its table is refused unless the others say what it was.
fn tables_of(
    span: &Span,
    told: &mut SpanTold,
    tables: &[Table; 3],
    last_line: usize,
    notes: &mut Vec<Note>,
) -> Result<(), ImportError> {
    let [all, ..] = tables;
    if told.rows.is_empty() && tables.iter().all(|table| table.total.is_none()) {
        return Err(cut(last_line, "the report ends before its table 'Total IO'"));
    }
    for section in [Section::Read, Section::Write] {
        let (name, other) = match section {
            Section::Write => ("Write IO", &tables[Section::Read as usize]),
            _ => ("Read IO", &tables[Section::Write as usize]),
        };
        let table = &tables[section as usize];
        let is_complete = |table: &Table| {
            table.total.is_some() || !table.is_shortened && table.rows > 0 && table.rows == all.rows
        };
        if is_complete(table) {
            take_total(span, told, section, table, notes)?;
            continue;
        }
        let only = match section {
            Section::Write => 100,
            _ => 0,
        };
        let all_targets = |percent: u8| span.targets.iter().all(|target| target.write_percent == percent);
        let has_no_share = if is_complete(other) {
            all.total.zip(other.total).is_some_and(|(all, other)| all.count == other.count)
        } else {
            table.rows == 0 && other.rows == 0 && all_targets(100 - only)
        };
        if has_no_share {
            notes.push(Note::at(
                last_line,
                format!("the table '{name}' is missing: by the others it has no I/Os"),
            ));
        } else if table.rows == 0 && is_complete(all) && all_targets(only) {
            notes.push(Note::at(
                last_line,
                format!("the table '{name}' is missing: it is that of 'Total IO'"),
            ));
            for row in &mut told.rows {
                *side(row, section) = row.all;
            }
            take_total(span, told, section, all, notes)?;
        } else {
            return Err(cut(last_line, &format!("the report ends before the end of its table '{name}'")));
        }
    }
    Ok(())
}

fn side(row: &mut Row, section: Section) -> &mut Summary {
    match section {
        Section::Write => &mut row.write,
        _ => &mut row.read,
    }
}

/// The last line of a table is the sum of its rows: where rows are missing, it is right and they are not.
fn take_total(
    span: &Span,
    told: &mut SpanTold,
    section: Section,
    table: &Table,
    notes: &mut Vec<Note>,
) -> Result<(), ImportError> {
    let Some(total) = table.total else { return Ok(()) };
    let counted = told.rows.iter_mut().fold(0_u64, |sum, row| sum.saturating_add(side(row, section).count));
    let name = if section == Section::Write { "writes" } else { "reads" };
    if counted != total.count {
        if span.targets.len() != 1 {
            let reason = format!(
                "rows of a table are missing: the threads' {name} are {counted}, the line of totals says {}, of {} \
                 targets together",
                total.count,
                span.targets.len()
            );
            return Err(ImportError::at(table.line, reason).remedy("import the output as diskspd printed it"));
        }
        told.has_all_rows = false;
        let text = format!(
            "rows of the table are missing: the threads' {name} are {counted}, the line of totals, which is taken, \
             says {}",
            total.count
        );
        notes.push(Note::at(table.line, text));
    } else if table.is_shortened {
        notes.push(Note::at(table.line, format!("rows of the table are missing, none with {name}")));
    }
    match section {
        Section::Write => told.totals.write = Some(total),
        _ => told.totals.read = Some(total),
    }
    Ok(())
}

/// Threads that serve all targets (`-F`): before version 2.1 the parameters do not name them, the result does. Nor are the
/// outstanding I/Os of such a thread (`-O`) named.
fn pool(span: &mut Span, told: &SpanTold, command: &str, notes: &mut Vec<Note>) {
    if span.pool_threads > 0 || span.targets.iter().any(|target| target.threads.is_some()) {
        return;
    }
    let by_rows = told.rows.iter().map(|row| row.thread.saturating_add(1)).max().unwrap_or(0);
    span.pool_threads = if told.thread_count > 0 { told.thread_count } else { by_rows };
    if span.pool_outstanding > 0 || span.targets.iter().any(|target| target.outstanding.is_some()) {
        return;
    }
    let named = command.split_whitespace().find_map(|word| word.strip_prefix("-O")?.parse().ok());
    match named {
        Some(outstanding) => span.pool_outstanding = outstanding,
        None => notes.push(Note::new("the outstanding I/Os of a thread are not named: kept as 1")),
    }
}
