//! PerfMon's counter logs as CSV: PhysicalDisk and LogicalDisk. Rates and means of each interval between two samples,
//! rounded as they were printed, and one instant's queue length. They are not cumulative, and are not made so.
//!
//! ```text
//! "(PDH-CSV 4.0) (W. Europe Standard Time)(-120)","\\SQL01\PhysicalDisk(1 D:)\Avg. Disk sec/Read",...
//! "05/01/2026 10:00:00.123"," ",...                    rates need two samples: the first one has none
//! "05/01/2026 10:00:15.125","0.0041",...               local time; UTC = local + the minutes in the heading
//! ```

mod disk;

pub use disk::{Disk, DiskInterval, DiskLog, DiskOps, DiskTotals};

use super::CounterLog;
use super::cell::{self, is_null};
use super::sheet::{Row, Sheet};
use crate::{Format, ImportError, Note};
use filestats::{Figure, Reason};
use jiff::civil::DateTime;
use jiff::tz::Offset;
use std::collections::{BTreeMap, BTreeSet};

/// Whether the first row is that of a counter log.
pub(super) fn is_head(head: &[String]) -> bool {
    head.first().is_some_and(|cell| cell.starts_with("(PDH-CSV") || cell.starts_with("(PDH-TSV"))
}

/// A counter of a disk that is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Counter {
    Reads,
    Writes,
    Transfers,
    ReadBytes,
    WriteBytes,
    Bytes,
    ReadSeconds,
    WriteSeconds,
    TransferSeconds,
    QueueNow,
    QueueMean,
}

const COUNTERS: [(&str, Counter); 11] = [
    ("disk reads/sec", Counter::Reads),
    ("disk writes/sec", Counter::Writes),
    ("disk transfers/sec", Counter::Transfers),
    ("disk read bytes/sec", Counter::ReadBytes),
    ("disk write bytes/sec", Counter::WriteBytes),
    ("disk bytes/sec", Counter::Bytes),
    ("avg. disk sec/read", Counter::ReadSeconds),
    ("avg. disk sec/write", Counter::WriteSeconds),
    ("avg. disk sec/transfer", Counter::TransferSeconds),
    ("current disk queue length", Counter::QueueNow),
    ("avg. disk queue length", Counter::QueueMean),
];

/// Counters of disks that follow from others, or are not about I/O.
const PASSED_OVER: [&str; 13] = [
    "% disk time",
    "% disk read time",
    "% disk write time",
    "% idle time",
    "% free space",
    "free megabytes",
    "split io/sec",
    "avg. disk bytes/read",
    "avg. disk bytes/write",
    "avg. disk bytes/transfer",
    "avg. disk read queue length",
    "avg. disk write queue length",
    "disk storage device",
];

/// One disk: host, object, instance.
type DiskKey = (String, String, String);

/// Contents of the columns.
#[derive(Default)]
struct Columns {
    disks: BTreeMap<DiskKey, BTreeMap<Counter, usize>>,
    /// Objects that are not disks.
    others: BTreeSet<String>,
    /// Counters of disks that are not known.
    unknown: BTreeSet<String>,
    /// Counters of disks that say nothing of I/Os.
    passed_over: BTreeSet<String>,
}

