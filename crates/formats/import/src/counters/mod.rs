//! Counter histories of other tools, as CSV.
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
//! Cumulative counters become snapshots unchanged. DBA Dash keeps differences, which are summed; where it has no row, an
//! epoch ends. PerfMon keeps rounded rates and means: they become a [`DiskLog`], not snapshots.

mod blitz_first;
mod capture;
mod cell;
mod dba_dash;
mod epochs;
mod file_stats;
mod increments;
mod layout;
mod perfmon;
mod series;
mod sheet;

pub use capture::Capture;
pub use increments::Increment;
pub use perfmon::{Disk, DiskInterval, DiskLog, DiskOps, DiskTotals};
pub use series::{Chain, Kept, Points, Series};

use crate::{Format, ImportError, Note};
use layout::{Cells, Layout};
use sheet::Sheet;

/// The T-SQL that keeps `sys.dm_io_virtual_file_stats` in a table on the server.
pub const SQLSERVER_CAPTURE_SCRIPT: &str = include_str!("capture_script.sql");

/// A counter history.
#[derive(Clone, Debug, PartialEq)]
pub struct CounterLog {
    /// Its format.
    pub format: Format,
    /// Captures, by source.
    pub series: Vec<Series>,
    /// Intervals of disks.
    pub disks: Option<DiskLog>,
    /// Notes on skipped or unusual parts.
    pub notes: Vec<Note>,
}

/// Reads a counter history. The format is detected unless it is named.
///
/// # Errors
/// Line, column, reason and remedy where the text is not a counter history, or is damaged.
pub fn counters(text: &str, format: Option<Format>) -> Result<CounterLog, ImportError> {
    let mut sheet = Sheet::open(text).ok_or_else(|| unknown_heading(format))?;
    let head = sheet.head();
    if perfmon::is_head(&head) {
        return expect(Format::Perfmon, format).and_then(|()| perfmon::read(sheet));
    }
    if let Some(error) = layout::related_table(&head) {
        return Err(error);
    }
    let (found, layout) = layout::find(&head).ok_or_else(|| unknown_heading(format))?;
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

/// The format of a text that is a counter history.
pub(crate) fn detect(text: &str) -> Option<Format> {
    let head = Sheet::open(text)?.head();
    if perfmon::is_head(&head) {
        return Some(Format::Perfmon);
    }
    // A related table that cannot be read gets an error by its name from `counters`.
    let related = layout::related_table(&head).map(|_| Format::DbaDash);
    layout::find(&head).map(|(format, _)| format).or(related)
}

fn expect(found: Format, named: Option<Format>) -> Result<(), ImportError> {
    match named {
        Some(named) if named != found => {
            Err(ImportError::new(format!("this is {found}, not {named}")).remedy("leave --as out"))
        }
        _ => Ok(()),
    }
}

fn unknown_heading(format: Option<Format>) -> ImportError {
    let what = format.map_or("a history of counters".to_owned(), |format| format!("{format}'s"));
    ImportError::at(1, format!("the first row has not the columns of {what}"))
        .remedy("export the table whole, with its heading, as CSV")
}

/// The rows of a table as values.
fn rows<T>(
    sheet: &mut Sheet<'_>,
    layout: &Layout,
    each: impl Fn(&Cells<'_>) -> Result<T, ImportError>,
) -> Result<Vec<T>, ImportError> {
    let mut values = Vec::new();
    while let Some(row) = sheet.next_row()? {
        values.push(each(&Cells { layout, sheet, row: &row })?);
    }
    Ok(values)
}
