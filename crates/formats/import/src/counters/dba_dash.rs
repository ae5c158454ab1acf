//! DBA Dash's `dbo.DBIOStats`: differences between two of its collections, a row for each file that did any I/O and
//! sums over files beside them. Times are UTC.

use super::capture::NS_PER_MS;
use super::cell;
use super::file_stats::{kind, ops};
use super::increments::{self, Increment};
use super::layout::{Cells, Layout};
use super::series::{Points, Series};
use super::sheet::Sheet;
use crate::{ImportError, Note};
use filestats::FileIdentity;
use std::collections::BTreeMap;

pub(super) fn read(
    sheet: &mut Sheet<'_>,
    layout: &Layout,
    notes: &mut Vec<Note>,
) -> Result<Vec<Series>, ImportError> {
    let mut instances: BTreeMap<String, Vec<Increment>> = BTreeMap::new();
    let lines = super::rows(sheet, layout, line)?;
    let sums = lines.iter().filter(|line| line.is_none()).count();
    for increment in lines.into_iter().flatten() {
        instances.entry(increment.file.instance.clone()).or_default().push(increment);
    }
    if sums > 0 {
        notes.push(Note::new(format!("{sums} rows are sums over files or without time: left out")));
        if instances.is_empty() {
            return Err(ImportError::new("all rows are sums over files")
                .remedy("export the rows of files: WHERE FileID > 0"));
        }
    }
    let series = |(instance, mut rows): (String, Vec<Increment>)| {
        increments::sort(&mut rows);
        Series { source: format!("sqlserver:{instance}:DBADash"), points: Points::Increments(rows) }
    };
    Ok(instances.into_iter().map(series).collect())
}

/// `None` for a sum over files (-1 where an id would stand), and for a row of no time.
fn line(cells: &Cells<'_>) -> Result<Option<Increment>, ImportError> {
    let instance_id = cells.need("InstanceID", cell::whole)?;
    let database_id = cells.need("DatabaseID", cell::signed)?;
    let file_id = cells.need("FileID", cell::signed)?;
    let elapsed_ms = cells.need("sample_ms_diff", cell::whole)?;
    let database = cells.text("DatabaseName");
    let type_desc = cells.read("FileType", cell::whole)?.map(|code| match code {
        0 => "ROWS",
        1 => "LOG",
        _ => "OTHER",
    });
    let physical = cells.text("PhysicalName").map(str::to_owned);
    let increment = Increment {
        ended_unix_ns: cells.need("SnapshotDate", cell::instant)?,
        elapsed_ns: elapsed_ms.saturating_mul(NS_PER_MS),
        file: FileIdentity {
            instance: cells.text("InstanceName").map_or(format!("instance {instance_id}"), str::to_owned),
            database: database.map(str::to_owned),
            // DBA Dash's numbers are its own, not the server's.
            database_id: None,
            file_id: format!("DBA Dash {file_id}"),
            kind: kind(database == Some("tempdb"), type_desc),
            path: physical.unwrap_or_else(|| format!("database {database_id} file {file_id}")),
            drive: None,
            handle: None,
            object: None,
        },
        read: ops(cells, "num_of_reads", "num_of_bytes_read", "io_stall_read_ms")?,
        write: ops(cells, "num_of_writes", "num_of_bytes_written", "io_stall_write_ms")?,
        size_bytes: cells.need("size_on_disk_bytes", cell::whole)?,
    };
    let of_a_file = database_id > 0 && file_id > 0 && increment.elapsed_ns > 0;
    Ok(of_a_file.then_some(increment))
}