pub(super) fn read(mut sheet: Sheet<'_>) -> Result<CounterLog, ImportError> {
    let head = sheet.head();
    sheet.has_heading();
    sheet.any_length();
    let mut notes = Vec::new();
    let columns = columns(&head);
    note_skipped(&columns, &mut notes);
    if columns.disks.is_empty() && !columns.passed_over.is_empty() {
        let names = listed(&columns.passed_over);
        let reason =
            format!("of its disks this log has only {names}: no rate and no latency of I/Os follows");
        return Err(ImportError::at(1, reason).remedy(
            "log Disk Reads/sec, Disk Writes/sec, Avg. Disk sec/Read and Avg. Disk sec/Write, or all: \\PhysicalDisk(*)\\*",
        ));
    }
    if columns.disks.is_empty() {
        return Err(ImportError::at(1, "no counter of PhysicalDisk or LogicalDisk is in this log").remedy(
            "log \\PhysicalDisk(*)\\* ; of a Windows in another language rename the counters in the first line \
             to their English names, as in \\\\HOST\\PhysicalDisk(0 C:)\\Avg. Disk sec/Read",
        ));
    }
    let offset = offset(&head[0]);
    if offset.is_none() {
        notes.push(Note::at(
            1,
            "the heading has no offset from UTC (typeperf writes none): times are taken as UTC",
        ));
    }
    let offset = offset.unwrap_or(Offset::UTC);
    let mut disks: BTreeMap<DiskKey, Vec<DiskInterval>> = BTreeMap::new();
    let mut before: Option<u64> = None;
    let mut went_back = Vec::new();
    while let Some(row) = sheet.next_row()? {
        let at = instant(&sheet, &row, offset)?;
        let elapsed_ns = match before {
            None => Figure::unknown(Reason::FirstSight),
            Some(then) if at <= then => {
                went_back.push(row.line);
                Figure::unknown(Reason::NoTimePassed)
            }
            Some(then) => Figure::Known(at - then),
        };
        for (key, counters) in &columns.disks {
            let value =
                |counter: Counter| value(&sheet, &row, counters.get(&counter).copied(), before.is_none());
            let interval = interval(at, elapsed_ns, value)?;
            disks.entry(key.clone()).or_default().push(interval);
        }
        before = Some(at);
    }
    if let Some(line) = went_back.first() {
        let times = went_back.len();
        notes.push(Note::at(
            *line,
            format!("the time goes back {times} x (the end of summer time, or logs put together): how long those intervals were is unknown"),
        ));
    }
    if before.is_none() {
        return Err(
            ImportError::new("the log has a heading and no samples").remedy("let the collector run longer")
        );
    }
    notes.append(&mut sheet.notes);
    let disks =
        disks.into_iter().map(|((host, object, name), intervals)| Disk { host, object, name, intervals });
    let disks = DiskLog { disks: disks.collect() };
    Ok(CounterLog { format: Format::Perfmon, series: Vec::new(), disks: Some(disks), notes })
}

fn columns(head: &[String]) -> Columns {
    let mut columns = Columns::default();
    for (at, text) in head.iter().enumerate().skip(1) {
        let Some((host, object, instance, counter)) = path(text) else {
            // The purpose of a collector set stands in a last cell, in words.
            if !text.is_empty() {
                columns.others.insert("a text".into());
            }
            continue;
        };
        if !matches!(object, "PhysicalDisk" | "LogicalDisk") {
            columns.others.insert(object.chars().take(40).collect());
            continue;
        }
        let name = counter.to_lowercase();
        match COUNTERS.iter().find(|(known, _)| *known == name) {
            Some((_, counter)) => {
                let key = (host.to_owned(), object.to_owned(), instance.to_owned());
                columns.disks.entry(key).or_default().insert(*counter, at);
            }
            None if PASSED_OVER.contains(&name.as_str()) => {
                columns.passed_over.insert(counter.chars().take(60).collect());
            }
            None => {
                columns.unknown.insert(counter.chars().take(60).collect());
            }
        }
    }
    // The sum of all disks says nothing of any of them.
    if columns.disks.keys().any(|(.., name)| name != "_Total") {
        columns.disks.retain(|(.., name), _| name != "_Total");
    }
    columns
}

/// "\\HOST\Object(instance)\Counter"; an instance may hold backslashes (a mount point) and parentheses.
fn path(text: &str) -> Option<(&str, &str, &str, &str)> {
    let (host, rest) = match text.strip_prefix("\\\\") {
        Some(rest) => rest.split_once('\\')?,
        None => ("", text.strip_prefix('\\')?),
    };
    let Some((object, rest)) = rest.split_once('(') else {
        let (object, counter) = rest.split_once('\\')?;
        return Some((host, object, "", counter));
    };
    let (instance, counter) = rest.rsplit_once(")\\")?;
    Some((host, object, instance, counter))
}

fn note_skipped(columns: &Columns, notes: &mut Vec<Note>) {
    if !columns.unknown.is_empty() {
        notes.push(Note::at(
            1,
            format!(
                "left out, counters that are not known (another language?): {}",
                listed(&columns.unknown)
            ),
        ));
    }
    if !columns.others.is_empty() {
        notes.push(Note::at(1, format!("left out, not of disks: {}", listed(&columns.others))));
    }
}

const NAMES_LISTED_MAX: usize = 8;

fn listed(names: &BTreeSet<String>) -> String {
    let more = names.len().saturating_sub(NAMES_LISTED_MAX);
    let more = if more > 0 { format!(" and {more} more") } else { String::new() };
    names.iter().take(NAMES_LISTED_MAX).cloned().collect::<Vec<_>>().join(", ") + &more
}

/// "(PDH-CSV 4.0) (W. Europe Standard Time)(-120)": local time plus these minutes is UTC.
fn offset(cell: &str) -> Option<Offset> {
    let minutes: i32 = cell.strip_suffix(')')?.rsplit_once('(')?.1.parse().ok()?;
    Offset::from_seconds(minutes.checked_mul(-60)?).ok()
}

