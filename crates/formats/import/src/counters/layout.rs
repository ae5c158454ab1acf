//! The known tables by the names of their columns, and rows as named cells.

use super::cell::{self, is_null};
use super::sheet::{Row, Sheet};
use crate::{Format, ImportError};

/// A column: its name, the kind of its cells, and whether it is required.
pub(crate) type Column = (&'static str, CellKind, Need);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CellKind {
    /// An unsigned integer.
    Whole,
    /// A signed integer.
    Signed,
    /// Date and time.
    Time,
    /// Any text.
    Text,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Need {
    /// The table has it, and each row a value.
    Value,
    /// The table has it; NULL means unknown.
    Column,
    /// An export may leave it out.
    Optional,
}

use CellKind::{Signed, Text, Time, Whole};
use Need::{Column as Nullable, Optional, Value};

/// `headroom.file_stats`, as `capture_script.sql` makes it.
pub(crate) const FILE_STATS: &[Column] = &[
    ("capture_id", Whole, Value),
    ("capture_time", Time, Value),
    ("label", Text, Nullable),
    ("server_name", Text, Value),
    ("sqlserver_start_time", Time, Nullable),
    ("database_id", Whole, Value),
    ("file_id", Whole, Value),
    ("database_name", Text, Nullable),
    ("database_create_time", Time, Nullable),
    ("file_name", Text, Nullable),
    ("type_desc", Text, Nullable),
    ("physical_name", Text, Nullable),
    ("volume_mount_point", Text, Nullable),
    ("file_handle", Text, Nullable),
    ("sample_ms", Signed, Value),
    ("num_of_reads", Whole, Value),
    ("num_of_bytes_read", Whole, Value),
    ("io_stall_read_ms", Whole, Nullable),
    ("io_stall_queued_read_ms", Whole, Nullable),
    ("num_of_writes", Whole, Value),
    ("num_of_bytes_written", Whole, Value),
    ("io_stall_write_ms", Whole, Nullable),
    ("io_stall_queued_write_ms", Whole, Nullable),
    ("size_on_disk_bytes", Whole, Nullable),
    ("num_of_pushed_reads", Whole, Nullable),
    ("num_of_pushed_bytes_returned", Whole, Nullable),
];

/// Columns that sp_BlitzFirst writes to `@OutputTableNameFileStats` (First Responder Kit, sp_BlitzFirst.sql).
pub(crate) const BLITZ_FIRST: &[Column] = &[
    ("ID", Whole, Optional),
    ("ServerName", Text, Nullable),
    ("CheckDate", Time, Value),
    ("DatabaseID", Whole, Value),
    ("FileID", Whole, Value),
    ("DatabaseName", Text, Nullable),
    ("FileLogicalName", Text, Nullable),
    ("TypeDesc", Text, Nullable),
    ("SizeOnDiskMB", Whole, Nullable),
    ("io_stall_read_ms", Whole, Nullable),
    ("num_of_reads", Whole, Value),
    ("bytes_read", Whole, Value),
    ("io_stall_write_ms", Whole, Nullable),
    ("num_of_writes", Whole, Value),
    ("bytes_written", Whole, Value),
    ("PhysicalName", Text, Nullable),
];

/// DBA Dash's `dbo.DBIOStats` (its computed columns are passed over), and the names that its ids stand for where the
/// export joins them.
pub(crate) const DBA_DASH: &[Column] = &[
    ("InstanceID", Whole, Value),
    ("DatabaseID", Signed, Value),
    ("Drive", Text, Value),
    ("FileID", Signed, Value),
    ("SnapshotDate", Time, Value),
    ("num_of_reads", Whole, Value),
    ("num_of_writes", Whole, Value),
    ("num_of_bytes_read", Whole, Value),
    ("num_of_bytes_written", Whole, Value),
    ("io_stall_read_ms", Whole, Value),
    ("io_stall_write_ms", Whole, Value),
    ("sample_ms_diff", Whole, Value),
    ("size_on_disk_bytes", Whole, Value),
    ("InstanceName", Text, Optional),
    ("DatabaseName", Text, Optional),
    ("FileType", Whole, Optional),
    ("PhysicalName", Text, Optional),
];

/// Columns that are computed from others.
const PASSED_OVER: [&str; 9] = [
    "MaxIOPs",
    "MaxReadIOPs",
    "MaxWriteIOPs",
    "MaxMBsec",
    "MaxReadMBsec",
    "MaxWriteMBsec",
    "MaxReadLatency",
    "MaxWriteLatency",
    "MaxLatency",
];

/// A table whose columns were found.
#[derive(Clone, Debug)]
pub(crate) struct Layout {
    pub columns: &'static [Column],
    /// Where each of them stands in a row.
    places: Vec<Option<usize>>,
    /// Whether the first row is the heading.
    pub heading: bool,
    /// Columns of the heading that are not of the table.
    pub unknown: Vec<String>,
}

/// A name without brackets, quotes and the name of its table, in small letters.
fn plain(name: &str) -> String {
    let name = name.rsplit('.').next().unwrap_or(name);
    name.trim_matches(['[', ']', '"', '\'', ' ']).to_ascii_lowercase()
}

/// The table whose first row this is, if any.
pub(crate) fn find(head: &[String]) -> Option<(Format, Layout)> {
    let tables =
        [(Format::FileStats, FILE_STATS), (Format::BlitzFirst, BLITZ_FIRST), (Format::DbaDash, DBA_DASH)];
    let by_heading = tables.iter().find_map(|(format, columns)| Some((*format, by_names(head, columns)?)));
    by_heading
        .or_else(|| tables.iter().find_map(|(format, columns)| Some((*format, by_order(head, columns)?))))
}

fn by_names(head: &[String], columns: &'static [Column]) -> Option<Layout> {
    let names: Vec<String> = head.iter().map(|name| plain(name)).collect();
    let place = |name: &str| names.iter().position(|known| *known == name.to_ascii_lowercase());
    let places: Vec<Option<usize>> = columns.iter().map(|(name, ..)| place(name)).collect();
    let whole = columns.iter().zip(&places).all(|((.., need), at)| at.is_some() || *need == Optional);
    let known = |at: usize| {
        places.contains(&Some(at)) || PASSED_OVER.iter().any(|name| names[at] == name.to_ascii_lowercase())
    };
    let unknown = (0..head.len()).filter(|at| !known(*at)).map(|at| head[at].clone()).collect();
    whole.then_some(Layout { columns, places, heading: true, unknown })
}

/// Without a heading: all columns of the table, in its order, and each cell of the first row is what the column has.
fn by_order(row: &[String], columns: &'static [Column]) -> Option<Layout> {
    let columns = if columns.len() == row.len() {
        columns
    } else {
        let of_the_table = columns.iter().position(|(name, ..)| *name == "InstanceName")?;
        // DBA Dash's table, with or without what it computes; the joined names need their heading.
        (row.len() == of_the_table || row.len() == of_the_table + PASSED_OVER.len())
            .then(|| &columns[..of_the_table])?
    };
    let fits = |((_, kind, need), text): (&Column, &String)| match kind {
        _ if is_null(text) => *need != Value,
        Whole => cell::whole(text).is_ok(),
        Signed => cell::signed(text).is_ok(),
        Time => cell::instant(text).is_ok(),
        Text => true,
    };
    columns.iter().zip(row).all(fits).then(|| Layout {
        columns,
        places: (0..columns.len()).map(Some).collect(),
        heading: false,
        unknown: Vec::new(),
    })
}

/// The cells of one row by the names of their columns.
pub(crate) struct Cells<'a> {
    pub layout: &'a Layout,
    pub sheet: &'a Sheet<'a>,
    pub row: &'a Row,
}

