//! The queries of a snapshot, and their answers as types.

use super::error::MysqlError;
use super::protocol::ROWS_MAX;
use super::server::{FileOnDisk, Server};
use super::session::Session;
use std::collections::BTreeMap;
use std::io;
use std::path::Path;

const STATUS: &str = "SHOW GLOBAL STATUS WHERE Variable_name IN ('uptime', 'innodb_data_reads', 'innodb_data_read', 'innodb_data_writes', \
     'innodb_data_written', 'innodb_data_fsyncs', 'innodb_log_writes', 'innodb_os_log_written', \
     'innodb_os_log_fsyncs', 'handler_commit', 'com_commit', 'innodb_log_waits', 'innodb_buffer_pool_wait_free', \
     'performance_schema_file_instances_lost', 'performance_schema_file_handles_lost', \
     'performance_schema_file_classes_lost')";
const NOW: &str = "SELECT UNIX_TIMESTAMP()";
const SWITCHES: &str = "SELECT NAME, ENABLED, TIMED FROM performance_schema.setup_instruments WHERE NAME LIKE \
     'wait/io/file/%' UNION ALL SELECT NAME, ENABLED, '' FROM performance_schema.setup_consumers WHERE NAME = \
     'global_instrumentation'";
const FILES: &str = "SELECT FILE_NAME, EVENT_NAME, OBJECT_INSTANCE_BEGIN, COUNT_STAR, COUNT_READ, SUM_TIMER_READ, \
     SUM_NUMBER_OF_BYTES_READ, COUNT_WRITE, SUM_TIMER_WRITE, SUM_NUMBER_OF_BYTES_WRITE FROM \
     performance_schema.file_summary_by_instance";
const EVENTS: &str = "SELECT EVENT_NAME, COUNT_READ, SUM_TIMER_READ, SUM_NUMBER_OF_BYTES_READ, COUNT_WRITE, \
     SUM_TIMER_WRITE, SUM_NUMBER_OF_BYTES_WRITE, COUNT_MISC, SUM_TIMER_MISC FROM \
     performance_schema.file_summary_by_event_name WHERE COUNT_STAR > 0";
const UNSEEN_THREADS: &str = "SELECT COUNT(*) FROM performance_schema.threads WHERE INSTRUMENTED = 'NO'";
/// Counters of what the Performance Schema had no room for, what that is, and the variable that makes room.
pub(super) const LOST: [(&str, &str, &str); 3] = [
    ("performance_schema_file_instances_lost", "files", "performance_schema_max_file_instances"),
    ("performance_schema_file_handles_lost", "open files", "performance_schema_max_file_handles"),
    ("performance_schema_file_classes_lost", "kinds of files", "performance_schema_max_file_classes"),
];
const PS_PER_NS: u64 = 1000;
const TRIES_MAX: u32 = 20;

/// The server's statistics at one instant.
#[derive(Clone, Debug, Default)]
pub(super) struct Statistics {
    /// When the server started, seconds since 1970, by its own clock.
    pub started_unix_s: u64,
    pub status: BTreeMap<String, u64>,
    pub schema: Schema,
    pub clock_ns: u64,
    pub taken_unix_ns: u64,
}

/// The Performance Schema's rows, if it can be read.
#[derive(Clone, Debug, Default)]
pub(super) enum Schema {
    #[default]
    Off,
    Denied,
    On(Counted),
}

#[derive(Clone, Debug, Default)]
pub(super) struct Counted {
    pub switches: Switches,
    pub files: Vec<FileRow>,
    /// The files of the redo log of MySQL 8.0.30 and later at this moment.
    pub redo_parts: Vec<FileRow>,
    /// Instances of deleted files, of which the server keeps some rows.
    pub deleted: Vec<String>,
    pub events: Vec<EventRow>,
    /// Threads whose I/O is in no counter.
    pub unseen_threads: u64,
}

/// Switches of the instruments: those that count, and those that measure time.
#[derive(Clone, Debug, Default)]
pub(super) struct Switches {
    pub global: bool,
    /// Enabled and timed, by name of the instrument.
    pub instruments: BTreeMap<String, (bool, bool)>,
}

