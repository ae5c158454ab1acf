//! `headroom.file_stats`, the table of the capture script: cumulative counters with the start time of the server, so that
//! restarts are known rather than inferred.

use super::capture::{Capture, NS_PER_MS, TEMPDB, sample};
use super::cell;
use super::layout::{Cells, Layout};
use super::series::{Points, Series};
use super::sheet::Sheet;
use crate::ImportError;
use filestats::{
    Epoch, Figure, FileIdentity, FileKind, Ops, Reason, Sample, Snapshot, WaitClass, WaitSample,
};
use std::collections::BTreeMap;

struct Line {
    server: String,
    taken_unix_ns: u64,
    capture_id: u64,
    label: Option<String>,
    clock_ms: i64,
    sample: Sample,
    queued_ms: [Option<u64>; 2],
    pushed: u64,
}

pub(super) fn read(sheet: &mut Sheet<'_>, layout: &Layout) -> Result<Vec<Series>, ImportError> {
    let mut servers: BTreeMap<String, BTreeMap<(u64, u64), Vec<Line>>> = BTreeMap::new();
    for line in super::rows(sheet, layout, line)? {
        let captures = servers.entry(line.server.clone()).or_default();
        captures.entry((line.taken_unix_ns, line.capture_id)).or_default().push(line);
    }
    let series = |(server, captures): (String, BTreeMap<_, Vec<Line>>)| {
        let source = format!("sqlserver:{server}");
        let captures = captures.into_values().map(|lines| capture(&source, lines)).collect();
        Series { source, points: Points::Cumulative(captures) }
    };
    Ok(servers.into_iter().map(series).collect())
}

fn line(cells: &Cells<'_>) -> Result<Line, ImportError> {
    let server = cells.need("server_name", name)?;
    let database_id = cells.need("database_id", cell::whole)?;
    let file_id = cells.need("file_id", cell::whole)?;
    let created = cells.read("database_create_time", cell::local)?;
    let file = FileIdentity {
        instance: server.clone(),
        database: cells.text("database_name").map(str::to_owned),
        database_id: Some(database_id),
        // The number of a dropped database is used again. tempdb is created at each start, which the epoch already
        // shows.
        file_id: match created.filter(|_| database_id != TEMPDB) {
            Some(created) => format!("{database_id}:{file_id}@{created}"),
            None => format!("{database_id}:{file_id}"),
        },
        kind: kind(database_id == TEMPDB, cells.text("type_desc")),
        path: path(cells, ["physical_name", "database_name", "file_name"], (database_id, file_id)),
        drive: cells.text("volume_mount_point").map(str::to_owned),
        handle: cells.text("file_handle").map(str::to_owned),
        object: None,
    };
    let started = cells.read("sqlserver_start_time", cell::local)?;
    let epoch = Epoch::for_run(started.map(|at| format!("started {at}")).unwrap_or_default());
    let ops = [
        ops(cells, "num_of_reads", "num_of_bytes_read", "io_stall_read_ms")?,
        ops(cells, "num_of_writes", "num_of_bytes_written", "io_stall_write_ms")?,
    ];
    let size_bytes = figure(cells.read("size_on_disk_bytes", cell::whole)?);
    let pushed_bytes = cells.read("num_of_pushed_bytes_returned", cell::whole)?;
    Ok(Line {
        server,
        taken_unix_ns: cells.need("capture_time", cell::instant)?,
        capture_id: cells.need("capture_id", cell::whole)?,
        label: cells.text("label").map(str::to_owned),
        clock_ms: cells.need("sample_ms", cell::signed)?,
        queued_ms: [
            cells.read("io_stall_queued_read_ms", cell::whole)?,
            cells.read("io_stall_queued_write_ms", cell::whole)?,
        ],
        pushed: cells.read("num_of_pushed_reads", cell::whole)?.max(pushed_bytes).unwrap_or(0),
        sample: sample(file, epoch, ops, size_bytes),
    })
}