/// "05/01/2026 10:00:15.125": the month comes first, whatever the country.
fn instant(sheet: &Sheet<'_>, row: &Row, offset: Offset) -> Result<u64, ImportError> {
    let text = row.cell(0);
    let civil = text.split_once(' ').and_then(|(date, time)| {
        let [month, day, year] = date.split('/').collect::<Vec<_>>().try_into().ok()?;
        format!("{year}-{month:0>2}-{day:0>2}T{}", time.trim().replace(',', ".")).parse::<DateTime>().ok()
    });
    civil.and_then(|civil| cell::unix_ns(civil, offset)).ok_or_else(|| {
        refused(sheet, row, 0, "time").remedy(
            "PerfMon writes 05/01/2026 10:00:15.125, month first; relog LOG -f csv -o NEW.csv writes it that way",
        )
    })
}

/// A counter at a sample: blank where it could not be read, and -1 where it was not valid.
fn value(
    sheet: &Sheet<'_>,
    row: &Row,
    column: Option<usize>,
    is_first: bool,
) -> Result<Figure<f64>, ImportError> {
    let Some(column) = column else { return Ok(Figure::unknown(Reason::NotCounted)) };
    let text = row.cell(column);
    let missing = if is_first { Reason::FirstSight } else { Reason::Lost };
    let number = match is_null(text) {
        true => None,
        false => Some(cell::decimal(text).ok_or_else(|| {
            refused(sheet, row, column, "number")
                .remedy("numbers are 1.5 or 1,5 without separators of thousands: relog LOG -f csv -o NEW.csv")
        })?),
    };
    Ok(number.filter(|number| *number >= 0.0).map_or(Figure::unknown(missing), Figure::Known))
}

fn refused(sheet: &Sheet<'_>, row: &Row, column: usize, what: &str) -> ImportError {
    let text: String = row.cell(column).chars().take(40).collect();
    ImportError::at(row.line, format!("'{text}' is not a {what}")).column(sheet.column_of(row, column))
}

fn interval(
    ended_unix_ns: u64,
    elapsed_ns: Figure<u64>,
    value: impl Fn(Counter) -> Result<Figure<f64>, ImportError>,
) -> Result<DiskInterval, ImportError> {
    let ops = |count: Counter, bytes: Counter, seconds: Counter| -> Result<DiskOps, ImportError> {
        let per_second = value(count)?;
        // Nothing happened: 0 is printed for the mean of nothing.
        let latency_ns = match (value(seconds)?, per_second) {
            (Figure::Known(_), Figure::Known(0.0)) | (Figure::Known(0.0), Figure::Unknown { .. }) => {
                Figure::unknown(Reason::NoOperations)
            }
            (seconds, _) => seconds.map(|seconds| seconds * 1e9),
        };
        Ok(DiskOps { per_second, bytes_per_second: value(bytes)?, latency_ns })
    };
    Ok(DiskInterval {
        ended_unix_ns,
        elapsed_ns,
        read: ops(Counter::Reads, Counter::ReadBytes, Counter::ReadSeconds)?,
        write: ops(Counter::Writes, Counter::WriteBytes, Counter::WriteSeconds)?,
        transfer: ops(Counter::Transfers, Counter::Bytes, Counter::TransferSeconds)?,
        queue_sampled: value(Counter::QueueNow)?,
        queue_mean: value(Counter::QueueMean)?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_is_taken_apart_even_where_its_instance_is_a_mount_point() {
        let found = path(r"\\SQL01\LogicalDisk(D:\mount (old)\data)\Avg. Disk sec/Read");
        assert_eq!(found, Some(("SQL01", "LogicalDisk", r"D:\mount (old)\data", "Avg. Disk sec/Read")));
        assert_eq!(path(r"\Memory\Commit Limit"), Some(("", "Memory", "", "Commit Limit")));
        assert_eq!(path("This set collects disks"), None);
    }

    #[test]
    fn the_offset_is_that_of_the_heading() {
        let minutes = |cell| offset(cell).map(|offset| offset.seconds() / 60);
        assert_eq!(minutes("(PDH-CSV 4.0) (W. Europe Standard Time)(-120)"), Some(120));
        assert_eq!(minutes("(PDH-CSV 4.0) (Pacific Daylight Time)(420)"), Some(-420));
        assert_eq!(minutes("(PDH-CSV 4.0)"), None);
    }
}