/// Operations of one kind, cumulative.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Timed {
    pub count: u64,
    pub bytes: u64,
    pub ns: u64,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct FileRow {
    pub path: String,
    pub event: String,
    pub instance: String,
    /// Reads, writes and all else together.
    pub count: u64,
    pub read: Timed,
    pub write: Timed,
    /// The file itself, where it can be seen from here.
    pub found: Option<FileOnDisk>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct EventRow {
    pub event: String,
    pub read: Timed,
    pub write: Timed,
    /// Opens, closes, syncs and all else.
    pub misc: Timed,
}

impl Statistics {
    /// Whether every file that the server has opened has a row.
    pub fn is_complete(&self) -> bool {
        matches!(&self.schema, Schema::On(counted) if counted.switches.global && counted.files.len() < ROWS_MAX)
            && LOST.iter().all(|(counter, ..)| self.lost(counter).is_none())
    }

    /// The loss that a counter reports, if any.
    pub fn lost(&self, counter: &str) -> Option<u64> {
        self.status.get(counter).copied().filter(|lost| *lost > 0)
    }
}

impl Counted {
    /// Finds the files on this machine, and takes out those that are deleted.
    pub fn locate_files(&mut self, server: &Server) {
        let Some(process) = &server.process else { return };
        let deleted = &mut self.deleted;
        self.files.retain_mut(|row| match process.find_file(&server.data_directory.join(&row.path)) {
            Ok(found) => {
                row.found = Some(found);
                true
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound && process.is_root_known => {
                deleted.push(std::mem::take(&mut row.instance));
                false
            }
            Err(_) => true,
        });
    }
}

impl FileRow {
    /// Whether it is in `#innodb_redo`, where files are created, renamed (`#ib_redo9_tmp` to `#ib_redo9`) and deleted as
    /// the log moves on: several a second if the log is small.
    pub fn is_part_of_redo(&self) -> bool {
        let directory = Path::new(&self.path).parent().and_then(Path::file_name);
        directory.is_some_and(|directory| directory == "#innodb_redo")
    }
}

impl Switches {
    pub fn counts(&self, event: &str) -> bool {
        self.global && self.instruments.get(event).is_some_and(|(enabled, _)| *enabled)
    }

    pub fn times(&self, event: &str) -> bool {
        self.counts(event) && self.instruments.get(event).is_some_and(|(_, timed)| *timed)
    }
}

impl Session {
    /// Runs all queries, that of the files last: the snapshot's clock is theirs.
    pub fn read_statistics(&mut self) -> Result<Statistics, MysqlError> {
        let mut statistics = Statistics::default();
        self.read_status(&mut statistics)?;
        if self.server.performance_schema {
            statistics.schema = self.read_schema()?.map_or(Schema::Denied, Schema::On);
        }
        (statistics.clock_ns, statistics.taken_unix_ns) = (host::monotonic_ns(), host::unix_ns());
        Ok(statistics)
    }

    /// Uptime is in whole seconds and relative to the start of the statement (show_starttime() of mysqld.cc). Between two
    /// statements that return the same second, it gives the exact second of the server's start.
    fn read_status(&mut self, statistics: &mut Statistics) -> Result<(), MysqlError> {
        let failed = |why: &str| MysqlError::Failed(why.into());
        for _ in 0..TRIES_MAX {
            let (before, status, after) =
                (self.query_all(NOW, 1)?, self.query_all(STATUS, 2)?, self.query_all(NOW, 1)?);
            if before != after {
                continue;
            }
            let value = |row: &Vec<String>| Some((row[0].to_ascii_lowercase(), row[1].parse().ok()?));
            statistics.status = status.iter().filter_map(value).collect();
            let now: Option<u64> = after.first().and_then(|row| row[0].parse().ok());
            let uptime = statistics.status.get("uptime").copied();
            let started = now.zip(uptime).and_then(|(now, uptime)| now.checked_sub(uptime));
            statistics.started_unix_s = started.ok_or_else(|| failed("it does not report its uptime"))?;
            return Ok(());
        }
        Err(failed("its clock does not stand still for three statements"))
    }

    /// Rows that every user may read.
    fn query_all(&mut self, sql: &str, columns: usize) -> Result<Vec<Vec<String>>, MysqlError> {
        let denied = || MysqlError::Failed("this user may not even see its status".into());
        self.query(sql, columns)?.ok_or_else(denied)
    }

    /// `None` if the user may not read the Performance Schema.
    fn read_schema(&mut self) -> Result<Option<Counted>, MysqlError> {
        let Some(switches) = self.query(SWITCHES, 3)? else { return Ok(None) };
        let Some(unseen) = self.query(UNSEEN_THREADS, 1)? else { return Ok(None) };
        let Some(events) = self.query(EVENTS, 9)? else { return Ok(None) };
        let Some(files) = self.query(FILES, 10)? else { return Ok(None) };
        let files = files.iter().filter_map(|row| file_row(row));
        let (redo_parts, files) = files.partition(FileRow::is_part_of_redo);
        Ok(Some(Counted {
            switches: switches_of(&switches),
            files,
            redo_parts,
            deleted: Vec::new(),
            events: events.iter().filter_map(|row| event_row(row)).collect(),
            unseen_threads: unseen.first().and_then(|row| row[0].parse().ok()).unwrap_or(0),
        }))
    }
}

fn switches_of(rows: &[Vec<String>]) -> Switches {
    let mut switches = Switches::default();
    for row in rows {
        match row[0].as_str() {
            "global_instrumentation" => switches.global = row[1] == "YES",
            name => drop(switches.instruments.insert(name.into(), (row[1] == "YES", row[2] == "YES"))),
        }
    }
    switches
}

/// `None` if a figure is no number, which no documented server returns.
fn file_row(row: &[String]) -> Option<FileRow> {
    Some(FileRow {
        path: row[0].clone(),
        event: row[1].clone(),
        instance: row[2].clone(),
        count: row[3].parse().ok()?,
        read: timed(&row[4..7])?,
        write: timed(&row[7..10])?,
        found: None,
    })
}

fn event_row(row: &[String]) -> Option<EventRow> {
    let misc = Timed { count: row[7].parse().ok()?, bytes: 0, ns: row[8].parse::<u64>().ok()? / PS_PER_NS };
    Some(EventRow { event: row[0].clone(), read: timed(&row[1..4])?, write: timed(&row[4..7])?, misc })
}

/// Count, picoseconds, bytes. The sum of picoseconds wraps after 213 days of waiting: the counter falls, which ends the
/// interval.
fn timed(row: &[String]) -> Option<Timed> {
    let ns = row[1].parse::<u64>().ok()? / PS_PER_NS;
    Some(Timed { count: row[0].parse().ok()?, bytes: row[2].parse().ok()?, ns })
}