impl<'a> Cells<'a> {
    fn place(&self, name: &str) -> Option<usize> {
        let column = self.layout.columns.iter().position(|(column, ..)| *column == name);
        column.and_then(|column| self.layout.places[column])
    }

    /// The cell's text; `None` where it is NULL or empty.
    pub fn text(&self, name: &str) -> Option<&'a str> {
        let text = self.row.cell(self.place(name)?);
        (!is_null(text)).then_some(text)
    }

    /// A value that must be there.
    ///
    /// # Errors
    /// Where it is NULL, or what it is read by refuses it.
    pub fn need<T>(
        &self,
        name: &str,
        read: impl Fn(&str) -> Result<T, ImportError>,
    ) -> Result<T, ImportError> {
        self.read(name, read)?.ok_or_else(|| {
            let error = ImportError::new("no value").remedy("export rows whole and unchanged");
            self.located(name, error)
        })
    }

    /// A value that may be NULL.
    ///
    /// # Errors
    /// Where `read` refuses it.
    pub fn read<T>(
        &self,
        name: &str,
        read: impl Fn(&str) -> Result<T, ImportError>,
    ) -> Result<Option<T>, ImportError> {
        self.text(name).map(|text| read(text).map_err(|error| self.located(name, error))).transpose()
    }

    fn located(&self, name: &str, error: ImportError) -> ImportError {
        let column = self.place(name).map_or(1, |at| self.sheet.column_of(self.row, at));
        ImportError { line: Some(self.row.line), ..error }.column(column).place(name)
    }
}

/// The error that names the text, where it is one of the tables, or one beside them that holds no I/O.
pub(crate) fn related_table(head: &[String]) -> Option<ImportError> {
    let names: Vec<String> = head.iter().map(|name| plain(name)).collect();
    let has = |name: &str| names.iter().any(|known| known == name);
    if has("num_of_reads") && has("io_stall_read_ms") && has("sample_ms") && !has("capture_time") {
        let missing = FILE_STATS.iter().filter(|(name, _, need)| *need == Value && !has(name));
        let missing: Vec<&str> = missing.map(|(name, ..)| *name).collect();
        let reason = format!(
            "this is sys.dm_io_virtual_file_stats as a query returns it: cumulative counters without {}",
            missing.join(", ")
        );
        return Some(ImportError::at(1, reason).remedy(
            "headroom sources capture-script prints the script that keeps these counters with the time and the server; two \
             captures make an interval",
        ));
    }
    let what = if has("snapshotdate") && has("fileid") && has("space_used") {
        "this is DBA Dash's DBFileSnapshot: sizes of files, no I/O"
    } else if has("snapshotdate")
        && has("sample_ms_diff")
        && has("maxreadlatency")
        && !has("size_on_disk_bytes")
    {
        "this is DBA Dash's hourly table: when the I/O of its rows ended is not in it"
    } else {
        return None;
    };
    Some(ImportError::at(1, what).remedy("export dbo.DBIOStats, joined with the tables that name its files"))
}
