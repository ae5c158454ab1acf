//! sp_BlitzFirst's table of file statistics. It keeps neither the start of the server nor its clock: the time of the
//! check is the clock, and a restart shows by counters that fell (see `epochs`). Sizes are whole MB.

use super::capture::{Capture, TEMPDB, sample};
use super::cell;
use super::file_stats::{self, figure, kind, ops, path};
use super::layout::{Cells, Layout};
use super::series::{Points, Series};
use super::sheet::Sheet;
use crate::ImportError;
use filestats::{Epoch, FileIdentity, Sample};
use std::collections::BTreeMap;

const NOTE: &str =
    "from sp_BlitzFirst, which keeps no start of the server: a restart is known by counters that fell";

pub(super) fn read(sheet: &mut Sheet<'_>, layout: &Layout) -> Result<Vec<Series>, ImportError> {
    let mut servers: BTreeMap<String, BTreeMap<u64, Vec<Sample>>> = BTreeMap::new();
    for (at_unix_ns, sample) in super::rows(sheet, layout, line)? {
        let captures = servers.entry(sample.file.instance.clone()).or_default();
        captures.entry(at_unix_ns).or_default().push(sample);
    }
    let series = |(server, captures): (String, BTreeMap<u64, Vec<Sample>>)| {
        let source = format!("sqlserver:{server}:sp_BlitzFirst");
        let capture = |(at, samples)| Capture::without_clock(&source, at, samples, NOTE);
        let captures = captures.into_iter().map(capture).collect();
        Series { source, points: Points::Cumulative(captures) }
    };
    Ok(servers.into_iter().map(series).collect())
}

fn line(cells: &Cells<'_>) -> Result<(u64, Sample), ImportError> {
    let database_id = cells.need("DatabaseID", cell::whole)?;
    let file_id = cells.need("FileID", cell::whole)?;
    let size_mb = cells.read("SizeOnDiskMB", cell::whole)?;
    let file = FileIdentity {
        instance: cells.read("ServerName", file_stats::name)?.unwrap_or_else(|| "unknown".into()),
        database: cells.text("DatabaseName").map(str::to_owned),
        database_id: Some(database_id),
        file_id: format!("{database_id}:{file_id}"),
        kind: kind(database_id == TEMPDB, cells.text("TypeDesc")),
        path: path(cells, ["PhysicalName", "DatabaseName", "FileLogicalName"], (database_id, file_id)),
        drive: None,
        handle: None,
        object: None,
    };
    let ops = [
        ops(cells, "num_of_reads", "bytes_read", "io_stall_read_ms")?,
        ops(cells, "num_of_writes", "bytes_written", "io_stall_write_ms")?,
    ];
    let size_bytes = figure(size_mb.and_then(|mb| mb.checked_mul(1 << 20)));
    cells.read("ID", cell::whole)?;
    Ok((cells.need("CheckDate", cell::instant)?, sample(file, Epoch::for_run(""), ops, size_bytes)))
}
