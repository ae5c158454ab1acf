//! Histories of counters that others kept, as CSV.
//!
//! ```text
//! text ─ Sheet (rows) ─┬─ headroom.file_stats   capture_script.sql        ┐ cumulative:
//!                      ├─ BlitzFirst_FileStats  sp_BlitzFirst             ┤ Points::Cumulative
//!                      ├─ DBIOStats             DBA Dash                  ┤ differences: Points::Increments
//!                      └─ PerfMon log           rates and means: DiskLog  ┘
//!
//! Series { source, points } ── merge ── captures(last kept) ──> Snapshots with their epochs, none twice
//! ```
//!
//! Cumulative counters become snapshots as they stand. DBA Dash keeps differences, which are added up again; where it
//! kept none, an epoch ends. PerfMon keeps rates and means of them, rounded: they stay what they are, a [`DiskLog`],
//! and become no snapshot.

mod blitz_first;
mod cell;
mod dba_dash;
mod epochs;
mod file_stats;
mod increments;
mod layout;
mod perfmon;
mod series;
mod sheet;

pub use increments::Increment;
pub use perfmon::{Disk, DiskInterval, DiskLog, DiskOps, DiskTotals};
pub use series::{Capture, Chain, Kept, Points, Series};

use crate::{Format, ImportError, Note};
use layout::Layout;
use sheet::Sheet;

/// The T-SQL that keeps `sys.dm_io_virtual_file_stats` in a table on the server.
pub const SQLSERVER_CAPTURE_SCRIPT: &str = include_str!("capture_script.sql");

/// A history of counters that was read.
#[derive(Clone, Debug, PartialEq)]
pub struct CounterLog {
    /// In which format.
    pub format: Format,
    /// Captures, by source.
    pub series: Vec<Series>,
    /// Intervals of disks.
    pub disks: Option<DiskLog>,
    /// What was left out, or is odd.
    pub notes: Vec<Note>,
}

/// Reads a history of counters, in the format it has or the one that is named.
///
/// # Errors
/// Line, column, reason and remedy where the text is none, or damaged.
pub fn counters(text: &str, format: Option<Format>) -> Result<CounterLog, ImportError> {
    let mut sheet = Sheet::open(text).ok_or_else(|| none_of_them(format))?;
    let head = sheet.head();
    if perfmon::is_head(&head) {
        return expect(Format::Perfmon, format).and_then(|()| perfmon::read(sheet));
    }
    if let Some(error) = layout::beside(&head) {
        return Err(error);
    }
    let (found, layout) = layout::find(&head).ok_or_else(|| none_of_them(format))?;
    expect(found, format)?;
    let mut notes = Vec::new();
    if layout.heading {
        sheet.has_heading();
    } else {
        notes.push(Note::at(1, "no heading: the columns are taken in the order of the table"));
    }
    if !layout.unknown.is_empty() {
        let names: Vec<String> =
            layout.unknown.iter().take(5).map(|name| name.chars().take(60).collect()).collect();
        notes.push(Note::at(1, format!("left out, not columns of the table: {}", names.join(", "))));
    }
    let series = match found {
        Format::FileStats => file_stats::read(&mut sheet, &layout)?,
        Format::BlitzFirst => blitz_first::read(&mut sheet, &layout)?,
        _ => dba_dash::read(&mut sheet, &layout, &mut notes)?,
    };
    if series.is_empty() {
        return Err(ImportError::new("the table has no rows").remedy("export it with its rows"));
    }
    notes.append(&mut sheet.notes);
    Ok(CounterLog { format: found, series, disks: None, notes })
}

/// What a text is, where it is a history of counters.
pub(crate) fn detect(text: &str) -> Option<Format> {
    let head = Sheet::open(text)?.head();
    if perfmon::is_head(&head) {
        return Some(Format::Perfmon);
    }
    // What stands beside them is told by name when it is read.
    let beside = layout::beside(&head).map(|_| Format::DbaDash);
    layout::find(&head).map(|(format, _)| format).or(beside)
}

fn expect(found: Format, named: Option<Format>) -> Result<(), ImportError> {
    match named {
        Some(named) if named != found => {
            Err(ImportError::new(format!("this is {found}, not {named}")).remedy("leave --as out"))
        }
        _ => Ok(()),
    }
}

fn none_of_them(format: Option<Format>) -> ImportError {
    let what = format.map_or("a history of counters".to_owned(), |format| format!("{format}'s"));
    ImportError::at(1, format!("the first row has not the columns of {what}"))
        .remedy("export the table whole, with its heading, as CSV: docs/import.md lists tables and columns")
}

/// Rows of a table, each as one value.
fn rows<T>(
    sheet: &mut Sheet<'_>,
    layout: &Layout,
    mut each: impl FnMut(&layout::Cells<'_>) -> Result<T, ImportError>,
) -> Result<Vec<T>, ImportError> {
    let mut values = Vec::new();
    while let Some(row) = sheet.next_row()? {
        values.push(each(&layout::Cells::new(layout, sheet, &row))?);
    }
    Ok(values)
}