fn capture(source: &str, lines: Vec<Line>) -> Capture {
    let clock_ms = lines.iter().map(|line| line.clock_ms).max().unwrap_or(0);
    let taken_unix_ns = lines.first().map_or(0, |line| line.taken_unix_ns);
    let label = lines.iter().find_map(|line| line.label.clone());
    let mut notes = Vec::new();
    if lines.iter().any(|line| line.pushed > 0) {
        notes.push(
            "reads were pushed down to the storage (num_of_pushed_reads): they are not in these figures"
                .into(),
        );
    }
    let waits = lines.iter().flat_map(queued).collect();
    let samples = lines.into_iter().map(|line| line.sample).collect();
    let snapshot = Snapshot {
        source: source.into(),
        taken_unix_ns,
        clock_ns: clock_ns(clock_ms),
        complete: None,
        samples,
        waits,
        notes,
    };
    Capture { label, snapshot }
}

/// Until SQL Server 2014 an `int`, which overflows to negative numbers after 24.9 days.
fn clock_ns(sample_ms: i64) -> u64 {
    let ms = if sample_ms < 0 { sample_ms.saturating_add(1 << 32) } else { sample_ms };
    u64::try_from(ms).unwrap_or(0).saturating_mul(NS_PER_MS)
}

/// The time that a limit (Resource Governor) added to the stalls of a file.
fn queued(line: &Line) -> impl Iterator<Item = WaitSample> {
    let path = &line.sample.file.path;
    let kinds =
        [("io_stall_queued_read_ms", line.queued_ms[0]), ("io_stall_queued_write_ms", line.queued_ms[1])];
    kinds.into_iter().filter_map(move |(column, ms)| {
        let wait_ns = ms?.checked_mul(NS_PER_MS)?;
        Some(WaitSample {
            instance: line.server.clone(),
            event: format!("{column} of {path}"),
            class: WaitClass::Throttled,
            epoch: line.sample.epoch.clone(),
            count: Figure::unknown(Reason::NotCounted),
            wait_ns: Figure::Known(wait_ns),
        })
    })
}

/// Operations of one kind; a NULL stall is unknown.
pub(super) fn ops(cells: &Cells<'_>, count: &str, bytes: &str, stall: &str) -> Result<Ops, ImportError> {
    let stall_ns = cells.read(stall, |text| {
        cell::whole(text)?.checked_mul(NS_PER_MS).ok_or_else(|| {
            ImportError::new(format!("'{text}' milliseconds are more than 500 years"))
                .remedy("export the table again, it is damaged here")
        })
    })?;
    Ok(Ops {
        count: cells.need(count, cell::whole)?,
        bytes: cells.need(bytes, cell::whole)?,
        stall_ns: figure(stall_ns),
    })
}

pub(super) fn figure(value: Option<u64>) -> Figure<u64> {
    value.map_or(Figure::unknown(Reason::NotCounted), Figure::Known)
}

/// A required name.
pub(super) fn name(text: &str) -> Result<String, ImportError> {
    Ok(text.to_owned())
}

pub(super) fn kind(is_tempdb: bool, type_desc: Option<&str>) -> FileKind {
    match type_desc.map(str::to_ascii_uppercase).as_deref() {
        _ if is_tempdb => FileKind::Temp,
        Some("ROWS") => FileKind::Data,
        Some("LOG") => FileKind::Log,
        _ => FileKind::Other,
    }
}

/// The physical name, or a substitute where the account may not see it.
/// `columns` are those of the physical name, of the database and of the file's logical name; `id` is the number of the
/// database and of the file.
pub(super) fn path(cells: &Cells<'_>, columns: [&str; 3], id: (u64, u64)) -> String {
    let [physical, database, file] = columns.map(|column| cells.text(column));
    match (physical, database, file) {
        (Some(path), ..) => path.to_owned(),
        (None, Some(database), Some(file)) => format!("{database}/{file}"),
        _ => format!("database {} file {}", id.0, id.1),
    }
}
